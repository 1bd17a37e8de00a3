"""Loops over columns: what a law makes of V[x', base + stride i] for i < n, and the best action.

V is flat and a place in it is an unsigned offset. Slices would count references, over which threads
fight; an index that might be negative keeps loops from being vectorised. Columns with another
stride than 1 are first copied into `copies`. Up to five outcomes x' are taken at once, so that what
they are added to is read and written once for all of them. Conditions inside a loop that do not
change in it cost nothing: the compiler makes a loop for each case.

A worked example: X = {0, 1, 2}, 4 columns, V flat as x * 4 + column. `expectation` of the law
(0: .5, 2: .5) with base 0, stride 2, n = 2 reads V[0, 0], V[0, 2] and V[2, 0], V[2, 2], and writes
out[0] = .5 V[0, 0] + .5 V[2, 0] and out[1] = .5 V[0, 2] + .5 V[2, 2].
"""

from __future__ import annotations

import numpy as np

from pkd.engine.bonus import hope
from pkd.engine.jit import inner
from pkd.engine.set_values import gain, gain_l1, place_of, relative_variance, sort_gaps, table_gain
from pkd.optimism import SUM

Offset = np.uintp
AT_ONCE = 5  # outcomes that a loop takes; `copies` holds this many stretches of columns


@inner()
def copy(v, at, stride, n, copies, to):
    """Copies V[at + stride i] to copies[to + i]; returns `to`."""
    step = Offset(stride)
    for i in range(n):
        copies[to + i] = v[at + step * i]
    return to


@inner()
def mass_of(p, j, hi):
    """The probability of outcome j; 0 beyond the last."""
    return p[j] if j < hi else 0.0


@inner()
def offset_of(x, j, hi, columns, base):
    """Where the stretch of outcome j begins; that of the last one beyond it."""
    return Offset(x[min(j, hi - 1)] * columns + base)


@inner()
def mix(v, m, p0, o0, p1, o1, p2, o2, p3, o3, p4, o4, n, constant, keep, weight, out):
    """out[i] = constant + sum_k p_k V[o_k + i] over m outcomes.

    With `keep`, weight times that is added to what was there.
    """
    if m <= 2:
        for i in range(n):
            value = constant + (p0 * v[o0 + i] + p1 * v[o1 + i])
            out[i] = out[i] + weight * value if keep else value
    else:
        for i in range(n):
            value = constant + (
                ((p0 * v[o0 + i] + p1 * v[o1 + i]) + (p2 * v[o2 + i] + p3 * v[o3 + i]))
                + p4 * v[o4 + i]
            )
            out[i] = out[i] + weight * value if keep else value


@inner()
def expectation(x, p, lo, hi, v, columns, base, stride, n, constant, keep, weight, out, copies):
    """out[i] = constant + sum_j p_j V[x_j, base + stride i] over outcomes lo <= j < hi.

    `keep` and `weight` as in `mix`.
    """
    if hi - lo == 1:
        at, step, p0 = offset_of(x, lo, hi, columns, base), Offset(stride), p[lo]
        for i in range(n):
            value = constant + p0 * v[at + step * i]
            out[i] = out[i] + weight * value if keep else value
        return
    for j in range(lo, hi, AT_ONCE):
        p0, p1, p2, p3, p4 = (
            p[j],
            mass_of(p, j + 1, hi),
            mass_of(p, j + 2, hi),
            mass_of(p, j + 3, hi),
            mass_of(p, j + 4, hi),
        )
        o0, o1, o2 = (
            offset_of(x, j, hi, columns, base),
            offset_of(x, j + 1, hi, columns, base),
            offset_of(x, j + 2, hi, columns, base),
        )
        o3, o4 = offset_of(x, j + 3, hi, columns, base), offset_of(x, j + 4, hi, columns, base)
        start, more, share = constant if j == lo else 0.0, keep or j > lo, weight if keep else 1.0
        if stride == 1:
            mix(v, hi - j, p0, o0, p1, o1, p2, o2, p3, o3, p4, o4, n, start, more, share, out)
        else:
            two = n + n
            o0, o1, o2 = (
                copy(v, o0, stride, n, copies, Offset(0)),
                copy(v, o1, stride, n, copies, n),
                copy(v, o2, stride, n, copies, two),
            )
            o3, o4 = (
                copy(v, o3, stride, n, copies, two + n),
                copy(v, o4, stride, n, copies, two + two),
            )
            mix(copies, hi - j, p0, o0, p1, o1, p2, o2, p3, o3, p4, o4, n, start, more, share, out)


@inner()
def optimistic_mix(
    x, p, lo, hi, v, columns, base, n, form, factor, term, constant, ceiling, keep, weight, q
):
    """q[i] = min(ceiling, constant + pV + bonus) at base + i for up to five outcomes.

    With `keep`, weight times that is added. The variance is taken around V[o0 + i]: E[V^2] - (pV)^2
    would lose digits.
    """
    p1, p2, p3, p4 = (
        mass_of(p, lo + 1, hi),
        mass_of(p, lo + 2, hi),
        mass_of(p, lo + 3, hi),
        mass_of(p, lo + 4, hi),
    )
    o0, o1, o2 = (
        offset_of(x, lo, hi, columns, base),
        offset_of(x, lo + 1, hi, columns, base),
        offset_of(x, lo + 2, hi, columns, base),
    )
    o3, o4 = offset_of(x, lo + 3, hi, columns, base), offset_of(x, lo + 4, hi, columns, base)
    for i in range(n):
        shift = v[o0 + i]
        d1, d2, d3, d4 = v[o1 + i] - shift, v[o2 + i] - shift, v[o3 + i] - shift, v[o4 + i] - shift
        w1, w2, w3, w4 = p1 * d1, p2 * d2, p3 * d3, p4 * d4
        e, s = (w1 + w2) + (w3 + w4), (w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4)
        value = min(ceiling, constant + hope(form, e + shift, s - e * e, factor, term))
        q[i] = q[i] + weight * value if keep else value


@inner()
def add_moments(v, o0, p1, o1, p2, o2, p3, o3, p4, o4, n, more, e, s):
    """e[i] = sum_k p_k d and s[i] = sum_k p_k d^2, with d = V[o_k + i] - V[o0 + i].

    With `more`, both are added to what was there.
    """
    for i in range(n):
        shift = v[o0 + i]
        d1, d2, d3, d4 = v[o1 + i] - shift, v[o2 + i] - shift, v[o3 + i] - shift, v[o4 + i] - shift
        w1, w2, w3, w4 = p1 * d1, p2 * d2, p3 * d3, p4 * d4
        e[i] = (e[i] if more else 0.0) + ((w1 + w2) + (w3 + w4))
        s[i] = (s[i] if more else 0.0) + ((w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4))


@inner()
def moments(x, p, lo, hi, v, columns, base, stride, n, e, s, copies):
    """The first two moments of V around its value at outcome lo.

    Any number of outcomes, any stride. The value at outcome lo is left in `copies`.
    """
    o0, two = copy(v, offset_of(x, lo, hi, columns, base), stride, n, copies, Offset(0)), n + n
    for j in range(lo + 1, max(hi, lo + 2), AT_ONCE - 1):
        p1, p2, p3, p4 = (
            mass_of(p, j, hi),
            mass_of(p, j + 1, hi),
            mass_of(p, j + 2, hi),
            mass_of(p, j + 3, hi),
        )
        o1 = copy(v, offset_of(x, j, hi, columns, base), stride, n, copies, n)
        o2 = copy(v, offset_of(x, j + 1, hi, columns, base), stride, n, copies, two)
        o3 = copy(v, offset_of(x, j + 2, hi, columns, base), stride, n, copies, two + n)
        o4 = copy(v, offset_of(x, j + 3, hi, columns, base), stride, n, copies, two + two)
        add_moments(copies, o0, p1, o1, p2, o2, p3, o3, p4, o4, n, j > lo + 1, e, s)


@inner()
def add_bonus(
    v0, e, s, n, form, factor, term, scale, ranged, low, high, constant, ceiling, keep, weight, q
):
    """`optimistic_mix` from moments around v0.

    ranged: term = scale (high - low), and pV + bonus is capped at `high`.
    """
    for i in range(n):
        second = scale * (high[i] - low[i]) if ranged else term
        value = hope(form, e[i] + v0[i], s[i] - e[i] * e[i], factor, second)
        value = min(ceiling, constant + (min(value, high[i]) if ranged else value))
        q[i] = q[i] + weight * value if keep else value


@inner()
def find_tops(x, lo, hi, v, columns, base, stride, n, sign, tops):
    """tops[i] = the largest sign V over outcomes lo <= j < hi, seen or not."""
    step = Offset(stride)
    for i in range(n):
        tops[i] = -np.inf
    for j in range(lo, hi):
        at = offset_of(x, j, hi, columns, base)
        if stride == 1:
            for i in range(n):
                tops[i] = max(tops[i], sign * v[at + i])
        else:
            for i in range(n):
                tops[i] = max(tops[i], sign * v[at + step * i])


@inner()
def find_edges(tops, v0, n, sign, edge):
    """edge[i] = how far the top lies beyond v0."""
    for i in range(n):
        edge[i] = tops[i] - sign * v0[i]


@inner()
def exact_gains(
    x, p, lo, hi, v, columns, base, stride, n, sign, v0, edge, level, rounds, gaps, out
):
    """out[i] = the gain over the set {q : KL(p, q) <= level}, column by column."""
    step = Offset(stride)
    for i in range(n):
        for j in range(lo, hi):
            d = v[offset_of(x, j, hi, columns, base) + step * i] - v0[i]
            gaps[j - lo] = max(edge[i] - sign * d, 0.0)
        out[i] = gain(p, lo, 1, gaps, hi - lo, level, rounds)


@inner()
def relate(e, s, v0, edge, n, sign, at, ratio, place):
    """From moments around v0 to what a table and a bonus need, in place.

    e[i] becomes pV, s[i] the variance, edge[i] the mean gap a to the edge; ratio = Var / a^2, and
    place is where the table that begins at `at` has its bound.
    """
    for i in range(n):
        variance, a = s[i] - e[i] * e[i], max(edge[i] - sign * e[i], 0.0)
        v = relative_variance(a, variance)
        e[i], s[i] = e[i] + v0[i], variance
        edge[i], ratio[i] = a, v
        place[i] = place_of(v, at)


@inner()
def moments_at_once(x, p, lo, hi, v, columns, base, n, tops, sign, at, e, s, edge, ratio, place):
    """`moments`, `find_edges` and `relate` in one loop, for up to five outcomes and stride 1."""
    p1, p2 = mass_of(p, lo + 1, hi), mass_of(p, lo + 2, hi)
    p3, p4 = mass_of(p, lo + 3, hi), mass_of(p, lo + 4, hi)
    o0, o1 = offset_of(x, lo, hi, columns, base), offset_of(x, lo + 1, hi, columns, base)
    o2, o3 = offset_of(x, lo + 2, hi, columns, base), offset_of(x, lo + 3, hi, columns, base)
    o4 = offset_of(x, lo + 4, hi, columns, base)
    for i in range(n):
        shift = v[o0 + i]
        d1, d2 = v[o1 + i] - shift, v[o2 + i] - shift
        d3, d4 = v[o3 + i] - shift, v[o4 + i] - shift
        w1, w2 = p1 * d1, p2 * d2
        w3, w4 = p3 * d3, p4 * d4
        mean = (w1 + w2) + (w3 + w4)
        variance = ((w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4)) - mean * mean
        a = max((tops[i] - sign * shift) - sign * mean, 0.0)
        r = relative_variance(a, variance)
        e[i], s[i] = mean + shift, variance
        edge[i], ratio[i] = a, r
        place[i] = place_of(r, at)


@inner()
def table_gains(a, ratio, place, table, n, out):
    """out[i] = an upper bound of the gain by the table of the row.

    A loop of its own: looking up is not vectorised, what comes before and after is.
    """
    for i in range(n):
        out[i] = table_gain(a[i], ratio[i], table, place[i])


@inner()
def add_set_values(
    mean, variance, gains, n, sign, mvp, factor, term, scale, ranged, low, high, constant, ceiling,
    keep, weight, q,
):  # fmt: skip
    """q[i] = min(ceiling, constant + pV + sign gain); with `mvp` at most MVP-Est."""
    for i in range(n):
        value = mean[i] + sign * gains[i]
        if mvp:
            second = scale * (high[i] - low[i]) if ranged else term
            value = min(value, hope(SUM, mean[i], variance[i], factor, second))
            value = min(value, high[i]) if ranged else value
        value = min(ceiling, constant + value)
        q[i] = q[i] + weight * value if keep else value


@inner()
def add_other_values(
    draws, ball, x, p, lo, hi, row_x, row_ptr, row, n_unknown, v, columns, base, stride, n, level,
    place, ranged, high, ceiling, constant, top, keep, weight, e, s, tops, edge, gains, gaps, order,
    largest, room, q,
):  # fmt: skip
    """q[i] = min(top, constant + value), the value that DRAWS or, with `ball`, L1_BALL gives."""
    if draws is not None:  # the compiler leaves out what is None
        first, extra = row_ptr[row], row_ptr[n_unknown] + row
        largest_of_draws(
            draws, row_x, first, row_ptr[row + 1], extra, v, columns, base, stride, n, place,
            ranged, high, ceiling, e, largest,
        )  # fmt: skip
        last = Offset(place - 1) * n
        for i in range(n):
            value = min(top, constant + largest[last + i])
            q[i] = q[i] + weight * value if keep else value
    if ball is not None:
        moments(x, p, lo, hi, v, columns, base, stride, n, e, s, room)
        find_tops(x, lo, hi, v, columns, base, stride, n, 1.0, tops)
        find_edges(tops, room, n, 1.0, edge)
        gains_l1(x, p, lo, hi, v, columns, base, stride, n, room, edge, level, gaps, order, gains)
        for i in range(n):
            value = min(top, constant + (room[i] + min(e[i] + gains[i], edge[i])))
            q[i] = q[i] + weight * value if keep else value


@inner()
def gains_l1(x, p, lo, hi, v, columns, base, stride, n, v0, edge, level, gaps, order, out):
    """out[i] = the gain over the set {q : |q - p|_1 <= level}, column by column."""
    step = Offset(stride)
    for j in range(hi - lo):
        order[j] = j
    for i in range(n):
        for j in range(lo, hi):
            d = v[offset_of(x, j, hi, columns, base) + step * i] - v0[i]
            gaps[j - lo] = max(edge[i] - d, 0.0)
        sort_gaps(gaps, hi - lo, order)
        out[i] = gain_l1(p, lo, 1, gaps, order, hi - lo, level)


@inner()
def largest_of_draws(
    draws, x, lo, hi, extra, v, columns, base, stride, n, place, ranged, high, ceiling, e, largest
):
    """largest[k n + i] = the value of column i that is at place k among the draws, descending."""
    step = Offset(stride)
    for i in range(n * Offset(place)):
        largest[i] = -np.inf
    for d in range(draws.shape[0]):
        mass = draws[d, extra]
        for i in range(n):
            e[i] = (mass * (high[i] if ranged else ceiling)) if mass > 0.0 else 0.0
        for j in range(lo, hi):
            share, at = draws[d, j], offset_of(x, j, hi, columns, base)
            if share > 0.0:
                for i in range(n):
                    e[i] += share * v[at + step * i]
        for i in range(n):
            value = e[i]
            for k in range(place):
                at = Offset(k) * n + i
                if value > largest[at]:
                    largest[at], value = value, largest[at]


@inner()
def spread(x, lo, hi, lo_v, hi_v, columns, base, stride, n, low, high):
    """The extremes of the possible return to go over the outcomes of a law."""
    step = Offset(stride)
    for i in range(n):
        low[i] = np.inf
        high[i] = -np.inf
    for j in range(lo, hi):
        at = Offset(x[j] * columns + base)
        if stride == 1:
            for i in range(n):
                low[i] = min(low[i], lo_v[at + i])
                high[i] = max(high[i], hi_v[at + i])
        else:
            for i in range(n):
                low[i] = min(low[i], lo_v[at + step * i])
                high[i] = max(high[i], hi_v[at + step * i])


@inner()
def best_of_fans(q, actions, n, out, at, policy, mine):
    """out[at + i] = max_a q[i actions + a] and policy[mine + i] = the first a that attains it.

    Returns how many choices changed.

    Without branches: which action is best is hard to foresee. Four actions, the usual case,
    are a small tournament.
    """
    changed = 0
    if actions == 4:
        for i in range(n):
            k = Offset(4) * i
            q0, q1, q2, q3 = q[k], q[k + Offset(1)], q[k + Offset(2)], q[k + Offset(3)]
            left, right = q1 if q1 > q0 else q0, q3 if q3 > q2 else q2
            which_left, which_right = 1 if q1 > q0 else 0, 3 if q3 > q2 else 2
            out[at + i] = right if right > left else left
            which = which_right if right > left else which_left
            changed += policy[mine + i] != which
            policy[mine + i] = which
        return changed
    for i in range(n):
        k = Offset(actions) * i
        top, which = q[k], 0
        for a in range(1, actions):
            value = q[k + Offset(a)]
            which = a if value > top else which
            top = value if value > top else top
        out[at + i] = top
        changed += policy[mine + i] != which
        policy[mine + i] = which
    return changed
