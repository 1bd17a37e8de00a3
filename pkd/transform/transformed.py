"""What all transformers share: the base, what of it is unchanged, and how an episode is retold."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from pkd.model import (
    CHANCE,
    END,
    Episode,
    Known,
    Law,
    ModelError,
    PartiallyKnownMDP,
    Transition,
    UnknownReward,
)
from pkd.problem import as_model

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "NOTHING", "Instead", "OwnSamples", "Transformed", "find_first_offer", "has_own_samples",
]  # fmt: skip

# None is the base's "action" in its CHANCE states, so it cannot also mean that the base rests.
NOTHING: Final = object()
Instead = Callable[[Any, Any, Any], Any] | None  # (x, y, a) -> what is done where a is not on offer


class Transformed(PartiallyKnownMDP):
    """A model made of a base whose unknown features stay the only unknown ones.

    A base that overrides `samples` is asked for the samples of its own part of an episode; for this
    a subclass names its twin with `OwnSamples`. Otherwise `samples` stays the core's own, which the
    core runs compiled.
    """

    twin: ClassVar[type[Transformed]]  # the same class for a base with samples of its own

    def __new__(cls, base: Any = None, *arguments: Any, **options: Any) -> Transformed:
        # A pickle names the right class already, and comes without a base.
        own = base is not None and has_own_samples(base)
        return super().__new__(cls.twin if own else cls)

    def __init__(self, base: Any, instead: Instead) -> None:
        self.base = as_model(base)
        self.instead = instead
        self.horizon = self.base.horizon
        self.return_range = self.base.return_range
        self.n_features = self.base.n_features
        # The explorer asks tens of thousands of questions, and few of them are about another
        # state of the base.
        self._kinds: dict[tuple[Any, Any], Any] = {}

    @abstractmethod
    def find_base_action(self, x: Any, y: Any) -> Any:
        """The action by which the base moves now; None in its CHANCE states, NOTHING at rest."""

    def count_unseen(self, y: Any) -> int:
        """How many actions were chosen since the state of the base in y."""
        return 0

    def kind(self, x: Any, y: Any) -> Any:
        """What the base says of its state: its actions, CHANCE or END."""
        kind = self._kinds.get((x, y))
        if kind is None:
            kind = self._kinds[x, y] = self.base.actions(x, y)
        return kind

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when an action a meets its state (x, y)."""
        kind = self.kind(x, y)
        if a in kind:
            return a
        if self.instead is None:
            raise ModelError(
                f"the action {a!r} meets the state (x={x!r}, y={y!r}), which offers "
                f"{list(kind)!r}; say `instead=(x, y, a) -> action`: what is done there"
            )
        return self.instead(x, y, a)

    def base_branches(self, x: Any, y: Any, a: Any, *, last: bool) -> Iterable[Any]:
        """The base's own branches; `last`: of its last action, or a chance move after it."""
        return (self.base.last_step if last else self.base.step)(x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        action = self.find_base_action(x, y)
        return 0.0 if action is NOTHING else self.base.reward(x, y.y, action)

    def final(self, x: Any, y: Any) -> float:
        return self.base.final(x, y.y)

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.base.outcomes(z)

    def branching(self, z: Any) -> int:
        return self.base.branching(z)

    def base_episode(self, episode: Episode) -> Episode:
        """What happened to the base in an episode of this model."""
        moves = []
        for move in episode:
            action = self.find_base_action(move.x, move.y)
            if action is not NOTHING:
                moves.append(
                    Transition(move.x, move.y.y, action, move.x_next, move.y_next.y, move.reward)
                )
        return Episode(moves, episode.revealed, episode.final)

    def law(self, base: Law) -> Law:
        """The truth about this model from that about its base: the same law.

        A law that reveals something at the end of an episode is asked about the base's part of it.
        """
        return _Retold(self, base) if hasattr(base, "reveal") else base

    def x_label(self, x: Any) -> str:
        return self.base.x_label(x)

    def action_label(self, a: Any) -> str:
        return self.base.action_label(a)

    def feature_label(self, z: Any) -> str:
        return self.base.feature_label(z)

    def label_actions(self, y: Any, actions: Iterable[Any], word: str) -> str:
        """The base's y, if it has something to say, and a list of actions."""
        words = ", ".join(map(self.action_label, actions)) or "nothing"
        return f"{word} {words}" if y is None else f"{self.base.y_label(y)}, {word} {words}"


class OwnSamples(Transformed):
    """For a base that overrides `samples`."""

    def samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        return self.base.samples(self.base_episode(episode))


def has_own_samples(base: Any) -> bool:
    """Whether a base says itself what an episode teaches."""
    return type(as_model(base)).samples is not PartiallyKnownMDP.samples


@attrs.frozen
class _Retold:
    model: Transformed
    base: Any

    def __call__(self, z: Any) -> Mapping[Any, float]:
        found: Mapping[Any, float] = self.base(z) if callable(self.base) else self.base[z]
        return found

    def reveal(self, episode: Episode, rng: np.random.Generator) -> Any:
        """What the base's law shows at the end."""
        return self.base.reveal(self.model.base_episode(episode), rng)


def find_first_offer(base: PartiallyKnownMDP) -> tuple[Any, ...]:
    """The actions of the first decision state that is found from the start."""
    start = base.start()
    states = list(start) if isinstance(start, Mapping) else [start]
    seen = set(states)
    for x, y in states:
        kind = base.actions(x, y)
        if kind is CHANCE:
            for p, y_next, z in base.step(x, y, None):
                known = isinstance(z, Known)
                for x_next in [v for v, _ in z.law] if known else base.outcomes(z):
                    if p > 0 and (x_next, y_next) not in seen:
                        seen.add((x_next, y_next))
                        states.append((x_next, y_next))
        elif kind is not END:
            return tuple(kind)
    raise ModelError(f"{type(base).__name__} has no decision state; expected at least one")
