"""Passes over stripes: each turns a table into an equal one with less to compute.

    drop    branches that no x takes, and stripes that are never reached
    cut     a stripe where the CHANCE stripes that it enters begin, so that a piece enters one
    merge   stretches of columns that do the same
    pull    CHANCE stripes that only pass on, or that have one user, into their users

A queue of fixed length becomes the recursion that one would write by hand, "max over the appended
action of the expected value". A worked example: actions take effect one step late, with states 0
and 1 and actions 0 and 1. Blocks: a decision with the queue (a), a CHANCE block MOVE with the queue
(a, b), and a CHANCE block SHOW with (b). The decision leads from column a to column 2a + b of MOVE.
MOVE looks at a, so it has two stripes, columns 0-1 and 2-3, and the decision is cut into the
columns 0 and 1. Each piece then enters one stripe of MOVE, is its only user and pulls it: the
decision now moves the state by a and leads to SHOW, column b. SHOW only passes on to the decision
of the next layer with the queue (b), so it is skipped. What is left is one block of two columns:

    V(s, a) = max_b [r(s, a) + sum_s' P(s' | s, a) V'(s', b)]
"""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import is_

import attrs

from pkd.engine.stripes.edits import edit_branches, home_of, redirect, target_of, with_branches
from pkd.engine.stripes.merging import merge
from pkd.engine.stripes.pulling import pull
from pkd.engine.stripes.spans import Edges, find_windows, iterate_branches, span_of
from pkd.engine.stripes.table import Stripe, StripeTable
from pkd.graph import CHANCES, SETTLED

__all__ = ["Layout", "cut", "drop_zeros", "keep", "reduce"]

# A merge may enable a pull, and a pull a merge. No shipped model changes after three rounds.
ROUNDS = 3
MOST_CUTS = 64  # pieces into which one stripe may be cut


@attrs.frozen(eq=False)
class Layout:
    """Stripes and the columns that they live in."""

    stripes: list[Stripe]
    columns: tuple[int, int]  # of the layers, of the settlement
    start: list[tuple[int, int, float]]  # (x, column, probability)
    aliases: list[tuple[int, int, int]]  # (start, length, start of what does the same), in order
    moved: list[tuple[int, int, int]]  # (start, length, new start) of the columns of the layers

    def places(self, column: int) -> Iterator[int]:
        """Current positions of a column of the table: its own, then those it was merged into.

        None if it was pulled.
        """
        yield from self._find_moved(column)
        for start, length, original in self.aliases:
            if start <= column < start + length:
                column = column - start + original
                yield from self._find_moved(column)

    def _find_moved(self, column: int) -> Iterator[int]:
        i = bisect_right(self.moved, (column, 2**62, 0)) - 1
        if i >= 0:
            start, length, target = self.moved[i]
            if column < start + length:
                yield column - start + target


def keep(table: StripeTable) -> Layout:
    """The table as it is."""
    columns = table.columns[0], table.columns[1]
    return Layout(list(table.stripes), columns, table.start, [], [(0, columns[0], 0)])


def reduce(table: StripeTable, horizon: int) -> Layout:
    """The table after all passes."""
    stripes = _drop_unreached(table, cut(drop_zeros(table)), horizon)
    aliases: list[tuple[int, int, int]] = []
    for _ in range(ROUNDS):
        before = stripes
        stripes, merged = merge(table, stripes)
        aliases += merged
        stripes = pull(table, stripes)
        if all(map(is_, stripes, before)):  # neither pass drops a stripe
            break
        stripes = _drop_unreached(table, stripes, horizon)
    return _compact(table, stripes, aliases)


def _compact(
    table: StripeTable, stripes: list[Stripe], aliases: list[tuple[int, int, int]]
) -> Layout:
    """Drops the blocks of columns in which nothing is left."""
    kept = []
    for space in (0, 1):
        used = {stripe.start for stripe in stripes if home_of(stripe) == space}
        used |= {table.over[space]} if table.over[space] >= 0 else set()
        used |= {column for _, column, _ in table.start} if space == 0 else set()
        kept.append(_keep_used(table.blocks[space], used))
    shift = [_Shift(kept[0]), _Shift(kept[1])]

    def move(stripe: Stripe) -> Stripe:
        to = shift[target_of(stripe)]
        moved = edit_branches(stripe, lambda b: redirect(b, to(b.target), b.stride))
        return moved._replace(start=shift[home_of(stripe)](stripe.start))

    return Layout(
        stripes=[move(stripe) for stripe in stripes],
        columns=(sum(length for _, length, _ in kept[0]), sum(length for _, length, _ in kept[1])),
        start=[(x, shift[0](y), p) for x, y, p in table.start],
        aliases=aliases,
        moved=kept[0],
    )


def _keep_used(blocks: list[tuple[int, int]], used: set[int]) -> list[tuple[int, int, int]]:
    """(start, length, new start) of the blocks in which some column is used."""
    columns, kept, at = sorted(used), [], 0
    for start, length in blocks:
        if bisect_left(columns, start) < bisect_left(columns, start + length):
            kept.append((start, length, at))
            at += length
    return kept


class _Shift:
    """Where columns go when whole blocks are dropped."""

    def __init__(self, kept: list[tuple[int, int, int]]) -> None:
        self.starts = [start for start, _, _ in kept]
        self.by = [new - start for start, _, new in kept]

    def __call__(self, column: int) -> int:
        return column + self.by[bisect_right(self.starts, column) - 1]


def _drop_unreached(table: StripeTable, stripes: list[Stripe], horizon: int) -> list[Stripe]:
    windows = find_windows(table.start, stripes, horizon)
    return [stripe for stripe, bits in zip(stripes, windows, strict=True) if bits]


def drop_zeros(table: StripeTable) -> list[Stripe]:
    """The stripes without the branches that no x takes."""
    taken = functools.cache(lambda p, xs: bool(table.p.rows[p][table.sets[xs]].any()))
    return [
        with_branches(s, [[b for b in action.branches if taken(b.p, s.xs)] for action in s.actions])
        for s in table.stripes
    ]


def cut(stripes: list[Stripe]) -> list[Stripe]:
    """Cuts stripes so that each branch enters one CHANCE stripe, which can then be pulled."""
    edges = Edges(stripes, CHANCES), Edges(stripes, SETTLED)
    made: list[Stripe] = []
    for stripe in stripes:
        cuts: set[int] = set()
        for branch in iterate_branches(stripe) if stripe.length > 1 else ():
            if branch.stride > 0:
                for edge in edges[target_of(stripe)].between(
                    *span_of(branch, stripe.length), MOST_CUTS
                ):
                    at, rest = divmod(edge - branch.target, branch.stride)
                    cuts.add(at if rest == 0 else at + 1)
        if not cuts or len(cuts) >= MOST_CUTS:
            made.append(stripe)
            continue
        points = [0, *sorted(cuts), stripe.length]
        made.extend(_piece(stripe, lo, hi) for lo, hi in itertools.pairwise(points) if lo < hi)
    return made


def _piece(stripe: Stripe, lo: int, hi: int) -> Stripe:
    """Columns lo..hi - 1 of a stripe, counted from its start."""
    piece = edit_branches(stripe, lambda b: redirect(b, b.target + lo * b.stride, b.stride))
    return piece._replace(start=stripe.start + lo, length=hi - lo)
