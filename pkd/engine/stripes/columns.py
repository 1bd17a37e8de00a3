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

from typing import NamedTuple

import numpy as np

from pkd.engine.bonus import add_bonus
from pkd.engine.jit import inner
from pkd.engine.set_values import gain, place_of, relative_variance, table_gain
from pkd.optimism import SUM

Offset = np.uintp
AT_ONCE = 5  # outcomes that a loop takes; `copies` holds this many stretches of columns


class Read(NamedTuple):
    """What a loop reads: a law p over outcomes x[lo:hi], and V at columns base + stride i."""

    v: np.ndarray  # flat
    columns: int  # of V
    base: int
    stride: int
    n: int  # an Offset
    x: np.ndarray
    p: np.ndarray
    lo: int
    hi: int


class Write(NamedTuple):
    """Where values go: out[i] = min(ceiling, constant + value); or add weight times it."""

    out: np.ndarray
    constant: float
    ceiling: float
    keep: bool
    weight: float


class Terms(NamedTuple):
    """The bonus: factor sqrt(Var) and scale w, where w = high - low if `ranged`; capped at high."""

    form: int
    factor: float
    scale: float
    width: float
    ranged: bool
    low: np.ndarray
    high: np.ndarray


class Work(NamedTuple):
    """Memory for the columns of one tile."""

    q: np.ndarray  # (columns,) and so are those below
    e: np.ndarray
    s: np.ndarray
    low: np.ndarray
    high: np.ndarray
    edge: np.ndarray
    gains: np.ndarray
    ratio: np.ndarray
    tops: np.ndarray
    where: np.ndarray  # unsigned
    copies: np.ndarray  # (AT_ONCE columns,)
    best: np.ndarray
    arg: np.ndarray  # of the type of a policy
    gaps: np.ndarray  # (most outcomes of a row,)


@inner()
def copy(r, at, copies, to):
    """Copies V[at + stride i] to copies[to + i]; returns `to`."""
    step = Offset(r.stride)
    for i in range(r.n):
        copies[to + i] = r.v[at + step * i]
    return to


@inner()
def masses(r, j):
    """The probabilities of the outcomes j to j + 4; 0 beyond the last."""
    p, hi = r.p, r.hi
    return (
        p[j] if j < hi else 0.0,
        p[j + 1] if j + 1 < hi else 0.0,
        p[j + 2] if j + 2 < hi else 0.0,
        p[j + 3] if j + 3 < hi else 0.0,
        p[j + 4] if j + 4 < hi else 0.0,
    )


@inner()
def place(r, j):
    """Where the stretch of outcome j begins; that of the last one beyond it."""
    return Offset(r.x[min(j, r.hi - 1)] * r.columns + r.base)


@inner()
def places(r, j):
    return place(r, j), place(r, j + 1), place(r, j + 2), place(r, j + 3), place(r, j + 4)


@inner()
def mix(v, many, p, o, n, out, constant, keep, weight):
    """out[i] = constant + sum_k p_k V[o_k + i] over two outcomes, or with `many` over five.

    With `keep`, weight times that is added to what was there.
    """
    if many:
        for i in range(n):
            value = constant + (
                (
                    (p[0] * v[o[0] + i] + p[1] * v[o[1] + i])
                    + (p[2] * v[o[2] + i] + p[3] * v[o[3] + i])
                )
                + p[4] * v[o[4] + i]
            )
            out[i] = out[i] + weight * value if keep else value
    else:
        for i in range(n):
            value = constant + (p[0] * v[o[0] + i] + p[1] * v[o[1] + i])
            out[i] = out[i] + weight * value if keep else value


@inner()
def expectation(r, w, copies):
    """out[i] = constant + sum_j p_j V[x_j, base + stride i]; the ceiling is not applied."""
    v, n, out, keep = r.v, r.n, w.out, w.keep
    if r.hi - r.lo == 1:
        at, step, p0 = place(r, r.lo), Offset(r.stride), r.p[r.lo]
        for i in range(n):
            value = w.constant + p0 * v[at + step * i]
            out[i] = out[i] + w.weight * value if keep else value
        return
    for j in range(r.lo, r.hi, AT_ONCE):
        p, o, many = masses(r, j), places(r, j), r.hi - j > 2
        first, share = w.constant if j == r.lo else 0.0, w.weight if keep else 1.0
        if r.stride == 1:
            mix(v, many, p, o, n, out, first, keep or j > r.lo, share)
        else:
            o = copy_all(r, o, copies)
            mix(copies, many, p, o, n, out, first, keep or j > r.lo, share)


@inner()
def copy_all(r, o, copies):
    """Copies five stretches; returns where they are."""
    n = r.n
    two = n + n
    return (
        copy(r, o[0], copies, Offset(0)),
        copy(r, o[1], copies, n),
        copy(r, o[2], copies, two),
        copy(r, o[3], copies, two + n),
        copy(r, o[4], copies, two + two),
    )


@inner()
def optimistic_mix(r, w, terms):
    """q[i] = min(ceiling, constant + pV + bonus) for up to five outcomes and stride 1.

    The variance is taken around V[o0 + i]: E[V^2] - (pV)^2 would lose digits.
    """
    v, p, o, q, term = r.v, masses(r, r.lo), places(r, r.lo), w.out, terms.scale * terms.width
    for i in range(r.n):
        shift = v[o[0] + i]
        d1, d2 = v[o[1] + i] - shift, v[o[2] + i] - shift
        d3, d4 = v[o[3] + i] - shift, v[o[4] + i] - shift
        w1, w2, w3, w4 = p[1] * d1, p[2] * d2, p[3] * d3, p[4] * d4
        e, s = (w1 + w2) + (w3 + w4), (w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4)
        value = add_bonus(terms.form, e + shift, s - e * e, terms.factor, term)
        value = min(w.ceiling, w.constant + value)
        q[i] = q[i] + w.weight * value if w.keep else value


@inner()
def add_moments(v, p, o, n, more, e, s):
    """e[i] = sum_k p_k d and s[i] = sum_k p_k d^2, with d = V[o_k + i] - V[o0 + i], k > 0.

    With `more`, both are added to what was there.
    """
    for i in range(n):
        shift = v[o[0] + i]
        d1, d2 = v[o[1] + i] - shift, v[o[2] + i] - shift
        d3, d4 = v[o[3] + i] - shift, v[o[4] + i] - shift
        w1, w2, w3, w4 = p[0] * d1, p[1] * d2, p[2] * d3, p[3] * d4
        e[i] = (e[i] if more else 0.0) + ((w1 + w2) + (w3 + w4))
        s[i] = (s[i] if more else 0.0) + ((w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4))


@inner()
def moments(r, e, s, copies):
    """The first two moments of V around its value at outcome lo.

    Any number of outcomes, any stride. The value at outcome lo is left in `copies`.
    """
    for j in range(r.lo + 1, max(r.hi, r.lo + 2), AT_ONCE - 1):
        o = place(r, r.lo), place(r, j), place(r, j + 1), place(r, j + 2), place(r, j + 3)
        o = copy_all(r, o, copies)
        add_moments(copies, masses(r, j), o, r.n, j > r.lo + 1, e, s)


@inner()
def bonus_of_moments(n, v0, e, s, w, terms):
    """`optimistic_mix` from moments around v0; ranged: pV + bonus is capped at `high`."""
    q = w.out
    for i in range(n):
        width = terms.high[i] - terms.low[i] if terms.ranged else terms.width
        variance, term = s[i] - e[i] * e[i], terms.scale * width
        value = add_bonus(terms.form, e[i] + v0[i], variance, terms.factor, term)
        value = min(w.ceiling, w.constant + (min(value, terms.high[i]) if terms.ranged else value))
        q[i] = q[i] + w.weight * value if w.keep else value


@inner()
def put(n, values, w):
    """q[i] = min(ceiling, constant + values[i])."""
    q = w.out
    for i in range(n):
        value = min(w.ceiling, w.constant + values[i])
        q[i] = q[i] + w.weight * value if w.keep else value


@inner()
def find_tops(r, sign, tops):
    """tops[i] = the largest sign V over the outcomes, seen or not."""
    n, v, step = r.n, r.v, Offset(r.stride)
    for i in range(n):
        tops[i] = -np.inf
    for j in range(r.lo, r.hi):
        at = place(r, j)
        if r.stride == 1:
            for i in range(n):
                tops[i] = max(tops[i], sign * v[at + i])
        else:
            for i in range(n):
                tops[i] = max(tops[i], sign * v[at + step * i])


@inner()
def exact_gains(r, sign, v0, edge, level, rounds, gaps, out):
    """out[i] = the gain over the set {q : KL(p, q) <= level}, column by column."""
    step = Offset(r.stride)
    for i in range(r.n):
        for j in range(r.lo, r.hi):
            d = r.v[place(r, j) + step * i] - v0[i]
            gaps[j - r.lo] = max(edge[i] - sign * d, 0.0)
        out[i] = gain(r.p, r.lo, 1, gaps, r.hi - r.lo, level, rounds)


@inner()
def relate(work, n, sign, at):
    """From moments around `copies` to what a table and a bonus need, in place.

    e[i] becomes pV, s[i] the variance, edge[i] the mean gap a to the edge; ratio = Var / a^2, and
    `where` is where the table that begins at `at` has its bound.
    """
    e, s, edge, v0 = work.e, work.s, work.edge, work.copies
    for i in range(n):
        variance, a = s[i] - e[i] * e[i], max(edge[i] - sign * e[i], 0.0)
        v = relative_variance(a, variance)
        e[i], s[i] = e[i] + v0[i], variance
        edge[i], work.ratio[i] = a, v
        work.where[i] = place_of(v, at)


@inner()
def moments_at_once(r, work, sign, at):
    """`moments`, edges and `relate` in one loop, for up to five outcomes and stride 1."""
    v, p, o = r.v, masses(r, r.lo), places(r, r.lo)
    for i in range(r.n):
        shift = v[o[0] + i]
        d1, d2 = v[o[1] + i] - shift, v[o[2] + i] - shift
        d3, d4 = v[o[3] + i] - shift, v[o[4] + i] - shift
        w1, w2, w3, w4 = p[1] * d1, p[2] * d2, p[3] * d3, p[4] * d4
        mean = (w1 + w2) + (w3 + w4)
        variance = ((w1 * d1 + w2 * d2) + (w3 * d3 + w4 * d4)) - mean * mean
        a = max((work.tops[i] - sign * shift) - sign * mean, 0.0)
        ratio = relative_variance(a, variance)
        work.e[i], work.s[i] = mean + shift, variance
        work.edge[i], work.ratio[i] = a, ratio
        work.where[i] = place_of(ratio, at)


@inner()
def table_gains(work, table, n):
    """gains[i] = an upper bound of the gain by the table of the row.

    A loop of its own: looking up is not vectorised, what comes before and after is.
    """
    for i in range(n):
        work.gains[i] = table_gain(work.edge[i], work.ratio[i], table, work.where[i])


@inner()
def set_values(work, n, sign, mvp, w, terms):
    """q[i] = min(ceiling, constant + pV + sign gain); with `mvp` at most MVP-Est."""
    q, mean, variance, gains = w.out, work.e, work.s, work.gains
    for i in range(n):
        value = mean[i] + sign * gains[i]
        if mvp:
            width = terms.high[i] - terms.low[i] if terms.ranged else terms.width
            estimate = add_bonus(SUM, mean[i], variance[i], terms.factor, terms.scale * width)
            value = min(value, estimate)
            value = min(value, terms.high[i]) if terms.ranged else value
        value = min(w.ceiling, w.constant + value)
        q[i] = q[i] + w.weight * value if w.keep else value


@inner()
def spread(r, low_v, high_v, low, high):
    """The extremes of the possible return to go over the outcomes of a law."""
    n, step = r.n, Offset(r.stride)
    for i in range(n):
        low[i] = np.inf
        high[i] = -np.inf
    for j in range(r.lo, r.hi):
        at = place(r, j)
        if r.stride == 1:
            for i in range(n):
                low[i] = min(low[i], low_v[at + i])
                high[i] = max(high[i], high_v[at + i])
        else:
            for i in range(n):
                low[i] = min(low[i], low_v[at + step * i])
                high[i] = max(high[i], high_v[at + step * i])


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
