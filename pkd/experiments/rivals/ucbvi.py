"""UCBVI as published (Azar, Osband and Munos 2017), on whole states (x, y).

It sees an ordinary MDP of decisions: a state is (x, y), and what follows a decision is a pair of
everything that is paid until the next decision, and the state there. It knows the offers of
actions, the sizes and the range of returns, and neither P_Y nor phi_Z.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from pkd.episode import Episode
from pkd.expect import fraction, number, one_of, require
from pkd.experiments.agent import Agent
from pkd.experiments.rivals.q_learning import BONUSES, Bonus, QLearner, find_range
from pkd.explore import overrides
from pkd.explore.graph import CHANCE_STATE, DECIDE, Graph, count_queues
from pkd.model import END, PartiallyKnownMDP
from pkd.optimism import Guarantee
from pkd.planning.plan import Policy
from pkd.rules.schedule import Schedule, read_schedule

__all__ = ["UCBVI"]

Array = np.ndarray


class UCBVI(Agent):
    """UCBVI-CH (bonus="hoeffding") and UCBVI-BF ("bernstein") of Azar, Osband and Munos (2017).

        Q_h(s, a) = min(Q_h(s, a) of the last plan, H, sum_y p(y) (r + V_{h+1}(y)) + b),
                    H where N(s, a) = 0
        UCBVI-CH:  b = 7 H L / sqrt(N)
        UCBVI-BF:  b = sqrt(8 L Var_p(r + V_{h+1}) / N) + 14 H L / (3 N)
                     + sqrt(8 / N  sum_y p(y) min(100^2 H^3 S^2 A L^2 / N_{h+1}(y), H^2))
        L = log(5 S A H K / delta)

    p: the frequencies of what followed (s, a). N_{h+1}(y): how often step h + 1 was in y; after the
    last decision there is no next value, and no third term. Counts are shared between steps, as
    published, but for the last decision of a model whose settlement can differ: that has counts of
    its own. Returns are measured in units in which their range has the width H, the published case.
    `scale` multiplies b. "As published" means scale = 1 and a plan before every episode; the
    theorems are about tables, whose rewards depend on (s, a) alone.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> from pkd.tables.coin import coin
    >>> agent, world = rivals.UCBVI(scale=0.01), pkd.Simulator(coin, seed=1)
    >>> agent.begin(coin.model(), episodes=300, seed=1)
    >>> for _ in range(300):
    ...     agent.observe(world.episode(agent.act))
    >>> pkd.evaluate(coin, agent.policy())
    1.25
    >>> rivals.UCBVI().guarantee, agent.guarantee
    ('as published', 'no guarantee')
    """

    def __init__(
        self,
        *,
        bonus: Bonus = "bernstein",
        scale: float = 1.0,
        delta: float = 0.05,
        replan: Schedule = "every",
    ) -> None:
        require(
            number("UCBVI: scale", scale),
            fraction("UCBVI: delta", delta),
            one_of("UCBVI: bonus", bonus, BONUSES),
        )
        self.bonus: Bonus = bonus
        self.scale, self.delta = float(scale), float(delta)
        self.schedule = read_schedule(replan)
        self.replan = self.schedule.text

    @property
    def label(self) -> str:
        name = "UCBVI-BF" if self.bonus == "bernstein" else "UCBVI-CH"
        scale = "" if self.scale == 1 else f", {self.scale:g} of the bonus"
        return f"{name}{scale}{'' if self.replan == 'every' else f', {self.replan}'}"

    @property
    def guarantee(self) -> Guarantee:
        published = self.scale == 1 and self.replan == "every"
        return "as published" if published else "no guarantee"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        compiled = self.compile(model)
        self.model, self.horizon = model, compiled.horizon
        low, self.high = find_range(compiled)
        self.width = self.high - low
        alike = settles_like_other_steps(compiled.graph)
        self.states, self.pairs = count_states_and_pairs(compiled.graph, twice=not alike)
        self.logarithm = math.log(5 * max(self.pairs, 1) * self.horizon * episodes / self.delta)
        self.table = _Table(self.horizon)
        factor = self.schedule.features
        self.counts = _Counts(factor)
        self.last_counts = self.counts if alike else _Counts(factor)
        self.observed = 0
        self._due_at = self.schedule.next_due(0)
        self.q = np.zeros((self.horizon, 0))
        self.best = np.zeros((self.horizon, 0), np.int64)
        self._policy: Policy = partial(self._choose, self.best)

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self._policy(h, x, y)

    def policy(self) -> Policy:
        return self._policy

    def observe(self, episode: Episode) -> None:
        steps, table = QLearner.list_steps(self.model, episode), self.table
        places = [table.find(step.state, step.actions) for step in steps]
        places.append(self._find_end(episode))
        self.observed += 1
        due = self.observed >= self._due_at
        for t, (step, (state, after)) in enumerate(zip(steps, pairwise(places), strict=True)):
            pair = table.first[state] + step.actions.index(step.action)
            counts = self.last_counts if t == self.horizon - 1 else self.counts
            due |= counts.add(pair, step.reward, after)
            table.visits[t][state] += 1
        if due and steps:
            self._due_at = self.schedule.next_due(self.observed)
            self._plan()

    def _find_end(self, episode: Episode) -> int:
        """The state after the last decision: its counts are shared with those of other steps."""
        if self.last_counts is not self.counts or not episode.transitions:
            return -1
        state = episode.transitions[-1].x_next, episode.transitions[-1].y_next
        offer = self.model.actions(*state)
        return -1 if offer is END else self.table.find(state, tuple(offer))

    def _plan(self) -> None:
        table, before = self.table, self.q.shape[1]
        first, owner = np.array(table.first), np.array(table.owner)
        q = np.full((self.horizon, len(owner)), self.high)
        q[:, :before] = self.q
        v = np.zeros(len(first) + 1)  # its last entry stands for no next state
        for t in reversed(range(self.horizon)):
            counts = self.last_counts if t == self.horizon - 1 else self.counts
            visits = None
            if t + 1 < self.horizon:
                visits = np.array([*table.visits[t + 1], 1])
            pairs, hope = self._hope(counts, v, visits)
            q[t, pairs] = np.minimum(q[t, pairs], hope)
            v[:-1] = np.maximum.reduceat(q[t], first)
        offset = np.arange(len(owner)) - first[owner]
        tops = np.maximum.reduceat(q, first, axis=1)[:, owner]
        best = np.minimum.reduceat(np.where(q == tops, offset, len(owner)), first, axis=1)
        self.q = q
        if not np.array_equal(best, self.best):
            self.best = best
            self._policy = partial(self._choose, best)

    def _hope(self, counts: _Counts, v: Array, visits: Array | None) -> tuple[Array, Array]:
        """(pairs with data, their means plus bonus); visits: N_{h+1}, None after the last step."""
        pair, reward, after, count = counts.arrays()
        n = np.bincount(pair, count)
        seen = n > 0
        p = count / n[pair]
        value = reward + (v[after] if visits is not None else 0.0)
        mean = np.bincount(pair, p * value)
        n, L, w = np.maximum(n, 1.0), self.logarithm, self.width
        if self.bonus == "hoeffding":
            bonus = 7 * w * L / np.sqrt(n)
        else:
            variance = np.bincount(pair, p * (value - mean[pair]) ** 2)
            bonus = np.sqrt(8 * L * variance / n) + 14 * w * L / (3 * n)
            if visits is not None:
                unit, average = w / self.horizon, self.pairs / self.states
                most = 1e4 * self.horizon**3 * self.states**2 * average * L**2 * unit**2
                # min(most / visits, w^2) without a division by 0; nothing where nothing follows
                least = most / w**2 if w > 0 else 1.0
                rest = np.where(after >= 0, most / np.maximum(visits[after], least), 0.0)
                bonus += np.sqrt(8 * np.bincount(pair, p * rest) / n)
        return np.flatnonzero(seen), (mean + self.scale * bonus)[seen]

    def _choose(self, best: Array, h: int, x: Any, y: Any) -> Any:
        offer, state = self.model.actions(x, y), self.table.place.get((x, y), -1)
        if not 0 <= state < best.shape[1]:
            return next(iter(offer))  # never seen: all its values are the largest return
        return tuple(offer)[best[h - 1, state]]


class _Table:
    """The states that were seen: their numbers, their pairs (s, a), and visits at each step."""

    def __init__(self, horizon: int) -> None:
        self.place: dict[Any, int] = {}
        self.first: list[int] = []  # (states,) the first pair of each state
        self.owner: list[int] = []  # (pairs,) the state of each pair
        self.visits: list[list[int]] = [[] for _ in range(horizon)]  # (H, states)

    def find(self, state: Any, actions: tuple[Any, ...]) -> int:
        number = self.place.get(state)
        if number is None:
            number = self.place[state] = len(self.first)
            self.first.append(len(self.owner))
            self.owner.extend([number] * len(actions))
            for row in self.visits:
                row.append(0)
        return number


class _Counts:
    """How often each (paid, next state) followed each pair."""

    def __init__(self, factor: float | None) -> None:
        self._factor = math.inf if factor is None else factor
        self._number: dict[tuple[int, float, int], int] = {}
        self._count: list[int] = []
        self._n: dict[int, int] = {}
        self._due: dict[int, float] = {}
        self._fixed: tuple[Array, Array, Array] | None = None

    def add(self, pair: int, reward: float, after: int) -> bool:
        """One more; whether the count of the pair has grown by the factor since it last said so."""
        key = (pair, reward, after)
        number = self._number.get(key)
        if number is None:
            number = self._number[key] = len(self._count)
            self._count.append(0)
            self._fixed = None
        self._count[number] += 1
        n = self._n[pair] = self._n.get(pair, 0) + 1
        if self._factor == math.inf or n < self._due.get(pair, 1):
            return False
        self._due[pair] = self._factor * n
        return True

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """(pair, paid, next state or -1, how often), in the order of their first occurrence."""
        if self._fixed is None:
            pair, reward, after = zip(*self._number, strict=True) if self._number else ((), (), ())
            self._fixed = np.array(pair, np.int64), np.array(reward), np.array(after, np.int64)
        return *self._fixed, np.array(self._count, float)


def settles_like_other_steps(graph: Graph) -> bool:
    """Whether what follows the last decision is paid like what follows any other."""
    chance = any(
        kind == CHANCE_STATE for side in (graph.layers, graph.settled) for kind in side.kind
    )
    return not (chance or overrides(graph.model, "last_step") or overrides(graph.model, "final"))


def count_states_and_pairs(graph: Graph, *, twice: bool) -> tuple[int, int]:
    """The decision states and their actions; twice: those of the last step count by themselves.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> graph = pkd.explore.explore(coin.model())
    >>> count_states_and_pairs(graph, twice=False), count_states_and_pairs(graph, twice=True)
    ((2, 4), (4, 8))
    """
    side, states, pairs = graph.layers, 0, 0
    for nodes in (graph.union(), graph.members[graph.horizon - 1] if twice else {}):
        for node, mask in nodes.items():
            if side.kind[node] == DECIDE:
                states += count_queues(mask)
                pairs += count_queues(mask) * len(tuple(side.choices[node]))
    return states, pairs
