"""Numbers what a walk meets, each thing once: nodes, blocks, letters, law rows, outcomes, landings.

`Index` holds the graph while it grows. It asks the model only what belongs to one thing: the
actions of a state, the outcomes of a feature. `pkd.explore.reader` asks for moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from numbers import Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from pkd.expect import require, whole
from pkd.explore.graph import CHANCE_STATE, DECIDE, STOP, Block, Graph, QueuesMatterError, Side
from pkd.explore.limits import VARIABLE, TooLargeError, read_resident, refuse_steps
from pkd.families import Family
from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, normalise
from pkd.queue import HOLE, Look, Veil, find_queue, get_part, hide, parts, replace_part

__all__ = [
    "PROBABILITY_SLACK",
    "Index",
    "Manner",
    "QueuesMatterError",
    "TooManyStatesError",
    "intern",
    "is_number",
    "is_pair",
    "overrides",
]


PROBABILITY_SLACK = 1e-9
NO_ACTIONS = frozenset([None, CHANCE, END])  # what a list of actions must not hold
REPORT_NODES = 1 << 14  # nodes between two calls of `progress`


class TooManyStatesError(TooLargeError):
    """A model has more states than the walk may hold: `layer` and `state` say where it stopped."""

    def __init__(self, found: str, layer: int, state: tuple[Any, Any]) -> None:
        x, y = self.state = state
        self.layer = layer
        super().__init__(
            f"{found} by step {layer}, the next one (x={x!r}, y={y!r}). Give a smaller model, or "
            f"raise the limit by max_states=... or by the environment variable {VARIABLE}"
        )


def overrides(model: PartiallyKnownMDP, method: str) -> bool:
    """Whether the class of the model, or the object itself, has its own `method`."""
    return getattr(getattr(model, method), "__func__", None) is not getattr(
        PartiallyKnownMDP, method
    )


class Manner(NamedTuple):
    """How a walk goes: see `pkd.explore.explore`."""

    hidden: bool
    max_states: int
    most_bytes: float
    strict: bool


class Index:
    """The graph of a model while it grows, with an index of everything in it."""

    def __init__(
        self, model: PartiallyKnownMDP, manner: Manner, progress: Callable[[int], Any]
    ) -> None:
        horizon, hidden, strict = model.horizon, manner.hidden, manner.strict
        if strict:
            require(whole("horizon", horizon, least=1))
        refuse_steps(horizon)
        self.graph = Graph(model, int(horizon), hidden)
        self.model, self.hidden, self.strict, self.manner = model, hidden, strict, manner
        self.progress = progress
        self.veil = Veil()
        self.features: list[Any] = []
        self.graph.features = self.features
        self.set_index: dict[tuple[Any, ...], int] = {}
        self.feature_index: dict[Any, int] = {}
        self.known_index: dict[Any, int] = {}  # law -> row
        self.block_index = self.graph.block_index
        # [of the settlement][set of outcomes]: block -> landing
        self.landing_index: tuple[list[dict[int, int]], ...] = ([], [])
        self.letter_list: list[Any] = []
        self.n_nodes = 0
        self.layer = 1  # from which the walk goes on, counted from 1

    def stop_at_look(self) -> None:
        """Raises the `Look` again that a bare `except` of the model has swallowed."""
        if self.veil.looked:
            raise Look

    def intern_landing(self, side: Side, settles: bool, outcomes: int, block: int) -> int:
        """A new landing: a set of outcomes with a block."""
        graph = self.graph
        nodes = self.intern_nodes(side, graph.sets[outcomes], block)
        self.landing_index[settles][outcomes][block] = len(graph.landings)
        graph.landings.append(nodes)
        graph.landing_block.append(block)
        graph.settling.append(settles)
        return len(graph.landings) - 1

    def intern_nodes(self, side: Side, states: Iterable[Any], block: int) -> list[int]:
        """The nodes of some x with one block."""
        known = side.of_block.setdefault(block, {})
        settled, place = side is self.graph.settled, self.graph.blocks[block]
        nodes = []
        for x in states:
            node = known.get(x)
            if node is None:
                kind, choices = self._read_kind(x, place)
                if settled and kind == DECIDE:
                    kind, choices = STOP, None
                known[x] = node = len(side.x)
                side.x.append(x)
                side.block.append(block)
                side.kind.append(kind)
                side.choices.append(choices)
                self._count_node(node, x, place)
            nodes.append(node)
        return nodes

    def _count_node(self, node: int, x: Any, block: Block) -> None:
        """Stops the walk at its limits, and tells how far it is."""
        self.n_nodes += 1
        # Counted per side: a state may be in the layers and in the settlement.
        if node >= self.manner.max_states:
            self.stop_at(x, block.y)
        if self.n_nodes % REPORT_NODES == 0:
            self.progress(REPORT_NODES)
            self.watch_memory(x, block.y)

    def stop_at(self, x: Any, y: Any) -> None:
        """Gives up: there are too many states."""
        found = f"more than {self.manner.max_states} states can be reached"
        raise TooManyStatesError(found, self.layer, (x, y))

    def watch_memory(self, x: Any, y: Any) -> None:
        """Gives up if the process holds too much memory."""
        held = read_resident()
        if held > self.manner.most_bytes:
            found = f"{self.n_nodes} states were found"
            found += f" and {held / 1e9:.3g} GB of memory are in use"
            raise TooManyStatesError(found, self.layer, (x, y))

    def _read_kind(self, x: Any, block: Block) -> tuple[int, Any]:
        if self.hidden and block.path is not None:
            looked, self.veil.looked = self.veil.looked, False
            try:
                actions = self.model.actions(x, block.fill(hide((), block.length, self.veil)))
            except Look:
                self.veil.looked = True
            except Exception:
                if not self.veil.looked:
                    raise
            if self.veil.looked:
                raise QueuesMatterError(
                    f"actions(x={x!r}, y={block.y!r}) reads entries of the queue"
                )
            self.veil.looked = looked
        else:
            actions = self.model.actions(x, block.y)
        if actions is CHANCE:
            return CHANCE_STATE, None
        if actions is END:
            return STOP, None
        if self.strict:
            sequence = type(actions) is list or (
                isinstance(actions, Sequence | np.ndarray) and not isinstance(actions, str | bytes)
            )
            distinct = set(actions) if sequence else set()
            if not distinct or len(distinct) < len(actions) or not distinct.isdisjoint(NO_ACTIONS):
                raise ModelError(f"actions(x={x!r}, y={block.y!r}) is {actions!r}")
        return DECIDE, actions

    def intern_row(self, z: Any) -> int:
        graph = self.graph
        if isinstance(z, Known):
            row = self.known_index.get(z.law)
            if row is None:
                total = math.fsum(p for _, p in z.law)
                if self.strict and (
                    abs(total - 1) > PROBABILITY_SLACK or not all(p >= 0 for _, p in z.law)
                ):
                    raise ModelError(f"{z!r} does not sum to 1")
                row = self.known_index[z.law] = -1 - len(graph.known)
                if self.strict:
                    masses = normalise(p for _, p in z.law)
                    z = Known({x: p for (x, _), p in zip(z.law, masses, strict=True)})
                graph.known.append(z)
                graph.known_set.append(self._intern_set(tuple(x for x, p in z.law if p > 0)))
            return row
        row = self.feature_index.get(z)
        if row is None:
            answer = self.model.outcomes(z)
            limit = self.manner.max_states
            states = tuple(islice(answer, limit + 1))
            if len(states) > limit:
                raise ModelError(f"outcomes({z!r}) lists more than {limit} values, too many states")
            if self.strict and (
                not states or len(set(states)) < len(states) or isinstance(answer, Mapping)
            ):
                raise ModelError(
                    f"outcomes({z!r}) is {states!r}: expected distinct values, at least one"
                )
            row = self.feature_index[z] = len(self.features)
            self.features.append(z)
            if isinstance(answer, Family):
                graph.families[row] = answer
            graph.feature_set.append(self._intern_set(states))
        return row

    def _intern_set(self, states: tuple[Any, ...]) -> int:
        found = intern(self.set_index, self.graph.sets, states, states)
        if found == len(self.landing_index[0]):
            for side in self.landing_index:
                side.append({})
        return found

    def place(self, y: Any) -> tuple[int, tuple[Any, ...]]:
        """The block of a given y, and the entries of its queue where queues are hidden."""
        if self.hidden:
            block, front, back = self.place_hidden(y)
            return block, front + back
        return self.place_plain(y), ()

    def place_hidden(self, y: Any) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
        """(block, front, back): the queue's entries before and after the hidden ones."""
        path = find_queue(y)
        if path is None:
            found = self.block_index.get(y)
            return self.place_plain(y) if found is None else found, (), ()
        queue = get_part(y, path)
        front, hidden, back, dropped = parts(queue)
        if dropped and hidden:  # some were popped unread, some stay: columns would not move evenly
            raise self.veil.look()
        holed = replace_part(y, path, HOLE)
        letters = self.graph.letters
        for entry in front + back:
            if entry not in letters:
                self.intern_letter(entry)
        key = (holed, len(queue))
        found = self.block_index.get(key)
        if found is None:
            found = self._intern_block(key, Block(holed, path, len(queue)))
        return found, front, back

    def place_plain(self, y: Any) -> int:
        """The block of one y."""
        return self._intern_block(y, Block(y, None, 0))

    def _intern_block(self, key: Any, block: Block) -> int:
        return intern(self.block_index, self.graph.blocks, key, block)

    def intern_letter(self, entry: Any) -> int:
        return intern(self.graph.letters, self.letter_list, entry, entry)


def intern(index: dict[Any, int], values: list[Any], key: Any, value: Any) -> int:
    """The number of a key; a new key gets the next one, and its value joins the list."""
    found = index.get(key)
    if found is None:
        found = index[key] = len(values)
        values.append(value)
    return found


def is_pair(value: object) -> TypeGuard[tuple[Any, Any]]:
    return isinstance(value, tuple) and len(value) == 2


def is_number(value: object) -> TypeGuard[float]:
    # The slow test comes last.
    return isinstance(value, float | int) or isinstance(value, Real)  # noqa: SIM101
