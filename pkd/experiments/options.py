"""What the agents share: random numbers of their own, and one error for all bad options."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pkd.model import ModelError

__all__ = ["check_options", "make_rng"]

STREAM = 2  # of the seed: a simulator draws from the streams 0 and 1


def make_rng(seed: int) -> np.random.Generator:
    """The random numbers of an agent: another stream than those of the world it plays in.

    >>> make_rng(3).random() == make_rng(3).random()
    True
    """
    sequence = np.random.SeedSequence(entropy=int(seed), spawn_key=(STREAM,))
    return np.random.Generator(np.random.PCG64(sequence))


def check_options(
    name: str,
    *numbers: tuple[str, Any, Callable[[float], bool], str],
    words: Iterable[tuple[str, Any, tuple[str, ...]]] = (),
) -> None:
    """ModelError that names every option of an agent that is not what it should be.

    numbers: (option, value, whether a number is good, what is expected). words: (option, value,
    the words that it may be).

    >>> check_options("Mine", ("rate", 2, lambda rate: rate <= 1, "a number up to 1"))
    Traceback (most recent call last):
        ...
    pkd.model.ModelError: Mine(rate=2): expected a number up to 1
    """
    found = []
    for option, value, is_good, expected in numbers:
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not is_good(value):
            found.append(f"{name}({option}={value!r}): expected {expected}")
    for option, value, allowed in words:
        if value not in allowed:
            expected = " or ".join(f'"{word}"' for word in allowed)
            found.append(f"{name}({option}={value!r}): expected {expected}")
    if found:
        raise ModelError(found)
