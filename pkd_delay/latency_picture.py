"""The picture of a latency study: values above, the price of each tick below."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkd_delay.latency import Interval, Latency

__all__ = ["draw_study"]

MOST_LABELS = 8  # more bars than this get no numbers: the axis shows them


def draw_study(study: Latency) -> Figure:
    """Values of an episode for each tick, exact or as certified bounds, and prices of ticks."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(6.4, 7.4), layout="constrained")
    values, prices = figure.subplots(2, 1, sharex=True)
    if study.certified:
        _draw_bounds(values, study)
        _draw_price_bounds(prices, study)
    else:
        _draw_values(values, study)
        _draw_prices(prices, study)
    values.set_ylabel("value of an episode")
    _put_legend_above(values)
    if study.sensor_price is not None:
        label = "price of a tick in the sensor"
        prices.axhline(study.sensor_price, color="tab:blue", linestyle="--", label=label)
        _put_legend_above(prices)
    prices.set_ylabel("price of this tick")
    prices.set_xlabel(study.axis)
    prices.xaxis.set_major_locator(MaxNLocator(integer=True))
    words = "certified" if study.certified else "exact for the model's law"
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
        label = f"optimum less the sensor, {study.sensor_price:.3g} per tick"
        ax.plot(ticks, study.net_values(), "d--", color="tab:blue", label=label)
    if study.given is not None and study.given.value is not None:
        label = f"optimum of {study.given.tick}"
        ax.axhline(study.given.value, color="0.5", linestyle=":", label=label)


def _draw_bounds(ax: Axes, study: Latency) -> None:
    ticks = list(range(len(study.lines)))
    _fill(ax, ticks, [line.bounds for line in study.lines], "black", "optimum, certified", 1)
    blind = {d: x.ignoring_bounds for d, x in enumerate(study.lines)}
    known = {d: bounds for d, bounds in blind.items() if bounds is not None}
    if known:
        label = "lateness ignored, certified"
        _fill(ax, list(known), list(known.values()), "tab:orange", label, 3)
    if study.given is not None:
        low, high = study.given.bounds
        ax.axhline(low, color="0.5", linestyle=":", label=f"optimum of {study.given.tick}")
        ax.axhline(high, color="0.5", linestyle=":")


def _fill(
    ax: Axes,
    ticks: Sequence[int],
    bounds: Sequence[Interval],
    colour: str,
    label: str,
    width: float,
) -> None:
    """A band; thin lines are in front of thick ones, so that both are seen where they agree."""
    low, high = zip(*bounds, strict=True)
    look = {"color": colour, "linewidth": width, "markersize": 4 + 2 * width, "zorder": 5 - width}
    ax.fill_between(ticks, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(ticks, high, "v-", label=label, **look)  # type: ignore[arg-type]
    ax.plot(ticks, low, "^-", **look)  # type: ignore[arg-type]


def _draw_prices(ax: Axes, study: Latency) -> None:
    prices = study.prices()
    bars = ax.bar(range(1, len(prices) + 1), prices, color="0.6", width=0.6)
    if len(prices) <= MOST_LABELS:
        ax.bar_label(bars, fmt="%.3g", padding=2, fontsize="small")
        ax.margins(y=0.15)


def _draw_price_bounds(ax: Axes, study: Latency) -> None:
    bounds = study.price_bounds()
    low, high = [b[0] for b in bounds], [b[1] for b in bounds]
    heights = [most - least for least, most in bounds]
    ax.bar(range(1, len(bounds) + 1), heights, bottom=low, color="0.6", width=0.6)
    ax.set_ylim(0, max([*high, 1e-9]) * 1.1)
