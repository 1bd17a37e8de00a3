"""Maintenance against the renewal-reward formula of a machine that wears by one in every step."""

from __future__ import annotations

import pytest

import pkd
from pkd_examples.maintenance import maintenance


def test_one_more_cycle_earns_the_best_average_of_a_renewal() -> None:
    # Wear i earns 1 - i/7 on average; a cycle of n runs and one replacement takes n + 1 steps.
    averages = {n + 1: (sum(1 - i / 7 for i in range(n)) - 0.4) / (n + 1) for n in range(1, 7)}
    period = max(averages, key=averages.__getitem__)
    values = [
        pkd.plan(problem.model(), problem.law()).value
        for problem in (
            maintenance(horizon=h, wearing=1.0, jump=1, cost=0.4) for h in (60, 60 + period)
        )
    ]
    assert values[1] - values[0] == pytest.approx(period * averages[period])


def test_a_free_replacement_with_a_machine_that_never_wears_is_never_used() -> None:
    problem = maintenance(horizon=9, wearing=0.0, cost=0.0)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(9.0)


def test_what_the_machine_earns_is_learned() -> None:
    # Best earns 1 while new; a learner that has counted the earnings believes their mean.
    problem = maintenance(horizon=4, wearing=0.5)
    run = pkd.learn(problem.model(), problem.law(), 3000, optimism=pkd.MVP.practical(), seed=0)
    assert run.optimal_value - run.policy_values[-1] < 0.05 * run.optimal_value
