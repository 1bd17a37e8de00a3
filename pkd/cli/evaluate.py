"""Evaluates a policy exactly: its expected return, its spread, and what it loses to the optimum.

The policy is a rule of your own, a function (h, x, y) -> action (or {action: probability}), or a
file that `pkd plan --csv` or `pkd export` wrote. Where states are shown late, a function of
(h, x, y) is asked about the state that was shown last, and a function of (h, state, queue, waited)
is also told what was done since then.

pkd evaluate inventory --policy my_rules:order_up_to_six
pkd evaluate inventory --policy policy.json
"""

from __future__ import annotations

import argparse
import json
import math

from pkd.cli.arguments import add_model, find_model
from pkd.cli.output import table
from pkd.cli.policies import add_policy, find_policy

HELP = "the exact value of a policy, such as a rule of your own"


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_policy(parser, "the optimal plan")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd

    law = found.with_law()
    compiled = pkd.compile(found.model)
    best = pkd.plan(compiled, law)
    policy = best if args.policy is None else find_policy(found, args.policy)
    value = pkd.evaluate(compiled, law, policy)
    numbers = {
        "value of the policy": float(value),
        "standard deviation of the return": math.sqrt(value.variance),
        "optimal value": best.value,
        "loss": max(best.value - value, 0.0),
    }
    if args.json:
        print(json.dumps({"model": found.name, "policy": args.policy, **numbers}))
        return 0
    print(f"{found.name}, {args.policy or 'the optimal plan'}, {found.model.horizon} steps, exact")
    print(table(["number", "per episode"], [list(row) for row in numbers.items()]))
    return 0
