"""Arguments that several commands share: the model with its options, and files for results."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
from collections.abc import Iterable
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from pkd import model_words
from pkd.cli.output import PICTURES
from pkd.model import ModelError
from pkd.model_words import add_model, fraction, model_arguments, positive
from pkd.problem import Found, Problem
from pkd.rule_words import make_rule
from pkd.schedule import read_schedule
from pkd.workers import memory

if TYPE_CHECKING:
    import pkd

__all__ = [
    "EPISODES",
    "add_learning",
    "add_model",
    "amount",
    "episodes",
    "find_model",
    "find_problem",
    "fraction",
    "model_arguments",
    "picture",
    "positive",
    "read_runs",
    "rule",
    "say_remarks",
    "schedule",
    "seed",
    "writable",
]

EPISODES = 10_000  # of a run, unless said otherwise
BYTES_PER_EPISODE = 64  # what a run keeps of one, and what its table and its file need of it


def add_learning(parser: argparse.ArgumentParser, *, seeds: int) -> None:
    """What every command that learns takes."""
    parser.add_argument(
        "--episodes",
        type=episodes,
        default=EPISODES,
        metavar="K",
        help=f"episodes (default: {EPISODES})",
    )
    parser.add_argument(
        "--replan",
        type=schedule,
        default="doubling",
        metavar="WHEN",
        help="when to plan anew: doubling (of a count), every (episode), total (twice the"
        " episodes), or words such as growth=1.5 or period=100 (default: doubling)",
    )
    parser.add_argument(
        "--delta",
        type=fraction,
        default=0.05,
        help="probability with which the guarantee may fail (default: 0.05)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="the first seed (default: 0)")
    parser.add_argument(
        "--seeds",
        type=positive,
        default=seeds,
        metavar="N",
        help=f"how many seeds (default: {seeds})",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="W",
        help="processes that share the runs (default: 1)",
    )
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write the table of results")
    parser.add_argument("--plot", type=picture, metavar="FILE", help="draw the cumulative regret")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def find_model(args: argparse.Namespace) -> Found:
    """The model that the arguments name, transformed as they say; its remarks go to stderr."""
    found = model_words.find_model(args)
    say_remarks(found.remarks)
    return found


def find_problem(args: argparse.Namespace) -> Problem:
    """The problem that the arguments name, before any transformer changes it; it must have a law.

    A command that compares several transformations of one problem makes them itself.
    """
    problem, found = model_words.find_problem(args)
    say_remarks(found.remarks)
    return problem


def say_remarks(remarks: Iterable[str], name: str = "") -> None:
    """What a user should know about a model, on stderr; in the main process, not in a worker."""
    if multiprocessing.parent_process() is None:
        for remark in remarks:
            print(f"pkd: {name}{': ' if name else ''}{remark}", file=sys.stderr)


def read_runs(paths: Iterable[str]) -> dict[str, pkd.Run]:
    """The saved runs of some files, by their names; one ModelError names all that are none."""
    from pkd import Run

    runs, problems = {}, []
    for path in dict.fromkeys(name for word in paths for name in _expand(word)):
        try:
            runs[path] = Run.load(path)
        except ModelError as problem:
            problems.append(str(problem))
    if problems:
        raise ModelError("; ".join(problems))
    return runs


def _expand(word: str) -> list[str]:
    """The files that a pattern such as run-*.npz matches: not every shell does it."""
    if Path(word).exists() or not has_magic(word):
        return [word]
    found = glob(word)  # noqa: PTH207 - Path.glob takes no absolute pattern
    return sorted(found) or [word]


def episodes(text: str) -> int:
    """A number of episodes whose record fits into the memory of this machine."""
    number, size = positive(text), memory()
    if number * BYTES_PER_EPISODE > size:
        most = f"{size // BYTES_PER_EPISODE:,}"
        raise argparse.ArgumentTypeError(
            f"{text} episodes are too many to keep: expected at most {most} on this machine, "
            f"with {size / 2**30:.3g} GiB of memory"
        )
    return number


def amount(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return number


def schedule(text: str) -> str:
    """A schedule of plans, in the words of `pkd.schedule`."""
    try:
        return read_schedule(text).text
    except ModelError as error:
        raise argparse.ArgumentTypeError("; ".join(error.findings)) from None


def rule(text: str) -> str:
    """The words of a rule of optimism."""
    try:
        make_rule(text)
    except ModelError as error:
        raise argparse.ArgumentTypeError("; ".join(error.findings)) from None
    return text


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, found {text!r}")
    return int(text)


def writable(text: str) -> Path:
    """A file to be written, in a folder that exists: a long run should not fail at its end."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise argparse.ArgumentTypeError(
            f"cannot write {text!r}: expected a file in a folder that exists and can be written to"
        )
    return path


def picture(text: str) -> Path:
    """A file for a figure; its ending must name a format, which is checked before a long run."""
    path = writable(text)
    if path.suffix.removeprefix(".") not in PICTURES:
        expected = ", ".join(PICTURES)
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected a name that ends in one of {expected}"
        )
    return path
