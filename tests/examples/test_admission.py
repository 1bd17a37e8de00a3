"""Admission control against the optimal averages of Sutton and Barto (example 10.2)."""

from __future__ import annotations

import pytest

import pkd
from pkd_examples.admission import admission


@pytest.mark.parametrize(("same_step", "average"), [(True, 2.7476419506), (False, 2.6731922051)])
def test_the_reward_of_one_more_step_is_the_optimal_average(
    same_step: bool, average: float
) -> None:
    long, longer = (
        pkd.plan(p.model(), p.law()).value
        for p in (admission(horizon=h, same_step=same_step) for h in (400, 401))
    )
    assert longer - long == pytest.approx(average, abs=1e-9)


def test_with_servers_that_free_at_once_everybody_is_accepted() -> None:
    problem = admission(servers=2, free=1.0, horizon=10)
    plan = pkd.plan(problem.model(), problem.law())
    assert plan.value == pytest.approx(10 * (1 + 2 + 4 + 8) / 4)
    assert {plan.action(5, pays, 2) for pays in (1, 2, 4, 8)} == {"accept"}


def test_servers_that_never_free_take_the_best_of_two_customers() -> None:
    # One server, two customers: take the first if it pays more than the mean of the second (3.75),
    # that is 4 or 8.
    problem = admission(servers=1, free=0.0, horizon=2)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(
        (3.75 + 3.75 + 4 + 8) / 4
    )
