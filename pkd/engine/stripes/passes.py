"""Passes over stripes: each turns a table into an equal one with less to compute.

    drop    branches that no x takes, and what is never reached: stripes, and some x of a stripe
    cut     a stripe where the CHANCE stripes that it enters begin, so that a piece enters one
    merge   stretches of columns that do the same
    inline  CHANCE stripes that only pass on, or that have one user, into their users

A queue of fixed length becomes the recursion that one would write by hand, "max over the appended
action of the expected value". A worked example: actions take effect one step late, with states 0
and 1 and actions 0 and 1. Blocks: a decision with the queue (a), a CHANCE block MOVE with the queue
(a, b), and a CHANCE block SHOW with (b). The decision leads from column a to column 2a + b of MOVE.
MOVE looks at a, so it has two stripes, columns 0-1 and 2-3, and the decision is cut into the
columns 0 and 1. Each piece then enters one stripe of MOVE, is its only user and inlines it: the
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
import numpy as np

from pkd.engine.stripes.inline import inline
from pkd.engine.stripes.lookup import Places, find_windows
from pkd.engine.stripes.merge import merge
from pkd.engine.stripes.table import Action, Stripe, StripeTable
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP

# A merge may enable an inlining, and that a merge. No shipped model changes after three rounds.
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

        None if it was inlined.
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
    stripes = _drop_unreached(table, cut(drop_zeros(table, table.stripes)), horizon)
    aliases: list[tuple[int, int, int]] = []
    for _ in range(ROUNDS):
        before = stripes
        stripes, merged = merge(table, stripes)
        aliases += merged
        stripes = inline(table, stripes)
        if all(map(is_, stripes, before)):  # neither pass drops a stripe
            break
        stripes = _drop_unreached(table, stripes, horizon)
    while (left := _drop_lost(table, stripes)) is not stripes:
        stripes = _drop_unreached(table, left, horizon)
    return _compact(table, stripes, aliases)


def _compact(
    table: StripeTable, stripes: list[Stripe], aliases: list[tuple[int, int, int]]
) -> Layout:
    """Drops the blocks of columns in which nothing is left."""
    kept = []
    for space in (0, 1):
        used = {stripe.start for stripe in stripes if stripe.space == space}
        used |= {table.over[space]} if table.over[space] >= 0 else set()
        used |= {column for _, column, _ in table.start} if space == 0 else set()
        kept.append(_keep_used(table.blocks[space], used))
    shift = [_Shift(kept[0]), _Shift(kept[1])]

    def move(stripe: Stripe) -> Stripe:
        to = shift[stripe.target_space]
        moved = stripe.edit(lambda b: b.lead_to(to(b.target), b.stride))
        return moved._replace(start=shift[stripe.space](stripe.start))

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


def _drop_lost(table: StripeTable, stripes: list[Stripe]) -> list[Stripe]:
    """The stripes without each x of which a branch leads to columns that no stripe holds.

    No episode is there: every state that an episode can be in leads to states that stripes hold. A
    stripe holds such x because windows and cells do not tell apart what single entries allow.
    """
    places = Places(stripes, (STEP, CHANCES, LAST)), Places(stripes, (SETTLED,))
    kept, changed = list[Stripe](), False
    for stripe in stripes:
        space, lost = stripe.target_space, set[int]()
        for branch in stripe.branches():
            begin, end = branch.span(stripe.length)
            if begin != table.over[space] and not places[space].within(begin, end):
                lost |= set(np.flatnonzero(table.p.rows[branch.p]).tolist())
        if lost:
            left = [x for x in table.sets[stripe.xs].tolist() if x not in lost]
            stripe, changed = stripe._replace(xs=table.set_of(left)), True
        if not lost or left:
            kept.append(stripe)
    return drop_zeros(table, kept) if changed else stripes


def drop_zeros(table: StripeTable, stripes: list[Stripe]) -> list[Stripe]:
    """The stripes without the branches that no x takes."""
    taken = functools.cache(lambda p, xs: bool(table.p.rows[p][table.sets[xs]].any()))

    def drop(action: Action, xs: int) -> Action:
        return action.replace(action.reward, [b for b in action.branches if taken(b.p, xs)])

    return [s.replace_actions([drop(a, s.xs) for a in s.actions]) for s in stripes]


def cut(stripes: list[Stripe]) -> list[Stripe]:
    """Cuts stripes so that each branch enters one CHANCE stripe, which can then be inlined."""
    places = Places(stripes, (CHANCES,)), Places(stripes, (SETTLED,))
    made: list[Stripe] = []
    for stripe in stripes:
        cuts: set[int] = set()
        for branch in stripe.branches() if stripe.length > 1 else ():
            if branch.stride > 0:
                for edge in places[stripe.target_space].edges_between(
                    *branch.span(stripe.length), MOST_CUTS
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
    piece = stripe.edit(lambda b: b.lead_to(b.target + lo * b.stride, b.stride))
    return piece._replace(start=stripe.start + lo, length=hi - lo)
