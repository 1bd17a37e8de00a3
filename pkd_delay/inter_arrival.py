"""The law of one inter-arrival time: the paper's P_delay(s, a) on {-1, ..., W}, and its hazards.

D_h = clip(D_{h-1} + Delta_h; 0, D_max): Delta is by how much the delay changes from one state to
the next. -1 means that the next state comes together with this one, 0 that it comes one step later,
j that it comes j + 1 steps later. The hazards are the paper's P_tran. Wherever an inter-arrival law
is expected, any other `DelayKernel` may stand: one law, or a function (x, y, a) of the base.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import attrs
import numpy as np

from pkd import ModelError
from pkd_delay.delay_kernel import DelayKernel, Numbers, Question

__all__ = [
    "DelayOf", "InterArrival", "InterArrivalOf", "OneLaw", "OneLawForAll", "as_kernel",
    "find_bad_probabilities", "find_faults", "normalise", "per_action",
]  # fmt: skip

TOLERANCE = 1e-9  # by how much probabilities may miss 1
ROUNDING = 4 * sys.float_info.epsilon  # by how much they miss it by rounding alone


@attrs.frozen(slots=False)  # without slots, so that hazards can be cached
class InterArrival(Numbers, DelayKernel):
    """Pr(Delta = -1), ..., Pr(Delta = W), the law of Assumption 1: D_h = max(D_{h-1} + Delta, 0).

    >>> law = InterArrival((.2, .4, .3, .1))
    >>> [round(law.hazard(j), 12) for j in (-1, 0, 1, 2)]
    [0.2, 0.5, 0.75, 1.0]
    >>> round(law.at_most_zero, 12)
    0.6
    """

    first: ClassVar[int] = -1
    form: ClassVar[str] = "inter-arrival"
    drawn: ClassVar[str] = "inter-arrival time"
    by_delay: ClassVar[bool] = False

    probabilities: tuple[float, ...]

    @classmethod
    def of(
        cls, law: Mapping[int, float] | Sequence[float] | InterArrival, where: str = "inter_arrival"
    ) -> InterArrival:
        """The law from {Delta: probability}, or from the probabilities of Delta = -1, 0, ..., W.

        Raises ModelError with every fault.
        """
        if isinstance(law, InterArrival):
            return law
        found = find_faults(law, where)
        if found:
            raise ModelError(found)
        if isinstance(law, Mapping):
            longest = max([0, *law])
            return cls(normalise(law.get(j, 0.0) for j in range(-1, longest + 1)))
        return cls(normalise(law))

    @property
    def largest(self) -> int | None:
        return None if any(self.probabilities[2:]) else 0

    @cached_property
    def at_most_zero(self) -> float:
        """Pr(Delta <= 0): the chance of an arrival at an empty queue, where -1 is clipped to 0."""
        return self.at_most(0)

    @property
    def only_grows(self) -> bool:
        """Whether the delay never shrinks and sometimes grows by chance.

        Then it drifts to the largest delay and stays there. A histogram of lags looks like this.

        >>> InterArrival.of({0: 0.5, 1: 0.3, 2: 0.2}).only_grows
        True
        """
        return self.probabilities[0] == 0.0 and max(self.probabilities[1:]) < 1.0

    def numbers(self, before: int) -> InterArrival:
        return self

    @staticmethod
    def follow(before: int, number: int) -> int:
        return max(before + number, 0)

    @staticmethod
    def ask(before: int, delay: int) -> Question:
        return Question(delay - before, before == delay == 0)

    def to_table(self) -> list[float]:
        return list(self.probabilities)


OneLaw = Mapping[int, float] | Sequence[float] | DelayKernel
InterArrivalOf = OneLaw | Callable[[Any, Any, Any], OneLaw]
DelayOf = Callable[[Any, Any, Any], DelayKernel]  # (x, y, a) of the base -> the law of the delay


def as_kernel(law: OneLaw, where: str = "inter_arrival") -> DelayKernel:
    """Any law of the delay; a mapping and a list are inter-arrival times."""
    return law if isinstance(law, DelayKernel) else InterArrival.of(law, where)


@attrs.frozen
class OneLawForAll:
    """A law of the delay that does not depend on the state and the action.

    >>> OneLawForAll(InterArrival((0.0, 1.0)))("x", "y", "a").longest
    0
    """

    law: DelayKernel

    def __call__(self, x: Any, y: Any, a: Any) -> DelayKernel:
        return self.law


def per_action(inter_arrival: InterArrivalOf) -> DelayOf:
    """The law of the delay as a function of (x, y, a), from one law or from a user's function."""
    if isinstance(inter_arrival, OneLawForAll | _PerAction):
        return inter_arrival
    if callable(inter_arrival):
        return _PerAction(inter_arrival)
    return OneLawForAll(as_kernel(inter_arrival))


@attrs.frozen
class _PerAction:
    """A user's function (x, y, a) -> law; each answer is checked once."""

    ask: Callable[[Any, Any, Any], OneLaw]
    _known: dict[tuple[Any, Any, Any], DelayKernel] = attrs.field(factory=dict, init=False)

    def __call__(self, x: Any, y: Any, a: Any) -> DelayKernel:
        law = self._known.get((x, y, a))
        if law is None:
            where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
            law = self._known[x, y, a] = as_kernel(self.ask(x, y, a), where)
        return law


def find_faults(law: Any, where: str) -> list[str]:
    """Everything that is wrong with one inter-arrival law, each finding opened by `where`."""
    if law is None:
        return [f"{where} has no law; give {{Delta: probability}} with Delta in -1, 0, 1, ..."]
    if isinstance(law, DelayKernel):  # it was checked when it was made
        return []
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
    return found + find_bad_probabilities(values, where)


def find_bad_probabilities(values: Sequence[Any], where: str) -> list[str]:
    """What keeps some numbers from being a distribution."""
    bad = [p for p in values if not _is_probability(p)]
    found = [f"{where} has probability {p!r}; expected a number in [0, 1]" for p in bad]
    total = math.fsum(values) if not bad else 1.0
    if abs(total - 1.0) > TOLERANCE:
        found.append(f"{where} sums to {total:.12g}, not 1")
    return found


def normalise(values: Iterable[Any]) -> tuple[float, ...]:
    """Probabilities divided by their sum; those that sum to 1 up to rounding keep their bits."""
    found = tuple(float(p) for p in values)
    total = math.fsum(found)
    return found if abs(total - 1) <= ROUNDING else tuple(p / total for p in found)


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
