"""The runs of a delayed model, written down at once instead of found state by state: with queues of eight actions there are more than a
million y, and the model must never exist as that many Python objects. A test holds these runs equal to the plain construction.

Columns are blocks of all queues of one length n, the oldest action most significant: queue q is column sum_i q_i A^(n-i). Within a block
the queues with the same oldest action are neighbours, and their moves differ only in the column they lead to; so each block is one run per
oldest action, or one run where the oldest action does not matter, and appending an action leads to column q A + a.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import attrs

from pkd import Known, UnknownReward, runs
from pkd_delay.blocks import OVER, Arm, Block, Role, Walk, Way

if TYPE_CHECKING:
    from pkd_delay.augmented import Augmented

__all__ = ["emitted"]

Columns = dict[int, Way]  # the ways of an arm by the column that they lead to
MOST_WAYS = 16  # of a run whose x lead to different columns; each x looks at all of them, and more are cheaper as runs of their own


def emitted(model: Augmented) -> runs.RunTable:
    """The runs of a delayed model."""
    return _Emitter(model).table


class _Emitter:
    def __init__(self, model: Augmented) -> None:
        self.model, self.walk = model, Walk(model)
        walk, spaces = self.walk, (sorted(self.walk.layers), sorted(self.walk.settled))
        xs = dict.fromkeys(walk.nodes[i][0] for nodes in spaces for i in nodes)
        self.table = runs.RunTable(list(xs), list(walk.outcomes), list(walk.outcomes.values()))
        self.laws = {z: i for i, z in enumerate(walk.outcomes)}
        self.rewards: dict[Any, int] = {}  # features of unknown rewards
        self.offsets: tuple[dict[Block, int], dict[Block, int]] = ({}, {})  # of blocks in the layers and in the settlement
        self.peers: dict[tuple[Any, ...], dict[Any, None]] = {}  # every x of the base that comes with a y and a kind
        self.roles = [self._roles(nodes, settled=settled) for nodes, settled in zip(spaces, (False, True), strict=True)]
        self._lay()
        self._emit()

    def _roles(self, nodes: Iterable[int], *, settled: bool) -> dict[Role, None]:
        roles: dict[Role, None] = {}
        for i in nodes:
            node = self.walk.nodes[i]
            role = self.walk.role(node, settled=settled)
            roles[role] = None
            self.peers.setdefault(_peers(role, settled=settled), {})[self.model.read(*node)[0]] = None
        return roles

    # -- columns -------------------------------------------------------------------------------------------------------------------

    def _lay(self) -> None:
        """Blocks with decisions come first, so that a policy is short; last comes the one column to which every END leads."""
        table = self.table
        for offsets, blocks, roles in zip(self.offsets, (table.blocks, table.settled_blocks), self.roles, strict=True):
            deciding = dict.fromkeys(role.block for role in roles if role.decides)
            over = [OVER] if any(role.ends for role in roles) else []
            at = 0
            for block in dict.fromkeys([*deciding, *(role.block for role in roles), *over]):
                offsets[block] = at
                blocks.append((at, self.walk.size(block)))
                at += self.walk.size(block)
        table.columns, table.settled_columns = (sum(length for _, length in blocks) for blocks in (table.blocks, table.settled_blocks))
        table.ends, table.settled_ends = (
            {(x, offsets[OVER]): 0.0 for x in range(len(table.xs)) if OVER in offsets} for offsets in self.offsets
        )
        self.placed = list(self.offsets[0].items())
        table.n_y = table.columns  # no share refers to it: the adapters give a share for every feature
        table.column_of, table.y_of = self._column, self._y
        for (x, y), p in self.walk.start:
            block, code = self.walk.place(y)
            table.start.append((table.x_index[x], self.offsets[0][block] + code, p))

    def _column(self, y: Any) -> int | None:
        if not set(y.queue or ()).issubset(self.walk.actions):
            return None
        block, code = self.walk.place(y)
        return self.offsets[0][block] + code if block in self.offsets[0] else None

    def _y(self, column: int) -> Any:
        block, start = self.placed[bisect_right(self.placed, column, key=itemgetter(1)) - 1]
        return self.walk.name(block, column - start)

    # -- runs ----------------------------------------------------------------------------------------------------------------------

    def _emit(self) -> None:
        walk = self.walk
        # A counter may occur at fewer steps than the others. It gets their moves, so that blocks with equal moves can be merged.
        early, last = ({_but_counter(walk.role(walk.nodes[i], settled=False)) for i in nodes} for nodes in (walk.early, walk.last))
        for role in self.roles[0]:
            if not role.decides:
                self._runs(runs.CHANCES, role)
            if role.decides and _but_counter(role) in early:
                self._runs(runs.DECISIONS, role)
            if role.decides and _but_counter(role) in last:
                self._runs(runs.LAST, role)
        for role in self.roles[1]:
            self._runs(runs.SETTLED, role)

    def _runs(self, part: int, role: Role) -> None:
        """One run for each oldest action and for each group of x that lead to the same columns."""
        settled, settling = part == runs.SETTLED, part in (runs.LAST, runs.SETTLED)
        members: list[tuple[int, list[list[tuple[Arm, Columns]]]]] = []
        for base_x in self.peers[_peers(role, settled=settled)]:
            # All x of the base with this y, so that blocks with equal moves have equal sets and can be merged.
            x, block = self.model.place(base_x, role.y, role.block.queue, role.counter)
            arms = [[(arm, self._targets(arm, settling)) for arm in row] for row in self.walk.arms((x, block), settling=settling)]
            if x in self.table.x_index and all(len(columns) == len(arm.ways) for row in arms for arm, columns in row):
                members.append((self.table.x_index[x], arms))
        if not members:
            return
        start, splits = self.offsets[settled][role.block], len(members[0][1])
        length = self.walk.size(role.block) // splits
        stride = len(self.walk.actions) if role.decides else int(not role.ends)
        found: list[runs.Run] = []
        for k in range(splits):
            few = role.rests or len({column for _, arms in members for _, columns in arms[k] for column in columns}) <= MOST_WAYS
            groups: dict[Any, dict[int, list[tuple[Arm, Columns]]]] = {}
            for x, arms in members:
                shape = None if few else tuple(frozenset(columns) for _, columns in arms[k])
                groups.setdefault(shape, {})[x] = arms[k]
            for group in groups.values():
                moves = [self._move({x: row[a] for x, row in group.items()}, stride) for a in range(len(members[0][1][k]))]
                if role.decides and role.splits:
                    moves = [_appended(moves[0], a) for a in range(len(self.walk.actions))]
                found.append(runs.Run(part, self.table.set_of(group), start + k * length, length, tuple(moves), self.walk.level(role)))
        self.table.runs.extend(found if role.decides else _joined(found))

    def _targets(self, arm: Arm, settling: bool) -> Columns:
        """The ways of an arm by column, without those that cannot be taken: a peer may not occur in this block."""
        offsets = self.offsets[settling]
        return {offsets[block] + code: way for (block, code), way in arm.ways.items() if block in offsets and self._can_occur(way.z)}

    def _can_occur(self, z: Any) -> bool:
        return all(x in self.table.x_index for x, p in z.law if p > 0) if isinstance(z, Known) else z in self.laws

    def _move(self, arms: Mapping[int, tuple[Arm, Columns]], stride: int) -> runs.Move:
        table = self.table
        reward = self._reward({x: arm.reward for x, (arm, _) in arms.items()})
        unknown = any(not isinstance(way.z, Known) for _, columns in arms.values() for way in columns.values())
        inside = unknown and self.model.return_range is not None
        ways = []
        for column in sorted({column for _, columns in arms.values() for column in columns}):
            here = {x: columns[column] for x, (_, columns) in arms.items() if column in columns}
            p = table.p_row({x: way.p for x, way in here.items()})
            law = table.law_row({x: self._law(way.z) for x, way in here.items()})
            share = table.share_row({x: way.share for x, way in here.items()})
            ways.append(runs.Way(p, law, share, column, stride, reward if inside else table.no_reward))
        return runs.Move(table.no_reward if inside else reward, tuple(ways))

    def _reward(self, rewards: Mapping[int, float | UnknownReward]) -> int:
        table, means = self.table, dict[int, int]()
        for x, reward in rewards.items():
            if isinstance(reward, UnknownReward):
                if reward.feature not in self.rewards:
                    self.rewards[reward.feature] = len(table.unknown_rewards)
                    table.unknown_rewards.append(reward)
                means[x] = self.rewards[reward.feature]
        return table.reward_row({x: 0.0 if isinstance(r, UnknownReward) else float(r) for x, r in rewards.items()}, means)

    def _law(self, z: Any) -> int:
        if not isinstance(z, Known):
            return self.laws[z]
        return self.table.known_law((self.table.x_index[x], p) for x, p in z.law if p > 0)


def _appended(first: runs.Move, a: int) -> runs.Move:
    """The arm that appends action number a, from the one that appends the first."""
    return runs.Move(first.reward, tuple(attrs.evolve(way, target=way.target + a) for way in first.ways))


def _peers(role: Role, *, settled: bool) -> tuple[Any, ...]:
    return settled, role.block.queue is None, role.y, role.kind


def _but_counter(role: Role) -> tuple[Any, int]:
    return role.y, role.block.queue


def _joined(found: list[runs.Run]) -> list[runs.Run]:
    """One run in place of those of all oldest actions, where these turn out not to matter."""
    first, count = found[0], len(found)
    alike = all(run == first.continued(run.start - first.start) for run in found)
    return [attrs.evolve(first, length=count * first.length)] if alike else found
