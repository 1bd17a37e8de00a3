"""The price of each tick of delay: the exact optimum of a model when every state comes 0, 1, 2, ... steps late.

pkd latency two_state_chain --up-to 4
pkd latency autoscaler --plot price.png
"""

from __future__ import annotations

import argparse

from pkd.cli.arguments import add_model, find_model, positive, writable
from pkd.cli.output import save_figure, table, write_csv
from pkd.model import ModelError

HELP = "the price of each tick of delay"
HEADERS = ("delay", "optimal value", "price of this tick", "lost in all")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--up-to", type=positive, default=4, metavar="D", help="the longest delay (default: 4)")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write the table")
    parser.add_argument("--plot", type=writable, metavar="FILE", help="draw the optimal value over the delay")


def run(args: argparse.Namespace) -> int:
    if not hasattr(args, "delay"):
        raise ModelError("no installed package can delay a model; expected --delay from one in the entry-point group pkd.transformers")
    if args.delay is not None or args.inter_arrival is not None or args.max_delay is not None:
        raise ModelError("pkd latency goes through all constant delays itself; expected --up-to D and no other delay")
    import pkd

    values = []
    for delay in range(args.up_to + 1):
        args.delay = delay
        found = find_model(args)
        values.append(pkd.plan(found.model, found.with_law()).value)
    rows = [(d, v, values[max(d - 1, 0)] - v, values[0] - v) for d, v in enumerate(values)]
    if args.csv:
        write_csv(args.csv, HEADERS, rows)
    if args.plot:
        _draw(args, found.name, values)
    print(f"{found.name}: optimal value over {found.model.horizon} steps when every state comes late")
    print(table(HEADERS, rows))
    return 0


def _draw(args: argparse.Namespace, name: str, values: list[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(len(values)), values, "o-", color="black")
    for delay in range(1, len(values)):
        text = f"{values[delay] - values[delay - 1]:+.3g}"
        axes.annotate(text, (delay, values[delay]), xytext=(0, 7), textcoords="offset points", ha="center")
    axes.margins(x=0.08, y=0.12)
    axes.set(xlabel="constant delay in steps", ylabel="optimal value", title=f"{name}: the price of each tick", xticks=range(len(values)))
    save_figure(figure, args.plot)
