"""What a sweep believes, what has been counted, and what episodes are drawn from: one type each.

Both engines take the same `Belief`, `Tally` and `World`; no engine adds a part of its own.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import attrs
import numpy as np

from pkd.model import ModelError
from pkd.optimism import EXACT, NUMPY, ONE_ROUND, Facts, Pairs, PythonRule

Floats = np.ndarray  # float64
NOTHING = np.zeros((0, 0))  # what most rules are told
PORTION = 1 << 15  # numbers that a rule in numpy is given at once: they stay in the cache


def find_belief_fault(name: str, part: Floats) -> str | None:
    """What says that numbers of a file are no part of a belief; None: nothing does."""
    low, high = -math.inf if name in ("mean", "told") else 0.0, 1.0 if name == "p" else math.inf
    if part.dtype.kind != "f":
        return f"{name}: expected numbers, found {part.dtype}"
    endless = name in ("n", "radius")  # known for sure, or not at all
    finite = np.isfinite(part).all() or (endless and not np.isnan(part).any())
    if finite and ((part >= low) & (part <= high)).all():
        return None
    return f"{name}: expected numbers from {low:g} to {high:g}"


@attrs.frozen
class Asking:
    """A rule in numpy and what the run tells it."""

    rule: PythonRule
    k: int = 1  # the episode, from 1
    episodes: int | None = None  # of the whole run, for a rule with `needs_episodes`
    delta: float = 0.5


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
    form: int = EXACT  # EXACT, SUM, ... of `pkd.optimism`
    c1: float = 0.0
    c2: float = 0.0
    free: float = 0.0  # N(z) <= free gives the cap
    ceiling: float = math.inf  # a declared cap on r + pV + bonus, or infinity
    width: float = 0.0  # of values, where declared; nan: each pair (z, y') has its own; 0: no bonus
    sign: float = 1.0  # CERTIFIED: 1 for the largest value over each set, -1 for the least
    rounds: int = ONE_ROUND  # CERTIFIED: of the search for it
    told: Floats = NOTHING  # NUMPY: what the rule was told for this plan
    asking: Asking | None = None  # NUMPY: the rule; kernels get None
    # (unknown rows + unknown rewards,) CERTIFIED: whose estimate is taken as it is
    exogenous: np.ndarray = np.zeros(0, np.bool_)

    def copy(self) -> Belief:
        """The same belief in arrays of its own, which the next estimate does not change."""
        arrays = {name: getattr(self, name).copy() for name in self._fields[:N_ARRAYS]}
        return self._replace(**arrays, told=self.told.copy())

    @property
    def plain(self) -> Belief:
        """What a kernel gets: no Python object, and one type for every rule."""
        return self if self.form != NUMPY else self._replace(told=NOTHING, asking=None)

    def ask(self, p: Floats, v: Floats, row: np.ndarray, limits: Floats) -> Floats:
        """(n,) what a rule in numpy says of pairs; p, v: (B, n), row: (n,), limits: (2, n).

        Values are at most the cap, which is the value without data, unless the rule has its own.
        """
        assert self.asking is not None
        (cap, width), n, rule = limits, self.n[row], self.asking.rule
        out, k, told = cap.copy(), self.asking.k, self.told
        top = np.minimum(cap, self.ceiling)
        asked = cap > -math.inf  # the others cannot occur in this layer
        if not rule.values_unseen:
            asked &= n > 0
        everything, size = bool(asked.all()), max(PORTION // len(p), 1)
        for lo in range(0, len(row), size):
            part: Any = slice(lo, lo + size)
            if not everything:
                part = lo + np.flatnonzero(asked[part])
                if not len(part):
                    continue
            law, after = p[:, part].T, v[:, part].T
            pairs = Pairs(law, after, n[part], width[part], top[part], row[part], k, told)
            out[part] = check_answer(rule, rule.values(pairs), pairs)
        found: Floats = out if rule.values_unseen else np.minimum(out, cap)
        return found

    def ask_for_means(self, facts: Facts, out: Floats) -> None:
        """Fills the means of unknown rewards: their upper ends without data."""
        assert self.asking is not None
        out[:] = facts.high
        seen = (facts.paid[0] > 0) & (facts.high > facts.low)
        if seen.any():
            found = np.asarray(self.asking.rule.means(facts), float)[seen]
            if not np.isfinite(found).all():
                name = type(self.asking.rule).__name__
                raise ModelError(f"{name}.means(facts) is {found.tolist()!r}; expected numbers")
            out[seen] = np.minimum(found, facts.high[seen])


def check_answer(rule: PythonRule, answer: Any, pairs: Pairs) -> Floats:
    """The answer of a rule as numbers; a ModelError where it has none for some pair."""
    n, found = len(pairs.N), np.full(0, math.nan)
    with suppress(TypeError, ValueError):
        found = np.asarray(answer, float)
    if found.shape == (n,) and np.isfinite(found).all():
        return found
    asked = f"{type(rule).__name__}.values(pairs), k={pairs.k},"
    if found.shape != (n,):
        said = answer if isinstance(answer, str | float | int) else type(answer).__name__
        shape = f" of shape {found.shape}" if isinstance(answer, np.ndarray) else ""
        raise ModelError(f"{asked} is {said!r}{shape}; expected an array of {n} finite numbers")
    i = int(np.flatnonzero(~np.isfinite(found))[0])
    raise ModelError(
        f"{asked} is {float(found[i])!r} for P={pairs.P[i].tolist()!r}, V={pairs.V[i].tolist()!r}, "
        f"N={pairs.N[i]:g}, width={pairs.width[i]:g}; expected a finite number"
    )


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
    # (5,): the slack of a schedule; the cost of samples under old counts beyond twice their cost
    # now, and what they cost now, by 1 / sqrt(N) and by 1 / N: see `pkd.engine.bonus.is_due`
    spent: Floats

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
