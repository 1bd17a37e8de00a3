"""Statistics over seeds, against closed forms, enumeration and published tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from pkd.experiments.statistics import (
    Pair,
    compare_pair,
    correct,
    count_seeds,
    fit_slope,
    profile_performance,
    rank_agents,
)
from pkd.show.intervals import mean_interval, median_interval, share_interval

DRAWS = 20_000
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def stuck(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Most runs lose about 1, one in ten about 10."""
    return rng.normal(np.where(rng.random(size) < 0.1, 10.0, 1.0), 0.3)


# The law, its mean, and the coverage in percent of 95% intervals with 3, 5, 10 and 20 seeds: the
# table of `pkd.show.intervals`.
LAWS: dict[str, tuple[Draw, float, tuple[int, ...]]] = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0, (95, 95, 95, 95)),
    "lognormal": (lambda rng, size: rng.lognormal(size=size), math.exp(0.5), (84, 82, 84, 87)),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0, (89, 88, 90, 92)),
    "stuck": (stuck, 1.9, (45, 41, 65, 88)),
}


@pytest.mark.parametrize("place", range(4), ids=["3", "5", "10", "20"])
@pytest.mark.parametrize("law", LAWS)
def test_an_interval_covers_the_mean_as_often_as_the_table_says(law: str, place: int) -> None:
    draw, mean, coverage = LAWS[law]
    found = mean_interval(draw(np.random.default_rng(place), ((3, 5, 10, 20)[place], DRAWS)))
    covered = 100 * np.mean((found.low <= mean) & (mean <= found.high))
    assert covered == pytest.approx(coverage[place], abs=1.5)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_the_interval_of_a_median_covers_it_under_every_law(law: str, seeds: int) -> None:
    draw, _, _ = LAWS[law]
    rng = np.random.default_rng(seeds)
    median = np.median(draw(rng, (1, 400_000)))
    samples = draw(rng, (4000, seeds))
    found = [median_interval(row) for row in samples]
    assert np.mean([one.low <= median <= one.high for one in found]) > 0.945


def test_order_statistics_of_medians_are_the_published_ones() -> None:
    """Conover, Practical Nonparametric Statistics: n = 10, from the 2nd to the 9th."""
    assert median_interval(np.arange(10.0))[1:] == (1.0, 8.0)
    assert median_interval(np.array([1.0, np.inf, 2.0]))[0] == 2.0
    assert np.isnan(median_interval(np.arange(5.0)).low)  # 1/32 in each tail is too much


@pytest.mark.parametrize(("hits", "low", "high"), [(0, 0.0, 0.3085), (5, 0.1871, 0.8129)])
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(
    hits: int, low: float, high: float
) -> None:
    assert share_interval(np.array(hits), 10)[1:] == pytest.approx((low, high), abs=1e-4)


def test_a_normal_quantile_is_that_of_student() -> None:
    found = mean_interval(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    assert found.high - 2.0 == pytest.approx(2.776445 * math.sqrt(2.5 / 5), rel=1e-6)


def test_fewer_than_three_seeds_have_no_interval_and_equal_ones_no_width() -> None:
    assert mean_interval(np.array([0.1, 0.1, 0.1]))[:] == (0.1, 0.1, 0.1)
    assert np.isnan(mean_interval(np.array([1.0, 2.0])).low)


def test_the_few_seeds_are_named_in_a_table_and_no_band_is_drawn() -> None:
    found = pkd.compare("two_state_chain --horizon 3", ["greedy"], 20, seeds=2)
    assert " (few) " in found.table()
    assert len(found.plot().axes[0].collections) == 0
    assert len(pkd.compare("two_state_chain --horizon 3", ["greedy"], 5)) == 10


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=7))
def test_p_is_the_share_of_sign_changes_that_are_as_extreme(differences: list[int]) -> None:
    observed = abs(sum(differences))
    flips = itertools.product((-1, 1), repeat=len(differences))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in flips]
    upper = sum(total >= observed for total in sums) / len(sums)
    expected = min(1.0, 2 * upper)
    found = compare_pair([float(d) for d in differences], [0.0] * len(differences))
    assert found.p == pytest.approx(expected)


def test_a_pair_needs_the_same_seeds() -> None:
    with pytest.raises(pkd.ModelError, match="found 2 and 3 runs"):
        compare_pair([1.0, 2.0], [1.0, 2.0, 3.0])


def test_holm_multiplies_the_smallest_p_by_the_number_of_comparisons() -> None:
    """Holm 1979: 0.01, 0.04, 0.03 become 0.03, 0.06, 0.06: no p falls below a smaller one."""
    pairs = {
        name: Pair(0.0, 0.0, 0.0, p, 5) for name, p in {"a": 0.01, "b": 0.04, "c": 0.03}.items()
    }
    found = correct(pairs)
    assert [found[name].p for name in "abc"] == pytest.approx([0.03, 0.06, 0.06])
    assert found["a"].comparisons == 3


@pytest.mark.parametrize("comparisons", [1, 3, 45])
def test_the_number_of_seeds_that_can_reach_the_level_is_the_least(comparisons: int) -> None:
    n = count_seeds(comparisons)
    ps = [compare_pair(list(range(1, seeds + 1)), [0.0] * seeds).p for seeds in (n - 1, n)]
    assert ps[0] * comparisons > 0.05 >= ps[1] * comparisons
    assert f"{n} seeds at least can reach 0.05" in str(Pair(1.0, 0.0, 2.0, 1.0, n - 1, comparisons))


def test_many_seeds_are_flipped_at_random() -> None:
    rng = np.random.default_rng(0)
    assert compare_pair(list(rng.normal(1.0, 1.0, 30)), [0.0] * 30).p < 0.001
    assert compare_pair(list(rng.normal(0.0, 1.0, 30)), [0.0] * 30).p > 0.05


def test_ranks_are_counted_within_each_model_and_seed() -> None:
    scores = {
        "a": np.array([[1.0, 5.0], [1.0, 1.0]]),
        "b": np.array([[2.0, 4.0], [1.0, 2.0]]),
        "c": np.array([[3.0, 3.0], [9.0, 3.0]]),
    }
    means = {name: float(rank.value) for name, rank in rank_agents(scores).items()}
    # a: 1, 3, 1.5 (a tie), 1; b: 2, 2, 1.5, 2; c: 3, 1, 3, 3
    assert means == {"a": 6.5 / 4, "b": 7.5 / 4, "c": 10 / 4}


def test_a_profile_is_the_share_of_runs_within_tau_of_the_best() -> None:
    scores = {"a": np.array([[1.0, 1.0], [8.0, 8.0]]), "b": np.array([[2.0, 4.0], [4.0, 4.0]])}
    profile = profile_performance(scores, taus=[1.0, 2.0, 4.0])
    assert profile.shares["a"].value.tolist() == [0.5, 1.0, 1.0]
    assert profile.shares["b"].value.tolist() == [0.5, 0.75, 1.0]


@pytest.mark.parametrize("power", [0.5, 2 / 3, 1.0])
def test_the_slope_of_a_power_is_its_exponent(power: float) -> None:
    k = np.arange(1, 5001)
    found = fit_slope(np.array([c * k**power for c in (1.0, 2.0, 5.0)]))
    assert found[:] == pytest.approx((power, power, power))


def test_a_slope_needs_positive_regret() -> None:
    with pytest.raises(pkd.ModelError, match="positive regret"):
        fit_slope(np.zeros((2, 100)))


def test_a_mean_of_nothing_and_a_level_beyond_one_are_refused() -> None:
    with pytest.raises(pkd.ModelError, match="expected one number at least for each mean"):
        mean_interval(np.zeros((0, 3)))
    with pytest.raises(pkd.ModelError, match=r"level is 95; expected a number between 0 and 1"):
        mean_interval(np.ones(3), level=95)
