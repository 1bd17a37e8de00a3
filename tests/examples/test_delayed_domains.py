"""Every domain can be delayed: its observations come one step late, its features stay the same, and news is worth something."""

from __future__ import annotations

import pytest

import pkd
from tests.examples.worlds import shipped

pkd_delay = pytest.importorskip("pkd_delay")

SHIPPED = shipped()
SMALL = [name for name in SHIPPED if name != "blackjack"]  # its queue makes a plan of many seconds, and nothing new


@pytest.mark.parametrize("name", SMALL)
def test_a_delayed_domain_is_worth_at_most_the_undelayed_one(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert pkd.plan(delayed, problem.law()).value <= pkd.plan(problem.model(), problem.law()).value + 1e-9


def test_a_late_price_is_worth_less() -> None:
    problem, _ = SHIPPED["battery"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    assert pkd.plan(delayed, problem.law()).value < pkd.plan(problem.model(), problem.law()).value - 0.1


@pytest.mark.parametrize("name", SMALL)
def test_a_delay_of_zero_changes_nothing(name: str) -> None:
    problem, _ = SHIPPED[name]
    delayed = pkd_delay.KnownDelay(problem.model(), {0: 1.0}, 0)
    assert pkd.plan(delayed, problem.law()).value == pytest.approx(pkd.plan(problem.model(), problem.law()).value, abs=1e-9)


def test_a_delayed_inventory_still_learns_one_law_for_each_day() -> None:
    problem, _ = SHIPPED["inventory"]
    delayed = pkd_delay.KnownDelay(problem.model(), {1: 1.0}, 1)
    run = pkd.learn(delayed, problem.law(), 20, optimism=pkd.Greedy(), seed=0)
    assert set(run.counts) == {0, 1, 2}
