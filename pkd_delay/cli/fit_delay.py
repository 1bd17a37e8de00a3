"""Fits a law of the delay to a log, says whether its assumption holds, and writes it to a file.

pkd fit-delay log.csv --save law.json
pkd plan two_state_chain --inter-arrival law.json

The log has the columns episode, step, sent, shown (and perhaps end, state, action), or episode,
step, age. Without episode all is one; without step the times of sending say it. Times are ISO
timestamps, epochs in s, ms, us or ns, or numbers. A row is a state that was sent: also the state
that ended the episode, and also one that nobody saw. `end` is the last time at which the episode
was watched (default: when its last state was sent). A `shown` after `end` means that the delay was
at least so long; an empty one means the same at the end of an episode, and else that it was lost.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pkd import ModelError, cli

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkd_delay.laws.fitting import FittedDelay

__all__ = ["HELP", "configure", "run"]

HELP = "a law of the delay from a log"
HEADERS = ("state", "action", "before", "delay", "asked", "yes", "share", "low", "high")
BEST = "best"
MOST_ROWS = 20  # of the printed table
MOST_LAWS = 6  # lines of printed laws


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("log", metavar="LOG", help="a CSV file")
    forms = (
        "the form of law: inter-arrival times (Assumption 1), independent lags, any chain of "
        "delays (default: the one that explains the log best)"
    )
    choices = (BEST, "inter-arrival", "lags", "chain")
    parser.add_argument("--form", choices=choices, default=BEST, help=forms)
    pairs = "one law for each state and action of the log"
    parser.add_argument("--per-pair", action="store_true", help=pairs)
    largest = "the delay at which the system cuts; cuts a tail (default: the largest of the log)"
    parser.add_argument("--max-delay", type=cli.positive, metavar="D", help=largest)
    tick = "time of one step: a number in the unit of the log, or 10s, 250ms (default: the spacing "
    tick += "of the column sent)"
    parser.add_argument("--tick", metavar="T", help=tick)
    delta = "probability with which the confidence set may miss the law (default: 0.05)"
    parser.add_argument("--delta", type=cli.fraction, default=0.05, help=delta)
    parser.add_argument("--save", type=cli.writable, metavar="FILE", help="write the law (.json)")
    parser.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the intervals")
    parser.add_argument("--plot", type=cli.picture, metavar="FILE", help="draw the fit")
    cli.add_findings(parser)


def run(args: argparse.Namespace) -> int:
    """Fits, tests, prints and writes. Exit code 1: the log breaks the assumption of the form."""
    from pkd_delay.laws.fitting import fit_delay
    from pkd_delay.laws.kernel import FORMS

    if args.save is not None and args.save.suffix != ".json":
        raise ModelError(f"--save {args.save}: expected a name that ends in .json")
    fit = fit_delay(
        FORMS.get(args.form, BEST), args.log, per_pair=args.per_pair, max_delay=args.max_delay,
        delta=args.delta, tick=args.tick,
    )  # fmt: skip
    rows: list[tuple[str | int | float, ...]] = [
        (*(name or "" for name in one.group or ("", "")), *(getattr(one, h) for h in HEADERS[2:]))
        for one in fit.intervals
    ]
    if args.json:
        _print_json(args, fit, rows)
    else:
        _print(args, fit, rows)
    if args.save is not None:
        fit.save(args.save)
        flag = "--lags" if fit.form.form == "lags" else "--inter-arrival"
        if not args.json:
            print(f"the law is in {args.save}: pkd plan MODEL {flag} {args.save}")
    cli.write_files(args.csv, HEADERS, rows, args.plot, lambda: _draw(fit))
    tests = ("What was tested", ("assumption", "the log says"), fit.list_tests())
    cli.write_findings(
        args.findings, args.typed, "How late states are", fit.say_plainly(), [tests],
        draw=lambda: _draw(fit, upright=True), advice=fit.advise(),
    )  # fmt: skip
    return 0 if fit.holds else 1


Rows = list[tuple[str | int | float, ...]]


def _print_json(args: argparse.Namespace, fit: FittedDelay, rows: Rows) -> None:
    laws = [
        {
            "state": group and group[0], "action": group and group[1],
            "rows": [list(law.row(before, fit.max_delay)) for before in range(fit.max_delay + 1)],
        }
        for group, law in fit.laws.items()
    ]  # fmt: skip
    said = {"log": args.log, "form": fit.form.form, "holds": fit.holds, "max_delay": fit.max_delay}
    said |= {"certified": fit.certified, "delta": args.delta, "laws": laws, "said": str(fit)}
    cli.print_json({**said, "intervals": cli.make_records(HEADERS, rows)})


def _print(args: argparse.Namespace, fit: FittedDelay, rows: Rows) -> None:
    print(f"{args.log}: {fit}")
    _print_laws(fit)
    columns = slice(0 if args.per_pair else 2, None)
    if fit.certified:
        print(f"certified with probability {1 - args.delta:g}, all lines at once:")
    else:
        print("no guarantee: the largest delay was read off this log; --max-delay certifies:")
    shown = sorted(rows, key=lambda row: -int(row[4]))[:MOST_ROWS]
    print(cli.table(HEADERS[columns], [row[columns] for row in rows if row in shown]))
    if len(rows) > MOST_ROWS:
        print(f"... and {len(rows) - MOST_ROWS} questions asked less often; --csv writes all")


def _print_laws(fit: FittedDelay) -> None:
    lines = []
    for group, law in fit.laws.items():
        where = "" if group is None else f" in {group[0]}, {group[1]}"
        if not law.drawn:
            for before in range(fit.max_delay + 1):
                row = ", ".join(f"{p:.3g}" for p in law.row(before, fit.max_delay)[:MOST_ROWS])
                lines.append(f"fitted{where}: after a delay of {before}: {row}")
        else:
            numbers = law.numbers(0)
            cells = enumerate(numbers.probabilities[:MOST_ROWS], start=numbers.first)
            text = ",".join(f"{number}:{p:.4g}" for number, p in cells)
            lines.append(f"fitted {law.drawn}s{where}: {text}")
    print("\n".join(lines[:MOST_LAWS]))
    if len(lines) > MOST_LAWS:
        print(f"... and {len(lines) - MOST_LAWS} more; --save writes all")


def _draw(fit: FittedDelay, *, upright: bool = False) -> Figure:
    """Both parts side by side, or one above the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 6.4) if upright else (9, 3.6), layout="constrained")
    fit.plot(list(figure.subplots(2, 1) if upright else figure.subplots(1, 2)))
    return figure
