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

from pkd.kernels.columns import AT_ONCE, Offset, add_bonus, best_of_bundles, expectation, moments, optimistic_mix, spread
from pkd.kernels.forms import HOEFFDING, NO_BONUS
from pkd.kernels.jit import jit

PARTS = 64  # of a level, for threads to share


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
    policy_ptr: np.ndarray  # (H + 1,) where the choices of a layer stand, x by x, for the columns from policy_from to policy_to - 1
    policy_from: np.ndarray  # (H,)
    policy_to: np.ndarray  # (H,)
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


class Layer(NamedTuple):
    """V[x, y] of one layer, and the possible return to go where a sweep needs it."""

    v: np.ndarray  # (X, Y)
    low: np.ndarray  # (X, Y)
    high: np.ndarray  # (X, Y)


STEP, LAST, CHANCES = 0, 1, 2


@jit()
def ranges(g, tiles, begin, end, reward_low, reward_high, source, target):
    """The possible return to go in tiles[begin:end]: extremes over arms, branches and outcomes."""
    set_x, branch_p, branch_law, branch_target, branch_stride = g.set_x, g.branch_p, g.branch_law, g.branch_target, g.branch_stride
    arm_reward, arm_branch, branch_reward, p_y, law, row_ptr, row_x = (
        g.arm_reward, g.arm_branch, g.branch_reward, g.p, g.law, g.row_ptr, g.row_x,
    )  # fmt: skip
    low_v, high_v, low_out, high_out = source.low.reshape(-1), source.high.reshape(-1), target.low.reshape(-1), target.high.reshape(-1)
    columns, out_columns = source.low.shape[1], target.low.shape[1]
    most = 0
    for i in range(begin, end):
        most = max(most, g.item_count[tiles[i]])
    low, high = np.empty(most), np.empty(most)
    for place in range(begin, end):
        item = tiles[place]
        gang, offset, n = g.item_gang[item], g.item_from[item], Offset(g.item_count[item])
        for j in range(g.gang_ptr[gang], g.gang_ptr[gang + 1]):
            run = g.gang_run[j]
            y, arm_from, arm_to = g.run_start[run] + offset, g.run_arm[run], g.run_arm[run + 1]
            for m in range(g.set_ptr[g.run_set[run]], g.set_ptr[g.run_set[run] + 1]):
                x = set_x[m]
                at = Offset(x * out_columns + y)
                for i in range(n):
                    low_out[at + i] = np.inf
                    high_out[at + i] = -np.inf
                for a in range(arm_from, arm_to):
                    for k in range(arm_branch[a], arm_branch[a + 1]):
                        if p_y[branch_p[k], x] == 0.0:
                            continue
                        row, stride = law[branch_law[k], x], branch_stride[k]
                        base = branch_target[k] + offset * stride
                        spread(row_x, row_ptr[row], row_ptr[row + 1], low_v, high_v, columns, base, stride, n, low, high)
                        least = reward_low[arm_reward[a], x] + reward_low[branch_reward[k], x]
                        largest = reward_high[arm_reward[a], x] + reward_high[branch_reward[k], x]
                        for i in range(n):
                            low_out[at + i] = min(low_out[at + i], least + low[i])
                            high_out[at + i] = max(high_out[at + i], largest + high[i])


@jit()
def values(g, b, tiles, begin, end, t, source, target, reward_low, reward_high, policy, follow):
    """The values of tiles[begin:end], all of one level, in layer t. Returns how many choices changed.

        Q(x, y) of an arm = r + sum over its branches of P_Y min(ceiling, r' + min(cap, pV(., y') + bonus)),   V = max Q

    Fields are taken out of g and b once: each access inside a loop would count references.
    """
    item_gang, item_from, item_count, gang_ptr, gang_run = g.item_gang, g.item_from, g.item_count, g.gang_ptr, g.gang_run
    run_set, run_start, run_decides, run_bundle, run_arm, set_ptr, set_x = (
        g.run_set, g.run_start, g.run_decides, g.run_bundle, g.run_arm, g.set_ptr, g.set_x,
    )  # fmt: skip
    arm_reward, arm_branch, branch_p, branch_law, branch_reward, branch_share, branch_target, branch_stride = (
        g.arm_reward, g.arm_branch, g.branch_p, g.branch_law, g.branch_reward, g.branch_share, g.branch_target, g.branch_stride,
    )  # fmt: skip
    p_y, law, row_ptr, row_x, outcome, p, row_end, reward, n_z, ell_rows = (
        g.p, g.law, g.row_ptr, g.row_x, b.x, b.q, b.end, b.reward, b.n, b.ell,
    )  # fmt: skip
    form, ceiling, ranged = b.form, b.ceiling, np.isnan(b.width)
    if ranged:
        ranges(g, tiles, begin, end, reward_low, reward_high, source, target)
    v, low_v, high_v, out = source.v.reshape(-1), source.low.reshape(-1), source.high.reshape(-1), target.v.reshape(-1)
    columns, out_columns = source.v.shape[1], target.v.shape[1]
    chosen, chosen_columns = (g.policy_ptr[t] - g.policy_from[t], g.policy_to[t] - g.policy_from[t]) if t < g.policy_to.shape[0] else (0, 0)
    most, width = 0, 0
    for place in range(begin, end):
        item = tiles[place]
        most = max(most, item_count[item])
        for j in range(gang_ptr[item_gang[item]], gang_ptr[item_gang[item] + 1]):
            width = max(width, item_count[item] * max(run_bundle[gang_run[j]], 1))
    q, e, s, low, high = np.empty(width), np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    room, best, arg = np.empty(AT_ONCE * width), np.empty(most), np.empty(most, policy.dtype)
    changed = 0
    for place in range(begin, end):
        item = tiles[place]
        gang, offset, count = item_gang[item], item_from[item], Offset(item_count[item])
        for j in range(gang_ptr[gang], gang_ptr[gang + 1]):
            run = gang_run[j]
            decides, bundle, y = run_decides[run], run_bundle[run], run_start[run] + offset
            n = count * Offset(max(bundle, 1))
            for m in range(set_ptr[run_set[run]], set_ptr[run_set[run] + 1]):
                x = set_x[m]
                at, mine = Offset(x * out_columns + y), Offset(chosen + x * chosen_columns + y)
                for a in range(run_arm[run], run_arm[run] + 1 if bundle > 0 else run_arm[run + 1]):
                    outer, keep = reward[arm_reward[a], x], arm_branch[a + 1] - arm_branch[a] != 1
                    if keep:
                        for i in range(n):
                            q[i] = outer
                    for k in range(arm_branch[a], arm_branch[a + 1]):
                        weight = p_y[branch_p[k], x]
                        if weight == 0.0:
                            continue
                        row, inner = law[branch_law[k], x], reward[branch_reward[k], x]
                        stride = 1 if bundle > 0 else branch_stride[k]
                        base = branch_target[k] + offset * (bundle if bundle > 0 else stride)
                        lo, hi = row_ptr[row], row_end[row]
                        constant = inner if keep else outer + inner
                        if form == NO_BONUS or row >= g.n_unknown:
                            expectation(outcome, p, lo, hi, v, columns, base, stride, n, constant, keep, weight, q, room)
                            continue
                        seen, ell = n_z[row], ell_rows[branch_share[k], x]
                        scale = ell / np.sqrt(seen) * b.c1 if form == HOEFFDING else b.c2 * ell / seen
                        factor, term = 0.0 if form == HOEFFDING else b.c1 * np.sqrt(ell / seen), scale * b.width
                        top = ceiling if keep else outer + ceiling
                        if ranged:
                            spread(row_x, lo, row_ptr[row + 1], low_v, high_v, columns, base, stride, n, low, high)
                        if seen <= b.free or scale >= 1.0:  # the bonus alone reaches from the lowest value to the cap
                            for i in range(n):
                                value = constant + high[i] if ranged else top
                                q[i] = q[i] + weight * value if keep else value
                        elif hi - lo <= AT_ONCE and stride == 1 and not ranged:
                            optimistic_mix(outcome, p, lo, hi, v, columns, base, n, form, factor, term, constant, top, keep, weight, q)
                        else:
                            moments(outcome, p, lo, hi, v, columns, base, stride, n, e, s, room)
                            add_bonus(room, e, s, n, form, factor, term, scale, ranged, low, high, constant, top, keep, weight, q)
                    if not decides:
                        for i in range(n):
                            out[at + i] = q[i]
                    elif bundle == 0:
                        which = a - run_arm[run]
                        for i in range(n):
                            better = policy[mine + i] == which if follow else which == 0 or q[i] > best[i]
                            best[i] = q[i] if better else best[i]
                            arg[i] = which if better else arg[i]
                    elif follow:
                        for i in range(count):
                            out[at + i] = q[i * Offset(bundle) + Offset(policy[mine + i])]
                    else:
                        changed += best_of_bundles(q, bundle, count, out, at, policy, mine)
                if decides and bundle == 0:
                    for i in range(n):
                        out[at + i] = best[i]
                        changed += policy[mine + i] != arg[i]
                        policy[mine + i] = arg[i]
    return changed


@jit()
def tiles_of(g, level, t):
    """The tiles of a level that layer t needs."""
    found = np.empty(g.level_ptr[level + 1] - g.level_ptr[level], np.int64)
    count = 0
    for item in range(g.level_ptr[level], g.level_ptr[level + 1]):
        if g.gang_active[g.item_gang[item], t]:
            found[count] = item
            count += 1
    return found[:count]


@jit()
def layer_serial(g, b, first, lo, hi, t, source, target, reward_low, reward_high, policy, follow):
    """One layer: level `first` from the values of the next layer, then the CHANCE levels lo..hi - 1 from the layer itself."""
    changed = 0
    for level in range(lo - 1, hi):
        which, read = (first, source) if level < lo else (level, target)
        if which >= 0 and g.level_active[which, t]:
            tiles = tiles_of(g, which, t)
            changed += values(g, b, tiles, 0, len(tiles), t, read, target, reward_low, reward_high, policy, follow)
    return changed


@jit(parallel=True)
def layer_parallel(g, b, first, lo, hi, t, source, target, reward_low, reward_high, policy, follow):
    """`layer_serial` on all threads; the tiles of a level do not depend on each other, so the bits are the same."""
    changed = 0
    for level in range(lo - 1, hi):
        which = first if level < lo else level
        if which < 0 or not g.level_active[which, t]:
            continue
        tiles = tiles_of(g, which, t)
        count = len(tiles)
        parts = min(count, PARTS)
        for part in numba.prange(parts):
            begin, end = part * count // parts, (part + 1) * count // parts
            if level < lo:
                changed += values(g, b, tiles, begin, end, t, source, target, reward_low, reward_high, policy, follow)
            else:
                changed += values(g, b, tiles, begin, end, t, target, target, reward_low, reward_high, policy, follow)
    return changed


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
