"""`UnknownDelay`: the decomposition of the paper's Theorem 2, for a law of the delay that must be learned too.

X is the base's X x counter; Y is the base's Y x queue. Next to the base's features there are the arrivals, each with two outcomes. Raw
inter-arrival times are shown when an episode is over; from them come samples of every arrival, also of those that clipping or the end hid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from pkd import Episode, Known, ModelError, PartiallyKnownMDP
from pkd_delay.augmented import SHOWN, TRAN, Augmented, Queue
from pkd_delay.base import BaseFacts, Instead, survey

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["Arrival", "Hindsight", "Move", "Queued", "UnknownDelay"]

SOME_QUEUES, MANY_STATES = 8, 10_000  # more than for a known law: an explored model has compiled episodes, a thousand times faster


class Queued(NamedTuple):
    """The y of an `UnknownDelay`."""

    y: Any  # of the last shown state of the base
    queue: Queue  # unresolved actions, oldest first


class Move(NamedTuple):
    """The feature of a tran: z = (s, a, tran) of the paper, with the base's own feature in place of (s, a)."""

    feature: Any


class Arrival(NamedTuple):
    """The feature of an arrival: z = (s, a, counter) of the paper, and the flag for the empty queue. B(z) = 2."""

    x: Any  # of the last shown state of the base
    given: Any  # what else the delay depends on: the action, or (y, action), or the user's delay_feature
    waited: int  # -1 where a state was just shown
    empty: bool  # then the arrival means Delta <= 0 and not Delta = waited


@attrs.frozen
class Hindsight:
    """What an episode reveals at its end when the base has something to reveal, too."""

    deltas: tuple[int, ...]  # raw inter-arrival times
    base: Any


DelayFeature = Callable[[Any, Any, Any], Any] | None  # (x, y, a) of the base -> what the delay depends on besides x


class UnknownDelay(Augmented):
    """A base model whose states are shown late by a law that is not known; it holds bounds on the delay and no law.

        z = Move(phi_Z of the base) on tran; z = Arrival(x, a, c, empty) on an arrival that is not forced

    `longest` is W, a bound on one inter-arrival time. `delay_feature(x, y, a)` may say that the delay depends on less than the whole state
    and action. `facts` are those of the same base with the same `instead`, where they are known already. `episode.revealed` must hold the
    raw inter-arrival times of the base's actions, in order.

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
        base: PartiallyKnownMDP,
        longest: int,
        max_delay: int,
        *,
        delay_feature: DelayFeature = None,
        instead: Instead = None,
        n_features: int | None = None,
        facts: BaseFacts | None = None,
    ) -> None:
        super().__init__(base, facts or survey(base, instead), longest, max_delay, instead, n_features)
        whole: Callable[[Any, Any, Any], Any] = (lambda x, y, a: a) if self.facts.n_y == 1 else (lambda x, y, a: (y, a))
        self.delay_feature = delay_feature or whole
        self._steps: dict[tuple[Any, Any], tuple[float, float]] = {}  # (x, given) -> first step of such a state, and first from 2 on
        for (x, y), steps in self.facts.decisions.items():
            for a in base.actions(x, y):
                key = (x, self.delay_feature(x, y, a))
                first, again = self._steps.get(key, (math.inf, math.inf))
                self._steps[key] = (min(first, steps[0]), min(again, steps[1]))

    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue, int]:
        return x[0], y.y, y.queue, x[1]

    def place(self, x: Any, y: Any, queue: Queue, counter: int) -> tuple[Any, Any]:
        return (x, counter), Queued(y, queue)

    def _arrival(self, x: Any, y: Any, queue: tuple[Any, ...], waited: int, *, empty: bool) -> list[Branch]:
        given = self.delay_feature(x, y, self.done(x, y, queue[0]))
        return [(1.0, Queued(y, queue), Arrival(x, given, waited, empty))]

    def _base_move(self, branches: Iterable[Branch], queue: Queue) -> list[Branch]:
        return [(p, Queued(y_next, queue), self._lift(z)) for p, y_next, z in branches]

    def _lift(self, z: Any) -> Any:
        return Known({(x_next, SHOWN): p for x_next, p in z.law}) if isinstance(z, Known) else Move(z)

    def _is_large(self, queues: float, states: float) -> bool:
        return queues >= SOME_QUEUES and states >= MANY_STATES

    def outcomes(self, z: Any) -> Iterable[Any]:
        if isinstance(z, Move):
            return [(x_next, SHOWN) for x_next in self.base.outcomes(z.feature)]
        return [(z.x, TRAN), (z.x, z.waited + 1)]

    def branching(self, z: Any) -> int:
        return self.base.branching(z.feature) if isinstance(z, Move) else 2

    def share(self, z: Any, y: Any) -> float:
        if isinstance(z, Move):
            return self.queue_share(len(y.queue or ()) + 1) * self.base_share(z.feature, y.y)
        return self.queue_share(len(y.queue)) / self.facts.n_y

    def simulator(self, compiled: Any, law: Any) -> Any:
        """Compiled episodes, where the base leaves `samples` to the core and the truth is a `DelayLaw`."""
        from pkd_delay.hindsight import HindsightSimulator

        plain = type(self.base).samples is PartiallyKnownMDP.samples
        can = plain and hasattr(law, "delay_of") and hasattr(compiled, "slot_states")
        return HindsightSimulator(compiled, self, law) if can else None

    def samples(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        """The base's samples of all its moves, and of every action's Delta the arrivals that it decided:

        for j = -1, 0, ..., min(Delta, W - 1): Arrival(j) is TRAN if Delta = j, else j + 1; with an empty queue TRAN if Delta <= 0.
        """
        revealed = episode.revealed
        deltas, base_part = (revealed.deltas, revealed.base) if isinstance(revealed, Hindsight) else (revealed, None)
        base_episode = self.base_episode(episode, base_part)
        acted = [move for move in base_episode if move.action is not None]
        if deltas is None or len(deltas) != len(acted):
            found = "nothing" if deltas is None else f"{len(deltas)} numbers"
            raise ModelError(
                f"episode.revealed has {found}; expected the raw inter-arrival times of the {len(acted)} actions, shown at the end"
            )
        for z, x_next in self.base.samples(base_episode):
            yield Move(z), (x_next, SHOWN)
        for move, delta in zip(acted, deltas, strict=True):
            yield from self.arrivals(move.x, self.delay_feature(move.x, move.y, move.action), delta)

    def arrivals(self, x: Any, given: Any, delta: int) -> Iterator[tuple[Arrival, tuple[Any, int]]]:
        """The arrivals that one Delta decides, as far as they can occur in the model: clips and the end of the episode force the others."""
        if not -1 <= delta <= self.longest:
            raise ModelError(f"an inter-arrival time is {delta!r}; expected -1 to longest={self.longest}")
        if self.max_delay == 0 or self.longest == 0:
            return  # then no state is ever late
        first, again = self._steps[x, given]
        if first < self.horizon:
            yield Arrival(x, given, 0, True), (x, TRAN if delta <= 0 else 1)
        for waited in range(-1, min(delta + 1, self.longest, self.max_delay)):
            # A queue that is not empty without any waiting needs an earlier state that was late.
            least, earliest = (waited, first) if waited > 0 else (waited + 1, again)
            if least < self.max_delay and earliest + least < self.horizon:
                yield Arrival(x, given, waited, False), (x, TRAN if delta == waited else waited + 1)

    def x_label(self, x: Any) -> str:
        return f"{self.base.x_label(x[0])}, {self._counter_label(x[1])}"

    def y_label(self, y: Any) -> str:
        return self._labels(y.y, y.queue)

    def feature_label(self, z: Any) -> str:
        if isinstance(z, Move):
            return self.base.feature_label(z.feature)
        queue = ", empty queue" if z.empty else ""
        return f"arrival after {z.waited} from {self.base.x_label(z.x)} given {z.given}{queue}"
