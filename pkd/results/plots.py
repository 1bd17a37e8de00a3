"""Pictures of runs. matplotlib is imported when a picture is asked for, not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.results.intervals import bootstrap_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkd.experiments.record import Record
    from pkd.results.run import Run

POINTS = 2000  # of a curve; more would only make files large
BAND_POINTS = 200  # of a band: each is a bootstrap
BOUND = "explicit bound, MVP as published, a plan per episode"
WINDOWS = 60  # over which returns are averaged where the value of a policy is not known
# The palette of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442",
)  # fmt: skip


def make_axes(ax: Axes | None = None) -> Axes:
    """The given axes, or new ones on a figure that needs no screen."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(7, 4.5), layout="constrained").subplots()


def plot_regret(
    runs: Sequence[Run | Record],
    ax: Axes | None = None,
    *,
    points: int = POINTS,
    band_points: int = BAND_POINTS,
    **line: Any,
) -> Axes:
    """Draws the mean cumulative regret of runs that differ in their seed.

    The band is the 95% bootstrap interval of the mean over seeds. points: of a curve, and of a
    band; line: options of matplotlib's `plot`.
    """
    ax = make_axes(ax)
    k = thin(min(len(run.returns) for run in runs), points)
    regrets = [run.regret for run in runs]
    mean = np.mean([regret[k] for regret in regrets], axis=0)
    (drawn,) = ax.plot(k + 1, mean, label=line.pop("label", runs[0].label), **line)
    if len(runs) > 1:
        k = thin(min(map(len, regrets)), band_points)
        band = bootstrap_mean(np.array([regret[k] for regret in regrets]))
        ax.fill_between(k + 1, band.low, band.high, color=drawn.get_color(), alpha=0.2, linewidth=0)
    ax.set_xlabel("episode")
    ax.set_ylabel("cumulative regret")
    ax.legend()
    return ax


def draw_regret(
    groups: Mapping[str, Sequence[Sequence[Run | Record]]],
    bounds: Mapping[str, Callable[[float], float]] | None = None,
) -> Figure:
    """One row for each title. Left: cumulative regret, its mean over seeds and the interval of it.
    Right: the mean value of the policy in use, the exact optimum, and for a certified rule the band
    in which it is certified to lie.

    groups: for each title the runs of every agent, which differ in their seeds. Where regret is
    estimated, the value is the mean return since the last point, and the legend says so. bounds:
    for a title a bound on the regret of K episodes as a function of K, such as `ModelBound`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2 * len(groups)), layout="constrained")
    rows = figure.subplots(len(groups), 2, squeeze=False)
    for (title, agents), (left, right) in zip(groups.items(), rows, strict=True):
        for ax in (left, right):
            ax.set_prop_cycle(color=COLOURS)
        for runs in agents:
            label = _write_label(runs)
            plot_regret(runs, ax=left, label=label)
            plot_value(runs, right, label)
        _plot_certified(agents, right)
        optimum = agents[0][0].optimal_value
        right.axhline(optimum, color="black", linestyle=":", label="exact optimum")
        # Rules with theory constants and with small ones lie orders of magnitude apart.
        if len(agents) > 1 and all(run.regret[-1] > 0 for runs in agents for run in runs):
            left.set(xscale="log", yscale="log")
        if bounds and title in bounds:
            k = np.unique(np.geomspace(1, len(agents[0][0].returns), BAND_POINTS).astype(int))
            drawn = [float(bounds[title](int(one))) for one in k]
            left.plot(k, drawn, color="0.5", linestyle="--")
            right.plot([], [], color="0.5", linestyle="--", label=BOUND)
            left.set(xscale="log", yscale="log")
        right.set(xlabel="episode", ylabel="expected return of the policy in use", xscale="log")
        seeds = len(agents[0])
        bands = f"\nmean over {seeds} seeds; bands: 95% bootstrap intervals of it"
        left.set_title(title + (bands if seeds > 1 else "\none seed"), fontsize="medium")
        right.set_title(f"mean over {seeds} seeds" if seeds > 1 else "one seed", fontsize="medium")
        # One legend for both panels, where it covers no line.
        left.get_legend().remove()
        right.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
    return figure


def _plot_certified(agents: Sequence[Sequence[Run | Record]], ax: Axes) -> None:
    """Shades the mean certified interval of the optimum, as far as the other lines reach."""
    limits = ax.get_ylim()
    for place, runs in enumerate(agents):
        count = len(runs[0].returns)
        lower = runs[0].lower_values
        if runs[0].guarantee != "certified" or lower is None or len(lower) != count:
            continue
        k = np.unique(np.geomspace(1, count, POINTS).astype(int)) - 1
        low, high = (
            np.mean([getattr(run, name)[k] for run in runs], axis=0)
            for name in ("lower_values", "upper_values")
        )
        label = f"{runs[0].label}: band of the optimum"
        colour = COLOURS[place % len(COLOURS)]
        ax.fill_between(
            k + 1, low, high, step="post", color=colour, alpha=0.12, linewidth=0, label=label
        )
    ax.set_ylim(limits)


def plot_value(runs: Sequence[Run | Record], ax: Axes, label: str, points: int = POINTS) -> None:
    """Draws the mean value of the policy in use; where it is not known, the mean return."""
    count = len(runs[0].returns)
    # Many early episodes and few late ones: the axis is logarithmic.
    if _is_exact(runs):
        k = np.unique(np.geomspace(1, count, points).astype(int)) - 1
        mean = np.mean([run.policy_values[k] for run in runs], axis=0)
        ax.step(k + 1, mean, where="post", label=label)
    else:
        k = np.unique(np.geomspace(1, count, WINDOWS).astype(int)) - 1
        sums = np.cumsum(np.mean([run.returns for run in runs], axis=0))[k]
        mean = np.diff(sums, prepend=0.0) / np.diff(k, prepend=-1)
        ax.step(k + 1, mean, where="pre", label=label)


def _write_label(runs: Sequence[Run | Record]) -> str:
    """The agent, whether its regret is only estimated, and what is guaranteed."""
    label, guarantee = runs[0].label, runs[0].guarantee
    estimated = "" if _is_exact(runs) else ", estimated"
    told = guarantee in label.lower()
    return f"{label}{estimated}" if told else f"{label}{estimated}, {guarantee}"


def _is_exact(runs: Sequence[Run | Record]) -> bool:
    return not any(np.isnan(run.policy_values).any() for run in runs)


def plot_values(runs: Sequence[Run | Record], ax: Axes | None = None, points: int = POINTS) -> Axes:
    """Draws what the plans believed, what their policies are worth, and the optimum."""
    ax = make_axes(ax)
    k = thin(min(len(run.returns) for run in runs), points)
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
