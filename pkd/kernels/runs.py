"""The run engine: backward sweeps over V[x, y] for large, structured models.

A *run* is a stretch of consecutive columns y, for a set of x, whose moves are alike: branch k of arm a leads from column y0 + i to column
target + stride * i with the same rows of probabilities, laws and rewards over x. Work is cut into tiles of columns; runs that read the same
columns form a *gang*, so that a tile of V is loaded once for all of them. Where the arms of a run append the last action to a queue (arm a
leads to target + a with a stride equal to the number of arms) the run is a *bundle*: the products for all arms are one contiguous
stretch, and the maximum is taken over groups. Product first, then maximum.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np

from pkd.kernels.flat import add_reward
from pkd.kernels.flat import count as count_outcome
from pkd.kernels.forms import HOEFFDING, MAX, NO_BONUS
from pkd.kernels.jit import jit
from pkd.kernels.rng import draw, uniform


class Runs(NamedTuple):
    """The structure: everything that no law and no counts can change."""

    run_set: np.ndarray  # (runs,) which set of x
    run_start: np.ndarray  # (runs,) first column
    run_decides: np.ndarray  # (runs,) bool
    run_bundle: np.ndarray  # (runs,) number of arms of a bundle, or 0
    run_arm: np.ndarray  # (runs + 1,)
    arm_reward: np.ndarray  # (arms,) row of rewards paid outside the ceiling
    arm_branch: np.ndarray  # (arms + 1,)
    branch_p: np.ndarray  # (branches,) row of probabilities
    branch_law: np.ndarray  # (branches,) row of laws
    branch_reward: np.ndarray  # (branches,) row of rewards paid under the ceiling
    branch_share: np.ndarray  # (branches,) row of shares, which is also the row of ell
    branch_target: np.ndarray  # (branches,)
    branch_stride: np.ndarray  # (branches,)
    set_ptr: np.ndarray  # (sets + 1,)
    set_x: np.ndarray
    p: np.ndarray  # (rows of probabilities, X)
    law: np.ndarray  # (rows of laws, X): a row of the law, or -1
    row_ptr: np.ndarray  # (rows of the law + 1,)
    row_x: np.ndarray  # the x' of each outcome
    n_unknown: int
    gang_run: np.ndarray  # runs, gang by gang
    gang_ptr: np.ndarray  # (gangs + 1,)
    gang_active: np.ndarray  # (gangs, H + 1) bool: in which layers; the last one is the settlement
    item_gang: np.ndarray  # (items,)
    item_from: np.ndarray  # (items,) first column of the tile, counted from the start of each run
    item_count: np.ndarray  # (items,)
    level_ptr: np.ndarray  # (levels + 1,) items of a level: decisions, last decisions, CHANCE levels, settlement levels
    level_active: np.ndarray  # (levels, H + 1)
    settlement: int  # the first level of the settlement


class Belief(NamedTuple):
    """A law, and for an optimistic sweep what makes the bonus."""

    p: np.ndarray  # (outcomes of all rows,)
    end: np.ndarray  # (rows of the law,): the outcomes of positive probability of a row are those from row_ptr to here
    x: np.ndarray  # their x', packed to the front of each row
    q: np.ndarray  # their probabilities
    mean: np.ndarray  # (learned means,) of unknown rewards
    reward: np.ndarray  # (rows of rewards, X), with the means
    form: int
    c1: float
    c2: float
    free: float
    ceiling: float
    width: float  # declared; not a number where every pair has its own
    n: np.ndarray  # (unknown rows,)
    ell: np.ndarray  # (rows of shares, X)


STEP, LAST, CHANCES = 0, 1, 2


@jit()
def stretch_of(v, x, base, stride, count):
    """V[x, base + stride i] for i < count. As a slice: an index that might be negative would keep the loops from being vectorised."""
    if stride == 1:
        return v[x][base : base + count]
    row, gathered = v[x], np.empty(count)
    for i in range(count):
        gathered[i] = row[base + stride * i]
    return gathered


@jit(inline="always")
def expectation(g, b, row, v, base, stride, count, constant, out):
    """out[i] = constant + sum_j p_j V[x_j, base + stride i]."""
    j, hi = g.row_ptr[row], b.end[row]
    for i in range(count):
        out[i] = constant
    while j < hi:
        # Rows are taken four at a time, so that `out` is read and written once for them.
        p0, v0 = b.q[j], stretch_of(v, b.x[j], base, stride, count)
        p1, v1 = (b.q[j + 1], stretch_of(v, b.x[j + 1], base, stride, count)) if j + 1 < hi else (0.0, v0)
        p2, v2 = (b.q[j + 2], stretch_of(v, b.x[j + 2], base, stride, count)) if j + 2 < hi else (0.0, v0)
        p3, v3 = (b.q[j + 3], stretch_of(v, b.x[j + 3], base, stride, count)) if j + 3 < hi else (0.0, v0)
        if j + 1 == hi:
            for i in range(count):
                out[i] += p0 * v0[i]
        elif j + 2 == hi:
            for i in range(count):
                out[i] += p0 * v0[i] + p1 * v1[i]
        else:
            for i in range(count):
                out[i] += (p0 * v0[i] + p1 * v1[i]) + (p2 * v2[i] + p3 * v3[i])
        j += 4


@jit()
def moments(g, b, row, v, base, stride, count, e, s):
    """e[i] = pV and s[i] = Var_p(V) at base + stride i, shifted by one point of the support."""
    lo, hi = g.row_ptr[row], b.end[row]
    v0 = stretch_of(v, b.x[lo], base, stride, count)
    for i in range(count):
        e[i] = 0.0
        s[i] = 0.0
    j = lo + 1
    while j < hi:  # two rows at a time, so that e and s are read and written once for both
        p1, v1 = b.q[j], stretch_of(v, b.x[j], base, stride, count)
        p2, v2 = (b.q[j + 1], stretch_of(v, b.x[j + 1], base, stride, count)) if j + 1 < hi else (0.0, v0)
        for i in range(count):
            d1, d2 = v1[i] - v0[i], v2[i] - v0[i]
            w1, w2 = p1 * d1, p2 * d2
            e[i] += w1 + w2
            s[i] += w1 * d1 + w2 * d2
        j += 2
    for i in range(count):
        s[i] = max(s[i] - e[i] * e[i], 0.0)
        e[i] += v0[i]


@jit()
def spread(g, row, lo_v, hi_v, base, stride, count, low, high):
    """The extremes of the possible return to go over the outcomes of a row."""
    for i in range(count):
        low[i] = np.inf
        high[i] = -np.inf
    for j in range(g.row_ptr[row], g.row_ptr[row + 1]):
        below, above = stretch_of(lo_v, g.row_x[j], base, stride, count), stretch_of(hi_v, g.row_x[j], base, stride, count)
        for i in range(count):
            low[i] = min(low[i], below[i])
            high[i] = max(high[i], above[i])


@jit()
def optimistic(g, b, k, x, row, v, lo_v, hi_v, base, stride, count, e, s, low, high):
    """e[i] = min(cap, pV + bonus); the cap is infinite where a ceiling is declared."""
    n, ell = b.n[row], b.ell[g.branch_share[k], x]
    declared = not np.isnan(b.width)
    if not declared:
        spread(g, row, lo_v, hi_v, base, stride, count, low, high)
    scale = ell / np.sqrt(n) * b.c1 if b.form == HOEFFDING else b.c2 * ell / n
    if n <= b.free or scale >= 1.0:  # the bonus alone reaches from the lowest value to the cap
        for i in range(count):
            e[i] = np.inf if declared else high[i]
        return
    moments(g, b, row, v, base, stride, count, e, s)
    factor = b.c1 * np.sqrt(ell / n)
    if not declared:  # low becomes the second term of the bonus
        for i in range(count):
            low[i] = scale * (high[i] - low[i])
    else:
        for i in range(count):
            low[i] = scale * b.width
            high[i] = np.inf
    if b.form == HOEFFDING:
        for i in range(count):
            e[i] = min(e[i] + low[i], high[i])
    elif b.form == MAX:
        for i in range(count):
            e[i] = min(e[i] + max(factor * np.sqrt(s[i]), low[i]), high[i])
    else:
        for i in range(count):
            e[i] = min(e[i] + (factor * np.sqrt(s[i]) + low[i]), high[i])


@jit(inline="always")
def add_arm(g, b, a, x, offset, stretch, count, v, lo_v, hi_v, q, e, s, low, high):
    """q[i] = sum over the branches of arm a of P_Y min(ceiling, r + e); `stretch` > 0: all arms of a bundle at once."""
    outer = b.reward[g.arm_reward[a], x]
    only = g.arm_branch[a + 1] - g.arm_branch[a] == 1
    if not only:
        for i in range(count):
            q[i] = outer
    for k in range(g.arm_branch[a], g.arm_branch[a + 1]):
        p = g.p[g.branch_p[k], x]
        if p == 0.0:
            continue
        row, inner = g.law[g.branch_law[k], x], b.reward[g.branch_reward[k], x]
        stride = 1 if stretch > 0 else g.branch_stride[k]
        base = g.branch_target[k] + (offset * stretch if stretch > 0 else offset * stride)
        if row >= g.n_unknown and g.row_ptr[row + 1] - g.row_ptr[row] == 1:
            v0 = stretch_of(v, g.row_x[g.row_ptr[row]], base, stride, count)
            if only:
                for i in range(count):
                    q[i] = outer + (inner + v0[i])
            else:
                for i in range(count):
                    q[i] += p * (inner + v0[i])
        elif row >= g.n_unknown or b.form == NO_BONUS:
            expectation(g, b, row, v, base, stride, count, outer + inner if only else inner, q if only else e)
            if not only:
                for i in range(count):
                    q[i] += p * e[i]
        else:
            optimistic(g, b, k, x, row, v, lo_v, hi_v, base, stride, count, e, s, low, high)
            if only:
                for i in range(count):
                    q[i] = outer + min(b.ceiling, inner + e[i])
            else:
                for i in range(count):
                    q[i] += p * min(b.ceiling, inner + e[i])


@jit()
def best_of_bundles(q, bundle, best, choice):
    """best[i] = max_a q[i bundle + a] and choice[i] = the first a that attains it. Returns how many choices changed.

    Without branches: which arm is best is hard to foresee. Four arms, the usual case, are a small tournament.
    """
    changed = 0
    if bundle == 4:
        for i in range(best.shape[0]):
            q0, q1, q2, q3 = q[4 * i], q[4 * i + 1], q[4 * i + 2], q[4 * i + 3]
            left, right = q1 if q1 > q0 else q0, q3 if q3 > q2 else q2
            which_left, which_right = 1 if q1 > q0 else 0, 3 if q3 > q2 else 2
            best[i] = right if right > left else left
            which = which_right if right > left else which_left
            changed += choice[i] != which
            choice[i] = which
        return changed
    for i in range(best.shape[0]):
        top, which = q[i * bundle], 0
        for a in range(1, bundle):
            value = q[i * bundle + a]
            which = a if value > top else which
            top = value if value > top else top
        best[i] = top
        changed += choice[i] != which
        choice[i] = which
    return changed


@jit()
def tile(g, b, item, t, v, out, lo_v, hi_v, policy, follow):
    """The values of one tile of a gang. Returns how many choices changed."""
    changed = 0
    gang, offset, count = g.item_gang[item], g.item_from[item], g.item_count[item]
    most = count
    for j in range(g.gang_ptr[gang], g.gang_ptr[gang + 1]):
        most = max(most, count * g.run_bundle[g.gang_run[j]])
    q, e, s, low, high = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    best, arg = np.empty(count), np.empty(count, np.int64)
    for j in range(g.gang_ptr[gang], g.gang_ptr[gang + 1]):
        run = g.gang_run[j]
        arms, bundle = g.run_arm[run], g.run_bundle[run]
        y = g.run_start[run] + offset
        for m in range(g.set_ptr[g.run_set[run]], g.set_ptr[g.run_set[run] + 1]):
            x = g.set_x[m]
            row = out[x][y : y + count]
            choice = policy[t, x][y : y + count] if g.run_decides[run] else policy[0, 0][:0]
            for a in range(1 if bundle > 0 else g.run_arm[run + 1] - arms):
                add_arm(g, b, arms + a, x, offset, bundle, count * max(bundle, 1), v, lo_v, hi_v, q, e, s, low, high)
                if not g.run_decides[run]:
                    for i in range(count):
                        best[i] = q[i]
                elif bundle == 0:
                    for i in range(count):
                        better = choice[i] == a if follow else a == 0 or q[i] > best[i]
                        best[i] = q[i] if better else best[i]
                        arg[i] = a if better else arg[i]
                elif follow:
                    for i in range(count):
                        best[i] = q[i * bundle + choice[i]]
                else:
                    changed += best_of_bundles(q, bundle, best, choice)
            for i in range(count):
                row[i] = best[i]
            if bundle == 0 and g.run_decides[run]:
                for i in range(count):
                    changed += choice[i] != arg[i]
                    choice[i] = arg[i]
    return changed


@jit()
def tile_range(g, item, reward_low, reward_high, lo_v, hi_v, lo_out, hi_out):
    """The possible return to go of one tile: extremes over arms, branches and outcomes."""
    gang, offset, count = g.item_gang[item], g.item_from[item], g.item_count[item]
    low, high, bottom, top = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for j in range(g.gang_ptr[gang], g.gang_ptr[gang + 1]):
        run = g.gang_run[j]
        y = g.run_start[run] + offset
        for m in range(g.set_ptr[g.run_set[run]], g.set_ptr[g.run_set[run] + 1]):
            x = g.set_x[m]
            for i in range(count):
                bottom[i] = np.inf
                top[i] = -np.inf
            for a in range(g.run_arm[run], g.run_arm[run + 1]):
                for k in range(g.arm_branch[a], g.arm_branch[a + 1]):
                    if g.p[g.branch_p[k], x] == 0.0:
                        continue
                    stride = g.branch_stride[k]
                    spread(g, g.law[g.branch_law[k], x], lo_v, hi_v, g.branch_target[k] + offset * stride, stride, count, low, high)
                    r_low = reward_low[g.arm_reward[a], x] + reward_low[g.branch_reward[k], x]
                    r_high = reward_high[g.arm_reward[a], x] + reward_high[g.branch_reward[k], x]
                    for i in range(count):
                        bottom[i] = min(bottom[i], r_low + low[i])
                        top[i] = max(top[i], r_high + high[i])
            for i in range(count):
                lo_out[x, y + i] = bottom[i]
                hi_out[x, y + i] = top[i]


@jit()
def level_serial(g, b, level, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow):
    changed = 0
    for item in range(g.level_ptr[level], g.level_ptr[level + 1]):
        if g.gang_active[g.item_gang[item], t]:
            if np.isnan(b.width):
                tile_range(g, item, reward_low, reward_high, lo_v, hi_v, lo_out, hi_out)
            changed += tile(g, b, item, t, v, out, lo_v, hi_v, policy, follow)
    return changed


@jit(parallel=True)
def level_parallel(g, b, level, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow):
    """`level_serial` on all threads; tiles do not depend on each other, so the bits are the same."""
    changed = 0
    for item in numba.prange(g.level_ptr[level], g.level_ptr[level + 1]):
        if g.gang_active[g.item_gang[item], t]:
            if np.isnan(b.width):
                tile_range(g, item, reward_low, reward_high, lo_v, hi_v, lo_out, hi_out)
            changed += tile(g, b, item, t, v, out, lo_v, hi_v, policy, follow)
    return changed


@jit()
def layer_serial(g, b, first, lo, hi, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow):
    """One layer: level `first` from the values of the next layer, then the CHANCE levels lo..hi - 1 from the layer itself."""
    changed = 0
    if first >= 0 and g.level_active[first, t]:
        changed += level_serial(g, b, first, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow)
    for level in range(lo, hi):
        if g.level_active[level, t]:
            level_serial(g, b, level, t, out, out, lo_out, hi_out, lo_out, hi_out, reward_low, reward_high, policy, follow)
    return changed


@jit()
def layer_parallel(g, b, first, lo, hi, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow):
    """`layer_serial` on all threads."""
    changed = 0
    if first >= 0 and g.level_active[first, t]:
        changed += level_parallel(g, b, first, t, v, out, lo_v, hi_v, lo_out, hi_out, reward_low, reward_high, policy, follow)
    for level in range(lo, hi):
        if g.level_active[level, t]:
            level_parallel(g, b, level, t, out, out, lo_out, hi_out, lo_out, hi_out, reward_low, reward_high, policy, follow)
    return changed


@jit()
def arm_values(g, b, run, x, offset, v, lo_v, hi_v, out):
    """Q of every arm of one state."""
    q, e, s, low, high = np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.empty(1)
    for a in range(g.run_arm[run], g.run_arm[run + 1]):
        add_arm(g, b, a, x, offset, 0, 1, v, lo_v, hi_v, q, e, s, low, high)
        out[a - g.run_arm[run]] = q[0]


@jit()
def pack(row_ptr, row_x, p, end, x, q):
    """Leaves out the outcomes of probability 0, which cost time and change nothing."""
    for row in range(end.shape[0]):
        k = row_ptr[row]
        for j in range(row_ptr[row], row_ptr[row + 1]):
            if p[j] > 0.0:
                x[k] = row_x[j]
                q[k] = p[j]
                k += 1
        end[row] = k


@jit()
def fill_rewards(known, which, mean, out):
    """out = the known part of each reward, plus the mean of its unknown part."""
    for i in range(known.shape[0]):
        for x in range(known.shape[1]):
            out[i, x] = known[i, x]
            if which[i, x] >= 0:
                out[i, x] += mean[which[i, x]]


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
    i = draw(walk.start_p, 0, walk.start_p.shape[0], uniform(rng))
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
            a += policy[t, x, y]
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
