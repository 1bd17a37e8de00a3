"""How the check talks to a model that may be broken, and how it words what it found.

The paper takes P_Y, phi_Z and r as given functions. A user's methods are functions only if they
answer the same question the same way: `Questions` asks each one twice and survives whatever is
raised. `show` and `call` write values and questions as every message of this package does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from numbers import Integral, Real
from typing import Any, Final, TypeGuard

import attrs
import numpy as np

from pkd.model import ModelError

TOLERANCE: Final = 1e-9  # how far a sum of probabilities may be from 1
MOST_LISTED: Final = 2_000_000  # values that one answer may list
_WIDEST: Final = 80  # characters of a value that a message shows
_NAMES: Final = {
    "actions": ("x", "y"),
    "known_kernel": ("x", "y", "a"),
    "step": ("x", "y", "a"),
    "last_step": ("x", "y", "a"),
    "reward": ("x", "y", "a"),
    "truth": ("x", "y", "a"),
    "feature": ("x", "y", "a", "y_next"),
    "final": ("x", "y"),
    "share": ("z", "y"),
}


class _Failed:
    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final = _Failed()  # what a question that raised is answered with


@attrs.define
class Questions:
    """Asks the methods of a model, each question twice, and keeps what went wrong.

    An answer is a value, or FAILED. An answer that is meant as a list is read at once, so that what
    a generator raises is found here.
    """

    model: object  # whatever has the methods that are asked
    raised: list[str] = attrs.field(factory=list)
    changed: list[str] = attrs.field(factory=list)
    first_exception: Exception | None = None

    def ask(self, method: str, *arguments: object, listed: bool = False) -> Any:
        """The answer of `method` to `arguments`.

        listed: an iterable answer becomes a tuple; a mapping stays as it is.
        """
        try:
            answer = self._answer(method, arguments, listed)
            again = self._answer(method, arguments, listed)
        except Exception as exception:  # noqa: BLE001 - it is a finding
            self.first_exception = self.first_exception or exception
            self.raised.extend(_word_exception(call(method, *arguments), exception))
            return FAILED
        if not same(answer, again):
            self.changed.append(_word_difference(call(method, *arguments), answer, again))
        return answer

    def _answer(self, method: str, arguments: tuple[object, ...], listed: bool) -> Any:
        answer = getattr(self.model, method)(*arguments)
        if not listed or not isinstance(answer, Iterable) or isinstance(answer, Mapping):
            return answer
        found = tuple(islice(answer, MOST_LISTED + 1))
        if len(found) > MOST_LISTED:
            raise ModelError(f"{call(method, *arguments)} lists more than {MOST_LISTED:,} values")
        return found


def show(value: object) -> str:
    """repr, shortened in the middle."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail because a repr does
        text = object.__repr__(value)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST // 2]}...{text[-_WIDEST // 2 + 3 :]}"


def call(method: str, *arguments: object) -> str:
    """A question as the user would type it.

    >>> call("step", 0, "open", 1), call("outcomes", "demand")
    ("step(x=0, y='open', a=1)", "outcomes('demand')")
    """
    names = _NAMES.get(method, ())
    shown = [show(argument) for argument in arguments]
    if names:
        shown = [f"{name}={text}" for name, text in zip(names, shown, strict=True)]
    return f"{method}({', '.join(shown)})"


def state(x: object, y: object) -> str:
    """A state as messages write it."""
    return f"(x={show(x)}, y={show(y)})"


def hashable(value: object) -> bool:
    """Whether `value` can be a state, an action or a feature."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_number(value: object) -> TypeGuard[float]:
    """Whether `value` is a finite real number."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def is_whole(value: object, least: int) -> TypeGuard[int]:
    """Whether `value` is a whole number of at least `least`; True and False are not."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def is_mass(value: object) -> TypeGuard[float]:
    """Whether `value` can be a probability."""
    return is_number(value) and 0 <= value <= 1 + TOLERANCE


def is_distribution(masses: Iterable[Any]) -> bool:
    """Whether `masses` are probabilities that sum to 1 within the tolerance."""
    masses = tuple(masses)
    if set(map(type, masses)) == {float}:  # as nearly always: a large table has millions of them
        possible = min(masses) >= 0 and max(masses) <= 1 + TOLERANCE
    else:
        possible = all(map(is_mass, masses))
    return possible and abs(math.fsum(masses) - 1) <= TOLERANCE


def judge_masses(
    where: str, pairs: Iterable[tuple[object, Any]], noun: str, advice: str = ""
) -> list[str]:
    """What is wrong with a distribution, given as pairs (value, probability).

    The entries that are no probabilities, or else the sum.
    """
    pairs = tuple(pairs)
    if is_distribution(p for _, p in pairs):
        return []
    bad = [
        f"{where} gives {noun}{show(value)} the probability {show(p)}; expected a number in [0, 1]"
        + ("" if isinstance(p, Real) else advice)
        for value, p in pairs
        if not is_mass(p)
    ]
    return bad or [f"{where} sums to {math.fsum(p for _, p in pairs):.12g}, not 1"]


def same(first: Any, second: Any) -> bool:
    """Equality that also holds for nan, for arrays, and inside tuples and lists."""
    if first is second:
        return True
    if isinstance(first, float) and isinstance(second, float):
        return first == second or (math.isnan(first) and math.isnan(second))
    if isinstance(first, tuple | list) and type(first) is type(second):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, Iterator) and type(first) is type(second):
        return True  # each answer is a new iterator; what they yield is not compared
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second))
    try:
        return bool(first == second)
    except Exception:  # noqa: BLE001 - values that cannot be compared are not the same value
        return False


def _word_exception(question: str, exception: Exception) -> tuple[str, ...]:
    # A ModelError is already a finding in words of its own.
    return (
        exception.findings
        if isinstance(exception, ModelError)
        else (f"{question} raised {type(exception).__name__}: {exception}",)
    )


def _word_difference(question: str, answer: object, again: object) -> str:
    one, other = show(answer), show(again)
    if one == other:
        found = f"{question} answered {one} twice, and the two are not equal"
        return f"{found}; give its class __eq__ and __hash__"
    found = f"{question} answered {one} and then {other}"
    return f"{found}; the same question must get the same answer every time"
