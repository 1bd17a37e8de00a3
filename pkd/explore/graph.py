"""The graph of a model: what the explorer writes down, and what everything else reads.

A *block* is a y, or, where queues are hidden (`pkd.queue`), a y whose queue is only a length: it
then stands for all y with as many entries. A *node* is an x with a block. A *cell* is a node with
the values of the oldest entries that its move looks at (none in an explicit walk): everything in
one cell moves alike. A *landing* is a set of outcomes with a block: the nodes that one branch can
lead to.
"""

from __future__ import annotations

import functools
import math
import operator
from array import array
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, overload

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.explore.flat import (
    CHANCE_STATE,
    CHANCES,
    DECIDE,
    LAST,
    SETTLED,
    STEP,
    STOP,
    Flat,
    QueuesMatterError,
    find_levels,
    flatten,
)
from pkd.explore.segments import lengths_to_ptr
from pkd.families import Family
from pkd.model import Known, PartiallyKnownMDP, UnknownReward
from pkd.queue import Queue, replace_part

__all__ = [
    "CHANCES", "CHANCE_STATE", "DECIDE", "LAST", "SETTLED", "STEP", "STOP", "Block", "Cells",
    "Graph", "Grown", "Layers", "Mask", "QueuesMatterError", "Side",
]  # fmt: skip

# Hiding queues pays once an explicit walk has this many times as many branches.
WORTH_HIDING = 8

Mask = tuple[int, ...]  # for each hidden entry the letters that it can be, as bits


class Block(NamedTuple):
    """A y, or all y that differ in the entries of one queue."""

    y: Any  # with HOLE in place of the queue
    path: tuple[Any, ...] | None  # where the queue is; None: this is one y
    length: int

    def fill(self, queue: Queue) -> Any:
        """The y with a given queue."""
        return self.y if self.path is None else replace_part(self.y, self.path, queue)


@attrs.define(eq=False)
class Side:
    """The nodes of the layers, or those of the settlement."""

    x: list[Any] = attrs.Factory(list)
    block: list[int] = attrs.Factory(list)
    kind: list[int] = attrs.Factory(list)
    choices: list[Any] = attrs.Factory(list)  # the actions of a decision node, None elsewhere
    of_block: dict[int, dict[Any, int]] = attrs.Factory(dict)  # block -> {x: node}


@attrs.define(eq=False)
class Cells:
    """The moves of one part: cell -> actions -> branches, in flat arrays.

    A STOP node has one action without branches, which pays `final`.
    """

    node: array[int] = attrs.Factory(lambda: array("q"))
    prefix: list[tuple[Any, ...]] = attrs.Factory(list)  # one for each cell where queues are hidden
    action_ptr: array[int] = attrs.Factory(lambda: array("q", [0]))  # (cells + 1,)
    reward: array[float] = attrs.Factory(lambda: array("d"))  # (actions,) the known part
    mean: array[int] = attrs.Factory(lambda: array("q"))  # (actions,) which UnknownReward, or -1
    note: array[int] = attrs.Factory(lambda: array("q"))  # (actions,) which note, or -1
    said: dict[int, tuple[int, int]] = attrs.Factory(dict)  # action -> (mean, note), until `finish`
    branch_ptr: array[int] = attrs.Factory(lambda: array("q", [0]))  # (actions + 1,)
    p: array[float] = attrs.Factory(lambda: array("d"))  # (branches,)
    row: array[int] = attrs.Factory(lambda: array("q"))  # (branches,) feature >= 0, known law < 0
    landing: array[int] = attrs.Factory(lambda: array("q"))  # (branches,)
    share: array[float] = attrs.Factory(lambda: array("d"))  # (branches,) nan: uniform, or known
    ends: list[tuple[tuple[Any, ...], tuple[Any, ...]]] = attrs.Factory(
        list
    )  # (front, back), hidden

    def finish(self) -> None:
        """Fills in means, notes and shares, which few models have."""
        self.mean = array("q", [-1]) * len(self.reward)
        self.note = array("q", [-1]) * len(self.reward)
        for action, (mean, note) in self.said.items():
            self.mean[action], self.note[action] = mean, note
        if len(self.share) < len(self.p):
            self.share = array("d", [math.nan]) * len(self.p)

    def extend(self, other: Cells) -> None:
        """Appends other cells."""
        actions, branches = len(self.reward), len(self.p)
        self.said.update({actions + action: found for action, found in other.said.items()})
        self.node.extend(other.node)
        self.prefix.extend(other.prefix)
        self.action_ptr.extend(actions + i for i in other.action_ptr[1:])
        self.reward.extend(other.reward)
        self.branch_ptr.extend(branches + i for i in other.branch_ptr[1:])
        self.p.extend(other.p)
        self.row.extend(other.row)
        self.landing.extend(other.landing)
        self.share.extend(other.share)
        self.ends.extend(other.ends)

    def keep(self, first: int, branches: list[int]) -> None:
        """Of the branches from `first` on, keeps those given."""
        kept: list[array[Any]] = [self.p, self.row, self.landing]
        for values in [*kept, self.share] if self.share else kept:
            left = [values[k] for k in branches]
            del values[first:]
            values.extend(left)
        self.ends[first:] = [self.ends[k] for k in branches if self.ends]

    def branches(self, cell: int) -> range:
        """All branches of a cell."""
        return range(
            self.branch_ptr[self.action_ptr[cell]], self.branch_ptr[self.action_ptr[cell + 1]]
        )


class Grown(Mapping[int, Mask]):
    """A layer of an explicit walk that holds the layer before it, and new nodes.

    All such layers share their nodes, so a layer takes no memory but that of its new nodes.

    >>> layer = Grown.start({4: ()}).add({7: ()})
    >>> dict(layer), layer.add({2: ()}).new, 2 in layer
    ({4: (), 7: ()}, [2], False)
    """

    def __init__(self, nodes: list[int], place: dict[int, int], count: int) -> None:
        self._nodes, self._place, self._before, self._count = nodes, place, count, len(nodes)

    @classmethod
    def start(cls, layer: Mapping[int, Mask]) -> Grown:
        """The same nodes as a layer."""
        nodes = list(layer)
        return cls(nodes, {node: place for place, node in enumerate(nodes)}, 0)

    def add(self, new: Mapping[int, Mask]) -> Grown:
        """The next layer."""
        self._place.update(zip(new, range(self._count, self._count + len(new)), strict=True))
        self._nodes.extend(new)
        return Grown(self._nodes, self._place, self._count)

    @property
    def new(self) -> list[int]:
        """The nodes that the layer before it does not hold."""
        return self._nodes[self._before : self._count]

    def __getitem__(self, node: int) -> Mask:
        if self._place[node] >= self._count:
            raise KeyError(node)
        return ()

    def __contains__(self, node: object) -> bool:
        return self._place.get(node, self._count) < self._count  # type: ignore[call-overload, no-any-return]

    def items(self) -> ItemsView[int, Mask]:
        return dict.fromkeys(self, ()).items()

    def __iter__(self) -> Iterator[int]:
        return islice(self._nodes, self._count)

    def __len__(self) -> int:
        return self._count


@attrs.define(eq=False)
class Layers(Sequence[Mapping[int, Mask]]):
    """The nodes of each layer.

    From some layer on they repeat and are stored once, so a long horizon takes no memory.
    """

    horizon: int
    distinct: list[Mapping[int, Mask]] = attrs.Factory(list)  # the layers before any is repeated
    period: int = 1  # after them, layer t is layer t - period again

    def __len__(self) -> int:
        return self.horizon

    @overload
    def __getitem__(self, t: int) -> Mapping[int, Mask]: ...

    @overload
    def __getitem__(self, t: slice) -> list[Mapping[int, Mask]]: ...

    def __getitem__(self, t: int | slice) -> Mapping[int, Mask] | list[Mapping[int, Mask]]:
        if isinstance(t, slice):
            return [self[i] for i in range(*t.indices(self.horizon))]
        t = range(self.horizon)[t]
        known = len(self.distinct)
        return self.distinct[t if t < known else known - self.period + (t - known) % self.period]


@attrs.define(eq=False, slots=False)
class Graph:
    """What `explore` found.

    Law rows are numbered: unknown features from 0, known laws from -1 down.
    """

    model: PartiallyKnownMDP
    horizon: int
    hidden: bool
    layers: Side = attrs.Factory(Side)
    settled: Side = attrs.Factory(Side)
    cells: tuple[Cells, ...] = attrs.Factory(lambda: tuple(Cells() for _ in range(4)))  # by part
    start: list[tuple[int, tuple[Any, ...], float]] = attrs.Factory(list)  # (node, entries, p)
    blocks: list[Block] = attrs.Factory(list)
    features: Sequence[Any] = attrs.Factory(list)
    known: list[Known] = attrs.Factory(list)  # of row -1 - i
    rewards: list[UnknownReward] = attrs.Factory(list)
    notes: list[Any] = attrs.Factory(list)
    sets: list[tuple[Any, ...]] = attrs.Factory(list)  # distinct sets of outcomes
    feature_set: list[int] = attrs.Factory(list)  # of each feature
    families: dict[int, Family] = attrs.Factory(dict)  # of features that declare one
    known_set: list[int] = attrs.Factory(list)  # of each known law
    landings: list[list[int]] = attrs.Factory(list)  # the nodes of each landing
    landing_block: list[int] = attrs.Factory(list)
    settling: list[bool] = attrs.Factory(list)  # whether a landing is one of the settlement
    members: Layers = attrs.Factory(lambda self: Layers(self.horizon), takes_self=True)
    ends: dict[int, Mask] = attrs.Factory(dict)  # the nodes of the settlement
    letters: dict[Any, int] = attrs.Factory(dict)  # entries of hidden queues
    block_index: dict[Any, int] = attrs.Factory(dict)  # y, or (y with a hole, length) -> block
    # (feature, block, share or -1: uniform) -> queues of the y' that come with it, if hidden
    shared: dict[tuple[int, int, float], set[Mask]] = attrs.Factory(dict)
    exact: bool = True  # whether every combination of letters that the masks allow can occur
    # Where `step_many` was asked, (x, y) -> node: blocks have no index of their nodes.
    place_of: Callable[[Any, Any], int | None] | None = None

    @functools.cached_property
    def flat(self) -> Flat:
        """The finished graph as arrays."""
        return flatten(self)

    @functools.cached_property
    def levels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The order of its CHANCE states: see `find_levels`."""
        return find_levels(self)

    @property
    def outcomes(self) -> Sequence[tuple[Any, ...]]:
        """The outcomes of each feature."""
        return [self.sets[i] for i in self.feature_set]

    @functools.cached_property
    def row_ptr(self) -> NDArray[np.int64]:
        """Where the outcomes of each law row begin, unknown features first, (law rows + 1,)."""
        sizes = [*map(len, self.outcomes), *(len(self.sets[i]) for i in self.known_set)]
        return lengths_to_ptr(np.array(sizes, np.int64))

    @functools.cached_property
    def largest_reward(self) -> float:
        """The largest absolute value of a known reward, or of what is paid at an END."""
        return max(float(np.abs(np.array(c.reward)).max(initial=0.0)) for c in self.cells)

    def row_states(self, row: int) -> tuple[Any, ...]:
        """The x' of a row, in its order."""
        return self.sets[self.feature_set[row] if row >= 0 else self.known_set[-1 - row]]

    def state(self, side: Side, node: int) -> tuple[Any, Any]:
        """The (x, y) of a node of an explicit walk."""
        return side.x[node], self.blocks[side.block[node]].y

    def find(self, x: Any, y: Any) -> int | None:
        """The node of a state in the layers of an explicit walk."""
        if self.place_of is not None:
            return self.place_of(x, y)
        block = self.block_index.get(y)
        return None if block is None else self.layers.of_block.get(block, {}).get(x)

    def start_y(self, node: int, entries: tuple[Any, ...]) -> Any:
        """The y of a start state."""
        return self.blocks[self.layers.block[node]].fill(Queue(entries))

    def holds(self, t: int, node: int) -> bool:
        """Whether the node can occur in layer t."""
        return node in self.members[t]

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states (x, y) that can occur at step h, in an explicit walk."""
        side = self.layers
        for node in sorted(self.members[h - 1]):
            if side.kind[node] == DECIDE:
                yield self.state(side, node)

    @property
    def n_states(self) -> int:
        """How many states (x, y) the layers have."""
        return sum(count_queues(mask) for mask in self.union().values())

    def union(self) -> dict[int, Mask]:
        """Every node of the layers with all that its queue can hold in any of them."""
        found: dict[int, Mask] = {}
        for layer in self.members.distinct:
            for node, mask in layer.items():
                before = found.get(node, mask)
                found[node] = mask if before == mask else join_boxes((before, mask))[0]
        return found

    def pays_hiding(self) -> bool:
        """Whether a walk with hidden queues has far fewer branches than an explicit one has."""
        union, mine, explicit = self.union(), 0, 0
        for cells in (self.cells[STEP], self.cells[CHANCES]):
            for cell, (node, prefix) in enumerate(zip(cells.node, cells.prefix, strict=True)):
                branches = len(cells.branches(cell))
                mine += branches
                explicit += branches * count_queues(union[node][len(prefix) :])
        return explicit >= WORTH_HIDING * mine

    @property
    def n_y(self) -> int:
        """|Y|: the distinct y of layers and settlement together."""
        if not self.hidden:
            return len(self.blocks)
        masks: dict[int, set[Mask]] = {}
        layers = [(self.layers, layer) for layer in self.members.distinct]
        for side, nodes in (*layers, (self.settled, self.ends)):
            for node, mask in nodes.items():
                masks.setdefault(side.block[node], set()).add(mask)
        return sum(map(count_union, masks.values()))


def join_boxes(boxes: Iterable[Mask]) -> tuple[Mask, bool]:
    """The smallest box around some boxes, and whether it holds nothing else."""
    left = set(boxes)
    before = 0
    while len(left) > 1 and len(left) != before:
        before = len(left)
        for i in range(len(next(iter(left)))):  # boxes that differ in one place are one box
            alike: dict[tuple[Mask, Mask], int] = {}
            for box in left:
                key = (box[:i], box[i + 1 :])
                alike[key] = alike.get(key, 0) | box[i]
            left = {(*head, bits, *tail) for (head, tail), bits in alike.items()}
    if len(left) == 1:
        return left.pop(), True
    union = tuple(functools.reduce(operator.or_, bits) for bits in zip(*left, strict=True))
    return union, union in left


def count_union(boxes: Iterable[Mask]) -> int:
    """How many queues are in at least one of some boxes.

    >>> count_union([(0b11, 0b01), (0b10, 0b11)])  # (0, 0), (1, 0) and (1, 0), (1, 1)
    3
    """
    box, exact = join_boxes(boxes := frozenset(boxes))
    return count_queues(box) if exact else _count_apart(boxes, {})


def _count_apart(boxes: frozenset[Mask], counted: dict[frozenset[Mask], int]) -> int:
    """The same, letter by letter: letters that are in the same boxes go on alike."""
    if () in boxes:
        return 1
    if boxes not in counted:
        alike: dict[frozenset[Mask], int] = {}
        for letter in list_letters(functools.reduce(operator.or_, (box[0] for box in boxes))):
            rest = frozenset(box[1:] for box in boxes if box[0] >> letter & 1)
            alike[rest] = alike.get(rest, 0) + 1
        counted[boxes] = sum(n * _count_apart(rest, counted) for rest, n in alike.items())
    return counted[boxes]


def _is_inside(one: Mask, other: Mask) -> bool:
    return all(a | b == b for a, b in zip(one, other, strict=True))


def grow_only(before: Mapping[int, Mask], after: Mapping[int, Mask]) -> bool:
    """Whether each node of a layer is in the next one, with all that its queue can hold."""
    return len(before) <= len(after) and all(
        node in after and (mask == after[node] or _is_inside(mask, after[node]))
        for node, mask in before.items()
    )


def list_letters(bits: int) -> Iterator[int]:
    """The letters that are set in a mask of one entry."""
    return (i for i in range(bits.bit_length()) if bits >> i & 1)


def count_queues(mask: Mask) -> int:
    """How many queues a mask allows."""
    return math.prod(bits.bit_count() for bits in mask)
