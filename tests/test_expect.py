"""What arguments must be: NumPy's numbers are numbers, truth values and text are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pkd.expect import fraction, number, one_of, require, whole


@pytest.mark.parametrize("value", [1, np.int64(1), np.uint8(7)])
def test_whole_numbers_of_python_and_numpy_are_accepted(value: object) -> None:
    assert whole("n", value, least=1) == []


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, math.nan, 0, -1])
def test_anything_else_is_no_whole_number_of_at_least_one(value: object) -> None:
    assert whole("n", value, least=1) == [f"n is {value!r}; expected a whole number >= 1"]


def test_a_range_names_both_ends() -> None:
    assert whole("n", 5, 1, 4) == ["n is 5; expected a whole number from 1 to 4"]
    assert whole("n", 4, 1, 4) == []


@pytest.mark.parametrize("value", [math.nan, math.inf, True, "0.5", None, -0.1])
def test_numbers_are_finite_and_large_enough(value: object) -> None:
    assert number("c", value) == [f"c is {value!r}; expected a number >= 0"]
    assert fraction("p", value, closed=True) == [f"p is {value!r}; expected a number in [0, 1]"]


def test_any_finite_number() -> None:
    assert number("r", -3.5, -math.inf) == []
    assert number("r", math.inf, -math.inf) == ["r is inf; expected a finite number"]


def test_the_ends_of_a_fraction_are_out_unless_it_is_closed() -> None:
    assert [bool(fraction("p", p)) for p in (0, 0.5, np.float32(0.5), 1)] == [1, 0, 0, 1]
    assert not fraction("p", 0, closed=True)


def test_one_of_compares_types_too() -> None:
    assert one_of("n", True, [1, 2])
    assert not one_of("n", 2, [1, 2])


def test_no_finding_raises_nothing() -> None:
    require([], [])
