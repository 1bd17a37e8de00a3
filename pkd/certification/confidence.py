"""Confidence sets of laws, uniform in time: which laws of a feature the data have not refuted.

The set of a feature z is {q : KL(p^, q) <= C(z)}; `radius` gives C(z) from counts. With probability
1 - delta the true laws of all features lie in their sets at all times at once, however the policies
that produced the samples were chosen (Ville's inequality for the mixture martingale of
`pkd.engine.confidence`). A set needs no number of episodes, no horizon and no number of states.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from pkd.engine import confidence as kernels
from pkd.engine import doors
from pkd.expect import failure, require
from pkd.model import ModelError

__all__ = ["evidence", "radii", "radius", "reward_radius"]


def evidence(counts: Sequence[float], branching: int | None = None) -> float:
    """log(prod p^^n / w(n)): how much better the best law explains the data than the mixture does.

    branching: B(z), a known bound on how many outcomes are possible; by default all of them are.

    >>> round(evidence([1, 1]), 6)  # p^^n = 1/4, w = 1/2 * 1/8
    1.386294
    """
    row = np.array(counts, float)
    bound = len(row) if branching is None else branching
    if not len(row) or not np.isfinite(row).all() or (row < 0).any():
        raise ModelError(f"counts are {counts!r}; expected finite numbers >= 0, at least one")
    if not 1 <= bound <= len(row):
        raise ModelError(
            f"branching is {branching!r}; expected a whole number from 1 to {len(row)}"
        )
    return float(doors.evidence(row, 0, len(row), bound))


def radius(
    counts: Sequence[float], delta: float, *, branching: int | None = None, weight: float = 1.0
) -> float:
    """C = [log(1 / (weight delta)) + evidence] / N; infinite without data.

    weight: the part of delta that this feature may use up; those of all features sum to at most 1.

    >>> round(radius([30, 70], 0.05), 6)
    0.062201
    """
    found = evidence(counts, branching)
    require(failure("delta", delta))
    if not 0 < weight <= 1:
        raise ModelError(f"weight is {weight!r}; expected a number in (0, 1]")
    total = math.fsum(counts)
    return max(found - math.log(delta) - math.log(weight), 0.0) / total if total > 0 else math.inf


def radii(
    rows: Iterable[Sequence[float]], delta: float, *, branching: Iterable[int] | None = None
) -> np.ndarray:
    """C(z) of many features at once, each with the same weight 1/|Z|.

    >>> radii([[30, 70], [0, 0, 0]], 0.05).round(6)
    array([0.069132,      inf])
    """
    require(failure("delta", delta))
    table = [np.array(row, float) for row in rows]
    bounds = [len(row) for row in table] if branching is None else list(branching)
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in table])]).astype(np.int64)
    out, budget = np.zeros(len(table)), math.log(max(len(table), 1) / delta)
    flat = np.concatenate([np.zeros(0), *table])
    kernels.fill_radii(ptr, flat, np.array(bounds, float), np.full(len(table), budget), out)
    return out


def reward_radius(
    values: Iterable[float], low: float, high: float, delta: float, *, weight: float = 1.0
) -> float:
    """C with kl(mean, mu) <= C for the mean mu of rewards in [low, high], both scaled to [0, 1].

    A reward x counts as x heads and 1 - x tails of a coin: x -> a^x b^(1-x) is convex, so the
    wealth of the bet is a supermartingale.

    >>> round(reward_radius([0.25] * 40, 0.0, 1.0, 0.05), 6)
    0.144169
    """
    scaled = [(value - low) / (high - low) for value in values]
    heads = math.fsum(scaled)
    return radius([heads, len(scaled) - heads], delta, weight=weight)
