"""What a log says of a law of the delay: the most likely law, the laws not refuted, and tests.

A delay answers questions one after the other: "is it k, given that it is at least k?". Each of them
is a coin of its own, asked at times that depend on the past alone. So its confidence set holds at
all times at once (`pkd.certification.confidence`), and the sets of all questions together hold with
probability 1 - delta.

The estimate is the law of the numbers (inter-arrival times, lags) that makes the log
most likely when each number is known up to an interval [low, high]; expectation-maximisation finds
it. A test asks whether an answer depends on something that the form of law leaves out, by the
sequential likelihood ratios of `pkd.check_samples`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd.certification import confidence
from pkd_delay.laws.kernel import FORMS, ArrivalQuestion, DelayKernel
from pkd_delay.laws.logs import DelayLog, Sample, ask_questions

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = [
    "AssumptionTest", "QuestionInterval", "bound_loss", "compare_forms", "estimate",
    "find_intervals", "run_tests",
]  # fmt: skip

CLOSE, MOST_ROUNDS = 1e-12, 20_000  # of expectation-maximisation
Group = tuple[str | None, str | None] | None  # (state, action); None: all share the law
Key = tuple[Group, tuple[int, int]]  # a question: whose, and (before, delay)


@attrs.frozen
class QuestionInterval:
    """What a log says of one question: Pr(D_h = delay | D_{h-1} = before, D_h >= delay)."""

    group: Group
    before: int  # the first pair of delays that asks it
    delay: int
    asked: int
    yes: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """How often the answer was yes."""
        return self.yes / self.asked


@cache
def _name_question(form: type[DelayKernel], before: int, delay: int) -> tuple[int, int]:
    """The first pair of delays that asks the same of the same number."""

    def ask(b: int, d: int) -> tuple[int, ArrivalQuestion]:
        return form.number_group(b), form.ask(b, d)

    pairs = ((b, d) for b in range(before + 1) for d in range(max(b - 1, 0), delay + 1))
    return next(pair for pair in pairs if ask(*pair) == ask(before, delay))


def _find_group(sample: Sample, per_pair: bool) -> Group:
    return (sample.state, sample.action) if per_pair else None


def _list_answers(
    form: type[DelayKernel], sample: Sample, largest: int, per_pair: bool
) -> list[tuple[Key, bool]]:
    """Each question that a sample answers, and the answer."""
    group = _find_group(sample, per_pair)
    answers = ask_questions(sample, largest)
    return [((group, _name_question(form, *pair)), answer) for pair, answer in answers]


def _count_answers(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool
) -> dict[Key, list[int]]:
    """{question: [no, yes]} in the order in which the questions were first asked."""
    counts: dict[Key, list[int]] = {}
    for sample in samples:
        for key, answer in _list_answers(form, sample, largest, per_pair):
            counts.setdefault(key, [0, 0])[answer] += 1
    return counts


def find_intervals(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool, delta: float
) -> tuple[QuestionInterval, ...]:
    """The confidence set of every question. The j-th to be asked gets the share 1/(j (j + 1))."""
    found = []
    counts = _count_answers(form, samples, largest, per_pair)
    for j, ((group, (before, delay)), (no, yes)) in enumerate(counts.items(), start=1):
        radius = confidence.radius([no, yes], delta, weight=1 / (j * (j + 1)))
        share = yes / (no + yes)
        low, high = (_find_edge(share, radius, side) for side in (0.0, 1.0))
        found.append(QuestionInterval(group, before, delay, no + yes, yes, low, high))
    return tuple(sorted(found, key=lambda one: (str(one.group), one.before, one.delay)))


def bound_loss(lost: int, kept: int, delta: float) -> tuple[float, float]:
    """With probability 1 - delta, between which rates a state is lost, if losses are independent.

    >>> [round(edge, 4) for edge in bound_loss(10, 990, 0.05)]
    [0.0022, 0.0272]
    """
    radius = confidence.radius([lost, kept], delta)
    low, high = (_find_edge(lost / (lost + kept), radius, side) for side in (0.0, 1.0))
    return low, high


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
    samples: Sequence[Sample], largest: int, *, per_pair: bool = False
) -> dict[str, float]:
    """The log of the probability of the samples under each form of law, its numbers mixed out.

    A form with fewer questions is paid for its simplicity. A difference of x means that the log is
    exp(x) times as likely.
    """
    found = {}
    for name, form in FORMS.items():
        rows = _count_answers(form, samples, largest, per_pair).values()
        best = (math.fsum(k * math.log(k / sum(row)) for k in row if k) for row in rows)
        gains = (confidence.evidence(row) for row in rows)
        found[name] = math.fsum(a - b for a, b in zip(best, gains, strict=True))
    return found


def estimate(
    form: type[DelayKernel], samples: Iterable[Sample], largest: int, per_pair: bool
) -> dict[Group, DelayKernel]:
    """The most likely law of each group."""
    spans: dict[Group, dict[int, Counter[tuple[int, float]]]] = {}
    for sample in samples:
        rows = spans.setdefault(_find_group(sample, per_pair), {})
        row = rows.setdefault(form.number_group(sample.before), Counter())
        row[_find_span(form, sample, largest)] += 1
    make: Any = form
    if form.number_group(1) != 0:  # a law of numbers for each delay before
        return {group: make(_make_rows(rows, largest)) for group, rows in spans.items()}
    ends = [end for rows in spans.values() for span in rows[0] for end in span]
    longest = max(0, *(int(end) for end in ends if end < math.inf))
    return {group: make(_maximise(rows[0], form.first, longest)) for group, rows in spans.items()}


def _find_span(form: type[DelayKernel], sample: Sample, largest: int) -> tuple[int, float]:
    """(low, high): what a sample says of the number that made its delay."""
    low, high = form.first, math.inf
    for pair, answer in ask_questions(sample, largest):
        least, most = form.ask(*pair).limits(answer, math.inf)
        low, high = max(low, least), min(high, most)
    return low, high


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


def _make_rows(rows: Mapping[int, Counter[tuple[int, float]]], largest: int) -> list[list[float]]:
    """The rows of a chain of delays; a delay that the log never left stays where it is."""
    table = []
    for before in range(largest + 1):
        least = max(before - 1, 0)
        if before in rows:
            part = _maximise(rows[before], least, largest) if largest > least else [1.0]
            table.append([0.0] * least + part)
        else:
            table.append([float(delay == before) for delay in range(largest + 1)])
    return table


@attrs.frozen
class AssumptionTest:
    """One thing that the delay must not depend on."""

    what: str
    p_value: float  # for `order`: 0 where something came out of order
    holds: bool
    detail: str  # where it fails most; "" where it holds


def run_tests(
    form: type[DelayKernel], log: DelayLog, largest: int, per_pair: bool, false_alarm: float
) -> tuple[AssumptionTest, ...]:
    """All tests of one form of law; one of them fails by chance with at most `false_alarm`."""
    contexts: dict[str, Callable[[int, Sample], Any]] = {
        "next state": lambda i, sample: sample.next_state,
        "delay before": lambda i, sample: sample.before,
        "change before": lambda i, sample: sample.change,
        # Each part is as long as all before it. The length of the log must not say where a part
        # ends: how many delays it holds depends on the delays.
        "time": lambda i, sample: (i + 1).bit_length(),
        "state and action": lambda i, sample: (sample.state, sample.action),
    }
    if per_pair:
        del contexts["state and action"]
    late = log.out_of_order
    found = [
        AssumptionTest(
            "order", float(not late), not late, f"{len(late)} times; {late[0]}" if late else ""
        )
    ]
    asked: dict[str, list[tuple[Any, bool, Any]]] = {
        what: [
            (key, answer, context(i, sample))
            for i, sample in enumerate(log.samples)
            if context(i, sample) is not None
            for key, answer in _list_answers(form, sample, largest, per_pair)
        ]
        for what, context in contexts.items()
    }
    if log.loss.lost:
        asked["loss"] = [("lost", lost, before) for before, lost in log.loss.asked]
    for what, triples in asked.items():
        report = pkd.check_samples(_Answers(), triples, false_alarm / len(asked))
        p_value = min((test.p_value for test in report.tests), default=1.0)
        event = "a state was lost" if what == "loss" else "the next state came"
        detail = (
            ""
            if report.ok
            else " and ".join(
                f"{event} in {counts.get(True, 0)} of {sum(counts.values())} cases where "
                f"{'the delay before' if what == 'loss' else 'this'} was {name}"
                for name, counts in report.tests[0].pair
            )
        )
        found.append(AssumptionTest(what, p_value, report.ok, detail))
    return tuple(found)


class _Answers(pkd.PartiallyKnownMDP):
    """The features of the tests: every question has two answers. It is never played."""

    horizon = 1

    def start(self) -> tuple[None, None]:
        return None, None

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.END

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return []

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0

    def outcomes(self, z: Any) -> tuple[bool, bool]:
        return False, True
