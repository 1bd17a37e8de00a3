"""What all transformers share: the base, what of it is unchanged, and how an episode is retold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from pkd.episode import Episode
from pkd.expect import function, if_given, key, require, show
from pkd.model import CHANCE, END, Known, Law, ModelError, PartiallyKnownMDP
from pkd.problem import as_model
from pkd.wrapped import Instead, Interleaved

if TYPE_CHECKING:
    import numpy as np


class Transformed(Interleaved):
    """A model made of a base whose unknown features stay the only unknown ones.

    A base with `samples` of its own is asked for those of its own part of an episode.
    """

    def __init__(self, base: Any, instead: Instead) -> None:
        require(if_given(function, "instead", instead, "(x, y, a) -> action"))
        super().__init__(as_model(base), instead)
        if self.base.samples is not None:
            self.samples = self.list_base_samples

    def find_base(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y.y

    def count_unseen(self, y: Any) -> int:
        """How many actions were chosen since the state of the base in y."""
        return 0

    def done(self, x: Any, y: Any, a: Any) -> Any:
        kind = self.kind(x, y)
        if self.instead is None and a not in kind:
            raise ModelError(
                f"the action {a!r} meets the state (x={x!r}, y={y!r}), which offers "
                f"{list(kind)!r}; say `instead=(x, y, a) -> action`: what is done there"
            )
        return super().done(x, y, a)

    def base_branches(self, x: Any, y: Any, a: Any, *, last: bool) -> Iterable[Any]:
        """The base's own branches; `last`: of its last action, or a chance move after it."""
        return (self.base.last_step if last else self.base.step)(x, y, a)

    def law(self, base: Law) -> Law:
        """The truth about this model from that about its base: the same law.

        A law that reveals something at the end of an episode is asked about the base's part of it.
        """
        return _Retold(self, base) if hasattr(base, "reveal") else base

    def label_actions(self, y: Any, actions: Iterable[Any], word: str) -> str:
        """The base's y, if it has something to say, and a list of actions."""
        words = ", ".join(map(self.action_label, actions)) or "nothing"
        return f"{word} {words}" if y is None else f"{self.base.y_label(y)}, {word} {words}"


@attrs.frozen
class _Retold:
    model: Transformed
    base: Any

    def __call__(self, z: Any) -> Mapping[Any, float]:
        found: Mapping[Any, float] = self.base(z) if callable(self.base) else self.base[z]
        return found

    def reveal(self, episode: Episode, rng: np.random.Generator) -> Any:
        """What the base's law shows at the end."""
        own = self.model.base_episode(episode, episode.revealed)
        return self.base.reveal(own, rng)


def find_commands(base: PartiallyKnownMDP, commands: Any) -> tuple[Any, ...]:
    """The commands that can be sent; None: those of the first decision state."""
    if commands is None:
        return find_first_offer(base)
    listed = isinstance(commands, Iterable) and not isinstance(commands, str | bytes | Mapping)
    found = tuple(commands) if listed else ()
    if not found:
        raise ModelError(f"commands is {show(commands)}; expected a list of actions, at least one")
    require(*(key("one of commands", command) for command in found))
    return found


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
