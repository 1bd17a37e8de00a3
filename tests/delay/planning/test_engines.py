"""A delayed model compiled for the large engine and for the small one: the two must agree."""

import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pkd
from pkd_delay import DelayedMDP, KnownDelay, UnknownDelay
from pkd_delay.hindsight import DelayLaw
from tests.delay.strategies import bases, delayed_mdps, sparse_rows
from tests.strategies import cases

RULES = [pkd.MVP(), pkd.MVP.practical(), pkd.MVP(monotone=True), pkd.Hoeffding(c=0.1)]


def close(expected):
    return pytest.approx(expected, rel=1e-10, abs=1e-10)


def compile_both(model):
    """The model compiled for the small engine and for the large one."""
    return pkd.compile(model, large=False), pkd.compile(model, large=True)


@st.composite
def tabular(draw, **options):
    """(model, truth): the paper's own case, with a known or an unknown law of the delay."""
    delayed = draw(delayed_mdps(**options))
    return draw(st.sampled_from([delayed.known(), delayed.unknown()])), delayed.law()


@st.composite
def composed(draw):
    """(model, truth): a base with several y, CHANCE states, ENDs, known laws, a settlement and
    final pay.
    """
    base, law, delays, max_delay = draw(bases())
    return delayed_base(draw, base, law, delays, max_delay, longest=2)


@st.composite
def contract(draw):
    """(model, truth): a base with every corner of the contract, such as unknown rewards, own
    shares, a declared range, own samples.
    """
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
    seen = {
        z: {x: int(rng.integers(0, scale)) for x in states}
        for z, states in zip(compiled.features, compiled.outcomes, strict=True)
    }
    return seen | {reward.feature: {reward.low: 1, reward.high: 2} for reward in compiled.rewards}


@settings(max_examples=200)
@given(problem=st.one_of(tabular(largest_tree=10**6), composed(), contract()))
def test_both_engines_find_the_same_optimum_and_the_same_features(problem):
    model, truth = problem
    small, large = compile_both(model)
    assert dict(zip(large.features, large.outcomes, strict=True)) == dict(
        zip(small.features, small.outcomes, strict=True)
    )
    assert set(large.rewards) == set(small.rewards)
    assert pkd.plan(large, truth).value == close(pkd.plan(small, truth).value)


@settings(max_examples=60)
@given(
    problem=problems,
    unit=tabular(unit_rewards=True),
    seed=st.integers(0, 99),
    scale=st.sampled_from([3, 300, 30_000]),
)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_both_engines_find_the_same_upper_value(rule, problem, unit, seed, scale):
    """With ranges computed for each state, and with declared ones."""
    for model, _ in (problem, unit):
        small, large = compile_both(model)
        counts = counts_for(small, seed, scale)
        for z in small.features:  # no more distinct outcomes than B(z): others are refused
            counts[z] = dict(list(counts[z].items())[: model.branching(z)])
        values = [
            pkd.optimistic_plan(engine, counts, episodes=100, optimism=rule).value
            for engine in (small, large)
        ]
        assert values[1] == close(values[0])


@settings(max_examples=60)
@given(problem=problems)
def test_both_plans_name_the_same_states_and_actions(problem):
    model, truth = problem
    small, large = compile_both(model)
    plans = pkd.plan(small, truth), pkd.plan(large, truth)
    for h in range(1, model.horizon + 1):
        assert sorted(map(repr, plans[1].states(h))) == sorted(map(repr, plans[0].states(h)))
        for x, y in plans[0].states(h):
            expected = plans[0].values(h, x, y)
            assert plans[1].values(h, x, y) == close(expected)
            assert expected[plans[1].action(h, x, y)] == close(max(expected.values()))


@settings(max_examples=30)
@given(delayed=delayed_mdps())
def test_a_state_that_cannot_occur_is_refused_by_the_large_engine_too(delayed):
    for model in (delayed.known(), delayed.unknown()):
        small, large = (pkd.plan(engine, delayed.law()) for engine in compile_both(model))
        everywhere = {state for h in range(1, model.horizon + 1) for state in small.states(h)}
        for h in range(1, model.horizon + 1):
            for x, y in everywhere - set(small.states(h)):
                with pytest.raises(pkd.ModelError, match=f"cannot occur at step {h}"):
                    large.action(h, x, y)


@settings(max_examples=60)
@given(problem=problems, seed=st.integers(0, 99))
def test_any_policy_is_worth_the_same_on_both_engines(problem, seed):
    model, truth = problem

    def policy(h, x, y):
        return random.Random(repr((seed, h, x, y))).choice(list(model.actions(x, y)))

    values = [pkd.evaluate(engine, truth, policy) for engine in compile_both(model)]
    assert values[1] == close(values[0])


@settings(max_examples=30)
@given(problem=st.one_of(tabular(), composed()))
def test_both_engines_measure_regret_against_the_same_optimum(problem):
    model, truth = problem
    learned = [
        pkd.learn(engine, truth, 30, optimism=pkd.MVP.practical()) for engine in compile_both(model)
    ]
    assert learned[1].optimal_value == close(learned[0].optimal_value)
    assert learned[1].policy_values.max() <= learned[0].optimal_value + 1e-9


@settings(max_examples=20)
@given(delayed=delayed_mdps())
def test_every_action_of_an_episode_on_the_large_engine_teaches_one_outcome(delayed):
    _, large = compile_both(delayed.known())
    counts = pkd.learn(large, delayed.law(), 30, optimism=pkd.MVP.practical()).counts
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


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize(
    ("base", "message"),
    [
        (Broken([(0.9, None, pkd.sure("open"))]), "0.9"),
        (Broken([(1.0, None, pkd.sure("chance"))]), "chance"),
        (Broken([(1.0, None, pkd.sure("open"))], pay=float("nan")), "nan"),
    ],
    ids=["lost probability", "a circle of CHANCE states", "a reward that is no number"],
)
def test_a_base_that_breaks_the_contract_is_refused_by_both_engines(base, message, large):
    with pytest.raises(pkd.ModelError, match=message):
        pkd.compile(KnownDelay(base, {3: 1.0}, 3), large=large)


@pytest.mark.parametrize(
    "law", [{3: 1.0}, {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}], ids=["constant", "random"]
)
def test_a_law_that_must_be_learned_changes_no_optimum_on_the_large_engine(law):
    """Under the truth, the agent that must learn the law is worth what the other one is."""
    rng = np.random.default_rng(1)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(6), (6, 3)), rng.random((6, 3)), 8)
    delayed = DelayedMDP(mdp, law, 3)
    engines = [pkd.compile(model, large=True) for model in (delayed.known(), delayed.unknown())]
    values = [pkd.plan(engine, delayed.law()).value for engine in engines]
    assert values[1] == close(values[0])
    assert values[0] == close(
        pkd.plan(pkd.compile(delayed.known(), large=False), delayed.law()).value
    )
