"""What an argument must be, said in one way everywhere: found, expected, and all findings at once.

Each function returns the findings of one argument: none, or one sentence. `require` raises them
together as one ModelError; `field` makes a validator of attrs from one of them, and `if_given` lets
None pass.

    require(whole("episodes", episodes, least=1), failure("delta", delta))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from pkd.model import ModelError

__all__ = [
    "failure", "field", "flag", "fraction", "function", "if_given", "instance", "is_stream", "key",
    "number", "one_of", "pathname", "require", "seed", "show", "texts", "whole", "wholes",
]  # fmt: skip

LEAST_DELTA = 1e-100  # shares of a smaller one could not be told from 0
LARGEST = 1e300  # of a whole number: it becomes a float
LONGEST = 80  # letters of a value in a message
Findings = list[str]


def whole(name: str, value: Any, least: int = 0, most: int | None = None) -> Findings:
    """A whole number of at least `least`, and at most `most` if that is given. True is none.

    >>> whole("episodes", 0, least=1), whole("horizon", 12)
    (['episodes is 0; expected a whole number >= 1'], [])
    """
    fits = not isinstance(value, bool) and isinstance(value, Integral)
    if fits and least <= value <= (LARGEST if most is None else most):
        return []
    limits = f">= {least}" if most is None else f"from {least} to {most}"
    if most is None and fits and value > LARGEST:
        limits = f"from {least} to {LARGEST:g}"
    return [f"{name} is {show(value)}; expected a whole number {limits}"]


def wholes(name: str, value: Any, least: int, most: int, *, row: bool = False) -> Findings:
    """A whole number within limits, or an array or a sequence of such numbers; row: only those.

    >>> wholes("at", [1, 5], 1, 9), wholes("at", 12, 1, 9)
    ([], ['at is 12; expected whole numbers from 1 to 9'])
    """
    import numpy as np

    try:
        found = np.asarray(value)
    except ValueError:  # lists of different lengths
        found = np.zeros(())
    fits = found.dtype.kind in "iu" and found.ndim <= 1 and found.ndim >= row and found.size > 0
    if fits and ((found >= least) & (found <= most)).all():
        return []
    return [f"{name} is {show(value)}; expected whole numbers from {least} to {most}"]


def seed(name: str, value: Any) -> Findings:
    """A whole number of at least 0, of any size.

    >>> seed("seed", 0.5)
    ['seed is 0.5; expected a whole number >= 0']
    """
    findings = whole(name, value)
    if findings and hasattr(value, "integers"):
        return [f"{findings[0]}; of a generator, take int({name}.integers(2**63))"]
    return findings


def number(name: str, value: Any, least: float = 0.0, *, above: bool = False) -> Findings:
    """A finite number of at least `least`, or above it.

    >>> number("tick", 0.0, above=True)
    ['tick is 0.0; expected a number > 0']
    """
    if _is_finite(value) and (value > least if above else value >= least):
        return []
    limits = "" if least == -math.inf else f" {'>' if above else '>='} {least:g}"
    finite = "" if limits else "finite "
    return [f"{name} is {show(value)}; expected a {finite}number{limits}"]


def fraction(name: str, value: Any, *, closed: bool = False) -> Findings:
    """A number between 0 and 1; closed: 0 and 1 are allowed.

    >>> fraction("delta", 1.0), fraction("delta", 1.0, closed=True)
    (['delta is 1.0; expected a number between 0 and 1'], [])
    """
    if _is_finite(value) and (0 <= value <= 1 if closed else 0 < value < 1):
        return []
    limits = "in [0, 1]" if closed else "between 0 and 1"
    return [f"{name} is {show(value)}; expected a number {limits}"]


def failure(name: str, value: Any) -> Findings:
    """A probability with which a statement may fail, such as delta: at least 1e-100, below 1.

    >>> failure("delta", 1e-300)
    ['delta is 1e-300; expected a number between 0 and 1, at least 1e-100']
    """
    findings = fraction(name, value)
    if not findings and value < LEAST_DELTA:
        return [f"{name} is {value!r}; expected a number between 0 and 1, at least {LEAST_DELTA:g}"]
    return findings


def one_of(name: str, value: Any, choices: Iterable[Any]) -> Findings:
    """One of a few values.

    >>> one_of("form", "html", ["plain", "latex"])
    ["form is 'html'; expected one of plain, latex"]
    """
    choices = list(choices)
    if any(
        value is choice or (type(value) is type(choice) and value == choice) for choice in choices
    ):
        return []
    return [f"{name} is {show(value)}; expected one of {', '.join(map(str, choices))}"]


def instance(name: str, value: Any, kinds: type | tuple[type, ...], wanted: str) -> Findings:
    """A value of some classes; `wanted` says which in words.

    >>> instance("counts", 5, dict, "a mapping {z: {x': n}}")
    ["counts is 5; expected a mapping {z: {x': n}}"]
    """
    return [] if isinstance(value, kinds) else [f"{name} is {show(value)}; expected {wanted}"]


def flag(name: str, value: Any) -> Findings:
    """True or False; no other value stands for one of them.

    >>> flag("sparse", "no")
    ["sparse is 'no'; expected True or False"]
    """
    return instance(name, value, bool, "True or False")


def pathname(name: str, value: Any) -> Findings:
    """The path of a file or a folder.

    >>> pathname("path", 3)
    ['path is 3; expected the path of a file or folder, as text or pathlib.Path']
    """
    wanted = "the path of a file or folder, as text or pathlib.Path"
    findings = instance(name, value, (str, Path), wanted)
    if not findings and "\0" in str(value):
        return [f"{name} is {value!r}; expected {wanted}, without a zero byte"]
    return findings


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe or a device, such as /dev/stdout: a file must not take its place."""
    in_devices = path.absolute().parent in (Path("/dev"), Path("/dev/fd"))
    return path.exists() and not path.is_dir() and (in_devices or not path.is_file())


def texts(name: str, value: Any) -> Findings:
    """A text, or a list of texts.

    >>> texts("models", ["coin", 3])
    ["models is ['coin', 3]; expected a text, or a list of texts"]
    """
    listed = value if isinstance(value, list | tuple | set) else [value]
    if all(isinstance(one, str) for one in listed):
        return []
    return [f"{name} is {show(value)}; expected a text, or a list of texts"]


def function(name: str, value: Any, form: str) -> Findings:
    """A function; `form` says of what.

    >>> function("instead", 3, "(x, y, a) -> action")
    ['instead is 3; expected a function (x, y, a) -> action']
    """
    return [] if callable(value) else [f"{name} is {show(value)}; expected a function {form}"]


def key(name: str, value: Any) -> Findings:
    """A value that can be found again in a table.

    >>> key("x", [1, 2])
    ['x is [1, 2]; expected a hashable value, such as a tuple']
    """
    try:
        hash(value)
    except TypeError:
        return [f"{name} is {show(value)}; expected a hashable value, such as a tuple"]
    return []


def if_given(check: Callable[..., Findings], name: str, value: Any, *limits: Any) -> Findings:
    """What `check` finds, and nothing for None.

    >>> if_given(whole, "episodes", None, 1), if_given(whole, "episodes", 0, 1)
    ([], ['episodes is 0; expected a whole number >= 1'])
    """
    return [] if value is None else check(name, value, *limits)


def show(value: Any) -> str:
    """A value in one line: what is long or has several lines is called by its class.

    >>> show("a"), show([0] * 99)
    ("'a'", 'a list')
    """
    text = repr(value)
    if len(text) <= LONGEST and "\n" not in text:
        return text
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def require(*findings: Iterable[str]) -> None:
    """Raises a ModelError that names all findings, if there are any.

    >>> require(whole("episodes", 2.5, least=1), fraction("delta", 2))
    Traceback (most recent call last):
    pkd.model.ModelError: 2 findings
      - episodes is 2.5; expected a whole number >= 1
      - delta is 2; expected a number between 0 and 1
    """
    found = [finding for of_one in findings for finding in of_one]
    if found:
        raise ModelError(found)


def field(check: Callable[..., Findings], **limits: Any) -> Callable[[Any, Any, Any], None]:
    """A validator for a field of an attrs class; the finding names the class, too.

    >>> import attrs
    >>> @attrs.frozen
    ... class Bet:
    ...     stake: int = attrs.field(validator=field(whole, least=1))
    >>> Bet(0)
    Traceback (most recent call last):
    pkd.model.ModelError: Bet: stake is 0; expected a whole number >= 1
    """

    def validate(instance: Any, attribute: Any, value: Any) -> None:
        require(check(f"{type(instance).__name__}: {attribute.name}", value, **limits))

    return validate


def _is_finite(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False
