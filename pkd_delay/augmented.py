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
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pkd import (
    CHANCE,
    END,
    Known,
    PartiallyKnownMDP,
    Queue,
    adapters,
    files,
    sure,
    wrapped,
)
from pkd.expect import if_given, require, whole
from pkd_delay.base import BaseFacts, Instead, State
from pkd_delay.laws.kernel import DelayKernel

if TYPE_CHECKING:
    from pkd.model import Branch

SHOWN: Final = -1  # the paper's counter -1
TRAN: Final = -2
_EMPTY: Final = Queue()


class Augmented(wrapped.Interleaved):
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
    revealed = False  # whether raw numbers are shown at the end of an episode

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
        require(
            whole("longest", longest),
            whole("max_delay", max_delay),
            if_given(whole, "n_features", n_features, 1),
        )
        super().__init__(base, instead)
        self.facts, self.form = facts, form
        self.longest, self.max_delay = longest, max_delay
        self.n_features = n_features
        self.has_unit_rewards = self.return_range is None and facts.tabular and facts.unit_rewards
        if self.has_unit_rewards:  # the base pays a number in [0, 1] for each of its H actions
            self.return_range = (0.0, float(base.horizon))
        # The keys hold states of the base, and never the queue of this delay.
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

    def first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self.place(x, y, _EMPTY, SHOWN if self.kind(x, y) is CHANCE else 0)

    def actions(self, x: Any, y: Any) -> Any:
        base_x, base_y, queue, counter = self.read(x, y)
        kind = self.kind(base_x, base_y)
        if kind is CHANCE or kind is END:
            return kind
        if queue is None:
            return END
        return self.facts.actions if counter >= 0 else CHANCE

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=False)

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._step(x, y, a, settling=True)

    def _step(self, x: Any, y: Any, a: Any, *, settling: bool) -> list[Branch]:
        base_x, base_y, queue, counter = self.read(x, y)
        if counter < 0:
            action = self._find_action(base_x, base_y, queue, counter)
            if action is not wrapped.NOTHING:
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

    def find_base(self, x: Any, y: Any) -> tuple[Any, Any]:
        return self.read(x, y)[:2]

    def find_base_action(self, x: Any, y: Any) -> Any:
        return self._find_action(*self.read(x, y))

    def _find_action(self, x: Any, y: Any, queue: Queue | None, counter: int) -> Any:
        """The action by which the base moves in its (x, y)."""
        if counter >= 0:
            return wrapped.NOTHING  # a decision; the base decides there, too
        if self.kind(x, y) is CHANCE:
            return None
        return self.done(x, y, queue.oldest) if counter == TRAN and queue else wrapped.NOTHING

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

    def _label_queue(self, y: Any, queue: Queue | None) -> str:
        if queue is None:
            pending = "over"
        else:
            pending = "[" + ", ".join(map(self.base.action_label, queue)) + "]"
        return pending if self.facts.n_y == 1 else f"{self.base.y_label(y)} {pending}"

    def _label_counter(self, counter: int) -> str:
        words = {TRAN: "next state arrives", SHOWN: "state shown"}
        return words.get(counter, f"waited {counter}")


@files.state_views.register
def _(model: Augmented) -> dict[tuple[str, ...], files.StateView]:
    """(x, y); the shown (x, y) of the base alone; and both ways to add what was done since.

    `state` is the base's x where y is trivial, else (x, y).
    """
    base, alone = model.base, model.facts.n_y == 1
    labels = {"action": base.action_label, "entry": base.action_label, "state": base.x_label}

    def tell(x: Any, y: Any) -> tuple[Any, Any, tuple[Any, ...], int]:
        base_x, base_y, queue, waited = model.read(x, y)
        return base_x, base_y, tuple(queue or ()), waited

    def tell_state(x: Any, y: Any) -> tuple[Any, ...]:
        base_x, base_y, *rest = tell(x, y)
        return (base_x if alone else (base_x, base_y), *rest)

    def label(part: str, value: Any) -> str:
        return labels.get(part, str)(value)

    return {
        **files.state_views.dispatch(object)(model),
        ("shown_x", "shown_y"): files.StateView(lambda x, y: tell(x, y)[:2], label),
        ("x", "y", "queue", "waited"): files.StateView(tell, label),
        ("state", "queue", "waited"): files.StateView(tell_state, label),
    }


@adapters.proves_range.register
def _proves_range(model: Augmented) -> bool:
    return model.has_unit_rewards and model.return_range == (0.0, float(model.base.horizon))
