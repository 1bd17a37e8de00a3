"""The flags for late actions and missing observations, such as `--action-delay 2 --missing .2`.

The command line finds this module in the entry-point group `pkd.transformers`. Its name there comes
before that of `pkd_delay.flags`, so these transformers are applied first: actions are late, then
observations go missing, then what is left comes late. Nothing heavy is imported before it is asked.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pkd import ModelError
from pkd_delay.flag_values import read_pairs, read_probability, read_steps

if TYPE_CHECKING:
    import pkd

__all__ = ["asks_for_late_actions", "configure", "transform"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    group = parser.add_argument_group(
        "late actions", "execute commands late; the newest command that has come is in force"
    )
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--action-delay", type=read_steps, metavar="D", help="every command comes D steps late"
    )
    which.add_argument(
        "--action-delay-law",
        type=_read_travel,
        metavar="LAW",
        help="law of each command's own travel time, such as 0:.5,1:.5",
    )
    group.add_argument(
        "--first-action",
        metavar="A",
        help="executed before the first command has come (default: the first one on offer)",
    )
    group = parser.add_argument_group("missing observations")
    group.add_argument(
        "--missing", type=read_probability, metavar="P", help="a state goes missing with P"
    )
    group.add_argument(
        "--missing-returned",
        choices=("yes", "no"),
        help="whether the end of an episode tells the missing states (default: yes)",
    )
    group.add_argument(
        "--longest-gap",
        type=read_steps,
        metavar="N",
        help="after N missing states in a row one is shown for sure (default: no such bound)",
    )


def asks_for_late_actions(args: argparse.Namespace) -> bool:
    """Whether commands are late, so that --instead may be about them alone."""
    return args.action_delay is not None or args.action_delay_law is not None


def transform(problem: pkd.Problem, args: argparse.Namespace) -> pkd.Problem:
    """The problem with late actions and missing observations, as far as they are asked for."""
    _refuse_loose_flags(args)
    instead = args.instead is not None
    if asks_for_late_actions(args):
        problem = _make_late(problem, args, instead)
    if args.missing is not None:
        problem = _make_missing(problem, args, instead)
    return problem


def _refuse_loose_flags(args: argparse.Namespace) -> None:
    found = []
    if args.first_action is not None and not asks_for_late_actions(args):
        found.append("--first-action needs --action-delay D or --action-delay-law LAW")
    for name in ("missing_returned", "longest_gap"):
        if getattr(args, name) is not None and args.missing is None:
            found.append(f"--{name.replace('_', '-')} needs --missing P")
    if found:
        raise ModelError(found)


def _make_late(problem: pkd.Problem, args: argparse.Namespace, instead: bool) -> pkd.Problem:
    import pkd
    from pkd_delay.base import do_first
    from pkd_delay.lags import Lags
    from pkd_delay.late_actions import LateActions

    base = problem.model()
    law = args.action_delay
    model = LateActions(
        base,
        Lags(args.action_delay_law) if law is None else law,
        instead=do_first(base) if instead else None,
    )
    if args.first_action is not None:
        action = _find_action(model, args.first_action)
        model = LateActions(base, model.line, first_action=action, instead=model.instead)
    return pkd.as_problem((model, model.law(problem.law())))


def _make_missing(problem: pkd.Problem, args: argparse.Namespace, instead: bool) -> pkd.Problem:
    import pkd
    from pkd_delay.base import do_first, survey

    base = problem.model()
    rule = do_first(base) if instead else None
    try:
        model = pkd.Missing(
            base,
            args.missing,
            args.missing_returned != "no",
            longest=args.longest_gap,
            commands=survey(base, rule).actions if instead else None,
            instead=rule,
        )
    except ModelError as error:
        raise ModelError(
            [text.replace("longest=3", "--longest-gap 3") for text in error.findings]
        ) from None
    return pkd.as_problem((model, model.law(problem.law())))


def _find_action(model: pkd.LateActions, word: str) -> Any:
    """The action that a user names as tables do, or as Python does."""
    for action in model.commands:
        if word in (model.action_label(action), repr(action)):
            return action
    offer = ", ".join(map(model.action_label, model.commands))
    raise ModelError(f"--first-action {word}: expected one of {offer}")


def _read_travel(text: str) -> dict[int, float]:
    """0:.5,2:.5 as {0: .5, 2: .5}."""
    law = read_pairs(text, "steps", "0:.5,2:.5")
    if min(law) < 0:
        raise argparse.ArgumentTypeError(
            f"the travel time {min(law)} is negative; expected a number of steps from 0 on"
        )
    return law
