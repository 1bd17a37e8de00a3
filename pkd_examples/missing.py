"""A tank behind a gauge that does not always answer: `pkd.Missing` on the tank.

At each step the level is shown with a known probability; otherwise the agent acts on what it saw
last. Each replayed action teaches the law of one pair z = (level, action), so |Z| = SA for gaps of
any length.

>>> model = missing_observations(shown=0.5).model()
>>> [(x, y)] = model.start()
>>> for probability, after, _ in model.step(x, y, 2):
...     print(probability, after.queue, after.phase)
0.5 Queue((2,)) replays
0.5 Queue((2,)) chooses
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pkd
from pkd import expect
from pkd_examples.problem import Problem
from pkd_examples.tank import command_chart, tank

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def missing_observations(
    *,
    shown: float = 0.6,
    longest: int = 3,
    levels: int = 7,
    inflow: float = 0.3,
    horizon: int = 12,
    log: str | None = None,
) -> Problem[pkd.Missing]:
    """The tank of `pkd_examples.tank` behind a gauge that answers with probability `shown`.

    After `longest` failures it answers for sure. `log`: a CSV file of (z, x') = ((level, action),
    next level).
    """
    expect.require(expect.fraction("shown", shown, closed=True), expect.whole("longest", longest))
    world = tank(levels=levels, inflow=inflow, horizon=horizon)
    model = pkd.Missing(world, 1 - shown, longest=longest)
    return Problem("missing_observations", model, world.law(), picture).fit(log)


def picture(problem: Problem[pkd.Missing], plan: pkd.Plan, ax: Axes) -> Axes:
    """What to do halfway through, by the level seen last and the actions since then.

    Only gaps of up to two steps are drawn.
    """
    seen = {y for _, y in plan.states(problem.model().horizon // 2 + 1)}
    ax.set(ylabel="actions since then", title="What to do on old news")
    command_chart(
        problem.model(),
        plan,
        sorted((y for y in seen if len(y.queue) <= 2), key=lambda y: (len(y.queue), y.queue)),
        ax,
    )
    ax.set_xlabel("level seen last")
    return ax
