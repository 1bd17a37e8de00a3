"""A small good model, in both forms, and tools that break it in one place, for `check_model`.

A kiosk orders 0 or 1 against a demand whose law is unknown. x is the demand just seen (None where
an order is placed), y the stock; with probability 0.1 the kiosk closes for good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pkd.model import CHANCE, END, PartiallyKnownMDP, sure

LAW = {"demand": {0: 0.25, 1: 0.75}}
# The first state with one of its actions. Every model below differs from the good one only here.
FIRST = (None, 1, 0)


class Kiosk(PartiallyKnownMDP):
    """The kiosk with `step`."""

    horizon = 2

    def start(self) -> Any:
        return (None, 1)

    def actions(self, x: Any, y: Any) -> Any:
        if y == "closed":
            return END
        return [0, 1] if x is None else CHANCE

    def step(self, x: Any, y: Any, a: Any) -> Any:
        if x is None:
            return [(0.9, min(y + a, 2), "demand"), (0.1, "closed", sure(None))]
        return [(1.0, max(y - x, 0), sure(None))]

    def outcomes(self, z: Any) -> Any:
        return [0, 1]

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return -a if x is None else 2 * min(x, y)

    def final(self, x: Any, y: Any) -> Any:
        return 0.0 if y == "closed" else 0.5 * y


class KernelKiosk(Kiosk):
    """The kiosk with `known_kernel` and `feature`."""

    step = PartiallyKnownMDP.step

    def known_kernel(self, x: Any, y: Any, a: Any) -> Any:
        return [(p, y_next) for p, y_next, _ in Kiosk.step(self, x, y, a)]

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> Any:
        return "demand" if x is None and y_next != "closed" else sure(None)


def answering(
    method: str, arguments: tuple[Any, ...], answer: Any, base: type[Kiosk] = Kiosk
) -> PartiallyKnownMDP:
    """A kiosk that gives `answer` to one question.

    If `answer` is an exception it is raised; if it is a function it is called without arguments.
    """

    def patched(self: Any, *asked: Any) -> Any:
        if asked != arguments:
            return getattr(base, method)(self, *asked)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    return having(base, **{method: patched})


def having(base: type[Kiosk] = Kiosk, **attributes: Any) -> PartiallyKnownMDP:
    """A kiosk with other class attributes."""
    return type(base.__name__, (base,), attributes)()


def truth_of(
    model: PartiallyKnownMDP, law: Any
) -> Callable[[Any, Any, Any], dict[tuple[Any, Any], float]]:
    """P(x', y' | x, y, a) = sum over branches of P_Y(y') P_eff(z)(x')."""

    def truth(x: Any, y: Any, a: Any) -> dict[tuple[Any, Any], float]:
        joint: dict[tuple[Any, Any], float] = {}
        for p, y_next, z in model.step(x, y, a):
            for x_next, q in (
                law[z] if p > 0 and z in law else dict(getattr(z, "law", ()))
            ).items():
                joint[x_next, y_next] = joint.get((x_next, y_next), 0.0) + p * q
        return joint

    return truth


def read_table(text: str) -> list[tuple[str, list[str]]]:
    """(expression, findings) of each entry of a table.

    An expression stands at the margin, each of its findings below it by four spaces, and what goes
    on by eight.
    """
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if not line.startswith(" "):
            found += [] if line.startswith("#") else [(line, [])]
        elif line.startswith(8 * " "):
            found[-1][1][-1] += f" {line.strip()}"
        else:
            found[-1][1].append(line.strip())
    return found
