"""What optimism promises (`pkd.MVP()` with the theory constants): every plan is an upper bound, and regret stays below the theorem's bound."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import reference
from strategies import Case, Shape, build

import pkd
import pkd.bounds


def random_case(seed: int) -> Case:
    """A model with rewards below zero; the corners of the contract come and go with the seed."""
    rng = random.Random(seed)
    return build(
        Shape(
            seed=seed,
            horizon=rng.randint(1, 4),
            n_x=rng.randint(2, 4),
            n_y=rng.randint(1, 4),
            n_actions=rng.randint(2, 3),
            n_features=rng.randint(1, 3),
            chance=rng.choice([0.0, 0.5]),
            end=rng.choice([0.0, 0.2]),
            known=rng.choice([0.0, 0.4]),
            settlement=rng.random() < 0.5,
            spread_start=rng.random() < 0.5,
            rewards=rng.choice([(-3.0, -1.0), (-1.0, 1.0), (-50.0, 2000.0)]),
            unknown_rewards=rng.random() < 0.3,
            declared=rng.random() < 0.3,
            shares=rng.random() < 0.3,
            narrow=rng.random() < 0.3,
        )
    )


@pytest.mark.parametrize("seed", range(50))
def test_every_plan_with_theory_constants_is_an_upper_bound(seed: int) -> None:
    case = random_case(seed)
    run = pkd.learn(case.model, case.law, 3000, seed=seed)
    assert run.optimal_value == pytest.approx(reference.optimal(case.model, case.law).value, abs=1e-10 * case.scale)
    assert np.min(run.upper_values) >= run.optimal_value - 1e-9 * case.scale


class TwoArms(pkd.PartiallyKnownMDP):
    """One choice between a sure payment of 1/2 and an unknown one of 0 or 1: the smallest model in which regret is possible."""

    horizon = 1

    def start(self) -> Any:
        return 0, "choice"

    def actions(self, x: Any, y: Any) -> Any:
        return ["sure", "risky"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, "paid", pkd.sure(0) if a == "sure" else "arm")]

    def outcomes(self, z: Any) -> tuple[int, int]:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.5 if a == "sure" else 0.0

    def final(self, x: Any, y: Any) -> float:
        return float(x)


def test_regret_stays_below_the_explicit_bound_where_it_says_something() -> None:
    """With one feature the bound falls below K times the largest return from about three million episodes on."""
    episodes = 4_000_000
    bound = pkd.bounds.regret_bound(TwoArms(), episodes, 0.05)
    assert bound < episodes
    run = pkd.learn(TwoArms(), {"arm": {0: 0.9, 1: 0.1}}, episodes, seed=1)
    assert np.sum(run.upper_values) - np.sum(run.policy_values) <= bound
    assert 0 < run.regret[-1] <= bound


@pytest.mark.parametrize("seed", range(5))
def test_the_explicit_bound_covers_the_excess_of_the_upper_values(seed: int) -> None:
    """The theorem bounds sum_k (V^k - V^pi_k), which is more than the regret."""
    case = random_case(seed)
    run = pkd.learn(case.model, case.law, 2000, seed=seed, replan="every")
    assert run.regret[-1] <= np.sum(run.upper_values - run.policy_values) + 1e-6 * case.scale
    assert np.sum(run.upper_values - run.policy_values) <= pkd.bounds.regret_bound(case.model, 2000, 0.05)


def test_the_default_rule_has_the_constants_of_the_paper() -> None:
    assert (pkd.MVP().c1, pkd.MVP().c2, pkd.MVP().log_factor, pkd.MVP().monotone) == (20 / 3, 400 / 9, None, False)


def test_practical_constants_keep_the_condition_for_the_max_form() -> None:
    """c2 >= c1^2 makes the max form monotone."""
    practical = pkd.MVP.practical()
    assert practical.c2 >= practical.c1**2


def test_greedy_can_miss_the_optimum_that_optimism_finds() -> None:
    """Without data Greedy takes 0 and 1 as equally likely; after an unlucky first pull it stays with the sure payment for ever."""
    law = {"arm": {0: 0.2, 1: 0.8}}
    learners = {name: [pkd.learn(TwoArms(), law, 300, optimism=rule, seed=s) for s in range(20)] for name, rule in RIVALS.items()}
    stuck = [run.policy_values[-1] == pytest.approx(0.5) for run in learners["greedy"]]
    found = [run.policy_values[-1] == pytest.approx(0.8) for run in learners["practical"]]
    assert any(stuck)
    assert all(found)


RIVALS = {"greedy": pkd.Greedy(), "practical": pkd.MVP.practical()}


class TieToRisky(TwoArms):
    """The same with the risky arm first, so that a tie without data goes to it."""

    def actions(self, x: Any, y: Any) -> Any:
        return ["risky", "sure"]


def test_posterior_sampling_draws_another_law_at_each_plan() -> None:
    """Upper values are values under draws from Dirichlet(1, 1), hence max(1/2, u) with u uniform: mean 5/8."""
    counts: dict[Any, dict[Any, int]] = {}
    values = [pkd.learn(TwoArms(), {"arm": {0: 1.0}}, 1, optimism=pkd.PosteriorSampling(), seed=s).upper_values[0] for s in range(400)]
    assert counts == {}
    assert np.mean(values) == pytest.approx(5 / 8, abs=4 * np.std(values) / 20)
