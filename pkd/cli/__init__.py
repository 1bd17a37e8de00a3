"""The command line `pkd`: one module per command, and here the parser and the answer to errors.

Nothing heavy is imported before a command runs, so that `pkd --help` answers at once. Bad input is
one line on stderr and exit code 2; a model that breaks its contract is exit code 1 of `pkd check`,
a number that differs that of `pkd verify`; an interrupt is exit code 130.

The names of `__all__` are for packages that add commands of their own (`pkd.cli.commands`), flags
of transformers (`pkd.cli.arguments`) or bounds (`pkd.cli.bound`).
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from pkd.cli.arguments import (
    add_findings,
    add_model,
    amount,
    as_number,
    find_model,
    find_problem,
    fraction,
    picture,
    positive,
    seed,
    writable,
)
from pkd.cli.bound import Bounds, Curves
from pkd.cli.commands import add_command, find_command, list_commands
from pkd.cli.config import Origin, insert_experiment_file
from pkd.cli.output import (
    make_records,
    print_json,
    save_figure,
    table,
    write_csv,
    write_files,
    write_findings,
)
from pkd.model import ModelError
from pkd.words.models import FlagParser

__all__ = [
    "Bounds",
    "Curves",
    "add_findings",
    "add_model",
    "amount",
    "as_number",
    "find_model",
    "find_problem",
    "fraction",
    "main",
    "make_records",
    "picture",
    "positive",
    "print_json",
    "save_figure",
    "seed",
    "table",
    "writable",
    "write_csv",
    "write_files",
    "write_findings",
]

BAD_INPUT, INTERRUPTED = 2, 130


class Parser(FlagParser):
    """An argument parser whose complaint is one line."""

    origin: Origin | None = None  # the experiment file that some words come from

    def error(self, message: str) -> NoReturn:
        message = self._suggest(message)
        if self.origin is not None:
            message = self.origin.name(message)
        self.exit(BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def _suggest(self, message: str) -> str:
        """A complaint with the nearest command or flag."""
        if found := re.fullmatch(r"argument COMMAND: invalid choice: '(.*)' \(choose.*\)", message):
            close = difflib.get_close_matches(found[1], list_commands(), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "pkd --help lists all of them"
            return f"no command is called {found[1]!r}; {hint}"
        if found := re.fullmatch(r"unrecognized arguments: (-\S+).*", message):
            known = {flag for one in (self, *self.commands()) for flag in one.list_flags()}
            word = found[1].partition("=")[0]
            close = difflib.get_close_matches(word, sorted(known), n=1)
            return message + (f"; did you mean {close[0]}?" if close else "")
        return message

    def commands(self) -> Iterable[Parser]:
        """The parsers of the commands."""
        actions = self._subparsers._group_actions if self._subparsers else ()
        return [one for action in actions for one in (action.choices or {}).values()]  # type: ignore[attr-defined]


def build_parser(wanted: str | None = None, origin: Origin | None = None) -> Parser:
    """The command line; only the command that is `wanted` has its arguments."""
    parser = Parser(
        prog="pkd",
        description="Planning and optimistic learning in MDPs with partially known dynamics.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name in list_commands():
        add_command(commands, name, wanted)
    for one in (parser, *commands.choices.values()):
        one.origin = origin
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _print_anything()
    try:
        words, origin = insert_experiment_file(words)
        words = _join_values(words)
        wanted = next((word for word in words if not word.startswith("-")), None)
        parser = build_parser(wanted, origin)
        args = parser.parse_args(words, argparse.Namespace(typed=words))
        if args.version:
            import pkd

            print(f"pkd {pkd.__version__}")
            return 0
        if args.command is None:
            parser.print_help()
            return 0
        code = find_command(args.command).run(args)
        sys.stdout.flush()  # here, where a closed pipe is still an exception that can be caught
    except KeyboardInterrupt:
        print("pkd: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has stopped. Python would complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as problem:  # noqa: BLE001 - a model is the user's own code
        if os.name == "nt" and isinstance(problem, OSError) and problem.errno == errno.EINVAL:
            return 0  # this is how Windows says that the reader of a pipe has stopped
        if "--debug" in words:
            traceback.print_exc()
        else:
            print(f"pkd: error: {_one_line(problem, words)}", file=sys.stderr)
        return BAD_INPUT
    return code


def _print_anything() -> None:
    """A console that lacks a character, as those of Windows may, shows its number instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _join_values(words: Sequence[str]) -> list[str]:
    """`--flag -1:.2` as `--flag=-1:.2`.

    A value that starts with a minus and a digit is not a flag, but argparse would take it for one.
    """
    joined: list[str] = []
    for word in words:
        if joined and re.match(r"-\.?\d", word) and re.fullmatch(r"--[\w-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _one_line(problem: Exception, words: Sequence[str]) -> str:
    if isinstance(problem, ModelError):
        rest = problem.number - ModelError(problem.findings[:1]).number
        # `pkd check` would stop at the same error if the model itself cannot be made, so the other
        # findings are shown by --debug.
        return problem.findings[0] + (f" (and {rest} more; --debug shows all)" if rest > 0 else "")
    if isinstance(problem, UnicodeDecodeError):
        return (
            f"{_name_file(problem, words)} is not UTF-8 text: byte "
            f"{problem.object[problem.start]:#04x} at position {problem.start}; save it as UTF-8"
        )
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem)
    if isinstance(problem, MemoryError):
        return (
            "not enough memory for this model; a shorter horizon, fewer episodes or a smaller "
            "state space need less"
        )
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    message = " ".join(str(problem).split())
    return f"{type(problem).__name__}{where}: {message} (--debug shows more)"


def _name_file(problem: UnicodeDecodeError, words: Sequence[str]) -> str:
    """The file that could not be decoded: one that was named and holds these bytes."""
    for word in words:
        path = Path(word.rpartition("=")[2])
        try:
            if path.is_file() and problem.object in path.read_bytes():
                return str(path)
        except OSError:
            continue
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith("<")]
    return f"a file that {own[-1].filename}:{own[-1].lineno} reads" if own else "a file"
