"""The best polynomial for |x| on [-1, 1], and the two priors that it makes indistinguishable.

This is the lemma "absolute approximating measure" (Lemma 1 of Cai and Low, 2011) made explicit. |x|
and its best polynomial of even degree k are even, so with t = x^2 the question is the best
polynomial of degree k/2 for sqrt(t) on [0, 1]. Its error takes its largest size delta_k with
alternating signs at k/2 + 2 points, 0 and 1 among them. Those points carry two symmetric
probability measures whose moments agree up to order k and whose first absolute moments lie 2
delta_k apart. All numbers are decimals of many digits: weights and moments cancel too much for
floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import pairwise

import attrs

import pkd

BERNSTEIN = 0.2801694990238691  # the limit of k delta_k (Varga and Carpenter, 1985)


@attrs.frozen
class BestApproximation:
    """The polynomial of degree at most k nearest to |x| on [-1, 1] in the largest error."""

    degree: int  # k
    error: Decimal  # delta_k
    # 0 = x_0 < ... < x_{k/2+1} = 1, where the error is +-delta_k in turn; k/2 + 2 of them
    nodes: tuple[Decimal, ...]
    coefficients: tuple[Decimal, ...]  # of x^0, x^2, ..., x^k; k/2 + 1 of them

    def __call__(self, x: float) -> float:
        """The polynomial at x."""
        return float(_horner(self.coefficients, Decimal(x) ** 2))


@attrs.frozen
class Prior:
    """A symmetric distribution with finitely many atoms in [-1, 1]."""

    atoms: tuple[Decimal, ...]  # not negative, rising
    # Of the pair {-atom, +atom}; of the single point where the atom is 0.
    weights: tuple[Decimal, ...]
    digits: int = 60  # that atoms and weights carry, and that sums over them are made with

    def points(self) -> list[tuple[Decimal, Decimal]]:
        """(point, probability) for every point, both signs."""
        pairs: list[tuple[Decimal, Decimal]] = []
        with localcontext(prec=self.digits):
            for atom, weight in zip(self.atoms, self.weights, strict=True):
                signs = {atom, -atom}  # one point where the atom is 0
                pairs += [(point, weight / len(signs)) for point in signs]
        return sorted(pairs)

    def moment(self, order: int) -> Decimal:
        """The integral of t^order; 0^0 is 1."""
        return self.mean(lambda point: point**order if order else Decimal(1))

    def absolute_mean(self) -> Decimal:
        """mu, the integral of |t|."""
        return self.mean(abs)

    def mean(self, function: Callable[[Decimal], Decimal]) -> Decimal:
        """The integral of a function of t."""
        with localcontext(prec=self.digits):
            return sum((p * function(point) for point, p in self.points()), Decimal(0))


@cache
def best_approximation(degree: int, digits: int = 60) -> BestApproximation:
    """The best polynomial for |x|, by Remez's exchange.

    Level the error on the nodes, move the nodes to the peaks of the error, until nothing moves.
    """
    _check_degree(degree)
    half = degree // 2
    with localcontext(
        prec=digits + 2 * degree
    ) as context:  # the powers of t lose about 0.8 digits per degree
        # The peaks of the Chebyshev polynomial of degree k + 2 are close to those of the error.
        nodes = [
            Decimal(0),
            *(
                Decimal(math.cos((half + 1 - j) * math.pi / (degree + 2)))
                for j in range(1, half + 1)
            ),
            Decimal(1),
        ]
        tolerance = Decimal(10) ** -(
            digits // 2 + 5
        )  # the exchange converges quadratically: the last step doubles the digits
        for _ in range(60):
            error, coefficients = _find_level(nodes)
            moved = [nodes[0], *_find_peaks(coefficients, nodes), nodes[-1]]
            shift = max(abs(new - old) for new, old in zip(moved, nodes, strict=True))
            nodes = moved
            if shift < tolerance:
                error, coefficients = _find_level(nodes)
                break
        else:
            raise ArithmeticError(
                f"the exchange for degree {degree} did not settle in 60 rounds at {digits} digits"
            )
        context.prec = digits
        return BestApproximation(
            degree, +error, tuple(+x for x in nodes), tuple(+c for c in coefficients)
        )


@cache
def moment_matching_priors(degree: int, digits: int = 60) -> tuple[Prior, Prior]:
    """nu_1 and nu_2: equal moments 0..k, first absolute moments 2 delta_k apart.

    0 is an atom of nu_1. With t_j = x_j^2 the signed weights 1 / prod_{i != j} (t_j - t_i)
    annihilate every polynomial of degree k/2 in t and change sign from node to node. Scaled to
    total size 2, the positive part is one prior and the negative part the other.
    """
    nodes = best_approximation(degree, digits + 2 * degree).nodes
    with localcontext(prec=digits + 2 * degree) as context:
        signed = _signed_weights([x**2 for x in nodes])
        scale = 2 / sum((abs(w) for w in signed), Decimal(0))
        sizes = [abs(w) * scale for w in signed]
        context.prec = digits
        atoms, weights = tuple(+x for x in nodes), tuple(+w for w in sizes)
    # The signs alternate from node to node, so every second node belongs to the same prior.
    return Prior(atoms[0::2], weights[0::2], digits), Prior(atoms[1::2], weights[1::2], digits)


def _check_degree(degree: int) -> None:
    if degree < 2 or degree % 2:
        raise pkd.ModelError(
            f"degree is {degree}; expected an even number of at least 2, because |x| is even"
        )


def _signed_weights(t: Sequence[Decimal]) -> list[Decimal]:
    """w_j = 1 / prod_{i != j} (t_j - t_i).

    The divided difference of f at all t is sum_j w_j f(t_j).
    """
    return [
        1 / math.prod((t_j - t_i for i, t_i in enumerate(t) if i != j), start=Decimal(1))
        for j, t_j in enumerate(t)
    ]


def _find_level(nodes: Sequence[Decimal]) -> tuple[Decimal, list[Decimal]]:
    """The level |E| and the coefficients of p with sqrt(t_j) - p(t_j) = (-1)^j E at all nodes.

    The nodes are x_j, and t_j = x_j^2.
    """
    t = [x**2 for x in nodes]
    weights = _signed_weights(t)
    # A divided difference over all nodes removes p, so E is the quotient of those of sqrt(t) and of
    # the alternating signs.
    signs = [Decimal(1 - 2 * (j % 2)) for j in range(len(nodes))]
    error = sum((w * x for w, x in zip(weights, nodes, strict=True)), Decimal(0))
    error /= sum((w * sign for w, sign in zip(weights, signs, strict=True)), Decimal(0))
    values = [x - sign * error for x, sign in zip(nodes, signs, strict=True)]
    return abs(error), _interpolate(t[:-1], values[:-1])


def _interpolate(t: Sequence[Decimal], values: Sequence[Decimal]) -> list[Decimal]:
    """The coefficients, constant first, of the polynomial through (t_j, values_j).

    Newton's divided differences.
    """
    table = list(values)
    for order in range(1, len(t)):
        for j in range(len(t) - 1, order - 1, -1):
            table[j] = (table[j] - table[j - 1]) / (t[j] - t[j - order])
    coefficients = [table[-1]]
    for t_j, top in zip(reversed(t[:-1]), reversed(table[:-1]), strict=True):
        shifted = [Decimal(0), *coefficients]
        coefficients = [
            high - t_j * low for high, low in zip(shifted, [*coefficients, Decimal(0)], strict=True)
        ]
        coefficients[0] += top
    return coefficients


def _find_peaks(coefficients: Sequence[Decimal], nodes: Sequence[Decimal]) -> list[Decimal]:
    """The stationary points of the error x - p(x^2), one between any two of its zeros.

    The zeros lie between the nodes.
    """
    slope = [j * c for j, c in enumerate(coefficients)][1:]
    bend = [j * c for j, c in enumerate(slope)][1:]

    def error(x: Decimal) -> Decimal:
        return x - _horner(coefficients, x**2)

    def derivative(x: Decimal) -> Decimal:
        return 1 - 2 * x * _horner(slope, x**2)

    zeros = [_bisect(error, left, right) for left, right in pairwise(nodes)]
    peaks = [_bisect(derivative, left, right) for left, right in pairwise(zeros)]
    for _ in range(8):  # Newton's method; bisection has already given it ten digits
        peaks = [
            x + derivative(x) / (2 * _horner(slope, x**2) + 4 * x**2 * _horner(bend, x**2))
            for x in peaks
        ]
    return peaks


def _bisect(function: Callable[[Decimal], Decimal], left: Decimal, right: Decimal) -> Decimal:
    rising = function(left) < 0
    for _ in range(36):
        middle = (left + right) / 2
        left, right = (middle, right) if (function(middle) < 0) == rising else (left, middle)
    return (left + right) / 2


def _horner(coefficients: Sequence[Decimal], t: Decimal) -> Decimal:
    value = Decimal(0)
    for c in reversed(coefficients):
        value = value * t + c
    return value
