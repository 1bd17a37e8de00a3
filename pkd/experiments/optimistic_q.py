"""Optimistic Q-learning: "Is Q-learning provably efficient?" (Jin, Allen-Zhu, Bubeck, Jordan 2018).

Its values start at the largest return and come down as a bonus for every visit shrinks, so that
what is rarely tried looks good. It learns no law.
"""

from __future__ import annotations

import math
from typing import Literal

from pkd.engine import Compiled, compile
from pkd.experiments.options import check_options
from pkd.experiments.q_learning import QLearner, Row, Step
from pkd.graph import DECIDE, Graph, count_queues
from pkd.model import PartiallyKnownMDP
from pkd.optimism import Guarantee

__all__ = ["OptimisticQ", "count_triples", "find_range"]

HOEFFDING_C = math.sqrt(2)  # enough for optimism, see `OptimisticQ`
Bonus = Literal["hoeffding", "bernstein"]


class OptimisticQ(QLearner):
    """Optimistic Q-learning (Jin et al. 2018): UCB-H (bonus="hoeffding") and UCB-B ("bernstein").

        Q_h(s, a) = H at first; after the t-th visit, with alpha_t = (H + 1) / (H + t),
        Q_h(s, a) <- (1 - alpha_t) Q_h(s, a) + alpha_t (r + V_{h+1}(s') + b_t)
        V_h(s)     = min(H, max_a Q_h(s, a))

        UCB-H:  b_t = c sqrt(H^3 iota / t)
        UCB-B:  b_t = (beta_t - (1 - alpha_t) beta_{t-1}) / (2 alpha_t),  beta_0 = 0,
                beta_t = min(c1 (sqrt(H (W_t + H) iota / t) + sqrt(H^7 S A) iota / t),
                             c2 sqrt(H^3 iota / t)),
                W_t = the variance of the t targets so far;  iota = log(S A H K / delta)

    As published, but for what a model of ours needs. S A H is the number of triples (h, s, a) that
    can occur. Returns are measured in units in which their range has the width H, the published
    case. The paper calls c, c1 and c2 absolute constants and gives no numbers. c = sqrt(2) is
    enough for UCB-H: by Azuma and Hoeffding t weighted steps with sum alpha^2 <= 2 H / t miss
    their mean by more than sqrt(H^3 log(2 S A H K / delta) / t) with probability delta / (S A H K).
    So UCB-H with c >= sqrt(2) is "as published". c2 = 2 sqrt(2) gives the same second term, since
    beta counts twice. For c1 no number is known to be enough: UCB-B has no guarantee here.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> pkd.OptimisticQ().guarantee, pkd.OptimisticQ(c=0.1).guarantee
    ('as published', 'no guarantee')
    >>> agent, world = pkd.OptimisticQ(c=0.1), pkd.Simulator(coin, seed=1)
    >>> agent.begin(coin.model(), episodes=2000, seed=1)
    >>> for _ in range(2000):
    ...     agent.observe(world.episode(agent.act))
    >>> pkd.evaluate(coin, agent.policy())
    1.25
    """

    def __init__(
        self,
        *,
        bonus: Bonus = "hoeffding",
        c: float = HOEFFDING_C,
        c1: float = 1.0,
        c2: float = 2 * HOEFFDING_C,
        delta: float = 0.05,
    ) -> None:
        def is_constant(value: float) -> bool:
            return 0 <= value < math.inf

        check_options(
            type(self).__name__,
            ("c", c, is_constant, "a number >= 0"),
            ("c1", c1, is_constant, "a number >= 0"),
            ("c2", c2, is_constant, "a number >= 0"),
            ("delta", delta, lambda value: 0 < value < 1, "a number between 0 and 1"),
            words=[("bonus", bonus, ("hoeffding", "bernstein"))],
        )
        self.bonus: Bonus = bonus
        self.c, self.c1, self.c2, self.delta = float(c), float(c1), float(c2), float(delta)

    @property
    def label(self) -> str:
        if self.bonus == "bernstein":
            return f"Optimistic Q-learning (UCB-B), c1={self.c1:g}, c2={self.c2:.3g}"
        constant = "" if self.c == HOEFFDING_C else f", c={self.c:g}"
        return f"Optimistic Q-learning (UCB-H){constant}"

    @property
    def guarantee(self) -> Guarantee:
        published = self.bonus == "hoeffding" and self.c >= HOEFFDING_C
        return "as published" if published else "no guarantee"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        compiled = compile(model)
        self.low, self.high = find_range(compiled)
        self.initial = self.high
        self.triples = max(count_triples(compiled.graph), 1)
        self.iota = math.log(self.triples * episodes / self.delta)
        super().begin(model, episodes=episodes, seed=seed)
        # Returns in these units have a range of width H.
        self._unit = (self.high - self.low) / self.horizon

    def value(self, row: Row, step: Step) -> float:
        return min(self.high, max(row.q))

    def update(self, row: Row, i: int, target: float) -> None:
        row.n[i] += 1
        t, H = row.n[i], self.horizon
        alpha = (H + 1) / (H + t)
        if self.bonus == "bernstein":
            extra = self._bernstein(row, i, t, alpha, target)
        else:
            extra = self.c * math.sqrt(H**3 * self.iota / t)
        row.q[i] += alpha * (target + self._unit * extra - row.q[i])

    def _bernstein(self, row: Row, i: int, t: int, alpha: float, target: float) -> float:
        """b_t of UCB-B, in units of which the range of returns has H."""
        H, iota = self.horizon, self.iota
        gap = target - row.target[i]
        row.target[i] += gap / t
        row.spread[i] += gap * (target - row.target[i])
        variance = row.spread[i] / t / self._unit**2 if self._unit > 0 else 0.0
        pairs = self.triples / H  # S A
        first = math.sqrt(H * (variance + H) * iota / t) + math.sqrt(H**7 * pairs) * iota / t
        beta = min(self.c1 * first, self.c2 * math.sqrt(H**3 * iota / t))
        before, row.beta[i] = row.beta[i], beta
        return (beta - (1 - alpha) * before) / (2 * alpha)


def find_range(compiled: Compiled) -> tuple[float, float]:
    """The smallest and the largest return to go of any state, or what the model declares."""
    declared = compiled.model.return_range
    if declared is not None:
        return float(declared[0]), float(declared[1])
    found = [(low, high) for _, low, high in compiled.return_ranges()]
    return min(low for low, _ in found), max(high for _, high in found)


def count_triples(graph: Graph) -> int:
    """The number of (h, s, a) that can occur.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> count_triples(pkd.explore.explore(coin.model()))  # one state, then two, with two actions
    10
    """
    side, found = graph.layers, dict[int, int]()
    total = 0
    for layer in graph.members:
        if id(layer) not in found:
            found[id(layer)] = sum(
                count_queues(mask) * len(tuple(side.choices[node]))
                for node, mask in layer.items()
                if side.kind[node] == DECIDE
            )
        total += found[id(layer)]
    return total
