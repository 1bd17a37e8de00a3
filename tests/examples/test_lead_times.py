"""Random lead times against a slow recursion in which every order has a lead time of its own."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any

import pytest

import pkd
from pkd_examples.inventory import Inventory, inventory

SMALL: dict[str, Any] = {
    "horizon": 4, "capacity": 4, "max_order": 2, "max_demand": 3, "stock": 1, "demand": 1.5,
    "unit": 0.3, "fixed": 0.5, "salvage": 0.1,
}  # fmt: skip


def best(shop: Inventory, demand: dict[int, float], lead: dict[int, float]) -> float:
    """V_1 by recursion over the ages of the orders that are still open.

    Each open order comes today with Pr(L = age | L >= age), independently; then it and all older
    ones are delivered.
    """

    def comes(age: int) -> float:
        return lead.get(age, 0.0) / math.fsum(p for days, p in lead.items() if days >= age)

    @cache
    def value(h: int, stock: int, open_orders: tuple[int, ...]) -> float:
        if h > shop.horizon:
            return shop.salvage * max(stock, 0)
        return max(
            -shop.unit * a - shop.fixed * (a > 0) + morning(h, stock, (*open_orders, a))
            for a in range(shop.max_order + 1)
        )

    def morning(h: int, stock: int, orders: tuple[int, ...]) -> float:
        ages = range(len(orders) - 1, -1, -1)
        total = 0.0
        for come in itertools.product((False, True), repeat=len(orders)):
            p = math.prod(comes(g) if c else 1 - comes(g) for g, c in zip(ages, come, strict=True))
            if p > 0:
                last = max((i for i, c in enumerate(come) if c), default=-1)
                there = stock
                for order in orders[: last + 1]:
                    there = min(there + order, shop.capacity)
                total += p * evening(h, there, orders[last + 1 :])
        return total

    def evening(h: int, stock: int, orders: tuple[int, ...]) -> float:
        return sum(
            p
            * (
                value(h + 1, max(stock - d, -shop.backlog), orders)
                - shop.holding * max(stock - d, 0)
                - shop.shortage * max(d - stock, 0)
            )
            for d, p in demand.items()
        )

    return value(1, shop.stock, ())


@pytest.mark.parametrize("backlog", [0, 2])
@pytest.mark.parametrize("lead", [{0: 0.3, 1: 0.7}, {1: 0.5, 2: 0.5}, {0: 0.2, 1: 0.3, 3: 0.5}])
def test_the_plan_is_worth_what_the_slow_recursion_finds(
    lead: dict[int, float], backlog: int
) -> None:
    shop = inventory(lead_time=lead, backlog=backlog, **SMALL)
    expected = best(shop.model(), shop.law()[0], lead)
    pkd.check_model(shop.model(), shop.law())
    assert pkd.plan(shop).value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("days", [0, 1, 2])
def test_a_lead_time_that_is_sure_is_the_constant_one(days: int) -> None:
    sure = pkd.plan(inventory(lead_time={days: 1.0}, **SMALL)).value
    assert sure == pytest.approx(pkd.plan(inventory(lead_time=days, **SMALL)).value, abs=1e-10)


def test_a_random_lead_time_lies_between_its_ends() -> None:
    values = [
        pkd.plan(inventory(lead_time=lead, **SMALL)).value for lead in (1, {1: 0.5, 2: 0.5}, 2)
    ]
    assert values == sorted(values, reverse=True)


def test_only_the_demand_is_learned() -> None:
    shop = inventory(lead_time={0: 0.5, 2: 0.5}, **SMALL)
    run = pkd.learn(shop, episodes=20)
    assert {z: sum(row.values()) for z, row in run.counts.items()} == {0: 20 * 4}
    assert all(run.upper_values >= run.optimal_value - 1e-9)


def test_a_law_that_does_not_sum_to_one_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match=r"sums to 0\.9, not 1"):
        inventory(lead_time={1: 0.5, 2: 0.4})
