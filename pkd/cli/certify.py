"""Says what a log proves: how much the best possible policy, or a given one, earns at least and at
most, with a stated confidence; and which samples would narrow that interval.

  pkd certify inventory --log sales.csv
  pkd certify inventory --log sales.csv --policy run.npz --save robust.npz --csv evidence.csv

A log is a CSV file with the columns z (a feature of the model, or its label) and x (what followed).
The law of a registered model is not used, only its log. The statement holds with probability
1 - delta if the model is right: samples of a feature are independent draws of one law. That is
tested on the log: whether what follows depends on the time, on what followed before, or on columns
named state, y, action or a. A log that fails certifies nothing, and the exit code is 1.
"""

from __future__ import annotations

import argparse
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING

import attrs

from pkd.cli.arguments import (
    add_delta,
    add_findings,
    add_model,
    add_policy,
    find_model,
    find_policy,
    fraction,
    writable,
)
from pkd.cli.output import Cell, make_records, print_json, table, write_csv, write_findings
from pkd.model import ModelError

if TYPE_CHECKING:
    import pkd
    from pkd.certification.certificate import Evidence

HELP = "an interval for the value of a policy, from a log"
MOST_ROWS = 40  # of a printed table; the CSV form holds all
COLUMNS = ("feature", "samples", "radius", "more samples")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--log", metavar="FILE", help="a CSV file, columns z and x, or a saved run")
    parser.add_argument(
        "--censored",
        action="store_true",
        help="cells such as >=5, or a column `censored`, say that an outcome was at least so "
        "large: a demand on a day that was sold out",
    )
    add_policy(parser, "the best possible policy")
    add_delta(parser, "the statement")
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
    add_findings(parser)


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    if args.log is None:
        raise ModelError("no log was named; expected --log FILE, a CSV file of samples")
    import pkd
    from pkd.transforms import Censored

    if args.censored:
        found = attrs.evolve(found, model=Censored(found.model))
    model = pkd.compile(found.model)
    if args.log.endswith(".npz"):
        from pkd.certification.logs import as_log

        log = as_log(model, pkd.Run.load(args.log).counts)
    else:
        log = pkd.read_log(args.log, model)
    policy = None if args.policy is None else find_policy(found, args.policy)
    certificate = pkd.certify(model, log, policy=policy, delta=args.delta)
    more = certificate.more_samples(args.share, progress=True)
    rows = [_row(one, more) for one in certificate.evidence]
    tested = certificate.log_test
    certified = "" if certificate.rejected else " (certified)"
    if args.json:
        _print_json(found.name, certificate, rows)
    else:
        print(f"{found.name}: {certificate.sentence}{certified}")
        if tested is None:
            print("not tested whether the features have one law each: counts have no order")
        elif not tested.ok:
            print(f"the log breaks the assumptions: the model needs a finer feature\n{tested}")
        shown = ((row[0], row[1], f"{row[2]:.4g}", row[3]) for row in rows)
        rest = "; --csv writes all of them" if len(rows) > MOST_ROWS else ""
        print(table(COLUMNS, shown, most=MOST_ROWS) + rest)
        if log.unseen:
            print(log.summary().splitlines()[-1])
        print(_advise(certificate, more, args.share))
    if args.save is not None:
        certificate.plan.save(args.save)
        least = Context(prec=6, rounding=ROUND_FLOOR).create_decimal_from_float(
            certificate.optimal_low
        )
        earns = "" if certificate.rejected else f": it earns at least {least}"
        if not args.json:
            print(f"the robust plan is in {args.save}{earns}")
    if args.csv is not None:
        write_csv(args.csv, COLUMNS, rows)
    said = [f"{certificate.sentence[0].upper()}{certificate.sentence[1:]}."]
    if tested is not None:
        said.append(
            "No dependence was found in the log that would speak against this."
            if tested.ok
            else f"The log breaks the assumptions: {'; '.join(tested.findings)}."
        )
    if log.unseen:
        said.append(f"There are {log.summary().splitlines()[-1]}.")
    advice = _advise(certificate, more, args.share)
    wanted = sorted(((row[0], row[1], row[3]) for row in rows), key=lambda row: -float(row[2]))
    write_findings(
        args.findings, args.typed, f"What the log proves of {found.name}", said,
        [("What is known, and what to sample.", ("feature", "samples", "more samples"), wanted)],
        advice=[f"Proof: {advice}."],
    )  # fmt: skip
    return 1 if certificate.rejected else 0


def _print_json(name: str, certificate: pkd.Certificate, rows: list[list[Cell]]) -> None:
    tested = certificate.log_test
    fields = ("low", "high", "optimal_low", "optimal_high", "policy_low", "policy_high", "delta")
    told = {field: getattr(certificate, field) for field in fields}
    ok = None if tested is None else tested.ok
    said = {"model": name, "certified": not certificate.rejected, "log_test_ok": ok}
    said |= {"sentence": certificate.sentence, "evidence": make_records(COLUMNS, rows)}
    print_json({**said, **told})


def _row(one: Evidence, more: dict[object, int]) -> list[Cell]:
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
