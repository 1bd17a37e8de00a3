"""The policy of the autoscaler as an operator reads it: one table for each age of the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pkd import ModelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    import pkd
    from pkd_delay.augmented import Augmented

__all__ = ["draw_policy"]

MOST_PANELS = 4
WORDS = {1: "start", 0: "wait", -1: "stop"}
COLOURS = {1: "#9ecae1", 0: "white", -1: "#fdae6b", None: "0.9"}


def draw_policy(model: Augmented, plan: pkd.Plan) -> Axes:
    """What to do in the middle of an episode, by load, replicas and the age of the news.

    The load was shown at this very step, `age` ticks late, and nothing was started or stopped
    since. Grey: it cannot occur. `model`: a delayed `Autoscaler`.
    """
    from matplotlib.figure import Figure

    base: Any = model.base
    ages = range(min(model.max_delay + 1, MOST_PANELS))
    step = (base.horizon + 1) // 2
    loads, replicas = list(base.loads), range(1, base.max_replicas + 1)
    width, height = 1.2 + 0.72 * len(loads) * len(ages), 1.5 + 0.42 * len(replicas)
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(1, len(ages), sharey=True, squeeze=False)[0]
    for age, ax in zip(ages, panels, strict=True):
        for column, load in enumerate(loads):
            for ready in replicas:
                y = (ready, (0,) * base.startup)
                action = _choose(plan, step, *model.place(load, y, (0,) * age, 0))
                _fill(ax, column, ready, action)
        ax.set_xticks(range(len(loads)), loads)
        ax.set(xlim=(-0.5, len(loads) - 0.5), ylim=(0.5, len(replicas) + 0.5))
        ax.set_title(f"{age} tick{'s' * (age != 1)} old", fontsize="medium")
        ax.tick_params(length=0)
    panels[0].set_yticks(list(replicas))
    panels[0].set_ylabel("replicas ready, none starting")
    words = "the load that was shown last, and its age; nothing was started or stopped since"
    figure.supxlabel(words, fontsize="medium")
    figure.suptitle(f"autoscaler: what to do at tick {step} (value {plan.value:.6g})")
    first: Axes = panels[0]
    return first


def _choose(plan: pkd.Plan, h: int, x: Any, y: Any) -> int | None:
    try:
        action: int = plan.action(h, x, y)
    except ModelError:  # it cannot occur at this step
        return None
    return action


def _fill(ax: Axes, x: int, y: int, action: int | None) -> None:
    from matplotlib.patches import Rectangle

    colour = COLOURS[action]
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="0.7"))
    if action is not None:
        ax.text(x, y, WORDS[action], ha="center", va="center", fontsize="small")
