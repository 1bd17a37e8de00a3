"""Random models of every corner of the contract against the slow reference, on both engines."""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import gymnasium as gym
import numpy as np

import pkd
import pkd_delay
from pkd_delay.episodes import simulate
from pkd_delay.laws.fitting import fit_delay
from tests import queue_strategies, reference, strategies
from tests.engine import agreement
from tests.queue_strategies import QueueCase

__all__ = ["attack", "random_case"]

REWARDS = (
    (0.0, 1.0), (-1.0, 1.0), (-3.0, -1.0), (-50.0, 2000.0), (0.0, 1e-13), (-1e-150, 1e-150),
)  # fmt: skip
CERTIFIED_SLACK = 1e-8  # its reference searches for a maximum
SELDOM = 1e-9  # with which a set may miss the truth, and a test may blame it
ONE_LETTER = 10  # small models of this kind for each seed: one of fourteen shows that old defect
OFF = 0.9e-9  # by how much sums of probabilities miss 1, within the tolerance


def attack(seed: int, folder: Path) -> int:
    """Structure, plans, values, evaluations, episodes and the flat table of one model."""
    rng, case = random.Random(seed), random_case(seed)
    rules = rng.sample(sorted(agreement.RULES), 2)
    worst = agreement.Worst()
    for large in (False, True):
        compiled = pkd.compile(case.model, large=large)
        agreement.assert_structure(case, compiled)
        agreement.assert_plans(case, compiled, worst, rules)
        agreement.assert_evaluations(case, compiled, worst)
        if not getattr(case.shape, "hindsight", False) and rng.random() < 0.2:
            agreement.assert_episodes(case, compiled, 1000)
        if rng.random() < 0.3:
            assert_certified(case, compiled, worst)
        if rng.random() < 0.3:
            assert_normalised(case, large, 1 + rng.choice([-OFF, OFF]), worst)
    value = pkd.plan(pkd.flatten(case.model, case.law)).value
    worst.hold(value, agreement.optimal(case).value, case.scale, "the flat table")
    assert_nothing_is_early(rng)
    if rng.random() < 0.3:
        assert_fit_covers(rng)
    assert_one_letter(rng, worst)
    return worst.comparisons


def random_case(seed: int) -> QueueCase:
    """A model with a queue, or one that looks every answer up in a table, from one number.

    Its scale is that of its returns, however small they are.
    """
    rng = random.Random(seed)
    if seed % 2:
        return queue_strategies.build(queue_strategies.random_shape(seed))
    shape = strategies.random_shape(seed)
    case = strategies.build(attrs.evolve(shape, rewards=rng.choice(REWARDS)))
    met, bounds = reference.reachable(case.model), reference.ranges(case.model)
    ends = [abs(end) for place in met.states for end in bounds(*place)]
    scale = case.scale if shape.declared else max(ends) or 1.0
    model: Any = case.model
    return QueueCase(case.shape, model, case.law, case.counts, scale, met)  # type: ignore[arg-type]


def assert_certified(case: QueueCase, compiled: Any, worst: agreement.Worst) -> None:
    """A certificate has the bounds of its definition."""
    found = pkd.certify(compiled, case.counts, delta=0.1)
    scale = case.scale * CERTIFIED_SLACK / agreement.SLACK
    for least, value in ((True, found.low), (False, found.high)):
        expected = reference.certified(case.model, case.counts, 0.1, least=least).value
        worst.hold(value, expected, scale, ("certificate", "low" if least else "high"))


def assert_one_letter(rng: random.Random, worst: agreement.Worst) -> None:
    """Different branches that lead to one queue of one letter: random shapes seldom do that."""
    for _ in range(ONE_LETTER):
        shape = queue_strategies.random_shape(rng.randrange(10**6))
        case = queue_strategies.build(
            attrs.evolve(shape, one_letter=True, twins=0.7, pipeline=False, appends=False)
        )
        value = pkd.plan(pkd.compile(case.model, large=True), case.law).value
        worst.hold(value, agreement.optimal(case).value, case.scale, "a queue of one letter")


def assert_normalised(case: QueueCase, large: bool, factor: float, worst: agreement.Worst) -> None:
    """Probabilities that are all off by a factor give the value of those that are not."""
    model, law = scale_model(case.model, factor), case.law
    scaled = {z: {x: p * factor for x, p in row.items()} for z, row in law.items()}
    value = pkd.plan(pkd.compile(model, large=large), scaled).value
    expected = pkd.plan(pkd.compile(case.model, large=large), law).value
    # Finer than the slack: a few steps gather only a few times OFF.
    worst.hold(value, expected, case.scale * 1e-2, "probabilities that are off")


def scale_model(given: Any, factor: float) -> Any:
    """The model with all its known probabilities times a factor."""

    def scale(branches: Any) -> list[Any]:
        return [
            (p * factor, y, scale_known(z) if isinstance(z, pkd.Known) else z)
            for p, y, z in branches
        ]

    def scale_known(z: pkd.Known) -> pkd.Known:
        return pkd.Known({x: p * factor for x, p in z.law})

    model, start = copy.copy(given), given.start()
    if isinstance(start, Mapping):
        model.start = lambda: {state: p * factor for state, p in start.items()}
    model.step = lambda *asked: scale(given.step(*asked))
    model.last_step = lambda *asked: scale(given.last_step(*asked))
    return model


class Ending(pkd.NoiseMDP):
    """A base that ends with the probability of its noise."""

    horizon = 9

    def initial(self) -> str:
        """Is on."""
        return "on"

    def choices(self, s: Any) -> Any:
        """One action, until the end."""
        return (0,) if s == "on" else pkd.END

    def noise(self, s: Any, a: Any) -> str:
        """One feature."""
        return "toss"

    def outcomes(self, z: Any) -> tuple[str, str]:
        """On or off."""
        return "on", "off"

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        """Pays nothing."""
        return 0.0, w


def assert_fit_covers(rng: random.Random) -> None:
    """The true law of the delay lies in the set of a log, also where the base ends early."""
    over, dice = rng.uniform(0.1, 0.7), np.random.default_rng(rng.randrange(10**6))
    form = rng.choice([pkd_delay.InterArrival, pkd_delay.Lags])
    law = form(tuple(dice.dirichlet(np.ones(4)).tolist()))
    base = (Ending(), {"toss": {"on": 1 - over, "off": over}})
    late = pkd_delay.Delayed(base, law, 3)
    episodes = simulate(late, lambda *seen: 0, 400, rng.randrange(10**6))
    fit = fit_delay(form, episodes, max_delay=3, delta=SELDOM, false_alarm=SELDOM)
    assert fit.contains(law), f"the fit of {law} misses it, where the base ends with {over:.2f}"
    assert fit.holds, "a test blames the log"


class Reuser(gym.Env[Any, Any]):
    """Counts its steps, in one array and one info that it writes over."""

    observation_space = gym.spaces.Box(0, 99, (1,), np.int64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        """Counts from 0."""
        self.array, self.info = np.zeros(1, np.int64), {"time": [0]}
        return self.array, self.info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        """Counts on."""
        self.array += 1
        self.info["time"][0] += 1
        return self.array, 0.0, False, False, self.info


def assert_nothing_is_early(rng: random.Random) -> None:
    """A late environment shows an observation and its info when both are due, and no newer ones."""
    late = pkd_delay.LateEnv(Reuser(), {-1: 0.3, 0: 0.4, 1: 0.3}, 0, rng.randint(1, 4), horizon=9)
    seen, info = late.reset(seed=rng.randrange(10**6))
    for h in range(1, 10):
        assert int(seen["observation"][0]) == h - 1 - seen["age"], "an early observation"
        shown = info.get("time", [None])[0]
        expected = int(seen["observation"][0]) if seen["arrived"] else None
        assert shown == expected, f"info of step {shown} where {expected} is due"
        seen, _, _, _, info = late.step(0)
