"""Exact returns in the registered late environments: optimal, ignoring the delay, at random.

pkd benchmark
pkd benchmark LateTwoState-d1-v0 --recompute
pkd benchmark --recompute --csv benchmark.csv
"""

from __future__ import annotations

import argparse
import difflib
import math

from pkd import ModelError, cli

__all__ = ["HELP", "configure", "run"]

HELP = "exact returns in the registered late environments"
TOLERANCE = 1e-9  # relative, between the stored and the recomputed numbers
DIFFERENT = 1  # exit code


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="which environments (default: all)")
    parser.add_argument(
        "--recompute", action="store_true", help="compute the numbers anew (some take minutes)"
    )
    parser.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the table")


def run(args: argparse.Namespace) -> int:
    """Shows the stored numbers, or computes them and compares."""
    from pkd_delay.benchmark import HEADERS, compute_scores, list_ids, read_scores

    known, stored = list(list_ids()), read_scores()
    unknown = [word for word in args.ids if word not in known]
    if unknown:
        close = [difflib.get_close_matches(word, known, n=1) for word in unknown]
        raise ModelError(
            f"no late environment is called {word!r}" + (f"; did you mean {near[0]!r}?" * bool(near))
            for word, near in zip(unknown, close, strict=True)
        )
    found = args.ids or known
    scores = [compute_scores(word) if args.recompute else stored[word] for word in found]
    rows = [(s.id, s.horizon, s.optimal, s.ignoring, s.random) for s in scores]
    print("expected returns, certified: exact up to rounding")
    print(cli.table(HEADERS, rows))
    if args.csv is not None:
        cli.write_csv(args.csv, HEADERS, rows)
    different = [
        s.id
        for s in scores
        if s.id not in stored
        or not all(
            math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            for a, b in zip(
                (s.optimal, s.ignoring, s.random),
                (stored[s.id].optimal, stored[s.id].ignoring, stored[s.id].random),
                strict=True,
            )
        )
    ]
    if different:
        print(f"{len(different)} differ from the stored table: {', '.join(different)}")
    return DIFFERENT if different else 0
