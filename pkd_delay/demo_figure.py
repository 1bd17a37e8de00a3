"""The figure of `pkd demo`: regret, the certified interval of the optimum, the price of a tick.

Each seed is one thin line, and their mean is a thick one. A few seeds have no band: a range from
the lowest to the highest would only say how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from pkd_delay.demo_study import (
    CERTIFIED,
    DELTA,
    GREEDY,
    IGNORING,
    KNOWN,
    PER_STATE,
    PRACTICAL,
    PUBLISHED,
    UNKNOWN,
    Curve,
    Study,
    find_ends,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_study"]

# By Okabe and Ito: the eyes of all readers tell them apart.
COLOURS: Mapping[Curve, str] = {
    (KNOWN, CERTIFIED): "#0072B2",
    (UNKNOWN, CERTIFIED): "#56B4E9",
    (KNOWN, PRACTICAL): "#009E73",
    (KNOWN, GREEDY): "#D55E00",
    (KNOWN, PUBLISHED): "#7F7F7F",
    (PER_STATE, PRACTICAL): "#CC79A7",
    (IGNORING, PRACTICAL): "#E69F00",
}


def draw_study(study: Study) -> Figure:
    """Three panels with one legend below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 5.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(5, 5, 4))
    for curve, colour in COLOURS.items():
        runs = study.runs[curve]
        k = _choose_episodes(len(runs[0].returns))
        name = f"{curve[1].label}; {curve[0]}"
        dashes = "--" if curve[0] == PER_STATE else "-"  # it lies on another curve for a while
        _draw_seeds(left, k, [run.regret[k] for run in runs], colour, name, dashes)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="episode",
        ylabel="cumulative regret",
        title="Regret against the exact optimum",
    )
    _draw_interval(middle, study)
    _draw_price(right, study)
    seeds = len(study.runs[KNOWN, CERTIFIED])
    figure.suptitle(
        "An autoscaler with a spot replica, and with metrics that come 0 to 3 ticks late "
        f"({_say_lines(seeds)})"
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    return figure


def _choose_episodes(count: int) -> np.ndarray:
    """Some of 0, ..., count - 1, evenly on a logarithmic axis."""
    return np.unique(np.geomspace(1, count, 400).astype(int)) - 1


def _draw_interval(ax: Axes, study: Study) -> None:
    """The certified interval of the optimum, the optimum, and what two policies are worth."""
    certified = study.runs[KNOWN, CERTIFIED]
    k = _choose_episodes(len(certified[0].returns))
    low, high = find_ends(certified)
    colour = COLOURS[KNOWN, CERTIFIED]
    ax.fill_between(
        k + 1, low[k], high[k], color=colour, alpha=0.15, linewidth=0, step="post",
        label=f"certified with {1 - DELTA:.0%}",
    )  # fmt: skip
    ax.axhline(study.optimum, color="black", linestyle=":", linewidth=1.5, label="exact optimum")
    for curve, words in (((KNOWN, CERTIFIED), "certified"), ((KNOWN, GREEDY), "Greedy")):
        runs = study.runs[curve]
        k = _choose_episodes(len(runs[0].returns))
        _draw_seeds(
            ax, k, [run.policy_values[k] for run in runs], COLOURS[curve],
            f"exact value of the policy, {words}",
        )  # fmt: skip
    ax.set(
        xscale="log",
        xlabel="episode",
        ylabel="return of an episode",
        title="Certified interval of the optimum",
    )
    ax.legend(loc="upper right", frameon=False, fontsize="small")


def _say_lines(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"{seeds} seeds: a thin line each, their mean thick"


def _draw_seeds(
    ax: Axes,
    k: np.ndarray,
    curves: Iterable[np.ndarray],
    colour: str,
    label: str,
    dashes: str = "-",
) -> None:
    """A thin line for each seed, and a thick one for their mean."""
    table = np.array(list(curves))
    ax.plot(k + 1, table.mean(axis=0), color=colour, label=label, linestyle=dashes, linewidth=1.8)
    if len(table) > 1:
        ax.plot(k + 1, table.T, color=colour, linewidth=0.5, alpha=0.7)


def _draw_price(ax: Axes, study: Study) -> None:
    best, blind = np.array(study.price).T
    ticks = np.arange(len(best))
    ax.plot(ticks, best, "o-", color="black", label="optimum, and its change per tick")
    ax.plot(
        ticks,
        blind,
        "s-",
        color=COLOURS[IGNORING, PRACTICAL],
        label="ignores the delay",
    )
    for tick in ticks[1:]:
        ax.annotate(
            f"{best[tick] - best[tick - 1]:.2f}",
            (tick, best[tick]),
            xytext=(5, 6),
            textcoords="offset points",
        )
    ax.set(
        xlabel="constant delay in ticks",
        ylabel="return of an episode",
        title="The price of each tick of delay",
        xticks=ticks,
    )
    ax.margins(x=0.3, y=0.18)
    ax.legend(loc="lower left", frameon=False, fontsize="small")
