"""Values of a user's model in files: features and outcomes as JSON, and back.

None, bool, int, float, str, bytes, tuples, frozensets and NumPy scalars are read back as what they
were. Named tuples, attrs classes, data classes and enums are written by their class and fields; a
reader without the model cannot build them and gets a `Written`, with the model it gets the model's
own value. Anything else cannot be written, and `refuse_unwritable` says so before a run starts.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs
import numpy as np

from pkd.model import ModelError
from pkd.queue import Queue

__all__ = [
    "Written",
    "decode",
    "encode",
    "get_fields",
    "index_values",
    "is_literal",
    "key_of",
    "refuse_unwritable",
]

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
PLAIN = (type(None), bool, int, float, str)
SHOWN = 5  # values that one error names


@attrs.frozen(repr=False)
class Written:
    """A value of a model that is not at hand: what a file says about it."""

    text: str
    key: str  # its JSON

    def __repr__(self) -> str:
        return self.text


def encode(value: Hashable) -> JSON:
    """A value as JSON; TypeError names the part that cannot be written.

    >>> encode(("day", 2, frozenset({1}), np.int8(3)))
    {'tuple': ['day', 2, {'frozenset': [1]}, {'numpy': ['|i1', 3]}]}
    """
    if isinstance(value, Written):
        read: JSON = json.loads(value.key)
        return read
    if type(value) in PLAIN:
        return value  # type: ignore[return-value]
    if isinstance(value, enum.Enum):
        return {"enum": [type(value).__qualname__, value.name]}
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return {"numpy": [value.dtype.str, value.item()]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if isinstance(value, Queue):
        return {"queue": [encode(part) for part in value]}
    if type(value) is tuple:
        return {"tuple": [encode(part) for part in value]}
    if type(value) is frozenset:
        return {"frozenset": sorted((encode(part) for part in value), key=_text)}
    fields = get_fields(value)
    if fields is None:
        raise TypeError(f"{_show(value)} is a {type(value).__name__}")
    return {"record": type(value).__qualname__, "fields": {k: encode(v) for k, v in fields.items()}}


def decode(read: JSON, own: Mapping[str, Hashable] | None = None) -> Hashable:
    """The value that was written as this JSON; `own`: the model's values (`index_values`)."""
    key = _text(read)
    if own is not None and key in own:
        return own[key]
    if isinstance(read, list):
        raise ValueError(f"expected a value, found the list {read!r}")
    if not isinstance(read, dict):
        return read
    match read:
        case {"tuple": [*parts]}:
            return tuple(decode(part, own) for part in parts)
        case {"queue": [*parts]}:
            return Queue(decode(part, own) for part in parts)
        case {"frozenset": [*parts]}:
            return frozenset(decode(part, own) for part in parts)
        case {"numpy": [str(kind), bool() | int() | float() | str() as item]}:
            dtype = np.dtype(kind)
            if dtype.kind not in "biufU":
                raise ValueError(f"expected a NumPy number or text, found the type {kind!r}")
            scalar: Hashable = dtype.type(item)
            return scalar
        case {"bytes": str(text)}:
            return bytes.fromhex(text)
        case {"enum": [str(kind), str(name)]}:
            return Written(f"{kind}.{name}", key)
        case {"record": str(kind), "fields": dict(fields)}:
            said = ", ".join(f"{name}={decode(part, own)!r}" for name, part in fields.items())
            return Written(f"{kind}({said})", key)
    raise ValueError(f"expected a value, found {read!r}")


def key_of(value: Hashable) -> str:
    """The text by which a file tells values apart."""
    return _text(encode(value))


def index_values(values: Iterable[Hashable]) -> dict[str, Hashable]:
    """The values of a model by their keys, for `decode`; those that cannot be written left out."""
    found: dict[str, Hashable] = {}
    for value in dict.fromkeys(values):
        try:
            found.setdefault(key_of(value), value)
        except TypeError:
            continue
    return found


def refuse_unwritable(values: Iterable[Hashable]) -> None:
    """Raises a ModelError that names values which a file could not give back.

    `learn` can call it with the features and outcomes of a model before a run that will be saved.
    """
    findings, known = list[str](), dict[str, Hashable]()
    for value in dict.fromkeys(values):
        if len(findings) == SHOWN:
            break
        try:
            key = key_of(value)
        except (TypeError, RecursionError) as problem:
            findings.append(
                f"{_show(value)} cannot be written to a file: {problem}; use numbers, texts, "
                "tuples, frozensets, enums, named tuples or attrs classes of these"
            )
            continue
        other = known.setdefault(key, value)
        if other is not value and other != value:
            findings.append(
                f"{_show(value)} and another value are written alike, as {key}, so a file could "
                "not tell them apart; give their classes different names or fields"
            )
    if findings:
        raise ModelError(findings)


def is_literal(text: str) -> bool:
    """Whether a text is a value of Python in words, such as a number."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return True


def get_fields(value: Any) -> dict[str, Any] | None:
    """The fields of a record by name; None for any other value."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if attrs.has(type(value)):
        return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _text(read: JSON) -> str:
    return json.dumps(read, sort_keys=True)


def _show(value: object) -> str:
    """The repr of a value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
