"""KL-UCRL, UCRL2, OPSRL and Bayes-UCBVI: both engines against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import beta

import pkd
from pkd.optimism import Pairs
from pkd.rules.literature import KLUCRL, OPSRL, UCRL2, BayesUCBVI
from tests import reference
from tests.planning.test_optimistic_plan import Bandit, Paid
from tests.queue_strategies import QueueCase, queue_cases
from tests.rules.test_optimism import TwoArms
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
BALLS = {"kl": KLUCRL(), "l1": UCRL2()}
DRAWN = [OPSRL(draws=3), BayesUCBVI(level=0.6, draws=5, weight=0.5)]


def assert_same_plan(plan: pkd.Plan, expected: reference.Values, case: Any) -> None:
    """Value, action values and actions are those of the definition."""
    slack = 1e-9 * case.scale
    assert plan.value == pytest.approx(expected.value, rel=0, abs=slack)
    for h, x, y in reference.decisions(case.model):
        values = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
        assert plan.values(h, x, y) == pytest.approx(values, rel=0, abs=slack)
        assert values[plan.action(h, x, y)] == pytest.approx(max(values.values()), abs=slack)


@both_engines
@pytest.mark.parametrize("kind", list(BALLS))
@settings(max_examples=30)
@given(case=cases(), episodes=st.sampled_from([1, 1000]), delta=st.sampled_from([0.01, 0.5]))
def test_balls_give_the_plans_of_the_definition(
    large: bool, kind: str, case: Case, episodes: int, delta: float
) -> None:
    plan = pkd.optimistic_plan(
        pkd.compile(case.model, large=large), case.counts, episodes=episodes, delta=delta,
        optimism=BALLS[kind],
    )  # fmt: skip
    expected = reference.over_balls(case.model, case.counts, kind, episodes, delta)
    assert_same_plan(plan, expected, case)


@pytest.mark.parametrize("kind", list(BALLS))
@settings(max_examples=20)
@given(case=queue_cases())
def test_balls_of_models_with_queues_give_the_plans_of_the_definition(
    kind: str, case: QueueCase
) -> None:
    compiled = pkd.compile(case.model, large=True)
    plan = pkd.optimistic_plan(compiled, case.counts, episodes=50, optimism=BALLS[kind])
    expected = reference.over_balls(case.model, case.counts, kind, 50, 0.05)
    assert plan.value == pytest.approx(expected.value, rel=0, abs=1e-9 * case.scale)


def read_draws(plan: pkd.Plan) -> tuple[dict[Any, Any], dict[Any, float]]:
    """The laws that a plan drew, {z: [(law, mass of the optimistic outcome)]}, and its means."""
    compiled, belief = plan.compiled, plan.belief
    laws = {}
    for row, z in enumerate(compiled.features):
        names = compiled.outcomes[row]
        laws[z] = [
            (dict(zip(names, draw[row, 1:], strict=False)), float(draw[row, 0]))
            for draw in belief.told
        ]
    means = [reward.feature for reward in compiled.rewards]
    return laws, dict(zip(means, belief.mean.tolist(), strict=True))


@both_engines
@pytest.mark.parametrize("rule", DRAWN, ids=lambda rule: rule.label)
@settings(max_examples=30)
@given(case=cases(), seed=st.integers(0, 3))
def test_draws_give_the_plans_of_the_definition(
    large: bool, rule: Any, case: Case, seed: int
) -> None:
    compiled = pkd.compile(case.model, large=large)
    plan = pkd.optimistic_plan(compiled, case.counts, episodes=9, optimism=rule, seed=seed)
    laws, means = read_draws(plan)
    for row in laws.values():
        for law, extra in row:
            assert sum(law.values()) + extra == pytest.approx(1.0, abs=1e-12)
    place = 1 if type(rule) is OPSRL else 3  # 2 of 5 draws lie above the quantile .6
    assert_same_plan(plan, reference.of_draws(case.model, laws, means, place), case)


@pytest.mark.parametrize("rule", DRAWN, ids=lambda rule: rule.label)
@settings(max_examples=20)
@given(case=queue_cases())
def test_both_engines_draw_the_same_laws(rule: Any, case: QueueCase) -> None:
    """The random numbers of a run are those of its seed, whatever the engine."""
    one, other = (
        pkd.optimistic_plan(
            pkd.compile(case.model, large=large), case.counts, episodes=9, optimism=rule, seed=1
        )
        for large in (False, True)
    )
    draws = [read_draws(plan) for plan in (one, other)]
    if one.compiled.features == other.compiled.features:
        assert draws[0] == draws[1]
        assert one.value == pytest.approx(other.value, rel=0, abs=1e-9 * case.scale)


@pytest.mark.parametrize("seed", range(30))
def test_the_l1_gain_solves_its_linear_programme(seed: int) -> None:
    """max q.v, q = p + up - down, sum(up + down) <= C, sum(q) = 1, q >= 0."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    p, v, c = rng.dirichlet(np.full(m, 0.5)), rng.normal(size=m), float(rng.uniform(0, 2.2))
    p[rng.integers(m)] = 0.0
    p /= p.sum()
    size = np.r_[np.ones(2 * m)]
    found = linprog(
        -np.r_[v, -v],
        A_ub=np.vstack([size, np.hstack([-np.eye(m), np.eye(m)])]),
        b_ub=np.r_[c, p],
        A_eq=np.r_[np.ones(m), -np.ones(m)][None],
        b_eq=[0.0],
    )
    one, row = np.ones(1), np.zeros(1, np.int64)
    pairs = Pairs(p[None], v[None], one, one, one, row, 1, np.array([c]))
    assert UCRL2().values(pairs)[0] - p @ v == pytest.approx(-found.fun, abs=1e-9)


def test_the_posterior_has_the_masses_of_a_beta_law() -> None:
    """Dirichlet(3, 7, 1): the mass of the optimistic outcome is Beta(1, 10), mean 1/11."""
    counts = {"arm": {0: 3, 1: 7}}
    rule = OPSRL(draws=4000)
    plan = pkd.optimistic_plan(TwoArms(), counts, episodes=1, optimism=rule, seed=5)
    draws = plan.belief.told[:, 0]
    for column, a in ((0, 1), (1, 3), (2, 7)):
        mean, deviation = beta.stats(a, 11 - a)[0], np.sqrt(beta.stats(a, 11 - a)[1] / 4000)
        assert draws[:, column].mean() == pytest.approx(float(mean), abs=4 * float(deviation))


def test_a_quantile_of_many_draws_is_that_of_the_posterior() -> None:
    """Outcomes 0 and 1 seen 30 and 70 times, and 1 once more: Beta(71, 30)."""
    rule = BayesUCBVI(level=0.9, draws=4000)
    plan = pkd.optimistic_plan(
        TwoArms(sure=-1.0), {"arm": {0: 30, 1: 70}}, episodes=1, optimism=rule, seed=2
    )
    assert plan.value == pytest.approx(float(beta.ppf(0.9, 71, 30)), abs=0.006)


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
def test_without_data_a_rule_hopes_for_the_best(rule: Any) -> None:
    for model, best in ((Bandit((1.0, 4.0)), 4.0), (Paid((0.0,)), 10.0)):
        plan = pkd.optimistic_plan(model, {}, episodes=10, optimism=rule)
        assert plan.value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
def test_with_endless_data_a_rule_believes_it(rule: Any) -> None:
    counts = {"pay": {-10.0: 3e11, 10.0: 7e11}, "arm": {0: 1e12}}
    plan = pkd.optimistic_plan(Paid((0.0,)), counts, episodes=10, optimism=rule)
    assert plan.value == pytest.approx(4.0, abs=1e-3)


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
@pytest.mark.parametrize("replan", ["doubling", "every"])
def test_a_rule_learns_a_small_problem(rule: Any, replan: Any) -> None:
    """The risky arm pays 1 with probability .8, the sure one .5."""
    run = pkd.learn(TwoArms(), {"arm": {0: 0.2, 1: 0.8}}, 3000, optimism=rule, replan=replan)
    assert run.policy_values[-1] == pytest.approx(0.8)
    assert run.label == rule.label


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: OPSRL(draws=0), "draws is 0"),
        (lambda: OPSRL(draws=2.5), "draws is 2.5"),
        (lambda: OPSRL(weight=0), "weight is 0"),
        (lambda: BayesUCBVI(level=1.5), "level=1.5"),
        (lambda: UCRL2(c=-1), "c is -1"),
        (lambda: KLUCRL(c="x"), "c is 'x'"),
    ],
)
def test_a_constant_that_makes_no_sense_is_refused(make: Any, wrong: str) -> None:
    with pytest.raises(pkd.ModelError, match=wrong):
        make()


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
def test_a_rule_outside_its_theorem_claims_nothing(rule: Any) -> None:
    assert rule.guarantee == "no guarantee"


class Doubtful(pkd.PythonRule):
    """It distrusts a seen arm until episode 20, and hopes from then on."""

    def values(self, pairs: Pairs) -> Any:
        return np.full(len(pairs.N), float(pairs.k >= 20))


CHANGING = [
    pkd.PosteriorSampling(), OPSRL(draws=1), BayesUCBVI(level=0.5, draws=1), Doubtful(),
]  # fmt: skip


def play_learner(rule: Any, seed: int) -> float:
    """The share of 200 episodes in which the learner takes the sure arm."""
    rng, safe = np.random.default_rng(seed), 0
    learner = pkd.OptimisticLearner(TwoArms(), optimism=rule, seed=seed)
    for _ in range(200):
        action = learner.act(1, 0, "choice")
        safe += action == "sure"
        x = int(action == "risky" and rng.random() < 0.8)
        learner.observe([pkd.Transition(0, "choice", action, x, "paid")])
    return safe / 200


@pytest.mark.parametrize("rule", CHANGING, ids=lambda rule: rule.name)
def test_a_rule_whose_plan_changes_without_data_does_not_stay_with_the_safe_arm(rule: Any) -> None:
    """The sure arm teaches nothing. A rule that waits for counts takes it for ever: .3 each time.

    Sampling from Beta(1 + heads, 1 + tails) with .8 heads soon prefers the bet, whatever the seed.
    """
    law = {"arm": {0: 0.2, 1: 0.8}}
    for seed in range(20):
        run = pkd.learn(TwoArms(), law, 200, optimism=rule, seed=seed)
        assert run.regret[-1] < 0.3 * 200 / 2
        assert len(run.plans) == 200
    assert run.config["replan"] == "every"
    assert max(play_learner(rule, seed) for seed in range(20)) < 0.5


def test_every_way_to_run_a_sampler_draws_before_every_episode() -> None:
    problem = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]]] * 2, [[0.0, 0.0], [1.0, 1.0]], 2)
    agents = ["posterior", "opsrl", "bayes-ucbvi", "practical"]
    found = pkd.experiment({"coin": problem}, agents, 30, 2)
    for record in found:
        drawn = not record.label.startswith("MVP")
        assert record.config["replan"] == ("every" if drawn else "doubling")
        assert (len(record.plans) == 30) == drawn


@pytest.mark.parametrize(
    ("replan", "plans"), [("features=4", 32), ("total", 6), ("features=2,period=8", None)]
)
def test_a_sampler_keeps_a_growth_or_a_period_that_was_asked_for(replan: str, plans: Any) -> None:
    """Plans at 1, 2, 3, 5, 9, 17 for "total"; the schedule of counts alone is "every"."""
    law = {"arm": {0: 0.2, 1: 0.8}}
    run = pkd.learn(TwoArms(), law, 32, optimism=pkd.PosteriorSampling(), replan=replan)
    assert run.config["replan"] == ("every" if replan == "features=4" else replan)
    if plans:
        assert len(run.plans) == plans
    else:
        assert np.diff(run.plans).max() <= 8
