"""The augmented MDP loses nothing: its optimum is the best over all history-dependent policies."""

import numpy as np
import pytest
from hypothesis import given, settings

import pkd
from pkd_delay import DelayedMDP
from tests.delay.reference import Exact, best_in_tables, mvp_delayed, solve, value_of
from tests.delay.strategies import delayed_mdps


def brute_force(delayed):
    mdp = delayed.mdp
    return best_in_tables(
        mdp.transitions,
        mdp.rewards,
        mdp.horizon,
        mdp.start_distribution,
        delayed.inter_arrival,
        delayed.max_delay,
    )


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@pytest.mark.parametrize("kind", ["known", "unknown"])
@settings(max_examples=200, deadline=None)
@given(delayed=delayed_mdps())
def test_the_planner_finds_the_best_history_dependent_policy(kind, large, delayed):
    model = getattr(delayed, kind)()
    assert close(
        pkd.plan(pkd.compile(model, large=large), delayed.law()).value, brute_force(delayed)
    )


@settings(max_examples=100, deadline=None)
@given(delayed_mdps())
def test_both_decompositions_are_one_process(delayed):
    known, unknown = (solve(model, delayed.law()) for model in (delayed.known(), delayed.unknown()))
    assert close(known, unknown)
    assert close(known, brute_force(delayed))


@settings(max_examples=100, deadline=None)
@given(delayed_mdps())
def test_the_corrected_recursion_of_the_paper_has_the_same_optimum(delayed):
    mdp = delayed.mdp
    values = Exact(mdp.transitions, mdp.rewards, delayed.inter_arrival)
    augmented = mvp_delayed(
        values, mdp.n_states, mdp.n_actions, mdp.horizon, delayed.longest, delayed.max_delay
    )
    start = mdp.start_distribution
    assert close(
        sum(start[s] * augmented[s, (), 0, 1] for s in range(mdp.n_states)), brute_force(delayed)
    )


@settings(max_examples=50, deadline=None)
@given(delayed_mdps())
def test_a_policy_is_worth_the_same_in_both_decompositions_and_in_the_engine(delayed):
    A = delayed.mdp.n_actions

    def policy_of(model):
        def policy(h, x, y):
            state, _, queue, waited = model.read(x, y)
            return (state + 2 * h + sum(queue) + waited) % A

        return policy

    worth = [
        value_of(model, delayed.law(), policy_of(model))
        for model in (delayed.known(), delayed.unknown())
    ]
    assert close(worth[0], worth[1])
    assert close(pkd.evaluate(delayed.known(), delayed.law(), policy_of(delayed.known())), worth[0])
    assert close(
        pkd.evaluate(delayed.unknown(), delayed.law(), policy_of(delayed.unknown())), worth[0]
    )


class TestTheEmptyQueue:
    """Erratum 1: with an empty queue Delta = -1 is clipped to 0.

    P uniform over 2 states, r = identity, H = 3, D = 2, Delta = -1 or 1.
    """

    P, r = np.full((2, 2, 2), 0.5), np.eye(2)
    law = np.tile([0.5, 0.0, 0.5], (2, 2, 1))

    def test_the_best_history_dependent_policy_earns_two_and_a_half(self):
        assert best_in_tables(self.P, self.r, 3, [1.0, 0.0], self.law, 2) == pytest.approx(
            2.5, abs=1e-12
        )

    def test_both_adapters_earn_two_and_a_half(self):
        delayed = DelayedMDP(pkd.TabularMDP(self.P, self.r, 3), {-1: 0.5, 1: 0.5}, 2)
        assert pkd.plan(delayed.known(), delayed.law()).value == pytest.approx(2.5, abs=1e-12)
        assert pkd.plan(delayed.unknown(), delayed.law()).value == pytest.approx(2.5, abs=1e-12)

    def test_the_rule_as_printed_gives_two_and_a_quarter(self):
        printed = mvp_delayed(Exact(self.P, self.r, self.law, corrected=False), 2, 2, 3, 1, 2)
        assert printed[0, (), 0, 1] == pytest.approx(2.25, abs=1e-12)
