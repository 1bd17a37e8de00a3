"""The regret bounds of delayed MDPs from their sizes: Theorems 1 to 3 and the first-order remark.

They follow from the general theorem (`pkd.bounds`) and need no model. Sizes are named as
everywhere: `longest` is W, the largest inter-arrival time, `branching` is B. Explicit bounds are
those of `pkd.bounds.regret_bound` and hold under its conditions: the theory constants of
`pkd.MVP()`, `replan="every"`, known rewards in [0, 1]. `..._rate` functions are the paper's O-forms
with constant 1 and promise nothing. `printed=True` computes what the paper prints where its
logarithms or constants had to be corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import pkd
from pkd import ModelError

__all__ = [
    "Bound",
    "Floor",
    "code_size",
    "delay_log",
    "first_order",
    "known_delay",
    "known_delay_rate",
    "lower_bound",
    "previous_rate",
    "unknown_delay",
    "unknown_delay_rate",
]


Bound = pkd.bounds.Bound


class Floor(float):
    """A lower bound that remembers whether it is proved at its sizes, or only a formula there."""

    proved: bool

    def __new__(cls, value: float, proved: bool) -> Floor:
        floor = super().__new__(cls, value)
        floor.proved = proved
        return floor

    def __getnewargs__(self) -> tuple[float, bool]:  # type: ignore[override]
        return (float(self), self.proved)


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
    clocks = 1 if printed else horizon + 1
    by_queue = queue * log(actions) + log(
        64 * horizon * clocks * (queue + 1) ** 2 * n_features * episodes / delta
    )
    return min(
        by_queue, support * pkd.bounds.support_log(support, horizon, n_features, episodes, delta)
    )


def known_delay(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    longest: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    printed: bool = False,
) -> Bound:
    """Theorem 1 with its constants: S A features with ell(D + 1, B), the law of the delay known.

    `longest` is W, the largest inter-arrival time. `printed` takes the paper's logarithm and its
    ell(D, B).
    """
    delays = [[max_delay] * actions] * states
    return first_order(delays, horizon, longest, branching, episodes, delta, printed=printed)


def unknown_delay(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    longest: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    printed: bool = False,
) -> Bound:
    """Theorem 2 with its constants: besides the S A features of Theorem 1, W + 2 hazards of two
    outcomes for each (s, a).

    The hazards are those of the counters -1..W-1, with ell(D, 2), and the one of the empty queue,
    with ell(1, 2). At the counter W the move is forced. The logarithms have |Z| = max(W, 1) S A, as
    in the paper, where (W + 3) S A features share the confidence: the bound holds with probability
    1 - (W + 3)/max(W, 1) delta, which is at least 1 - 4 delta.
    """
    delays = [[max_delay] * actions] * states
    return first_order(
        delays,
        horizon,
        longest,
        branching,
        episodes,
        delta,
        inter_arrivals=[[longest] * actions] * states,
        printed=printed,
    )


def first_order(
    delays: Sequence[Sequence[int]],
    horizon: int,
    longest: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    inter_arrivals: Sequence[Sequence[int]] | None = None,
    max_delay: int | None = None,
    printed: bool = False,
) -> Bound:
    """The remark after Theorem 2: D_max(s, a) and W(s, a) of each pair in place of D and W.

    delays, inter_arrivals: (S, A), the true D_max(s, a) and W(s, a), which the learner does not
    know. `longest` and `max_delay` are the W and D that it is told; `max_delay` defaults to the
    largest of `delays`. With `inter_arrivals` the law of the delay is unknown, and the pair (s, a)
    has one hazard for the empty queue and one for each counter from -1 to min(W(s, a), W - 1).

    The remark counts W(s, a) of them. But a learner that knows only W must also learn that the
    counter W(s, a) is the last one: its hazard is 1, yet unknown, and is met. The same holds for
    the queue, whose length reaches D_max(s, a) + 1 unless D forces the arrival (docs/errata.md).
    """
    actions = len(delays[0]) if delays else 0
    flat = [d for row in delays for d in row]
    waits = (
        [0] * len(flat) if inter_arrivals is None else [w for row in inter_arrivals for w in row]
    )
    pkd.bounds.check_sizes(
        {"max_delay": min(flat, default=0), "longest": min([longest, *waits])},
        states=len(delays),
        actions=actions,
        horizon=horizon,
        branching=branching,
        episodes=episodes,
        delta=delta,
    )
    count = max(longest, 1) * len(flat)
    told = max(flat, default=0) if max_delay is None else max_delay

    def ell(queue: int, support: int) -> float:
        return delay_log(
            queue,
            support,
            actions=actions,
            horizon=horizon,
            n_features=count,
            episodes=episodes,
            delta=delta,
            printed=printed,
        )

    def ell2(support: int) -> float:
        return pkd.bounds.support_log(support, horizon, count, episodes, delta)

    first = lower = 0.0
    for delay, wait in zip(flat, waits, strict=True):
        first += ell(min(delay + (not printed), horizon), branching)
        lower += branching * ell2(branching)
        if inter_arrivals is not None and told and longest:  # otherwise every arrival is forced
            waiting = min(wait + 2, longest + 1)  # counters -1..min(W(s, a), W - 1)
            first += ell(1, 2) + waiting * ell(min(delay + 1, told, horizon), 2)
            lower += (waiting + 1) * 2 * ell2(2)
    return pkd.bounds.explicit(horizon, episodes * horizon, episodes, first, lower)


def known_delay_rate(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    logarithms: bool = True,
) -> Bound:
    """Theorem 1: H sqrt(min(D, B) S A K) iota + H B S A iota^2, iota = log(H S A K / delta).

    D = 0 counts as 1. Without `logarithms` iota is 1, as in `previous_rate`.
    """
    iota = log(horizon * states * actions * episodes / delta) if logarithms else 1.0
    leading = horizon * sqrt(min(max(max_delay, 1), branching) * states * actions * episodes) * iota
    return Bound(leading, horizon * branching * states * actions * iota**2)


def unknown_delay_rate(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    longest: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    logarithms: bool = True,
) -> Bound:
    """Theorem 2: that of Theorem 1 plus H sqrt(W S A K) iota + H W S A iota^2."""
    known = known_delay_rate(
        states, actions, horizon, max_delay, branching, episodes, delta, logarithms=logarithms
    )
    iota = log(horizon * states * actions * episodes / delta) if logarithms else 1.0
    hazards = horizon * sqrt(longest * states * actions * episodes) * iota
    return Bound(
        known.leading + hazards, known.lower_order + horizon * longest * states * actions * iota**2
    )


def previous_rate(
    states: int, actions: int, horizon: int, max_delay: int, episodes: float
) -> Bound:
    """The bound of Chen et al. (2023), as the paper quotes it: H^(3/2) D^(5/2) sqrt(S A K).

    Logarithms and lower-order terms are left out: compare it with `known_delay_rate(...,
    logarithms=False).leading`, not with a bound that has them.
    """
    return Bound(horizon**1.5 * max_delay**2.5 * sqrt(states * actions * episodes))


def lower_bound(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    branching: int,
    episodes: float,
    *,
    printed: bool = False,
) -> Floor:
    """Theorem 3: (H / 4608) sqrt(D~ S A K / (96 log D~)); `printed` has 3072 in place of 4608.

    The formula is evaluated whether the conditions of the theorem hold or not; `.proved` says
    whether they do. `pkd_delay.hard.lower_bound` lists those that do not.
    """
    size = code_size(states, horizon, max_delay, branching)
    if size < 2:
        raise ModelError(
            f"lower_bound: D~ = floor(min(D, H/4, B/2, S/4 - 1)) is {size}, and log D~ needs 2 "
            "at least; enlarge the smallest of "
            f"D = {max_delay}, H/4 = {horizon / 4:g}, B/2 = {branching / 2:g}, S/4 - 1 = "
            f"{states / 4 - 1:g}"
        )
    pairs = states * actions
    value = horizon / (3072 if printed else 4608) * sqrt(size * pairs * episodes / (96 * log(size)))
    proved = actions >= 2 and pairs > 96 and horizon >= 8 + 4 * log(states, actions)
    proved = proved and episodes >= size * pairs * log(size) / 24 and _is_long(size)
    return Floor(value, proved)


def code_size(states: int, horizon: int, max_delay: int, branching: int) -> int:
    """D~ = floor(min(D, H/4, B/2, S/4 - 1)): how long a code the hard instance can hide."""
    return min(max_delay, horizon // 4, branching // 2, states // 4 - 1)


def _is_long(size: int) -> bool:
    """Whether a code size reaches the absolute constant of Theorem 3, about 2.8 million."""
    from pkd_delay import l1

    return size >= l1.smallest_dimension(weighted=True)
