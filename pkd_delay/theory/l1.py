"""Estimating the l1-norm of a vector from single coin tosses: the core of the lower bound.

theta in [-1, 1]^d is unknown. A sample is an index I uniform on 1..d and a toss X that is 1 with
probability (1 + theta_I)/2. How many samples does (1/d) |theta|_1 need for an error of eps? The
proposition "l1 estimation" says at least d / (eps^2 log d), up to a constant. That is far more than
the 1 / eps^2 of one mean, because |theta_i| has a kink at 0 that few tosses cannot see. It is less,
by the factor log d, than the d / eps^2 with which `plug_in` estimates every |theta_i| by itself.
Here are the problem, two estimators, the exact divergence of the two mixtures that no estimator
tells apart, and the proposition's numbers. The state (I, X) is the first state of a CodeMDP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext

import attrs
import numpy as np
from numpy.typing import NDArray

import pkd
from pkd_delay.theory.remez import Prior, best_approximation, moment_matching_priors


def sample(theta: Sequence[float], n: int, seed: int = 0) -> NDArray[np.int64]:
    """Counts of n samples; (d, 2): row i holds how often (i, 0) and (i, 1) were drawn."""
    vector = np.asarray(theta, dtype=float)
    if vector.ndim != 1 or not vector.size or not (np.abs(vector) <= 1).all():
        raise pkd.ModelError(f"theta is {theta!r}; expected one or more numbers, each in [-1, 1]")
    cells = np.stack([1 - vector, 1 + vector], axis=1) / (2 * vector.size)
    return np.random.default_rng(seed).multinomial(n, cells.ravel()).reshape(-1, 2)


def plug_in(counts: NDArray[np.int64]) -> float:
    """(1/d) sum_i |N_i1 - N_i0| / (N_i0 + N_i1); an index never drawn counts as 0. counts: (d, 2).

    Its bias is upward and of the order sqrt(d/n) when theta is small: noise has a positive absolute
    value.
    """
    total = counts.sum(axis=1)
    return float(np.mean(np.abs(counts[:, 1] - counts[:, 0]) / np.maximum(total, 1)))


def polynomial_estimate(counts: NDArray[np.int64], degree: int, bound: float = 1.0) -> float:
    """(1/d) sum_i of an unbiased estimate of bound * p(theta_i / bound).

    p is the best polynomial of the given degree for |x|. counts: (d, 2). If every |theta_i| <=
    bound, the bias is at most bound * delta_degree, whatever n >= degree is. The variance grows
    with the degree: (expected samples per index)^-degree. theta_i^l is estimated by c(N_i0, N_i1,
    l) / (C(n, l) d^-l), c as in `expansion`.
    """
    d, n = len(counts), int(counts.sum())
    if n < degree:
        raise pkd.ModelError(
            f"{n} samples cannot estimate a moment of order {degree} without bias; "
            "draw more, or lower the degree"
        )
    total = 0.0
    for j, c in enumerate(best_approximation(degree).coefficients):
        order = 2 * j
        moments = sum(_find_coefficient(zeros, ones, order) for zeros, ones in counts.tolist())
        total += float(c) * bound ** (1 - order) * (moments * d**order / math.comb(n, order))
    return total / d


def expansion(zeros: int, ones: int) -> tuple[int, ...]:
    """The coefficients c(a, b, l) of (1 - x)^a (1 + x)^b = sum_l c(a, b, l) x^l, constant first.

    They are orthogonal, which is what turns moments that agree into mixtures that are close:
    sum_a C(N, a) c(a, N-a, l) c(a, N-a, m) = 2^N C(N, l) if l = m, else 0.

    >>> expansion(2, 1)
    (1, -1, -1, 1)
    """
    return tuple(_find_coefficient(zeros, ones, power) for power in range(zeros + ones + 1))


@attrs.frozen
class Divergence:
    """How far apart two laws of n samples are: all theta_i ~ scale nu_1, or all ~ scale nu_2."""

    kl: float  # KL(P_1^n || P_2^n), exact
    chi_square: float  # of the two laws of (N_i0, N_i1) for one index, exact
    kl_from_chi_square: float  # d log(1 + chi_square), which is at least kl
    bound: float  # the closed bound of the proposition "KL bound", which is at least that


def divergence(degree: int, n: int, d: int, scale: float) -> Divergence:
    """The exact divergences of the two n-sample mixtures: sums over all (N_0, N_1) of one index.

    The likelihood ratio is a product over the indices, so KL = d KL(one index). The mixtures are
    absolutely continuous for scale < 1; the priors are not (their atoms are disjoint), and need not
    be.
    """
    nu_1, nu_2 = moment_matching_priors(degree)
    kl, chi_square = Decimal(0), Decimal(0)
    with localcontext(prec=nu_1.digits):
        for zeros in range(n + 1):
            for ones in range(n + 1 - zeros):
                rest = n - zeros - ones
                ways = math.comb(n, zeros) * math.comb(n - zeros, ones)
                missed = (1 - 1 / Decimal(d)) ** rest if rest else 1
                weight = ways * (1 / Decimal(2 * d)) ** (zeros + ones) * missed
                tosses = Decimal(scale), zeros, ones
                first, second = (_find_likelihood(nu, *tosses) for nu in (nu_1, nu_2))
                if weight and first:
                    kl += weight * first * (first / second).ln()
                if weight and first != second:
                    chi_square += weight * (first - second) ** 2 / second
        through = d * (1 + chi_square).ln()
    bound = divergence_bound(degree, n, d, scale)
    return Divergence(float(d * kl), float(chi_square), float(through), bound)


def divergence_bound(degree: int, n: float, d: int, scale: float) -> float:
    """d log(1 + (4 n s^2 / (d (k+1)))^(k+1) (1 + 2 s^2 / d)^n): the bound on KL for s <= 1/2.

    s is the scale and k the degree.
    """
    if not 0 < scale <= 0.5:
        raise pkd.ModelError(f"scale is {scale}; the bound is proved for 0 < scale <= 1/2")
    exponent = (degree + 1) * math.log(4 * n * scale**2 / (d * (degree + 1))) + n * math.log1p(
        2 * scale**2 / d
    )
    return d * float(np.logaddexp(0.0, exponent))


@attrs.frozen
class Proposition:
    """The proposition "l1 estimation" at one (d, eps).

    With n samples every estimator errs by eps with probability 1/8 for some theta.
    """

    n: int
    degree: int  # k, the number of moments that agree
    scale: float  # eps' = 8 k eps, the size of the entries of theta
    kl: float  # the bound on the KL divergence of the two mixtures; at most 1/8
    # The bound on Pr(the norm is on the wrong side) under each prior; the proof needs at most 1/4.
    overlap: float


def proposition(d: int, eps: float, *, printed: bool = False) -> Proposition:
    """n = floor(d / (4608 eps^2 log d)) samples do not suffice, for eps < 1/(96 log d).

    `printed`: with 1152 and 48. The printed constants come from eps' = 4 k eps, which separates the
    priors by half of what the proof uses.
    """
    factor = 4 if printed else 8
    limit = 1 / (12 * factor * math.log(d)) if d > 1 else 0.0
    if not 0 < eps < limit:
        raise pkd.ModelError(
            f"eps is {eps}; expected 0 < eps < 1/({12 * factor} log d) = {limit:.6g} at d = {d}"
        )
    degree = matching_degree(d)
    n = math.floor(d / (72 * factor**2 * eps**2 * math.log(d)))
    scale = factor * degree * eps
    overlap = math.exp(-2 * d / (8 * degree) ** 2)
    return Proposition(n, degree, scale, divergence_bound(degree, n, d, scale), overlap)


def matching_degree(d: int) -> int:
    """The smallest even k with 4 log d + 2 <= k <= 6 log d.

    Then enough moments agree, and there is still a gap of 1/(12 log d).
    """
    degree = 2 * math.ceil(2 * math.log(d) + 1)
    if degree > 6 * math.log(d):
        raise pkd.ModelError(
            f"d is {d}: no even k lies between 4 log d + 2 and 6 log d; they exist from d = 6 on"
        )
    return degree


def smallest_dimension(*, weighted: bool = False) -> int:
    """The "absolute constant" of the proofs.

    It is the smallest d >= 8 from which their Hoeffding bound is at most 1/4. The bound is exp(-d /
    (1152 log^2 d)) for the proposition, and exp(-d / (96 log d)^2) for the weighted norm of Theorem
    3.
    """
    divisor = 96**2 if weighted else 1152

    def falls_short(d: int) -> bool:
        return d < math.log(4) * divisor * math.log(d) ** 2

    low, high = 7, 8  # d / log^2 d rises from d = 8 on
    while falls_short(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if falls_short(middle) else (low, middle)
    return high


def _find_coefficient(zeros: int, ones: int, power: int) -> int:
    """c(a, b, l) = sum_i (-1)^i C(a, i) C(b, l - i), in whole numbers; 0 for l > a + b."""
    terms = ((-1) ** i * math.comb(zeros, i) * math.comb(ones, power - i) for i in range(power + 1))
    return sum(terms)


def _find_likelihood(prior: Prior, scale: Decimal, zeros: int, ones: int) -> Decimal:
    """E[(1 - theta)^zeros (1 + theta)^ones] for theta ~ scale * prior."""

    def tosses(point: Decimal) -> Decimal:
        return (1 - scale * point) ** zeros * (1 + scale * point) ** ones

    return prior.mean(tosses)
