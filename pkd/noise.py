"""`NoiseMDP`: the everyday form s' = f(s, a, w), where only the law of the noise w is unknown."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from pkd.model import CHANCE, Branch, ModelError, PartiallyKnownMDP, UnknownReward, sure


@attrs.frozen
class Landing:
    """The y of a `NoiseMDP` between an action and its effect: the noise is drawn and about to act.

    >>> Landing(3, "order").state
    3
    """

    state: Any
    action: Any


@attrs.frozen
class Landed:
    """The y of a `NoiseMDP` whose next state was drawn by a known law, and is about to be paid."""

    state: Any
    reward: float | UnknownReward


class NoiseMDP(PartiallyKnownMDP):
    """The everyday form s' = f(s, a, w): `land` is known, the law of the noise w is not.

    Subclasses give `horizon`, `initial`, `choices`, `noise`, `outcomes` and `land`. As a partially
    known MDP: y = s and x = None where a choice is made; then x = w and y = Landing(s, a), where
    the reward is paid and no time passes. What else is random, with known probabilities, `land`
    gives as a list [(probability, reward, s'), ...]; the reward is then paid in y = Landed(s', r).

    >>> import pkd
    >>> class Coin(NoiseMDP):
    ...     horizon = 3
    ...     def initial(self): return 0
    ...     def choices(self, s): return ["call"]
    ...     def noise(self, s, a): return "coin"
    ...     def outcomes(self, z): return [0, 1]
    ...     def land(self, s, a, w): return w, s + w
    >>> Coin().step(None, 0, "call")
    [(1.0, Landing(state=0, action='call'), 'coin')]

    A stake may be lost with a known probability of 0.1:

    >>> class Risky(Coin):
    ...     def land(self, s, a, w): return [(0.9, w, s + w), (0.1, 0.0, s)]
    >>> round(pkd.plan(Risky(), {"coin": {0: 0.5, 1: 0.5}}).value, 12)
    1.35
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
    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any] | list[tuple[float, float, Any]]:
        """(reward, s') when w meets action a in s; or a list of (probability, reward, s')."""

    def ending(self, s: Any) -> float:
        """Paid once where the episode stops."""
        return 0.0

    def start(self) -> Any:
        return (self._AT_CHOICE, self.initial())

    def actions(self, x: Any, y: Any) -> Any:
        return CHANCE if isinstance(y, Landing | Landed) else self.choices(y)

    def step(self, x: Any, y: Any, a: Any) -> Sequence[Branch]:
        if isinstance(y, Landed):
            return [(1.0, y.state, sure(self._AT_CHOICE))]
        if not isinstance(y, Landing):
            return [(1.0, Landing(y, a), self.noise(y, a))]
        found = self._land(x, y)
        if isinstance(found, tuple):
            return [(1.0, found[1], sure(self._AT_CHOICE))]
        return [(p, Landed(after, paid), sure(self._AT_CHOICE)) for p, paid, after in found]

    def _land(self, w: Any, y: Landing) -> Any:
        """What `land` says: a pair, or a list of triples."""
        found = self.land(y.state, y.action, w)
        if isinstance(found, list):
            if all(isinstance(one, tuple) and len(one) == 3 for one in found):
                return found
        elif isinstance(found, tuple) and len(found) == 2:
            return found
        raise ModelError(
            f"land(s={y.state!r}, a={y.action!r}, w={w!r}) returned {found!r}; expected "
            "(reward, s') or a list of (probability, reward, s')"
        )

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        if isinstance(y, Landed):
            return y.reward
        found = self._land(x, y) if isinstance(y, Landing) else None
        paid: float | UnknownReward = found[0] if isinstance(found, tuple) else 0.0
        return paid

    def final(self, x: Any, y: Any) -> float:
        return 0.0 if isinstance(y, Landing | Landed) else self.ending(y)

    def y_label(self, y: Any) -> str:
        if isinstance(y, Landed):
            return f"{y.state}, paid"
        return (
            f"{y.state} after {self.action_label(y.action)}" if isinstance(y, Landing) else str(y)
        )
