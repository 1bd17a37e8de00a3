"""Checks a model against its contract: probabilities, types, chance cycles, supports, and, where the law is known, that the law fits.

Prints the sizes of the model and "ok", or every finding and exits with 1.
"""

from __future__ import annotations

import argparse
import sys

from pkd.cli.arguments import add_model, find_model
from pkd.cli.output import table
from pkd.model import ModelError, PartiallyKnownMDP

HELP = "check a model and print its sizes"


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd

    try:
        pkd.check_model(found.model, found.law)
    except ModelError as error:
        for finding in error.findings:
            print(finding, file=sys.stderr)
        print(f"{found.name}: {len(error.findings)} finding{'s' if len(error.findings) > 1 else ''}")
        return 1
    print(table(["size", ""], sizes(found.model)))
    print(f"{found.name}: ok" + ("" if found.law is not None else " (the model; there is no law to check)"))
    return 0


def sizes(model: PartiallyKnownMDP) -> list[tuple[str, int]]:
    """How large a model is, by what can really occur in it."""
    from pkd.explore import explore

    graph = explore(model)
    return [
        ("horizon", graph.horizon),
        ("states (x, y)", graph.n_states),
        ("states after the last action", len(graph.settled.x)),
        ("values of y", graph.n_y),
        ("unknown features z", len(graph.features)),
        ("most outcomes of a feature", max((len(outcomes) for outcomes in graph.outcomes), default=0)),
        ("unknown rewards", len(graph.rewards)),
    ]
