"""Emitted runs, explored states and passes: three forms of one delayed model that must agree."""

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pkd
from pkd.passes import reduced, unreduced
from pkd.run_engine import RunEngine
from pkd_delay import DelayedMDP, DelayLaw, KnownDelay, UnknownDelay
from pkd_delay.emission import emitted
from tests.delay.strategies import bases, delayed_mdps, sparse_rows
from tests.strategies import cases

RULES = [pkd.MVP(), pkd.MVP.practical(), pkd.MVP(monotone=True), pkd.Hoeffding(c=0.1)]


def close(expected):
    return pytest.approx(expected, rel=1e-10, abs=1e-10)


def both(model):
    """The flat program of the explored model, and the run engine on its emitted runs."""
    return pkd.compile(model, large=False), RunEngine(model, emitted(model))


@st.composite
def tabular(draw, **options):
    """(model, truth): the paper's own case, with a known or an unknown law of the delay."""
    delayed = draw(delayed_mdps(**options))
    return draw(st.sampled_from([delayed.known(), delayed.unknown()])), delayed.law()


@st.composite
def composed(draw):
    """(model, truth): a base with several y, CHANCE states, ENDs, known laws, a settlement and final pay."""
    base, law, delays, max_delay = draw(bases())
    return delayed_base(draw, base, law, delays, max_delay, longest=2)


@st.composite
def contract(draw):
    """(model, truth): a base with every corner of the contract, such as unknown rewards, own shares, a declared range, own samples."""
    case = draw(cases(horizon=st.integers(1, 3)))
    rng, longest, laws = np.random.default_rng(case.shape.seed), draw(st.integers(0, 2)), {}

    def delays(x, y, a):
        return laws.setdefault((x, y, a), sparse_rows(rng, (), longest + 2).tolist())

    return delayed_base(draw, case.model, case.law, delays, draw(st.integers(0, 3)), longest)


def delayed_base(draw, base, law, delays, max_delay, longest):
    def instead(x, y, a):
        return next(iter(base.actions(x, y)))

    try:
        if draw(st.booleans()):
            model = KnownDelay(base, delays, max_delay, instead=instead)
        else:
            model = UnknownDelay(base, longest, max_delay, instead=instead)
    except pkd.ModelError as error:
        assume("no decision state" not in str(error))
        raise
    return model, DelayLaw(law, delays, model)


problems = st.one_of(tabular(), composed(), contract())


def counts_for(compiled, seed, scale):
    rng = np.random.default_rng(seed)
    seen = {z: {x: int(rng.integers(0, scale)) for x in states} for z, states in zip(compiled.features, compiled.outcomes, strict=True)}
    return seen | {reward.feature: {reward.low: 1, reward.high: 2} for reward in compiled.rewards}


@settings(max_examples=200)
@given(problem=st.one_of(tabular(largest_tree=10**6), composed(), contract()))
def test_emitted_runs_have_the_optimum_and_the_features_of_the_explored_model(problem):
    model, truth = problem
    flat, runs = both(model)
    assert dict(zip(runs.features, runs.outcomes, strict=True)) == dict(zip(flat.features, flat.outcomes, strict=True))
    assert set(runs.rewards) == set(flat.rewards)
    assert pkd.plan(runs, truth).value == close(pkd.plan(flat, truth).value)


@settings(max_examples=60)
@given(problem=problems, unit=tabular(unit_rewards=True), seed=st.integers(0, 99), scale=st.sampled_from([3, 300, 30_000]))
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_emitted_runs_have_the_upper_value_of_the_explored_model(rule, problem, unit, seed, scale):
    """With ranges computed for each state, and with declared ones."""
    for model, _ in (problem, unit):
        flat, runs = both(model)
        counts = counts_for(flat, seed, scale)
        values = [pkd.optimistic_plan(engine, counts, episodes=100, optimism=rule).value for engine in (flat, runs)]
        assert values[1] == close(values[0])


@settings(max_examples=60)
@given(problem=problems)
def test_an_emitted_plan_names_every_state_and_action_of_the_explored_one(problem):
    model, truth = problem
    flat, runs = both(model)
    plans = pkd.plan(flat, truth), pkd.plan(runs, truth)
    for h in range(1, model.horizon + 1):
        assert sorted(map(repr, plans[1].states(h))) == sorted(map(repr, plans[0].states(h)))
        for x, y in plans[0].states(h):
            expected = plans[0].values(h, x, y)
            assert plans[1].values(h, x, y) == close(expected)
            assert expected[plans[1].action(h, x, y)] == close(max(expected.values()))


@settings(max_examples=30)
@given(delayed=delayed_mdps())
def test_a_state_that_cannot_occur_is_refused_on_emitted_runs_too(delayed):
    for model in (delayed.known(), delayed.unknown()):
        flat, runs = (pkd.plan(engine, delayed.law()) for engine in both(model))
        everywhere = {state for h in range(1, model.horizon + 1) for state in flat.states(h)}
        for h in range(1, model.horizon + 1):
            for x, y in everywhere - set(flat.states(h)):
                with pytest.raises(pkd.ModelError, match=f"cannot occur at step {h}"):
                    runs.action(h, x, y)


@settings(max_examples=60)
@given(problem=problems, seed=st.integers(0, 99))
def test_any_policy_is_worth_the_same_on_emitted_runs(problem, seed):
    model, truth = problem

    def policy(h, x, y):
        return random.Random(repr((seed, h, x, y))).choice(list(model.actions(x, y)))

    values = [pkd.evaluate(engine, truth, policy) for engine in both(model)]
    assert values[1] == close(values[0])


@settings(max_examples=30)
@given(problem=st.one_of(tabular(), composed()))
def test_a_run_on_emitted_runs_measures_regret_against_the_same_optimum(problem):
    model, truth = problem
    learned = [pkd.learn(engine, truth, 30, optimism=pkd.MVP.practical()) for engine in both(model)]
    assert learned[1].optimal_value == close(learned[0].optimal_value)
    assert learned[1].policy_values.max() <= learned[0].optimal_value + 1e-9


@settings(max_examples=20)
@given(delayed=delayed_mdps())
def test_every_action_of_an_episode_on_emitted_runs_teaches_one_outcome(delayed):
    _, runs = both(delayed.known())
    counts = pkd.learn(runs, delayed.law(), 30, optimism=pkd.MVP.practical()).counts
    assert sum(sum(row.values()) for row in counts.values()) == 30 * delayed.mdp.horizon


class Broken(pkd.PartiallyKnownMDP):
    """Two actions lead to a CHANCE state; one of its answers breaks the contract."""

    horizon = 9

    def __init__(self, after, pay=0.0):
        self._after, self._pay = after, pay

    def start(self):
        return ("open", None)

    def actions(self, x, y):
        return ("a", "b") if x == "open" else pkd.CHANCE

    def step(self, x, y, a):
        return [(1.0, None, pkd.sure("chance"))] if x == "open" else self._after

    def reward(self, x, y, a):
        return self._pay


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (Broken([(0.9, None, pkd.sure("open"))]), "0.9"),
        (Broken([(1.0, None, pkd.sure("chance"))]), "chance"),
        (Broken([(1.0, None, pkd.sure("open"))], pay=float("nan")), "nan"),
    ],
    ids=["lost probability", "a circle of CHANCE states", "a reward that is no number"],
)
def test_a_base_that_breaks_the_contract_is_refused_without_exploring_its_queues(base, message, monkeypatch):
    monkeypatch.setattr("pkd.engines.explore", None)
    with pytest.raises(pkd.ModelError, match=message):
        pkd.compile(KnownDelay(base, {8: 1.0}, 8))


def constant(delay, S=4, A=3, H=8):
    rng = np.random.default_rng(delay)
    return DelayedMDP.constant(pkd.TabularMDP(rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), H), delay)


def test_constant_delay_reduces_to_the_recursion_one_would_write_by_hand():
    """Once the queue is full, the only columns are the A^D queues, and every run reads nothing but full queues."""
    table = emitted(constant(3).known())
    layout = reduced(table, 8)
    assert layout.columns == 1 + 3 + 9 + 27
    full = [run for run in layout.runs if run.length == 9 and run.part == 0]
    assert len(full) == 3
    assert {len(move.ways) for run in full for move in run.moves} == {1}


@pytest.mark.parametrize("delay", [1, 2, 4])
def test_the_passes_do_not_change_the_optimum(delay):
    delayed = constant(delay)
    engine = RunEngine(delayed.known(), emitted(delayed.known()))
    assert len(engine.layout.runs) < len(unreduced(engine.table).runs)
    values = [e.sweep(e.truth(delayed.law()), e.policy(), follow=False)[0] for e in (engine, engine.plain)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("delay", [3, 6])
def test_a_large_model_is_planned_for_without_exploring_it(delay, monkeypatch):
    """The agent that must learn the law of the delay is worth, under the truth, what the one that knows it is worth."""
    delayed = DelayedMDP(constant(1, S=20, A=4, H=8).mdp, {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}, delay)
    known, unknown = delayed.known(), delayed.unknown()
    monkeypatch.setattr("pkd.engines.explore", None)
    value = pkd.plan(known, delayed.law()).value
    engine = pkd.compile(unknown) if delay == 6 else RunEngine(unknown, emitted(unknown))
    assert pkd.plan(engine, delayed.law()).value == close(value)


def test_threads_do_not_change_a_bit():
    delayed = constant(4)
    engine = RunEngine(delayed.known(), emitted(delayed.known()))
    policies, values = [], []
    for parallel in (False, True):
        engine.parallel = parallel
        policies.append(engine.policy())
        values.append(engine.sweep(engine.truth(delayed.law()), policies[-1], follow=False)[0])
    assert values[0] == values[1]
    assert np.array_equal(*policies)
