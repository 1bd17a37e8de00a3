"""Policies leave the program: CSV and JSON hold every rule, and act like the plan."""

from __future__ import annotations

import csv
import enum
import json
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

import pkd
import pkd_delay
from pkd import ModelError, PolicyTable
from pkd_delay.problems import two_state_chain
from tests.strategies import cases


class Spot(NamedTuple):
    row: int
    column: int


class Mood(enum.Enum):
    CALM = 1
    WILD = 2


@attrs.frozen
class Memory:
    mood: Mood
    orders: pkd.Queue


class Robot(pkd.PartiallyKnownMDP):
    """x is a named tuple, y an attrs class with an enum and a queue; actions are tuples."""

    horizon = 3

    def start(self) -> Any:
        return Spot(0, 0), Memory(Mood.CALM, pkd.Queue((0, 0)))

    def actions(self, x: Spot, y: Memory) -> Any:
        return [(0, "slow"), (1, "fast")] if y.mood is Mood.CALM else [(0, "slow")]

    def reward(self, x: Spot, y: Memory, a: Any) -> float:
        return x.row + 0.5 * a[0]

    def step(self, x: Spot, y: Memory, a: Any) -> Any:
        orders = y.orders.push(a[0])
        mood = Mood.WILD if orders.oldest else Mood.CALM
        return [(1.0, Memory(mood, orders.pop()), ("gust", a[0]))]

    def outcomes(self, z: Any) -> Any:
        return [Spot(0, 0), Spot(1, z[1])]


LAW = {("gust", 0): {Spot(0, 0): 0.5, Spot(1, 0): 0.5}, ("gust", 1): {Spot(1, 1): 1.0}}
ROBOT = (Robot(), LAW)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_file_has_one_column_for_each_part_of_the_state(tmp_path: Path) -> None:
    plan = pkd.plan(ROBOT)
    plan.to_csv(tmp_path / "policy.csv")
    rows = read_rows(tmp_path / "policy.csv")
    assert list(rows[0]) == [
        "step", "x.row", "x.column", "y.mood", "y.orders", "action", "value",
        "Q((0, 'slow'))", "Q((1, 'fast'))",
    ]  # fmt: skip
    assert rows[0] == {
        "step": "1", "x.row": "0", "x.column": "0", "y.mood": "Mood.CALM", "y.orders": "0 0",
        "action": "(1, 'fast')", "value": "3.5",
        "Q((0, 'slow'))": rows[0]["Q((0, 'slow'))"], "Q((1, 'fast'))": "3.5",
    }  # fmt: skip
    assert len(rows) == sum(1 for _ in plan.rules())


def test_an_action_that_is_not_on_offer_has_no_value(tmp_path: Path) -> None:
    late = attrs.evolve(Memory(Mood.WILD, pkd.Queue((0, 0))))
    robot = Robot()
    robot.start = lambda: (Spot(0, 0), late)  # type: ignore[method-assign]
    pkd.plan(robot, LAW).to_csv(tmp_path / "policy.csv")
    assert read_rows(tmp_path / "policy.csv")[0]["Q((1, 'fast'))"] == ""


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_acts_like_the_plan(form: str, tmp_path: Path) -> None:
    plan, path = pkd.plan(ROBOT), tmp_path / f"policy.{form}"
    getattr(plan, f"to_{form}")(path)
    policy = PolicyTable.read(path, ROBOT)
    assert all(policy.action(*rule[:3]) == rule.action for rule in plan.rules())
    assert pkd.evaluate(ROBOT, policy) == pytest.approx(plan.value, abs=1e-12)


@pytest.mark.parametrize("form", ["csv", "json"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_a_file_of_any_model_acts_like_the_plan(form: str, case: Any, tmp_path: Path) -> None:
    plan, path = pkd.plan(case.model, case.law), tmp_path / f"policy.{form}"
    getattr(plan, f"to_{form}")(path)
    policy = PolicyTable.read(path, case.model)
    assert [policy(*rule[:3]) for rule in plan.rules()] == [rule.action for rule in plan.rules()]


def test_json_needs_no_model_for_plain_values(tmp_path: Path) -> None:
    chain = two_state_chain(horizon=4)
    plan = pkd.plan(chain)
    plan.to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    assert [policy(*rule[:3]) for rule in plan.rules()] == [rule.action for rule in plan.rules()]


def test_json_keeps_types(tmp_path: Path) -> None:
    pkd.plan(ROBOT).to_json(tmp_path / "policy.json")
    read = json.loads((tmp_path / "policy.json").read_text())
    assert read["rules"][0]["x"] == {"record": "Spot", "fields": {"row": 0, "column": 0}}
    assert read["rules"][0]["y"]["fields"]["orders"] == {"queue": [0, 0]}
    assert read["rules"][0]["action"] == {"tuple": [1, "fast"]}
    assert read["value_is"] == "the optimum under the law that was given"


def test_ten_lines_without_this_software_read_a_policy(tmp_path: Path) -> None:
    chain = two_state_chain(horizon=4)
    plan = pkd.plan(chain)
    plan.to_json(tmp_path / "policy.json")
    plan.to_csv(tmp_path / "policy.csv")
    read = json.loads((tmp_path / "policy.json").read_text())
    typed = {(rule["step"], json.dumps(rule["x"])): rule["action"] for rule in read["rules"]}
    words = {
        (int(row["step"]), row["x"]): row["action"] for row in read_rows(tmp_path / "policy.csv")
    }
    for h, x, _, action, _ in plan.rules():
        assert typed[h, json.dumps(x)] == action
        model = plan.compiled.model
        assert words[h, model.x_label(x)] == model.action_label(action)


def test_a_delayed_policy_is_read_without_this_package(tmp_path: Path) -> None:
    plan = pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4), 2))
    plan.to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    for rule in plan.rules():
        assert policy.action(rule.step, rule.state, rule.queue, rule.waited) == rule.action


def test_a_learned_policy_leaves_like_a_plan(tmp_path: Path) -> None:
    run = pkd.learn(two_state_chain(horizon=4), 30)
    assert run.policy is not None
    run.policy.to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    assert pkd.evaluate(two_state_chain(horizon=4), policy) == pytest.approx(run.policy_values[-1])


def test_labels_that_are_alike_are_replaced_by_values(tmp_path: Path) -> None:
    twins = pkd.TabularMDP(
        [[[0.5, 0.5], [1, 0]], [[0.5, 0.5], [0, 1]]],
        [[0, 0], [1, 1]],
        3,
        start=[0.5, 0.5],
        state_names=["same", "same"],
    )
    plan = pkd.plan(twins)
    plan.to_csv(tmp_path / "policy.csv")
    assert {row["x"] for row in read_rows(tmp_path / "policy.csv")} == {"0", "1"}
    policy = PolicyTable.read(tmp_path / "policy.csv", twins)
    assert [policy(*rule[:3]) for rule in plan.rules()] == [rule.action for rule in plan.rules()]


def test_a_state_without_a_rule_is_named(tmp_path: Path) -> None:
    pkd.plan(two_state_chain(horizon=4)).to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    with pytest.raises(ModelError, match=r"^the policy has no rule for step 9 in \(x=0, y=None\)$"):
        policy.action(9, 0, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        (b"", "a CSV file has only words"),
        (b"{}", "expected a JSON object of the kind"),
        (b'{"kind": "pkd policy", "form": 1}', "'parts'"),
        (b'{"kind": "pkd policy", "form": 1, "parts": ["x"], "rules": [3]}', "not subscriptable"),
        (b"\xff\xfe{", "codec"),
    ],
)
def test_anything_else_is_refused(content: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelError) as error:
        PolicyTable.read(path)
    assert said in str(error.value)


def test_a_value_that_json_cannot_hold_is_named(tmp_path: Path) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "odd"

    odd = Odd()

    class Model(pkd.PartiallyKnownMDP):
        horizon = 1

        def start(self) -> Any:
            return odd, None

        def actions(self, x: Any, y: Any) -> Any:
            return ["go"]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return 1.0

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, None, pkd.sure(odd))]

    with pytest.raises(ModelError, match=r"cannot be written as JSON: odd is a Odd"):
        pkd.plan(Model(), {}).to_json(tmp_path / "policy.json")
    assert not (tmp_path / "policy.json").exists()
