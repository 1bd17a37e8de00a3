"""Options of the example models: a default and a range in one line each, checked together when a model is made.

A model declares `horizon: int = whole(14, at_least=1)` and `__attrs_post_init__ = check_options`; its entry point shows these options in
its own signature through `options_of`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import attrs

import pkd

__all__ = ["as_table", "check_options", "checked", "number", "options_of", "probability", "whole"]

Entry = TypeVar("Entry", bound=Callable[..., Any])


def whole(default: int, *, at_least: int) -> Any:
    """A field that holds a whole number."""
    return checked(
        default,
        f"a whole number of at least {at_least}",
        lambda v: isinstance(v, int) and v >= at_least,
    )


def number(default: float, *, at_least: float = -math.inf, above: float = -math.inf) -> Any:
    """A field that holds a finite number."""
    limit = (
        f" of at least {at_least}"
        if at_least > -math.inf
        else f" above {above}"
        if above > -math.inf
        else ""
    )
    return checked(
        default,
        f"a finite number{limit}",
        lambda v: math.isfinite(v) and v >= at_least and v > above,
    )


def probability(default: float) -> Any:
    """A field that holds a number in [0, 1]."""
    return checked(default, "a number between 0 and 1", lambda v: 0 <= v <= 1)


def checked(
    default: Any,
    expected: str,
    holds: Callable[[Any], bool],
    convert: Callable[[Any], Any] | None = None,
) -> Any:
    """A field with a rule of its own."""
    return attrs.field(
        default=default, converter=convert, metadata={"expected": expected, "holds": holds}
    )


def as_table(rows: Any) -> tuple[tuple[float, ...], ...]:
    """An array or nested sequence, (S, A), as plain numbers: indexing them is faster in a model than indexing an array."""
    return tuple(tuple(float(value) for value in row) for row in rows)


def check_options(model: Any) -> None:
    """Raises one ModelError with every field of `model` that breaks its rule."""
    findings = []
    for field in attrs.fields(type(model)):
        value = getattr(model, field.name)
        if "expected" in field.metadata and not _holds(field.metadata["holds"], value):
            findings.append(
                f"{type(model).__name__}({field.name}={value!r}): expected {field.metadata['expected']}"
            )
    if findings:
        raise pkd.ModelError(findings)


def options_of(model: type, *, without: tuple[str, ...] = ()) -> Callable[[Entry], Entry]:
    """Decorates an entry point f(*, own options, **options): its signature then lists the fields of `model` too."""

    def decorate(entry: Entry) -> Entry:
        signature = inspect.signature(entry)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = [f for f in attrs.fields(model) if f.init and f.name not in without]
        listed = [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type
            )
            for f in fields
        ]
        entry.__signature__ = signature.replace(parameters=own + listed)  # type: ignore[attr-defined]
        return entry

    return decorate


def _holds(rule: Callable[[Any], bool], value: Any) -> bool:
    # A value of the wrong type fails in the comparison itself: that is a broken rule, not a crash.
    try:
        return bool(rule(value))
    except (TypeError, ValueError):
        return False
