"""The augmented MDP of the paper, for any base: what both adapters share.

An augmented state is (last shown state of the base, queue of unresolved actions, counter). Its counter says which of the paper's three
categories it is in: 0, 1, ... (decision: so many steps without news), TRAN (the next state is about to be shown) and SHOWN, the paper's -1
(a state was just shown; perhaps one more follows). The two adapters differ only in where the counter lives, and so in what is unknown.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from pkd import CHANCE, END, Episode, ModelError, PartiallyKnownMDP, Transition, UnknownReward, sure
from pkd_delay.base import BaseFacts, Instead

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["SHOWN", "TRAN", "Augmented", "Queue", "count_faults"]

SHOWN: Final = -1  # the paper's counter -1
TRAN: Final = -2
Queue = tuple[Any, ...] | None  # oldest action first; None: the H-th action is resolved and the episode is over


class Augmented(PartiallyKnownMDP):
    """A base model whose states are shown late, in order; common part of `KnownDelay` and `UnknownDelay`.

        decision (s, q, c): action a, q' = q + a; tran (s, q') with probability p, else decision (s, q', c + 1)
        tran (s, q):        the base moves by q_1 and pays; then shown (s', q_2:)
        shown (s, q):       decision (s, {}, 0) if q is empty; else tran with Pr(Delta = -1), else decision (s, q, 0)

    p = 1 after the last action, at a full queue (n = D) and at c = W. With an empty queue p = Pr(Delta <= 0), because Delta = -1 is clipped
    to 0 there; otherwise p = Pr(Delta = c | Delta >= c). After the last action everything that is queued is shown.

    The CHANCE states of the base take no time: a tran runs through them. A base that ENDs early ends for the agent when the end is shown.
    """

    y_type: ClassVar[type]  # the class of the augmented y

    def __init__(
        self, base: PartiallyKnownMDP, facts: BaseFacts, longest: int, max_delay: int, instead: Instead, n_features: int | None
    ) -> None:
        found = [*count_faults(longest, "longest"), *count_faults(max_delay, "max_delay")]
        if found:
            raise ModelError(found)
        self.base, self.facts, self.longest, self.max_delay, self._instead = base, facts, longest, max_delay, instead
        self.horizon = base.horizon
        self.n_features = n_features or max(longest, 1) * (base.n_features or self.facts.n_features)
        self.return_range = base.return_range
        if self.return_range is None and self.facts.tabular and self.facts.unit_rewards:
            self.return_range = (0.0, float(base.horizon))

    @abstractmethod
    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue, int]:
        """(x, y) of the last shown state of the base, the queue and the counter."""

    @abstractmethod
    def place(self, x: Any, y: Any, queue: Queue, counter: int) -> tuple[Any, Any]:
        """The augmented (x, y): the inverse of `read`."""

    @abstractmethod
    def _arrival(self, x: Any, y: Any, queue: tuple[Any, ...], waited: int, *, empty: bool) -> list[Branch]:
        """TRAN, or one more step without the effect of queue[0] on the base's (x, y); `empty`: the queue was, before this action."""

    @abstractmethod
    def _base_move(self, branches: Iterable[Branch], queue: Queue) -> list[Branch]:
        """The base's own branches, each followed by SHOWN with the given queue."""

    @abstractmethod
    def share(self, z: Any, y: Any) -> float:
        """Never None, so that no logarithm depends on how many y are written down."""

    @abstractmethod
    def _is_large(self, queues: float, states: float) -> bool:
        """Whether emitting the runs of so many queues and (base state, queue) pairs beats exploring them."""

    def start(self) -> Any:
        start = self.base.start()
        if isinstance(start, Mapping):
            return {self._first(*state): p for state, p in start.items()}
        return self._first(*start)

    def _first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self.place(x, y, (), SHOWN if self.base.actions(x, y) is CHANCE else 0)

    def actions(self, x: Any, y: Any) -> Any:
        base_x, base_y, queue, counter = self.read(x, y)
        kind = self.base.actions(base_x, base_y)
        if kind is CHANCE or kind is END:
            return kind
        if queue is None:
            return END
        return CHANCE if counter in (TRAN, SHOWN) else self.facts.actions

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=False)

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=True)

    def _step(self, x: Any, y: Any, a: Any, *, settling: bool) -> list[Branch]:
        base_x, base_y, queue, counter = self.read(x, y)
        action = self._base_action(base_x, base_y, queue, counter)
        if action is not _NOTHING:
            left = queue[1:] if queue and counter == TRAN else queue
            last = settling and not left  # the base's own H-th action, or a chance move after it
            branches = (self.base.last_step if last else self.base.step)(base_x, base_y, action)
            return self._base_move(branches, None if last else left)
        queue = queue or ()
        if counter == SHOWN and not queue:
            return self._surely(base_x, base_y, queue, 0)
        longer = queue if counter == SHOWN else (*queue, a)
        if settling or len(longer) > self.max_delay or counter == self.longest:
            return self._surely(base_x, base_y, longer, TRAN)
        return self._arrival(base_x, base_y, longer, counter, empty=not queue)

    def _surely(self, x: Any, y: Any, queue: Queue, counter: int) -> list[Branch]:
        x_next, y_next = self.place(x, y, queue, counter)
        return [(1.0, y_next, sure(x_next))]

    def _base_action(self, x: Any, y: Any, queue: Queue, counter: int) -> Any:
        """The action by which the base moves now (None in its CHANCE states), or _NOTHING where it does not move."""
        if self.base.actions(x, y) is CHANCE:
            return None
        return self.done(x, y, queue[0]) if counter == TRAN and queue else _NOTHING

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when a queued action a meets its state (x, y)."""
        return a if self._instead is None or a in self.base.actions(x, y) else self._instead(x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        base_x, base_y, queue, counter = self.read(x, y)
        action = self._base_action(base_x, base_y, queue, counter)
        return 0.0 if action is _NOTHING else self.base.reward(base_x, base_y, action)

    def final(self, x: Any, y: Any) -> float:
        base_x, base_y, _, _ = self.read(x, y)
        return self.base.final(base_x, base_y)

    def runs(self) -> Any:
        """A large model is compiled without exploring its queues."""
        queues = float(len(self.facts.actions)) ** min(self.max_delay, self.horizon - 1)
        if not self._is_large(queues, queues * self.facts.n_states):
            return None
        from pkd_delay.emission import emitted

        return emitted(self)

    def queue_share(self, n: int) -> float:
        """(H/(H+1)) / (2 (n+1)^2 A^n): the share of one queue of length n, so that a short queue pays n log A and not D log A."""
        return self.horizon / (self.horizon + 1) / (2 * (n + 1) ** 2 * float(len(self.facts.actions)) ** n)

    def base_share(self, z: Any, y: Any) -> float:
        """The base's own share of y, uniform over its y where it has none."""
        share = self.base.share(z, y)
        return 1.0 / self.facts.n_y if share is None else share

    def base_episode(self, episode: Episode, revealed: Any = None) -> Episode:
        """What happened to the base in an augmented episode."""
        moves = []
        for move in episode:
            x, y, queue, counter = self.read(move.x, move.y)
            action = self._base_action(x, y, queue, counter)
            if action is not _NOTHING:
                x_next, y_next, _, _ = self.read(move.x_next, move.y_next)
                moves.append(Transition(x, y, action, x_next, y_next, move.reward))
        return Episode(moves, revealed)

    def action_label(self, a: Any) -> str:
        return self.base.action_label(a)

    def _labels(self, y: Any, queue: Queue) -> str:
        pending = "over" if queue is None else "[" + ", ".join(map(self.base.action_label, queue)) + "]"
        return pending if self.facts.n_y == 1 else f"{self.base.y_label(y)} {pending}"

    def _counter_label(self, counter: int) -> str:
        return {TRAN: "next state arrives", SHOWN: "state shown"}.get(counter, f"waited {counter}")


def count_faults(value: Any, name: str) -> list[str]:
    """What is wrong with a number of steps."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 0
    return [] if good else [f"{name} is {value!r}; expected an integer >= 0"]


_NOTHING: Final = object()  # None is the base's "action" in its CHANCE states, so it cannot also mean that the base rests
