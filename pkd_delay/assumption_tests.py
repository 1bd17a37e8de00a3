"""Does a log follow the form of law that was fitted to it? Tests, and what to do where one fails.

Each test asks whether an answer ("is the delay k, given that it is at least k?") depends on
something that the form of law leaves out. They are the sequential likelihood-ratio tests of
`pkd.check_samples`: valid for every policy and at every length of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_delay.delay_kernel import DelayKernel
from pkd_delay.delay_log import DelayLog, Sample
from pkd_delay.fitting import FORMS, FittedDelay, ask_questions

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["AssumptionTest", "test_assumption", "write_report"]

BLOCKS = 8  # parts of the log that are compared with each other
WORDS = {
    "inter-arrival": "inter-arrival times (Assumption 1)",
    "lags": "independent lags, delivered in order",
    "chain": "a Markov chain of delays",
}
REMEDIES = {
    "order": "states are held back until the earlier ones are there; lags fit such a log best",
    "next state": "check that every state that was sent has a row, also the last one; if so, the "
    "delay tells something about the state: put the delay into the model's own y",
    "delay before": "use the form of law that explains the log best",
    "change before": "the delay has a memory: use a chain of delays, or put a mode into the state",
    "time": "fit parts of the log separately (--delta of each), or put the season into the state",
    "state and action": "fit one law per state and action (--per-pair)",
}


@attrs.frozen
class AssumptionTest:
    """One thing that the delay must not depend on."""

    what: str
    p_value: float  # for `order`: 0 where something came out of order
    holds: bool
    detail: str  # where it fails most; "" where it holds

    @property
    def remedy(self) -> str:
        """What to do if it fails."""
        return REMEDIES[self.what]


def test_assumption(
    form: type[DelayKernel], log: DelayLog, largest: int, per_pair: bool, false_alarm: float
) -> tuple[AssumptionTest, ...]:
    """All tests of one form of law; one of them fails by chance with at most `false_alarm`."""
    start = max(len(log.samples), 1)
    contexts: dict[str, Callable[[int, Sample], Any]] = {
        "next state": lambda i, sample: sample.next_state,
        "delay before": lambda i, sample: sample.before,
        "change before": lambda i, sample: sample.change,
        "time": lambda i, sample: i * BLOCKS // start,
        "state and action": lambda i, sample: (sample.state, sample.action),
    }
    if per_pair:
        del contexts["state and action"]
    late = log.out_of_order
    order = AssumptionTest("order", 0.0 if late else 1.0, not late, _count_disorder(late))
    share = false_alarm / len(contexts)
    return (
        order,
        *(
            _test(what, context, form, log.samples, largest, per_pair, share)
            for what, context in contexts.items()
        ),
    )


test_assumption.__test__ = False  # type: ignore[attr-defined]  # its name is not for pytest


def _count_disorder(late: tuple[str, ...]) -> str:
    return "" if not late else f"{len(late)} times; {late[0]}"


def _test(
    what: str,
    context: Callable[[int, Sample], Any],
    form: type[DelayKernel],
    samples: Iterable[Sample],
    largest: int,
    per_pair: bool,
    false_alarm: float,
) -> AssumptionTest:
    triples = [
        (((sample.state, sample.action) if per_pair else None, delays), answer, context(i, sample))
        for i, sample in enumerate(samples)
        if context(i, sample) is not None
        for delays, answer in ask_questions(form, sample, largest)
    ]
    report = pkd.check_samples(_Answers(), triples, false_alarm)
    p_value = min((test.p_value for test in report.tests), default=1.0)
    detail = ""
    if not report.ok:
        worst = report.tests[0]
        detail = " and ".join(
            f"the next state came in {counts.get(True, 0)} of {sum(counts.values())} cases "
            f"where this was {name}"
            for name, counts in worst.pair
        )
    return AssumptionTest(what, p_value, report.ok, detail)


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


def write_report(fit: FittedDelay) -> str:
    """The fit in words: the log, the law, its set, the tests, and what to do."""
    log = fit.log
    data = (
        f"{log.rows} rows, {log.episodes} episodes: {len(log.samples)} delays, "
        f"{log.censored} of them cut short by the end, {log.skipped} rows "
        "without a known delay before"
    )
    lines = [
        data,
        f"delays in the log: {fit.describe_delays()}",
        f"fitted form: {WORDS[fit.form.form]}, max_delay {fit.max_delay}",
    ]
    if len(fit.laws) == 1:
        lines.append(f"the law means: {fit.laws[next(iter(fit.laws))].describe(fit.max_delay)}")
    lines += [_write_test(test) for test in fit.tests]
    others = {form: fit.evidence[form] - fit.evidence[fit.form.form] for form in FORMS}
    lines += [
        f"{WORDS[form]}: the log is {_write_factor(gain)} than under the fitted form"
        for form, gain in others.items()
        if form != fit.form.form
    ]
    return "\n".join([*lines, _write_verdict(fit)])


def _write_test(test: AssumptionTest) -> str:
    name = "states come in order" if test.what == "order" else f"no dependence on the {test.what}"
    if test.holds:
        return f"  holds  {name}"
    return f"  FAILS  {name}: {test.detail}"


def _write_factor(gain: float) -> str:
    power = abs(gain) / 2.302585092994046
    size = f"10^{power:.0f}" if power >= 3 else f"{10**power:.3g}"
    return f"{size} times {'more' if gain > 0 else 'less'} likely"


def _write_verdict(fit: FittedDelay) -> str:
    best = fit.best_form
    if fit.holds and best == fit.form.form:
        return f"verdict: {WORDS[best]} fit this log"
    if fit.holds:
        return (
            f"verdict: no test speaks against {WORDS[fit.form.form]}, "
            f"but {WORDS[best]} explain the log better: --form {best}"
        )
    failed = [test for test in fit.tests if not test.holds]
    what = "; ".join(f"{test.what}: {test.remedy}" for test in failed)
    advice = "" if best == fit.form.form else f"; {WORDS[best]} explain it better: --form {best}"
    return f"verdict: the log breaks {WORDS[fit.form.form]} ({what}){advice}"
