"""Pictures of runs. matplotlib is imported when a picture is asked for, not before."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.expect import if_given, instance, require
from pkd.model import ModelError
from pkd.show.intervals import FEWEST, Interval, mean_interval, say_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkd.results.run import Run

POINTS = 2000  # of a curve; more would only make files large
BOUND_POINTS = 200  # at which a bound is computed
BOUND = "explicit bound, MVP as published, a plan per episode"
FAR_APART = 20.0  # ratio of regrets from which on a logarithmic axis is needed
ROWS = 3  # models that have a row of two panels; more share a page
PAGE = 7.2, 9.6  # inches
MOST_PANELS = 30  # of a page
WINDOWS = 60  # over which returns are averaged where the value of a policy is not known
# The palette of Okabe and Ito, which colour-blind readers can tell apart.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442",
)  # fmt: skip
MARKS = "osD^v<>"
DASHES = ("-", "--", ":", "-.")  # where there are more lines than colours
Style = dict[str, Any]


class Line(NamedTuple):
    """Regret of one agent against a parameter."""

    x: list[Any]
    regret: Interval  # (values of x,) each
    units: int  # the fewest that an interval is over
    what: str  # "instances", "settings" or "seeds"
    style: Style

    def say(self, value: Any) -> str:
        """The regret at a value of x in words, "" if there is none."""
        if value not in self.x:
            return ""
        return say_mean(Interval(*(part[self.x.index(value)] for part in self.regret)))


def choose_styles(agents: Iterable[str]) -> dict[str, Style]:
    """The colour and the dashes of each agent, the same in every picture of one experiment.

    >>> choose_styles(["mvp", "greedy", "mvp"])["greedy"]
    {'color': '#D55E00', 'linestyle': '-'}
    """
    return {
        agent: {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
        }
        for i, agent in enumerate(dict.fromkeys(agents))
    }


def make_axes(ax: Axes | None = None, size: tuple[float, float] = (7, 4.5)) -> Axes:
    """The given axes, or new ones on a figure that needs no screen."""
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    require(if_given(instance, "ax", ax, Axes, "axes of matplotlib"))
    return Figure(figsize=size, layout="constrained").subplots() if ax is None else ax


def plot_regret(
    runs: Sequence[Run], ax: Axes | None = None, *, points: int = POINTS, **line: Any
) -> Axes:
    """Draws the mean cumulative regret of runs that differ in their seed.

    The band is the 95% interval of the mean over at least three seeds. points: of a curve; line:
    options of matplotlib's `plot`.
    """
    ax = make_axes(ax)
    k = thin(min(len(run.returns) for run in runs), points)
    found = mean_interval(np.array([run.regret[k] for run in runs]))
    line = {"color": COLOURS[len(ax.lines) % len(COLOURS)], "label": runs[0].label, **line}
    ax.plot(k + 1, found.value, **line)
    if len(runs) >= FEWEST:
        ax.fill_between(k + 1, found.low, found.high, color=line["color"], alpha=0.2, linewidth=0)
    ax.set_xlabel("episode")
    ax.set_ylabel("cumulative regret")
    ax.legend()
    return ax


def draw_regret(
    models: Mapping[str, Mapping[str, Sequence[Run]]],
    bounds: Mapping[str, Callable[[float], float]] | None = None,
    *,
    show: Sequence[str] = ("regret", "value"),
    size: tuple[float, float] | None = None,
    styles: Mapping[str, Style] | None = None,
) -> Figure:
    """A row of panels for each model; more than three models share a page, with regret alone.

    "regret": cumulative, its mean over seeds and the interval of it. "value": the mean value of the
    policy in use, the exact optimum, and for a certified rule the band in which it is certified to
    lie. Where regret is estimated, the value is the mean return since the last point, and the
    legend says so.

    models: for each model the runs of every agent by its name, which differ in their seeds. bounds:
    for a model a bound on the regret of K episodes as a function of K, such as `ModelBound`.
    """
    from matplotlib.figure import Figure

    if not show or not set(show) <= {"regret", "value"}:
        raise ModelError(f"show is {show!r}; expected regret, value, or both")
    wide = len(models) <= ROWS
    show = show if wide or len(show) == 1 else ("regret",)
    if len(models) > MOST_PANELS:
        raise ModelError(
            f"{len(models)} models do not fit a page; expected at most {MOST_PANELS}: take some "
            "with select(...), or draw regret against a parameter with plot(x=...)"
        )
    columns = len(show) if wide else min(5, math.ceil(math.sqrt(0.75 * len(models))))
    lines = math.ceil(len(models) * len(show) / columns)
    page = PAGE[0], min(PAGE[1], 0.8 + 2.2 * lines)
    size = size or ((1 + 6 * len(show), 4.2 * lines) if wide else page)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).flatten()
    styles = styles or choose_styles(agent for agents in models.values() for agent in agents)
    for i, (model, agents) in enumerate(models.items()):
        panels = dict(zip(show, axes[i * len(show) :], strict=False))
        _draw_model(model, agents, panels, styles, bounds or {}, wide=wide)
    for ax in axes[len(models) * len(show) :]:
        ax.remove()
    if not wide:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw_model(
    model: str,
    agents: Mapping[str, Sequence[Run]],
    panels: Mapping[str, Axes],
    styles: Mapping[str, Style],
    bounds: Mapping[str, Callable[[float], float]],
    *,
    wide: bool,
) -> None:
    every = [run for runs in agents.values() for run in runs]
    least, most = min(len(run.returns) for run in every), max(len(run.returns) for run in every)
    seeds = min(len(runs) for runs in agents.values())
    over = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    left, right = panels.get("regret"), panels.get("value")
    for agent, runs in agents.items():
        label = label_agent(agent, runs)
        if left is not None:
            plot_regret(runs, left, label=label, **styles[agent])
        if right is not None:
            plot_value(runs, right, label=label, **styles[agent])
    if right is not None:
        plot_certified(agents, styles, right)
        right.axhline(every[0].optimal_value, color="0.4", linestyle=":", label="exact optimum")
        right.set(xlabel="episode", ylabel="expected return of the policy in use", xscale="log")
        right.set_title(over, fontsize="medium")
    if left is not None:
        if model in bounds:
            k = np.unique(np.geomspace(1, most, BOUND_POINTS).astype(int))
            drawn = [float(bounds[model](int(one))) for one in k]
            left.plot(k, drawn, color="0.5", linestyle="--", label=BOUND)
            if right is not None:
                right.plot([], [], color="0.5", linestyle="--", label=BOUND)
        # Rules with theory constants and with small ones lie orders of magnitude apart.
        if model in bounds or (len(agents) > 1 and all(run.regret[-1] > 0 for run in every)):
            least = min(np.min(line.get_ydata()) for line in left.lines)
            left.set(xscale="log", yscale="log")
            if least > 0:  # the band of a mean may reach below 0, and would take most of the axis
                left.set_ylim(bottom=least / 2)
        bands = "; bands: its 95% intervals" if seeds >= FEWEST else ""
        episodes = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        told = f"{model}, {episodes} episodes\n{over}{bands}" if wide else model
        left.set_title(told, fontsize="medium" if wide else "small")
        if (legend := left.get_legend()) is not None:
            legend.remove()
    # One legend for both panels, where it covers no line.
    if wide and (last := right or left) is not None:
        last.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)


def draw_lines(
    panels: Mapping[str, Mapping[str, Line]],
    x: str,
    at: int,
    *,
    size: tuple[float, float] | None = None,
    figure: Figure | None = None,
) -> Figure:
    """Regret after `at` episodes against a parameter: a line and a band for each agent."""
    from matplotlib.figure import Figure

    if len(panels) > MOST_PANELS:
        raise ModelError(f"{len(panels)} panels do not fit a page; expected at most {MOST_PANELS}")
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    most = max(len(line.x) for lines in panels.values() for line in lines.values())
    default = (6.4, max(4.2, 0.3 * most))
    if len(panels) > 1:
        default = PAGE[0], min(PAGE[1], 0.9 + 2.3 * rows)
    figure = figure or Figure(figsize=size or default, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).flatten()
    what = "regret" if x == "episodes" else f"regret after {at:,} episodes"
    for ax, (title, lines) in zip(axes, panels.items(), strict=False):
        values = list(dict.fromkeys(value for line in lines.values() for value in line.x))
        if all(isinstance(value, int | float) for value in values):
            _draw_numbers(ax, lines, values)
            ax.set(xlabel=x, ylabel=what)
            scale, limit = ax.set_yscale, ax.set_ylim
        else:
            _draw_names(ax, lines, values)
            ax.set(xlabel=what)
            scale, limit = ax.set_xscale, ax.set_xlim
        drawn = np.concatenate([line.regret.value for line in lines.values()])
        least = min(drawn[drawn > 0], default=0.0)
        if drawn.min() > 0 and drawn.max() > FAR_APART * least:
            scale("log")
        elif drawn.min() == 0 and drawn.max() > FAR_APART * least > 0:
            linear = 10 ** math.floor(math.log10(least))
            scale("symlog", linthresh=linear, linscale=0.5)
            limit(-linear / 2, 2 * drawn.max())
        first = next(iter(lines.values()))
        over = f"mean over {first.units} {first.what}"
        if first.units >= FEWEST:
            over = f"mean and 95% interval over {first.units} {first.what}"
        ax.set_title(f"{title}\n{over}" if title else over, fontsize="small")
    for ax in axes[len(panels) :]:
        ax.remove()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize="small")
    return figure


def _draw_numbers(ax: Axes, lines: Mapping[str, Line], values: Sequence[float]) -> None:
    for name, line in lines.items():
        dots: Style = {} if name == "bound" else {"marker": "o", "markersize": 3}
        ax.plot(line.x, line.regret.value, label=name, **dots, **line.style)
        colour, (_, low, high) = line.style["color"], line.regret
        ax.fill_between(line.x, low, high, color=colour, alpha=0.2, linewidth=0)
    if min(values) > 0 and max(values) > 4 * min(values):
        ax.set_xscale("log")
    if len(values) <= 12:
        ax.set_xticks(values, [f"{value:g}" for value in values], fontsize="small")
        ax.set_xticks([], minor=True)


def _draw_names(ax: Axes, lines: Mapping[str, Line], values: Sequence[Any]) -> None:
    """Names stand below one another, with a mark and a bar for each line."""
    for i, (name, line) in enumerate(lines.items()):
        place = [values.index(value) + 0.1 * (i - (len(lines) - 1) / 2) for value in line.x]
        mean, low, high = line.regret
        bars = np.maximum(np.nan_to_num([mean - low, high - mean]), 0.0)
        colour, mark = line.style["color"], MARKS[i % len(MARKS)]
        ax.errorbar(mean, place, xerr=bars, fmt=mark, markersize=4, color=colour, label=name)
    ax.set_yticks(range(len(values)), [str(value) for value in values])
    ax.invert_yaxis()


def label_agent(agent: str, runs: Sequence[Run]) -> str:
    """The agent, whether its regret is only estimated, and what is guaranteed."""
    guarantee = runs[0].guarantee
    estimated = "" if is_exact(runs) else ", estimated"
    told = "" if guarantee in agent.lower() else f", {guarantee}"
    return f"{agent}{estimated}{told}"


def is_exact(runs: Iterable[Run]) -> bool:
    """Whether the regret of all runs is exact."""
    return all(run.regret_is == "exact" for run in runs)


def plot_certified(
    agents: Mapping[str, Sequence[Run]],
    styles: Mapping[str, Style],
    ax: Axes,
    points: int = POINTS,
) -> None:
    """Shades the mean certified interval of the optimum, as far as the other lines reach."""
    limits = ax.get_ylim()
    for agent, runs in agents.items():
        count, lower = min(len(run.returns) for run in runs), runs[0].lower_values
        if runs[0].guarantee != "certified" or lower is None:
            continue
        k = np.unique(np.geomspace(1, count, points).astype(int)) - 1
        low, high = (
            np.mean([getattr(run, name)[k] for run in runs], axis=0)
            for name in ("lower_values", "upper_values")
        )
        ax.fill_between(
            k + 1, low, high, step="post", color=styles[agent]["color"], alpha=0.12, linewidth=0,
            label=f"{agent}: band of the optimum",
        )  # fmt: skip
    ax.set_ylim(limits)


def plot_value(runs: Sequence[Run], ax: Axes, points: int = POINTS, **line: Any) -> None:
    """Draws the mean value of the policy in use; where it is not known, the mean return."""
    count = min(len(run.returns) for run in runs)
    # Many early episodes and few late ones: the axis is logarithmic.
    if is_exact(runs):
        k = np.unique(np.geomspace(1, count, points).astype(int)) - 1
        ax.step(
            k + 1, np.mean([run.policy_values[k] for run in runs], axis=0), where="post", **line
        )
    else:
        k = np.unique(np.geomspace(1, count, WINDOWS).astype(int)) - 1
        sums = np.cumsum(np.mean([run.returns[:count] for run in runs], axis=0))[k]
        ax.step(k + 1, np.diff(sums, prepend=0.0) / np.diff(k, prepend=-1), where="pre", **line)


def plot_values(runs: Sequence[Run], ax: Axes, colour: str, points: int = POINTS) -> None:
    """Draws what the plans believed, what their policies are worth, and the optimum."""
    k = thin(min(len(run.returns) for run in runs), points)
    for name, style in (("upper values", "--"), ("policy values", "-")):
        mean = np.mean([getattr(run, name.replace(" ", "_"))[k] for run in runs], axis=0)
        ax.plot(k + 1, mean, style, color=colour, drawstyle="steps-post", label=name)
    ax.axhline(runs[0].optimal_value, color="0.4", linestyle=":", label="exact optimum")
    ax.set(xlabel="episode", ylabel="value", xscale="log")
    ax.legend()


def thin(count: int, points: int = POINTS) -> np.ndarray:
    """At most `points` of the episodes 0 to count - 1, the first and the last among them.

    Half of them are even on a plain axis, half on a logarithmic one.

    >>> thin(5, 100)
    array([0, 1, 2, 3, 4])
    """
    half = min(count, points // 2)
    even, early = np.linspace(0, count - 1, half), np.geomspace(1, count, half) - 1
    return np.unique(np.concatenate([even, early]).astype(int))
