"""Exploring only where acting decides what is learned: `Certified(explore="needed")`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd.engine.exogenous import find_exogenous, settle
from pkd.episode import Episode, list_samples, list_visited
from pkd.planning.plan import make_plan, seed_words
from tests import reference
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
EVERYWHERE = pkd.Certified(explore="everywhere")


@both_engines
@given(case=cases(), seed=st.integers(0, 9), exact=st.booleans())
def test_a_feature_that_is_not_explored_has_the_value_of_its_estimate(
    large: bool, case: Case, seed: int, exact: bool
) -> None:
    """Whichever features they are, with data or without; the others have their sets alone."""
    compiled = pkd.compile(case.model, large=large)
    names = [*compiled.features, *compiled.reward_index]
    chosen = np.array([random.Random(seed + i).random() < 0.5 for i in range(len(names))], np.bool_)
    bonus = pkd.Certified(minimax=False, exact=True).bonus()
    bonus = attrs.evolve(bonus, exogenous=chosen)
    belief = compiled.optimistic(bonus, 1, 0.1)
    limits = compiled.reward_bonus(bonus, 1, 0.1)
    compiled.estimate(belief, compiled.tally(case.counts), bonus, limits, seed_words(0))
    fixed = {z for z, is_fixed in zip(names, chosen.tolist(), strict=True) if is_fixed}
    expected = reference.certified(case.model, case.counts, 0.1, fixed=fixed)
    plan = make_plan(compiled, belief)
    assert plan.value == pytest.approx(expected.value, rel=0, abs=1e-8 * case.scale)
    quick = make_plan(compiled, belief._replace(rounds=1)).value
    assert quick >= plan.value - 1e-9 * case.scale


@both_engines
def test_the_rule_takes_exogenous_features_as_they_are_estimated(large: bool) -> None:
    compiled = pkd.compile(pkd.as_problem("spot_autoscaler").model(), large=large)
    bonus = settle(compiled, pkd.Certified())
    assert bonus.exogenous is not None
    assert (bonus.exogenous == find_exogenous(compiled)).all()
    assert (bonus.free, bonus.parts) == (np.inf, 1)  # no MVP-Est, so no second part of delta
    assert settle(compiled, EVERYWHERE) == EVERYWHERE.bonus()


def test_where_nothing_is_exogenous_both_rules_are_one() -> None:
    for name in ("riverswim", "pricing"):
        one, other = (
            pkd.learn(name, 200, seed=3, optimism=rule) for rule in (pkd.Certified(), EVERYWHERE)
        )
        for part in ("upper_values", "lower_values", "policy_values", "returns"):
            assert (getattr(one, part) == getattr(other, part)).all()


def test_the_value_of_a_mixed_plan_is_never_shown_as_an_upper_value(tmp_path: Path) -> None:
    """Such values fall below V* in the very runs whose upper values hold."""
    problem, below = pkd.as_problem("inventory"), 0
    model, optimum = problem.model(), pkd.plan(problem).value
    learner = pkd.OptimisticLearner(model)
    for k in range(30):
        below += learner.plan.value < optimum
        assert learner.upper_value >= optimum
        learner.observe(pkd.Simulator(model, problem.law(), seed=k).episode(learner.plan))
    assert below > 0
    for replan in ("doubling", "every"):
        run = pkd.learn(problem, 60, seed=1, replan=replan)
        assert run.violations == 0
        assert run.lower_values is not None
        assert (run.lower_values <= optimum).all()
        assert run.policy is not None
        assert run.upper_values[-1] != run.policy.value
        run.save(tmp_path / "run.npz")
        again = pkd.Run.load(tmp_path / "run.npz", model).policy
        assert again is not None
        x, y = next(again.states(1))
        assert again.value == run.policy.value
        assert again.values(1, x, y) == run.policy.values(1, x, y)


@both_engines
@pytest.mark.parametrize("name", ["battery", "admission"])
def test_the_fused_loop_has_the_same_bits(
    name: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = pkd.as_problem(name)
    compiled = pkd.compile(problem.model(), large=large)
    fused = pkd.learn(compiled, problem.law(), 40, replan="every", seed=2)
    monkeypatch.setattr(type(compiled), "fused_loop", lambda self, trial: None)
    plain = pkd.learn(compiled, problem.law(), 40, replan="every", seed=2)
    assert (fused.policy_values == plain.policy_values).all()
    assert (fused.returns == plain.returns).all()


# -- who teaches what it visits --------------------------------------------------------------------


class Bet(pkd.PartiallyKnownMDP):
    """A coin is tossed whatever is done, but only who bets on it is told how it fell."""

    horizon = 1

    def start(self) -> Any:
        return None, "choose"

    def actions(self, x: Any, y: Any) -> Any:
        return {"choose": ["pass", "bet"], "over": pkd.END}.get(y, pkd.CHANCE)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, "coin") if y == "choose" else (1.0, "over", pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return {"bet": float(x or 0), "pass": 0.6}.get(y, 0.0)

    def samples(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        first = episode.transitions[0]
        if first.action == "bet":
            yield "coin", first.x_next


class Claims(Bet):
    """The same with a false claim."""

    samples_cover_visits = True


def test_what_is_taught_only_after_a_bet_is_explored() -> None:
    """The coin is exogenous; but a learner that takes it as estimated, even, never bets."""
    law = {"coin": {0: 0.3, 1: 0.7}}
    assert find_exogenous(pkd.compile(Bet())).all()
    assert settle(pkd.compile(Bet()), pkd.Certified()).exogenous is None
    found = pkd.learn(Bet(), law, 1000, seed=1).regret
    assert found[-1] - found[499] < 1.0
    stuck = pkd.learn(Claims(), law, 1000, seed=1).regret
    assert stuck[-1] == pytest.approx(100.0)


def test_observations_that_never_come_back_do_not_cover_visits() -> None:
    base = pkd.as_problem("admission").model()
    for returned in (True, False):
        model = pkd.Missing(base, 0.5, returned, longest=1)
        covers = model.samples is None or model.samples_cover_visits
        assert covers is returned


@pytest.mark.parametrize("revealed", [True, False])
@pytest.mark.parametrize("form", [pkd_delay.InterArrival, pkd_delay.Lags])
@pytest.mark.parametrize("shared", [False, True])
def test_delays_teach_every_feature_at_least_as_often_as_they_visit_it(
    revealed: bool, form: Any, shared: bool
) -> None:
    chain = pkd.as_problem("two_state_chain")
    law = form({0: 0.4, 1: 0.3, 2: 0.3})
    given = {"delay_feature": lambda x, y, a: None} if shared else {}
    model = pkd_delay.UnknownDelay(chain.model(), 2, 2, form=form, revealed=revealed, **given)
    assert model.samples_cover_visits
    truth = pkd_delay.hindsight.DelayLaw(chain.law(), law, model)
    for episode in pkd.simulate((model, truth), lambda h, x, y: h % 2, 200, seed=2):
        visited, taught = (
            Counter(list_visited(model, episode)),
            Counter(list_samples(model, episode)),
        )
        assert visited <= taught


def test_a_hidden_feature_that_covers_no_visits_is_not_passed_on() -> None:
    """A delay of a base with samples of its own covers visits only where the base does."""
    for base, covers in ((Bet(), False), (Claims(), True)):
        assert (
            pkd_delay.UnknownDelay(base, 1, 1, instead=lambda x, y, a: a).samples_cover_visits
            is covers
        )


# -- B(z) below the outcomes, certified values with every rule ---------------------------------


class Urn(pkd.PartiallyKnownMDP):
    """Three balls may be drawn, of which only two are in the urn; a guess pays if it is right."""

    horizon = 3

    def start(self) -> Any:
        return None, "guess"

    def actions(self, x: Any, y: Any) -> Any:
        return [0, 1, 2] if y == "guess" else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, "ball") if y == "guess" else (1.0, "guess", pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return (0, 1, 2)

    def branching(self, z: Any) -> int:
        return 2

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x is not None and x == y)


def test_regret_is_flat_where_fewer_outcomes_are_possible_than_there_are() -> None:
    run = pkd.learn(Urn(), {"ball": {1: 0.4, 2: 0.6}}, 2000, seed=1)
    assert settle(pkd.compile(Urn()), pkd.Certified()).exogenous is not None
    assert run.regret[-1] == run.regret[999]


@pytest.mark.parametrize(
    "rule", [pkd.Greedy(), pkd.MVP.practical(), pkd.PosteriorSampling()], ids=lambda rule: rule.name
)
def test_certified_values_hold_with_every_rule(rule: pkd.Optimism) -> None:
    run = pkd.learn("admission", 200, optimism=rule, certify=True, seed=2)
    assert run.violations == run.lower_violations == 0
    assert run.interval is not None
    assert run.interval.low <= run.optimal_value <= run.interval.high
    silent = pkd.learn("admission", 200, optimism=rule, seed=2)
    assert silent.lower_values is None
    assert (silent.returns == run.returns).all()
    assert silent.interval is not None


@pytest.mark.parametrize("rule", [pkd.Certified(), pkd.Greedy()], ids=lambda rule: rule.name)
def test_a_run_of_any_rule_stops_at_a_certified_gap(rule: pkd.Optimism) -> None:
    run = pkd.learn("admission", until=30.0, optimism=rule, seed=2)
    assert run.interval is not None
    assert run.gap <= 30.0
    loss = run.optimal_value - pkd.evaluate("admission", run.interval.robust)
    assert loss <= 30.0
