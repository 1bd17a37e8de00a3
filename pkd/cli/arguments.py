"""Arguments that several commands share: the model with its options, and files for results."""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pkd.cli.output import PICTURES
from pkd.model import ModelError
from pkd.problem import Found, Pair, Problem, find, installed, parse_options
from pkd.schedule import read_schedule
from pkd.workers import memory

if TYPE_CHECKING:
    import pkd

__all__ = [
    "EPISODES",
    "TRANSFORMERS",
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
    "schedule",
    "seed",
    "writable",
]

EPISODES = 10_000  # of a run, unless said otherwise
BYTES_PER_EPISODE = 64  # what a run keeps of one, and what its table and its file need of it

NO_MODEL = (
    "no model was named; expected a registered name, module:object, an .npz file, or a Gymnasium id"
)
# The entry-point group of modules with configure(parser) and transform(problem, args).
TRANSFORMERS = "pkd.transformers"


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL --option key=value --horizon H, and the flags of the installed transformers."""
    parser.add_argument(
        "words",
        nargs="?",
        metavar="MODEL",
        help="a registered name, module:object, an .npz file, or a Gymnasium id",
    )
    parser.add_argument("--model", help=argparse.SUPPRESS)  # how an experiment file names it
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of the model; may be repeated",
    )
    parser.add_argument("--horizon", type=positive, metavar="H", help="actions per episode")
    parser.add_argument(
        "--known-successors",
        action="store_true",
        help="tables: a learner knows which states can follow, not how likely they are",
    )
    parser.add_argument(
        "--discount",
        type=fraction,
        metavar="G",
        help="after each action go on with this known probability: the return is discounted",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="read flags from a TOML file; flags that are typed go before it",
    )
    for transformer in installed(TRANSFORMERS).values():
        transformer.configure(parser)


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
    """The model that the arguments name, transformed as they say."""
    transformers = installed(TRANSFORMERS).values()

    def transform(problem: Problem) -> Problem:
        for transformer in transformers:
            problem = transformer.transform(problem, args)
        return problem

    return _find(args, transform)


def find_problem(args: argparse.Namespace) -> Problem:
    """The problem that the arguments name, before any transformer changes it; it must have a law.

    A command that compares several transformations of one problem makes them itself.
    """
    seen: list[Problem] = []

    def keep(problem: Problem) -> Problem:
        seen.append(problem)
        return problem

    _find(args, keep).with_law()
    return seen[0]


def _find(args: argparse.Namespace, transform: Callable[[Problem], Problem]) -> Found:
    """The model after the core's own flags and a transformation; says its remarks."""

    def change(problem: Problem) -> Problem:
        if args.known_successors:
            problem = _tell_successors(problem)
        if args.discount is not None:
            from pkd.endless import discounted

            problem = discounted(problem, args.discount)
        return transform(problem)

    word = args.words or args.model
    if word is None:
        raise ModelError(NO_MODEL)
    found = find(word, parse_options(args.option), args.horizon, change)
    if multiprocessing.parent_process() is None:  # once, not in every worker
        for remark in found.remarks:
            print(remark, file=sys.stderr)
    return found


def _tell_successors(problem: Problem) -> Problem:
    """A table whose learner is told which states can follow, and nothing about how likely."""
    from pkd.tabular import TabularMDP

    if not isinstance(problem, TabularMDP):
        raise ModelError(
            "--known-successors: expected a table (an .npz file, a Gymnasium id, or a model that "
            f"is one), found {type(problem).__name__}"
        )
    return Pair(problem.model(support=True), problem.law())


def model_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The arguments that `add_model` reads from words that a file has kept; words that it cannot
    read are a ModelError.
    """
    parser = _Strict(add_help=False)
    add_model(parser)
    return parser.parse_args(words)


class _Strict(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ModelError(message)


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


def positive(text: str) -> int:
    """A whole number of at least 1; 1e6 and 1_000_000 are read too."""
    try:
        number = float(text)
    except ValueError:
        number = 0.5
    if not math.isfinite(number) or number != int(number) or number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(number)


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


def seed(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 0, found {text!r}")
    return int(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, both left out."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, found {text!r}")
    return number


def writable(text: str) -> Path:
    """A file to be written, in a folder that exists: a long run should not fail at its end."""
    path = Path(text)
    if not path.parent.is_dir() or path.is_dir():
        raise argparse.ArgumentTypeError(
            f"cannot write {text!r}: expected a file in a folder that exists"
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
