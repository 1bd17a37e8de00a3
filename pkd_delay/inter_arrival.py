"""The law of one inter-arrival time: the paper's P_delay(s, a) on {-1, ..., W}, and its hazards.

D_h = clip(D_{h-1} + Delta_h; 0, D_max): Delta is by how much the delay changes from one state to
the next. -1 means that the next state comes together with this one, 0 that it comes one step later,
j that it comes j + 1 steps later. The hazards are the paper's P_tran.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pkd import ModelError

__all__ = [
    "DelayOf", "InterArrival", "InterArrivalOf", "OneLaw", "OneLawForAll", "find_faults",
    "per_action",
]  # fmt: skip

TOLERANCE = 1e-9  # by how much probabilities may miss 1


@attrs.frozen(slots=False)  # without slots, so that hazards can be cached
class InterArrival:
    """Pr(Delta = -1), ..., Pr(Delta = W).

    >>> law = InterArrival((.2, .4, .3, .1))
    >>> [round(law.hazard(j), 12) for j in (-1, 0, 1, 2)]
    [0.2, 0.5, 0.75, 1.0]
    >>> round(law.at_most_zero, 12)
    0.6
    """

    probabilities: tuple[float, ...]

    @classmethod
    def of(cls, law: OneLaw, where: str = "inter_arrival") -> InterArrival:
        """The law from {Delta: probability}, or from the probabilities of Delta = -1, 0, ..., W.

        Raises ModelError with every fault.
        """
        if isinstance(law, InterArrival):
            return law
        found = find_faults(law, where)
        if found:
            raise ModelError(found)
        if isinstance(law, Mapping):
            longest = max(0, *law) if len(law) > 1 else max(0, next(iter(law)))
            return cls(tuple(float(law.get(j, 0.0)) for j in range(-1, longest + 1)))
        return cls(tuple(float(p) for p in law))

    @property
    def longest(self) -> int:
        """W, the largest inter-arrival time that has a place in the table."""
        return len(self.probabilities) - 2

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """Pr(Delta >= j) for j = -1, ..., W + 1."""
        tails = [0.0]
        for p in reversed(self.probabilities):
            tails.append(tails[-1] + p)
        return tuple(reversed(tails))

    @cached_property
    def at_most_zero(self) -> float:
        """Pr(Delta <= 0): the chance of an arrival at an empty queue, where -1 is clipped to 0."""
        return min(1.0, self.probabilities[0] + self.probabilities[1])

    @cached_property
    def hazards(self) -> tuple[float, ...]:
        """Pr(Delta = j) / Pr(Delta >= j) for j = -1, ..., W; 1 where the denominator is 0."""
        pairs = zip(self.probabilities, self.tails, strict=False)
        return tuple(p / tail if tail > 0.0 else 1.0 for p, tail in pairs)

    def hazard(self, waited: int) -> float:
        """Pr(Delta = waited | Delta >= waited), and 1 where that is not defined."""
        return self.hazards[waited + 1] if waited <= self.longest else 1.0

    def draw(self, rng: np.random.Generator, low: int = -1, high: int | None = None) -> int:
        """Delta given low <= Delta <= high; `low` itself where the law has no mass there."""
        window = self.probabilities[low + 1 : None if high is None else high + 2]
        mark = rng.random() * math.fsum(window)
        last = low
        for delta, p in enumerate(window, start=low):
            if p > 0.0:
                last, mark = delta, mark - p
                if mark < 0.0:
                    break
        return last


OneLaw = Mapping[int, float] | Sequence[float] | InterArrival
InterArrivalOf = OneLaw | Callable[[Any, Any, Any], OneLaw]
DelayOf = Callable[[Any, Any, Any], InterArrival]  # (x, y, a) of the base -> the law of Delta


@attrs.frozen
class OneLawForAll:
    """A law of Delta that does not depend on the state and the action.

    >>> OneLawForAll(InterArrival((0.0, 1.0)))("x", "y", "a").longest
    0
    """

    law: InterArrival

    def __call__(self, x: Any, y: Any, a: Any) -> InterArrival:
        return self.law


def per_action(inter_arrival: InterArrivalOf) -> DelayOf:
    """The law of Delta as a function of (x, y, a), from one law or from a user's function."""
    if isinstance(inter_arrival, OneLawForAll | _PerAction):
        return inter_arrival
    if callable(inter_arrival):
        return _PerAction(inter_arrival)
    return OneLawForAll(InterArrival.of(inter_arrival))


@attrs.frozen
class _PerAction:
    """A user's function (x, y, a) -> law; each answer is checked once."""

    ask: Callable[[Any, Any, Any], OneLaw]
    _known: dict[tuple[Any, Any, Any], InterArrival] = attrs.field(factory=dict, init=False)

    def __call__(self, x: Any, y: Any, a: Any) -> InterArrival:
        law = self._known.get((x, y, a))
        if law is None:
            where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
            law = self._known[x, y, a] = InterArrival.of(self.ask(x, y, a), where)
        return law


def find_faults(law: Any, where: str) -> list[str]:
    """Everything that is wrong with one inter-arrival law, each finding opened by `where`."""
    if law is None:
        return [f"{where} has no law; give {{Delta: probability}} with Delta in -1, 0, 1, ..."]
    if isinstance(law, Mapping):
        values, found = list(law.values()), _find_bad_keys(law, where)
    elif isinstance(law, (Sequence, np.ndarray)) and not isinstance(law, str):
        values = list(law)
        few = f"{where} has {len(values)} entries; expected Pr(Delta = -1), Pr(Delta = 0), ..."
        found = [] if len(values) >= 2 else [few]
    else:
        return [
            (
                f"{where} is {law!r}; expected {{Delta: probability}} or the probabilities of "
                "Delta = -1, 0, ..., W"
            )
        ]
    if not values:
        return [f"{where} is empty; give {{Delta: probability}} with Delta in -1, 0, 1, ..."]
    bad = [p for p in values if not _is_probability(p)]
    found += [f"{where} has probability {p!r}; expected a number in [0, 1]" for p in bad]
    total = math.fsum(values) if not bad else 1.0
    if abs(total - 1.0) > TOLERANCE:
        found.append(f"{where} sums to {total:.12g}, not 1")
    return found


def _find_bad_keys(law: Mapping[Any, float], where: str) -> list[str]:
    found = []
    for delta in law:
        if isinstance(delta, bool) or not isinstance(delta, (int, np.integer)):
            found.append(f"{where} has Delta = {delta!r}; expected an integer")
        elif delta < -1:
            found.append(
                f"{where} has Delta = {delta}; a delay shrinks by at most 1 per state, so "
                "Delta >= -1"
            )
    return found


def _is_probability(p: Any) -> bool:
    try:
        return bool(0.0 <= p <= 1.0 + TOLERANCE)
    except (TypeError, ValueError):
        return False
