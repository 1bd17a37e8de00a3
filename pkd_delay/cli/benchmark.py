"""Exact returns in the registered late environments: optimal, ignoring the delay, at random.

pkd benchmark
pkd benchmark pkd/LateTwoState-d1-v0 --recompute
pkd benchmark --recompute --csv benchmark.csv
"""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

import attrs

from pkd import ModelError, cli, progress

if TYPE_CHECKING:
    from pkd_delay.envs.benchmark import Scores

__all__ = ["HELP", "configure", "run"]

HELP = "exact returns in the registered late environments"
TOLERANCE = 1e-9  # relative, between the stored and the recomputed numbers
DIFFERENT = 1  # exit code


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="which environments (default: all)")
    parser.add_argument(
        "--recompute", action="store_true", help="compute the numbers again (some take minutes)"
    )
    parser.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the table")


def run(args: argparse.Namespace) -> int:
    """Shows the stored numbers, or computes them and compares."""
    from pkd_delay.envs.benchmark import (
        HEADERS,
        compute_scores,
        describe_unknown,
        read_scores,
    )

    stored = read_scores()
    unknown = [word for word in args.ids if word not in stored]
    if unknown:
        raise ModelError(map(describe_unknown, unknown))
    wanted = args.ids or list(stored)
    if args.recompute:
        scores = [compute_scores(word) for word in progress.watch(wanted, "environments")]
    else:
        scores = [stored[word] for word in wanted]
    rows = [attrs.astuple(score) for score in scores]
    different = [score.id for score in scores if not _agree(score, stored.get(score.id))]
    if args.json:
        records = cli.make_records(HEADERS, rows)
        cli.print_json({"environments": records, "differ_from_stored": different})
    else:
        print("expected returns, certified: exact up to rounding")
        print(cli.table(HEADERS, rows))
    if args.csv is not None:
        cli.write_csv(args.csv, HEADERS, rows)
    if different and not args.json:
        print(f"{len(different)} differ from the stored table: {', '.join(different)}")
    return DIFFERENT if different else 0


def _agree(found: Scores, stored: Scores | None) -> bool:
    if stored is None:
        return False
    pairs = zip(attrs.astuple(found)[1:], attrs.astuple(stored)[1:], strict=True)
    return all(math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for a, b in pairs)
