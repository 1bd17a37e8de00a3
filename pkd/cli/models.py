"""Lists the registered models: the name, what it is, and its options with their defaults.

pkd models
pkd models inventory
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from pkd.cli.output import print_json, table
from pkd.model import ModelError
from pkd.problem import load_point, names

HELP = "list the registered models and their options"
WIDTH = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="one model, in full")


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
        print_json([describe(name, factory) for name, factory in found.items()])
    elif args.name is None:
        for name, factory in found.items():
            print("\n".join(write_entry(name, factory)))
        print("\npkd models NAME shows one in full; every option is given as --option KEY=VALUE.")
    else:
        print_one(args.name, found[args.name])
    return 0


def list_options(factory: Any) -> Iterator[tuple[str, str]]:
    """(option, default) of a model's entry point; an option without a default must be given."""
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        needed = parameter.default is parameter.empty
        yield parameter.name, "must be given" if needed else repr(parameter.default)


def describe(name: str, factory: Any) -> dict[str, Any]:
    """An entry for JSON; None is the default of an option that must be given."""
    defaults = {
        name: None if one.default is one.empty else one.default
        for name, one in inspect.signature(factory).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    }
    return {"name": name, "what": _first_line(factory), "options": defaults}


def _first_line(factory: Any) -> str:
    return (inspect.getdoc(factory) or "").partition("\n\n")[0].replace("\n", " ")


def write_entry(name: str, factory: Any, constants: Mapping[str, Any] = {}) -> list[str]:
    """The lines of a list: name, first line, options; `constants` go before the defaults."""
    defaults = {**dict(list_options(factory)), **constants}
    options = ", ".join(f"{option}={default}" for option, default in defaults.items())
    indent = " " * 22
    lines = textwrap.wrap(
        f"{name:<22}{_first_line(factory)}", WIDTH, subsequent_indent=indent
    ) + textwrap.wrap(options, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [line.rstrip() for line in lines]


def print_one(name: str, factory: Any, example: str | None = None) -> None:
    """One entry in full, with an example of its first option."""
    print(f"{name}: {inspect.getdoc(factory) or ''}\n")
    print(table(["option", "default"], list(list_options(factory))))
    first = next((option for option, _ in list_options(factory)), None)
    if first is not None:
        print(f"\nfor example: {example or f'pkd plan {name} --option '}{first}=...")
