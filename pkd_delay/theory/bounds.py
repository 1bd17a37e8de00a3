"""The regret bounds of delayed MDPs from their sizes: Theorems 1 to 3 and the first-order remark.

They follow from the general theorem (`pkd.bounds`) and need no model. Explicit bounds are those of
`pkd.bounds.regret_bound` and hold under its conditions: the theory constants of `pkd.MVP()`,
`replan="every"`, known rewards in [0, 1]. Rates are the paper's O-forms with constant 1 and promise
nothing. `printed=True` computes what the paper prints where its logarithms or constants had to be
corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import attrs

from pkd import ModelError
from pkd.expect import failure, number, require, whole
from pkd.theory.bounds import Bound, explicit, support_log
from pkd_delay.theory.l1 import smallest_dimension

__all__ = ["DelaySizes", "LowerBound", "delay_log"]

Pairs = Sequence[Sequence[int]]  # a number for each pair, (S, A)


class LowerBound(float):
    """Theorem 3 at given sizes: the expected regret that some instance forces on any algorithm."""

    code_size: int  # D~
    scale: float  # eps = sqrt(D~ S A log D~ / (96 K))
    samples: float  # n = 48 K / (S A): how often a pair may be tried without telling nu_1 from nu_2
    gap: float  # eps H / (192 log D~): what a wrong pair loses per episode
    unmet: tuple[str, ...]  # the conditions of the theorem that do not hold
    # All hold, and D~ reaches the absolute constant, about 2.8 million; else it is only a formula.
    proved: bool

    def __new__(cls, value: float, **parts: Any) -> LowerBound:
        found = super().__new__(cls, value)
        found.__dict__.update(parts)
        return found


def delay_log(
    queue: int,
    support: int,
    *,
    actions: int,
    horizon: int,
    n_features: int,
    episodes: float,
    delta: float = 0.05,
    printed: bool = False,
) -> float:
    """ell(n, b) of MVP-Delayed: n the length of the queue with the new action, b the support,
    n_features = max(W, 1) S A = |Z|.

    min( n log A + log(64 H (H+1) (n+1)^2 |Z| K / delta), b log(32 H b |Z| K / delta) ); `printed`
    has 64 H in place of 64 H (H+1).
    """
    inside = 64 * horizon * (1 if printed else horizon + 1) * (queue + 1) ** 2
    by_queue = queue * log(actions) + log(inside * n_features * episodes / delta)
    return min(by_queue, support * support_log(support, horizon, n_features, episodes, delta))


@attrs.frozen
class DelaySizes:
    """The sizes of a delayed MDP. Each method is a bound on the regret of K episodes.

    >>> sizes = DelaySizes(states=100, actions=2, horizon=100, max_delay=10, branching=40)
    >>> round(sizes.lower_bound(10**6), 6)
    65.276832
    """

    states: int  # S
    actions: int  # A
    horizon: int  # H
    max_delay: int  # D, as the learner is told
    longest: int = attrs.field()  # W, the largest inter-arrival time; by default D
    branching: int = attrs.field()  # B, a bound on the support of P(s, a); by default S
    delta: float = 0.05

    @longest.default
    def _find_longest(self) -> int:
        return self.max_delay

    @branching.default
    def _find_branching(self) -> int:
        return self.states

    def __attrs_post_init__(self) -> None:
        least = {"max_delay": 0, "longest": 0}
        names = [a.name for a in attrs.fields(DelaySizes) if a.name != "delta"]
        found = [whole(name, getattr(self, name), least.get(name, 1)) for name in names]
        require(*found, failure("delta", self.delta))

    def known_delay(self, episodes: float, *, printed: bool = False) -> Bound:
        """Theorem 1 with its constants: S A features with ell(D + 1, B), a known law of the delay.

        `printed` takes the paper's logarithm and its ell(D, B).
        """
        return self.first_order(self._fill(self.max_delay), episodes, printed=printed)

    def unknown_delay(self, episodes: float, *, printed: bool = False) -> Bound:
        """Theorem 2 with its constants: besides the S A features of Theorem 1, W + 2 hazards of two
        outcomes for each (s, a).

        The hazards are those of the counters -1..W-1, with ell(D, 2), and the one of the empty
        queue, with ell(1, 2). At the counter W the move is forced. The logarithms have
        |Z| = max(W, 1) S A, as in the paper, where (W + 3) S A features share the confidence: the
        bound holds with probability 1 - (W + 3)/max(W, 1) delta, which is at least 1 - 4 delta.
        """
        waits = self._fill(self.longest)
        return self.first_order(self._fill(self.max_delay), episodes, waits, printed=printed)

    def first_order(
        self, delays: Pairs, episodes: float, waits: Pairs | None = None, *, printed: bool = False
    ) -> Bound:
        """The remark after Theorem 2: D_max(s, a) and W(s, a) of each pair in place of D and W.

        The learner does not know `delays` and `waits`, the true D_max(s, a) and W(s, a). With
        `waits` the law of the delay is unknown, and the pair (s, a) has one hazard for the empty
        queue and one for each counter from -1 to min(W(s, a), W - 1).

        The remark counts W(s, a) of them. But a learner that knows only W must also learn that the
        counter W(s, a) is the last one: its hazard is 1, yet unknown, and is met. The same holds
        for the queue, whose length reaches D_max(s, a) + 1 unless D forces the arrival
        (docs/errata.md).
        """
        flat = [d for row in delays for d in row]
        hazards = [w for row in waits or self._fill(0) for w in row]
        pairs = self.states * self.actions
        found = number("episodes", episodes, 1)
        if not len(flat) == len(hazards) == pairs or min(*flat, *hazards) < 0:
            found.append(f"delays, waits: expected numbers >= 0 for each of the {pairs} pairs")
        require(found)
        count = max(self.longest, 1) * pairs
        first = lower = 0.0

        def ell(queue: int, support: int) -> float:
            """ell(n, b) for a queue that the horizon may cut."""
            return delay_log(
                min(queue, self.horizon), support, actions=self.actions, horizon=self.horizon,
                n_features=count, episodes=episodes, delta=self.delta, printed=printed,
            )  # fmt: skip

        def ell_2(support: int) -> float:
            return support * support_log(support, self.horizon, count, episodes, self.delta)

        for delay, wait in zip(flat, hazards, strict=True):
            first += ell(delay + (not printed), self.branching)
            lower += ell_2(self.branching)
            if waits is not None and self.max_delay and self.longest:  # else arrivals are forced
                met = min(wait + 2, self.longest + 1)  # counters -1..min(W(s, a), W - 1)
                first += ell(1, 2) + met * ell(min(delay + 1, self.max_delay), 2)
                lower += (met + 1) * ell_2(2)
        visits = episodes * self.horizon
        return explicit(self.horizon, visits, episodes, first, lower)

    def known_delay_rate(self, episodes: float, *, logarithms: bool = True) -> Bound:
        """Theorem 1: H sqrt(min(D, B) S A K) iota + H B S A iota^2, iota = log(H S A K / delta).

        D = 0 counts as 1. Without `logarithms` iota is 1, as in `previous_rate`.
        """
        branches = min(max(self.max_delay, 1), self.branching)
        return self._rate(episodes, [branches], self.branching, logarithms)

    def unknown_delay_rate(self, episodes: float, *, logarithms: bool = True) -> Bound:
        """Theorem 2: that of Theorem 1 plus H sqrt(W S A K) iota + H W S A iota^2."""
        branches = min(max(self.max_delay, 1), self.branching)
        lower = self.branching + self.longest
        return self._rate(episodes, [branches, self.longest], lower, logarithms)

    def previous_rate(self, episodes: float) -> Bound:
        """The bound of Chen et al. (2023), as the paper quotes it: H^(3/2) D^(5/2) sqrt(S A K).

        Logarithms and lower-order terms are left out: compare it with `known_delay_rate(K,
        logarithms=False).leading`, not with a bound that has them.
        """
        root = sqrt(self.states * self.actions * episodes)
        return Bound(self.horizon**1.5 * self.max_delay**2.5 * root)

    @property
    def code_size(self) -> int:
        """D~ = floor(min(D, H/4, B/2, S/4 - 1)): how long a code the hard instance can hide."""
        return min(self.max_delay, self.horizon // 4, self.branching // 2, self.states // 4 - 1)

    def lower_bound(self, episodes: float, *, printed: bool = False) -> LowerBound:
        """Theorem 3: (H / 4608) sqrt(D~ S A K / (96 log D~)); `printed` has 3072 in place of 4608.

        The formula is evaluated whether the conditions of the theorem hold or not; `.unmet` lists
        those that do not.
        """
        S, A, H, size = self.states, self.actions, self.horizon, self.code_size
        if size < 2:
            raise ModelError(
                f"lower_bound: D~ = floor(min(D, H/4, B/2, S/4 - 1)) is {size}, and log D~ needs 2 "
                f"at least; enlarge the smallest of D = {self.max_delay}, H/4 = {H / 4:g}, "
                f"B/2 = {self.branching / 2:g}, S/4 - 1 = {S / 4 - 1:g}"
            )
        pairs, root = S * A, sqrt(size * S * A * episodes / (96 * log(size)))
        unmet = _find_unmet(S, A, H, size, episodes)
        scale = sqrt(size * pairs * log(size) / (96 * episodes))
        return LowerBound(
            H / (3072 if printed else 4608) * root,
            code_size=size,
            scale=scale,
            samples=48 * episodes / pairs,
            gap=scale * H / (192 * log(size)),
            unmet=unmet,
            proved=not unmet and size >= smallest_dimension(weighted=True),
        )

    def _fill(self, value: int) -> Pairs:
        return [[value] * self.actions] * self.states

    def _rate(self, episodes: float, roots: Sequence[int], lower: int, logarithms: bool) -> Bound:
        H, pairs = self.horizon, self.states * self.actions
        iota = log(H * pairs * episodes / self.delta) if logarithms else 1.0
        leading = sum(H * sqrt(root * pairs * episodes) * iota for root in roots)
        return Bound(leading, H * lower * pairs * iota**2)


def _find_unmet(S: int, A: int, H: int, size: int, episodes: float) -> tuple[str, ...]:
    """The conditions of Theorem 3 that do not hold."""
    height = 8 + 4 * log(S, max(A, 2))
    least = size * S * A * log(size) / 24
    conditions = [
        (A >= 2, f"actions is {A}; the theorem needs A >= 2"),
        (height <= H, f"horizon is {H}; the theorem needs H >= 8 + 4 log_A S = {height:.4g}"),
        (
            episodes >= least,
            f"episodes is {episodes:g}; the theorem needs K >= D~ S A log(D~)/24 = {least:.6g}",
        ),
        (S * A > 96, f"S A is {S * A}; n = 48 K/(S A) stays below K/2 only for S A > 96"),
    ]
    return tuple(finding for holds, finding in conditions if not holds)
