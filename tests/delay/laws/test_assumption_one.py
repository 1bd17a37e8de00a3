"""The simulator follows Assumption 1 to the letter: tables of the paper, order, no leaks, and
agreement with exact evaluation.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd_delay import Delayed, DelayedMDP, LateEnv
from pkd_delay.episodes import simulate
from tests.delay.reference import value_of
from tests.delay.strategies import TableBase, delayed_mdps, sparse_rows

SIX_STEPS = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 6)


def played(deltas, max_delay, longest=2):
    """An episode of six steps with the given Deltas."""
    delayed = DelayedMDP(SIX_STEPS, {-1: 0.25, 0: 0.25, longest: 0.5}, max_delay)
    return delayed, simulate(delayed, lambda h, state, queue, waited: h % 2, 1, deltas=deltas)[0]


class TestTableOne:
    """Table 1 of the paper: constant delay 2, H = 6; the Deltas are 2, 0, 0, 0, 0, 0."""

    def test_the_printed_rows(self):
        _, episode = played((2, 0, 0, 0, 0, 0), 2)
        assert str(episode).splitlines() == [
            "h    state  queue     counter  Delta  D",
            "1    s1     -         0        2      2",
            "2    s1     (a1)      1        -      -",
            "3    s1     (a1, a2)  2        -      -",
            "4    s2     (a2, a3)  0        0      2",
            "5    s3     (a3, a4)  0        0      2",
            "6    s4     (a4, a5)  0        0      2",
            "End  s7     -         -        -      -",
        ]

    def test_delta_equal_to_the_delay_at_every_step_shows_the_same_states(self):
        _, table = played((2, 0, 0, 0, 0, 0), 2)
        _, constant = played((2, 2, 2, 2, 2, 2), 2)
        late = [table.shown_at(t) for t in range(1, 8)]
        assert late == [constant.shown_at(t) for t in range(1, 8)] == [1, 4, 5, 6, 7, 7, 7]

    @pytest.mark.parametrize("kind", ["known", "unknown"])
    def test_the_augmented_episode_has_seventeen_moves_and_these_queues(self, kind):
        delayed, episode = played((2, 0, 0, 0, 0, 0), 2)
        assert augmented_queues(getattr(delayed, kind)(), episode) == (17, [3, 3, 3, 3, 2, 1])


class TestTableTwo:
    """Table 2 of the paper: Delta = 1, 2, -1, 1; s_3 and s_4 are both shown at step 6."""

    def test_the_printed_rows(self):
        _, episode = played((1, 2, -1, 1, 0, 0), 3)
        assert str(episode).splitlines() == [
            "h    state  queue         counter  Delta  D",
            "1    s1     -             0        1      1",
            "2    s1     (a1)          1        -      -",
            "3    s2     (a2)          0        2      3",
            "4    s2     (a2, a3)      1        -      -",
            "5    s2     (a2, a3, a4)  2        -      -",
            "6    s3     (a3, a4, a5)  (-1)     -1     2",
            "     s4     (a4, a5)      0        1      3",
            "End  s7     -             -        -      -",
        ]

    def test_the_delays(self):
        _, episode = played((1, 2, -1, 1, 0, 0), 3)
        assert episode.delays[:4] == (1, 3, 2, 3)

    @pytest.mark.parametrize("kind", ["known", "unknown"])
    def test_the_augmented_episode_has_seventeen_moves_and_these_queues(self, kind):
        delayed, episode = played((1, 2, -1, 1, 0, 0), 3)
        assert augmented_queues(getattr(delayed, kind)(), episode) == (17, [2, 4, 3, 3, 2, 1])


def augmented_queues(model, episode):
    """The number of moves and the queue lengths on tran."""
    moves = episode.augmented(model)
    reads = [model.read(move.x, move.y) for move in moves]
    return len(moves), [len(queue) for _, _, queue, counter in reads if counter == -2]


def test_labels_replace_the_symbols():
    _, episode = played((0, 0, 0, 0, 0, 0), 1)
    last = (
        episode.table(state_label=lambda s: ("low", "high")[s], action_label=str)
        .splitlines()[-1]
        .split()
    )
    assert last[:2] == ["End", ("low", "high")[episode.states[-1]]]


def told(delayed, seed, deltas=None):
    """What a policy with random actions is told at each step, and the record of the episode."""
    rng, seen = np.random.default_rng(seed), []

    def policy(h, state, queue, waited):
        seen.append((h, state, queue, waited))
        return int(rng.integers(delayed.mdp.n_actions))

    (record,) = simulate(delayed, policy, 1, seed, deltas)
    return seen, record


@settings(max_examples=100, deadline=None)
@given(delayed_mdps(), st.integers(0, 1000))
def test_every_state_is_shown_in_order_and_when_it_is_due(delayed, seed):
    seen, episode = told(delayed, seed)
    delay, due = 0, [1]
    for t, delta in enumerate(episode.deltas, start=1):
        delay = min(max(delay + delta, 0), delayed.max_delay)
        due.append(t + 1 + delay)
    for h, state, queue, waited in seen:
        t = max(t for t, at in enumerate(due, start=1) if at <= h)
        assert (state, queue) == (episode.states[t - 1], episode.actions[t - 1 : h - 1])
        assert waited == h - due[t - 1]


@settings(max_examples=40, deadline=None)
@given(delayed_mdps(), st.integers(0, 1000))
def test_a_reward_is_paid_when_the_state_that_it_led_to_is_shown(delayed, seed):
    env, rng, paid, over, t = LateEnv(delayed), np.random.default_rng(seed), [], False, 1
    env.reset(seed=seed)
    while not over:
        observation, reward, over, _, _ = env.step(rng.integers(delayed.mdp.n_actions))
        paid.append((int(observation["arrived"]), reward))
    episode = env.episode()
    for arrived, reward in paid:
        steps = range(t - 1, t - 1 + arrived)
        expected = sum(delayed.mdp.rewards[episode.states[i], episode.actions[i]] for i in steps)
        assert reward == pytest.approx(expected, abs=1e-12)
        t += arrived
    assert t == len(episode.states)


def test_hidden_states_and_delays_leave_no_trace_in_what_a_policy_is_told():
    """Two worlds that differ only in what is hidden: same s_1, same Deltas seen, other states
    behind. The policy must be told the same until step 4.
    """
    stays = pkd.TabularMDP([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2], [[0.0, 1.0], [5.0, 7.0]], 6)
    moves = pkd.TabularMDP([[[0.0, 1.0]] * 2, [[1.0, 0.0]] * 2], [[0.0, 1.0], [5.0, 7.0]], 6)
    first, _ = told(DelayedMDP.constant(stays, 3), 0)
    second, _ = told(DelayedMDP(moves, {-1: 0.0, 3: 1.0}, 3), 0, deltas=(3, 9, 9, 9, 9, 9))
    assert first[:4] == second[:4]
    assert first[4] != second[4]


def test_a_seed_repeats_its_episodes():
    delayed = DelayedMDP(SIX_STEPS, {-1: 0.3, 0: 0.3, 1: 0.4}, 2)
    first, again, other = (
        simulate(delayed, lambda h, s, q, c: h % 2, 20, seed) for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def scrambled(actions, salt):
    """An arbitrary fixed policy: the action depends on everything that may be used."""

    def policy(h, state, queue, waited):
        return actions[hash((salt, h, state, queue, waited)) % len(actions)]

    return policy


def agrees(delayed, policy, episodes=3000):
    """The mean return of the simulator against exact evaluation in both decompositions, within 4
    standard errors.
    """
    returns = np.array([episode.total for episode in simulate(delayed, policy, episodes, seed=5)])
    tolerance = 4 * returns.std() / math.sqrt(episodes) + 1e-9
    for model in (delayed.known(), delayed.unknown()):

        def augmented_policy(h, x, y, model=model):
            base_x, base_y, queue, waited = model.read(x, y)
            return policy(h, delayed.shown_as(base_x, base_y), queue, waited)

        assert returns.mean() == pytest.approx(
            value_of(model, delayed.law(), augmented_policy), abs=tolerance
        )


@pytest.mark.parametrize("salt", range(4))
def test_simulated_returns_agree_with_exact_evaluation_on_tables(salt):
    rng = np.random.default_rng(salt)
    mdp = pkd.TabularMDP(
        sparse_rows(rng, (3, 2), 3), rng.normal(size=(3, 2)), 5, rng.dirichlet(np.ones(3))
    )
    agrees(DelayedMDP(mdp, sparse_rows(rng, (3, 2), 4), 3), scrambled((0, 1), salt))


@pytest.mark.parametrize("salt", range(4))
def test_simulated_returns_agree_with_exact_evaluation_on_composed_bases(salt):
    rng = np.random.default_rng(salt)
    base = TableBase(rng, 2, 5, ends=salt % 2 == 0, chance_start=salt > 1)
    law = {f"z{i}": dict(enumerate(sparse_rows(rng, (), 2).tolist())) for i in range(3)}
    delays = rng.dirichlet(np.ones(4), (2, 2, 2))

    class Problem:
        def model(self):
            return base

        def law(self):
            return law

    agrees(Delayed(Problem(), lambda x, y, a: delays[x, y, a].tolist(), 3), scrambled((0, 1), salt))
