"""An autoscaler: known rules for replicas, an unknown chain of loads, and metrics that arrive late.

Everybody who scales on metrics has this problem: what is seen is a few ticks old, and a new replica
needs time to start. It has both halves of the framework. The book-keeping of replicas is known (y),
the load is not (x), and `Delayed` shows both late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pkd import ModelError, PartiallyKnownMDP
from pkd_delay.inter_arrival import InterArrivalOf
from pkd_delay.process import Delayed, DelayLawKind

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["Autoscaler", "AutoscalerProblem", "autoscaler"]

Replicas = tuple[int, tuple[int, ...]]  # (ready, those that will be ready in 1, 2, ... ticks)

LOADS = {
    "idle": 1.0,
    "normal": 2.0,
    "busy": 3.0,
    "peak": 4.0,
}  # how many replicas each level keeps busy
CHAIN = {
    "idle": {"idle": 0.75, "normal": 0.2, "peak": 0.05},
    "normal": {"idle": 0.15, "normal": 0.6, "busy": 0.25},
    "busy": {"normal": 0.2, "busy": 0.5, "peak": 0.3},
    "peak": {"idle": 0.1, "busy": 0.3, "peak": 0.6},
}


@attrs.frozen(eq=False, slots=False)
class Autoscaler(PartiallyKnownMDP):
    """Start or stop one replica per tick. x: level of the load, y: (ready replicas, starting ones).

        r = min(load, ready) - price * (ready + starting)
        z = the level: the load does not depend on what is done

    A replica that is started serves after `startup` ticks; one that is stopped is gone at once; at
    least one stays.
    """

    horizon: int
    loads: Mapping[str, float]
    max_replicas: int
    startup: int
    price: float

    def start(self) -> tuple[str, Replicas]:
        return next(iter(self.loads)), (1, (0,) * self.startup)

    def actions(self, x: str, y: Replicas) -> Sequence[int]:
        return (0, 1, -1)  # ties go to the first: better wait

    def step(self, x: str, y: Replicas, a: int) -> list[Branch]:
        ready, starting = y
        started = int(a > 0 and ready + sum(starting) < self.max_replicas)
        stopped = int(a < 0 and ready > 1)
        arriving = (*starting, started)
        return [(1.0, (ready - stopped + arriving[0], arriving[1:]), x)]

    def outcomes(self, z: str) -> Iterable[str]:
        return tuple(self.loads)

    def reward(self, x: str, y: Replicas, a: int) -> float:
        ready, starting = y
        return min(self.loads[x], float(ready)) - self.price * (ready + sum(starting))

    def y_label(self, y: Replicas) -> str:
        return f"{y[0]} ready, {sum(y[1])} starting"

    def action_label(self, a: int) -> str:
        return {-1: "stop one", 0: "wait", 1: "start one"}[a]


@attrs.frozen(eq=False)
class AutoscalerProblem:
    """An `Autoscaler` with the true load chain, without delay."""

    autoscaler: Autoscaler
    chain: Mapping[str, Mapping[str, float]]

    def model(self) -> Autoscaler:
        return self.autoscaler

    def law(self) -> Mapping[Any, Mapping[Any, float]]:
        return self.chain


def autoscaler(
    horizon: int = 24,
    max_replicas: int = 4,
    startup: int = 1,
    price: float = 0.45,
    inter_arrival: InterArrivalOf | None = None,
    max_delay: int = 3,
    delay_law: DelayLawKind = "known",
    loads: Mapping[str, float] = LOADS,
    chain: Mapping[str, Mapping[str, float]] = CHAIN,
) -> Delayed:
    """The autoscaler with metrics that are up to `max_delay` ticks late.

    By default the delay wanders between 0 and 3 ticks, mostly 1 to 3: Delta is -1, 0, 1 with .2,
    .4, .4. The delay depends on nothing.
    """
    found = [
        f"{name} is {value!r}; expected {wanted}"
        for name, value, good, wanted in (
            ("horizon", horizon, horizon >= 1, "at least 1"),
            ("max_replicas", max_replicas, max_replicas >= 1, "at least 1"),
            ("startup", startup, startup >= 0, "at least 0"),
        )
        if not good
    ]
    found += [
        f"chain has no law for the load {level!r}; expected {{next load: probability}}"
        for level in loads
        if level not in chain
    ]
    if found:
        raise ModelError(found)
    problem = AutoscalerProblem(Autoscaler(horizon, loads, max_replicas, startup, price), chain)
    law = {-1: 0.2, 0: 0.4, 1: 0.4} if inter_arrival is None else inter_arrival
    return Delayed(problem, law, max_delay, delay_law)
