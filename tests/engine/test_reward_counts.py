"""Counts of unknown rewards by name: two values that every rule takes for what was paid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from pkd.engine.structure import two_values

LOW, HIGH = -1.0, 3.0


@given(paid=st.lists(st.floats(LOW, HIGH), min_size=1, max_size=20))
def test_two_values_have_the_number_mean_and_variance_of_what_was_paid(paid: list[float]) -> None:
    values = np.array(paid)
    mean = float(values.mean())
    squares = float(((values - mean) ** 2).sum())
    found = two_values(float(len(paid)), mean, squares, LOW, HIGH)
    points, counts = np.array(list(found)), np.array(list(found.values()))
    assert (points >= LOW).all()
    assert (points <= HIGH).all()
    assert counts.sum() == pytest.approx(len(paid), abs=1e-9)
    assert counts @ points / counts.sum() == pytest.approx(mean, abs=1e-9)
    assert counts @ (points - mean) ** 2 == pytest.approx(squares, abs=1e-8)


@pytest.mark.parametrize(
    "rule", [pkd.MVP(0.5, 0.5, log_factor=1.0), pkd.Hoeffding(1.0, log_factor=1.0)], ids=str
)
def test_a_plan_from_the_counts_of_a_learner_is_its_own_plan(rule: pkd.Optimism) -> None:
    problem = pkd.as_problem("maintenance")
    learner = pkd.OptimisticLearner(problem.model(), optimism=rule, replan="every")
    simulator = pkd.Simulator(problem.model(), problem.law(), seed=2)
    for _ in range(40):
        learner.observe(simulator.episode(learner.plan))
    again = pkd.optimistic_plan(problem.model(), learner.counts, episodes=1, optimism=rule)
    assert again.value == pytest.approx(learner.upper_value, abs=1e-9)
