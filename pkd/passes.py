"""Passes over runs: drop what is never taken or reached, merge columns with identical moves, and pull CHANCE states into their users.

Each pass turns a table into an equal one with less to compute: the delayed MDP with a constant delay becomes the recursion that one would
write by hand, "max over the appended action of the expected value". A test holds the passes equal to the table as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

import attrs
import numpy as np

from pkd.runs import CHANCES, DECISIONS, LAST, SETTLED, Move, Run, RunTable, Way

__all__ = ["Layout", "reduced", "unreduced", "windows"]


@attrs.frozen(eq=False)
class Layout:
    """Runs and the columns that they live in."""

    runs: list[Run]
    columns: int  # of the layers; decisions come first
    decision_columns: int
    settled_columns: int
    ends: dict[tuple[int, int], float]  # (x, column) -> final
    settled_ends: dict[tuple[int, int], float]
    start: list[tuple[int, int, float]]  # (x, column, probability)
    aliases: list[tuple[int, int, int]]  # (start, length, start of the columns that do the same), in the order of the merges
    moved: list[tuple[int, int, int]]  # (start, length, new start): where the passes have put the columns of the layers

    def column(self, column: int) -> int | None:
        """Where a column of the table is now; None: it was pulled into its users."""
        for start, length, original in self.aliases:
            if start <= column < start + length:
                column = column - start + original
        i = bisect_right(self.moved, (column, 2**62, 0)) - 1
        if i < 0:
            return None
        start, length, target = self.moved[i]
        return column - start + target if column < start + length else None


def unreduced(table: RunTable) -> Layout:
    """The table as it is."""
    return Layout(
        list(table.runs), table.columns, table.decision_columns, table.settled_columns, table.ends, table.settled_ends, table.start, [],
        [(0, table.columns, 0)],
    )  # fmt: skip


def reduced(table: RunTable, horizon: int) -> Layout:
    """The table after all passes."""
    runs = [_without_zeros(table, run) for run in table.runs]
    aliases: list[tuple[int, int, int]] = []
    for _ in range(3):  # a merge makes room for a pull, and a pull for a merge; three rounds settle every shipped model
        before = runs
        runs, merged = _merged(table, runs)
        aliases += merged
        runs = _reachable(table, _pulled(table, runs), horizon)
        if runs == before:
            break
    return _compact(table, runs, aliases)


def _compact(table: RunTable, runs: list[Run], aliases: list[tuple[int, int, int]]) -> Layout:
    """Drops the blocks of columns in which nothing is left."""
    layers = _kept(table.blocks or [(0, table.columns)], {run.start for run in runs if run.part != SETTLED} | {y for _, y in table.ends})
    settled = _kept(table.settled_blocks or [(0, table.settled_columns)], _settled_use(table, runs))
    before = [_Shift(layers), _Shift(settled)]

    def moved(run: Run) -> Run:
        space = int(run.part in (LAST, SETTLED))
        shifted = _mapped(run, lambda way, _: attrs.evolve(way, target=before[space](way.target)))
        return attrs.evolve(shifted, start=before[int(run.part == SETTLED)](run.start))

    return Layout(
        runs=[moved(run) for run in runs],
        columns=sum(length for _, length, _ in layers),
        decision_columns=sum(length for start, length, _ in layers if start < table.decision_columns)
        if table.blocks
        else table.decision_columns,
        settled_columns=sum(length for _, length, _ in settled),
        ends={(x, before[0](y)): final for (x, y), final in table.ends.items()},
        settled_ends={(x, before[1](y)): final for (x, y), final in table.settled_ends.items()},
        start=[(x, before[0](y), p) for x, y, p in table.start],
        aliases=aliases,
        moved=layers,
    )


def _settled_use(table: RunTable, runs: list[Run]) -> set[int]:
    return {run.start for run in runs if run.part == SETTLED} | {y for _, y in table.settled_ends}


def _kept(blocks: list[tuple[int, int]], used: set[int]) -> list[tuple[int, int, int]]:
    """(start, length, new start) of the blocks in which some column is used."""
    columns, kept, at = sorted(used), [], 0
    for start, length in blocks:
        if _any_between(columns, start, start + length):
            kept.append((start, length, at))
            at += length
    return kept


class _Shift:
    """Where columns go when whole blocks are dropped."""

    def __init__(self, kept: list[tuple[int, int, int]]) -> None:
        self.starts, self.by = [start for start, _, _ in kept], [new - start for start, _, new in kept]

    def __call__(self, column: int) -> int:
        return column + self.by[bisect_right(self.starts, column) - 1]


def windows(start: list[tuple[int, int, float]], runs: list[Run], horizon: int) -> list[int]:
    """The layers in which each run can be met, as bits; bit H is the settlement."""
    places = [_Places(runs, (DECISIONS, CHANCES)), _Places(runs, (LAST,)), _Places(runs, (SETTLED,))]
    bits = [0] * len(runs)
    everything, last = (1 << horizon) - 1, 1 << (horizon - 1)
    pending: list[tuple[int, int]] = []

    def meet(space: int, start: int, stop: int, layers: int) -> None:
        for i in places[2].within(start, stop) if space else places[0].within(start, stop):
            pending.append((i, layers))
        if not space and layers & last:
            pending.extend((i, last) for i in places[1].within(start, stop))

    for _, y, _ in start:
        meet(0, y, y + 1, 1)
    while pending:
        i, layers = pending.pop()
        run = runs[i]
        if run.part == DECISIONS:
            layers &= everything ^ last
        fresh = layers & ~bits[i]
        if not fresh:
            continue
        bits[i] |= fresh
        settles = run.part in (LAST, SETTLED)
        onward = 1 << horizon if settles else (fresh << 1) & everything if run.part == DECISIONS else fresh
        if onward:
            for way in _ways(run):
                meet(int(settles), *_span(way, run.length), onward)
    return bits


def _reachable(table: RunTable, runs: list[Run], horizon: int) -> list[Run]:
    return [run for run, bits in zip(runs, windows(table.start, runs, horizon), strict=True) if bits]


def _without_zeros(table: RunTable, run: Run) -> Run:
    xs = table.sets.rows[run.xs]
    moves = tuple(attrs.evolve(move, ways=tuple(way for way in move.ways if table.p.rows[way.p][xs].any())) for move in run.moves)
    return attrs.evolve(run, moves=moves)


def _merged(table: RunTable, runs: list[Run]) -> tuple[list[Run], list[tuple[int, int, int]]]:
    """Columns with identical moves become one: ways into the copies lead to the first. Also: (copy, length, original)."""
    spaces = _Places(runs, (DECISIONS, CHANCES)), _Places(runs, (SETTLED,))
    lasts = _Places(runs, (LAST,))
    ended = sorted({y for _, y in table.ends}), sorted({y for _, y in table.settled_ends})
    begun = {y for _, y, _ in table.start}
    first: dict[tuple[object, ...], int] = {}  # what a stretch of columns does -> where it does so first
    moved: tuple[dict[int, tuple[int, int]], dict[int, tuple[int, int]]] = ({}, {})  # start -> (length, start of the original)
    for space, places in enumerate(spaces):
        for run in runs:
            if int(run.part == SETTLED) != space or run.part == LAST or run.start in moved[space]:
                continue
            stop = run.start + run.length
            here = [runs[i] for i in places.within(run.start, stop)]
            here += [runs[i] for i in lasts.within(run.start, stop)] if space == 0 else []
            alone = all((other.start, other.length) == (run.start, run.length) for other in here)
            if not alone or _any_between(ended[space], run.start, stop):
                continue
            key = (space, run.length, frozenset((other.part, other.xs, other.moves) for other in here))
            original = first.setdefault(key, run.start)
            if original != run.start and not (space == 0 and any(run.start <= y < stop for y in begun)):
                moved[space][run.start] = (run.length, original)
    starts = sorted(moved[0]), sorted(moved[1])

    def redirected(way: Way, run: Run) -> Way:
        space = int(run.part in (LAST, SETTLED))
        begin, end = _span(way, run.length)
        i = bisect_right(starts[space], begin) - 1
        if i < 0:
            return way
        start = starts[space][i]
        length, original = moved[space][start]
        return attrs.evolve(way, target=way.target - start + original) if end <= start + length else way

    aliases = [(start, *moved[0][start]) for start in starts[0]]
    return ([_mapped(run, redirected) for run in runs] if any(moved) else runs), aliases


def _pulled(table: RunTable, runs: list[Run]) -> list[Run]:
    """CHANCE states that only pass through, or that have one user, become part of their users."""
    chances = _Places(runs, (CHANCES,)), _Places(runs, (SETTLED,))
    identity = {i for i, row in enumerate(table.law.rows) if _is_identity(table, row)}
    used = [0] * len(runs)
    shared = [False] * len(runs)
    sizes = [len(table.sets.rows[run.xs]) * run.length for run in runs]
    for run in runs:
        space = int(run.part in (LAST, SETTLED))
        for way in _ways(run):
            for i in chances[space].within(*_span(way, run.length)):
                if way.law in identity and _covers(table, runs[i], way, run):
                    used[i] += len(table.sets.rows[run.xs]) * run.length
                elif _touches(table, runs[i], way, run, identity):
                    shared[i] = True
    for x, y, _ in table.start:
        for i in chances[0].within(y, y + 1):
            shared[i] |= x in table.sets.rows[runs[i].xs]

    whole = _Places(runs, (DECISIONS, CHANCES, LAST)), _Places(runs, (SETTLED,))
    ended = sorted({y for _, y in table.ends}), sorted({y for _, y in table.settled_ends})

    def passed(way: Way, run: Run, space: int) -> Way:
        """A way into columns that only pass through, for every x, leads to where they lead."""
        begin, end = _span(way, run.length)
        found = [runs[i] for i in whole[space].within(begin, end)]
        lines = {through(hop) for hop in found}
        if len(lines) != 1 or None in lines or not _tiled(found, begin, end) or _any_between(ended[space], begin, end):
            return way
        ((shift, stride),) = lines  # type: ignore[misc]
        return attrs.evolve(way, target=shift + stride * way.target, stride=stride * way.stride)

    def through(hop: Run) -> tuple[int, int] | None:
        """(shift, stride) where every column y of a run only passes through to shift + stride * y."""
        if hop.part not in (CHANCES, SETTLED) or len(hop.moves[0].ways) != 1 or hop.moves[0].reward != table.no_reward:
            return None
        (inside,) = hop.moves[0].ways
        plain = inside.law in identity and inside.reward == table.no_reward
        return (inside.target - inside.stride * hop.start, inside.stride) if plain else None

    def pull(run: Run) -> Run:
        space = int(run.part in (LAST, SETTLED))
        moves = []
        for move in run.moves:
            ways: list[Way] = []
            reward = move.reward
            for way in (passed(way, run, space) for way in move.ways):
                inner = _target(table, runs, chances[space], way, run) if way.law in identity and way.reward == table.no_reward else None
                if inner is None:
                    ways.append(way)
                    continue
                (hop,) = runs[inner].moves
                only = len(move.ways) == 1 and _all_ones(table, way.p, run)
                passes = len(hop.ways) == 1 and hop.ways[0].law in identity and hop.ways[0].reward == table.no_reward
                if not ((passes and hop.reward == table.no_reward) or (used[inner] == sizes[inner] and not shared[inner])):
                    ways.append(way)
                elif hop.reward == table.no_reward or (only and reward == table.no_reward):
                    if hop.reward != table.no_reward:
                        reward = hop.reward
                    ways.extend(_through(table, way, runs[inner], inside) for inside in hop.ways)
                else:
                    ways.append(way)
            moves.append(Move(reward, tuple(ways)))
        return attrs.evolve(run, moves=tuple(moves))

    return [pull(run) for run in runs]


def _through(table: RunTable, way: Way, hop: Run, inside: Way) -> Way:
    """Two ways in a row: probabilities multiply, progressions compose."""
    p = table.p.add(table.p.rows[way.p] * table.p.rows[inside.p])
    return attrs.evolve(inside, p=p, target=inside.target + inside.stride * (way.target - hop.start), stride=inside.stride * way.stride)


def _target(table: RunTable, runs: list[Run], chances: _Places, way: Way, run: Run) -> int | None:
    """The one CHANCE run that a way leads into with all its columns and x."""
    found = [i for i in chances.within(*_span(way, run.length)) if set(table.sets.rows[runs[i].xs]) & set(table.sets.rows[run.xs])]
    return found[0] if len(found) == 1 and _covers(table, runs[found[0]], way, run) else None


def _covers(table: RunTable, hop: Run, way: Way, run: Run) -> bool:
    begin, end = _span(way, run.length)
    inside = hop.start <= begin and end <= hop.start + hop.length
    return inside and (hop.xs == run.xs or set(table.sets.rows[run.xs]) <= set(table.sets.rows[hop.xs]))


def _touches(table: RunTable, hop: Run, way: Way, run: Run, identity: set[int]) -> bool:
    """Whether a way may lead into a run by other means than the identity."""
    if way.law in identity:
        return bool(set(table.sets.rows[run.xs]) & set(table.sets.rows[hop.xs]))
    return True


def _all_ones(table: RunTable, p: int, run: Run) -> bool:
    return bool((table.p.rows[p][table.sets.rows[run.xs]] == 1.0).all())


def _is_identity(table: RunTable, row: np.ndarray) -> bool:
    """Whether a row of laws leaves every x where it is."""
    return all(not (law >= 0 or (law > -(2**62) and table.known[-1 - law] != ((x, 1.0),))) for x, law in enumerate(row))


class _Places:
    """Which runs of some parts hold a stretch of columns."""

    def __init__(self, runs: list[Run], parts: tuple[int, ...]) -> None:
        mine = [i for i, run in enumerate(runs) if run.part in parts]
        self.cuts = sorted({edge for i in mine for edge in (runs[i].start, runs[i].start + runs[i].length)})
        self.held: list[list[int]] = [[] for _ in self.cuts]
        for i in mine:
            for k in range(bisect_left(self.cuts, runs[i].start), bisect_left(self.cuts, runs[i].start + runs[i].length)):
                self.held[k].append(i)

    def within(self, start: int, stop: int) -> Iterable[int]:
        first = max(bisect_right(self.cuts, start) - 1, 0)
        last = bisect_left(self.cuts, stop)
        if last - first == 1:
            return self.held[first]
        return dict.fromkeys(i for k in range(first, last) for i in self.held[k])


def _ways(run: Run) -> Iterator[Way]:
    return (way for move in run.moves for way in move.ways)


def _span(way: Way, length: int) -> tuple[int, int]:
    """The columns that a way can lead to, from and up to."""
    end = way.target + way.stride * (length - 1)
    return min(way.target, end), max(way.target, end) + 1


def _tiled(runs: list[Run], begin: int, end: int) -> bool:
    """Whether runs hold all columns of a stretch, each once."""
    at = begin
    for run in sorted(runs, key=lambda run: run.start):
        if run.start > at or (at > begin and run.start != at):
            return False
        at = run.start + run.length
    return at >= end


def _any_between(values: list[int], start: int, stop: int) -> bool:
    return bisect_left(values, start) < bisect_left(values, stop)


def _mapped(run: Run, change: Callable[[Way, Run], Way]) -> Run:
    moves = tuple(attrs.evolve(move, ways=tuple(change(way, run) for way in move.ways)) for move in run.moves)
    return attrs.evolve(run, moves=moves)
