"""Late actions against the best history-dependent policy, written from the definition alone."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.transforms import Travel
from pkd_delay import DelayChain, Delayed, DelayedMDP, KnownDelay, Lags
from pkd_delay.models.tables import random_mdp
from pkd_delay.transforms.late_actions import LateCommands
from tests.delay.reference import best_in_base, solve
from tests.delay.transforms.test_composition import DEMAND, Inventory

CHAIN = pkd.TabularMDP([[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2], np.eye(2), 6)


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-10, abs=1e-10)


def best_with_late_commands(P, r, H, start, first, next_due):
    """Expectimax over what is seen: the states, the commands sent, and which one is in force.

    next_due(h, dues) -> [(p, step at which the command of step h takes effect)]. A hidden world is
    the list of these steps. The newest command that is due is executed, `first` before any is.
    """
    S, A = r.shape

    def best(h, s, sent, worlds):
        if h > H:
            return 0.0
        values = []
        for a in range(A):
            commands, groups = (*sent, a), defaultdict(lambda: defaultdict(float))
            for dues, weight in worlds.items():
                for p, due in next_due(h, dues):
                    after = (*dues, due)
                    come = [k for k, step in enumerate(after) if step <= h]
                    groups[max(come, default=-1)][after] += weight * p
            total = 0.0
            for k, group in groups.items():
                done = first if k < 0 else commands[k]
                total += sum(group.values()) * r[s, done]
                for t in range(S):
                    if P[s, done, t] > 0:
                        scaled = {dues: w * P[s, done, t] for dues, w in group.items()}
                        total += best(h + 1, t, commands, scaled)
            values.append(total)
        return max(values)

    return sum(p * best(1, s, (), {(): 1.0}) for s, p in enumerate(start) if p > 0)


def changing(law, largest):
    """D_h = clip(D_{h-1} + Delta_h; 0, largest); the command of step h is due at h + D_h."""

    def next_due(h, dues):
        before = dues[-1] - (h - 1) if dues else 0
        found = [(p, h + min(max(before + delta, 0), largest)) for delta, p in law.items()]
        return [pair for pair in found if pair[0] > 0]

    return next_due


def travelling(law):
    return lambda h, dues: [(p, h + steps) for steps, p in law.items() if p > 0]


@st.composite
def tables(draw):
    seed = draw(st.integers(0, 10**6))
    S, A, H = draw(st.integers(2, 3)), draw(st.integers(2, 3)), draw(st.integers(1, 4))
    mdp = random_mdp(states=S, actions=A, horizon=H, successors=2, seed=seed)
    return mdp, np.random.default_rng(seed), draw(st.integers(0, A - 1))


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@settings(max_examples=60, deadline=None)
@given(case=tables())
def test_travelling_commands_are_planned_as_well_as_any_history_dependent_policy_could(large, case):
    mdp, rng, first = case
    law = dict(enumerate(rng.dirichlet(np.ones(3))))
    law = law if rng.random() < 0.7 else {int(rng.integers(3)): 1.0}
    model = LateCommands(mdp, Lags(law), first_action=first)
    expected = best_with_late_commands(
        mdp.transitions, mdp.rewards, mdp.horizon, mdp.start_distribution, first, travelling(law)
    )
    assert close(pkd.plan(pkd.compile(model, large=large), mdp.law()).value, expected)


@pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
@settings(max_examples=60, deadline=None)
@given(case=tables(), largest=st.integers(0, 3))
def test_commands_in_order_are_planned_as_well_as_any_history_dependent_policy_could(
    large, case, largest
):
    mdp, rng, first = case
    law = dict(zip((-1, 0, 1, 2), rng.dirichlet(np.ones(4)).tolist(), strict=True))
    model = LateCommands(mdp, law, largest, first_action=first)
    expected = best_with_late_commands(
        mdp.transitions,
        mdp.rewards,
        mdp.horizon,
        mdp.start_distribution,
        first,
        changing(law, largest),
    )
    assert close(pkd.plan(pkd.compile(model, large=large), mdp.law()).value, expected)


@settings(max_examples=30, deadline=None)
@given(case=tables())
def test_a_chain_of_delays_is_planned_as_well_as_any_history_dependent_policy_could(case):
    mdp, rng, first = case
    rows = np.triu(rng.random((3, 3)), -1)
    rows /= rows.sum(axis=1, keepdims=True)

    def next_due(h, dues):
        before = dues[-1] - (h - 1) if dues else 0
        return [(p, h + delay) for delay, p in enumerate(rows[before]) if p > 0]

    expected = best_with_late_commands(
        mdp.transitions, mdp.rewards, mdp.horizon, mdp.start_distribution, first, next_due
    )
    model = LateCommands(mdp, DelayChain(rows), first_action=first)
    assert close(pkd.plan(model, mdp.law()).value, expected)


@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_a_constant_delay_of_actions_is_one_of_observations_after_the_first_commands(d, seed):
    """Katsikopoulos and Engelbrecht (2003): at its execution an action is d states old either way.

    The first d steps are not the agent's own. So the world with late actions is the one with late
    observations that starts where d first actions lead, and pays on the way what they pay.
    """
    mdp = random_mdp(states=3, actions=3, horizon=6, successors=2, seed=seed)
    start, paid = np.array(mdp.start_distribution), 0.0
    for _ in range(d):
        paid += start @ mdp.rewards[:, 0]
        start = start @ mdp.transitions[:, 0]
    after = 0.0
    for s, p in enumerate(mdp.start_distribution):
        if p > 0:
            after += p * _best_after(mdp, s, d)
    late = pkd.plan(LateCommands(mdp, d, first_action=0), mdp.law()).value
    assert close(late, paid + after)


def _best_after(mdp, s, d):
    """The world waits in s for d steps, in which it moves by action 0 unseen and pays nothing."""
    S, A = mdp.rewards.shape
    P, r = np.zeros(((d + 1) * S, A, (d + 1) * S)), np.zeros(((d + 1) * S, A))
    for k in range(d):
        for t in range(S):
            P[k * S + t, :, (k + 1) * S : (k + 2) * S] = mdp.transitions[t, 0]
    P[d * S :, :, d * S :], r[d * S :] = mdp.transitions, mdp.rewards
    begun = pkd.TabularMDP(P, r, mdp.horizon, start=s)
    # An observation delay of d from the start on, and the first d actions do nothing.
    return pkd.plan(DelayedMDP.constant(begun, d).known(), begun.law()).value


def test_a_base_with_chance_states_and_a_final_pay_is_the_same_without_lateness():
    base = Inventory()
    assert close(pkd.plan(LateCommands(base, 0), DEMAND).value, pkd.plan(base, DEMAND).value)


def test_a_late_order_of_an_inventory_is_worth_less_and_learns_one_law():
    base = Inventory()
    values = [pkd.plan(LateCommands(base, d), DEMAND).value for d in range(4)]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
    run = pkd.learn(LateCommands(base, {0: 0.5, 1: 0.5}, 1), DEMAND, 20)
    assert {z: sum(row.values()) for z, row in run.counts.items()} == {"demand": 20 * base.horizon}


class TestComposition:
    """Late observations of a world with late actions, and the other way round."""

    @pytest.mark.parametrize("order", ["actions inside", "observations inside"])
    def test_constant_delays_add_up(self, order):
        if order == "actions inside":
            model = KnownDelay(LateCommands(CHAIN, 1), {1: 1.0}, 1)
        else:
            model = LateCommands(KnownDelay(CHAIN, {1: 1.0}, 1), 1)
        expected = sum((1 + 0.8 ** min(t, 2)) / 2 for t in range(6))
        assert close(pkd.plan(model, CHAIN.law()).value, expected)

    def test_late_news_of_a_late_world_is_planned_as_well_as_any_history_dependent_policy(self):
        mdp = random_mdp(states=2, actions=2, horizon=4, successors=2, seed=8)
        inner = LateCommands(mdp, Lags({0: 0.4, 1: 0.6}))
        law = {-1: 0.3, 0: 0.3, 1: 0.4}
        expected = best_in_base(inner, mdp.law(), lambda state, a: (0.3, 0.3, 0.4), 2)
        assert close(pkd.plan(KnownDelay(inner, law, 2), mdp.law()).value, expected)

    def test_knowing_at_once_which_command_is_in_force_is_worth_something(self):
        mdp = random_mdp(states=3, actions=3, horizon=6, successors=2, seed=3)
        travel, delay = Lags({0: 0.5, 2: 0.5}), {1: 1.0}
        told_late = pkd.plan(KnownDelay(LateCommands(mdp, travel), delay, 1), mdp.law()).value
        told_at_once = pkd.plan(LateCommands(KnownDelay(mdp, delay, 1), travel), mdp.law()).value
        assert told_at_once > told_late

    def test_an_unknown_delay_inside_is_learned_from_what_its_law_reveals(self):
        inner = Delayed(CHAIN, {0: 0.5, 1: 0.5}, 1, "unknown")
        model = LateCommands(inner.model(), 1)
        known = pkd.plan(LateCommands(inner.known(), 1), CHAIN.law()).value
        run = pkd.learn(model, model.law(inner.law()), 10)
        assert close(run.optimal_value, known)
        assert close(run.optimal_value, solve(model, inner.law()))
        assert all(run.upper_values >= known - 1e-9)

    def test_all_three_at_once_have_no_violation(self):
        world = pkd.Missing(LateCommands(CHAIN, 1), 0.3, longest=2)
        model = KnownDelay(world, {0: 0.5, 1: 0.5}, 1)
        run = pkd.learn(model, CHAIN.law(), 200, optimism=pkd.Certified())
        assert all(run.upper_values >= run.optimal_value - 1e-9)
        assert set(run.counts) <= {(s, a) for s in (0, 1) for a in (0, 1)}


@pytest.mark.parametrize("law", [2, Lags({0: 0.5, 1: 0.5}), {-1: 0.3, 0: 0.4, 1: 0.3}])
def test_certified_learning_has_no_violation(law):
    mdp = random_mdp(states=3, actions=2, horizon=5, successors=2, seed=5)
    model = LateCommands(mdp, law, 2)
    pkd.check_model(model, mdp.law())
    run = pkd.learn(model, mdp.law(), 300, optimism=pkd.Certified())
    assert all(run.upper_values >= run.optimal_value - 1e-9)
    assert sum(sum(row.values()) for row in run.counts.values()) == 300 * 5


def test_a_long_delay_is_compiled_by_its_queue():
    mdp = random_mdp(states=10, actions=4, horizon=12, successors=3, seed=1)
    compiled = pkd.compile(LateCommands(mdp, 6))
    assert type(compiled).__name__ == "StripeEngine"
    assert pkd.plan(compiled, mdp.law()).value < pkd.plan(mdp.model(), mdp.law()).value


class TestBadInput:
    def test_a_first_action_that_does_not_exist_is_refused(self):
        with pytest.raises(pkd.ModelError, match=r"first_action is 7; expected one of \[0, 1\]"):
            LateCommands(CHAIN, 1, first_action=7)

    def test_an_action_that_a_later_state_does_not_offer_is_refused(self):
        model = LateCommands(Inventory(same_actions=False), 1)
        with pytest.raises(pkd.ModelError, match=r"which offers .*; say `instead="):
            pkd.plan(model, DEMAND)

    def test_instead_says_what_is_done_there_and_all_actions_can_be_sent(self):
        model = LateCommands(
            Inventory(same_actions=False), 1, instead=lambda x, y, a: min(a, 3 - y)
        )
        assert sorted(model.commands) == [0, 1, 2, 3]
        assert pkd.plan(model, DEMAND).value < pkd.plan(Inventory(same_actions=False), DEMAND).value

    def test_a_law_that_grows_needs_a_largest_delay(self):
        with pytest.raises(pkd.ModelError, match="delays that grow, so say how far"):
            LateCommands(CHAIN, {-1: 0.5, 1: 0.5})

    @pytest.mark.parametrize("law", [-1, {0: 0.5}, {-1: 1.0}, {0.5: 1.0}, {}, "soon"])
    def test_a_wrong_travel_time_is_refused(self, law):
        with pytest.raises(pkd.ModelError, match="travel time"):
            Travel(law)
