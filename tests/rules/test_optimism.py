"""What the rules guarantee.

`pkd.MVP()` with the theory constants: every plan is an upper bound, and regret obeys the explicit
bound. Every rule: plans are made from samples alone, never from the law that they
are drawn from.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import pkd
import pkd.theory.bounds
from tests import reference
from tests.strategies import Case, Shape, build


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
    run = pkd.learn(case.model, case.law, 3000, seed=seed, optimism=pkd.MVP())
    assert run.optimal_value == pytest.approx(
        reference.optimal(case.model, case.law).value, abs=1e-10 * case.scale
    )
    assert np.min(run.upper_values) >= run.optimal_value - 1e-9 * case.scale


class TwoArms(pkd.PartiallyKnownMDP):
    """One choice between a sure payment and an unknown one: the smallest model with regret."""

    horizon = 1

    def __init__(self, sure: float = 0.5) -> None:
        self.sure = sure

    def start(self) -> Any:
        return 0, "choice"

    def actions(self, x: Any, y: Any) -> Any:
        return ["sure", "risky"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, "paid", pkd.sure(0) if a == "sure" else "arm")]

    def outcomes(self, z: Any) -> tuple[int, int]:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.sure if a == "sure" else 0.0

    def final(self, x: Any, y: Any) -> float:
        return float(x)


class RiskyFirst(TwoArms):
    """The same with the risky arm first, so that a tie without data goes to it."""

    def actions(self, x: Any, y: Any) -> Any:
        return ["risky", "sure"]


def test_regret_stays_below_the_explicit_bound_where_it_says_something() -> None:
    """With one feature the bound is below K times the largest return from K = 4 million on."""
    episodes = 6_000_000
    bound = pkd.bounds.regret_bound(TwoArms(), episodes, 0.05)
    assert bound < episodes
    law = {"arm": {0: 0.9, 1: 0.1}}
    run = pkd.learn(TwoArms(), law, episodes, seed=1, optimism=pkd.MVP(), replan="every")
    assert np.sum(run.upper_values) - np.sum(run.policy_values) <= bound
    assert 0 < run.regret[-1] <= bound


@pytest.mark.parametrize("seed", range(5))
def test_the_explicit_bound_covers_the_excess_of_the_upper_values(seed: int) -> None:
    """The theorem bounds sum_k (V^k - V^pi_k), which is more than the regret."""
    case = random_case(seed)
    run = pkd.learn(case.model, case.law, 2000, seed=seed, replan="every", optimism=pkd.MVP())
    assert run.regret[-1] <= np.sum(run.upper_values - run.policy_values) + 1e-6 * case.scale
    assert np.sum(run.upper_values - run.policy_values) <= pkd.bounds.regret_bound(
        case.model, 2000, 0.05
    )


def test_the_default_rule_has_the_constants_of_the_paper() -> None:
    assert (pkd.MVP().c1, pkd.MVP().c2, pkd.MVP().log_factor, pkd.MVP().monotone) == (
        20 / 3,
        400 / 9,
        None,
        False,
    )


def test_practical_constants_keep_the_condition_for_the_max_form() -> None:
    """c2 >= c1^2 makes the max form monotone."""
    practical = pkd.MVP.practical()
    assert practical.c2 >= practical.c1**2


def test_greedy_can_miss_the_optimum_that_optimism_finds() -> None:
    """After an unlucky first pull Greedy stays with the sure payment for ever.

    The bonus tries the arm again.
    """
    law = {"arm": {0: 0.2, 1: 0.8}}
    greedy = [pkd.learn(RiskyFirst(), law, 300, optimism=pkd.Greedy(), seed=s) for s in range(20)]
    optimistic = [
        pkd.learn(RiskyFirst(), law, 300, optimism=pkd.MVP.practical(), seed=s) for s in range(20)
    ]
    assert {round(run.policy_values[-1], 9) for run in greedy} == {0.5, 0.8}
    assert {round(run.policy_values[-1], 9) for run in optimistic} == {0.8}


def test_posterior_sampling_plans_for_a_law_drawn_from_the_posterior() -> None:
    """Without data the law is drawn from Dirichlet(1, 1).

    So the value is max(1/2, u) with u uniform: mean 5/8, variance 7/192.
    """
    rule = pkd.PosteriorSampling()
    values = [
        pkd.learn(TwoArms(), {"arm": {0: 1.0}}, 1, optimism=rule, seed=s).upper_values[0]
        for s in range(400)
    ]
    assert np.mean(values) == pytest.approx(5 / 8, abs=4 * math.sqrt(7 / 192 / 400))
    assert np.mean(np.array(values) == 0.5) == pytest.approx(1 / 2, abs=4 * math.sqrt(1 / 4 / 400))


def test_a_sharp_posterior_is_the_law_itself() -> None:
    """The standard deviation of Dirichlet(1 + 3e9, 1 + 7e9) is below 5e-6."""
    counts = {"arm": {0: 3 * 10**9, 1: 7 * 10**9}}
    plan = pkd.optimistic_plan(TwoArms(), counts, episodes=1, optimism=pkd.PosteriorSampling())
    assert plan.value == pytest.approx(0.7, abs=3e-5)


RULES = [pkd.MVP(), pkd.MVP.practical(), pkd.Hoeffding(0.1), pkd.Greedy(), pkd.PosteriorSampling()]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
def test_two_laws_that_show_the_same_data_give_the_same_plans(rule: Any) -> None:
    """Only the samples may reach the planner.

    Laws a millionth apart draw the same samples, so only the optimum and the regret differ.
    """
    one, other = (
        pkd.learn(TwoArms(0.2), {"arm": {0: 0.2 - e, 1: 0.8 + e}}, 40, optimism=rule, seed=2)
        for e in (0.0, 1e-6)
    )
    assert one.counts == other.counts
    assert one.upper_values.tobytes() == other.upper_values.tobytes()
    assert one.optimal_value != other.optimal_value


def test_a_law_that_is_never_sampled_changes_only_the_regret() -> None:
    """Greedy takes the risky arm for a fair coin and never tries it, however good it is."""
    bad, good = (
        pkd.learn(TwoArms(0.6), {"arm": {x: 1.0}}, 40, optimism=pkd.Greedy()) for x in (0, 1)
    )
    assert bad.counts == good.counts
    assert bad.upper_values.tobytes() == good.upper_values.tobytes()
    assert bad.regret[-1] < good.regret[-1]


def test_the_law_is_read_before_the_first_episode_only() -> None:
    """A run of 500 episodes reads the law as often as a run of one."""
    reads = []

    def law(z: Any) -> dict[int, float]:
        reads.append(z)
        return {0: 0.3, 1: 0.7}

    pkd.learn(TwoArms(), law, 1, replan="every")
    for_one = len(reads)
    pkd.learn(TwoArms(), law, 500, replan="every")
    assert len(reads) == 2 * for_one
