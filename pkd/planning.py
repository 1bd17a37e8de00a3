"""Exact planning, exact evaluation, and the optimistic plan from given counts: one backward sweep each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from pkd.compiled import Compiled
from pkd.engines import compile
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import MVP, Optimism

__all__ = ["Plan", "Policy", "evaluate", "optimistic_plan", "plan"]


class Plan:
    """A policy for every step, with the values it was chosen by. Steps h count from 1.

    >>> from pkd.tabular import TabularMDP
    >>> coin = TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> best = plan(coin.model(), coin.law())
    >>> [x for x, _ in best.states(1)], best.value
    ([0], 1.25)
    """

    def __init__(self, compiled: Compiled, belief: Any, policy: np.ndarray, value: float) -> None:
        self.compiled = compiled
        self.value = value
        self.arms = policy  # which arm each state takes in each layer, in the order of the engine
        self.belief = belief  # what the plan was made from

    def __repr__(self) -> str:
        return f"<Plan for {type(self.compiled.model).__name__}: value {self.value:.6g}, horizon {self.compiled.horizon}>"

    def action(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h in the state (x, y)."""
        return self.compiled.action_at(self.arms, h, x, y)

    def values(self, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action in (x, y); {None: V_h} in a CHANCE or END state."""
        return self.compiled.values_at(self.belief, self.arms, h, x, y)

    def states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        return self.compiled.decision_states(h)


Policy = Plan | Callable[[int, Any, Any], Any]  # a callable takes (h, x, y) and gives an action
Model = PartiallyKnownMDP | Compiled


def plan(model: Model, law: Law) -> Plan:
    """The optimal plan under a given law.

    V_h(s) = max_a [ r(s, a) + sum_y' P_Y(y'|s, a) sum_x' P_eff(z)(x') V_{h+1}(x', y') ]

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> best = pkd.plan(coin.model(), coin.law())
    >>> best.value, best.action(1, 0, None), best.values(1, 0, None)
    (1.25, 0, {0: 1.25, 1: 0.5})
    """
    compiled = compile(model)
    return planned(compiled, compiled.truth(law))


def optimistic_plan(
    model: Model,
    counts: Mapping[Any, Mapping[Any, float]],
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Optimism = MVP(),
    seed: int = 0,
) -> Plan:
    """The plan that the optimistic algorithm makes from given counts {z: {x': n}} in a run of so many episodes.

    `.value` is the upper value; `seed` matters only to `PosteriorSampling`.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> pkd.optimistic_plan(coin.model(), {}, episodes=100).value  # nothing was seen: state 1 at once, and for good
    2.0
    >>> pkd.optimistic_plan(coin.model(), {(0, 0): {0: 1, 1: 3}}, episodes=100, optimism=pkd.Greedy()).value
    1.3125
    """
    compiled, bonus = compile(model), optimism.bonus()
    checked_schedule(episodes, delta)
    belief = compiled.optimistic(bonus, episodes, delta)
    compiled.estimate(belief, compiled.counted(counts), bonus, compiled.reward_bonus(bonus, episodes, delta), seeded(seed))
    return planned(compiled, belief)


def evaluate(model: Model, law: Law, policy: Policy) -> float:
    """The exact expected return of a policy.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> pkd.evaluate(coin.model(), coin.law(), lambda h, x, y: 0)  # a fair coin at every step: 0 + 1/2 + 1/2
    1.0
    """
    compiled = compile(model)
    if isinstance(policy, Plan) and policy.compiled is compiled:
        value, _ = compiled.sweep(compiled.truth(law), policy.arms, follow=True)
    else:
        plain = compiled.plain
        value, _ = plain.sweep(plain.truth(law), plain.arms_of(acting(policy)), follow=True)
    return value


def planned(compiled: Compiled, belief: Any) -> Plan:
    """The plan of one backward sweep under a belief."""
    policy = compiled.policy()
    value, _ = compiled.sweep(belief, policy, follow=False)
    return Plan(compiled, belief, policy, value)


def acting(policy: Policy) -> Callable[[int, Any, Any], Any]:
    """Any policy as a function (h, x, y) -> action."""
    return policy.action if isinstance(policy, Plan) else policy


def seeded(seed: int, stream: int = 0) -> np.ndarray:
    """The state of a kernel's random numbers, (4,) words."""
    return np.random.SeedSequence(entropy=seed, spawn_key=(stream,)).generate_state(4, np.uint64)


def checked_schedule(episodes: Any, delta: Any, replan: Any = "doubling") -> None:
    """ModelError that names everything wrong with episodes, delta and the schedule of plans."""
    findings = []
    if isinstance(episodes, bool) or not isinstance(episodes, (int, np.integer)) or episodes < 1:
        findings.append(f"episodes is {episodes!r}; expected a whole number >= 1")
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        findings.append(f"delta is {delta!r}; expected a number between 0 and 1")
    if replan not in ("doubling", "every"):
        findings.append(f'replan is {replan!r}; expected "doubling" or "every"')
    if findings:
        raise ModelError(findings)
