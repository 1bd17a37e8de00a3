"""Backward sweeps over V[x, y], stripe by stripe.

Branch k of action a leads from column start + i of a stripe to column target + stride * i, with the
same rows of probabilities, laws and rewards over x. Work is cut into *tiles* of columns; stripes
that read the same columns form a *batch*, so that a tile of V is loaded once for all of them. Where
the actions of a stripe append the last action to a queue (action a leads to target + a, and the
stride is the number of actions) the stripe is a *fan*: the products for all actions are one
contiguous stretch, and the maximum is taken over groups. Product first, then maximum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.bonus import factors, is_capped
from pkd.engine.jit import inner, jit
from pkd.engine.set_values import PLACES, fill_table
from pkd.engine.stripes.columns import (
    AT_ONCE,
    Offset,
    add_bonus,
    add_other_values,
    add_set_values,
    best_of_fans,
    exact_gains,
    expectation,
    find_edges,
    find_tops,
    moments,
    moments_at_once,
    optimistic_mix,
    relate,
    spread,
    table_gains,
)  # fmt: skip
from pkd.optimism import CERTIFIED, KL_BALL, NO_BONUS, ONE_ROUND


class Stripes(NamedTuple):
    """The structure: everything that no law and no counts can change."""

    stripe_set: np.ndarray  # (stripes,) which set of x
    stripe_start: np.ndarray  # (stripes,) first column
    stripe_decides: np.ndarray  # (stripes,) bool
    stripe_fan: np.ndarray  # (stripes,) number of actions of a fan, or 0
    stripe_action: np.ndarray  # (stripes + 1,)
    action_reward: np.ndarray  # (actions,) row of rewards paid outside the ceiling
    action_branch: np.ndarray  # (actions + 1,)
    branch_p: np.ndarray  # (branches,) row of probabilities
    branch_law: np.ndarray  # (branches,) row of laws
    branch_reward: np.ndarray  # (branches,) row of rewards paid under the ceiling
    branch_weight: np.ndarray  # (branches,) row of weights
    branch_note: np.ndarray  # (branches,) row of notes
    branch_target: np.ndarray  # (branches,)
    branch_stride: np.ndarray  # (branches,)
    set_ptr: np.ndarray  # (sets + 1,)
    set_x: np.ndarray
    p: np.ndarray  # (rows of probabilities, X)
    law: np.ndarray  # (rows of laws, X): a law row
    weight: np.ndarray  # (rows of weights, X): which ell, or -1
    note: np.ndarray  # (rows of notes, X): which note of the model, or -1
    row_ptr: np.ndarray  # (rows of the law + 1,)
    row_x: np.ndarray  # the x' of each outcome
    n_unknown: int
    batch_stripe: np.ndarray  # stripes, batch by batch
    batch_ptr: np.ndarray  # (batches + 1,)
    # (batches, H + 1) bool: in which layers; the last one is the settlement.
    batch_active: np.ndarray
    tile_batch: np.ndarray  # (tiles,)
    # (tiles,) first column of the tile, counted from the start of each stripe.
    tile_from: np.ndarray
    tile_count: np.ndarray  # (tiles,)
    policy_ptr: np.ndarray  # (H + 1,) where the choices of a layer stand, x by x
    policy_from: np.ndarray  # (H,) the columns with decisions: from here
    policy_to: np.ndarray  # (H,) up to here
    # (levels + 1,) tiles: decisions, last decisions, CHANCE levels, settlement.
    level_ptr: np.ndarray
    level_active: np.ndarray  # (levels, H + 1)
    settlement: int  # the first level of the settlement


class Pack(NamedTuple):
    """What one call derives from a belief."""

    # (law rows,): the outcomes of positive probability are those from row_ptr to here.
    end: np.ndarray
    x: np.ndarray  # their x', packed to the front of each row
    q: np.ndarray  # their probabilities
    reward: np.ndarray  # (rows of rewards, X), with the means of unknown rewards
    reward_low: np.ndarray  # (rows of rewards, X), with their lowest values
    reward_high: np.ndarray  # (rows of rewards, X)
    longest: int  # most outcomes of a row
    outcome_set: np.ndarray  # (law rows,) rows with the same outcomes have the same number


class Other(NamedTuple):
    """What the rules L1_BALL and DRAWS need."""

    draws: np.ndarray | None  # of the belief, for DRAWS
    ball: bool | None  # True for L1_BALL


class Layer(NamedTuple):
    """V[x, y] of one layer, and the possible return to go where a sweep needs it."""

    v: np.ndarray  # (X, Y)
    low: np.ndarray  # (X, Y)
    high: np.ndarray  # (X, Y)


STEP, LAST, CHANCES = 0, 1, 2


@inner(allocates=True)
def ranges(g, tiles, begin, end, reward_low, reward_high, source, target):
    """The extremes of the return to go in tiles[begin:end], over actions, branches and outcomes."""
    set_x, branch_p, branch_law, branch_target, branch_stride = (
        g.set_x,
        g.branch_p,
        g.branch_law,
        g.branch_target,
        g.branch_stride,
    )
    action_reward, action_branch, branch_reward, p_y, law, row_ptr, row_x = (
        g.action_reward, g.action_branch, g.branch_reward, g.p, g.law, g.row_ptr, g.row_x,
    )  # fmt: skip
    low_v, high_v, low_out, high_out = (
        source.low.reshape(-1),
        source.high.reshape(-1),
        target.low.reshape(-1),
        target.high.reshape(-1),
    )
    columns, out_columns = source.low.shape[1], target.low.shape[1]
    most = 0
    for i in range(begin, end):
        most = max(most, g.tile_count[tiles[i]])
    low, high = np.empty(most), np.empty(most)
    for place in range(begin, end):
        tile = tiles[place]
        batch, offset, n = g.tile_batch[tile], g.tile_from[tile], Offset(g.tile_count[tile])
        for j in range(g.batch_ptr[batch], g.batch_ptr[batch + 1]):
            stripe = g.batch_stripe[j]
            y, action_from, action_to = (
                g.stripe_start[stripe] + offset,
                g.stripe_action[stripe],
                g.stripe_action[stripe + 1],
            )
            for m in range(g.set_ptr[g.stripe_set[stripe]], g.set_ptr[g.stripe_set[stripe] + 1]):
                x = set_x[m]
                at = Offset(x * out_columns + y)
                for i in range(n):
                    low_out[at + i] = np.inf
                    high_out[at + i] = -np.inf
                for a in range(action_from, action_to):
                    for k in range(action_branch[a], action_branch[a + 1]):
                        if p_y[branch_p[k], x] == 0.0:
                            continue
                        row, stride = law[branch_law[k], x], branch_stride[k]
                        base = branch_target[k] + offset * stride
                        spread(
                            row_x, row_ptr[row], row_ptr[row + 1], low_v, high_v, columns, base,
                            stride, n, low, high,
                        )  # fmt: skip
                        least = reward_low[action_reward[a], x] + reward_low[branch_reward[k], x]
                        largest = (
                            reward_high[action_reward[a], x] + reward_high[branch_reward[k], x]
                        )
                        for i in range(n):
                            low_out[at + i] = min(low_out[at + i], least + low[i])
                            high_out[at + i] = max(high_out[at + i], largest + high[i])


@jit(allocates=True, nogil=True)
def values(g, b, c, tables, other, tiles, begin, end, t, source, target, policy, follow):
    """The values of tiles[begin:end], all of one level, in layer t.

    Returns how many choices changed.

        Q(x, y) = r + sum over branches of P_Y min(ceiling, r' + min(cap, pV(., y') + bonus))
        V(x, y) = max Q over actions

    CERTIFIED: pV + bonus is the largest or the least value over a set of laws. tables: those of its
    rows, (unknown rows, 2 PLACES) flat, empty where the exact value is wanted; None: no such code
    is compiled. other: `Other` for L1_BALL and DRAWS, None for all other forms.

    Fields are taken out of g and b once: each access inside a loop would count references.
    """
    tile_batch, tile_from, tile_count, batch_ptr, batch_stripe = (
        g.tile_batch,
        g.tile_from,
        g.tile_count,
        g.batch_ptr,
        g.batch_stripe,
    )
    stripe_set, stripe_start, stripe_decides, stripe_fan, stripe_action, set_ptr, set_x = (
        g.stripe_set, g.stripe_start, g.stripe_decides, g.stripe_fan, g.stripe_action,
        g.set_ptr, g.set_x,
    )  # fmt: skip
    action_reward, action_branch = g.action_reward, g.action_branch
    branch_p, branch_law, branch_reward, branch_weight, branch_target, branch_stride = (
        g.branch_p, g.branch_law, g.branch_reward, g.branch_weight, g.branch_target,
        g.branch_stride,
    )  # fmt: skip
    p_y, law, row_ptr, row_x, outcome, p, row_end, reward, n_z, ells = (
        g.p, g.law, g.row_ptr, g.row_x, c.x, c.q, c.end, c.reward, b.n, b.ell,
    )  # fmt: skip
    form, ceiling, ranged, weights = b.form, b.ceiling, np.isnan(b.width), g.weight
    if ranged:
        ranges(g, tiles, begin, end, c.reward_low, c.reward_high, source, target)
    v, low_v, high_v, out = (
        source.v.reshape(-1),
        source.low.reshape(-1),
        source.high.reshape(-1),
        target.v.reshape(-1),
    )
    columns, out_columns = source.v.shape[1], target.v.shape[1]
    chosen, chosen_columns = (
        (g.policy_ptr[t] - g.policy_from[t], g.policy_to[t] - g.policy_from[t])
        if t < g.policy_to.shape[0]
        else (0, 0)
    )
    most, width = 0, 0
    for place in range(begin, end):
        tile = tiles[place]
        most = max(most, tile_count[tile])
        for j in range(batch_ptr[tile_batch[tile]], batch_ptr[tile_batch[tile] + 1]):
            width = max(width, tile_count[tile] * max(stripe_fan[batch_stripe[j]], 1))
    q, e, s, low, high = (
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
        np.empty(width),
    )
    copies, best, arg = np.empty(AT_ONCE * width), np.empty(most), np.empty(most, policy.dtype)
    if tables is not None:
        edge, gains, gaps, radius = np.empty(width), np.empty(width), np.empty(c.longest), b.radius
        ratio, where, tops = np.empty(width), np.empty(width, np.uint64), np.empty(width)
        # `tops` of one outcome set and stretch of columns serve all x whose laws share them.
        topped, topped_at, topped_stride, topped_n = -1, 0, 0, Offset(0)
    if other is not None:
        edge, gains, gaps = np.empty(width), np.empty(width), np.empty(c.longest)
        tops = np.empty(width)
        largest, order = np.empty(b.rounds * width), np.empty(c.longest, np.int64)
    changed = 0
    for place in range(begin, end):
        tile = tiles[place]
        batch, offset, count = tile_batch[tile], tile_from[tile], Offset(tile_count[tile])
        for j in range(batch_ptr[batch], batch_ptr[batch + 1]):
            stripe = batch_stripe[j]
            decides, fan, y = (
                stripe_decides[stripe],
                stripe_fan[stripe],
                stripe_start[stripe] + offset,
            )
            n = count * Offset(max(fan, 1))
            for m in range(set_ptr[stripe_set[stripe]], set_ptr[stripe_set[stripe] + 1]):
                x = set_x[m]
                at, mine = Offset(x * out_columns + y), Offset(chosen + x * chosen_columns + y)
                for a in range(
                    stripe_action[stripe],
                    stripe_action[stripe] + 1 if fan > 0 else stripe_action[stripe + 1],
                ):
                    outer, keep = (
                        reward[action_reward[a], x],
                        action_branch[a + 1] - action_branch[a] != 1,
                    )
                    if keep:
                        for i in range(n):
                            q[i] = outer
                    for k in range(action_branch[a], action_branch[a + 1]):
                        weight = p_y[branch_p[k], x]
                        if weight == 0.0:
                            continue
                        row, inner = law[branch_law[k], x], reward[branch_reward[k], x]
                        stride = 1 if fan > 0 else branch_stride[k]
                        base = branch_target[k] + offset * (fan if fan > 0 else stride)
                        lo, hi = row_ptr[row], row_end[row]
                        constant = inner if keep else outer + inner
                        if form == NO_BONUS or row >= g.n_unknown:
                            expectation(
                                outcome, p, lo, hi, v, columns, base, stride, n, constant, keep,
                                weight, q, copies,
                            )  # fmt: skip
                            continue
                        seen, ell = n_z[row], ells[weights[branch_weight[k], x]]
                        factor, scale = factors(form, b.c1, b.c2, seen, ell)
                        term = scale * b.width
                        top = ceiling if keep else outer + ceiling
                        over_sets = tables is not None and form in (CERTIFIED, KL_BALL)
                        mvp = not is_capped(seen, b.free, scale)
                        if ranged and (mvp or not over_sets):
                            spread(
                                row_x, lo, row_ptr[row + 1], low_v, high_v, columns, base, stride,
                                n, low, high,
                            )  # fmt: skip
                        if tables is not None and form in (CERTIFIED, KL_BALL):
                            table = 2 * PLACES * row
                            quick = b.rounds == ONE_ROUND
                            if (
                                topped != c.outcome_set[row]
                                or topped_at != base
                                or topped_stride != stride
                                or topped_n != n
                            ):
                                topped, topped_at = c.outcome_set[row], base
                                topped_stride, topped_n = stride, n
                                find_tops(row_x, lo, hi, v, columns, base, stride, n, b.sign, tops)
                            hi = seen_end(p, lo, hi)
                            if quick and stride == 1 and hi - lo <= AT_ONCE:
                                moments_at_once(
                                    outcome, p, lo, hi, v, columns, base, n, tops, b.sign, table,
                                    e, s, edge, ratio, where,
                                )  # fmt: skip
                            else:
                                moments(
                                    outcome, p, lo, hi, v, columns, base, stride, n, e, s, copies
                                )
                                find_edges(tops, copies, n, b.sign, edge)
                                if not quick:
                                    exact_gains(
                                        outcome, p, lo, hi, v, columns, base, stride, n, b.sign,
                                        copies, edge, radius[row], b.rounds, gaps, gains,
                                    )  # fmt: skip
                                relate(e, s, copies, edge, n, b.sign, table, ratio, where)
                            if quick:
                                table_gains(edge, ratio, where, tables, n, gains)
                            add_set_values(
                                e, s, gains, n, b.sign, mvp, factor, term, scale, ranged, low,
                                high, constant, top, keep, weight, q,
                            )  # fmt: skip
                            continue
                        if other is not None:
                            add_other_values(
                                other.draws, other.ball, outcome, p, lo, hi, row_x, row_ptr, row,
                                g.n_unknown, v, columns, base, stride, n, b.radius[row], b.rounds,
                                ranged, high, ceiling, constant, top, keep, weight, e, s, tops,
                                edge, gains, gaps, order, largest, copies, q,
                            )  # fmt: skip
                            continue
                        if is_capped(seen, b.free, scale):
                            for i in range(n):
                                value = constant + high[i] if ranged else top
                                q[i] = q[i] + weight * value if keep else value
                        elif hi - lo <= AT_ONCE and stride == 1 and not ranged:
                            optimistic_mix(
                                outcome, p, lo, hi, v, columns, base, n, form, factor, term,
                                constant, top, keep, weight, q,
                            )  # fmt: skip
                        else:
                            moments(outcome, p, lo, hi, v, columns, base, stride, n, e, s, copies)
                            add_bonus(
                                copies, e, s, n, form, factor, term, scale, ranged, low, high,
                                constant, top, keep, weight, q,
                            )  # fmt: skip
                    if not decides:
                        for i in range(n):
                            out[at + i] = q[i]
                    elif fan == 0:
                        which = a - stripe_action[stripe]
                        for i in range(n):
                            better = (
                                policy[mine + i] == which
                                if follow
                                else which == 0 or q[i] > best[i]
                            )
                            best[i] = q[i] if better else best[i]
                            arg[i] = which if better else arg[i]
                    elif follow:
                        for i in range(count):
                            out[at + i] = q[i * Offset(fan) + Offset(policy[mine + i])]
                    else:
                        changed += best_of_fans(q, fan, count, out, at, policy, mine)
                if decides and fan == 0:
                    for i in range(n):
                        out[at + i] = best[i]
                        changed += policy[mine + i] != arg[i]
                        policy[mine + i] = arg[i]
    return changed


@jit(allocates=True)
def tiles_of(g, level, t):
    """The tiles of a level that layer t needs."""
    found = np.empty(g.level_ptr[level + 1] - g.level_ptr[level], np.int64)
    count = 0
    for tile in range(g.level_ptr[level], g.level_ptr[level + 1]):
        if g.batch_active[g.tile_batch[tile], t]:
            found[count] = tile
            count += 1
    return found[:count]


@jit(allocates=True, nogil=True)
def sweep_layer(g, b, c, tables, other, first, lo, hi, t, source, target, policy, follow):
    """One layer: level `first` from the next layer, then its CHANCE levels lo..hi - 1."""
    changed = 0
    for level in range(lo - 1, hi):
        which, read = (first, source) if level < lo else (level, target)
        if which >= 0 and g.level_active[which, t]:
            tiles = tiles_of(g, which, t)
            changed += values(
                g, b, c, tables, other, tiles, 0, len(tiles), t, read, target, policy, follow
            )
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


@inner()
def seen_end(p, lo, hi):
    """Where the outcomes of positive probability end, which `pack_whole` puts first."""
    end = lo + 1
    while end < hi and p[end] > 0.0:
        end += 1
    return end


@jit()
def pack_whole(row_ptr, row_x, p, end, x, q):
    """Keeps all outcomes, since values over sets need the unseen ones, which come last.

    The most likely one comes first: moments around it lose the fewest digits.
    """
    for row in range(end.shape[0]):
        lo, hi = row_ptr[row], row_ptr[row + 1]
        first, last, best = lo, hi, lo
        for j in range(lo, hi):
            if p[j] > 0.0:
                x[first], q[first] = row_x[j], p[j]
                best = first if p[j] > q[best] or first == lo else best
                first += 1
            else:
                last -= 1
                x[last], q[last] = row_x[j], 0.0
        x[lo], x[best], q[lo], q[best] = x[best], x[lo], q[best], q[lo]
        end[row] = hi


@jit(nogil=True)
def fill_tables(radius, out):
    """The tables of all unknown rows."""
    for row in range(radius.shape[0]):
        fill_table(radius[row], out[2 * PLACES * row : 2 * PLACES * (row + 1)])
