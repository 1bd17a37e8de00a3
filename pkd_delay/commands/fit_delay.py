"""Fits a law of the delay to a log, says whether its assumption holds, and writes it to a file.

pkd fit-delay log.csv --save law.json
pkd plan two_state_chain --inter-arrival law.json

The log has the columns episode, step, sent, shown (and perhaps end, state, action), or episode,
step, age. A row is a state that was sent: also the state that ended the episode, and also one that
nobody saw. `end` is the last time at which the episode was watched (default: when its last state
was sent). An empty `shown`, or one after `end`, means that the delay was at least so long.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pkd import ModelError, cli

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkd_delay.fitting import FittedDelay

__all__ = ["HELP", "configure", "run"]

HELP = "a law of the delay from a log"
HEADERS = ("state", "action", "before", "delay", "asked", "yes", "share", "low", "high")
BEST = "best"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("log", metavar="LOG", help="a CSV file")
    parser.add_argument(
        "--form",
        choices=(BEST, "inter-arrival", "lags", "chain"),
        default=BEST,
        help="the form of law: inter-arrival times (Assumption 1), independent lags, any chain of "
        "delays (default: the one that explains the log best)",
    )
    parser.add_argument(
        "--per-pair", action="store_true", help="one law for each state and action of the log"
    )
    parser.add_argument(
        "--max-delay",
        type=cli.positive,
        metavar="D",
        help="the delay at which the system cuts (default: the largest of the log)",
    )
    parser.add_argument(
        "--tick", type=float, default=1.0, metavar="T", help="time of one step (default: 1)"
    )
    parser.add_argument(
        "--delta",
        type=cli.fraction,
        default=0.05,
        help="probability with which the confidence set may miss the law (default: 0.05)",
    )
    parser.add_argument("--save", type=cli.writable, metavar="FILE", help="write the law (.json)")
    parser.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the intervals")
    parser.add_argument("--plot", type=cli.picture, metavar="FILE", help="draw the fit")


def run(args: argparse.Namespace) -> int:
    """Fits, tests, prints and writes. Exit code 1: the log breaks the assumption of the form."""
    from pkd_delay.delay_log import read_log
    from pkd_delay.fitting import FORMS, compare_forms, fit_delay

    if args.save is not None and args.save.suffix != ".json":
        raise ModelError(f"--save {args.save}: expected a name that ends in .json")
    log = read_log(args.log, args.tick)
    form = args.form
    if form == BEST:
        largest = max(max(sample.before, sample.delay) for sample in log.samples)
        evidence = compare_forms(log.samples, largest, per_pair=args.per_pair)
        form = max(evidence, key=lambda name: evidence[name])
    fit = fit_delay(
        FORMS[form], log, per_pair=args.per_pair, max_delay=args.max_delay, delta=args.delta
    )
    rows: list[tuple[str | int | float, ...]] = [
        (*_name_pair(one.group), one.before, one.delay, one.asked, one.yes, one.share, one.low,
         one.high)
        for one in fit.intervals
    ]  # fmt: skip
    print(f"{args.log}: {fit}")
    _print_laws(fit)
    columns = slice(0 if args.per_pair else 2, None)
    if fit.certified:
        print(f"certified with probability {1 - args.delta:g}, all lines at once:")
    else:
        print("no guarantee: the largest delay was read off this log; --max-delay certifies:")
    print(cli.table(HEADERS[columns], [row[columns] for row in rows]))
    if args.save is not None:
        fit.save(args.save)
        flag = "--lags" if form == "lags" else "--inter-arrival"
        print(f"the law is in {args.save}: pkd plan MODEL {flag} {args.save}")
    cli.write_files(args.csv, HEADERS, rows, args.plot, lambda: _draw(fit))
    return 0 if fit.holds else 1


def _name_pair(group: tuple[str | None, str | None] | None) -> tuple[str, str]:
    state, action = group or (None, None)
    return state or "", action or ""


def _print_laws(fit: FittedDelay) -> None:
    for group, law in fit.laws.items():
        where = "" if group is None else f" in {group[0]}, {group[1]}"
        numbers = law.numbers(0)
        if law.form == "chain":
            rows = [", ".join(f"{p:.3g}" for p in law.row(d, fit.max_delay)) for d in
                    range(fit.max_delay + 1)]  # fmt: skip
            for before, row in enumerate(rows):
                print(f"fitted{where}: after a delay of {before}: {row}")
        else:
            cells = enumerate(numbers.probabilities, start=numbers.first)
            text = ",".join(f"{number}:{p:.4g}" for number, p in cells)
            print(f"fitted {law.drawn}s{where}: {text}")


def _draw(fit: FittedDelay) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    fit.plot(list(figure.subplots(1, 2)))
    return figure
