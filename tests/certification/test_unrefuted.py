"""Which samples would narrow an interval, against widths whose best samples are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import pkd
from pkd.certification.confidence import radius
from pkd.certification.unrefuted import (
    Question,
    Unrefuted,
    _find_more,
    _find_parts,
    _scale_up,
    _Widths,
)
from pkd.engine import Compiled
from pkd.optimism import ALL_ROUNDS, ONE_ROUND
from tests.planning.test_optimistic_plan import Bandit, Paid


class Width(_Widths):
    """A width that is a function of the numbers of samples."""

    def __init__(
        self, numbers: Sequence[float], rule: Callable[[np.ndarray], float], budget: float = 0.0
    ) -> None:
        self.numbers, self.rule, self.budget = np.array(numbers, float), rule, budget
        self.looks = 0

    def __call__(self, more: np.ndarray) -> float:
        self.looks += 1
        assert self.looks < 2000, "the search does not end"
        return float(self.rule(self.numbers + more))


def roots(*stakes: float) -> Callable[[np.ndarray], float]:
    """sum of stake / sqrt(N): what an interval is like after many samples."""
    return lambda n: float(np.array(stakes) @ (1 / np.sqrt(n)))


def test_the_part_of_a_feature_is_the_width_with_all_other_laws_known() -> None:
    width = Width([100, 400, 900, 100], roots(1, 2, 9, 0))
    found = _find_parts(width)
    assert found == pytest.approx([0.1, 0.1, 0.3, 0.0], rel=1e-3)
    assert found[3] == 0.0


@pytest.mark.parametrize(("stake", "kept"), [(0.0098, False), (0.0106, True)])
def test_what_matters_less_than_its_part_of_two_percent_is_left_out(
    stake: float, kept: bool
) -> None:
    """Two features: one percent each."""
    found = _find_parts(Width([1, 1], roots(1, stake)))
    assert (found > 0).tolist() == [True, kept]


def test_a_group_that_matters_little_is_not_split() -> None:
    """Of 64 features one matters: 1 look at all, and 2 at each of 6 splits."""
    width = Width([1] * 64, roots(*[1.0 if i == 37 else 0.0 for i in range(64)]))
    assert np.flatnonzero(_find_parts(width)).tolist() == [37]
    assert width.looks == 13


def test_after_four_hundred_looks_a_group_shares_its_width() -> None:
    """One look at all features and two at each split: their number is odd."""
    width = Width([1] * 1000, roots(*[1.0] * 1000))
    found = _find_parts(width)
    assert width.looks == 401
    assert found == pytest.approx(np.ones(1000), rel=0.01)


@pytest.mark.parametrize("unit", [1.0, 1e-6])
@pytest.mark.parametrize("share", [0.25, 0.9])
def test_the_samples_of_a_sum_of_roots_are_the_cheapest_ones(share: float, unit: float) -> None:
    """Least sum of N' >= N for a width: N' = max(N, c stake^(2/3)). For 0.9 one has enough."""
    stakes, numbers = np.array([1.0, 8.0, 27.0]), np.array([100.0, 400.0, 2500.0])
    narrow = roots(*(unit * stakes))
    goal = share * narrow(numbers)
    more = _find_more(Width(numbers, narrow, budget=50.0), share)

    def best(c: float) -> np.ndarray:
        return np.maximum(numbers, c * stakes ** (2 / 3))

    c = brentq(lambda c: narrow(best(c)) - goal, 1.0, 1e6)
    assert numbers + more == pytest.approx(best(c), rel=0.011)
    assert narrow(numbers + more) <= goal
    assert (more[2] == 0.0) == (share == 0.9)


def test_a_feature_with_few_samples_counts_as_if_it_had_the_budget() -> None:
    """Parts 1 and 2 of N = 0 and 400 with the budget 25: N' ~ (1 * 5)^(2/3), (2 * 20)^(2/3)."""
    width = Width([0, 400], lambda n: 1 / (1 + n[0] / 25) + 40 / math.sqrt(n[1]), budget=25.0)
    more = _find_more(width, 0.1)
    assert (400 + more[1]) / more[0] == pytest.approx(8 ** (2 / 3), rel=1e-3)


def test_features_that_matter_only_together_all_count() -> None:
    """Two ways to the same reward: the width is that of the better known one."""
    width = Width([100, 400], lambda n: float(np.min(1 / np.sqrt(n))), budget=1.0)
    more = _find_more(width, 0.5)
    assert (100 + more[0]) / (400 + more[1]) == pytest.approx(0.25 ** (1 / 3), rel=1e-3)
    assert 1600 <= 400 + more[1] <= 1.011 * 1600


def test_a_goal_out_of_reach_ends_with_plenty_of_samples() -> None:
    width = Width([1, 1, 1], lambda n: 1.0)
    with np.errstate(all="raise"):  # what is not wanted is not divided by
        more = _scale_up(width, np.array([1.0, 4.0, 0.0]), 0.5)
    assert more[2] == 0.0
    assert more[1] + 1 == pytest.approx(4 * (more[0] + 1))
    assert 0.99e12 <= more[1] <= 2.02e12


def test_the_search_is_exact_to_one_percent_from_the_first_sample_on() -> None:
    for goal in (1.5, 0.5, 0.01):
        width = Width([0, 7], lambda n: 2 / (1 + n[0]))
        more = _scale_up(width, np.array([1.0, 0.0]), goal)
        exact = 2 / goal - 1
        if exact < 1:  # the search begins at one sample
            assert more.tolist() == [1.0, 0.0]
        else:
            assert exact <= more[0] <= 1.011 * exact


def two_coins() -> Compiled:
    return pkd.compile(pkd.UnknownTable(2, 1, horizon=2, reward_range=(1.0, 5.0)))


def test_widths_are_quick_and_leave_the_sets_as_they_were() -> None:
    sets = Unrefuted(two_coins(), {(0, 0): {0: 5}}, 0.05)
    before = sets.radii().tolist(), sets.best()
    with _Widths(Question(sets, None), lambda: None) as width:
        assert (sets.high.rounds, sets.low.rounds) == (ONE_ROUND, ONE_ROUND)
        wide, narrow = width(np.zeros(4)), width(np.full(4, 100.0))
        assert wide > narrow
        assert sets.high.radius[0] < before[0][0]
    assert (sets.high.rounds, sets.low.rounds) == (ALL_ROUNDS, ALL_ROUNDS)
    assert (sets.radii().tolist(), sets.best()) == before


def test_a_policy_is_followed_and_none_means_the_best_one() -> None:
    """Two actions: a policy that takes the second one earns at most what the best one does."""
    model = pkd.compile(pkd.UnknownTable(1, 2, horizon=1, reward_range=(0.0, 1.0)))
    paid = list(model.reward_index)
    sets = Unrefuted(model, {paid[0]: {1.0: 50}, paid[1]: {0.0: 50}}, 0.05)
    best, own = (
        Question(sets, choices).interval() for choices in (None, model.tabulate(lambda h, x, y: 1))
    )
    assert best[0] > 0.5 > own[1]
    assert best[1] == sets.best() == 1.0
    assert own[0] == 0.0


class Tip(Paid):
    """A reward that is unknown, but can have one value only."""

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return pkd.UnknownReward("tip", 2.0, 2.0)


def test_a_reward_of_one_value_has_the_radius_of_a_sure_coin() -> None:
    sets = Unrefuted(pkd.compile(Tip((0.0,))), {"tip": {2.0: 4}}, 0.05)
    assert sets.radii()[-1] == pytest.approx(radius([4, 0], 0.05))


class Narrow(Bandit):
    """A Bandit of which at most two outcomes can occur."""

    def branching(self, z: Any) -> int:
        return 2


@pytest.mark.parametrize(
    ("kind", "seen", "expected"),
    [
        (Narrow, {2: 1}, [1 / 2, 0, 1 / 2, 0]),
        (Narrow, {}, [1 / 2, 1 / 2, 0, 0]),
        (Bandit, {0: 5, 1: 2, 2: 1}, [7 / 8 * n / 8 + 1 / 32 for n in (5, 2, 1, 0)]),
        (Bandit, {0: 3, 1: 1}, [3 / 4 * n / 4 + 1 / 16 for n in (3, 1, 0, 0)]),
        (Bandit, {0: 0.6, 1: 0.4}, [1 / 4] * 4),
    ],
)
def test_samples_to_come_are_like_those_that_are_there(
    kind: type[Bandit], seen: Any, expected: list[float]
) -> None:
    """Good's estimate: the share of outcomes that were seen once is spread over what may follow."""
    with np.errstate(all="raise"):
        sets = Unrefuted(pkd.compile(kind((0.0, 1.0, 2.0, 3.0))), {"arm": seen}, 0.05)
        assert sets._frequencies == pytest.approx(expected, rel=1e-12)


def test_a_reward_without_data_has_no_radius_and_nothing_is_divided_by_0() -> None:
    with np.errstate(all="raise"):
        assert Unrefuted(pkd.compile(Paid((0.0,))), {}, 0.05).radii()[-1] == math.inf


def test_samples_to_come_are_whole_numbers_and_the_most_wanted_are_first() -> None:
    found = pkd.certify("kuhn", {}).more_samples()
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert all(type(n) is int and n > 0 for n in found.values())
