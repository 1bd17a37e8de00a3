"""Asks a model what follows a state, and stores every answer once.

`Reader` writes the moves of cells into arrays; `pkd.explore.index` numbers what they name. Nothing
is asked twice. `pkd.explore.walk` says of which cells the moves are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pkd.adapters import find_note
from pkd.explore.graph import (
    CHANCES,
    LAST,
    SETTLED,
    STEP,
    STOP,
    WORTH_HIDING,
    Cells,
    Mask,
    Side,
    list_letters,
)
from pkd.explore.index import (
    PROBABILITY_SLACK,
    Index,
    QueuesMatterError,
    intern,
    is_number,
    overrides,
)
from pkd.model import ROUNDING, Known, ModelError, UnknownReward
from pkd.queue import Look, hide

LOOKED = -1  # in place of a cell: the move looks at one more entry
MANY_BRANCHES = 20_000  # after so many, hiding queues is given up if it saves too little


class Part(NamedTuple):
    """Where the moves of one part start, where they lead, and the method that gives them."""

    cells: Cells
    origin: Side
    target: Side
    settles: bool  # whether the target is the settlement
    step: Callable[[Any, Any, Any], Iterable[Any]]
    made: dict[Any, int]  # node, or (node, prefix) -> cell or LOOKED


class Reader:
    """Asks for moves."""

    def __init__(self, index: Index) -> None:
        self.index, self.graph, self.model = index, index.graph, index.model
        self.hidden, self.strict, model = index.hidden, index.strict, index.model
        cells, layers, settled = self.graph.cells, self.graph.layers, self.graph.settled
        self.parts = (
            Part(cells[STEP], layers, layers, False, model.step, {}),
            Part(cells[LAST], layers, settled, True, model.last_step, {}),
            Part(cells[CHANCES], layers, layers, False, model.step, {}),
            Part(cells[SETTLED], settled, settled, True, model.last_step, {}),
        )
        self.shares = overrides(model, "share")
        self.note = find_note(model)
        self.reward_index: dict[Any, int] = {}
        self.note_index: dict[Any, int] = {}
        self.share_index: dict[Any, float] = {}
        self.asked = 0  # branches that were asked for with hidden entries
        self.explicit = 0  # branches that an explicit walk would have asked for in their place

    def split(self, node: int, mask: Mask, part: int) -> Iterator[tuple[tuple[Any, ...], int]]:
        """(prefix, cell) of a node; a prefix holds the oldest entries that the move looks at."""
        letters = self.index.letter_list
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

    def _ask(self, node: int, prefix: tuple[Any, ...], part: Part) -> int:
        """Asks the model for the moves of a cell and writes them down."""
        if not self.hidden:
            self.ask_all([node], part)
            return part.made[node]
        block, veil = self.graph.blocks[part.origin.block[node]], self.index.veil
        hidden, found = block.length - len(prefix), Cells()
        veil.looked = False
        try:
            y = block.fill(hide(prefix, hidden, veil))
            self._write([(node, part.origin.x[node], y)], prefix, part, found)
        except Look:
            return LOOKED
        except QueuesMatterError:
            raise
        except Exception:
            if not veil.looked:
                raise
        if veil.looked:
            return LOOKED
        part.cells.extend(found)
        self.asked += len(found.p)
        self.explicit += len(found.p) * max(len(self.graph.letters), 1) ** hidden
        if self.asked > MANY_BRANCHES and self.explicit < WORTH_HIDING * self.asked:
            raise QueuesMatterError("moves look at nearly all entries")
        return len(part.cells.node) - 1

    def ask_all(self, nodes: list[int], part: Part) -> None:
        """Asks for the moves of nodes of an explicit walk that were not asked for before."""
        cells, origin, blocks = part.cells, part.origin, self.graph.blocks
        first = len(cells.node)
        self._write(((n, origin.x[n], blocks[origin.block[n]].y) for n in nodes), (), part, cells)
        part.made.update(zip(nodes, range(first, len(cells.node)), strict=True))

    def _write(
        self, asked: Iterable[tuple[int, Any, Any]], prefix: tuple[Any, ...], part: Part,
        cells: Cells,
    ) -> None:  # fmt: skip
        """Appends the moves of cells that are given as (node, x, y).

        This is the hot loop of every walk: names are looked up once, and calls are for what is new.
        """
        (_, origin, target, settles, step, _), graph, index = part, self.graph, self.index
        strict, hidden, shares = self.strict, self.hidden, self.shares
        notes = self.note is not None
        reward_of, kinds, choices = self.model.reward, origin.kind, origin.choices
        find_known, find_feature = index.known_index.get, index.feature_index.get
        find_block, landing_of = index.block_index.get, index.landing_index[settles]
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
                                row = index.intern_row(z)
                            if hidden:
                                block, front, back = index.place_hidden(y_next)
                                cells.ends.append((front, back))
                            else:
                                found = find_block(y_next)
                                block = index.place_plain(y_next) if found is None else found
                            outcomes = feature_set[row] if row >= 0 else known_set[-1 - row]
                            landing = landing_of[outcomes].get(block)
                            if landing is None:
                                landing = index.intern_landing(target, settles, outcomes, block)
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
                        if not -ROUNDING <= total - 1 <= ROUNDING:
                            if not abs(total - 1) <= PROBABILITY_SLACK:
                                raise ModelError(
                                    f"the moves from x={x!r}, y={y!r} by {action!r} "
                                    f"sum to {total!r}, not 1"
                                )
                            for k in range(first, len(p_list)):
                                p_list[k] /= total
                    reward = reward_of(x, y, action)
                    if hidden:
                        self.index.stop_at_look()
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
        if self.strict and not (is_number(final) and math.isfinite(final)):
            raise ModelError(f"final(x={x!r}, y={y!r}) is {final!r}, not a finite number")
        return final

    def _list_branches(self, answer: Iterable[Any]) -> Iterable[Any]:
        """The branches of a step asked with hidden entries, if it has read none of them."""
        branches = answer if isinstance(answer, Mapping) else list(answer)
        self.index.stop_at_look()
        return branches

    def _read_reward(self, cells: Cells, reward: Any, x: Any, y: Any, action: Any) -> float:
        """The known part of a reward; an unknown part and a note are written down."""
        mean = note = -1
        if isinstance(reward, UnknownReward):
            mean = intern(self.reward_index, self.graph.rewards, reward.feature, reward)
            first = self.graph.rewards[mean]
            numbers = is_number(first.low) and is_number(first.high)
            if self.strict and not (
                numbers
                and -math.inf < first.low <= first.high < math.inf
                and (first.low, first.high) == (reward.low, reward.high)
            ):
                raise ModelError(
                    f"reward feature {reward.feature!r} has the ranges {first!r} and {reward!r}"
                )
            reward = 0.0
        elif self.strict and not (is_number(reward) and math.isfinite(reward)):
            raise ModelError(
                f"reward(x={x!r}, y={y!r}, a={action!r}) is {reward!r}, not a finite number"
            )
        if self.note is not None:
            said = self.note(x, y, action)
            self.index.stop_at_look()
            note = -1 if said is None else intern(self.note_index, self.graph.notes, said, said)
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
            self.index.stop_at_look()
            if self.strict and share is not None and not (is_number(share) and 0 < share <= 1):
                raise ModelError(
                    f"share(z={z!r}, y={y!r}) is {share!r}; expected None or a number in (0, 1]"
                )
            self.share_index[key] = math.nan if share is None else float(share)
        return self.share_index[key]
