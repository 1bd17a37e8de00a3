"""The regret theorem as functions: its explicit constants, its O-form, and when it says something.

The general theorem of the paper bounds the regret of the optimistic algorithm by a sum over the
unknown features. `general` and `general_rate` take sizes; `regret_bound` counts them on a model.
All bounds are made of two terms, two logarithms and the constants 56 and 2640; adapters build their
corollaries from `explicit` and `support_log`. `printed=True` computes what the paper prints where
its logarithms had to be corrected (docs/errata.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import e, log, sqrt
from numbers import Real
from typing import TYPE_CHECKING, Literal

import attrs

from pkd.check import explained
from pkd.expect import failure, function, if_given, instance, number, one_of, require, show, whole
from pkd.explore.sizes import measure
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.problem import as_model, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.engine.compiled import Compiled

__all__ = [
    "Bound", "ModelBound", "explicit", "general", "general_rate", "plot", "regret_bound",
    "smallest_episodes", "support_log", "union_log",
]  # fmt: skip

# The constants of the two terms, from the lemmas "per episode" (28, 660) and "sum of U" (4).
LEADING, LOWER = 56, 2640


class Bound(float):
    """A regret bound is a number that remembers its two terms.

    `leading` grows with sqrt(K), `lower_order` with log(K).
    """

    leading: float
    lower_order: float

    def __new__(cls, leading: float, lower_order: float = 0.0) -> Bound:
        bound = super().__new__(cls, leading + lower_order)
        bound.leading, bound.lower_order = leading, lower_order
        return bound


def regret_bound(
    model: PartiallyKnownMDP | Compiled,
    episodes: float,
    delta: float = 0.05,
    *,
    replan: Literal["every", "doubling"] = "every",
) -> Bound:
    """The explicit bound of the general theorem for a model, compiled or not.

        56 R sqrt(K log(eKM) sum_z ell(z)) + 2640 R log(eKM) sum_z B(z) ell_2(z)

    R takes the place of the paper's H: the length of the declared return range, or else of the
    range of possible returns from the start (the widest one, where the start is random). M is the
    horizon, or the most unknown moves of an episode where CHANCE states make them more. ell(z) is
    the largest ell(z, y') over the y' that can come with z; its H is the most visits of one
    feature, if they are more. Known features are left out.

    What is proved: for `pkd.MVP()` with its default constants and `replan="every"`, in a model
    whose rewards are known and whose values stay in a range of length R at every step, the regret
    of K episodes stays below this number with probability 1 - delta. Where one of these conditions
    does not hold:

    - `replan="doubling"`: a plan uses counts of at least half of the present ones. The leading term
      grows by sqrt(2), the other by 2; `replan="doubling"` here returns that.
    - `n_features` below the number of features that can occur: the failure probability grows from
      delta by their ratio. An unknown law of arrivals with |Z| = W S A has 1 - 4 delta.
    - Unknown rewards: each adds log(32 H^2 |W| K / delta) to both sums, because only its mean is
      learned. The paper has no such theorem; this is our extension of it.
    - A declared `return_range` caps unknown features only. If known rewards lift an estimated value
      above it, R is too small and the number is no bound.
    """
    require(number("episodes", episodes, 1), one_of("replan", replan, ("every", "doubling")))
    bound = ModelBound.of(model, delta)(episodes)
    return Bound(sqrt(2) * bound.leading, 2 * bound.lower_order) if replan == "doubling" else bound


@attrs.frozen
class ModelBound:
    """The bound of one model as a function of K; the model is walked once."""

    width: float  # R
    horizon: int
    moves: int  # M
    visits: int  # of one feature in an episode, at most; H in the logarithms
    n_features: int  # |Z| in the logarithms
    supports: tuple[int, ...]  # B(z) of each unknown feature
    spreads: tuple[float, ...]  # the largest 1 / share(z, y') of each unknown feature
    n_rewards: int  # |W|, the unknown rewards
    delta: float

    @classmethod
    def of(cls, model: PartiallyKnownMDP | Compiled, delta: float = 0.05) -> ModelBound:
        """Counts the sizes of a model, compiled or not."""
        require(failure("delta", delta))
        described = read(model)[0]
        with explained(as_model(described)):
            found = measure(described)
        return cls(
            width=found.width,
            horizon=found.horizon,
            moves=max(found.horizon, found.unknown_moves),
            visits=found.most_visits,
            n_features=found.n_features,
            supports=tuple(z.branching for z in found.features),
            spreads=tuple(z.spread for z in found.features),
            n_rewards=found.n_rewards,
            delta=delta,
        )

    def __call__(self, episodes: float) -> Bound:
        """The bound for K episodes."""
        visits, K, delta = self.visits, episodes, self.delta
        wide = [b * support_log(b, visits, self.n_features, K, delta) for b in self.supports]
        tight = [union_log(visits, n_y, self.n_features, K, delta) for n_y in self.spreads]
        means = 0.0
        if self.n_rewards:
            means = self.n_rewards * union_log(visits, 1, self.n_rewards, K, delta)
        first = sum(min(one, other) for one, other in zip(tight, wide, strict=True))
        return explicit(self.width, K * self.moves, K, first + means, sum(wide) + means)


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
    """The general theorem: 56 H sqrt(K log(eKH) sum_z ell(z)) + 2640 H log(eKH) sum_z B(z)
    ell_2(z).

    `branching` lists B(z) of the unknown features; known ones are left out of both sums. `width`
    replaces the factor H where the returns lie in an interval of another length.
    """
    supports = _check_sizes(branching, horizon, n_y, episodes)
    require(
        failure("delta", delta),
        if_given(whole, "n_features", n_features, 1),
        if_given(number, "width", width),
    )
    return ModelBound(
        width=horizon if width is None else width,
        horizon=horizon,
        moves=horizon,
        visits=horizon,
        n_features=len(supports) if n_features is None else n_features,
        supports=supports,
        spreads=(n_y,) * len(supports),
        n_rewards=0,
        delta=delta,
    )(episodes)


def general_rate(branching: Iterable[int], *, horizon: int, n_y: int, episodes: float) -> Bound:
    """H sqrt(K sum_z min(log |Y|, B(z))) + H sum_z B(z), other logarithms left out."""
    supports = _check_sizes(branching, horizon, n_y, episodes)
    return Bound(
        horizon * sqrt(episodes * sum(min(log(n_y), b) for b in supports)), horizon * sum(supports)
    )


def _check_sizes(
    branching: Iterable[int], horizon: int, n_y: int, episodes: float
) -> tuple[int, ...]:
    """B(z) as a tuple; one ModelError names every size that is none."""
    listed = isinstance(branching, Iterable) and not isinstance(branching, str | bytes | Mapping)
    supports = tuple(branching) if listed else ()
    if not listed:
        raise ModelError(f"branching is {show(branching)}; expected a list of whole numbers B(z)")
    found = [f for b in supports for f in whole("branching", b, 1)][:1]
    require(
        found, whole("horizon", horizon, 1), whole("n_y", n_y, 1), number("episodes", episodes, 1)
    )
    return supports


def union_log(
    horizon: int,
    n_y: float,
    n_features: int,
    episodes: float,
    delta: float = 0.05,
    *,
    printed: bool = False,
) -> float:
    """ell_1 = log(32 H^2 |Y| |Z| K / delta) pays for a union bound over y; `printed` has H in place
    of H^2.
    """
    return log(32 * horizon ** (1 if printed else 2) * n_y * n_features * episodes / delta)


def support_log(
    support: int, horizon: int, n_features: int, episodes: float, delta: float = 0.05
) -> float:
    """ell_2(z) = log(32 H B(z) |Z| K / delta).

    B(z) times it pays for all functions on B(z) points.
    """
    return log(32 * horizon * support * n_features * episodes / delta)


def explicit(width: float, visits: float, episodes: float, first: float, lower: float) -> Bound:
    """The two terms, from first = sum_z ell(z) and lower = sum_z B(z) ell_2(z).

    visits: a bound on the count of one feature.
    """
    growth = log(e * visits)
    return Bound(LEADING * width * sqrt(episodes * growth * first), LOWER * width * growth * lower)


def smallest_episodes(bound: Callable[[int], float], width: float) -> int:
    """The smallest K with bound(K) < width * K: from there on the bound beats the trivial one.

    bound(K) / K must fall with K, as it does for every bound of this module.
    """
    require(function("bound", bound, "K -> number"), number("width", width, above=True))
    require(instance("bound(1)", bound(1), Real, "a number"))
    high = 1
    while not bound(high) < width * high:
        high *= 2
        if high > 2**200:
            raise ModelError(
                f"smallest_episodes: bound(K) is still not below {width:g} K at K = 2^200; "
                "bound(K)/K must fall to zero"
            )
    low = high // 2  # not below here, or zero
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) < width * middle else (middle, high)
    return high


def plot(
    curves: Mapping[str, Callable[[int], float]],
    episodes: Iterable[int],
    width: float | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draws bounds against K on logarithmic axes, with the trivial bound width * K where a width is
    given.
    """
    from matplotlib import pyplot as plt

    if axes is None:
        axes = plt.subplots(figsize=(6.4, 4.0))[1]
    grid = list(episodes)
    for label, bound in curves.items():
        axes.loglog(grid, [float(bound(k)) for k in grid], label=label)
    if width is not None:
        trivial = [width * k for k in grid]
        axes.loglog(grid, trivial, color="0.6", linestyle=":", label=f"trivial: {width:g} K")
    axes.set(xlabel="episodes K", ylabel="bound on the cumulative regret")
    axes.legend(frameon=False)
    return axes
