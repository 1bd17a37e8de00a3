"""Says what a log proves: how much the best possible policy, or a given one, earns at least and at
most, with a stated confidence; and which samples would narrow that interval.

  pkd certify inventory --log sales.csv
  pkd certify inventory --log sales.csv --policy run.npz --save robust.npz --csv evidence.csv

A log is a CSV file with the columns z (a feature of the model, or its label) and x (what followed).
The law of a registered model is not used, only its log. The statement holds with probability
1 - delta if the model is right: samples of a feature are independent draws of one law.
"""

from __future__ import annotations

import argparse
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING

from pkd.cli.arguments import add_model, find_model, fraction, writable
from pkd.cli.output import Cell, table, write_csv
from pkd.model import ModelError

if TYPE_CHECKING:
    import pkd

HELP = "an interval for the value of a policy, from a log"
MOST_ROWS = 40  # of a printed table; the CSV form holds all
COLUMNS = ("feature", "samples", "radius", "more samples")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--log", metavar="FILE", help="a CSV file of samples, columns z and x")
    parser.add_argument(
        "--policy", metavar="FILE", help="a saved plan or run (default: the best possible policy)"
    )
    parser.add_argument(
        "--delta",
        type=fraction,
        default=0.05,
        help="probability with which the statement may fail (default: 0.05)",
    )
    parser.add_argument(
        "--share",
        type=fraction,
        default=0.5,
        help="how wide the interval should become, as a part of what it is (default: 0.5)",
    )
    parser.add_argument("--save", type=writable, metavar="FILE", help="save the robust plan")
    parser.add_argument(
        "--csv", type=writable, metavar="FILE", help="write the samples and radii of all features"
    )


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    if args.log is None:
        raise ModelError("no log was named; expected --log FILE, a CSV file of samples")
    import pkd

    model = pkd.compile(found.model)
    log = pkd.read_log(args.log, model)
    certificate = pkd.certify(model, log, policy=args.policy, delta=args.delta)
    more = certificate.more_samples(args.share, progress=True)
    rows = [_row(one, more) for one in certificate.evidence]
    print(f"{found.name}: {certificate.sentence} (certified)")
    print(table(COLUMNS, ((row[0], row[1], f"{row[2]:.4g}", row[3]) for row in rows[:MOST_ROWS])))
    if log.unseen:
        print(log.summary().splitlines()[-1])
    if len(rows) > MOST_ROWS:
        print(f"... {len(rows) - MOST_ROWS} more features; --csv writes all of them")
    print(_advise(certificate, more, args.share))
    if args.save is not None:
        certificate.plan.save(args.save)
        least = Context(prec=6, rounding=ROUND_FLOOR).create_decimal_from_float(
            certificate.optimal_low
        )
        print(f"the robust plan is in {args.save}: it earns at least {least}")
    if args.csv is not None:
        write_csv(args.csv, COLUMNS, rows)
    return 0


def _row(one: pkd.Evidence, more: dict[object, int]) -> list[Cell]:
    return [one.label, one.samples, one.radius, more.get(one.feature, 0)]


def _advise(certificate: pkd.Certificate, more: dict[object, int], share: float) -> str:
    """How many samples would narrow the interval, in words."""
    if not more:
        return "the interval is a point: more samples would not narrow it"
    goal = "halve the interval" if share == 0.5 else f"bring the interval to {share:g} of it"
    total, width = f"{sum(more.values()):,}", f"{certificate.gap:.4g}"
    return (
        f"about {total} more samples, as in the last column, would {goal} (now {width} wide; "
        "an estimate)"
    )
