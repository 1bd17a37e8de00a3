"""Plans exactly under the true law: the optimal value, and the best action of every state. The CSV
file has all steps, one column for each part of the state, and one for the value of each action.

pkd plan inventory --option lead_time=2 --csv policy.csv
pkd plan FrozenLake-v1 --horizon 20 --all --plot policy.png
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import add_model, find_model, picture, positive, writable
from pkd.cli.output import draw_file, table
from pkd.model import ModelError
from pkd.problem import Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    import pkd

HELP = "plan under the true law: value and policy"
MOMENT = 2.0  # seconds
MOST_ROWS = 60  # of a printed table; the CSV and JSON forms hold all
Decision = tuple[int, str, str, str, float, dict[str, float]]  # the last: of every action


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
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
    parser.add_argument("--plot", type=picture, metavar="FILE", help="draw the policy")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print value and policy as JSON, in words (pkd export MODEL --out FILE.json keeps "
        "the types of all values)",
    )


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd

    if args.step > found.model.horizon:
        raise ModelError(f"--step {args.step}: {found.name} has {found.model.horizon} steps")
    law, compiled = found.with_law(), pkd.compile(found.model)
    announce(found.name, compiled)
    plan = pkd.plan(compiled, law)
    steps = range(1, found.model.horizon + 1) if args.all else [args.step]
    policy = [row for step in steps for row in decisions(found, plan, step)]
    _print(args, found, plan, policy)
    if args.csv is not None:
        plan.to_csv(args.csv)
    draw_file(args.plot, lambda: draw(found, plan), args.csv)
    return 0


def announce(name: str, compiled: pkd.Compiled) -> None:
    """Says on stderr how large a plan is and how long it takes, if that is longer than a moment."""
    from pkd.planning import estimate_seconds

    seconds = estimate_seconds(compiled)
    if seconds > MOMENT:
        size = f"{compiled.n_states:,} states, {compiled.horizon} steps"
        print(f"{name}: {size}; planning takes about {seconds:.2g} s", file=sys.stderr)


def _print(
    args: argparse.Namespace, found: Found, plan: pkd.Plan, policy: Sequence[Decision]
) -> None:
    """The value and the policy, as JSON or as a table."""
    if args.json:
        keys = ("step", "x", "y", "action", "value", "values")
        rows = [dict(zip(keys, row, strict=True)) for row in policy]
        print(
            json.dumps(
                {
                    "model": found.name,
                    "horizon": found.model.horizon,
                    "value": plan.value,
                    "policy": rows,
                },
                indent=1,
            )
        )
        return
    print(f"{found.name}: optimal value {plan.value:.10g} over {found.model.horizon} steps")
    headers = ["step", "x", "y", "action", "value"]
    # A y without meaning (tables) or an x that is None at every decision (noise models) is not
    # worth a column.
    columns = [
        i for i in range(5) if i not in (1, 2) or any(row[i] not in ("", "None") for row in policy)
    ]
    cells = [row[:5] for row in policy[:MOST_ROWS]]
    print(table([headers[i] for i in columns], ([row[i] for i in columns] for row in cells)))
    if len(policy) > MOST_ROWS:
        print(f"... {len(policy) - MOST_ROWS} more states; --csv writes all of them")


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

    from pkd.results.policy_plots import plot_policy

    matplotlib.use("Agg")
    drawn: Any = found.picture
    axes = plot_policy(plan, name=found.name) if drawn is None else drawn(plan)
    figure: Figure = axes.figure  # type: ignore[assignment]
    return figure
