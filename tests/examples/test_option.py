"""The American put against a Cox-Ross-Rubinstein tree, and against the European put."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pkd
from pkd_examples.option import american_put


def tree_price(steps: int, spot: float, strike: float, rate: float, volatility: float) -> float:
    """The price of the American put in one year by the textbook recursion."""
    up = math.exp(volatility * math.sqrt(1 / steps))
    growth = math.exp(rate / steps)
    q = (growth - 1 / up) / (up - 1 / up)
    value = np.maximum(strike - spot * up ** np.arange(-steps, steps + 1, 2.0), 0)
    for t in reversed(range(steps)):
        stop = strike - spot * up ** np.arange(-t, t + 1, 2.0)
        value = np.maximum(stop, (q * value[1:] + (1 - q) * value[:-1]) / growth)
    return float(value[0])


def test_the_value_is_the_published_price() -> None:
    problem = american_put(horizon=50, spot=36.0, strike=40.0, rate=0.06, volatility=0.2, years=1.0)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(4.4844980629, abs=1e-9)


@pytest.mark.parametrize(
    ("steps", "spot", "rate", "volatility"),
    [(1, 38.0, 0.1, 0.3), (7, 44.0, 0.03, 0.5), (25, 40.0, 0.01, 0.15)],
)
def test_the_value_is_the_price_on_other_trees(
    steps: int, spot: float, rate: float, volatility: float
) -> None:
    problem = american_put(horizon=steps, spot=spot, strike=40.0, rate=rate, volatility=volatility)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(
        tree_price(steps, spot, 40.0, rate, volatility), abs=1e-10
    )


def test_without_interest_waiting_costs_nothing_and_the_put_is_european() -> None:
    n, up = 30, math.exp(0.2 / math.sqrt(30))
    q = (1 - 1 / up) / (up - 1 / up)
    european = sum(
        math.comb(n, k) * q**k * (1 - q) ** (n - k) * max(40 - 36 * up ** (2 * k - n), 0)
        for k in range(n + 1)
    )
    problem = american_put(horizon=n, rate=0.0)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(european, abs=1e-10)


def test_a_share_that_surely_falls_is_sold_at_the_end() -> None:
    # Without interest and with down moves only, the put pays most at the last price.
    problem = american_put(horizon=4, rate=0.0)
    lowest = 36 * math.exp(-4 * 0.2 * math.sqrt(1 / 4))
    assert pkd.plan(problem.model(), {"move": {"down": 1.0}}).value == pytest.approx(40 - lowest)
