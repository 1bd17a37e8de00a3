"""Bounds for long delays against the exact planner, brute force over histories, and simulation."""

import math

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import DelayChain, Delayed, DelayedMDP, InterArrival, Lags
from pkd_delay.long.bounds import Bounds, lower_mean
from pkd_delay.long.line import make_line
from pkd_delay.long.table import make_table
from pkd_delay.models.tables import grid, random_mdp, riverswim
from tests.delay.reference import best_in_base, best_in_tables
from tests.delay.strategies import TableBase, sparse_rows

ROUNDING = 1e-9


def random_law(rng, D):
    """A law of any form: constant, inter-arrival times, lags, a chain."""
    form = rng.integers(4)
    if form == 0:
        return InterArrival({D: 1.0}), D
    if form == 1:
        return InterArrival(sparse_rows(rng, (), int(rng.integers(2, 5)))), D
    if form == 2:
        return Lags(sparse_rows(rng, (), D + 1)), None
    rows = np.zeros((D + 1, D + 1))
    for before in range(D + 1):
        first = max(before - 1, 0)
        rows[before, first:] = sparse_rows(rng, (), D + 1 - first)
    return DelayChain(rows), None


def random_table(rng, S, A, H):
    mdp_rows = sparse_rows(rng, (S, A), S)
    return pkd.TabularMDP(mdp_rows, rng.normal(size=(S, A)) * 3, H, sparse_rows(rng, (), S))


@pytest.mark.parametrize("seed", range(160))
def test_bounds_hold_the_exact_value(seed):
    """Bounds of a search that is cut short hold it, too, and one that is not finds it."""
    rng = np.random.default_rng(seed)
    H, D = int(rng.integers(1, 9)), int(rng.integers(0, 5))
    mdp = random_table(rng, int(rng.integers(1, 5)), int(rng.integers(1, 4)), H)
    delayed = DelayedMDP(mdp, *random_law(rng, D))
    exact = pkd_delay.plan(delayed).value
    for gap in (0.3, 0.0):
        plan = pkd_delay.plan(delayed, gap=gap, delta=0)
        assert plan.low - ROUNDING <= exact <= plan.high + ROUNDING
    assert plan.high - plan.low <= 1e-5 * max(1.0, abs(exact))
    assert plan.low - ROUNDING <= plan.evaluate() <= exact + ROUNDING


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_the_best_over_all_histories(seed):
    rng = np.random.default_rng(1000 + seed)
    S, A, D = int(rng.integers(2, 4)), int(rng.integers(1, 4)), int(rng.integers(0, 4))
    law, largest = random_law(rng, D)
    H = max(h for h in range(1, 6) if h == 1 or (A * S * 3) ** h <= 20_000)
    mdp = random_table(rng, S, A, H)
    delayed = DelayedMDP(mdp, law, largest)

    def next_delays(s, a, before):
        return list(enumerate(law.row(before, delayed.max_delay)))

    best = best_in_tables(mdp.transitions, mdp.rewards, H, mdp.start, next_delays=next_delays)
    plan = pkd_delay.plan(delayed, gap=0.0, delta=0)
    assert plan.low - ROUNDING <= best <= plan.high + ROUNDING
    assert plan.high - plan.low <= 1e-5 * max(1.0, abs(best))


@pytest.mark.parametrize("seed", range(30))
def test_bounds_of_a_base_with_chance_ends_final_pay_and_a_settlement(seed):
    rng = np.random.default_rng(seed)
    H, D = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    ends, chance_start = (bool(rng.integers(2)) for _ in range(2))
    base = TableBase(rng, 2, H, ends=ends, chance_start=chance_start)
    law = {f"z{i}": dict(enumerate(sparse_rows(rng, (), 2).tolist())) for i in range(3)}
    delta = sparse_rows(rng, (), 4)
    delayed = Delayed((base, law), delta, D)
    exact = pkd_delay.plan(delayed).value
    plan = pkd_delay.plan(delayed, gap=0.0, delta=0)
    assert plan.low - ROUNDING <= exact <= plan.high + ROUNDING
    assert plan.high - plan.low <= 1e-5 * max(1.0, abs(exact))
    if H <= 3:
        brute = best_in_base(base, law, lambda s, a: delta, D)
        assert plan.high == pytest.approx(brute, abs=1e-6)


@pytest.mark.parametrize(
    ("mdp", "law"),
    [
        (random_mdp(10, 3, 30), {14: 1.0}),
        (grid(4, 4, 30, 0.3), Lags({0: 0.3, 4: 0.4, 9: 0.3})),
        (riverswim(40), {20: 1.0}),
    ],
)
def test_a_simulated_policy_earns_low_and_no_more_than_high(mdp, law):
    """Episodes straight from Assumption 1, which share nothing with the net."""
    largest = max(law) if isinstance(law, dict) else None
    plan = pkd_delay.plan(DelayedMDP(mdp, law, largest), gap=0.01, seconds=20)
    paid = np.array([episode.total for episode in plan.simulate(800, seed=3)])
    error = paid.std() / math.sqrt(len(paid))
    assert plan.low - 4 * error < paid.mean() < plan.high + 4 * error
    assert error < 0.05 * plan.high  # else the test could hardly fail


@pytest.fixture(scope="module")
def crowded():
    """A problem whose policy meets more than a small net holds."""
    delayed = DelayedMDP.constant(grid(4, 4, 25, 0.4), 7)
    return delayed, pkd_delay.plan(delayed).value


def make_bounds(delayed, nodes):
    table, places = make_table(delayed), make_line(delayed)
    return Bounds(table, places.line, delayed.base.horizon, 0.0, nodes=nodes)


def test_without_room_the_bounds_are_wide_and_hold(crowded):
    delayed, exact = crowded
    bounds = make_bounds(delayed, 400)
    bounds.refine(0.0, 20.0)
    assert bounds.lost > 0.01
    assert bounds.best.value < exact - 0.01
    assert exact + 0.01 < bounds.high


def test_a_simulated_low_holds_and_is_far_better_than_an_exact_one_without_room(crowded):
    delayed, exact = crowded
    alone, both = (make_bounds(delayed, 3000) for _ in range(2))
    alone.refine(0.0, 20.0)
    both.refine(0.0, 20.0, delta=1e-3)
    assert alone.best.delta == 0.0
    assert both.best.delta == 1e-3
    assert alone.best.value + 0.5 < both.best.value <= exact


def test_the_mean_loss_of_episodes_is_what_the_policy_falls_short(crowded):
    """V = X_1 - E loss: the exact value of the policy is on the other side."""
    delayed, _ = crowded
    bounds = make_bounds(delayed, 60_000)
    bounds.refine(0.02, 20.0)
    losses, most = bounds.sample(4000, seed=5)
    error = losses.std() / math.sqrt(len(losses))
    value = bounds.follow()
    assert value is not None
    assert bounds.top - losses.mean() == pytest.approx(value, abs=4 * error + 1e-4)
    assert -1e-4 < losses.min() < losses.max() < most


def test_the_best_policy_is_kept():
    """The net of the round with the largest lower bound is solved again at the end."""
    delayed = DelayedMDP.constant(grid(4, 4, 30, 0.3), 8)
    bounds = make_bounds(delayed, 30_000)
    bounds.refine(0.001, 20.0)
    value = bounds.follow()
    assert value is not None
    assert value >= bounds.best.value - ROUNDING


def test_a_lower_mean_fails_as_seldom_as_it_says():
    rng = np.random.default_rng(0)
    runs = [lower_mean(rng.beta(9, 1, 60), 0.2) for _ in range(400)]
    assert sum(low > 0.9 for low in runs) <= 0.2 * 400
    assert np.mean(runs) > 0.8


def test_constant_and_lumped_lines():
    """A constant delay has one state; independent lags are told by the length of the queue."""
    chain = riverswim()
    assert len(make_line(DelayedMDP.constant(chain, 9)).line.most) == 1
    lags = make_line(DelayedMDP(chain, Lags((0.4, 0.3, 0.2, 0.1))))
    assert lags.line.most.tolist() == [0, 1, 2, 3]
    assert lags.line.move.sum(axis=1) == pytest.approx(np.ones(4))
