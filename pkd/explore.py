"""The one walk over the contract: every state, feature and move that can occur, and in which layer.

Layer t = h - 1 holds the states in which the h-th action is about to be chosen, with the CHANCE
states before it. After the last action comes the settlement, whose states are kept apart because
`last_step` rules there. Nothing unreachable is asked of the model, and each question is asked once.

The words block, node, cell and landing are explained in `pkd.graph`.

A worked example: x is a coin (0 or 1), y is `Queue((a,))`, the last action, and `step` returns
`[(1.0, queue.push(b).pop(), ("coin", queue.oldest))]`. An explicit walk finds 2 x 2 nodes, (0, (0)),
(0, (1)), (1, (0)), (1, (1)), with one cell each. With hidden queues there is one block (length 1) and
two nodes; `oldest` looks, so each node has a cell for the entry 0 and one for the entry 1. In the cell
of entry 0, action b leads to the landing {0, 1} x block with the back (b,).
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from pkd.graph import (
    CHANCE_STATE,
    CHANCES,
    DECIDE,
    LAST,
    SETTLED,
    STEP,
    STOP,
    Block,
    Cells,
    Graph,
    Mask,
    Side,
    grow_only,
    join_boxes,
    list_letters,
)
from pkd.limits import (
    VARIABLE,
    Progress,
    Ticker,
    TooLargeError,
    find_max_bytes,
    find_max_states,
    read_resident,
)
from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.queue import HOLE, Look, Veil, find_queue, get_part, hide, parts, replace_part

__all__ = ["QueuesMatterError", "TooManyStatesError", "explore", "has_queue", "overrides"]

PROBABILITY_SLACK = 1e-9
NO_ACTIONS = frozenset([None, CHANCE, END])  # what a list of actions must not hold
LOOKED = -1  # in place of a cell: the move looks at one more entry
MANY_BRANCHES, STATES_PER_BRANCH = 20_000, 3  # from so many branches on, states per branch that pay
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


class QueuesMatterError(Exception):
    """Hiding queues does not pay: moves look at too many entries."""


def explore(
    model: PartiallyKnownMDP,
    *,
    hide_queues: bool = False,
    max_states: int | None = None,
    strict: bool = True,
    progress: Progress | None = None,
) -> Graph:
    """The graph of everything that can be reached.

    hide_queues: walk over blocks instead of single y. max_states: nodes from which on the walk gives
    up with a `TooManyStatesError`; by default what PKD_MAX_STATES says, or what fits into half of the
    memory. strict: answers are checked as they are used; a model that breaks the contract gets the
    full report of `check_model`. progress: called with the number of nodes; by default a walk of
    more than two seconds is shown on the terminal.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> graph = explore(coin.model())
    >>> graph.n_states, graph.features, list(graph.decision_states(2))
    (2, [(0, 0), (0, 1), (1, 0), (1, 1)], [(0, None), (1, None)])
    """
    ticker, limits = Ticker(), (find_max_states(max_states), find_max_bytes(max_states))
    with _no_collection():
        try:
            return _Explorer(model, hide_queues, limits, strict, progress or ticker).run()
        except (QueuesMatterError, TooManyStatesError, MemoryError):
            raise
        except Exception:
            if strict:
                from pkd.check import explain

                explain(model)
            raise
        finally:
            ticker.close()


def has_queue(model: PartiallyKnownMDP) -> bool:
    """Whether the y of a start state holds a `Queue`."""
    try:
        start = model.start()
        states = list(start) if isinstance(start, Mapping) else [start]
    except Exception:  # noqa: BLE001 - the explorer asks again and says what is wrong
        return False
    return any(find_queue(state[1]) is not None for state in states if _is_pair(state))


def overrides(model: PartiallyKnownMDP, method: str) -> bool:
    """Whether the class of the model, or the object itself, has its own `method`."""
    return getattr(getattr(model, method), "__func__", None) is not getattr(
        PartiallyKnownMDP, method
    )


class _Part(NamedTuple):
    """Where the moves of one part start, where they lead, and which method answers for them."""

    cells: Cells
    origin: Side
    target: Side
    settles: bool  # whether the target is the settlement
    step: Callable[[Any, Any, Any], Iterable[Any]]


class _Explorer:
    def __init__(
        self,
        model: PartiallyKnownMDP,
        hidden: bool,
        limits: tuple[int, float],
        strict: bool,
        progress: Progress,
    ) -> None:
        horizon = model.horizon
        if strict and (isinstance(horizon, bool) or not _is_whole(horizon) or horizon < 1):
            raise ModelError(f"horizon is {horizon!r}, not a positive whole number")
        self.graph = Graph(model, int(horizon), hidden)
        self.model, self.hidden, self.strict = model, hidden, strict
        self.max_states, self.most_bytes = limits
        self.progress = progress
        self.veil = Veil()
        graph, cells = self.graph, self.graph.cells
        layers, settled = graph.layers, graph.settled
        self.parts = (
            _Part(cells[STEP], layers, layers, False, model.step),
            _Part(cells[LAST], layers, settled, True, model.last_step),
            _Part(cells[CHANCES], layers, layers, False, model.step),
            _Part(cells[SETTLED], settled, settled, True, model.last_step),
        )
        self.shares = overrides(model, "share")
        self.notes = overrides(model, "note")
        self.set_index: dict[tuple[Any, ...], int] = {}
        self.feature_index: dict[Any, int] = {}
        self.known_index: dict[Any, int] = {}
        self.reward_index: dict[Any, int] = {}
        self.note_index: dict[Any, int] = {}
        self.block_index = self.graph.block_index
        self.landing_index: dict[tuple[bool, int, int], int] = {}
        self.share_index: dict[Any, float] = {}
        self._letter_list: list[Any] = []
        self.columns = 0  # queues that the cells stand for
        self.asked = 0  # branches that were asked for
        self.n_nodes = 0
        self.layer = 1  # from which the walk goes on, counted from 1

    # -- layers --------------------------------------------------------------------------------------

    def run(self) -> Graph:
        graph = self.graph
        first = self._start()
        self._walk(first)
        last, self.layer = graph.members[-1], graph.horizon
        deciders = {node: mask for node, mask in last.items() if graph.layers.kind[node] == DECIDE}
        graph.ends = self._close(self._image(deciders, LAST), SETTLED)
        for layer in graph.members.distinct:
            self._stop(graph.layers, CHANCES, layer)
        self._stop(graph.settled, SETTLED, graph.ends)
        for cells in graph.cells:
            cells.finish()
        return graph

    def _start(self) -> dict[int, Mask]:
        graph, start = self.graph, self.model.start()
        layer: dict[int, Mask] = {}
        for state, p in start.items() if isinstance(start, Mapping) else [(start, 1.0)]:
            if self.strict and not _is_pair(state):
                raise ModelError(f"start() gives {state!r}, not a pair (x, y)")
            x, y = state
            if self.strict and not p >= 0:
                raise ModelError(f"start() gives {state!r} the probability {p!r}")
            if p > 0:
                block, entries = self._place(y)
                node = self._node(graph.layers, x, block)
                graph.start.append((node, entries, float(p)))
                self._add(layer, {node: {tuple(1 << self._letter(v) for v in entries)}})
        total = math.fsum(p for *_, p in graph.start)
        if self.strict and abs(total - 1) > PROBABILITY_SLACK:
            raise ModelError(f"start() sums to {total!r}, not 1")
        return layer

    def _walk(self, layer: dict[int, Mask]) -> None:
        """Layers S_t = F(S_{t-1}). If layers only grow, F is asked of what is new alone."""
        graph = self.graph
        layer = fresh = self._close(layer, CHANCES)
        known, grows = graph.members.distinct, False
        known.append(layer)
        # Layers by their hash: comparing each with all before it would be quadratic in the horizon.
        alike = {_hash_layer(layer): [0]}
        for t in range(1, graph.horizon):
            image = self._image(fresh, STEP)
            self.layer = t + 1
            image, before = self._close(image, CHANCES), layer
            if grows:
                layer = dict(before)
                self._add(layer, {node: {mask} for node, mask in image.items()})
            else:
                layer = image
            grows = grows or grow_only(before, layer)
            fresh = {n: m for n, m in layer.items() if before.get(n) != m} if grows else layer
            if not fresh:
                return
            same_hash = alike.setdefault(_hash_layer(layer), [])
            repeated = next((s for s in reversed(same_hash) if known[s] == layer), None)
            if repeated is not None:  # a season: from here on layers repeat with this period
                graph.members.period = t - repeated
                return
            known.append(layer)
            same_hash.append(t)

    def _image(self, nodes: dict[int, Mask], part: int) -> dict[int, Mask]:
        """Where one action leads. An END stays where it is, which keeps layers growing."""
        kind = self.graph.layers.kind
        reached: dict[int, set[Mask]] = {}
        found: set[int] = set()
        image: dict[int, Mask] = {}
        for node, mask in nodes.items():
            if kind[node] == DECIDE:
                self._follow(node, mask, part, found, reached)
            elif kind[node] == STOP:
                image[node] = mask
        self._land(image, found, reached)
        return image

    def _close(self, nodes: dict[int, Mask], part: int) -> dict[int, Mask]:
        """The nodes with all that their CHANCE states lead to."""
        side = self.parts[part].origin
        closed, fresh = dict(nodes), nodes
        while True:
            reached: dict[int, set[Mask]] = {}
            found: set[int] = set()
            for node, mask in fresh.items():
                if side.kind[node] == CHANCE_STATE:
                    self._follow(node, mask, part, found, reached)
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
        self, node: int, mask: Mask, part: int, found: set[int], reached: dict[int, set[Mask]]
    ) -> None:
        """Asks for the moves of a node. `found`: landings of single y; `reached`: boxes of queues."""
        cells = self.graph.cells[part]
        if not self.hidden:
            cell = cells.made.get(node)
            if cell is None:
                cell = cells.made[node] = self._ask(node, (), self.parts[part])
            lo, hi = (
                cells.branch_ptr[cells.action_ptr[cell]],
                cells.branch_ptr[cells.action_ptr[cell + 1]],
            )
            if hi - lo == 1:
                found.add(cells.landing[lo])
            else:
                found.update(cells.landing[lo:hi])
            return
        for prefix, cell in self._split(node, mask, part):
            rest = mask[len(prefix) :]
            for k in cells.branches(cell):
                front, back = cells.ends[k]
                letters = self._bits(front), self._bits(back)
                kept = len(self._blocks(cells.landing[k])) - len(front) - len(back)
                box = (*letters[0], *(rest if kept else ()), *letters[1])
                if box:
                    reached.setdefault(cells.landing[k], set()).add(box)
                else:
                    found.add(cells.landing[k])

    def _blocks(self, landing: int) -> range:
        return range(self.graph.blocks[self.graph.landing_block[landing]].length)

    def _bits(self, entries: tuple[Any, ...]) -> Mask:
        return tuple(1 << self._letter(entry) for entry in entries) if entries else ()

    def _land(self, image: dict[int, Mask], found: set[int], reached: dict[int, set[Mask]]) -> None:
        landings = self.graph.landings
        for landing in found:
            image.update(dict.fromkeys(landings[landing], ()))
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

    # -- cells ---------------------------------------------------------------------------------------

    def _split(self, node: int, mask: Mask, part: int) -> Iterator[tuple[tuple[Any, ...], int]]:
        """The cells of a node: as many oldest entries as its move looks at get their values."""
        letters = self._letter_list
        todo: list[tuple[Any, ...]] = [()]
        for prefix in todo:  # grows
            cell = self._cell(node, prefix, part)
            if cell != LOOKED:
                yield prefix, cell
                continue
            if len(prefix) >= len(mask):
                raise QueuesMatterError("a move reads a queue that has no such entry")
            todo += [(*prefix, letters[i]) for i in list_letters(mask[len(prefix)])]

    def _cell(self, node: int, prefix: tuple[Any, ...], number: int) -> int:
        part = self.parts[number]
        made = part.cells.made
        key = (node, prefix) if prefix else node
        found = made.get(key)
        if found is None:
            found = made[key] = self._ask(node, prefix, part)
        return found

    def _ask(self, node: int, prefix: tuple[Any, ...], part: _Part) -> int:
        """Asks the model for the moves of a cell and writes them down."""
        cells, origin = part.cells, part.origin
        x, block = origin.x[node], self.graph.blocks[origin.block[node]]
        if not self.hidden:
            self._write(node, prefix, part, x, block.y)
            return len(cells.node) - 1
        hidden = block.length - len(prefix)
        marks = len(cells.node), len(cells.reward), len(cells.p)
        self.veil.looked = False
        try:
            self._write(node, prefix, part, x, block.fill(hide(prefix, hidden, self.veil)))
        except Look:
            self.veil.looked = True
        except Exception:
            if not self.veil.looked:
                raise
        if self.veil.looked:
            cells.cut(*marks)
            return LOOKED
        self.columns += max(len(self.graph.letters), 1) ** hidden
        self.asked += len(cells.p) - marks[2]
        if self.asked > MANY_BRANCHES and self.columns < STATES_PER_BRANCH * self.asked:
            raise QueuesMatterError("moves look at nearly all entries")
        return len(cells.node) - 1

    def _write(self, node: int, prefix: tuple[Any, ...], part: _Part, x: Any, y: Any) -> None:
        """Writes down the moves of one cell. This is the hot loop of every explicit walk."""
        cells, origin, _, _, step = part
        strict, reward_of = self.strict, self.model.reward
        if origin.kind[node] == STOP:
            final = self.model.final(x, y)
            self._write_action(cells, final)
            if strict and not (_is_number(final) and math.isfinite(final)):
                raise ModelError(f"final(x={x!r}, y={y!r}) is {final!r}, not a finite number")
        else:
            choices = origin.choices[node]
            for action in (None,) if choices is None else choices:
                total = self._write_branches(part, step(x, y, action), prefix)
                if strict and not -PROBABILITY_SLACK <= total - 1 <= PROBABILITY_SLACK:
                    raise ModelError(
                        f"the moves from x={x!r}, y={y!r} by {action!r} sum to {total!r}, not 1"
                    )
                reward = reward_of(x, y, action)
                if type(reward) is not float or reward - reward != 0.0 or self.notes:
                    reward = self._read_reward(cells, reward, x, y, action)
                cells.reward.append(reward)
                cells.branch_ptr.append(len(cells.p))
        cells.action_ptr.append(len(cells.reward))
        cells.node.append(node)
        if self.hidden:
            cells.prefix.append(prefix)

    def _read_reward(self, cells: Cells, reward: Any, x: Any, y: Any, action: Any) -> float:
        """The known part of a reward; an unknown part and a note are written down."""
        mean = note = -1
        if isinstance(reward, UnknownReward):
            mean = _intern(self.reward_index, self.graph.rewards, reward.feature, reward)
            first = self.graph.rewards[mean]
            numbers = _is_number(first.low) and _is_number(first.high)
            if self.strict and not (
                numbers
                and -math.inf < first.low <= first.high < math.inf
                and (first.low, first.high) == (reward.low, reward.high)
            ):
                raise ModelError(
                    f"reward feature {reward.feature!r} has the ranges {first!r} and {reward!r}"
                )
            reward = 0.0
        elif self.strict and not (_is_number(reward) and math.isfinite(reward)):
            raise ModelError(
                f"reward(x={x!r}, y={y!r}, a={action!r}) is {reward!r}, not a finite number"
            )
        if self.notes:
            said = self.model.note(x, y, action)
            note = -1 if said is None else _intern(self.note_index, self.graph.notes, said, said)
        if mean >= 0 or note >= 0:
            cells.said[len(cells.reward)] = (mean, note)
        return float(reward)

    @staticmethod
    def _write_action(cells: Cells, reward: float) -> None:
        cells.reward.append(reward)
        cells.branch_ptr.append(len(cells.p))

    def _write_branches(
        self, part: _Part, branches: Iterable[Any], prefix: tuple[Any, ...]
    ) -> float:
        """Writes the branches of one action; returns their probability."""
        cells, graph, block_index, settles = part.cells, self.graph, self.block_index, part.settles
        total, first = 0.0, len(cells.p)
        if self.strict and type(branches) is not list and isinstance(branches, Mapping):
            raise ModelError(f"a step is the mapping {branches!r}, not a list of branches")
        for p, y_next, z in branches:
            if p > 0:
                total += p
                if type(z) is Known:
                    known = self.known_index.get(z.law)
                    row = self._row(z) if known is None else -1 - known
                else:
                    row = self._row(z)
                if self.hidden:
                    block, front, back = self._placed(y_next)
                    cells.ends.append((front, back))
                else:
                    found = block_index.get(y_next)
                    block = self._block(y_next, Block(y_next, None, 0)) if found is None else found
                outcomes = graph.feature_set[row] if row >= 0 else graph.known_set[-1 - row]
                key = (settles, outcomes, block)
                landing = self.landing_index.get(key)
                cells.landing.append(
                    self._land_on(part.target, key) if landing is None else landing
                )
                cells.p.append(p)
                cells.row.append(row)
                if self.shares:
                    cells.share.append(self._share(z, y_next, row, block, cells))
            elif self.strict and not p >= 0:
                raise ModelError(f"a branch has the probability {p!r}")
        if self.strict and len(cells.p) - first > 1:
            return self._merge(cells, first)
        return total

    def _merge(self, cells: Cells, first: int) -> float:
        """One branch for each y': two branches to the same y' must have one feature, and add up."""
        p, seen = cells.p, dict[Any, int]()
        total = math.fsum(p[first:])
        for k in range(first, len(p)):
            key = (
                self.graph.landing_block[cells.landing[k]],
                cells.ends[k] if self.hidden else None,
            )
            before = seen.setdefault(key, k)
            if before != k:
                if not self._same_law(cells.row[before], cells.row[k]):
                    raise ModelError("one y' has two features")
                p[before] += p[k]
        if len(seen) < len(p) - first:
            cells.keep(first, list(seen.values()))
        return total

    def _same_law(self, one: int, other: int) -> bool:
        known = self.graph.known
        both = one < 0 and other < 0
        return one == other or (both and dict(known[-1 - one].law) == dict(known[-1 - other].law))

    def _share(self, z: Any, y: Any, row: int, block: int, cells: Cells) -> float:
        if row < 0:
            return math.nan
        key = (row, block, cells.ends[-1]) if self.hidden else (row, block)
        if key not in self.share_index:
            share = self.model.share(z, y)
            if self.strict and share is not None and not (_is_number(share) and 0 < share <= 1):
                raise ModelError(
                    f"share(z={z!r}, y={y!r}) is {share!r}; expected None or a number in (0, 1]"
                )
            self.share_index[key] = math.nan if share is None else float(share)
        return self.share_index[key]

    # -- nodes, blocks, rows -------------------------------------------------------------------------

    def _land_on(self, side: Side, key: tuple[bool, int, int]) -> int:
        """A new landing: a set of outcomes with a block."""
        graph, (settles, outcomes, block) = self.graph, key
        nodes = [self._node(side, x, block) for x in graph.sets[outcomes]]
        self.landing_index[key] = len(graph.landings)
        graph.landings.append(nodes)
        graph.landing_block.append(block)
        graph.settling.append(settles)
        return len(graph.landings) - 1

    def _node(self, side: Side, x: Any, block: int) -> int:
        nodes = side.of_block.setdefault(block, {})
        node = nodes.get(x)
        if node is not None:
            return node
        kind, choices = self._kind(x, self.graph.blocks[block])
        if side is self.graph.settled and kind == DECIDE:
            kind, choices = STOP, None
        nodes[x] = node = len(side.x)
        side.x.append(x)
        side.block.append(block)
        side.kind.append(kind)
        side.choices.append(choices)
        self.n_nodes += 1
        if (
            node >= self.max_states
        ):  # a state may be in the layers and in the settlement: not counted twice
            found, state = self.max_states, (x, self.graph.blocks[block].y)
            raise TooManyStatesError(f"more than {found} states can be reached", self.layer, state)
        if self.n_nodes % REPORT_NODES == 0:
            self._report(x, block)
        return node

    def _report(self, x: Any, block: int) -> None:
        """Tells how far the walk is, and stops it before the memory of the machine is used up."""
        self.progress(self.n_nodes)
        held = read_resident()
        if held > self.most_bytes:
            raise TooManyStatesError(
                f"{self.n_nodes} states were found and {held / 1e9:.3g} GB of memory are in use",
                self.layer,
                (x, self.graph.blocks[block].y),
            )

    def _kind(self, x: Any, block: Block) -> tuple[int, Any]:
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
                raise QueuesMatterError("what a state is depends on the entries of its queue")
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

    def _row(self, z: Any) -> int:
        graph = self.graph
        if isinstance(z, Known):
            found = self.known_index.get(z.law)
            if found is None:
                total = math.fsum(p for _, p in z.law)
                if self.strict and (
                    abs(total - 1) > PROBABILITY_SLACK or not all(p >= 0 for _, p in z.law)
                ):
                    raise ModelError(f"{z!r} does not sum to 1")
                found = self.known_index[z.law] = len(graph.known)
                graph.known.append(z)
                graph.known_set.append(self._set(tuple(x for x, p in z.law if p > 0)))
            return -1 - found
        row = self.feature_index.get(z)
        if row is None:
            answer = self.model.outcomes(z)
            states = tuple(answer)
            if self.strict and (
                not states or len(set(states)) < len(states) or isinstance(answer, Mapping)
            ):
                raise ModelError(
                    f"outcomes({z!r}) is {states!r}: expected distinct values, at least one"
                )
            row = self.feature_index[z] = len(graph.features)
            graph.features.append(z)
            graph.feature_set.append(self._set(states))
        return row

    def _set(self, states: tuple[Any, ...]) -> int:
        return _intern(self.set_index, self.graph.sets, states, states)

    def _place(self, y: Any) -> tuple[int, tuple[Any, ...]]:
        """The block of a given y, and the entries of its queue where queues are hidden."""
        if self.hidden:
            block, front, back = self._placed(y)
            return block, front + back
        return self._block(y, Block(y, None, 0)), ()

    def _placed(self, y: Any) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
        """(block, front, back): the entries of its queue before and after those that stay hidden."""
        path = find_queue(y)
        if path is None:
            found = self.block_index.get(y)
            return self._block(y, Block(y, None, 0)) if found is None else found, (), ()
        queue = get_part(y, path)
        front, hidden, back, dropped = parts(queue)
        if dropped and hidden:  # some were popped unread, some stay: columns would not move evenly
            raise self.veil.look()
        holed = replace_part(y, path, HOLE)
        for entry in (*front, *back):
            self._letter(entry)
        key = (holed, len(queue))
        found = self.block_index.get(key)
        if found is None:
            found = self._block(key, Block(holed, path, len(queue)))
        return found, front, back

    def _block(self, key: Any, block: Block) -> int:
        return _intern(self.block_index, self.graph.blocks, key, block)

    def _letter(self, entry: Any) -> int:
        return _intern(self.graph.letters, self._letter_list, entry, entry)

    def _stop(self, side: Side, part: int, nodes: dict[int, Mask]) -> None:
        """Asks what the STOP states among some nodes pay."""
        for node, mask in nodes.items():
            if side.kind[node] == STOP:
                for _ in self._split(node, mask, part):
                    pass


def _hash_layer(layer: dict[int, Mask]) -> int:
    return hash(frozenset(layer.items()))


def _intern(index: dict[Any, int], values: list[Any], key: Any, value: Any) -> int:
    found = index.get(key)
    if found is None:
        found = index[key] = len(values)
        values.append(value)
    return found


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) or isinstance(value, Real)


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switches the collector of cycles off: it would look again and again at objects that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
