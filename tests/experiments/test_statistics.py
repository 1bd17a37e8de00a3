"""Statistics over seeds, against closed forms, enumeration and published tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from pkd.experiments.statistics import (
    bootstrap_mean,
    compare_pairs,
    fit_slope,
    profile_performance,
    rank_agents,
)


def test_the_interval_of_many_samples_is_that_of_the_normal_law() -> None:
    samples = np.random.default_rng(0).normal(3.0, 2.0, size=2000)
    found = bootstrap_mean(samples)
    half = 1.959964 * samples.std(ddof=1) / np.sqrt(2000)
    assert found.mean == pytest.approx(samples.mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=0.06)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    found = bootstrap_mean(rng.exponential(size=(30, 400)))
    covered = np.mean((found.low <= 1) & (found.high >= 1))
    assert 0.88 < covered < 0.98  # skewed samples of 30 lose a little


def test_an_interval_does_not_grow_with_the_number_of_seeds() -> None:
    rng = np.random.default_rng(2)
    few, many = (bootstrap_mean(rng.normal(size=n)) for n in (10, 1000))
    assert many.high - many.low < (few.high - few.low) / 4  # a range would grow


def test_equal_samples_have_no_width_and_one_sample_has_no_interval() -> None:
    assert bootstrap_mean(np.array([2.0, 2.0, 2.0]))[:] == (2.0, 2.0, 2.0)
    assert np.isnan(bootstrap_mean(np.array([2.0])).low)


def test_columns_are_bootstrapped_apart() -> None:
    samples = np.random.default_rng(3).normal(size=(12, 3))
    samples[:, 1] = 5.0
    together = bootstrap_mean(samples)
    assert (together.low[1], together.high[1]) == (5.0, 5.0)
    assert together.low[0] < samples[:, 0].mean() < together.high[0]


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=7))
def test_p_is_the_share_of_sign_changes_that_are_as_extreme(differences: list[int]) -> None:
    observed = abs(sum(differences))
    flips = itertools.product((-1, 1), repeat=len(differences))
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True)) for signs in flips]
    upper = sum(total >= observed for total in sums) / len(sums)
    expected = min(1.0, 2 * upper)
    found = compare_pairs([float(d) for d in differences], [0.0] * len(differences))
    assert found.p == pytest.approx(expected)


def test_a_pair_needs_the_same_seeds() -> None:
    with pytest.raises(pkd.ModelError, match="found 2 and 3 runs"):
        compare_pairs([1.0, 2.0], [1.0, 2.0, 3.0])


def test_ranks_are_counted_within_each_model_and_seed() -> None:
    scores = {
        "a": np.array([[1.0, 5.0], [1.0, 1.0]]),
        "b": np.array([[2.0, 4.0], [1.0, 2.0]]),
        "c": np.array([[3.0, 3.0], [9.0, 3.0]]),
    }
    means = {name: float(rank.mean) for name, rank in rank_agents(scores).items()}
    # a: 1, 3, 1.5 (a tie), 1; b: 2, 2, 1.5, 2; c: 3, 1, 3, 3
    assert means == {"a": 6.5 / 4, "b": 7.5 / 4, "c": 10 / 4}


def test_a_profile_is_the_share_of_runs_within_tau_of_the_best() -> None:
    scores = {"a": np.array([[1.0, 1.0], [8.0, 8.0]]), "b": np.array([[2.0, 4.0], [4.0, 4.0]])}
    profile = profile_performance(scores, taus=[1.0, 2.0, 4.0])
    assert profile.shares["a"].mean.tolist() == [0.5, 1.0, 1.0]
    assert profile.shares["b"].mean.tolist() == [0.5, 0.75, 1.0]


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
        bootstrap_mean(np.zeros((0, 3)))
    with pytest.raises(pkd.ModelError, match=r"level is 95; expected a number between 0 and 1"):
        bootstrap_mean(np.ones(3), level=95)
