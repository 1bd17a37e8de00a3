"""The augmented MDP of the paper, for any base: what both adapters share.

An augmented state is (last shown state of the base, queue of unresolved actions, counter). Its
counter says which of the paper's three categories it is in: 0, 1, ... (decision: this many steps
without news), TRAN (the next state is about to be shown) and SHOWN, the paper's -1 (a state was
just shown; perhaps one more follows). The two adapters differ only in where the counter lives, and
so in what is unknown.

The queue is a `pkd.Queue`, and a large model is asked with hidden entries. So every method here
looks at the oldest entry at most, and only where the base moves by it or the delay depends on it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from pkd import (
    CHANCE,
    END,
    Episode,
    Known,
    ModelError,
    PartiallyKnownMDP,
    Queue,
    Transition,
    UnknownReward,
    sure,
)
from pkd_delay.base import BaseFacts, Instead, State
from pkd_delay.delay_kernel import DelayKernel

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["SHOWN", "TRAN", "Augmented", "find_count_faults"]

SHOWN: Final = -1  # the paper's counter -1
TRAN: Final = -2
_EMPTY: Final = Queue()


class Augmented(PartiallyKnownMDP):
    """A base model whose states are shown late, in order; base of `KnownDelay` and `UnknownDelay`.

        decision (s, q, c): action a, q' = q + a;
                            tran (s, q') with probability p, else decision (s, q', c + 1)
        tran (s, q):        the base moves by q_1 and pays; then shown (s', q_2:)
        shown (s, q):       decision (s, {}, 0) if q is empty;
                            else tran with probability p, else decision (s, q, 0)

    With n the length of q: the delay of s was d = n - c, and a decision asks whether the next one
    is n, a shown state whether it is n - 1. So p = Pr(D_t = k | D_{t-1} = d, D_t >= k) with k = n
    or n - 1, for every `DelayKernel`. With inter-arrival times that is Pr(Delta = c | Delta >= c),
    and Pr(Delta <= 0) with an empty queue, where Delta = -1 is clipped to 0. p = 1 after the last
    action, at a full queue (n = D) and where the form of the law leaves no longer delay (c = W).
    After the last action everything that is queued is shown. A queue of None means that the last
    action is resolved and the episode is over.

    The CHANCE states of the base take no time: a tran runs through them. A base that ENDs early
    ends for the agent when the end is shown.
    """

    y_type: ClassVar[type]  # the class of the augmented y

    def __init__(
        self,
        base: PartiallyKnownMDP,
        facts: BaseFacts,
        form: type[DelayKernel],
        longest: int,
        max_delay: int,
        instead: Instead,
        n_features: int | None,
    ) -> None:
        found = [
            *find_count_faults(longest, "longest"),
            *find_count_faults(max_delay, "max_delay"),
        ]
        if found:
            raise ModelError(found)
        self.base, self.facts, self.instead, self.form = base, facts, instead, form
        self.longest, self.max_delay = longest, max_delay
        self.horizon = base.horizon
        self.n_features = n_features
        self.return_range = base.return_range
        if self.return_range is None and facts.tabular and facts.unit_rewards:
            self.return_range = (0.0, float(base.horizon))
        # The explorer asks tens of thousands of questions, and few of them are about another
        # state of the base. The keys hold states of the base, and never the queue of this delay.
        self._kinds: dict[State, Any] = {}
        self._moves: dict[tuple[Any, Any, Any, bool], tuple[Branch, ...]] = {}
        self._sure: dict[State, Known] = {}
        self._shares: dict[int, float] = {}

    @abstractmethod
    def read(self, x: Any, y: Any) -> tuple[Any, Any, Queue | None, int]:
        """(x, y) of the last shown state of the base, the queue and the counter."""

    def place(
        self, x: Any, y: Any, queue: Queue | Iterable[Any] | None, counter: int
    ) -> tuple[Any, Any]:
        """The augmented (x, y): the inverse of `read`. The queue may be any iterable."""
        if queue is not None and not isinstance(queue, Queue):
            queue = Queue(queue)
        return self._join(x, y, queue, counter)

    def translate(self, rule: Callable[..., Any], parts: int) -> Callable[[int, Any, Any], Any]:
        """A rule in other words as a policy (h, x, y) of this model.

        parts = 2: the rule is for the base, (h, x, y) -> action; it is asked about the state that
        was shown last, and ignores what was done since. parts = 3: it is (h, state, queue, waited)
        -> action; the state is the base's x where y is trivial, else (x, y).
        """
        if parts not in (2, 3):
            raise ModelError(
                f"the policy takes the step and {parts} parts of a state; expected (h, x, y), or "
                "(h, state, queue, waited)"
            )

        def act(h: int, x: Any, y: Any) -> Any:
            base_x, base_y, queue, waited = self.read(x, y)
            if parts == 2:
                return rule(h, base_x, base_y)
            state = base_x if self.facts.n_y == 1 else (base_x, base_y)
            return rule(h, state, tuple(queue or ()), waited)

        return act

    @abstractmethod
    def _join(self, x: Any, y: Any, queue: Queue | None, counter: int) -> tuple[Any, Any]:
        """The augmented (x, y) from its parts."""

    @abstractmethod
    def _arrive(self, x: Any, y: Any, queue: Queue, before: int, delay: int) -> list[Branch]:
        """TRAN if the delay of the oldest action's result is `delay`, else the counter one higher.

        before: the delay of the base's (x, y).
        """

    @abstractmethod
    def _lift(self, z: Any) -> Any:
        """A feature of the base, or its Known law, as one of this model."""

    @abstractmethod
    def _place_shown(self, y: Any, queue: Queue | None) -> Any:
        """The augmented y after a move of the base."""

    @abstractmethod
    def share(self, z: Any, y: Any) -> float:
        """Never None, so that no logarithm depends on how many y are written down."""

    def most_samples(self) -> int:
        """That of the base: its moves happen once, and each action has one inter-arrival time."""
        return self.facts.most_samples

    def start(self) -> Any:
        start = self.base.start()
        if isinstance(start, Mapping):
            return {self._first(*state): p for state, p in start.items()}
        return self._first(*start)

    def _first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self.place(x, y, _EMPTY, SHOWN if self._kind(x, y) is CHANCE else 0)

    def actions(self, x: Any, y: Any) -> Any:
        base_x, base_y, queue, counter = self.read(x, y)
        kind = self._kind(base_x, base_y)
        if kind is CHANCE or kind is END:
            return kind
        if queue is None:
            return END
        return self.facts.actions if counter >= 0 else CHANCE

    def _kind(self, x: Any, y: Any) -> Any:
        """What the base says of its state: its actions, CHANCE or END."""
        kind = self._kinds.get((x, y))
        if kind is None:
            kind = self._kinds[x, y] = self.base.actions(x, y)
        return kind

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=False)

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=True)

    def _step(self, x: Any, y: Any, a: Any, *, settling: bool) -> list[Branch]:
        base_x, base_y, queue, counter = self.read(x, y)
        if counter < 0:
            action = self._find_base_action(base_x, base_y, queue, counter)
            if action is not _NOTHING:
                left = queue.pop() if queue and counter == TRAN else queue
                # The base's own H-th action, or a chance move after it.
                last = settling and not left
                return self._move_base(base_x, base_y, action, None if last else left, last)
        queue = _EMPTY if queue is None else queue
        n = len(queue)
        if counter != SHOWN:
            queue, before, delay = queue.push(a), n - counter, n
        elif n == 0:
            return self._go_surely(base_x, base_y, queue, 0)
        else:
            before, delay = n, n - 1
        if settling or delay >= self.max_delay or self._is_last(before, delay):
            return self._go_surely(base_x, base_y, queue, TRAN)
        return self._arrive(base_x, base_y, queue, before, delay)

    def _is_last(self, before: int, delay: int) -> bool:
        """Whether no law of this form with numbers up to `longest` can make a longer delay."""
        return self.form.ask(before, delay).number >= self.longest

    def _move_base(
        self, x: Any, y: Any, action: Any, queue: Queue | None, last: bool
    ) -> list[Branch]:
        """The base's own branches, each followed by SHOWN with the given queue."""
        key = (x, y, action, last)
        moves = self._moves.get(key)
        if moves is None:
            step = self.base.last_step if last else self.base.step
            branches = step(x, y, action)
            moves = tuple((p, y_next, self._lift(z)) for p, y_next, z in branches)
            self._moves[key] = moves
        return [(p, self._place_shown(y_next, queue), z) for p, y_next, z in moves]

    def _go_surely(self, x: Any, y: Any, queue: Queue, counter: int) -> list[Branch]:
        x_next, y_next = self._join(x, y, queue, counter)
        return [(1.0, y_next, self._sure_of(x_next))]

    def _sure_of(self, x: Any) -> Known:
        law = self._sure.get(x)
        if law is None:
            law = self._sure[x] = sure(x)
        return law

    def _find_base_action(self, x: Any, y: Any, queue: Queue | None, counter: int) -> Any:
        """The action by which the base moves now; None in its CHANCE states, _NOTHING at rest."""
        if counter >= 0:
            return _NOTHING  # a decision; the base decides there, too
        if self._kind(x, y) is CHANCE:
            return None
        return self.done(x, y, queue.oldest) if counter == TRAN and queue else _NOTHING

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when a queued action a meets its state (x, y)."""
        if self.instead is None or a in self._kind(x, y):
            return a
        return self.instead(x, y, a)

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        base_x, base_y, queue, counter = self.read(x, y)
        action = self._find_base_action(base_x, base_y, queue, counter)
        return 0.0 if action is _NOTHING else self.base.reward(base_x, base_y, action)

    def final(self, x: Any, y: Any) -> float:
        base_x, base_y, _, _ = self.read(x, y)
        return self.base.final(base_x, base_y)

    def queue_share(self, n: int) -> float:
        """(H/(H+1)) / (2 (n+1)^2 A^n): the share of one queue of length n in the union bound.

        So a short queue pays n log A in the logarithm, and not D log A.
        """
        if n not in self._shares:
            queues = float(len(self.facts.actions)) ** n
            self._shares[n] = self.horizon / (self.horizon + 1) / (2 * (n + 1) ** 2 * queues)
        return self._shares[n]

    def base_share(self, z: Any, y: Any) -> float:
        """The base's own share of y, uniform over its y where it has none."""
        share = self.base.share(z, y)
        return 1.0 / self.facts.n_y if share is None else share

    def base_episode(self, episode: Episode, revealed: Any = None) -> Episode:
        """What happened to the base in an augmented episode."""
        moves = []
        for move in episode:
            x, y, queue, counter = self.read(move.x, move.y)
            action = self._find_base_action(x, y, queue, counter)
            if action is not _NOTHING:
                x_next, y_next, _, _ = self.read(move.x_next, move.y_next)
                moves.append(Transition(x, y, action, x_next, y_next, move.reward))
        return Episode(moves, revealed)

    def load_policy(self, path: str | Path) -> Callable[[int, Any, Any], Any]:
        """The policy of a file that `DelayedPlan.save` wrote, as a function (h, x, y) -> action."""
        from pkd_delay.policy import SavedPolicy

        saved = SavedPolicy.load(path)

        def act(h: int, x: Any, y: Any) -> Any:
            state, _, queue, waited = self.read(x, y)
            return saved.action(h, state, queue or (), waited)

        return act

    def action_label(self, a: Any) -> str:
        return self.base.action_label(a)

    def _label_queue(self, y: Any, queue: Queue | None) -> str:
        if queue is None:
            pending = "over"
        else:
            pending = "[" + ", ".join(map(self.base.action_label, queue)) + "]"
        return pending if self.facts.n_y == 1 else f"{self.base.y_label(y)} {pending}"

    def _label_counter(self, counter: int) -> str:
        words = {TRAN: "next state arrives", SHOWN: "state shown"}
        return words.get(counter, f"waited {counter}")


def find_count_faults(value: Any, name: str) -> list[str]:
    """What is wrong with a number of steps."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    good = whole and value >= 0
    return [] if good else [f"{name} is {value!r}; expected an integer >= 0"]


# None is the base's "action" in its CHANCE states, so it cannot also mean that the base rests.
_NOTHING: Final = object()
