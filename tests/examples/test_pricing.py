"""Dynamic pricing against the closed form of Gallego and van Ryzin (1994)."""

from __future__ import annotations

import math

import pytest

import pkd
from pkd_examples.pricing import pricing


def test_with_a_seat_for_everybody_each_step_asks_the_best_single_price() -> None:
    problem = pricing(seats=6, horizon=6, customers=0.8, scale=3.0, prices=(1.0, 2.0, 3.0, 4.0))
    best = max(price * 0.8 * math.exp(-price / 3) for price in (1.0, 2.0, 3.0, 4.0))
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(6 * best)


def test_one_seat_and_one_customer_is_a_single_bet() -> None:
    problem = pricing(seats=1, horizon=1, customers=1.0, scale=2.0, prices=(2.0,))
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(2 * math.exp(-1))


@pytest.mark.parametrize("seats", [1, 2, 4])
def test_many_short_steps_approach_the_continuous_time_formula(seats: int) -> None:
    # Demand rate 6 exp(-p) over one unit of time: J = log sum_{i <= n} (6/e)^i / i!, prices p = J_n
    # - J_{n-1} + 1 in [1, 3.5].
    formula = math.log(sum((6 / math.e) ** i / math.factorial(i) for i in range(seats + 1)))
    steps = 600
    problem = pricing(
        seats=seats,
        horizon=steps,
        customers=6 / steps,
        scale=1.0,
        prices=tuple(1 + i / 40 for i in range(100)),
    )
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(formula, rel=2e-3)
