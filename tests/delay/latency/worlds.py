"""A small world for prices of delay: weather that nobody changes, and an awning that is slow."""

from __future__ import annotations

from typing import Any

import attrs

import pkd

LEVELS = ("dry", "wet", "storm")
PAY = {"dry": (1.0, 0.2), "wet": (0.3, 0.6), "storm": (-2.0, 0.5)}  # awning in, awning out


class Weather(pkd.PartiallyKnownMDP):
    """x: the weather, a chain; y: whether the awning is out."""

    def __init__(self, horizon: int = 6) -> None:
        self.horizon = horizon

    def start(self) -> Any:
        return "dry", 0

    def actions(self, x: Any, y: Any) -> Any:
        return (0, 1)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, x)]

    def outcomes(self, z: Any) -> Any:
        return LEVELS

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return PAY[x][y] - 0.1 * (a != y)


@attrs.frozen(eq=False)
class WeatherProblem:
    """The weather with a law of the chain."""

    chain: Any

    def model(self) -> Weather:
        return Weather()

    def law(self) -> Any:
        return self.chain
