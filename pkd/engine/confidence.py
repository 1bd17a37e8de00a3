"""Which laws the data refute: the evidence of counts n against a law, by a mixture over supports.

A law p is refuted when a bet against it has won 1 / (weight delta) times its stake. The wealth of
the bet is w(n) / prod_i p_i^n_i, where w(n) is the probability of the observed sequence under a
mixture of laws: the size s of the support is uniform on 1..B, all supports of one size are alike,
and the law on the support is Dirichlet(1/2). With m outcomes, of which k were seen, N samples and
p^ = n / N:

    w(n)     = (1/B) sum_{s=k..B} [C(m-k, s-k) / C(m, s)] w_s(n)
    w_s(n)   = Gamma(s/2) / Gamma(N + s/2) prod_{seen i} Gamma(n_i + 1/2) / Gamma(1/2)
    evidence = log(prod_i p^_i^n_i / w(n))

The laws that are not refuted are {q : N KL(p^, q) <= log(1 / (weight delta)) + evidence}. In the
evidence N log N, n log n, N and n cancel; they are cancelled on paper, so that no digits are lost.
"""

from __future__ import annotations

import math

import numpy as np

from pkd.engine.jit import inner, jit

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
HALF_LOG_2 = 0.5 * math.log(2.0)
SERIES_FROM = 16.0  # from here on four terms of Stirling's series are exact to rounding


@inner()
def stirling(x):
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2."""
    if x < SERIES_FROM:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_TAU
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y / 1680.0))) / x


@inner()
def shifted(n, a):
    """log Gamma(n + a) - [n log n - n + (a - 1/2) log n + log(2 pi) / 2] for n > 0.

    It is small for large n.
    """
    # a / n may overflow: a reward can be a tiny fraction of its range.
    grown = math.log1p(a / n) if n > a else math.log(n + a) - math.log(n)
    return (n + a - 0.5) * grown - a + stirling(n + a)


@inner()
def log_choices(m, k, s):
    """log [C(m - k, s - k) / C(m, s)]: how likely a support of size s holds k given outcomes."""
    if k == m:
        return 0.0
    return (
        math.lgamma(m - k + 1.0)
        + math.lgamma(s + 1.0)
        - math.lgamma(s - k + 1.0)
        - math.lgamma(m + 1.0)
    )


@inner()
def evidence(counts, lo, hi, bound):
    """log(prod_i p^_i^n_i / w(n)) of counts[lo:hi], supports of at most `bound`; 0 without data.

    Counts need not be whole numbers. A bound below the number of outcomes seen is raised to it.
    """
    total, seen, parts = 0.0, 0, 0.0
    for i in range(lo, hi):
        if counts[i] > 0.0:
            total += counts[i]
            seen += 1
            parts += shifted(counts[i], 0.5) + HALF_LOG_2
    if seen == 0:
        return 0.0
    last, log_total = max(int(bound), seen), math.log(total)
    most, added = -np.inf, 0.0  # the sum over s is added * exp(most)
    for s in range(seen, last + 1):
        half = 0.5 * s
        term = (
            log_choices(float(hi - lo), float(seen), float(s))
            + math.lgamma(half)
            - shifted(total, half)
            - (half - 0.5) * log_total
        )
        if term > most:
            added = added * math.exp(most - term) + 1.0
            most = term
        else:
            added += math.exp(term - most)
    return math.log(last) + HALF_LOG_TAU - most - math.log(added) - parts


@inner()
def radius(counts, lo, hi, bound, budget):
    """C(z) of {q : KL(p^, q) <= C(z)}; budget = log(1 / (weight delta)). Infinite without data."""
    total = 0.0
    for i in range(lo, hi):
        total += counts[i]
    if total <= 0.0:
        return np.inf
    return max(budget + evidence(counts, lo, hi, bound), 0.0) / total


@jit()
def fill_radii(row_ptr, counts, bounds, budgets, out):
    """C(z) of all rows."""
    for z in range(out.shape[0]):
        out[z] = radius(counts, row_ptr[z], row_ptr[z + 1], bounds[z], budgets[z])
