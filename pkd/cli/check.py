"""Checks a model against its contract: probabilities, types, chance cycles, supports, and, where
the law is known, that the law fits.

Prints the sizes of the model, the engine that plans for it and "ok", or every finding and exits
with 1. Where the law is known it also says whether exploration is needed, if that takes a few
seconds only.
"""

from __future__ import annotations

import argparse
import sys
from textwrap import fill

from pkd.cli.arguments import add_model, find_model, name_model
from pkd.cli.output import make_records, print_json, table
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.problem import Found

HELP = "check a model and print its sizes"
QUICK = 2e7  # states that all sweeps of `pkd.exploration` may compute without being asked


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    parser.add_argument(
        "--exploration",
        action="store_true",
        help="say whether exploration is needed, however long it takes, with the visits of each "
        "unknown feature",
    )


def run(args: argparse.Namespace) -> int:
    import pkd
    from pkd.engine import choose

    try:
        found = find_model(args)
    except ModelError as error:
        if len(error.findings) == 1:
            raise  # a model that was not found, or cannot be made
        return _print_findings(args, args.words or args.model, error)
    name = name_model(args, _add_own)
    try:
        pkd.check_model(found.model, found.law)
    except ModelError as error:
        return _print_findings(args, name, error)
    found_sizes = sizes(found.model)
    if args.json:
        choice = choose(found.model)
        [size] = make_records([k for k, _ in found_sizes], [[n for _, n in found_sizes]])
        said = {"model": name, "ok": True, "findings": [], "law_checked": found.law is not None}
        print_json({**said, "sizes": size, "engine": choice.engine, "why": choice.why})
        return 0
    print(table(["size", ""], found_sizes))
    choice = choose(found.model)
    print(fill(f"Engine: {choice.engine}; {choice.why}", 100))
    _print_exploration(found, found_sizes, args.exploration)
    print(
        f"{name}: ok" + ("" if found.law is not None else " (the model; there is no law to check)")
    )
    return 0


def _print_exploration(found: Found, found_sizes: list[tuple[str, int]], wanted: bool) -> None:
    """The verdict of `pkd.exploration`, where it is quick or wanted."""
    import pkd

    size = dict(found_sizes)
    unknown = size["unknown features z"] + size["unknown rewards"]
    work = 2.0 * unknown * size["horizon"] * size["states (x, y)"]
    if found.law is None or (work > QUICK and not wanted):
        print(fill(str(pkd.exploration(found.model)), 100))
        if found.law is not None:
            print("--exploration computes how often each feature is seen; it may take long")
        return
    verdict = pkd.exploration(
        found.model, found.with_law(), progress=work > QUICK and sys.stderr.isatty()
    )
    if wanted:
        print(verdict.table())
    print(fill(str(verdict), 100))


def _print_findings(args: argparse.Namespace, name: str, error: ModelError) -> int:
    if args.json:
        print_json({"model": name, "ok": False, "findings": error.findings})
        return 1
    for finding in error.findings:
        print(finding, file=sys.stderr)
    print(f"{name}: {error.number} finding{'s' if error.number > 1 else ''}")
    return 1


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
        (
            "most outcomes of a feature",
            max((len(outcomes) for outcomes in graph.outcomes), default=0),
        ),
        ("unknown rewards", len(graph.rewards)),
    ]
