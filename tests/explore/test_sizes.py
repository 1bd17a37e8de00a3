"""Sizes of a model, read from its graph, against the slow reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pkd
import pkd_delay
from pkd.explore import explore, sizes
from pkd.explore.sizes import is_declared_range_safe, measure, returns_within, sweep_returns
from pkd_delay.models.tables import two_state_chain
from tests import reference, strategies
from tests.kiosk import Kiosk, having


@given(strategies.cases())
def test_returns_to_go_are_those_of_the_reference(case: strategies.Case) -> None:
    graph, bounds = explore(case.model), reference.ranges(case.model)
    seen = set()
    for layer in sweep_returns(graph):
        settled = layer.t == graph.horizon
        side = graph.settled if settled else graph.layers
        for node in graph.ends if settled else graph.members[layer.t]:
            x, y = graph.state(side, node)
            found = layer.low[node], layer.high[node]
            assert found == pytest.approx(bounds(layer.t + 1, x, y), rel=1e-12, abs=1e-12)
            seen.add((layer.t + 1, x, y))
    assert seen >= reference.reachable(case.model).states  # an END stays in later layers


@given(strategies.cases())
def test_features_and_y_are_those_of_the_reference(case: strategies.Case) -> None:
    measured, found = measure(case.model), reference.reachable(case.model)
    assert len(measured.features) == len(found.features)
    assert measured.n_y == len(found.ys)


def delayed(horizon: int = 5) -> pkd_delay.KnownDelay:
    rng = np.random.default_rng(0)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(2), (2, 2)), rng.uniform(size=(2, 2)), horizon)
    return pkd_delay.DelayedMDP(mdp, {-1: 0.2, 0: 0.4, 1: 0.4}, 3).known()


@pytest.mark.parametrize("model", [Kiosk(), delayed()])
@pytest.mark.parametrize("large", [False, True])
def test_a_compiled_model_has_the_sizes_of_its_model(model: Any, large: bool) -> None:
    assert measure(pkd.compile(model, large=large)) == measure(model)


def test_a_model_is_walked_once() -> None:
    asked: list[Any] = []
    model = having(reward=lambda self, x, y, a: asked.append((x, y, a)) or 0.0)
    compiled = pkd.compile(model)
    asked.clear()
    pkd.bounds.regret_bound(compiled, 100)
    assert not asked
    measure(model)
    once = len(asked)
    asked.clear()
    pkd.bounds.regret_bound(model, 100)
    assert len(asked) == once


def test_hidden_queues_bound_the_returns_of_the_states_they_stand_for() -> None:
    model = delayed()
    hidden, plain = explore(model, hide_queues=True), explore(model)
    assert hidden.hidden
    ranges = {layer.t: (layer.low, layer.high) for layer in sweep_returns(hidden)}
    for layer in sweep_returns(plain):
        end = layer.t == plain.horizon
        nodes, boxes = (g.ends if end else g.members[layer.t] for g in (plain, hidden))
        low, high = ranges[layer.t]
        assert layer.high[list(nodes)].max() <= high[list(boxes)].max() + 1e-12
        assert layer.low[list(nodes)].min() >= low[list(boxes)].min() - 1e-12


@pytest.mark.parametrize(
    ("declared", "safe"),
    [
        ((-2, 4), True),
        ((-2, 3.9), False),
        ((4, -2), False),
        (5, False),
        ((-2, float("inf")), False),
    ],
)
def test_a_declared_range_is_safe_where_the_returns_lie_in_it(declared: Any, safe: bool) -> None:
    graph = explore(having(return_range=declared))
    assert is_declared_range_safe(graph) is safe


def test_returns_lie_within_their_extremes() -> None:
    graph = explore(Kiosk())
    assert returns_within(graph, -2, 4)
    assert not returns_within(graph, -1.9, 4)


class Draws(pkd.PartiallyKnownMDP):
    """Before each of two actions, `times` coins are thrown one after the other; x is the last."""

    horizon = 2

    def __init__(self, times: int, *, coins: int = 1, first: bool = True) -> None:
        self.times, self.coins, self.first = times, coins, first

    def start(self) -> Any:
        return 0, (self.times if self.first else 0)

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if y else ["go"]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, y - 1 if y else self.times, ("coin", y % self.coins))]

    def last_step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, 0, pkd.sure(0))] if not y else self.step(x, y, a)

    def outcomes(self, z: Any) -> Any:
        return [0, 1]


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (Draws(1, first=False), 2),  # go and throw, before the second action
        (Draws(4), 9),  # 4, the action's own, 4
        (Draws(4, coins=2), 5),  # 2, the action's own, 2
    ],
    ids=["as in the paper", "one coin", "two coins"],
)
def test_the_logarithms_count_the_most_visits_of_a_feature(
    model: pkd.PartiallyKnownMDP, most: int
) -> None:
    assert reference.most_visits(model) == most
    assert measure(model).most_visits == most
    for large in (False, True):
        compiled = pkd.compile(model, large=large)
        assert compiled.most_visits == most
        ell = compiled.ell(pkd.MVP().bonus(), np.array([0]), np.array([0.5]), 100, 0.1)
        size = len(compiled.features)
        assert ell[0] == pytest.approx(
            min(
                math.log(32 * most**2 * size * 100 / (0.1 * 0.5)),
                2 * math.log(32 * most * 2 * size * 100 / 0.1),
            )
        )


def test_a_game_of_cards_draws_more_often_than_it_acts() -> None:
    model = pkd.as_problem("blackjack").model()
    assert model.horizon == 20
    assert pkd.compile(model).most_visits == 33


def test_a_delay_changes_no_number_of_visits() -> None:
    delayed = pkd_delay.KnownDelay(Draws(4), {0: 0.5, 1: 0.5}, 1)
    assert pkd.compile(delayed).most_visits == 9
    assert pkd.compile(pkd_delay.UnknownDelay(Draws(4), 1, 1)).most_visits == 9
    table = two_state_chain().model()
    for late in (
        pkd_delay.KnownDelay(table, {-1: 0.5, 1: 0.5}, 2),
        pkd_delay.UnknownDelay(table, 1, 2),
    ):
        assert pkd.compile(late).most_visits == late.horizon


@given(strategies.cases())
def test_the_most_visits_are_those_of_the_reference(case: strategies.Case) -> None:
    assert measure(case.model).most_visits == reference.most_visits(case.model)


@given(strategies.cases())
def test_visits_that_are_not_counted_apart_are_bounded_by_all_together(
    case: strategies.Case,
) -> None:
    exact = reference.most_visits(case.model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sizes, "MOST_COUNTED", 0.0)
        together = sizes.find_most_visits(explore(case.model))
    assert exact <= together
