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
    Read,
    Terms,
    Write,
    best_of_fans,
    bonus_of_moments,
    exact_gains,
    expectation,
    find_tops,
    moments,
    moments_at_once,
    optimistic_mix,
    put,
    relate,
    set_values,
    spread,
    table_gains,
)
from pkd.optimism import EXACT, ONE_ROUND


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


class Layer(NamedTuple):
    """V[x, y] of one layer, and the possible return to go where a sweep needs it."""

    v: np.ndarray  # (X, Y)
    low: np.ndarray  # (X, Y)
    high: np.ndarray  # (X, Y)


STEP, LAST, CHANCES = 0, 1, 2


@inner()
def read(g, c, k, x, offset, fan, n, v, columns, whole):
    """What branch k reads of V for x; whole: all outcomes of its law, seen or not."""
    row = g.law[g.branch_law[k], x]
    stride = 1 if fan > 0 else g.branch_stride[k]
    base = g.branch_target[k] + offset * (fan if fan > 0 else stride)
    if whole:
        lo, hi = g.row_ptr[row], g.row_ptr[row + 1]
        return Read(v, columns, base, stride, n, g.row_x, c.q, lo, hi)
    lo, hi = g.row_ptr[row], c.end[row]
    return Read(v, columns, base, stride, n, c.x, c.q, lo, hi)


@inner()
def ranges(g, c, work, tiles, begin, end, source, target):
    """The extremes of the return to go in tiles[begin:end], over actions, branches and outcomes."""
    low_v, high_v = source.low.reshape(-1), source.high.reshape(-1)
    low_out, high_out = target.low.reshape(-1), target.high.reshape(-1)
    low, high, reward_low, reward_high = work.low, work.high, c.reward_low, c.reward_high
    columns = source.low.shape[1]
    for place in range(begin, end):
        tile = tiles[place]
        batch, offset, n = g.tile_batch[tile], g.tile_from[tile], Offset(g.tile_count[tile])
        for j in range(g.batch_ptr[batch], g.batch_ptr[batch + 1]):
            stripe = g.batch_stripe[j]
            y = g.stripe_start[stripe] + offset
            for m in range(g.set_ptr[g.stripe_set[stripe]], g.set_ptr[g.stripe_set[stripe] + 1]):
                x = g.set_x[m]
                at = Offset(x * target.low.shape[1] + y)
                for i in range(n):
                    low_out[at + i] = np.inf
                    high_out[at + i] = -np.inf
                for a in range(g.stripe_action[stripe], g.stripe_action[stripe + 1]):
                    for k in range(g.action_branch[a], g.action_branch[a + 1]):
                        if g.p[g.branch_p[k], x] == 0.0:
                            continue
                        r = read(g, c, k, x, offset, 0, n, low_v, columns, True)
                        spread(r, low_v, high_v, low, high)
                        paid, own = g.action_reward[a], g.branch_reward[k]
                        least = reward_low[paid, x] + reward_low[own, x]
                        most = reward_high[paid, x] + reward_high[own, x]
                        for i in range(n):
                            low_out[at + i] = min(low_out[at + i], least + low[i])
                            high_out[at + i] = max(high_out[at + i], most + high[i])


@inner()
def value_with_bonus(r, w, terms, capped, work):
    """q[i] = pV + bonus of one branch."""
    if capped:
        if terms.ranged:
            put(r.n, terms.high, w)
        else:
            put(r.n, no_limit(work.e, r.n), w)
    elif r.hi - r.lo <= AT_ONCE and r.stride == 1 and not terms.ranged:
        optimistic_mix(r, w, terms)
    else:
        moments(r, work.e, work.s, work.copies)
        bonus_of_moments(r.n, work.copies, work.e, work.s, w, terms)


@inner()
def no_limit(values, n):
    for i in range(n):
        values[i] = np.inf
    return values


@inner()
def value_over_sets(b, r, w, terms, capped, row, tables, work):
    """q[i] = the largest or the least value of one branch over a set of laws. work.tops: given."""
    n, quick = r.n, b.rounds == ONE_ROUND
    last = r.lo + 1
    while last < r.hi and r.p[last] > 0.0:  # `pack_whole` puts the seen outcomes first
        last += 1
    r = Read(r.v, r.columns, r.base, r.stride, r.n, r.x, r.p, r.lo, last)
    if quick and r.stride == 1 and r.hi - r.lo <= AT_ONCE:
        moments_at_once(r, work, b.sign, 2 * PLACES * row)
    else:
        moments(r, work.e, work.s, work.copies)
        for i in range(n):
            work.edge[i] = work.tops[i] - b.sign * work.copies[i]
        if not quick:
            exact_gains(
                r, b.sign, work.copies, work.edge, b.radius[row], b.rounds, work.gaps, work.gains
            )
        relate(work, n, b.sign, 2 * PLACES * row)
    if quick:
        table_gains(work, tables, n)
    set_values(work, n, b.sign, not capped, w, terms)


@jit(nogil=True)
def values(
    g, b, c, bonus, tables, given, work, tiles, begin, end, t, source, target, policy, follow
):
    """The values of tiles[begin:end], all of one level, in layer t.

    Returns how many choices changed.

        Q(x, y) = r + sum over branches of P_Y min(ceiling, r' + min(cap, pV(., y') + bonus))
        V(x, y) = max Q over actions

    Python chooses one of four sweeps by what is not None, and only its code is compiled: bonus
    (True) for SUM, MAX and HOEFFDING; tables, (unknown rows, 2 PLACES) flat and empty where exact
    gains are wanted, for CERTIFIED; given, the values of unknown pairs in the order of `gather`,
    for NUMPY; none of them for the exact one. Each of them gives exact values, too.
    """
    ranged = np.isnan(b.width)
    if bonus is not None or tables is not None or given is not None:  # noqa: SIM102
        if ranged:  # on a line of its own: the compiler leaves out what is None
            ranges(g, c, work, tiles, begin, end, source, target)
    v, columns, out = source.v.reshape(-1), source.v.shape[1], target.v.reshape(-1)
    low_v, high_v = source.low.reshape(-1), source.high.reshape(-1)
    chosen = wide = np.int64(0)
    if t < g.policy_to.shape[0]:
        chosen, wide = g.policy_ptr[t] - g.policy_from[t], g.policy_to[t] - g.policy_from[t]
    # `tops` of one outcome set and stretch of columns serve all x whose laws share them.
    topped, topped_at, topped_stride, topped_n = -1, 0, 0, Offset(0)
    changed, taken = 0, Offset(0)
    q, no_row = work.q, g.n_unknown
    for place in range(begin, end):
        tile = tiles[place]
        batch, offset, count = g.tile_batch[tile], g.tile_from[tile], Offset(g.tile_count[tile])
        for j in range(g.batch_ptr[batch], g.batch_ptr[batch + 1]):
            stripe = g.batch_stripe[j]
            fan, y = g.stripe_fan[stripe], g.stripe_start[stripe] + offset
            n, first = count * Offset(max(fan, 1)), g.stripe_action[stripe]
            last = first + 1 if fan > 0 else g.stripe_action[stripe + 1]
            for m in range(g.set_ptr[g.stripe_set[stripe]], g.set_ptr[g.stripe_set[stripe] + 1]):
                x = g.set_x[m]
                at, mine = Offset(x * target.v.shape[1] + y), Offset(chosen + x * wide + y)
                for a in range(first, last):
                    outer = c.reward[g.action_reward[a], x]
                    keep = g.action_branch[a + 1] - g.action_branch[a] != 1
                    if keep:
                        for i in range(n):
                            q[i] = outer
                    for k in range(g.action_branch[a], g.action_branch[a + 1]):
                        weight = g.p[g.branch_p[k], x]
                        if weight == 0.0:
                            continue
                        row, paid = g.law[g.branch_law[k], x], c.reward[g.branch_reward[k], x]
                        ceiling = b.ceiling if keep else outer + b.ceiling
                        w = Write(q, paid if keep else outer + paid, ceiling, keep, weight)
                        r = read(g, c, k, x, offset, fan, n, v, columns, False)
                        if b.form == EXACT or row >= no_row:
                            expectation(r, w, work.copies)
                            continue
                        if given is not None:
                            for i in range(n):
                                work.e[i] = given[taken + i]
                            taken += n
                            put(n, work.e, w)
                        if bonus is not None or tables is not None:
                            ell = b.ell[g.weight[g.branch_weight[k], x]]
                            factor, scale = factors(b.form, b.c1, b.c2, b.n[row], ell)
                            capped = is_capped(b.n[row], b.free, scale)
                            if ranged and (bonus is not None or not capped):
                                whole = read(g, c, k, x, offset, fan, n, v, columns, True)
                                spread(whole, low_v, high_v, work.low, work.high)
                            terms = Terms(
                                b.form, factor, scale, b.width, ranged, work.low, work.high
                            )
                        if bonus is not None:
                            value_with_bonus(r, w, terms, capped, work)
                        if tables is not None:
                            if (
                                topped != c.outcome_set[row]
                                or topped_at != r.base
                                or topped_stride != r.stride
                                or topped_n != n
                            ):
                                topped, topped_at = c.outcome_set[row], r.base
                                topped_stride, topped_n = r.stride, n
                                find_tops(
                                    read(g, c, k, x, offset, fan, n, v, columns, True),
                                    b.sign, work.tops,
                                )  # fmt: skip
                            value_over_sets(b, r, w, terms, capped, row, tables, work)
                    if not g.stripe_decides[stripe]:
                        for i in range(n):
                            out[at + i] = q[i]
                    elif fan > 0 and follow:
                        for i in range(count):
                            out[at + i] = q[i * Offset(fan) + Offset(policy[mine + i])]
                    elif fan > 0:
                        changed += best_of_fans(q, fan, count, out, at, policy, mine)
                    else:
                        keep_better(work, a - first, n, policy, mine, follow)
                if g.stripe_decides[stripe] and fan == 0:
                    for i in range(n):
                        out[at + i] = work.best[i]
                        changed += policy[mine + i] != work.arg[i]
                        policy[mine + i] = work.arg[i]
    return changed


@inner()
def keep_better(work, which, n, policy, mine, follow):
    """Keeps the action `which` where it is followed or the best so far."""
    q, best, arg = work.q, work.best, work.arg
    for i in range(n):
        better = policy[mine + i] == which if follow else which == 0 or q[i] > best[i]
        best[i] = q[i] if better else best[i]
        arg[i] = which if better else arg[i]


@jit(nogil=True)
def gather(g, b, c, work, tiles, begin, end, source, p, after, row, limits):
    """What a rule in numpy is asked of tiles[begin:end], in the order of `values`.

    p, after: (most outcomes, pairs); row: (pairs,); limits: (2, pairs), cap and width. With empty
    arrays pairs are only counted. Returns how many there are.
    """
    ranged, total, fill = np.isnan(b.width), Offset(0), p.shape[1] > 0
    low_v, high_v = source.low.reshape(-1), source.high.reshape(-1)
    v, columns = source.v.reshape(-1), source.v.shape[1]
    for place in range(begin, end):
        tile = tiles[place]
        batch, offset, count = g.tile_batch[tile], g.tile_from[tile], Offset(g.tile_count[tile])
        for j in range(g.batch_ptr[batch], g.batch_ptr[batch + 1]):
            stripe = g.batch_stripe[j]
            fan, first = g.stripe_fan[stripe], g.stripe_action[stripe]
            n = count * Offset(max(fan, 1))
            last = first + 1 if fan > 0 else g.stripe_action[stripe + 1]
            for m in range(g.set_ptr[g.stripe_set[stripe]], g.set_ptr[g.stripe_set[stripe] + 1]):
                x = g.set_x[m]
                for k in range(g.action_branch[first], g.action_branch[last]):
                    z = g.law[g.branch_law[k], x]
                    if g.p[g.branch_p[k], x] == 0.0 or z >= g.n_unknown:
                        continue
                    if fill:
                        r = read(g, c, k, x, offset, fan, n, v, columns, True)
                        if ranged:
                            spread(r, low_v, high_v, work.low, work.high)
                        step, size = Offset(r.stride), r.hi - r.lo
                        for i in range(n):
                            row[total + i] = z
                            limits[0, total + i] = work.high[i] if ranged else np.inf
                            limits[1, total + i] = work.high[i] - work.low[i] if ranged else b.width
                        for o in range(p.shape[0]):
                            from_ = r.lo + (o if o < size else 0)
                            at = Offset(r.x[from_] * r.columns + r.base)
                            mass = b.p[from_] if o < size else 0.0
                            for i in range(n):
                                p[o, total + i] = mass
                                after[o, total + i] = v[at + step * i]
                    total += n
    return total


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
def sweep_layer(
    g, b, c, bonus, tables, given, work, first, lo, hi, t, source, target, policy, follow
):
    """One layer: level `first` from the next layer, then its CHANCE levels lo..hi - 1."""
    changed = 0
    for level in range(lo - 1, hi):
        which, before = (first, source) if level < lo else (level, target)
        if which >= 0 and g.level_active[which, t]:
            tiles = tiles_of(g, which, t)
            changed += values(
                g, b, c, bonus, tables, given, work, tiles, 0, len(tiles), t, before, target,
                policy, follow,
            )  # fmt: skip
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
