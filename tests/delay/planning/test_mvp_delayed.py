"""The generic algorithm on the adapters is MVP-Delayed: the paper's Algorithms 4 and 5, corrected,
from any counts.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd_delay import DelayedMDP
from pkd_delay.planning import name_counts
from tests.delay.reference import Exact, Optimistic, mvp_delayed
from tests.delay.strategies import delayed_mdps

THEORY = pkd.MVP()
PRACTICAL = pkd.MVP.practical()
CONSTANTS = {THEORY: {}, PRACTICAL: {"c1": 0.5, "c2": 0.25, "log_factor": 1.0}}


@st.composite
def counts(draw, delayed):
    """Counts of transitions and Deltas: none, a few, or many for each (s, a), with zeros in
    between.
    """
    S, A, W = delayed.mdp.n_states, delayed.mdp.n_actions, delayed.longest
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from([1, 3, 60, 10**4, 10**7]))
    return (
        rng.integers(0, size + 1, shape) * (rng.random(shape) < 0.8)
        for shape in ((S, A, S), (S, A, W + 2))
    )


def upper_value(delayed, transition_counts, delay_counts, episodes, delta, constants):
    """What Algorithms 4 and 5 compute for the start."""
    mdp, W = delayed.mdp, delayed.longest
    law = (
        {"delay_law": delayed.inter_arrival}
        if delay_counts is None
        else {"delay_counts": delay_counts}
    )
    B = min(delayed.branching or mdp.n_states, mdp.n_states)
    values = Optimistic(
        transition_counts, mdp.rewards, mdp.horizon, episodes, delta, B, W=W, **law, **constants
    )
    V = mvp_delayed(values, mdp.n_states, mdp.n_actions, mdp.horizon, W, delayed.max_delay)
    return sum(p * V[s, (), 0, 1] for s, p in enumerate(mdp.start_distribution)), V


@pytest.mark.parametrize("rule", [THEORY, PRACTICAL], ids=["theory", "practical"])
@pytest.mark.parametrize("delay_law", ["known", "unknown"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_plan_from_counts_is_that_of_the_paper(rule, delay_law, data):
    delayed = data.draw(delayed_mdps(unit_rewards=True))
    transition_counts, delay_counts = data.draw(counts(delayed))
    delay_counts = None if delay_law == "known" else delay_counts
    plan = pkd_delay.optimistic_plan(
        delayed, transition_counts, delay_counts, episodes=500, delta=0.1, optimism=rule
    )
    expected, _ = upper_value(delayed, transition_counts, delay_counts, 500, 0.1, CONSTANTS[rule])
    assert plan.value == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_a_larger_plan_from_counts_is_that_of_the_paper_in_every_state(delay_law):
    """S = 4, A = 3, H = 6, D = 3, W = 2, counts large enough that no value is at the cap."""
    rng = np.random.default_rng(7)
    S, A, H, D, W = 4, 3, 6, 3, 2
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), H)
    delayed = DelayedMDP(mdp, rng.dirichlet(np.ones(W + 2), (S, A)), D)
    transition_counts = rng.integers(10**6, 10**7, (S, A, S))
    delay_counts = rng.integers(10**6, 10**7, (S, A, W + 2)) if delay_law == "unknown" else None
    plan = pkd_delay.optimistic_plan(delayed, transition_counts, delay_counts, episodes=1000)
    value, V = upper_value(delayed, transition_counts, delay_counts, 1000, 0.05, {})
    assert value < 0.99 * H
    assert plan.value == pytest.approx(value, rel=1e-10)
    rules = [(row.step, *row.state.values(), max(row.values.values())) for row in plan.rows()]
    # n = c + D_{t-1} with t = h - n: while s_1 is the last shown state (t = 1) no more than W steps
    # can pass.
    reachable = {
        (h, n) for h in range(1, H + 1) for n in range(min(D, h - 1) + 1) if n <= W or h - n >= 2
    }
    assert {(h, len(queue)) for h, _, queue, _, _ in rules} == reachable
    for h, state, queue, waited, best in rules:
        assert best == pytest.approx(V[state, queue, waited, h], rel=1e-10)


@pytest.mark.parametrize("branching", [2, 3])
def test_a_known_bound_on_successors_shortens_the_logarithm(branching):
    rng = np.random.default_rng(11)
    P = np.zeros((4, 2, 4))
    for s in range(4):
        for a in range(2):
            P[s, a, rng.choice(4, 2, replace=False)] = 0.5
    delayed = DelayedMDP(
        pkd.TabularMDP(P, rng.random((4, 2)), 5), {-1: 0.3, 0: 0.3, 2: 0.4}, 3, branching
    )
    transition_counts = P * 10**6
    plan = pkd_delay.optimistic_plan(delayed, transition_counts, episodes=10)
    expected, _ = upper_value(delayed, transition_counts, None, 10, 0.05, {})
    assert plan.value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("W", [0, 2])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_without_delay_it_is_plain_mvp_with_ell_of_queue_length_one(W, seed):
    """D = 0: V(s) = max_a MVPEst(r, Phat, V', N, ell(1, B)), written out here."""
    rng = np.random.default_rng(seed)
    S, A, H, K, delta = 3, 2, 4, 100, 0.1
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(S), (S, A)), rng.random((S, A)), H)
    n = rng.integers(0, 20000, (S, A, S))
    W1 = max(W, 1)
    ell = min(
        math.log(A) + math.log(64 * H * (H + 1) * 4 * W1 * S * A * K / delta),
        S * math.log(32 * H * S * W1 * S * A * K / delta),
    )
    V = np.zeros(S)
    for _ in range(H):
        total = n.sum(axis=2)
        p = n / np.maximum(total, 1)[:, :, None]
        mean = p @ V
        variance = (p * (V - mean[:, :, None]) ** 2).sum(axis=2)
        N = np.maximum(total, 1)
        Q = mdp.rewards + mean + 20 / 3 * np.sqrt(variance * ell / N) + 400 / 9 * H * ell / N
        V = np.where(total <= 1, H, np.minimum(H, Q)).max(axis=1)
    delayed = DelayedMDP(mdp, {W: 1.0}, 0)
    for delay_counts in (None, rng.integers(0, 50, (S, A, W + 2))):
        plan = pkd_delay.optimistic_plan(delayed, n, delay_counts, episodes=K, delta=delta)
        assert plan.value == pytest.approx(V[0], rel=1e-10)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_without_data_every_value_is_the_horizon(delay_law):
    delayed = DelayedMDP(
        pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 4), {-1: 0.2, 0: 0.4, 1: 0.4}, 2
    )
    delay_counts = np.zeros((2, 2, 3)) if delay_law == "unknown" else None
    plan = pkd_delay.optimistic_plan(delayed, np.zeros((2, 2, 2)), delay_counts, episodes=10)
    assert {max(row.values.values()) for row in plan.rows()} == {4.0}


def test_the_log_factor_is_the_papers_with_the_corrected_union_bound():
    """facts: with 64H in place of 64H(H+1), S=5, A=2, H=10, W=2, B=5, delta=.05, K=1e4: ell(3,5) =
    26.515303, ell(4,5) = 27.654738.
    """
    model = DelayedMDP(
        pkd.TabularMDP(np.full((5, 2, 5), 0.2), np.full((5, 2), 0.5), 10), {0: 0.5, 2: 0.5}, 3
    ).known()

    def ell1(
        queue,
    ):  # the core's ell1 = log(32 H^2 |Z| K / (delta w)), for a tran that leaves this queue
        share = model.share((0, 0), model.place(0, None, queue, -1)[1])
        return math.log(32 * 10**2 * model.n_features * 1e4 / (0.05 * share))

    assert ell1((0, 1)) == pytest.approx(26.515303 + math.log(11), abs=1e-6)
    assert ell1((0, 1, 1)) == pytest.approx(27.654738 + math.log(11), abs=1e-6)
    assert 5 * math.log(32 * 10 * 5 * model.n_features * 1e4 / 0.05) == pytest.approx(
        5 * 22.579564, abs=1e-5
    )


@pytest.mark.parametrize(
    "rule",
    [pkd.MVP(), pkd.MVP(monotone=True), pkd.Hoeffding()],
    ids=["mvp", "mvp-max", "hoeffding"],
)
@settings(max_examples=40, deadline=None)
@given(delayed=delayed_mdps())
def test_counts_without_noise_keep_optimism(rule, delayed):
    """Counts that are exact multiples of the truth: the plan must not fall below the optimum,
    negative rewards included.
    """
    mdp = delayed.mdp
    truth = Exact(mdp.transitions, mdp.rewards, delayed.inter_arrival)
    V = mvp_delayed(
        truth, mdp.n_states, mdp.n_actions, mdp.horizon, delayed.longest, delayed.max_delay
    )
    optimum = sum(p * V[s, (), 0, 1] for s, p in enumerate(mdp.start_distribution))
    for delay_counts in (None, delayed.inter_arrival * 1000):
        plan = pkd_delay.optimistic_plan(
            delayed, mdp.transitions * 1000, delay_counts, episodes=1, optimism=rule
        )
        assert plan.value >= optimum - 1e-9


def test_counts_of_what_cannot_be_met_are_left_out():
    """H = 1: no state but the first is ever acted in, and the end of the episode forces every
    arrival.
    """
    delayed = DelayedMDP(pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 1), {0: 0.5, 1: 0.5}, 1)
    named = name_counts(delayed, np.ones((2, 2, 2)), np.ones((2, 2, 3)))
    assert {z.feature for z in named} == {(0, 0), (0, 1)}


@pytest.mark.parametrize(
    ("transition_counts", "delay_counts", "message"),
    [
        (np.ones((2, 2)), None, "transition_counts has shape (2, 2); expected (2, 2, 2)"),
        (np.full((2, 2, 2), -1.0), None, "5 findings"),
        (
            np.ones((2, 2, 2)),
            np.ones((2, 2, 2)),
            "delay_counts has shape (2, 2, 2); expected (2, 2, 3)",
        ),
        ({}, None, "transition_counts is a mapping; expected an array of shape (2, 2, 2)"),
    ],
)
def test_bad_counts_are_refused(transition_counts, delay_counts, message):
    delayed = DelayedMDP(pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 3), {0: 0.5, 1: 0.5}, 1)
    with pytest.raises(pkd.ModelError) as error:
        pkd_delay.optimistic_plan(delayed, transition_counts, delay_counts, episodes=10)
    assert str(error.value).startswith(message)
