"""How long something is on its way: commands to a machine, orders to a shop.

What is on its way stands in a `pkd.Queue`, oldest first, one entry per step. A `Line` says when the
oldest entry comes. Entries are asked one at a time, so a model reads only the oldest one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

import attrs

from pkd.expect import fraction, require, whole
from pkd.model import ModelError, normalise

TOLERANCE = 1e-9  # by how much probabilities may miss 1
JUST_NOW = -1  # `waited` when an entry has come in this very step


class Line(Protocol):
    """When entries of a queue come."""

    @property
    def counts(self) -> bool:
        """Whether it matters for how many steps nothing has come."""

    @property
    def longest(self) -> int:
        """The largest number of steps that an entry can be on its way."""

    def comes(self, n: int, waited: int) -> float:
        """The probability that the oldest of n entries comes now, the newest being of this step.

        `waited`: steps since the last one came, from 0 on; -1: one has come in this very step.
        """


def _read(law: Any) -> dict[int, float]:
    """{steps: probability} without zeros, from such a mapping or from one number of steps."""
    if not whole("law", law):
        return {int(law): 1.0}
    if not isinstance(law, Mapping) or not law:
        raise ModelError(
            f"the travel time is {law!r}; expected a whole number of steps from 0 on, "
            "or {steps: probability}"
        )
    found = [
        f"the travel time {steps!r} has probability {p!r}; "
        "expected a whole number of steps from 0 on and a probability"
        for steps, p in law.items()
        if whole("steps", steps) or fraction("p", p, closed=True)
    ]
    if not found and abs(math.fsum(law.values()) - 1) > TOLERANCE:
        found = [f"the law of the travel time sums to {math.fsum(law.values()):.10g}, not 1"]
    require(found)
    taken = {int(steps): float(p) for steps, p in sorted(law.items()) if p > 0}
    return dict(zip(taken, normalise(taken.values()), strict=True))


@attrs.frozen(slots=False)  # without slots, so that what follows from the law can be cached
class Travel:
    """Independent travel times {steps: probability}; a number of steps is a constant one.

    The newest entry that has come counts, and all older ones come with it at the latest: an old
    command is overruled, an old order is delivered together with a newer one.

        F(m) = 1 - prod_{j < m} (1 - Pr(L = j | L >= j))    one of the newest m entries comes now
        Pr(the oldest of n comes) = F(n), and F(n) / F(n + 1) if an older one has just come

    >>> Travel({0: 0.5, 1: 0.5}).comes(1, waited=0), Travel(2).comes(2, waited=0)
    (0.5, 0.0)
    """

    law: Mapping[int, float] = attrs.field(converter=_read)

    @property
    def counts(self) -> bool:
        return False

    @property
    def longest(self) -> int:
        return max(self.law)

    @cached_property
    def _any(self) -> tuple[float, ...]:
        """F(0), F(1), ..., F(longest + 1)."""
        left, none, found = 1.0, 1.0, [0.0]
        for steps in range(self.longest + 1):
            p = self.law.get(steps, 0.0)
            # The last hazard is 1, whatever rounding says.
            none *= 0.0 if steps == self.longest else 1 - p / left
            left -= p
            found.append(1 - none)
        return tuple(found)

    def comes(self, n: int, waited: int) -> float:
        if n > self.longest:
            return 1.0
        return self._any[n] / self._any[n + 1] if waited == JUST_NOW else self._any[n]
