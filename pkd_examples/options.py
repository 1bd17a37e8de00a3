"""Options of the example models: a default and a range in one line each, checked together.

A model declares `horizon: int = whole(14, at_least=1)` and `__attrs_post_init__ = check_options`.
Its entry point shows these options in its own signature through `options_of`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

import pkd

__all__ = [
    "as_table",
    "check_options",
    "field",
    "flag",
    "number",
    "options_of",
    "probability",
    "whole",
]

Entry = TypeVar("Entry", bound=Callable[..., object])
Value = TypeVar("Value")


def whole(default: int, *, at_least: int) -> int:
    """A field that holds a whole number."""
    expected = f"a whole number of at least {at_least}"
    return field(default, expected, lambda v: isinstance(v, int) and v >= at_least)


def number(default: float, *, at_least: float = -math.inf, above: float = -math.inf) -> float:
    """A field that holds a finite number."""
    expected = "a finite number"
    if at_least > -math.inf:
        expected += f" of at least {at_least}"
    elif above > -math.inf:
        expected += f" above {above}"
    return field(default, expected, lambda v: math.isfinite(v) and v >= at_least and v > above)


def probability(default: float) -> float:
    """A field that holds a number in [0, 1]."""
    return field(default, "a number between 0 and 1", lambda v: 0 <= v <= 1)


def flag(default: bool) -> bool:
    """A field that holds True or False."""
    return field(default, "True or False", lambda v: isinstance(v, bool))


def field(
    default: Value,
    expected: str,
    holds: Callable[[Any], bool],
    convert: Callable[[Any], Any] | None = None,
) -> Value:
    """A field with a rule of its own; like `attrs.field` it has the type of its value."""
    rule = {"expected": expected, "holds": holds}
    return attrs.field(default=default, converter=convert, metadata=rule)


def as_table(rows: Iterable[Iterable[float]]) -> tuple[tuple[float, ...], ...]:
    """An array or nested sequence, (S, A), as plain numbers, which a model indexes faster."""
    return tuple(tuple(float(value) for value in row) for row in rows)


def check_options(model: attrs.AttrsInstance) -> None:
    """Raises one ModelError with every field of `model` that breaks its rule."""
    findings = []
    for option in attrs.fields(type(model)):
        value, rule = getattr(model, option.name), option.metadata
        if "expected" in rule and not _holds(rule["holds"], value):
            place = f"{type(model).__name__}({option.name}={value!r})"
            findings.append(f"{place}: expected {rule['expected']}")
    if findings:
        raise pkd.ModelError(findings)


def options_of(model: type, *, without: tuple[str, ...] = ()) -> Callable[[Entry], Entry]:
    """Decorates an entry point f(*, own options, **options).

    Its signature then lists the fields of `model` too.
    """

    def decorate(entry: Entry) -> Entry:
        signature = inspect.signature(entry)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        listed = [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type
            )
            for f in attrs.fields(model)
            if f.init and f.name not in without
        ]
        shown = signature.replace(parameters=own + listed)
        entry.__signature__ = shown  # type: ignore[attr-defined]
        return entry

    return decorate


def _holds(rule: Callable[[Any], bool], value: Any) -> bool:
    # A value of the wrong type fails in the comparison itself: that is a broken rule, not a crash.
    try:
        return bool(rule(value))
    except (TypeError, ValueError):
        return False
