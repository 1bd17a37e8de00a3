"""A tank with a pump that obeys late: `pkd.LateActions` on the tank.

The mirror image of observations that come late. The agent sees the level at once, but each command
travels for a random number of steps; the newest command that has come is in force. The feature
z = (level, command in force) is the pair (s, a) of the plain tank, so |Z| = SA for a queue of any
length.

>>> model = late_actions(delay={0: 0.5, 1: 0.5}).model()
>>> [(x, y)] = model.start()
>>> y
OnWay(y=None, in_force=1, queue=Queue(()), waited=0, phase='sends')
>>> for probability, after, _ in model.step(x, y, 2):  # 1 is in force, 2 is sent
...     print(probability, after.in_force, after.queue, after.phase)
0.5 1 Queue((2,)) comes
0.5 1 Queue((2,)) acts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pkd
from pkd_examples.problem import Problem
from pkd_examples.tank import IDLE, command_chart, tank

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def late_actions(
    *,
    delay: int | Mapping[int, float] = 1,
    levels: int = 7,
    inflow: float = 0.3,
    horizon: int = 12,
    log: str | None = None,
) -> Problem[pkd.LateActions]:
    """The tank of `pkd_examples.tank` with a pump that obeys late, and idles at first.

    `delay`: a whole number, or {steps: probability}. `log`: a CSV file of (z, x') = ((level,
    command in force), next level).
    """
    world = tank(levels=levels, inflow=inflow, horizon=horizon)
    model = pkd.LateActions(world, delay, first_action=IDLE)
    return Problem("late_actions", model, world.law(), picture).fit(log)


def picture(problem: Problem[pkd.LateActions], plan: pkd.Plan, ax: Axes) -> Axes:
    """What to command halfway through, by the level and the commands in force and on their way."""
    seen = {y for _, y in plan.states(problem.model().horizon // 2 + 1)}
    queues = sorted(seen, key=lambda y: (len(y.queue), y.in_force, y.queue))
    ax.set(ylabel="in force, then on its way", title="What to command")
    return command_chart(problem.model(), plan, queues, ax)
