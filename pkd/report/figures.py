"""One figure for each model: regret above, what policies are worth below.

A page holds many figures, so a curve has few points: as many as a screen shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkd.report.content import Chapter
from pkd.report.numbers import number
from pkd.results.plots import plot_regret, plot_value, plot_values
from pkd.results.svg import drawing, inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WIDTH", "draw_chapter"]

WIDTH = 5.2  # inches: its letters can be read where the page is 400 pixels wide
POINTS, BAND_POINTS = 160, 30  # of a curve, and of a band: each of these is a bootstrap
FAR_APART = 20.0  # ratio of regrets from which on a logarithmic axis is needed


def draw_chapter(chapter: Chapter, place: int) -> str:
    """The <figure> of one model; place: its number on the page."""
    groups = chapter.groups
    finals = [float(np.mean(group.regrets)) for group in groups]
    with drawing(WIDTH, 5.4 + 0.17 * len(groups)) as figure:
        upper, lower = figure.subplots(2, 1)
        for group in groups:
            plot_regret(
                group.runs, upper, points=POINTS, band_points=BAND_POINTS, label=group.label
            )
        if min(finals) > 0 and max(finals) > FAR_APART * min(finals):
            upper.set_yscale("log")
        upper.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
        _draw_values(lower, chapter)
        says = "Two panels over episodes. Cumulative regret ends at " + "; ".join(
            f"{group.label}: {number(final)}" for group, final in zip(groups, finals, strict=True)
        )
        says += f". Below, values of policies; the optimum is {number(chapter.optimum)}."
        drawn = inline(figure, says, f"chapter {place}")
    band = ""
    if any(len(group.runs) > 1 for group in groups):
        band = " A line is the mean over seeds, its band the 95% bootstrap interval of the mean."
    below = "what the policy in use is worth, and the optimum"
    if _shows_beliefs(chapter):
        below = "what the plans believed, what their policies are worth, and the optimum"
    caption = f"Above: cumulative regret against the exact optimum.{band} Below: {below}."
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _shows_beliefs(chapter: Chapter) -> bool:
    """Whether there is one agent, and it has upper values."""
    groups = chapter.groups
    return len(groups) == 1 and all(run.upper_values.size for run in groups[0].runs)


def _draw_values(ax: Axes, chapter: Chapter) -> None:
    if _shows_beliefs(chapter):
        plot_values(chapter.groups[0].runs, ax, points=POINTS)
        handles, labels = ax.get_legend_handles_labels()
        short = [label.partition(",")[0] for label in labels]
        ax.legend(handles, short, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
        return
    for group in chapter.groups:
        plot_value(group.runs, ax, group.label, points=POINTS)
    ax.axhline(chapter.optimum, color="black", linewidth=1, linestyle=":")
    ax.set(xlabel="episode", ylabel="value of the policy in use", xscale="log")
