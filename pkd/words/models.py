"""A model as words: `inventory --horizon 20 --option lead_time=2`, with every flag of a model.

The command line, experiment files and saved runs name models by the same words, so all of them read
them here. Installed packages add flags in the entry-point group `pkd.transformers`: a module there
has configure(parser) and transform(problem, args).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import attrs

from pkd import expect
from pkd.model import ModelError
from pkd.problem import Found, Pair, Problem, find, installed, parse_options

T = TypeVar("T")
TRANSFORMERS = "pkd.transformers"
NO_MODEL = (
    "no model was named; expected a registered name, module:object, an .npz file, or a Gymnasium id"
)


class FlagParser(argparse.ArgumentParser):
    """A parser in which every flag without a value can be taken back: --flag and --no-flag.

    A file says `flag = false`, which is `--no-flag`; so it is never lost, whichever package the
    flag comes from.

    >>> parser = FlagParser()
    >>> _ = parser.add_argument("--quiet", action="store_true")
    >>> parser.parse_args(["--quiet", "--no-quiet"]).quiet
    False
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.register("action", "store_true", _Switch)
        self.extra: list[argparse._ArgumentGroup] = []  # groups that only --help-all shows

    def format_all(self) -> str:
        """The help with every flag."""
        return super().format_help()

    def format_help(self) -> str:
        """The help without the flags that change a model."""
        hidden = {id(action) for group in self.extra for action in group._group_actions}
        kept = [action for action in self._actions if id(action) not in hidden]
        exclusive = [
            group
            for group in self._mutually_exclusive_groups
            if not any(id(action) in hidden for action in group._group_actions)
        ]
        groups = [group for group in self._action_groups if group not in self.extra]
        saved = self._actions, self._mutually_exclusive_groups, self._action_groups
        self._actions, self._mutually_exclusive_groups, self._action_groups = (
            kept,
            exclusive,
            groups,
        )
        try:
            return super().format_help()
        finally:
            self._actions, self._mutually_exclusive_groups, self._action_groups = saved

    def list_flags(self) -> set[str]:
        """Every flag, such as --horizon."""
        return set(self._option_string_actions)


class _Switch(argparse.BooleanOptionalAction):
    def __init__(
        self, option_strings: Sequence[str], dest: str, default: bool | None = False, **rest: Any
    ) -> None:
        super().__init__(option_strings, dest, default=default, **rest)

    def format_usage(self) -> str:
        return self.option_strings[0]  # the usage line has no room for both


class _Strict(FlagParser):
    def error(self, message: str) -> NoReturn:
        raise ModelError(message)


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
    before = list(parser._action_groups)
    for transformer in installed(TRANSFORMERS).values():
        transformer.configure(parser)
    if isinstance(parser, FlagParser):
        parser.extra = [group for group in parser._action_groups if group not in before]


def model_arguments(words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a model's words; words that cannot be read are a ModelError.

    >>> model_arguments(["riverswim", "--horizon", "30"]).horizon
    30
    """
    parser = _Strict(add_help=False)
    add_model(parser)
    return parser.parse_args(words)


def set_words(words: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Words of a model in which flags and options have these values.

    >>> set_words(["riverswim"], {"horizon": 9, "length": 4, "known_successors": True})
    ('riverswim', '--horizon=9', '--option=length=4', '--known-successors')
    """
    parser, added = _Strict(add_help=False), []
    add_model(parser)
    for key, value in values.items():
        name = key.replace("_", "-")
        if f"--{name}" not in parser.list_flags():
            added.append(f"--option={key}={value}")
        elif isinstance(value, bool):
            added.append(f"--{name}" if value else f"--no-{name}")
        else:
            added.append(f"--{name}={value}")
    return (*words, *added)


def find_words(words: Sequence[str]) -> Found:
    """The model that words stand for.

    >>> find_words(["riverswim", "--horizon", "30"]).model.horizon
    30
    """
    return find_model(model_arguments(words))


def find_model(args: argparse.Namespace) -> Found:
    """The model that the arguments name, transformed as they say; remarks of all that made it."""
    remarks: list[str] = []

    def transform(problem: Problem) -> Problem:
        for transformer in installed(TRANSFORMERS).values():
            changed = transformer.transform(problem, args)
            if changed is not problem:
                remarks.extend(getattr(changed, "remarks", ()))
            problem = changed
        return problem

    found = _find(args, transform)
    return attrs.evolve(found, remarks=(*found.remarks, *remarks))


def find_problem(args: argparse.Namespace) -> tuple[Problem, Found]:
    """The problem that the arguments name, before any transformer changes it; it must have a law.

    A command that compares several transformations of one problem makes them itself.
    """
    seen: list[Problem] = []

    def keep(problem: Problem) -> Problem:
        seen.append(problem)
        return problem

    found = _find(args, keep)
    found.with_law()
    return seen[0], found


def _find(args: argparse.Namespace, transform: Callable[[Problem], Problem]) -> Found:
    """The model after the core's own flags and a transformation."""

    def change(problem: Problem) -> Problem:
        if args.known_successors:
            problem = _tell_successors(problem)
        if args.discount is not None:
            from pkd.planning.stationary import discounted

            problem = discounted(problem, args.discount)
        return transform(problem)

    word = args.words or args.model
    if word is None:
        raise ModelError(NO_MODEL)
    return find(word, parse_options(args.option), args.horizon, change)


def _tell_successors(problem: Problem) -> Problem:
    """A table whose learner is told which states can follow, and nothing about how likely."""
    from pkd.tables.tabular import TabularMDP

    if not isinstance(problem, TabularMDP):
        raise ModelError(
            "--known-successors: expected a table (an .npz file, a Gymnasium id, or a model that "
            f"is one), found {type(problem).__name__}"
        )
    return Pair(problem.model(support=True), problem.law())


def as_type(read: Callable[[str], T]) -> Callable[[str], T]:
    """A type of argparse from a reader whose complaint is a ModelError."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except ModelError as error:
            raise argparse.ArgumentTypeError("; ".join(error.findings)) from None

    return parse


def as_number(check: Callable[..., list[str]], **limits: Any) -> Callable[[str], Any]:
    """A type of argparse from a check of `pkd.expect`. 1e6 and 1_000_000 are whole numbers, too.

    >>> as_number(expect.whole, least=1)("1e6")
    1000000
    """

    def read(text: str) -> Any:
        try:
            value: Any = float(text)
        except ValueError:
            value = text
        if check is expect.whole and isinstance(value, float) and value.is_integer():
            value = int(text) if re.fullmatch(r"[+-]?\d+", text) else int(value)
        if findings := check("", value, **limits):
            raise ModelError(f"{findings[0].partition('; ')[2]}, found {text!r}")
        return value

    return as_type(read)


positive = as_number(expect.whole, least=1)
fraction = as_number(expect.fraction)
