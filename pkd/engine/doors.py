"""Doors for Python to parts of kernels.

The parts themselves have none: whoever waits for a kernel to be compiled would wait for the doors.
"""

from __future__ import annotations

from pkd.engine import bonus, confidence, random
from pkd.engine.jit import jit


@jit()
def count(tally, row, place):
    """One more outcome of an unknown row. Returns whether a plan is due."""
    return bonus.count(tally, row, place)


@jit()
def count_reward(tally, w, value, weight):
    """A reward seen `weight` times. Returns whether a plan is due."""
    return bonus.count_reward(tally, w, value, weight)


@jit()
def draw(cumulative, lo, hi, u):
    """The first i in [lo, hi) with u < cumulative[i]."""
    return random.draw(cumulative, lo, hi, u)


@jit()
def uniform(state):
    """U in [0, 1) with 53 random bits."""
    return random.uniform(state)


@jit()
def evidence(counts, lo, hi, bound):
    """log(prod_i p^_i^n_i / w(n)) of counts[lo:hi]."""
    return confidence.evidence(counts, lo, hi, bound)
