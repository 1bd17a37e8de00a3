"""The law of a delay is a Markov chain: D_h ~ P(. | D_{h-1}) with D_h >= D_{h-1} - 1.

In-order delivery needs no more than that bound. The agent knows D_{h-1} (it is the length of the
queue minus the counter), so the augmented state stays (last shown state, queue, counter) for every
such chain. A form of law says which whole number is drawn and how it makes the delay:

    inter-arrival times (Assumption 1):   D_h = max(D_{h-1} + Delta_h, 0)
    lags, delivered in order:             D_h = max(D_{h-1} - 1, L_h)
    any chain:                            D_h itself

The largest delay D_max cuts all of them: D_h = min(D_h, D_max).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pkd_delay.fitting import FittedDelay

__all__ = ["DelayKernel", "Numbers", "Question", "describe_delays"]

SMALLEST = 5e-4  # delays less likely than this are left out of a sentence
DOUBLINGS = 60  # 2^60 steps: the long run


class Question(NamedTuple):
    """What an arrival tells of the number that was drawn: yes means that the state comes now.

    at_most:  is it at most `number`?      otherwise:  is it `number`, given that it is at least it?
    """

    number: int
    at_most: bool


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

    def answer(self, question: Question) -> float:
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

    >>> from pkd_delay import InterArrival, Lags
    >>> [round(p, 12) for p in InterArrival((0.2, 0.5, 0.3)).row(before=1, largest=2)]
    [0.2, 0.5, 0.3]
    >>> [round(p, 12) for p in Lags((0.5, 0.3, 0.2)).row(before=2, largest=2)]  # in order
    [0.0, 0.8, 0.2]
    """

    form: ClassVar[str]  # the word for this form in files and on the command line
    drawn: ClassVar[str]  # what is drawn, for messages
    first: ClassVar[int] = 0  # the smallest number that can be drawn
    # Whether an arrival must be told D_{h-1} apart from how long the agent has waited.
    by_delay: ClassVar[bool]

    @property
    @abstractmethod
    def longest(self) -> int:
        """W: the largest number that can be drawn."""

    @property
    @abstractmethod
    def largest(self) -> int | None:
        """The largest delay that the law itself allows; None: it grows without a `max_delay`."""

    @abstractmethod
    def numbers(self, before: int) -> Numbers:
        """The law of the number that is drawn when the delay was `before`."""

    @staticmethod
    @abstractmethod
    def follow(before: int, number: int) -> int:
        """D_h from D_{h-1} and the number drawn, before the cut at D_max."""

    @staticmethod
    @abstractmethod
    def ask(before: int, delay: int) -> Question:
        """What is asked of the number by "is D_h = delay, given that it is at least that?"."""

    @abstractmethod
    def to_table(self) -> list[Any]:
        """The probabilities as nested lists: for files, and as an array of many laws."""

    @classmethod
    def fit(cls, log: Any, **options: Any) -> FittedDelay:
        """The most likely law of this form for a log, with its confidence set and tests.

        log: a CSV file with the columns episode, step, sent, shown (perhaps end, state, action), or
        with episode, step, age; or such rows; or episodes of `simulate`. options: per_pair,
        max_delay, delta, tick, false_alarm (`pkd fit-delay --help` says what they mean).

        >>> import pkd_delay
        >>> times = [(0, 0), (1, 2), (2, 3), (3, 3), (4, 4), (5, 6), (6, 6)]
        >>> rows = [dict(episode=1, step=t, sent=t, shown=shown) for t, shown in times]
        >>> pkd_delay.Lags.fit(rows)
        <FittedDelay: lags, one law, 6 delays>
        """
        from pkd_delay.fitting import fit_delay

        return fit_delay(cls, log, **options)

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

        >>> from pkd_delay import InterArrival
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

        >>> from pkd_delay import InterArrival, Lags
        >>> Lags((0.5, 0.5)).describe(largest=1)
        '0, 1 ticks late with .5, .5; mean .5 (in the long run)'
        """
        when = "in the long run" if steps is None else f"over {steps} steps"
        return f"{describe_delays(self.delays(largest, steps))} ({when})"


def describe_delays(law: list[float]) -> str:
    """A law of the delay in words: delays that hardly occur are left out.

    >>> describe_delays([0.5, 0.3, 0.2])
    '0, 1, 2 ticks late with .5, .3, .2; mean .7'
    """
    mean = math.fsum(d * p for d, p in enumerate(law))
    shown = [(d, p) for d, p in enumerate(law) if p >= SMALLEST]
    if len(shown) == 1:
        return f"always {shown[0][0]} ticks late"
    delays = ", ".join(str(d) for d, _ in shown)
    chances = ", ".join(_short(p) for _, p in shown)
    return f"{delays} ticks late with {chances}; mean {_short(mean)}"


def _short(value: float) -> str:
    text = f"{value:.3g}"
    return text.removeprefix("0") if text.startswith("0.") else text
