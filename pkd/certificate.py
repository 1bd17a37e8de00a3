"""What data prove: an interval for V* or for the value of a policy, and the robust plan.

Over the sets of laws that the data have not refuted (`pkd.confidence`)

    high = max_a sum_y' P_Y(y'|s,a) [r + max {q.V(., y') : q in set(z)}],   low with the minimum,

so with probability 1 - delta the truth lies in [low, high], whatever policy produced the data and
at whatever time one looks. With a policy given it stands in place of max_a in both.
"""

from __future__ import annotations

import math

import attrs

from pkd.engine import compile
from pkd.engine.belief import Belief
from pkd.engine.compiled import Compiled, Counts
from pkd.optimism import Certified
from pkd.planning import Model, Plan, Policy, check_schedule, make_plan, seed_words, to_function

__all__ = ["Certificate", "certify"]

SETS = Certified(minimax=False, exact=True)


@attrs.frozen
class Certificate:
    """With probability 1 - delta: low <= value <= high."""

    low: float
    high: float
    delta: float
    plan: Plan = attrs.field(repr=False)  # attains the best certified low: the robust plan

    @property
    def gap(self) -> float:
        return self.high - self.low


def certify(
    model: Model, counts: Counts, *, policy: Policy | None = None, delta: float = 0.05
) -> Certificate:
    """[low, high] for V*, or for the value of a policy, from counts {z: {x': n}}.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}})  # the true value is 1/2
    >>> round(found.low, 3), round(found.high, 3), found.plan.action(1, 0, None)
    (0.434, 1.0, 0)
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}}, policy=lambda h, x, y: 0)
    >>> round(found.low, 3), round(found.high, 3)
    (0.434, 0.566)
    """
    check_schedule(1, delta)
    compiled = compile(model)
    belief, least = _beliefs(compiled, counts, delta)
    robust = make_plan(compiled, least)
    if policy is None:
        return Certificate(robust.value, make_plan(compiled, belief).value, delta, robust)
    shared = isinstance(policy, Plan) and policy.compiled is compiled
    engine = compiled if shared else compiled.plain
    if isinstance(policy, Plan) and shared:
        choices = policy.choices
    else:
        choices = engine.tabulate(to_function(policy))
    if engine is not compiled:
        belief, least = _beliefs(engine, counts, delta)
    high, _ = engine.sweep(belief, choices, follow=True)
    low, _ = engine.sweep(least, choices, follow=True)
    return Certificate(low, high, delta, robust)


def _beliefs(compiled: Compiled, counts: Counts, delta: float) -> tuple[Belief, Belief]:
    """The sets of laws, for largest and for least values."""
    bonus, tally = SETS.bonus(), compiled.tally(counts)
    limits = compiled.reward_bonus(bonus, 1, delta)
    limits[0] = math.inf  # no part of the rule needs the logarithm of MVP-Est
    belief = compiled.optimistic(bonus, 1, delta)
    least = compiled.pessimistic(belief)
    for each in (belief, least):
        compiled.estimate(each, tally, bonus, limits, seed_words(0))
    return belief, least
