"""Battery arbitrage against a linear program that knows all prices, and a constant price."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import pkd
from pkd_examples.battery import Battery, battery


@pytest.mark.parametrize("efficiency", [0.8, 1.0])
def test_known_prices_give_the_optimum_of_a_linear_program(efficiency: float) -> None:
    prices, hours = (12.0, 20.0, 31.0, 47.0, 60.0), 12
    path = np.random.default_rng(3).integers(0, len(prices), hours + 1)
    model = Battery(
        horizon=hours,
        hours=hours,
        capacity=3,
        price=int(path[0]),
        prices=prices,
        efficiency=efficiency,
    )
    law = {
        (hour, x): {int(path[hour + 1]): 1.0} for hour in range(hours) for x in range(len(prices))
    }
    # Variables: what is bought and what is sold in each hour, both in [0, 1]; the charge stays in
    # [0, 3].
    price = np.array([prices[x] for x in path[:hours]])
    charge = np.hstack([np.tri(hours), -np.tri(hours)])
    program = linprog(
        np.concatenate([price, -efficiency * price]),
        np.vstack([charge, -charge]),
        [3.0] * hours + [0.0] * hours,
        bounds=(0, 1),
    )
    assert pkd.plan(model, law).value == pytest.approx(-program.fun, abs=1e-9)


def test_a_price_that_never_moves_earns_nothing() -> None:
    model = Battery(horizon=10, price=2)
    law = {(hour, x): {x: 1.0} for hour in range(24) for x in range(5)}
    assert pkd.plan(model, law).value == pytest.approx(0.0, abs=1e-12)


def test_the_charge_in_the_battery_is_sold_before_the_end() -> None:
    # One hour, one unit in store: it is worth the price now, less the loss.
    problem = battery(horizon=1, charge=1, price=3, efficiency=0.5)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(0.5 * 80.0)
