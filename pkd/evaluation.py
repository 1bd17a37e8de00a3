"""The return of a policy, exactly: its mean, its variance and its law.

The mean of a plan or of a function is one sweep of the engine. Variance and law need every state
apart, so a model that was compiled as stripes is compiled once more for them, explicitly. Mean and
variance are found backwards (`pkd.return_moments`), the law forwards (`pkd.return_law`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.engine.compiled import Act, Compiled, Truth
from pkd.engine.play import find_policy_fault, read_weights
from pkd.engine.segments import lengths_to_ptr
from pkd.graph import DECIDE
from pkd.model import Law, ModelError
from pkd.planning import Model, Plan, Policy, resolve, to_function
from pkd.progress import working
from pkd.return_law import find_return_law
from pkd.return_moments import Array, Choices, find_moments

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

__all__ = ["Choices", "Evaluation", "evaluate", "refuse_weights", "tabulate_weights"]

MOST_VALUES = 1_000_000  # values that the law of a return may have
SHOWN_FINDINGS = 10


def evaluate(
    model: Model, law: Law | Policy | None = None, policy: Policy | None = None
) -> Evaluation:
    """The exact expected return: evaluate(model, law, policy) or evaluate(problem, policy).

    A policy is a plan, or a function (h, x, y) that gives an action, or {action: probability} where
    it chooses at random. The answer is a number; `.variance` and `.returns()` tell more.

    >>> import pkd
    >>> toss, stay = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
    >>> rows, pay = [[toss, stay[0]], [toss, stay[1]]], [[0.0, 0.0], [1.0, 1.0]]
    >>> coin = pkd.TabularMDP(rows, pay, horizon=3)
    >>> heads = pkd.evaluate(coin, lambda h, x, y: 0)  # a fair coin at every step: 0 + 1/2 + 1/2
    >>> heads, heads.variance, heads.returns()
    (1.0, 0.5, {0.0: 0.25, 1.0: 0.5, 2.0: 0.25})
    >>> pkd.evaluate(coin, lambda h, x, y: {0: 0.5, 1: 0.5})  # one half of the coins is not tossed
    0.625
    """
    if policy is None:
        law, policy = None, law
    if not isinstance(policy, Plan) and not callable(policy):
        raise ModelError(
            f"policy is {policy!r}; expected a Plan, or a function (h, x, y) -> action"
        )
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    if isinstance(policy, Plan) and policy.compiled is compiled:
        with working("evaluating"):
            value, _ = compiled.sweep(compiled.truth(found).belief, policy.choices, follow=True)
        return Evaluation(value, compiled, found, policy.action, policy.choices)
    act, plain = to_function(policy), compiled.plain
    try:
        with working("asking the policy"):
            choices = plain.tabulate(refuse_weights(act))
    except RandomisedError:
        return Evaluation(None, compiled, found, act)
    with working("evaluating"):
        value, _ = plain.sweep(plain.truth(found).belief, choices, follow=True)
    return Evaluation(value, compiled, found, act, choices if plain is compiled else None)


class Evaluation(float):
    """The expected return of a policy; a number that also knows the law of the return.

    >>> import pkd
    >>> toss = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], 10, start=[0.5, 0.5])
    >>> heads = pkd.evaluate(toss, lambda h, x, y: 0)
    >>> heads, heads.variance, round(heads.returns()[5.0], 10)  # binomial: 252 of 1024
    (5.0, 2.5, 0.24609375)
    """

    _return: _Return

    def __new__(
        cls,
        value: float | None,
        compiled: Compiled,
        law: Law,
        act: Act,
        choices: Array | None = None,
    ) -> Evaluation:
        """value: where it is known already. choices: the policy of `compiled` itself."""
        law_of_return = _Return(compiled, law, act, choices)
        self = super().__new__(cls, law_of_return.moments[0] if value is None else value)
        self._return = law_of_return
        return self

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)  # a file or another process gets the number

    @property
    def variance(self) -> float:
        """The variance of the return."""
        return self._return.moments[1]

    @property
    def deviation(self) -> float:
        """The standard deviation of the return."""
        return math.sqrt(self.variance)

    def returns(
        self, *, tolerance: float = 0.0, max_values: int = MOST_VALUES
    ) -> dict[float, float]:
        """The law of the return, {value: probability}, values ascending.

        Values that differ only by rounding are one value. tolerance: values may also be moved by at
        most so much, so that close ones become one; the mean stays as it is. A law of more than
        `max_values` values is refused with a ModelError.
        """
        if not 0 <= tolerance < math.inf:
            raise ModelError(f"tolerance is {tolerance!r}; expected a number >= 0")
        return self._return.find_law(tolerance, max_values)


def tabulate_weights(engine: NodeEngine, act: Act) -> Choices:
    """A function (h, x, y) -> action or {action: probability} as probabilities of actions."""
    graph, ptr, findings = engine.graph, lengths_to_ptr(engine.n_actions), list[str]()
    side, layers = graph.layers, []
    for h in range(1, engine.horizon + 1):
        places, weights = list[int](), list[float]()
        for node in graph.members[h - 1]:
            if side.kind[node] == DECIDE:
                x, y = graph.state(side, node)
                first, actions = int(ptr[engine.flat.choice[node]]), list(side.choices[node])
                answer = act(h, x, y)
                wrong = find_policy_fault(answer, actions)
                if wrong is not None:
                    findings.append(f"the policy {wrong} at step {h} in (x={x!r}, y={y!r})")
                    continue
                for action, p in read_weights(answer):
                    places.append(first + actions.index(action))
                    weights.append(p)
        if findings:
            raise ModelError(findings[:SHOWN_FINDINGS])
        layers.append((np.array(places, np.int64), np.array(weights, float)))
    return Choices(ptr, layers)


class RandomisedError(Exception):
    """A policy chooses at random."""


def refuse_weights(act: Act) -> Act:
    """The policy, with a RandomisedError where it chooses at random."""

    def choose(h: int, x: Any, y: Any) -> Any:
        answer = act(h, x, y)
        if isinstance(answer, Mapping):
            raise RandomisedError
        return answer

    return choose


@attrs.define(eq=False, slots=False)
class _Return:
    """The return of one policy; each part is computed when it is first asked for."""

    compiled: Compiled
    law: Law
    act: Act
    choices: Array | None  # as a policy of `compiled`, where there is one

    @cached_property
    def engine(self) -> NodeEngine:
        return self.compiled.explicit

    @cached_property
    def truth(self) -> Truth:
        return self.engine.truth(self.law)

    @cached_property
    def weights(self) -> Choices:
        if self.choices is not None and self.engine is self.compiled:
            return Choices.from_plan(self.engine, self.choices)
        return tabulate_weights(self.engine, self.act)

    @cached_property
    def moments(self) -> tuple[float, float]:
        return find_moments(self.engine, self.truth, self.weights)

    def find_law(self, tolerance: float, most: int) -> dict[float, float]:
        return find_return_law(
            self.engine, self.truth, self.weights, tolerance=tolerance, most=most
        )
