"""Runs as the arrays that kernels take: levels, gangs and tiles, and the lookup from a state to its run."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import attrs
import numpy as np

from pkd.kernels import run_walk
from pkd.kernels import runs as kernels
from pkd.runs import CHANCES, DECISIONS, LAST, SETTLED, Run, RunTable

__all__ = ["RunArrays", "arrays_of", "cover_of"]

TILE_VALUES = 1 << 15  # values of V that a tile reads: a quarter of a megabyte, which stays in a core's own cache
MISSING = -(2**62)


@attrs.frozen(eq=False)
class RunArrays:
    """Arrays for the kernels. Runs keep their order."""

    table: RunTable
    listed: list[Run]
    runs: kernels.Runs
    window: list[int]  # the layers of each run, as bits
    ell_rows: list[tuple[int, int]]  # (row of laws, row of shares) of each row of ell
    covers: dict[int, run_walk.Cover]

    def choice_at(self, t: int, x: int, column: int) -> int:
        """Where the choice of a state stands in a policy."""
        g = self.runs
        first, beyond = int(g.policy_from[t]), int(g.policy_to[t])
        if not first <= column < beyond:
            raise KeyError((t, x, column))
        return int(g.policy_ptr[t]) + x * (beyond - first) + column - first

    def run_at(self, part: int, x: int, column: int, missing: int | None = None) -> int:
        """The run that holds a state."""
        run = int(run_walk.find(self.covers[part], x, column))
        if run < 0 and missing is None:
            raise KeyError((x, column))
        return run

    def arms_alone(self, part: int, x: int, column: int) -> kernels.Runs:
        """Each arm of one state as a run of its own, so that `kernels.values` puts their Q side by side."""
        g, run = self.runs, self.run_at(part, x, column)
        arms = np.arange(g.run_arm[run], g.run_arm[run + 1] + 1)
        count, offset = len(arms) - 1, column - int(g.run_start[run])
        each, zero, one = np.arange(count), np.zeros(1, np.int64), np.ones(1, np.int64)
        return g._replace(
            run_set=np.zeros(count, np.int64),
            run_start=each - offset,
            run_decides=np.zeros(count, bool),
            run_bundle=np.zeros(count, np.int64),
            run_arm=arms,
            set_ptr=np.array([0, 1]),
            set_x=np.array([x]),
            gang_run=each,
            gang_ptr=np.array([0, count]),
            gang_active=np.ones((1, 1), bool),
            item_gang=zero,
            item_from=np.array([offset]),
            item_count=one,
        )


def arrays_of(table: RunTable, runs: list[Run], window: list[int], horizon: int) -> RunArrays:
    """Lays out runs for the kernels."""
    ell_index: dict[tuple[int, int], int] = {}
    arms = [move for run in runs for move in run.moves]
    ways = [way for move in arms for way in move.ways]
    for way in ways:
        ell_index.setdefault((way.law, way.share), len(ell_index))
    row_ptr = _ints([0, *accumulate(map(len, [*table.outcomes, *table.known]))])
    row_x = [table.x_index[x] for states in table.outcomes for x in states] + [x for law in table.known for x, _ in law]
    laws = np.array(table.law.rows, np.int64).reshape(len(table.law.rows), len(table.xs))
    laws = np.where(laws >= 0, laws, np.where(laws == MISSING, 0, len(table.features) - 1 - laws))
    levels = _levels(runs)
    bundles = [bundle_of(run) for run in runs]
    gangs, items, level_ptr = _tiles(table, runs, bundles, window, levels)
    active = np.array([[window[gang[0]] >> t & 1 for t in range(horizon + 1)] for gang in gangs], bool).reshape(len(gangs), horizon + 1)
    item_gang = np.array([item[0] for item in items], np.int64)
    level_active = np.array(
        [active[item_gang[lo:hi]].any(axis=0) if hi > lo else np.zeros(horizon + 1, bool) for lo, hi in pairwise(level_ptr)]
    )
    policy_from, policy_to = _deciding_columns(runs, window, horizon)
    made = kernels.Runs(
        run_set=_ints(run.xs for run in runs),
        run_start=_ints(run.start for run in runs),
        run_decides=np.array([run.part in (DECISIONS, LAST) for run in runs], bool),
        run_bundle=_ints(bundles),
        run_arm=_ints([0, *accumulate(len(run.moves) for run in runs)]),
        arm_reward=_ints(move.reward for move in arms),
        arm_branch=_ints([0, *accumulate(len(move.ways) for move in arms)]),
        branch_p=_ints(way.p for way in ways),
        branch_law=_ints(way.law for way in ways),
        branch_reward=_ints(way.reward for way in ways),
        branch_share=_ints(ell_index[way.law, way.share] for way in ways),
        branch_target=_ints(way.target for way in ways),
        branch_stride=_ints(way.stride for way in ways),
        set_ptr=_ints([0, *accumulate(map(len, table.sets.rows))]),
        set_x=np.concatenate(table.sets.rows) if table.sets.rows else np.zeros(0, np.int64),
        p=np.array(table.p.rows, float).reshape(len(table.p.rows), len(table.xs)),
        law=laws,
        row_ptr=row_ptr,
        row_x=_ints(row_x),
        n_unknown=len(table.features),
        gang_run=_ints(run for gang in gangs for run in gang),
        gang_ptr=_ints([0, *accumulate(map(len, gangs))]),
        gang_active=active,
        item_gang=item_gang,
        item_from=_ints(item[1] for item in items),
        item_count=_ints(item[2] for item in items),
        policy_ptr=_ints([0, *accumulate(len(table.xs) * (policy_to - policy_from))]),
        policy_from=policy_from,
        policy_to=policy_to,
        level_ptr=_ints(level_ptr),
        level_active=level_active,
        settlement=2 + len({run.level for run in runs if run.part == CHANCES}),
    )
    covers = {part: cover_of(table, runs, (part,)) for part in (DECISIONS, LAST, CHANCES, SETTLED)}
    return RunArrays(table, runs, made, window, list(ell_index), covers)


def bundle_of(run: Run) -> int:
    """How many arms append the last action to a queue: arm a leads to target + a with a stride of that many. 0: the run is no bundle."""
    arms = len(run.moves)
    if arms < 2 or run.part not in (DECISIONS, LAST):
        return 0
    first = run.moves[0]
    for a, move in enumerate(run.moves):
        if move.reward != first.reward or len(move.ways) != len(first.ways):
            return 0
        for way, base in zip(move.ways, first.ways, strict=True):
            alike = (way.p, way.law, way.share, way.reward) == (base.p, base.law, base.share, base.reward)
            if not alike or way.stride != arms or base.stride != arms or way.target != base.target + a:
                return 0
    return arms


def _deciding_columns(runs: list[Run], window: list[int], horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns, from and up to, in which the decisions of each layer lie."""
    lowest, beyond = np.full(horizon, 2**62), np.zeros(horizon, np.int64)
    for run, layers in zip(runs, window, strict=True):
        if run.part in (DECISIONS, LAST):
            met = [t for t in range(horizon) if layers >> t & 1]
            lowest[met] = np.minimum(lowest[met], run.start)
            beyond[met] = np.maximum(beyond[met], run.start + run.length)
    return np.minimum(lowest, beyond), beyond


def _levels(runs: list[Run]) -> list[list[int]]:
    """Runs by level: decisions, last decisions, CHANCE states from the lowest level, the settlement."""
    groups: dict[tuple[int, int], list[int]] = {(DECISIONS, 0): [], (LAST, 0): []}
    for i, run in enumerate(runs):
        groups.setdefault((run.part, run.level), []).append(i)
    return [groups[key] for key in sorted(groups)]


def _tiles(
    table: RunTable, runs: list[Run], bundles: list[int], window: list[int], levels: list[list[int]]
) -> tuple[list[list[int]], list[tuple[int, int, int]], list[int]]:
    """Gangs of runs that read the same columns in the same layers, and the tiles that they are worked off in."""
    gangs: list[list[int]] = []
    items: list[tuple[int, int, int]] = []
    level_ptr = [0]
    for level in levels:
        together: dict[Any, list[int]] = {}
        for i in level:
            run = runs[i]
            reads = tuple((way.target, way.stride) for move in run.moves for way in move.ways)
            together.setdefault((run.length, reads, bundles[i], window[i]), []).append(i)
        for (length, _, bundle, _), gang in together.items():
            size = max(1, TILE_VALUES // (len(table.xs) * max(bundle, 1)))
            items.extend((len(gangs), lo, min(size, length - lo)) for lo in range(0, length, size))
            gangs.append(gang)
        level_ptr.append(len(items))
    return gangs, items, level_ptr


def cover_of(table: RunTable, runs: list[Run], parts: tuple[int, ...]) -> run_walk.Cover:
    """For each x, the runs of some parts in the order of their columns."""
    held: list[list[tuple[int, int, int]]] = [[] for _ in table.xs]
    for i, run in enumerate(runs):
        if run.part in parts:
            for x in table.sets.rows[run.xs]:
                held[x].append((run.start, run.start + run.length, i))
    rows = [row for x in held for row in sorted(x)]
    columns = np.array(rows, np.int64).reshape(len(rows), 3)
    return run_walk.Cover(_ints([0, *accumulate(map(len, held))]), columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


def _ints(values: Any) -> np.ndarray:
    return np.array(list(values), np.int64)
