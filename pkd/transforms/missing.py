"""`Missing`: observations that go missing, for any base.

At each step the state is shown, or it goes missing and the agent acts on what it saw last. y holds
the actions since then. When a state is shown, the base is replayed from the last seen state, one
queued action at a time, through CHANCE states. Nothing is chosen in between, so it does not matter
that the states in between are told only at the end, or never. After the last action the rest is
replayed, too: that is the settlement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pkd.episode import Episode, list_branches
from pkd.expect import flag, fraction, if_given, require, whole
from pkd.model import CHANCE, END, Known, sure
from pkd.queue import Queue
from pkd.transforms.transformed import Transformed, find_commands
from pkd.wrapped import NOTHING, Instead

if TYPE_CHECKING:
    from pkd.model import Branch

CHOOSES: Final = "chooses"  # the agent acts; or the base is at a CHANCE state or its end
REPLAYS: Final = "replays"  # a state is shown: the base moves by the queued actions
LOST: Final = "lost"  # the same after the last action, and nobody sees it
MOST_QUEUES = 10_000_000  # more sequences of actions than this need a `longest`


class Since(NamedTuple):
    """The y of a `Missing`."""

    y: Any  # of the base's state that was seen last, or is replayed
    queue: Queue  # actions since then, oldest first
    phase: str = CHOOSES


class Missing(Transformed):
    """A base whose observations go missing with a known probability, independently.

        choose (s, q):   q' = q + a; missing with `probability`, else replay (s, q')
        replay (s, q):   the base moves by q_1 and pays; then replay (s', q_2:), or choose (s', {})

    After `longest` missing observations in a row one is shown for sure; None: there is no such
    bound. `returned`: what went missing is told at the end of the episode, so each action teaches
    one sample. Without it only those between two states that were both shown at their time do;
    that is no bias, because what goes missing does not depend on the state. Rewards are paid in the
    replay: paid at once they would tell the state. `commands` and `instead` are those of
    `LateActions`.

    >>> import pkd
    >>> stay = [[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2]
    >>> chain = pkd.TabularMDP(stay, [[1.0, 0.0], [0.0, 1.0]], horizon=2)  # name the state
    >>> round(pkd.plan(pkd.Missing(chain, 0.5), chain.law()).value, 12)  # 1, then 1 or .9
    1.95
    """

    def __init__(
        self,
        base: Any,
        probability: float,
        returned: bool = True,
        *,
        longest: int | None = None,
        commands: Iterable[Any] | None = None,
        instead: Instead = None,
    ) -> None:
        super().__init__(base, instead)
        self.probability, self.returned = probability, returned
        self.commands = find_commands(self.base, commands)
        found = fraction("the probability of a missing observation", probability, closed=True)
        found += if_given(whole, "longest", longest) + flag("returned", returned)
        if not returned and self.samples is not None:
            found.append(
                f"{type(self.base).__name__} has samples of its own, from whole episodes; "
                "expected returned=True, or a base without them"
            )
        if not found and longest is None:
            found = self._find_too_many()
        require(found)
        self.longest = self.horizon if longest is None else longest
        if not returned:  # what goes missing teaches nothing
            self.samples, self.samples_cover_visits = self._list_shown, False

    def _find_too_many(self) -> list[str]:
        gap = self.horizon - 1 if self.probability > 0 else 0
        if len(self.commands) ** gap <= MOST_QUEUES:
            return []
        sequences = f"{float(len(self.commands)) ** gap:.3g} sequences of actions"
        return [
            (
                f"longest is None: there are {sequences} over {self.horizon} steps; say after how "
                "many missing observations in a row one is shown for sure, such as longest=3"
            )
        ]

    def first(self, x: Any, y: Any) -> tuple[Any, Since]:
        return x, Since(y, Queue())

    def actions(self, x: Any, y: Since) -> Any:
        kind = self.kind(x, y.y)
        if kind is CHANCE or kind is END:
            return kind
        return self.commands if y.phase == CHOOSES else CHANCE

    def step(self, x: Any, y: Since, a: Any) -> list[Branch]:
        return self._move_base(x, y, last=False) or self._choose(x, y, a, self._find_missing(y))

    def last_step(self, x: Any, y: Since, a: Any) -> list[Branch]:
        moved = self._move_base(x, y, last=True)
        if moved:
            return moved
        missing = 0.0 if self.returned else self._find_missing(y)
        return self._choose(x, y, a, missing, LOST)

    def _find_missing(self, y: Since) -> float:
        return 0.0 if len(y.queue) >= self.longest else self.probability

    def _choose(
        self, x: Any, y: Since, a: Any, missing: float, unseen: str = CHOOSES
    ) -> list[Branch]:
        queue, known = y.queue.push(a), sure(x)
        both = (1.0 - missing, REPLAYS), (missing, unseen)
        return [(p, Since(y.y, queue, phase), known) for p, phase in both if p > 0.0]

    def _move_base(self, x: Any, y: Since, *, last: bool) -> list[Branch]:
        """The branches of the base; none where the agent chooses."""
        action = self.find_base_action(x, y)
        if action is NOTHING:
            return []
        queue = y.queue if action is None else y.queue.pop()
        phase = y.phase if queue else CHOOSES
        # The base's own last action, or a chance move after it.
        over = last and not queue
        return [
            (p, Since(y_next, queue, phase), z)
            for p, y_next, z in self.base_branches(x, y.y, action, last=over)
        ]

    def find_base_action(self, x: Any, y: Since) -> Any:
        if self.kind(x, y.y) is CHANCE:
            return None
        return NOTHING if y.phase == CHOOSES else self.done(x, y.y, y.queue.oldest)

    def _list_shown(self, episode: Episode) -> Iterator[tuple[Any, Any]]:
        """The moves whose state before and after was shown at its time: gaps of one action."""
        taken, seen = 0, True
        for move in episode:
            if move.action is not None:
                taken += 1
                seen = move.y_next.phase == REPLAYS and len(move.y_next.queue) == 1
            if seen:
                branches = list_branches(self, move.x, move.y, move.action, taken)
                z = next(z for _, y_next, z in branches if y_next == move.y_next)
                if not isinstance(z, Known):
                    yield z, move.x_next

    def count_unseen(self, y: Since) -> int:
        return len(y.queue)

    def share(self, z: Any, y: Since) -> float | None:
        """The base's share, split over queues of each length; None where the base has none."""
        share = self.base.share(z, y.y)
        if share is None:
            return None
        n = len(y.queue)
        return share / (4 * (n + 1) ** 2 * float(len(self.commands)) ** n)

    def y_label(self, y: Since) -> str:
        words = self.label_actions(y.y, y.queue, "since then")
        return words if y.phase == CHOOSES else f"{words}, {y.phase}"
