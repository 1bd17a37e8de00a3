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
from pkd.engine.random import draw_laws, draw_means
from pkd.optimism import CERTIFIED, EXACT, HOEFFDING, MAX, SUM
from pkd.planning.plan import seed_words
from tests import reference


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
            spent=np.zeros(5),
        )
        for w, values in enumerate(paid):
            if values:
                mean = sum(values) / len(values)
                squares = sum((value - mean) ** 2 for value in values)
                self.tally.rewards[:, w] = len(values), mean, squares
        self.limits = np.ascontiguousarray(np.array(ranges, float).reshape(-1, 2).T)
        self.belief = Belief(
            p=np.zeros(len(self.tally.counts)),
            n=np.zeros(size),
            mean=np.zeros(rewards),
            ell=np.zeros(1),
            radius=np.full(size, -1.0),
            width=math.nan,
            exogenous=np.zeros(size + rewards, np.bool_),
            **{
                "bound": np.diff(self.row_ptr).astype(float),
                "budget": np.zeros(size + rewards + 1),
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
            seed_words(seed), np.array([ells or [0.0] * self.limits.shape[1], *self.limits], float),
        )  # fmt: skip
        return self.belief


def test_laws_are_the_frequencies_and_even_without_data() -> None:
    state = State([[1, 0, 0.5], [0, 0, 0, 0], [0.125, 0.375]], form=EXACT)
    found = state.estimate()
    assert found.p.tolist() == [2 / 3, 0, 1 / 3, 0.25, 0.25, 0.25, 0.25, 0.25, 0.75]
    assert found.n.tolist() == [1.5, 0, 0.5]


def test_laws_of_a_posterior_have_the_masses_of_a_dirichlet_law() -> None:
    """Counts (1, 0) with the prior 1/2: the first mass is Beta(3/2, 1/2)."""
    state = State([[1, 0]] * 400, form=EXACT)
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
    found = State([[1]], PAID, RANGE, form=EXACT).estimate([1.0] * 4).mean
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


def test_drawn_laws_have_the_masses_of_a_dirichlet_law() -> None:
    """Dirichlet of the counts, with one more outcome that counts as `weight` samples."""
    rows, laws = [[2, 0, 0.5], [0.5, 1]], np.zeros((300, 2, 4))
    counts, ptr = np.array([n for row in rows for n in row], float), np.array([0, 3, 5])
    draw_laws(ptr, counts, 0.75, seed_words(0), laws)
    assert laws.sum(axis=2) == pytest.approx(1.0, abs=1e-12)
    assert not laws[:, 1, 3].any()
    for z, row in enumerate(rows):
        for j, n in enumerate([0.75, *row]):
            if n == 0:
                assert not laws[:, z, j].any()
            else:
                masses = beta(n, sum(row) + 0.75 - n).cdf
                assert kstest(laws[:, z, j], masses).pvalue > 0.01


def test_without_data_all_mass_of_a_draw_is_optimistic() -> None:
    """A gamma draw of a tiny shape is 0 to rounding."""
    laws = np.zeros((20, 2, 3))
    draw_laws(np.array([0, 2, 4]), np.zeros(4), 1e-4, seed_words(0), laws)
    assert laws.tolist() == [[[1.0, 0.0, 0.0]] * 2] * 20


@pytest.mark.parametrize(("n", "share", "weight"), [(4, 0.25, 0.5), (1, 0.5, 0.25), (2, 1.0, 0.5)])
def test_drawn_means_of_rewards_have_a_beta_law(n: int, share: float, weight: float) -> None:
    """Heads and tails n share + weight and n (1 - share)."""
    size = 300
    paid, low = np.tile([[n], [2 + 3 * share], [0.0]], (1, size)), np.full(size, 2.0)
    out = np.zeros((2, size))
    draw_means(paid, low, np.full(size, 5.0), weight, seed_words(1), out)
    shares = (out.reshape(-1) - 2.0) / 3.0
    if share == 1:
        assert (shares == 1.0).all()
    else:
        assert kstest(shares, beta(n * share + weight, n * (1 - share)).cdf).pvalue > 0.01


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
