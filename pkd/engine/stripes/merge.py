"""Merging: stretches of columns that do the same become one.

Two stretches of equal length do the same if their stripes have, for every x, the same rewards and
the same branches. Branches into the copy then lead to the original, and the copy can be dropped. A
worked example: y is a queue of one action and a clock that stops mattering once the queue is full.
Columns 1-2 are the queues with the clock at 0, columns 3-4 those with the clock at 1, and both have
the same branches. Then all branches into columns 3-4 lead to columns 1-2.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from pkd.engine.stripes.table import Action, Branch, Stripe, StripeTable

_Members = dict[tuple[int, int, int], Stripe]  # (part, level, x) -> its stripe in one stretch
_Moves = dict[int, tuple[int, int]]  # start of a copy -> (length, start of the original)


def merge(
    table: StripeTable, stripes: list[Stripe]
) -> tuple[list[Stripe], list[tuple[int, int, int]]]:
    """Redirects branches into a stretch of columns to another one that does the same for all its x.

    Also returns (copy, length, original) of the layers.
    """
    signatures = _Signatures(table)
    moves = [_join_neighbours(_find_copies(table, stripes, space, signatures)) for space in (0, 1)]
    starts = [list(moves[0]), list(moves[1])]
    if any(moves):
        stripes = [
            _follow(stripe, moves[stripe.target_space], starts[stripe.target_space])
            for stripe in stripes
        ]
    return stripes, [(start, *move) for start, move in moves[0].items()]


def _follow(stripe: Stripe, moves: _Moves, starts: list[int]) -> Stripe:
    """The stripe; a branch whose columns are all in one copy leads to the original instead.

    starts: those of the copies, ascending.
    """

    def follow(branch: Branch) -> Branch:
        begin, end = branch.span(stripe.length)
        i = bisect_right(starts, begin) - 1
        if i < 0:
            return branch
        length, original = moves[starts[i]]
        if end > starts[i] + length:
            return branch
        return branch.lead_to(branch.target - starts[i] + original, branch.stride)

    return stripe.edit(follow)


def _find_copies(
    table: StripeTable, stripes: list[Stripe], space: int, signatures: _Signatures
) -> _Moves:
    """The stretches of a space that do the same as an earlier one. A start stays where it is."""
    begun = sorted(column for _, column, _ in table.start) if space == 0 else []
    originals, copies = _Originals(signatures), dict[int, tuple[int, int]]()
    for start, length, held in _find_stretches(stripes, space):
        members = {(s.part, s.level, x): s for s in held for x in table.sets[s.xs].tolist()}
        original = originals.find(length, members)
        if original is None:
            originals.add(length, members)
        elif bisect_left(begun, start) == bisect_left(begun, start + length):
            copies[start] = (length, next(iter(original.values())).start)
    return copies


class _Originals:
    """The stretches that are no copies, found by what they do for one x.

    Stretches are described only at an x at which some later stretch is looked up: describing all of
    them at every x takes longer than all other passes.
    """

    def __init__(self, signatures: _Signatures) -> None:
        self.signatures = signatures
        self.stretches: dict[int, list[_Members]] = {}  # by length
        self.described: dict[object, int] = {}  # how many of them, by length and (part, level, x)
        self.alike: dict[object, list[_Members]] = {}  # by length, (part, level, x) and signature

    def add(self, length: int, members: _Members) -> None:
        self.stretches.setdefault(length, []).append(members)

    def find(self, length: int, members: _Members) -> _Members | None:
        """The first stretch that does the same for every x of this one."""
        signatures, known = self.signatures, self.stretches.get(length, [])
        if not known:
            return None
        key, stripe = next(iter(members.items()))
        x = key[2]
        for other in known[self.described.get((length, key), 0) :]:
            if key in other:
                here = (length, key, signatures(other[key], x))
                self.alike.setdefault(here, []).append(other)
        self.described[length, key] = len(known)
        candidates = self.alike.get((length, key, signatures(stripe, x)), ())
        return next((one for one in candidates if _is_within(members, one, signatures)), None)


def _is_within(members: _Members, other: _Members, signatures: _Signatures) -> bool:
    """Whether the other stretch does the same for every x of this one."""
    return all(
        key in other and signatures(stripe, key[2]) == signatures(other[key], key[2])
        for key, stripe in members.items()
    )


def _find_stretches(stripes: list[Stripe], space: int) -> list[tuple[int, int, list[Stripe]]]:
    """(start, length, stripes) of stretches that stripes share exactly; those with many x first."""
    found: dict[tuple[int, int], list[Stripe]] = {}
    for stripe in stripes:
        if stripe.space == space:
            found.setdefault((stripe.start, stripe.length), []).append(stripe)
    alone, end = [], -1
    spans = sorted(found)
    for i, (start, length) in enumerate(spans):
        follows = i + 1 < len(spans) and spans[i + 1][0] < start + length
        if start >= end and not follows:
            alone.append((start, length, found[start, length]))
        end = max(end, start + length)
    return sorted(alone, key=lambda stretch: -len(stretch[2]))


class _Signatures:
    """What a stripe does for one x, as a value that can be compared."""

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
        self.kept: list[Stripe] = []  # an id is unique while its object lives

    def __call__(self, stripe: Stripe, x: int) -> tuple[object, ...]:
        key = (id(stripe), x)
        if key not in self.made:
            self.kept.append(stripe)
            self.made[key] = tuple(self._describe(action, x) for action in stripe.actions)
        return self.made[key]

    def _describe(self, action: Action, x: int) -> tuple[object, ...]:
        branches = [
            (b.target, b.stride, self.p[b.p][x], self.law[b.law][x], self.weight[b.weight][x],
             self.pay[b.reward][x], self.note[b.note][x])
            for b in action.branches if self.p[b.p][x] > 0
        ]  # fmt: skip
        return self.pay[action.reward][x], *sorted(branches)


def _join_neighbours(moves: _Moves) -> _Moves:
    """Neighbours that move by the same distance move together."""
    joined: _Moves = {}
    begin = end = by = 0
    for start, (length, original) in sorted(moves.items()):
        if not joined or start != end or original - start != by:
            begin, by = start, original - start
        end = start + length
        joined[begin] = (end - begin, begin + by)
    return joined
