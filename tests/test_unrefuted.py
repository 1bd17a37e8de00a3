"""Which samples would narrow an interval, against widths whose best samples are known."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import pkd
from pkd import unrefuted
from pkd.confidence import radius
from pkd.optimism import ALL_ROUNDS, ONE_ROUND
from pkd.unrefuted import (
    Question,
    Unrefuted,
    _find_more,
    _find_parts,
    _scale_up,
    _Widths,
    find_more_samples,
)
from tests.test_optimistic_plan import Bandit, Paid


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


def test_what_matters_little_together_is_left_out_together() -> None:
    """Two of four features: one percent for both, of which one may take more than a half."""
    found = _find_parts(Width([1] * 4, roots(100, 100, 1.6, 0)))
    assert (found > 0).tolist() == [True, True, False, False]


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


def test_few_features_are_looked_at_one_by_one() -> None:
    width = Width([1] * 4, roots(1, 2, 3, 4))
    assert _find_parts(width) == pytest.approx([1, 2, 3, 4], rel=1e-4)
    assert width.looks == 7


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


def test_less_than_a_sample_of_features_that_matter_only_together_may_be_enough() -> None:
    width = Width([1, 1], lambda n: float(np.min(1 / np.sqrt(n))), budget=1.0)
    more = _find_more(width, 0.8)
    assert 1 + more == pytest.approx(np.full(2, 0.8**-2), rel=0.011)


def test_an_interval_of_no_width_needs_no_samples() -> None:
    width = Width([3, 4], lambda n: 0.0)
    assert _find_more(width, 0.5).tolist() == [0.0, 0.0]
    assert width.looks == 1


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


def two_coins() -> pkd.Compiled:
    return pkd.compile(pkd.UnknownTable(2, 1, horizon=2, reward_range=(1.0, 5.0)))


def test_widths_are_quick_and_leave_the_sets_as_they_were() -> None:
    sets = Unrefuted(two_coins(), {(0, 0): {0: 5}}, 0.05)
    before = sets.radii().tolist(), sets.best()
    with _Widths(Question(sets, None), progress=False) as width:
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


def test_less_than_one_payment_makes_a_radius() -> None:
    model = pkd.compile(pkd.UnknownTable(1, 1, horizon=1, reward_range=(1.0, 5.0)))
    (paid,) = model.reward_index
    sets = Unrefuted(model, {paid: {2.0: 0.5}}, 0.05)
    expected = radius([0.125, 0.375], 0.05, weight=math.exp(-sets.budget) / 0.05)
    assert sets.radii()[-1] == pytest.approx(expected)


@pytest.mark.parametrize("payments", [0.5, 1.0, 3.0])
def test_payments_to_come_are_expected_to_be_like_those_that_are_there(
    payments: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few there are, and below 0 as well."""
    model = pkd.compile(pkd.UnknownTable(1, 1, horizon=1, reward_range=(-9.0, 1.0)))
    (paid,) = model.reward_index
    sets, filled = Unrefuted(model, {paid: {-2.0: payments}}, 0.05), list[Any]()
    monkeypatch.setattr(model, "estimate", lambda belief, tally, *rest: filled.append(tally))
    sets.expect(np.array([0.0, 5.0]))
    assert filled[0].rewards[:2, 0].tolist() == [payments + 5.0, -2.0]


class Narrow(Bandit):
    """A Bandit of which at most two outcomes can occur."""

    def branching(self, z: Any) -> int:
        return 2


def test_the_mass_that_was_not_seen_goes_to_what_was_seen_and_the_first_others() -> None:
    """One sample: all mass is even on its outcome and one more."""
    sets = Unrefuted(pkd.compile(Narrow((0.0, 1.0, 2.0, 3.0))), {"arm": {2: 1}}, 0.05)
    assert sets._frequencies.tolist() == [0.5, 0.0, 0.5, 0.0]


def test_only_outcomes_that_were_seen_once_tell_of_unseen_ones() -> None:
    """One of eight samples: an eighth of the mass is even on all four outcomes."""
    sets = Unrefuted(pkd.compile(Bandit((0.0, 1.0, 2.0, 3.0))), {"arm": {0: 5, 1: 2, 2: 1}}, 0.05)
    expected = [7 / 8 * n / 8 + 1 / 32 for n in (5, 2, 1, 0)]
    assert sets._frequencies == pytest.approx(expected, rel=1e-12)


def test_without_data_the_first_outcomes_are_even_and_nothing_is_divided_by_0() -> None:
    with np.errstate(all="raise"):
        sets = Unrefuted(pkd.compile(Narrow((0.0, 1.0, 2.0))), {}, 0.05)
        assert sets._frequencies.tolist() == [0.5, 0.5, 0.0]


def test_a_reward_without_data_has_no_radius_and_nothing_is_divided_by_0() -> None:
    with np.errstate(all="raise"):
        assert Unrefuted(pkd.compile(Paid((0.0,))), {}, 0.05).radii()[-1] == math.inf


def test_a_part_of_a_sample_is_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = Unrefuted(two_coins(), {}, 0.05)
    names = [*sets.compiled.features, *sets.compiled.reward_index]
    more = np.array([0.4, 0.0, 2.5, 1.0])
    monkeypatch.setattr(unrefuted, "_find_more", lambda width, share: more)
    found = find_more_samples(Question(sets, None), 0.5, progress=False)
    assert list(found.items()) == [(names[2], 3), (names[3], 1), (names[0], 1)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_bar_if_asked_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    question = Question(Unrefuted(two_coins(), {}, 0.05), None)
    for progress in (False, True):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        find_more_samples(question, 0.5, progress=progress)
        assert ("what to sample next" in terminal.getvalue()) == progress
        assert not terminal.getvalue().endswith("\n")


def test_samples_to_come_are_whole_numbers_and_the_most_wanted_are_first() -> None:
    found = pkd.certify("kuhn", {}).more_samples()
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert all(type(n) is int and n > 0 for n in found.values())
