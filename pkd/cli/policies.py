"""The argument --policy of the commands that follow one: a rule of the user's own, or a file."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd.model import ModelError
from pkd.problem import Found, import_object

if TYPE_CHECKING:
    import pkd

__all__ = ["add_policy", "find_policy"]

Act = Callable[..., Any]


def add_policy(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """--policy module:function or FILE."""
    parser.add_argument(
        "--policy",
        metavar="RULE",
        help=(
            "module:function (h, x, y) -> action, or a .json or .csv file that pkd wrote "
            f"(default: {otherwise})"
        ),
    )


def find_policy(found: Found, word: str | None) -> pkd.Plan | Act:
    """The policy that --policy names; without it the optimal plan.

    A model that was made of another one may have `translate`, which puts a rule in the words of the
    other one into its own.
    """
    import pkd

    if word is None:
        return pkd.plan(found.model, found.with_law())
    if Path(word).is_file():
        table = pkd.PolicyTable.read(word, found.model)
        return table if table.parts == ("x", "y") else _translate(found, table, len(table.parts))
    if ":" not in word:
        raise ModelError(
            f"--policy {word}: expected module:function, or a .json or .csv file that pkd wrote"
        )
    try:
        rule = import_object(word)
    except (ImportError, AttributeError) as problem:
        raise ModelError(f"--policy {word} cannot be imported: {problem}") from problem
    if isinstance(rule, pkd.Plan):
        return rule
    if not callable(rule):
        raise ModelError(f"--policy {word} is {type(rule).__name__}; expected a function")
    return _translate(found, rule, _count_parts(rule))


def _translate(found: Found, rule: Act, parts: int) -> Act:
    translate = getattr(found.model, "translate", None)
    if translate is not None:
        translated: Act = translate(rule, parts)
        return translated
    if parts != 2:
        raise ModelError(
            f"the policy takes the step and {parts} parts of a state; expected (h, x, y)"
        )
    return rule


def _count_parts(rule: Act) -> int:
    """How many parts of a state a function takes after the step."""
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return 2
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return max(len([p for p in needed if p.default is p.empty]) - 1, 0)
