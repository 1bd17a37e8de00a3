"""The base of a delayed problem, moved by its true law, one action at a time.

`Simulator` shows its states late, and `ProblemEnv` shows them at once, for `LateEnv` to delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd import CHANCE, END, Known, PartiallyKnownMDP, Transition, UnknownReward
from pkd_delay.base import State

if TYPE_CHECKING:
    from pkd import Law

__all__ = ["TrueBase"]


class TrueBase:
    """A model and its law, played without delay.

    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain(horizon=2, stay=1.0)
    >>> base = TrueBase(chain.model(), chain.law())
    >>> base.reset(np.random.default_rng(0)), base.here
    ((), (0, None))
    >>> [move.reward for move in base.act(0, settling=False)], base.here
    ([1.0], (0, None))
    """

    here: State

    def __init__(self, model: PartiallyKnownMDP, law: Law) -> None:
        self.model, self._law = model, law

    def reset(self, rng: np.random.Generator) -> tuple[Transition, ...]:
        """Goes to a first state; the CHANCE moves of the base until its first decision."""
        self._rng, start = rng, self.model.start()
        self.here = self._draw(start.items()) if isinstance(start, Mapping) else start
        return self._run_chance(settling=False)

    @property
    def over(self) -> bool:
        """Whether the base has ended."""
        return self.model.actions(*self.here) is END

    def act(self, action: Any, *, settling: bool) -> tuple[Transition, ...]:
        """The move of the base by an action, and the CHANCE moves that follow."""
        return (self._move(action, settling=settling), *self._run_chance(settling=settling))

    def _run_chance(self, *, settling: bool) -> tuple[Transition, ...]:
        moves = []
        while self.model.actions(*self.here) is CHANCE:
            moves.append(self._move(None, settling=settling))
        return tuple(moves)

    def _move(self, action: Any, *, settling: bool) -> Transition:
        x, y = self.here
        step = self.model.last_step if settling else self.model.step
        y_next, z = self._draw([((y_next, z), p) for p, y_next, z in step(x, y, action)])
        x_next = self._draw(z.law if isinstance(z, Known) else self._ask(z))
        reward = self.model.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            reward = self._draw(self._ask(reward.feature))
        self.here = (x_next, y_next)
        return Transition(x, y, action, x_next, y_next, reward)

    def _ask(self, z: Any) -> Iterable[tuple[Any, float]]:
        law = self._law[z] if isinstance(self._law, Mapping) else self._law(z)
        return law.items()

    def _draw(self, pairs: Iterable[tuple[Any, float]]) -> Any:
        mark, value = self._rng.random(), None
        for candidate, p in pairs:
            if p > 0.0:
                value, mark = candidate, mark - p
                if mark < 0.0:
                    break
        return value
