"""Values over a set of laws: the largest q.V over {q : KL(p, q) <= C}, as a gain over p.V.

Only gaps matter. With top = max V over ALL outcomes, seen or not, a_j = top - V_j,
a = sum_j p_j a_j, M = a + g and phi(x) = x - log(1 + x), weak duality gives for EVERY g >= 0

    gain = max q.V - p.V  <=  M (1 - exp(-C - T)),    T = sum_j p_j phi((a_j - a) / M),

with equality at the best g. No iterate can fall below the truth, an error in g enters squared, and
nothing cancels as C -> 0. The best g is where KL(p, q_g) = C, q_g ~ p_j / (g + a_j); or g = 0,
where the top was never seen and is likely enough. The least q.V is the largest for -V.

Three forms: `gain` to the end (exact), `gain` with one round, and a table for many columns: phi
lies below the parabola that touches it at one point and meets it at the top outcome, and 1 - exp is
concave, so gain <= a (alpha + beta Var / a^2), with alpha and beta from C alone.
"""

from __future__ import annotations

import math

import numpy as np

from pkd.engine.jit import inner, jit
from pkd.optimism import ALL_ROUNDS as EXACT

CERTAIN = 36.0  # exp(-C) is below rounding: the gain is the whole gap
SLACK = 1e-11  # the exact gain is at most this part of the gap above the truth
LEAST = 1e-13  # of the gap: the smallest g that is tried
NOTHING = 1e-300  # a gap that is so small counts as whole: 1 / gap must be a number
TINY = 1e-28  # of a^2: the variance that stands in for 0

OCTAVES, PER_OCTAVE = 48, 4  # the table knows Var / a^2 from 2^-24 to 2^24, in steps of two bits
PLACES = OCTAVES * PER_OCTAVE
SHIFT = np.uint64(50)  # leaves the exponent and two bits of a float
FIRST = np.uint64((1023 - OCTAVES // 2) * PER_OCTAVE)
SMALLEST, LARGEST = 2.0 ** (-OCTAVES // 2), 2.0 ** (OCTAVES // 2) * (1.0 - 2.0**-50)

ONE = np.uint64(0x3FF0000000000000)
ROOT_HALF = np.uint64(0x3FE6A09E667F3BCD)
MANTISSA = np.uint64(52)
WHOLE = np.uint64(0x4330000000000000)  # 2^52: adding a small whole number to its bits adds it
WHOLE_BIAS = 2.0**52 + 1023.0
LOG_2 = 0.6931471805599453
Place = np.uintp  # an index that might be negative keeps loops from being vectorised


@inner()
def phi(x, one):
    """x - log(one) with one = 1 + x, which is given apart because it may keep more digits near 0.

    Relative error 6e-15. It calls nothing and does not branch, so loops over it are vectorised:
    one = 2^e m with 1/sqrt(2) <= m < sqrt(2), log m by the series of artanh.
    """
    bits = np.float64(one).view(np.uint64)
    k = (bits - ROOT_HALF + ONE) >> MANTISSA
    m = np.uint64(bits - (k << MANTISSA) + ONE).view(np.float64)
    e = np.uint64(k | WHOLE).view(np.float64) - WHOLE_BIAS
    y = x if e == 0.0 else m - 1.0
    t = y / (2.0 + y)
    z = t * t
    r = z * (2 / 11 + z * (2 / 13 + z * (2 / 15 + z * (2 / 17 + z * (2 / 19)))))
    r = 2 / 3 + z * (2 / 5 + z * (2 / 7 + z * (2 / 9 + r)))
    return ((x - y) - e * LOG_2) + t * (y - z * r)


@inner()
def first_guess(a, m2, m3, C):
    """g from the moments of the gaps: the series of the root in sqrt(C), kept positive.

    sqrt(Var / 2C) is the root for small C; the third moment m3 says how it bends.
    """
    m2 = max(m2, TINY * a * a)
    far = math.sqrt(m2 / (2.0 * C))
    y = max(a + 2.0 / 3.0 * m3 / m2, a / 3.0) / far
    return max(far / (1.0 + y * (1.0 + y * (0.5 + y * (1.0 / 6.0)))), LEAST * a)


@inner()
def dual(M, T, C):
    """The upper bound that M gives."""
    return -M * math.expm1(-C - T)


@inner()
def newton(g, M, S, W, T, C):
    """(step in log g, |d dual / d log g|, whether g is too small).

    S = sum p x^2 / (1 + x), W = sum p x^2 / (1 + x)^2, x = (a_j - a) / M.
    KL(p, q_g) = log(1 + S) - T; log KL + 2 KL is almost linear in log g at both ends.
    """
    kl = max(S - phi(S, 1.0 + S) - T, 1e-300)
    slope = (1.0 / kl + 2.0) * (g / M) * (W - S * S) / (1.0 + S)
    step = (math.log(kl / C) + 2.0 * (kl - C)) / max(slope, 1e-300)
    return step, g * abs(math.expm1(min(kl - C, 700.0))), kl > C


@inner()
def next_guess(g, step, low, high, least):
    """The next g inside (low, high); the geometric middle where Newton's step leaves it."""
    g = least if step < -4.0 and low == 0.0 else g * math.exp(min(max(step, -40.0), 4.0))
    if g >= high or g <= low:
        g = math.sqrt(max(low, least) * high) if high < np.inf else 4.0 * low
    return max(g, least)


@jit()
def gain(p, at, stride, gaps, size, C, rounds):
    """max {q.V : KL(p, q) <= C} - p.V for p_j = p[at + stride j], gaps[j] = top - V_j, j < size.

    rounds: EXACT, or 1 for the bound at the first guess. Never below the truth but for rounding.
    """
    a = m2 = m3 = 0.0
    for j in range(size):
        a += p[at + stride * j] * gaps[j]
    if a <= 0.0 or C <= 0.0:
        return 0.0
    if C >= CERTAIN:
        return a
    for j in range(size):
        d = gaps[j] / a - 1.0  # in units of a: no value is too small or too large to be squared
        m2 += p[at + stride * j] * d * d
        m3 += p[at + stride * j] * d * d * d
    g, low, high, best = first_guess(1.0, m2, m3, C), 0.0, np.inf, 1.0
    for _ in range(rounds):
        M, S, W, T = g + 1.0, 0.0, 0.0, 0.0
        for j in range(size):
            mass = p[at + stride * j]
            if mass > 0.0:
                gap = gaps[j] / a
                x, one = (gap - 1.0) / M, (g + gap) / M
                w = x / one
                S, W, T = S + mass * x * w, W + mass * w * w, T + mass * phi(x, one)
        best = min(best, dual(M, T, C))
        if rounds == 1:
            break
        step, slope, small = newton(g, M, S, W, T, C)
        if (abs(step) <= 0.1 and slope * abs(step) <= SLACK) or (not small and slope <= SLACK):
            break
        low, high = (g, high) if small else (low, g)
        g = next_guess(g, step, low, high, LEAST)
    return best * a


@inner()
def gains_at_once(p, at, pairs, gaps, size, radius, a, square, work, out):
    """`gain` with one round for the laws p[at + pairs j + i], i < pairs, which share their gaps.

    Fills a[i] = sum_j p_j gap_j, square[i] = the variance of the gaps, and out[i]. work: (3, pairs)
    at least. Every loop over i is vectorised.
    """
    cube, g, T = work[0], work[1], work[2]
    for i in range(pairs):
        a[i] = square[i] = cube[i] = T[i] = 0.0
    n = Place(pairs)
    for j in range(size):
        k, gap = Place(at + j * pairs), gaps[j]
        for i in range(n):
            a[i] += p[k + i] * gap
    for j in range(size):
        k, gap = Place(at + j * pairs), gaps[j]
        for i in range(n):
            d = gap - a[i]
            w = p[k + i] * d * d
            square[i] += w
            cube[i] += w * d
    for i in range(pairs):
        g[i] = first_guess(a[i], square[i], cube[i], min(max(radius[i], 1e-300), CERTAIN))
        cube[i] = 1.0 / (g[i] + a[i])  # from here on 1 / M
    for j in range(size):
        k, gap = Place(at + j * pairs), gaps[j]
        for i in range(n):
            T[i] += p[k + i] * phi((gap - a[i]) * cube[i], (g[i] + gap) * cube[i])
    for i in range(pairs):
        if a[i] <= 0.0 or radius[i] <= 0.0:
            out[i] = 0.0
        elif radius[i] >= CERTAIN:
            out[i] = a[i]
        else:
            out[i] = min(a[i], dual(g[i] + a[i], T[i], radius[i]))


@inner()
def gain_at_once(p, at, gaps, size, C):
    """`gains_at_once` of one law alone, to the bit: (a, variance of the gaps, gain).

    Loops over a single law cost more than the arithmetic.
    """
    a = square = cube = T = 0.0
    for j in range(at, at + size):
        a += p[j] * gaps[j - at]
    if a <= 0.0:
        return a, 0.0, 0.0
    for j in range(at, at + size):
        d = gaps[j - at] - a
        w = p[j] * d * d
        square += w
        cube += w * d
    g = first_guess(a, square, cube, min(max(C, 1e-300), CERTAIN))
    inverse = 1.0 / (g + a)
    for j in range(at, at + size):
        gap = gaps[j - at]
        T += p[j] * phi((gap - a) * inverse, (g + gap) * inverse)
    if C <= 0.0:
        return a, square, 0.0
    if C >= CERTAIN:
        return a, square, a
    return a, square, min(a, dual(g + a, T, C))


@jit()
def fill_table(C, out):
    """out[2k], out[2k + 1] = alpha, beta of the bound for Var / a^2 near place k; 2 PLACES numbers.

    The worst law of a given mean, variance and top has two points. Each place is valid whatever its
    g is: the search for g only makes it tight.
    """
    if C >= CERTAIN or C <= 0.0:
        for k in range(PLACES):
            out[2 * k], out[2 * k + 1] = (0.0 if C <= 0.0 else 1.0), 0.0
        return
    g = 1.0
    for k in range(PLACES):
        bits = np.uint64((FIRST + np.uint64(k)) << SHIFT)
        v = bits.view(np.float64) * (1.0 + 0.5 / (PER_OCTAVE + k % PER_OCTAVE))
        share, low, high = 1.0 / (1.0 + v), 0.0, np.inf
        M = x1 = x2 = f1 = f2 = y2 = T = value = 0.0
        for _ in range(EXACT):
            # The gaps are 0 with probability v / (1 + v), and 1 + v otherwise.
            M = g + 1.0
            x1, o1, x2, o2 = -1.0 / M, g / M, v / M, (g + 1.0 + v) / M
            f1, f2, y1, y2 = phi(x1, o1), phi(x2, o2), x1 / o1, x2 / o2
            T, S = share * (v * f1 + f2), share * (v * x1 * y1 + x2 * y2)
            value = dual(M, T, C)
            step, slope, small = newton(g, M, S, share * (v * y1 * y1 + y2 * y2), T, C)
            tight = slope <= 1e-5 * value
            if (abs(step) <= 0.3 and slope * abs(step) <= 1e-5 * value) or (not small and tight):
                break
            low, high = (g, high) if small else (low, g)
            g = next_guess(g, step, low, high, 1e-12)
        h = x2 - x1
        beta = math.exp(-C - T) * (f1 - f2 + y2 * h) / (h * h) / M
        out[2 * k], out[2 * k + 1] = value - beta * v, beta


@jit()
def relative_variance(a, variance):
    """Var / a^2, which a table is asked for."""
    return max(variance, 0.0) / max(a * a, 1e-290)


@jit()
def place_of(v, at):
    """Where the table that begins at `at` has alpha and beta for v = Var / a^2.

    The place is clamped, v is not.
    """
    bits = np.float64(min(max(v, SMALLEST), LARGEST)).view(np.uint64)
    return np.uint64(at) + np.uint64(2) * ((bits >> SHIFT) - FIRST)


@jit()
def table_gain(a, v, table, place):
    """a (alpha + beta v) from a place of a table, at most a."""
    return a * min(1.0, table[place] + table[place + np.uint64(1)] * v)


@jit()
def largest_over_balls(p, v, radius, rounds, gaps, out):
    """out[i] = max {q.v : KL(p, q) <= radius[i]} of p = p[:, i], v = v[:, i]; p, v: (B, n).

    gaps: (B,), memory.
    """
    for i in range(out.shape[0]):
        top = least = v[0, i]
        for j in range(1, p.shape[0]):
            top, least = max(top, v[j, i]), min(least, v[j, i])
        out[i] = top
        if top - least <= NOTHING or radius[i] >= CERTAIN:
            continue
        unit, a = 1.0 / (top - least), 0.0
        for j in range(p.shape[0]):
            gaps[j] = (top - v[j, i]) * unit
            a += p[j, i] * gaps[j]
        mean = top - (top - least) * a
        gained = gain(p[:, i], 0, 1, gaps, p.shape[0], radius[i], rounds)
        out[i] = mean + (top - least) * gained
