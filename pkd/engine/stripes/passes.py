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
from collections.abc import Iterable, Iterator
from operator import is_

import attrs
import numpy as np

from pkd.engine.stripes.spans import (
    Edges,
    Places,
    fills,
    find_windows,
    iterate_branches,
    span_of,
)
from pkd.engine.stripes.table import MISSING, Action, Branch, Stripe, StripeTable
from pkd.graph import CHANCES, LAST, SETTLED, STEP

__all__ = ["Layout", "keep", "reduce"]

_Members = dict[tuple[int, int, int], Stripe]  # (part, level, x) -> its stripe in one stretch

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
    stripes = _drop_unreached(table, _cut(table, _drop_zeros(table)), horizon)
    aliases: list[tuple[int, int, int]] = []
    for _ in range(ROUNDS):
        before = stripes
        stripes, merged = _merge(table, stripes)
        aliases += merged
        stripes = _drop_unreached(table, _pull(table, stripes), horizon)
        if len(stripes) == len(before) and all(map(is_, stripes, before)):
            break
    return _compact(table, stripes, aliases)


def _compact(
    table: StripeTable, stripes: list[Stripe], aliases: list[tuple[int, int, int]]
) -> Layout:
    """Drops the blocks of columns in which nothing is left."""
    kept = []
    for space in (0, 1):
        used = {stripe.start for stripe in stripes if int(stripe.part == SETTLED) == space}
        used |= {table.over[space]} if table.over[space] >= 0 else set()
        used |= {column for _, column, _ in table.start} if space == 0 else set()
        kept.append(_keep_used(table.blocks[space], used))
    shift = [_Shift(kept[0]), _Shift(kept[1])]

    def move(stripe: Stripe) -> Stripe:
        to = shift[int(stripe.part in (LAST, SETTLED))]
        moved = _with_branches(
            stripe,
            [
                [_redirect(b, to(b.target), b.stride) for b in action.branches]
                for action in stripe.actions
            ],
        )
        return moved._replace(start=shift[int(stripe.part == SETTLED)](stripe.start))

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


def _drop_zeros(table: StripeTable) -> list[Stripe]:
    """The stripes without the branches that no x takes."""
    taken = functools.cache(lambda p, xs: bool(table.p.rows[p][table.sets[xs]].any()))
    return [
        _with_branches(
            s, [[b for b in action.branches if taken(b.p, s.xs)] for action in s.actions]
        )
        for s in table.stripes
    ]


def _cut(table: StripeTable, stripes: list[Stripe]) -> list[Stripe]:
    """Cuts stripes so that each branch enters one CHANCE stripe, which can then be pulled."""
    edges = Edges(stripes, CHANCES), Edges(stripes, SETTLED)
    made: list[Stripe] = []
    for stripe in stripes:
        space = int(stripe.part in (LAST, SETTLED))
        cuts: set[int] = set()
        for branch in iterate_branches(stripe) if stripe.length > 1 else ():
            if branch.stride > 0:
                for edge in edges[space].between(*span_of(branch, stripe.length), MOST_CUTS):
                    at, rest = divmod(edge - branch.target, branch.stride)
                    cuts.add(at if rest == 0 else at + 1)
        if not cuts or len(cuts) >= MOST_CUTS:
            made.append(stripe)
            continue
        points = [0, *sorted(cuts), stripe.length]
        made.extend(_piece(stripe, lo, hi) for lo, hi in itertools.pairwise(points) if lo < hi)
    return made


def _piece(stripe: Stripe, lo: int, hi: int) -> Stripe:
    branches = [
        [_redirect(b, b.target + lo * b.stride, b.stride) for b in action.branches]
        for action in stripe.actions
    ]
    return _with_branches(stripe, branches)._replace(start=stripe.start + lo, length=hi - lo)


def _merge(
    table: StripeTable, stripes: list[Stripe]
) -> tuple[list[Stripe], list[tuple[int, int, int]]]:
    """Redirects branches into a stretch of columns to another one that does the same for all its x.

    Also returns (copy, length, original) of the layers.
    """
    moved: tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]] = ({}, {})
    signs = _Signs(table)
    begun = sorted(column for _, column, _ in table.start)
    for space in (0, 1):
        originals: dict[object, list[_Members]] = {}  # by length and what one x does
        for start, length, members in _find_stretches(stripes, space):
            mine = {(s.part, s.level, x): s for s in members for x in table.sets[s.xs].tolist()}
            some, stripe = next(iter(mine.items()))
            for other in originals.get((length, some, signs(stripe, some[2])), ()):
                if all(
                    key in other and signs(s, key[2]) == signs(other[key], key[2])
                    for key, s in mine.items()
                ):
                    is_start = bisect_left(begun, start) < bisect_left(begun, start + length)
                    if not (space == 0 and is_start):
                        moved[space][start] = (length, next(iter(other.values())).start)
                    break
            else:
                for key, s in mine.items():
                    originals.setdefault((length, key, signs(s, key[2])), []).append(mine)
    joined = _join_neighbours(moved[0]), _join_neighbours(moved[1])
    starts = list(joined[0]), list(joined[1])

    def redirect(branch: Branch, stripe: Stripe) -> Branch:
        space = int(stripe.part in (LAST, SETTLED))
        begin, end = span_of(branch, stripe.length)
        i = bisect_right(starts[space], begin) - 1
        if i < 0:
            return branch
        start = starts[space][i]
        length, original = joined[space][start]
        if end > start + length:
            return branch
        return _redirect(branch, branch.target - start + original, branch.stride)

    if any(joined):
        stripes = [
            _with_branches(s, [[redirect(b, s) for b in action.branches] for action in s.actions])
            for s in stripes
        ]
    return stripes, [(start, *joined[0][start]) for start in starts[0]]


def _find_stretches(stripes: list[Stripe], space: int) -> list[tuple[int, int, list[Stripe]]]:
    """(start, length, stripes) of stretches that stripes share exactly; those with many x first."""
    found: dict[tuple[int, int], list[Stripe]] = {}
    for stripe in stripes:
        if int(stripe.part == SETTLED) == space:
            found.setdefault((stripe.start, stripe.length), []).append(stripe)
    alone, end = [], -1
    spans = sorted(found)
    for i, (start, length) in enumerate(spans):
        follows = i + 1 < len(spans) and spans[i + 1][0] < start + length
        if start >= end and not follows:
            alone.append((start, length, found[start, length]))
        end = max(end, start + length)
    return sorted(alone, key=lambda stretch: -len(stretch[2]))


class _Signs:
    """What a stripe does for one x, to compare it with another stripe."""

    def __init__(self, table: StripeTable) -> None:
        # Lists: single elements of an array are slow to read.
        known, means = table.reward_arrays()
        self.pay = [
            list(zip(*rows, strict=True))
            for rows in zip(known.tolist(), means.tolist(), strict=True)
        ]
        self.p, self.law, self.weight, self.note = (
            [row.tolist() for row in rows.rows]
            for rows in (table.p, table.law, table.weight, table.note)
        )
        self.made: dict[tuple[int, int], tuple[object, ...]] = {}
        self.kept: list[Stripe] = []  # so that an id stays what it is

    def __call__(self, stripe: Stripe, x: int) -> tuple[object, ...]:
        key = (id(stripe), x)
        if key not in self.made:
            self.kept.append(stripe)
            self.made[key] = tuple(self._sign(action, x) for action in stripe.actions)
        return self.made[key]

    def _sign(self, action: Action, x: int) -> tuple[object, ...]:
        branches = [
            (b.target, b.stride, self.p[b.p][x], self.law[b.law][x], self.weight[b.weight][x],
             self.pay[b.reward][x], self.note[b.note][x])
            for b in action.branches if self.p[b.p][x] > 0
        ]  # fmt: skip
        return self.pay[action.reward][x], *sorted(branches)


def _join_neighbours(moved: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Neighbours that move by the same distance move together."""
    joined: dict[int, tuple[int, int]] = {}
    begin = end = by = 0
    for start, (length, original) in sorted(moved.items()):
        if not joined or start != end or original - start != by:
            begin, by = start, original - start
        end = start + length
        joined[begin] = (end - begin, begin + by)
    return joined


def _pull(table: StripeTable, stripes: list[Stripe]) -> list[Stripe]:
    """CHANCE stripes that only pass on, or that have one user, become part of their users."""
    chances = Places(stripes, (CHANCES,)), Places(stripes, (SETTLED,))
    identity = {i for i, row in enumerate(table.law.rows) if _is_identity(table, row)}
    xs = [frozenset(row.tolist()) for row in table.sets]
    used, shared = [0] * len(stripes), [False] * len(stripes)
    sizes = [len(xs[stripe.xs]) * stripe.length for stripe in stripes]
    for stripe, size in zip(stripes, sizes, strict=True):
        space = int(stripe.part in (LAST, SETTLED))
        for branch in iterate_branches(stripe):
            for i in chances[space].within(*span_of(branch, stripe.length)):
                if branch.law not in identity:
                    shared[i] = True
                elif _covers(xs, stripes[i], branch, stripe):
                    used[i] += size
                elif not xs[stripe.xs].isdisjoint(xs[stripes[i].xs]):
                    shared[i] = True
    for x, y, _ in table.start:
        for i in chances[0].within(y, y + 1):
            shared[i] |= x in xs[stripes[i].xs]

    lines = [_find_line(table, stripe, identity) for stripe in stripes]
    whole = Places(stripes, (STEP, CHANCES, LAST)), Places(stripes, (SETTLED,))

    def skip(branch: Branch, stripe: Stripe, space: int) -> Branch:
        """A branch into columns that only pass on, for every x, leads to where they lead."""
        begin, end = span_of(branch, stripe.length)
        found = whole[space].within(begin, end)
        line = lines[found[0]] if found else None
        if line is None or any(lines[i] != line for i in found):
            return branch
        if not fills([stripes[i] for i in found], begin, end):
            return branch
        shift, stride = line
        return _redirect(branch, shift + stride * branch.target, stride * branch.stride)

    def find_target(branch: Branch, stripe: Stripe, space: int) -> int | None:
        """The one CHANCE stripe that a branch leads into with all its columns and x."""
        if branch.law not in identity or branch.reward != table.no_reward:
            return None
        within = chances[space].within(*span_of(branch, stripe.length))
        found = [i for i in within if not xs[stripes[i].xs].isdisjoint(xs[stripe.xs])]
        return (
            found[0] if len(found) == 1 and _covers(xs, stripes[found[0]], branch, stripe) else None
        )

    def pull(action: Action, stripe: Stripe, space: int) -> Action:
        branches: list[Branch] = []
        reward = action.reward
        for branch in (skip(branch, stripe, space) for branch in action.branches):
            inner = find_target(branch, stripe, space)
            if inner is None or not (
                lines[inner] or (used[inner] == sizes[inner] and not shared[inner])
            ):
                branches.append(branch)
                continue
            (hop,) = stripes[inner].actions
            sure = (
                len(action.branches) == 1
                and (table.p.rows[branch.p][table.sets[stripe.xs]] == 1.0).all()
            )
            free = reward == table.no_reward and sure
            clear = branch.note == table.no_note or all(
                b.note == table.no_note for b in hop.branches
            )
            if clear and (hop.reward == table.no_reward or free):
                reward = reward if hop.reward == table.no_reward else hop.reward
                branches.extend(_compose(table, branch, stripe, stripes[inner]))
            else:
                branches.append(branch)
        return _with(action, reward, branches)

    return [
        _with_actions(s, [pull(action, s, int(s.part in (LAST, SETTLED))) for action in s.actions])
        for s in stripes
    ]


def _find_line(table: StripeTable, hop: Stripe, identity: set[int]) -> tuple[int, int] | None:
    """(shift, stride) where every column y of a stripe only passes on to shift + stride * y."""
    if hop.part not in (CHANCES, SETTLED) or len(hop.actions[0].branches) != 1:
        return None
    (inside,) = hop.actions[0].branches
    plain = inside.law in identity and inside.reward == hop.actions[0].reward == table.no_reward
    if not plain or inside.note != table.no_note:
        return None
    return inside.target - inside.stride * hop.start, inside.stride


def _compose(table: StripeTable, branch: Branch, stripe: Stripe, hop: Stripe) -> Iterator[Branch]:
    """A branch followed by those of the CHANCE stripe it enters.

    Probabilities multiply, and the progressions of columns compose.
    """
    for inside in hop.actions[0].branches:
        p = table.p.rows[branch.p] * table.p.rows[inside.p]
        if p[table.sets[stripe.xs]].any():
            target = inside.target + inside.stride * (branch.target - hop.start)
            note = inside.note if inside.note != table.no_note else branch.note
            stride = inside.stride * branch.stride
            yield Branch(
                table.p.add(p), inside.law, inside.weight, target, stride, inside.reward, note
            )


def _covers(xs: list[frozenset[int]], hop: Stripe, branch: Branch, stripe: Stripe) -> bool:
    begin, end = span_of(branch, stripe.length)
    return hop.start <= begin and end <= hop.start + hop.length and xs[stripe.xs] <= xs[hop.xs]


def _is_identity(table: StripeTable, row: np.ndarray) -> bool:
    """Whether a row of laws leaves every x where it is."""
    for x, law in enumerate(row.tolist()):
        if law >= 0 or (law > MISSING and table.known[-1 - law] != ((x, 1.0),)):
            return False
    return True


def _redirect(branch: Branch, target: int, stride: int) -> Branch:
    """The same branch to other columns."""
    if target == branch.target and stride == branch.stride:
        return branch
    return branch._replace(target=target, stride=stride)


def _with_branches(stripe: Stripe, branches: Iterable[list[Branch]]) -> Stripe:
    """A stripe with other branches.

    Parts that stay the same stay the same object, which is cheap to compare.
    """
    made = [
        _with(action, action.reward, new)
        for action, new in zip(stripe.actions, branches, strict=True)
    ]
    return _with_actions(stripe, made)


def _with_actions(stripe: Stripe, actions: list[Action]) -> Stripe:
    return (
        stripe
        if all(map(is_, actions, stripe.actions))
        else stripe._replace(actions=tuple(actions))
    )


def _with(action: Action, reward: int, branches: list[Branch]) -> Action:
    same = reward == action.reward and len(branches) == len(action.branches)
    return (
        action
        if same and all(map(is_, branches, action.branches))
        else Action(reward, tuple(branches))
    )
