"""One compiled model in several threads that take turns all the time."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import pkd
from pkd.engine import Compiled
from pkd_delay import DelayedMDP
from tests.fuzz.models import random_case

__all__ = ["attack"]

ROUNDS = 12


def attack(seed: int, folder: Path) -> int:
    """Each thread gets what it gets alone."""
    rng = random.Random(seed)
    model, law = random_problem(rng, seed)
    compiled = pkd.compile(model, large=rng.random() < 0.7)
    tasks = [make_task(compiled, law, rng.randrange(10**6)) for _ in range(3)]
    alone = [task() for task in tasks]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(tasks)) as pool:
            futures = [pool.submit(repeat, task) for task in tasks]
            together = [future.result() for future in futures]
    finally:
        sys.setswitchinterval(before)
    for expected, found in zip(alone, together, strict=True):
        assert all(answer == expected for answer in found), "threads disturb one another"
    return len(tasks) * ROUNDS


def repeat(task: Callable[[], Any]) -> list[Any]:
    """The answers of a task that is asked again and again."""
    return [task() for _ in range(ROUNDS)]


def random_problem(rng: random.Random, seed: int) -> tuple[Any, Any]:
    """A delayed table, which needs a long sweep, or a random model."""
    if rng.random() < 0.3:
        case = random_case(seed)
        return case.model, case.law
    dice = np.random.default_rng(seed)
    states, actions, horizon = rng.randint(2, 4), rng.randint(2, 3), rng.randint(4, 8)
    p = dice.dirichlet(np.ones(states), (states, actions))
    mdp = pkd.TabularMDP(p, dice.random((states, actions)), horizon)
    delayed = DelayedMDP(mdp, {-1: 0.2, 0: 0.5, 2: 0.3}, rng.randint(2, 4))
    return (delayed.known() if rng.random() < 0.6 else delayed.unknown()), delayed.law()


def make_task(compiled: Compiled, law: Any, seed: int) -> Callable[[], Any]:
    """A plan, an optimistic plan, an evaluation or a run, as something that can be compared."""
    rng = np.random.default_rng(seed)
    counts = {
        z: {x: int(rng.integers(1, 500)) for x in xs}
        for z, xs in zip(compiled.features, compiled.outcomes, strict=True)
    }

    def plan() -> Any:
        found = pkd.plan(compiled, law)
        return found.value, found.choices.tobytes()

    def hope() -> Any:
        rule = pkd.MVP(0.1, 0.01)
        found = pkd.optimistic_plan(compiled, counts, episodes=50, optimism=rule)
        return found.value, found.choices.tobytes()

    def evaluate() -> Any:
        return pkd.evaluate(compiled, law, lambda h, x, y: tuple(compiled.model.actions(x, y))[-1])

    def learn() -> Any:
        found = pkd.learn(compiled, law, 6, seed=seed, optimism=pkd.MVP.practical())
        return found.upper_values.tobytes(), found.returns.tobytes()

    return [plan, hope, evaluate, learn][seed % 4]
