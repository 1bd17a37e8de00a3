"""Observations that go missing and come back at the end of the episode.

At each step the state is shown with a known probability; otherwise the agent acts on what it saw
last. y holds the actions taken since then. When a state is shown, the world is replayed from the
last seen state, one queued action at a time, through CHANCE states. Nothing is choose in between,
so it does not matter that the states in between are only told at the end. Each replayed action
teaches the law of one pair z = (state, action), so |Z| = SA for gaps of any length. After the last
action everything is shown: that is the settlement, `last_step`.

The actions are a `pkd.Queue`: they are pushed while nothing is shown, and the replay reads only the
oldest one.

>>> model = missing_observations(shown=0.5).model()
>>> for probability, y, _ in model.step(3, (pkd.Queue(), False), 2):
...     print(probability, y)
0.5 (Queue((2,)), True)
0.5 (Queue((2,)), False)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import as_table
from pkd_examples.problem import Problem
from pkd_examples.tank import command_chart, tank

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MissingObservations", "missing_observations", "picture"]


@attrs.frozen(kw_only=True)
class MissingObservations(pkd.PartiallyKnownMDP):
    """x: the last state seen, or the one replayed. y: (actions since then, replaying or not).

    rewards: (S, A), paid in the replay, because paid at once they would tell the state.
    """

    rewards: tuple[tuple[float, ...], ...] = attrs.field(converter=as_table)
    horizon: int
    shown: float  # probability that a state is shown
    longest: int  # after so many steps without a state one is shown for sure
    first: int = 0  # state at the start
    names: Sequence[str] | None = None  # of the actions

    def start(self) -> Any:
        return self.first, (pkd.Queue(), False)

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if y[1] else range(len(self.rewards[0]))

    def step(self, x: Any, y: Any, a: Any) -> list[pkd.Branch]:
        taken, replaying = y
        if replaying:
            return [(1.0, (taken.pop(), len(taken) > 1), (x, taken.oldest))]
        shown = 1.0 if len(taken) == self.longest else self.shown
        both = (shown, (taken.push(a), True)), (1 - shown, (taken.push(a), False))
        return [(p, y_next, pkd.sure(x)) for p, y_next in both if p > 0]

    def last_step(self, x: Any, y: Any, a: Any) -> list[pkd.Branch]:
        return self.step(x, y, a) if y[1] else [(1.0, (y[0].push(a), True), pkd.sure(x))]

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(len(self.rewards))

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return self.rewards[x][y[0].oldest] if y[1] else 0.0

    def y_label(self, y: Any) -> str:
        return ("replay of " if y[1] else "") + (", ".join(map(self.action_label, y[0])) or "none")

    def action_label(self, a: Any) -> str:
        return self.names[a] if self.names else str(a)


def missing_observations(
    *,
    shown: float = 0.6,
    longest: int = 3,
    levels: int = 7,
    inflow: float = 0.3,
    horizon: int = 12,
    log: str | None = None,
) -> Problem[MissingObservations]:
    """The tank of `pkd_examples.tank` behind a gauge that answers with probability `shown`.

    After `longest` failures it answers for sure. `log`: a CSV file of (z, x') = ((level, action),
    next level).
    """
    findings = []
    if not isinstance(shown, int | float) or not 0 <= shown <= 1:
        findings.append(f"missing_observations(shown={shown!r}): expected a number between 0 and 1")
    if not isinstance(longest, int) or longest < 0:
        findings.append(
            f"missing_observations(longest={longest!r}): expected a whole number of at least 0"
        )
    if findings:
        raise pkd.ModelError(findings)
    world = tank(levels=levels, inflow=inflow, horizon=horizon)
    model = MissingObservations(
        rewards=world.rewards,
        horizon=world.horizon,
        shown=shown,
        longest=longest,
        first=int(world.start),
        names=world.action_names,
    )
    return Problem("missing_observations", model, world.law(), picture).fit(log)


def picture(problem: Problem[MissingObservations], plan: pkd.Plan, ax: Axes) -> Axes:
    """What to do halfway through, by the level seen last and the actions since then.

    Only gaps of up to two steps are drawn.
    """
    seen = {y for _, y in plan.states(problem.model().horizon // 2 + 1)}
    ax.set(ylabel="actions since then", title="What to do on old news")
    command_chart(
        problem.model(),
        plan,
        sorted((y for y in seen if len(y[0]) <= 2), key=lambda y: (len(y[0]), y)),
        ax,
    )
    ax.set_xlabel("level seen last")
    return ax
