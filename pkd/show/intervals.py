"""Intervals over seeds, whose coverage tests/experiments measures.

A mean has Student's t interval, a median the order statistics that the binomial law of signs gives,
a share the interval of Clopper and Pearson. Below `FEWEST` seeds a mean has none. scipy is imported
when a quantile is asked for.

Student's interval covers the mean as often as it says under normal laws, and less often where a law
is skewed, above all where a rare run is stuck. Percent of 95% intervals that cover the mean:

    seeds                                     3     5    10    20
    normal                                   95    95    95    95
    lognormal, sigma 1                       84    82    84    87
    exponential                              89    88    90    92
    one run in ten loses ten times as much   45    41    65    88
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pkd.model import ModelError

LEVEL = 0.95
FEWEST = 3  # seeds of an interval of a mean
FEW = "few"  # what a table says in place of an interval


class Interval(NamedTuple):
    """A mean, a median or a share with the ends of its interval; numbers, or arrays of one shape.

    Both ends are nan where the data are too few for the level.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def mean_interval(samples: np.ndarray, level: float = LEVEL) -> Interval:
    """The mean over the first axis and Student's t interval; samples: (seeds, ...).

    mean -+ t s / sqrt(n), t the quantile (1 + level) / 2 of Student's law with n - 1 degrees.

    >>> mean, low, high = mean_interval(np.array([1.0, 2.0, 3.0]))
    >>> mean, round(float(high), 4)  # 2 + 4.3027 / sqrt(3)
    (array(2.), 4.4841)
    """
    samples = np.asarray(samples, float)
    _check(samples, level)
    count, mean = len(samples), np.asarray(samples.mean(axis=0))
    if count < FEWEST:
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    from scipy.special import stdtrit

    half = stdtrit(count - 1, (1 + level) / 2) * samples.std(axis=0, ddof=1) / math.sqrt(count)
    # Equal samples have an interval of length 0, whatever rounding says.
    half = np.where((samples == samples[0]).all(axis=0), 0.0, half)
    mean = np.where(half == 0.0, samples[0], mean)
    return Interval(mean, mean - half, mean + half)


def say_mean(found: Interval) -> str:
    """A mean and half of its interval, with two digits of it; without one the word "few".

    >>> say_mean(mean_interval(np.array([401.0, 455.0, 431.0])))
    '429 ± 67'
    >>> say_mean(mean_interval(np.array([2.5])))
    '2.5 (few)'
    """
    value, high = float(found.value), found.high
    if np.isnan(high):
        return f"{value:.5g} ({FEW})"
    half = float(high) - value
    if half <= 1e-12 * abs(value):
        return f"{value:.6g} ± 0"
    digits = 1 - math.floor(math.log10(half))
    if abs(value) >= 1e7 or digits > 7:
        return f"{value:.4g} ± {half:.2g}"
    return f"{round(value, digits):.{max(digits, 0)}f} ± {round(half, digits):.{max(digits, 0)}f}"


def median_interval(samples: np.ndarray, level: float = LEVEL) -> Interval:
    """The median of some numbers, inf allowed, and the order statistics around it.

    The interval from the j-th smallest to the j-th largest covers the median of a continuous law
    with probability 1 - 2 P(Bin(n, 1/2) < j), exactly, and of any law at least so often. 95% need
    six samples.

    >>> [float(one) for one in median_interval(np.arange(6.0))]
    [2.5, 0.0, 5.0]
    """
    samples = np.sort(np.asarray(samples, float))
    _check(samples, level)
    count, tail, j = len(samples), 0.0, 0
    while (tail := tail + math.comb(count, j) / 2**count) <= (1 - level) / 2:
        j += 1
    middle = samples[[(count - 1) // 2, count // 2]]
    median = np.asarray(middle[0] if middle[0] == middle[1] else middle.mean())
    ends = (samples[j - 1], samples[count - j]) if j else (np.nan, np.nan)
    return Interval(median, *map(np.asarray, ends))


def share_interval(hits: np.ndarray, runs: int, level: float = LEVEL) -> Interval:
    """A share of independent runs, and the exact interval of Clopper and Pearson.

    It covers the probability at least as often as it says.

    >>> [round(float(one), 4) for one in share_interval(np.array(0), 10)]
    [0.0, 0.0, 0.3085]
    """
    from scipy.special import betaincinv

    hits, tail = np.asarray(hits, float), (1 - level) / 2
    some, all_but = np.maximum(hits, 0.5), np.minimum(hits, runs - 0.5)  # 0 and n stand apart
    low = np.where(hits == 0, 0.0, betaincinv(some, runs - some + 1, tail))
    high = np.where(hits == runs, 1.0, betaincinv(all_but + 1, runs - all_but, 1 - tail))
    return Interval(hits / runs, low, high)


def _check(samples: np.ndarray, level: float) -> None:
    if samples.ndim == 0 or not len(samples):
        raise ModelError(f"expected one number at least for each mean, found {samples!r}")
    if not 0 < level < 1:
        raise ModelError(f"level is {level!r}; expected a number between 0 and 1")
