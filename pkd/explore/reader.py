"""Asks a model what follows a state, and stores every answer once.

`Reader` holds the graph while it grows: it numbers nodes, blocks, letters, law rows, sets of
outcomes and landings, and writes the moves of a cell into arrays. Nothing is asked twice.
`pkd.explore.walk` says of which cells the moves are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from pkd.graph import (
    CHANCE_STATE,
    CHANCES,
    DECIDE,
    LAST,
    SETTLED,
    STEP,
    STOP,
    WORTH_HIDING,
    Block,
    Cells,
    Graph,
    Mask,
    Side,
    list_letters,
)
from pkd.limits import VARIABLE, Progress, TooLargeError, read_resident
from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.queue import HOLE, Look, Veil, find_queue, get_part, hide, parts, replace_part

__all__ = [
    "PROBABILITY_SLACK",
    "Progress",
    "QueuesMatterError",
    "Reader",
    "TooManyStatesError",
    "is_pair",
    "overrides",
]


PROBABILITY_SLACK = 1e-9
NO_ACTIONS = frozenset([None, CHANCE, END])  # what a list of actions must not hold
LOOKED = -1  # in place of a cell: the move looks at one more entry
MANY_BRANCHES = 20_000  # after so many, hiding queues is given up if it saves too little
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


def overrides(model: PartiallyKnownMDP, method: str) -> bool:
    """Whether the class of the model, or the object itself, has its own `method`."""
    return getattr(getattr(model, method), "__func__", None) is not getattr(
        PartiallyKnownMDP, method
    )


class _Part(NamedTuple):
    """Where the moves of one part start, where they lead, and the method that gives them."""

    cells: Cells
    origin: Side
    target: Side
    settles: bool  # whether the target is the settlement
    step: Callable[[Any, Any, Any], Iterable[Any]]
    made: dict[Any, int]  # node, or (node, prefix) -> cell or LOOKED


class Reader:
    """The graph of a model while it grows, with an index of everything in it."""

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
            _Part(cells[STEP], layers, layers, False, model.step, {}),
            _Part(cells[LAST], layers, settled, True, model.last_step, {}),
            _Part(cells[CHANCES], layers, layers, False, model.step, {}),
            _Part(cells[SETTLED], settled, settled, True, model.last_step, {}),
        )
        self.shares = overrides(model, "share")
        self.notes = overrides(model, "note")
        self.set_index: dict[tuple[Any, ...], int] = {}
        self.feature_index: dict[Any, int] = {}
        self.known_index: dict[Any, int] = {}  # law -> row
        self.reward_index: dict[Any, int] = {}
        self.note_index: dict[Any, int] = {}
        self.block_index = self.graph.block_index
        # [of the settlement][set of outcomes]: block -> landing
        self.landing_index: tuple[list[dict[int, int]], ...] = ([], [])
        self.share_index: dict[Any, float] = {}
        self._letter_list: list[Any] = []
        self._bits: dict[tuple[Any, ...], Mask] = {(): ()}  # entries -> their letters as bits
        self.asked = 0  # branches that were asked for with hidden entries
        self.spared = 0  # branches that an explicit walk would have asked for in their place
        self.n_nodes = 0
        self.layer = 1  # from which the walk goes on, counted from 1

    # -- cells -------------------------------------------------------------------------------------

    def _split(self, node: int, mask: Mask, part: int) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(prefix, cell) of a node; a prefix holds the oldest entries that the move looks at."""
        letters = self._letter_list
        todo: list[tuple[Any, ...]] = [()]
        for prefix in todo:  # the loop appends to the list that it reads
            cell = self._find_cell(node, prefix, part)
            if cell != LOOKED:
                yield prefix, cell
                continue
            if len(prefix) >= len(mask):
                raise QueuesMatterError("a move reads a queue that has no such entry")
            todo += [(*prefix, letters[i]) for i in list_letters(mask[len(prefix)])]

    def _find_cell(self, node: int, prefix: tuple[Any, ...], number: int) -> int:
        part = self.parts[number]
        made = part.made
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
            self._write([(node, x, block.y)], prefix, part)
            return len(cells.node) - 1
        hidden = block.length - len(prefix)
        sizes = len(cells.node), len(cells.reward), len(cells.p)
        self.veil.looked = False
        try:
            y = block.fill(hide(prefix, hidden, self.veil))
            self._write([(node, x, y)], prefix, part)
        except Look:
            self.veil.looked = True
        except QueuesMatterError:
            raise
        except Exception:
            if not self.veil.looked:
                raise
        if self.veil.looked:
            cells.cut(*sizes)
            return LOOKED
        branches = len(cells.p) - sizes[2]
        self.asked += branches
        self.spared += branches * max(len(self.graph.letters), 1) ** hidden
        if self.asked > MANY_BRANCHES and self.spared < WORTH_HIDING * self.asked:
            raise QueuesMatterError("moves look at nearly all entries")
        return len(cells.node) - 1

    def _ask_all(self, nodes: list[int], part: _Part) -> None:
        """Asks for the moves of nodes of an explicit walk that were not asked for before."""
        cells, origin, blocks = part.cells, part.origin, self.graph.blocks
        first = len(cells.node)
        self._write(((n, origin.x[n], blocks[origin.block[n]].y) for n in nodes), (), part)
        part.made.update(zip(nodes, range(first, len(cells.node)), strict=True))

    def _write(
        self, asked: Iterable[tuple[int, Any, Any]], prefix: tuple[Any, ...], part: _Part
    ) -> None:
        """Writes down the moves of cells, given as (node, x, y).

        This is the hot loop of every walk: names are looked up once, and calls are for what is new.
        """
        (cells, origin, target, settles, step, _), graph = part, self.graph
        strict, hidden, shares, notes = self.strict, self.hidden, self.shares, self.notes
        reward_of, kinds, choices = self.model.reward, origin.kind, origin.choices
        find_known, find_feature = self.known_index.get, self.feature_index.get
        find_block, landing_of = self.block_index.get, self.landing_index[settles]
        feature_set, known_set = graph.feature_set, graph.known_set
        p_list, add_p, add_row = cells.p, cells.p.append, cells.row.append
        add_landing, add_reward = cells.landing.append, cells.reward.append
        end_action, end_cell = cells.branch_ptr.append, cells.action_ptr.append
        for node, x, y in asked:
            if kinds[node] == STOP:
                add_reward(self._read_final(x, y))
                end_action(len(p_list))
            else:
                actions = choices[node]
                for action in (None,) if actions is None else actions:
                    branches = step(x, y, action)
                    if hidden:
                        branches = self._list_branches(branches)
                    if strict and type(branches) is not list and isinstance(branches, Mapping):
                        raise ModelError(
                            f"a step is the mapping {branches!r}, not a list of branches"
                        )
                    total, first = 0.0, len(p_list)
                    for p, y_next, z in branches:
                        if p > 0:
                            total += p
                            row = find_known(z.law) if type(z) is Known else find_feature(z)
                            if row is None:
                                row = self._intern_row(z)
                            if hidden:
                                block, front, back = self._place_hidden(y_next)
                                cells.ends.append((front, back))
                            else:
                                found = find_block(y_next)
                                block = self._place_new(y_next) if found is None else found
                            outcomes = feature_set[row] if row >= 0 else known_set[-1 - row]
                            landing = landing_of[outcomes].get(block)
                            if landing is None:
                                landing = self._intern_landing(target, settles, outcomes, block)
                            add_landing(landing)
                            add_p(p)
                            add_row(row)
                            if shares:
                                cells.share.append(self._read_share(z, y_next, row, block, cells))
                        elif strict and not p >= 0:
                            raise ModelError(f"a branch has the probability {p!r}")
                    if strict:
                        if len(p_list) - first > 1:
                            total = self._merge_branches(cells, first)
                        if not -PROBABILITY_SLACK <= total - 1 <= PROBABILITY_SLACK:
                            raise ModelError(
                                f"the moves from x={x!r}, y={y!r} by {action!r} "
                                f"sum to {total!r}, not 1"
                            )
                    reward = reward_of(x, y, action)
                    if hidden:
                        self._stop_at_look()
                    if type(reward) is not float or reward - reward != 0.0 or notes:
                        reward = self._read_reward(cells, reward, x, y, action)
                    add_reward(reward)
                    end_action(len(p_list))
            end_cell(len(cells.reward))
            cells.node.append(node)
            if hidden:
                cells.prefix.append(prefix)

    def _read_final(self, x: Any, y: Any) -> float:
        final = self.model.final(x, y)
        if self.strict and not (_is_number(final) and math.isfinite(final)):
            raise ModelError(f"final(x={x!r}, y={y!r}) is {final!r}, not a finite number")
        return final

    def _list_branches(self, answer: Iterable[Any]) -> Iterable[Any]:
        """The branches of a step asked with hidden entries, if it has read none of them."""
        branches = answer if isinstance(answer, Mapping) else list(answer)
        self._stop_at_look()
        return branches

    def _stop_at_look(self) -> None:
        """Raises the `Look` again that a bare `except` of the model has swallowed."""
        if self.veil.looked:
            raise Look

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
            self._stop_at_look()
            note = -1 if said is None else _intern(self.note_index, self.graph.notes, said, said)
        if mean >= 0 or note >= 0:
            cells.said[len(cells.reward)] = (mean, note)
        return float(reward)

    def _merge_branches(self, cells: Cells, first: int) -> float:
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

    def _read_share(self, z: Any, y: Any, row: int, block: int, cells: Cells) -> float:
        if row < 0:
            return math.nan
        key = (row, block, cells.ends[-1]) if self.hidden else (row, block)
        if key not in self.share_index:
            share = self.model.share(z, y)
            self._stop_at_look()
            if self.strict and share is not None and not (_is_number(share) and 0 < share <= 1):
                raise ModelError(
                    f"share(z={z!r}, y={y!r}) is {share!r}; expected None or a number in (0, 1]"
                )
            self.share_index[key] = math.nan if share is None else float(share)
        return self.share_index[key]

    # -- nodes, blocks, rows -----------------------------------------------------------------------

    def _intern_landing(self, side: Side, settles: bool, outcomes: int, block: int) -> int:
        """A new landing: a set of outcomes with a block."""
        graph = self.graph
        nodes = self._intern_nodes(side, graph.sets[outcomes], block)
        self.landing_index[settles][outcomes][block] = len(graph.landings)
        graph.landings.append(nodes)
        graph.landing_block.append(block)
        graph.settling.append(settles)
        return len(graph.landings) - 1

    def _intern_nodes(self, side: Side, states: Iterable[Any], block: int) -> list[int]:
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
        if node >= self.max_states:
            found = f"more than {self.max_states} states can be reached"
            raise TooManyStatesError(found, self.layer, (x, block.y))
        if self.n_nodes % REPORT_NODES == 0:
            self.progress(self.n_nodes)
            held = read_resident()
            if held > self.most_bytes:
                found = f"{self.n_nodes} states were found"
                found += f" and {held / 1e9:.3g} GB of memory are in use"
                raise TooManyStatesError(found, self.layer, (x, block.y))

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

    def _intern_row(self, z: Any) -> int:
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
                graph.known.append(z)
                graph.known_set.append(self._intern_set(tuple(x for x, p in z.law if p > 0)))
            return row
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
            graph.feature_set.append(self._intern_set(states))
        return row

    def _intern_set(self, states: tuple[Any, ...]) -> int:
        found = _intern(self.set_index, self.graph.sets, states, states)
        if found == len(self.landing_index[0]):
            for side in self.landing_index:
                side.append({})
        return found

    def _place(self, y: Any) -> tuple[int, tuple[Any, ...]]:
        """The block of a given y, and the entries of its queue where queues are hidden."""
        if self.hidden:
            block, front, back = self._place_hidden(y)
            return block, front + back
        return self._place_new(y), ()

    def _place_hidden(self, y: Any) -> tuple[int, tuple[Any, ...], tuple[Any, ...]]:
        """(block, front, back): the queue's entries before and after the hidden ones."""
        path = find_queue(y)
        if path is None:
            found = self.block_index.get(y)
            return self._place_new(y) if found is None else found, (), ()
        queue = get_part(y, path)
        front, hidden, back, dropped = parts(queue)
        if dropped and hidden:  # some were popped unread, some stay: columns would not move evenly
            raise self.veil.look()
        holed = replace_part(y, path, HOLE)
        letters = self.graph.letters
        for entry in front + back:
            if entry not in letters:
                self._intern_letter(entry)
        key = (holed, len(queue))
        found = self.block_index.get(key)
        if found is None:
            found = self._intern_block(key, Block(holed, path, len(queue)))
        return found, front, back

    def _place_new(self, y: Any) -> int:
        return self._intern_block(y, Block(y, None, 0))

    def _intern_block(self, key: Any, block: Block) -> int:
        return _intern(self.block_index, self.graph.blocks, key, block)

    def _intern_letter(self, entry: Any) -> int:
        return _intern(self.graph.letters, self._letter_list, entry, entry)


def _intern(index: dict[Any, int], values: list[Any], key: Any, value: Any) -> int:
    found = index.get(key)
    if found is None:
        found = index[key] = len(values)
        values.append(value)
    return found


def is_pair(value: object) -> TypeGuard[tuple[Any, Any]]:
    return isinstance(value, tuple) and len(value) == 2


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float | int) or isinstance(value, Real)  # noqa: SIM101 - the slow test comes last


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral)
