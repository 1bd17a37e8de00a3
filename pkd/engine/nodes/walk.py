"""Episodes over a list of nodes, move by move, and what they count."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.bonus import count, count_reward
from pkd.engine.jit import inner, jit
from pkd.engine.random import draw, uniform


class Walk(NamedTuple):
    """What episodes go through: all cells, none left out and none inlined."""

    horizon: int
    cell_of_step: np.ndarray  # (nodes,) cell of a node before the last action; -1 where it stops
    cell_of_last: np.ndarray  # (nodes,) cell of a decision node at the last action, or -1
    cell_of_settled: np.ndarray  # (nodes of the settlement,) cell, or -1 where the episode stops
    decisions: int  # cells below this one are decisions
    cell_choice: np.ndarray  # (cells,) place of a decision in a policy
    action_ptr: np.ndarray  # (cells + 1,)
    action_reward: np.ndarray  # (actions,)
    action_mean: np.ndarray  # (actions,)
    action_note: np.ndarray  # (actions,) which note of the model, or -1
    branch_ptr: np.ndarray  # (actions + 1,)
    branch_p: np.ndarray  # (branches,) cumulative within an action
    branch_row: np.ndarray  # (branches,) law row
    branch_landing: np.ndarray  # (branches,)
    landing_ptr: np.ndarray  # (landings + 1,)
    landing_node: np.ndarray
    final: np.ndarray  # (nodes,) paid at END
    final_settled: np.ndarray  # (nodes of the settlement,)
    row_ptr: np.ndarray  # (law rows + 1,)
    n_unknown: int
    start_node: np.ndarray  # (starts,)
    start_p: np.ndarray  # (starts,) cumulative


PATH = 7  # columns of a path: law row, outcome, note, reward, cell, action, branch


@inner()
def rollout(g, world, policy, tally, rng, path):
    """One episode: adds to the tally, and returns (return, whether a plan is due, number of moves).

    path: (moves, PATH), filled from the first move on until it is full.
    """
    node = g.start_node[draw(g.start_p, np.int64(0), g.start_p.shape[0], uniform(rng))]
    total = 0.0
    due = settled = False
    moves = t = 0
    while True:
        if settled:
            cell = g.cell_of_settled[node]
        elif t == g.horizon - 1 and g.cell_of_last[node] >= 0:
            cell = g.cell_of_last[node]
        else:
            cell = g.cell_of_step[node]
        if cell < 0:
            return total + (g.final_settled[node] if settled else g.final[node]), due, moves
        a = g.action_ptr[cell]
        if cell < g.decisions:
            a += policy[t, g.cell_choice[cell]]
        r = g.action_reward[a]
        w = g.action_mean[a]
        if w >= 0:
            lo, hi = world.reward_ptr[w], world.reward_ptr[w + 1]
            x = world.reward_value[draw(world.reward_rows, lo, hi, uniform(rng))]
            r += x
            due = count_reward(tally, w, x, 1.0) or due
        total += r
        k = g.branch_ptr[a]
        if g.branch_ptr[a + 1] - k > 1:
            k = draw(g.branch_p, k, g.branch_ptr[a + 1], uniform(rng))
        row, o = g.branch_row[k], 0
        if g.row_ptr[row + 1] - g.row_ptr[row] > 1:
            o = draw(world.rows, g.row_ptr[row], g.row_ptr[row + 1], uniform(rng)) - g.row_ptr[row]
        if row < g.n_unknown:
            due = count(tally, row, g.row_ptr[row] + o) or due
        if moves < path.shape[0]:
            path[moves, 0], path[moves, 1] = row, o
            path[moves, 2], path[moves, 3] = g.action_note[a], r
            path[moves, 4], path[moves, 5], path[moves, 6] = cell, a, k
        moves += 1
        node = g.landing_node[g.landing_ptr[g.branch_landing[k]] + o]
        if cell < g.decisions:
            t += 1
            settled = t == g.horizon


@jit(nogil=True)
def episodes(g, world, policy, tally, rng, path, returns):
    """Plays episodes of a fixed policy until a plan is due or `returns` is full.

    Returns how many, whether a plan is due, and the number of moves of the last one.
    """
    moves = 0
    for k in range(returns.shape[0]):
        returns[k], due, moves = rollout(g, world, policy, tally, rng, path)
        if due:
            return k + 1, True, moves
    return returns.shape[0], False, moves
