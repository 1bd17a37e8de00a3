"""Q-learning and optimistic Q-learning, against their update rules written a second time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.experiments import rivals
from pkd_delay.models.tables import random_mdp, riverswim, two_state_chain
from tests.kiosk import LAW, Kiosk
from tests.rival_play import play, worth

TWO = pkd.TabularMDP(
    [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=2
)


def move(s: int, a: int, s_next: int, reward: float) -> pkd.Transition:
    return pkd.Transition(s, None, a, s_next, None, reward)


def test_the_first_targets_are_taken_whole_and_later_ones_by_n_to_the_minus_power() -> None:
    agent = rivals.QLearning(epsilon=0.0, power=0.5)
    agent.begin(TWO.model(), episodes=3, seed=0)
    agent.observe(pkd.Episode([move(0, 0, 1, 0.0), move(1, 1, 1, 1.0)]))
    assert agent.rows[2, (1, None)].q == [0.0, 1.0]
    assert agent.rows[1, (0, None)].q == [0.0, 0.0]  # V_2 was 0 when the first step was taken
    agent.observe(pkd.Episode([move(0, 0, 1, 0.0), move(1, 1, 1, 1.0)]))
    assert agent.rows[1, (0, None)].q == [pytest.approx(2**-0.5), 0.0]


def test_chance_states_and_the_final_pay_belong_to_the_last_decision() -> None:
    """Order 1 (-1); demand 1 is served (+2); the stock that is left is paid by half."""
    agent = rivals.QLearning(epsilon=0.0)
    agent.begin(Kiosk(), episodes=1, seed=0)
    moves = [
        pkd.Transition(None, 1, 1, 1, 2, -1.0),
        pkd.Transition(1, 2, None, None, 1, 2.0),
        pkd.Transition(None, 1, 0, 0, 1, 0.0),
        pkd.Transition(0, 1, None, None, 1, 0.0),
    ]
    agent.observe(pkd.Episode(moves, final=0.5))
    assert agent.rows[1, (None, 1)].q == [0.0, 1.0]
    assert agent.rows[2, (None, 1)].q == [0.5, 0.0]


def test_rewards_that_an_episode_leaves_out_are_asked_of_the_model() -> None:
    agent = rivals.QLearning(epsilon=0.0)
    agent.begin(TWO.model(), episodes=1, seed=0)
    agent.observe(pkd.Episode([pkd.Transition(0, None, 0, 1, None)]))
    agent.observe(pkd.Episode([pkd.Transition(1, None, 0, 1, None)]))
    assert agent.rows[1, (1, None)].q == [1.0, 0.0]


@pytest.mark.parametrize("seed", range(3))
def test_q_learning_finds_the_optimum_of_a_small_table(seed: int) -> None:
    problem = random_mdp(states=3, actions=3, horizon=3, successors=2, seed=seed)
    agent = rivals.QLearning(epsilon=0.5, decay=0.0)
    play(agent, problem, 6000, seed=seed)
    agent.epsilon = 0.0
    agent.observe(pkd.Episode([]))  # the next episode is played without chance
    assert worth(agent, problem) == pytest.approx(pkd.plan(problem).value, abs=0.02)


def test_the_values_of_q_learning_converge_to_those_of_the_plan() -> None:
    """In a deterministic table with alpha = 1 they are exact after enough visits."""
    steps = [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [1, 0, 0]]]
    problem = pkd.TabularMDP(steps, [[0.1, 0.0], [0.5, 0.2], [0.0, 1.0]], horizon=4)
    agent, plan = rivals.QLearning(decay=0.0, power=0.0), pkd.plan(problem)
    play(agent, problem, 2000)
    for (h, (x, y)), row in agent.rows.items():
        assert row.q == [pytest.approx(q) for q in plan.values(h, x, y).values()]


def test_a_share_epsilon_of_all_steps_is_left_to_chance() -> None:
    """All values are 0, so the greedy action is 0; chance takes 1 half of the time."""
    still = pkd.TabularMDP(np.ones((1, 2, 1)), np.zeros((1, 2)), horizon=10)
    agent = rivals.QLearning(epsilon=0.4, decay=0.0)
    world = pkd.Simulator(still, seed=4)
    agent.begin(still.model(), episodes=2000, seed=4)
    ones = 0
    for _ in range(2000):
        episode = world.episode(agent.act)
        ones += sum(step.action for step in episode)
        agent.observe(episode)
    assert ones / 20_000 == pytest.approx(0.2, abs=0.012)


def test_epsilon_decays_with_the_episodes() -> None:
    agent = rivals.QLearning(epsilon=1.0, decay=0.5)
    agent.begin(two_state_chain(horizon=1000).model(), episodes=100, seed=0)
    assert len(agent.draw_chances()) == 1000
    agent.observed = 99  # 1 / sqrt(100)
    assert len(agent.draw_chances()) == pytest.approx(100, abs=40)


def test_a_policy_stays_the_same_object_while_it_does_not_change() -> None:
    agent = rivals.QLearning(epsilon=0.0)
    agent.begin(TWO.model(), episodes=3, seed=0)
    episode = pkd.Episode([move(0, 0, 0, 0.0), move(0, 0, 0, 0.0)])
    agent.observe(episode)
    first = agent.policy()
    agent.observe(episode)
    assert agent.policy() is first
    agent.observe(pkd.Episode([move(0, 1, 0, 1.0), move(0, 0, 0, 0.0)]))
    assert agent.policy() is not first


def test_a_policy_that_was_shown_does_not_change_later() -> None:
    agent = rivals.QLearning(epsilon=0.0)
    agent.begin(TWO.model(), episodes=3, seed=0)
    before = agent.policy()
    agent.observe(pkd.Episode([move(0, 1, 0, 1.0), move(0, 0, 0, 0.0)]))
    assert (before(1, 0, None), agent.policy()(1, 0, None)) == (0, 1)


class Published:
    """Algorithms 1 and 2 of Jin et al. 2018, on arrays, with sums instead of running moments."""

    def __init__(self, problem: pkd.TabularMDP, K: int, triples: int, **constants: Any) -> None:
        self.c, self.c1, self.c2, self.p = (constants[k] for k in ("c", "c1", "c2", "delta"))
        S, A, H = problem.n_states, problem.n_actions, problem.horizon
        self.H, self.SA = H, triples / H
        self.iota = math.log(triples * K / self.p)
        self.Q = np.full((H + 1, S, A), float(H))
        self.V = np.full((H + 1, S), float(H))
        self.V[H] = 0.0
        self.seen: dict[Any, list[float]] = {}
        self.beta = np.zeros((H, S, A))
        self.bernstein = constants["bonus"] == "bernstein"

    def learn(self, episode: pkd.Episode) -> None:
        for h, m in enumerate(episode):
            s, a, H, iota = m.x, m.action, self.H, self.iota
            values = self.seen.setdefault((h, s, a), [])
            values.append(self.V[h + 1, m.x_next])
            t = len(values)
            alpha = (H + 1) / (H + t)
            b = self.c * math.sqrt(H**3 * iota / t)
            if self.bernstein:
                W = float(np.var(values))
                big = math.sqrt(H / t * (W + H) * iota) + math.sqrt(H**7 * self.SA) * iota / t
                beta = min(self.c1 * big, self.c2 * math.sqrt(H**3 * iota / t))
                b = (beta - (1 - alpha) * self.beta[h, s, a]) / (2 * alpha)
                self.beta[h, s, a] = beta
            self.Q[h, s, a] = (1 - alpha) * self.Q[h, s, a] + alpha * (m.reward + values[-1] + b)
            self.V[h, s] = min(H, self.Q[h, s].max())


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_optimistic_q_learning_is_the_published_algorithm(bonus: Any, scale: float) -> None:
    """Returns of the chain reach from 0 to H, so the units are the published ones.

    The first state is fixed: 2 triples at step 1 and 4 at each of the others.
    """
    chain, K = two_state_chain(horizon=4, stay=0.6), 300
    constants = {"c": 2**0.5 * scale, "c1": scale, "c2": 2 * 2**0.5 * scale, "delta": 0.05}
    agent = rivals.OptimisticQ(bonus=bonus, **constants)
    slow = Published(chain, K, triples=2 + 3 * 4, bonus=bonus, **constants)
    world = pkd.Simulator(chain, seed=2)
    agent.begin(chain.model(), episodes=K, seed=2)
    for _ in range(K):
        episode = world.episode(agent.act)
        assert [m.action for m in episode] == [
            int(slow.Q[h, m.x].argmax()) for h, m in enumerate(episode)
        ]
        agent.observe(episode)
        slow.learn(episode)
    for (h, (s, _)), row in agent.rows.items():
        assert row.q == [pytest.approx(q, rel=1e-10) for q in slow.Q[h - 1, s]]


def test_optimistic_q_learning_with_theory_constants_never_believes_too_little() -> None:
    """At every visited state and step, after every episode of every run."""
    problem = random_mdp(states=3, horizon=4, successors=3, seed=1)
    plan = pkd.plan(problem)
    for seed in range(5):
        agent = rivals.OptimisticQ()
        play(agent, problem, 300, seed=seed)
        for (h, (x, y)), row in agent.rows.items():
            assert all(
                q >= value for q, value in zip(row.q, plan.values(h, x, y).values(), strict=True)
            )


def test_optimism_is_lost_without_the_bonus() -> None:
    problem = random_mdp(states=3, horizon=4, successors=3, seed=1)
    plan, agent = pkd.plan(problem), rivals.OptimisticQ(c=0.0)
    play(agent, problem, 300)
    assert any(
        q < value
        for (h, (x, y)), row in agent.rows.items()
        for q, value in zip(row.q, plan.values(h, x, y).values(), strict=True)
    )


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_optimistic_q_learning_with_a_small_bonus_finds_the_way_upstream(bonus: Any) -> None:
    """Where Q-learning that starts at 0 stays at the small reward."""
    swim = riverswim(horizon=8, length=3)
    agent = rivals.OptimisticQ(bonus=bonus, c=0.02, c1=1.0, c2=0.04)
    play(agent, swim, 4000, seed=1)
    assert worth(agent, swim) > 0.9 * pkd.plan(swim).value
    plain = rivals.QLearning()
    play(plain, swim, 4000, seed=1)
    assert worth(plain, swim) < 0.1 * pkd.plan(swim).value


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
def test_optimistic_q_learning_does_not_depend_on_the_unit_of_rewards(bonus: Any) -> None:
    """r -> 8 r changes no action: the range of returns is 8 times as wide, and so is the bonus."""
    plain = two_state_chain(horizon=4, stay=0.6)
    moved = pkd.TabularMDP(plain.transitions, 8 * plain.rewards, 4)
    constants: Any = {"c": 0.1, "c1": 0.02, "c2": 10.0, "bonus": bonus}
    one, other = rivals.OptimisticQ(**constants), rivals.OptimisticQ(**constants)
    returns = play(one, plain, 200, seed=3)
    assert play(other, moved, 200, seed=3) == pytest.approx(8 * returns)
    for key, row in one.rows.items():
        assert other.rows[key].q == [pytest.approx(8 * q, rel=1e-9) for q in row.q]


def test_rewards_without_a_spread_need_no_bonus() -> None:
    still = pkd.TabularMDP(np.ones((1, 2, 1)), np.full((1, 2), 0.5), horizon=3)
    for bonus in ("hoeffding", "bernstein"):
        agent = rivals.OptimisticQ(bonus=bonus)  # type: ignore[arg-type]
        play(agent, still, 5)
        assert worth(agent, still) == pytest.approx(1.5)


def test_bad_options_of_q_learners_are_named_together() -> None:
    with pytest.raises(pkd.ModelError) as error:
        rivals.QLearning(epsilon=1.5, power=True)
    assert len(error.value.findings) == 2
    with pytest.raises(pkd.ModelError, match="expected one of hoeffding, bernstein"):
        rivals.OptimisticQ(bonus="freedman")  # type: ignore[arg-type]


def test_a_kiosk_is_learned_through_its_chance_states() -> None:
    agent = rivals.QLearning(epsilon=0.5, decay=0.0)
    play(agent, (Kiosk(), LAW), 4000, seed=1)
    agent.epsilon = 0.0
    agent.observe(pkd.Episode([]))
    assert worth(agent, (Kiosk(), LAW)) == pytest.approx(pkd.plan(Kiosk(), LAW).value, abs=1e-9)
