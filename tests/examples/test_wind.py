"""The windy grid against the published lengths of its shortest paths.

They are from Sutton and Barto, example 6.5 and exercise 6.9.
"""

from __future__ import annotations

import pytest

import pkd
from pkd_examples.wind import wind


@pytest.mark.parametrize(("diagonal", "steps"), [(False, 15), (True, 7)])
def test_a_steady_wind_needs_the_published_number_of_steps(diagonal: bool, steps: int) -> None:
    problem = wind(gusts=False, diagonal=diagonal)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(-steps)


def test_without_wind_the_path_is_the_city_block_distance() -> None:
    problem = wind(strengths=(0, 0, 0), first=(1, 2), goal=(5, 8))
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(-(4 + 6))


def test_a_goal_out_of_reach_costs_the_whole_horizon() -> None:
    problem = wind(gusts=False, horizon=5)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(-5.0)
