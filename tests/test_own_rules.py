"""Rules of a user's own: in Python, as a subclass, and in files that are read without them."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings

import pkd
from pkd.cli import main
from pkd.optimism import from_config
from tests.queue_strategies import QueueCase, queue_cases
from tests.strategies import Case, cases
from tests.test_optimism import TwoArms
from tests.test_optimistic_plan import Paid

LAW = {"arm": {0: 0.2, 1: 0.8}}
FAR = 1e200  # above every cap


@attrs.frozen
class Bernstein(pkd.PythonRule):
    """`pkd.MVP` with the log factor 1, written in Python."""

    c1: float = 0.5
    c2: float = 0.25

    def value(self, p_hat: Any, V: Any, N: float, k: int, width: float) -> float:
        if N <= 1 or self.c2 >= N:
            return FAR
        mean = p_hat @ V
        return float(mean + self.c1 * math.sqrt(p_hat @ (V - mean) ** 2 / N) + self.c2 * width / N)


class Growing(pkd.MVP):
    """MVP whose logarithm grows with the episode."""

    def log_factor_at(self, k: int) -> float:
        return math.log(1 + k)


class Plain(pkd.PythonRule):
    """Not an attrs class, with an option that no file can hold."""

    def __init__(self, c: float = 1.0, table: Any = None) -> None:
        self.c, self.table = c, table

    def value(self, p_hat: Any, V: Any, N: float, k: int, width: float) -> float:
        return float(p_hat @ V + self.c * width / math.sqrt(N))


@settings(max_examples=30)
@given(case=cases(unknown_rewards=False))
def test_a_rule_in_python_gives_the_plans_of_the_compiled_one(case: Case) -> None:
    compiled = pkd.compile(case.model, large=False)
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
@pytest.mark.filterwarnings("ignore:Bernstein is written in Python")
def test_a_large_model_is_planned_with_every_state_apart(case: QueueCase) -> None:
    large = pkd.compile(case.model, large=True)
    plan = pkd.optimistic_plan(large, case.counts, episodes=5, optimism=Bernstein())
    expected = pkd.optimistic_plan(
        large, case.counts, episodes=5, optimism=pkd.MVP.practical()
    ).value
    assert plan.value == pytest.approx(expected, rel=0, abs=1e-9 * case.scale)


def test_a_large_model_says_that_a_rule_in_python_is_slow() -> None:
    large = pkd.compile(TwoArms(), large=True)
    with pytest.warns(UserWarning, match="Bernstein is written in Python"):
        run = pkd.learn(large, LAW, 20, optimism=Bernstein())
    assert run.label == "Bernstein, c1=0.5, c2=0.25, no guarantee"


def test_an_unknown_reward_is_asked_for_as_a_coin() -> None:
    """Rewards in [-10, 10] with the mean 4 after 25 payments: 4 + 1 * 20 / 5, at most 10."""
    counts = {"pay": {-10.0: 7.5, 10.0: 17.5}, "arm": {0: 25}}
    for c, expected in ((1.0, 8.0), (3.0, 10.0)):
        plan = pkd.optimistic_plan(Paid((0.0,)), counts, episodes=5, optimism=Plain(c))
        assert plan.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("replan", ["every", "doubling"])
def test_a_rule_in_python_is_told_the_episode(replan: Any) -> None:
    told: set[int] = set()

    class Curious(pkd.PythonRule):
        def value(self, p_hat: Any, V: Any, N: float, k: int, width: float) -> float:
            told.add(k)
            return FAR

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
        def value(self, p_hat: Any, V: Any, N: float, k: int, width: float) -> Any:
            return math.nan if N > 2 else "many"

    with pytest.raises(pkd.ModelError, match="is nan; expected a finite number"):
        pkd.optimistic_plan(TwoArms(), {"arm": {0: 9}}, episodes=5, optimism=Wrong())
    with pytest.raises(pkd.ModelError, match="is 'many'; expected a finite number"):
        pkd.optimistic_plan(TwoArms(), {"arm": {0: 1}}, episodes=5, optimism=Wrong())


def test_a_rule_without_a_value_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match="does not define value"):
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
    def value(self, p_hat, V, N, k, width):
        return float(p_hat @ V + width / N)
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
    """What is no rule is not called, whatever a file says."""
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
    words = "tests.test_own_rules:Bernstein:c1=1,c2=1,mvp:c1=1,c2=1,log_factor=1,greedy"
    command = ["compare", "two_state_chain", "--rules", words, "--episodes", "20", "--seeds", "1"]
    assert main(command) == 0
    out = capsys.readouterr().out
    rows = [line for line in out.splitlines() if line.startswith(("Bernstein", "MVP", "Greedy"))]
    assert len(rows) == 3
