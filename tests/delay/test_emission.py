"""Emitted runs, explored states and passes: three forms of one delayed model that must agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.passes import reduced, unreduced
from pkd.run_engine import RunEngine
from pkd_delay import DelayedMDP
from pkd_delay.emission import runs_of_known
from tests.delay.strategies import delayed_mdps

RULES = [pkd.MVP(), pkd.MVP.practical(), pkd.MVP(monotone=True), pkd.Hoeffding(c=0.1)]


def both(delayed):
    """The flat program of the explored model, and the run engine on its emitted runs."""
    model = delayed.known()
    return pkd.compile(model, large=False), RunEngine(model, runs_of_known(model))


def counts_for(compiled, seed):
    rng = np.random.default_rng(seed)
    return {z: {x: int(rng.integers(0, 300)) for x in states} for z, states in zip(compiled.features, compiled.outcomes, strict=True)}


@settings(max_examples=80)
@given(delayed=delayed_mdps(largest_tree=10**6))
def test_emitted_runs_have_the_optimum_of_the_explored_model(delayed):
    flat, runs = both(delayed)
    assert pkd.plan(runs, delayed.law()).value == pytest.approx(pkd.plan(flat, delayed.law()).value, rel=1e-10, abs=1e-10)


@settings(max_examples=60)
@given(delayed=delayed_mdps(largest_tree=10**6), unit=delayed_mdps(unit_rewards=True, largest_tree=10**6), seed=st.integers(0, 99))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_emitted_runs_have_the_upper_value_of_the_explored_model(rule, delayed, unit, seed):
    """With ranges computed for each state, and with the declared range (0, H)."""
    for problem in (delayed, unit):
        flat, runs = both(problem)
        counts = counts_for(flat, seed)
        values = [pkd.optimistic_plan(engine, counts, episodes=100, optimism=rule).value for engine in (flat, runs)]
        assert values[1] == pytest.approx(values[0], rel=1e-10, abs=1e-10)


@settings(max_examples=30)
@given(delayed=delayed_mdps())
def test_an_emitted_plan_names_every_state_and_action_of_the_explored_one(delayed):
    flat, runs = both(delayed)
    plans = pkd.plan(flat, delayed.law()), pkd.plan(runs, delayed.law())
    for h in range(1, delayed.mdp.horizon + 1):
        for x, y in plans[0].states(h):
            expected = plans[0].values(h, x, y)
            assert plans[1].values(h, x, y) == pytest.approx(expected, rel=1e-10, abs=1e-10)
            assert expected[plans[1].action(h, x, y)] == pytest.approx(max(expected.values()), rel=1e-10, abs=1e-10)


@settings(max_examples=20)
@given(delayed=delayed_mdps())
def test_a_run_on_emitted_runs_measures_regret_against_the_same_optimum(delayed):
    flat, runs = both(delayed)
    learned = [pkd.learn(engine, delayed.law(), 30, optimism=pkd.MVP.practical()) for engine in (flat, runs)]
    assert learned[1].optimal_value == pytest.approx(learned[0].optimal_value, rel=1e-10, abs=1e-10)
    assert learned[1].policy_values.max() <= learned[0].optimal_value + 1e-9
    for run in learned:
        assert sum(sum(row.values()) for row in run.counts.values()) == 30 * delayed.mdp.horizon


def constant(delay, S=4, A=3, H=8):
    rng = np.random.default_rng(delay)
    return DelayedMDP.constant(pkd.TabularMDP(rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), H), delay)


def test_constant_delay_reduces_to_the_recursion_one_would_write_by_hand():
    """Once the queue is full, the only columns are the A^D queues, and every run reads nothing but full queues."""
    table = runs_of_known(constant(3).known())
    layout = reduced(table, 8)
    assert layout.columns == 1 + 3 + 9 + 27
    full = [run for run in layout.runs if run.length == 9 and run.part == 0]
    assert len(full) == 3
    assert {len(move.ways) for run in full for move in run.moves} == {1}


@pytest.mark.parametrize("delay", [1, 2, 4])
def test_the_passes_do_not_change_the_optimum(delay):
    delayed = constant(delay)
    engine = RunEngine(delayed.known(), runs_of_known(delayed.known()))
    assert len(engine.layout.runs) < len(unreduced(engine.table).runs)
    values = [e.sweep(e.truth(delayed.law()), e.policy(), follow=False)[0] for e in (engine, engine.plain)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_threads_do_not_change_a_bit():
    delayed = constant(4)
    engine = RunEngine(delayed.known(), runs_of_known(delayed.known()))
    policies, values = [], []
    for parallel in (False, True):
        engine.parallel = parallel
        policies.append(engine.policy())
        values.append(engine.sweep(engine.truth(delayed.law()), policies[-1], follow=False)[0])
    assert values[0] == values[1]
    assert np.array_equal(*policies)
