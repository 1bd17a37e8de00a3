"""What every study measures: regret over seeds, means with errors, slopes on log axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import pkd

__all__ = ["Estimate", "against", "final_regrets", "mean", "ratio", "rising", "slope"]

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number with its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3g} (s.e. {self.error:.1g})"


def final_regrets(
    model: Any, law: Any, episodes: int, rule: Any, seeds: Iterable[int], **options: Any
) -> Floats:
    """The cumulative regret after the last episode, one number for each seed."""
    compiled = pkd.compile(model)
    return np.array(
        [
            pkd.learn(compiled, law, episodes, optimism=rule, seed=seed, **options).regret[-1]
            for seed in seeds
        ]
    )


def mean(sample: Floats) -> Estimate:
    """The mean over seeds."""
    return Estimate(float(np.mean(sample)), _error_of_mean(sample))


def ratio(above: Floats, below: Floats) -> Estimate:
    """The ratio of the means of two samples with the same seeds.

    The error counts what the two have in common.
    """
    quotient = float(np.mean(above) / np.mean(below))
    return Estimate(quotient, _error_of_mean((above - quotient * below) / np.mean(below)))


def slope(x: Sequence[float], samples: Sequence[Floats]) -> Estimate:
    """The least-squares slope of log mean(sample) on log x, with its jackknife error.

    The jackknife leaves out the j-th numbers of all samples at once, so the error is right whether
    two points share their seeds or have seeds of their own. Where a mean is zero there is no slope:
    nan. samples: (points, seeds).
    """
    table = np.array(samples)
    distance = np.log(x) - np.mean(np.log(x))
    weights = distance / (distance @ distance)
    seeds = table.shape[1]
    if seeds < 2:
        return Estimate(float(weights @ _log(table.mean(axis=1))), float("nan"))
    without = (table.sum(axis=1, keepdims=True) - table) / (seeds - 1)
    left_out = weights @ _log(without)
    error = np.sqrt((seeds - 1) / seeds * np.sum((left_out - left_out.mean()) ** 2))
    return Estimate(float(weights @ _log(table.mean(axis=1))), float(error))


def against(found: Estimate, predicted: float, name: str) -> str:
    """Whether an estimate is two standard errors away from a prediction, in words."""
    if not abs(found.value - predicted) > 2 * found.error:  # also where the error is nan
        return f"cannot be told from {name}"
    return f"is {'above' if found.value > predicted else 'below'} {name}"


def rising(x: Sequence[float], samples: Sequence[Floats]) -> list[float]:
    """The slope between each point and the one before it.

    Nothing can be said of the first, which is nan.
    """
    means = np.array([np.mean(sample) for sample in samples])
    return [float("nan"), *(np.diff(_log(means)) / np.diff(np.log(x))).tolist()]


def _log(values: Floats) -> Floats:
    return np.log(np.where(values > 0, values, np.nan))


def _error_of_mean(sample: Floats) -> float:
    return float(np.std(sample, ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("nan")
