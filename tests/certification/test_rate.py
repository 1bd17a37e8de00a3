"""The rule of the data rate, `Certified(rate=...)`: estimates where data come fast enough."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import pkd
from pkd.engine.exogenous import settle
from pkd.learning import learn as learning
from pkd.learning.algorithm import Learning
from pkd.planning.estimator import Estimator, prove
from pkd.planning.plan import seed_words
from pkd.theory.certified import LOSS, certified_bound, largest_evidence
from tests import reference
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
RATE = pkd.Certified(rate=0.05)


def find_most(compiled: Any, counts: Any, delta: float = 0.1) -> list[float]:
    proving = Estimator(compiled, prove(compiled), None, delta)
    proving.fill(compiled.tally(counts), seed_words(0), rank=True)
    number = len(compiled.features) + len(compiled.rewards)
    return [compiled.find_visits(proving.belief, z, most=True) for z in range(number)]


@both_engines
@given(case=cases())
@settings(max_examples=25)
def test_no_policy_and_no_law_that_is_left_visits_a_feature_more_often(
    large: bool, case: Case
) -> None:
    """Without data every law is left, so any law will do; with many samples only the truth is."""
    compiled = pkd.compile(case.model, large=large)
    most = find_most(compiled, {})
    met = reference.reachable(case.model)
    for seed in range(3):
        rng = random.Random(seed)
        law = dict(case.law)
        for z in met.features:
            masses = {x: rng.random() ** 3 + 1e-9 for x in case.model.outcomes(z)}
            law[z] = {x: mass / sum(masses.values()) for x, mass in masses.items()}
        for i, z in enumerate(compiled.features):
            assert most[i] >= reference.visits(case.model, law, z, max) - 1e-9
    plenty = {z: {x: 1e14 * p for x, p in case.law[z].items() if p} for z in compiled.features}
    for z, found in zip(compiled.features, find_most(compiled, plenty), strict=False):
        assert found == pytest.approx(reference.visits(case.model, case.law, z, max), abs=1e-3)


def make_learning(counts: Any, done: int) -> Learning:
    model = pkd.as_problem("pricing").model()
    learner = Learning(pkd.compile(model), RATE, None, 0.05, 0, counts)
    learner.done = done
    learner.replan()
    return learner


def test_estimates_are_taken_for_all_features_or_for_none() -> None:
    """A quantity: N(z) >= rate k most(z) for each z, counted by hand at both sides of it."""
    compiled = pkd.compile(pkd.as_problem("pricing").model())
    outcomes = dict(zip(compiled.features, compiled.outcomes, strict=True))
    even = {z: dict.fromkeys(states, 1e6) for z, states in outcomes.items()}
    most = find_most(compiled, even, 0.05)
    samples = {z: sum(row.values()) for z, row in even.items()}
    least = min(n / bound for n, bound in zip(samples.values(), most, strict=True))
    k = math.floor(least / 0.05 * (1 - 1e-9))  # the last episode with enough of each
    assert make_learning(even, k - 1).belief.exogenous.all()
    assert not make_learning(even, k + 1).belief.exogenous.any()
    missing = {z: row for z, row in even.items() if z != compiled.features[-1]}
    assert not make_learning(missing, 0).belief.exogenous.any()


def test_regret_falls_and_reported_values_stay_certified() -> None:
    for name in ("gambler", "wind"):
        plain = pkd.learn(name, 3000, seed=1)
        run = pkd.learn(name, 3000, seed=1, optimism=RATE)
        assert run.regret[-1] < 0.5 * plain.regret[-1]
        assert run.violations == run.lower_violations == 0
        assert run.policy is not None
        assert run.upper_values[-1] > run.policy.value  # the plan's own value is no upper one
        assert np.diff(run.plans[run.plans > 0]).max() > 1
        assert all(b <= max(2 * a, a + 1) for a, b in zip(run.plans, run.plans[1:], strict=False))


def test_it_plans_with_sets_alone_and_is_off_where_a_run_stops_at_a_gap() -> None:
    compiled = pkd.compile(pkd.as_problem("riverswim").model())
    bonus = settle(compiled, RATE)
    assert (bonus.free, bonus.parts, bonus.rate) == (np.inf, 1, 0.05)
    one, other = (
        pkd.learn("riverswim", until=3.0, seed=1, optimism=rule) for rule in (pkd.Certified(), RATE)
    )
    assert not one.differences(other)


@pytest.mark.parametrize("replan", ["auto", "every"])
def test_a_stopped_run_goes_on_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replan: str
) -> None:
    whole = pkd.learn("gambler", 400, seed=4, optimism=RATE, replan=replan)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    path = tmp_path / "run.npz"
    pkd.learn("gambler", 150, seed=4, optimism=RATE, replan=replan, checkpoint=path)
    again = pkd.learn("gambler", 400, seed=4, optimism=RATE, replan=replan, checkpoint=path)
    assert not again.differences(whole)
    with pytest.raises(pkd.ModelError, match="optimism"):
        pkd.learn("gambler", 400, seed=4, replan=replan, checkpoint=path)


def test_a_saved_learner_goes_on_with_the_same_plans(tmp_path: Path) -> None:
    problem = pkd.as_problem("gambler")
    learner = pkd.OptimisticLearner(problem.model(), optimism=RATE)
    for k in range(40):
        learner.observe(pkd.Simulator(problem.model(), problem.law(), seed=k).episode(learner.plan))
    learner.save(tmp_path / "learner.npz")
    again = pkd.OptimisticLearner.load(tmp_path / "learner.npz", problem.model())
    assert np.isfinite(learner._learning.most).all()
    assert again._learning.most.tolist() == learner._learning.most.tolist()
    assert again._learning.looked == learner._learning.looked > 1
    for k in range(40, 80):
        for each in (learner, again):
            each.observe(pkd.Simulator(problem.model(), problem.law(), seed=k).episode(each.plan))
    assert learner.plan.value == again.plan.value
    assert learner.plans == again.plans
    assert learner.upper_value >= pkd.plan(problem).value


def test_the_bound_has_one_more_term() -> None:
    model, K, c = pkd.as_problem("gambler").model(), 1000.0, 0.05
    found = pkd.theory.bounds.ModelBound.of(model)
    most, width = found.visits, found.width
    beta = math.log(2 / 0.05) + largest_evidence(2, 2, K * most)
    tail = max(math.log(1 / 0.05), 1.0)
    expected = width * (
        4 * LOSS * math.sqrt(K * most * beta) + 2 * LOSS * tail * most
        + 2 * math.sqrt(beta * most * K / c)
    )  # fmt: skip
    assert certified_bound(model, K, rate=c) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, 1.0, -1, "much"])
def test_a_rate_lies_between_0_and_1(rate: Any) -> None:
    with pytest.raises(pkd.ModelError, match="rate"):
        pkd.Certified(rate=rate)
    with pytest.raises(pkd.ModelError, match="explore"):
        pkd.Certified(rate=0.1, explore="everywhere")


def test_files_say_nothing_of_a_rate_that_was_not_asked_for() -> None:
    assert "rate" not in pkd.Certified().to_config()
    assert pkd.rules.from_config(RATE.to_config()) == RATE
    assert "rate 0.05" in RATE.name
