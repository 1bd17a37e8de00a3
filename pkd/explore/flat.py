"""A graph as arrays, and the order of its CHANCE states: what engines and sweeps read.

`flatten` lists the cells of all four parts one after the other. `find_levels` is the one
topological order of CHANCE states: one of level i leads only to lower levels, decisions and ends.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

import attrs
import numpy as np

from pkd.explore.segments import lengths_to_ptr, spread
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.explore.graph import Graph

DECIDE, CHANCE_STATE, STOP = 0, 1, 2  # what a node is
STEP, LAST, CHANCES, SETTLED = range(4)  # parts: decisions, last ones, CHANCE states, settlement

Array = np.ndarray


class QueuesMatterError(Exception):
    """Hiding queues does not pay: moves look at too many entries."""


@attrs.frozen(eq=False)
class Flat:
    """All cells of a graph in one list: STEP, LAST, CHANCES, SETTLED. Rows are counted from 0."""

    n_unknown: int  # law rows below are unknown features, the others known laws
    part: Array  # (cells,)
    node: Array  # (cells,)
    action_ptr: Array  # (cells + 1,)
    reward: Array  # (actions,)
    mean: Array  # (actions,) which unknown reward, or -1
    note: Array  # (actions,)
    branch_ptr: Array  # (actions + 1,)
    p: Array  # (branches,)
    row: Array  # (branches,)
    landing: Array  # (branches,)
    share: Array  # (branches,)
    landing_ptr: Array  # (landings + 1,)
    landing_node: Array
    row_ptr: Array  # (law rows + 1,)
    kind: tuple[Array, Array]  # of the nodes of layers and settlement
    # (nodes,) cell in the layers, at the last action, settled; -1 where the episode stops. With
    # hidden queues a node has several cells, and this is one of them.
    cell_of: tuple[Array, Array, Array]
    final: tuple[Array, Array]  # of the nodes of layers and settlement
    choice: Array  # (nodes,) place of a decision node in a policy, or -1
    first: Array  # (nodes,) first and last layer of each node
    last: Array  # (nodes,)


def flatten(graph: Graph) -> Flat:
    """The cells of a graph as arrays."""
    parts, n_unknown = graph.cells, len(graph.features)
    nodes = [_view(cells.node) for cells in parts]
    part, node = np.repeat(np.arange(4), list(map(len, nodes))), np.concatenate(nodes)
    row, reward = _join(c.row for c in parts), _join(c.reward for c in parts)
    action_ptr = _join_ptr(c.action_ptr for c in parts)
    kind = np.array(graph.layers.kind, np.int64), np.array(graph.settled.kind, np.int64)
    cell_of, final = [], []
    for side, mine in ((0, (STEP, CHANCES)), (0, (LAST,)), (1, (SETTLED,))):
        cells = np.flatnonzero(np.isin(part, mine))
        place, paid = np.full(len(kind[side]), -1), np.zeros(len(kind[side]))
        place[node[cells]] = cells
        stops = np.flatnonzero((kind[side] == STOP) & (place >= 0))
        paid[stops] = reward[action_ptr[place[stops]]]
        place[stops] = -1
        cell_of.append(place)
        final.append(paid)
    choice = np.full(len(kind[0]), -1)
    deciders = np.flatnonzero(kind[0] == DECIDE)
    choice[deciders] = np.arange(len(deciders))
    first, last = _find_windows(graph)
    return Flat(
        n_unknown=n_unknown,
        part=part,
        node=node,
        action_ptr=action_ptr,
        reward=reward,
        mean=_join(c.mean for c in parts),
        note=_join(c.note for c in parts),
        branch_ptr=_join_ptr(c.branch_ptr for c in parts),
        p=_join(c.p for c in parts),
        row=np.where(row >= 0, row, n_unknown - 1 - row),
        landing=_join(c.landing for c in parts),
        share=_join(c.share for c in parts),
        landing_ptr=lengths_to_ptr(np.array(list(map(len, graph.landings)), np.int64)),
        landing_node=np.fromiter(chain.from_iterable(graph.landings), np.int64),
        row_ptr=graph.row_ptr,
        kind=kind,
        cell_of=(cell_of[0], cell_of[1], cell_of[2]),
        final=(final[0], final[2]),
        choice=choice,
        first=first,
        last=last,
    )


def _view(values: array[int] | array[float]) -> Array:
    """The numbers of an array without a copy."""
    return np.frombuffer(values, np.int64 if values.typecode == "q" else float)


def _join(arrays: Iterable[array[int] | array[float]]) -> Array:
    return np.concatenate([_view(values) for values in arrays])


def _join_ptr(pointers: Iterable[array[int]]) -> Array:
    return lengths_to_ptr(np.concatenate([np.diff(_view(ptr)) for ptr in pointers]))


def _find_windows(graph: Graph) -> tuple[Array, Array]:
    """The first and the last layer of each node."""
    members, horizon = graph.members, graph.horizon
    first, last = np.full(len(graph.layers.x), horizon), np.full(len(graph.layers.x), -1)
    known = len(members.distinct)
    for t, layer in enumerate(members.distinct):
        grown = getattr(layer, "new", None)  # of a layer that holds the one before it
        nodes = np.fromiter(layer if grown is None else grown, np.int64)
        first[nodes] = np.minimum(first[nodes], t)
        repeats = (horizon - 1 - t) // members.period if t >= known - members.period else 0
        last[nodes] = np.maximum(last[nodes], t + repeats * members.period)
    if known and hasattr(members.distinct[-1], "new"):  # it holds the nodes of those before
        last[np.fromiter(members.distinct[-1], np.int64)] = horizon - 1
    return first, last


def find_levels(graph: Graph) -> tuple[Array, Array]:
    """The level of each CHANCE node, from 1; 0 for other nodes: (of layers, of the settlement).

    CHANCE states that form a cycle are a ModelError. If queues are hidden, one node stands for many
    states, so the cycle may not be real: that is a QueuesMatterError.
    """
    flat = graph.flat
    branch_ptr = flat.branch_ptr[flat.action_ptr]
    settling = np.array(graph.settling, bool)
    which = np.repeat(np.arange(len(settling)), np.diff(flat.landing_ptr))
    found = []
    for side, part in enumerate((CHANCES, SETTLED)):
        chance = flat.kind[side] == CHANCE_STATE
        level = np.zeros(len(chance), np.int64)
        cells = np.flatnonzero(flat.part == part)
        cells = cells[chance[flat.node[cells]]]
        of, branches = spread(branch_ptr[cells], branch_ptr[cells + 1])
        pairs = np.sort(flat.node[cells[of]] * len(settling) + flat.landing[branches])
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # faster than np.unique
        source, landing = pairs // max(len(settling), 1), pairs % max(len(settling), 1)
        left = np.zeros(len(chance), bool)
        left[source] = True
        there = settling[which] == bool(side)
        there[there] = left[flat.landing_node[there]]
        holder, target = which[there], flat.landing_node[there]
        at = 1
        while len(source):
            busy = np.zeros(len(settling), bool)
            busy[holder] = True
            waiting = np.zeros(len(chance), bool)
            waiting[source[busy[landing]]] = True
            level[left & ~waiting] = at
            if np.array_equal(left, waiting):
                raise _cycle_error(graph)
            left, at = waiting, at + 1
            source, landing = source[left[source]], landing[left[source]]
            holder, target = holder[left[target]], target[left[target]]
        found.append(level)
    return found[0], found[1]


def _cycle_error(graph: Graph) -> Exception:
    if graph.hidden:
        return QueuesMatterError("CHANCE states form a cycle unless their queues are told apart")
    return ModelError("CHANCE states form a cycle, so that time stands still")
