"""Random models of which a part comes whatever is done, for `certified.py` and for a test."""

from __future__ import annotations

import numpy as np

import pkd

__all__ = ["Mixed"]


class Mixed(pkd.PartiallyKnownMDP):
    """A state whose next law depends on the action, and a weather that goes its own way."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.states, self.weathers, self.choices = (int(n) for n in rng.integers(2, 5, 3))
        self.horizon = int(rng.integers(3, 9))
        self.pay = rng.random((self.weathers, self.states, self.choices))

    def start(self) -> tuple[tuple[str, int], int]:
        return ("weather", 0), 0

    def actions(self, x: tuple[str, int], y: int) -> object:
        return range(self.choices) if x[0] == "weather" else pkd.CHANCE

    def step(self, x: tuple[str, int], y: int, a: int) -> list[tuple[float, int, object]]:
        if x[0] == "weather":  # then y is the state; it makes room for the weather
            return [(1.0, x[1], ("state", y, a))]
        return [(1.0, x[1], ("weather", y))]

    def outcomes(self, z: tuple[object, ...]) -> list[tuple[str, int]]:
        size = self.states if z[0] == "state" else self.weathers
        return [(str(z[0]), i) for i in range(size)]

    def reward(self, x: tuple[str, int], y: int, a: int) -> float:
        return float(self.pay[x[1], y, a]) if x[0] == "weather" else 0.0
