"""What a sweep believes, what has been counted, and what episodes are drawn from: one type each.

Both engines take the same `Belief`, `Tally` and `World`; no engine adds a part of its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pkd.model import ModelError

__all__ = ["CONSTANTS", "NO_DRAWS", "N_ARRAYS", "Belief", "Tally", "World"]

Floats = np.ndarray  # float64
NO_DRAWS = np.zeros((0, 0))


class Belief(NamedTuple):
    """A law, and for an optimistic one the counts and the constants of the bonus.

    Arrays come first.
    """

    p: Floats  # (outcomes of all law rows,)
    n: Floats  # (unknown rows,) N(z)
    mean: Floats  # (unknown rewards,) the mean that is believed
    ell: Floats  # (weights,) the logarithm of each distinct (row, share)
    radius: Floats  # (unknown rows,) C(z) of the set of laws that are not refuted
    budget: Floats  # (sets + 1,) log(1 / (weight delta)) of a set by the rank of its feature
    bound: Floats  # (unknown rows,) B(z)
    form: int  # NO_BONUS, SUM, ... of `pkd.optimism`
    c1: float
    c2: float
    free: float  # N(z) <= free gives the cap
    ceiling: float  # a declared cap on r + pV + bonus, or infinity
    width: float  # of values, where declared; nan: each pair (z, y') has its own; 0: no bonus
    sign: float  # CERTIFIED: 1 for the largest value over each set, -1 for the least
    rounds: int  # CERTIFIED: of the search for it; DRAWS: which value counts, from the largest
    # DRAWS: (draws, outcomes of unknown rows + unknown rows): laws, then the masses of the
    # optimistic outcomes.
    draws: Floats = NO_DRAWS
    rule: Any = None  # PYTHON: (rule, episode); kernels get None

    def copy(self) -> Belief:
        """The same belief in arrays of its own, which the next estimate does not change."""
        arrays = {name: getattr(self, name).copy() for name in self._fields[:N_ARRAYS]}
        return self._replace(**arrays, draws=self.draws.copy())

    def ask_rule(self, p: Floats, v: Floats, n: float, width: float) -> float:
        """What a rule in Python says; a ModelError where it says no number."""
        rule, k = self.rule
        answer = rule.value(p, v, n, k, width)
        try:
            value = float(answer)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise ModelError(
                f"{type(rule).__name__}.value(p_hat={p.tolist()!r}, V={v.tolist()!r}, N={n:g}, "
                f"k={k}, width={width:g}) is {answer!r}; expected a finite number"
            )
        return value


N_ARRAYS = 7  # of a belief; its constants follow
CONSTANTS = Belief._fields[N_ARRAYS:15]


class Tally(NamedTuple):
    """What has been counted so far."""

    counts: Floats  # (outcomes of unknown rows,) N(z, x')
    n: Floats  # (unknown rows,) N(z)
    marks: Floats  # (unknown rows,) the next plan is due when N(z) reaches this count
    rewards: Floats  # (3, unknown rewards): number, mean, sum of squared deviations
    reward_marks: Floats  # (unknown rewards,) the same for the number of payments
    # (unknown rows + unknown rewards,) int64: how many had data when this one first had some, or 0
    rank: np.ndarray

    def most_seen(self) -> float:
        """The largest number of samples of a feature or payments of a reward."""
        return float(max(self.n.max(initial=0.0), self.rewards[0].max(initial=0.0)))

    def set_marks(self, factor: float) -> None:
        """The next plan is due when some count has grown by this factor; infinite: never."""
        for marks, n in ((self.marks, self.n), (self.reward_marks, self.rewards[0])):
            marks[:] = np.maximum(1.0, factor * n) if factor < math.inf else math.inf


class World(NamedTuple):
    """The truth that episodes are drawn from, as cumulative sums."""

    rows: Floats  # (outcomes of all law rows,) cumulative within a row
    reward_ptr: np.ndarray  # (unknown rewards + 1,)
    reward_value: Floats  # values that can be paid, ascending
    reward_rows: Floats  # cumulative within the law of a reward
