"""Learns a late autoscaler under several rules: a table, a few sentences, and out/demo.png.

pkd demo
pkd demo --episodes 1000 --seeds 10 --out somewhere
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pkd import cli

__all__ = ["HELP", "configure", "run"]

HELP = "run the main demonstration: table, figure in out/demo.png"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    episodes = "episodes of each run (default: 500; two runs are longer)"
    parser.add_argument("--episodes", type=cli.positive, default=500, metavar="K", help=episodes)
    seeds = "how many seeds (default: 3)"
    parser.add_argument("--seeds", type=cli.positive, default=3, metavar="N", help=seeds)
    out = "where table and figure go (default: out)"
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="FOLDER", help=out)


def run(args: argparse.Namespace) -> int:
    """Prints the table and the sentences, and writes table and figure."""
    from pkd_delay.demo import page

    args.out.mkdir(parents=True, exist_ok=True)
    study = page.run_study(args.episodes, args.seeds, progress=sys.stderr.isatty())
    rows = page.make_rows(study)
    notes = page.write_notes(study)
    if not args.json:
        print(page.make_title(study))
        print("\n".join([cli.table(page.HEADERS, rows), *notes]))
    csv, plot = args.out / "demo.csv", args.out / "demo.png"
    cli.write_files(csv, page.HEADERS, rows, plot, lambda: page.draw_study(study))
    if args.json:
        told = {"title": page.make_title(study), "rows": cli.make_records(page.HEADERS, rows)}
        cli.print_json({**told, "notes": notes, "table": str(csv), "figure": str(plot)})
    else:
        print(f"table: {csv}, figure: {plot}")
    return 0
