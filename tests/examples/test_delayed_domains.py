"""Every domain can be delayed: observations come one step late and features stay the same.

News is worth something.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import pkd
from pkd.engine import Compiled
from pkd.model import Branch
from pkd_delay.hindsight import DelayLaw
from pkd_examples.inventory import Inventory, inventory
from tests.examples.worlds import shipped

pkd_delay = pytest.importorskip("pkd_delay")

SHIPPED = shipped()
# The queue of blackjack makes a plan of many seconds, and shows nothing new.
SMALL = [name for name in SHIPPED if name != "blackjack"]


@pytest.mark.parametrize("name", SMALL)
def test_a_delayed_domain_is_worth_at_most_the_undelayed_one(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert (
        pkd.plan(delayed, problem.law()).value
        <= pkd.plan(problem.model(), problem.law()).value + 1e-9
    )


def test_a_late_price_is_worth_less() -> None:
    problem, _ = SHIPPED["battery"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert (
        pkd.plan(delayed, problem.law()).value
        < pkd.plan(problem.model(), problem.law()).value - 0.1
    )


@pytest.mark.parametrize("name", SMALL)
def test_a_delay_of_zero_changes_nothing(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {0: 1.0}, 0)
    assert pkd.plan(delayed, problem.law()).value == pytest.approx(
        pkd.plan(problem.model(), problem.law()).value, abs=1e-9
    )


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("law", [{1: 1.0}, {-1: 0.2, 0: 0.5, 1: 0.3}], ids=["constant", "random"])
def test_a_delayed_domain_is_worth_the_same_on_both_engines(
    name: str, law: dict[int, float]
) -> None:
    """For both adapters, with the truth and, optimistically, without any data."""
    problem, _ = SHIPPED[name]
    known = pkd_delay.KnownDelay(problem.model(), law, 1)
    unknown = pkd_delay.UnknownDelay(problem.model(), 1, 1)
    truth = DelayLaw(problem.law(), law, known, unknown)
    for model in (known, unknown):
        engines = pkd.compile(model, large=True), pkd.compile(model, large=False)
        for values in zip(*(_values(engine, truth) for engine in engines), strict=True):
            assert values[0] == pytest.approx(values[1], rel=1e-10, abs=1e-10)


def _values(compiled: Compiled, truth: pkd.Law) -> tuple[float, float]:
    upper = pkd.optimistic_plan(compiled, {}, episodes=100)
    return pkd.plan(compiled, truth).value, upper.value


class CountedInventory(Inventory):
    """Counts the calls of `step`."""

    asked = 0

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        type(self).asked += 1
        return super().step(x, y, a)


def test_a_large_delayed_inventory_is_not_explored_state_by_state() -> None:
    """More days of unseen orders are worth less, with the same features."""
    problem = inventory(horizon=6, demand=(1.0, 3.0), capacity=8, max_order=4, max_demand=4)
    options = {f.name: getattr(problem.model(), f.name) for f in attrs.fields(Inventory)}
    values = []
    for delay in (1, 2, 4):
        CountedInventory.asked = 0
        base = CountedInventory(**options)
        compiled = pkd.compile(pkd_delay.KnownDelay(base, {delay: 1.0}, delay))
        assert compiled.features == [0, 1]
        values.append(pkd.plan(compiled, problem.law()).value)
    assert values == sorted(values, reverse=True)
    assert CountedInventory.asked < compiled.n_states / 4


def test_a_delayed_inventory_still_learns_one_law_for_each_day() -> None:
    problem, _ = SHIPPED["inventory"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    run = pkd.learn(delayed, problem.law(), 20, optimism=pkd.Greedy(), seed=0)
    assert set(run.counts) == {0, 1, 2}
