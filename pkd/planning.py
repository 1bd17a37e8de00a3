"""Exact planning, exact evaluation, and the optimistic plan from given counts: one backward sweep each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

import numpy as np

from pkd.compiled import Compiled, compile
from pkd.graph import DECIDE
from pkd.kernels import flat
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import MVP, Optimism

__all__ = ["Plan", "Policy", "evaluate", "optimistic_plan", "plan"]


class Plan:
    """A policy for every step, with the values it was chosen by. Steps h count from 1."""

    def __init__(self, compiled: Compiled, belief: flat.Estimate, policy: np.ndarray, value: float) -> None:
        self.compiled = compiled
        self.value = value
        self.arms = policy  # (H, nodes): which arm each node takes
        self._belief = belief
        self._values: tuple[np.ndarray, np.ndarray] | None = None

    def __repr__(self) -> str:
        return f"<Plan for {type(self.compiled.model).__name__}: value {self.value:.6g}, horizon {self.compiled.horizon}>"

    def action(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h in the state (x, y)."""
        node = self._node(h, x, y)
        if self.compiled.graph.layers.kind[node] != DECIDE:
            raise ModelError(f"(x={x!r}, y={y!r}) takes no action: it is a CHANCE or END state")
        return self.compiled.actions[node][self.arms[h - 1, node]]

    def values(self, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action in (x, y); {None: V_h} in a CHANCE or END state."""
        node, t, graph = self._node(h, x, y), h - 1, self.compiled.graph
        v, settled = self._all_values()
        if graph.layers.kind[node] != DECIDE:
            return {None: float(v[t, node])}
        last = t == self.compiled.horizon - 1
        program = self.compiled.program
        slot = int((program.slot_of_last if last else program.slot_of_step)[node])
        out = np.zeros(int(program.arm_ptr[slot + 1] - program.arm_ptr[slot]))
        flat.arm_values(program, self._belief, slot, t, settled if last else v[t + 1], np.zeros(len(self.compiled.pairs)), out)
        return dict(zip(self.compiled.actions[node], out.tolist(), strict=True))

    def states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        graph = self.compiled.graph
        for node, state in enumerate(graph.layers.states):
            if graph.layers.kind[node] == DECIDE and graph.holds(h - 1, node):
                yield state

    def _node(self, h: int, x: Any, y: Any) -> int:
        if not 1 <= h <= self.compiled.horizon:
            raise ModelError(f"step {h!r} is outside 1..{self.compiled.horizon}")
        graph = self.compiled.graph
        node = graph.layers.index.get((x, y))
        if node is None or not graph.holds(h - 1, node):
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur at step {h}")
        return node

    def _all_values(self) -> tuple[np.ndarray, np.ndarray]:
        if self._values is None:
            v, settled = self.compiled.layers(self.compiled.horizon), self.compiled.settlement()
            flat.sweep(self.compiled.program, self._belief, v, settled, np.zeros(len(self.compiled.pairs)), self.arms.copy(), False)
            self._values = v, settled
        return self._values


Policy = Union[Plan, Callable[[int, Any, Any], Any]]  # a callable takes (h, x, y) and gives an action
Model = Union[PartiallyKnownMDP, Compiled]


def plan(model: Model, law: Law) -> Plan:
    """The optimal plan under a given law.

        V_h(s) = max_a [ r(s, a) + sum_y' P_Y(y'|s, a) sum_x' P_eff(z)(x') V_{h+1}(x', y') ]
    """
    compiled = compile(model)
    return sweep(compiled, compiled.truth(law))


def optimistic_plan(
    model: Model, counts: Mapping[Any, Mapping[Any, float]], *, episodes: int, delta: float = 0.05, optimism: Optimism = MVP(), seed: int = 0
) -> Plan:
    """The plan that the optimistic algorithm makes from given counts {z: {x': n}} in a run of so many episodes.

    `.value` is the upper value; `seed` matters only to `PosteriorSampling`.
    """
    compiled, bonus = compile(model), optimism.bonus()
    checked_schedule(episodes, delta)
    belief = compiled.optimistic(bonus, episodes, delta)
    flat.estimate(
        compiled.program, belief, compiled.counted(counts), bonus.prior, seeded(seed), compiled.reward_bonus(bonus, episodes, delta)
    )
    return sweep(compiled, belief)


def evaluate(model: Model, law: Law, policy: Policy) -> float:
    """The exact expected return of a policy."""
    compiled = compile(model)
    arms = policy_arms(compiled, policy)
    value, _ = flat.sweep(
        compiled.program, compiled.truth(law), compiled.layers(2), compiled.settlement(), np.zeros(len(compiled.pairs)), arms, True
    )
    return float(value)


def sweep(compiled: Compiled, belief: flat.Estimate) -> Plan:
    """One backward sweep under a belief."""
    policy = compiled.policy()
    e = np.zeros(len(compiled.pairs))
    value, _ = flat.sweep(compiled.program, belief, compiled.layers(2), compiled.settlement(), e, policy, False)
    return Plan(compiled, belief, policy, float(value))


def policy_arms(compiled: Compiled, policy: Policy) -> np.ndarray:
    """Any policy as the arm of each node in each layer; an action that a state does not have is an error."""
    if isinstance(policy, Plan) and policy.compiled is compiled:
        return policy.arms
    act = policy.action if isinstance(policy, Plan) else policy
    arms, graph = compiled.policy(), compiled.graph
    findings: list[str] = []
    for node, (x, y) in enumerate(graph.layers.states):
        if graph.layers.kind[node] != DECIDE:
            continue
        place = {action: i for i, action in enumerate(compiled.actions[node])}
        for t in range(graph.first[node], graph.last[node] + 1):
            if graph.holds(t, node):
                action = act(t + 1, x, y)
                if action in place:
                    arms[t, node] = place[action]
                else:
                    findings.append(f"the policy takes {action!r} at step {t + 1} in (x={x!r}, y={y!r}); expected one of {list(place)!r}")
    if findings:
        raise ModelError(findings[:10])
    return arms


def seeded(seed: int, stream: int = 0) -> np.ndarray:
    """The state of a kernel's random numbers, (4,) words."""
    return np.random.SeedSequence(entropy=seed, spawn_key=(stream,)).generate_state(4, np.uint64)


def checked_schedule(episodes: Any, delta: Any) -> None:
    """Episodes and delta, or one error that names both."""
    findings = []
    if isinstance(episodes, bool) or not isinstance(episodes, (int, np.integer)) or episodes < 1:
        findings.append(f"episodes is {episodes!r}; expected a whole number >= 1")
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not 0 < delta < 1:
        findings.append(f"delta is {delta!r}; expected a number between 0 and 1")
    if findings:
        raise ModelError(findings)
