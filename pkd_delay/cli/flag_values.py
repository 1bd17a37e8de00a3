"""How the flags of delays are written: a number of steps, a law such as 0:.5,2:.5, a probability.

Whether a law is one is checked where it is used. These functions are the `type` of an argument.
"""

from __future__ import annotations

import argparse

from pkd import cli, expect

__all__ = ["read_pairs", "read_probability", "read_steps"]

read_steps = cli.as_number(expect.whole)
read_probability = cli.as_number(expect.fraction, closed=True)


def read_pairs(text: str, name: str, example: str) -> dict[int, float]:
    """{number: probability} from text such as -1:.2,0:.5,2:.3; `name` says what a number is."""
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
