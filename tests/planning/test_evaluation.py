"""Mean, variance and law of a return, against sums over trajectories and closed forms."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings

import pkd
import pkd_delay
from pkd import ModelError
from tests import reference
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
MOST_PATHS = 1_500
DIGITS = 7


def randomised(case: Case) -> Callable[[int, Any, Any], dict[Any, float]]:
    """A policy that gives every action a probability of its own, some of them 0."""

    def policy(h: int, x: Any, y: Any) -> dict[Any, float]:
        rng = random.Random(f"{case.shape.seed} {h} {x!r} {y!r}")
        weights = {a: rng.choice([0, 1, 2, 5]) for a in case.model.actions(x, y)}
        total = sum(weights.values())
        if not total:
            return {next(iter(weights)): 1.0}
        return {a: w / total for a, w in weights.items()}

    return policy


def has_few_paths(case: Case, policy: Any) -> bool:
    paths = reference.trajectories(case.model, case.law, policy)
    return sum(1 for _, _ in zip(range(MOST_PATHS + 1), paths, strict=False)) <= MOST_PATHS


def laws_agree(found: dict[float, float], expected: dict[float, float], scale: float) -> bool:
    """Whether two laws are one, up to rounding: the same mass near every value."""
    near = 2 * 10.0**-DIGITS * scale

    def mass(law: dict[float, float], at: float) -> float:
        return math.fsum(p for v, p in law.items() if abs(v - at) <= near)

    return all(
        mass(found, at) == pytest.approx(mass(expected, at), rel=0, abs=1e-9)
        for at in (*found, *expected)
    ) and math.fsum(found.values()) == pytest.approx(1.0, rel=0, abs=1e-9)


@both_engines
@settings(max_examples=25)
@given(case=cases(horizon=2))
def test_a_randomised_policy_is_worth_the_sum_over_its_trajectories(
    large: bool, case: Case
) -> None:
    policy = randomised(case)
    assume(has_few_paths(case, policy))
    found = pkd.evaluate(pkd.compile(case.model, large=large), case.law, policy)
    expected = reference.expected_return(case.model, case.law, policy)
    assert found == pytest.approx(expected, rel=0, abs=1e-10 * case.scale)
    variance = reference.variance_of_return(case.model, case.law, policy)
    assert found.variance == pytest.approx(variance, rel=0, abs=1e-10 * case.scale**2)


@both_engines
@settings(max_examples=25)
@given(case=cases(horizon=2))
def test_the_variance_of_a_plan_is_the_sum_over_its_trajectories(large: bool, case: Case) -> None:
    plan = pkd.plan(pkd.compile(case.model, large=large), case.law)
    assume(has_few_paths(case, plan.action))
    variance = reference.variance_of_return(case.model, case.law, plan.action)
    for model in (plan.compiled, case.model):
        found = pkd.evaluate(model, case.law, plan)
        assert found == pytest.approx(plan.value, rel=0, abs=1e-10 * case.scale)
        assert found.variance == pytest.approx(variance, rel=0, abs=1e-10 * case.scale**2)


@both_engines
@settings(max_examples=25)
@given(case=cases(horizon=2))
def test_the_law_of_the_return_is_that_of_the_trajectories(large: bool, case: Case) -> None:
    policy = randomised(case)
    assume(has_few_paths(case, policy))
    found = pkd.evaluate(pkd.compile(case.model, large=large), case.law, policy).returns()
    expected = reference.law_of_return(case.model, case.law, policy, DIGITS)
    assert laws_agree(found, expected, case.scale)
    assert list(found) == sorted(found)


@settings(max_examples=25)
@given(case=cases(horizon=3))
def test_mean_and_variance_are_those_of_the_law(case: Case) -> None:
    found = pkd.evaluate(case.model, case.law, randomised(case))
    try:
        law = found.returns()
    except pkd.ModelError as error:
        assume("Give returns(tolerance=...)" not in str(error))  # a law of a million values
        raise
    mean = math.fsum(v * p for v, p in law.items())
    assert mean == pytest.approx(found, rel=0, abs=1e-9 * case.scale)
    variance = math.fsum((v - mean) ** 2 * p for v, p in law.items())
    assert found.variance == pytest.approx(variance, rel=0, abs=1e-9 * case.scale**2)


def coins(n: int, p: float, pay: float = 1.0) -> pkd.TabularMDP:
    """n tosses of a coin; each head pays. The state is the coin, paid when it lies there."""
    rows = [[[1 - p, p]], [[1 - p, p]]]
    return pkd.TabularMDP(rows, [[0.0], [pay]], n, start=[1 - p, p])


def only(h: int, x: Any, y: Any) -> int:
    return 0


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.3), (60, 0.5), (100, 0.1)])
def test_the_heads_of_a_coin_are_binomial(n: int, p: float) -> None:
    found = pkd.evaluate(coins(n, p), only)
    assert found.variance == pytest.approx(n * p * (1 - p), rel=1e-12)
    assert found.deviation == pytest.approx(math.sqrt(n * p * (1 - p)), rel=1e-12)
    assert found.returns() == pytest.approx(
        {float(k): math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)}, abs=1e-14
    )


def test_sums_that_differ_by_rounding_are_one_value() -> None:
    law = pkd.evaluate(coins(40, 0.5, pay=0.1), only).returns()
    assert len(law) == 41
    assert list(law) == pytest.approx([k / 10 for k in range(41)], abs=1e-12)


@pytest.mark.parametrize("pay", [1e-15, 1e-300, 1e9])
def test_the_size_of_rewards_does_not_matter(pay: float) -> None:
    law = pkd.evaluate(coins(12, 0.5, pay=pay), only).returns()
    assert [v / pay for v in law] == pytest.approx(range(13))


def test_a_large_mean_costs_the_variance_no_digits() -> None:
    mdp = coins(10, 0.5)
    far = pkd.TabularMDP(mdp.transitions, mdp.rewards + 1e9, 10, start=mdp.start)
    assert pkd.evaluate(far, only).variance == pytest.approx(2.5, rel=1e-6)


def many_values(horizon: int = 24) -> pkd.TabularMDP:
    """Each toss pays a power of two of its own: 2^(horizon - 1) returns."""
    size = 2 * horizon
    p, r = [[[0.0] * size] for _ in range(size)], [[0.0] for _ in range(size)]
    for t in range(horizon):
        for s in (2 * t, 2 * t + 1):
            nexts = (2 * t + 2, 2 * t + 3) if t < horizon - 1 else (s, s)
            for s_next in nexts:
                p[s][0][s_next] += 0.5
        r[2 * t + 1][0] = 2.0**-t
    return pkd.TabularMDP(p, r, horizon)


def test_a_law_of_too_many_values_is_refused_and_may_be_joined() -> None:
    found = pkd.evaluate(many_values(), only)
    with pytest.raises(ModelError, match=r"may have 50,000\. Give returns\(tolerance=\.\.\.\)"):
        found.returns(max_values=50_000)
    law = found.returns(tolerance=0.01, max_values=50_000)
    mean = math.fsum(v * p for v, p in law.items())
    assert mean == pytest.approx(found, abs=1e-12)
    assert math.fsum(p * (v - mean) ** 2 for v, p in law.items()) == pytest.approx(
        found.variance, abs=1e-4
    )
    # The return is uniform over [0, 1): joining moves no value by more than the tolerance.
    below = 0.0
    for v, p in law.items():
        assert abs(v - below) <= 0.02
        below += p


def test_max_values_can_be_lowered_and_raised() -> None:
    found = pkd.evaluate(many_values(8), only)
    assert len(found.returns(max_values=128)) == 128
    with pytest.raises(ModelError, match=r"it may have 127\."):
        found.returns(max_values=127)


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, math.inf])
def test_a_tolerance_is_a_number_from_zero(tolerance: float) -> None:
    with pytest.raises(ModelError, match="expected a number >= 0"):
        pkd.evaluate(coins(2, 0.5), only).returns(tolerance=tolerance)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({0: 0.5, 7: 0.5}, "takes 7, expected one of [0], at step 1 in (x=0, y=None)"),
        ({0: 0.5}, "is {0: 0.5}, expected probabilities that sum to 1, at step 1 in (x=0, y=None)"),
        ({0: -1.0}, "is {0: -1.0}, expected probabilities that sum to 1, at step 1 in (x=0"),
        ({}, "is {}, expected probabilities that sum to 1, at step 1 in (x=0, y=None)"),
        ({0: "p"}, "is {0: 'p'}, expected probabilities that sum to 1, at step 1 in (x=0, y=None)"),
    ],
)
def test_a_bad_answer_of_a_policy_is_told(answer: Any, told: str) -> None:
    with pytest.raises(ModelError) as error:
        pkd.evaluate(pkd.TabularMDP([[[1.0]]], [[1.0]], 1), lambda h, x, y: answer)
    assert str(error.value).startswith(f"the policy {told}")


def test_an_evaluation_is_a_number() -> None:
    found = pkd.evaluate(coins(4, 0.5), only)
    assert isinstance(found, float)
    assert (found, repr(found), type(pickle.loads(pickle.dumps(found)))) == (2.0, "2.0", float)


def test_a_delayed_plan_knows_its_variance() -> None:
    delayed = pkd_delay.DelayedMDP.constant(coins(6, 0.5), 2)
    found = pkd_delay.plan(delayed).evaluate()
    assert found == pytest.approx(3.0)
    assert found.variance == pytest.approx(1.5)
