"""`LateActions`: commands travel before they are executed, for any base.

The agent sees the state at once. Each command travels; the newest command that has come is in
force, and the base moves by it. Which commands are on their way is book-keeping, so it moves by
P_Y, and the unknown features are those of the base: |Z| does not grow with the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pkd.expect import key, require, show
from pkd.model import CHANCE, END, ModelError, sure
from pkd.queue import Queue
from pkd.transforms.transformed import Transformed, find_commands
from pkd.transforms.travel import JUST_NOW, Line, Travel
from pkd.wrapped import NOTHING, Instead

if TYPE_CHECKING:
    from pkd.model import Branch

SENDS: Final = "sends"  # the agent sends a command; or the base is at a CHANCE state or its end
COMES: Final = "comes"  # the oldest command on its way comes now
ACTS: Final = "acts"  # the base moves by the command in force


class OnWay(NamedTuple):
    """The y of a `LateActions`."""

    y: Any  # of the base
    in_force: Any  # the command that the base obeys
    queue: Queue  # commands on their way, oldest first
    waited: int = 0  # steps without a new command in force, if the line counts them
    phase: str = SENDS


class LateActions(Transformed):
    """A base whose actions are executed late.

        send (s, f, q):   a is sent, q' = q + a; the oldest of q' comes with the line's probability
        come (s, f, q):   f' = q_1, q' = q_2:, and perhaps one more comes
        act (s, f, q):    the base moves by f and pays

    `law` is a constant number of steps, {steps: probability} of independent travel times (`Travel`:
    the newest command that has come counts), or any `Line`. `first_action` is executed before the
    first command has come; by default the first one that the base offers. `commands` are those that
    can be sent, by default what the first decision state offers. `instead` is needed where the
    base's action sets differ: (x, y, a) -> the action that is done where a is not on offer.

    >>> import pkd
    >>> stay = [[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2]
    >>> chain = pkd.TabularMDP(stay, [[1.0, 0.0], [0.0, 1.0]], horizon=10)  # name the state
    >>> [round(pkd.plan(pkd.LateActions(chain, d), chain.law()).value, 10) for d in (0, 1, 2)]
    [10.0, 9.1, 8.46]
    """

    def __init__(
        self,
        base: Any,
        law: int | Mapping[int, float] | Line,
        *,
        first_action: Any = None,
        commands: Iterable[Any] | None = None,
        instead: Instead = None,
    ) -> None:
        super().__init__(base, instead)
        self.line: Line = law if hasattr(law, "comes") else Travel(law)  # type: ignore[assignment]
        self.commands = find_commands(self.base, commands)
        self.first_action = self.commands[0] if first_action is None else first_action
        require(key("first_action", self.first_action))
        if self.first_action not in self.commands:
            raise ModelError(
                f"first_action is {show(first_action)}; expected one of {list(self.commands)!r}, "
                "which is executed before the first command has come"
            )

    def first(self, x: Any, y: Any) -> tuple[Any, OnWay]:
        return x, OnWay(y, self.first_action, Queue())

    def actions(self, x: Any, y: OnWay) -> Any:
        kind = self.kind(x, y.y)
        if kind is CHANCE or kind is END:
            return kind
        return self.commands if y.phase == SENDS else CHANCE

    def step(self, x: Any, y: OnWay, a: Any) -> list[Branch]:
        return self._step(x, y, a, last=False)

    def last_step(self, x: Any, y: OnWay, a: Any) -> list[Branch]:
        return self._step(x, y, a, last=True)

    def _step(self, x: Any, y: OnWay, a: Any, *, last: bool) -> list[Branch]:
        action = self.find_base_action(x, y)
        if action is not NOTHING:
            return [
                (p, OnWay(y_next, y.in_force, y.queue, y.waited), z)
                for p, y_next, z in self.base_branches(x, y.y, action, last=last)
            ]
        if y.phase == COMES:
            in_force, queue, waited = y.queue.oldest, y.queue.pop(), JUST_NOW
        else:
            in_force, queue, waited = y.in_force, y.queue.push(a), y.waited
        p = self.line.comes(len(queue), waited) if len(queue) else 0.0
        after = waited + 1 if self.line.counts else 0
        both = (
            (p, OnWay(y.y, in_force, queue, 0, COMES)),
            (1.0 - p, OnWay(y.y, in_force, queue, after, ACTS)),
        )
        known = sure(x)
        return [(q, y_next, known) for q, y_next in both if q > 0.0]

    def find_base_action(self, x: Any, y: OnWay) -> Any:
        if self.kind(x, y.y) is CHANCE:
            return None
        return self.done(x, y.y, y.in_force) if y.phase == ACTS else NOTHING

    def share(self, z: Any, y: OnWay) -> float | None:
        """The base's share, split over commands, queues of each length and counters.

        None where the base has none: then all y are alike.
        """
        share = self.base.share(z, y.y)
        if share is None:
            return None
        n, counters = len(y.queue), self.line.longest + 1 if self.line.counts else 1
        queues = float(len(self.commands)) ** (n + 1) * counters
        return share / (2 * (n + 1) ** 2 * queues)

    def y_label(self, y: OnWay) -> str:
        words = self.label_actions(y.y, (y.in_force,), "in force")
        if y.queue:
            words += f", coming {', '.join(map(self.action_label, y.queue))}"
        if y.waited:
            words += f", waited {y.waited}"
        return words if y.phase == SENDS else f"{words}, {y.phase}"
