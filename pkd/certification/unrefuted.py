"""The laws that data have not refuted, ready to be asked for intervals, now and with more data.

`Unrefuted` holds the counts of a compiled model and gives the least and the largest value over the
sets of laws. `find_more_samples` asks it again with samples that are not there yet, to say which of
them would narrow an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pkd.engine import Compiled, doors
from pkd.engine.compiled import Counts
from pkd.engine.compiled import Policy as Choices
from pkd.optimism import ALL_ROUNDS, ONE_ROUND, Certified
from pkd.planning.estimator import narrow, split
from pkd.planning.plan import Plan, make_plan, seed_words
from pkd.progress import count

__all__ = ["Question", "Unrefuted", "find_more_samples"]

Floats = np.ndarray

SETS = Certified(minimax=False, exact=True)
PLENTY = 1e12  # samples after which a law counts as known
MOST_LOOKS = 400  # intervals that are computed to find which features matter
LITTLE = 0.02  # features that matter less, all together, as a part of the interval, are left out
CLOSE = 0.01  # relative error of the number of samples


class Unrefuted:
    """The sets of laws of all features, for largest and for least values."""

    def __init__(self, compiled: Compiled, counts: Counts, delta: float) -> None:
        self.compiled, self.bonus = compiled, SETS.bonus()
        self.tally = compiled.tally(counts)
        self._limits = compiled.reward_bonus(self.bonus, 1, delta)
        self._limits[0] = math.inf  # no part of the rule needs the logarithm of MVP-Est
        self.high = self.best_high = compiled.optimistic(self.bonus, 1, split(compiled, delta))
        self.low = compiled.pessimistic(self.high)
        self.expect(np.zeros(len(self.numbers)))

    @property
    def numbers(self) -> Floats:
        """N of each feature, then of each unknown reward."""
        return np.concatenate([self.tally.n, self.tally.rewards[0]])

    @property
    def budget(self) -> float:
        """log(1 / (weight delta)) of each set: all weigh the same, because a log has no ranks."""
        return float(self.high.budget[0])

    def take_budget(self, other: Unrefuted) -> None:
        """Gives each set the part of delta that it has in another model."""
        self.high.budget[0] = other.budget  # both beliefs share their budgets
        self.expect(np.zeros(len(self.numbers)))

    def hurry(self, quick: bool) -> None:
        """Takes an upper bound of values over a set that is larger, but quick: for widths alone."""
        rounds = ONE_ROUND if quick else ALL_ROUNDS
        self.high, self.best_high, self.low = (
            each._replace(rounds=rounds) for each in (self.high, self.best_high, self.low)
        )

    def expect(self, more: Floats) -> None:
        """Fills the sets as if there were so many more samples of each feature and reward."""
        size, seen = len(self.tally.n), self.tally
        lengths = np.diff(self.compiled.row_ptr[: size + 1])
        rewards = seen.rewards.copy()
        rewards[0] += more[size:]
        rewards[1] = np.where(seen.rewards[0] > 0, seen.rewards[1], self._limits[1:].mean(axis=0))
        expected = seen._replace(
            counts=seen.counts + np.repeat(more[:size], lengths) * self._frequencies,
            n=seen.n + more[:size],
            rewards=rewards,
        )
        for belief in (self.high, self.low):
            self.compiled.estimate(belief, expected, self.bonus, self._limits, seed_words(0))
        self.best_high = narrow(self.compiled, self.high, expected)

    @cached_property
    def _frequencies(self) -> Floats:
        """What more samples are expected to show, (1 - g) p^ + g even.

        g is Good's estimate of what was not seen yet, (outcomes that were seen once) / N, and 1
        without data. `even` is uniform on the outcomes that were seen and the first others, B(z) in
        all. Of a family it is the law that fits best.
        """
        ptr, counts = self.compiled.row_ptr, self.tally.counts
        found = np.zeros(len(counts))
        for z, bound in enumerate(self.compiled.branching.tolist()):
            row = slice(int(ptr[z]), int(ptr[z + 1]))
            if z in self.compiled.families:
                found[row] = self.compiled.fit(z, counts[row])
                continue
            n, seen = float(self.tally.n[z]), counts[row]
            possible = np.argsort(seen == 0, kind="stable")[: int(bound)]
            even = np.zeros(len(seen))
            even[possible] = 1.0 / len(possible)
            g = min(1.0, np.count_nonzero((seen > 0) & (seen <= 1)) / n) if n > 0 else 1.0
            found[row] = (1.0 - g) * seen / max(n, 1e-300) + g * even
        return found

    def best(self) -> float:
        """The upper value of V*."""
        return self.compiled.sweep(self.best_high, self.compiled.policy(), follow=False)[0]

    def plan_least(self) -> Plan:
        """The robust plan, whose value is the lower value of V*."""
        return make_plan(self.compiled, self.low.copy())

    def radii(self) -> Floats:
        """C of each feature, then of each unknown reward."""
        paid = []
        for (n, mean, _), (_, low, high) in zip(self.tally.rewards.T, self._limits.T, strict=True):
            share = (mean - low) / (high - low) if high > low else 1.0
            coin = np.array([n * share, n * (1.0 - share)])
            level = self.budget + doors.evidence(coin, 0, 2, 2.0)
            paid.append(level / n if n > 0 else math.inf)
        return np.concatenate([self.high.radius, paid])

    def find_parameters(self) -> dict[int, str]:
        """What is left of each declared family, in words, by row."""
        cells = self.compiled.unrefuted.find_cells
        return {row: cells(self.high.told, row).text for row in self.compiled.families}


@attrs.frozen
class Question:
    """Whose interval is asked for: that of V*, or of a policy of the engine."""

    sets: Unrefuted
    choices: Choices | None

    def interval(self) -> tuple[float, float]:
        """(low, high) from the sets as they are filled now."""
        engine, follow = self.sets.compiled, self.choices is not None
        choices = engine.policy() if self.choices is None else self.choices
        upper = self.sets.high if follow else self.sets.best_high
        high, _ = engine.sweep(upper, choices, follow=follow)
        low, _ = engine.sweep(self.sets.low, choices, follow=follow)
        return low, high


def find_more_samples(question: Question, share: float, *, progress: bool) -> dict[Any, int]:
    """{z: how many more samples} for an interval that is about `share` as wide as it is.

    Widths are compared, so the quick upper bound of values over a set is exact enough.
    """
    wanted = None if progress else False
    with (
        count("intervals for what to sample next", wanted=wanted) as advance,
        _Widths(question, advance) as widths,
    ):
        more = _find_more(widths, share)
    compiled = question.sets.compiled
    names = [*compiled.features, *compiled.reward_index]
    order = np.argsort(-more, kind="stable")
    return {names[i]: math.ceil(more[i]) for i in order.tolist() if more[i] > 0}


class _Widths:
    """Widths of an interval with more data; `advance` is called after each."""

    def __init__(self, question: Question, advance: Callable[..., Any]) -> None:
        self.question, self.advance = question, advance
        self.numbers, self.budget = question.sets.numbers, question.sets.budget

    def __enter__(self) -> _Widths:
        self.question.sets.hurry(True)
        return self

    def __exit__(self, *problem: object) -> None:
        self.question.sets.hurry(False)
        self.question.sets.expect(np.zeros(len(self.numbers)))

    def __call__(self, more: Floats) -> float:
        """high - low with so many more samples of each feature."""
        self.question.sets.expect(more)
        low, high = self.question.interval()
        self.advance()
        return high - low


def _find_more(width: _Widths, share: float) -> Floats:
    """How many more samples of each feature and reward."""
    goal = share * width(np.zeros(len(width.numbers)))
    if not goal > 0.0:
        return np.zeros(len(width.numbers))
    # Below `budget` samples a set holds nearly all laws, and the 1/sqrt rule has not begun.
    root = np.sqrt(np.maximum(width.numbers, width.budget))
    scale = (_find_parts(width) * root) ** (2 / 3)
    if width(np.where(scale > 0, PLENTY, 0.0)) > goal:
        scale = root ** (2 / 3)  # features that matter only together: all of them count
    return _scale_up(width, scale, goal)


def _find_parts(width: _Widths) -> Floats:
    """The width that each feature makes by itself, with the laws of all others known.

    Features are looked at in groups, and a group that matters is split: more samples never widen
    an interval, so what matters little together matters little alone. Once too many looks were
    taken, a group shares its width equally.
    """
    size = len(width.numbers)
    parts, groups, looks, whole = np.zeros(size), [np.arange(size)], 0, math.nan
    while groups:
        group = groups.pop(0)
        more = np.full(size, PLENTY)
        more[group] = 0.0
        part, looks = width(more), looks + 1
        whole = part if looks == 1 else whole
        if part <= LITTLE * whole * len(group) / size:
            continue
        if len(group) == 1 or looks + len(groups) >= MOST_LOOKS:
            parts[group] = part / len(group)
        else:
            groups += np.array_split(group, 2)
    return parts


def _scale_up(width: _Widths, scale: Floats, goal: float) -> Floats:
    """More samples, max(N, c scale) - N with the least c that reaches the goal, by bisection."""
    wanted, numbers = scale > 0, width.numbers

    def ask(c: float) -> Floats:
        return np.where(wanted, np.maximum(c * scale, numbers) - numbers, 0.0)

    low = high = float(np.min(np.maximum(numbers, 1.0)[wanted] / scale[wanted]))
    while width(ask(high)) > goal and high * scale.max() < PLENTY:
        low, high = high, 2.0 * high
    while high > low * (1.0 + CLOSE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if width(ask(middle)) > goal else (low, middle)
    return ask(high)
