"""Makes one page of saved runs: what was run, regret, optimism, counts and policy, with figures.

  pkd learn inventory --episodes 1e5 --optimism practical --seeds 5 --save run.npz
  pkd report run-*.npz --out inventory.html

The page is one file that asks for nothing outside. Runs that differ only in their seed form one
band.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pkd.cli.arguments import read_runs, writable

HELP = "make one HTML page of saved runs"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN.npz", help="a run that pkd learn --save or Run.save wrote"
    )
    parser.add_argument(
        "--out",
        type=writable,
        default=Path("report.html"),
        metavar="FILE",
        help="the page (default: report.html)",
    )


def run(args: argparse.Namespace) -> int:
    runs = read_runs(args.runs)
    from pkd.results.files import write_text
    from pkd.results.report import page

    write_text(args.out, page(runs))
    print(f"{args.out}: {len(runs)} run{'s' if len(runs) > 1 else ''}")
    return 0
