"""The inventory against the plain array program of `inventory_reference`."""

from __future__ import annotations

from typing import Any

import pytest

import pkd
from pkd_examples.inventory import inventory
from tests.examples.inventory_reference import optimal_value

SMALL: dict[str, Any] = {"horizon": 9, "capacity": 6, "max_order": 3, "max_demand": 5, "stock": 2}
COSTS: dict[str, Any] = {"unit": 0.3, "fixed": 1.5, "holding": 0.7, "shortage": 3.2, "salvage": 0.2}


@pytest.mark.parametrize("lead_time", [0, 1, 2])
@pytest.mark.parametrize("backlog", [0, 3])
@pytest.mark.parametrize("demand", [2.5, (1.0, 3.0, 0.5)], ids=["one law", "three laws"])
def test_the_plan_is_worth_what_backward_induction_on_arrays_finds(
    lead_time: int, backlog: int, demand: Any
) -> None:
    problem = inventory(lead_time=lead_time, backlog=backlog, demand=demand, **SMALL, **COSTS)
    expected = optimal_value(problem.model(), problem.law())
    found = pkd.plan(problem.model(), problem.law()).value
    assert found == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("lead_time", [0, 1, 2])
def test_the_reference_notices_each_cost(lead_time: int) -> None:
    """A reference that ignored a cost would agree with a model that ignores it."""
    base = inventory(lead_time=lead_time, **SMALL, **COSTS)
    value = optimal_value(base.model(), base.law())
    for name, cost in COSTS.items():
        other = inventory(lead_time=lead_time, **SMALL, **{**COSTS, name: 2 * cost})
        assert optimal_value(other.model(), other.law()) != pytest.approx(value, abs=1e-6)
