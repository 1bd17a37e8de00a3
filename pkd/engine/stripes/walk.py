"""Kernels that go forward: the stripe of a state, where it can lead, and whole episodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.bonus import count, count_reward
from pkd.engine.jit import inner, jit
from pkd.engine.random import draw, uniform


class Cover(NamedTuple):
    """Which stripe holds (x, y): for each x the stripes in the order of their first column."""

    ptr: np.ndarray  # (X + 1,)
    start: np.ndarray
    stop: np.ndarray
    stripe: np.ndarray


class Walk(NamedTuple):
    """What episodes need beside the stripes."""

    horizon: int
    layers: Cover
    last: Cover
    settled: Cover
    start_x: np.ndarray
    start_y: np.ndarray
    start_p: np.ndarray  # cumulative
    reward: np.ndarray  # (rows of rewards, X): the known part
    mean: np.ndarray  # (rows of rewards, X): which unknown reward is drawn, or -1


@jit()
def find(cover, x, y):
    """The stripe that holds (x, y), or -1."""
    lo, hi = cover.ptr[x], cover.ptr[x + 1]
    while lo < hi:
        m = (lo + hi) >> 1
        if cover.start[m] <= y:
            lo = m + 1
        else:
            hi = m
    lo -= 1
    if lo >= cover.ptr[x] and y < cover.stop[lo]:
        return cover.stripe[lo]
    return -1


@jit()
def reach(g, level, t, here, there):
    """Marks where the marked states of a level can lead from layer t; here, there: (X, Y) bool."""
    for tile in range(g.level_ptr[level], g.level_ptr[level + 1]):
        batch = g.tile_batch[tile]
        if not g.batch_active[batch, t]:
            continue
        for j in range(g.batch_ptr[batch], g.batch_ptr[batch + 1]):
            stripe = g.batch_stripe[j]
            first, last = (
                g.action_branch[g.stripe_action[stripe]],
                g.action_branch[g.stripe_action[stripe + 1]],
            )
            for m in range(g.set_ptr[g.stripe_set[stripe]], g.set_ptr[g.stripe_set[stripe] + 1]):
                x = g.set_x[m]
                for i in range(g.tile_from[tile], g.tile_from[tile] + g.tile_count[tile]):
                    if here[x, g.stripe_start[stripe] + i]:
                        for k in range(first, last):
                            row = g.law[g.branch_law[k], x]
                            if g.p[g.branch_p[k], x] > 0.0:
                                for o in range(g.row_ptr[row], g.row_ptr[row + 1]):
                                    there[
                                        g.row_x[o], g.branch_target[k] + g.branch_stride[k] * i
                                    ] = True


@inner()
def pay(walk, world, tally, which, x, rng):
    """A reward of row `which`, known or drawn and counted: (reward, whether a plan is due)."""
    w = walk.mean[which, x]
    if w < 0:
        return walk.reward[which, x], False
    lo, hi = world.reward_ptr[w], world.reward_ptr[w + 1]
    value = world.reward_value[draw(world.reward_rows, lo, hi, uniform(rng))]
    return value, count_reward(tally, w, value, 1.0)


@inner()
def rollout(g, walk, world, policy, tally, rng, path):
    """One episode: adds to the tally, and returns (return, whether a plan is due, number of moves).

    path: (moves, 3) for law row, outcome and note, filled until it is full.
    """
    i = draw(walk.start_p, np.int64(0), walk.start_p.shape[0], uniform(rng))
    x, y = walk.start_x[i], walk.start_y[i]
    total = 0.0
    due = settled = False
    moves = t = 0
    while True:
        if settled:
            stripe = find(walk.settled, x, y)
        else:
            stripe = find(walk.last, x, y) if t == walk.horizon - 1 else -1
            if stripe < 0:
                stripe = find(walk.layers, x, y)
        if stripe < 0:
            return total, due, moves
        a = g.stripe_action[stripe]
        if g.stripe_decides[stripe]:
            width = g.policy_to[t] - g.policy_from[t]
            a += policy[g.policy_ptr[t] + x * width + y - g.policy_from[t]]
        r, reached = pay(walk, world, tally, g.action_reward[a], x, rng)
        total += r
        due = due or reached
        k, last = g.action_branch[a], g.action_branch[a + 1]
        if last - k > 1:
            u, mass = uniform(rng), g.p[g.branch_p[k], x]
            while u >= mass and k + 1 < last:
                k += 1
                mass += g.p[g.branch_p[k], x]
            while g.p[g.branch_p[k], x] == 0.0:  # only where rounding left u above the whole mass
                k -= 1
        r, reached = pay(walk, world, tally, g.branch_reward[k], x, rng)
        total += r
        due = due or reached
        row = g.law[g.branch_law[k], x]
        o = g.row_ptr[row]
        if g.row_ptr[row + 1] - o > 1:
            o = draw(world.rows, o, g.row_ptr[row + 1], uniform(rng))
        if row < g.n_unknown:
            due = count(tally, row, o) or due
        if moves < path.shape[0]:
            path[moves, 0], path[moves, 1], path[moves, 2] = (
                row,
                o - g.row_ptr[row],
                g.note[g.branch_note[k], x],
            )
        moves += 1
        y = g.branch_target[k] + g.branch_stride[k] * (y - g.stripe_start[stripe])
        x = g.row_x[o]
        if g.stripe_decides[stripe]:
            t += 1
            settled = t == walk.horizon


@jit(nogil=True)
def episodes(g, walk, world, policy, tally, rng, path, returns):
    """Plays episodes of a fixed policy until a plan is due or `returns` is full.

    Returns how many, and whether a plan is due.
    """
    for k in range(returns.shape[0]):
        returns[k], due, _ = rollout(g, walk, world, policy, tally, rng, path)
        if due:
            return k + 1, True
    return returns.shape[0], False
