"""The gambler against Dubins and Savage: bold play is optimal against the house."""

from __future__ import annotations

import pytest

import pkd
from pkd_examples.gambler import gambler


@pytest.mark.parametrize(("capital", "value"), [(25, 0.16), (50, 0.4), (75, 0.64)])
def test_the_chance_of_reaching_the_goal_is_the_published_one(capital: int, value: float) -> None:
    problem = gambler(goal=100, capital=capital, win=0.4, horizon=8)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("capital", [1, 3, 6])
def test_a_fair_coin_is_worth_the_share_of_the_goal(capital: int) -> None:
    problem = gambler(goal=8, capital=capital, win=0.5, horizon=3)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(capital / 8, abs=1e-12)


def test_a_win_with_the_last_toss_counts() -> None:
    problem = gambler(goal=8, capital=4, win=0.4, horizon=1)
    assert pkd.plan(problem.model(), problem.law()).value == pytest.approx(0.4)
