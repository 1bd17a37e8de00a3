"""Lookup of stripes: which of them hold a span of columns, and which lead to which.

A span is a pair (begin, end) of columns, end excluded. A branch of a stripe of n columns leads to
the columns target, target + stride, ..., target + stride (n - 1): its span is the smallest that
holds all of them. A worked example: stripe 0 holds columns 0-3, stripe 1 columns 4-5. A branch of
stripe 1 with target 2 and stride 1 leads to columns 2 and 3, so its span is (2, 4) and it meets
stripe 0 only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from pkd.engine.stripes.table import Stripe
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP


def find_windows(
    start: list[tuple[int, int, float]], stripes: list[Stripe], horizon: int
) -> list[int]:
    """The layers in which each stripe can be met, as bits; bit H is the settlement."""
    part = np.array([stripe.part for stripe in stripes], np.int64)
    leads, places = _Leads(stripes), Places(stripes, (STEP, CHANCES, LAST))
    met = np.zeros((horizon + 1, len(stripes)), bool)
    layer = np.zeros(len(stripes), bool)
    layer[[i for _, y, _ in start for i in places.within(y, y + 1)]] = True
    for t in range(horizon):
        leads.close(layer, part == CHANCES)
        if t > 0 and np.array_equal(layer, met[t - 1]):  # then every later layer is this one too
            met[t:horizon] = layer
            break
        met[t] = layer
        layer = leads.after(layer & (part == STEP))
    met[horizon] = leads.after(met[horizon - 1] & (part == LAST))
    leads.close(met[horizon], part == SETTLED)
    met[: horizon - 1, part == LAST] = False
    met[horizon - 1, part == STEP] = False
    packed = np.packbits(met.T, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]


class Places:
    """The stripes of some parts by the columns that they hold."""

    def __init__(self, stripes: list[Stripe], parts: tuple[int, ...]) -> None:
        mine = [(i, stripe) for i, stripe in enumerate(stripes) if stripe.part in parts]
        # Where stripes begin and end.
        self.edges = sorted({edge for _, s in mine for edge in (s.start, s.end)})
        self.held: list[list[int]] = [[] for _ in self.edges]
        for i, stripe in mine:
            first = bisect_left(self.edges, stripe.start)
            for k in range(first, bisect_left(self.edges, stripe.end, lo=first)):
                self.held[k].append(i)
        self._found: dict[tuple[int, int], list[int]] = {}

    def within(self, start: int, stop: int) -> list[int]:
        """The numbers of the stripes that hold a column of start..stop-1."""
        first = max(bisect_right(self.edges, start) - 1, 0)
        last = bisect_left(self.edges, stop, lo=first)
        if last - first == 1:
            return self.held[first]
        if (first, last) not in self._found:
            found = dict.fromkeys(i for k in range(first, last) for i in self.held[k])
            self._found[first, last] = list(found)
        return self._found[first, last]

    def edges_between(self, begin: int, end: int, most: int) -> list[int]:
        """Edges inside a span, begin < edge < end; none if there are `most` or more."""
        first, last = bisect_right(self.edges, begin), bisect_left(self.edges, end)
        return self.edges[first:last] if last - first < most else []


class _Leads:
    """Which stripes lead to which.

    All edges of stripes cut the columns into stretches. A branch reads a run of stretches, a stripe
    holds a run of them. So what some stripes lead to is found without a list of pairs, which would
    be long where many x share their columns.
    """

    def __init__(self, stripes: list[Stripe]) -> None:
        spans = [(i, *b.span(s.length)) for i, s in enumerate(stripes) for b in s.branches()]
        owner, begin, end = np.array(spans, np.int64).reshape(-1, 3).T
        held = [(s.space, s.target_space, s.start, s.end) for s in stripes]
        space, target, start, stop = np.array(held, np.int64).reshape(-1, 4).T
        self._sides = []
        for side in (0, 1):
            mine, here = target[owner] == side, np.flatnonzero(space == side)
            self._sides.append(
                _Side(owner[mine], begin[mine], end[mine], here, start[here], stop[here])
            )

    def after(self, active: np.ndarray) -> np.ndarray:
        """The stripes that active ones lead to."""
        reached = np.zeros(len(active), bool)
        for side in self._sides:
            side.mark(active, reached)
        return reached

    def close(self, active: np.ndarray, passing: np.ndarray) -> None:
        """Adds all that the active stripes lead to through passing ones."""
        fresh = active & passing
        while fresh.any():
            fresh = self.after(fresh) & ~active
            active |= fresh
            fresh &= passing


class _Side:
    """The branches within the layers, or into the settlement, with the stripes that are there."""

    def __init__(
        self, owner: np.ndarray, begin: np.ndarray, end: np.ndarray,
        held: np.ndarray, start: np.ndarray, stop: np.ndarray,
    ) -> None:  # fmt: skip
        cuts = np.unique(np.concatenate([start, stop]))
        self.owner = owner
        self.first = np.maximum(np.searchsorted(cuts, begin, "right") - 1, 0)
        self.last = np.searchsorted(cuts, end)
        self.held, self.size = held, len(cuts) + 1
        self.start, self.stop = np.searchsorted(cuts, start), np.searchsorted(cuts, stop)

    def mark(self, active: np.ndarray, reached: np.ndarray) -> None:
        """Marks in `reached` the stripes that hold a stretch which active stripes read."""
        mine = active[self.owner]
        begins = np.bincount(self.first[mine], minlength=self.size)
        ends = np.bincount(self.last[mine], minlength=self.size)
        read = np.concatenate([[0], np.cumsum(np.cumsum(begins - ends) > 0)])
        reached[self.held] |= read[self.stop] > read[self.start]


def fills(stripes: list[Stripe], begin: int, end: int) -> bool:
    """Whether stripes hold all columns of a span, each once."""
    at = begin
    for stripe in sorted(stripes, key=lambda stripe: stripe.start):
        if stripe.start > at or (at > begin and stripe.start != at):
            return False
        at = stripe.end
    return at >= end
