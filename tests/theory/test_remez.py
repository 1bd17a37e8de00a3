"""Best approximation of |x| and the two priors: published constants, and the certificate that a
polynomial is the best one.
"""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import pkd
from pkd_delay.theory.remez import BERNSTEIN, best_approximation, moment_matching_priors

WORKED = {
    2: "0.125", 4: "0.06762089927778", 6: "0.04592906206686", 8: "0.03468972808438",
    10: "0.02784511855355", 12: "0.02324732645541",
}  # fmt: skip
EVEN = range(2, 42, 2)


@pytest.mark.parametrize(("degree", "expected"), WORKED.items())
def test_the_error_is_the_worked_number(degree, expected):
    assert abs(best_approximation(degree).error - Decimal(expected)) < Decimal("1e-14")


@pytest.mark.parametrize("degree", EVEN)
def test_the_error_alternates_at_the_nodes_so_no_polynomial_does_better(degree):
    best = best_approximation(degree)
    with localcontext(prec=60):
        signed = [
            x - sum(c * x ** (2 * j) if j else c for j, c in enumerate(best.coefficients))
            for x in best.nodes
        ]
        levels = [error * (-1) ** (j + 1) for j, error in enumerate(signed)]
        spread = max(abs(level - best.error) for level in levels)
    assert len(best.nodes) == degree // 2 + 2
    assert list(best.nodes) == sorted(set(best.nodes))
    assert spread < Decimal("1e-30")


@pytest.mark.parametrize("degree", EVEN)
def test_the_error_is_nowhere_larger_than_claimed(degree):
    best = best_approximation(degree)
    worst = max(abs(x - best(x)) for x in np.linspace(0, 1, 2001).tolist())
    assert worst <= float(best.error) * (1 + 1e-12)
    assert best.error >= 1 / (4 * Decimal(degree))  # what the lemma uses


def test_the_scaled_errors_rise_to_the_constant_of_bernstein():
    scaled = [degree * float(best_approximation(degree).error) for degree in EVEN]
    assert scaled == sorted(scaled)
    # k delta_k has an expansion in 1/k^2: Richardson's extrapolation from k = 4, 8, ..., 40 leaves
    # the constant.
    with localcontext(prec=60):
        table = [(degree, degree * best_approximation(degree).error) for degree in range(4, 44, 4)]
        values, orders = [value for _, value in table], [degree for degree, _ in table]
        for level in range(1, len(values)):
            values = [
                values[i + 1]
                + (values[i + 1] - values[i]) / ((Decimal(orders[i + level]) / orders[i]) ** 2 - 1)
                for i in range(len(values) - 1)
            ]
    assert float(values[0]) == pytest.approx(BERNSTEIN, abs=1e-12)


def test_the_priors_of_degree_two_are_the_worked_ones():
    nu_1, nu_2 = moment_matching_priors(2)
    assert [(float(x), float(p)) for x, p in nu_1.points()] == [(-1, 0.125), (0, 0.75), (1, 0.125)]
    assert [(float(x), float(p)) for x, p in nu_2.points()] == [(-0.5, 0.5), (0.5, 0.5)]


def test_the_priors_of_degree_four_are_the_worked_ones():
    nu_1, nu_2 = moment_matching_priors(4)
    assert [float(x) for x in nu_1.atoms] == pytest.approx([0.0, 0.777081536424], abs=1e-12)
    assert [float(w) for w in nu_1.weights] == pytest.approx([0.719157680, 0.280842320], abs=5e-10)
    assert [float(x) for x in nu_2.atoms] == pytest.approx([0.284431583143, 1.0], abs=1e-12)
    assert [float(w) for w in nu_2.weights] == pytest.approx([0.903506645, 0.096493355], abs=5e-10)
    assert float(nu_1.absolute_mean()) == pytest.approx(0.218237381534, abs=1e-12)
    assert float(nu_2.absolute_mean()) == pytest.approx(0.353479180090, abs=1e-12)


@pytest.mark.parametrize("degree", EVEN)
def test_the_priors_are_probabilities_with_equal_moments_up_to_the_degree(degree):
    nu_1, nu_2 = moment_matching_priors(degree)
    assert abs(nu_1.moment(0) - 1) < Decimal("1e-14")
    assert min(nu_1.weights + nu_2.weights) > 0
    moments = [abs(nu_1.moment(order) - nu_2.moment(order)) for order in range(degree + 1)]
    assert max(moments) < Decimal("1e-14")
    apart = nu_2.absolute_mean() - nu_1.absolute_mean()
    assert abs(apart - 2 * best_approximation(degree).error) < Decimal("1e-14")


def test_the_moment_after_the_degree_differs():
    nu_1, nu_2 = moment_matching_priors(4)
    assert abs(nu_1.moment(6) - nu_2.moment(6)) > Decimal("0.01")


def test_more_digits_change_nothing_in_the_digits_before():
    coarse, fine = best_approximation(20, digits=30), best_approximation(20, digits=90)
    assert abs(coarse.error - fine.error) < Decimal("1e-29")


@pytest.mark.parametrize("degree", [0, 3, -2])
def test_an_odd_or_small_degree_is_refused(degree):
    with pytest.raises(
        pkd.ModelError, match=f"degree is {degree}; expected an even number of at least 2"
    ):
        best_approximation(degree)
