"""`LateCommands`: `pkd.LateActions` with the laws of `LateEnv`.

A constant delay, a law {Delta: probability} of how the delay of commands changes (the mirror image
of `KnownDelay`), or `Lags`. `LateEnv(env, actions=law)` plays the model that
`LateCommands(base, law)` plans; `retell` tells a step of that environment as moves of that model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import attrs

import pkd
from pkd import ModelError, Queue, Transition, transforms
from pkd.expect import if_given, require, whole
from pkd.problem import as_model
from pkd.transforms import Travel
from pkd_delay.base import Base, Instead, survey
from pkd_delay.laws.arrivals import Delay, DelayRule, read_delay
from pkd_delay.laws.kernel import DelayKernel, Lags

__all__ = ["InOrder", "LateCommands", "find_line", "retell"]


@attrs.frozen
class InOrder:
    """Commands that never overtake: D_h ~ P(. | D_{h-1}), cut at `max_delay`, D_0 = 0.

    The command of step h comes at step h + D_h. With n commands on their way the oldest one is
    n - 1 steps old. After c steps without news the command before it was n - 1 - c steps late, and
    it comes with Pr(D = n - 1 | D >= n - 1, n - 1 - c).

    >>> from pkd_delay import InterArrival
    >>> line = InOrder(InterArrival((0.25, 0.25, 0.5)), max_delay=2)
    >>> line.comes(1, waited=0), line.comes(2, waited=-1), line.comes(3, waited=1)
    (0.5, 0.25, 1.0)
    """

    law: DelayKernel
    max_delay: int

    @property
    def counts(self) -> bool:
        """It matters for how long no command has come."""
        return True

    @property
    def longest(self) -> int:
        """The largest delay."""
        return self.max_delay

    def comes(self, n: int, waited: int) -> float:
        """The probability that the oldest of n commands comes now."""
        if n > self.max_delay:
            return 1.0
        return self.law.arrival(before=n - 1 - waited, delay=n - 1)


class LateCommands(pkd.LateActions):
    """A base whose actions are executed late.

        D_h = clip(D_{h-1} + Delta_h; 0, max_delay),   D_0 = 0

    The command of step h comes at step h + D_h, and the newest command that has come is executed.
    `law` is a constant delay, {Delta: probability}, `Lags` (each command has its own, so that a
    newer one may overtake), or a `DelayChain`. `first_action` is executed before the first command
    has come; by default it is the first one that the base offers. With "random" a constant delay
    begins with random commands on their way, which the agent sees. Where the base's action sets
    differ, `instead` says what is done when an action is not on offer: (x, y, a) -> action.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain()
    >>> [round(pkd.plan(LateCommands(chain, d), chain.law()).value, 10) for d in (0, 1, 2)]
    [10.0, 9.1, 8.46]
    >>> both = pkd_delay.KnownDelay(LateCommands(chain, 1), {1: 1.0}, max_delay=1)
    >>> round(pkd.plan(both, chain.law()).value, 10)  # two steps in all
    8.46
    """

    def __init__(
        self,
        base: Base,
        law: Delay | transforms.Line,
        max_delay: int | None = None,
        *,
        first_action: Any = None,
        instead: Instead = None,
    ) -> None:
        base = as_model(base)
        commands = None if instead is None else survey(base, instead).actions
        require(if_given(whole, "max_delay", max_delay))
        line = _read_line(law, max_delay)
        self._drawn = 0  # random commands that are on their way at the start
        if isinstance(first_action, str) and first_action == "random":
            if line != Travel(line.longest):
                raise ModelError('first_action="random" needs a constant delay of the actions')
            first_action, self._drawn = None, line.longest
        super().__init__(base, line, first_action=first_action, commands=commands, instead=instead)

    def start(self) -> Any:
        start = super().start()
        if not self._drawn:
            return start
        states = start.items() if isinstance(start, Mapping) else [(start, 1.0)]
        queues = list(product(self.commands, repeat=self._drawn))
        return {
            (x, y._replace(in_force=queue[0], queue=Queue(queue))): p / len(queues)
            for (x, y), p in states
            for queue in queues
        }


def _read_line(law: Delay | transforms.Line, max_delay: int | None) -> transforms.Line:
    """The line that a law of LateEnv means."""
    if hasattr(law, "comes"):
        return law  # type: ignore[return-value]
    line = find_line(read_delay(law, max_delay, "actions"))
    if line is None:
        raise ModelError(
            f"the law of late actions is {law!r}; expected a constant delay, {{Delta: probability}}"
            " with max_delay, or pkd_delay.Lags: a law of the step or state cannot be planned"
        )
    return line


def find_line(rule: DelayRule) -> transforms.Line | None:
    """The line of commands that travel by a rule; None: it depends on the step or the state.

    >>> find_line(read_delay(2, None, "actions"))
    Travel(law={2: 1.0})
    """
    if rule.constant:
        return Travel(rule.max_delay)
    if rule.law is None:
        return None
    if not isinstance(rule.law, Lags):
        return InOrder(rule.law, rule.max_delay)
    travel: dict[int, float] = {}
    for lag, p in enumerate(rule.law.probabilities):
        lag = min(lag, rule.max_delay)
        travel[lag] = travel.get(lag, 0.0) + p
    return Travel(travel)


def retell(
    before: transforms.OnWay, action: Any, after: transforms.OnWay, moves: Sequence[Transition]
) -> tuple[Transition, ...]:
    """One step as moves of a `LateCommands`: the action is sent, commands come, the base moves.

    `before` and `after` are what is on its way around the step; `moves` are those of the base.

    >>> start = transforms.OnWay(None, "hold", Queue(["up"]))
    >>> moved = [Transition(0, None, "up", 1, None, 2.0)]
    >>> told = retell(start, "down", transforms.OnWay(None, "up", Queue(["down"])), moved)
    >>> [(move.y_next.phase, move.y_next.in_force, move.action) for move in told]
    [('comes', 'hold', 'down'), ('acts', 'up', None), ('sends', 'up', None)]
    """
    in_force, queue, places = before.in_force, before.queue.push(action), [before]
    while len(queue) > len(after.queue):
        places.append(transforms.OnWay(before.y, in_force, queue, 0, transforms.COMES))
        in_force, queue = queue.oldest, queue.pop()
    places.append(transforms.OnWay(before.y, in_force, queue, after.waited, transforms.ACTS))
    x, told, sent = moves[0].x, list[Transition](), action
    for here, there in pairwise(places):
        told.append(Transition(x, here, sent, x, there, 0.0))
        sent = None
    here = places[-1]
    for move in moves:
        there = after._replace(y=move.y_next)
        told.append(Transition(move.x, here, None, move.x_next, there, move.reward))
        here = there
    return tuple(told)
