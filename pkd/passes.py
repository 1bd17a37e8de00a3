"""Passes over runs: drop what is never taken or reached, merge columns with identical moves, and pull CHANCE states into their users.

Each pass turns a table into an equal one with less to compute: the delayed MDP with a constant delay becomes the recursion that one would
write by hand, "max over the appended action of the expected value". A test holds the passes equal to the table as it was.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from operator import is_

import attrs
import numpy as np

from pkd.runs import CHANCES, DECISIONS, LAST, SETTLED, Move, Run, RunTable, Way

__all__ = ["Layout", "reduced", "unreduced", "windows"]


@attrs.frozen(eq=False)
class Layout:
    """Runs and the columns that they live in."""

    runs: list[Run]
    columns: int  # of the layers
    settled_columns: int
    ends: dict[tuple[int, int], float]  # (x, column) -> final
    settled_ends: dict[tuple[int, int], float]
    start: list[tuple[int, int, float]]  # (x, column, probability)
    aliases: list[tuple[int, int, int]]  # (start, length, start of the columns that do the same), in the order of the merges
    moved: list[tuple[int, int, int]]  # (start, length, new start): where the passes have put the columns of the layers

    def places(self, column: int) -> Iterator[int]:
        """Where a column of the table may be now: at its own place, and where columns that do the same are; nowhere if it was pulled."""
        yield from self._moved_to(column)
        for start, length, original in self.aliases:
            if start <= column < start + length:
                column = column - start + original
                yield from self._moved_to(column)

    def _moved_to(self, column: int) -> Iterator[int]:
        i = bisect_right(self.moved, (column, 2**62, 0)) - 1
        if i >= 0:
            start, length, target = self.moved[i]
            if column < start + length:
                yield column - start + target


def unreduced(table: RunTable) -> Layout:
    """The table as it is."""
    return Layout(
        list(table.runs), table.columns, table.settled_columns, table.ends, table.settled_ends, table.start, [],
        [(0, table.columns, 0)],
    )  # fmt: skip


def reduced(table: RunTable, horizon: int) -> Layout:
    """The table after all passes."""
    runs = _without_zeros(table)
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
        ways = [[_led(way, before[space](way.target), way.stride) for way in move.ways] for move in run.moves]
        return attrs.evolve(_with_ways(run, ways), start=before[int(run.part == SETTLED)](run.start))

    return Layout(
        runs=[moved(run) for run in runs],
        columns=sum(length for _, length, _ in layers),
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
    part = np.array([run.part for run in runs], np.int64)
    leads, places = _Leads(runs), _Places(runs, (DECISIONS, CHANCES, LAST))
    met = np.zeros((horizon + 1, len(runs)), bool)
    layer = np.zeros(len(runs), bool)
    layer[[i for _, y, _ in start for i in places.within(y, y + 1)]] = True
    for t in range(horizon):
        leads.close(layer, part == CHANCES)
        if t > 0 and np.array_equal(layer, met[t - 1]):  # then every later layer is this one too
            met[t:horizon] = layer
            break
        met[t] = layer
        layer = leads.after(layer & (part == DECISIONS))
    met[horizon] = leads.after(met[horizon - 1] & (part == LAST))
    leads.close(met[horizon], part == SETTLED)
    met[: horizon - 1, part == LAST] = False
    met[horizon - 1, part == DECISIONS] = False
    return [int.from_bytes(row.tobytes(), "little") for row in np.packbits(met.T, axis=1, bitorder="little")]


def _reachable(table: RunTable, runs: list[Run], horizon: int) -> list[Run]:
    return [run for run, bits in zip(runs, windows(table.start, runs, horizon), strict=True) if bits]


def _without_zeros(table: RunTable) -> list[Run]:
    """The runs without the ways that no x takes."""
    taken = functools.cache(lambda p, xs: bool(table.p.rows[p][table.sets.rows[xs]].any()))
    return [_with_ways(run, [[way for way in move.ways if taken(way.p, run.xs)] for move in run.moves]) for run in table.runs]


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
            key = (space, run.length, frozenset((other.part, other.xs, other.level, other.moves) for other in here))
            original = first.setdefault(key, run.start)
            if original != run.start and not (space == 0 and any(run.start <= y < stop for y in begun)):
                moved[space][run.start] = (run.length, original)
    moved = _stretches(moved[0]), _stretches(moved[1])
    starts = list(moved[0]), list(moved[1])

    def redirected(way: Way, run: Run) -> Way:
        space = int(run.part in (LAST, SETTLED))
        begin, end = _span(way, run.length)
        i = bisect_right(starts[space], begin) - 1
        if i < 0:
            return way
        start = starts[space][i]
        length, original = moved[space][start]
        return _led(way, way.target - start + original, way.stride) if end <= start + length else way

    aliases = [(start, *moved[0][start]) for start in starts[0]]
    if any(moved):
        runs = [_with_ways(run, [[redirected(way, run) for way in move.ways] for move in run.moves]) for run in runs]
    return runs, aliases


def _stretches(moved: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Neighbours that move by the same distance move together."""
    joined: dict[int, tuple[int, int]] = {}
    begin = end = by = 0
    for start, (length, original) in sorted(moved.items()):
        if not joined or start != end or original - start != by:
            begin, by = start, original - start
        end = start + length
        joined[begin] = (end - begin, begin + by)
    return joined


def _pulled(table: RunTable, runs: list[Run]) -> list[Run]:
    """CHANCE states that only pass through, or that have one user, become part of their users."""
    chances = _Places(runs, (CHANCES,)), _Places(runs, (SETTLED,))
    identity = {i for i, row in enumerate(table.law.rows) if _is_identity(table, row)}
    xs = [frozenset(row.tolist()) for row in table.sets.rows]
    used = [0] * len(runs)
    shared = [False] * len(runs)
    sizes = [len(xs[run.xs]) * run.length for run in runs]
    for run, size in zip(runs, sizes, strict=True):
        space = int(run.part in (LAST, SETTLED))
        for way in _ways(run):
            for i in chances[space].within(*_span(way, run.length)):
                if way.law not in identity:
                    shared[i] = True
                elif _covers(xs, runs[i], way, run):
                    used[i] += size
                elif not xs[run.xs].isdisjoint(xs[runs[i].xs]):
                    shared[i] = True
    for x, y, _ in table.start:
        for i in chances[0].within(y, y + 1):
            shared[i] |= x in xs[runs[i].xs]

    lines = [_line(table, run, identity) for run in runs]
    whole = _Places(runs, (DECISIONS, CHANCES, LAST)), _Places(runs, (SETTLED,))
    ended = sorted({y for _, y in table.ends}), sorted({y for _, y in table.settled_ends})

    def passed(way: Way, run: Run, space: int) -> Way:
        """A way into columns that only pass through, for every x, leads to where they lead."""
        begin, end = _span(way, run.length)
        found = whole[space].within(begin, end)
        line = lines[found[0]] if found else None
        if line is None or any(lines[i] != line for i in found):
            return way
        if not _tiled([runs[i] for i in found], begin, end) or _any_between(ended[space], begin, end):
            return way
        shift, stride = line
        return _led(way, shift + stride * way.target, stride * way.stride)

    def target(way: Way, run: Run, space: int) -> int | None:
        """The one CHANCE run that a way leads into with all its columns and x."""
        if way.law not in identity or way.reward != table.no_reward:
            return None
        found = [i for i in chances[space].within(*_span(way, run.length)) if not xs[runs[i].xs].isdisjoint(xs[run.xs])]
        return found[0] if len(found) == 1 and _covers(xs, runs[found[0]], way, run) else None

    def pull(move: Move, run: Run, space: int) -> Move:
        ways: list[Way] = []
        reward = move.reward
        for way in (passed(way, run, space) for way in move.ways):
            inner = target(way, run, space)
            if inner is None or not (lines[inner] or (used[inner] == sizes[inner] and not shared[inner])):
                ways.append(way)
                continue
            (hop,) = runs[inner].moves
            free = reward == table.no_reward and len(move.ways) == 1 and (table.p.rows[way.p][table.sets.rows[run.xs]] == 1.0).all()
            if hop.reward == table.no_reward or free:
                reward = reward if hop.reward == table.no_reward else hop.reward
                ways.extend(_through(table, way, run, runs[inner]))
            else:
                ways.append(way)
        return _with(move, reward, ways)

    return [_with_moves(run, [pull(move, run, int(run.part in (LAST, SETTLED))) for move in run.moves]) for run in runs]


def _line(table: RunTable, hop: Run, identity: set[int]) -> tuple[int, int] | None:
    """(shift, stride) where every column y of a run only passes through to shift + stride * y."""
    if hop.part not in (CHANCES, SETTLED) or len(hop.moves[0].ways) != 1 or hop.moves[0].reward != table.no_reward:
        return None
    (inside,) = hop.moves[0].ways
    plain = inside.law in identity and inside.reward == table.no_reward
    return (inside.target - inside.stride * hop.start, inside.stride) if plain else None


def _through(table: RunTable, way: Way, run: Run, hop: Run) -> Iterator[Way]:
    """A way of a run and those of the CHANCE run that it leads into: probabilities multiply, progressions compose."""
    for inside in hop.moves[0].ways:
        p = table.p.rows[way.p] * table.p.rows[inside.p]
        if p[table.sets.rows[run.xs]].any():
            target = inside.target + inside.stride * (way.target - hop.start)
            yield Way(table.p.add(p), inside.law, inside.share, target, inside.stride * way.stride, inside.reward)


def _covers(xs: list[frozenset[int]], hop: Run, way: Way, run: Run) -> bool:
    begin, end = _span(way, run.length)
    return hop.start <= begin and end <= hop.start + hop.length and xs[run.xs] <= xs[hop.xs]


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
        self._found: dict[tuple[int, int], list[int]] = {}

    def within(self, start: int, stop: int) -> list[int]:
        first = max(bisect_right(self.cuts, start) - 1, 0)
        last = bisect_left(self.cuts, stop, lo=first)
        if last - first == 1:
            return self.held[first]
        if (first, last) not in self._found:
            self._found[first, last] = list(dict.fromkeys(i for k in range(first, last) for i in self.held[k]))
        return self._found[first, last]


class _Leads:
    """Which runs lead to which, as pairs of arrays."""

    def __init__(self, runs: list[Run]) -> None:
        ways = [(i, *_span(way, run.length)) for i, run in enumerate(runs) for way in _ways(run)]
        owner, begin, end = np.array(ways, np.int64).reshape(-1, 3).T
        part, start, length = np.array([(run.part, run.start, run.length) for run in runs], np.int64).reshape(-1, 3).T
        settling = np.isin(part, (LAST, SETTLED))[owner]
        pairs = [
            _pairs(owner[mine], begin[mine], end[mine], held, start[held], start[held] + length[held])
            for mine, held in ((~settling, np.flatnonzero(part != SETTLED)), (settling, np.flatnonzero(part == SETTLED)))
        ]
        self.source, self.target = np.concatenate(pairs, axis=1)

    def after(self, active: np.ndarray) -> np.ndarray:
        """The runs that active ones lead to."""
        reached = np.zeros(len(active), bool)
        reached[self.target[active[self.source]]] = True
        return reached

    def close(self, active: np.ndarray, passing: np.ndarray) -> None:
        """Adds all that the active runs lead to through passing ones."""
        fresh = active & passing
        while fresh.any():
            fresh = self.after(fresh) & ~active
            active |= fresh
            fresh &= passing


def _pairs(owner: np.ndarray, begin: np.ndarray, end: np.ndarray, held: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """(owner, held) for every stretch begin..end that meets a stretch start..stop, (2, pairs)."""
    cuts = np.unique(np.concatenate([start, stop]))
    of_cell, cell = _spread(np.searchsorted(cuts, start), np.searchsorted(cuts, stop))
    order = np.argsort(cell, kind="stable")
    ptr = np.searchsorted(cell[order], np.arange(len(cuts) + 1))
    first, last = np.maximum(np.searchsorted(cuts, begin, "right") - 1, 0), np.searchsorted(cuts, end)
    spans = np.unique(np.array([owner, first, last]), axis=1)
    of_span, cell = _spread(spans[1], spans[2])
    of_pair, at = _spread(ptr[cell], ptr[cell + 1])
    return np.unique(np.array([spans[0][of_span[of_pair]], held[of_cell[order[at]]]]), axis=1)


def _spread(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers first..last - 1 of each stretch one after the other: which stretch, and the number."""
    count = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(first)), count)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]


def _ways(run: Run) -> Iterator[Way]:
    return (way for move in run.moves for way in move.ways)


def _span(way: Way, length: int) -> tuple[int, int]:
    """The columns that a way can lead to, from and up to."""
    first = way.target
    last = first + way.stride * (length - 1)
    return (first, last + 1) if first <= last else (last, first + 1)


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


def _led(way: Way, target: int, stride: int) -> Way:
    """The same way to other columns."""
    return Way(way.p, way.law, way.share, target, stride, way.reward)


def _with_ways(run: Run, ways: Iterable[list[Way]]) -> Run:
    """A run with other ways; what stays the same is the same object, which costs nothing to compare."""
    return _with_moves(run, [_with(move, move.reward, made) for move, made in zip(run.moves, ways, strict=True)])


def _with_moves(run: Run, moves: list[Move]) -> Run:
    return run if all(map(is_, moves, run.moves)) else Run(run.part, run.xs, run.start, run.length, tuple(moves), run.level)


def _with(move: Move, reward: int, ways: list[Way]) -> Move:
    same = reward == move.reward and len(ways) == len(move.ways) and all(map(is_, ways, move.ways))
    return move if same else Move(reward, tuple(ways))
