"""Pictures of runs. matplotlib is imported when a picture is asked for, not before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.results.run import Run

POINTS = 2000  # of a curve; more would only make files large


def make_axes(ax: Axes | None = None) -> Axes:
    """The given axes, or new ones on a figure that needs no screen."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(7, 4.5), layout="constrained").subplots()


def plot_regret(runs: Sequence[Run], ax: Axes | None = None, **line: Any) -> Axes:
    """Draws the mean cumulative regret of runs that differ in their seed.

    The band goes from the lowest run to the highest. line: options of matplotlib's `plot`.
    """
    ax = make_axes(ax)
    k = thin(min(len(run.returns) for run in runs))
    curves = np.array([run.regret[k] for run in runs])
    (drawn,) = ax.plot(k + 1, curves.mean(axis=0), label=line.pop("label", runs[0].label), **line)
    if len(runs) > 1:
        ax.fill_between(
            k + 1,
            curves.min(axis=0),
            curves.max(axis=0),
            color=drawn.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    ax.set_xlabel("episode")
    ax.set_ylabel("cumulative regret")
    ax.legend()
    return ax


def plot_values(runs: Sequence[Run], ax: Axes | None = None) -> Axes:
    """Draws what the plans believed, what their policies are worth, and the optimum."""
    ax = make_axes(ax)
    k = thin(min(len(run.returns) for run in runs))
    for name, style in (("upper_values", "--"), ("policy_values", "-")):
        mean = np.mean([getattr(run, name)[k] for run in runs], axis=0)
        ax.plot(
            k + 1,
            mean,
            style,
            drawstyle="steps-post",
            label=f"{name.replace('_', ' ')}, {runs[0].label}",
        )
    ax.axhline(runs[0].optimal_value, color="black", linewidth=1, label="optimal value")
    ax.set_xlabel("episode")
    ax.set_ylabel("value")
    ax.set_xscale("log")
    ax.legend()
    return ax


def thin(count: int, points: int = POINTS) -> np.ndarray:
    """At most so many points of the episodes 0 to count - 1, the first and the last among them.

    Half of them are even on a plain axis, half on a logarithmic one.
    """
    half = min(count, points // 2)
    return np.unique([np.linspace(0, count - 1, half), np.geomspace(1, count, half) - 1]).astype(
        int
    )
