"""Stripes: a model in rows over x and arithmetic progressions over y.

A y with a queue of n entries is a *column*: offset of its block + the number that the entries are
in base A, the oldest one most significant. A *stripe* is a stretch of consecutive columns, for one
set of x, whose actions use the same rows (of probabilities, laws, rewards over x) and whose
branches lead to arithmetic progressions of columns. A model with a million queues may have a few
dozen stripes.

A worked example: two letters, queues of length 2, a move that looks at the oldest entry and appends
action a: `queue.push(a).pop()`. Columns 0..3 are the queues (0,0) (0,1) (1,0) (1,1). The cell of
the oldest entry 0 is the stripe of columns 0 and 1; there action a leads to the queues (0, a) and
(1, a), columns 0 + a and 2 + a: target a, stride 2. The cell of the oldest entry 1 is the stripe of
columns 2 and 3, with the same targets and other laws.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from pkd.explore.graph import DECIDE, LAST, SETTLED, STOP, Cells, Graph
from pkd.explore.index import intern
from pkd.model import ModelError
from pkd.queue import HOLE, Queue, find_queue, get_part, replace_part

MISSING = -(2**62)  # in a row of laws: this x has no such branch
# Most branches of a stripe whose x lead to different columns; beyond it, several stripes are
# cheaper.
MOST_BRANCHES = 16


class Branch(NamedTuple):
    """Column start + i leads to column target + stride * i."""

    p: int  # row of probabilities
    law: int  # row of laws
    weight: int  # row of weights, which say the share in the union bound
    target: int
    stride: int
    reward: int  # row of rewards that count under a declared ceiling
    note: int  # row of notes

    def lead_to(self, target: int, stride: int) -> Branch:
        """The same branch to other columns."""
        if target == self.target and stride == self.stride:
            return self
        return self._replace(target=target, stride=stride)

    def span(self, length: int) -> tuple[int, int]:
        """The columns that the branch of so many columns can lead to, from and up to."""
        last = self.target + self.stride * (length - 1)
        return min(self.target, last), max(self.target, last) + 1


class Action(NamedTuple):
    """One action of every column of a stripe."""

    reward: int  # row of rewards
    branches: tuple[Branch, ...]

    def replace(self, reward: int, branches: list[Branch]) -> Action:
        """The action with another row of rewards and other branches."""
        same = reward == self.reward and len(branches) == len(self.branches)
        unchanged = same and all(map(is_, branches, self.branches))
        return self if unchanged else Action(reward, tuple(branches))


class Stripe(NamedTuple):
    """Columns start..start + length - 1 for one set of x.

    What an edit leaves as it was stays the same object: passes compare by identity.
    """

    part: int
    xs: int  # which set of x
    start: int
    length: int
    actions: tuple[Action, ...]
    level: int  # a CHANCE stripe reads only lower levels of its part, and decisions

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def space(self) -> int:
        """What holds its columns: 0 for the layers, 1 for the settlement."""
        return int(self.part == SETTLED)

    @property
    def target_space(self) -> int:
        """Where its branches lead: the last decision leaves the layers."""
        return int(self.part in (LAST, SETTLED))

    def branches(self) -> Iterator[Branch]:
        return (branch for action in self.actions for branch in action.branches)

    def replace_actions(self, actions: list[Action]) -> Stripe:
        unchanged = all(map(is_, actions, self.actions))
        return self if unchanged else self._replace(actions=tuple(actions))

    def edit(self, edit: Callable[[Branch], Branch]) -> Stripe:
        """The stripe with an edit of each of its branches."""
        return self.replace_actions(
            [a.replace(a.reward, [edit(b) for b in a.branches]) for a in self.actions]
        )


class _Rows:
    """Rows over x, stored once."""

    def __init__(self, size: int, empty: float, kind: type) -> None:
        self.rows: list[np.ndarray] = []
        self._size, self._empty, self._kind = size, empty, kind
        self._index: dict[bytes, int] = {}
        self._made: dict[Any, int] = {}  # what rows were made from

    def add(self, row: np.ndarray) -> int:
        return intern(self._index, self.rows, row.tobytes(), row)

    def fill(self, values: Mapping[int, float]) -> int:
        """The row with the given values at some x, and the empty value elsewhere."""
        key = tuple(values.items())
        if key not in self._made:
            row: np.ndarray = np.full(self._size, self._empty, self._kind)
            row[list(values)] = list(values.values())
            self._made[key] = self.add(row)
        return self._made[key]

    def array(self) -> np.ndarray:
        return np.array(self.rows, self._kind).reshape(len(self.rows), self._size)


class StripeTable:
    """Stripes with the rows that they refer to.

    Law rows: features from 0, known laws from -1 down.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.xs = list(dict.fromkeys([*graph.layers.x, *graph.settled.x]))
        self.x_index = {x: i for i, x in enumerate(self.xs)}
        size = len(self.xs)
        self.p, self.law = _Rows(size, 0.0, float), _Rows(size, MISSING, np.int64)
        self.weight, self.note = _Rows(size, -1, np.int64), _Rows(size, -1, np.int64)
        self._known_rewards, self._means = _Rows(size, 0.0, float), _Rows(size, -1, np.int64)
        self.rewards: list[tuple[int, int]] = []  # (row of known parts, row of unknown rewards)
        self._reward_index: dict[tuple[int, int], int] = {}
        self.sets: list[np.ndarray] = []
        self._set_index: dict[tuple[int, ...], int] = {}
        self.known: list[tuple[tuple[int, float], ...]] = []  # (x', p) of each known law
        self._known_index: dict[tuple[tuple[int, float], ...], int] = {}
        self.weights: dict[tuple[int, float], int] = {}
        self.stripes: list[Stripe] = []
        self.alphabet = _order_letters(graph)
        self.letter = {value: i for i, value in enumerate(self.alphabet)}
        self.base = max(len(self.alphabet), 1)
        # Of layers and settlement: block -> first column, and (first column, length) of all.
        self.offsets: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.blocks: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        self.columns = [0, 0]
        self.over = [-1, -1]  # the column to which every stop leads
        self.no_reward = self.reward_row({}, {})
        self.no_note = self.note.fill({})
        self._lay_out()
        # Start states: (x, column, probability).
        self.start = [
            (
                self.x_index[graph.layers.x[node]],
                self.offsets[0][graph.layers.block[node]] + self.number(entries),
                p,
            )
            for node, entries, p in graph.start
        ]

    def _lay_out(self) -> None:
        """Places blocks with decisions first, to keep policies short, and stops last."""
        graph = self.graph
        for space, side in enumerate((graph.layers, graph.settled)):
            pairs = zip(side.block, side.kind, strict=True)
            deciding = dict.fromkeys(block for block, kind in pairs if kind == DECIDE)
            blocks = [*_sort(deciding, graph), *_sort(dict.fromkeys(side.block), graph)]
            at = 0
            for block in dict.fromkeys(blocks):
                length = self.base ** graph.blocks[block].length
                self.offsets[space][block] = at
                self.blocks[space].append((at, length))
                at += length
            if STOP in side.kind:
                self.over[space] = at
                self.blocks[space].append((at, 1))
                at += 1
            self.columns[space] = at
        self._placed = sorted((start, block) for block, start in self.offsets[0].items())

    # -- rows --------------------------------------------------------------------------------------

    def set_of(self, xs: Iterable[int]) -> int:
        """A set of x."""
        key = tuple(sorted(xs))
        return intern(self._set_index, self.sets, key, np.array(key, np.int64))

    def reward_row(self, values: Mapping[int, float], means: Mapping[int, int]) -> int:
        key = (self._known_rewards.fill(values), self._means.fill(means))
        return intern(self._reward_index, self.rewards, key, key)

    def reward_arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The known part and the unknown reward of each row of rewards, (rows, X)."""
        known = np.array([self._known_rewards.rows[i] for i, _ in self.rewards])
        return known, np.array([self._means.rows[j] for _, j in self.rewards])

    def known_law(self, law: Iterable[tuple[int, float]]) -> int:
        """A known law over x', by its negative number."""
        key = tuple((x, float(p)) for x, p in law if p > 0)
        return -1 - intern(self._known_index, self.known, key, key)

    def weigh(self, row: int, share: float) -> int:
        """The number of a pair (feature, share); -1 for the uniform share."""
        key = (row, -1.0 if math.isnan(share) else share)
        return self.weights.setdefault(key, len(self.weights))

    # -- columns -----------------------------------------------------------------------------------

    def number(self, entries: Sequence[Any]) -> int:
        """The number that entries are in base A."""
        code = 0
        for entry in entries:
            code = code * self.base + self.letter[entry]
        return code

    def column_of(self, y: Any) -> int | None:
        """The column of a y in the layers; None: the model has no such y."""
        path = find_queue(y) if self.graph.hidden else None
        if path is None:
            block = self.graph.block_index.get(y)
            return self.offsets[0].get(block) if block is not None else None
        queue = tuple(get_part(y, path))
        block = self.graph.block_index.get((replace_part(y, path, HOLE), len(queue)))
        if (
            block is None
            or block not in self.offsets[0]
            or any(entry not in self.letter for entry in queue)
        ):
            return None
        return self.offsets[0][block] + self.number(queue)

    def y_of(self, column: int) -> Any:
        """The y of a column in the layers."""
        start, block = self._placed[bisect_right(self._placed, (column, 2**62)) - 1]
        code, entries = column - start, list[Any]()
        for _ in range(self.graph.blocks[block].length):
            code, letter = divmod(code, self.base)
            entries.append(self.alphabet[letter])
        return self.graph.blocks[block].fill(Queue(reversed(entries)))


def _order_letters(graph: Graph) -> list[Any]:
    """Letters in the order of the longest list of actions, so that action a appends number a."""
    lists: list[Sequence[Any]] = [c for c in graph.layers.choices if c is not None]
    longest: Sequence[Any] = max(lists, key=len) if lists and graph.letters else ()
    first = [a for a in longest if a in graph.letters]
    return [*first, *(value for value in graph.letters if value not in set(first))]


def build_table(graph: Graph) -> StripeTable:
    """The stripes of a graph. An explicit graph gives stripes of one column each."""
    table = StripeTable(graph)
    builder = _Builder(table)
    for part in range(4):
        builder.emit(part)
    return table


def _sort(blocks: Iterable[int], graph: Graph) -> list[int]:
    found = list(blocks)
    try:
        return sorted(found, key=lambda block: (graph.blocks[block].length, graph.blocks[block].y))
    except TypeError:
        return found


class _Found(NamedTuple):
    """One branch of one x, before rows are made."""

    p: float
    law: int
    weight: int  # -1 where the law is known
    note: int


Targets = dict[tuple[int, int], _Found]  # (target, stride) -> branch
Ends = tuple[tuple[Any, ...], tuple[Any, ...]]  # (front, back) of a queue
NO_ENDS: Ends = ((), ())


class _Builder:
    def __init__(self, table: StripeTable) -> None:
        self.table, self.graph = table, table.graph
        self.declared = self.graph.model.return_range is not None
        # (space, block, ends of the queue) -> (target, stride): many branches share them.
        self.places: dict[tuple[int, int, Ends], tuple[int, int]] = {}
        self.known = [
            table.known_law((table.x_index[x], p) for x, p in law.law if x in table.x_index)
            for law in self.graph.known
        ]

    def emit(self, part: int) -> None:
        """One stripe for each block, prefix and group of x that lead to the same columns."""
        graph, table, cells = self.graph, self.table, self.graph.cells[part]
        side = graph.settled if part == SETTLED else graph.layers
        levels = graph.levels[int(part == SETTLED)].tolist()
        groups: dict[Any, dict[int, int]] = {}
        for cell, node in enumerate(cells.node):
            prefix = cells.prefix[cell] if graph.hidden else ()
            count = cells.action_ptr[cell + 1] - cells.action_ptr[cell]
            key = (side.block[node], prefix, count, levels[node], side.kind[node])
            groups.setdefault(key, {})[table.x_index[side.x[node]]] = cell
        for (block, prefix, count, level, kind), members in groups.items():
            rest = graph.blocks[block].length - len(prefix)
            length = table.base**rest
            start = table.offsets[int(part == SETTLED)][block] + table.number(prefix) * length
            stops = kind == STOP
            found = {
                x: self._actions(part, cells, cell, x if stops else -1)
                for x, cell in members.items()
            }
            for group in self._group(found, count):
                actions = tuple(
                    self._action(
                        {x: found[x][a] for x in group},
                        {x: cells.action_ptr[members[x]] + a for x in group},
                        cells,
                    )
                    for a in range(count)
                )
                table.stripes.append(
                    Stripe(part, table.set_of(group), start, length, actions, level)
                )

    def _actions(self, part: int, cells: Cells, cell: int, stopped: int) -> list[Targets]:
        """The branches of each action of a cell, by column and stride.

        stopped: the x of a stop, or -1.
        """
        table, graph = self.table, self.graph
        space = int(part in (LAST, SETTLED))
        if stopped >= 0:
            stay = _Found(1.0, table.known_law([(stopped, 1.0)]), -1, -1)
            return [{(table.over[space], 0): stay}]
        actions = []
        for a in range(cells.action_ptr[cell], cells.action_ptr[cell + 1]):
            targets: Targets = {}
            for k in range(cells.branch_ptr[a], cells.branch_ptr[a + 1]):
                ends = cells.ends[k] if graph.hidden else NO_ENDS
                block = graph.landing_block[cells.landing[k]]
                place = self.places.get((space, block, ends))
                if place is None:
                    place = self.places[space, block, ends] = self._place(space, block, *ends)
                row = cells.row[k]
                law = row if row >= 0 else self.known[-1 - row]
                weight = table.weigh(row, cells.share[k]) if row >= 0 else -1
                # With one letter, entries at the front and at the back give the same queue.
                before = targets.get(place)
                if before is not None and (before.law, before.weight) != (law, weight):
                    raise ModelError("one y' has two features")
                p = cells.p[k] + (0.0 if before is None else before.p)
                targets[place] = _Found(p, law, weight, cells.note[a])
            actions.append(targets)
        return actions

    def _place(
        self, space: int, block: int, front: tuple[Any, ...], back: tuple[Any, ...]
    ) -> tuple[int, int]:
        """(target, stride) of a branch whose queue gets these entries at its ends."""
        table, base = self.table, self.table.base
        kept = self.graph.blocks[block].length - len(front) - len(back)
        stride = base ** len(back) if kept and base > 1 else 0  # one letter: one column
        target = table.number(front) * base ** (kept + len(back)) + table.number(back)
        return table.offsets[space][block] + target, stride

    def _group(self, found: Mapping[int, list[Targets]], count: int) -> list[list[int]]:
        """The x that share a stripe: all if they have few branches, else by where they lead."""
        for a in range(count):
            if len({place for targets in found.values() for place in targets[a]}) > MOST_BRANCHES:
                break
        else:
            return [list(found)]
        groups: dict[Any, list[int]] = {}
        for x, actions in found.items():
            groups.setdefault(tuple(frozenset(targets) for targets in actions), []).append(x)
        return list(groups.values())

    def _action(
        self, found: Mapping[int, Targets], actions: Mapping[int, int], cells: Cells
    ) -> Action:
        table = self.table
        reward = table.reward_row(
            {x: cells.reward[a] for x, a in actions.items()},
            {x: cells.mean[a] for x, a in actions.items() if cells.mean[a] >= 0},
        )
        unknown = any(branch.law >= 0 for targets in found.values() for branch in targets.values())
        inside = unknown and self.declared
        branches = []
        for place in sorted({place for targets in found.values() for place in targets}):
            here = {x: targets[place] for x, targets in found.items() if place in targets}
            branches.append(
                Branch(
                    p=table.p.fill({x: branch.p for x, branch in here.items()}),
                    law=table.law.fill({x: branch.law for x, branch in here.items()}),
                    weight=table.weight.fill(
                        {x: b.weight for x, b in here.items() if b.weight >= 0}
                    ),
                    target=place[0],
                    stride=place[1],
                    reward=reward if inside else table.no_reward,
                    note=table.note.fill({x: b.note for x, b in here.items() if b.note >= 0}),
                )
            )
        return Action(table.no_reward if inside else reward, tuple(branches))
