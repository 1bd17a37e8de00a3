"""The flags for late actions and missing observations, such as `--action-delay 2 --missing .2`.

The command line finds this module in the entry-point group `pkd.transformers`. Its name there comes
before that of `flags`, so these transformers are applied first: actions are late, then
observations go missing, then what is left comes late. Nothing heavy is imported before it is asked.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pkd import ModelError
from pkd_delay.cli.flag_values import read_pairs, read_probability, read_steps

if TYPE_CHECKING:
    import pkd
    from pkd_delay.base import Instead

__all__ = ["asks_for_late_actions", "configure", "transform"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags."""
    group = parser.add_argument_group(
        "late actions", "execute commands late; the newest command that has come is in force"
    )
    which = group.add_mutually_exclusive_group()
    late = "every command comes D steps late"
    which.add_argument("--action-delay", type=read_steps, metavar="D", help=late)
    travel = "law of each command's own travel time, such as 0:.5,1:.5"
    which.add_argument("--action-delay-law", type=_read_travel, metavar="LAW", help=travel)
    first = "executed before the first command has come (default: the first one on offer)"
    group.add_argument("--first-action", metavar="A", help=first)
    group = parser.add_argument_group("missing observations")
    missing = "a state goes missing with P"
    group.add_argument("--missing", type=read_probability, metavar="P", help=missing)
    returned = "whether the end of an episode tells the missing states (default: yes)"
    group.add_argument("--missing-returned", choices=("yes", "no"), help=returned)
    gap = "after N missing states in a row one is shown for sure (default: no such bound)"
    group.add_argument("--longest-gap", type=read_steps, metavar="N", help=gap)


def asks_for_late_actions(args: argparse.Namespace) -> bool:
    """Whether commands are late, so that --instead may be about them alone."""
    return args.action_delay is not None or args.action_delay_law is not None


def transform(problem: pkd.Problem, args: argparse.Namespace) -> pkd.Problem:
    """The problem with late actions and missing observations, as far as they are asked for."""
    late = asks_for_late_actions(args)
    loose = [
        "--first-action needs --action-delay D or --action-delay-law LAW"
        for _ in range(args.first_action is not None and not late)
    ]
    for name in ("missing_returned", "longest_gap"):
        if getattr(args, name) is not None and args.missing is None:
            loose.append(f"--{name.replace('_', '-')} needs --missing P")
    if loose:
        raise ModelError(loose)
    for asked, make in ((late, _make_late), (args.missing is not None, _make_missing)):
        if asked:
            import pkd
            from pkd_delay.base import do_first

            base = problem.model()
            model = make(base, args, None if args.instead is None else do_first(base))
            problem = pkd.as_problem((model, model.law(problem.law())))
    return problem


def _make_late(base: pkd.PartiallyKnownMDP, args: argparse.Namespace, instead: Instead) -> Any:
    from pkd_delay.laws.kernel import Lags
    from pkd_delay.transforms.late_actions import LateCommands

    law = args.action_delay
    travel = Lags(args.action_delay_law) if law is None else law
    model = LateCommands(base, travel, instead=instead)
    if args.first_action is None:
        return model
    action = _find_action(model, args.first_action)
    return LateCommands(base, model.line, first_action=action, instead=instead)


def _make_missing(base: pkd.PartiallyKnownMDP, args: argparse.Namespace, instead: Instead) -> Any:
    import pkd
    from pkd_delay.base import survey

    commands = None if instead is None else survey(base, instead).actions
    returned = args.missing_returned != "no"
    try:
        return pkd.Missing(
            base, args.missing, returned, longest=args.longest_gap, commands=commands,
            instead=instead,
        )  # fmt: skip
    except ModelError as error:
        found = [text.replace("longest=3", "--longest-gap 3") for text in error.findings]
        raise ModelError(found) from None


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
