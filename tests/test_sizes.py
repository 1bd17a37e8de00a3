"""Sizes of a model, read from its graph, against the slow reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pkd
import pkd_delay
from pkd.explore import explore
from pkd.sizes import is_declared_range_safe, measure, returns_within, sweep_returns
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
    sizes, found = measure(case.model), reference.reachable(case.model)
    assert len(sizes.features) == len(found.features)
    assert sizes.n_y == len(found.ys)


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
