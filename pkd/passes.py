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

__all__ = ["reduced", "windows"]


def reduced(table: RunTable, horizon: int) -> list[Run]:
    """The runs of a table after all passes."""
    runs = [_without_zeros(table, run) for run in table.runs]
    for _ in range(3):  # a merge makes room for a pull, and a pull for a merge; three rounds settle every shipped model
        before = runs
        runs = _reachable(table, _pulled(table, _merged(table, runs)), horizon)
        if runs == before:
            break
    return runs


def windows(table: RunTable, runs: list[Run], horizon: int) -> list[int]:
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

    for _, y, _ in table.start:
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
    return [run for run, bits in zip(runs, windows(table, runs, horizon), strict=True) if bits]


def _without_zeros(table: RunTable, run: Run) -> Run:
    xs = table.sets.rows[run.xs]
    moves = tuple(attrs.evolve(move, ways=tuple(way for way in move.ways if table.p.rows[way.p][xs].any())) for move in run.moves)
    return attrs.evolve(run, moves=moves)


def _merged(table: RunTable, runs: list[Run]) -> list[Run]:
    """Columns with identical moves become one: ways into the copies lead to the first, and `table.aliases` remembers it."""
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

    table.aliases.extend((start, *moved[0][start]) for start in starts[0])
    return [_mapped(run, redirected) for run in runs] if any(moved) else runs


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

    def pull(run: Run) -> Run:
        space = int(run.part in (LAST, SETTLED))
        moves = []
        for move in run.moves:
            ways: list[Way] = []
            reward = move.reward
            for way in move.ways:
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
    for x, law in enumerate(row):
        if law >= 0 or (law > -(2**62) and table.known[-1 - law] != ((x, 1.0),)):
            return False
    return True


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


def _any_between(values: list[int], start: int, stop: int) -> bool:
    return bisect_left(values, start) < bisect_left(values, stop)


def _mapped(run: Run, change: Callable[[Way, Run], Way]) -> Run:
    moves = tuple(attrs.evolve(move, ways=tuple(change(way, run) for way in move.ways)) for move in run.moves)
    return attrs.evolve(run, moves=moves)
