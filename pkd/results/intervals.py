"""Bootstrap intervals of a mean over seeds; scipy is imported when one is asked for.

The interval is bias-corrected and accelerated (BCa). The same data give the same interval: the
random numbers of the bootstrap have a seed of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.model import ModelError

__all__ = ["LEVEL", "Interval", "bootstrap_mean"]

LEVEL = 0.95
RESAMPLES = 4000
BATCH = 2**24  # numbers that are held at once


class Interval(NamedTuple):
    """A mean with the ends of its interval; numbers, or arrays of one shape."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def bootstrap_mean(samples: np.ndarray, level: float = LEVEL, seed: int = 0) -> Interval:
    """The mean over the first axis, and its interval of this level; samples: (seeds, ...).

    One sample has no interval: both ends are nan. Equal samples have an interval of length 0.

    >>> bootstrap_mean(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).mean
    array(3.5)
    """
    samples = np.asarray(samples, float)
    if samples.ndim == 0 or not len(samples):
        raise ModelError(f"expected one number at least for each mean, found {samples!r}")
    if not 0 < level < 1:
        raise ModelError(f"level is {level!r}; expected a number between 0 and 1")
    count, mean = len(samples), samples.mean(axis=0)
    flat = samples.reshape(count, -1)
    ends = np.full((2, flat.shape[1]), np.nan)
    if count > 1:
        ends[:] = flat[0]
        varied = (flat != flat[0]).any(axis=0)
        if varied.any():
            ends[:, varied] = _resample(flat[:, varied], level, seed)
    low, high = ends.reshape(2, *samples.shape[1:])
    return Interval(np.asarray(mean), low, high)


def _resample(samples: np.ndarray, level: float, seed: int) -> np.ndarray:
    from scipy.stats import bootstrap

    found = bootstrap(
        (samples,),
        np.mean,
        axis=0,
        confidence_level=level,
        n_resamples=RESAMPLES,
        batch=max(1, BATCH // samples.size),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return np.array([found.low, found.high])
