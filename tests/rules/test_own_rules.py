"""Rules of a user's own: in Python, as a subclass, and in files that are read without them."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings

import pkd
from pkd.cli import main
from pkd.optimism import Facts, Pairs
from pkd.rules import from_config
from tests.planning.test_optimistic_plan import Paid
from tests.queue_strategies import QueueCase, queue_cases
from tests.rules.test_optimism import TwoArms
from tests.strategies import Case, cases

LAW = {"arm": {0: 0.2, 1: 0.8}}
FAR = 1e200  # above every cap


@attrs.frozen
class Bernstein(pkd.PythonRule):
    """`pkd.MVP` with the log factor 1, written in Python."""

    c1: float = 0.5
    c2: float = 0.25

    def values(self, pairs: Pairs) -> Any:
        mean = (pairs.P * pairs.V).sum(axis=1)
        variance = (pairs.P * (pairs.V - mean[:, None]) ** 2).sum(axis=1)
        bonus = self.c1 * np.sqrt(variance / pairs.N) + self.c2 * pairs.width / pairs.N
        return np.where(max(1, self.c2) < pairs.N, mean + bonus, FAR)


class Growing(pkd.MVP):
    """MVP whose logarithm grows with the episode."""

    def log_factor_at(self, k: int) -> float:
        return math.log(1 + k)


class Plain(pkd.PythonRule):
    """Not an attrs class, with an option that no file can hold."""

    def __init__(self, c: float = 1.0, table: Any = None) -> None:
        self.c, self.table = c, table

    def values(self, pairs: Pairs) -> Any:
        return (pairs.P * pairs.V).sum(axis=1) + self.c * pairs.width / np.sqrt(pairs.N)


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@settings(max_examples=30)
@given(case=cases(unknown_rewards=False))
def test_a_rule_in_numpy_gives_the_plans_of_the_compiled_one(large: bool, case: Case) -> None:
    compiled = pkd.compile(case.model, large=large)
    one, other = (
        pkd.optimistic_plan(compiled, case.counts, episodes=5, optimism=rule)
        for rule in (Bernstein(), pkd.MVP.practical())
    )
    slack = 1e-10 * case.scale
    assert one.value == pytest.approx(other.value, rel=0, abs=slack)
    for h in range(1, case.model.horizon + 1):
        for x, y in one.states(h):
            values = other.values(h, x, y)
            assert one.values(h, x, y) == pytest.approx(values, rel=0, abs=slack)
            assert values[one.action(h, x, y)] == pytest.approx(max(values.values()), abs=slack)


@settings(max_examples=15)
@given(case=queue_cases(unknown_rewards=False))
def test_a_rule_in_numpy_plans_a_model_with_queues_as_stripes(case: QueueCase) -> None:
    large = pkd.compile(case.model, large=True)
    plan = pkd.optimistic_plan(large, case.counts, episodes=5, optimism=Bernstein())
    expected = pkd.optimistic_plan(
        large, case.counts, episodes=5, optimism=pkd.MVP.practical()
    ).value
    assert plan.value == pytest.approx(expected, rel=0, abs=1e-9 * case.scale)


def test_an_unknown_reward_is_asked_for_as_a_coin() -> None:
    """Rewards in [-10, 10] with the mean 4 after 25 payments: 4 + 1 * 20 / 5, at most 10."""
    counts = {"pay": {-10.0: 7.5, 10.0: 17.5}, "arm": {0: 25}}
    for c, expected in ((1.0, 8.0), (3.0, 10.0)):
        plan = pkd.optimistic_plan(Paid((0.0,)), counts, episodes=5, optimism=Plain(c))
        assert plan.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("replan", ["every", "doubling"])
def test_a_rule_in_numpy_is_told_the_episode(replan: Any) -> None:
    told: set[int] = set()

    class Curious(pkd.PythonRule):
        def values(self, pairs: Pairs) -> Any:
            told.add(pairs.k)
            return np.full(len(pairs.N), FAR)

    run = pkd.learn(TwoArms(), LAW, 9, optimism=Curious(), replan=replan)
    assert told == {int(k) + 1 for k in run.plans[1:]}


def test_log_factors_may_depend_on_the_episode() -> None:
    """Each plan is that of MVP with the logarithm of its episode and the counts before it."""
    rule = Growing(c1=0.5, c2=0.25)
    run = pkd.learn(TwoArms(), LAW, 12, optimism=rule, replan="every")
    learner = pkd.OptimisticLearner(TwoArms(), optimism=rule, replan="every")
    for k in range(1, 13):
        if k in (1, 2, 5, 12):
            before = pkd.learn(TwoArms(), LAW, k - 1, optimism=rule, replan="every") if k > 1 else 0
            counts = before.counts if before else {}
            fixed = pkd.MVP(c1=0.5, c2=0.25, log_factor=math.log(1 + k))
            plan = pkd.optimistic_plan(TwoArms(), counts, episodes=1, optimism=fixed)
            assert run.upper_values[k - 1] == plan.value
    assert learner.upper_value == run.upper_values[0]


def test_a_rule_that_says_no_number_is_refused() -> None:
    class Wrong(pkd.PythonRule):
        def values(self, pairs: Pairs) -> Any:
            n = pairs.N[0]
            return pairs.N * math.nan if n > 2 else pairs.V if n > 1 else "many"

    for n, said in (
        (9, r"is nan for P=\[1.0, 0.0\], .*; expected a finite number"),
        (2, r"of shape \(1, 2\); expected an array of 1 finite numbers"),
        (1, "is 'many'; expected an array"),
    ):
        with pytest.raises(pkd.ModelError, match=said):
            pkd.optimistic_plan(TwoArms(), {"arm": {0: n}}, episodes=5, optimism=Wrong())


class Told(pkd.PythonRule):
    """A radius for each feature, and none for rewards."""

    def prepare(self, facts: Facts) -> Any:
        return 1 / np.sqrt(1 + facts.N)

    def values(self, pairs: Pairs) -> Any:
        return (pairs.P * pairs.V).sum(axis=1) + pairs.told[pairs.row]


def test_a_rule_that_reads_told_must_value_unknown_rewards_itself() -> None:
    with pytest.raises(pkd.ModelError, match=r"write Told.means\(facts\), too"):
        pkd.optimistic_plan(Paid((0.0,)), {"pay": {0.5: 3}}, episodes=5, optimism=Told())
    pkd.optimistic_plan(TwoArms(), {"arm": {0: 9}}, episodes=5, optimism=Told())  # has none


def test_a_rule_that_reads_the_number_of_episodes_must_say_that_it_needs_it() -> None:
    class Silent(pkd.PythonRule):
        def prepare(self, facts: Facts) -> Any:
            return np.full(len(facts.N), math.log(facts.episodes))

        def values(self, pairs: Pairs) -> Any:
            return (pairs.P * pairs.V).sum(axis=1) + pairs.told[pairs.row] / pairs.N

    class Open(Silent):
        needs_episodes = True

    counts = {"arm": {0: 9}}
    with pytest.raises(pkd.ModelError, match="write needs_episodes = True"):
        pkd.optimistic_plan(TwoArms(), counts, episodes=5, optimism=Silent())
    plan = pkd.optimistic_plan(TwoArms(0.0), counts, episodes=5, optimism=Open())
    assert plan.values(1, 0, "choice")["risky"] == pytest.approx(math.log(5) / 9)
    with pytest.raises(pkd.ModelError, match="give episodes"):
        pkd.OptimisticLearner(TwoArms(), optimism=Open())


def test_a_rule_without_a_value_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match="does not define values"):
        pkd.optimistic_plan(TwoArms(), {"arm": {0: 9}}, episodes=5, optimism=pkd.PythonRule())


@pytest.mark.parametrize("rule", [Growing(c1=1.0), Bernstein(c2=0.5), Plain(2.0)])
def test_a_run_with_an_own_rule_is_saved_loaded_and_printed(rule: Any, tmp_path: Path) -> None:
    run = pkd.learn(TwoArms(), LAW, 50, optimism=rule)
    run.save(tmp_path / "run.npz")
    again = pkd.Run.load(tmp_path / "run.npz", TwoArms())
    assert again.label == rule.label
    assert rule.label in repr(again)
    assert run.differences(again) == []
    made = from_config(dict(again.config["optimism"]))
    assert type(made) is type(rule)
    assert made.to_config() == rule.to_config()
    assert run.policy is not None
    assert again.policy is not None
    assert again.policy.values(1, 0, "choice") == run.policy.values(1, 0, "choice")


def test_a_learner_with_an_own_rule_is_saved_and_goes_on(tmp_path: Path) -> None:
    learner = pkd.OptimisticLearner(TwoArms(), optimism=Bernstein())
    learner.observe([pkd.Transition(0, "choice", learner.act(1, 0, "choice"), 1, "paid")])
    learner.save(tmp_path / "learner.npz")
    again = pkd.OptimisticLearner.load(tmp_path / "learner.npz", TwoArms())
    assert again.counts == learner.counts
    assert again.upper_value == learner.upper_value


MODULE = """
import pkd

class Mine(pkd.MVP):
    pass

class Slow(pkd.PythonRule):
    def values(self, pairs):
        return (pairs.P * pairs.V).sum(axis=1) + pairs.width / pairs.N
"""


@pytest.mark.parametrize("name", ["Mine", "Slow"])
def test_a_file_without_its_rule_still_loads_and_prints(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_rules_for_tests.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    rule = getattr(importlib.import_module("own_rules_for_tests"), name)()
    run = pkd.learn(TwoArms(), LAW, 50, optimism=rule)
    run.save(tmp_path / "run.npz")
    monkeypatch.undo()
    monkeypatch.delitem(sys.modules, "own_rules_for_tests")
    (tmp_path / "own_rules_for_tests.py").unlink()
    importlib.invalidate_caches()
    again = pkd.Run.load(tmp_path / "run.npz", TwoArms())
    assert again.label == rule.label
    assert rule.label in repr(again)
    assert again.guarantee == "no guarantee"
    assert again.policy is not None
    assert run.policy is not None
    assert again.policy.action(1, 0, "choice") == run.policy.action(1, 0, "choice")
    with pytest.raises(pkd.ModelError, match="cannot be imported"):
        again.policy.values(1, 0, "choice")
    assert main(["report", str(tmp_path / "run.npz"), "--out", str(tmp_path / "r.html")]) == 0
    assert name in (tmp_path / "r.html").read_text()


def test_an_option_that_no_file_can_hold_leaves_the_label(tmp_path: Path) -> None:
    rule = Plain(table=[1, 2])
    pkd.learn(TwoArms(), LAW, 10, optimism=rule).save(tmp_path / "run.npz")
    again = pkd.Run.load(tmp_path / "run.npz")
    assert again.label == rule.label
    assert not isinstance(from_config(dict(again.config["optimism"])), Plain)


def test_a_file_names_only_rules(tmp_path: Path) -> None:
    """What is not an optimism rule is not called, whatever a file says."""
    marker = tmp_path / "called"
    arguments = {"path": str(marker)}
    config = {"rule": "os:mkdir", "label": "x", "arguments": arguments, "complete": True}
    assert from_config(config).label == "x, no guarantee"
    assert not marker.exists()


def test_a_subclass_does_not_inherit_a_guarantee() -> None:
    class Mine(pkd.MVP):
        pass

    class Mild(pkd.Certified):
        pass

    for rule in (Mine(), Mild(), type("Own", (pkd.Hoeffding,), {})()):
        assert rule.guarantee == "no guarantee"
        assert rule.label.startswith(type(rule).__name__)
        assert rule.label.endswith("no guarantee")


def test_own_rules_are_compared_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = "tests.rules.test_own_rules:Bernstein:c1=1,c2=1,mvp:c1=1,c2=1,log_factor=1,greedy"
    command = ["compare", "two_state_chain", "--rules", words, "--episodes", "20", "--seeds", "1"]
    assert main(command) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith(("Bernstein", "MVP", "Greedy"))]
    assert len(rows) == 3
