"""Random models of every corner of the contract against the slow reference, on both engines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs

import pkd
from tests import queue_strategies, reference, strategies
from tests.engine import agreement
from tests.queue_strategies import QueueCase

__all__ = ["attack", "random_case"]

REWARDS = (
    (0.0, 1.0), (-1.0, 1.0), (-3.0, -1.0), (-50.0, 2000.0), (0.0, 1e-13), (-1e-150, 1e-150),
)  # fmt: skip
CERTIFIED_SLACK = 1e-8  # its reference searches for a maximum


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
    value = pkd.plan(pkd.flatten(case.model, case.law)).value
    worst.hold(value, agreement.optimal(case).value, case.scale, "the flat table")
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
