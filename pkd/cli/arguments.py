"""Arguments that several commands share: the model, a policy, numbers, and files for results."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd import expect
from pkd.cli.output import PICTURES
from pkd.model import ModelError
from pkd.problem import Found, Problem, import_object
from pkd.rules import make_rule
from pkd.rules.schedule import read_schedule
from pkd.words import models as named
from pkd.words.models import (
    add_model,
    as_number,
    as_type,
    fraction,
    model_arguments,
    positive,
)
from pkd.workers import memory

if TYPE_CHECKING:
    import pkd

__all__ = [
    "EPISODES", "add_delta", "add_findings", "add_learning", "add_model", "add_policy", "amount",
    "as_number", "ending", "episodes", "find_model", "find_policy", "find_problem", "fraction",
    "model_arguments", "picture", "positive", "read_runs", "rule", "say_remarks", "schedule",
    "seed", "writable",
]  # fmt: skip

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
        help="when to plan again: doubling (of a count), every (episode), total (twice the"
        " episodes), or words such as growth=1.5 or period=100 (default: doubling);"
        " rules that draw their plans read doubling as every",
    )
    add_delta(parser, "the guarantee")
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
    found = named.find_model(args)
    say_remarks(found.remarks)
    return found


def model_words(
    typed: Sequence[str], add_own: Callable[[argparse.ArgumentParser], None]
) -> tuple[str, ...]:
    """The words that say which model it is: those that are left when the command's own are read."""
    parser = named.FlagParser(add_help=False)
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--json", action="store_true")
    add_own(parser)
    _, (_command, *words) = parser.parse_known_args(typed)
    return tuple(words)


def name_model(args: argparse.Namespace, add_own: Callable[[argparse.ArgumentParser], None]) -> str:
    """What a title says of the model: its words, with the flags that changed it."""
    from pkd.experiments.grid import label_model

    return label_model(model_words(args.typed, add_own))


def find_problem(args: argparse.Namespace) -> Problem:
    """The problem that the arguments name, before any transformer changes it; it must have a law.

    A command that compares several transformations of one problem makes them itself.
    """
    problem, found = named.find_problem(args)
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


@as_type
def episodes(text: str) -> int:
    """A number of episodes whose record fits into the memory of this machine."""
    number, size = positive(text), memory()
    if number * BYTES_PER_EPISODE > size:
        most = f"{size // BYTES_PER_EPISODE:,}"
        raise ModelError(
            f"{text} episodes are too many to keep: expected at most {most} on this machine, "
            f"with {size / 2**30:.3g} GiB of memory"
        )
    return int(number)


amount = as_number(expect.number, above=True)
confidence = as_number(expect.failure)
seed = as_number(expect.whole)
schedule = as_type(lambda text: read_schedule(text).text)


@as_type
def rule(text: str) -> str:
    """The words of a rule of optimism."""
    make_rule(text)
    return text


def add_delta(parser: argparse.ArgumentParser, what: str) -> None:
    """--delta, the probability with which `what` may fail."""
    parser.add_argument(
        "--delta",
        type=confidence,
        default=0.05,
        help=f"probability with which {what} may fail (default: 0.05)",
    )


@as_type
def writable(text: str) -> Path:
    """A file to be written, in a folder that exists: a long run should not fail at its end."""
    path = Path(text)
    if expect.is_stream(path):
        return path
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ModelError(
            f"cannot write {text!r}: expected a file in a folder that exists and can be written to"
        )
    return path


def ending(endings: Sequence[str]) -> Callable[[str], Path]:
    """A file to be written whose ending names a format, which is checked before a long run."""

    def read(text: str) -> Path:
        path = writable(text)
        if path.suffix not in endings:
            expected = ", ".join(endings)
            raise ModelError(f"{text!r}: expected a name that ends in one of {expected}")
        return path

    return as_type(read)


picture = ending([f".{kind}" for kind in PICTURES])


def add_findings(parser: argparse.ArgumentParser) -> None:
    """--findings FILE, for a page of several commands."""
    parser.add_argument(
        "--findings",
        type=ending([".json"]),
        metavar="FILE",
        help="keep what was found for a page for those who decide: pkd report FILE ...",
    )


def add_policy(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """--policy module:function or FILE."""
    parser.add_argument(
        "--policy",
        metavar="POLICY",
        help="module:function (h, x, y) -> action, or a policy, plan or run in a file that pkd "
        f"wrote (default: {otherwise})",
    )


def find_policy(found: Found, word: str) -> pkd.Plan | Callable[..., Any]:
    """The policy that --policy names: a file, or a function of the user's own."""
    from pkd.files.policies import adapt_policy
    from pkd.planning.plan import Plan
    from pkd.results.policies import read_policy

    if Path(word).is_file():
        return read_policy(word, found.model)
    if ":" not in word:
        raise ModelError(f"--policy {word}: expected module:function, or a file that pkd wrote")
    try:
        act = import_object(word)
    except (ImportError, AttributeError) as problem:
        raise ModelError(f"--policy {word} cannot be imported: {problem}") from problem
    if isinstance(act, Plan):
        return act
    if not callable(act):
        raise ModelError(f"--policy {word} is {type(act).__name__}; expected a function")
    return adapt_policy(found.model, act, typed=True)
