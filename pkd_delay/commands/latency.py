"""The price of each tick of delay: the exact optimum when every state comes 0, 1, 2, ... steps
late. A law of random delays gets a line of its own.

pkd latency two_state_chain --up-to 4
pkd latency two_state_chain --lags 0:.5,1:.3,2:.2
pkd latency autoscaler --plot price.png
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pkd
from pkd import ModelError, cli

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["HELP", "configure", "run"]

HELP = "the price of each tick of delay"
HEADERS = ("delay", "optimal value", "price of this tick", "lost in all")


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    cli.add_model(parser)
    parser.add_argument(
        "--up-to", type=cli.positive, default=4, metavar="D", help="the longest delay (default: 4)"
    )
    parser.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the table")
    parser.add_argument(
        "--plot", type=cli.picture, metavar="FILE", help="draw the optimal value over the delay"
    )


def run(args: argparse.Namespace) -> int:
    """Plans once for every delay, and once for the law that the flags say."""
    if args.delay is not None or (args.max_delay is not None and args.inter_arrival is None):
        raise ModelError(
            "pkd latency goes through all constant delays itself; "
            "expected --up-to D, and no other delay but --lags LAW or --inter-arrival LAW"
        )
    law = None
    if args.lags is not None or args.inter_arrival is not None:
        law = cli.find_model(args)
        args.lags = args.inter_arrival = args.max_delay = None
    values = []
    for delay in range(args.up_to + 1):
        args.delay = delay
        found = cli.find_model(args)
        values.append(pkd.plan(found.model, found.with_law()).value)
    rows: list[tuple[str | int | float, ...]] = [
        (d, v, values[max(d - 1, 0)] - v, values[0] - v) for d, v in enumerate(values)
    ]
    random = None if law is None else pkd.plan(law.model, law.with_law()).value
    if random is not None:
        rows.append(("the law given", random, "", values[0] - random))
    steps = found.model.horizon
    print(f"{found.name}: optimal value over {steps} steps when every state comes late")
    print(cli.table(HEADERS, rows))
    cli.write_files(args.csv, HEADERS, rows, args.plot, lambda: _draw(found.name, values, random))
    return 0


def _draw(name: str, values: list[float], random: float | None) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(len(values)), values, "o-", color="black")
    for delay in range(1, len(values)):
        axes.annotate(
            f"{values[delay] - values[delay - 1]:+.3g}",
            (delay, values[delay]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    if random is not None:
        axes.axhline(random, color="0.5", linestyle="--", label="the law given")
        axes.legend()
    axes.margins(x=0.08, y=0.12)
    axes.set(
        xlabel="constant delay in steps",
        ylabel="optimal value",
        title=f"{name}: the price of each tick",
        xticks=range(len(values)),
    )
    return figure
