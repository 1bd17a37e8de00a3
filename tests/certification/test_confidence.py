"""The sets of laws that data have not refuted: the mixture over supports.

It is compared with extended precision and with exact sums.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkd.certification.confidence import evidence, radii, radius, reward_radius
from pkd.engine import confidence as kernels
from pkd.model import ModelError

mp = mpmath.mp.clone()
mp.dps = 60


def mixture(counts: Sequence[float], bound: int) -> mpmath.mpf:
    """w(n), written from the definition: every support by itself."""
    m, total = len(counts), mp.mpf(0)
    for size in range(1, bound + 1):
        for support in itertools.combinations(range(m), size):
            if all(n == 0 or i in support for i, n in enumerate(counts)):
                dirichlet = mp.gamma(mp.mpf(size) / 2)
                for i in support:
                    dirichlet *= mp.gamma(mp.mpf(counts[i]) + mp.mpf(1) / 2) / mp.sqrt(mp.pi)
                dirichlet /= mp.gamma(mp.fsum(map(mp.mpf, counts)) + mp.mpf(size) / 2)
                total += dirichlet / math.comb(m, size)
    return total / bound


def log_ratio(counts: Sequence[float], bound: int) -> mpmath.mpf:
    """log(prod p^^n / w(n)) with logarithms of Gamma, for large counts."""
    n, m = [mp.mpf(c) for c in counts], len(counts)
    total, k = mp.fsum(n), sum(c > 0 for c in counts)
    best = mp.fsum(c * mp.log(c / total) for c in n if c > 0)
    parts = mp.fsum(mp.loggamma(c + 0.5) - mp.loggamma(0.5) for c in n if c > 0)
    w = [
        mp.mpf(math.comb(m - k, s - k)) / math.comb(m, s)
        * mp.exp(mp.loggamma(mp.mpf(s) / 2) - mp.loggamma(total + mp.mpf(s) / 2) + parts - best)
        for s in range(k, bound + 1)
    ]  # fmt: skip
    return -mp.log(mp.fsum(w) / bound)


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=4).filter(any),
    data=st.data(),
)
def test_the_evidence_is_that_of_the_definition(counts: list[int], data: st.DataObject) -> None:
    seen = sum(n > 0 for n in counts)
    bound = data.draw(st.integers(seen, len(counts)))
    best = mp.fprod((mp.mpf(n) / sum(counts)) ** n for n in counts if n)
    expected = mp.log(best / mixture(counts, bound))
    assert evidence(counts, bound) == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@given(
    counts=st.lists(
        st.one_of(st.just(0.0), st.floats(0, 12).map(lambda e: float(round(10**e)))),
        min_size=1,
        max_size=8,
    ).filter(any),
    data=st.data(),
)
def test_counts_up_to_1e12_lose_no_digits(counts: list[float], data: st.DataObject) -> None:
    bound = data.draw(st.integers(sum(n > 0 for n in counts), len(counts)))
    expected = float(log_ratio(counts, bound))
    assert evidence(counts, bound) == pytest.approx(expected, rel=1e-12, abs=1e-11)


@pytest.mark.parametrize("bound", [1, 2, 3])
@pytest.mark.parametrize("law", [(0.2, 0.5, 0.3), (0.9, 0.1, 0.0), (1.0, 0.0, 0.0)])
def test_the_wealth_of_the_bet_is_a_martingale_with_mean_1(
    law: tuple[float, ...], bound: int
) -> None:
    """The expected wealth is the mass of w on the sequences that can occur.

    It is 1 for a full support.
    """
    for length in range(1, 6):
        mean = 0.0
        for sequence in itertools.product(range(3), repeat=length):
            counts = [sequence.count(i) for i in range(3)]
            if sum(n > 0 for n in counts) > bound:
                continue  # the mixture gives such a sequence no mass
            best = math.prod((n / length) ** n for n in counts if n)
            w = best * math.exp(-evidence(counts, bound))
            mean += w if all(law[i] > 0 for i in sequence) else 0.0
        if min(law) > 0:
            assert mean == pytest.approx(1.0, abs=1e-12)
        else:
            assert mean <= 1.0 + 1e-12


def test_one_outcome_costs_only_the_budget() -> None:
    assert evidence([7]) == pytest.approx(0.0, abs=1e-13)
    assert radius([7], 0.05) == pytest.approx(math.log(20) / 7, rel=1e-13)


def textbook_interval(heads: int, tails: int, delta: float) -> tuple[float, float]:
    """{mu : kl(mean, mu) <= C} by bisection in 60 digits.

    C is from w = 1/2 (1/2 [one side seen] + B(h + 1/2, t + 1/2) / pi).
    """
    n, h, t = mp.mpf(heads + tails), mp.mpf(heads), mp.mpf(tails)
    w = mp.beta(h + 0.5, t + 0.5) / mp.pi / 2
    if heads == 0 or tails == 0:
        w += mp.mpf(1) / 4
    best = (h / n) ** h * (t / n) ** t
    level = mp.log(best / w / mp.mpf(delta)) / n

    def kl(mu: mpmath.mpf) -> mpmath.mpf:
        return (h / n * mp.log(h / n / mu) if h else 0) + (
            t / n * mp.log(t / n / (1 - mu)) if t else 0
        )

    def edge(inside: mpmath.mpf, outside: mpmath.mpf) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if kl(middle) <= level else (inside, middle)
        return float(inside)

    mean = h / n
    return (
        edge(mean, mp.mpf(0)) if heads else 0.0,
        edge(mean, mp.mpf(1)) if tails else 1.0,
    )


@pytest.mark.parametrize(("heads", "tails"), [(1, 0), (3, 7), (50, 50), (0, 200), (123, 4567)])
def test_two_outcomes_and_one_feature_give_a_textbook_kl_interval(heads: int, tails: int) -> None:
    """C itself digit for digit; the end points follow from it."""
    low, high = textbook_interval(heads, tails, 0.05)
    c, n = radius([heads, tails], 0.05), heads + tails
    for mu in (low, high):
        if 0 < mu < 1:
            terms = [k / n * math.log(k / n / q) for k, q in ((heads, mu), (tails, 1 - mu)) if k]
            assert math.fsum(terms) == pytest.approx(c, rel=1e-11)


def test_many_rows_at_once_are_the_single_ones_with_an_equal_weight() -> None:
    rows = [[3, 4], [0, 0, 0], [10, 0, 2, 1e9], [5]]
    expected = [radius(row, 0.1, weight=1 / 4) for row in rows]
    np.testing.assert_allclose(radii(rows, 0.1), expected, rtol=1e-13)
    assert expected[1] == math.inf


def test_a_smaller_bound_on_the_support_gives_a_smaller_set() -> None:
    found = [radius([400, 100, 0, 0, 0, 0], 0.05, branching=b) for b in (2, 3, 4, 6)]
    assert found == sorted(found)


def test_rewards_are_fractional_counts_of_a_coin() -> None:
    found = reward_radius([2.0, 4.0, 3.0, 3.0], 1.0, 5.0, 0.05)
    expected = (log_ratio([2.0, 2.0], 2) + mp.log(20)) / 4
    assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-17, 1e-3])
def test_a_tiny_fraction_of_a_count_is_no_trouble(tiny: float) -> None:
    assert evidence([tiny, 3.0]) == pytest.approx(float(log_ratio([tiny, 3.0], 2)), rel=1e-12)


@given(
    law=st.lists(st.tuples(st.floats(0, 1), st.floats(0.05, 1)), min_size=1, max_size=3),
    length=st.integers(1, 4),
)
def test_the_wealth_of_a_reward_bet_never_grows_on_average(
    law: list[tuple[float, float]], length: int
) -> None:
    """E[w / (mu^heads (1 - mu)^tails)] <= 1, summed over all sequences of rewards."""
    total = sum(p for _, p in law)
    mu = sum(x * p for x, p in law) / total
    if not 1e-3 < mu < 1 - 1e-3:
        return
    mean = 0.0
    for sequence in itertools.product(law, repeat=length):
        heads = math.fsum(x for x, _ in sequence)
        tails = max(length - heads, 0.0)
        best = sum(n * math.log(n / length) for n in (heads, tails) if n > 0)
        w = math.exp(best - evidence([heads, tails]))
        p = math.prod(p / total for _, p in sequence)
        mean += p * w / (mu**heads * (1 - mu) ** tails)
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize("counts", [[], [1.0, -1.0], [math.inf]])
def test_impossible_counts_are_refused(counts: list[float]) -> None:
    with pytest.raises(ModelError, match="expected finite numbers >= 0"):
        evidence(counts)


def test_an_impossible_bound_is_refused() -> None:
    with pytest.raises(ModelError, match="branching is 3; expected a whole number from 1 to 2"):
        radius([1, 2], 0.05, branching=3)


@pytest.mark.parametrize("weight", [0.0, 1.5, -1.0])
def test_a_weight_is_a_part_of_one(weight):
    with pytest.raises(ModelError, match=r"weight is .*; expected a number in \(0, 1\]"):
        radius([1, 2], 0.5, weight=weight)


def test_one_sample_of_the_only_outcome_costs_the_budget_alone():
    """The mixture has one law, which explains it fully: C = log(1 / (weight delta)) / 1."""
    assert radius([1], 0.5) == pytest.approx(math.log(2))
    assert radius([1], 0.5, weight=0.5) == pytest.approx(math.log(4))


def test_a_set_that_is_alone_has_all_of_delta():
    assert radii([[30, 70]], 0.05).tolist() == pytest.approx([radius([30, 70], 0.05)])
    assert radii([], 0.05).tolist() == []


def test_no_data_are_no_evidence():
    assert evidence([0, 0]) == 0.0


def test_a_sample_or_less_makes_a_set():
    """Half a sample is possible: a reward counts as a fraction of heads and tails."""
    assert radii([[1]], 0.5).tolist() == pytest.approx([math.log(2)])
    assert radii([[0.3, 0.2]], 0.5).tolist() == pytest.approx([radius([0.3, 0.2], 0.5)])


@pytest.mark.parametrize("x", [0.5, 3.0, 15.999, 16.0, 17.5, 40.0, 1e4])
def test_the_rest_of_stirlings_formula_is_exact_to_rounding(x):
    compute = getattr(kernels.stirling, "py_func", kernels.stirling)
    exact = mp.loggamma(x) - (mp.mpf(x) - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2
    assert compute(x) == pytest.approx(float(exact), rel=0, abs=2e-14 * max(1, x / 10))
