"""Certified values: both engines against the definition, and bounds around the optimum."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from pkd.engine import Compiled
from pkd.engine.belief import Belief
from pkd.planning.plan import make_plan, seed_words
from tests import reference
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
RULES = [pkd.Certified(exact=True), pkd.Certified(minimax=False, exact=True)]


def least_belief(compiled: Compiled, counts: Any, rule: pkd.Certified, delta: float) -> Belief:
    """The belief of a pessimistic sweep."""
    bonus = rule.bonus()
    belief = compiled.pessimistic(compiled.optimistic(bonus, 100, delta))
    limits = compiled.reward_bonus(bonus, 100, delta)
    compiled.estimate(belief, compiled.tally(counts), bonus, limits, seed_words(0))
    return belief


@both_engines
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.label)
@given(case=cases(), delta=st.sampled_from([0.01, 0.5]))
def test_upper_values_are_those_of_the_definition(
    rule: pkd.Certified, large: bool, case: Case, delta: float
) -> None:
    compiled, episodes = pkd.compile(case.model, large=large), 100 if rule.minimax else None
    expected = reference.certified(case.model, case.counts, delta, episodes=episodes)
    plan = pkd.optimistic_plan(compiled, case.counts, episodes=100, delta=delta, optimism=rule)
    close = {"rel": 0, "abs": 1e-8 * case.scale}
    assert plan.value == pytest.approx(expected.value, **close)
    for h, x, y in reference.decisions(case.model):
        values = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
        assert plan.values(h, x, y) == pytest.approx(values, **close)
        assert values[plan.action(h, x, y)] == pytest.approx(max(values.values()), **close)


@both_engines
@given(case=cases(), delta=st.sampled_from([0.01, 0.5]))
def test_lower_values_are_those_of_the_definition(large: bool, case: Case, delta: float) -> None:
    compiled = pkd.compile(case.model, large=large)
    expected = reference.certified(case.model, case.counts, delta, least=True)
    belief = least_belief(compiled, case.counts, RULES[1], delta)
    plan = make_plan(compiled, belief)
    close = {"rel": 0, "abs": 1e-8 * case.scale}
    assert plan.value == pytest.approx(expected.value, **close)
    for h, x, y in reference.decisions(case.model):
        values = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
        assert plan.values(h, x, y) == pytest.approx(values, **close)


@both_engines
@given(case=cases(), least=st.booleans())
def test_a_fixed_policy_has_the_values_of_the_definition(
    large: bool, case: Case, least: bool
) -> None:
    compiled = pkd.compile(case.model, large=large).plain

    def last(h: int, x: Any, y: Any) -> Any:
        return tuple(case.model.actions(x, y))[-1]

    expected = reference.certified(case.model, case.counts, 0.1, least=least, policy=last)
    rule = RULES[1]
    belief = least_belief(compiled, case.counts, rule, 0.1)
    if not least:
        belief = pkd.optimistic_plan(
            compiled, case.counts, episodes=100, delta=0.1, optimism=rule
        ).belief
    value, _ = compiled.sweep(belief, compiled.tabulate(last), follow=True)
    assert value == pytest.approx(expected.value, rel=0, abs=1e-8 * case.scale)


@both_engines
@given(case=cases())
def test_the_quick_form_is_at_least_the_exact_one(large: bool, case: Case) -> None:
    compiled = pkd.compile(case.model, large=large)
    for minimax in (False, True):
        exact, quick = (
            pkd.optimistic_plan(
                compiled, case.counts, episodes=100,
                optimism=pkd.Certified(minimax=minimax, exact=exact),
            ).value
            for exact in (True, False)
        )  # fmt: skip
        assert quick >= exact - 1e-9 * case.scale


@both_engines
@given(case=cases())
def test_the_quick_lower_form_is_at_most_the_exact_one(large: bool, case: Case) -> None:
    compiled = pkd.compile(case.model, large=large)
    exact, quick = (
        make_plan(compiled, least_belief(compiled, case.counts, rule, 0.05)).value
        for rule in (pkd.Certified(minimax=False, exact=True), pkd.Certified(minimax=False))
    )
    assert quick <= exact + 1e-9 * case.scale


@given(case=cases(data="none"))
def test_without_data_the_interval_is_everything_that_can_happen(case: Case) -> None:
    compiled = pkd.compile(case.model, large=False)
    plan = pkd.optimistic_plan(compiled, {}, episodes=10, optimism=pkd.Certified())
    best = pkd.plan(compiled, case.law).value
    least = make_plan(compiled, least_belief(compiled, {}, pkd.Certified(), 0.05)).value
    assert least <= best + 1e-9 * case.scale
    assert best <= plan.value + 1e-9 * case.scale


@both_engines
def test_runs_agree_whatever_the_engine(large: bool) -> None:
    """The fused loop, the plain loop and the engines agree; exact values do so to rounding."""
    problem = pkd.as_problem("riverswim")
    compiled = pkd.compile(problem.model(), large=large)
    run = pkd.learn(compiled, problem.law(), 40, optimism=pkd.Certified(exact=True), replan="every")
    counts = run.counts
    upper = pkd.optimistic_plan(
        problem.model(), counts, episodes=40, optimism=pkd.Certified(exact=True)
    ).value
    again = pkd.optimistic_plan(
        compiled, counts, episodes=40, optimism=pkd.Certified(exact=True)
    ).value
    assert again == pytest.approx(upper, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "guarantee"),
    [
        (pkd.MVP(), "as published"),
        (pkd.MVP.practical(), "no guarantee"),
        (pkd.MVP(log_factor=1.0), "no guarantee"),
        (pkd.Hoeffding(), "as published"),
        (pkd.Hoeffding(c=1), "no guarantee"),
        (pkd.Greedy(), "no guarantee"),
        (pkd.PosteriorSampling(), "no guarantee"),
        (pkd.Certified(), "certified"),
        (pkd.Certified(minimax=False, exact=True), "certified"),
    ],
)
def test_every_rule_says_what_it_guarantees(rule: pkd.Optimism, guarantee: str) -> None:
    assert rule.guarantee == guarantee


def test_a_certified_plan_survives_a_file(tmp_path: Any) -> None:
    model = pkd.as_problem("riverswim").model()
    plan = pkd.optimistic_plan(
        model, {(0, 0): {0: 5}}, episodes=9, optimism=pkd.Certified(exact=True)
    )
    plan.save(tmp_path / "plan.npz")
    found = pkd.Plan.load(tmp_path / "plan.npz", model)
    assert found.values(1, 0, None) == plan.values(1, 0, None)


def test_least_values_of_another_rule_are_refused() -> None:
    compiled = pkd.compile(pkd.as_problem("riverswim").model())
    with pytest.raises(pkd.ModelError, match="least values need a certified belief"):
        compiled.pessimistic(compiled.optimistic(pkd.MVP().bonus(), 10, 0.05))


@both_engines
@given(case=cases())
def test_a_certificate_holds_the_values_of_the_definition(large: bool, case: Case) -> None:
    compiled = pkd.compile(case.model, large=large)
    found = pkd.certify(compiled, case.counts, delta=0.1)
    high = reference.certified(case.model, case.counts, 0.1).value
    low = reference.certified(case.model, case.counts, 0.1, least=True).value
    close = {"rel": 0, "abs": 1e-8 * case.scale}
    assert (found.low, found.high) == pytest.approx((low, high), **close)
    # The robust plan attains the lower value, and a policy is worth no more than the best one.
    own = pkd.certify(compiled, case.counts, policy=found.plan, delta=0.1)
    assert own.low == pytest.approx(low, **close)
    assert own.high <= found.high + 1e-8 * case.scale


@pytest.mark.parametrize("name", ["riverswim", "pricing", "gambler"])
def test_certificates_of_a_run_hold_the_optimum_and_its_policy(name: str) -> None:
    problem = pkd.as_problem(name)
    model, law = pkd.compile(problem.model()), problem.law()
    for episodes in (1, 30, 1000):
        run = pkd.learn(problem, episodes, optimism=pkd.Certified(), seed=5)
        found = pkd.certify(model, run.counts)
        assert found.low <= run.optimal_value <= found.high
        robust = pkd.evaluate(model, law, found.plan)
        own = pkd.certify(model, run.counts, policy=found.plan)
        assert own.low <= robust <= own.high


def test_a_learner_knows_how_far_it_is_from_the_optimum() -> None:
    """U_1 - L_1 shrinks with more samples and bounds how far the robust plan is from the best."""
    problem = pkd.as_problem("riverswim")
    model, law, gaps = pkd.compile(problem.model()), problem.law(), list[float]()
    best = pkd.plan(model, law).value
    for n in (10, 1000, 100_000):
        counts = {z: {x: n * p for x, p in row.items()} for z, row in law.items()}
        learner = pkd.OptimisticLearner(model, 10, optimism=pkd.Certified(), counts=counts)
        gaps.append(learner.gap)
        assert learner.lower_value <= best <= learner.upper_value
        assert best - pkd.evaluate(model, law, learner.robust_plan) <= learner.gap + 1e-9
    assert gaps == sorted(gaps, reverse=True)


def test_a_plan_counts_its_episodes_by_the_samples_that_it_is_given() -> None:
    """600,000 samples are those of 200,000 episodes at least, whatever `episodes` says."""
    model = pkd.as_problem("riverswim").model()
    counts = {(1, 1): {1: 500_000, 2: 100_000}}
    least = -(-600_000 // model.horizon)
    said, meant, more = (
        pkd.optimistic_plan(model, counts, episodes=k, optimism=pkd.Certified()).belief.ell
        for k in (1, least, 2 * least)
    )
    assert (said == meant).all()
    assert (more > meant).any()
