"""`step_many`: a walk that asks for many states at once finds the graph of the ordinary walk."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.explore import TooManyStatesError, explore
from pkd.explore.graph import Grown

MORNING, LAST_X = 4, 5


class Drawn(pkd.PartiallyKnownMDP):
    """A random model over x = 0..5 and y = 0..n-1, state by state, from arrays.

    x = 4 are decisions, x = 5 are ends, others are CHANCE states that lead to decisions, to ends,
    or to CHANCE states with a smaller y.
    """

    def __init__(self, seed: int, n: int, horizon: int) -> None:
        rng = np.random.default_rng(seed)
        self.horizon, self.grid, self.n = horizon, (6, n), n
        self.offered = rng.random((n, 3)) < 0.7
        self.offered[:, 1] = True
        self.pay = np.round(rng.normal(size=(6, n, 3)), 2)
        self.after = rng.integers(0, n, (n, 3, 2))
        self.chance = np.round(rng.random((n, 3)), 2)
        self.feature = rng.integers(0, 3, (n, 3))
        self.sure_x = np.where(rng.random((6, n)) < 0.2, LAST_X, MORNING)
        self.down = rng.random((6, n)) < 0.3
        self.first = int(rng.integers(n))

    def start(self) -> Any:
        return MORNING, self.first

    def actions(self, x: Any, y: Any) -> Any:
        if x == LAST_X:
            return pkd.END
        return [a for a in range(3) if self.offered[y, a]] if x == MORNING else pkd.CHANCE

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(self.pay[x, y, 0 if a is None else a])

    def final(self, x: Any, y: Any) -> float:
        return float(x + y)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        if x == MORNING:
            p, (one, other), z = self.chance[y, a], self.after[y, a], int(self.feature[y, a])
            other_z = z if one == other else 7
            return [(float(p), int(one), z), (float(1 - p), int(other), other_z)]
        if self.down[x, y] and y > 0:
            return [(1.0, int(y) - 1, 8)]
        return [(1.0, int(y), pkd.sure(int(self.sure_x[x, y])))]

    def outcomes(self, z: Any) -> Any:
        return [[0, 1, 2], [3, 1], [2], [], [], [], [], [MORNING, 0], [1, 0]][z]


class DrawnMany(Drawn):
    """The same model, for many states at once."""

    def step_many(self, x: Any, y: Any) -> Any:
        morning = x == MORNING
        for a in range(3):
            p, (one, other), z = self.chance[y, a], self.after[y, a].T, self.feature[y, a]
            other_z = np.where(one == other, z, 7)
            yield a, morning & self.offered[y, a], self.pay[x, y, a], [
                (p, one, z), (1 - p, other, other_z)
            ]  # fmt: skip
        down = self.down[x, y] & (y > 0)
        yield None, ~morning & (x != LAST_X), self.pay[x, y, 0], [
            (1.0 * down, y - down, 8), (1.0 * ~down, y, pkd.sure(self.sure_x[x, y]))
        ]  # fmt: skip


models = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 8))


@given(models)
@settings(max_examples=100, deadline=None)
def test_the_graph_is_that_of_the_ordinary_walk(drawn: tuple[int, int, int]) -> None:
    many, one = DrawnMany(*drawn), Drawn(*drawn)
    pkd.check_model(many)
    fast, slow = pkd.compile(many), pkd.compile(one)
    assert fast.fingerprint == slow.fingerprint
    assert list(fast.features) == list(slow.features)
    assert [dict(layer) for layer in fast.graph.members] == [dict(m) for m in slow.graph.members]
    for field in attrs.fields(type(slow.graph.flat)):
        mine, its = getattr(fast.graph.flat, field.name), getattr(slow.graph.flat, field.name)
        for a, b in zip(mine, its, strict=True) if isinstance(its, tuple) else [(mine, its)]:
            np.testing.assert_array_equal(a, b, err_msg=field.name)
    law = {z: {x: 1 / len(many.outcomes(z)) for x in many.outcomes(z)} for z in fast.features}
    plans = [pkd.plan(compiled, law) for compiled in (fast, slow)]
    assert plans[0].value == plans[1].value
    for h in range(1, one.horizon + 1):
        assert list(plans[0].states(h)) == list(plans[1].states(h))
        for x, y in plans[1].states(h):
            assert plans[0].action(h, x, y) == plans[1].action(h, x, y)
            assert plans[0].values(h, x, y) == plans[1].values(h, x, y)


def test_the_walk_asks_for_many_states_and_not_for_one() -> None:
    class Silent(DrawnMany):
        def actions(self, x: Any, y: Any) -> Any:
            raise AssertionError

        def reward(self, x: Any, y: Any, a: Any) -> float:
            raise AssertionError

        def step(self, x: Any, y: Any, a: Any) -> Any:
            raise AssertionError

    assert pkd.compile(Silent(1, 20, 6)).fingerprint == pkd.compile(Drawn(1, 20, 6)).fingerprint


def test_a_model_that_says_two_things_is_found() -> None:
    class Wrong(DrawnMany):
        what = ""

        def step_many(self, x: Any, y: Any) -> Any:
            for a, where, reward, branches in super().step_many(x, y):
                if self.what == "actions":
                    where = where & (a != 1)
                if self.what == "reward":
                    reward = reward + (a == 1)
                if self.what == "step" and a == 1:
                    branches = [(p, y_next, 1) for p, y_next, _ in branches]
                yield a, where, reward, branches

    pkd.check_model(Wrong(3, 20, 5))
    said = {
        "actions": "step_many gives .x=4, y=.* the actions .*; those of actions.. are",
        "reward": r"step_many pays .* where reward\(x=4",
        "step": r"step_many gives .* where step\(x=4",
    }
    for Wrong.what, words in said.items():
        with pytest.raises(pkd.ModelError, match=words):
            pkd.check_model(Wrong(3, 20, 5))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: setattr(m, "grid", None), "grid is None; a model with step_many has grid"),
        (lambda m: setattr(m, "grid", (6, 3)), r"0\.\.2"),
        (lambda m: setattr(m, "first", 99), r"y = 99; a model with this grid has 0\.\.19"),
        (lambda m: m.chance.__iadd__(2.0), "negative probability"),
        (lambda m: m.pay.__imul__(np.nan), "not a finite number"),
        (lambda m: m.after.__iadd__(1000), "leads to y' = "),
    ],
)
def test_a_bad_answer_is_one_clear_error(change: Any, words: str) -> None:
    model = DrawnMany(1, 20, 4)
    change(model)
    with pytest.raises(pkd.ModelError, match=words):
        explore(model)


def test_probabilities_that_miss_one_are_refused_or_normalised() -> None:
    class Off(Drawn):
        by = 1e-7

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(p * (1 + self.by), *rest) for p, *rest in super().step(x, y, a)]

    class OffMany(DrawnMany):
        def step_many(self, x: Any, y: Any) -> Any:
            for a, where, reward, branches in super().step_many(x, y):
                yield a, where, reward, [(p * (1 + Off.by), *rest) for p, *rest in branches]

    with pytest.raises(pkd.ModelError, match="not 1"):
        explore(OffMany(1, 20, 4))
    Off.by = 1e-10
    many, one = explore(OffMany(1, 20, 4)), explore(Off(1, 20, 4))
    assert [list(cells.p) for cells in many.cells] == [list(cells.p) for cells in one.cells]


def test_too_many_states_are_refused_where_the_ordinary_walk_refuses_them() -> None:
    found = []
    for model in (DrawnMany(1, 30, 8), Drawn(1, 30, 8)):
        with pytest.raises(TooManyStatesError) as caught:
            explore(model, max_states=7)
        found.append(str(caught.value))
    assert found[0].split("by step")[0] == found[1].split("by step")[0]
    assert "more than 7 states can be reached" in found[0]


def test_layers_that_only_grow_share_their_nodes() -> None:
    class Line(pkd.PartiallyKnownMDP):
        horizon = 40

        def start(self) -> Any:
            return 0, 0

        def actions(self, x: Any, y: Any) -> Any:
            return [0, 1]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return float(y)

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, y + a, "coin")]

        def outcomes(self, z: Any) -> Any:
            return [0, 1]

    graph = explore(Line())
    assert isinstance(graph.members[20], Grown)
    assert [len(layer) for layer in graph.members] == [1, *range(4, 82, 2)]
    assert graph.members[5].new == sorted(set(graph.members[5]) - set(graph.members[4]))
    assert np.bincount(graph.flat.first).tolist() == [1, 3, *[2] * 38]
    assert (graph.flat.last == 39).all()
