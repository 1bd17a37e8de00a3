"""A law of the delay from a log: the most likely one, and the laws that the log has not refuted.

A delay answers questions one after the other: "is it k, given that it is at least k?". The end of
an episode leaves the last ones open, and the largest delay takes the last one away. Each question
is a coin of its own, asked at times that depend on the past alone. So its confidence set holds at
all times at once (`pkd.confidence`), and the sets of all questions together hold with probability
1 - delta. The estimate is the law of the numbers (inter-arrival times, lags) that makes the log
most likely when each number is known up to an interval [low, high]; expectation-maximisation finds
it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import ModelError
from pkd_delay.delay_kernel import DelayKernel, describe_delays
from pkd_delay.delay_log import DelayLog, Sample, read_log
from pkd_delay.inter_arrival import InterArrival
from pkd_delay.lags import DelayChain, Lags

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

    from pkd_delay.assumption_tests import AssumptionTest

__all__ = ["FORMS", "FittedDelay", "Interval", "ask_questions", "compare_forms", "fit_delay"]

FORMS: Mapping[str, type[DelayKernel]] = {
    form.form: form for form in (InterArrival, Lags, DelayChain)
}
CLOSE, MOST_ROUNDS = 1e-12, 20_000  # of expectation-maximisation
NO_PAIR = None  # the group of a law that all states and actions share
Group = tuple[str | None, str | None] | None  # (state, action), or NO_PAIR
Key = tuple[Group, tuple[int, int]]  # a question: whose, and (before, delay)


@attrs.frozen
class Interval:
    """What a log says of one question: Pr(D_h = delay | D_{h-1} = before, D_h >= delay)."""

    group: Group
    before: int  # one pair of delays that asks it; for inter-arrival times there are others
    delay: int
    asked: int
    yes: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """How often the answer was yes."""
        return self.yes / self.asked


@attrs.frozen(repr=False)
class FittedDelay:
    """A law of the delay that was fitted to a log, with its confidence set.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP(two_state_chain(20), {-1: 0.3, 0: 0.4, 1: 0.3}, max_delay=3)
    >>> episodes = pkd_delay.simulate(late, lambda h, s, queue, waited: 0, 200)
    >>> fit = pkd_delay.InterArrival.fit(episodes, max_delay=3)
    >>> [round(p, 2) for p in fit.law.probabilities]
    [0.32, 0.38, 0.31]
    >>> fit.contains({-1: 0.3, 0: 0.4, 1: 0.3}), fit.contains({-1: 0.2, 0: 0.5, 1: 0.3})
    (True, False)
    """

    form: type[DelayKernel]
    laws: Mapping[Group, DelayKernel]  # of each (state, action), or of None: one law for all
    max_delay: int
    delta: float
    intervals: tuple[Interval, ...]
    log: DelayLog
    evidence: Mapping[str, float]  # log of the probability of the log, for each form of law
    tests: tuple[AssumptionTest, ...]
    certified: bool = True  # whether the largest delay was given, not read off the same log

    @property
    def law(self) -> DelayKernel:
        """The fitted law, if all states and actions share it."""
        if NO_PAIR not in self.laws:
            raise ModelError("the log was fitted per state and action; expected .laws")
        return self.laws[NO_PAIR]

    def contains(self, law: Any) -> bool:
        """Whether a law lies in the confidence set; a mapping for laws per (state, action).

        With probability 1 - delta the true law does, if the largest delay was given (`certified`).
        """
        return all(
            one.low <= self._find(law, one.group).arrival(one.before, one.delay) <= one.high
            for one in self.intervals
        )

    def _find(self, law: Any, group: Group) -> DelayKernel:
        if group is not NO_PAIR and isinstance(law, Mapping) and group in law:
            law = law[group]
        return law if isinstance(law, DelayKernel) else InterArrival.of(law)

    @property
    def holds(self) -> bool:
        """Whether no test speaks against this form of law."""
        return all(test.holds for test in self.tests)

    @property
    def best_form(self) -> str:
        """The form of law under which the log is most likely."""
        return max(self.evidence, key=lambda form: self.evidence[form])

    def __repr__(self) -> str:
        count = "one law" if NO_PAIR in self.laws else f"{len(self.laws)} laws"
        return f"<FittedDelay: {self.form.form}, {count}, {len(self.log.samples)} delays>"

    def __str__(self) -> str:
        from pkd_delay.assumption_tests import write_report

        return write_report(self)

    def describe_delays(self) -> str:
        """How late the states of the log were: those whose delay was not cut short."""
        seen = [sample.delay for sample in self.log.samples if not sample.censored]
        counts = Counter(seen)
        n = max(len(seen), 1)
        return describe_delays([counts[d] / n for d in range(max(counts, default=0) + 1)])

    def save(self, path: str | Path) -> None:
        """Writes the law to a JSON file, for `--inter-arrival FILE` and `read_law`."""
        from pkd_delay.law_file import write_law

        spans = [attrs.asdict(one) for one in self.intervals]
        write_law(path, self.laws, self.max_delay, {"delta": self.delta, "intervals": spans})

    def plot(self, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
        """Draws the answers with their intervals, and the delays of the log beside the law's."""
        from pkd_delay.fit_picture import draw_fit

        return draw_fit(self, axes)


def fit_delay(
    form: type[DelayKernel],
    log: Any,
    *,
    per_pair: bool = False,
    max_delay: int | None = None,
    delta: float = 0.05,
    tick: float = 1.0,
    false_alarm: float = 0.01,
) -> FittedDelay:
    """The most likely law of one form, its confidence set, and tests of its assumption.

    log: a CSV file, rows as mappings, episodes, or a `DelayLog`. per_pair: one law for each state
    and action. max_delay: the delay at which the system cuts; None: the largest of the log.
    """
    if not 0 < delta < 1:
        raise ModelError(f"delta is {delta!r}; expected a number between 0 and 1")
    read = log if isinstance(log, DelayLog) else read_log(log, tick)
    if per_pair and not read.has_pairs:
        raise ModelError("the log has no states and actions; expected the columns state and action")
    largest = _find_largest(read.samples, max_delay)
    from pkd_delay.assumption_tests import test_assumption

    return FittedDelay(
        form,
        _estimate(form, read.samples, largest, per_pair),
        largest,
        delta,
        _find_intervals(form, read.samples, largest, per_pair, delta),
        read,
        compare_forms(read.samples, largest, per_pair=per_pair),
        test_assumption(form, read, largest, per_pair, false_alarm),
        certified=max_delay is not None,
    )


def _find_largest(samples: Iterable[Sample], max_delay: int | None) -> int:
    longest = max(max(sample.before, sample.delay) for sample in samples)
    if max_delay is not None and longest > max_delay:
        raise ModelError(
            f"the log has a delay of {longest} ticks; expected at most max_delay={max_delay}"
        )
    return longest if max_delay is None else max_delay


def ask_questions(
    form: type[DelayKernel], sample: Sample, largest: int
) -> Iterable[tuple[tuple[int, int], bool]]:
    """((before, delay), answer) of each question that a sample answers.

    Questions that are one by the form of the law come under one pair of delays.
    """
    for k in range(max(sample.before - 1, 0), min(sample.delay, largest - 1) + 1):
        if k == sample.delay and sample.censored:
            return
        yield _name_question(form, sample.before, k), k == sample.delay


def _name_question(form: type[DelayKernel], before: int, delay: int) -> tuple[int, int]:
    """The first pair of delays that asks the same."""
    if form is DelayChain:
        return before, delay
    number, at_most = form.ask(before, delay)
    if form is Lags:
        return (number + 1 if at_most and number else 0), number
    return (0, number) if at_most or number > 0 else (1, number + 1)


def _find_group(sample: Sample, per_pair: bool) -> Group:
    return (sample.state, sample.action) if per_pair else NO_PAIR


def _count_answers(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool
) -> dict[Key, list[int]]:
    """{question: [no, yes]} in the order in which the questions were first asked."""
    counts: dict[Key, list[int]] = {}
    for sample in samples:
        group = _find_group(sample, per_pair)
        for delays, answer in ask_questions(form, sample, largest):
            counts.setdefault((group, delays), [0, 0])[answer] += 1
    return counts


def _find_intervals(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool, delta: float
) -> tuple[Interval, ...]:
    """The confidence set of every question. The j-th to be asked gets the share 1/(j (j + 1))."""
    found = []
    counts = _count_answers(form, samples, largest, per_pair)
    for j, ((group, (before, delay)), (no, yes)) in enumerate(counts.items(), start=1):
        radius = pkd.confidence.radius([no, yes], delta, weight=1 / (j * (j + 1)))
        share = yes / (no + yes)
        low, high = (_find_edge(share, radius, side) for side in (0.0, 1.0))
        found.append(Interval(group, before, delay, no + yes, yes, low, high))
    return tuple(sorted(found, key=lambda one: (str(one.group), one.before, one.delay)))


def _find_edge(share: float, radius: float, side: float) -> float:
    """The p nearest to `side` with kl(share, p) <= radius, by bisection; never too narrow."""
    inside, outside = share, side
    if _divergence(share, side) <= radius:
        return side
    for _ in range(60):
        middle = (inside + outside) / 2
        if _divergence(share, middle) <= radius:
            inside = middle
        else:
            outside = middle
    return outside


def _divergence(p: float, q: float) -> float:
    """kl(p, q) of two coins."""
    total = 0.0
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            total += a * math.log(a / b) if b > 0 else math.inf
    return total


def compare_forms(
    samples: Iterable[Sample], largest: int, *, per_pair: bool = False
) -> dict[str, float]:
    """The log of the probability of the samples under each form of law, its numbers mixed out.

    A form with fewer questions is paid for its simplicity. A difference of x means that the log is
    exp(x) times as likely.
    """
    found = {}
    kept = list(samples)
    for name, form in FORMS.items():
        rows = _count_answers(form, kept, largest, per_pair).values()
        found[name] = math.fsum(_log_best(row) - pkd.confidence.evidence(row) for row in rows)
    return found


def _log_best(row: Sequence[int]) -> float:
    n = sum(row)
    return math.fsum(k * math.log(k / n) for k in row if k)


def _estimate(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool
) -> dict[Group, DelayKernel]:
    """The most likely law of each group."""
    spans: dict[Group, dict[int, Counter[tuple[int, float]]]] = {}
    for sample in samples:
        rows = spans.setdefault(_find_group(sample, per_pair), {})
        # A chain draws another number for each delay before; the other forms draw one.
        row = rows.setdefault(sample.before if form is DelayChain else 0, Counter())
        row[_find_span(form, sample, largest)] += 1
    if form is DelayChain:
        return {group: _make_chain(rows, largest) for group, rows in spans.items()}
    longest = max(_find_longest(rows[0]) for rows in spans.values())
    make: Any = form
    return {
        group: make(tuple(_maximise(rows[0], form.first, longest))) for group, rows in spans.items()
    }


def _find_span(form: type[DelayKernel], sample: Sample, largest: int) -> tuple[int, float]:
    """(low, high): what a sample says of the number that made its delay."""
    low, high = form.first, math.inf
    for k in range(max(sample.before - 1, 0), min(sample.delay, largest - 1) + 1):
        number, at_most = form.ask(sample.before, k)
        if k < sample.delay:
            low = max(low, number + 1)
        elif not sample.censored:
            low, high = (low, number) if at_most else (number, number)
    return low, high


def _find_longest(spans: Mapping[tuple[int, float], int]) -> int:
    """The largest number that the spans need."""
    return max(0, *(low if high == math.inf else int(high) for low, high in spans))


def _maximise(spans: Mapping[tuple[int, float], int], first: int, longest: int) -> list[float]:
    """The most likely probabilities of first, ..., longest, by expectation-maximisation.

    p_j = (1/n) sum over the spans with j of p_j / Pr(span), until nothing changes.
    """
    size = longest - first + 1
    cuts = [
        (low - first, min(size, int(min(high, longest)) - first + 1), n)
        for (low, high), n in spans.items()
    ]
    total = sum(spans.values())
    p = [1.0 / size] * size
    for _ in range(MOST_ROUNDS):
        after = [0.0] * size
        for start, stop, n in cuts:
            mass = math.fsum(p[start:stop])
            for j in range(start, stop):
                after[j] += n * p[j] / (mass * total)
        moved = max(abs(a - b) for a, b in zip(p, after, strict=True))
        p = after
        if moved < CLOSE:
            break
    sure = [q if q > CLOSE * size else 0.0 for q in p]
    return [q / math.fsum(sure) for q in sure]


def _make_chain(rows: Mapping[int, Counter[tuple[int, float]]], largest: int) -> DelayChain:
    """The chain of delays; a delay that the log never left stays where it is."""
    table = []
    for before in range(largest + 1):
        least = max(before - 1, 0)
        if before in rows:
            part = _maximise(rows[before], least, largest) if largest > least else [1.0]
            table.append([0.0] * least + part)
        else:
            table.append([float(delay == before) for delay in range(largest + 1)])
    return DelayChain(table)
