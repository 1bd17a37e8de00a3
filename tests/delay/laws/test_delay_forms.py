"""Every form of delay law is planned as brute force over all histories says: lags and any chain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd import ModelError
from pkd_delay import DelayChain, Delayed, DelayedMDP, InterArrival, KnownDelay, Lags
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import riverswim, two_state_chain
from tests.delay.planning.test_history_policies import close
from tests.delay.reference import best_in_tables, occurring_features
from tests.delay.strategies import sparse_rows

# (S, A, largest delay, H). Whether two states come together after a delay of 2 matters from H = 4
# on, so most instances have that size; the others are the edges.
SIZES = [(2, 2, 2, 4)] * 6 + [
    (1, 1, 0, 1), (2, 3, 2, 3), (3, 2, 2, 3), (2, 2, 3, 3), (3, 3, 1, 2), (2, 2, 1, 4),
    (2, 1, 3, 5),
]  # fmt: skip


def draw_mdp(draw, S, A, H):
    """A tiny random MDP whose tree of histories is small."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rewards = rng.normal(size=(S, A)) * 3
    return pkd.TabularMDP(sparse_rows(rng, (S, A), S), rewards, H, sparse_rows(rng, (), S)), rng


@st.composite
def lagged_mdps(draw):
    """(DelayedMDP with lags per (s, a), its chain of delays written down from the definition)."""
    S, A, longest, H = draw(st.sampled_from(SIZES))
    mdp, rng = draw_mdp(draw, S, A, H)
    table = sparse_rows(rng, mdp.rewards.shape, longest + 1)
    D = draw(st.sampled_from([None, None, None, 0, 1, 4]))
    pairs = list(np.ndindex(mdp.rewards.shape))
    late = DelayedMDP(mdp, {pair: Lags(table[pair]) for pair in pairs}, longest if D is None else D)

    def next_delays(s, a, before):
        return [(min(max(before - 1, lag), late.max_delay), p) for lag, p in enumerate(table[s, a])]

    return late, next_delays


@st.composite
def chained_mdps(draw):
    """The same with a random chain of delays for each (s, a)."""
    S, A, longest, H = draw(st.sampled_from(SIZES))
    n = longest + 1
    mdp, rng = draw_mdp(draw, S, A, H)
    D = draw(st.sampled_from([longest, longest, 0, 1, 4]))
    chains = {}
    for pair in np.ndindex(mdp.rewards.shape):
        table = np.zeros((n, n))
        for before in range(n):
            least = max(before - 1, 0)
            table[before, least:] = sparse_rows(rng, (), n - least)
        chains[pair] = table
    late = DelayedMDP(
        mdp, {pair: DelayChain(table) for pair, table in chains.items()}, D, revealed=False
    )

    def next_delays(s, a, before):
        return [(min(delay, D), p) for delay, p in enumerate(chains[s, a][before])]

    return late, next_delays


def brute_force(late, next_delays):
    mdp = late.mdp
    return best_in_tables(
        mdp.transitions, mdp.rewards, mdp.horizon, mdp.start_distribution, next_delays=next_delays
    )


@pytest.mark.parametrize("large", [False, True], ids=["flat", "runs"])
@pytest.mark.parametrize("kind", ["known", "unknown"])
@settings(max_examples=100, deadline=None)
@given(data=st.data(), problems=st.sampled_from([lagged_mdps(), chained_mdps()]))
def test_the_planner_finds_the_best_history_dependent_policy(kind, large, data, problems):
    late, next_delays = data.draw(problems)
    model = pkd.compile(getattr(late, kind)(), large=large)
    assert close(pkd.plan(model, late.law()).value, brute_force(late, next_delays))


@settings(max_examples=60, deadline=None)
@given(st.one_of(lagged_mdps(), chained_mdps()))
def test_the_arrivals_that_the_model_lists_are_those_that_occur(problem):
    late, _ = problem
    model = late.unknown()
    listed = {z for arrivals in model._arrivals.values() for z in arrivals}
    assert listed == {z for z in occurring_features(model) if hasattr(z, "waited")}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3))
def test_assumption_one_is_one_chain_of_delays(seed, H, D):
    rng = np.random.default_rng(seed)
    mdp = pkd.TabularMDP(sparse_rows(rng, (2, 2), 2), rng.normal(size=(2, 2)), H)
    law = InterArrival(tuple(sparse_rows(rng, (), 4)))
    chain = DelayChain([law.row(before, D) for before in range(D + 1)])
    one, other = (pkd_delay.plan(DelayedMDP(mdp, form, D)).value for form in (law, chain))
    assert close(one, other)


def test_lags_that_never_vary_are_a_constant_delay():
    for delay in range(4):
        late = pkd_delay.plan(DelayedMDP(riverswim(), Lags({delay: 1.0}))).value
        assert late == pytest.approx(pkd_delay.plan(DelayedMDP.constant(riverswim(), delay)).value)


def test_the_simulator_agrees_with_the_plan():
    """4,000 episodes, within 4 standard errors of the exact value."""
    late = DelayedMDP(two_state_chain(), Lags({0: 0.5, 1: 0.3, 2: 0.2}))
    plan = pkd_delay.plan(late)
    records = plan.simulate(4000, seed=1)
    totals = np.array([record.total for record in records])
    assert abs(totals.mean() - plan.value) < 4 * totals.std() / np.sqrt(len(totals))
    for record in records[:50]:
        before = 0
        for lag, delay in zip(record.deltas, record.delays, strict=True):
            assert delay == max(before - 1, lag)
            before = delay


def test_any_problem_can_have_lags():
    late = Delayed(autoscaler(horizon=4).problem, Lags({0: 0.4, 1: 0.6}))
    assert late.max_delay == 1
    pkd.check_model(late.known(), late.law())
    assert KnownDelay(late.base, Lags({0: 0.4, 1: 0.6})).max_delay == 1


def test_a_chain_that_goes_round_has_the_law_of_its_time_average():
    there_and_back = DelayChain([[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    assert there_and_back.delays(largest=2) == pytest.approx([1 / 3] * 3, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Delayed("two_state_chain", {0: 0.5, 1: 0.5}),
            "max_delay is None, and this law has no largest delay of its own",
        ),
        (
            lambda: Delayed(
                "two_state_chain", lambda x, y, a: Lags([1.0]) if a else {0: 1.0}, 1
            ).known(),
            "inter_arrival gives InterArrival in (x=0, y=None, a=0) and Lags in",
        ),
        (
            lambda: DelayedMDP(two_state_chain(horizon=2), DelayChain(np.eye(2))).unknown(),
            "a chain of delays draws no raw numbers",
        ),
    ],
)
def test_what_is_no_law_is_refused(make, message):
    with pytest.raises(ModelError) as error:
        make()
    assert message in str(error.value)
