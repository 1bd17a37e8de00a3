"""The price of lateness: what each tick of delay costs, and what it costs to ignore it.

A study has one line for each tick and, where a law of the delay is given, one for that law. Lines
are exact values, or certified bounds where the law of the model is known from samples only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

import pkd
from pkd.expect import require, whole
from pkd.explore import TooLargeError
from pkd_delay.delayed import Delayed
from pkd_delay.latency.difference import PaidProblem, draw_laws, fit_payments
from pkd_delay.laws.kernel import DelayChain, DelayKernel, Lags
from pkd_delay.long.plan import plan_long
from pkd_delay.transforms.blind import Blind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DelayCost", "Latency", "measure", "measure_certified", "shift_law", "strip"]

Cell = str | int | float
Counts = Mapping[Any, Mapping[Any, float]]
Limits = tuple[float, float]
# States of a model in which a policy is followed, under one law and over sets of laws.
MOST_FOLLOWED, MOST_STATES = 2_000_000, 300_000
MOST_EXACT = 3_000  # states of a model that is planned exactly where bounds would do
SHOWN_TICKS = 8  # whose prices are said in words
SURELY, SURELY_NOT, UNKNOWN = "surely", "surely not", "unknown"


@attrs.frozen
class DelayCost:
    """What one delay leaves."""

    tick: int | str  # a number of ticks, or the word for the law that was given
    value: float | None = None  # the exact optimum
    ignoring: float | None = None  # of an agent that ignores the lateness; None: not computed
    low: float | None = None  # certified bounds on the optimum
    high: float | None = None
    ignoring_bounds: Limits | None = None  # certified ones; None: not computed
    evidence: tuple[Any, ...] = ()  # the sets of laws behind the bounds
    price: Limits | None = None  # certified bounds on the price of this tick, under one law
    drawn: Limits | None = None  # the same for 95% of posterior draws: no guarantee

    @property
    def bounds(self) -> Limits:
        """Certified bounds on the optimum."""
        return self.low or 0.0, self.high or 0.0


@attrs.frozen
class Latency:
    """A study: the lines of ticks 0, 1, ..., and that of the law that was given.

    >>> lines = [DelayCost(0, 10.0, 10.0), DelayCost(1, 9.0, 7.0), DelayCost(2, 8.5, 5.0)]
    >>> study = Latency("pump", "delay in ticks", lines, DelayCost(0, 10.0, 10.0), sensor_price=0.7)
    >>> for sentence in study.sentences():
    ...     print(sentence)
    Without delay the optimum is 10. A delay of 2 costs 15.0% of it; ignoring it costs 50.0%.
    At 0.7 per tick a faster sensor pays down to a delay of 0: net gain 0.1.
    """

    name: str
    axis: str  # what a tick is
    lines: Sequence[DelayCost]
    free: DelayCost  # without any of the lateness that is studied
    given: DelayCost | None = None
    sensor_price: float | None = None  # per episode and tick
    delta: float | None = None  # of certified bounds
    planned: bool = False  # whether bounds are those of a planner that knows the law
    refuted: str = ""  # what speaks against the assumptions in the log; nothing is certified then
    shifted: bool = False  # whether ticks are added to a law, and line 0 is that law itself

    @property
    def certified(self) -> bool:
        """Whether the lines are bounds."""
        return self.delta is not None

    def table(self) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
        """Headers and rows."""
        headers = ["ticks added" if self.shifted else "delay"]
        prices: list[Any]
        sensor: list[Any]
        make: Any
        if self.certified:
            headers += ["optimum at least", "optimum at most", "price at least", "price at most"]
            headers += ["drawn from", "to", "if ignored, at least", "if ignored, at most"]
            prices, make = [(0.0, 0.0), *self.price_bounds(), ("", "")], self._list_bounds
            last, sensor = "a faster sensor pays", ["", *self.find_paying(), ""]
        else:
            headers += ["optimal value", "price of this tick", "total loss", "if ignored"]
            prices, make = ["" if self.shifted else 0.0, *self.prices(), ""], self._list_values
            last, sensor = "net of sensor cost", [*self.net_values(), ""]
        lines = [*self.lines, *([] if self.given is None else [self.given])]
        rows = [make(line, price) for line, price in zip(lines, prices, strict=False)]
        if self.sensor_price is not None:
            headers.append(last)
            rows = [(*row, cell) for row, cell in zip(rows, sensor, strict=False)]
        return tuple(headers), rows

    def _list_values(self, line: DelayCost, price: Cell) -> tuple[Cell, ...]:
        value = line.value or 0.0
        lost = _subtract(self.free.value or 0.0, value)
        return line.tick, value, price, lost, "" if line.ignoring is None else line.ignoring

    def _list_bounds(self, line: DelayCost, price: tuple[Cell, Cell]) -> tuple[Cell, ...]:
        rest = (*(line.drawn or ("", "")), *(line.ignoring_bounds or ("", "")))
        return line.tick, *line.bounds, *price, *rest

    def price_bounds(self) -> list[Limits]:
        """Certified bounds on what each tick from the first on costs: at least nothing."""
        return [(max(low, 0.0), max(high, 0.0)) for low, high in self._find_price_bounds()]

    def _find_price_bounds(self) -> Iterator[Limits]:
        """The same, as the sets of laws give them: the bounds of both values, and of the price."""
        for before, line in pairwise(self.lines):
            (a_low, a_high), (b_low, b_high) = before.bounds, line.bounds
            low, high = line.price or (-math.inf, math.inf)
            yield max(a_low - b_high, low), min(a_high - b_low, high)

    def find_paying(self) -> list[str]:
        """Whether a sensor pays that takes away each tick from the first on, at its price."""
        price = self.sensor_price or 0.0
        return [
            SURELY if low > price else SURELY_NOT if high < price else UNKNOWN
            for low, high in self.price_bounds()
        ]

    def find_best(self) -> list[int]:
        """The delays that can be best, net of sensor cost: no other is surely better.

        What the ticks between two delays cost is bounded by the sum of their bounds, and by the
        bounds of both values.
        """
        cost, prices = self.sensor_price or 0.0, self.price_bounds()
        bounds = [line.bounds for line in self.lines]

        def gains(fast: int, slow: int) -> Limits:
            low = max(sum(p[0] for p in prices[fast:slow]), bounds[fast][0] - bounds[slow][1])
            high = min(sum(p[1] for p in prices[fast:slow]), bounds[fast][1] - bounds[slow][0])
            return low - cost * (slow - fast), high - cost * (slow - fast)

        delays = range(len(self.lines))
        return [
            d
            for d in delays
            if not any(gains(fast, d)[0] > 0.0 for fast in delays[:d])
            and not any(gains(d, slow)[1] < 0.0 for slow in delays[d + 1 :])
        ]

    def _sensor_prices(self) -> list[float]:
        """The price of a sensor that is D - d ticks faster than the slowest one, for each d."""
        slowest = len(self.lines) - 1
        return [(self.sensor_price or 0.0) * (slowest - d) for d in range(len(self.lines))]

    def prices(self) -> list[float]:
        """What each tick from the first on costs: V_{d-1} - V_d."""
        values = [line.value or 0.0 for line in self.lines]
        return [_subtract(before, after) for before, after in pairwise(values)]

    def net_values(self) -> list[float]:
        """V_d net of the price of the sensor."""
        prices = self._sensor_prices()
        return [(line.value or 0.0) - p for line, p in zip(self.lines, prices, strict=True)]

    def sentences(self) -> list[str]:
        """What the numbers mean."""
        if not self.certified:
            return [self._say_cost(), *([] if self.sensor_price is None else [self._say_sensor()])]
        found = [self._say_certificate(), *self._say_prices()]
        if self.sensor_price is not None and not self.refuted:
            found.append(self._say_certified_sensor())
        return found

    def say_plainly(self) -> list[str]:
        """The same sentences with the answer first: whether a faster sensor pays."""
        said = [f"{text[0].upper()}{text[1:].rstrip('.')}." for text in self.sentences()]
        if self.certified and self.sensor_price is not None and not self.refuted:
            return [*self._say_undecided(), said[-1], *said[:-1]]
        if not self.certified and self.sensor_price is not None:
            return said[::-1]
        return said

    def _say_undecided(self) -> list[str]:
        """The answer where the data give none, with what is likely."""
        if len(self.find_best()) == 1:
            return []
        price = self.sensor_price or 0.0
        said = f"At {price:.4g} per tick the data do not decide yet which sensor is best"
        drawn = [(line.tick, line.drawn) for line in self.lines if line.drawn is not None]
        pays = [str(tick) for tick, (low, _) in drawn if low > price]
        loses = [str(tick) for tick, (_, high) in drawn if high < price]
        if pays:
            said += f"; a faster one likely pays for tick {' and '.join(pays)} (no guarantee)"
        if loses:
            said += f"; it likely does not pay for tick {' and '.join(loses)} (no guarantee)"
        return [f"{said}."]

    def advise(self) -> list[str]:
        """What to measure next."""
        if self.refuted:
            return ["Lateness: the log breaks an assumption, so first find a finer feature."]
        if self.planned:
            return []
        if not self.certified:
            text = (
                "these numbers take the law of the model for the truth. A log says what is proved"
            )
            return [f"Lateness: {text} (--log FILE)."]
        return [f"Lateness: {text}" for text in self._say_prices() if "unknown" in text][:1]

    def _say_prices(self) -> list[str]:
        """Each tick in words: what it surely costs, what it likely costs, and whether it pays."""
        verdicts = self.find_paying()
        return [
            self._say_price(line, *limits, verdict)
            for line, limits, verdict in zip(
                self.lines[1:], self._find_price_bounds(), verdicts, strict=True
            )
        ][:SHOWN_TICKS]

    def _say_price(self, line: DelayCost, low: float, high: float, verdict: str) -> str:
        drawn, price = line.drawn, self.sensor_price
        sure = "would cost" if self.refuted else "surely costs"
        shown = f"{max(low, 0.0):.3g} and {max(high, 0.0):.3g}"
        said = f"Tick {line.tick} {sure} between {shown}"
        if drawn is not None:
            said += f"; likely {drawn[0]:.3g} to {drawn[1]:.3g} (posterior draws: no guarantee)"
        if price is None or self.refuted:
            return f"{said}."
        if verdict == SURELY:
            return f"{said}. A sensor faster by it pays."
        if verdict == SURELY_NOT:
            return f"{said}. A sensor faster by it does not pay."
        said += ". Whether a sensor faster by it pays is unknown"
        if drawn is None or drawn[0] <= price <= drawn[1]:
            return f"{said}, and more of the same data may not tell soon."
        middle = sum(drawn) / 2
        edge = low if middle > price else high
        times = max((edge - middle) / (price - middle), 1.0) ** 2
        many = f"{times:.2g}" if times < 100 else f"{times:,.0f}"
        return f"{said}: about {many} times the data would tell (an estimate)."

    def _say_certificate(self) -> str:
        """All lines that stand on the same sets of laws hold together."""
        given = [] if self.given is None else [self.given]
        if self.planned:
            drawn = sum(1 for line in [*self.lines, *given] if line.evidence)
            words = "exact where both bounds are equal, else the optimum is between them"
            together = max(1 - drawn * (self.delta or 0.0), 0.0)
            said = f"; {drawn} lower bounds are simulated, all hold with probability {together:.4g}"
            return words + said * (drawn > 0)
        events = len({line.evidence for line in [*self.lines, *given]})
        delta = self.delta or 0.0
        together = max(1 - events * delta, 0.0)
        if self.refuted:
            return f"NOT certified: the log breaks the assumptions: {self.refuted}"
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
        source = "the bounds leave" if self.planned else "the log leaves"
        words = f"{at} the best delay is one of {', '.join(map(str, best))}; {source} it open"
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
        from pkd_delay.latency.picture import draw_study

        return draw_study(self)


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


Make = Callable[[pkd.Problem], pkd.Problem]  # one transformation of the problem


def _compile_all(
    problem: pkd.Problem,
    ticks: Iterable[tuple[int | str, Make]],
    tell: Callable[[str], None] | None,
) -> Iterator[tuple[int | str, Make, pkd.Problem, Any]]:
    """Each transformation, compiled. One that is too large is told, and so all later ticks end."""
    refused = False
    for tick, make in ticks:
        if refused and isinstance(tick, int):
            continue
        late = make(problem)
        try:
            yield tick, make, late, pkd.compile(late.model())
        except TooLargeError as error:
            if tell is None:
                raise
            refused = True
            tell(f"a delay of {tick} is left out: {error}")


def measure(
    problem: pkd.Problem,
    ticks: Iterable[tuple[int | str, Make]],
    tell: Callable[[str], None] | None = None,
) -> list[DelayCost]:
    """The exact optimum of each transformation, and what ignoring it leaves.

    `problem` is what an agent that ignores the lateness believes in. tell: takes what is said of
    delays that are too large; None: that is an error.
    """
    base = strip(problem)
    plan = pkd.plan(pkd.compile(base.model()), base.law())
    lines = []
    for tick, _, late, compiled in _compile_all(problem, ticks, tell):
        law = late.law()
        value, ignoring = pkd.plan(compiled, law).value, None
        if compiled.n_states <= MOST_FOLLOWED:
            ignoring = float(pkd.evaluate(compiled, law, Blind(compiled.model, plan)))
        lines.append(DelayCost(tick, value, ignoring))
    return lines


def measure_bounds(
    problem: pkd.Problem,
    ticks: Iterable[tuple[int | str, Make]],
    gap: float,
    seconds: float,
    delta: float,
) -> list[DelayCost]:
    """The exact optimum of each transformation where it fits, and bounds where it does not.

    `seconds` are for each delay. A line with evidence has a simulated lower bound.
    """
    lines = []
    for tick, make in ticks:
        late = make(problem)
        if not isinstance(late, Delayed) or _count_states(late) <= MOST_EXACT:
            (line,) = measure(problem, [(tick, make)])
            own = None if line.ignoring is None else (line.ignoring, line.ignoring)
            lines.append(attrs.evolve(line, low=line.value, high=line.value, ignoring_bounds=own))
            continue
        plan = plan_long(late, gap, seconds=seconds, delta=delta)
        evidence = (tick,) if plan.delta else ()
        lines.append(DelayCost(tick, low=plan.low, high=plan.high, evidence=evidence))
    return _tighten(lines)


def _tighten(lines: list[DelayCost]) -> list[DelayCost]:
    """More ticks are worth no more: bounds of other lines narrow those that are not exact.

    A simulated lower bound narrows its own line alone.
    """
    found, low, high = list(lines), -math.inf, math.inf
    counted = [i for i, line in enumerate(lines) if isinstance(line.tick, int)]
    for i in counted:
        high = min(high, found[i].bounds[1])
        if found[i].value is None:
            found[i] = attrs.evolve(found[i], high=high)
    for i in reversed(counted):
        if not found[i].evidence:
            low = max(low, found[i].bounds[0])
        if found[i].value is None and low >= found[i].bounds[0]:
            found[i] = attrs.evolve(found[i], low=low, evidence=())
    return found


def _count_states(late: Delayed) -> float:
    """About how many augmented states there are."""
    queue = min(late.max_delay, late.base.horizon - 1)
    return late.facts.n_states * float(len(late.facts.actions)) ** queue * (late.longest + 1)


def measure_certified(
    problem: pkd.Problem,
    counts: Counts,
    ticks: Iterable[tuple[int | str, Make]],
    delta: float,
    tell: Callable[[str], None] | None = None,
) -> list[DelayCost]:
    """Certified bounds on the optimum of each transformation, from counts of the features.

    Who ignores the lateness follows the best plan of the base for the frequencies in the counts.
    All laws that are not refuted are allowed for, so the bounds hold for this policy, too, although
    it was chosen by the same data.
    """
    base = strip(problem).model()
    law = pkd.fit_law(base, counts)
    plan = pkd.plan(pkd.compile(base), law)
    laws = draw_laws(base, counts)
    lines: list[DelayCost] = []
    values: np.ndarray | None = None  # of the tick before, under each law that was drawn
    last: Make | None = None
    for tick, make, late, compiled in _compile_all(problem, ticks, tell):
        model = late.model()
        few = compiled.n_states <= MOST_STATES
        policy = Blind(model, plan) if few else None
        found = pkd.certify(compiled, counts, policy=policy, delta=delta)
        own = (found.low, found.high) if few else None
        line = DelayCost(
            tick, low=found.optimal_low, high=found.optimal_high, ignoring_bounds=own,
            evidence=_list_sets(found),
        )  # fmt: skip
        if isinstance(tick, int):
            drawn = np.array([pkd.plan(compiled, one).value for one in laws]) if few else None
            if few and last is not None:
                price, sets = _bound_price(problem, counts, last, make, law, delta)
                if sets == line.evidence:  # the same event as that of the line
                    line = attrs.evolve(line, price=price)
            if drawn is not None and values is not None:
                low, high = np.quantile(values - drawn, [0.025, 0.975]).tolist()
                line = attrs.evolve(line, drawn=(low, high))
            values, last = drawn, make
        lines.append(line)
    return lines


def _list_sets(found: pkd.Certificate) -> tuple[Any, ...]:
    return tuple(sorted(((e.feature, e.radius) for e in found.evidence), key=repr))


def _bound_price(
    problem: pkd.Problem, counts: Counts, before: Make, after: Make, law: pkd.Law, delta: float
) -> tuple[Limits | None, tuple[Any, ...]]:
    """Certified bounds on V_d(P) - V_{d+1}(P) for all laws P at once, and the sets behind them."""
    base = strip(problem)
    late = [make(problem).model() for make in (before, after)]
    own = [pkd.compile(make(base).model()).fingerprint for make in (before, after)]
    if own != [pkd.compile(model).fingerprint for model in late]:
        return None, ()  # the problem has delays of its own that stay
    payments = fit_payments(base.model(), late, law)
    if not payments:
        return None, ()
    paid = PaidProblem(base, payments)
    fast, slow = (pkd.certify(make(paid).model(), counts, delta=delta) for make in (before, after))
    sets = _list_sets(fast)
    if sets != _list_sets(slow):
        return None, ()
    return (fast.optimal_low - slow.optimal_high, fast.optimal_high - slow.optimal_low), sets


def shift_law(law: DelayKernel, max_delay: int, ticks: int) -> DelayKernel:
    """The law of a delay that is `ticks` longer: D' = D + ticks from the first state on."""
    if isinstance(law, Lags):
        return Lags((0.0,) * ticks + law.probabilities)
    require(whole("ticks", ticks))
    befores = range(max_delay + ticks + 1)
    rows = [[0.0] * ticks + law.row(max(before - ticks, 0), max_delay) for before in befores]
    return DelayChain(rows)
