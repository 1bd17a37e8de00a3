"""Forward through the runs: which run holds a state, where its moves can lead, and whole episodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.kernels.flat import add_reward
from pkd.kernels.flat import count as count_outcome
from pkd.kernels.jit import jit
from pkd.kernels.rng import draw, uniform


class Cover(NamedTuple):
    """Which run holds (x, y), for each x the runs in the order of their first column."""

    ptr: np.ndarray  # (X + 1,)
    start: np.ndarray
    stop: np.ndarray
    run: np.ndarray


class Walk(NamedTuple):
    """What episodes need beside the runs."""

    horizon: int
    layers: Cover
    last: Cover
    settled: Cover
    ends: np.ndarray  # sorted keys x * columns + y of the ends in the layers
    ends_pay: np.ndarray
    settled_ends: np.ndarray
    settled_pay: np.ndarray
    columns: int
    settled_columns: int
    start_x: np.ndarray
    start_y: np.ndarray
    start_p: np.ndarray  # cumulative
    mean: np.ndarray  # (rows of rewards, X): which unknown reward is drawn, or -1


@jit()
def find(cover, x, y):
    """The run that holds (x, y), or -1."""
    lo, hi = cover.ptr[x], cover.ptr[x + 1]
    while lo < hi:
        m = (lo + hi) >> 1
        if cover.start[m] <= y:
            lo = m + 1
        else:
            hi = m
    lo -= 1
    if lo >= cover.ptr[x] and y < cover.stop[lo]:
        return cover.run[lo]
    return -1


@jit()
def reach(g, level, t, here, there):
    """Marks in `there` where the marked states of a level can lead from layer t; here, there: (X, Y) bool."""
    for item in range(g.level_ptr[level], g.level_ptr[level + 1]):
        gang = g.item_gang[item]
        if not g.gang_active[gang, t]:
            continue
        for j in range(g.gang_ptr[gang], g.gang_ptr[gang + 1]):
            run = g.gang_run[j]
            for m in range(g.set_ptr[g.run_set[run]], g.set_ptr[g.run_set[run] + 1]):
                x = g.set_x[m]
                for i in range(g.item_from[item], g.item_from[item] + g.item_count[item]):
                    if here[x, g.run_start[run] + i]:
                        for k in range(g.arm_branch[g.run_arm[run]], g.arm_branch[g.run_arm[run + 1]]):
                            row = g.law[g.branch_law[k], x]
                            if g.p[g.branch_p[k], x] > 0.0:
                                for o in range(g.row_ptr[row], g.row_ptr[row + 1]):
                                    there[g.row_x[o], g.branch_target[k] + g.branch_stride[k] * i] = True


@jit()
def paid_at_end(keys, pays, key):
    i = np.searchsorted(keys, key)
    return pays[i] if i < keys.shape[0] and keys[i] == key else 0.0


@jit()
def earned(walk, reward, world, tally, which, x, rng):
    """A reward of row `which`: known, or drawn and counted. Returns it, and whether a mark was reached."""
    w = walk.mean[which, x]
    if w < 0:
        return reward[which, x], False
    value = world.reward_value[draw(world.reward_rows, world.reward_ptr[w], world.reward_ptr[w + 1], uniform(rng))]
    return value, add_reward(tally, w, value, 1.0)


@jit()
def rollout(g, walk, reward, world, policy, tally, rng):
    """One episode: adds to the tally; returns (return, whether a mark was reached). reward: the known parts, (rows of rewards, X)."""
    i = draw(walk.start_p, np.int64(0), walk.start_p.shape[0], uniform(rng))
    x, y = walk.start_x[i], walk.start_y[i]
    total = 0.0
    due = settled = False
    t = 0
    while True:
        if settled:
            run = find(walk.settled, x, y)
        else:
            run = find(walk.last, x, y) if t == walk.horizon - 1 else -1
            if run < 0:
                run = find(walk.layers, x, y)
        if run < 0:
            pay = (
                paid_at_end(walk.settled_ends, walk.settled_pay, x * walk.settled_columns + y)
                if settled
                else paid_at_end(walk.ends, walk.ends_pay, x * walk.columns + y)
            )
            return total + pay, due
        a = g.run_arm[run]
        if g.run_decides[run]:
            a += policy[g.policy_ptr[t] + x * (g.policy_to[t] - g.policy_from[t]) + y - g.policy_from[t]]
        r, reached = earned(walk, reward, world, tally, g.arm_reward[a], x, rng)
        total += r
        due = due or reached
        u, k = uniform(rng), g.arm_branch[a]
        mass = g.p[g.branch_p[k], x]
        while u >= mass and k + 1 < g.arm_branch[a + 1]:
            k += 1
            mass += g.p[g.branch_p[k], x]
        while g.p[g.branch_p[k], x] == 0.0:  # only where rounding left u above the whole mass
            k -= 1
        r, reached = earned(walk, reward, world, tally, g.branch_reward[k], x, rng)
        total += r
        due = due or reached
        row = g.law[g.branch_law[k], x]
        y = g.branch_target[k] + g.branch_stride[k] * (y - g.run_start[run])
        o = g.row_ptr[row]
        if g.row_ptr[row + 1] - o > 1:
            o = draw(world.rows, o, g.row_ptr[row + 1], uniform(rng))
        if row < g.n_unknown:
            due = count_outcome(tally, row, o) or due
        x = g.row_x[o]
        if g.run_decides[run]:
            t += 1
            settled = t == walk.horizon


@jit()
def episodes(g, walk, reward, world, policy, tally, rng, returns):
    """Episodes under a fixed policy until a mark is reached or `returns` is full. Returns (how many, whether a mark was reached)."""
    for k in range(returns.shape[0]):
        returns[k], due = rollout(g, walk, reward, world, policy, tally, rng)
        if due:
            return k + 1, True
    return returns.shape[0], False
