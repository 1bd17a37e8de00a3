"""The regret theorems as functions: explicit constants, O-forms, and when they say something.

The general theorem of the paper bounds the regret of the optimistic algorithm by a sum over the unknown features; Theorems 1 and 2 and the
first-order remark follow from it with the sizes of a delayed MDP, and Theorem 3 is the lower bound. Every function takes sizes, except
`regret_bound`, which counts them on a model. `..._rate` functions are the paper's O-forms with constant 1. `printed=True` computes what
the paper prints where its logarithms or constants had to be corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import e, log, sqrt
from typing import TYPE_CHECKING

from pkd.model import ModelError, PartiallyKnownMDP
from pkd.survey import survey

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Bound",
    "code_size",
    "delay_log",
    "first_order",
    "general",
    "general_rate",
    "known_delay",
    "known_delay_rate",
    "lower_bound",
    "plot",
    "previous_rate",
    "regret_bound",
    "smallest_episodes",
    "support_log",
    "union_log",
    "unknown_delay",
    "unknown_delay_rate",
]

LEADING, LOWER = 56, 2640  # the constants of the two terms, from the lemmas "per episode" (28, 660) and "sum of U" (4)


class Bound(float):
    """A regret bound is a number that remembers its two terms: `leading` grows with sqrt(K), `lower_order` with log(K)."""

    leading: float
    lower_order: float

    def __new__(cls, leading: float, lower_order: float = 0.0) -> Bound:
        bound = super().__new__(cls, leading + lower_order)
        bound.leading, bound.lower_order = leading, lower_order
        return bound

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return (self.leading, self.lower_order)


def regret_bound(model: PartiallyKnownMDP, episodes: float, delta: float = 0.05) -> Bound:
    """The explicit bound for a model, which holds with probability 1 - delta for `pkd.MVP()` with its default constants.

        56 R sqrt(K log(eKM) sum_z ell(z)) + 2640 R log(eKM) sum_z B(z) ell_2(z)

    R takes the place of the paper's H: the length of the declared return range, or else of the range of possible returns from the start
    (the widest one, where the start is random). M is the horizon, or the most unknown moves of an episode where CHANCE states make them
    more. ell(z) is the largest ell(z, y') over the y' that can come with z, so a short queue pays for a short queue. Known features are
    left out. The feature of an unknown reward adds log(32 H^2 |W| K / delta) to both sums: only its mean is learned.
    """
    _check_sizes(horizon=model.horizon, episodes=episodes, delta=delta)
    found = survey(model)
    horizon = model.horizon
    count = len(found.features) if model.n_features is None else model.n_features
    first = lower = 0.0
    for z, followers in found.features.items():
        support = model.branching(z)
        wide = support * support_log(support, horizon, count, episodes, delta)
        shares = [model.share(z, y) for y in followers]
        spread = max(found.n_y if share is None else 1 / share for share in shares)
        first += min(union_log(horizon, spread, count, episodes, delta), wide)
        lower += wide
    if found.rewards:
        means = len(found.rewards) * union_log(horizon, 1, len(found.rewards), episodes, delta)
        first, lower = first + means, lower + means
    width = found.width if model.return_range is None else model.return_range[1] - model.return_range[0]
    return _explicit(width, episodes * max(horizon, found.unknown_moves), episodes, first, lower)


def union_log(horizon: int, n_y: float, n_features: int, episodes: float, delta: float = 0.05, *, printed: bool = False) -> float:
    """ell_1 = log(32 H^2 |Y| |Z| K / delta) pays for a union bound over y; `printed` has H in place of H^2."""
    return log(32 * horizon ** (1 if printed else 2) * n_y * n_features * episodes / delta)


def support_log(support: int, horizon: int, n_features: int, episodes: float, delta: float = 0.05) -> float:
    """ell_2(z) = log(32 H B(z) |Z| K / delta) pays, B(z) times, for all functions on B(z) points."""
    return log(32 * horizon * support * n_features * episodes / delta)


def delay_log(
    queue: int, support: int, *, actions: int, horizon: int, n_features: int, episodes: float, delta: float = 0.05, printed: bool = False
) -> float:
    """ell(n, b) of MVP-Delayed: n the length of the queue with the new action, b the support, n_features = max(W, 1) S A = |Z|.

    min( n log A + log(64 H (H+1) (n+1)^2 |Z| K / delta), b log(32 H b |Z| K / delta) ); `printed` has 64 H in place of 64 H (H+1).
    """
    clocks = 1 if printed else horizon + 1
    by_queue = queue * log(actions) + log(64 * horizon * clocks * (queue + 1) ** 2 * n_features * episodes / delta)
    return min(by_queue, support * support_log(support, horizon, n_features, episodes, delta))


def general(
    branching: Iterable[int],
    *,
    horizon: int,
    n_y: int,
    episodes: float,
    delta: float = 0.05,
    n_features: int | None = None,
    width: float | None = None,
) -> Bound:
    """The general theorem: 56 H sqrt(K log(eKH) sum_z ell(z)) + 2640 H log(eKH) sum_z B(z) ell_2(z).

    `branching` lists B(z) of the unknown features; known ones are left out of both sums. `width` replaces the factor H where the returns
    lie in an interval of another length.
    """
    supports = list(branching)
    _check_sizes(horizon=horizon, n_y=n_y, episodes=episodes, delta=delta, branching=min(supports, default=1))
    count = len(supports) if n_features is None else n_features
    first = union_log(horizon, n_y, count, episodes, delta) if supports else 0.0
    wide = [b * support_log(b, horizon, count, episodes, delta) for b in supports]
    return _explicit(horizon if width is None else width, episodes * horizon, episodes, sum(min(first, w) for w in wide), sum(wide))


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

    The hazards are those of the counters -1..W-1 and the one of the empty queue; at the counter W the move is forced.
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
    _check_sizes(
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
        hazards = wait + 2 if delay and wait and inter_arrivals is not None else 0
        first += ell(min(delay + (not printed), horizon), branching) + hazards * ell(min(delay, horizon), 2)
        lower += branching * ell2(branching) + hazards * 2 * ell2(2)
    return _explicit(horizon, episodes * horizon, episodes, first, lower)


def general_rate(branching: Iterable[int], *, horizon: int, n_y: int, episodes: float) -> Bound:
    """H sqrt(K sum_z min(log |Y|, B(z))) + H sum_z B(z), other logarithms left out."""
    supports = list(branching)
    return Bound(horizon * sqrt(episodes * sum(min(log(n_y), b) for b in supports)), horizon * sum(supports))


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


def smallest_episodes(bound: Callable[[int], float], width: float) -> int:
    """The smallest K with bound(K) < width * K: from there on the bound beats the trivial one.

    bound(K) / K must fall with K, as it does for every bound of this module.
    """
    high = 1
    while not bound(high) < width * high:
        high *= 2
        if high > 2**200:
            raise ModelError(f"smallest_episodes: bound(K) is still not below {width:g} K at K = 2^200; bound(K)/K must fall to zero")
    low = high // 2  # not below here, or zero
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < width * middle else (middle, high)
    return high


def plot(
    curves: Mapping[str, Callable[[int], float]], episodes: Iterable[int], width: float | None = None, axes: Axes | None = None
) -> Axes:
    """Draws bounds against K on logarithmic axes, with the trivial bound width * K where a width is given."""
    from matplotlib import pyplot as plt

    if axes is None:
        axes = plt.subplots(figsize=(6.4, 4.0))[1]
    grid = list(episodes)
    for label, bound in curves.items():
        axes.loglog(grid, [float(bound(k)) for k in grid], label=label)
    if width is not None:
        axes.loglog(grid, [width * k for k in grid], color="0.6", linestyle=":", label=f"trivial: {width:g} K")
    axes.set(xlabel="episodes K", ylabel="bound on the cumulative regret")
    axes.legend(frameon=False)
    return axes


def _explicit(width: float, visits: float, episodes: float, first: float, lower: float) -> Bound:
    """The two terms from sum_z ell(z) and sum_z B(z) ell_2(z); `visits` bounds the count of one feature."""
    growth = log(e * visits)
    return Bound(LEADING * width * sqrt(episodes * growth * first), LOWER * width * growth * lower)


def _check_sizes(delays: Mapping[str, int] | None = None, *, delta: float, **sizes: float) -> None:
    findings = [f"{name} is {size!r}; expected a number of at least 1" for name, size in sizes.items() if not size >= 1]
    findings += [f"{name} is {delay!r}; expected 0 or more" for name, delay in (delays or {}).items() if not delay >= 0]
    if not 0 < delta < 1:
        findings.append(f"delta is {delta!r}; expected a probability strictly between 0 and 1")
    if findings:
        raise ModelError(findings)
