"""The picture of a latency study: values above, the price of each tick below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkd_delay.latency.curve import Latency, Limits

__all__ = ["draw_study"]

MOST_LABELS = 8  # more bars than this get no numbers: the axis shows them


def draw_study(study: Latency) -> Figure:
    """Values of an episode for each tick, exact or as certified bounds, and prices of ticks."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(6.4, 7.4), layout="constrained")
    values, prices = figure.subplots(2, 1, sharex=True)
    (_draw_bounds if study.certified else _draw_values)(values, study)
    _draw_prices(prices, study)
    values.set_ylabel("value of an episode")
    _put_legend_above(values)
    if study.sensor_price is not None:
        label = "price of a tick in the sensor"
        prices.axhline(study.sensor_price, color="#0072B2", linestyle="--", label=label)
        _put_legend_above(prices)
    prices.set_ylabel("price of this tick")
    prices.set_xlabel(study.axis)
    prices.xaxis.set_major_locator(MaxNLocator(integer=True))
    words = "certified bounds" if study.certified else "exact for the model's law"
    words = "NOT certified: the log breaks the assumptions" if study.refuted else words
    words = "exact, then between bounds" if study.planned else words
    figure.suptitle(f"{study.name}: what lateness costs ({words})")
    return figure


def _put_legend_above(ax: Axes) -> None:
    """Outside of the axes, where no line can strike it."""
    ax.legend(
        frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2,
        borderaxespad=0.2,
    )  # fmt: skip


def _draw_values(ax: Axes, study: Latency) -> None:
    ticks = list(range(len(study.lines)))
    best = [line.value for line in study.lines]
    ax.plot(ticks, best, "o-", color="black", label="optimum", zorder=3)  # type: ignore[arg-type]
    blind = [(d, x.ignoring) for d, x in enumerate(study.lines) if x.ignoring is not None]
    if blind:
        ax.plot(
            *zip(*blind, strict=True), "s-", color="tab:orange", markersize=9, linewidth=3,
            label="lateness ignored",
        )  # fmt: skip
    if study.sensor_price is not None:
        label = f"optimum net of sensor cost, {study.sensor_price:.3g} per tick"
        ax.plot(ticks, study.net_values(), "d--", color="#0072B2", label=label)
    if study.given is not None and study.given.value is not None:
        label = f"optimum of {study.given.tick}"
        ax.axhline(study.given.value, color="0.5", linestyle=":", label=label)


def _draw_bounds(ax: Axes, study: Latency) -> None:
    lines = dict(enumerate(study.lines))
    best = {d: line.bounds for d, line in lines.items()}
    _fill(ax, best, "black", f"optimum, {'bounds' if study.planned else 'certified'}", 1)
    exact = {d: line.value for d, line in lines.items() if line.value is not None}
    if exact:
        ax.plot(list(exact), list(exact.values()), "o", color="black", label="optimum, exact")
    known = {d: line.ignoring_bounds for d, line in lines.items() if line.ignoring_bounds}
    if known:
        _fill(ax, known, "tab:orange", f"lateness ignored{', certified' * (not exact)}", 3)
    if study.given is not None:
        low, high = study.given.bounds
        ax.axhline(low, color="0.5", linestyle=":", label=f"optimum of {study.given.tick}")
        ax.axhline(high, color="0.5", linestyle=":")


def _fill(ax: Axes, bounds: Mapping[int, Limits], colour: str, label: str, width: float) -> None:
    """A band; thin lines are in front of thick ones, so that both are seen where they agree."""
    ticks, (low, high) = list(bounds), zip(*bounds.values(), strict=True)
    look = {"color": colour, "linewidth": width, "markersize": 4 + 2 * width, "zorder": 5 - width}
    ax.fill_between(ticks, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(ticks, high, "v-", label=label, **look)  # type: ignore[arg-type]
    ax.plot(ticks, low, "^-", **look)  # type: ignore[arg-type]


def _draw_prices(ax: Axes, study: Latency) -> None:
    if not study.certified:
        exact = study.prices()
        bars = ax.bar(range(1, len(exact) + 1), exact, color="0.6", width=0.6)
        if len(exact) <= MOST_LABELS:
            ax.bar_label(bars, fmt="%.3g", padding=2, fontsize="small")
            ax.margins(y=0.15)
        return
    low, high = np.reshape(study.price_bounds(), (-1, 2)).T
    ticks = np.arange(1, len(low) + 1)
    # A bar would look like an amount: an interval has two ends and nothing in between.
    for edge, marker in ((low, "^"), (high, "v")):
        ax.plot(ticks, edge, marker, color="black", markersize=6)
    ax.vlines(ticks, low, high, color="0.6", linestyle=":", label="certified: between the marks")
    drawn = [(t, *line.drawn) for t, line in enumerate(study.lines) if line.drawn is not None]
    if drawn:
        at, least, most = np.array(drawn).T
        label = "likely (posterior draws, no guarantee)"
        ax.vlines(at, least, most, color="tab:green", linewidth=5, label=label)
    ax.set_ylim(min(0.0, float(low.min())), max([*high, 1e-9]) * 1.1)
    _put_legend_above(ax)
