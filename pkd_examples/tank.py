"""A tank whose level should stay near its middle, for late actions and missing observations.

It is an ordinary tabular MDP, a `pkd.TabularMDP`. The other two files put a transformer of the core
on it. An agent that steers on old news overshoots, so delay hurts here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import pkd
from pkd import expect
from pkd_examples.problem import choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ACTIONS = ("drain", "idle", "fill")
IDLE = 1


def tank(*, levels: int = 7, inflow: float = 0.3, horizon: int = 12) -> pkd.TabularMDP:
    """s' = clip(s + (a - 1) * 2 + w), r = 1 - |s - middle| / middle, less a tenth for the pump.

    w = -1, 0, 1 with probability inflow, 1 - 2 inflow, inflow. Actions: 0 drain, 1 idle, 2 fill.

    >>> tank(levels=5, inflow=0.25).law()[2, 1]
    {1: 0.25, 2: 0.5, 3: 0.25}
    """
    good = isinstance(inflow, int | float) and 0 <= inflow <= 0.5
    found = [] if good else [f"inflow is {inflow!r}; expected a number between 0 and 0.5"]
    expect.require(expect.whole("levels", levels, least=3), found)
    middle = (levels - 1) / 2
    transitions, rewards = np.zeros((levels, 3, levels)), np.zeros((levels, 3))
    for s in range(levels):
        for a in range(3):
            rewards[s, a] = 1 - abs(s - middle) / middle - 0.1 * (a != 1)
            for w, p in ((-1, inflow), (0, 1 - 2 * inflow), (1, inflow)):
                transitions[s, a, min(max(s + 2 * (a - 1) + w, 0), levels - 1)] += p
    return pkd.TabularMDP(transitions, rewards, horizon, start=levels // 2, action_names=ACTIONS)


def command_chart(
    model: pkd.LateActions | pkd.Missing, plan: pkd.Plan, rows: Sequence[Any], ax: Axes
) -> Axes:
    """The plan's command halfway through, by the level x (columns) and the given y (rows).

    Red drains, white idles, blue fills.
    """
    h = model.horizon // 2 + 1
    levels = sorted({x for x, _ in plan.states(h)})
    commands = [[choose(plan, h, x, y) for x in levels] for y in rows]
    colours = [[np.nan if a is None else a for a in row] for row in commands]
    ax.imshow(colours, origin="lower", aspect="auto", cmap="RdBu", vmin=-0.5, vmax=2.5)
    for i, row in enumerate(commands):
        for x, a in enumerate(row):
            label = "?" if a is None else model.action_label(a)
            ax.text(x, i, label, ha="center", va="center", fontsize="x-small")
    ax.set_yticks(range(len(rows)), [model.y_label(y) for y in rows], fontsize="x-small")
    ax.set_xlabel("level")
    return ax
