"""How the flags of delays are written: a number of steps, a law such as 0:.5,2:.5, a probability.

Whether a law is one is checked where it is used. These functions are the `type` of an argument.
"""

from __future__ import annotations

import argparse

__all__ = ["read_pairs", "read_probability", "read_steps"]


def read_steps(text: str) -> int:
    """A whole number from 0 on.

    >>> read_steps("3")
    3
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of steps, found {text!r}")
    return int(text)


def read_pairs(text: str, name: str, example: str) -> dict[int, float]:
    """{number: probability} from text such as -1:.2,0:.5,2:.3; `name` says what a number is.

    >>> read_pairs("-1:.2,2:.8", "change", "-1:.2,0:.5,2:.3")
    {-1: 0.2, 2: 0.8}
    """
    law: dict[int, float] = {}
    for part in text.split(","):
        number, _, p = part.partition(":")
        try:
            key, value = int(number), float(p)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"expected {name.upper()}:PROBABILITY,..., such as {example}, found {part!r}"
            ) from None
        if key in law:
            raise argparse.ArgumentTypeError(f"the {name} {key} occurs twice")
        law[key] = value
    return law


def read_probability(text: str) -> float:
    """A number from 0 to 1.

    >>> read_probability(".25")
    0.25
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, found {text!r}")
    return number
