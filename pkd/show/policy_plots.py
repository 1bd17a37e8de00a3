"""The picture of any policy: the best action over states and steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.files.values import get_fields
from pkd.queue import Queue
from pkd.show.plots import make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.planning.plan import Plan

MOST = 60  # states that a picture shows
SHOWN = 40  # states if there are more
SAMPLE = 2000  # episodes by which the states are chosen if there are more
State = tuple[Any, Any]


def plot_policy(plan: Plan, ax: Axes | None = None, most: int = MOST, name: str = "") -> Axes:
    """Draws the best action of each state at each step; white: the state cannot occur there.

    Of a model with more than `most` states the 40 are drawn that the policy meets most often, by
    simulation, and the title says how often that is.
    """
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    states, note = _choose_states(plan, most)
    ax = make_axes(ax, (7, 1.5 + 0.22 * len(states)))
    model, horizon = plan.compiled.model, plan.compiled.horizon
    place = {state: i for i, state in enumerate(states)}
    actions: dict[str, int] = {}
    best = np.full((len(states), horizon), np.nan)
    for h in range(1, horizon + 1):
        for x, y in states:
            try:
                action = plan.action(h, x, y)
            except ValueError:  # the state cannot occur at this step
                continue
            for offered in model.actions(x, y):
                actions.setdefault(model.action_label(offered), len(actions))
            best[place[x, y], h - 1] = actions[model.action_label(action)]
    colours = _pick_colours(len(actions))
    shown = np.full((*best.shape, 4), 1.0)
    for i, colour in enumerate(colours):
        shown[best == i] = colour
    ax.imshow(shown, aspect="auto", extent=(0.5, horizon + 0.5, len(states) - 0.5, -0.5))
    ax.set_yticks(range(len(states)), [_label(plan, state) for state in states], fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    title = f"{name}: " if name else ""
    ax.set(
        xlabel="step", ylabel="state", title=f"{title}best action (value {plan.value:.6g}){note}"
    )
    ax.grid(False)
    handles = [Patch(color=colours[i], label=a) for a, i in actions.items()]
    if np.isnan(best).any():
        handles.append(Patch(facecolor="white", edgecolor="grey", label="(cannot occur)"))
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), title="action")
    return ax


def order_states(states: Sequence[State]) -> list[State]:
    """States in the natural order of y, then of x: numbers by size, short queues first.

    >>> order_states([(3, None), (0, None), (1, None)])
    [(0, None), (1, None), (3, None)]
    """
    return sorted(states, key=lambda state: (_rank(state[1]), _rank(state[0])))


def _choose_states(plan: Plan, most: int) -> tuple[list[State], str]:
    """The states of a picture, and what the title says about those that are left out."""
    horizon, total = plan.compiled.horizon, plan.compiled.n_states
    found: dict[State, None] = {}
    for h in range(1, horizon + 1):
        if total > 100 * most:
            break  # too many to be listed
        found |= dict.fromkeys(plan.states(h))
    if found and len(found) <= most:
        return order_states(list(found)), ""
    if plan.truth is None:
        states = list(found)[:most]
        return order_states(states), f"\nthe first {len(states)} states"
    met: Counter[State] = Counter()
    for episode in plan.simulate(SAMPLE):
        met.update((m.x, m.y) for m in episode if m.action is not None)
    states = [state for state, _ in met.most_common(SHOWN)]
    share = sum(met[state] for state in states) / max(sum(met.values()), 1)
    note = f"\n{len(states)} of {len(found) or total} states: {share:.0%} of all visits, simulated"
    return order_states(states), note


def _label(plan: Plan, state: State) -> str:
    words = plan.label("x", state[0]), plan.label("y", state[1])
    return ", ".join(word for word in words if word not in ("", "None"))


def _pick_colours(count: int) -> list[tuple[float, float, float, float]]:
    """Colours that differ in lightness, too; none is white."""
    from matplotlib import colormaps

    return [colormaps["viridis"](i / max(count - 1, 1)) for i in range(count)]


def _rank(value: Any) -> tuple[Any, ...]:
    """A key that sorts values of any types: None, numbers, texts, records, anything else."""
    if value is None:
        return (0,)
    if isinstance(value, int | float | np.number):
        return (1, float(value))
    if isinstance(value, str):
        return (2, value)
    fields = get_fields(value)
    parts = tuple(fields.values()) if fields else value
    if isinstance(parts, tuple | Queue):
        return (3, len(parts), *map(_rank, parts))
    return (4, repr(value))
