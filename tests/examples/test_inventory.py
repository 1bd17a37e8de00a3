"""Inventory against stockpyl: the newsvendor, the (s, S) policy, the finite horizon, lead times."""

from __future__ import annotations

from typing import Any

import pytest

import pkd
from pkd_examples.inventory import inventory

stockpyl = pytest.importorskip(
    "stockpyl", reason="stockpyl gives the external answers; install the test extra"
)

WITH_BACKLOG: dict[str, Any] = {
    "lead_time": 0,
    "capacity": 20,
    "max_order": 50,
    "max_demand": 30,
    "backlog": 40,
    "stock": 0,
}


def average_cost(horizon: int, **options: Any) -> float:
    """The cost of one more step: V_{H-1} - V_H."""
    shorter, longer = (inventory(horizon=h, **options) for h in (horizon - 1, horizon))
    return (
        pkd.plan(shorter.model(), shorter.law()).value
        - pkd.plan(longer.model(), longer.law()).value
    )


def test_one_period_is_the_newsvendor() -> None:
    from stockpyl.newsvendor import newsvendor_poisson

    level, cost = newsvendor_poisson(holding_cost=1, stockout_cost=4, demand_mean=6)
    problem = inventory(
        demand=6, horizon=1, lead_time=0, capacity=30, max_order=20, max_demand=40, stock=0
    )
    plan = pkd.plan(problem.model(), problem.law())
    assert plan.action(1, None, (0, 0, pkd.Queue())) == level == 8
    assert -plan.value == pytest.approx(cost, abs=1e-9)
    assert -plan.value == pytest.approx(3.5701069457709416, abs=1e-9)


def test_a_fixed_cost_makes_an_s_S_policy() -> None:  # noqa: N802, the policy is named so
    from stockpyl.ss import s_s_discrete_exact

    reorder, up_to, cost = s_s_discrete_exact(
        holding_cost=1, stockout_cost=4, fixed_cost=5, use_poisson=True, demand_mean=6
    )
    problem = inventory(demand=6, horizon=40, fixed=5, **WITH_BACKLOG)
    plan = pkd.plan(problem.model(), problem.law())
    orders = {s: plan.action(2, None, (0, s, pkd.Queue())) for s in range(-20, 21)}
    assert orders == {s: up_to - s if s <= reorder else 0 for s in orders}
    assert average_cost(40, demand=6, fixed=5, **WITH_BACKLOG) == pytest.approx(cost, abs=1e-6)
    assert cost == pytest.approx(8.034111561471642, abs=1e-9)


def test_a_finite_horizon_agrees_with_stockpyl_in_every_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from stockpyl import loss_functions
    from stockpyl.demand_source import DemandSource
    from stockpyl.finite_horizon import finite_horizon_dp

    # stockpyl 1.0.2 takes the loss function of a normal demand whatever the demand is; here it gets
    # that of the Poisson demand.
    monkeypatch.setattr(
        loss_functions, "normal_loss", lambda y, mean, sd: loss_functions.poisson_loss(y, mean)
    )
    reorder, up_to, cost, *_ = finite_horizon_dp(
        num_periods=5, holding_cost=1, stockout_cost=4, terminal_holding_cost=0.5,
        terminal_stockout_cost=0, purchase_cost=0.3, fixed_cost=5, initial_inventory_level=0,
        demand_source=DemandSource(type="P", mean=6), d_spread=9, s_spread=12,
    )  # fmt: skip
    problem = inventory(demand=6, horizon=5, fixed=5, unit=0.3, salvage=-0.5, **WITH_BACKLOG)
    plan = pkd.plan(problem.model(), problem.law())
    assert -plan.value == pytest.approx(cost, abs=1e-6)
    for h in range(2, 6):
        orders = {s: plan.action(h, None, (0, s, pkd.Queue())) for s in range(-6, 11)}
        assert orders == {s: up_to[h] - s if s <= reorder[h] else 0 for s in orders}


def test_a_lead_time_makes_the_newsvendor_cover_the_demand_until_arrival() -> None:
    from stockpyl.newsvendor import newsvendor_poisson

    # An order placed today decides the stock at the end of tomorrow, after two days of demand:
    # Poisson(3 + 3).
    _, cost = newsvendor_poisson(holding_cost=1, stockout_cost=4, demand_mean=6)
    options = {
        "lead_time": 1,
        "capacity": 20,
        "max_order": 14,
        "max_demand": 18,
        "backlog": 20,
        "stock": 5,
    }
    assert average_cost(40, demand=3, **options) == pytest.approx(cost, abs=1e-4)


def test_lost_sales_cost_less_than_a_backlog_with_the_same_penalty() -> None:
    # A waiting customer is charged again each day, a lost one once.
    options = {"demand": 3, "horizon": 6, "lead_time": 1, "stock": 0}
    lost, waiting = inventory(**options), inventory(backlog=12, **options)
    assert (
        pkd.plan(lost.model(), lost.law()).value
        > pkd.plan(waiting.model(), waiting.law()).value + 0.1
    )
