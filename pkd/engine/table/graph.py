"""The graph of a table, found from its arrays.

It has the numbers that the walk of `pkd.explore` would give: nodes, features, outcomes, landings.
Reachable states are found at once; everything else is made when it is asked for. Features and their
outcomes are sequences that compute their elements.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.adapters import Table
from pkd.engine.table import kernels
from pkd.expect import require, whole
from pkd.explore import TooManyStatesError, read_start
from pkd.explore.flat import Flat
from pkd.explore.graph import (
    DECIDE,
    LAST,
    SETTLED,
    STEP,
    STOP,
    Block,
    Cells,
    Graph,
    Layers,
    Mask,
    Side,
)
from pkd.explore.limits import find_max_bytes, find_max_states, refuse_bytes, refuse_steps
from pkd.explore.segments import lengths_to_ptr, spread, take
from pkd.model import PartiallyKnownMDP

__all__ = ["TableGraph"]

Array = np.ndarray
PORTION = 1 << 14  # features that are named at once
SHOWN = 20  # features that are printed
NODE_BYTES = 40  # of a state in all arrays of the graph
OUTCOME_BYTES = 24  # of a possible successor


class TableGraph(Graph):
    """What `explore` would find in a table.

    A *cell* is a state with a clock, k S + s; a *row* is one of the table: see `Rows`.
    """

    feature: Array  # (rows of the table,) the feature of each, or -1
    row: Array  # (features,) the row of each

    def __init__(self, model: PartiallyKnownMDP, table: Table, most: int | None) -> None:
        require(whole("horizon", model.horizon, least=1))
        refuse_steps(model.horizon)
        self.model, self.table, self.horizon = model, table, int(model.horizon)
        self.hidden, self.exact = False, True
        self.known, self.known_set, self.rewards, self.notes = [], [], [], []
        self.letters, self.shared, self.families = {}, {}, {}
        _, self.size, actions = table.rewards.shape
        n_cells = table.period * self.size
        n_rows = (n_cells if table.changes else self.size) * actions
        ptr, states = table.successors or (np.zeros(1, np.int32), np.zeros(0, np.int32))
        outcomes = len(states) or n_rows * self.size
        needed = NODE_BYTES * n_cells + OUTCOME_BYTES * outcomes
        refuse_bytes(needed, f"{type(model).__name__}, a table of {self.size:,} states,")
        index = np.int32 if max(n_cells, n_rows) < 1 << 31 else np.int64
        self.rows = kernels.Rows(
            table.period, table.changes, ptr, states, freeze(table.rewards),
            np.full(n_cells, -1, index), np.zeros(n_cells, np.int32),
        )  # fmt: skip
        first = read_start(model)
        starts = np.array([s for (s, _), _ in first], np.int64)
        self.start = [(i, (), p) for i, (_, p) in enumerate(first)]
        cells, self.n_rows = np.empty(n_cells, index), n_rows
        self.cell = cells[: kernels.find_reached(self.rows, starts, self.horizon, cells)]
        self._refuse_states(most)
        n_y = min(table.period, self.horizon + 1)
        clocks = [None] if table.period == 1 else range(n_y)
        self.blocks = [Block(y, None, 0) for y in clocks]
        self.block_index = {block.y: i for i, block in enumerate(self.blocks)}
        offered = table.rewards[table.rewards > -np.inf]
        self.largest_reward = float(np.abs(offered).max(initial=0.0))

    def _refuse_states(self, most: int | None) -> None:
        limit = find_max_states(most)
        if find_max_bytes(most) < math.inf or len(self.cell) <= limit:  # the limit was not set
            return
        k, s = divmod(int(self.cell[limit]), self.size)
        step = max(int(self.rows.first[self.cell[limit]]), 1)
        found = f"more than {limit} states can be reached"
        raise TooManyStatesError(found, step, (s, None if self.table.period == 1 else k))

    if not TYPE_CHECKING:  # type checkers refuse a misspelt name

        def __getattr__(self, name: str) -> Any:
            """Parts that a plan of a table does not need are made when they are asked for."""
            if name not in PARTS:
                raise AttributeError(name)
            self.__dict__.update(getattr(self, PARTS[name])())
            return self.__dict__[name]

    # -- states ------------------------------------------------------------------------------------

    @property
    def n_states(self) -> int:
        return len(self.cell)

    def find(self, x: Any, y: Any) -> int | None:
        k = self.block_index.get(y)
        if k is None or isinstance(x, bool) or not isinstance(x, int | np.integer):
            return None
        node = int(self.rows.place[k * self.size + x]) if 0 <= x < self.size else -1
        return node if node >= 0 else None

    def holds(self, t: int, node: int) -> bool:
        k, s = divmod(int(self.cell[node]), self.size)
        return k == t % self.table.period and bool(self.find_layer(t)[s])

    def list_choices(self, node: int) -> list[tuple[int, float, int]]:
        """(row of the table, reward, action) of the actions on offer in a state."""
        k, s = divmod(int(self.cell[node]), self.size)
        paid = self.table.rewards[k if len(self.table.rewards) > 1 else 0, s]
        row = (k * self.size * self.table.changes + s) * len(paid)
        return [(row + a, float(paid[a]), a) for a in np.flatnonzero(paid > -np.inf).tolist()]

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        k = (h - 1) % self.table.period
        for node in self.list_layer(h - 1).tolist():
            yield int(self.cell[node]) - k * self.size, self.blocks[k].y

    def list_layer(self, t: int) -> Array:
        """The nodes of a layer in ascending order."""
        states = np.flatnonzero(self.find_layer(t))
        found: Array = np.sort(self.rows.place[t % self.table.period * self.size + states])
        return found

    def find_layer(self, t: int) -> Array:
        """Which states layer t holds, (S,)."""
        layers, period = self._layers
        known = len(layers)
        return layers[t if t < known else known - period + (t - known) % period]

    @cached_property
    def _layers(self) -> tuple[list[Array], int]:
        """Which states each layer holds, until layers repeat, and the period in which they do."""
        here = np.zeros(self.size, bool)
        here[self.cell[: len(self.start)]] = True
        layers, seen, clocks = [here], {(0, here.tobytes()): 0}, self.table.period
        for t in range(1, self.horizon):
            here = self._find_image(t - 1, here)
            before = seen.setdefault((t % clocks, here.tobytes()), t)
            if before < t:
                return layers, t - before
            layers.append(here)
        return layers, 1

    def _find_image(self, t: int, here: Array) -> Array:
        there = np.zeros(self.size, bool)
        kernels.find_image(self.rows, t % self.table.period, here, there)
        return there

    # -- features ----------------------------------------------------------------------------------

    def _number_rows(self) -> dict[str, Any]:
        """The feature of each row, or -1; the row of each feature."""
        feature, row = np.full((2, self.n_rows), -1, self.cell.dtype)
        return {
            "feature": feature,
            "row": row[: kernels.number_rows(self.rows, self.cell, feature, row)],
        }

    @cached_property
    def row_ptr(self) -> Array:
        found: Array = np.arange(len(self.row) + 1) * self.size
        return lengths_to_ptr(np.diff(self.rows.ptr)[self.row]) if len(self.rows.states) else found

    def find_feature(self, z: Any) -> int:
        """The number of a feature (s, a) or (t, s, a), or -1."""
        shape = (self.table.period, *self.table.rewards.shape[1:])[1 - self.table.changes :]
        if not (isinstance(z, tuple) and len(z) == len(shape)):
            return -1
        place = 0
        for i, n in zip(z, shape, strict=True):
            if not (isinstance(i, int | np.integer) and 0 <= i < n):
                return -1
            place = place * n + int(i)
        return int(self.feature[place])

    def list_successors(self, row: int) -> tuple[int, Array]:
        """(where a row of the table begins, the states that can follow it, ascending)."""
        if not len(self.rows.states):
            return row * self.size, np.arange(self.size)
        first: int = int(self.rows.ptr[row])
        return first, self.rows.states[first : self.rows.ptr[row + 1]]

    def list_outcomes(self, z: int) -> Array:
        """The states that can follow a feature, ascending."""
        return self.list_successors(int(self.row[z]))[1]

    @property
    def features(self) -> Sequence[Any]:  # type: ignore[override]  # not kept: it would be a cycle
        return Features(self)

    @property
    def outcomes(self) -> Sequence[tuple[Any, ...]]:
        return Outcomes(self)

    def _make_sets(self) -> dict[str, Any]:
        if not len(self.rows.states):
            every = tuple(range(self.size))
            return {"sets": [every], "feature_set": [0] * len(self.row)}
        known: dict[bytes, int] = {}
        rows = map(self.list_outcomes, range(len(self.row)))
        which = [known.setdefault(row.tobytes(), len(known)) for row in rows]
        sets = [tuple(np.frombuffer(key, self.rows.states.dtype).tolist()) for key in known]
        return {"sets": sets, "feature_set": which}

    # -- what an explicit walk writes down ---------------------------------------------------------

    @cached_property
    def flat(self) -> Flat:
        step = self.list_moves(np.flatnonzero(self.rows.first[self.cell] < self.horizon - 1))
        last = self.list_moves(self.list_layer(self.horizon - 1))
        n_step, z = len(step.z), np.concatenate([step.z, last.z])
        clock = np.concatenate([step.clock, last.clock]) + 1
        clock %= self.table.period
        # A landing is a set of outcomes with a clock, in the layers or settled.
        key = np.array(self.feature_set, np.int64)[z] * 2 * self.table.period + 2 * clock
        key[n_step:] += 1
        _, branch, which = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(branch)
        branch, landing = branch[order], np.argsort(order)[which]
        settling = branch >= n_step
        of, places = spread(self.row_ptr[z[branch]], self.row_ptr[z[branch] + 1])
        states = places - self.row_ptr[z[branch]][of]
        if len(self.rows.states):
            states = self.rows.states[states + self.rows.ptr[self.row[z[branch]]][of]]
        cell = clock[branch][of] * self.size + states
        nodes = self.rows.place[cell].astype(np.int64)
        ends, first, number = np.unique(cell[settling[of]], return_index=True, return_inverse=True)
        order = np.argsort(first)
        nodes[settling[of]] = np.argsort(order)[number]
        self.end_cell = ends[order]  # of each node of the settlement
        n_ends, n_cells = len(ends), len(step.node) + len(last.node)
        n_actions = np.concatenate([step.counts, last.counts, np.ones(n_ends, np.int64)])
        n_branches = np.ones(len(z) + n_ends, np.int64)
        n_branches[len(z) :] = 0
        cells = np.full((3, self.n_states), -1)
        cells[0, step.node] = np.arange(len(step.node))
        cells[1, last.node] = np.arange(len(step.node), n_cells)
        self.landing_clock, self.landing_settles = clock[branch], settling
        n = self.n_states
        stops = np.full(n_ends, STOP)
        return Flat(
            n_unknown=len(self.row),
            part=np.repeat([STEP, LAST, SETTLED], [len(step.node), len(last.node), n_ends]),
            node=np.concatenate([step.node, last.node, np.arange(n_ends)]),
            action_ptr=lengths_to_ptr(n_actions),
            reward=np.concatenate([step.reward, last.reward, np.zeros(n_ends)]),
            mean=np.full(len(n_branches), -1),
            note=np.full(len(n_branches), -1),
            branch_ptr=lengths_to_ptr(n_branches),
            p=np.ones(len(z)),
            row=z,
            landing=landing,
            share=np.full(len(z), math.nan),
            landing_ptr=lengths_to_ptr(np.diff(self.row_ptr)[z[branch]]),
            landing_node=nodes,
            row_ptr=self.row_ptr,
            kind=(np.full(n, DECIDE), stops),
            cell_of=(cells[0], cells[1], np.full(n_ends, -1)),
            final=(np.zeros(n), np.zeros(n_ends)),
            choice=np.arange(n),
            first=self.rows.first[self.cell].astype(np.int64),
            last=self._find_last(),
        )

    @cached_property
    def levels(self) -> tuple[Array, Array]:
        """There are no CHANCE states to order."""
        return tuple(np.zeros_like(kind) for kind in self.flat.kind)  # type: ignore[return-value]

    def _find_last(self) -> Array:
        """The last layer of each node."""
        layers, period = self._layers
        last, clocks = np.full(self.n_states, -1), self.table.period
        for t, here in enumerate(layers):
            states = np.flatnonzero(here)
            at = self.rows.place[t % clocks * self.size + states]
            repeats = (self.horizon - 1 - t) // period if t >= len(layers) - period else 0
            last[at] = np.maximum(last[at], t + repeats * period)
        return last

    def list_moves(self, nodes: Array) -> Moves:
        """The actions of some decision states, one branch each."""
        clock, s = np.divmod(self.cell[nodes].astype(np.int64), self.size)
        paid = self.table.rewards[clock if len(self.table.rewards) > 1 else 0, s]
        which, action = np.nonzero(paid > -np.inf)
        row = (clock * self.size * self.table.changes + s)[which] * paid.shape[1] + action
        counts, z = np.bincount(which, minlength=len(nodes)), self.feature[row].astype(np.int64)
        return Moves(nodes.astype(np.int64), counts, paid[which, action], z, clock[which])

    def _make_landings(self) -> dict[str, Any]:
        flat = self.flat
        ptr, nodes = flat.landing_ptr.tolist(), flat.landing_node.tolist()
        return {
            "landings": [nodes[i:j] for i, j in pairwise(ptr)],
            "landing_block": self.landing_clock.tolist(),
            "settling": self.landing_settles.tolist(),
        }

    def _make_cells(self) -> dict[str, Any]:
        flat, made = self.flat, []
        for part in range(4):
            cells = np.flatnonzero(flat.part == part)
            action_ptr, actions = take(flat.action_ptr, cells)
            branch_ptr, at = take(flat.branch_ptr, actions)
            made.append(Cells(
                node=_pack(flat.node[cells]), action_ptr=_pack(action_ptr),
                reward=_pack(flat.reward[actions]), mean=_pack(flat.mean[actions]),
                note=_pack(flat.note[actions]), branch_ptr=_pack(branch_ptr), p=_pack(flat.p[at]),
                row=_pack(flat.row[at]), landing=_pack(flat.landing[at]),
                share=_pack(flat.share[at]),
            ))  # fmt: skip
        return {"cells": tuple(made)}

    def _make_sides(self) -> dict[str, Any]:
        layers = self._make_side(self.cell, DECIDE)
        nodes = range(self.n_states)
        layers.choices = [[a for *_, a in self.list_choices(node)] for node in nodes]
        assert self.flat.n_unknown == len(self.row)  # which finds the settled states
        ends = dict.fromkeys(range(len(self.end_cell)), ())
        return {"layers": layers, "settled": self._make_side(self.end_cell, STOP), "ends": ends}

    def _make_side(self, cell: Array, kind: int) -> Side:
        clock, s = np.divmod(cell, self.size)
        side = Side(s.tolist(), clock.tolist(), [kind] * len(cell), [None] * len(cell))
        for node, (k, x) in enumerate(zip(side.block, side.x, strict=True)):
            side.of_block.setdefault(k, {})[x] = node
        return side

    def _make_members(self) -> dict[str, Any]:
        layers, period = self._layers
        found: list[Mapping[int, Mask]] = [
            dict.fromkeys(self.list_layer(t).tolist(), ()) for t in range(len(layers))
        ]
        return {"members": Layers(self.horizon, found, period)}


PARTS = {
    "sets": "_make_sets", "feature_set": "_make_sets", "landings": "_make_landings",
    "landing_block": "_make_landings", "settling": "_make_landings", "cells": "_make_cells",
    "layers": "_make_sides", "settled": "_make_sides", "ends": "_make_sides",
    "members": "_make_members", "feature": "_number_rows", "row": "_number_rows",
}  # fmt: skip


def freeze(values: Array) -> Array:
    """The same numbers, read-only: kernels are compiled for one kind of array."""
    view: Array = values.view()
    view.flags.writeable = False
    return view


class Moves(NamedTuple):
    """Actions of some decision states."""

    node: Array  # (n,)
    counts: Array  # (n,) how many actions each has
    reward: Array  # (actions,)
    z: Array  # (actions,)
    clock: Array  # (actions,)


def _pack(values: Array) -> Any:
    packed = array("d" if values.dtype == float else "q")
    packed.frombytes(np.ascontiguousarray(values).tobytes())
    return packed


class Computed(Sequence[Any]):
    """A sequence of features, or of their outcomes, whose elements are computed."""

    def __init__(self, graph: TableGraph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return len(self._graph.row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = len(self) - SHOWN
        return repr(list(self)) if more <= 0 else f"[{repr(self[:SHOWN])[1:-1]}, ... {more} more]"


class Features(Computed):
    """(s, a) or (t, s, a) of each feature."""

    def __init__(self, graph: TableGraph) -> None:
        super().__init__(graph)
        table = graph.table
        self._shape = (table.period, *table.rewards.shape[1:])[1 - table.changes :]

    def __getitem__(self, i: Any) -> Any:
        found = np.unravel_index(self._graph.row[i], self._shape)
        if isinstance(i, slice):
            return list(zip(*(part.tolist() for part in found), strict=True))
        return tuple(map(int, found))

    def __iter__(self) -> Iterator[Any]:
        for lo in range(0, len(self), PORTION):
            yield from self[lo : lo + PORTION]


class Outcomes(Computed):
    """The states that can follow each feature."""

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        z = range(len(self))[i]  # an IndexError ends a loop over a sequence
        if not len(self._graph.rows.states):
            return self._graph.sets[0]
        return tuple(self._graph.list_outcomes(z).tolist())
