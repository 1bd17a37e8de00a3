"""The commands of `pkd`: the core's own, and those of installed packages.

A command is a module with HELP, configure(parser) and run(args); its docstring is its description.
Any package can add one in the entry-point group `pkd.commands`. Such a module is loaded only for
its own command and for the list of all commands, so the other commands do not wait for it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any, Protocol, TypeVar

from pkd.model import ModelError
from pkd.problem import load_point, registered
from pkd.words.models import FlagParser

__all__ = [
    "GROUP", "OWN", "Command", "add_command", "add_common", "find_command", "list_commands",
]  # fmt: skip

GROUP = "pkd.commands"
# The core's own commands; each is the module of its name.
OWN = (
    "models", "agents", "plan", "evaluate", "simulate", "export", "learn", "compare", "experiment",
    "certify", "bound", "check", "verify", "report", "cache", "completion",
)  # fmt: skip
P = TypeVar("P", bound=argparse.ArgumentParser)


class Command(Protocol):
    """What a module must have to be a command."""

    HELP: str  # one line for the list of commands

    def configure(self, parser: argparse.ArgumentParser, /) -> None:
        """Adds the command's arguments."""

    def run(self, args: argparse.Namespace, /) -> int:
        """Does it and returns the exit code."""


def list_commands() -> list[str]:
    """The core's own commands, then those of other packages in alphabetical order."""
    return [*OWN, *_list_added()]


def find_command(name: str) -> Command:
    """The command of this name; the core's own cannot be replaced."""
    command: Command
    if name in OWN:
        command = import_module(f"pkd.cli.{'evaluate' if name == 'simulate' else name}")
        return command
    point = _list_added()[name]
    command = load_point(point, f"the command {name}")
    missing = [part for part in ("HELP", "configure", "run") if not hasattr(command, part)]
    if missing:
        raise ModelError(
            f"the command {name}: expected a module with HELP, configure(parser) and run(args), "
            f"found {point.value} without {', '.join(missing)}"
        )
    return command


def add_command(commands: argparse._SubParsersAction[P], name: str, wanted: str | None) -> None:
    """Adds one command to the parser: in full if it is `wanted`, else by its name and help line.

    wanted: the word in the place of the command. A help line is needed only where this word is no
    command, because then the list of all commands is shown.
    """
    if name == wanted:
        command = find_command(name)
        parser = commands.add_parser(
            name,
            help=command.HELP,
            description=command.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.configure(parser)
        add_common(parser)
    elif wanted in list_commands():
        commands.add_parser(name)
    else:
        commands.add_parser(name, help=_read_help(name))


def add_common(parser: argparse.ArgumentParser) -> None:
    """The flags of every command."""
    group = parser.add_argument_group("every command")
    group.add_argument("--json", action="store_true", help="print the result as JSON")
    group.add_argument("--debug", action="store_true", help="show the full traceback of an error")
    if getattr(parser, "extra", None):
        group.add_argument(
            "--help-all", action=_HelpAll, help="also the flags that change a model: lateness, gaps"
        )


class _HelpAll(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **rest)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, FlagParser)
        print(parser.format_all(), end="")
        parser.exit()


def _read_help(name: str) -> str:
    try:
        return find_command(name).HELP
    except ModelError as problem:  # the other commands must still be listed
        return str(problem).replace("%", "%%")


def _list_added() -> dict[str, EntryPoint]:
    return {name: point for name, point in registered(GROUP).items() if name not in OWN}
