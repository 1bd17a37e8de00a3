"""The walk over layers: which nodes can be met before each action, and after the last one.

The nodes of a layer are asked in the order of their numbers, so that all numbers follow from the
model alone: `pkd.engine.table` finds the same ones from the arrays of a table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from pkd.explore.graph import (
    CHANCE_STATE,
    CHANCES,
    DECIDE,
    LAST,
    SETTLED,
    STEP,
    STOP,
    Graph,
    Grown,
    Mask,
    Side,
    grow_only,
    join_boxes,
)
from pkd.explore.index import PROBABILITY_SLACK, Index, Manner, is_pair
from pkd.explore.many import ManyIndex, ManyReader, answers_many
from pkd.explore.reader import Reader
from pkd.model import ModelError, PartiallyKnownMDP, normalise


def read_start(
    model: PartiallyKnownMDP, *, strict: bool = True
) -> list[tuple[tuple[Any, Any], float]]:
    """The start states (x, y) with their probabilities, those of probability 0 left out."""
    start, found = model.start(), list[tuple[Any, float]]()
    for state, p in start.items() if isinstance(start, Mapping) else [(start, 1.0)]:
        if strict and not is_pair(state):
            raise ModelError(f"start() gives {state!r}, not a pair (x, y)")
        if strict and not p >= 0:
            raise ModelError(f"start() gives {state!r} the probability {p!r}")
        if p > 0:
            found.append((state, float(p)))
    total = math.fsum(p for _, p in found)
    if strict and abs(total - 1) > PROBABILITY_SLACK:
        raise ModelError(f"start() sums to {total!r}, not 1")
    masses = normalise(p for _, p in found) if strict else [p for _, p in found]
    return [(state, p) for (state, _), p in zip(found, masses, strict=True)]


def walk(model: PartiallyKnownMDP, manner: Manner, progress: Callable[[int], Any]) -> Graph:
    """The graph of a model: its layers from the start on, then the settlement."""
    index: Index
    reader: Reader
    if manner.strict and answers_many(model, manner.hidden):
        index = many = ManyIndex(model, manner, progress)
        reader = ManyReader(many)
    else:
        index = Index(model, manner, progress)
        reader = Reader(index)
    walker, graph = _Walker(index, reader), index.graph
    walker.walk(walker._read_start())
    last, index.layer = graph.members[-1], graph.horizon
    deciders = {node: mask for node, mask in last.items() if graph.layers.kind[node] == DECIDE}
    graph.ends = walker._close(walker._find_image(deciders, LAST), SETTLED)
    for layer in graph.members.distinct:
        new = dict.fromkeys(layer.new, ()) if isinstance(layer, Grown) else layer
        walker._ask_stops(graph.layers, CHANCES, new)
    walker._ask_stops(graph.settled, SETTLED, graph.ends)
    for cells in graph.cells:
        cells.finish()
    return graph


class _Walker:
    """Goes from layer to layer; the reader answers what follows a node."""

    def __init__(self, index: Index, reader: Reader) -> None:
        self.index, self.reader, self.graph = index, reader, index.graph
        self._bits: dict[tuple[Any, ...], Mask] = {(): ()}  # entries -> their letters as bits

    def _read_start(self) -> dict[int, Mask]:
        graph, layer = self.graph, dict[int, Mask]()
        for (x, y), p in read_start(self.index.model, strict=self.index.strict):
            block, entries = self.index.place(y)
            [node] = self.index.intern_nodes(graph.layers, [x], block)
            graph.start.append((node, entries, p))
            self._add(layer, {node: {self._to_bits(entries)}})
        return layer

    def walk(self, layer: dict[int, Mask]) -> None:
        """Layers S_t = F(S_{t-1}). If layers only grow, expand only the new nodes."""
        graph = self.graph
        layer = fresh = self._close(layer, CHANCES)
        known = graph.members.distinct
        known.append(layer)
        # Layers by their hash: comparing each with all before it would be quadratic.
        alike = {_hash_layer(layer): [0]}
        for t in range(1, graph.horizon):
            image = self._find_image(fresh, STEP)
            self.index.layer = t + 1
            layer, before = self._close(image, CHANCES), layer
            if grow_only(before, layer):
                return self._grow(before, layer, t)
            fresh = layer
            same_hash = alike.setdefault(_hash_layer(layer), [])
            repeated = next((s for s in reversed(same_hash) if known[s] == layer), None)
            if repeated is not None:  # a season: from here on layers repeat with this period
                graph.members.period = t - repeated
                return None
            known.append(layer)
            same_hash.append(t)
        return None

    def _grow(self, before: Mapping[int, Mask], first: dict[int, Mask], t: int) -> None:
        """Layers t, t + 1, ..., which only grow: a node of layer t was in layer t - 1, or is new.

        Without queues a layer is stored as its new nodes.
        """
        known, hidden = self.graph.members.distinct, self.index.hidden
        layer: Mapping[int, Mask] = first
        grown = None if hidden else Grown.start(before)
        while True:
            fresh = {n: m for n, m in layer.items() if before.get(n) != m}
            if not fresh:
                return
            if grown is None:
                known.append(layer)
                before = layer
            else:
                before = grown = grown.add(fresh)
                known.append(grown)
            t += 1
            if t == self.graph.horizon:
                return
            image = self._find_image(fresh, STEP)
            self.index.layer = t + 1
            if not hidden:  # what follows an old node is old
                image = {node: mask for node, mask in image.items() if node not in before}
            layer = image = self._close(image, CHANCES)
            if hidden:
                layer = joined = dict(before)
                self._add(joined, {node: {mask} for node, mask in image.items()})

    def _find_image(self, nodes: dict[int, Mask], part: int) -> dict[int, Mask]:
        """Where one action leads. An END stays where it is, which keeps layers growing."""
        kind = self.graph.layers.kind
        image = {node: mask for node, mask in nodes.items() if kind[node] == STOP}
        self._land(image, *self._follow(nodes, DECIDE, part))
        return image

    def _close(self, nodes: dict[int, Mask], part: int) -> dict[int, Mask]:
        """The nodes with all that their CHANCE states lead to."""
        closed, fresh = dict(nodes), nodes
        while True:
            found, reached = self._follow(fresh, CHANCE_STATE, part)
            if not found and not reached:
                return closed
            image: dict[int, Mask] = {}
            self._land(image, found, reached)
            fresh = {}
            for node, mask in image.items():
                before = closed.get(node)
                if before is None:
                    closed[node] = fresh[node] = mask
                elif before != mask:
                    self._add(closed, {node: {mask}})
                    if closed[node] != before:
                        fresh[node] = closed[node]
            if not fresh:
                return closed

    def _follow(
        self, nodes: dict[int, Mask], kind: int, part: int
    ) -> tuple[set[int], dict[int, set[Mask]]]:
        """Asks for the moves of the nodes of one kind.

        Returns (landings of single y, boxes of queues by landing).
        """
        found: set[int] = set()
        reached: dict[int, set[Mask]] = {}
        kinds = self.reader.parts[part].origin.kind
        mine = sorted(node for node in nodes if kinds[node] == kind)
        if self.index.hidden:
            for node in mine:
                self._follow_hidden(node, nodes[node], part, found, reached)
            return found, reached
        cells, made = self.graph.cells[part], self.reader.parts[part].made
        for node in mine:
            if node in made:  # asked for in an earlier layer
                branches = cells.branches(made[node])
                found.update(cells.landing[branches.start : branches.stop])
        first = len(cells.landing)
        self.reader.ask_all([node for node in mine if node not in made], self.reader.parts[part])
        found.update(cells.landing[first:])
        return found, reached

    def _follow_hidden(
        self, node: int, mask: Mask, part: int, found: set[int], reached: dict[int, set[Mask]]
    ) -> None:
        """Adds what the moves of a node with hidden entries lead to."""
        cells = self.graph.cells[part]
        graph, to_bits = self.graph, self._to_bits
        for prefix, cell in self.reader.split(node, mask, part):
            rest = mask[len(prefix) :]
            for k in cells.branches(cell):
                (front, back), landing = cells.ends[k], cells.landing[k]
                block = graph.landing_block[landing]
                kept = graph.blocks[block].length - len(front) - len(back)
                box = to_bits(front) + (rest if kept else ()) + to_bits(back)
                if self.reader.shares and cells.row[k] >= 0:
                    share = -1.0 if math.isnan(cells.share[k]) else cells.share[k]
                    graph.shared.setdefault((cells.row[k], block, share), set()).add(box)
                if box:
                    reached.setdefault(landing, set()).add(box)
                else:
                    found.add(landing)

    def _to_bits(self, entries: tuple[Any, ...]) -> Mask:
        bits = self._bits.get(entries)
        if bits is None:
            bits = tuple(1 << self.index.intern_letter(entry) for entry in entries)
            self._bits[entries] = bits
        return bits

    def _land(self, image: dict[int, Mask], found: set[int], reached: dict[int, set[Mask]]) -> None:
        landings = self.graph.landings
        nodes = chain.from_iterable(map(landings.__getitem__, found))
        image.update(dict.fromkeys(nodes, ()))
        if reached:
            boxes: dict[int, set[Mask]] = {}
            for landing, masks in reached.items():
                joined, exact = join_boxes(masks)
                for node in landings[landing]:
                    boxes.setdefault(node, set()).update([joined] if exact else masks)
            self._add(image, boxes)

    def _add(self, layer: dict[int, Mask], boxes: dict[int, set[Mask]]) -> None:
        """Adds boxes of queues to what nodes can hold; notes where the union is no box."""
        for node, masks in boxes.items():
            if node in layer:
                masks = {*masks, layer[node]}
            joined, exact = join_boxes(masks)
            layer[node] = joined
            self.graph.exact &= exact

    def _ask_stops(self, side: Side, part: int, nodes: Mapping[int, Mask]) -> None:
        """Asks what the STOP states among some nodes pay."""
        stops = [node for node in sorted(nodes) if side.kind[node] == STOP]
        if not self.index.hidden:
            made = self.reader.parts[part].made
            fresh = [node for node in stops if node not in made]
            self.reader.ask_all(fresh, self.reader.parts[part])
            return
        for node in stops:
            for _ in self.reader.split(node, nodes[node], part):
                pass


def _hash_layer(layer: Mapping[int, Mask]) -> int:
    return hash(frozenset(layer.items()))
