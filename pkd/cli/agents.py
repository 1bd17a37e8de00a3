"""Lists the agents and rules that `pkd compare` and experiment files take, with their options.

pkd agents
pkd agents ucbvi
"""

from __future__ import annotations

import argparse
import difflib
import sys
from typing import Any

from pkd.cli.models import describe, print_one, write_entry
from pkd.cli.output import print_json
from pkd.model import ModelError
from pkd.problem import load_point, registered
from pkd.rules import RULES

HELP = "list the agents and rules that can be compared"
GROUP = "pkd.agents"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one agent, in full")


def run(args: argparse.Namespace) -> int:
    points = registered(GROUP)
    names = [*RULES, *points]
    if args.name is not None and args.name not in names:
        close = difflib.get_close_matches(args.name, names, n=1)
        raise ModelError(
            f"no agent is called {args.name!r}" + (f"; did you mean {close[0]!r}?" if close else "")
        )
    found: dict[str, Any] = {}
    for name in names if args.name is None else [args.name]:
        try:
            found[name] = RULES[name][0] if name in RULES else load_point(points[name])
        except ModelError as problem:  # the other agents must still be listed
            print(f"{name}: {problem}", file=sys.stderr)
    if args.json:
        told = [{**describe(name, one), "rule": name in RULES} for name, one in found.items()]
        print_json([_set_constants(one) for one in told])
    elif args.name is None:
        for name, one in found.items():
            constants = RULES[name][1] if name in RULES else {}
            print("\n".join(write_entry(name, one, constants)))
        print("\npkd compare MODEL --rules NAME,NAME:key=value,...")
    else:
        print_one(args.name, found[args.name], f"pkd compare MODEL --rules {args.name}:")
    return 0


def _set_constants(told: dict[str, Any]) -> dict[str, Any]:
    """The word of a rule may stand for other constants than its class."""
    constants = RULES[told["name"]][1] if told["rule"] else {}
    return {**told, "options": {**told["options"], **constants}}
