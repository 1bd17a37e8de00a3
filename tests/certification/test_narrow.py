"""Narrower upper values of V*: sets for one fixed function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine import set_values
from pkd.optimism import ALL_ROUNDS
from pkd.planning.estimator import MANY, Estimator, narrow, prove, split
from pkd.planning.plan import seed_words


class Wheel(pkd.PartiallyKnownMDP):
    """A wheel with twelve sectors pays what it shows."""

    horizon = 1

    def start(self) -> Any:
        return None, "stop"

    def actions(self, x: Any, y: Any) -> Any:
        return [0] if x is None else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, y, "wheel" if x is None else pkd.sure(None))]

    def outcomes(self, z: Any) -> Any:
        return range(12)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0 if x is None else float(x)


def test_the_radius_is_that_of_a_bet_on_two_assets() -> None:
    compiled = pkd.compile(Wheel())
    counts = {"wheel": dict.fromkeys(range(12), 50)}
    whole = Estimator(compiled, prove(compiled), None, split(compiled, 0.1))
    tally = compiled.tally(counts)
    whole.fill(tally, seed_words(0), rank=False)
    found = narrow(compiled, whole.belief, tally)
    places = compiled.n_y * (compiled.horizon + 1)
    bet = 0.5 * math.log(math.pi) + math.lgamma(601) - math.lgamma(600.5)
    assert found.radius[0] == pytest.approx((math.log(places / 0.05) + bet) / 600, rel=1e-12)
    assert found.radius[0] < whole.belief.radius[0]
    assert split(compiled, 0.1) == 0.05


def test_few_outcomes_keep_their_sets_and_all_of_delta() -> None:
    compiled = pkd.compile(pkd.as_problem("pricing").model())
    assert max(compiled.branching) <= MANY
    assert split(compiled, 0.1) == 0.1
    whole = Estimator(compiled, prove(compiled), None, 0.1)
    tally = compiled.tally({z: dict.fromkeys(states, 9) for z, states in zip(
        compiled.features, compiled.outcomes, strict=True
    )})  # fmt: skip
    whole.fill(tally, seed_words(0), rank=False)
    assert (narrow(compiled, whole.belief, tally).radius == whole.belief.radius).all()


def test_a_fixed_function_leaves_its_set_as_seldom_as_it_may() -> None:
    """Looked at at twelve times in each of many logs: delta is for all times at once."""
    rng, delta, wrong, times = (
        np.random.default_rng(5),
        0.2,
        0,
        np.geomspace(1, 400, 12).astype(int),
    )
    logs = 1000
    for _ in range(logs):
        p, f = rng.dirichlet(np.full(6, 0.5)), rng.random(6)
        gaps, seen = f.max() - f, rng.choice(6, 400, p=p)
        for n in times.tolist():
            shown = np.bincount(seen[:n], minlength=6) / n
            bet = 0.5 * math.log(math.pi) + math.lgamma(n + 1) - math.lgamma(n + 0.5)
            radius = (math.log(1 / delta) + bet) / n
            upper = shown @ f + set_values.gain(shown, 0, 1, gaps, 6, radius, ALL_ROUNDS)
            if upper < p @ f - 1e-12:
                wrong += 1
                break
    assert 0 < wrong <= delta * logs


def test_reported_intervals_hold_the_optimum_and_are_narrower() -> None:
    law = {"wheel": dict.fromkeys(range(12), 1 / 12)}
    for seed in range(20):
        run = pkd.learn(Wheel(), law, 300, seed=seed)
        found = pkd.certify(Wheel(), run.counts)
        assert run.interval is not None
        for low, high in (run.interval[:2], (found.low, found.high)):
            assert low <= run.optimal_value <= high
        full = pkd.optimistic_plan(
            Wheel(), run.counts, episodes=300, optimism=pkd.Certified(minimax=False, exact=True)
        )
        assert found.high < full.value
