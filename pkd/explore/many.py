"""Asks a model with `step_many` for the moves of many states at once.

`ManyIndex` and `ManyReader` number what the walk meets as `Index` and `Reader` do, in the same
order, so that graphs are equal; they do it with arrays. A state is the number x Y + y, and tables
say which node, block or landing a number has.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pkd.adapters import find_note
from pkd.expect import show, whole
from pkd.explore.graph import CHANCE_STATE, DECIDE, STOP, Block, Side
from pkd.explore.index import PROBABILITY_SLACK, Index, Manner, overrides
from pkd.explore.limits import refuse_bytes
from pkd.explore.reader import Part, Reader
from pkd.explore.segments import lengths_to_ptr, spread
from pkd.model import ROUNDING, Known, ModelError, PartiallyKnownMDP, sure

__all__ = ["Many", "ManyIndex", "ManyReader", "answers_many", "read_grid", "read_many"]

Array = np.ndarray
PORTION = 1 << 16  # states that are asked for in one call
MOST_ACTIONS = 62  # the actions of a state are the bits of a number


class Many(NamedTuple):
    """The answer of `step_many` for n states: A actions, and B columns of branches."""

    actions: tuple[Any, ...]  # (A,); None: no action is chosen
    on_offer: Array  # (n, A)
    reward: Array  # (n, A)
    action_of: Array  # (B,) which action a column belongs to
    p: Array  # (n, B)
    y: Array  # (n, B)
    z: Array  # (n, B) numbers of `features`
    features: list[Any]  # features and Known laws

    def find_kinds(self) -> tuple[Array, list[Any]]:
        """The kind of each state, and its actions; None where none is chosen."""
        kind = np.where(self.on_offer.any(axis=1), DECIDE, STOP)
        bits = self.on_offer @ (1 << np.arange(len(self.actions), dtype=np.int64))
        found, which = np.unique(bits, return_inverse=True)
        choices: list[Any] = []
        for pattern in found.tolist():
            here = tuple(a for i, a in enumerate(self.actions) if pattern >> i & 1)
            choices.append(None if here in ((), (None,)) else here)
            if None in here:
                kind[bits == pattern] = CHANCE_STATE
                if len(here) > 1:
                    raise ModelError(f"step_many gives the actions {here!r} for one state")
        return kind, [choices[i] for i in which.tolist()]

    def list_branches(self, i: int, place: int) -> list[tuple[float, int, Any]]:
        """The branches (probability, y', z) of an action in state i."""
        columns = np.flatnonzero((self.action_of == place) & (self.p[i] > 0)).tolist()
        return [
            (float(self.p[i, k]), int(self.y[i, k]), self.features[self.z[i, k]]) for k in columns
        ]


def answers_many(model: PartiallyKnownMDP, hidden: bool) -> bool:
    """Whether a walk asks a model for many states at once."""
    own = any(overrides(model, name) for name in ("last_step", "share"))
    return not (hidden or own) and overrides(model, "step_many") and find_note(model) is None


def read_grid(model: PartiallyKnownMDP) -> tuple[int, int]:
    """(X, Y) of a model with `step_many`."""
    grid = model.grid
    if not isinstance(grid, tuple) or len(grid) != 2 or any(whole("", n, least=1) for n in grid):
        raise ModelError(
            f"grid is {show(grid)}; a model with step_many has grid = (X, Y): its x are 0..X-1 "
            "and its y are 0..Y-1"
        )
    return int(grid[0]), int(grid[1])


def read_many(model: PartiallyKnownMDP, x: Array, y: Array) -> Many:
    """The answer of `step_many`, checked where a check costs little."""
    n, size = len(x), read_grid(model)[1]
    actions, offered, paid, action_of = [], [], [], list[int]()
    columns: list[tuple[Any, Any, Any]] = []
    features: dict[Any, int] = {}
    for i, (a, where, reward, branches) in enumerate(model.step_many(x, y)):
        actions.append(a)
        offered.append(_fill(where, n, bool))
        paid.append(_fill(reward, n, float))
        columns += branches
        action_of += [i] * (len(columns) - len(action_of))
    if len(set(actions)) < len(actions) or not 1 <= len(actions) <= MOST_ACTIONS:
        raise ModelError(
            f"step_many gives the actions {show(actions)}; expected 1 to {MOST_ACTIONS} distinct "
            "ones, None for states without a choice"
        )
    on_offer = np.stack(offered, axis=1)
    owner = np.array(action_of, np.int64)
    p, after = np.zeros((n, len(columns))), np.zeros((n, len(columns)), np.int64)
    z = np.zeros((n, len(columns)), np.int32)
    for k, (mass, y_next, feature) in enumerate(columns):
        p[:, k], after[:, k] = _fill(mass, n, float), _fill(y_next, n, np.int64)
        z[:, k] = _number_features(feature, n, features)
    p[~on_offer[:, owner]] = 0.0
    used = p != 0.0
    if not (p >= 0).all():
        raise ModelError("step_many gives a negative probability, or no number")
    if used.any() and not ((after[used] >= 0) & (after[used] < size)).all():
        bad = next(v for v in (after[used].min(), after[used].max()) if not 0 <= v < size)
        raise ModelError(f"step_many leads to y' = {bad}; expected 0..{size - 1}")
    rewards = np.stack(paid, axis=1)
    if not np.isfinite(rewards[on_offer]).all():
        raise ModelError("step_many gives a reward that is not a finite number")
    return Many(tuple(actions), on_offer, rewards, owner, p, after, z, list(features))


def _fill(values: Any, n: int, kind: type) -> Array:
    """One value for all states, or an array of one for each."""
    found = np.asarray(values)
    if found.shape not in ((), (n,)) or not np.can_cast(found.dtype, kind, "same_kind"):
        raise ModelError(
            f"step_many gives {show(values)} for {n} states; expected one value, or an array of "
            f"{n} of them"
        )
    return np.broadcast_to(found.astype(kind, copy=False), (n,))


def _number_features(z: Any, n: int, features: dict[Any, int]) -> Array:
    """Numbers of what a column has for z: a feature, an array of them, Known(...), sure(array)."""
    point = isinstance(z, Known) and len(z.law) == 1 and isinstance(z.law[0][0], np.ndarray)
    values = z.law[0][0] if point else z
    if not isinstance(values, np.ndarray):
        return np.broadcast_to(np.int32(features.setdefault(z, len(features))), (n,))
    found, which = np.unique(_fill(values, n, np.int64), return_inverse=True)
    names = [sure(v) if point else v for v in found.tolist()]
    return np.array([features.setdefault(name, len(features)) for name in names], np.int32)[which]


def number(table: Array, keys: Array, count: int) -> Array:
    """Gives the keys that have no number (-1) the next ones, in the order in which they come.

    Returns these keys.

    >>> table = np.array([-1, 0, -1, -1])
    >>> number(table, np.array([3, 1, 0, 3]), 1).tolist(), table.tolist()
    ([3, 0], [2, 0, -1, 1])
    """
    new = keys[table[keys] < 0]
    order = np.arange(len(new))
    table[new[::-1]] = order[::-1]  # of equal keys the first one is written last, and stays
    first: Array = new[table[new] == order]
    table[first] = count + np.arange(len(first))
    return first


class ManyIndex(Index):
    """Numbers nodes, blocks and landings with tables."""

    def __init__(
        self, model: PartiallyKnownMDP, manner: Manner, progress: Callable[[int], Any]
    ) -> None:
        super().__init__(model, manner, progress)
        self.size_x, self.size_y = read_grid(model)
        states = self.size_x * self.size_y
        refuse_bytes(8 * states, f"step_many with grid = {model.grid!r}")
        self.block_of = np.full(self.size_y, -1, np.int32)
        self.y_of: array[int] = array("q")  # of each block
        self.graph.place_of = self.place_of
        self.node_of = {False: np.full(states, -1, np.int32), True: np.full(states, -1, np.int32)}
        self.landing_of = {side: np.full((0, self.size_y), -1, np.int32) for side in (False, True)}
        self.sets: list[Array] = []

    def place_plain(self, y: Any) -> int:
        self._check(y, self.size_y, "y")
        self.intern_blocks(np.array([y], np.int64))
        return int(self.block_of[y])

    def place_of(self, x: Any, y: Any) -> int | None:
        """The node of a state in the layers."""
        try:
            self._check(x, self.size_x, "x")
            self._check(y, self.size_y, "y")
        except ModelError:
            return None
        node = int(self.node_of[False][x * self.size_y + y])
        return None if node < 0 else node

    def _check(self, value: Any, size: int, name: str) -> None:
        if (
            isinstance(value, bool)
            or not isinstance(value, int | np.integer)
            or not (0 <= value < size)
        ):
            raise ModelError(f"{name} = {show(value)}; a model with this grid has 0..{size - 1}")

    def intern_blocks(self, y: Array) -> None:
        """New blocks for the y that have none."""
        new = number(self.block_of, y, len(self.graph.blocks)).tolist()
        self.block_index.update(zip(new, range(len(self.graph.blocks), len(self.y_of) + len(new)),
                                    strict=True))  # fmt: skip
        self.graph.blocks.extend(Block(one, None, 0) for one in new)
        self.y_of.extend(new)

    def intern_nodes(self, side: Side, states: Iterable[Any], block: int) -> list[int]:
        listed = list(states)
        for x in listed:
            self._check(x, self.size_x, "x")
        keys = np.array(listed, np.int64) * self.size_y + self.y_of[block]
        found: list[int] = self.intern_keys(side, keys).tolist()
        return found

    def intern_keys(self, side: Side, keys: Array) -> Array:
        """The nodes of states that are given as numbers x Y + y."""
        settled = side is self.graph.settled
        table, count = self.node_of[settled], len(side.x)
        new = number(table, keys, count)
        for begin in range(0, len(new), PORTION):
            x, y = np.divmod(new[begin : begin + PORTION], self.size_y)
            kind, choices = read_many(self.model, x, y).find_kinds()
            if settled:
                kind[kind == DECIDE] = STOP
                choices = [None] * len(choices)
            side.x.extend(x.tolist())
            side.block.extend(self.block_of[y].tolist())
            side.kind.extend(kind.tolist())
            side.choices.extend(choices)
            self._count_nodes(side, len(x))
        nodes: Array = table[keys]
        return nodes

    def _count_nodes(self, side: Side, new: int) -> None:
        """Stops the walk at its limits, and tells how far it is."""
        self.n_nodes += new
        blocks, most = self.graph.blocks, self.manner.max_states
        if len(side.x) > most:
            self.stop_at(side.x[most], blocks[side.block[most]].y)
        self.progress(new)
        self.watch_memory(side.x[-1], blocks[side.block[-1]].y)

    def intern_landings(self, side: Side, settles: bool, outcomes: Array, y: Array) -> Array:
        """The landings of sets of outcomes with y; both (branches,)."""
        graph, table = self.graph, self.landing_of[settles]
        while len(self.sets) < len(graph.sets):
            self.sets.append(self._read_set(graph.sets[len(self.sets)]))
        if len(table) < len(self.sets):
            rows = max(len(self.sets), 2 * len(table))
            refuse_bytes(4 * rows * self.size_y, f"step_many with {len(self.sets)} sets of x' and")
            more = np.full((rows - len(table), self.size_y), -1, np.int32)
            table = self.landing_of[settles] = np.concatenate([table, more])
        keys, numbers = outcomes * self.size_y + y, table.reshape(-1)
        new = number(numbers, keys, len(graph.landings))
        which, at = np.divmod(new, self.size_y)
        ptr = lengths_to_ptr(np.array([len(states) for states in self.sets], np.int64))
        of, places = spread(ptr[which], ptr[which + 1])
        states = np.concatenate(self.sets)[places]
        nodes = self.intern_keys(side, states * self.size_y + at[of]).tolist()
        ends = lengths_to_ptr((ptr[1:] - ptr[:-1])[which]).tolist()
        graph.landings.extend(nodes[i:j] for i, j in pairwise(ends))
        graph.landing_block.extend(self.block_of[at].tolist())
        graph.settling.extend([settles] * len(new))
        found: Array = numbers[keys]
        return found

    def _read_set(self, states: tuple[Any, ...]) -> Array:
        for x in states:
            self._check(x, self.size_x, "x'")
        return np.array(states, np.int64)


class ManyReader(Reader):
    """Writes down the moves of many states at once."""

    index: ManyIndex

    def ask_all(self, nodes: list[int], part: Part) -> None:
        first = len(part.cells.node)
        for begin in range(0, len(nodes), PORTION):
            some = nodes[begin : begin + PORTION]
            stop = part.origin.kind[some[0]] == STOP  # a walk asks for one kind at a time
            (self._write_ends if stop else self._write_many)(some, part)
        part.made.update(zip(nodes, range(first, len(part.cells.node)), strict=True))

    def _write_ends(self, nodes: list[int], part: Part) -> None:
        """What is paid at an end."""
        cells, origin, own = part.cells, part.origin, overrides(self.model, "final")
        cells.reward.extend(
            self._read_final(origin.x[n], self.index.y_of[origin.block[n]]) if own else 0.0
            for n in nodes
        )
        self._close(nodes, np.ones(len(nodes), np.int64), np.zeros(len(nodes), np.int64), part)

    def _write_many(self, nodes: list[int], part: Part) -> None:
        cells, origin, index = part.cells, part.origin, self.index
        x = np.fromiter(map(origin.x.__getitem__, nodes), np.int64, len(nodes))
        blocks = map(origin.block.__getitem__, nodes)
        y = np.fromiter(map(index.y_of.__getitem__, blocks), np.int64, len(nodes))
        many = read_many(self.model, x, y)
        for place, action in enumerate(many.actions):
            _settle(many, place, action, x, y)
        used = many.p > 0
        actions = len(many.actions)
        branches = np.zeros((len(nodes), actions), np.int64)
        for column, place in enumerate(many.action_of.tolist()):
            branches[:, place] += used[:, column]
        cells.reward.frombytes(many.reward[many.on_offer].tobytes())
        cells.p.frombytes(many.p[used].tobytes())
        rows = self._intern_rows(many, many.z[used])
        after = many.y[used]
        index.intern_blocks(after)
        sets = np.array(self.graph.feature_set + self.graph.known_set, np.int64)
        outcomes = sets[np.where(rows >= 0, rows, len(self.graph.feature_set) - 1 - rows)]
        landings = index.intern_landings(part.target, part.settles, outcomes, after)
        cells.row.frombytes(rows.tobytes())
        cells.landing.frombytes(landings.astype(np.int64).tobytes())
        self._close(nodes, many.on_offer.sum(axis=1), branches[many.on_offer], part)

    def _intern_rows(self, many: Many, z: Array) -> Array:
        """The law row of each branch; new ones are numbered as they come."""
        place = np.full(len(many.features), -1, np.int64)
        met = number(place, z, 0).tolist()
        row = np.zeros(len(many.features), np.int64)
        row[met] = [self.index.intern_row(many.features[i]) for i in met]
        found: Array = row[z]
        return found

    def _close(self, nodes: list[int], actions: Array, branches: Array, part: Part) -> None:
        """Appends the pointers of some cells."""
        cells = part.cells
        ends = cells.action_ptr[-1] + np.cumsum(actions, dtype=np.int64)
        cells.action_ptr.frombytes(ends.tobytes())
        ends = cells.branch_ptr[-1] + np.cumsum(branches, dtype=np.int64)
        cells.branch_ptr.frombytes(ends.tobytes())
        cells.node.extend(nodes)


def _settle(many: Many, place: int, action: Any, x: Array, y: Array) -> None:
    """Adds up branches of an action to the same y', and divides them by their sum."""
    columns = np.flatnonzero(many.action_of == place)
    here = many.on_offer[:, place]
    p = many.p[:, columns]
    total = p.sum(axis=1)
    off = here & ~(np.abs(total - 1) <= PROBABILITY_SLACK)
    if off.any():
        i = int(np.argmax(off))
        raise ModelError(
            f"the moves of step_many from x={x[i]}, y={y[i]} by {action!r} sum to "
            f"{float(total[i])!r}, not 1"
        )
    inexact = np.flatnonzero(here & (total != 1))
    exact = np.array([math.fsum(row) for row in p[inexact].tolist()])
    for later in range(1, len(columns)):
        for before in range(later):
            one, other = columns[before], columns[later]
            alike = (many.y[:, one] == many.y[:, other]) & (p[:, before] > 0) & (p[:, later] > 0)
            if not alike.any():
                continue
            if (many.z[alike, one] != many.z[alike, other]).any():
                raise ModelError("step_many: one y' has two features")
            p[alike, before] += p[alike, later]
            p[alike, later] = 0.0
    for i, mass in zip(inexact.tolist(), exact.tolist(), strict=True):
        if not -ROUNDING <= mass - 1 <= ROUNDING:
            p[i] /= mass
    many.p[:, columns] = p
