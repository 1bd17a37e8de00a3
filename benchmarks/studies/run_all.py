"""Runs every study in a process of its own and prints how long each took.

python benchmarks/studies/run_all.py --quick
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from pkd.cli.output import table

ROOT = Path(__file__).resolve().parents[2]
STUDIES = [
    "regret_in_episodes",
    "optimism_failures",
    "crude_max_delay",
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer seeds and sizes: under two minutes in all"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/studies"),
        help="folder for the files (default: out/studies)",
    )
    args = parser.parse_args()
    options = ["--out", str(args.out.resolve()), *(["--quick"] if args.quick else [])]
    seconds = []
    for name in STUDIES:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", f"benchmarks.studies.{name}", *options], cwd=ROOT, check=True
        )
        seconds.append(time.perf_counter() - began)
    print(
        table(
            ["study", "seconds"],
            [*zip(STUDIES, map(round, seconds), strict=True), ("all", round(sum(seconds)))],
        )
    )


if __name__ == "__main__":
    main()
