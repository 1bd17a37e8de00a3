"""An episode, move by move, and the samples that it teaches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pkd.model import Branch, Known, ModelError, PartiallyKnownMDP

__all__ = ["Episode", "Transition", "list_branches", "list_samples", "list_visited"]


@attrs.frozen
class Transition:
    """One move of an episode: from (x, y) to (x_next, y_next).

    `action` is None in a CHANCE state.

    >>> Transition("sunny", 3, "sell", "rainy", 2).y_next
    2
    """

    x: Any
    y: Any
    action: Any
    x_next: Any
    y_next: Any
    reward: float | None = None  # what was paid; needed only where the model has an UnknownReward


def _tuple(transitions: Iterable[Transition]) -> tuple[Transition, ...]:
    return tuple(transitions)


@attrs.frozen
class Episode:
    """Everything that is seen of one episode by its end.

    >>> episode = Episode([Transition(None, 0, "call", 1, 0)])
    >>> len(episode), [move.action for move in episode]
    (1, ['call'])
    """

    transitions: tuple[Transition, ...] = attrs.field(converter=_tuple)
    revealed: Any = None  # what the environment shows only at the end
    final: float = 0.0  # what was paid where the episode stopped

    @property
    def total(self) -> float:
        """The return: everything that was paid, the final pay included."""
        return math.fsum(move.reward or 0.0 for move in self.transitions) + self.final

    def table(self) -> str:
        """The moves as text, one line each."""
        lines = [("x", "y", "action", "reward", "x'", "y'")]
        for m in self.transitions:
            paid = "" if m.reward is None else f"{m.reward:.6g}"
            action = "-" if m.action is None else str(m.action)
            lines.append((str(m.x), str(m.y), action, paid, str(m.x_next), str(m.y_next)))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(row.rstrip() for row in rows)

    def __str__(self) -> str:
        return f"<Episode: {len(self)} moves, return {self.total:.6g}>"

    def __len__(self) -> int:
        return len(self.transitions)

    def __iter__(self) -> Iterator[Transition]:
        return iter(self.transitions)


def list_branches(model: PartiallyKnownMDP, x: Any, y: Any, a: Any, taken: int) -> list[Branch]:
    """What can follow when `taken` actions have been taken, this one included: p > 0 only."""
    answer = (model.step if taken < model.horizon else model.last_step)(x, y, a)
    return [branch for branch in answer if branch[0] > 0]


def list_visited(model: PartiallyKnownMDP, episode: Episode) -> list[tuple[Any, Any]]:
    """The (z, x') of the unknown features that an episode went through."""
    pairs, taken = [], 0
    for move in episode:
        taken += move.action is not None
        branches = list_branches(model, move.x, move.y, move.action, taken)
        found = [z for _, y_next, z in branches if y_next == move.y_next]
        if not found:
            where = f"(x={move.x!r}, y={move.y!r}) and the action {move.action!r}"
            raise ModelError(f"y' = {move.y_next!r} cannot follow {where}")
        if not isinstance(found[0], Known):
            pairs.append((found[0], move.x_next))
    return pairs


def list_samples(model: PartiallyKnownMDP, episode: Episode) -> Iterable[tuple[Any, Any]]:
    """The (z, x') pairs that an episode teaches: the model's own samples, or the visited ones."""
    return list_visited(model, episode) if model.samples is None else model.samples(episode)
