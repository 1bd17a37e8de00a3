"""What kernels make of counts, against the definitions: laws, means, sets, ranks, balls, draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pytest
from scipy.stats import beta, kstest

from pkd.engine import bonus, doors
from pkd.engine.belief import Belief, Tally
from pkd.optimism import (
    CERTIFIED,
    DRAWS,
    HOEFFDING,
    KL_BALL,
    L1_BALL,
    MAX,
    NO_BONUS,
    SUM,
)
from pkd.planning import seed_words
from tests import reference

NO_DRAWS = np.zeros((0, 0))


class State:
    """Rows of counts and lists of payments in [low, high], with a belief to be filled."""

    def __init__(
        self,
        rows: Sequence[Sequence[float]],
        paid: Sequence[Sequence[float]] = (),
        ranges: Sequence[tuple[float, float]] = (),
        **constants: Any,
    ) -> None:
        size, rewards = len(rows), len(paid)
        self.row_ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        self.tally = Tally(
            counts=np.array([n for row in rows for n in row], float),
            n=np.array([sum(row) for row in rows], float),
            marks=np.ones(size),
            rewards=np.zeros((3, rewards)),
            reward_marks=np.ones(rewards),
            rank=np.zeros(size + rewards, np.int64),
        )
        for w, values in enumerate(paid):
            if values:
                mean = sum(values) / len(values)
                squares = sum((value - mean) ** 2 for value in values)
                self.tally.rewards[:, w] = len(values), mean, squares
        self.limits = np.ascontiguousarray(np.array(ranges, float).reshape(-1, 2).T)
        default = {"c1": 0.0, "c2": 0.0, "free": 0.0, "sign": 1.0, "rounds": 1, "draws": NO_DRAWS}
        self.belief = Belief(
            p=np.zeros(len(self.tally.counts)),
            n=np.zeros(size),
            mean=np.zeros(rewards),
            ell=np.zeros(1),
            radius=np.full(size, -1.0),
            ceiling=math.inf,
            width=math.nan,
            **{
                "bound": np.diff(self.row_ptr).astype(float),
                "budget": np.zeros(size + rewards + 1),
                **default,
                **constants,
            },
        )

    def estimate(
        self, ells: Sequence[float] = (), *, prior: float | None = None, seed: int = 0, **more: Any
    ) -> Belief:
        """Fills the belief, as an engine does."""
        paid = self.tally.rewards.shape[1] > 0 or None
        sets = more.get("sets", self.belief.form == CERTIFIED or None)
        bonus.estimate(
            self.row_ptr, self.belief, self.tally, prior, sets, paid, more.get("rank", False),
            seed_words(seed), np.array(ells, float), *self.limits,
        )  # fmt: skip
        return self.belief


def test_laws_are_the_frequencies_and_even_without_data() -> None:
    state = State([[1, 0, 0.5], [0, 0, 0, 0], [0.125, 0.375]], form=NO_BONUS)
    found = state.estimate()
    assert found.p.tolist() == [2 / 3, 0, 1 / 3, 0.25, 0.25, 0.25, 0.25, 0.25, 0.75]
    assert found.n.tolist() == [1.5, 0, 0.5]


def test_laws_of_a_posterior_have_the_masses_of_a_dirichlet_law() -> None:
    """Counts (1, 0) with the prior 1/2: the first mass is Beta(3/2, 1/2)."""
    state = State([[1, 0]] * 400, form=NO_BONUS)
    found = state.estimate(prior=0.5, seed=1)
    masses = found.p.reshape(400, 2)
    assert masses.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert kstest(masses[:, 0], beta(1.5, 0.5).cdf).pvalue > 0.01
    assert found.n.tolist() == [1.0] * 400


PAID = [[], [2.5], [3.0, 2.0, 2.5, 2.5], [4.9] * 9]
RANGE = [(2.0, 5.0)] * 4


@pytest.mark.parametrize(
    ("form", "free", "term"),
    [
        (SUM, 1.0, lambda n, var, w, ell: 0.5 * math.sqrt(var * ell / n) + 0.25 * w * ell / n),
        (MAX, 1.0, lambda n, var, w, ell: max(0.5 * math.sqrt(var * ell / n), 0.25 * w * ell / n)),
        (HOEFFDING, 0.0, lambda n, var, w, ell: 0.5 * w * ell / math.sqrt(n)),
    ],
    ids=["sum", "max", "hoeffding"],
)
@pytest.mark.parametrize("ell", [0.02, 0.3])
def test_a_mean_of_rewards_has_the_bonus_of_its_rule(
    form: int, free: float, term: Any, ell: float
) -> None:
    state = State([[1, 1]], PAID, RANGE, form=form, c1=0.5, c2=0.25, free=free)
    found = state.estimate([ell] * 4).mean
    for values, mean in zip(PAID, found, strict=True):
        n, expected = len(values), 5.0
        if n > free:
            observed = sum(values) / n
            variance = sum((value - observed) ** 2 for value in values) / n
            expected = min(5.0, observed + term(n, variance, 3.0, ell))
        assert mean == pytest.approx(expected, abs=1e-12)


def test_each_reward_has_its_own_logarithm() -> None:
    state = State([[1]], [[1.0]] * 2, [(0.0, 9.0)] * 2, form=HOEFFDING, c1=1.0)
    assert state.estimate([0.25, 0.5]).mean.tolist() == [1 + 9 / 4, 1 + 9 / 2]


def test_without_a_bonus_a_mean_is_the_observed_one_or_the_middle() -> None:
    found = State([[1]], PAID, RANGE, form=NO_BONUS).estimate([1.0] * 4).mean
    assert found == pytest.approx([3.5, 2.5, 2.5, 4.9], abs=1e-12)


def test_a_feature_has_the_rank_at_which_its_data_came() -> None:
    """A row with one outcome has nothing to learn, and gets no rank."""
    state = State(
        [[1, 1], [3], [0, 0], [0, 0.5]],
        [[1.0], []],
        [(0.0, 1.0)] * 2,
        form=CERTIFIED,
        free=math.inf,
    )
    state.estimate([0.0, 0.0], rank=False)
    assert state.tally.rank.tolist() == [0] * 6
    state.estimate([0.0, 0.0], rank=True)
    assert state.tally.rank.tolist() == [3, 0, 0, 3, 3, 0]
    state.tally.counts[3:5] = 0.25
    state.tally.n[2] = 0.5
    state.tally.rewards[0, 1] = 0.5
    state.estimate([0.0, 0.0], rank=True)
    assert state.tally.rank.tolist() == [3, 0, 5, 3, 3, 5]


BUDGETS = np.array([3.0, 4.0, 5.0, 6.0])


def test_a_set_has_the_radius_of_the_definition_with_the_budget_of_its_rank() -> None:
    rows, bounds = [[4, 0, 6], [0, 0], [2, 1]], np.array([2.0, 2.0, 2.0])
    state = State(rows, form=CERTIFIED, free=math.inf, budget=BUDGETS, bound=bounds)
    state.tally.rank[:] = 2, 0, 1
    found = state.estimate().radius
    expected = [reference.set_radius(rows[z], 2, math.exp(-b)) for z, b in ((0, 5.0), (2, 4.0))]
    assert found[[0, 2]] == pytest.approx(expected, rel=1e-9)
    assert found[1] == math.inf


def test_a_rule_without_sets_keeps_its_radii() -> None:
    state = State([[4, 6]], form=KL_BALL)
    assert state.estimate(sets=True).radius.tolist() == [-1.0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_mean_of_rewards_goes_to_the_edge_of_what_is_not_refuted(sign: float) -> None:
    """A reward counts as a fraction of heads and tails."""
    paid = [[2.5, 2.5, 4.0], [2.0], [5.0] * 3, []]
    state = State([[1, 1]], paid, RANGE, form=CERTIFIED, free=math.inf, sign=sign, budget=BUDGETS)
    state.tally.rank[1:] = 1, 2, 3, 0
    found = state.estimate([math.inf] * 4).mean
    for values, mean, budget in zip(paid[:3], found, BUDGETS[1:], strict=False):
        heads = sum((value - 2.0) / 3.0 for value in values)
        coin = [heads, len(values) - heads]
        radius = reference.set_radius(coin, 2, math.exp(-budget))
        expected = reference.extreme_over_set(coin, [5.0, 2.0], radius, sign < 0)
        assert mean == pytest.approx(expected, abs=1e-8)
    assert found[3] == (5.0 if sign > 0 else 2.0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_reward_of_one_value_has_that_value(sign: float) -> None:
    state = State(
        [[1, 1]], [[2.0, 2.0], []], [(2.0, 2.0)] * 2, form=CERTIFIED, sign=sign, free=math.inf,
        budget=BUDGETS,
    )  # fmt: skip
    assert state.estimate([1.0, 1.0]).mean.tolist() == [2.0, 2.0]


def test_a_largest_mean_is_the_smaller_of_both_bounds_and_a_least_one_its_own() -> None:
    """With a tiny logarithm the bonus is below the edge of the set."""
    for sign, expected in ((1.0, 3.0), (-1.0, None)):
        state = State(
            [[1, 1]], [[3.0] * 4], [(2.0, 5.0)], form=CERTIFIED, c1=1.0, c2=1.0, free=1.0,
            sign=sign, budget=BUDGETS,
        )  # fmt: skip
        (found,) = state.estimate([1e-9]).mean
        if expected is None:
            assert found < 2.5
        else:
            assert found == pytest.approx(expected, abs=1e-8)


def test_balls_have_the_radii_of_their_definitions() -> None:
    """KL: budget / N. L1: sqrt(c m (budget + log t) / N), t = 1 + all samples."""
    n, budget = np.array([0.25, 0.0, 0.5, 4.0]), np.array([0.2, 0.0, 0.1, 3.0])
    row_ptr, out = np.array([0, 2, 4, 7, 9]), np.zeros(4)
    bonus.fill_balls(KL_BALL, 0.0, row_ptr, n, budget, out)
    assert out == pytest.approx([0.8, math.inf, 0.2, 0.75])
    bonus.fill_balls(L1_BALL, 0.0, row_ptr, n, budget, out)
    assert out.tolist() == [0.0, math.inf, 0.0, 0.0]
    bonus.fill_balls(L1_BALL, 3.0, row_ptr, n[:3], budget, out)
    log_t = math.log(1.75)
    expected = [math.sqrt(3 * 2 * (0.2 + log_t) / 0.25), math.sqrt(3 * 3 * (0.1 + log_t) / 0.5)]
    assert out[[0, 2]] == pytest.approx(expected)


@pytest.mark.parametrize("form", [KL_BALL, L1_BALL])
def test_rewards_of_balls_have_the_terms_of_their_definitions(form: int) -> None:
    """w sqrt(budget / N), and w sqrt(c (budget + log t) / (4 N)); without data the largest."""
    budget = np.array([1.0, 0.02, 0.0, 0.04, 9.0])
    paid = [[2.5, 2.5], [], [3.0], [2.0]]
    state = State([[0.25, 0.5]], paid, RANGE, form=form, c1=0.5, budget=budget)
    state.tally.rewards[0, 2] = 0.5  # half a payment
    bonus.estimate_balls(state.row_ptr, state.belief, state.tally, *state.limits)
    log_t = math.log(1.75)

    def level(b: float) -> float:
        return b if form == KL_BALL else 0.5 * (b + log_t) / 4

    expected = [2.5 + 3 * math.sqrt(level(0.02) / 2), 5.0, 3 + 3 * math.sqrt(level(0.04) / 0.5)]
    assert state.belief.mean[:3] == pytest.approx(expected)
    assert state.belief.mean[3] == 5.0  # at most the largest
    radius = 1.0 / 0.75 if form == KL_BALL else math.sqrt(0.5 * 2 * (1.0 + log_t) / 0.75)
    assert state.belief.radius == pytest.approx([radius])


def draw(state: State, weight: float, seed: int = 0) -> Belief:
    args = state.row_ptr, state.belief, state.tally, weight, seed_words(seed)
    bonus.estimate_draws(*args, *state.limits)
    return state.belief


def test_drawn_laws_have_the_masses_of_a_dirichlet_law() -> None:
    """Dirichlet of the counts, with one more outcome that counts as `weight` samples."""
    draws = np.full((300, 7), np.nan)
    found = draw(State([[2, 0, 0.5], [0.5, 1]], form=DRAWS, draws=draws), weight=0.75).draws
    first, second = found[:, [0, 1, 2, 5]], found[:, [3, 4, 6]]
    for laws, counts in ((first, [2, 0, 0.5, 0.75]), (second, [0.5, 1, 0.75])):
        assert laws.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        for masses, n in zip(laws.T, counts, strict=True):
            if n == 0:
                assert not masses.any()
            else:
                assert kstest(masses, beta(n, sum(counts) - n).cdf).pvalue > 0.01


def test_without_data_all_mass_of_a_draw_is_optimistic() -> None:
    """A gamma draw of a tiny shape is 0 to rounding."""
    room = np.full((20, 6), np.nan)
    state = State([[0, 0]] * 2, [[]], [(2.0, 5.0)], form=DRAWS, draws=room, rounds=20)
    found = draw(state, weight=1e-4)
    assert (found.draws[:, :4] == 0.0).all()
    assert (found.draws[:, 4:] == 1.0).any(axis=0).all()
    assert found.draws.sum(axis=1).tolist() == [2.0] * 20
    assert found.mean.tolist() == [5.0]


@pytest.mark.parametrize(("n", "share", "weight"), [(4, 0.25, 0.5), (1, 0.5, 0.25)])
@pytest.mark.parametrize(("draws", "place"), [(1, 1), (3, 2)])
def test_drawn_means_of_rewards_are_order_statistics_of_a_beta_law(
    n: int, share: float, weight: float, draws: int, place: int
) -> None:
    """Heads and tails n share + weight and n (1 - share); `place` from the largest."""
    paid = [[2.0 + 3.0 * share] * n] * 300
    room = np.zeros((draws, 2))
    state = State([[1]], paid, [(2.0, 5.0)] * 300, form=DRAWS, draws=room, rounds=place)
    shares = (draw(state, weight).mean - 2.0) / 3.0
    levels = beta(n * share + weight, n * (1 - share)).cdf(shares)
    assert kstest(levels, beta(draws - place + 1, place).cdf).pvalue > 0.01


def test_a_reward_that_was_always_the_largest_is_drawn_as_the_largest() -> None:
    paid, ranges = [[5.0, 5.0], [3.0, 3.0]], [(2.0, 5.0), (3.0, 3.0)]
    state = State([[1]], paid, ranges, form=DRAWS, draws=np.zeros((2, 2)))
    assert draw(state, 0.5).mean.tolist() == [5.0, 3.0]


@numba.njit
def keep(best, values):
    for value in values:
        bonus.keep_largest(best, value)


def test_a_list_of_the_largest_values_descends() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 4):
        for _ in range(5):
            values, best = rng.integers(-9, 9, 7).astype(float), np.full(size, -np.inf)
            keep(best, values)
            assert best.tolist() == sorted(values, reverse=True)[:size]


def test_a_sample_is_counted_and_a_plan_is_due_at_the_mark() -> None:
    state = State([[1, 0], [0, 2]], form=SUM)
    state.tally.marks[:] = 3.0, 3.0
    assert not doors.count(state.tally, 0, 1)
    assert doors.count(state.tally, 1, 3)
    assert doors.count(state.tally, 1, 2)
    assert state.tally.counts.tolist() == [1, 1, 1, 3]
    assert state.tally.n.tolist() == [2, 4]


def test_payments_one_by_one_have_the_moments_of_all_of_them() -> None:
    state = State([[1]], [[], []], [(0.0, 9.0)] * 2, form=SUM)
    state.tally.reward_marks[:] = 6.0
    values, weights = np.array([3.0, 1.0, 8.0, 2.5]), np.array([1.0, 2.0, 0.5, 2.5])
    due = [doors.count_reward(state.tally, 1, *one) for one in zip(values, weights, strict=True)]
    assert due == [False, False, False, True]
    mean = float(np.average(values, weights=weights))
    squares = float(weights @ (values - mean) ** 2)
    assert state.tally.rewards[:, 0].tolist() == [0, 0, 0]
    assert state.tally.rewards[:, 1] == pytest.approx([6.0, mean, squares], rel=1e-14)


@numba.njit
def look(tally, factor):
    bonus.set_marks(tally, factor)
    return bonus.most_seen(tally)


@pytest.mark.parametrize(
    ("n", "paid", "marks", "reward_marks", "most"),
    [
        ([0.25, 3.0], [2.0, 0.0], [1.0, 6.0], [4.0, 1.0], 3.0),
        ([0.25, 0.0], [0.125, 0.5], [1.0, 1.0], [1.0, 1.0], 0.5),
        ([0.5, 0.25], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0], 0.5),
    ],
)
def test_kernels_set_the_marks_and_find_the_most_seen_as_python_does(
    n: list[float], paid: list[float], marks: list[float], reward_marks: list[float], most: float
) -> None:
    for by in ("kernel", "python"):
        tally = State([[0], [0]], [[], []], [(0.0, 1.0)] * 2, form=SUM).tally
        tally.n[:], tally.rewards[0] = n, paid
        if by == "kernel":
            assert look(tally, 2.0) == most
        else:
            tally.set_marks(2.0)
            assert tally.most_seen() == most
        assert (tally.marks.tolist(), tally.reward_marks.tolist()) == (marks, reward_marks)


@numba.njit
def is_capped(n, free, scale):
    return bonus.is_capped(n, free, scale)


def test_few_samples_or_a_bonus_as_wide_as_all_values_leave_the_cap() -> None:
    assert is_capped(1.0, 1.0, 0.5)
    assert is_capped(2.0, 1.0, 1.0)
    assert not is_capped(2.0, 1.0, 0.999)
    assert not is_capped(1.0, 0.0, 0.5)
