"""From the graph of a model to the arrays of the node engine.

`assemble_walk` keeps every cell, for episodes. `assemble_program` makes what a sweep computes:
levels, cells, actions, branches, pairs and groups, in an order in which values are ready when they
are read. CHANCE states that only pass on (one branch, a sure move into them) are inlined into their
users: in a model of late observations they are two thirds of all states.
"""

from __future__ import annotations

from typing import NamedTuple

import attrs
import numpy as np

from pkd.engine.nodes.kernels import CHANCES as FIRST_CHANCE_LEVEL
from pkd.engine.nodes.kernels import Program
from pkd.engine.nodes.walk import Walk
from pkd.explore.flat import Flat
from pkd.explore.graph import CHANCE_STATE, CHANCES, LAST, SETTLED, STEP, Graph
from pkd.explore.segments import accumulate, lengths_to_ptr, spread, take

Array = np.ndarray


def assemble_walk(graph: Graph) -> Walk:
    """What episodes go through."""
    flat = graph.flat
    return Walk(
        horizon=graph.horizon,
        cell_of_step=flat.cell_of[0],
        cell_of_last=flat.cell_of[1],
        cell_of_settled=flat.cell_of[2],
        decisions=int((flat.part <= LAST).sum()),
        cell_choice=flat.choice[np.where(flat.part == SETTLED, 0, flat.node)],
        action_ptr=flat.action_ptr,
        action_reward=flat.reward,
        action_mean=flat.mean,
        action_note=flat.note,
        branch_ptr=flat.branch_ptr,
        branch_p=accumulate(flat.p, flat.branch_ptr),
        branch_row=flat.row,
        branch_landing=flat.landing,
        landing_ptr=flat.landing_ptr,
        landing_node=flat.landing_node,
        final=flat.final[0],
        final_settled=flat.final[1],
        row_ptr=flat.row_ptr,
        n_unknown=len(graph.features),
        start_node=np.array([node for node, _, _ in graph.start], np.int64),
        start_p=np.cumsum([p for _, _, p in graph.start]),
    )


@attrs.define(eq=False)
class _Branches:
    """The branches of all cells, after inlining."""

    p: Array
    reward: Array
    row: Array
    landing: Array
    share: Array


def assemble_program(
    graph: Graph, weights: dict[tuple[int, float], int], *, inline: bool = True
) -> Program:
    """The program of a sweep. weights: filled with the distinct (row, share) of unknown rows."""
    flat, order = graph.flat, graph.levels  # refuses cycles, which inlining would follow for ever
    branches = _Branches(
        flat.p.copy(), np.repeat(flat.reward, np.diff(flat.branch_ptr)), flat.row.copy(),
        flat.landing.copy(), flat.share.copy(),
    )  # fmt: skip
    if inline:
        _inline(graph, flat, branches)
    kept = _find_reached(graph, flat, branches, _find_chances(graph, flat))
    level, n_levels, settlement = _find_levels(flat, order, kept)
    return _order(graph, flat, branches, kept, level, n_levels, settlement, weights)


def _inline(graph: Graph, flat: Flat, branches: _Branches) -> None:
    """Replaces a sure branch into a CHANCE state with one branch by that branch, and its reward."""
    declared, n_unknown = graph.model.return_range is not None, len(graph.features)
    n_actions = np.diff(flat.action_ptr)
    head = flat.action_ptr[:-1]
    single = (flat.part >= CHANCES) & (n_actions == 1)
    single[single] = (np.diff(flat.branch_ptr)[head[single]] == 1) & (flat.mean[head[single]] < 0)
    action_of = np.repeat(np.arange(len(flat.reward)), np.diff(flat.branch_ptr))
    cell_of = np.repeat(np.arange(len(flat.node)), n_actions)[action_of]
    settles = np.isin(flat.part[cell_of], (LAST, SETTLED))
    lone = (np.diff(flat.landing_ptr) == 1)[branches.landing]
    mean = flat.mean[action_of]
    while True:  # a chain of such states is inlined one by one
        sure = np.flatnonzero((branches.row >= n_unknown) & lone)
        node = flat.landing_node[flat.landing_ptr[branches.landing[sure]]]
        inner = np.where(settles[sure], -1, 0)
        layered = ~settles[sure]
        inner[layered] = flat.cell_of[0][node[layered]]
        inner[~layered] = flat.cell_of[2][node[~layered]]
        found = inner >= 0
        found[found] = single[inner[found]]
        sure, inner = sure[found], inner[found]
        at = flat.branch_ptr[head[inner]]
        if declared:  # the ceiling holds for the inner reward alone
            plain = (branches.row[at] >= n_unknown) | (
                (branches.reward[sure] == 0) & (mean[sure] < 0)
            )
            sure, inner, at = sure[plain], inner[plain], at[plain]
        if not len(sure):
            return
        branches.p[sure] *= branches.p[at]
        branches.reward[sure] += branches.reward[at]
        for values in (branches.row, branches.landing, branches.share):
            values[sure] = values[at]
        lone = (np.diff(flat.landing_ptr) == 1)[branches.landing]


def _find_landings(flat: Flat, branches: _Branches, cells: Array) -> tuple[Array, Array]:
    """(cell, landing) for the branches of some cells, each pair once."""
    of_action, actions = spread(flat.action_ptr[cells], flat.action_ptr[cells + 1])
    of_branch, at = spread(flat.branch_ptr[actions], flat.branch_ptr[actions + 1])
    count = max(len(flat.landing_ptr), 1)
    pairs = np.sort(cells[of_action[of_branch]] * count + branches.landing[at])
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # faster than np.unique
    return pairs // count, pairs % count


def _find_chances(graph: Graph, flat: Flat) -> tuple[Array, Array]:
    """(landing, cell) for every CHANCE state that a landing holds."""
    which, places = spread(flat.landing_ptr[:-1], flat.landing_ptr[1:])
    node, settled = flat.landing_node[places], np.array(graph.settling, bool)[which]
    cell = np.empty(len(node), np.int64)
    cell[settled] = flat.cell_of[2][node[settled]]
    cell[~settled] = flat.cell_of[0][node[~settled]]
    chance = cell >= 0
    chance[chance] = flat.part[cell[chance]] >= CHANCES
    return which[chance], cell[chance]


def _find_reached(
    graph: Graph, flat: Flat, branches: _Branches, chances: tuple[Array, Array]
) -> Array:
    """The cells that are left when inlined CHANCE states are not needed any more."""
    kept = flat.part <= LAST
    for node, _, _ in graph.start:
        if flat.kind[0][node] == CHANCE_STATE:
            kept[flat.cell_of[0][node]] = True
    fresh = np.flatnonzero(kept)
    while len(fresh):
        met = np.zeros(len(flat.landing_ptr), bool)
        met[_find_landings(flat, branches, fresh)[1]] = True
        found = np.zeros(len(flat.node), bool)
        found[chances[1][met[chances[0]]]] = True
        fresh = np.flatnonzero(found & ~kept)
        kept[fresh] = True
    return kept


def _find_levels(flat: Flat, order: tuple[Array, Array], kept: Array) -> tuple[Array, int, int]:
    """(level of each cell, number of levels, first level of the settlement)."""
    at = FIRST_CHANCE_LEVEL
    level, settlement = flat.part.copy(), at
    for side, part in enumerate((CHANCES, SETTLED)):
        settlement = at
        mine = np.flatnonzero(kept & (flat.part == part))
        found, rank = np.unique(order[side][flat.node[mine]], return_inverse=True)
        level[mine] = at + rank
        at += len(found)
    return level, at, settlement


class _Pairs(NamedTuple):
    """The distinct pairs (landing, law row) that branches read."""

    of_branch: Array  # (branches,)
    branch: Array  # (pairs,) one branch of each
    row: Array
    landing: Array
    level: Array
    first: Array  # the first layer in which it is computed
    last: Array


class _Groups(NamedTuple):
    """Pairs of one level that lead to the same nodes, all unknown or all known."""

    of_pair: Array  # (pairs,) in the order of `pairs`
    pairs: Array  # all pairs, group by group
    landing: Array  # (groups,)
    level: Array
    first: Array
    last: Array


def _order(
    graph: Graph, flat: Flat, branches: _Branches, kept: Array, level: Array, n_levels: int,
    settlement: int, weights: dict[tuple[int, float], int],
) -> Program:  # fmt: skip
    """The program: cells by level and first layer, and what their branches read."""
    horizon, n_unknown = graph.horizon, len(graph.features)
    cells = np.flatnonzero(kept)
    first, last = _find_windows(graph, flat, cells)
    order = np.lexsort((cells, first, level[cells]))
    cells, first, last = cells[order], first[order], last[order]
    action_ptr, actions = take(flat.action_ptr, cells)
    branch_ptr, at = take(flat.branch_ptr, actions)
    cell_of = np.repeat(np.repeat(np.arange(len(cells)), np.diff(action_ptr)), np.diff(branch_ptr))
    row, landing = branches.row[at], branches.landing[at]
    sure = (row >= n_unknown) & (np.diff(flat.landing_ptr)[landing] == 1)
    lone = flat.landing_node[flat.landing_ptr[landing[sure]]]
    user = cell_of[~sure]
    uses = level[cells][user], first[user], last[user]
    pairs = _find_pairs(flat, row[~sure], landing[~sure], uses, n_levels, horizon)
    groups = _find_groups(flat, pairs, n_unknown, horizon)
    number = _invert(groups.pairs)
    branch_pair = np.empty(len(sure), np.int64)
    branch_pair[sure], branch_pair[~sure] = -1 - lone, number[pairs.of_branch]
    pair_row = pairs.row[groups.pairs]
    share = branches.share[at][~sure][pairs.branch][groups.pairs]
    group_ptr, places = take(flat.landing_ptr, groups.landing)
    group_pair = lengths_to_ptr(np.bincount(groups.of_pair, minlength=len(groups.landing)))
    packing, matrix = _fill_matrices(flat.row_ptr, pair_row, group_pair)
    edges = np.arange(n_levels)
    bounds = [
        np.searchsorted(level[cells], edges), np.searchsorted(level[cells], edges, "right"),
        np.searchsorted(groups.level, edges), np.searchsorted(groups.level, edges, "right"),
    ]  # fmt: skip
    return Program(
        horizon=horizon,
        levels=np.array(bounds).T.copy(),
        settlement=settlement,
        cell_node=flat.node[cells],
        cell_choice=flat.choice[np.where(flat.part[cells] == SETTLED, 0, flat.node[cells])],
        cell_first=first,
        cell_last=last,
        action_ptr=action_ptr,
        action_mean=flat.mean[actions],
        branch_ptr=branch_ptr,
        branch_p=branches.p[at],
        branch_reward=branches.reward[at],
        branch_pair=branch_pair,
        pair_row=pair_row,
        pair_weight=_weigh(weights, pair_row, share, n_unknown),
        pair_group=groups.of_pair,
        group_pair=group_pair,
        group_ptr=group_ptr,
        group_node=flat.landing_node[places],
        group_matrix=matrix,
        group_first=groups.first,
        group_last=groups.last,
        row_ptr=flat.row_ptr,
        n_unknown=n_unknown,
        packing=packing,
        start_node=np.array([node for node, _, _ in graph.start], np.int64),
        start_p=np.array([p for _, _, p in graph.start], float),
    )


def _find_pairs(
    flat: Flat,
    row: Array,
    landing: Array,
    uses: tuple[Array, Array, Array],
    n_levels: int,
    horizon: int,
) -> _Pairs:
    """The pairs of branches with these rows and landings.

    uses: for each branch the level, the first and the last layer of its cell. A pair belongs to the
    lowest CHANCE level that uses it. A decision then reads what that level computed one layer
    later, so it is not computed again.
    """
    level, first, last = uses
    key = landing * max(len(flat.row_ptr), 1) + row
    _, some, pair = np.unique(key, return_index=True, return_inverse=True)
    chance = level >= FIRST_CHANCE_LEVEL
    pair_level = np.full(len(some), n_levels)
    np.minimum.at(pair_level, pair[chance], level[chance])
    alone = pair_level[pair] == n_levels
    pair_level[pair[alone]] = level[alone]
    later = ~chance & ~alone
    pair_first, pair_last = _join_windows(pair, len(some), (first + later, last + later), horizon)
    return _Pairs(pair, some, row[some], landing[some], pair_level, pair_first, pair_last)


def _find_groups(flat: Flat, pairs: _Pairs, n_unknown: int, horizon: int) -> _Groups:
    """The groups by level and first layer, and the pairs in their order."""
    where = pairs.level * max(len(flat.landing_ptr), 1) + pairs.landing
    key = where * 2 + (pairs.row >= n_unknown)
    _, member, group = np.unique(key, return_index=True, return_inverse=True)
    first, last = _join_windows(group, len(member), (pairs.first, pairs.last), horizon)
    order = np.lexsort((np.arange(len(member)), first, pairs.level[member]))
    of_pair = _invert(order)[group]
    listed = np.lexsort((pairs.row, of_pair))
    member = member[order]
    landing, level = pairs.landing[member], pairs.level[member]
    return _Groups(of_pair[listed], listed, landing, level, first[order], last[order])


def _join_windows(
    owner: Array, count: int, window: tuple[Array, Array], horizon: int
) -> tuple[Array, Array]:
    """The smallest window of each owner that holds those of all that it owns."""
    first, last = np.full(count, horizon), np.zeros(count, int)
    np.minimum.at(first, owner, window[0])
    np.maximum.at(last, owner, window[1])
    return first, last


def _invert(order: Array) -> Array:
    """The place of each number in a permutation."""
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))
    return place


def _find_windows(graph: Graph, flat: Flat, cells: Array) -> tuple[Array, Array]:
    """The layers in which cells are needed; the settlement is layer H."""
    part, horizon = flat.part[cells], graph.horizon
    node = np.where(part == SETTLED, 0, flat.node[cells])
    first, last = flat.first[node].copy(), flat.last[node].copy()
    last[part == STEP] = np.minimum(last[part == STEP], horizon - 2)
    first[part == LAST] = last[part == LAST] = horizon - 1
    first[part == SETTLED] = last[part == SETTLED] = horizon
    return first, last


def _fill_matrices(row_ptr: Array, pair_row: Array, group_pair: Array) -> tuple[Array, Array]:
    """Where the matrix of each group stands, and what it consists of; equal groups share one."""
    known: dict[bytes, int] = {}
    pieces, at = [], 0
    matrix = np.zeros(len(group_pair) - 1, np.int64)
    for group in range(len(matrix)):
        rows = pair_row[group_pair[group] : group_pair[group + 1]]
        key = rows.tobytes()
        if key not in known:
            size = int(row_ptr[rows[0] + 1] - row_ptr[rows[0]])
            known[key] = at
            pieces.append((row_ptr[rows][None, :] + np.arange(size)[:, None]).reshape(-1))
            at += size * len(rows)
        matrix[group] = known[key]
    return np.concatenate(pieces) if pieces else np.zeros(0, np.int64), matrix


def _weigh(
    weights: dict[tuple[int, float], int], row: Array, share: Array, n_unknown: int
) -> Array:
    """Numbers for the distinct (row, share); a share that is not a number is the uniform one."""
    found = np.zeros(len(row), np.int64)
    for i, (z, w) in enumerate(zip(row.tolist(), share.tolist(), strict=True)):
        if z < n_unknown:
            found[i] = weights.setdefault((z, -1.0 if w != w else w), len(weights))
    return found
