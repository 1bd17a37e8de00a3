"""What several seeds say: paired comparisons, ranks, performance profiles, slopes.

Intervals are those of `pkd.show.intervals`; a range from the lowest to the highest seed is never
shown, because it grows with the number of seeds. Scores are regrets: less is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

import attrs
import numpy as np

from pkd.model import ModelError
from pkd.show.intervals import LEVEL, Interval, mean_interval, share_interval

__all__ = [
    "ALPHA", "Pair", "Profile", "average", "compare_all", "compare_pair", "correct", "count_seeds",
    "fit_slope", "list_ranks", "profile_performance", "rank_agents",
]  # fmt: skip

ALPHA = 0.05  # the level of tests
ALL_FLIPS = 13  # seeds of which all changes of signs are tried; of more a sample
FLIPS = 9_999  # of that sample
FIRST_SHARE = 0.1  # of the episodes that a slope leaves out

Key = TypeVar("Key")


@attrs.frozen
class Pair:
    """One agent less another on the same seeds."""

    difference: float  # the mean; below 0: the first has less regret
    low: float  # Student's interval of the mean difference
    high: float
    p: float  # of the two-sided test that the sign of each difference is chance; corrected by Holm
    seeds: int
    comparisons: int = 1  # for which p is corrected
    units: str = "seeds"  # what is paired: seeds, or instances of a sweep

    @property
    def differs(self) -> bool:
        """Whether p is at most 0.05."""
        return self.p <= ALPHA

    @property
    def seeds_needed(self) -> int:
        """The fewest seeds with which p can reach 0.05."""
        return count_seeds(self.comparisons)

    def __str__(self) -> str:
        said = f"{self.difference:.6g} ({self.low:.6g} to {self.high:.6g}), p = {self.p:.2g}"
        many = f" after Holm for {self.comparisons} comparisons" if self.comparisons > 1 else ""
        few = ""
        if self.seeds < self.seeds_needed:
            few = f"; {self.seeds_needed} {self.units} at least can reach {ALPHA:g}"
        return f"{said}{many}, {self.seeds} {self.units}{few}"


class Profile(NamedTuple):
    """Shares of the runs in which an agent has at most tau times the regret of the best one."""

    taus: np.ndarray  # (T,)
    shares: dict[str, Interval]  # of each agent, (T,)


def compare_pair(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Pair:
    """The mean difference of two agents, run by run on the same seeds, with its interval.

    The test changes the signs of the differences in all 2^n ways (of more than 13 seeds: in 9,999
    random ones): p is the share of them whose mean is as far from 0 as the observed one. So p is at
    least 2^(1 - n).

    >>> print(compare_pair([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]))  # 2 of the 8 ways
    -2 (-4.48414 to 0.484138), p = 0.25, 3 seeds; 6 seeds at least can reach 0.05
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    if one.shape != other.shape or one.ndim != 1 or not one.size:
        raise ModelError(
            f"a paired comparison needs the same seeds on both sides; found {one.size} and "
            f"{other.size} runs"
        )
    difference = one - other
    mean, low, high = map(float, mean_interval(difference, level))
    return Pair(mean, low, high, _flip_signs(difference), one.size)


def compare_all(
    scores: Mapping[str, Sequence[float]], units: str = "seeds"
) -> dict[tuple[str, str], Pair]:
    """Every two agents on the same seeds or instances, with p corrected by Holm for all."""
    pairs = {(a, b): compare_pair(scores[a], scores[b]) for a, b in combinations(scores, 2)}
    return correct({key: attrs.evolve(pair, units=units) for key, pair in pairs.items()})


def correct(pairs: Mapping[Key, Pair]) -> dict[Key, Pair]:
    """The same comparisons with p corrected by Holm: the chance of any false alarm is at most p.

    The i-th smallest of m is multiplied by m + 1 - i, and is never below one that is smaller.
    """
    found, most = {}, 0.0
    for i, key in enumerate(sorted(pairs, key=lambda key: pairs[key].p)):
        most = max(most, min(1.0, (len(pairs) - i) * pairs[key].p))
        found[key] = attrs.evolve(pairs[key], p=most, comparisons=len(pairs))
    return {key: found[key] for key in pairs}


def count_seeds(comparisons: int = 1) -> int:
    """The fewest seeds with which the sign-flip test can reach 0.05: comparisons 2^(1 - n) <= 0.05.

    >>> count_seeds(), count_seeds(6), count_seeds(45)
    (6, 8, 11)
    """
    return 1 + math.ceil(math.log2(comparisons / ALPHA))


def rank_agents(
    scores: Mapping[str, np.ndarray],
    level: float = LEVEL,
    over: str = "seeds",
    draws: Sequence[str] | None = None,
) -> dict[str, Interval]:
    """The mean rank of each agent, 1 the best, ties shared; scores: (models, seeds) each.

    Agents are ranked in every (model, seed). The interval is over "seeds", of which each is the
    mean over models, or else over models, of which each is the mean over seeds. draws: of each
    model its draw, where models of one draw are one unit.

    >>> ranks = rank_agents({"a": np.array([[1.0, 2.0]]), "b": np.array([[3.0, 2.0]])})
    >>> float(ranks["a"].value), float(ranks["b"].value)
    (1.25, 1.75)
    """
    rows = list_ranks(scores, over, draws)
    return {name: mean_interval(np.array(row), level) for name, row in rows.items()}


def list_ranks(
    scores: Mapping[str, np.ndarray], over: str = "seeds", draws: Sequence[str] | None = None
) -> dict[str, list[float]]:
    """The rank of each agent for each seed, the mean over the models, or the other way round."""
    table = _stack(scores)
    less = (table[:, None] > table).sum(axis=1)
    equal = (table[:, None] == table).sum(axis=1)
    ranks = less + (equal + 1) / 2
    rows = ranks.mean(axis=1) if over == "seeds" else average(ranks.mean(axis=2), draws)
    return dict(zip(scores, rows.tolist(), strict=True))


def average(values: np.ndarray, draws: Sequence[str] | None) -> np.ndarray:
    """The means of the last axis over models of one draw; draws None: as they are.

    >>> average(np.array([1.0, 3.0, 7.0]), ["a", "a", "b"])
    array([2., 7.])
    """
    if draws is None:
        return values
    _, places, sizes = np.unique(draws, return_inverse=True, return_counts=True)
    return values @ np.eye(len(sizes))[places] / sizes


def profile_performance(
    scores: Mapping[str, np.ndarray], taus: Sequence[float] | None = None, level: float = LEVEL
) -> Profile:
    """The performance profile: the share of (model, seed) with regret <= tau times the best.

    The best is the agent with the least mean regret on the model, taken as known. The interval is
    that of a share of independent runs. scores: (models, seeds) each.

    >>> scores = {"a": np.array([[1.0, 1.0]]), "b": np.array([[3.0, 1.5]])}
    >>> profile_performance(scores, taus=[1.0, 2.0]).shares["b"].value
    array([0. , 0.5])
    """
    table = _stack(scores)
    best = table.mean(axis=2).min(axis=0)  # (models,)
    if taus is None:
        worst = (table.max(axis=(0, 2)) / np.maximum(best, 1e-300)).max()
        taus = np.geomspace(1.0, min(max(worst, 2.0), 1e4), 50).tolist()
    points = np.asarray(taus, float)
    shares = {}
    for name, row in zip(scores, table, strict=True):
        within = row[:, :, None] <= points * best[:, None, None]  # (models, seeds, T)
        shares[name] = share_interval(within.sum(axis=(0, 1)), row.size, level)
    return Profile(points, shares)


def fit_slope(curves: np.ndarray, level: float = LEVEL, skip: float = FIRST_SHARE) -> Interval:
    """The slope of log regret over log episode, by least squares for each seed, with its interval.

    1/2 is regret of the order sqrt(K), 1 is no learning. curves: cumulative regret (seeds, K); the
    first share `skip` of the episodes is left out. The fit is at points that are even in log k.

    >>> k = np.arange(1, 1001)
    >>> round(float(fit_slope(np.array([3 * np.sqrt(k), 5 * np.sqrt(k)])).value), 9)
    0.5
    """
    curves = np.atleast_2d(np.asarray(curves, float))
    count = curves.shape[1]
    first = max(1, math.ceil(skip * count))
    if count - first < 2:
        raise ModelError(f"a slope needs three episodes at least after the first {first}")
    k = np.unique(np.geomspace(first, count, 50).astype(int))
    chosen = curves[:, k - 1]
    if not (chosen > 0).all():
        raise ModelError("a slope needs positive regret in the episodes that it is fitted to")
    return mean_interval(np.polyfit(np.log(k), np.log(chosen).T, 1)[0], level)


def _flip_signs(difference: np.ndarray) -> float:
    """The two-sided p of a sign-flip test."""
    count = difference.size
    if count <= ALL_FLIPS:
        signs = 1 - 2 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)
    else:
        drawn = np.random.default_rng(0).integers(0, 2, (FLIPS, count))
        signs = np.vstack([np.ones(count), 1 - 2 * drawn])  # what was observed is one of them
    rounding = 1e-12 * np.abs(difference).sum()
    return float((np.abs(signs @ difference) >= abs(difference.sum()) - rounding).mean())


def _stack(scores: Mapping[str, np.ndarray]) -> np.ndarray:
    """(agents, models, seeds)."""
    shapes = {name: np.shape(score) for name, score in scores.items()}
    if len(set(shapes.values())) != 1 or len(next(iter(shapes.values()), ())) != 2:
        raise ModelError(f"expected the same (models, seeds) of every agent, found {shapes}")
    return np.array([np.asarray(score, float) for score in scores.values()])
