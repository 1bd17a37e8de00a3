"""`pkd.plan`, `pkd.evaluate` and `pkd.flatten` against definitions, solvers, published numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pkd
from tests import reference
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def any_policy(case: Case) -> Callable[[int, Any, Any], Any]:
    """One arbitrary deterministic policy of a case."""
    rng = random.Random(case.shape.seed)
    table = {
        place: rng.choice(reference.choices(case.model, *place[1:]))
        for place in reference.decisions(case.model)
    }
    return lambda h, x, y: table[h, x, y]


@both_engines
@given(case=cases())
def test_the_value_of_a_plan_is_the_optimum(large: bool, case: Case) -> None:
    expected = reference.optimal(case.model, case.law).value
    assert pkd.plan(pkd.compile(case.model, large=large), case.law).value == pytest.approx(
        expected, rel=0, abs=1e-10 * case.scale
    )


@both_engines
@given(case=cases())
def test_every_action_value_of_a_plan_is_exact(large: bool, case: Case) -> None:
    expected = reference.optimal(case.model, case.law)
    plan = pkd.plan(pkd.compile(case.model, large=large), case.law)
    for h, x, y in reference.decisions(case.model):
        values = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
        assert plan.values(h, x, y) == pytest.approx(values, rel=0, abs=1e-10 * case.scale)


@both_engines
@given(case=cases())
def test_the_planned_action_attains_the_maximum(large: bool, case: Case) -> None:
    expected = reference.optimal(case.model, case.law)
    plan = pkd.plan(pkd.compile(case.model, large=large), case.law)
    for h, x, y in reference.decisions(case.model):
        assert expected.action(h, x, y, plan.action(h, x, y)) == pytest.approx(
            expected.state(h, x, y), rel=0, abs=1e-10 * case.scale
        )


@given(case=cases(horizon=2, n_x=2, n_y=2))
def test_no_deterministic_policy_is_better_than_the_plan(case: Case) -> None:
    assume(
        math.prod(len(case.model.actions(x, y)) for _, x, y in reference.decisions(case.model))
        <= 256
    )
    assert pkd.plan(case.model, case.law).value == pytest.approx(
        reference.brute_force(case.model, case.law), rel=0, abs=1e-10 * case.scale
    )


@both_engines
@given(case=cases())
def test_evaluate_agrees_with_the_recursion(large: bool, case: Case) -> None:
    policy = any_policy(case)
    expected = reference.evaluation(case.model, case.law, policy).value
    assert pkd.evaluate(pkd.compile(case.model, large=large), case.law, policy) == pytest.approx(
        expected, rel=0, abs=1e-10 * case.scale
    )


@given(case=cases(horizon=2))
def test_evaluate_is_the_sum_over_all_trajectories(case: Case) -> None:
    policy = any_policy(case)
    expected = reference.expected_return(case.model, case.law, policy)
    assert pkd.evaluate(case.model, case.law, policy) == pytest.approx(
        expected, rel=0, abs=1e-10 * case.scale
    )


@both_engines
@given(case=cases())
def test_a_plan_followed_as_a_policy_returns_its_value(large: bool, case: Case) -> None:
    plan = pkd.plan(pkd.compile(case.model, large=large), case.law)
    followed = reference.evaluation(case.model, case.law, plan.action).value
    assert followed == pytest.approx(plan.value, rel=0, abs=1e-10 * case.scale)
    assert pkd.evaluate(case.model, case.law, plan) == pytest.approx(
        plan.value, rel=0, abs=1e-10 * case.scale
    )


@given(case=cases())
def test_a_law_may_be_a_function(case: Case) -> None:
    assert pkd.plan(case.model, case.law.__getitem__).value == pkd.plan(case.model, case.law).value


@given(case=cases())
def test_a_flattened_model_has_the_same_optimum(case: Case) -> None:
    flat = pkd.flatten(case.model, case.law)
    expected = reference.optimal(case.model, case.law).value
    assert reference.optimal(flat.model(), flat.law()).value == pytest.approx(
        expected, rel=0, abs=1e-10 * case.scale
    )


class Walk(pkd.PartiallyKnownMDP):
    """One sure path of named places, to see when what is paid: y is the place, x is None."""

    def __init__(
        self,
        horizon: int,
        kinds: dict[str, Any],
        moves: dict[str, str],
        last: dict[str, str],
        pay: dict[str, float],
    ) -> None:
        self.horizon, self.kinds, self.moves, self.last, self.pay = horizon, kinds, moves, last, pay

    def start(self) -> Any:
        return None, "start"

    def actions(self, x: Any, y: Any) -> Any:
        return self.kinds.get(y, ["go"])

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, self.moves[y], pkd.sure(None))]

    def last_step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, self.last.get(y, self.moves.get(y)), pkd.sure(None))]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.pay.get(y, 0.0)

    def final(self, x: Any, y: Any) -> float:
        return self.pay.get(f"final {y}", 0.0)


def test_an_intermediate_state_takes_no_time() -> None:
    walk = Walk(
        2,
        {"between": pkd.CHANCE},
        {"start": "between", "between": "start"},
        {},
        {"start": 1.0, "between": 10.0},
    )
    assert pkd.plan(walk, {}).value == 1 + 10 + 1 + 10


def test_the_settlement_moves_by_last_step() -> None:
    walk = Walk(
        2,
        {"late": pkd.CHANCE},
        {"start": "start", "late": "never"},
        {"start": "late", "late": "stop"},
        {"late": 5.0, "final stop": 2.0},
    )
    assert pkd.plan(walk, {}).value == 5 + 2


def test_a_chance_state_before_the_last_action_moves_by_step() -> None:
    walk = Walk(
        1,
        {"start": pkd.CHANCE},
        {"start": "choice", "choice": "stop"},
        {"start": "never"},
        {"choice": 3.0},
    )
    assert pkd.plan(walk, {}).value == 3


def test_end_stops_the_episode_and_pays_final_once() -> None:
    walk = Walk(
        9,
        {"over": pkd.END},
        {"start": "over"},
        {},
        {"start": 1.0, "over": 100.0, "final over": 7.0, "final start": 50.0},
    )
    assert pkd.plan(walk, {}).value == 1 + 7


def test_an_episode_may_be_over_before_it_begins() -> None:
    assert pkd.plan(Walk(3, {"start": pkd.END}, {}, {}, {"final start": -4.0}), {}).value == -4


def test_ties_go_to_the_first_action() -> None:
    order = ["late", "early", "middle"]
    walk = Walk(2, {"start": order}, {"start": "start"}, {}, {"start": 1.0})
    plan = pkd.plan(walk, {})
    assert [plan.action(h, None, "start") for h in (1, 2)] == ["late", "late"]


class Gambler(pkd.NoiseMDP):
    """Stake part of the capital on a coin until it is 0 or 100."""

    def __init__(self, capital: int, tosses: int) -> None:
        self.capital, self.horizon = capital, tosses

    def initial(self) -> int:
        return self.capital

    def choices(self, s: int) -> Any:
        return range(1, min(s, 100 - s) + 1) if 0 < s < 100 else pkd.END

    def noise(self, s: int, a: int) -> str:
        return "coin"

    def outcomes(self, z: Any) -> tuple[int, int]:
        return (-1, 1)

    def land(self, s: int, a: int, w: int) -> tuple[float, int]:
        return 0.0, s + w * a

    def ending(self, s: int) -> float:
        return float(s == 100)


@pytest.mark.parametrize(("capital", "chance"), [(25, 0.16), (50, 0.4), (75, 0.64)])
@both_engines
def test_the_gambler_of_sutton_and_barto(large: bool, capital: int, chance: float) -> None:
    """From these capitals bold play is optimal and needs two tosses, so a horizon of 3 suffices."""
    model = pkd.compile(Gambler(capital, tosses=3), large=large)
    assert pkd.plan(model, {"coin": {1: 0.4, -1: 0.6}}).value == pytest.approx(chance, abs=1e-12)


class Blocks(pkd.PartiallyKnownMDP):
    """y on a line cut into blocks of which many move alike and are merged."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.horizon, self.length = rng.randint(2, 5), rng.choice([1, 2, 3])
        self.count = self.length * rng.choice([4, 6, 8, 10])
        self.first = rng.randrange(self.count)
        patterns = [
            [
                (
                    rng.choice([0.0, 0.5, 1.0]),
                    rng.choice([0, 1, 1, 2]),
                    rng.randrange(self.count),
                    rng.random() < 0.6,
                )
                for _ in range(3)
            ]
            for _ in range(rng.choice([2, 3]))
        ]
        self.blocks = [
            (rng.choice(patterns), rng.random() < 0.3) for _ in range(self.count // self.length)
        ]
        self.blocks[-1] = (self.blocks[-1][0], False)  # a CHANCE block leads to later ones

    def start(self) -> Any:
        return None, self.first

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if self.blocks[y // self.length][1] else range(3)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.blocks[y // self.length][0][a or 0][0]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        block = y // self.length
        moves, chance = self.blocks[block]
        _, stride, target, whole = moves[a or 0]
        target += stride * (y if whole else y - block * self.length)
        target = (
            min(self.count - 1, max((block + 1) * self.length, target))
            if chance
            else target % self.count
        )
        return [(1.0, target, pkd.sure(None))]


RARE = (
    1190,
    3102,
    3884,
    5253,
    1003338,
    1003895,
    1004721,
    1007105,
)  # a copy lives on in layers in which its original does not


@pytest.mark.parametrize("seed", [*range(100), *RARE])
def test_an_action_on_merged_columns_attains_the_value_of_its_state(seed: int) -> None:
    model = Blocks(seed)
    flat, runs = (pkd.plan(pkd.compile(model, large=large), {}) for large in (False, True))
    assert runs.value == pytest.approx(flat.value, abs=1e-12)
    for h in range(1, model.horizon + 1):
        for x, y in flat.states(h):
            q = flat.values(h, x, y)
            assert q[runs.action(h, x, y)] == pytest.approx(max(q.values()), abs=1e-12)


@pytest.mark.parametrize("large", [False, True])
@given(case=cases(chance=st.sampled_from([0.5, 0.8])))
def test_the_value_of_a_chance_state_is_that_of_the_plan(large: bool, case: Case) -> None:
    """Asked in every CHANCE state of the first layer; decisions of the same layer follow it."""
    model, law = case.model, case.law
    plan = pkd.plan(pkd.compile(model, large=large), law)
    for p, x, y in reference.starts(model):
        if p > 0 and model.actions(x, y) is pkd.CHANCE:
            from_there = pkd.plan(attrs.evolve(model, first={(x, y): 1.0}), law).value
            assert plan.values(1, x, y) == {None: pytest.approx(from_there, rel=1e-10, abs=1e-10)}
