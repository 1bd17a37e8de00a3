"""The flags by which every command that takes a model can delay it, such as `--delay 2`.

The command line finds this module in the entry-point group `pkd.transformers`. It is loaded for
every `--help`, so nothing heavy is imported before a delay is asked for.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pkd import ModelError
from pkd_delay.action_flags import asks_for_late_actions

if TYPE_CHECKING:
    import pkd
    from pkd_delay.inter_arrival import InterArrivalOf
    from pkd_delay.process import Delayed

__all__ = ["configure", "transform"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    group = parser.add_argument_group(
        "late observations", "show states late; a model that is delayed already gets this delay"
    )
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--delay", type=_read_steps, metavar="D", help="every state comes D steps late"
    )
    which.add_argument(
        "--inter-arrival",
        type=_read_law,
        metavar="LAW",
        help="law of the change of the delay, such as -1:.2,0:.5,2:.3",
    )
    group.add_argument(
        "--max-delay",
        type=_read_steps,
        metavar="D",
        help="the largest delay; needed with --inter-arrival",
    )
    group.add_argument(
        "--delay-law",
        choices=("known", "unknown"),
        help="whether a learner knows the law of the delay (default: known)",
    )
    group.add_argument(
        "--instead",
        choices=("first",),
        help="where an action is not on offer, do the first one that is",
    )


def transform(problem: pkd.Problem, args: argparse.Namespace) -> pkd.Problem:
    """The delayed problem, or the same one where no delay is asked for."""
    about_commands = asks_for_late_actions(args) or args.missing is not None
    instead = None if about_commands else args.instead
    asked = [args.delay, args.inter_arrival, args.max_delay, args.delay_law, instead]
    if all(value is None for value in asked):
        return problem
    from pkd_delay.process import Delayed

    if args.delay is not None and args.max_delay is not None:
        raise ModelError(
            "--delay D is constant and has no --max-delay; expected --inter-arrival LAW with it"
        )
    if isinstance(problem, Delayed):
        late = problem
    elif args.delay is None and args.inter_arrival is None:
        raise ModelError(
            "there is no delay to speak of; "
            "expected --delay D, or --inter-arrival LAW with --max-delay D"
        )
    elif args.delay is None and args.max_delay is None:
        raise ModelError("--inter-arrival needs --max-delay D, the largest delay")
    else:
        late = Delayed(problem, {0: 1.0}, 0)
    return _replace_delay(late, args)


def _replace_delay(late: Delayed, args: argparse.Namespace) -> Delayed:
    """The same problem with the delay of the flags; what they leave out stays."""
    from pkd_delay.base import do_first
    from pkd_delay.process import Delayed

    law: InterArrivalOf = late.delay_of
    largest, instead = late.max_delay, late.instead
    if args.delay is not None:
        law, largest = {args.delay: 1.0}, args.delay
    if args.inter_arrival is not None:
        law = args.inter_arrival
    if args.max_delay is not None:
        largest = args.max_delay
    if args.instead is not None:
        instead = do_first(late.base)
    kind = args.delay_law or late.delay_law
    return Delayed(late.problem, law, largest, kind, late.delay_feature, instead)


def _read_steps(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of steps, found {text!r}")
    return int(text)


def _read_law(text: str) -> dict[int, float]:
    """-1:.2,0:.5,2:.3 as {-1: .2, 0: .5, 2: .3}.

    Whether it is a law is checked where it is used.
    """
    law: dict[int, float] = {}
    for part in text.split(","):
        delta, colon, p = part.partition(":")
        try:
            key, value = int(delta), float(p)
        except ValueError:
            colon = ""
        if not colon:
            raise argparse.ArgumentTypeError(
                f"expected CHANGE:PROBABILITY,..., such as -1:.2,0:.5,2:.3, found {part!r}"
            )
        if key in law:
            raise argparse.ArgumentTypeError(f"the change {key} occurs twice")
        law[key] = value
    return law
