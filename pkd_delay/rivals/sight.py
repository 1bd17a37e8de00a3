"""What an agent sees of a base through a delayed model, and where the base may be by now.

`Sight` reads the base out of augmented states and episodes. `Forecast` is the belief over the
current state of the base, given the last shown state and the actions that were chosen since. A
model that is not delayed is its own base, of which everything is shown at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pkd import CHANCE, END, Episode, Known, PartiallyKnownMDP
from pkd_delay.augmented import Augmented
from pkd_delay.unknown import Hindsight, Move, UnknownDelay

if TYPE_CHECKING:
    from pkd.model import Law
    from pkd_delay.base import State

__all__ = ["Ask", "Forecast", "Sight"]

Ask = Callable[[Any], Mapping[Any, float]]  # feature -> {x': probability}


class Sight:
    """What an agent sees of a base through a delayed model.

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.models.tables import two_state_chain
    >>> model = DelayedMDP.constant(two_state_chain(), 2).known()
    >>> Sight(model).read(*model.place(1, None, (0, 1), 2))
    ((1, None), (0, 1))
    """

    def __init__(self, model: PartiallyKnownMDP) -> None:
        self.delayed = model if isinstance(model, Augmented) else None
        self.base = model.base if isinstance(model, Augmented) else model

    def read(self, x: Any, y: Any) -> tuple[State, tuple[Any, ...]]:
        """The last shown state of the base, and the actions chosen since."""
        if self.delayed is None:
            return (x, y), ()
        base_x, base_y, queue, _ = self.delayed.read(x, y)
        return (base_x, base_y), tuple(queue or ())

    def do(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when a chosen action a meets its state (x, y)."""
        return a if self.delayed is None else self.delayed.done(x, y, a)

    def retell(self, episode: Episode) -> Episode:
        """What happened to the base in an episode."""
        if self.delayed is None:
            return episode
        revealed = episode.revealed
        if isinstance(self.delayed, UnknownDelay):
            revealed = revealed.base if isinstance(revealed, Hindsight) else None
        return self.delayed.base_episode(episode, revealed)

    def find_base_law(self, law: Law) -> Ask:
        """The law of the base from that of the delayed model."""
        delayed = self.delayed
        moves = frozenset(delayed.facts.features) if isinstance(delayed, UnknownDelay) else ()

        def ask(z: Any) -> Mapping[Any, float]:
            if z not in moves:
                return law[z] if isinstance(law, Mapping) else law(z)
            lifted = Move(z, delayed.depth)  # type: ignore[union-attr]
            found = law[lifted] if isinstance(law, Mapping) else law(lifted)
            return {x: p for (x, _), p in found.items()}

        return ask


class Forecast:
    """Where a base is now, if it was in a state and some actions have met it since.

        b(s') = sum_s b(s) P(s' | s, a),   from action to action, through CHANCE states

    The counter of a delayed model says nothing about it: an inter-arrival time is independent of
    the state that it delays.

    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain()
    >>> found = Forecast(Sight(chain.model()), lambda z: chain.law()[z]).after((0, None), (1, 1))
    >>> {x: round(p, 10) for (x, _), p in found.items()}
    {0: 0.82, 1: 0.18}
    """

    def __init__(self, sight: Sight, law: Ask) -> None:
        self.sight, self.base, self.law = sight, sight.base, law
        self._beliefs: dict[tuple[State, tuple[Any, ...]], dict[State, float]] = {}
        self._moves: dict[tuple[State, Any], dict[State, float]] = {}

    def after(self, state: State, actions: tuple[Any, ...]) -> dict[State, float]:
        """The probability of each state that the base can be in now."""
        found = self._beliefs.get((state, actions))
        if found is None:
            found = {state: 1.0}
            if actions:
                found = {}
                for before, p in self.after(state, actions[:-1]).items():
                    _add(found, self._move(before, actions[-1]), p)
            self._beliefs[state, actions] = found
        return found

    def _move(self, state: State, action: Any) -> dict[State, float]:
        """What follows one chosen action, in states where the base decides or has ended."""
        found = self._moves.get((state, action))
        if found is None:
            if self.base.actions(*state) is END:
                found = {state: 1.0}
            else:
                found = self._step(state, self.sight.do(*state, action))
            self._moves[state, action] = found
        return found

    def _step(self, state: State, action: Any) -> dict[State, float]:
        found: dict[State, float] = {}
        for p, y_next, z in self.base.step(*state, action):
            law = dict(z.law) if isinstance(z, Known) else self.law(z)
            for x_next, q in law.items():
                if p * q > 0:
                    reached = x_next, y_next
                    chance = self.base.actions(*reached) is CHANCE
                    _add(found, self._step(reached, None) if chance else {reached: 1.0}, p * q)
        return found


def _add(total: dict[State, float], part: Mapping[State, float], weight: float) -> None:
    for state, p in part.items():
        total[state] = total.get(state, 0.0) + weight * p
