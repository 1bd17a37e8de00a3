"""An autoscaler: known rules for replicas, an unknown chain of loads, and metrics that arrive late.

Everybody who scales on metrics has this problem: what is seen is a few ticks old, and a new replica
needs time to start. It has both halves of the framework. The book-keeping of replicas is known (y),
the load is not (x), and `Delayed` shows both late.

`spot_autoscaler` adds a cheap replica that may be reclaimed at any tick, nobody knows how often.
Only who runs one learns that: there exploration matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

import pkd
from pkd import CHANCE, PartiallyKnownMDP
from pkd.expect import fraction, require, whole
from pkd_delay.delayed import Delayed, DelayLawKind
from pkd_delay.laws.kernel import OneOrMany

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pkd.model import Branch, Law
    from pkd_delay.augmented import Augmented

__all__ = [
    "Autoscaler",
    "AutoscalerProblem",
    "Fleet",
    "Serving",
    "SpotAutoscaler",
    "autoscaler",
    "spot_autoscaler",
]

Loads = Mapping[str, float]  # a number for each level
Replicas = tuple[int, tuple[int, ...]]  # (ready, those that will be ready in 1, 2, ... ticks)

# How many replicas each level keeps busy.
LOADS = {"idle": 1.0, "normal": 2.0, "busy": 3.0, "peak": 4.0}
CHAIN = {
    "idle": {"idle": 0.75, "normal": 0.2, "peak": 0.05},
    "normal": {"idle": 0.15, "normal": 0.6, "busy": 0.25},
    "busy": {"normal": 0.2, "busy": 0.5, "peak": 0.3},
    "peak": {"idle": 0.1, "busy": 0.3, "peak": 0.6},
}
DELAYS = {-1: 0.2, 0: 0.4, 1: 0.4}  # Delta: the delay wanders
SPOT: Final = "spot"  # the feature of a tick in which a spot replica runs
KEPT, RECLAIMED = "kept", "reclaimed"  # what follows it


@attrs.frozen(eq=False, slots=False)
class Autoscaler(PartiallyKnownMDP):
    """Start or stop one replica per tick. x: level of the load, y: (ready replicas, starting ones).

        r = min(load, ready) - price * (ready + starting)
        z = the level: the load does not depend on what is done

    A replica that is started serves after `startup` ticks; one that is stopped is gone at once; at
    least one stays.
    """

    horizon: int
    loads: Loads
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
    chain: Law

    def model(self) -> Autoscaler:
        return self.autoscaler

    def law(self) -> Law:
        return self.chain

    def late_picture(self, model: Augmented, plan: pkd.Plan) -> Axes:
        """The policy under delay: a table for each age of the metrics."""
        from pkd_delay.models.autoscaler_picture import draw_policy

        return draw_policy(model, plan)


def autoscaler(
    horizon: int = 24,
    max_replicas: int = 4,
    startup: int = 1,
    price: float = 0.45,
    inter_arrival: OneOrMany | None = None,
    max_delay: int = 3,
    delay_law: DelayLawKind = "known",
    loads: Loads = LOADS,
    chain: Mapping[str, Loads] = CHAIN,
    log: str | None = None,
) -> Delayed:
    """The autoscaler with metrics that are up to `max_delay` ticks late.

    By default the delay wanders between 0 and 3 ticks, mostly 1 to 3: Delta is -1, 0, 1 with .2,
    .4, .4. The delay depends on nothing. `log`: a CSV file of (z, x') = (load, next load) in place
    of the chain.
    """
    require(_find_faults(horizon, max_replicas, loads, chain), whole("startup", startup))
    model = Autoscaler(horizon, loads, max_replicas, startup, price)
    loaded = None if log is None else pkd.fit_law(model, log)
    problem = AutoscalerProblem(model, chain if loaded is None else loaded)
    remarks = () if loaded is None else loaded.remarks
    law = DELAYS if inter_arrival is None else inter_arrival
    return Delayed(problem, law, max_delay, delay_law, remarks=remarks)


class Fleet(NamedTuple):
    """The y of a `SpotAutoscaler` at a decision."""

    ready: int  # on-demand replicas
    spot: bool  # whether the spot replica runs


class Serving(NamedTuple):
    """The y of a `SpotAutoscaler` after a decision, while it is open whether spot is kept."""

    load: str
    ready: int
    then: Fleet  # of the next tick, if the spot replica is kept


@attrs.frozen(eq=False, slots=False)
class SpotAutoscaler(PartiallyKnownMDP):
    """On-demand replicas, and one large spot replica that may be reclaimed at every tick.

        r = min(load, ready + spot_capacity [spot kept]) - price * ready - spot_price [spot runs]
        z = the level of the load; z = "spot" in every tick in which the spot replica runs

    x: level of the load; "kept" or "reclaimed" in the CHANCE state of a tick with spot, which pays
    what is served. A replica that is started serves from the next tick on; one that is stopped is
    gone then. A reclaimed one serves nothing in its last tick. At least one on-demand replica
    stays. "stop one" stops an on-demand replica first, because it costs more per load served.
    """

    horizon: int
    loads: Loads
    max_replicas: int  # on-demand ones
    price: float
    spot_capacity: float
    spot_price: float

    def start(self) -> tuple[str, Fleet]:
        return next(iter(self.loads)), Fleet(1, spot=False)

    def actions(self, x: str, y: Fleet | Serving) -> Any:
        if isinstance(y, Serving):
            return CHANCE
        return ("wait", "start one", "start spot", "stop one")  # ties go to the first

    def step(self, x: str, y: Fleet | Serving, a: str | None) -> list[Branch]:
        if isinstance(y, Serving):
            then = y.then if x == KEPT else Fleet(y.then.ready, spot=False)
            return [(1.0, then, y.load)]
        then = self._change(y, a)
        return [(1.0, Serving(x, y.ready, then), SPOT) if y.spot else (1.0, then, x)]

    def _change(self, fleet: Fleet, a: str | None) -> Fleet:
        ready, spot = fleet
        if a == "start one":
            return Fleet(min(ready + 1, self.max_replicas), spot)
        if a == "start spot":
            return Fleet(ready, spot=True)
        if a == "stop one":
            return Fleet(ready - 1, spot) if ready > 1 else Fleet(ready, spot=False)
        return fleet

    def outcomes(self, z: str) -> Iterable[str]:
        return (KEPT, RECLAIMED) if z == SPOT else tuple(self.loads)

    def reward(self, x: str, y: Fleet | Serving, a: str | None) -> float:
        if isinstance(y, Serving):
            return min(self.loads[y.load], y.ready + self.spot_capacity * (x == KEPT))
        if y.spot:
            return -self.price * y.ready - self.spot_price
        return min(self.loads[x], float(y.ready)) - self.price * y.ready

    def y_label(self, y: Fleet | Serving) -> str:
        if isinstance(y, Serving):
            return f"{y.load}, {y.ready} ready and spot"
        return f"{y.ready} ready" + (" and spot" if y.spot else "")


def spot_autoscaler(
    horizon: int = 24,
    max_replicas: int = 3,
    price: float = 0.5,
    spot_capacity: float = 2.0,
    spot_price: float = 0.7,
    kept: float = 0.95,
    inter_arrival: OneOrMany | None = None,
    max_delay: int = 3,
    delay_law: DelayLawKind = "known",
    loads: Loads = LOADS,
    chain: Mapping[str, Loads] = CHAIN,
) -> Delayed:
    """The autoscaler with a spot replica, and with metrics that are up to `max_delay` ticks late.

    kept: the true probability that the spot replica survives a tick. The default spot replica
    does the work of two on-demand replicas for 30% less. If it were reclaimed at every second tick,
    it would not be worth its price. So a learner that believes this until it has seen better never
    starts one, and never sees better.

    >>> from pkd_delay.planning import plan
    >>> round(plan(spot_autoscaler()).value, 3), round(plan(spot_autoscaler(kept=0.5)).value, 3)
    (20.872, 18.533)
    """
    found = _find_faults(horizon, max_replicas, loads, chain)
    if SPOT in loads:
        found.append(f"a load is called {SPOT!r}; expected another name: the spot law has this one")
    require(found, fraction("kept", kept, closed=True))
    model = SpotAutoscaler(horizon, loads, max_replicas, price, spot_capacity, spot_price)
    truth = {**chain, SPOT: {KEPT: kept, RECLAIMED: 1.0 - kept}}
    law = DELAYS if inter_arrival is None else inter_arrival
    return Delayed((model, truth), law, max_delay, delay_law)


def _find_faults(
    horizon: int, max_replicas: int, loads: Loads, chain: Mapping[str, Any]
) -> list[str]:
    """What is wrong with the options that both autoscalers have."""
    return [
        *whole("horizon", horizon, 1),
        *whole("max_replicas", max_replicas, 1),
        *(
            f"chain has no law for the load {level!r}; expected {{next load: probability}}"
            for level in loads
            if level not in chain
        ),
    ]
