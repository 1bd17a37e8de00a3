"""Learning by plans between bounds: limits, dreams, runs, environments."""

import math

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import ModelError
from pkd_delay import Delayed, DelayedMDP
from pkd_delay.envs.drive import drive
from pkd_delay.long.learning import LongLearner, find_lower
from pkd_delay.long.line import make_line
from pkd_delay.long.plan import plan_table
from pkd_delay.long.table import DREAM, find_range, make_optimistic_table, make_table
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import riverswim, two_state_chain
from tests.delay.long.test_bounds import random_table
from tests.delay.strategies import TableBase, sparse_rows

ROUNDING = 1e-6


def lower(rng, law):
    """Each probability times a random part of it; the dream has the rest."""
    rows = {}
    for z, row in law.items():
        kept = {x: p * rng.choice([0.0, 0.5, 0.9, 1.0]) for x, p in row.items() if p > 0.0}
        rows[z] = {**kept, DREAM: 1.0 - math.fsum(kept.values())}
    return rows


def plan_optimistic(delayed, law):
    table = make_optimistic_table(delayed, law)
    limits = {"seconds": 20.0, "memory": None, "delta": 0.0}
    return plan_table(delayed, table, make_line(delayed), 0.0, **limits)


def random_delay(rng, D):
    return {D: 1.0} if rng.integers(2) else dict(enumerate(sparse_rows(rng, (), 3).tolist()))


@pytest.mark.parametrize("seed", range(40))
def test_a_dream_is_worth_no_less_and_at_most_its_chance_times_the_range_more(seed):
    """The second half is the regret of one episode: u(s, a) is paid as a reward, exactly."""
    rng = np.random.default_rng(seed)
    H, D = int(rng.integers(1, 7)), int(rng.integers(0, 4))
    S, A = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    mdp = random_table(rng, S, A, H)
    delay = random_delay(rng, D)
    delayed = DelayedMDP(mdp, delay, D)
    truth = mdp.law()
    law = lower(rng, {z: truth(z) if callable(truth) else truth[z] for z in delayed.facts.features})
    plan = plan_optimistic(delayed, law)
    optimum = pkd_delay.plan(delayed).value
    assert plan.high >= optimum - ROUNDING
    u = np.zeros((S, A))
    for (s, a), row in law.items():
        u[s, a] = row[DREAM]
    known, here = delayed.known(), delayed.law()
    earned = pkd.evaluate(known, here, plan.act)
    counting = DelayedMDP(pkd.TabularMDP(mdp.transitions, u, H, mdp.start), delay, D)
    met = pkd.evaluate(counting.known(), counting.law(), plan.act)
    assert plan.low - earned <= find_range(delayed) * met + ROUNDING


@pytest.mark.parametrize("seed", range(30))
def test_a_dream_is_worth_no_less_in_a_base_with_chance_ends_and_final_pay(seed):
    rng = np.random.default_rng(seed)
    H, D = int(rng.integers(1, 5)), int(rng.integers(0, 4))
    ends, chance_start = (bool(rng.integers(2)) for _ in range(2))
    base = TableBase(rng, 2, H, ends=ends, chance_start=chance_start)
    law = {f"z{i}": dict(enumerate(sparse_rows(rng, (), 2).tolist())) for i in range(3)}
    delayed = Delayed((base, law), sparse_rows(rng, (), 4), D)
    plan = plan_optimistic(delayed, lower(rng, law))
    assert plan.high >= pkd_delay.plan(delayed).value - ROUNDING


def test_without_a_dream_the_optimistic_table_is_the_true_one():
    late = Delayed.constant(autoscaler(horizon=12).problem, 6)
    true = plan_table(late, make_table(late), make_line(late), 1e-6, seconds=20, memory=None,
                      delta=0.0)  # fmt: skip
    law = {z: {**late.base_law[z], DREAM: 0.0} for z in late.facts.features}
    dreamt = plan_optimistic(late, law)
    assert dreamt.high == pytest.approx(true.high, rel=1e-5)


def test_lower_limits_fail_as_seldom_as_they_say_for_all_n_at_once():
    rng, failures = np.random.default_rng(0), 0
    for _ in range(300):
        n = np.arange(1, 201)
        k = np.cumsum(rng.random(200) < 0.3)
        limits = [find_lower(np.array([a]), b, 0.2)[0] for a, b in zip(k, n, strict=True)]
        failures += max(limits) > 0.3
    assert failures <= 0.2 * 300
    assert 0.27 < find_lower(np.array([30_000.0]), 100_000.0, 0.2)[0] < 0.3


@pytest.fixture(scope="module")
def run():
    late = DelayedMDP.constant(two_state_chain(horizon=24), 12)
    return pkd_delay.learn(late, 400, gap=0.1, seconds=20, seed=3)


def test_a_run_under_a_delay_of_12_learns_what_its_bounds_promise(run):
    assert run.violations == 0
    assert run.upper_values[0] == pytest.approx(24.0)  # nothing is known: all is a dream
    assert run.upper_values[-1] < 22.0
    assert (np.diff(run.upper_values)[np.diff(run.gaps) == 0] <= ROUNDING).all()
    assert len(run.plans) <= 4 * (2 + math.log2(400 * 24))
    low, high = run.regret()
    assert (low <= high).all()
    assert (high <= run.bound()).all()
    assert run.paid[300:].mean() > run.paid[:30].mean()


def test_a_seed_gives_the_same_run(run):
    late = DelayedMDP.constant(two_state_chain(horizon=24), 12)
    again = pkd_delay.learn(late, 400, gap=0.1, seconds=20, seed=3)
    assert again.paid.tolist() == run.paid.tolist()


def test_a_learner_acts_and_learns_in_a_late_environment():
    late = DelayedMDP.constant(riverswim(horizon=20), 12)
    learner = LongLearner(late, gap=0.2, seconds=5)
    paid = drive(pkd_delay.LateEnv(late), learner, 20)
    assert learner.observed == len(paid) == 20
    assert sum(sum(row.values()) for row in learner.counts.values()) == 20 * 20
    assert learner.plans[-1].high <= learner.plans[0].high


def test_only_what_a_learner_may_know_changes_its_plans():
    """It never asks for the law of the base."""

    class NoLaw:
        def model(self):
            return two_state_chain(horizon=6).model()

        def law(self):
            raise AssertionError("a learner asked for the truth")

    learner = LongLearner(Delayed.constant(NoLaw(), 3), gap=0.1)
    assert learner.upper_value == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delay_law": "unknown"}, "law of the delay is unknown"),
        ({"shared": False, "delay_law": "unknown"}, "law of the delay is unknown"),
    ],
)
def test_refusals(options, words):
    late = Delayed("two_state_chain", {0: 0.5, 1: 0.5}, 2, **options)
    with pytest.raises(ModelError, match=words):
        pkd_delay.learn(late, 5, gap=0.1)


def test_impossible_episodes_are_refused():
    learner = LongLearner(DelayedMDP.constant(two_state_chain(), 1), gap=0.1)
    with pytest.raises(ModelError, match=r"expected a pkd\.Episode"):
        learner.observe(5)
    with pytest.raises(ModelError, match="no outcome of the base"):
        learner.learn_from([((0, 0), 99)])
