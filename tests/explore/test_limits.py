"""Models that are too large are refused before their memory is taken."""

from __future__ import annotations

import itertools
import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import ModelError
from pkd.explore import limits
from pkd.explore.limits import find_max_states, refuse_bytes
from pkd_delay.models.tables import random_mdp


class Endless(pkd.PartiallyKnownMDP):
    """y counts upwards for ever."""

    horizon = 10**7

    def start(self) -> Any:
        return None, 0

    def actions(self, x: Any, y: Any) -> Any:
        return ["on"]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, y + 1, pkd.sure(None))]


TOLD = (
    r"^more than 1000 states can be reached by step 1000, the next one \(x=None, y=1000\)\. Give a "
    r"smaller model, or raise the limit by max_states=\.\.\. or by the environment variable "
    r"PKD_MAX_STATES$"
)


@pytest.mark.parametrize("large", [None, False, True])
def test_an_endless_y_is_refused_at_the_limit(large: bool | None) -> None:
    with pytest.raises(ModelError, match=TOLD):
        pkd.compile(Endless(), large=large, max_states=1000)


def test_plan_takes_the_limit() -> None:
    with pytest.raises(ModelError, match=TOLD):
        pkd.plan(Endless(), {}, max_states=1000)


def test_the_environment_sets_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKD_MAX_STATES", "1000")
    with pytest.raises(ModelError, match=TOLD):
        pkd.plan(Endless(), {})
    monkeypatch.setenv("PKD_MAX_STATES", "many")
    with pytest.raises(ModelError, match="PKD_MAX_STATES is 'many'; expected a whole number >= 1"):
        pkd.plan(Endless(), {})


@pytest.mark.parametrize("given", [0, -1, True, 2.5, "10"])
def test_a_limit_is_a_whole_number(given: Any) -> None:
    with pytest.raises(ModelError, match=r"max_states is .*; expected a whole number >= 1"):
        find_max_states(given)


def test_a_limit_that_is_raised_lets_the_model_pass() -> None:
    table = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], 3)
    with pytest.raises(ModelError, match="more than 1 states"):
        pkd.plan(table, max_states=1)
    assert pkd.plan(table, max_states=2).value == 1.0


def test_by_default_the_limit_follows_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PKD_MAX_STATES", raising=False)
    monkeypatch.setattr(limits, "memory", lambda: 2 * limits.STATE_BYTES * 1000)
    with pytest.raises(ModelError, match=TOLD):
        pkd.plan(Endless(), {})


def test_a_walk_stops_when_the_process_holds_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkd.explore.index.read_resident", lambda: 10**15)
    with pytest.raises(
        ModelError, match=r"^16384 states were found and 1e\+06 GB of memory are in"
    ):
        pkd.plan(Endless(), {})


@pytest.mark.parametrize("delay", [20, 40])
def test_a_long_delay_is_refused_before_memory_is_taken(delay: int) -> None:
    mdp = random_mdp(actions=4, horizon=60)
    model = pkd_delay.KnownDelay(mdp, {delay: 1.0}, delay)
    with pytest.raises(ModelError, match=r"^KnownDelay has \S+ states; a plan of 60 steps needs"):
        pkd.plan(model, mdp.law())


def test_stripes_count_two_layers_and_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = random_mdp(actions=4, horizon=12)
    model = pkd_delay.KnownDelay(mdp, {6: 1.0}, 6)
    engine = pkd.compile(model, large=True)
    memory = engine.sweeper.borrow(pkd.plan(engine, mdp.law()).belief)
    values = sum(layer.v.nbytes for layer in memory.layers)
    monkeypatch.setattr(limits, "memory", lambda: values)
    with pytest.raises(ModelError, match=r"^KnownDelay has [\d,]+ states; a plan of 12 steps"):
        pkd.compile(model, large=True, max_states=10**6)
    monkeypatch.setattr(limits, "memory", lambda: 2 * (values + engine.policy().nbytes))
    assert pkd.compile(model, large=True, max_states=10**6).n_states == engine.n_states


def test_a_dense_table_is_refused_before_its_law_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    size, actions = 200, 8
    rows = np.full((size, actions, size), 1 / size)
    mdp = pkd.TabularMDP(rows, np.zeros((size, actions)), 3)
    needed = 24 * rows.size + 40 * size
    monkeypatch.setattr(limits, "memory", lambda: needed - 1)
    with pytest.raises(
        ModelError,
        match=r"^_TabularModel, a table of 200 states, needs 0\.00769 GB; this machine has",
    ):
        pkd.compile(mdp.model())
    monkeypatch.setattr(limits, "memory", lambda: needed)
    assert pkd.plan(mdp).value == 0.0


def test_the_law_of_a_dense_table_is_never_whole_in_dictionaries() -> None:
    """A dictionary takes 100 bytes for each outcome; the arrays that are kept take 24."""
    size, actions = 200, 8
    rows = np.full((size, actions, size), 1 / size)
    mdp = pkd.TabularMDP(rows, np.ones((size, actions)), 3)
    engine = pkd.compile(mdp.model())
    pkd.plan(engine, mdp.law())  # what is made once is there
    tracemalloc.start()
    try:
        assert pkd.plan(engine, mdp.law()).value == pytest.approx(3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50 * rows.size


def test_the_refusal_says_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "memory", lambda: 8 * 10**9)
    refuse_bytes(8 * 10**9, "it")
    with pytest.raises(ModelError, match=r"^it needs 9 GB; this machine has 8 GB of memory\. "):
        refuse_bytes(9 * 10**9, "it")


def test_a_refusal_can_cross_to_another_process() -> None:
    with pytest.raises(ModelError) as error:
        pkd.compile(Endless(), max_states=10)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


class Clock(pkd.PartiallyKnownMDP):
    """One state, for so many steps."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def start(self) -> Any:
        return 0, 0

    def actions(self, x: Any, y: Any) -> Any:
        return [0]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, 0, pkd.sure(0))]


@pytest.mark.parametrize("horizon", [10**7 + 1, 10**18])
def test_a_horizon_that_no_plan_can_hold_is_refused(horizon: int) -> None:
    with pytest.raises(ModelError, match="expected at most 10,000,000 steps"):
        pkd.plan(Clock(horizon), {})


LONG = pkd.TabularMDP([[[1.0]]], [[1.0]], horizon=10**7)


def evaluate_plan(table: pkd.TabularMDP) -> pkd.Evaluation:
    plan = pkd.plan(table)
    return pkd.evaluate(plan.compiled, table.law(), plan)


@pytest.mark.parametrize(
    "walk",
    [
        lambda: pkd.bounds.regret_bound(LONG, 10),
        lambda: pkd.optimistic_plan(LONG, {}, episodes=10),
        lambda: evaluate_plan(LONG).variance,
        lambda: pkd.plan(LONG).to_csv("long.csv", values=True),
    ],
)
def test_a_walk_that_would_take_long_is_refused_before_it_starts(walk: Any) -> None:
    """Nothing is said and nothing ends for an hour otherwise; a plan alone takes seconds."""
    with pytest.raises(pkd.ModelError, match=r"takes about [\d,.]+ hours; expected at most 10 min"):
        walk()


@pytest.mark.parametrize("many", [range(10**9), itertools.count])
def test_outcomes_without_end_are_refused(many: Any) -> None:
    class Wide(Clock):
        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, 0, "z")]

        def outcomes(self, z: Any) -> Any:
            return many() if callable(many) else many

    with pytest.raises(ModelError, match=r"outcomes\('z'\) lists more than [\d,]+ values"):
        pkd.compile(Wide(2), max_states=1000)
