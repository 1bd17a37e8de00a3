"""`NoiseMDP`: the everyday form s' = f(s, a, w), where only the law of the noise w is unknown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from pkd.model import CHANCE, Branch, PartiallyKnownMDP, UnknownReward, sure

__all__ = ["Landing", "NoiseMDP"]


@attrs.frozen
class Landing:
    """The y of a `NoiseMDP` between an action and its effect: the noise is drawn and about to act.

    >>> Landing(3, "order").state
    3
    """

    state: Any
    action: Any


class NoiseMDP(PartiallyKnownMDP):
    """The everyday form s' = f(s, a, w): `land` is known, the law of the noise w is not.

    Subclasses give `horizon`, `initial`, `choices`, `noise`, `outcomes` and `land`. As a partially
    known MDP: y = s and x = None where a choice is made; then x = w and y = Landing(s, a), where
    the reward is paid and no time passes.

    >>> class Coin(NoiseMDP):
    ...     horizon = 3
    ...     def initial(self): return 0
    ...     def choices(self, s): return ["call"]
    ...     def noise(self, s, a): return "coin"
    ...     def outcomes(self, z): return [0, 1]
    ...     def land(self, s, a, w): return w, s + w
    >>> Coin().step(None, 0, "call")
    [(1.0, Landing(state=0, action='call'), 'coin')]
    """

    _AT_CHOICE: ClassVar[None] = None

    @abstractmethod
    def initial(self) -> Any:
        """The first state s. For a distribution override `start` with {(None, s): probability}."""

    @abstractmethod
    def choices(self, s: Any) -> Any:
        """The actions in s: a non-empty sequence, or CHANCE, or END."""

    @abstractmethod
    def noise(self, s: Any, a: Any) -> Any:
        """z: the feature on which the law of w depends, or Known(...)."""

    @abstractmethod
    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        """(reward, s') when w meets action a in s."""

    def ending(self, s: Any) -> float:
        """Paid once where the episode stops."""
        return 0.0

    def start(self) -> Any:
        return (self._AT_CHOICE, self.initial())

    def actions(self, x: Any, y: Any) -> Any:
        return CHANCE if isinstance(y, Landing) else self.choices(y)

    def step(self, x: Any, y: Any, a: Any) -> Sequence[Branch]:
        if isinstance(y, Landing):
            return [(1.0, self.land(y.state, y.action, x)[1], sure(self._AT_CHOICE))]
        return [(1.0, Landing(y, a), self.noise(y, a))]

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.land(y.state, y.action, x)[0] if isinstance(y, Landing) else 0.0

    def final(self, x: Any, y: Any) -> float:
        return 0.0 if isinstance(y, Landing) else self.ending(y)

    def y_label(self, y: Any) -> str:
        return (
            f"{y.state} after {self.action_label(y.action)}" if isinstance(y, Landing) else str(y)
        )
