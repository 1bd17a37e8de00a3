"""From the explicit graph to the arrays of the flat program: slots, arms, pairs and rows, in an order in which values are ready when read.

CHANCE states are ordered by networkx; a cycle among them would let time stand still and is a `ModelError` that shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from pkd.graph import CHANCE_STATE, DECIDE, STOP, Arm, Graph, Side
from pkd.kernels.flat import CHANCES, Program
from pkd.model import ModelError

Pair = tuple[int, int, int]  # (space, row, index of y')
STEP_PAIR, LAST_PAIR, CHANCE_PAIR, SETTLED_PAIR = range(4)  # the space says which values a pair reads, and when


def assemble(graph: Graph) -> tuple[Program, list[Pair]]:
    """The flat program of a graph, and its pairs by name."""
    levels = chance_levels(graph.layers, "step")
    settled_levels = chance_levels(graph.settled, "last_step")
    deciders = [node for node in graph.layers.arms if graph.layers.kind[node] == DECIDE]
    slots = [
        _Slots(graph.layers, graph.layers.arms, deciders, STEP_PAIR),
        _Slots(graph.layers, graph.last_arms, list(graph.last_arms), LAST_PAIR),
        *(_Slots(graph.layers, graph.layers.arms, level, CHANCE_PAIR) for level in levels),
        *(_Slots(graph.settled, graph.settled.arms, level, SETTLED_PAIR) for level in settled_levels),
    ]
    return _Assembler(graph, slots, settlement=CHANCES + len(levels)).run()


def chance_levels(side: Side, method: str) -> list[list[int]]:
    """The CHANCE nodes by level: level i leads only to lower levels, to decisions and to ends."""
    chances = [node for node, kind in enumerate(side.kind) if kind == CHANCE_STATE and node in side.arms]
    if not chances:
        return []
    import networkx as nx  # 0.1 s, which a model without CHANCE states need not pay

    graph: Any = nx.DiGraph()
    graph.add_nodes_from(chances)
    for node in chances:
        graph.add_edges_from((target, node) for target in side.arms[node][0].targets if side.kind[target] == CHANCE_STATE)
    try:
        return [sorted(level) for level in nx.topological_generations(graph)]
    except nx.NetworkXUnfeasible:
        cycle = [side.states[node] for node, _ in nx.find_cycle(graph)][::-1]
        path = " -> ".join(f"(x={x!r}, y={y!r})" for x, y in [*cycle, cycle[0]])
        raise ModelError(f"CHANCE states lead back to themselves by {method}, so that time stands still: {path}") from None


class _Slots:
    """The slots of one block: nodes with their arms."""

    def __init__(self, side: Side, arms: Mapping[int, list[Arm]], nodes: Iterable[int], space: int) -> None:
        self.side, self.arms, self.nodes, self.space = side, arms, list(nodes), space


class _Assembler:
    def __init__(self, graph: Graph, slots: list[_Slots], settlement: int) -> None:
        self.graph, self.slots, self.settlement = graph, slots, settlement
        self.n_unknown = len(graph.features)

    def run(self) -> tuple[Program, list[Pair]]:
        graph = self.graph
        pairs = self.number_pairs()
        order = list(pairs)
        slot_node: list[int] = []
        slot_window: list[tuple[int, int]] = []
        arm_ptr, branch_ptr = [0], [0]
        arm_reward: list[float] = []
        arm_mean: list[int] = []
        branch_p: list[float] = []
        branch_pair: list[int] = []
        slot_of = [np.full(len(graph.layers.states), -1), np.full(len(graph.layers.states), -1), np.full(len(graph.settled.states), -1)]
        for block in self.slots:
            which = {LAST_PAIR: 1, SETTLED_PAIR: 2}.get(block.space, 0)
            for node in self.by_first(block):
                slot_of[which][node] = len(slot_node)
                slot_node.append(node)
                slot_window.append(self.window(block, node))
                for arm in block.arms[node]:
                    arm_reward.append(arm.reward)
                    arm_mean.append(arm.mean)
                    for p, row, y in arm.branches:
                        branch_p.append(p)
                        branch_pair.append(pairs[block.space, row, y])
                    branch_ptr.append(len(branch_p))
                arm_ptr.append(len(arm_reward))
        targets = [self.targets(group[0]) for group in self.groups]
        matrices = self.matrices()
        program = Program(
            horizon=graph.horizon,
            blocks=self.blocks(),
            settlement=self.settlement,
            slot_node=np.array(slot_node, np.int64),
            slot_first=np.array([first for first, _ in slot_window], np.int64),
            slot_last=np.array([last for _, last in slot_window], np.int64),
            arm_ptr=np.array(arm_ptr, np.int64),
            arm_reward=np.array(arm_reward, float),
            arm_mean=np.array(arm_mean, np.int64),
            branch_ptr=np.array(branch_ptr, np.int64),
            branch_p=np.array(branch_p, float),
            branch_pair=np.array(branch_pair, np.int64),
            pair_row=np.array([self.row(row) for _, row, _ in order], np.int64),
            pair_group=np.array([i for i, group in enumerate(self.groups) for _ in group], np.int64),
            group_pair=np.array([0, *accumulate(map(len, self.groups))], np.int64),
            group_ptr=np.array([0, *accumulate(map(len, targets))], np.int64),
            group_node=np.array([node for nodes in targets for node in nodes], np.int64),
            group_matrix=np.array([at for at, _ in matrices], np.int64),
            group_first=np.array([min(self.pair_window[pair][0] for pair in group) for group in self.groups], np.int64),
            group_last=np.array([max(self.pair_window[pair][1] for pair in group) for group in self.groups], np.int64),
            row_ptr=np.array([0, *accumulate(map(len, self.row_lists()))], np.int64),
            n_unknown=self.n_unknown,
            packing=np.array([place for _, places in matrices for place in places], np.int64),
            slot_of_step=slot_of[0],
            slot_of_last=slot_of[1],
            slot_of_settled=slot_of[2],
            final=np.array(graph.layers.final, float),
            final_settled=np.array(graph.settled.final, float),
            start_node=np.array([node for node, _ in graph.start], np.int64),
            start_p=np.array([p for _, p in graph.start], float),
        )
        return program, order

    def row(self, row: int) -> int:
        return row if row >= 0 else self.n_unknown - 1 - row

    def row_lists(self) -> list[tuple[Any, ...]]:
        return [*self.graph.outcomes, *(self.graph.row_states(-1 - i) for i in range(len(self.graph.known)))]

    def window(self, block: _Slots, node: int) -> tuple[int, int]:
        """The layers in which a slot is needed."""
        horizon = self.graph.horizon
        if block.space == SETTLED_PAIR:
            return horizon, horizon
        if block.space == LAST_PAIR:
            return horizon - 1, horizon - 1
        last = self.graph.last[node]
        return self.graph.first[node], min(last, horizon - 2) if block.space == STEP_PAIR else last

    def by_first(self, block: _Slots) -> list[int]:
        return sorted(block.nodes, key=lambda node: self.window(block, node)[0])

    def number_pairs(self) -> dict[Pair, int]:
        """Pairs by block (a pair belongs to the first block that uses it), in groups that lead to the same nodes, by their first layer."""
        windows: dict[Pair, tuple[int, int]] = {}
        self.groups: list[list[Pair]] = []
        self.group_blocks = [0]
        for block in self.slots:
            mine: dict[Any, list[Pair]] = {}
            for node in block.nodes:
                first, last = self.window(block, node)
                for arm in block.arms[node]:
                    for _, row, y in arm.branches:
                        pair = (block.space, row, y)
                        if pair not in windows:
                            mine.setdefault((y, row >= 0, self.graph.row_states(row)), []).append(pair)
                            windows[pair] = (first, last)
                        else:
                            windows[pair] = (min(windows[pair][0], first), max(windows[pair][1], last))
            self.groups.extend(mine.values())
            self.group_blocks.append(len(self.groups))
        self.pair_window = windows
        for lo, hi in zip(self.group_blocks, self.group_blocks[1:], strict=False):
            self.groups[lo:hi] = sorted(self.groups[lo:hi], key=lambda group: min(windows[pair][0] for pair in group))
        return {pair: i for i, pair in enumerate(pair for group in self.groups for pair in group)}

    def matrices(self) -> list[tuple[int, list[int]]]:
        """For each group where its matrix stands, and what it consists of; groups with the same rows share one."""
        ptr = [0, *accumulate(map(len, self.row_lists()))]
        known: dict[tuple[int, ...], int] = {}
        made, at = [], 0
        for group in self.groups:
            rows = tuple(self.row(row) for _, row, _ in group)
            size = ptr[rows[0] + 1] - ptr[rows[0]]
            if rows in known:
                made.append((known[rows], list[int]()))
                continue
            known[rows] = at
            made.append((at, [ptr[row] + j for j in range(size) for row in rows]))
            at += size * len(rows)
        return made

    def blocks(self) -> np.ndarray:
        slots = [0, *accumulate(len(block.nodes) for block in self.slots)]
        groups = self.group_blocks
        return np.array([[slots[i], slots[i + 1], groups[i], groups[i + 1]] for i in range(len(self.slots))], np.int64)

    def targets(self, pair: Pair) -> list[int]:
        space, row, y = pair
        side = self.graph.layers if space in (STEP_PAIR, CHANCE_PAIR) else self.graph.settled
        return [side.index[x, self.graph.ys[y]] for x in self.graph.row_states(row)]


def stops(side: Side) -> list[int]:
    """The nodes in which an episode stops."""
    return [node for node, kind in enumerate(side.kind) if kind == STOP]
