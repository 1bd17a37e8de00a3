"""`KnownDelay`: the decomposition of the paper's Theorem 1, for a known law of the delay.

X is the base's X; Y is the base's Y x queue x counter. Only the base's own features are unknown, so |Z| is that of the base.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from pkd import Episode, ModelError, PartiallyKnownMDP, sure
from pkd_delay.augmented import SHOWN, TRAN, Augmented, Queue
from pkd_delay.base import Instead, survey
from pkd_delay.inter_arrival import InterArrivalOf, per_action

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["KnownDelay", "Pending"]

MANY_QUEUES = 64  # fewer are explored as quickly, and the flat program learns faster on them
SOME_QUEUES, MANY_STATES = 4, 5_000  # with many states of the base fewer queues are enough: exploring takes 0.1 ms for each pair


class Pending(NamedTuple):
    """The y of a `KnownDelay`."""

    y: Any  # of the last shown state of the base
    queue: Queue  # unresolved actions, oldest first
    counter: int  # steps since the last news, or TRAN, or SHOWN


class KnownDelay(Augmented):
    """A base model whose states are shown late by a known law.

        z = phi_Z of the base on tran; every other move is known, with P_Y(tran | s, q, c) the p of `Augmented`

    `inter_arrival` is {Delta: probability} for all states, or a function (x, y, a) of the base's state and the action done in it. `instead`
    is needed only where the base's action sets differ: (x, y, a) -> the action that is done where a is not on offer.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain()
    >>> model = pkd_delay.KnownDelay(chain.model(), {1: 1.0}, max_delay=1)
    >>> round(pkd.plan(model, chain.law()).value, 12)  # its unknown features are those of the base
    9.1
    """

    y_type = Pending

    def __new__(cls, base: PartiallyKnownMDP, *arguments: Any, **options: Any) -> KnownDelay:
        # A base that says itself what an episode teaches is asked; otherwise `samples` stays the core's own, which it runs compiled.
        own = type(base).samples is not PartiallyKnownMDP.samples
        return super().__new__(_KnownDelayOfHindsight if own else cls)

    def __init__(
        self,
        base: PartiallyKnownMDP,
        inter_arrival: InterArrivalOf,
        max_delay: int,
        *,
        instead: Instead = None,
        n_features: int | None = None,
    ) -> None:
        self.inter_arrival = per_action(inter_arrival)
        facts = survey(base, instead)
        found: list[str] = []
        longest = 0
        for x, y in facts.decisions:
            for a in base.actions(x, y):
                try:
                    longest = max(longest, self.inter_arrival(x, y, a).longest)
                except ModelError as error:
                    found += error.findings
        if found:
            raise ModelError(found)
        super().__init__(base, facts, longest, max_delay, instead, n_features)

    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue, int]:
        return x, y.y, y.queue, y.counter

    def place(self, x: Any, y: Any, queue: Queue, counter: int) -> tuple[Any, Any]:
        return x, Pending(y, queue, counter)

    def _arrival(self, x: Any, y: Any, queue: tuple[Any, ...], waited: int, *, empty: bool) -> list[Branch]:
        law = self.inter_arrival(x, y, self.done(x, y, queue[0]))
        p = law.at_most_zero if empty else law.hazard(waited)
        branches = [(p, Pending(y, queue, TRAN), sure(x)), (1.0 - p, Pending(y, queue, waited + 1), sure(x))]
        return [branch for branch in branches if branch[0] > 0.0]

    def _base_move(self, branches: Iterable[Branch], queue: Queue) -> list[Branch]:
        return [(p, Pending(y_next, queue, SHOWN), z) for p, y_next, z in branches]

    def _is_large(self, queues: float, states: float) -> bool:
        return queues >= MANY_QUEUES or (queues >= SOME_QUEUES and states >= MANY_STATES)

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.base.outcomes(z)

    def branching(self, z: Any) -> int:
        return self.base.branching(z)

    def share(self, z: Any, y: Any) -> float:
        return self.queue_share(len(y.queue or ()) + 1) * self.base_share(z, y.y)

    def x_label(self, x: Any) -> str:
        return self.base.x_label(x)

    def y_label(self, y: Any) -> str:
        return f"{self._labels(y.y, y.queue)}, {self._counter_label(y.counter)}"

    def feature_label(self, z: Any) -> str:
        return self.base.feature_label(z)


class _KnownDelayOfHindsight(KnownDelay):
    def samples(self, episode: Episode) -> Iterable[tuple[Any, Any]]:
        return self.base.samples(self.base_episode(episode, episode.revealed))
