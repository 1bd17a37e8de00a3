"""The regret theorems as functions: explicit constants, O-forms, and when they say something.

The general theorem of the paper bounds the regret of the optimistic algorithm by a sum over the unknown features; Theorems 1 and 2 and the
first-order remark follow from it with the sizes of a delayed MDP, and Theorem 3 is the lower bound. Every function takes sizes, except
`regret_bound`, which counts them on a model. `..._rate` functions are the paper's O-forms with constant 1. `printed=True` computes what
the paper prints where its logarithms or constants had to be corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import log, sqrt
from typing import TYPE_CHECKING

from pkd.bound_terms import Bound, check_sizes, explicit, support_log, union_log
from pkd.delay_bounds import (
    code_size,
    delay_log,
    first_order,
    known_delay,
    known_delay_rate,
    lower_bound,
    previous_rate,
    unknown_delay,
    unknown_delay_rate,
)
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.sizes import Sizes, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.engine.compiled import Compiled

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


def regret_bound(
    model: PartiallyKnownMDP | Compiled | Sizes, episodes: float, delta: float = 0.05
) -> Bound:
    """The explicit bound for a model; it holds with probability 1 - delta for `pkd.MVP()`.

        56 R sqrt(K log(eKM) sum_z ell(z)) + 2640 R log(eKM) sum_z B(z) ell_2(z)

    R takes the place of the paper's H: the length of the declared return range, or else of the range
    of possible returns from the start (the widest one, where the start is random). M is the horizon,
    or the most unknown moves of an episode where CHANCE states make them more. ell(z) is the largest
    ell(z, y') over the y' that can come with z, so a short queue pays for a short queue. Known
    features are left out. The feature of an unknown reward adds log(32 H^2 |W| K / delta) to both
    sums: only its mean is learned.

    A model is walked once, a compiled one not again unless it hides queues (`pkd.sizes.measure`).
    For many bounds of one model, measure it once and give its `Sizes`.
    """
    check_sizes(episodes=episodes, delta=delta)
    sizes = model if isinstance(model, Sizes) else measure(model)
    horizon, count = sizes.horizon, sizes.n_features
    first = lower = 0.0
    for feature in sizes.features:
        wide = feature.branching * support_log(feature.branching, horizon, count, episodes, delta)
        first += min(union_log(horizon, feature.spread, count, episodes, delta), wide)
        lower += wide
    if sizes.n_rewards:
        means = sizes.n_rewards * union_log(horizon, 1, sizes.n_rewards, episodes, delta)
        first, lower = first + means, lower + means
    moves = max(horizon, sizes.unknown_moves)
    return explicit(sizes.width, episodes * moves, episodes, first, lower)


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
    check_sizes(horizon=horizon, n_y=n_y, episodes=episodes, delta=delta, branching=min(supports, default=1))
    count = len(supports) if n_features is None else n_features
    first = union_log(horizon, n_y, count, episodes, delta) if supports else 0.0
    wide = [b * support_log(b, horizon, count, episodes, delta) for b in supports]
    return explicit(horizon if width is None else width, episodes * horizon, episodes, sum(min(first, w) for w in wide), sum(wide))


def general_rate(branching: Iterable[int], *, horizon: int, n_y: int, episodes: float) -> Bound:
    """H sqrt(K sum_z min(log |Y|, B(z))) + H sum_z B(z), other logarithms left out."""
    supports = list(branching)
    return Bound(horizon * sqrt(episodes * sum(min(log(n_y), b) for b in supports)), horizon * sum(supports))


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
