"""Values of a user's model in files: what is written is read back as what it was, or refused."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkd.files.values import (
    SHOWN,
    Written,
    decode,
    encode,
    get_fields,
    index_values,
    key_of,
    refuse_unwritable,
)
from pkd.model import ModelError


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Place(NamedTuple):
    row: int
    column: int


@attrs.frozen
class Stock:
    name: str
    parts: frozenset[int]


@attrs.frozen(repr=False)
class Shy:
    """Every instance has the same repr."""

    secret: int

    def __repr__(self) -> str:
        return "Shy()"


@attrs.frozen(eq=False)
class Token:
    """Two tokens of one name are two values."""

    name: str


class Opaque:
    """Hashable by identity."""


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.sampled_from([np.int64(3), np.float32(0.5), np.bool_(True), np.str_("x"), np.uint8(7)]),
    lambda parts: st.lists(parts).map(tuple) | st.frozensets(parts),
    max_leaves=8,
)


def alike(a: Any, b: Any) -> bool:
    """Equal, and of equal types all the way down."""
    if type(a) is not type(b) or a != b:
        return False
    if isinstance(a, tuple):
        return all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, frozenset):
        return all(any(alike(x, y) for y in b) for x in a)
    return True


@given(plain)
def test_a_plain_value_is_read_back_as_what_it_was(value: Any) -> None:
    assert alike(decode(encode(value)), value)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (1, "1"), (1, np.int64(1)), ((1,), frozenset({1})), (None, "None")],
)
def test_values_of_different_types_are_told_apart(one: Any, other: Any) -> None:
    assert key_of(one) != key_of(other)


OWN = [
    Colour.RED,
    Place(1, 2),
    Stock("bolt", frozenset({1, 2})),
    Shy(1),
    ("at", Place(0, 0), Colour.BLUE),
]


@pytest.mark.parametrize("value", OWN)
def test_with_its_model_a_value_of_any_class_is_the_models_own(value: Any) -> None:
    assert decode(encode(value), index_values([*OWN, Shy(2)])) is value


def test_without_its_model_a_record_is_known_by_its_class_and_fields() -> None:
    found = decode(encode(Place(1, 2)))
    assert isinstance(found, Written)
    assert repr(found) == "Place(row=1, column=2)"
    assert encode(found) == encode(Place(1, 2))  # so that it can be saved once more


def test_values_with_equal_repr_are_told_apart_by_their_fields() -> None:
    refuse_unwritable([Shy(1), Shy(2)])
    assert encode(Shy(1)) != encode(Shy(2))


def test_what_cannot_be_written_is_refused_with_every_reason() -> None:
    opaque = Opaque()
    with pytest.raises(ModelError) as error:
        refuse_unwritable([1, opaque, ("in", opaque), Token("a"), Token("b"), Token("a")])
    first, second, third = error.value.findings
    assert first.startswith(f"{opaque!r} cannot be written to a file: ")
    assert first.endswith(
        "use numbers, texts, tuples, frozensets, enums, named tuples or attrs classes of these"
    )
    assert "Opaque" in second
    assert "are written alike" in third


@pytest.mark.parametrize(
    "read",
    [[1], {"tuple": 3}, {"numpy": ["|O", 1]}, {"numpy": [1, 2]}, {"bytes": "xyz"}, {"what": 1}, {}],
)
def test_what_no_value_was_written_as_is_refused(read: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode(read)


def test_a_value_that_was_read_without_its_model_is_written_as_it_was() -> None:
    written = encode(("on", Stock("oil", frozenset({1, 2})), Colour.RED, b"x"))
    read = decode(written)
    assert encode(read) == written


def test_values_that_cannot_be_written_have_no_place_in_an_index() -> None:
    assert index_values([1, Opaque(), 2]) == {"1": 1, "2": 2}


def test_at_most_a_few_values_are_named() -> None:
    with pytest.raises(ModelError) as error:
        refuse_unwritable([Opaque() for _ in range(100)])
    assert len(error.value.findings) == SHOWN


def test_fields_of_records_of_every_kind_have_names() -> None:
    @dataclasses.dataclass(frozen=True)
    class Crate:
        size: int

    assert get_fields(Crate(3)) == {"size": 3}
    assert get_fields(Place(1, 2)) == {"row": 1, "column": 2}
    assert get_fields(3) is None
