"""The law of a delay is a Markov chain: D_h ~ P(. | D_{h-1}) with D_h >= D_{h-1} - 1.

In-order delivery needs no more than that bound. The agent knows D_{h-1} (it is the length of the
queue minus the counter), so the augmented state stays (last shown state, queue, counter) for every
such chain. A form of law says which whole number is drawn and how it makes the delay:

    InterArrival (Assumption 1):          D_h = max(D_{h-1} + Delta_h, 0)
    Lags, delivered in order:             D_h = max(D_{h-1} - 1, L_h)
    DelayChain, any chain:                D_h itself

The largest delay D_max cuts all of them: D_h = min(D_h, D_max). A mapping or a list in the place of
a law is one of inter-arrival times.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import attrs
import numpy as np

from pkd import ModelError, expect
from pkd.model import normalise

__all__ = [
    "FORMS", "ArrivalQuestion", "DelayChain", "DelayKernel", "DelayOf", "InterArrival", "Lags",
    "Numbers", "OneLaw", "OneOrMany", "as_kernel", "describe_delays", "per_action",
]  # fmt: skip

TOLERANCE = 1e-9  # by how much probabilities may miss 1
SMALLEST = 5e-4  # delays less likely than this are left out of a sentence
DOUBLINGS = 60  # 2^60 steps: the long run
SHOWN_FINDINGS = 5
MOST_SHOWN = 12  # delays that a sentence names


class ArrivalQuestion(NamedTuple):
    """What an arrival tells of the number that was drawn: yes means that the state comes now.

    at_most:  is it at most `number`?      otherwise:  is it `number`, given that it is at least it?
    """

    number: int
    at_most: bool

    def limits(self, answer: bool, largest: float) -> tuple[int, float]:
        """[low, high]: the numbers for which this is the answer; -1 stands for the smallest one.

        >>> ArrivalQuestion(2, at_most=False).limits(False, 5)
        (3, 5)
        >>> ArrivalQuestion(0, at_most=True).limits(True, 5)
        (-1, 0)
        """
        if not answer:
            return self.number + 1, largest
        return -1 if self.at_most else self.number, self.number


class Numbers:
    """Probabilities of whole numbers `first`, `first` + 1, ..., with what follows from them."""

    first: ClassVar[int] = 0
    probabilities: tuple[float, ...]

    @property
    def longest(self) -> int:
        """The largest number that has a place in the table."""
        return len(self.probabilities) + self.first - 1

    @cached_property
    def tails(self) -> tuple[float, ...]:
        """Pr(number >= j) for j = first, ..., longest + 1."""
        tails = [0.0]
        for p in reversed(self.probabilities):
            tails.append(tails[-1] + p)
        return tuple(reversed(tails))

    @cached_property
    def hazards(self) -> tuple[float, ...]:
        """Pr(number = j) / Pr(number >= j) for j = first, ...; 1 where the denominator is 0."""
        pairs = zip(self.probabilities, self.tails, strict=False)
        return tuple(p / tail if tail > 0.0 else 1.0 for p, tail in pairs)

    def hazard(self, waited: int) -> float:
        """Pr(number = waited | number >= waited), and 1 where that is not defined."""
        return self.hazards[waited - self.first] if waited <= self.longest else 1.0

    def at_least(self, number: int) -> float:
        """Pr(number drawn >= number)."""
        return self.tails[number - self.first] if number <= self.longest else 0.0

    def at_most(self, number: int) -> float:
        """Pr(number drawn <= number)."""
        return min(1.0, sum(self.probabilities[: number - self.first + 1]))

    def answer(self, question: ArrivalQuestion) -> float:
        """The probability that the answer is yes."""
        number, at_most = question
        return self.at_most(number) if at_most else self.hazard(number)

    def draw(
        self, rng: np.random.Generator, low: int | None = None, high: int | None = None
    ) -> int:
        """A number given low <= number <= high; `low` itself where the law has no mass there."""
        low = self.first if low is None else low
        stop = None if high is None else high - self.first + 1
        window = self.probabilities[low - self.first : stop]
        mark = rng.random() * math.fsum(window)
        last = low
        for number, p in enumerate(window, start=low):
            if p > 0.0:
                last, mark = number, mark - p
                if mark < 0.0:
                    break
        return last


class DelayKernel(ABC):
    """The law of one delay given the one before: what `InterArrival`, `Lags`, `DelayChain` share.

    >>> [round(p, 12) for p in InterArrival((0.2, 0.5, 0.3)).row(before=1, largest=2)]
    [0.2, 0.5, 0.3]
    >>> [round(p, 12) for p in Lags((0.5, 0.3, 0.2)).row(before=2, largest=2)]  # in order
    [0.0, 0.8, 0.2]
    """

    form: ClassVar[str]  # the word for this form in files and on the command line
    title: ClassVar[str]  # what a report calls it
    drawn: ClassVar[str]  # what is drawn, for messages; "" if no number can be shown
    first: ClassVar[int] = 0  # the smallest number that can be drawn
    # Whether an arrival must be told D_{h-1} apart from how long the agent has waited.
    by_delay: ClassVar[bool] = True

    @property
    @abstractmethod
    def longest(self) -> int:
        """W: the largest number that can be drawn."""

    @property
    def largest(self) -> int | None:
        """The largest delay that the law itself allows; None: it grows without a `max_delay`."""
        return self.longest

    @abstractmethod
    def numbers(self, before: int) -> Numbers:
        """The law of the number that is drawn when the delay was `before`."""

    @classmethod
    def number_group(cls, before: int) -> int:
        """Delays before with equal groups draw from one law of numbers."""
        return 0

    @staticmethod
    @abstractmethod
    def follow(before: int, number: int) -> int:
        """D_h from D_{h-1} and the number drawn, before the cut at D_max."""

    @staticmethod
    @abstractmethod
    def ask(before: int, delay: int) -> ArrivalQuestion:
        """What is asked of the number by "is D_h = delay, given that it is at least that?"."""

    @abstractmethod
    def to_table(self) -> list[Any]:
        """The probabilities as nested lists: for files, and as an array of many laws."""

    def arrival(self, before: int, delay: int) -> float:
        """Pr(D_h = delay | D_{h-1} = before, D_h >= delay)."""
        return self.numbers(before).answer(self.ask(before, delay))

    def row(self, before: int, largest: int) -> list[float]:
        """Pr(D_h = 0), ..., Pr(D_h = largest) given D_{h-1} = before."""
        row = [0.0] * (largest + 1)
        law = self.numbers(before)
        for number, p in enumerate(law.probabilities, start=law.first):
            if p > 0.0:
                row[min(self.follow(before, number), largest)] += p
        return row

    def delays(self, largest: int, steps: int | None = None) -> list[float]:
        """The law of the delay in lags: how often D_h = 0, 1, ..., largest over `steps` steps.

        It starts at D_0 = 0. Without `steps` it is the long-run law.

        >>> [round(p, 12) for p in InterArrival((0.25, 0.5, 0.25)).delays(largest=2)]
        [0.333333333333, 0.333333333333, 0.333333333333]
        """
        rows = np.array([self.row(before, largest) for before in range(largest + 1)])
        now = np.eye(largest + 1)[0]
        if steps is None:
            # A chain that half of the time stays where it is does not go round in a circle.
            lazy = (rows + np.eye(largest + 1)) / 2
            for _ in range(DOUBLINGS):
                lazy = lazy @ lazy
                lazy /= lazy.sum(axis=1, keepdims=True)
            return [float(p) for p in lazy[0]]
        total = np.zeros(largest + 1)
        for _ in range(steps):
            now = now @ rows
            total += now / steps
        return [float(p) for p in total]

    def describe(self, largest: int, steps: int | None = None) -> str:
        """What the law means in lags, as one sentence.

        >>> Lags((0.5, 0.5)).describe(largest=1)
        '0, 1 ticks late with .5, .5; mean .5 (in the long run)'
        """
        when = "in the long run" if steps is None else f"over {steps} steps"
        return f"{describe_delays(self.delays(largest, steps))} ({when})"


MOST_NUMBER = 100_000  # ticks: a law is a list of probabilities


def _parse(law: Any, first: int, name: str) -> tuple[float, ...]:
    """The probabilities of first, first + 1, ... from {number: probability} or a list of them."""
    found: list[str] = []
    if isinstance(law, Mapping):
        for key in law:
            most = MOST_NUMBER if not expect.whole(name, key, first) else None
            found += expect.whole(f"{name}: the number", key, first, most)
        values = list(law.values())
        if law and not found:
            values = [law.get(j, 0.0) for j in range(first, max(0, *law) + 1)]
    elif isinstance(law, Sequence | np.ndarray) and not isinstance(law, str):
        values = list(law)
        if len(values) < 1 - first:
            found = [f"{name} has {len(values)} entries; expected at least {1 - first}"]
    else:
        found, values = [f"{name} is {expect.show(law)}"], [1.0]
    found += _find_faults(values, name)
    if found:
        numbers = "Delta: probability} with Delta >= -1" if first else "lag: probability}"
        raise ModelError([*found[:-1], f"{found[-1]} (expected {{{numbers}, or a list)"])
    return tuple(normalise(float(p) for p in values))


def _parse_changes(law: Any) -> tuple[float, ...]:
    return _parse(law, -1, "inter_arrival")


def _parse_lags(law: Any) -> tuple[float, ...]:
    return _parse(law, 0, "lags")


def _find_faults(values: Sequence[Any], name: str) -> list[str]:
    """What keeps some numbers from being a distribution."""
    found = [text for p in values for text in expect.number(f"{name}: a probability", p)]
    total = math.fsum(values) if not found else 1.0
    return found + ([f"{name} sums to {total:.12g}, not 1"] if abs(total - 1) > TOLERANCE else [])


@attrs.frozen(slots=False)  # without slots, so that hazards can be cached
class InterArrival(Numbers, DelayKernel):
    """Pr(Delta = -1), ..., Pr(Delta = W), the law of Assumption 1: D_h = max(D_{h-1} + Delta, 0).

    From {Delta: probability} or a list. Delta is by how much the delay changes: -1 means that the
    next state comes together with this one, j that it comes j + 1 steps later. The hazards are the
    paper's P_tran.

    >>> law = InterArrival((.2, .4, .3, .1))
    >>> [round(law.hazard(j), 12) for j in (-1, 0, 1, 2)], round(law.at_most(0), 12)
    ([0.2, 0.5, 0.75, 1.0], 0.6)
    """

    form, title = "inter-arrival", "inter-arrival times (Assumption 1)"
    drawn, first, by_delay = "inter-arrival time", -1, False

    probabilities: tuple[float, ...] = attrs.field(converter=_parse_changes)

    @property
    def largest(self) -> int | None:
        return None if any(self.probabilities[2:]) else 0

    @property
    def only_grows(self) -> bool:
        """Whether the delay never shrinks and sometimes grows by chance.

        Then it drifts to the largest delay and stays there. A histogram of lags looks like this.

        >>> InterArrival({0: 0.5, 1: 0.3, 2: 0.2}).only_grows
        True
        """
        return self.probabilities[0] == 0.0 and max(self.probabilities[1:]) < 1.0

    def numbers(self, before: int) -> InterArrival:
        return self

    @staticmethod
    def follow(before: int, number: int) -> int:
        return max(before + number, 0)

    @staticmethod
    def ask(before: int, delay: int) -> ArrivalQuestion:
        # With an empty queue -1 is clipped to 0.
        return ArrivalQuestion(delay - before, before == delay == 0)

    def to_table(self) -> list[float]:
        return list(self.probabilities)


@attrs.frozen(slots=False)
class Lags(Numbers, DelayKernel):
    """Independent lags, delivered in order: D_h = max(D_{h-1} - 1, L_h).

    Pr(L = 0), Pr(L = 1), ..., from {ticks: probability} or a list: how long each sample took. A
    sample waits for a slower one before it. The largest lag is the largest delay, so `max_delay`
    need not be given.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP(two_state_chain(), pkd_delay.Lags({0: 0.5, 1: 0.3, 2: 0.2}))
    >>> late.max_delay, round(pkd_delay.plan(late).value, 6)
    (2, 9.342)
    """

    form, title, drawn = "lags", "independent lags, delivered in order", "lag"

    probabilities: tuple[float, ...] = attrs.field(converter=_parse_lags)

    def numbers(self, before: int) -> Lags:
        return self

    @staticmethod
    def follow(before: int, number: int) -> int:
        return max(before - 1, number)

    @staticmethod
    def ask(before: int, delay: int) -> ArrivalQuestion:
        # A sample that comes together with the one before it may have been ready for long.
        return ArrivalQuestion(delay, delay == max(before - 1, 0))

    def to_table(self) -> list[float]:
        return list(self.probabilities)


def _parse_rows(rows: Any) -> tuple[Lags, ...]:
    """The rows of a chain, each a law of the next delay; ModelError with every fault."""
    try:
        table = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.zeros(0)
    if table.ndim != 2 or not table.size or table.shape[0] != table.shape[1]:
        raise ModelError(
            "delays: expected a square table of Pr(D_h = column | D_{h-1} = row), "
            f"found {np.shape(table)} numbers"
        )
    found = []
    for before, row in enumerate(table.tolist()):
        found += _find_faults(row, f"delays[{before}]")
        found += [
            f"delays[{before}] reaches {d}; a delay shrinks by at most 1 per state, "
            f"so delays[{before}] starts at {before - 1}"
            for d, p in enumerate(row[: max(before - 1, 0)])
            if p > 0
        ]
    if found:
        raise ModelError(found[:SHOWN_FINDINGS])
    return tuple(Lags(row) for row in table.tolist())


@attrs.frozen(slots=False)
class DelayChain(DelayKernel):
    """Any Markov chain of delays: row d is the law of D_h when D_{h-1} = d, and starts at d - 1.

    >>> sticky = DelayChain([[0.9, 0.1], [0.2, 0.8]])
    >>> sticky.describe(largest=1)
    '0, 1 ticks late with .667, .333; mean .333 (in the long run)'
    """

    form, title, drawn = "chain", "a Markov chain of delays", ""

    rows: tuple[Lags, ...] = attrs.field(converter=_parse_rows)

    @property
    def longest(self) -> int:
        return len(self.rows) - 1

    def numbers(self, before: int) -> Lags:
        return self.rows[before]

    @classmethod
    def number_group(cls, before: int) -> int:
        return before

    @staticmethod
    def follow(before: int, number: int) -> int:
        return number

    @staticmethod
    def ask(before: int, delay: int) -> ArrivalQuestion:
        return ArrivalQuestion(delay, False)

    def to_table(self) -> list[list[float]]:
        return [row.to_table() for row in self.rows]


FORMS: Mapping[str, type[DelayKernel]] = {
    form.form: form for form in (InterArrival, Lags, DelayChain)
}


def find_no_form(form: Any) -> list[str]:
    """What says that a value is none of the classes of laws."""
    known = any(form is one for one in FORMS.values())
    wanted = "InterArrival, Lags or DelayChain"
    return [] if known else [f"form is {expect.show(form)}; expected {wanted}"]


OneLaw = Mapping[int, float] | Sequence[float] | DelayKernel
OneOrMany = OneLaw | Callable[[Any, Any, Any], OneLaw]  # one law, or (x, y, a) -> law


def as_kernel(law: OneLaw, where: str = "inter_arrival") -> DelayKernel:
    """Any law of the delay; a mapping and a list are inter-arrival times. `where` is its name."""
    return law if isinstance(law, DelayKernel) else InterArrival(_parse(law, -1, where))


@attrs.frozen
class DelayOf:
    """The law of the delay after the base's (x, y, a): one law for all, or a user's function.

    Each answer of the function is checked once.

    >>> per_action({0: 1.0})("x", "y", "a").longest
    0
    """

    one: DelayKernel | None  # the law of all states and actions
    ask: Callable[[Any, Any, Any], OneLaw] | None = None
    _known: dict[tuple[Any, Any, Any], DelayKernel] = attrs.field(factory=dict, init=False)

    def __call__(self, x: Any, y: Any, a: Any) -> DelayKernel:
        if self.one is not None or self.ask is None:
            assert self.one is not None
            return self.one
        law = self._known.get((x, y, a))
        if law is None:
            where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
            law = self._known[x, y, a] = as_kernel(self.ask(x, y, a), where)
        return law


def per_action(given: OneOrMany | DelayOf) -> DelayOf:
    """The law of the delay as a function of (x, y, a), from one law or from a user's function."""
    if isinstance(given, DelayOf):
        return given
    return DelayOf(None, given) if callable(given) else DelayOf(as_kernel(given))


def describe_delays(law: Iterable[float]) -> str:
    """A law of the delay in words: delays that hardly occur are left out.

    >>> describe_delays([0.5, 0.3, 0.2])
    '0, 1, 2 ticks late with .5, .3, .2; mean .7'
    """
    pairs = list(enumerate(law))
    shown = [(d, p) for d, p in pairs if p >= SMALLEST]
    if len(shown) == 1:
        return f"always {shown[0][0]} ticks late"
    mean = math.fsum(d * p for d, p in pairs)
    first, rest = shown[:MOST_SHOWN], math.fsum(p for _, p in shown[MOST_SHOWN:])
    delays = ", ".join(str(d) for d, _ in first)
    chances = ", ".join(_shorten(p) for _, p in first)
    more = f"; later with {_shorten(rest)}, up to {shown[-1][0]}" if rest else ""
    return f"{delays} ticks late with {chances}{more}; mean {_shorten(mean)}"


def _shorten(value: float) -> str:
    text = f"{value:.3g}"
    return text.removeprefix("0") if text.startswith("0.") else text
