"""Plans exactly under the true law: the optimal value, and the best action of every state. The CSV
file has the states that the policy reaches, one column for each part of the state; steps with the
same action are one line.

pkd plan inventory --option lead_time=2 --csv policy.csv
pkd plan FrozenLake-v1 --horizon 20 --all --plot policy.png

With --gap it gives bounds on the optimum and a policy whose value is at least the lower one, where
an exact plan does not fit. CSV and table have the likeliest states that this policy meets, with
upper values.

pkd plan MODEL --gap 0.01 --seconds 20

JSON has the policy in words; pkd export MODEL --out FILE.json keeps the types of all values.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import (
    add_findings,
    add_model,
    amount,
    find_model,
    name_model,
    picture,
    positive,
    writable,
)
from pkd.cli.output import draw_file, print_json, table, write_findings
from pkd.model import ModelError
from pkd.problem import Found
from pkd.progress import line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    import pkd
    from pkd.engine import Compiled
    from pkd.files.policies import Row

HELP = "plan under the true law: value and policy"
MOMENT = 2.0  # seconds
MOST_ROWS = 60  # of a printed table; the CSV and JSON forms hold all
Decision = tuple[int, str, str, str, float, dict[str, float]]  # the last: of every action


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    steps = parser.add_mutually_exclusive_group()
    steps.add_argument(
        "--step",
        type=positive,
        default=1,
        metavar="H",
        help="the step whose policy is shown (default: the first)",
    )
    steps.add_argument("--all", action="store_true", help="the policy of every step")
    parser.add_argument(
        "--csv",
        type=writable,
        metavar="FILE",
        help="write the policy of all steps with the value of every action",
    )
    parser.add_argument("--save", type=_refuse_saving, help=argparse.SUPPRESS)
    parser.add_argument("--plot", type=picture, metavar="FILE", help="draw the policy")
    add_findings(parser)
    group = parser.add_argument_group("bounds, for models that have a planner within a gap")
    close = "bounds that are at most this part of the optimum apart, such as 0.01"
    group.add_argument("--gap", type=amount, metavar="G", help=close)
    group.add_argument("--seconds", type=amount, metavar="T", help="stop then (default: 60)")
    most = "gigabytes that it may fill (default: 1, or a quarter of the machine's)"
    group.add_argument("--memory", type=amount, metavar="GB", help=most)


def _refuse_saving(text: str) -> None:
    """Other commands have --save, and a plan is saved by another one."""
    raise argparse.ArgumentTypeError(f"pkd export MODEL --out {text} writes a policy to a file")


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd
    from pkd.explore.limits import TooLargeError

    if args.step > found.model.horizon:
        raise ModelError(f"--step {args.step}: {found.name} has {found.model.horizon} steps")
    limits = {"seconds": args.seconds, "memory": args.memory}
    limits = {name: value for name, value in limits.items() if value is not None}
    if args.gap is not None:
        return _bound(args, found, limits)
    if limits:
        raise ModelError(f"--{' --'.join(limits)}: expected --gap G, too")
    try:
        law, compiled = found.with_law(), pkd.compile(found.model)
    except TooLargeError as error:
        hint = ", or give --gap 0.01 for bounds on the optimum and a policy between them"
        raise ModelError(f"{error}{hint * (found.plan_within is not None)}") from None
    name = name_model(args, _add_own)
    announce(name, compiled)
    plan = pkd.plan(compiled, law)
    steps = range(1, found.model.horizon + 1) if args.all else [args.step]
    policy = [row for step in steps for row in decisions(found, plan, step)]
    if args.csv is not None:  # first: what was asked for is kept if nobody reads the table
        plan.to_csv(args.csv)
    _print(args, found, name, plan, policy)
    draw_file(args.plot, lambda: draw(found, plan), args.csv)
    if args.findings is not None:
        _tell(args, found, plan)
    return 0


def _tell(args: argparse.Namespace, found: Found, plan: pkd.Plan) -> None:
    """The policy for those who decide: the states that it reaches, with the model's labels."""
    from pkd.files.policies import merge_rows

    label, steps = found.model, found.model.horizon

    def words(row: Row) -> tuple[str, str]:
        return label.x_label(row.state["x"]), label.y_label(row.state["y"])

    rows = [
        (
            str(row.step) if row.step == until else f"{row.step} to {until}",
            "; ".join(word for word in words(row) if word not in ("", "None")),
            label.action_label(row.action),
        )
        for row, until in merge_rows(plan.list_rows())
    ]
    said = [f"The best policy earns {plan.value:.6g} on average in an episode of {steps} steps."]
    if plan.truth is not None:
        said.append("This takes the law of the model for the truth.")
    write_findings(
        args.findings, args.typed, f"What to do in {found.name}", said,
        [("What the policy does, in the states that it reaches.",
          ("steps", "situation", "action"), rows)],
        draw=lambda: draw(found, plan),
        advice=["Policy: pkd certify says what your data prove of it."],
    )  # fmt: skip


def _bound(args: argparse.Namespace, found: Found, limits: dict[str, float]) -> int:
    """Plans within bounds, for a problem that can."""
    if found.plan_within is None:
        raise ModelError(
            f"--gap: {found.name} has no planner that gives bounds; give an exact plan, "
            "without --gap"
        )
    if args.plot is not None or args.all:
        raise ModelError("--gap: the policy is not known in all states; expected --step H or --csv")
    with line() as say:
        plan = found.plan_within(gap=args.gap, tell=lambda found: say(str(found)), **limits)
    if args.json:
        told = {"model": found.name, "horizon": found.model.horizon, **plan.describe()}
        print_json(told)
    else:
        print(f"{found.name}: {plan.say()}")
        print(plan.table(args.step))
    if args.csv is not None:
        plan.to_csv(args.csv)
    return 0


def announce(name: str, compiled: Compiled) -> None:
    """Says on stderr how large a plan is and how long it takes, if that is longer than a moment."""
    from pkd.planning.plan import estimate_seconds

    seconds = estimate_seconds(compiled)
    if seconds > MOMENT:
        size = f"{compiled.n_states:,} states, {compiled.horizon} steps"
        print(f"{name}: {size}; planning takes about {seconds:.2g} s", file=sys.stderr)


def _print(
    args: argparse.Namespace,
    found: Found,
    name: str,
    plan: pkd.Plan,
    policy: Sequence[Decision],
) -> None:
    """The value and the policy, as JSON or as a table."""
    if args.json:
        keys = ("step", "x", "y", "action", "value", "values")
        rows = [
            dict(zip(keys, (step, *map(_read_number, words), value, values), strict=True))
            for step, *words, value, values in policy
        ]
        size = {"model": found.name, "horizon": found.model.horizon}
        print_json({**size, "value": plan.value, "policy": rows})
        return
    print(f"{name}: optimal value {plan.value:.10g} over {found.model.horizon} steps")
    headers = ["step", "x", "y", "action", "value"]
    # A y without meaning (tables) or an x that is None at every decision (noise models) is not
    # worth a column.
    columns = [
        i for i in range(5) if i not in (1, 2) or any(row[i] not in ("", "None") for row in policy)
    ]
    cells = ([row[:5][i] for i in columns] for row in policy)
    rest = "; --csv writes all of them" if len(policy) > MOST_ROWS else ""
    print(table([headers[i] for i in columns], cells, most=MOST_ROWS) + rest)


def _read_number(word: str) -> str | int | float | None:
    """A word of a table for JSON: a number is a number, and no word is null.

    >>> [_read_number(word) for word in ("8", "-0.5", "None", "", "up", "(1, 2)")]
    [8, -0.5, None, None, 'up', '(1, 2)']
    """
    if word in ("", "None"):
        return None
    for kind in (int, float):
        try:
            value: int | float = kind(word)
        except ValueError:
            continue
        return value if math.isfinite(value) else word
    return word


def decisions(found: Found, plan: pkd.Plan, step: int) -> Iterator[Decision]:
    """(step, x, y, best action, its value, the value of every action) of each state of a step, in
    words.
    """
    model = found.model
    for x, y in plan.states(step):
        values = {
            model.action_label(action): value for action, value in plan.values(step, x, y).items()
        }
        best = model.action_label(plan.action(step, x, y))
        yield step, model.x_label(x), model.y_label(y), best, values[best], values


def draw(found: Found, plan: pkd.Plan) -> Figure:
    """The problem's own picture of its policy, or else the best action over states and steps."""
    import matplotlib

    from pkd.show.policy_plots import plot_policy

    matplotlib.use("Agg")
    drawn: Any = found.picture
    axes = plot_policy(plan, name=found.name) if drawn is None else drawn(plan)
    figure: Figure = axes.figure  # type: ignore[assignment]
    return figure
