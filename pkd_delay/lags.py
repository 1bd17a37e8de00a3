"""Two more forms of delay laws: lags as people measure them, and any Markov chain of delays.

A log of a sensor says how long each sample took. `Lags` is the law of that number when samples are
delivered in order: D_h = max(D_{h-1} - 1, L_h), so a sample waits for a slower one before it.
`DelayChain` gives Pr(D_h | D_{h-1}) itself, for delays that follow neither form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from pkd import ModelError
from pkd_delay.delay_kernel import DelayKernel, Numbers, Question
from pkd_delay.inter_arrival import find_bad_probabilities, normalise

__all__ = ["DelayChain", "Lags"]

SHOWN_FINDINGS = 5


def _read_lags(law: Any) -> tuple[float, ...]:
    """The probabilities of the lags 0, 1, ..., from a mapping or a list."""
    found: list[str] = []
    if isinstance(law, Mapping):
        for lag in law:
            whole = isinstance(lag, int | np.integer) and not isinstance(lag, bool)
            if not whole or lag < 0:
                found.append(f"lags has {lag!r}; expected a whole number of ticks >= 0")
        values = list(law.values())
        if not found and law:
            values = [law.get(lag, 0.0) for lag in range(max(law) + 1)]
    elif isinstance(law, Sequence | np.ndarray) and not isinstance(law, str):
        values = list(law)
    else:
        raise ModelError(f"lags is {law!r}; expected {{ticks: probability}}")
    if not values:
        raise ModelError("lags is empty; expected {ticks: probability}")
    found += find_bad_probabilities(values, "lags")
    if found:
        raise ModelError(found)
    return normalise(values)


@attrs.frozen(slots=False)
class Lags(Numbers, DelayKernel):
    """Independent lags, delivered in order: D_h = max(D_{h-1} - 1, L_h).

    Pr(L = 0), Pr(L = 1), ..., from {ticks: probability} or a list. The largest lag is the largest
    delay, so `max_delay` need not be given.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP(two_state_chain(), pkd_delay.Lags({0: 0.5, 1: 0.3, 2: 0.2}))
    >>> late.max_delay, round(pkd_delay.plan(late).value, 6)
    (2, 9.342)
    """

    form: ClassVar[str] = "lags"
    drawn: ClassVar[str] = "lag"
    by_delay: ClassVar[bool] = True

    probabilities: tuple[float, ...] = attrs.field(converter=_read_lags)

    @property
    def largest(self) -> int:
        return self.longest

    def numbers(self, before: int) -> Lags:
        return self

    @staticmethod
    def follow(before: int, number: int) -> int:
        return max(before - 1, number)

    @staticmethod
    def ask(before: int, delay: int) -> Question:
        # A sample that comes together with the one before it may have been ready for long.
        return Question(delay, delay == max(before - 1, 0))

    def to_table(self) -> list[float]:
        return list(self.probabilities)


def _read_rows(rows: Any) -> tuple[Lags, ...]:
    """The rows of a chain, each a law of the next delay; ModelError with every fault."""
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or not table.size or table.shape[0] != table.shape[1]:
        raise ModelError(
            "delays: expected a square table of Pr(D_h = column | D_{h-1} = row), "
            f"found {np.shape(table)} numbers"
        )
    found = []
    for before, row in enumerate(table.tolist()):
        found += find_bad_probabilities(row, f"delays[{before}]")
        early = [d for d, p in enumerate(row[: max(before - 1, 0)]) if p > 0]
        found += [
            f"delays[{before}] reaches {d}; a delay shrinks by at most 1 per state, "
            f"so delays[{before}] starts at {before - 1}"
            for d in early
        ]
    if found:
        raise ModelError(found[:SHOWN_FINDINGS])
    return tuple(Lags(row) for row in table.tolist())


@attrs.frozen(slots=False)
class DelayChain(DelayKernel):
    """Any Markov chain of delays: row d is the law of D_h when D_{h-1} = d.

    D_h >= D_{h-1} - 1, because states are shown in order.

    >>> sticky = DelayChain([[0.9, 0.1], [0.2, 0.8]])
    >>> sticky.describe(largest=1)
    '0, 1 ticks late with .667, .333; mean .333 (in the long run)'
    """

    form: ClassVar[str] = "chain"
    drawn: ClassVar[str] = "delay"
    by_delay: ClassVar[bool] = True

    rows: tuple[Lags, ...] = attrs.field(converter=_read_rows)

    @property
    def longest(self) -> int:
        return len(self.rows) - 1

    @property
    def largest(self) -> int:
        return self.longest

    def numbers(self, before: int) -> Lags:
        return self.rows[before]

    @staticmethod
    def follow(before: int, number: int) -> int:
        return number

    @staticmethod
    def ask(before: int, delay: int) -> Question:
        return Question(delay, False)

    def to_table(self) -> list[list[float]]:
        return [row.to_table() for row in self.rows]
