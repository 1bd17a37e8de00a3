"""The bounds for delayed MDPs, from their sizes: Theorems 1 and 2, the first-order remark, the previous bound, and Theorem 3.

They are corollaries of the general theorem and need no delayed model, so they live beside it; `pkd.bounds` exports them. Sizes are named as
everywhere: `longest` is W, the largest inter-arrival time, `branching` is B.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

from pkd.bound_terms import Bound, check_sizes, explicit, support_log
from pkd.model import ModelError

__all__ = [
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


def delay_log(
    queue: int, support: int, *, actions: int, horizon: int, n_features: int, episodes: float, delta: float = 0.05, printed: bool = False
) -> float:
    """ell(n, b) of MVP-Delayed: n the length of the queue with the new action, b the support, n_features = max(W, 1) S A = |Z|.

    min( n log A + log(64 H (H+1) (n+1)^2 |Z| K / delta), b log(32 H b |Z| K / delta) ); `printed` has 64 H in place of 64 H (H+1).
    """
    clocks = 1 if printed else horizon + 1
    by_queue = queue * log(actions) + log(64 * horizon * clocks * (queue + 1) ** 2 * n_features * episodes / delta)
    return min(by_queue, support * support_log(support, horizon, n_features, episodes, delta))


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

    `longest` is W, the largest inter-arrival time. `printed` takes the paper's logarithm and its ell(D, B).
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
    """Theorem 2 with its constants: besides the S A features of Theorem 1, W + 2 hazards of two outcomes for each (s, a).

    The hazards are those of the counters -1..W-1, with ell(D, 2), and the one of the empty queue, with ell(1, 2). At the counter W the
    move is forced.
    """
    delays = [[max_delay] * actions] * states
    return first_order(delays, horizon, longest, branching, episodes, delta, inter_arrivals=[[longest] * actions] * states, printed=printed)


def first_order(
    delays: Sequence[Sequence[int]],
    horizon: int,
    longest: int,
    branching: int,
    episodes: float,
    delta: float = 0.05,
    *,
    inter_arrivals: Sequence[Sequence[int]] | None = None,
    printed: bool = False,
) -> Bound:
    """The remark after Theorem 2: D_max(s, a) in place of D for each (s, a), and W(s, a) in place of W.

    delays, inter_arrivals: (S, A). With `inter_arrivals` the law of the delay is unknown. A crude `longest` enters only through a
    logarithm. `regret_bound` of a delayed model is of this kind too: it looks only at the queues that can follow a feature.
    """
    actions = len(delays[0]) if delays else 0
    flat = [d for row in delays for d in row]
    waits = [0] * len(flat) if inter_arrivals is None else [w for row in inter_arrivals for w in row]
    check_sizes(
        {"max_delay": min(flat, default=0), "longest": min([longest, *waits])},
        states=len(delays),
        actions=actions,
        horizon=horizon,
        branching=branching,
        episodes=episodes,
        delta=delta,
    )
    count = max(longest, 1) * len(flat)

    def ell(queue: int, support: int) -> float:
        return delay_log(
            queue, support, actions=actions, horizon=horizon, n_features=count, episodes=episodes, delta=delta, printed=printed
        )

    def ell2(support: int) -> float:
        return support_log(support, horizon, count, episodes, delta)

    first = lower = 0.0
    for delay, wait in zip(flat, waits, strict=True):
        first += ell(min(delay + (not printed), horizon), branching)
        lower += branching * ell2(branching)
        if delay and wait:  # otherwise every arrival is forced
            first += ell(1, 2) + (wait + 1) * ell(min(delay, horizon), 2)
            lower += (wait + 2) * 2 * ell2(2)
    return explicit(horizon, episodes * horizon, episodes, first, lower)


def known_delay_rate(
    states: int, actions: int, horizon: int, max_delay: int, branching: int, episodes: float, delta: float = 0.05
) -> Bound:
    """Theorem 1: H sqrt(min(D, B) S A K) iota + H B S A iota^2, iota = log(H S A K / delta); D = 0 counts as 1."""
    iota = log(horizon * states * actions * episodes / delta)
    leading = horizon * sqrt(min(max(max_delay, 1), branching) * states * actions * episodes) * iota
    return Bound(leading, horizon * branching * states * actions * iota**2)


def unknown_delay_rate(
    states: int, actions: int, horizon: int, max_delay: int, longest: int, branching: int, episodes: float, delta: float = 0.05
) -> Bound:
    """Theorem 2: that of Theorem 1 plus H sqrt(W S A K) iota + H W S A iota^2."""
    known = known_delay_rate(states, actions, horizon, max_delay, branching, episodes, delta)
    iota = log(horizon * states * actions * episodes / delta)
    hazards = horizon * sqrt(longest * states * actions * episodes) * iota
    return Bound(known.leading + hazards, known.lower_order + horizon * longest * states * actions * iota**2)


def previous_rate(states: int, actions: int, horizon: int, max_delay: int, episodes: float) -> Bound:
    """The bound of Chen et al. (2023), as the paper quotes it: H^(3/2) D^(5/2) sqrt(S A K), logarithms left out."""
    return Bound(horizon**1.5 * max_delay**2.5 * sqrt(states * actions * episodes))


def lower_bound(
    states: int, actions: int, horizon: int, max_delay: int, branching: int, episodes: float, *, printed: bool = False
) -> float:
    """Theorem 3: (H / 4608) sqrt(D~ S A K / (96 log D~)); `printed` has 3072 in place of 4608.

    `pkd_delay.hard` says whether the conditions of the theorem hold; here the formula is evaluated whatever they say.
    """
    size = code_size(states, horizon, max_delay, branching)
    if size < 2:
        raise ModelError(
            f"lower_bound: D~ = floor(min(D, H/4, B/2, S/4 - 1)) is {size}, and log D~ needs 2 at least; enlarge the smallest of "
            f"D = {max_delay}, H/4 = {horizon / 4:g}, B/2 = {branching / 2:g}, S/4 - 1 = {states / 4 - 1:g}"
        )
    return horizon / (3072 if printed else 4608) * sqrt(size * states * actions * episodes / (96 * log(size)))


def code_size(states: int, horizon: int, max_delay: int, branching: int) -> int:
    """D~ = floor(min(D, H/4, B/2, S/4 - 1)): how long a code the hard instance can hide."""
    return min(max_delay, horizon // 4, branching // 2, states // 4 - 1)
