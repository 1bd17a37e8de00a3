"""The law of one inter-arrival time: the paper's P_delay(s, a) on {-1, ..., W}, and its hazards, the paper's P_tran.

D_h = clip(D_{h-1} + Delta_h; 0, D_max): Delta is by how much the delay changes from one state to the next. -1 means that the next state
comes together with this one, 0 that it comes one step later, j that it comes j + 1 steps later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pkd import ModelError

__all__ = ["InterArrival", "InterArrivalOf", "faults", "per_action"]

TOLERANCE = 1e-9  # by how much probabilities may miss 1


@attrs.frozen(slots=False)  # without slots, so that the tails can be cached
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
        """The law from {Delta: probability} or from the probabilities of -1, 0, ..., W; raises ModelError with every fault."""
        if isinstance(law, InterArrival):
            return law
        found = faults(law, where)
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

    @property
    def at_most_zero(self) -> float:
        """Pr(Delta <= 0): the chance of an arrival when the queue is empty, where -1 is clipped to 0."""
        return min(1.0, self.probabilities[0] + self.probabilities[1])

    def hazard(self, waited: int) -> float:
        """Pr(Delta = waited) / Pr(Delta >= waited), and 1 where the denominator is 0."""
        if waited > self.longest or self.tails[waited + 1] <= 0.0:
            return 1.0
        return self.probabilities[waited + 1] / self.tails[waited + 1]

    def draw(self, rng: np.random.Generator, low: int = -1, high: int | None = None) -> int:
        """Delta given that low <= Delta <= high; at the given law's zero mass, low itself."""
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


def per_action(inter_arrival: InterArrivalOf) -> Callable[[Any, Any, Any], InterArrival]:
    """The law of Delta as a function of the base's state and action (x, y, a), from one law for all or from a user's function."""
    if callable(inter_arrival):
        ask, asked = inter_arrival, dict[Hashable, InterArrival]()

        def of_state(x: Any, y: Any, a: Any) -> InterArrival:
            if (x, y, a) not in asked:
                asked[x, y, a] = InterArrival.of(ask(x, y, a), f"inter_arrival(x={x!r}, y={y!r}, a={a!r})")
            return asked[x, y, a]

        return of_state
    shared = InterArrival.of(inter_arrival)
    return lambda x, y, a: shared


def faults(law: Any, where: str) -> list[str]:
    """Everything that is wrong with one inter-arrival law, each finding opened by `where`."""
    if law is None:
        return [f"{where} has no law; give {{Delta: probability}} with Delta in -1, 0, 1, ..."]
    if isinstance(law, Mapping):
        values, found = list(law.values()), _bad_keys(law, where)
    elif isinstance(law, (Sequence, np.ndarray)) and not isinstance(law, str):
        values = list(law)
        found = [] if len(values) >= 2 else [f"{where} has {len(values)} entries; expected Pr(Delta = -1), Pr(Delta = 0), ..."]
    else:
        return [f"{where} is {law!r}; expected {{Delta: probability}} or the probabilities of Delta = -1, 0, ..., W"]
    if not values:
        return [f"{where} is empty; give {{Delta: probability}} with Delta in -1, 0, 1, ..."]
    bad = [p for p in values if not _is_probability(p)]
    found += [f"{where} has probability {p!r}; expected a number in [0, 1]" for p in bad]
    total = math.fsum(values) if not bad else 1.0
    if abs(total - 1.0) > TOLERANCE:
        found.append(f"{where} sums to {total:.12g}, not 1")
    return found


def _bad_keys(law: Mapping[Any, float], where: str) -> list[str]:
    found = []
    for delta in law:
        if isinstance(delta, bool) or not isinstance(delta, (int, np.integer)):
            found.append(f"{where} has Delta = {delta!r}; expected an integer")
        elif delta < -1:
            found.append(f"{where} has Delta = {delta}; a delay shrinks by at most 1 per state, so Delta >= -1")
    return found


def _is_probability(p: Any) -> bool:
    try:
        return bool(0.0 <= p <= 1.0 + TOLERANCE)
    except (TypeError, ValueError):
        return False
