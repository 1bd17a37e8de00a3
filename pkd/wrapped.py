"""Models around a base: `Wrapped` is what all share, `Interleaved` is for those that move it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pkd.episode import Episode, Transition, list_samples
from pkd.model import PartiallyKnownMDP, UnknownReward
from pkd.queue import find_queue

__all__ = ["NOTHING", "Instead", "Interleaved", "Wrapped"]

# None is the base's "action" in its CHANCE states, so it cannot also mean that the base rests.
NOTHING: Final = object()
Instead = Callable[[Any, Any, Any], Any] | None  # (x, y, a) -> what is done where a is not on offer


class Wrapped(PartiallyKnownMDP):
    """What every model around a base shares: sizes, the start, outcomes, B(z) and labels."""

    def __init__(self, base: PartiallyKnownMDP) -> None:
        self.base, self.horizon = base, base.horizon
        self.return_range, self.n_features = base.return_range, base.n_features
        # A part of the episode is the base's, and what it visits the base visits.
        self.samples_cover_visits = base.samples_cover_visits
        # The explorer asks tens of thousands of questions, and few of them are about another
        # state of the base.
        self._kinds: dict[tuple[Any, Any], Any] = {}

    @abstractmethod
    def first(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The first state of this model for one of the base."""

    def start(self) -> Any:
        start = self.base.start()
        if isinstance(start, Mapping):
            return {self.first(*state): p for state, p in start.items()}
        return self.first(*start)

    def kind(self, x: Any, y: Any) -> Any:
        """What the base says of its state: its actions, CHANCE or END."""
        if find_queue(y) is not None:  # a key would read the queue of the base: that is a look
            return self.base.actions(x, y)
        kind = self._kinds.get((x, y))
        if kind is None:
            kind = self._kinds[x, y] = self.base.actions(x, y)
        return kind

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.base.outcomes(z)

    def branching(self, z: Any) -> int:
        return self.base.branching(z)

    def x_label(self, x: Any) -> str:
        return self.base.x_label(x)

    def action_label(self, a: Any) -> str:
        return self.base.action_label(a)

    def feature_label(self, z: Any) -> str:
        return self.base.feature_label(z)


class Interleaved(Wrapped):
    """A model in which the moves of a base are interleaved with moves that pay nothing.

    A subclass says where the base is (`find_base`) and by what it moves (`find_base_action`).
    """

    def __init__(self, base: PartiallyKnownMDP, instead: Instead) -> None:
        super().__init__(base)
        self.instead = instead

    @abstractmethod
    def find_base(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The base's (x, y) in a state of this model."""

    @abstractmethod
    def find_base_action(self, x: Any, y: Any) -> Any:
        """The action by which the base moves now; None in its CHANCE states, NOTHING at rest."""

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when an action a meets its state (x, y)."""
        if self.instead is None or a in self.kind(x, y):
            return a
        return self.instead(x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        action = self.find_base_action(x, y)
        return 0.0 if action is NOTHING else self.base.reward(*self.find_base(x, y), action)

    def final(self, x: Any, y: Any) -> float:
        return self.base.final(*self.find_base(x, y))

    def base_episode(self, episode: Episode, revealed: Any = None) -> Episode:
        """What happened to the base in an episode of this model, and what is revealed of that."""
        moves = []
        for move in episode:
            action = self.find_base_action(move.x, move.y)
            if action is not NOTHING:
                before = self.find_base(move.x, move.y)
                after = self.find_base(move.x_next, move.y_next)
                moves.append(Transition(*before, action, *after, move.reward))
        return Episode(moves, revealed, episode.final)

    def list_base_samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        """The samples of the base from its part of an episode."""
        return list_samples(self.base, self.base_episode(episode, episode.revealed))
