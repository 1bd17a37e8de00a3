"""A model with a policy inside: nature draws the action, and nobody chooses.

`UnderPolicy(model, act)` plays a policy that chooses at random, {action: probability}. A decision
state has one action, `follow`. It draws a, in no time and with nothing paid, and a CHANCE state
then does what a does in the model:

    (x, (h, y)) --follow--> (x, (h, y, a)) --CHANCE--> (x', (h + 1, y'))

with probability pi_h(a | x, y) for a and with the model's own law after it.

Features, outcomes and rewards are those of the model, so whatever holds for a value of this model
holds for the value of the policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pkd.engine.compiled import Act
from pkd.episode import list_branches
from pkd.model import CHANCE, END, Branch, ModelError, PartiallyKnownMDP, UnknownReward, sure
from pkd.planning.simulation import find_policy_fault, read_weights
from pkd.wrapped import Wrapped

FOLLOW = "follow"


class Place(NamedTuple):
    """The y of an `UnderPolicy`."""

    h: int  # the step of the next action
    y: Any
    drawn: tuple[Any, ...] = ()  # the action that was drawn, (a,), before it is done


class UnderPolicy(Wrapped):
    """The model under a policy (h, x, y) -> action or {action: probability}.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> half = lambda h, x, y: {0: 0.5, 1: 0.5}
    >>> pkd.plan(UnderPolicy(coin.model(), half), coin.law()).value, pkd.evaluate(coin, half)
    (0.625, 0.625)
    """

    def __init__(self, model: PartiallyKnownMDP, act: Act) -> None:
        super().__init__(model)
        self.act, self.return_range, self.n_features = act, None, None

    def first(self, x: Any, y: Any) -> tuple[Any, Place]:
        return x, Place(1, y)

    def actions(self, x: Any, y: Place) -> Any:
        if y.drawn:
            return CHANCE
        kind = self.base.actions(x, y.y)
        return kind if kind is CHANCE or kind is END else (FOLLOW,)

    def step(self, x: Any, y: Place, a: Any) -> list[Branch]:
        if a == FOLLOW and not y.drawn:
            return [(p, y._replace(drawn=(b,)), sure(x)) for b, p in self._choose(x, y)]
        taken, done = (y.h, y.drawn[0]) if y.drawn else (y.h - 1, None)
        branches = list_branches(self.base, x, y.y, done, taken)
        return [(p, Place(taken + 1, y_next), z) for p, y_next, z in branches]

    def _choose(self, x: Any, y: Place) -> list[tuple[Any, float]]:
        answer = self.act(y.h, x, y.y)
        fault = find_policy_fault(answer, list(self.base.actions(x, y.y)))
        if fault is not None:
            raise ModelError(f"the policy {fault} at step {y.h} in (x={x!r}, y={y.y!r})")
        return read_weights(answer)

    def reward(self, x: Any, y: Place, a: Any) -> float | UnknownReward:
        if a == FOLLOW and not y.drawn:
            return 0.0
        return self.base.reward(x, y.y, y.drawn[0] if y.drawn else None)

    def final(self, x: Any, y: Place) -> float:
        return self.base.final(x, y.y)
