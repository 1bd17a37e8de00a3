"""Actions that take effect late: y holds the queue of commands on their way, x is the state.

The mirror image of delayed observations. The agent sees the state at once, but each command travels
for a random number of steps; the newest command that has arrived is in force. The law of the travel
time is known, so the queue moves by P_Y. The feature z = (state, command in force) is the pair (s,
a) of the undelayed world, so |Z| = SA for a queue of any length.

The queue is a `pkd.Queue`, and a step reads only commands that can arrive: with a constant delay
only the oldest one. So a long delay compiles quickly.

>>> model = late_actions(delay={0: 0.5, 1: 0.5}).model()
>>> for probability, y, _ in model.step(3, (1, pkd.Queue()), 2):  # 1 is in force, 2 is sent
...     print(probability, y)
0.5 (2, Queue(()), 'acts')
0.5 (1, Queue((2,)), 'acts')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import as_table
from pkd_examples.problem import Problem
from pkd_examples.tank import command_chart, tank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LateActions", "late_actions", "picture"]

ACTS = "acts"


@attrs.frozen(kw_only=True, eq=False)
class LateActions(pkd.PartiallyKnownMDP):
    """x: the state. y: (command in force, queue of commands on their way), and ACTS while x moves.

    A command of age j arrives with the hazard Pr(delay = j) / Pr(delay >= j). Every older command
    is then forgotten, so the commands on their way are the latest ones, and a place in the queue
    gives the age.
    """

    rewards: tuple[tuple[float, ...], ...] = attrs.field(converter=as_table)
    horizon: int
    delay: Mapping[int, float]  # {steps: probability}
    first: int = 0  # state at the start
    held: int = 0  # command in force at the start
    names: Sequence[str] | None = None  # of the actions
    hazard: tuple[float, ...] = attrs.field(init=False)  # by age

    @hazard.default
    def _hazard(self) -> tuple[float, ...]:
        at_least = [
            sum(p for age, p in self.delay.items() if age >= j) for j in range(max(self.delay) + 1)
        ]
        return tuple(self.delay.get(j, 0.0) / total for j, total in enumerate(at_least))

    def start(self) -> Any:
        return self.first, (self.held, pkd.Queue())

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if y[-1] == ACTS else range(len(self.rewards[0]))

    def step(self, x: Any, y: Any, a: Any) -> Iterator[pkd.Branch]:
        force, waiting = y[:2]
        if y[-1] == ACTS:
            yield 1.0, (force, waiting), (x, force)
            return
        waiting, none_newer = waiting.push(a), 1.0
        for age, arrives in enumerate(self.hazard[: len(waiting)]):
            if arrives > 0:  # looks only at commands that can arrive
                place = len(waiting) - 1 - age
                y_next = waiting[place], waiting.pop(place + 1), ACTS
                yield none_newer * arrives, y_next, pkd.sure(x)
                none_newer *= 1 - arrives
        if none_newer > 0:
            yield none_newer, (force, waiting, ACTS), pkd.sure(x)

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(len(self.rewards))

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.rewards[x][y[0]] if y[-1] == ACTS else 0.0

    def y_label(self, y: Any) -> str:
        commands = ", then ".join(self.action_label(a) for a in (y[0], *y[1]))
        return f"{commands} acts" if y[-1] == ACTS else commands

    def action_label(self, a: Any) -> str:
        return self.names[a] if self.names else str(a)


def late_actions(
    *,
    delay: int | Mapping[int, float] = 1,
    levels: int = 7,
    inflow: float = 0.3,
    horizon: int = 12,
    log: str | None = None,
) -> Problem[LateActions]:
    """The tank of `pkd_examples.tank` with a pump that obeys late.

    `delay`: a whole number, or {steps: probability}. `log`: a CSV file of (z, x') = ((level,
    command in force), next level).
    """
    law = {delay: 1.0} if isinstance(delay, int) else delay
    good = (
        isinstance(law, Mapping)
        and law
        and all(isinstance(j, int) and j >= 0 and p >= 0 for j, p in law.items())
    )
    if not good or abs(sum(law.values()) - 1) > 1e-9:
        raise pkd.ModelError(
            f"late_actions(delay={delay!r}): "
            "expected a whole number from 0, or {steps: probability} that sums to 1"
        )
    world = tank(levels=levels, inflow=inflow, horizon=horizon)
    law = {j: p for j, p in law.items() if p > 0}
    model = LateActions(
        rewards=world.rewards,
        horizon=world.horizon,
        delay=law,
        first=int(world.start),
        held=1,
        names=world.action_names,
    )
    return Problem("late_actions", model, world.law(), picture).fit(log)


def picture(problem: Problem[LateActions], plan: pkd.Plan, ax: Axes) -> Axes:
    """What to command halfway through, by the level and the commands in force and on their way."""
    seen = {y for _, y in plan.states(problem.model().horizon // 2 + 1)}
    queues = sorted(seen, key=lambda y: (len(y[1]), y))
    ax.set(ylabel="in force, then on its way", title="What to command")
    return command_chart(problem.model(), plan, queues, ax)
