"""What several seeds say: intervals, paired comparisons, ranks, performance profiles, slopes.

Every interval is a bootstrap interval over seeds (`pkd.results.intervals`); a range from the lowest
to the highest seed is never shown, because it grows with the number of seeds. scipy is imported
when a number is asked for. Scores are regrets: less is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pkd.model import ModelError
from pkd.results.intervals import LEVEL, Interval, bootstrap_mean

__all__ = [
    "Interval", "Pair", "Profile", "bootstrap_mean", "compare_pairs", "fit_slope",
    "profile_performance", "rank_agents",
]  # fmt: skip

EXACT = 10_000  # sign changes that are all tried; more are sampled
FIRST_SHARE = 0.1  # of the episodes that a slope leaves out


class Pair(NamedTuple):
    """One agent less another on the same seeds."""

    difference: float  # the mean; below 0: the first has less regret
    low: float
    high: float
    p: float  # of the two-sided test that the sign of each difference is chance
    seeds: int


class Profile(NamedTuple):
    """Shares of the runs in which an agent has at most tau times the regret of the best one."""

    taus: np.ndarray  # (T,)
    shares: dict[str, Interval]  # of each agent, (T,)


def compare_pairs(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Pair:
    """The mean difference of two agents, run by run on the same seeds, with its interval.

    The test changes the signs of the differences in all 2^n ways (or in 10,000 random ones): p is
    the share of them whose mean is as far from 0 as the observed one.

    >>> pair = compare_pairs([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> pair.difference, pair.p  # 2 of the 8 ways: all minus, all plus
    (-2.0, 0.25)
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    if one.shape != other.shape or one.ndim != 1 or not one.size:
        raise ModelError(
            f"a paired comparison needs the same seeds on both sides; found {one.size} and "
            f"{other.size} runs"
        )
    difference = one - other
    mean, low, high = bootstrap_mean(difference, level)
    return Pair(float(mean), float(low), float(high), _flip_signs(difference), one.size)


def rank_agents(scores: Mapping[str, np.ndarray], level: float = LEVEL) -> dict[str, Interval]:
    """The mean rank of each agent, 1 the best, ties shared; scores: (models, seeds) each.

    Agents are ranked in every (model, seed). The interval is over seeds: the ranks of one seed are
    first averaged over the models.

    >>> ranks = rank_agents({"a": np.array([[1.0, 2.0]]), "b": np.array([[3.0, 2.0]])})
    >>> float(ranks["a"].mean), float(ranks["b"].mean)
    (1.25, 1.75)
    """
    from scipy.stats import rankdata

    table = _stack(scores)
    by_seed = rankdata(table, axis=0).mean(axis=1)  # (agents, seeds)
    return {name: bootstrap_mean(row, level) for name, row in zip(scores, by_seed, strict=True)}


def profile_performance(
    scores: Mapping[str, np.ndarray], taus: Sequence[float] | None = None, level: float = LEVEL
) -> Profile:
    """The performance profile: the share of (model, seed) with regret <= tau times the best.

    The best is the agent with the least mean regret on the model. scores: (models, seeds) each.

    >>> scores = {"a": np.array([[1.0, 1.0]]), "b": np.array([[3.0, 1.5]])}
    >>> profile_performance(scores, taus=[1.0, 2.0]).shares["b"].mean
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
        shares[name] = bootstrap_mean(within.mean(axis=0), level)
    return Profile(points, shares)


def fit_slope(curves: np.ndarray, level: float = LEVEL, skip: float = FIRST_SHARE) -> Interval:
    """The slope of log regret over log episode, by least squares for each seed, with its interval.

    1/2 is regret of the order sqrt(K), 1 is no learning. curves: cumulative regret (seeds, K); the
    first share `skip` of the episodes is left out. The fit is at points that are even in log k.

    >>> k = np.arange(1, 1001)
    >>> round(float(fit_slope(np.array([3 * np.sqrt(k), 5 * np.sqrt(k)])).mean), 9)
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
    return bootstrap_mean(np.polyfit(np.log(k), np.log(chosen).T, 1)[0], level)


def _flip_signs(difference: np.ndarray) -> float:
    """The two-sided p of a sign-flip test."""
    from scipy.stats import permutation_test

    if difference.size < 2:
        return 1.0
    return float(
        permutation_test(
            (difference,),
            np.mean,
            permutation_type="samples",
            n_resamples=EXACT,
            vectorized=True,
            rng=np.random.default_rng(0),
        ).pvalue
    )


def _stack(scores: Mapping[str, np.ndarray]) -> np.ndarray:
    """(agents, models, seeds)."""
    shapes = {name: np.shape(score) for name, score in scores.items()}
    if len(set(shapes.values())) != 1 or len(next(iter(shapes.values()), ())) != 2:
        raise ModelError(f"expected the same (models, seeds) of every agent, found {shapes}")
    return np.array([np.asarray(score, float) for score in scores.values()])
