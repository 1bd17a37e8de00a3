"""What a plan, an episode and a simulator can do beside naming actions."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import ModelError

COIN = pkd.TabularMDP(
    [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]],
    [[0.0, 0.0], [1.0, 1.0]],
    horizon=3,
    state_names=["tails", "heads"],
    action_names=["toss", "stay"],
)
OTHER = pkd.TabularMDP(COIN.transitions, COIN.rewards + 1.0, horizon=3)
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def delayed_model() -> tuple[pkd.PartiallyKnownMDP, Any]:
    return pkd_delay.KnownDelay(COIN, {1: 1.0}, 1), COIN.law()


@both_engines
def test_a_plan_is_evaluated_under_its_law_or_another(large: bool) -> None:
    model, law = delayed_model()
    plan = pkd.plan(pkd.compile(model, large=large), law)
    assert plan.evaluate() == pytest.approx(plan.value)
    stays = {z: {z[0]: 1.0} for z in law}
    assert plan.evaluate(stays) == 0.0
    # Nobody sees in time whether to stay: two fair coins.
    assert plan.evaluate().variance == pytest.approx(0.5)


@both_engines
def test_a_plan_comes_back_from_its_file(large: bool, tmp_path: Path) -> None:
    model, law = delayed_model()
    plan = pkd.plan(pkd.compile(model, large=large), law)
    plan.save(tmp_path / "plan.npz")
    back = pkd.Plan.load(tmp_path / "plan.npz", (pkd.compile(model, large=large), law))
    assert (back.value, back.table(2)) == (plan.value, plan.table(2))
    assert back.evaluate() == pytest.approx(plan.value)
    assert [e.total for e in back.simulate(5, seed=3)] == [
        e.total for e in plan.simulate(5, seed=3)
    ]


def test_a_plan_from_a_file_without_a_law_says_so(tmp_path: Path) -> None:
    pkd.plan(COIN).save(tmp_path / "plan.npz")
    back = pkd.Plan.load(tmp_path / "plan.npz", COIN.model())
    with pytest.raises(ModelError, match=r"knows no law; give evaluate\(law=\.\.\.\)$"):
        back.evaluate()
    with pytest.raises(ModelError, match=r"knows no law; give simulate\(law=\.\.\.\)$"):
        back.simulate(1)
    assert back.evaluate(COIN.law()) == 1.25


def test_the_file_of_another_model_is_refused(tmp_path: Path) -> None:
    pkd.plan(COIN).save(tmp_path / "plan.npz")
    with pytest.raises(
        ModelError, match=r"plan\.npz is the plan of another model, or of an edited"
    ):
        pkd.Plan.load(tmp_path / "plan.npz", OTHER)


def test_every_damaged_file_is_one_model_error(tmp_path: Path) -> None:
    path = tmp_path / "plan.npz"
    pkd.plan(COIN).save(path)
    whole = path.read_bytes()
    compiled = pkd.compile(COIN)
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        try:
            back = pkd.Plan.load(path, compiled)
        except ModelError:
            continue
        assert back.action(1, 0, None) in (0, 1)  # a byte that no reader looks at
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError):
        pkd.Plan.load(path, compiled)


def test_a_table_has_at_most_so_many_lines() -> None:
    table = pkd.plan(COIN).table(2, most=1).splitlines()
    assert table[0].split() == ["step", "x", "y", "action", "value"]
    assert table[1].split() == ["2", "tails", "toss", "0.5"]
    assert table[2:] == ["..."]


def test_a_csv_holds_every_rule(tmp_path: Path) -> None:
    plan = pkd.plan(COIN)
    plan.to_csv(tmp_path / "plan.csv", values=True, every_state=True)
    rows = list(csv.reader((tmp_path / "plan.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["step", "x", "action", "value", "Q(toss)", "Q(stay)"]  # y is trivial
    assert len(rows) == 1 + len(list(plan.rows())) == 6  # one start, then both states


class Lottery(pkd.PartiallyKnownMDP):
    """One draw; what stands at the end pays."""

    horizon = 1

    def start(self) -> Any:
        return 0, None

    def actions(self, x: Any, y: Any) -> Any:
        return ["draw"]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return -1.0

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, None, "ticket")]

    def outcomes(self, z: Any) -> Any:
        return [5]

    def final(self, x: Any, y: Any) -> float:
        return float(x)


LOTTERY = (Lottery(), {"ticket": {5: 1.0}})


@pytest.mark.parametrize("policy", [lambda h, x, y: "draw", pkd.plan(LOTTERY)])
def test_the_total_of_an_episode_has_the_final_pay(policy: Any) -> None:
    episode = pkd.Simulator(LOTTERY).episode(policy) if callable(policy) else policy.simulate(1)[0]
    assert (episode.total, episode.final) == (4.0, 5.0)
    assert str(episode) == "<Episode: 1 moves, return 4>"
    assert episode.table().splitlines()[1].split() == ["0", "None", "draw", "-1", "5", "None"]


PRINTED: dict[str, tuple[Callable[[], Any], str]] = {
    "table": (lambda: COIN, "<TabularMDP: 2 states, 2 actions, horizon 3>"),
    "model": (Lottery, "<Lottery: horizon 1>"),
    "pair": (lambda: pkd.as_problem(LOTTERY), "<Pair of Lottery and its law>"),
    "plan": (lambda: pkd.plan(LOTTERY), "<Plan for Lottery: value 4, horizon 1>"),
}


@pytest.mark.parametrize("thing", PRINTED)
def test_things_print_as_one_short_line(thing: str) -> None:
    make, text = PRINTED[thing]
    assert str(make()) == repr(make()) == text


@both_engines
def test_returns_in_bulk_are_those_of_single_episodes(large: bool) -> None:
    model, law = delayed_model()
    plan = pkd.plan(pkd.compile(model, large=large), law)
    bulk = pkd.Simulator(plan.compiled, law, seed=5).returns(plan, 200)
    single = pkd.Simulator(plan.compiled, law, seed=5)
    assert bulk.tolist() == [single.episode(plan).total for _ in range(200)]
    by_function = pkd.Simulator(plan.compiled, law, seed=5).returns(plan.action, 200)
    assert by_function.tolist() == bulk.tolist()


def test_many_returns_have_the_exact_mean_and_variance() -> None:
    plan = pkd.plan(COIN)
    returns, exact = pkd.Simulator(COIN, seed=1).returns(plan.action, 4000), plan.evaluate()
    assert abs(returns.mean() - exact) < 4 * exact.deviation / np.sqrt(4000)
    assert returns.var() == pytest.approx(exact.variance, rel=0.15)


def test_a_randomised_policy_is_played_with_its_probabilities() -> None:
    play = pkd.Simulator(COIN, seed=2).play(lambda h, x, y: {0: 0.25, 1: 0.75}, 2000)
    tossed = np.mean([move.action == 0 for episode in play for move in episode])
    assert tossed == pytest.approx(0.25, abs=0.03)
    with pytest.raises(ModelError, match="expected probabilities that sum to 1, at step 1 in"):
        pkd.Simulator(COIN).episode(lambda h, x, y: {0: 0.25})
