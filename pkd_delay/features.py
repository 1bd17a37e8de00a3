"""The unknown features that an unknown delay adds to those of its base: moves and arrivals.

A delay of a delay has features of both. `depth` tells them apart: 0 for the innermost unknown
delay, 1 for an unknown delay of a base that has features of depth 0, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["Arrival", "Move", "next_depth"]


class Move(NamedTuple):
    """The feature of a tran: the paper's z = (s, a, tran), with the base's feature for (s, a)."""

    feature: Any
    depth: int = 0


class Arrival(NamedTuple):
    """The feature of an arrival: the paper's z = (s, a, counter) with its flag. B(z) = 2."""

    x: Any  # of the last shown state of the base
    given: Any  # what else the delay depends on: the action, (y, action), or a delay_feature
    waited: int  # -1 where a state was just shown
    empty: bool  # the queue was empty: the arrival means Delta <= 0 and not Delta = waited
    depth: int = 0
    before: int | None = None  # the delay of the last shown state, where the form of law needs it

    @property
    def delays(self) -> tuple[int, int]:
        """(delay of the last shown state, the next delay that is asked about).

        Where the form of law does not need the first, any delay that is not 0 stands for it.
        """
        before = (0 if self.empty else 1) if self.before is None else self.before
        return before, before + self.waited


def next_depth(features: Iterable[Any]) -> int:
    """The depth of the features that an unknown delay of a base with these features adds.

    >>> next_depth(["demand"]), next_depth([Move("demand"), Arrival(0, 1, 0, True)])
    (0, 1)
    """
    depths = (z.depth for z in features if isinstance(z, Move | Arrival))
    return 1 + max(depths, default=-1)
