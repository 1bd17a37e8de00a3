"""Policies leave the program: CSV and JSON hold every row, and act like the plan."""

from __future__ import annotations

import csv
import enum
import json
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd import ModelError, PolicyTable
from pkd_delay.episodes import simulate
from pkd_delay.models.tables import two_state_chain
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
    plan.to_csv(tmp_path / "policy.csv", values=True, every_state=True)
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
    assert len(rows) == sum(1 for _ in plan.rows())


def test_an_action_that_is_not_on_offer_has_no_value(tmp_path: Path) -> None:
    late = attrs.evolve(Memory(Mood.WILD, pkd.Queue((0, 0))))
    robot = Robot()
    robot.start = lambda: (Spot(0, 0), late)  # type: ignore[method-assign]
    pkd.plan(robot, LAW).to_csv(tmp_path / "policy.csv", values=True)
    assert read_rows(tmp_path / "policy.csv")[0]["Q((1, 'fast'))"] == ""


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_file_acts_like_the_plan(form: str, tmp_path: Path) -> None:
    plan, path = pkd.plan(ROBOT), tmp_path / f"policy.{form}"
    getattr(plan, f"to_{form}")(path, every_state=True)
    policy = PolicyTable.read(path, ROBOT)
    assert all(policy.action(row.step, *row.state.values()) == row.action for row in plan.rows())
    assert pkd.evaluate(ROBOT, policy) == pytest.approx(plan.value, abs=1e-12)


@pytest.mark.parametrize("form", ["csv", "json"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_a_file_of_any_model_acts_like_the_plan(form: str, case: Any, tmp_path: Path) -> None:
    plan, path = pkd.plan(case.model, case.law), tmp_path / f"policy.{form}"
    for values in (False, True):
        getattr(plan, f"to_{form}")(path, values=values, every_state=True)
        policy = PolicyTable.read(path, case.model)
        assert all(policy(row.step, *row.state.values()) == row.action for row in plan.rows())
    short = getattr(plan, f"to_{form}")(path)
    policy, reached = PolicyTable.read(path, case.model), list(plan.list_rows())
    assert short <= len(reached)
    assert all(policy(row.step, *row.state.values()) == row.action for row in reached)
    assert pkd.evaluate(case.model, case.law, policy) == pytest.approx(plan.value, abs=1e-9)


def test_json_needs_no_model_for_plain_values(tmp_path: Path) -> None:
    chain = two_state_chain(horizon=4)
    plan = pkd.plan(chain)
    plan.to_json(tmp_path / "policy.json", every_state=True)
    policy = PolicyTable.read(tmp_path / "policy.json")
    assert all(policy(row.step, *row.state.values()) == row.action for row in plan.rows())


def test_json_keeps_types(tmp_path: Path) -> None:
    pkd.plan(ROBOT).to_json(tmp_path / "policy.json")
    read = json.loads((tmp_path / "policy.json").read_text())
    assert read["columns"] == ["step", "until", "x", "y", "action"]
    row = dict(zip(read["columns"], read["rows"][0], strict=True))
    assert row["x"] == {"record": "Spot", "fields": {"row": 0, "column": 0}}
    assert row["y"]["fields"]["orders"] == {"queue": [0, 0]}
    assert row["action"] == {"tuple": [1, "fast"]}
    assert read["value_is"] == "the optimum under the law that was given"


def load_without_this_software(path: Path) -> Any:
    """What a reader in any other language does with a JSON file of late states."""
    read = json.loads(path.read_text())
    runs: dict[str, list[tuple[int, int, Any]]] = {}
    for step, until, state, queue, waited, action in read["rows"]:
        key = json.dumps([state, queue["tuple"], waited])
        runs.setdefault(key, []).append((step, until, action))

    def act(h: int, state: Any, queue: Any, waited: int) -> Any:
        found = runs[json.dumps([state, list(queue), waited])]
        return next(action for step, until, action in found if step <= h <= until)

    return act


def test_ten_lines_without_this_software_act_like_the_plan_for_10000_steps(tmp_path: Path) -> None:
    late = pkd_delay.DelayedMDP(two_state_chain(horizon=50), {-1: 0.3, 0: 0.4, 1: 0.3}, 3)
    plan = pkd_delay.plan(late)
    plan.to_json(tmp_path / "policy.json")
    act, steps = load_without_this_software(tmp_path / "policy.json"), 0

    def compare(h: int, state: Any, queue: Any, waited: int) -> Any:
        nonlocal steps
        steps += 1
        action = act(h, state, queue, waited)
        assert action == plan.action(h, state, queue, waited)
        return action

    simulate(late, compare, 200)
    assert steps == 10_000


class Stay(pkd.PartiallyKnownMDP):
    """A toss leads to 0 or 1; to stay pays 1 and surely leads back."""

    horizon = 100

    def start(self) -> Any:
        return 0, None

    def actions(self, x: Any, y: Any) -> Any:
        return ["toss", "stay"]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, None, "coin" if a == "toss" else pkd.sure(x))]

    def outcomes(self, z: Any) -> Any:
        return [0, 1]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(a == "stay")


def test_a_file_has_the_states_that_the_policy_reaches_and_one_line_for_alike_steps(
    tmp_path: Path,
) -> None:
    """Who never tosses stays where he is, for 100 steps; 1 could be reached from the second on."""
    plan = pkd.plan(Stay(), {"coin": {0: 0.5, 1: 0.5}})
    path = tmp_path / "policy.json"
    assert plan.to_json(path) == 1
    assert json.loads(path.read_text())["rows"] == [[1, 100, 0, None, "stay"]]
    assert plan.to_json(path, every_state=True) == 2
    assert plan.to_csv(tmp_path / "policy.csv", values=True) == 100
    assert plan.to_csv(tmp_path / "policy.csv", values=True, every_state=True) == 199


def test_a_file_that_lacks_a_state_that_its_policy_reaches_is_refused(tmp_path: Path) -> None:
    coin = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0], [1]], 3, start=0)
    pkd.plan(coin).to_csv(tmp_path / "policy.csv")
    lines = (tmp_path / "policy.csv").read_text().splitlines()
    (tmp_path / "policy.csv").write_text("\n".join(lines[:2]) + "\n")
    policy = PolicyTable.read(tmp_path / "policy.csv", coin)
    with pytest.raises(ModelError, match=r"the policy has no row for step 2 in \(x=1"):
        pkd.evaluate(coin, policy)


def test_a_delayed_policy_is_read_without_this_package(tmp_path: Path) -> None:
    plan = pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4), 2))
    plan.to_json(tmp_path / "policy.json", every_state=True)
    policy = PolicyTable.read(tmp_path / "policy.json")
    for h, state, action, _ in plan.rows():
        assert policy.action(h, *state.values()) == action


def test_a_learned_policy_leaves_like_a_plan(tmp_path: Path) -> None:
    run = pkd.learn(two_state_chain(horizon=4), 30)
    assert run.policy is not None
    run.policy.to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    assert pkd.evaluate(two_state_chain(horizon=4), policy) == pytest.approx(run.policy_values[-1])


class Twins(pkd.PartiallyKnownMDP):
    """x, y and the actions are any values; in the k-th (x, y) only the k-th action pays."""

    horizon = 3

    def __init__(self, xs: Any, ys: Any, names: Any) -> None:
        self.xs, self.ys, self.names = tuple(xs), tuple(ys), tuple(names)

    def start(self) -> Any:
        share = 1 / (len(self.xs) * len(self.ys))
        return {(x, y): share for x in self.xs for y in self.ys}

    def actions(self, x: Any, y: Any) -> Any:
        return self.names

    def reward(self, x: Any, y: Any, a: Any) -> float:
        if y not in self.ys:  # the walk asks for other queues of these entries, too
            return 0.0
        place = self.xs.index(x) * len(self.ys) + self.ys.index(y)
        return float(self.names.index(a) == place % len(self.names))

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, y, "z")]

    def outcomes(self, z: Any) -> Any:
        return self.xs


def assert_read_back(model: Any, path: Path, never: Any = ()) -> None:
    """The file takes the action that pays in each state, and has no row for other values."""
    law = {"z": dict.fromkeys(model.xs, 1 / len(model.xs))}
    plan = pkd.plan(model, law)
    for form in ("csv", "json"):
        getattr(plan, f"to_{form}")(path.with_suffix(f".{form}"))
        policy = PolicyTable.read(path.with_suffix(f".{form}"), model)
        for i, x in enumerate(model.xs):
            for j, y in enumerate(model.ys):
                place = (i * len(model.ys) + j) % len(model.names)
                for h in (1, 2, 3):
                    taken = policy(h, x, y)
                    assert taken == model.names[place]
                    assert type(taken) is type(model.names[place])
        for x in never:
            with pytest.raises(ModelError, match="has no row"):
                policy(1, x, model.ys[0])


PAIRS = [
    (1, "1"), (None, "None"), ((1, 2), ("1", 2)), (True, "True"), (1.0, "1.0"), ("", None),
    ("nan", "-"), (b"a", "b'a'"), ((), "()"), (Mood.CALM, "Mood.CALM"),
    (pkd.Queue((1, 2)), "1 2"), (pkd.Queue(("a b",)), pkd.Queue(("a", "b"))), (pkd.Queue(), "-"),
    ((1, None), (1,)), (("a", ("1", 2)), ("a", (1, 2))), ("=1", "'=1"), ("a\r\nb", "a\nb"),
    (frozenset({1}), "frozenset({1})"), ((1, "2"), (1, 2)), (-1, "-1"), ("1 ", 1), ("", " "),
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_values_that_share_their_text_are_read_back_apart(pair: Any, tmp_path: Path) -> None:
    assert_read_back(Twins(pair, ["only"], ["a", "b"]), tmp_path / "x")
    assert_read_back(Twins(["only"], pair, ["a", "b"]), tmp_path / "y")
    if None not in pair:  # None stands for no action
        assert_read_back(Twins([0, 1], ["only"], pair), tmp_path / "action")


@pytest.mark.parametrize(
    ("there", "other"),
    [(1, "1"), ("1", 1), (None, "None"), (None, ""), ((1, 2), ("1", 2)), ((1, 2), (1, 2, 3))],
)
def test_a_value_that_is_not_in_the_file_is_not_taken_for_one_that_is(
    there: Any, other: Any, tmp_path: Path
) -> None:
    assert_read_back(Twins([there], ["only"], ["a", "b"]), tmp_path / "x", [other])


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.sampled_from([0.5, -1.5, 2.0]),
    st.sampled_from(["", "1", "-1", "None", "True", "0.5", "-", "a", "a b", "()", "=1", "(1, 2)"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple) | st.lists(inner, max_size=3).map(pkd.Queue)
    ),
    max_leaves=5,
)
LISTS = st.lists(VALUES, min_size=1, max_size=4, unique=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(xs=LISTS, ys=LISTS, names=LISTS.filter(lambda names: None not in names))
def test_any_values_are_read_back(xs: Any, ys: Any, names: Any, tmp_path: Path) -> None:
    assert_read_back(Twins(xs, ys, names), tmp_path / "policy")


def test_a_file_with_two_actions_for_one_state_is_refused(tmp_path: Path) -> None:
    model = Twins([0, 1], ["only"], ["a", "b"])
    (tmp_path / "old.csv").write_text("step,x,y,action,value\n1,0,only,a,1\n1,0,only,b,1\n")
    with pytest.raises(ModelError, match=r"step 1 in \('0', 'only'\) has two actions"):
        PolicyTable.read(tmp_path / "old.csv", model)


def test_states_of_a_delayed_policy_with_one_label_have_values_in_its_file(tmp_path: Path) -> None:
    chances = [[[0.5, 0.5], [1, 0]], [[0.5, 0.5], [0, 1]]]
    twins = pkd.TabularMDP(chances, [[0, 0], [1, 1]], 3, state_names=["same", "same"])
    pkd_delay.plan(pkd_delay.DelayedMDP.constant(twins, 1)).to_csv(tmp_path / "policy.csv")
    assert {row["state (typed)"] for row in read_rows(tmp_path / "policy.csv")} == {"0", "1"}


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
    assert {row["x (typed)"] for row in read_rows(tmp_path / "policy.csv")} == {"0", "1"}
    policy = PolicyTable.read(tmp_path / "policy.csv", twins)
    assert all(policy(row.step, *row.state.values()) == row.action for row in plan.rows())


def test_a_state_without_a_rule_is_named(tmp_path: Path) -> None:
    pkd.plan(two_state_chain(horizon=4)).to_json(tmp_path / "policy.json")
    policy = PolicyTable.read(tmp_path / "policy.json")
    with pytest.raises(ModelError, match=r"^the policy has no row for step 9 in \(x=0, y=None\)$"):
        policy.action(9, 0, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist"),
        (b"", "a CSV file has only words"),
        (b"{}", "expected a JSON object of the kind"),
        (b'{"kind": "pkd policy", "form": 1}', "form 2"),
        (b'{"kind": "pkd policy", "form": 2}', "'parts'"),
        (
            b'{"kind": "pkd policy", "form": 2, "parts": [], "columns": ["action"], "rows": [3]}',
            "not iterable",
        ),
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
