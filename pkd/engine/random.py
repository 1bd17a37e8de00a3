"""Random numbers inside kernels: xoshiro256++ on a state of four words.

A run saves that state, so that it can go on where it stopped.
"""

from __future__ import annotations

import numpy as np

from pkd.engine.jit import inner, jit

# A state is uint64[4]. numpy's own Generator would work in numba too, but its state cannot be saved
# from compiled code.


@inner()
def next_word(state):
    s0, s1 = state[0], state[1]
    s2, s3 = state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1] = s0, s1
    state[2], state[3] = s2, s3
    return result


@inner()
def uniform(state):
    """U in [0, 1) with 53 random bits."""
    return (next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@inner()
def draw(cumulative, lo, hi, u):
    """The first i in [lo, hi) with u < cumulative[i].

    If rounding leaves u above all of them: the last i of positive mass.
    """
    if hi - lo <= 8:
        for i in range(lo, hi):
            if u < cumulative[i]:
                return i
    else:
        a, b = lo, hi
        while a < b:
            m = (a + b) >> 1
            if u < cumulative[m]:
                b = m
            else:
                a = m + 1
        if a < hi:
            return a
    i = hi - 1
    while i > lo and cumulative[i] <= cumulative[i - 1]:
        i -= 1
    return i


@inner()
def normal(state):
    """Standard normal by the polar method."""
    while True:
        u = 2.0 * uniform(state) - 1.0
        w = 2.0 * uniform(state) - 1.0
        r = u * u + w * w
        if 0.0 < r < 1.0:
            return u * np.sqrt(-2.0 * np.log(r) / r)


@inner()
def gamma(state, shape):
    """Gamma(shape, 1) by Marsaglia and Tsang; a shape below 1 is boosted by one."""
    boost = 1.0
    if shape < 1.0:
        u = uniform(state)
        while u == 0.0:
            u = uniform(state)
        boost = u ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    while True:
        x = normal(state)
        t = 1.0 + c * x
        if t <= 0.0:
            continue
        t = t * t * t
        u = uniform(state)
        if u < 1.0 - 0.0331 * x * x * x * x or (
            u > 0.0 and np.log(u) < 0.5 * x * x + d * (1.0 - t + np.log(t))
        ):
            return d * t * boost


@inner()
def dirichlet(state, counts, prior, lo, hi, out):
    """out[lo:hi] ~ Dirichlet(prior + counts[lo:hi])."""
    total = 0.0
    for i in range(lo, hi):
        out[i] = gamma(state, prior + counts[i])
        total += out[i]
    for i in range(lo, hi):
        out[i] = out[i] / total if total > 0.0 else 1.0 / (hi - lo)


@jit()
def draw_laws(ptr, counts, weight, state, out):
    """out[k, z] ~ Dirichlet(weight, counts of z): the mass of an extra outcome, then the law.

    out: (draws, features, B + 1).
    """
    for z in range(out.shape[1]):
        lo, size = ptr[z], ptr[z + 1] - ptr[z]
        for k in range(out.shape[0]):
            total = gamma(state, weight)
            out[k, z, 0] = total
            for j in range(size):
                n = counts[lo + j]
                out[k, z, j + 1] = gamma(state, n) if n > 0.0 else 0.0
                total += out[k, z, j + 1]
            if total > 0.0:
                for j in range(size + 1):
                    out[k, z, j] /= total
            else:
                out[k, z, 0] = 1.0


@jit()
def draw_means(paid, low, high, weight, state, out):
    """out[k, w]: draws of the mean of a reward, a fraction of heads of a coin.

    The coin showed `weight` more heads than were paid. out: (draws, unknown rewards).
    """
    for w in range(out.shape[1]):
        n, spread = paid[0, w], high[w] - low[w]
        if n <= 0.0 or spread <= 0.0:
            continue
        share = min(max((paid[1, w] - low[w]) / spread, 0.0), 1.0)
        for k in range(out.shape[0]):
            heads = gamma(state, n * share + weight)
            tails = gamma(state, n * (1.0 - share)) if share < 1.0 else 0.0
            out[k, w] = low[w] + spread * heads / max(heads + tails, 1e-300)
