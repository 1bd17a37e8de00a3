"""UCBVI against its published form, written a second time with plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.experiments import rivals
from pkd_delay import DelayedMDP
from pkd_delay.models.tables import random_mdp, two_state_chain
from tests.kiosk import LAW, Kiosk
from tests.rival_play import play, worth


class Published:
    """Algorithms 1 to 4 of Azar et al. 2017, on arrays."""

    def __init__(self, sizes: tuple[int, int, int], rewards: Any, K: int, bernstein: bool) -> None:
        self.H, self.S, self.A = sizes
        self.R, self.bernstein = rewards, bernstein
        self.L = math.log(5 * self.S * self.A * self.H * K / 0.05)
        self.N = np.zeros((self.S, self.A, self.S))
        self.visits = np.zeros((self.H + 1, self.S))
        self.Q = np.full((self.H, self.S, self.A), float(self.H))

    def observe(self, episode: pkd.Episode) -> None:
        for h, move in enumerate(episode):
            self.N[move.x, move.action, move.x_next] += 1
            self.visits[h, move.x] += 1

    def bonus(self, h: int, p: Any, n: float, V: Any) -> float:
        H, S, A, L = self.H, self.S, self.A, self.L
        if not self.bernstein:
            return 7 * H * L / math.sqrt(n)
        var = sum(p[y] * (V[y] - p @ V) ** 2 for y in range(S))
        third = 0.0
        for y in range(S) if h + 1 < H else ():
            seen = self.visits[h + 1, y]
            third += p[y] * min(100**2 * H**3 * S**2 * A * L**2 / seen if seen else math.inf, H**2)
        return math.sqrt(8 * L * var / n) + 14 * H * L / (3 * n) + math.sqrt(8 * third / n)

    def plan(self, scale: float) -> None:
        V = np.zeros(self.S)
        for h in reversed(range(self.H)):
            for s in range(self.S):
                for a in range(self.A):
                    n = self.N[s, a].sum()
                    if n > 0:
                        p = self.N[s, a] / n
                        hope = self.R[s, a] + p @ V + scale * self.bonus(h, p, n, V)
                        self.Q[h, s, a] = min(self.Q[h, s, a], self.H, hope)
            V = self.Q[h].max(axis=1)


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("scale", [1.0, 0.003])
def test_ucbvi_on_a_table_is_the_published_algorithm(bonus: Any, scale: float) -> None:
    """Returns of the chain reach from 0 to H: the units are the published ones."""
    chain, K = two_state_chain(horizon=4, stay=0.7), 120
    agent, world = rivals.UCBVI(bonus=bonus, scale=scale), pkd.Simulator(chain, seed=1)
    slow = Published((4, 2, 2), chain.rewards, K, bonus == "bernstein")
    agent.begin(chain.model(), episodes=K, seed=0)
    for _ in range(K):
        episode = world.episode(agent.act)
        assert [m.action for m in episode] == [
            int(slow.Q[h, m.x].argmax()) for h, m in enumerate(episode)
        ]
        agent.observe(episode)
        slow.observe(episode)
        slow.plan(scale)
        for (s, _), state in agent.table.place.items():
            first = agent.table.first[state]
            assert agent.q[:, first : first + 2] == pytest.approx(slow.Q[:, s], rel=1e-9)


def test_the_settlement_of_a_delayed_model_has_counts_of_its_own() -> None:
    """After the last action everything that is queued is paid."""
    late = DelayedMDP.constant(two_state_chain(horizon=4), 1)
    agent = rivals.UCBVI()
    play(agent, late, 10)
    assert agent.last_counts is not agent.counts
    *_, after, count = agent.last_counts.arrays()
    assert set(after.tolist()) == {-1}
    assert count.sum() == 10
    play(agent, two_state_chain(horizon=4), 10)
    assert agent.last_counts is agent.counts


@pytest.mark.parametrize(("bonus", "scale"), [("hoeffding", 0.005), ("bernstein", 0.02)])
@pytest.mark.parametrize(
    "problem",
    [
        random_mdp(states=3, horizon=4, successors=2, seed=2),
        DelayedMDP.constant(two_state_chain(horizon=4, stay=0.2), 1),
        (Kiosk(), LAW),
    ],
    ids=["table", "delayed", "kiosk"],
)
def test_ucbvi_with_a_small_bonus_learns_the_optimum(
    bonus: Any, scale: float, problem: Any
) -> None:
    agent = rivals.UCBVI(bonus=bonus, scale=scale, replan="doubling")
    play(agent, problem, 3000, seed=1)
    assert worth(agent, problem) == pytest.approx(pkd.plan(problem).value, abs=1e-9)


def test_the_upper_value_of_ucbvi_is_never_below_the_optimum() -> None:
    problem = random_mdp(states=3, horizon=3, successors=2, seed=5)
    optimum = pkd.plan(problem).value
    for bonus in ("hoeffding", "bernstein"):
        agent = rivals.UCBVI(bonus=bonus)  # type: ignore[arg-type]
        play(agent, problem, 200)
        first = agent.table.first[agent.table.place[0, None]]
        assert agent.q[0, first : first + 2].max() >= optimum


def test_doubling_plans_seldom_and_ends_with_the_same_data() -> None:
    chain = two_state_chain(horizon=3)
    policies = {}
    for replan in ("every", "doubling"):
        agent = rivals.UCBVI(replan=replan, scale=0.01)
        play(agent, chain, 400)
        policies[replan] = worth(agent, chain)
        assert agent.guarantee == "no guarantee"
    assert policies["doubling"] == pytest.approx(policies["every"])


def test_a_policy_of_ucbvi_that_was_shown_does_not_change_later() -> None:
    chain = two_state_chain(horizon=3)
    agent, world = rivals.UCBVI(scale=0.01), pkd.Simulator(chain)
    agent.begin(chain.model(), episodes=200, seed=0)
    shown = agent.policy()
    before = pkd.evaluate(chain, shown)
    for _ in range(200):
        agent.observe(world.episode(agent.act))
    assert agent.policy() is not shown
    assert pkd.evaluate(chain, shown) == before
