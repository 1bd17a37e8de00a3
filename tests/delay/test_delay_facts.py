"""What delay costs: closed forms, published numbers, and the directions in which the optimum can
move.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd_delay import DelayedMDP
from pkd_delay.models.tables import riverswim, two_state_chain
from tests.delay.reference import solve
from tests.delay.strategies import delayed_mdps, sparse_rows


def optimum(delayed):
    return pkd_delay.plan(delayed).value


def no_delay(mdp):
    """Plain backward induction on the tables."""
    V = np.zeros(mdp.n_states)
    for _ in range(mdp.horizon):
        V = (mdp.rewards + mdp.transitions @ V).max(axis=1)
    return mdp.start_distribution @ V


@pytest.mark.parametrize(("delay", "value"), list(enumerate([10, 9.1, 8.46, 8.012, 7.7048])))
def test_the_two_state_chain_has_its_closed_form(delay, value):
    """sum_{t < H} (1 + (2p - 1)^min(t, d)) / 2 with p = .9, H = 10."""
    assert value == pytest.approx(sum((1 + 0.8 ** min(t, delay)) / 2 for t in range(10)), abs=1e-12)
    assert optimum(DelayedMDP.constant(two_state_chain(), delay)) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("delay", "value"), list(enumerate([3.3972639592, 3.3968921124, 3.3967253173, 3.3966522172]))
)
def test_riverswim_has_its_published_values(delay, value):
    assert optimum(DelayedMDP.constant(riverswim(), delay)) == pytest.approx(value, abs=5e-11)


@settings(max_examples=40, deadline=None)
@given(delayed_mdps())
def test_the_optimum_falls_with_the_largest_delay_and_stays_from_the_horizon_on(delayed):
    H = delayed.mdp.horizon
    values = [optimum(DelayedMDP(delayed.mdp, delayed.inter_arrival, D)) for D in range(H + 2)]
    assert all(later <= earlier + 1e-10 for earlier, later in itertools.pairwise(values))
    assert values[max(H - 1, 0) :] == pytest.approx(
        [values[-1]] * len(values[max(H - 1, 0) :]), abs=1e-12
    )


@settings(max_examples=30, deadline=None)
@given(delayed_mdps())
def test_the_optimum_falls_with_a_constant_delay(delayed):
    values = [optimum(DelayedMDP.constant(delayed.mdp, d)) for d in range(delayed.mdp.horizon + 1)]
    assert all(later <= earlier + 1e-10 for earlier, later in itertools.pairwise(values))


@settings(max_examples=60, deadline=None)
@given(delayed_mdps(), st.data())
def test_the_optimum_falls_when_delay_mass_moves_upwards(delayed, data):
    later = delayed.inter_arrival.copy()
    j = data.draw(st.integers(0, later.shape[2] - 2))
    share = data.draw(st.floats(0, 1))
    moved = share * later[:, :, j]
    later[:, :, j] -= moved
    later[:, :, j + 1] += moved
    assert optimum(DelayedMDP(delayed.mdp, later, delayed.max_delay)) <= optimum(delayed) + 1e-10


@settings(max_examples=30, deadline=None)
@given(delayed_mdps())
def test_without_a_delay_nothing_is_lost(delayed):
    """D = 0, and W = 0 with any D, are the MDP itself."""
    expected = pytest.approx(no_delay(delayed.mdp), rel=1e-10, abs=1e-10)
    assert optimum(DelayedMDP(delayed.mdp, delayed.inter_arrival, 0)) == expected
    assert optimum(DelayedMDP(delayed.mdp, {-1: 0.5, 0: 0.5}, delayed.max_delay)) == expected


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_delay_costs_nothing_where_moves_are_sure(seed):
    rng = np.random.default_rng(seed)
    mdp = pkd.TabularMDP(np.eye(4)[rng.integers(4, size=(4, 3))], rng.normal(size=(4, 3)), 5)
    assert optimum(DelayedMDP(mdp, {0: 0.3, 1: 0.7}, 4)) == pytest.approx(no_delay(mdp), abs=1e-10)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2))
@settings(max_examples=15, deadline=None)
def test_a_delay_of_the_whole_episode_is_the_unobservable_mdp(seed, extra):
    """The best of the A^H action sequences, tried one by one."""
    rng, S, A, H = np.random.default_rng(seed), 3, 3, 4
    mdp = pkd.TabularMDP(sparse_rows(rng, (S, A), S), rng.normal(size=(S, A)), H)

    def worth(actions):
        law, total = np.eye(S)[0], 0.0
        for a in actions:
            total += law @ mdp.rewards[:, a]
            law = law @ mdp.transitions[:, a]
        return total

    blind = max(worth(actions) for actions in itertools.product(range(A), repeat=H))
    assert optimum(DelayedMDP.constant(mdp, H - 1 + extra)) == pytest.approx(blind, abs=1e-10)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_a_crude_bound_on_the_delay_costs_nothing_where_real_delays_are_short(delay_law):
    """The paper's remark on first-order behaviour.

    States alternate, Delta is 1 in the one and -1 in the other: delays are 0 or 1, and with D = 1
    or D = 6 the upper value is the same number, because the logarithms follow the real queues.
    """
    rng = np.random.default_rng(3)
    P = np.repeat(np.array([[0.0, 1.0], [1.0, 0.0]])[:, None, :], 2, axis=1)
    mdp = pkd.TabularMDP(P, rng.random((2, 2)), 7)
    laws = {(s, a): {1 - 2 * s: 1.0} for s in range(2) for a in range(2)}
    delay_counts = {"known": None, "unknown": DelayedMDP(mdp, laws, 1).inter_arrival * 1e8}[
        delay_law
    ]
    values = [
        pkd_delay.optimistic_plan(
            DelayedMDP(mdp, laws, D), P * 1e8, delay_counts, episodes=10
        ).value
        for D in (1, 2, 6)
    ]
    assert values[0] < 6.5
    assert values == pytest.approx([values[0]] * 3, abs=1e-12)


def test_queues_that_cannot_occur_are_not_planned():
    """Constant delay 4: at step h there are exactly A^min(h-1, 4) queues, of that one length, for
    each state that can be the last shown.
    """
    mdp = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 6)
    plan = pkd_delay.plan(DelayedMDP.constant(mdp, 4))
    for h in range(1, 7):
        rows = list(plan.rows(h))
        assert {len(row.state["queue"]) for row in rows} == {min(h - 1, 4)}
        assert len(rows) == 2 ** min(h - 1, 4) * (1 if h <= 5 else 2)


def test_the_first_action_set_of_three_is_chosen_before_the_state_is_seen():
    """A >= 3 tells max-then-expect from expect-then-max: the right answer is one of three, and
    blind play earns 1/3 a step.
    """
    P = np.zeros((3, 3, 3))
    P[:] = 1 / 3
    mdp = pkd.TabularMDP(P, np.eye(3), 3)
    delayed = DelayedMDP.constant(mdp, 1)
    assert solve(delayed.known(), delayed.law()) == pytest.approx(1 + 2 / 3, abs=1e-12)
    assert optimum(delayed) == pytest.approx(1 + 2 / 3, abs=1e-12)
