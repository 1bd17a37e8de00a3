"""`UnknownDelay`: the decomposition of the paper's Theorem 2, for a delay law that is learned too.

X is the base's X x counter; Y is the base's Y x queue. Beside the base's features there are the
arrivals, each with two outcomes. Raw inter-arrival times are shown when an episode is over. They
give samples of every arrival, also of those that clipping or the end of the episode hid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

import pkd
from pkd import Episode, Known, ModelError, PartiallyKnownMDP, Queue
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.base import Base, BaseFacts, Instead, State, survey
from pkd_delay.features import Arrival, Move, next_depth

if TYPE_CHECKING:
    from pkd import Compiled, Law
    from pkd.engine.compiled import Player, Truth
    from pkd.model import Branch

__all__ = ["Arrival", "DelayFeature", "Hindsight", "Move", "Queued", "UnknownDelay"]


class Queued(NamedTuple):
    """The y of an `UnknownDelay`."""

    y: Any  # of the last shown state of the base
    queue: Queue | None  # unresolved actions, oldest first; None: the episode is over


@attrs.frozen
class Hindsight:
    """What an episode reveals at its end when the base has something to reveal, too."""

    deltas: tuple[int, ...]  # raw inter-arrival times
    base: Any


# (x, y, a) of the base -> what the delay depends on besides x
DelayFeature = Callable[[Any, Any, Any], Any] | None


class UnknownDelay(Augmented):
    """A base model whose states are shown late by an unknown law; it holds bounds and no law.

        z = Move(phi_Z of the base) on tran;
        z = Arrival(x, a, c, empty) on an arrival that is not forced

    `longest` is W, a bound on one inter-arrival time. `delay_feature(x, y, a)` may say that the
    delay depends on less than the whole state and action. `episode.revealed` must hold the raw
    inter-arrival times of the base's actions, in order. `facts` are those of the same base with the
    same `instead`, where they are known already.

    |Z| in the logarithms is the number of features that can occur, moves and arrivals: the union
    bound of the general guarantee runs over them. If the base declares its own |Z|, that number
    takes the place of the moves. `n_features` replaces both: `DelayedMDP` gives the W'SA of
    MVP-Delayed, W' = max(W, 1), which is less than the (W + 3) S A features that a table can have.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> model = pkd_delay.UnknownDelay(two_state_chain().model(), longest=1, max_delay=1)
    >>> truth = pkd_delay.DelayedMDP.constant(two_state_chain(), 1).law()
    >>> round(pkd.plan(model, truth).value, 12)
    9.1
    """

    y_type = Queued

    def __init__(
        self,
        base: Base,
        longest: int,
        max_delay: int,
        *,
        delay_feature: DelayFeature = None,
        instead: Instead = None,
        n_features: int | None = None,
        facts: BaseFacts | None = None,
    ) -> None:
        base = pkd.as_model(base)
        facts = facts or survey(base, instead)
        super().__init__(base, facts, longest, max_delay, instead, n_features)
        self.delay_feature = delay_feature or (_action if facts.n_y == 1 else _y_and_action)
        self.depth = next_depth(facts.features)
        self._common_given: dict[State, Any] = {}  # _DEPENDS: it depends on the action
        self._arrivals: dict[tuple[Any, Any], tuple[Arrival, ...]] = {}
        if n_features is None and base.n_features is not None:
            arrivals = sum(len(self._find_arrivals(*key)) for key in self._steps)
            self.n_features = base.n_features + arrivals

    @cached_property
    def _steps(self) -> dict[tuple[Any, Any], tuple[float, float]]:
        """(x, given) -> the first step of such a state and action, and the first from 2 on."""
        steps: dict[tuple[Any, Any], tuple[float, float]] = {}
        for (x, y), (first, again) in self.facts.decisions.items():
            for a in self._kind(x, y):
                key = (x, self.delay_feature(x, y, a))
                other = steps.get(key, (math.inf, math.inf))
                steps[key] = (min(first, other[0]), min(again, other[1]))
        return steps

    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue | None, int]:
        base_y, queue = y
        base_x, counter = x
        return base_x, base_y, Queue(queue) if type(queue) is tuple else queue, counter

    def _join(self, x: Any, y: Any, queue: Queue | None, counter: int) -> tuple[Any, Queued]:
        return (x, counter), Queued(y, queue)

    def _arrive(self, x: Any, y: Any, queue: Queue, waited: int, *, empty: bool) -> list[Branch]:
        given = self._common_given.get((x, y), _UNASKED)
        if given is _UNASKED:
            given = self._common_given[x, y] = self._find_common_given(x, y)
        if given is _DEPENDS:
            given = self.delay_feature(x, y, self.done(x, y, queue.oldest))
        return [(1.0, Queued(y, queue), Arrival(x, given, waited, empty, self.depth))]

    def _find_common_given(self, x: Any, y: Any) -> Any:
        """The delay_feature in (x, y), if it is the same for all actions: then none is read."""
        first, *others = (self.delay_feature(x, y, a) for a in self._kind(x, y))
        return first if all(given == first for given in others) else _DEPENDS

    def _lift(self, z: Any) -> Any:
        if isinstance(z, Known):
            return Known({(x_next, SHOWN): p for x_next, p in z.law})
        return Move(z, self.depth)

    def _place_shown(self, y: Any, queue: Queue | None) -> Queued:
        return Queued(y, queue)

    def outcomes(self, z: Move | Arrival) -> Iterable[Any]:
        if isinstance(z, Move):
            return [(x_next, SHOWN) for x_next in self.base.outcomes(z.feature)]
        return [(z.x, TRAN), (z.x, z.waited + 1)]

    def branching(self, z: Move | Arrival) -> int:
        return self.base.branching(z.feature) if isinstance(z, Move) else 2

    def share(self, z: Move | Arrival, y: Queued) -> float:
        n = 0 if y.queue is None else len(y.queue)
        if isinstance(z, Move):
            return self.queue_share(n + 1) * self.base_share(z.feature, y.y)
        return self.queue_share(n) / self.facts.n_y

    def note(self, x: Any, y: Any, a: Any) -> tuple[Any, Any, Any] | None:
        """The base's (x, y, action) that a tran resolves: its Delta is shown at the end."""
        if x[1] != TRAN:
            return None
        base_x, base_y, queue, counter = self.read(x, y)
        action = self._find_base_action(base_x, base_y, queue, counter)
        return None if action is None else (base_x, base_y, action)

    def hindsight(self, compiled: Compiled, truth: Truth, law: Law) -> Player | None:
        """Compiled episodes, if the base leaves `samples` to the core and law is a `DelayLaw`."""
        from pkd_delay.hindsight import HindsightPlayer
        from pkd_delay.law import DelayLaw

        plain = type(self.base).samples is PartiallyKnownMDP.samples
        if not plain or not isinstance(law, DelayLaw):
            return None
        return HindsightPlayer(compiled, self, truth.world, law.delay_of)

    def samples(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        """The base's samples of all its moves, and the arrivals that each action's Delta decided.

        For j = -1, 0, ..., min(Delta, W - 1): Arrival(j) is TRAN if Delta = j, else j + 1; with an
        empty queue it is TRAN if Delta <= 0.
        """
        revealed = episode.revealed
        deltas, base_part = revealed, None
        if isinstance(revealed, Hindsight):
            deltas, base_part = revealed.deltas, revealed.base
        base_episode = self.base_episode(episode, base_part)
        acted = [move for move in base_episode if move.action is not None]
        if deltas is None or len(deltas) != len(acted):
            found = "nothing" if deltas is None else f"{len(deltas)} numbers"
            raise ModelError(
                f"episode.revealed has {found}; expected the raw inter-arrival times of the "
                f"{len(acted)} actions, shown at the end"
            )
        for z, x_next in self.base.samples(base_episode):
            yield Move(z, self.depth), (x_next, SHOWN)
        for move, delta in zip(acted, deltas, strict=True):
            yield from self.arrivals(move.x, self.delay_feature(move.x, move.y, move.action), delta)

    def arrivals(self, x: Any, given: Any, delta: int) -> Iterator[tuple[Arrival, tuple[Any, int]]]:
        """The arrivals that one Delta decides, of those that can occur, each with its outcome."""
        if not -1 <= delta <= self.longest:
            raise ModelError(
                f"an inter-arrival time is {delta!r}; expected -1 to longest={self.longest}"
            )
        for z in self._find_arrivals(x, given):
            if z.empty:
                yield z, (x, TRAN if delta <= 0 else 1)
            elif z.waited <= delta:
                yield z, (x, TRAN if delta == z.waited else z.waited + 1)

    def _find_arrivals(self, x: Any, given: Any) -> tuple[Arrival, ...]:
        """The arrivals that can occur. Clips and the end of the episode force the others."""
        if (x, given) in self._arrivals:
            return self._arrivals[x, given]
        found = []
        first, again = self._steps[x, given]
        if self.max_delay > 0 and self.longest > 0:  # otherwise no state is ever late
            if first < self.horizon:
                found.append(Arrival(x, given, 0, True, self.depth))
            for waited in range(-1, min(self.longest, self.max_delay)):
                # A queue that is not empty without any waiting needs an earlier late state.
                least, earliest = (waited, first) if waited > 0 else (waited + 1, again)
                if least < self.max_delay and earliest + least < self.horizon:
                    found.append(Arrival(x, given, waited, False, self.depth))
        self._arrivals[x, given] = tuple(found)
        return self._arrivals[x, given]

    def x_label(self, x: tuple[Any, int]) -> str:
        return f"{self.base.x_label(x[0])}, {self._label_counter(x[1])}"

    def y_label(self, y: Queued) -> str:
        return self._label_queue(y.y, y.queue)

    def feature_label(self, z: Move | Arrival) -> str:
        if isinstance(z, Move):
            return self.base.feature_label(z.feature)
        queue = ", empty queue" if z.empty else ""
        return f"arrival after {z.waited} from {self.base.x_label(z.x)} given {z.given}{queue}"


def _action(x: Any, y: Any, a: Any) -> Any:
    return a


def _y_and_action(x: Any, y: Any, a: Any) -> tuple[Any, Any]:
    return y, a


_DEPENDS: Final = object()  # on the action
_UNASKED: Final = object()
