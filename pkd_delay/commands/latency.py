"""The price of lateness: the optimum when every state, or every action, comes 0, 1, 2, ... ticks
late, what each tick costs, and what it costs to ignore the delay. A law of random delays gets a
line of its own, or is shifted tick by tick.

pkd latency two_state_chain --up-to 4 --sensor-price .5
pkd latency autoscaler --plot price.png
pkd latency two_state_chain --lags 0:.5,1:.3,2:.2 --shift
pkd latency two_state_chain --late actions
pkd latency inventory --log sales.csv --sensor-price .5
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pkd
from pkd import ModelError, cli
from pkd_delay import action_flags, flags

if TYPE_CHECKING:
    from pkd_delay.latency import Latency, Make

__all__ = ["HELP", "configure", "run"]

HELP = "the price of each tick of delay"
GIVEN = "the law given"
Tick = tuple["int | str", "Make"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    cli.add_model(parser)
    group = parser.add_argument_group("latency")
    group.add_argument(
        "--up-to", type=cli.positive, default=4, metavar="D", help="the longest delay (default: 4)"
    )
    group.add_argument(
        "--late",
        choices=("observations", "actions"),
        default="observations",
        help="what comes late (default: observations)",
    )
    group.add_argument(
        "--shift",
        action="store_true",
        help="shift the law of --lags, --inter-arrival or --action-delay-law by 0, 1, ... ticks",
    )
    group.add_argument(
        "--sensor-price",
        type=cli.amount,
        metavar="P",
        help="price per episode of each tick by which a sensor is faster: where it stops paying",
    )
    group.add_argument(
        "--log",
        metavar="FILE",
        help="certified bounds from samples of the model's features, a CSV file or a saved run",
    )
    group.add_argument(
        "--delta",
        type=cli.fraction,
        default=0.05,
        help="probability with which a certified bound may fail (default: 0.05)",
    )
    group.add_argument("--csv", type=cli.writable, metavar="FILE", help="write the table")
    group.add_argument("--plot", type=cli.picture, metavar="FILE", help="draw values and prices")
    group.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Plans once for every delay, and once for the law that the flags say."""
    _refuse(args)
    study = _study(cli.find_problem(args), args)
    headers, rows = study.table()
    print(f"{study.name}: {study.axis}")
    print(cli.table(headers, rows))
    for sentence in study.sentences():
        print(sentence)
    cli.write_files(args.csv, headers, rows, args.plot, study.draw)
    return 0


def _refuse(args: argparse.Namespace) -> None:
    found = []
    if args.late == "observations" and _has_constant(args):
        found.append(
            "pkd latency goes through all constant delays itself; "
            "expected --up-to D, and no other delay but --lags LAW or --inter-arrival LAW"
        )
    if args.late == "actions" and args.action_delay is not None:
        found.append(
            "pkd latency goes through all constant delays itself; "
            "expected --up-to D, and no other delay of actions but --action-delay-law LAW"
        )
    if found:
        raise ModelError(found)


def _has_constant(args: argparse.Namespace) -> bool:
    return args.delay is not None or (args.max_delay is not None and args.inter_arrival is None)


def _study(problem: pkd.Problem, args: argparse.Namespace) -> Latency:
    from pkd_delay.latency import Latency, Line, measure, measure_certified, strip
    from pkd_delay.process import Delayed

    free = _free(args)
    law = _find_law(problem, args)
    ticks: list[Tick] = [("without", _make(strip(problem), free))]
    if args.shift:
        if law is None:
            raise ModelError("--shift needs a law; expected --lags, --inter-arrival or the like")
        axis = f"ticks added to the law of late {args.late}"
        ticks += [(d, _make(problem, _shift(args, law, d))) for d in range(args.up_to + 1)]
    else:
        axis = f"constant delay of all {args.late}, in ticks"
        ticks += [(d, _make(problem, _set_constant(free, args, d))) for d in range(args.up_to + 1)]
    own = isinstance(problem, Delayed) and args.late == "observations"
    if not args.shift and (law is not None or own):
        ticks.append((GIVEN, _make(problem, args)))
    shown = _show_progress(ticks, args.quiet)
    if args.log is None:
        lines = measure(problem, shown)
    else:
        counts = _read_counts(args.log, problem)
        lines = measure_certified(problem, counts, shown, args.delta)
    given: Line | None = lines.pop() if lines[-1].tick == GIVEN else None
    return Latency(
        name=args.words or args.model,
        axis=axis,
        lines=lines[1:],
        free=lines[0],
        given=given,
        sensor_price=args.sensor_price,
        delta=None if args.log is None else args.delta,
        shifted=args.shift,
    )


def _show_progress(ticks: Sequence[Tick], quiet: bool) -> Iterator[Tick]:
    from tqdm import tqdm

    yield from tqdm(ticks, desc="delays", leave=False, disable=True if quiet else None)


def _make(problem: pkd.Problem, args: argparse.Namespace) -> Make:
    """The problem transformed as the flags say, later."""
    return lambda: flags.transform(action_flags.transform(problem, args), args)


def _free(args: argparse.Namespace) -> argparse.Namespace:
    """The flags without the lateness that is studied."""
    found = copy.copy(args)
    if args.late == "observations":
        found.delay = found.inter_arrival = found.lags = found.max_delay = None
        found.delay_law = found.shared_delay = found.hidden_delays = None
    else:
        found.action_delay = found.action_delay_law = None
        found.first_action = None
    return found


def _set_constant(
    free: argparse.Namespace, args: argparse.Namespace, ticks: int
) -> argparse.Namespace:
    found = copy.copy(free)
    if args.late == "observations":
        found.delay, found.delay_law = ticks, args.delay_law
    else:
        found.action_delay, found.first_action = ticks, args.first_action
    return found


def _find_law(problem: pkd.Problem, args: argparse.Namespace) -> Any:
    """The law of the flags, or the problem's own; None: there is none."""
    if args.late == "actions":
        return args.action_delay_law
    given = args.inter_arrival if args.inter_arrival is not None else args.lags
    if given is not None:
        return given
    from pkd_delay.inter_arrival import OneLawForAll
    from pkd_delay.process import Delayed

    if isinstance(problem, Delayed) and isinstance(problem.delay_of, OneLawForAll):
        return problem.delay_of.law
    return None


def _shift(args: argparse.Namespace, law: Any, ticks: int) -> argparse.Namespace:
    """The flags with a law that is some ticks longer."""
    found = copy.copy(args)
    if args.late == "actions":
        found.action_delay_law = {steps + ticks: p for steps, p in law.items()}
        return found
    from pkd_delay.inter_arrival import as_kernel
    from pkd_delay.latency import shift_law
    from pkd_delay.law_file import SavedLaw

    largest = args.max_delay
    if isinstance(law, SavedLaw):
        largest = law.max_delay if largest is None else largest
        law = law.law
    kernel = as_kernel(law, "the law")
    largest = kernel.largest if largest is None else largest
    if largest is None:
        raise ModelError("--shift of an inter-arrival law needs --max-delay D, the largest delay")
    found.inter_arrival = found.max_delay = None
    found.lags = shift_law(kernel, largest, ticks)
    return found


def _read_counts(path: str, problem: pkd.Problem) -> Mapping[Any, Mapping[Any, float]]:
    from pkd_delay.latency import strip

    model = strip(problem).model()
    if path.endswith(".npz"):
        return pkd.as_log(model, pkd.Run.load(path).counts)
    return pkd.read_log(path, model)
