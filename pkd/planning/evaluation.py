"""The return of a policy, exactly: its mean, its variance and its law.

The mean of a plan or of a function is one sweep of the engine. Variance and law need every state
apart, so a model that was compiled as stripes is compiled once more for them, explicitly;
`pkd.planning.returns` finds them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pkd.engine.compiled import Act, Compiled, Truth
from pkd.expect import number, require, whole
from pkd.explore.limits import refuse_seconds
from pkd.explore.segments import lengths_to_ptr
from pkd.files.policies import adapt_policy
from pkd.model import Law, ModelError
from pkd.planning.plan import Model, Plan, Policy, resolve
from pkd.planning.returns import Array, Choices, find_moments, find_return_law
from pkd.planning.simulation import (
    RandomisedError,
    check_policy,
    find_policy_fault,
    read_weights,
    refuse_weights,
)
from pkd.progress import working

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

STEP_SECONDS = 2e-4  # measured: of one step of a small model
MOST_VALUES = 1_000_000  # values that the law of a return may have
SHOWN_FINDINGS = 10


def evaluate(
    model: Model, law: Law | Policy | None = None, policy: Policy | None = None
) -> Evaluation:
    """The exact expected return: evaluate(model, law, policy) or evaluate(problem, policy).

    A policy is a plan, or a function (h, x, y) that gives an action, or {action: probability} where
    it chooses at random; for a late problem also a function (h, state, queue, waited). The answer
    is a number; `.variance` and `.returns()` tell more.

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
    if policy is None:
        raise ModelError("policy is None; expected a Plan, or a function (h, x, y) -> action")
    check_policy(policy)
    compiled, found = resolve(model, law)  # type: ignore[arg-type]
    if isinstance(policy, Plan) and policy.compiled is compiled:
        with working("evaluating"):
            value, _ = compiled.solve(compiled.truth(found), policy.choices, follow=True)
        return Evaluation(value, compiled, found, policy.action, policy.choices)
    plain, policy = compiled.plain, adapt_policy(compiled.model, policy)
    try:
        with working("asking the policy"):
            choices = plain.tabulate(refuse_weights(policy))
    except RandomisedError:
        return Evaluation(None, compiled, found, policy)
    with working("evaluating"):
        value, _ = plain.solve(plain.truth(found), choices, follow=True)
    return Evaluation(value, compiled, found, policy, choices if plain is compiled else None)


class Evaluation(float):
    """The expected return of a policy; a number that also knows the law of the return.

    >>> import pkd
    >>> toss = pkd.TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[0.0], [1.0]], 10, start=[0.5, 0.5])
    >>> heads = pkd.evaluate(toss, lambda h, x, y: 0)
    >>> heads, heads.variance, round(heads.returns()[5.0], 10)  # binomial: 252 of 1024
    (5.0, 2.5, 0.24609375)
    """

    _read: Callable[[], tuple[NodeEngine, Truth, Choices]]
    _moments: Callable[[], tuple[float, float]]  # mean and variance

    def __new__(
        cls,
        value: float | None,
        compiled: Compiled,
        law: Law,
        act: Act,
        choices: Array | None = None,
    ) -> Evaluation:
        """value: None: found with the variance. choices: the policy of `compiled` itself."""

        @functools.cache
        def read() -> tuple[NodeEngine, Truth, Choices]:
            steps = compiled.horizon
            refuse_seconds(STEP_SECONDS * steps, f"the law of a return over {steps:,} steps")
            engine = compiled.explicit
            if choices is not None and engine is compiled:
                weights = Choices.from_plan(engine, choices)
            else:
                weights = tabulate_weights(engine, act)
            return engine, engine.truth(law), weights

        moments = functools.cache(lambda: find_moments(*read()))
        self = super().__new__(cls, moments()[0] if value is None else value)
        self._read, self._moments = read, moments
        return self

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)  # a file or another process gets the number

    @property
    def variance(self) -> float:
        """The variance of the return."""
        return self._moments()[1]

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
        require(number("tolerance", tolerance), whole("max_values", max_values, 1))
        return find_return_law(*self._read(), tolerance=tolerance, most=max_values)


def tabulate_weights(engine: NodeEngine, act: Act) -> Choices:
    """A function (h, x, y) -> action or {action: probability} as probabilities of actions."""
    ptr, findings, layers = lengths_to_ptr(engine.n_actions), list[str](), []
    for h in range(1, engine.horizon + 1):
        places, weights = list[int](), list[float]()
        for (_, choice), x, y, actions in engine.decisions(h):
            answer = act(h, x, y)
            fault = find_policy_fault(answer, actions)
            if fault is not None:
                findings.append(f"the policy {fault} at step {h} in (x={x!r}, y={y!r})")
                continue
            for action, p in read_weights(answer):
                places.append(int(ptr[choice]) + actions.index(action))
                weights.append(p)
        if findings:
            raise ModelError(findings[:SHOWN_FINDINGS])
        layers.append((np.array(places, np.int64), np.array(weights, float)))
    return Choices(ptr, layers)
