"""The l1-norm estimation problem: estimators against exact enumeration, divergences against sums
over all sample sequences.
"""

from fractions import Fraction
from itertools import product
from math import comb, e, exp, log, prod, sqrt

import numpy as np
import pytest

import pkd
from pkd_delay import l1
from pkd_delay.theory.remez import best_approximation, moment_matching_priors


def count_tables(n, d):
    """Every outcome of n samples as ((d, 2) counts, number of orders in which it comes)."""
    cells = 2 * d
    for counts in product(range(n + 1), repeat=cells):
        if sum(counts) == n:
            ways, left = 1, n
            for count in counts:
                ways, left = ways * comb(left, count), left - count
            yield np.array(counts).reshape(d, 2), ways


def expected(estimator, theta, n):
    """The exact mean of an estimator over all outcomes of n samples."""
    d = len(theta)
    chance = np.array([[(1 - t) / (2 * d), (1 + t) / (2 * d)] for t in theta])
    return sum(
        ways * np.prod(chance**counts) * estimator(counts) for counts, ways in count_tables(n, d)
    )


def sequence_laws(degree, n, d, scale):
    """The laws of the n samples under both priors, sequence by sequence, from the definition."""
    laws = []
    for prior in moment_matching_priors(degree):
        points = [(scale * float(x), float(p)) for x, p in prior.points()]
        law = {}
        for samples in product(product(range(d), (0, 1)), repeat=n):
            law[samples] = sum(
                prod(p for _, p in theta)
                * prod((1 + (2 * toss - 1) * theta[i][0]) / (2 * d) for i, toss in samples)
                for theta in product(points, repeat=d)
            )
        laws.append(law)
    return laws


def test_samples_fall_on_each_index_and_toss_with_the_stated_chances():
    theta, n = [0.5, -0.25, 1.0], 300_000
    counts = l1.sample(theta, n, seed=3)
    chances = np.array([[0.25, 0.75], [0.625, 0.375], [0.0, 1.0]]) / 3
    errors = np.sqrt(chances * (1 - chances) / n)
    assert counts.sum() == n
    assert (np.abs(counts / n - chances) <= 4.5 * errors).all()


def test_the_same_seed_gives_the_same_samples():
    assert (l1.sample([0.1, 0.9], 50, seed=8) == l1.sample([0.1, 0.9], 50, seed=8)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: l1.sample([0.5, 1.5], 10),
            "theta is [0.5, 1.5]; expected one or more numbers, each in [-1, 1]",
        ),
        (
            lambda: l1.polynomial_estimate(np.array([[1, 2]]), 4),
            "3 samples cannot estimate a moment of order 4",
        ),
        (
            lambda: l1.divergence_bound(4, 10, 2, 0.7),
            "scale is 0.7; the bound is proved for 0 < scale <= 1/2",
        ),
        (lambda: l1.matching_degree(5), "d is 5: no even k lies between 4 log d + 2 and 6 log d"),
        (
            lambda: l1.proposition(100, 0.01),
            "eps is 0.01; expected 0 < eps < 1/(96 log d) = 0.00226195 at d = 100",
        ),
    ],
)
def test_what_is_not_defined_or_not_proved_is_refused(call, message):
    with pytest.raises(pkd.ModelError) as error:
        call()
    assert str(error.value).startswith(message)


def test_the_plug_in_estimate_averages_the_observed_signs():
    assert l1.plug_in(np.array([[1, 3], [4, 0], [0, 0]])) == pytest.approx((0.5 + 1.0 + 0.0) / 3)


def test_the_plug_in_estimate_is_biased_upwards_at_zero():
    # One toss per index on average: |N_1 - N_0|/N has a positive mean although theta is 0.
    assert expected(l1.plug_in, [0.0, 0.0], 2) == pytest.approx(0.625)


@pytest.mark.parametrize(
    ("theta", "bound"), [((0.3, -0.2), 1.0), ((0.3, -0.2), 0.4), ((0.0, 0.4), 0.4)]
)
def test_the_polynomial_estimate_has_the_polynomial_as_its_mean(theta, bound):
    best = best_approximation(2)
    mean = expected(lambda counts: l1.polynomial_estimate(counts, 2, bound), theta, 4)
    assert mean == pytest.approx(sum(bound * best(t / bound) for t in theta) / len(theta))


@pytest.mark.parametrize("degree", [2, 4])
def test_the_bias_of_the_polynomial_estimate_is_at_most_the_approximation_error(degree):
    theta = (0.7, -0.05)
    mean = expected(lambda counts: l1.polynomial_estimate(counts, degree), theta, 5)
    assert abs(mean - 0.375) <= float(best_approximation(degree).error) + 1e-12


@pytest.mark.parametrize(("zeros", "ones"), [(0, 0), (2, 1), (3, 4)])
def test_the_expansion_is_the_polynomial_it_expands(zeros, ones):
    x, coefficients = 0.37, l1.expansion(zeros, ones)
    found = sum(c * x**power for power, c in enumerate(coefficients))
    assert found == pytest.approx((1 - x) ** zeros * (1 + x) ** ones)


@pytest.mark.parametrize("n", [1, 3, 6, 11])
def test_the_expansions_are_orthogonal(n):
    rows = [l1.expansion(zeros, n - zeros) for zeros in range(n + 1)]
    gram = [
        [sum(comb(n, z) * rows[z][a] * rows[z][b] for z in range(n + 1)) for a in range(n + 1)]
        for b in range(n + 1)
    ]
    assert gram == [[2**n * comb(n, a) * (a == b) for a in range(n + 1)] for b in range(n + 1)]
    if n == 3:
        assert [gram[a][a] for a in range(4)] == [8, 24, 24, 8]  # the worked numbers


def test_the_divergences_are_the_worked_numbers():
    found = l1.divergence(degree=2, n=6, d=2, scale=0.5)
    assert found.kl == pytest.approx(1.0977248454e-4, rel=1e-9)
    assert found.kl_from_chi_square == pytest.approx(2.1952059568e-4, rel=1e-9)
    assert found.bound == pytest.approx(3.1433463402, rel=1e-10)


@pytest.mark.parametrize(("n", "d"), [(4, 1), (4, 2), (5, 2)])
def test_the_exact_divergence_is_the_sum_over_all_sample_sequences(n, d):
    first, second = sequence_laws(2, n, d, 0.5)
    direct = sum(p * log(p / second[samples]) for samples, p in first.items())
    assert direct > 1e-6
    assert l1.divergence(2, n, d, 0.5).kl == pytest.approx(direct, abs=1e-14)


@pytest.mark.parametrize(
    ("degree", "n", "d", "scale"), [(2, 10, 3, 0.5), (4, 25, 4, 0.4), (6, 30, 2, 0.25)]
)
def test_each_divergence_is_at_most_the_next(degree, n, d, scale):
    found = l1.divergence(degree, n, d, scale)
    assert 0 < found.kl <= found.kl_from_chi_square <= found.bound


def remainder(n, p, a, x, k):
    """E_{N ~ B(n, p)} [a^N sum_{l > k} C(N, l) x^l], term by term."""
    return sum(
        comb(n, N) * p**N * (1 - p) ** (n - N) * a**N * comb(N, l) * x**l
        for N in range(n + 1)
        for l in range(k + 1, N + 1)  # noqa: E741 - the paper's letter
    )


def taylor(n, p, a, x, k, tau):
    """The right side of the lemma: C(n, k+1) (a p x)^(k+1) (a p (1 + tau x) + 1 - p)^(n-k-1)."""
    base = a * p * (1 + tau * x) + 1 - p
    return comb(n, k + 1) * (a * p * x) ** (k + 1) * base ** (n - k - 1)


@pytest.mark.parametrize(("n", "d", "k"), [(6, 2, 2), (9, 3, 4), (12, 1, 2)])
def test_the_remainder_of_a_binomial_sum_is_one_term_of_taylor(n, d, k):
    """Some tau in [0, 1] gives equality; the right side grows with tau."""
    p, a, x = Fraction(1, d), Fraction(7, 6), Fraction(1, 4)
    assert taylor(n, p, a, x, k, 0) <= remainder(n, p, a, x, k) <= taylor(n, p, a, x, k, 1)
    assert remainder(n, p, a, x, k) > taylor(n, p, a, x, k, 1) / 10  # a tenth would not do


@pytest.mark.parametrize(("n", "d", "k", "scale"), [(60, 2, 4, 0.5), (400, 3, 6, 0.3)])
def test_the_divergence_bound_covers_the_term_of_taylor_and_is_of_its_size(n, d, k, scale):
    """It has (e n/(k+1))^(k+1) for C(n, k+1), and 4 for e / sqrt(1 - s^2)."""
    exact = taylor(n, 1 / d, 1 / sqrt(1 - scale**2), scale**2, k, 1)
    rough = (e * n / (k + 1)) ** (k + 1) / comb(n, k + 1)
    found = exp(l1.divergence_bound(k, n, d, scale) / d) - 1
    assert exact * rough <= found
    slack = (4 * sqrt(1 - scale**2) / e) ** (k + 1) * (1 + 2 * scale**2 / d) ** (k + 1)
    growth = ((1 + 2 * scale**2 / d) / (1 + ((1 + scale**2) / sqrt(1 - scale**2) - 1) / d)) ** n
    assert found == pytest.approx(exact * rough * slack * growth, rel=0.5)


def test_as_many_samples_as_equal_moments_tell_nothing():
    assert l1.divergence(degree=6, n=6, d=1, scale=0.5).kl == pytest.approx(0.0, abs=1e-50)


def test_the_priors_share_no_atom_and_yet_the_mixtures_have_a_finite_divergence():
    nu_1, nu_2 = moment_matching_priors(4)
    assert not set(nu_1.atoms) & set(nu_2.atoms)
    assert 0 < l1.divergence(degree=4, n=8, d=1, scale=0.5).kl < 1


@pytest.mark.parametrize("d", [8, 100, 3000, 10**6])
def test_the_mixtures_stay_close_up_to_the_number_of_samples_of_the_lemma(d):
    samples = d * log(d) / (2 * 0.3**2)
    assert l1.divergence_bound(l1.matching_degree(d), samples, d, 0.3) <= 1 / 8


def test_an_even_number_of_moments_exists_for_every_dimension_from_eight_on():
    for d in [*range(8, 3000), *(2**power for power in range(12, 60))]:
        k = l1.matching_degree(d)
        assert k % 2 == 0
        assert 4 * log(d) + 2 <= k <= 6 * log(d)


def test_the_corrected_proposition_separates_the_priors_by_twice_eps():
    d, eps = 300_000, 2e-4
    found = l1.proposition(d, eps)
    nu_1, nu_2 = moment_matching_priors(found.degree, 40)
    gap = float(nu_2.absolute_mean() - nu_1.absolute_mean())
    # Both norms may miss their mean by scale/(8k), the deviation of the Hoeffding step; what is
    # left must be 2 eps.
    assert found.scale * (gap - 2 / (8 * found.degree)) >= 2 * eps
    assert found.scale <= 0.5
    assert found.kl <= 1 / 8
    assert found.overlap <= 1 / 4


def test_the_printed_proposition_guarantees_only_half_of_that_separation():
    d, eps = 300_000, 2e-4
    found = l1.proposition(d, eps, printed=True)
    # The lemma's lower estimate of mu_2 - mu_1, which the proof uses.
    guaranteed = 1 / (2 * found.degree)
    assert found.scale * (guaranteed - 2 / (8 * found.degree)) == pytest.approx(eps)


def test_the_corrected_number_of_samples_is_a_quarter_of_the_printed_one():
    assert l1.proposition(10**6, 1e-4).n == int(10**6 / (4608 * 1e-8 * log(10**6)))
    assert l1.proposition(10**6, 1e-4, printed=True).n == int(10**6 / (1152 * 1e-8 * log(10**6)))


@pytest.mark.parametrize(
    ("weighted", "about", "overlap"),
    [
        (False, 2.5e5, lambda d: exp(-d / (1152 * log(d) ** 2))),
        (True, 2.8e6, lambda d: exp(-d / (96 * log(d)) ** 2)),
    ],
)
def test_the_absolute_constant_is_where_the_hoeffding_bound_reaches_a_quarter(
    weighted, about, overlap
):
    d = l1.smallest_dimension(weighted=weighted)
    assert d == pytest.approx(about, rel=0.02)
    assert overlap(d) <= 1 / 4 < overlap(d - 1)
