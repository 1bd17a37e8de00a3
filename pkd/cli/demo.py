"""Learns the inventory: an order every morning, against a demand whose law for each weekday nobody knows.

The paper's rule with its theory constants, the same rule with practical constants, and the agent that never explores, side by side: a
table, and a plot in out/demo.png.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pkd.catalog import find
from pkd.cli.arguments import positive
from pkd.cli.learn import COLUMNS, row, rule
from pkd.cli.output import table

HELP = "learn a small problem, compare three rules, draw out/demo.png"
COMPARED = ("mvp", "practical", "greedy")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--episodes", type=positive, default=20_000, metavar="K", help="episodes of each run (default: 20000)")
    parser.add_argument("--seeds", type=positive, default=5, metavar="N", help="how many seeds (default: 5)")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="FOLDER", help="where the plot goes (default: out)")


def run(args: argparse.Namespace) -> int:
    import pkd
    from pkd.cli.regret_plot import regret_plot

    found = find("inventory")
    args.out.mkdir(parents=True, exist_ok=True)
    compiled, law = pkd.compile(found.model), found.with_law()
    pkd.learn(compiled, law, 1)  # compiles the kernels, or reads their cache: not a part of the seconds in the table
    bar = sys.stderr.isatty()
    rules = [
        [pkd.learn(compiled, law, args.episodes, optimism=rule(name), seed=one, progress=bar) for one in range(args.seeds)]
        for name in COMPARED
    ]

    print(f"inventory: {found.model.horizon} days, {args.episodes:,} episodes, mean over {args.seeds} seeds")
    rows = []
    for runs in rules:
        columns = list(zip(*(row(one, run) for one, run in enumerate(runs)), strict=True))[1:]
        rows.append([runs[0].label, *(sum(column) / len(column) for column in columns)])
    print(table(["rule", *COLUMNS[1:]], rows))
    print("Demand comes whatever is ordered, so nothing here needs exploring: Greedy does well, and the theory constants pay for caution.")
    target = args.out / "demo.png"
    regret_plot(target, f"Inventory, {args.episodes:,} episodes", rules)
    print(f"plot: {target}")
    return 0
