"""The price of lateness: the optimum when every state, or every action, comes 0, 1, 2, ... ticks
late, what each tick costs, and what it costs to ignore the delay. A law of random delays gets a
line of its own, or is shifted tick by tick.

pkd latency two_state_chain --up-to 4 --sensor-price .5
pkd latency autoscaler --plot price.png
pkd latency two_state_chain --lags 0:.5,1:.3,2:.2 --shift
pkd latency two_state_chain --late actions
pkd latency inventory --log sales.csv --sensor-price .5
pkd latency riverswim --horizon 60 --up-to 30 --gap 0.01
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import pkd
from pkd import ModelError, cli, progress
from pkd_delay.cli import action_flags, flags

if TYPE_CHECKING:
    from pkd.certification.logs import Log
    from pkd_delay.latency.curve import Latency, Make

__all__ = ["HELP", "configure", "run"]

HELP = "the price of each tick of delay"
GIVEN = "the law given"
Tick = tuple["int | str", "Make"]
LATE = {  # the flags of what comes late
    "observations": (
        "delay", "inter_arrival", "lags", "max_delay", "delay_law", "shared_delay", "hidden_delays",
    ),
    "actions": ("action_delay", "action_delay_law", "first_action"),
}  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    cli.add_model(parser)
    cli.add_findings(parser)
    group = parser.add_argument_group("latency")
    longest, late = "the longest delay (default: 4)", ("observations", "actions")
    group.add_argument("--up-to", type=cli.positive, default=4, metavar="D", help=longest)
    what = f"what comes late (default: {late[0]})"
    group.add_argument("--late", choices=late, default=late[0], help=what)
    law = "shift the law of --lags, --inter-arrival or --action-delay-law by 0, 1, ... ticks"
    group.add_argument("--shift", action="store_true", help=law)
    price = "price per episode of each tick by which a sensor is faster: where it stops paying"
    group.add_argument("--sensor-price", type=cli.amount, metavar="P", help=price)
    log = "certified bounds from samples of the model's features, a CSV file or a saved run"
    group.add_argument("--log", metavar="FILE", help=log)
    gap = "bounds this close, relative to the optimum, for delays whose exact plan does not fit"
    group.add_argument("--gap", type=cli.amount, metavar="G", help=gap)
    seconds = "with --gap: the most time for one delay (default: 10)"
    group.add_argument("--seconds", type=cli.amount, default=10.0, metavar="T", help=seconds)
    delta = "probability with which a certified bound may fail (default: 0.05)"
    group.add_argument("--delta", type=cli.fraction, default=0.05, help=delta)
    group.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the table")
    group.add_argument("--plot", type=cli.picture, metavar="FILE", help="draw values and prices")
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Plans once for every delay, and once for the law that the flags say."""
    _refuse(args)
    study = _study(cli.find_problem(args), args)
    headers, rows = study.table()
    if args.json:
        told = {"model": study.name, "axis": study.axis, "rows": cli.make_records(headers, rows)}
        cli.print_json({**told, "certified": study.certified, "said": study.sentences()})
    else:
        print(f"{study.name}: {study.axis}")
        print(cli.table(headers, rows))
        for sentence in study.sentences():
            print(sentence)
    cli.write_files(args.csv, headers, rows, args.plot, study.draw)
    caption = f"What an episode of {study.name} is worth, by {study.axis}."
    cli.write_findings(
        args.findings, args.typed, "What lateness costs", study.say_plainly(),
        [(caption, headers, rows)], draw=study.draw, advice=study.advise(),
    )  # fmt: skip
    return 1 if study.refuted else 0


def _refuse(args: argparse.Namespace) -> None:
    constant = args.delay is not None or (args.max_delay is not None and args.inter_arrival is None)
    other = {
        "observations": (constant, "no other delay but --lags LAW or --inter-arrival LAW"),
        "actions": (
            args.action_delay is not None,
            "no other delay of actions but --action-delay-law LAW",
        ),
    }
    given, wanted = other[args.late]
    if args.gap is not None and args.log is not None:
        raise ModelError(
            "--gap needs the law of the model, and --log has samples; give one of them"
        )
    if given:
        raise ModelError(
            f"pkd latency goes through all constant delays itself; expected --up-to D, and {wanted}"
        )


def _study(problem: pkd.Problem, args: argparse.Namespace) -> Latency:
    from pkd.certification.assumptions import check_log
    from pkd_delay.delayed import Delayed
    from pkd_delay.latency.curve import (
        DelayCost,
        Latency,
        measure,
        measure_bounds,
        measure_certified,
        strip,
    )

    free = _change(args, **dict.fromkeys(LATE[args.late]))
    law = _find_law(problem, args)
    if args.shift and law is None:
        raise ModelError("--shift needs a law; expected --lags, --inter-arrival or the like")
    axis = f"constant delay of all {args.late}, in ticks"
    ticks: list[Tick] = [("without", lambda given: _make(free)(strip(given)))]
    for d in range(args.up_to + 1):
        if args.shift:
            flagged = _shift(args, law, d)
        elif args.late == "observations":
            flagged = _change(free, delay=d, delay_law=args.delay_law)
        else:
            flagged = _change(free, action_delay=d, first_action=args.first_action)
        ticks.append((d, _make(flagged)))
    own = isinstance(problem, Delayed) and args.late == "observations"
    if args.shift:
        axis = f"ticks added to the law of late {args.late}"
    elif law is not None or own:
        ticks.append((GIVEN, _make(args)))
    shown = progress.watch(ticks, "delays", wanted=False if args.quiet else None)
    refuted, refused = "", list[str]()
    if args.gap is not None:
        lines = measure_bounds(problem, shown, args.gap, args.seconds, args.delta)
    elif args.log is None:
        lines = measure(problem, shown, refused.append)
    else:
        log = _read_counts(args.log, problem)
        found = check_log(strip(problem).model(), log)
        refuted = "" if found is None or found.ok else found.findings[0]
        lines = measure_certified(problem, dict(log), shown, args.delta, refused.append)
    for text in refused:
        print(f"pkd: {text}; --gap 0.01 gives bounds", file=sys.stderr)
    if len(lines) < 2:
        raise ModelError("no delay is small enough for an exact plan; expected --gap 0.01")
    given: DelayCost | None = lines.pop() if lines[-1].tick == GIVEN else None
    return Latency(
        name=args.words or args.model,
        axis=axis,
        lines=lines[1:],
        free=lines[0],
        given=given,
        sensor_price=args.sensor_price,
        delta=None if args.log is None and args.gap is None else args.delta,
        planned=args.gap is not None,
        refuted=refuted,
        shifted=args.shift,
    )


def _make(args: argparse.Namespace) -> Make:
    """Transforms a problem as the flags say."""
    return lambda problem: flags.delay_problem(action_flags.transform(problem, args), args)


def _change(args: argparse.Namespace, **flags: Any) -> argparse.Namespace:
    """The flags with other values for some of them."""
    return argparse.Namespace(**{**vars(args), **flags})


def _find_law(problem: pkd.Problem, args: argparse.Namespace) -> Any:
    """The law of the flags, or the problem's own; None: there is none."""
    if args.late == "actions":
        return args.action_delay_law
    given = args.inter_arrival if args.inter_arrival is not None else args.lags
    if given is not None:
        return given
    from pkd_delay.delayed import Delayed

    return problem.delay_of.one if isinstance(problem, Delayed) else None


def _shift(args: argparse.Namespace, law: Any, ticks: int) -> argparse.Namespace:
    """The flags with a law that is some ticks longer."""
    if args.late == "actions":
        return _change(args, action_delay_law={steps + ticks: p for steps, p in law.items()})
    from pkd_delay.latency.curve import shift_law
    from pkd_delay.laws.kernel import as_kernel

    law, largest = flags.open_law(law, args.max_delay)
    kernel = as_kernel(law, "the law")
    largest = kernel.largest if largest is None else largest
    if largest is None:
        raise ModelError("--shift of an inter-arrival law needs --max-delay D, the largest delay")
    lags = shift_law(kernel, largest, ticks)
    return _change(args, inter_arrival=None, max_delay=None, lags=lags)


def _read_counts(path: str, problem: pkd.Problem) -> Log:
    from pkd_delay.latency.curve import strip

    model = strip(problem).model()
    if path.endswith(".npz"):
        from pkd.certification.logs import as_log  # loads kernels

        return as_log(model, pkd.Run.load(path).counts)
    return pkd.read_log(path, model)
