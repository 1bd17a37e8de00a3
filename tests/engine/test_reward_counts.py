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


@pytest.mark.parametrize("rule", [pkd.MVP(0.5, 0.5), pkd.Certified(exact=True)], ids=str)
def test_a_plan_from_the_counts_of_a_run_is_the_plan_of_the_run(rule: pkd.Optimism) -> None:
    problem = pkd.as_problem("maintenance")
    run = pkd.learn(problem, 64, optimism=pkd.MVP.practical(), seed=2)
    learner = pkd.OptimisticLearner(problem.model(), 64, optimism=pkd.Greedy(), counts=run.counts)
    again = pkd.learn(problem, 1, optimism=pkd.Greedy(), counts=learner.counts)
    assert again.upper_values[0] == pytest.approx(learner.upper_value, abs=1e-9)
    mean = pkd.optimistic_plan(problem.model(), run.counts, episodes=64, optimism=rule)
    assert mean.value >= run.optimal_value - 1e-9
