"""The price of lateness: what each tick of delay costs, and what it costs to ignore it.

A study has one line for each tick and, where a law of the delay is given, one for that law. Lines
are exact values, or certified bounds where the law of the model is known from samples only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import ModelError
from pkd_delay.blind import Blind, follow
from pkd_delay.delay_kernel import DelayKernel
from pkd_delay.lags import DelayChain, Lags
from pkd_delay.process import Delayed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Latency", "Line", "measure", "measure_certified", "shift_law", "strip"]

Cell = str | int | float
Counts = Mapping[Any, Mapping[Any, float]]
Interval = tuple[float, float]
MOST_STATES = 300_000  # of a model in which a policy is followed over sets of laws
SURELY, SURELY_NOT, UNKNOWN = "surely", "surely not", "unknown"


@attrs.frozen
class Line:
    """What one delay leaves."""

    tick: int | str  # a number of ticks, or the word for the law that was given
    value: float | None = None  # the exact optimum
    ignoring: float | None = None  # of an agent that ignores the lateness; None: not computed
    low: float | None = None  # certified bounds on the optimum
    high: float | None = None
    ignoring_bounds: Interval | None = None  # certified ones; None: not computed
    evidence: tuple[Any, ...] = ()  # the sets of laws behind the bounds

    @property
    def bounds(self) -> Interval:
        """Certified bounds on the optimum."""
        return self.low or 0.0, self.high or 0.0


@attrs.frozen
class Latency:
    """A study: the lines of ticks 0, 1, ..., and that of the law that was given.

    >>> lines = [Line(0, 10.0, 10.0), Line(1, 9.0, 7.0), Line(2, 8.5, 5.0)]
    >>> study = Latency("pump", "delay in ticks", lines, Line(0, 10.0, 10.0), sensor_price=0.7)
    >>> for sentence in study.sentences():
    ...     print(sentence)
    Without delay the optimum is 10. A delay of 2 costs 15.0% of it; ignoring it costs 50.0%.
    At 0.7 per tick a faster sensor pays down to a delay of 0: net gain 0.1.
    """

    name: str
    axis: str  # what a tick is
    lines: Sequence[Line]
    free: Line  # without any of the lateness that is studied
    given: Line | None = None
    sensor_price: float | None = None  # per episode and tick
    delta: float | None = None  # of certified bounds
    shifted: bool = False  # whether ticks are added to a law, and line 0 is that law itself

    @property
    def certified(self) -> bool:
        """Whether the lines are bounds."""
        return self.delta is not None

    def table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        """Headers and rows."""
        if self.certified:
            return self._bounds()
        headers = [self._first_header, "optimal value", "price of this tick", "lost in all"]
        headers.append("if ignored")
        rows: list[tuple[Cell, ...]] = []
        prices = [None if self.shifted else 0.0, *self.prices()]
        for line, price in zip(self.lines, prices, strict=True):
            rows.append((line.tick, *self._row(line, price)))
        if self.given is not None:
            rows.append((self.given.tick, *self._row(self.given, None)))
        if self.sensor_price is not None:
            headers.append("less the sensor")
            net: list[Cell] = [*self.net_values(), *([""] if self.given else [])]
            rows = [(*row, cell) for row, cell in zip(rows, net, strict=True)]
        return tuple(headers), rows

    @property
    def _first_header(self) -> str:
        return "ticks added" if self.shifted else "delay"

    def _row(self, line: Line, price: float | None) -> tuple[Cell, ...]:
        assert line.value is not None
        assert self.free.value is not None
        ignoring: Cell = "" if line.ignoring is None else line.ignoring
        lost = _subtract(self.free.value, line.value)
        return line.value, "" if price is None else price, lost, ignoring

    def _bounds(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        headers = [
            self._first_header, "optimum at least", "optimum at most", "price at least",
            "price at most", "if ignored, at least", "if ignored, at most",
        ]  # fmt: skip
        prices = [(0.0, 0.0), *self.price_bounds()]
        rows: list[tuple[Cell, ...]] = [
            (line.tick, *line.bounds, *price, *(line.ignoring_bounds or ("", "")))
            for line, price in zip(self.lines, prices, strict=True)
        ]
        if self.given is not None:
            ignoring = self.given.ignoring_bounds or ("", "")
            rows.append((self.given.tick, *self.given.bounds, "", "", *ignoring))
        if self.sensor_price is not None:
            headers.append("a faster sensor pays")
            pays = ["", *self.find_paying(), *([""] if self.given else [])]
            rows = [(*row, cell) for row, cell in zip(rows, pays, strict=True)]
        return tuple(headers), rows

    def price_bounds(self) -> list[Interval]:
        """Certified bounds on what each tick from the first on costs."""
        return [_find_price_bounds(before, line) for before, line in pairwise(self.lines)]

    def find_paying(self) -> list[str]:
        """Whether a sensor pays that takes away each tick from the first on, at its price."""
        price = self.sensor_price or 0.0
        return [
            SURELY if low > price else SURELY_NOT if high < price else UNKNOWN
            for low, high in self.price_bounds()
        ]

    def find_best(self) -> list[int]:
        """The delays that can be best, less the price of the sensor: no other is surely better."""
        price, slowest = self.sensor_price or 0.0, len(self.lines) - 1
        net = [
            (line.bounds[0] - price * (slowest - d), line.bounds[1] - price * (slowest - d))
            for d, line in enumerate(self.lines)
        ]
        most = max(low for low, _ in net)
        return [d for d, (_, high) in enumerate(net) if high >= most]

    def prices(self) -> list[float]:
        """What each tick from the first on costs: V_{d-1} - V_d."""
        values = [line.value or 0.0 for line in self.lines]
        return [_subtract(before, after) for before, after in pairwise(values)]

    def net_values(self) -> list[float]:
        """V_d less the price of a sensor that is D - d ticks faster than the slowest one."""
        price, slowest = self.sensor_price or 0.0, len(self.lines) - 1
        return [(line.value or 0.0) - price * (slowest - d) for d, line in enumerate(self.lines)]

    def sentences(self) -> list[str]:
        """What the numbers mean."""
        if self.certified:
            found = [self._say_certificate()]
            if self.sensor_price is not None:
                found.append(self._say_certified_sensor())
            return found
        found = [self._say_cost()]
        if self.sensor_price is not None:
            found.append(self._say_sensor())
        return found

    def _say_certificate(self) -> str:
        """All lines that stand on the same sets of laws hold together."""
        given = [] if self.given is None else [self.given]
        events = len({line.evidence for line in [*self.lines, *given]})
        delta = self.delta or 0.0
        together = max(1 - events * delta, 0.0)
        words = f"certified: all of this holds together with probability {together:.4g}"
        if events > 1:
            words += f", each optimum by itself with {1 - delta:.4g}"
        return f"{words}, if the model is right"

    def _say_certified_sensor(self) -> str:
        best, slowest = self.find_best(), len(self.lines) - 1
        at = f"At {self.sensor_price:.4g} per tick"
        if best == [slowest]:
            return f"{at} surely no faster sensor pays: the delay of {slowest} stays."
        if len(best) == 1:
            words = f"{at} a faster sensor surely pays down to a delay of {best[0]}"
            return f"{words}, and no further." if best[0] else f"{words}."
        words = f"{at} the best delay is one of {', '.join(map(str, best))}; the log leaves it open"
        return f"{words}." if slowest in best else f"{words}, but some faster sensor surely pays."

    def _say_cost(self) -> str:
        law = self.lines[0] if self.shifted else self.given
        line = law or self.lines[-1]
        subject, it = f"A delay of {line.tick} costs", "it"
        if law is not None:
            subject, it = "These delays cost", "them"
        free = self.free.value or 0.0
        words = f"Without delay the optimum is {free:.4g}. "
        words += f"{subject} {_share(free, line.value or 0.0)}" + (" of it" if free else "")
        if line.ignoring is not None:
            words += f"; ignoring {it} costs {_share(free, line.ignoring)}"
        return words + "."

    def _say_sensor(self) -> str:
        """Where a faster sensor stops paying."""
        price, net, slowest = self.sensor_price, self.net_values(), len(self.lines) - 1
        best = max(range(len(net)), key=lambda d: (net[d], d))
        gain = net[best] - net[-1]
        at = f"At {price:.4g} per tick"
        if best == slowest:
            return f"{at} no faster sensor pays: the delay of {slowest} stays."
        words = f"{at} a faster sensor pays down to a delay of {best}: net gain {gain:.4g}"
        if best == 0:
            return f"{words}."
        next_gain = (self.lines[best - 1].value or 0.0) - (self.lines[best].value or 0.0)
        return f"{words}; the next tick would gain {next_gain:.4g}."

    def draw(self) -> Figure:
        """Values above, the price of each tick below."""
        from pkd_delay.latency_picture import draw_study

        return draw_study(self)


def _find_price_bounds(before: Line, line: Line) -> tuple[float, float]:
    """A tick costs at least nothing: more lateness never helps."""
    (low, high), (low_after, high_after) = before.bounds, line.bounds
    return max(low - high_after, 0.0), max(high - low_after, 0.0)


def _share(free: float, value: float) -> str:
    """What is lost, as a part of the optimum without delay, or as a number where that is 0."""
    lost = _subtract(free, value)
    return f"{lost / abs(free):.1%}" if free else f"{lost:.4g}"


def _subtract(value: float, other: float) -> float:
    """value - other; rounding noise is 0."""
    return 0.0 if math.isclose(value, other, rel_tol=1e-12, abs_tol=1e-12) else value - other


def strip(problem: pkd.Problem) -> pkd.Problem:
    """The problem without delays of its own."""
    while isinstance(problem, Delayed):
        problem = problem.problem
    return problem


Make = Callable[[], pkd.Problem]  # one transformation of the problem


def measure(problem: pkd.Problem, ticks: Iterable[tuple[int | str, Make]]) -> list[Line]:
    """The exact optimum of each transformation, and what ignoring it leaves.

    `problem` is what an agent that ignores the lateness believes in.
    """
    base = strip(problem)
    plan = pkd.plan(pkd.compile(base.model()), base.law())
    lines = []
    for tick, make in ticks:
        late = make()
        model, law = late.model(), late.law()
        value = pkd.plan(model, law).value
        lines.append(Line(tick, value, follow(model, law, Blind(model, plan))))
    return lines


def measure_certified(
    problem: pkd.Problem, counts: Counts, ticks: Iterable[tuple[int | str, Make]], delta: float
) -> list[Line]:
    """Certified bounds on the optimum of each transformation, from counts of the features.

    Who ignores the lateness follows the best plan of the base for the frequencies in the counts.
    All laws that are not refuted are allowed for, so the bounds hold for this policy, too, although
    it was chosen by the same data.
    """
    base = strip(problem).model()
    plan = pkd.plan(pkd.compile(base), pkd.fit_law(base, counts))
    lines = []
    for tick, make in ticks:
        model = make().model()
        compiled = pkd.compile(model)
        few = compiled.n_states <= MOST_STATES
        policy = Blind(model, plan) if few else None
        found = pkd.certify(compiled, counts, policy=policy, delta=delta)
        own = (found.low, found.high) if few else None
        sets = tuple((e.feature, e.radius) for e in found.evidence)
        lines.append(
            Line(
                tick,
                low=found.optimal_low,
                high=found.optimal_high,
                ignoring_bounds=own,
                evidence=tuple(sorted(sets, key=repr)),
            )
        )
    return lines


def shift_law(law: DelayKernel, max_delay: int, ticks: int) -> DelayKernel:
    """The law of a delay that is `ticks` longer: D' = D + ticks from the first state on.

    >>> shift_law(Lags({0: 0.5, 2: 0.5}), 2, 1).probabilities
    (0.0, 0.5, 0.0, 0.5)
    """
    if isinstance(law, Lags):
        return Lags((0.0,) * ticks + law.probabilities)
    if ticks < 0:
        raise ModelError(f"ticks is {ticks}; expected a whole number of at least 0")
    size = max_delay + ticks + 1
    rows = []
    for before in range(size):
        row = law.row(max(before - ticks, 0), max_delay)
        rows.append([0.0] * ticks + row)
    return DelayChain(rows)
