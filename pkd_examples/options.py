"""Options of the example models: a default and a check of `pkd.expect` in one line each.

A model declares `horizon: int = whole(14, least=1)` and `__attrs_post_init__ = check_options`. Its
entry point shows these options in its own signature through `options_of`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs

from pkd import expect

Entry = TypeVar("Entry", bound=Callable[..., object])
Value = TypeVar("Value")


def whole(default: int, least: int = 0, most: int | None = None) -> int:
    """A field that holds a whole number."""
    return _field(default, partial(expect.whole, least=least, most=most))


def number(default: float, least: float = -math.inf, *, above: bool = False) -> float:
    """A field that holds a finite number."""
    return _field(default, partial(expect.number, least=least, above=above))


def probability(default: float) -> float:
    """A field that holds a number in [0, 1]."""
    return _field(default, partial(expect.fraction, closed=True))


def flag(default: bool) -> bool:
    """A field that holds True or False."""
    return _field(default, partial(expect.one_of, choices=(True, False)))


def listed(default: Value, size: int | None = None, *, distinct: bool = False) -> Value:
    """A field that holds a tuple that is not empty; distinct: of different values."""

    def check(name: str, value: Any) -> list[str]:
        if len(value) == (size or len(value)) > 0 and not (
            distinct and len(set(value)) < len(value)
        ):
            return []
        word = "different values" if distinct else f"{size or 'one or more'} values"
        return [f"{name} is {value!r}; expected {word}"]

    return _field(default, check, tuple)


def _field(default: Value, check: Callable[..., list[str]], convert: Any = None) -> Value:
    """Like `attrs.field` it has the type of its value."""
    return attrs.field(default=default, converter=convert, metadata={"check": check})


def check_options(model: attrs.AttrsInstance) -> None:
    """Raises one ModelError with every field of `model` that breaks its rule."""
    name = type(model).__name__
    expect.require(
        *(
            option.metadata["check"](f"{name}: {option.name}", getattr(model, option.name))
            for option in attrs.fields(type(model))
            if "check" in option.metadata
        )
    )


def weigh(name: str, values: Iterable[Value], weights: Sequence[float]) -> dict[Value, float]:
    """The law of values by their weights, which need not sum to 1."""
    values, total = list(values), math.fsum(weights)
    if len(weights) != len(values) or min(weights) < 0 or not 0 < total < math.inf:
        expected = f"expected {len(values)} numbers of at least 0, not all 0"
        expect.require([f"{name} is {weights!r}; {expected}"])
    return {x: weight / sum(weights) for x, weight in zip(values, weights, strict=True)}


def options_of(model: type, *, without: tuple[str, ...] = ()) -> Callable[[Entry], Entry]:
    """Decorates an entry point f(*, own options, **options).

    Its signature then lists the fields of `model` too.
    """

    def decorate(entry: Entry) -> Entry:
        signature = inspect.signature(entry)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(
                f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=f.type
            )
            for f in attrs.fields(model)
            if f.init and f.name not in without
        ]
        shown = signature.replace(parameters=own + more)
        entry.__signature__ = shown  # type: ignore[attr-defined]
        return entry

    return decorate
