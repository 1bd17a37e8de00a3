"""Bounds on the price of a tick under one law hold for every law of the sets, and decide sooner."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
import pytest

import pkd
from benchmarks.tick_price import bound_first_tick, draw_log
from pkd.certification import confidence
from pkd_delay import Delayed
from pkd_delay.latency.curve import DelayCost, Latency, measure_certified, strip
from pkd_delay.latency.difference import Paid, PaidProblem, fit_payments
from pkd_delay.models.autoscaler import LOADS, autoscaler, spot_autoscaler
from pkd_delay.models.tables import two_state_chain
from pkd_examples.inventory import inventory
from tests.delay.latency.worlds import Weather, WeatherProblem

LEVELS = ("dry", "wet", "storm")


def find_price(law, payments=None, ticks=(0, 1)):
    """V_d - V_{d+1} under one law, exactly; with payments if they are given."""
    problem = WeatherProblem(law)
    base = problem if payments is None else PaidProblem(problem, payments)
    fast, slow = (pkd.plan(Delayed.constant(base, d).known(), law).value for d in ticks)
    return fast - slow


def draw_law(rng, weight=1.0):
    rows = rng.dirichlet(np.full(len(LEVELS), weight), len(LEVELS))
    return {
        z: dict(zip(LEVELS, row.tolist(), strict=True)) for z, row in zip(LEVELS, rows, strict=True)
    }


@pytest.mark.parametrize("ticks", [(0, 1), (1, 2), (0, 3)])
def test_payments_for_exogenous_features_leave_every_price_as_it_is(ticks):
    rng = np.random.default_rng(0)
    for _ in range(20):
        law = draw_law(rng, 0.5)
        payments = {(z, x): float(rng.normal(0, 10)) for z in LEVELS for x in LEVELS}
        expected = find_price(law, ticks=ticks)
        assert find_price(law, payments, ticks) == pytest.approx(expected, abs=1e-9)


def test_payments_for_what_acting_decides_would_change_the_price():
    chain = two_state_chain()
    pay = {((0, 0), 0): 2.0, ((0, 0), 1): 2.0}  # 2 for the action 0 in state 0
    prices = [
        [pkd.plan(Delayed.constant(base, d).known(), chain.law()).value for d in (0, 1)]
        for base in (chain, PaidProblem(chain, pay))
    ]
    assert prices[0][0] - prices[0][1] != pytest.approx(prices[1][0] - prices[1][1], abs=1e-3)


def test_only_exogenous_features_are_paid_for():
    chain = two_state_chain()
    late = [Delayed.constant(chain, d).known() for d in (0, 1)]
    assert fit_payments(chain.model(), late, chain.law()) == {}
    spot = strip(spot_autoscaler(horizon=4))
    late = [Delayed.constant(spot, d).known() for d in (0, 1)]
    assert {z for z, _ in fit_payments(spot.model(), late, spot.law())} == set(LOADS)


def test_a_payment_is_made_once_for_each_draw():
    """Seven steps draw seven times, the last one with the last action."""
    law = draw_law(np.random.default_rng(2))
    everywhere = {(z, x): 1.0 for z in LEVELS for x in LEVELS}
    model = Weather(horizon=7)
    paid = pkd.plan(Paid(model, everywhere), law).value - pkd.plan(model, law).value
    assert paid == pytest.approx(7.0)


def list_allowed(counts, rng, n=150):
    """Laws in the sets {q : KL(p, q) <= C(z)}, at their edges and inside."""
    rows = {z: np.array([counts[z][x] for x in LEVELS], float) for z in LEVELS}
    radii = confidence.radii(rows.values(), 0.05)
    edges = {}
    for (z, row), radius in zip(rows.items(), radii, strict=True):
        p = row / row.sum()
        edges[z] = []
        for _ in range(40):
            q, inside, outside = rng.dirichlet(np.full(3, 0.3)), 0.0, 1.0
            for _ in range(40):
                t = (inside + outside) / 2
                mixed = (1 - t) * p + t * q
                kl = np.sum(p * np.log(p / mixed))
                inside, outside = (t, outside) if kl <= radius else (inside, t)
            edges[z].append((1 - inside) * p + inside * q)
        edges[z].append(p)
    for _ in range(n):
        yield {
            z: dict(zip(LEVELS, edges[z][rng.integers(len(edges[z]))].tolist(), strict=True))
            for z in LEVELS
        }


@pytest.mark.parametrize("seed", range(3))
def test_every_law_that_is_not_refuted_has_its_price_inside(seed):
    rng = np.random.default_rng(seed)
    truth = draw_law(rng, 2.0)
    counts = {
        z: dict(zip(LEVELS, map(float, rng.multinomial(400, list(row.values()))), strict=True))
        for z, row in truth.items()
    }
    counts = {z: {x: n + 1 for x, n in row.items()} for z, row in counts.items()}
    problem = WeatherProblem(truth)
    ticks = [(d, lambda given, d=d: Delayed.constant(given, d)) for d in range(3)]
    lines = measure_certified(problem, counts, ticks, 0.05)
    study = Latency("weather", "delay", lines, lines[0], delta=0.05)
    apart = [(a.low - b.high, a.high - b.low) for a, b in itertools.pairwise(lines)]
    for tick, (low, high) in enumerate(study.price_bounds()):
        prices = [find_price(law, ticks=(tick, tick + 1)) for law in list_allowed(counts, rng)]
        assert low - 1e-9 <= min(prices)
        assert max(prices) <= high + 1e-9
        assert high - max(low, 0.0) < 0.7 * (apart[tick][1] - max(apart[tick][0], 0.0))
        drawn = lines[tick + 1].drawn
        assert low <= drawn[0] <= drawn[1] <= high


def test_the_bounds_of_the_autoscaler_cover_its_price_and_decide_with_enough_data():
    """benchmarks/tick_price.py has 200 logs of 5,000 and of 50,000 samples."""
    problem = autoscaler()
    truth = [
        pkd.plan(Delayed.constant(strip(problem), d).known(), problem.law()).value for d in (0, 1)
    ]
    for seed in range(3):
        line = bound_first_tick(draw_log(50_000, seed))
        assert line.price[0] <= truth[0] - truth[1] <= line.price[1]
        assert line.price[0] > 0.0


@attrs.frozen
class Acting:
    """A problem whose actions are late, too."""

    problem: Any
    d: int

    def model(self):
        late = isinstance(self.problem, Delayed)
        return pkd.LateActions(self.problem.known() if late else self.problem.model(), self.d)

    def law(self):
        return self.problem.law()


def test_ticks_of_a_problem_with_delays_of_its_own_are_bounded_apart():
    """Late actions of a model whose states stay late: payments would be made to another base."""
    shop = Delayed.constant(inventory(horizon=4, capacity=3, max_order=2, max_demand=2), 1)
    counts = {z: dict.fromkeys(range(3), 30.0) for z in range(4)}
    ticks = [(d, lambda given, d=d: Acting(given, d)) for d in (0, 1)]
    assert [line.price for line in measure_certified(shop, counts, ticks, 0.05)] == [None, None]


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (0.1, "A sensor faster by it pays."),
        (5.0, "A sensor faster by it does not pay."),
        (0.3, "about 4 times the data would tell (an estimate)."),
        (1.0, "more of the same data may not tell soon."),
    ],
)
def test_each_tick_is_said_in_words(price, said):
    """Unknown at .3: the end -.4 is 1.4 below the likely price 1, and .3 is .7 below: 2^2 times."""
    low = -0.4 if price == 0.3 else 0.2
    lines = [
        DelayCost(0, low=5.0, high=9.0),
        DelayCost(1, low=4.0, high=8.0, price=(low, 2.0), drawn=(0.9, 1.1)),
    ]
    study = Latency("x", "delay", lines, lines[0], sensor_price=price, delta=0.05)
    assert said in study.sentences()[1]


def test_a_log_that_breaks_the_assumptions_certifies_nothing():
    lines = [DelayCost(0, low=5.0, high=9.0), DelayCost(1, low=4.0, high=8.0)]
    study = Latency("x", "delay", lines, lines[0], sensor_price=1.0, delta=0.05, refuted="why")
    said = study.sentences()
    assert said[0] == "NOT certified: the log breaks the assumptions: why"
    assert "surely" not in " ".join(said)
    assert "NOT certified" in study.draw().get_suptitle()
