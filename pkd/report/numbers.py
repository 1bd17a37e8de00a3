"""Numbers of runs in words: counts, medians, intervals, and what a rule guarantees."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from pkd.optimism import Guarantee
from pkd.results.intervals import bootstrap_mean

__all__ = [
    "GOAL", "count", "mean_interval", "median_episodes", "number", "seeds", "state_guarantee",
]  # fmt: skip

GOAL = 0.95  # of the gain


def number(value: object) -> str:
    """Six digits; rounding noise is 0.

    >>> number(2 / 3), number(1e-14), number("exact")
    ('0.666667', '0', 'exact')
    """
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return ""
    return f"{value:.6g}" if abs(value) > 1e-12 else "0"


def count(many: int, noun: str) -> str:
    """
    >>> count(1, "run"), count(2000, "run")
    ('1 run', '2,000 runs')
    """
    return f"{many:,} {noun}{'' if many == 1 else 's'}"


def seeds(numbers: Iterable[int]) -> str:
    """
    >>> seeds([2, 0, 1]), seeds([7, 3])
    ('0 to 2', '3, 7')
    """
    found = sorted(numbers)
    whole = len(found) > 2 and found == list(range(found[0], found[-1] + 1))
    return f"{found[0]} to {found[-1]}" if whole else ", ".join(map(str, found))


def mean_interval(samples: Sequence[float]) -> tuple[str, str]:
    """The mean, and its bootstrap interval of 95%; one sample has none."""
    found = bootstrap_mean(np.array(samples))
    if len(samples) < 2:
        return number(float(found.mean)), ""
    return number(float(found.mean)), f"{number(float(found.low))} to {number(float(found.high))}"


def median_episodes(reached: Iterable[int | None], most: int) -> str:
    """The median of some numbers of episodes; None: not reached within `most`.

    >>> median_episodes([4, 9], 50), median_episodes([4, 9, None], 50), median_episodes([None], 50)
    ('6.5', '9', '> 50')
    """
    middle = statistics.median(math.inf if one is None else one for one in reached)
    return f"{middle:,.1f}".removesuffix(".0") if middle < math.inf else f"> {most:,}"


def state_guarantee(guarantee: Guarantee, delta: float | None) -> str:
    """What is proved about the values of a rule, in a sentence."""
    if guarantee == "no guarantee" or delta is None:
        return guarantee
    if guarantee == "certified":
        return f"certified: all values hold at all times with probability {1 - delta:g}"
    return f"as published: all upper values hold with probability {1 - delta:g}"
