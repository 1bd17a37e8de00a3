"""The regret theorem of `Certified(explore="needed")`: its steps, each against numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
from benchmarks.mixed import Mixed
from pkd.certification.confidence import evidence
from pkd.engine import set_values
from pkd.engine.exogenous import settle
from pkd.learning.algorithm import Learning
from pkd.optimism import ALL_ROUNDS, ONE_ROUND
from pkd.planning.plan import Plan
from pkd.theory.certified import DEVIATION, RANGE, certified_bound, largest_evidence
from tests import reference


def test_no_data_have_more_evidence_than_the_bound_says() -> None:
    rng, closest = np.random.default_rng(0), math.inf
    for _ in range(3000):
        m = int(rng.integers(1, 7))
        branching = int(rng.integers(1, m + 1))
        seen, samples = int(rng.integers(1, branching + 1)), int(rng.integers(1, 200))
        n = np.zeros(m)
        n[:seen] = rng.multinomial(samples, rng.dirichlet(np.full(seen, 0.3)))
        if m == 2 and rng.random() < 0.3:  # rewards count as parts of a coin
            n, branching = rng.random(2) * samples, 2
        bound = largest_evidence(m, branching, max(float(n.sum()), 1.0))
        left = bound - evidence(n.tolist(), branching)
        assert left >= -1e-9
        closest = min(closest, left)
    assert closest < 1e-6  # it is attained


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    held = p > 0
    return float((p[held] * np.log(p[held] / q[held])).sum())


def test_one_step_errs_by_at_most_what_the_proof_says() -> None:
    """(q - p) f <= 2 sqrt(2 Var_p(f) C) + 7/3 w C for KL(p^, q), KL(p^, p) <= C, and Pinsker."""
    rng, worst, widest = np.random.default_rng(1), 0.0, 0.0
    table = np.zeros(2 * set_values.PLACES)
    for case in range(20_000):
        m, spread = int(rng.integers(2, 6)), 10 ** rng.uniform(-1, 1)
        seen, other = rng.dirichlet(np.full(m, spread), 2)
        part = 10 ** rng.uniform(-3, 0)
        p, f = (1 - part) * seen + part * other, rng.random(m) ** rng.choice([0.2, 1, 5])
        f = (f - f.min()) / np.ptp(f)
        gaps, variance = 1 - f, float(p @ (f - p @ f) ** 2)
        C = divergence(seen, p) * (1 + rng.exponential(0.3))
        if not 1e-10 < C < 30 or variance < 1e-12:
            continue
        gain = set_values.gain(seen, 0, 1, gaps, m, C, ALL_ROUNDS)
        error = float(seen @ f) + gain - float(p @ f)
        worst = max(worst, error / (DEVIATION * math.sqrt(variance * C) + RANGE * C))
        quick = [set_values.gain(seen, 0, 1, gaps, m, C, ONE_ROUND)]
        if case % 50 == 0:
            set_values.fill_table(C, table)
            a, own = float(seen @ gaps), float(seen @ (f - seen @ f) ** 2)
            v = set_values.relative_variance(a, own)
            quick.append(set_values.table_gain(a, v, table, set_values.place_of(v, 0)))
        widest = max(widest, *(value / math.sqrt(C / 2) for value in quick))
    assert 0.9 < worst <= 1.0
    assert 0.9 < widest <= 1.01  # quick gains are larger than exact ones, and keep Pinsker's bound


def mixed_problem(seed: int) -> tuple[pkd.PartiallyKnownMDP, dict[Any, dict[Any, float]]]:
    rng = np.random.default_rng(seed)
    model = Mixed(rng)
    compiled = pkd.compile(model)
    law = {
        z: dict(zip(states, rng.dirichlet(np.full(len(states), 0.5)).tolist(), strict=True))
        for z, states in zip(compiled.features, compiled.outcomes, strict=True)
    }
    return model, law


def test_each_plan_loses_at_most_what_the_first_step_says() -> None:
    """V* - V^pi <= 2 R sum_F n TV + R sum_E n(pi) min(1, TV + sqrt(C / 2)), by exact visits."""
    mixed = [ratio for seed in range(3) for ratio in lose(*mixed_problem(seed), seed)]
    assert 0.0 < max(mixed) <= 1.0 + 1e-9
    # Where everything is exogenous no radius hides how much room the bound leaves.
    law = {"demand": {0: 0.45, 1: 0.55}}
    known = [ratio for seed in range(20) for ratio in lose(Demand(), law, seed)]
    assert 0.3 < max(known) <= 1.0 + 1e-9


def lose(model: Any, law: Any, seed: int) -> list[float]:
    """What each of twelve plans loses, as a part of its bound."""
    compiled = pkd.compile(model)
    fixed = settle(compiled, pkd.Certified()).exogenous
    assert fixed is not None
    learner, truth = (
        Learning(compiled, pkd.Certified(), None, 0.05, seed, None),
        compiled.truth(law),
    )
    optimum, width = pkd.plan(model, law).value, pkd.theory.bounds.ModelBound.of(model).width
    ratios = []
    for _ in range(12):
        learner.replan()
        plan = Plan(compiled, learner.belief, learner.policy, learner.upper)
        loss, _ = compiled.sweep(truth.belief, learner.policy, follow=True)
        bound = 0.0
        for row, z in enumerate(compiled.features):
            at = slice(int(compiled.row_ptr[row]), int(compiled.row_ptr[row + 1]))
            apart = 0.5 * float(np.abs(learner.belief.p[at] - truth.belief.p[at]).sum())
            visits = reference.visits(model, law, z, policy=plan)
            reach = min(1.0, apart + math.sqrt(min(learner.belief.radius[row], 2.0) / 2))
            bound += width * visits * (2 * apart if fixed[row] else reach)
        ratios.append((optimum - loss) / max(bound, 1e-12))
        compiled.episodes(truth.world, learner.policy, learner.tally, learner.rng, np.zeros(4))
        learner.done += 4
    return ratios


def test_the_bound_grows_like_a_root_and_is_above_what_runs_lose() -> None:
    for name in ("admission", "riverswim", "spot_autoscaler"):
        model = pkd.as_problem(name).model()
        assert certified_bound(model, 4e8) < 2.3 * certified_bound(model, 1e8)
        run = pkd.learn(name, 200, optimism=pkd.Certified(minimax=False), seed=1)
        assert 0 <= run.regret[-1] <= certified_bound(model, 200)


def test_the_bound_is_the_formula_in_a_model_with_one_feature() -> None:
    """The kiosk of `PartiallyKnownMDP`: R = 3, D = M = 3, one coin that comes whatever is done."""
    K, delta = 1000.0, 0.05
    log_term = math.log(1 / delta)
    kt = math.lgamma(0.5) + math.lgamma(3 * K + 1) - math.lgamma(3 * K + 0.5)
    beta = math.log(2 / delta) + math.log(2) + max(kt, math.log(2))
    expected = 3 * (4 * math.sqrt(2) * math.sqrt(K * 3 * beta) + 18 * log_term * 3)
    assert certified_bound(Demand(), K, delta) == pytest.approx(expected, rel=1e-12)


def test_a_model_that_may_teach_less_than_it_visits_is_refused() -> None:
    model = pkd.Missing(pkd.as_problem("admission").model(), 0.5, False, longest=1)
    with pytest.raises(pkd.ModelError, match="samples_cover_visits"):
        certified_bound(model, 100)


class Demand(pkd.PartiallyKnownMDP):
    """Each of three orders pays what is asked for."""

    horizon = 3

    def start(self) -> Any:
        return None, 0

    def actions(self, x: Any, y: Any) -> Any:
        return [0, 1] if x is None else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, "demand") if x is None else (1.0, 0, pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x is not None and x == y)
