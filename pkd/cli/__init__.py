"""The command line `pkd`: one module per command, and here what they share: the parser, and what happens when something goes wrong.

Nothing heavy is imported before a command runs, so that `pkd --help` answers at once. Bad input is one line on stderr and exit code 2; a
model that breaks its contract is exit code 1 of `pkd check`, a number that differs that of `pkd verify`; an interrupt is exit code 130.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from pkd.cli import bound, check, compare, demo, latency, learn, plan, report, verify
from pkd.cli.config import with_experiment_file
from pkd.model import ModelError

__all__ = ["main"]

COMMANDS = {
    "demo": demo,
    "plan": plan,
    "learn": learn,
    "compare": compare,
    "latency": latency,
    "bound": bound,
    "check": check,
    "verify": verify,
    "report": report,
}
BAD_INPUT, INTERRUPTED = 2, 130


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def build_parser() -> Parser:
    """The whole command line."""
    parser = Parser(prog="pkd", description="Planning and optimistic learning in MDPs with partially known dynamics.")
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(
            name, help=module.HELP, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.add_argument("--debug", action="store_true", help="show the full traceback of an error")
        module.configure(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = build_parser()
    try:
        words = with_experiment_file(words)
        words = _joined(words)
        args = parser.parse_args(words, argparse.Namespace(typed=words))
        if args.version:
            import pkd

            print(f"pkd {pkd.__version__}")
            return 0
        if args.command is None:
            parser.print_help()
            return 0
        code: int = COMMANDS[args.command].run(args)
        sys.stdout.flush()  # here, where a closed pipe is still an exception that can be caught
    except KeyboardInterrupt:
        print("pkd: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has what it wanted. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as problem:  # noqa: BLE001 - a model is the user's own code and may raise anything
        if "--debug" in words:
            traceback.print_exc()
        else:
            print(f"pkd: error: {_one_line(problem)}", file=sys.stderr)
        return BAD_INPUT
    return code


def _joined(words: Sequence[str]) -> list[str]:
    """`--flag -1:.2` as `--flag=-1:.2`: a value that starts with a minus and a digit is not a flag, whatever argparse thinks."""
    joined: list[str] = []
    for word in words:
        if joined and re.match(r"-\.?\d", word) and re.fullmatch(r"--[\w-]+", joined[-1]):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _one_line(problem: Exception) -> str:
    if isinstance(problem, ModelError):
        rest = len(problem.findings) - 1
        return problem.findings[0] + (f" (and {rest} more; pkd check lists them)" if rest > 0 else "")
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem)
    if isinstance(problem, MemoryError):
        return "not enough memory for this model; a shorter horizon, delay or state space needs less"
    frames = traceback.extract_tb(problem.__traceback__)
    where = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(problem).__name__}{where}: {' '.join(str(problem).split())} (--debug shows more)"
