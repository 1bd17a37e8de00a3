"""Runs: a model in rows over x and arithmetic progressions over y, the symbolic form that the run engine is built from.

A move of the state (x, y) is described by rows over x (of probabilities, laws and rewards), each stored once, and by the column of y'. A
*run* is a stretch of consecutive columns y for one set of x whose moves use the same rows and whose targets are arithmetic progressions:
the delayed MDP with a million queues has a few dozen runs. `runs_of` finds them in an explicit graph; an adapter with a large Y may emit
them itself through `RunTable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pkd.graph import DECIDE, STOP, Arm, Graph, Side
from pkd.model import UnknownReward
from pkd.program import chance_levels

__all__ = ["CHANCES", "DECISIONS", "LAST", "SETTLED", "Move", "Run", "RunTable", "Way", "runs_of"]

DECISIONS, LAST, CHANCES, SETTLED = range(4)  # the parts: decisions, decisions at the last action, CHANCE states, the settlement


@attrs.frozen
class Way:
    """One branch of a move: column y0 + i leads to column target + stride * i."""

    p: int  # row of probabilities
    law: int  # row of laws
    share: int  # row of union-bound shares
    target: int
    stride: int
    reward: int = 0  # row of rewards that count under a declared ceiling


@attrs.frozen
class Move:
    """An arm of every column of a run."""

    reward: int  # row of rewards
    ways: tuple[Way, ...]


@attrs.frozen
class Run:
    """Columns start..start + length - 1 for one set of x."""

    part: int
    xs: int  # which set of x
    start: int
    length: int
    moves: tuple[Move, ...]
    level: int = 0  # of CHANCE states: reads only lower levels of its part, and decisions

    def continued(self, columns: int) -> Run:
        """The run that so many columns further on does the same, with every progression continued."""
        moves = tuple(
            Move(m.reward, tuple(attrs.evolve(way, target=way.target + columns * way.stride) for way in m.ways)) for m in self.moves
        )
        return attrs.evolve(self, start=self.start + columns, moves=moves)


class _Rows:
    """Rows stored once."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []
        self._index: dict[bytes, int] = {}
        self._known: dict[Any, int] = {}  # what rows were made from

    def add(self, row: np.ndarray) -> int:
        row = np.ascontiguousarray(row)
        key = row.tobytes()
        if key not in self._index:
            self._index[key] = len(self.rows)
            self.rows.append(row)
        return self._index[key]

    def filled(self, values: Mapping[int, Any], size: int, empty: float) -> int:
        """The row with the given values at some places, and `empty` at the others."""
        key = tuple(values.items())
        if key not in self._known:
            row = np.full(size, empty, float if isinstance(empty, float) else np.int64)
            row[list(values.keys())] = list(values.values())
            self._known[key] = self.add(row)
        return self._known[key]


class RunTable:
    """Runs with the rows that they refer to. Laws are numbered: unknown features from 0, known laws from -1 down."""

    def __init__(self, xs: Sequence[Any], features: Sequence[Any], outcomes: Sequence[tuple[Any, ...]]) -> None:
        self.xs = list(xs)
        self.x_index = {x: i for i, x in enumerate(self.xs)}
        self.features, self.outcomes = list(features), list(outcomes)
        self.known: list[tuple[tuple[int, float], ...]] = []  # (x', p) of each known law
        self._known_index: dict[tuple[tuple[int, float], ...], int] = {}
        self.p, self.law, self.share, self.reward, self.mean, self.sets = _Rows(), _Rows(), _Rows(), _Rows(), _Rows(), _Rows()
        self.rewards: list[tuple[int, int]] = []  # (row of known parts, row of unknown rewards)
        self._reward_index: dict[tuple[int, int], int] = {}
        self.runs: list[Run] = []
        self.unknown_rewards: list[UnknownReward] = []
        self.n_y = 1  # |Y|
        self.column_of: Callable[[Any], int | None] = lambda y: None  # the column of a y in the layers
        self.y_of: Callable[[int], Any] = lambda column: None
        self.columns = 0  # of the layers
        self.settled_columns = 0
        self.blocks: list[tuple[int, int]] = []  # (start, length): columns that may be dropped only together, decisions first; [] for all
        self.settled_blocks: list[tuple[int, int]] = []
        self.ends: dict[tuple[int, int], float] = {}  # (x, y) -> final
        self.settled_ends: dict[tuple[int, int], float] = {}
        self.start: list[tuple[int, int, float]] = []  # (x, y, probability)
        self.no_reward = self.reward_row({})

    def set_of(self, xs: Iterable[int]) -> int:
        """A set of x."""
        return self.sets.add(np.array(sorted(xs), np.int64))

    def p_row(self, values: Mapping[int, float]) -> int:
        return self.p.filled(values, len(self.xs), 0.0)

    def law_row(self, values: Mapping[int, int]) -> int:
        return self.law.filled(values, len(self.xs), -(2**62))

    def share_row(self, values: Mapping[int, float]) -> int:
        """Shares; not a number where the share is uniform or the law known."""
        return self.share.filled(values, len(self.xs), math.nan)

    def reward_row(self, values: Mapping[int, float], means: Mapping[int, int] | None = None) -> int:
        key = (self.reward.filled(values, len(self.xs), 0.0), self.mean.filled(means or {}, len(self.xs), -1))
        if key not in self._reward_index:
            self._reward_index[key] = len(self.rewards)
            self.rewards.append(key)
        return self._reward_index[key]

    def known_law(self, law: Iterable[tuple[int, float]]) -> int:
        """A known law over x', by its negative number."""
        key = tuple((x, float(p)) for x, p in law if p > 0)
        if key not in self._known_index:
            self._known_index[key] = len(self.known)
            self.known.append(key)
        return -1 - self._known_index[key]


def runs_of(graph: Graph) -> RunTable:
    """The runs of an explicit graph."""
    return _Finder(graph).table


class _Finder:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        xs = dict.fromkeys(x for side in (graph.layers, graph.settled) for x, _ in side.states)
        self.table = RunTable(list(xs), graph.features, graph.outcomes)
        self.declared = graph.model.return_range is not None
        self.known = [self.table.known_law((self.table.x_index[x], p) for x, p in known.law if p > 0 and x in xs) for known in graph.known]
        self.column = [self.numbered(graph.layers), self.numbered(graph.settled)]
        self.table.columns = len(self.column[0])
        self.table.settled_columns = len(self.column[1])
        self.table.unknown_rewards, self.table.n_y = graph.rewards, len(graph.ys)
        self.table.column_of, self.table.y_of = self.column[0].get, list(self.column[0]).__getitem__
        self.table.ends = self.stops(graph.layers, self.column[0])
        self.table.settled_ends = self.stops(graph.settled, self.column[1])
        for node, p in graph.start:
            x, y = graph.layers.states[node]
            self.table.start.append((self.table.x_index[x], self.column[0][y], p))
        deciders = {node: arms for node, arms in graph.layers.arms.items() if graph.layers.kind[node] == DECIDE}
        self.find(DECISIONS, graph.layers, deciders, 0)
        self.find(LAST, graph.layers, graph.last_arms, 0)
        for part, side, method in ((CHANCES, graph.layers, "step"), (SETTLED, graph.settled, "last_step")):
            for level, nodes in enumerate(chance_levels(side, method)):
                self.find(part, side, {node: side.arms[node] for node in nodes}, level)

    def numbered(self, side: Side) -> dict[Any, int]:
        """Columns: those with decisions first; sorted where y can be sorted, since neighbours make runs."""
        deciding = dict.fromkeys(y for (_, y), kind in zip(side.states, side.kind, strict=True) if kind == DECIDE)
        others = dict.fromkeys(y for _, y in side.states if y not in deciding)
        return {y: i for i, y in enumerate([*_sorted(deciding), *_sorted(others)])}

    def stops(self, side: Side, column: Mapping[Any, int]) -> dict[tuple[int, int], float]:
        nodes = (node for node, kind in enumerate(side.kind) if kind == STOP)
        return {(self.table.x_index[side.states[node][0]], column[side.states[node][1]]): side.final[node] for node in nodes}

    def find(self, part: int, side: Side, arms: Mapping[int, list[Arm]], level: int) -> None:
        """Groups x by where their moves lead, then joins neighbouring columns whose groups are alike."""
        source = self.column[0 if side is self.graph.layers else 1]
        target = self.column[0 if part in (DECISIONS, CHANCES) else 1]
        groups: dict[tuple[int, Any], list[tuple[int, list[list[Any]]]]] = {}
        for node, row in arms.items():
            x, y = side.states[node]
            moves = [sorted((target[self.graph.ys[i]], law, p, i) for p, law, i in arm.branches) for arm in row]
            shape = tuple(tuple(way[0] for way in move) for move in moves)
            groups.setdefault((source[y], shape), []).append(
                (self.table.x_index[x], [[arm, move] for arm, move in zip(row, moves, strict=True)])
            )
        found: dict[Any, list[tuple[int, tuple[tuple[int, ...], ...]]]] = {}
        for (y, shape), members in groups.items():
            found.setdefault(self.key(members), []).append((y, shape))
        for key, columns in found.items():
            for start, length, targets, strides in progressions(sorted(columns)):
                self.table.runs.append(_run(part, key, start, length, targets, strides, level))

    def key(self, members: list[tuple[int, list[list[Any]]]]) -> Any:
        """The set of x and the rows of every way: what the columns of a run have in common."""
        table = self.table
        moves = []
        for a in range(len(members[0][1])):
            arms = {x: rows[a][0] for x, rows in members}
            ways_of = {x: rows[a][1] for x, rows in members}
            reward = table.reward_row({x: arm.reward for x, arm in arms.items()}, {x: arm.mean for x, arm in arms.items()})
            inside = self.declared and any(way[1] >= 0 for ways in ways_of.values() for way in ways)
            ways = []
            for k in range(len(members[0][1][a][1])):
                laws = {x: self.law(ways[k][1]) for x, ways in ways_of.items()}
                shares = {x: self.share(ways[k][1], ways[k][3]) for x, ways in ways_of.items()}
                p = table.p_row({x: ways[k][2] for x, ways in ways_of.items()})
                ways.append((p, table.law_row(laws), table.share_row(shares), reward if inside else table.no_reward))
            moves.append((table.no_reward if inside else reward, tuple(ways)))
        return table.set_of(x for x, _ in members), tuple(moves)

    def law(self, row: int) -> int:
        return row if row >= 0 else self.known[-1 - row]

    def share(self, row: int, y: int) -> float:
        share = self.graph.model.share(self.graph.features[row], self.graph.ys[y]) if row >= 0 else None
        return float("nan") if share is None else share


def progressions(columns: list[tuple[int, Any]]) -> Iterable[tuple[int, int, list[tuple[int, ...]], list[tuple[int, ...]]]]:
    """Cuts sorted (column, targets of each way of each move) into stretches in which every target moves by a constant stride."""
    i = 0
    while i < len(columns):
        start, targets = columns[i]
        j, strides = i + 1, [tuple(0 for _ in move) for move in targets]
        if j < len(columns) and columns[j][0] == start + 1:
            strides = [tuple(b - a for a, b in zip(one, two, strict=True)) for one, two in zip(targets, columns[j][1], strict=True)]
            while j < len(columns) and columns[j][0] == start + j - i and _fits(targets, strides, columns[j][1], j - i):
                j += 1
        yield start, j - i, list(targets), strides
        i = j


def _fits(targets: Any, strides: Any, found: Any, steps: int) -> bool:
    return all(
        end == begin + steps * stride
        for one, by, two in zip(targets, strides, found, strict=True)
        for begin, stride, end in zip(one, by, two, strict=True)
    )


def _run(part: int, key: Any, start: int, length: int, targets: Any, strides: Any, level: int) -> Run:
    xs, rows = key
    moves = []
    for (reward, ways), begins, steps in zip(rows, targets, strides, strict=True):
        made = tuple(
            Way(p, law, share, begin, stride, inner) for (p, law, share, inner), begin, stride in zip(ways, begins, steps, strict=True)
        )
        moves.append(Move(reward, made))
    return Run(part, xs, start, length, tuple(moves), level)


def _sorted(values: Iterable[Any]) -> list[Any]:
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return values
