"""Lists the registered models: the name, what it is, and its options with their defaults.

pkd models
pkd models inventory
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from pkd.cli.output import table
from pkd.model import ModelError
from pkd.problem import load_point, names

HELP = "list the registered models and their options"
WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one model, in full")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    if args.name is not None and args.name not in names():
        close = difflib.get_close_matches(args.name, names(), n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ModelError(f"no model is called {args.name!r}{hint}")
    found = {}
    for name, point in names().items():
        if args.name in (None, name):
            try:
                found[name] = load_point(point)
            except ModelError as problem:  # the other models must still be listed
                if args.name is not None:
                    raise
                print(f"{name}: {problem}", file=sys.stderr)
    if args.json:
        print(json.dumps([_describe(name, factory) for name, factory in found.items()], indent=1))
    elif args.name is None:
        for name, factory in found.items():
            print("\n".join(_write_entry(name, factory)))
        print("\npkd models NAME shows one in full; every option is given as --option KEY=VALUE.")
    else:
        _print_one(args.name, found[args.name])
    return 0


def list_options(factory: Any) -> Iterator[tuple[str, str]]:
    """(option, default) of a model's entry point; an option without a default must be given."""
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        needed = parameter.default is parameter.empty
        yield parameter.name, "must be given" if needed else repr(parameter.default)


def _describe(name: str, factory: Any) -> dict[str, Any]:
    return {"name": name, "what": _first_line(factory), "options": dict(list_options(factory))}


def _first_line(factory: Any) -> str:
    return (inspect.getdoc(factory) or "").partition("\n\n")[0].replace("\n", " ")


def _write_entry(name: str, factory: Any) -> list[str]:
    options = ", ".join(f"{option}={default}" for option, default in list_options(factory))
    indent = " " * 22
    lines = textwrap.wrap(
        f"{name:<22}{_first_line(factory)}", WIDTH, subsequent_indent=indent
    ) + textwrap.wrap(options, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [line.rstrip() for line in lines]


def _print_one(name: str, factory: Any) -> None:
    print(f"{name}: {inspect.getdoc(factory) or ''}\n")
    print(table(["option", "default"], list(list_options(factory))))
    first = next((option for option, _ in list_options(factory)), None)
    if first is not None:
        print(f"\nfor example: pkd plan {name} --option {first}=...")
