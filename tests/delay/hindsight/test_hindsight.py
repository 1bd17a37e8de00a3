"""What a finished episode teaches when the law of the delay is unknown: counts from raw Deltas, and
Deltas with their true law.
"""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd.episode import list_samples, list_visited
from pkd_delay import DelayedMDP, KnownDelay, UnknownDelay
from pkd_delay.augmented import SHOWN, TRAN
from pkd_delay.episodes import simulate
from pkd_delay.hindsight import DelayLaw
from pkd_delay.unknown import Arrival, Hindsight, Move
from tests.delay.episodes import steps_shown
from tests.delay.reference import occurring_features
from tests.delay.strategies import delayed_mdps

MDP = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 6)
LAW = {-1: 0.2, 0: 0.3, 1: 0.3, 2: 0.2}


def defined_samples(delayed, record):
    """N(s, a, s') and, for each j, N(s, a, j) = number of Delta >= j, split by Delta = j: straight
    from the raw episode.
    """
    samples = Counter()
    for s, a, s_next, delta in zip(
        record.states, record.actions, record.states[1:], record.deltas, strict=False
    ):
        samples[Move((s, a)), (s_next, SHOWN)] += 1
        samples[Arrival(s, a, 0, True), (s, TRAN if delta <= 0 else 1)] += 1
        for j in range(-1, min(delta, delayed.longest) + 1):
            samples[Arrival(s, a, j, False), (s, TRAN if delta == j else j + 1)] += 1
    return samples


@settings(max_examples=100, deadline=None)
@given(delayed_mdps(), st.integers(0, 1000))
def test_the_samples_are_the_counts_of_the_paper_for_every_feature_that_can_occur(delayed, seed):
    model = delayed.unknown()
    (record,) = simulate(
        delayed, lambda h, state, queue, waited: (h + waited) % delayed.mdp.n_actions, 1, seed
    )
    occurring = occurring_features(model)
    expected = {
        pair: n for pair, n in defined_samples(delayed, record).items() if pair[0] in occurring
    }
    assert Counter(model.samples(record.augmented(model))) == expected


@settings(max_examples=100, deadline=None)
@given(delayed_mdps(), st.integers(0, 1000))
def test_every_visited_feature_is_among_the_samples(delayed, seed):
    model = delayed.unknown()
    (record,) = simulate(
        delayed, lambda h, state, queue, waited: (state + h) % delayed.mdp.n_actions, 1, seed
    )
    episode = record.augmented(model)
    assert not Counter(list_visited(model, episode)) - Counter(model.samples(episode))


def test_hindsight_teaches_what_the_end_of_the_episode_hid():
    """Delta_5 = 2 is cut by the end, but its arrivals count: not shown together (-1), not at once
    (0), not after one step (1).
    """
    delayed = DelayedMDP(MDP, LAW, 3, shared=False)
    (record,) = simulate(delayed, lambda h, state, queue, waited: 0, 1, deltas=(0, 0, 0, 0, 2, 1))
    model = delayed.unknown()
    episode = record.augmented(model)
    visited, samples = (
        Counter(z for z, _ in list_visited(model, episode)),
        Counter(z for z, _ in model.samples(episode)),
    )
    arrivals = [z for z in samples if isinstance(z, Arrival)]
    assert sum(samples[z] for z in arrivals) > sum(visited[z] for z in arrivals)
    assert sum(samples[z] for z in arrivals if z.waited == -1) == 6


def test_known_laws_are_not_counted():
    delayed = DelayedMDP(MDP, LAW, 3)
    (record,) = simulate(delayed, lambda h, state, queue, waited: 0, 1)
    model = delayed.known()
    pairs = list_samples(model, record.augmented(model))
    assert pairs == [
        ((s, 0), s_next) for s, s_next in zip(record.states, record.states[1:], strict=False)
    ]


class TestRevealed:
    @pytest.mark.parametrize(
        ("revealed", "found"), [(None, "nothing"), ((0, 1), "2 numbers")], ids=["none", "too few"]
    )
    def test_an_episode_without_its_deltas_is_refused(self, revealed, found):
        delayed = DelayedMDP(MDP, LAW, 3)
        (record,) = simulate(delayed, lambda h, state, queue, waited: 0, 1)
        episode = pkd.Episode(record.augmented(delayed.unknown()).transitions, revealed)
        expected = f"revealed has {found}; expected the raw inter-arrival times of the 6 actions"
        with pytest.raises(pkd.ModelError, match=expected):
            list(delayed.unknown().samples(episode))

    def test_a_delta_beyond_the_bound_is_refused(self):
        with pytest.raises(
            pkd.ModelError, match="an inter-arrival time is 3; expected -1 to longest=2"
        ):
            list(DelayedMDP(MDP, LAW, 3).unknown().teach(None, 3))

    def test_what_the_base_reveals_is_passed_on_to_it(self):
        class Base(type(MDP.model())):
            def samples(self, episode):
                return [((0, 0), episode.revealed)]

        base = MDP.model()
        base.__class__ = Base
        model = UnknownDelay(base, 2, 3)
        (record,) = simulate(DelayedMDP(MDP, LAW, 3), lambda h, state, queue, waited: 0, 1)
        episode = pkd.Episode(record.augmented(model).transitions, Hindsight(record.deltas, base=1))
        assert (Move((0, 0)), (1, SHOWN)) in set(model.samples(episode))


def test_a_known_delay_on_top_of_an_unknown_one_still_learns_from_hindsight():
    """Both laws are asked at the end of an episode.

    Each action of each episode is one sample of a move and decides arrivals.
    """
    table = pkd.TabularMDP(MDP.transitions, MDP.rewards, 4)
    inner = DelayedMDP(table, LAW, 1, shared=False)
    outer = KnownDelay(inner.unknown(), {0: 0.5, 1: 0.5}, 1)
    run = pkd.learn(
        outer, DelayLaw(inner.law(), {0: 0.5, 1: 0.5}, outer), 20, optimism=pkd.MVP.practical()
    )
    assert sum(sum(row.values()) for z, row in run.counts.items() if isinstance(z, Move)) == 20 * 4
    assert (
        sum(
            sum(row.values()) for z, row in run.counts.items() if isinstance(z, Arrival) and z.empty
        )
        == 20 * 4
    )


def test_revealed_deltas_have_their_law_at_every_action_the_last_included():
    """The augmented simulation draws what was censored.

    Delta_t must follow P_delay(s_t, a_t) for each t, and not depend on s_{t+1}.
    """
    law = {
        (s, a): {-1: 0.2 + 0.1 * s, 0: 0.3, 1: 0.1 + 0.2 * a, 2: 0.4 - 0.1 * s - 0.2 * a}
        for s in range(2)
        for a in range(2)
    }
    delayed = DelayedMDP(MDP, law, 2)
    model = delayed.unknown()
    episodes = pkd.simulate((model, delayed.law()), lambda h, x, y: h % 2, 4000, seed=2)
    for t in range(6):
        acted = [
            [move for move in model.base_episode(episode) if move.action is not None][t]
            for episode in episodes
        ]
        for s in range(2):
            here = [
                episode.revealed[t]
                for episode, move in zip(episodes, acted, strict=True)
                if move.x == s
            ]
            for delta, p in law[s, (t + 1) % 2].items():
                if here:
                    share = sum(d == delta for d in here) / len(here)
                    assert share == pytest.approx(
                        p, abs=4.5 * math.sqrt(p * (1 - p) / len(here)) + 1e-12
                    )


@settings(max_examples=60, deadline=None)
@given(delayed_mdps(), st.integers(0, 1000))
def test_revealed_deltas_explain_the_trajectory(delayed, seed):
    """Clipping the revealed Deltas gives back the steps at which the states were shown."""
    model, H = delayed.unknown(), delayed.mdp.horizon
    (episode,) = pkd.simulate(
        (model, delayed.law()), lambda h, x, y: h % delayed.mdp.n_actions, 1, seed
    )
    delay, due = 0, []
    for t, delta in enumerate(episode.revealed, start=1):
        delay = min(max(delay + delta, 0), delayed.max_delay)
        due.append(min(t + 1 + delay, H + 1))
    assert steps_shown(model, episode) == due


def test_a_run_counts_every_action_of_every_episode():
    delayed = DelayedMDP(MDP, LAW, 2, shared=False)
    run = pkd_delay.learn(delayed, 50, delay_law="unknown", optimism=pkd.MVP.practical())
    moves = {z.feature: sum(row.values()) for z, row in run.counts.items() if isinstance(z, Move)}
    at_once = {
        (z.x, z.given): sum(row.values())
        for z, row in run.counts.items()
        if isinstance(z, Arrival) and z.empty
    }
    assert sum(moves.values()) == 50 * 6
    assert at_once == moves


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_a_learner_of_the_users_own_environment_makes_the_plans_that_the_counts_imply(delay_law):
    """Episodes from the Assumption-1 simulator, fed one by one.

    The upper value is that of `optimistic_plan` from the same raw data.
    """
    table = pkd.TabularMDP(MDP.transitions, MDP.rewards, 4)
    delayed = DelayedMDP(table, LAW, 2, shared=False)
    model = delayed.known() if delay_law == "known" else delayed.unknown()
    rule, K = pkd.MVP.practical(), 30
    learner = pkd.OptimisticLearner(model, K, optimism=rule, replan="every")
    moves, deltas = np.zeros((2, 2, 2)), np.zeros((2, 2, 4))
    for k in range(K):

        def policy(h, state, queue, waited):
            return learner.act(h, *model.place(state, None, queue, waited))

        (record,) = simulate(delayed, policy, 1, seed=k)
        learner.observe(record.augmented(model))
        for s, a, s_next, delta in zip(
            record.states, record.actions, record.states[1:], record.deltas, strict=False
        ):
            moves[s, a, s_next] += 1
            deltas[s, a, delta + 1] += 1
    plan = pkd_delay.optimistic_plan(
        delayed, moves, deltas if delay_law == "unknown" else None, episodes=K, optimism=rule
    )
    learner.act(1, *model.place(0, None, (), 0))
    assert learner.plan.value == pytest.approx(plan.value, rel=1e-10)
