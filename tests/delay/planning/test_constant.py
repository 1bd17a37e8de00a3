"""Small tables under a constant delay are planned from arrays; the engine is the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pkd
import pkd_delay
from pkd_delay.constant import plan_constant


@st.composite
def late_tables(draw: Any) -> pkd_delay.DelayedMDP:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    states, actions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    horizon, delay = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    p = rng.random((states, actions, states)) * (rng.random((states, actions, states)) < 0.5)
    p[..., int(rng.integers(states))] += 0.1
    p /= p.sum(axis=-1, keepdims=True)
    rewards = np.round(rng.normal(size=(states, actions)), 0 if draw(st.booleans()) else 2)
    start: Any = int(rng.integers(states))
    if draw(st.booleans()):
        start = rng.dirichlet(np.ones(states))
    given_p: Any = p
    if draw(st.booleans()):
        given_p = sparse.csr_array(p.reshape(-1, states))
    table = pkd.TabularMDP(given_p, rewards, horizon, start)
    return pkd_delay.DelayedMDP.constant(table, delay)


@given(late_tables())
@settings(max_examples=60, deadline=None)
def test_value_and_all_actions_are_those_of_the_augmented_mdp(late: pkd_delay.DelayedMDP) -> None:
    found, plan = plan_constant(late), pkd_delay.plan(late)
    assert found is not None
    reference = pkd.plan(late.known(), late.law())
    assert plan.value == found.value == reference.value
    count = 0
    for h in range(1, late.mdp.horizon + 1):
        for x, y in reference.states(h):
            state, _, queue, waited = late.known().read(x, y)
            action = found.find(h, state, tuple(queue or ()), waited)
            assert action == reference.action(h, x, y) == plan.action(h, state, queue, waited)
            count += 1
    assert count >= late.mdp.horizon
    assert float(plan.evaluate()) == pytest.approx(plan.value, abs=1e-12)


def test_one_action_late_by_one_step_by_hand() -> None:
    # s' = a, and being in 1 pays 1. s_1 = 0 pays nothing; the other steps pay if 1 was chosen.
    p = np.zeros((2, 2, 2))
    p[:, 0, 0] = p[:, 1, 1] = 1.0
    table = pkd.TabularMDP(p, np.array([[0.0, 0.0], [1.0, 1.0]]), horizon=5)
    plan = pkd_delay.plan(pkd_delay.DelayedMDP.constant(table, 2))
    assert plan.value == 4.0
    assert [plan.action(1, 0), plan.action(2, 0, (1,), 1), plan.action(4, 1, (1, 1), 0)] == [
        1,
        1,
        1,
    ]


def test_a_state_that_cannot_occur_is_refused_as_ever() -> None:
    table = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=4)
    plan = pkd_delay.plan(pkd_delay.DelayedMDP.constant(table, 1))
    assert plan._constant is not None
    for place in [(1, 1), (2, 0, ()), (3, 0, (0,), 1), (2, 0, (7,), 1), (9, 0), (2, 5, (0,), 1)]:
        with pytest.raises(pkd.ModelError):
            plan.action(*place)


def test_other_problems_are_left_to_the_engine() -> None:
    table = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=4)
    make = pkd_delay.DelayedMDP
    assert plan_constant(make(table, {0: 0.5, 1: 0.5}, 1)) is None
    assert plan_constant(make.constant(table, 0)) is None
    assert plan_constant(make(table, {1: 1.0}, 2)) is None  # the delay grows: 1, then 2
    assert plan_constant(pkd_delay.Delayed.constant(table, 1)) is None
    long = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=40)
    assert plan_constant(make.constant(long, 30)) is None
    assert plan_constant(make.constant(table, 30)) is not None  # nothing is ever shown
    assert pkd_delay.plan(make(table, {2: 1.0}, 1)).value == pkd_delay.plan(
        make.constant(table, 1)
    ).value  # fmt: skip


def test_a_long_horizon_is_not_swept_for_a_range_that_the_adapter_proves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(graph: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("pkd.engine.structure.sweep_returns", refuse)
    table = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), horizon=10**6)
    assert pkd.compile(pkd_delay.DelayedMDP.constant(table, 1).known()).horizon == 10**6
    twice = pkd.TabularMDP(np.full((2, 2, 2), 0.5), 2 * np.eye(2), horizon=10)
    model = pkd_delay.DelayedMDP.constant(twice, 1).known()
    assert model.return_range is None  # rewards above 1: nothing is declared
    model.return_range = (0.0, 1.0)  # declared by a user: it is checked
    with pytest.raises(pkd.ModelError, match="return_range"):
        pkd.compile(model)
