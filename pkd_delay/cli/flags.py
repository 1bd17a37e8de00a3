"""The flags by which every command that takes a model can delay it, such as `--delay 2`.

The command line finds this module in the entry-point group `pkd.transformers`. It is loaded for
every `--help`, so nothing heavy is imported before a delay is asked for.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pkd import ModelError
from pkd_delay.cli.action_flags import asks_for_late_actions
from pkd_delay.cli.flag_values import read_pairs, read_steps

if TYPE_CHECKING:
    import pkd
    from pkd_delay.delayed import Delayed
    from pkd_delay.laws.files import SavedLaw
    from pkd_delay.laws.kernel import DelayKernel

__all__ = ["configure", "delay_problem", "transform"]

MANY_ARRIVALS = 20  # for each feature of the base: then the law of the delay gets a warning


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    group = parser.add_argument_group(
        "late observations", "show states late; a model that is delayed already gets this delay"
    )
    which = group.add_mutually_exclusive_group()
    late = "every state comes D steps late"
    which.add_argument("--delay", type=read_steps, metavar="D", help=late)
    change = "law of the change of the delay, such as -1:.2,0:.5,2:.3, or a file of pkd fit-delay"
    which.add_argument("--inter-arrival", type=_read_law, metavar="LAW", help=change)
    lag = "law of the lag of each state, delivered in order, such as 0:.5,1:.3,2:.2, or a file"
    which.add_argument("--lags", type=_read_lags, metavar="LAW", help=lag)
    largest = "the largest delay; needed with --inter-arrival LAW"
    group.add_argument("--max-delay", type=read_steps, metavar="D", help=largest)
    knows = "whether a learner knows the law of the delay (default: known)"
    group.add_argument("--delay-law", choices=("known", "unknown"), help=knows)
    group.add_argument(
        "--shared-delay",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="learn an unknown law of the delay as one law, or one per state and action "
        "(default: what the law says)",
    )
    hidden = "the end of an episode does not show the raw inter-arrival times to the learner"
    group.add_argument("--hidden-delays", action="store_true", default=None, help=hidden)
    first = "where an action is not on offer, do the first one that is"
    group.add_argument("--instead", choices=("first",), help=first)


def transform(problem: pkd.Problem, args: argparse.Namespace) -> pkd.Problem:
    """The delayed problem, or the same one where no delay is asked for.

    A command with --gap gets the planner that gives bounds, too.
    """
    late = delay_problem(problem, args)
    if not hasattr(args, "gap") or (late is problem and args.gap is None):
        return late
    from pkd_delay.delayed import Delayed
    from pkd_delay.long.plan import Bounded

    return Bounded(late) if isinstance(late, Delayed) else late


def delay_problem(problem: pkd.Problem, args: argparse.Namespace) -> pkd.Problem:
    """What the flags say of the delay."""
    given = args.inter_arrival if args.inter_arrival is not None else args.lags
    # Without a delay of observations, --instead is about the other transformers.
    elsewhere = asks_for_late_actions(args) or args.missing is not None
    asked = [args.delay, given, args.max_delay, args.delay_law]
    asked += [args.shared_delay, args.hidden_delays, None if elsewhere else args.instead]
    if all(value is None for value in asked):
        return problem
    if args.delay is not None and args.max_delay is not None:
        raise ModelError(
            "--delay D is constant and has no --max-delay; expected --inter-arrival LAW with it"
        )
    import attrs

    from pkd_delay.base import do_first
    from pkd_delay.delayed import Delayed

    late = problem
    if not isinstance(late, Delayed):
        if args.delay is None and given is None:
            raise ModelError(
                "no delay was given; "
                "expected --delay D, or --inter-arrival LAW with --max-delay D, or --lags LAW"
            )
        if isinstance(given, dict) and args.max_delay is None:
            raise ModelError("--inter-arrival needs --max-delay D, the largest delay")
        late = Delayed(problem, {0: 1.0}, 0)
    law, largest = open_law(given, args.max_delay)
    if args.delay is not None:
        law, largest = {args.delay: 1.0}, args.delay
    elif largest is None and (law is None or isinstance(law, dict)):
        largest = late.max_delay
    changed = Delayed(
        late.problem,
        late.delay_of if law is None else law,
        largest,  # type: ignore[arg-type]  # None: that of the law
        args.delay_law or late.delay_law,
        late.delay_feature,
        late.instead if args.instead is None else do_first(late.base),
        late.shared if args.shared_delay is None else args.shared_delay,
        late.revealed if args.hidden_delays is None else not args.hidden_delays,
    )
    if given is None and args.delay_law != "unknown":
        return changed
    return attrs.evolve(changed, remarks=describe_delay(changed))


def open_law(given: Any, largest: int | None) -> tuple[Any, int | None]:
    """A law and its largest delay, from a law or from what a file holds."""
    from pkd_delay.laws.files import SavedLaw

    if isinstance(given, SavedLaw):
        return given.law, given.max_delay if largest is None else largest
    return given, largest


def describe_delay(late: Delayed) -> tuple[str, ...]:
    """What a delay means in lags, what is learned of it, and what looks wrong."""
    lines = [f"delay: {late.describe_delay()}", *find_oddities(late)]
    if late.delay_law == "unknown":
        lines.insert(1, f"delay: {describe_learning(late)}")
    return tuple(lines)


def describe_learning(late: Delayed) -> str:
    """What a learner of an unknown law of the delay is told."""
    laws = "one law for all states and actions" if late.is_shared else "a law per state and action"
    numbers = "its numbers are shown" if late.revealed else "visited arrivals alone are counted"
    return f"the law is learned as {laws}; at the end of an episode {numbers}"


def find_oddities(late: Delayed) -> list[str]:
    """Warnings: a histogram of lags in the place of inter-arrival times, and too many features."""
    from pkd_delay.laws.kernel import InterArrival

    found = []
    one = late.delay_of.one
    if isinstance(one, InterArrival) and one.only_grows and late.max_delay > 0:
        found.append(
            "warning: with this law the delay never shrinks, so it drifts to the largest delay "
            f"{late.max_delay}; if these are measured lags, use --lags"
        )
    if late.delay_law == "unknown" and not late.is_shared and late.delay_feature is None:
        arrivals, own = late.unknown().n_arrivals, max(late.facts.n_features, 1)
        if arrivals > MANY_ARRIVALS * own:
            found.append(
                f"warning: a law of the delay per state and action adds {arrivals:,} features to "
                f"the {own:,} of the model; if the delay depends on neither, use --shared-delay"
            )
    return found


def _read_law(text: str) -> dict[int, float] | SavedLaw:
    """-1:.2,0:.5,2:.3 as {-1: .2, 0: .5, 2: .3}, or the law of a file.

    Whether it is a law is checked where it is used.
    """
    if text.endswith(".json"):
        from pkd_delay.laws.files import read_law

        try:
            return read_law(text)
        except ModelError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return read_pairs(text, "change", "-1:.2,0:.5,2:.3")


def _read_lags(text: str) -> DelayKernel | SavedLaw:
    """0:.5,1:.3,2:.2 as a law of lags, or the law of a file."""
    from pkd_delay.laws.kernel import Lags

    given = _read_law(text)
    if not isinstance(given, dict) and given.form != Lags.form:
        raise argparse.ArgumentTypeError(
            f"{text} holds a law of the form {given.form}; expected lags, or --inter-arrival {text}"
        )
    try:
        return Lags(given) if isinstance(given, dict) else given
    except ModelError as error:
        raise argparse.ArgumentTypeError("; ".join(error.findings)) from None
