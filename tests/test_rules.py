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
from pkd.engine.set_values import gain_l1, sort_gaps
from tests import reference
from tests.queue_strategies import QueueCase, queue_cases
from tests.strategies import Case, cases
from tests.test_optimism import TwoArms
from tests.test_optimistic_plan import Bandit, Paid

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
BALLS = {"kl": pkd.KLUCRL(), "l1": pkd.UCRL2()}
DRAWN = [pkd.OPSRL(draws=3), pkd.BayesUCBVI(level=0.6, draws=5, weight=0.5)]


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
    ptr, size = compiled.row_ptr, len(compiled.features)
    laws = {}
    for row, z in enumerate(compiled.features):
        names, at = compiled.outcomes[row], slice(int(ptr[row]), int(ptr[row + 1]))
        laws[z] = [
            (dict(zip(names, draw[at], strict=True)), float(draw[int(ptr[size]) + row]))
            for draw in belief.draws
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
    place = 1 if isinstance(rule, pkd.OPSRL) else 3  # 2 of 5 draws lie above the quantile .6
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
    gaps, order = v.max() - v, np.arange(m)
    sort_gaps(gaps, m, order)
    assert (np.diff(gaps[order]) <= 0).all()
    mean = float(p @ gaps)
    assert min(gain_l1(p, 0, 1, gaps, order, m, c), mean) == pytest.approx(-found.fun, abs=1e-9)


def test_the_posterior_has_the_masses_of_a_beta_law() -> None:
    """Dirichlet(3, 7, 1): the mass of the optimistic outcome is Beta(1, 10), mean 1/11."""
    counts = {"arm": {0: 3, 1: 7}}
    rule = pkd.OPSRL(draws=4000)
    plan = pkd.optimistic_plan(TwoArms(), counts, episodes=1, optimism=rule, seed=5)
    draws = plan.belief.draws
    for column, a in ((0, 3), (1, 7), (2, 1)):
        mean, deviation = beta.stats(a, 11 - a)[0], np.sqrt(beta.stats(a, 11 - a)[1] / 4000)
        assert draws[:, column].mean() == pytest.approx(float(mean), abs=4 * float(deviation))


def test_a_quantile_of_many_draws_is_that_of_the_posterior() -> None:
    """Outcomes 0 and 1 seen 30 and 70 times, and 1 once more: Beta(71, 30)."""
    rule = pkd.BayesUCBVI(level=0.9, draws=4000)
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


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
def test_a_run_and_its_plan_survive_a_file(rule: Any, tmp_path: Any) -> None:
    run = pkd.learn("riverswim", 200, optimism=rule)
    run.save(tmp_path / "run.npz")
    again = pkd.Run.load(tmp_path / "run.npz", "riverswim")
    assert run.differences(again) == []
    assert again.label == rule.label
    assert run.policy is not None
    assert again.policy is not None
    run.policy.save(tmp_path / "plan.npz")
    for plan in (again.policy, pkd.Plan.load(tmp_path / "plan.npz", "riverswim")):
        for x, y in run.policy.states(3):
            assert plan.values(3, x, y) == run.policy.values(3, x, y)


@pytest.mark.parametrize("rule", DRAWN, ids=lambda rule: rule.label)
def test_a_run_that_was_stopped_goes_on_with_the_same_draws(
    rule: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pkd.learn("riverswim", 40, optimism=rule)
    from pkd import learning

    class StopError(Exception):
        pass

    def save_and_stop(trial: learning.Trial, path: Any) -> None:
        save(trial, path)
        if 0 < trial.done < 40:
            raise StopError

    save = learning.Trial.save
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(learning.Trial, "save", save_and_stop)
    for _ in range(100):
        try:
            again = pkd.learn("riverswim", 40, optimism=rule, checkpoint=tmp_path / "c.npz")
            break
        except StopError:
            continue
    assert whole.differences(again) == []


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: pkd.OPSRL(draws=0), "draws=0"),
        (lambda: pkd.OPSRL(draws=2.5), "draws=2.5"),
        (lambda: pkd.OPSRL(weight=0), "weight=0"),
        (lambda: pkd.BayesUCBVI(level=1.5), "level=1.5"),
        (lambda: pkd.UCRL2(c=-1), "c=-1"),
        (lambda: pkd.KLUCRL(c="x"), "c='x'"),
    ],
)
def test_a_constant_that_makes_no_sense_is_refused(make: Any, wrong: str) -> None:
    with pytest.raises(pkd.ModelError, match=wrong):
        make()


@pytest.mark.parametrize("rule", [*BALLS.values(), *DRAWN], ids=lambda rule: rule.label)
def test_a_rule_outside_its_theorem_claims_nothing(rule: Any) -> None:
    assert rule.guarantee == "no guarantee"
