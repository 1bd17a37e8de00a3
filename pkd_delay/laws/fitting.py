"""A law of the delay from a log, with its confidence set, the tests of its form, and advice."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pkd import ModelError
from pkd.expect import failure, flag, fraction, if_given, one_of, require, whole
from pkd_delay.laws.estimation import (
    AssumptionTest,
    Group,
    QuestionInterval,
    bound_loss,
    compare_forms,
    estimate,
    find_intervals,
    run_tests,
)
from pkd_delay.laws.files import write_law
from pkd_delay.laws.kernel import FORMS, DelayKernel, as_kernel, describe_delays, find_no_form
from pkd_delay.laws.logs import DelayLog, Sample, read_log

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes

__all__ = ["FittedDelay", "fit_delay"]

MOST_DELAY = 64  # a law with more ticks than this is not fitted unless it is asked for
MOST_SHARES = 6  # delays whose shares a sentence names
NAMES = {
    "order": "states come in order",
    "loss": "losses do not depend on the delay before",
}
SHOWN_OUTAGES = 5
TAILS = (0.001, 0.01, 0.05)  # the masses that a refusal may propose to cut
MOST_QUESTIONS = 24  # that have room beside each other in a picture
REMEDIES = {
    "order": "states are held back until the earlier ones are there; lags fit such a log best",
    "next state": "check that every state that was sent has a row, also the last one; if so, the "
    "delay tells something about the state: put the delay into the model's own y",
    "delay before": "use the form of law that explains the log best",
    "change before": "the delay has a memory: use a chain of delays, or put a mode into the state",
    "time": "fit parts of the log separately (--delta of each), or put the season into the state",
    "loss": "late states are lost more often, so the fitted delays are too short: find out where "
    "states are lost",
    "state and action": "fit one law per state and action (--per-pair)",
}


@attrs.frozen(repr=False)
class FittedDelay:
    """A law of the delay that was fitted to a log, with its confidence set.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP(two_state_chain(20), {-1: 0.3, 0: 0.4, 1: 0.3}, max_delay=3)
    >>> episodes = pkd_delay.plan(late).simulate(200)
    >>> fit = fit_delay(pkd_delay.InterArrival, episodes, max_delay=3)
    >>> fit.contains({-1: 0.3, 0: 0.4, 1: 0.3}), fit.contains({-1: 0.2, 0: 0.6, 1: 0.2})
    (True, False)
    """

    form: type[DelayKernel]
    laws: Mapping[Group, DelayKernel]  # of each (state, action), or of None: one law for all
    max_delay: int
    delta: float
    intervals: tuple[QuestionInterval, ...]
    log: DelayLog
    evidence: Mapping[str, float]  # log of the probability of the log, for each form of law
    tests: tuple[AssumptionTest, ...]
    certified: bool = True  # whether the largest delay was given, not read off the same log

    @property
    def law(self) -> DelayKernel:
        """The fitted law, if all states and actions share it."""
        if None not in self.laws:
            raise ModelError("the log was fitted per state and action; expected .laws")
        return self.laws[None]

    def contains(self, law: Any) -> bool:
        """Whether a law lies in the confidence set; a mapping for laws per (state, action).

        With probability 1 - delta the true law does, if the largest delay was given (`certified`).
        """
        pairs = law if isinstance(law, Mapping) and None not in self.laws else {}
        return all(
            one.low
            <= as_kernel(pairs.get(one.group, law)).arrival(one.before, one.delay)
            <= one.high
            for one in self.intervals
        )

    @property
    def holds(self) -> bool:
        """Whether no test speaks against this form of law."""
        return all(test.holds for test in self.tests)

    @property
    def best_form(self) -> str:
        """The form of law under which the log is most likely."""
        return max(self.evidence, key=lambda form: self.evidence[form])

    def __repr__(self) -> str:
        count = "one law" if None in self.laws else f"{len(self.laws)} laws"
        return f"<FittedDelay: {self.form.form}, {count}, {len(self.log.samples)} delays>"

    def __str__(self) -> str:
        """The fit in words: the log, the law, its set, the tests, and what to do."""
        log, own = self.log, self.form.form
        cut = f"{log.censored} of them cut short by the end"
        lost = f"{log.skipped} rows without a known delay before"
        lines = [
            f"{log.rows} rows, {log.episodes} episodes: {len(log.samples)} delays, {cut}, {lost}",
            *log.notes,
            *self._say_losses(),
            f"delays in the log: {describe_delays(self._count_delays())}",
            f"fitted form: {self.form.title}, max_delay {self.max_delay}",
        ]
        if len(self.laws) == 1:
            (law,) = self.laws.values()
            lines.append(f"the law means: {law.describe(self.max_delay)}")
        for name, found in self.list_tests():
            mark, why = ("holds", "") if found == "holds" else ("FAILS", found[5:])
            lines.append(f"  {mark}  {name}{why}")
        for form, evidence in self.evidence.items():
            if form != own:
                factor = _write_factor(evidence - self.evidence[own])
                lines.append(f"{FORMS[form].title}: the log is {factor} than under the fitted form")
        return "\n".join([*lines, self._write_verdict()])

    def say_plainly(self) -> list[str]:
        """The fit for a reader who knows no law of delays; the first sentence is the answer."""
        delays = self._count_delays()
        mean = math.fsum(d * p for d, p in enumerate(delays))
        said = [f"A state comes {mean:.2g} ticks late on average, and at most {len(delays) - 1}."]
        shares = [
            f"{p:.1%} came {d} tick{'s' if d != 1 else ''} late"
            for d, p in enumerate(delays)
            if p > 0
        ]
        more = len(shares) - MOST_SHARES
        rest = f", and {math.fsum(delays[-more:]):.2%} later" if more > 0 else ""
        said.append(f"In the log {', '.join(shares[:MOST_SHARES])}{rest}.")
        said += [f"{text[0].upper()}{text[1:]}." for text in (*self.log.notes, *self._say_losses())]
        form = self.form.title
        if self.holds:
            return [*said, f"The log agrees with the assumption of {form}: all tests hold."]
        return [*said, f"The log contradicts the assumption of {form}: see the tests below."]

    def list_tests(self) -> list[tuple[str, str]]:
        """(what was tested, what was found), in words."""
        return [
            (
                NAMES.get(test.what, f"no dependence on the {test.what}"),
                "holds" if test.holds else f"fails: {test.detail}",
            )
            for test in self.tests
        ]

    def advise(self) -> list[str]:
        """What to measure or to do next."""
        found = [] if self.holds else [f"Delays: {self._write_verdict()}."]
        if not self.certified:
            found.append(
                "Delays: the largest delay was read off this log, so the law has no guarantee. "
                "Find out after how many ticks the system gives a state up, and say it "
                "(--max-delay)."
            )
        loss = self.log.loss
        if loss.lost:
            found.append(
                "Delays: find out why states are lost. If late ones are lost more often, the "
                "true delays are longer than these."
            )
        return found

    def _say_losses(self) -> Iterator[str]:
        """What was lost, and at which rate."""
        loss = self.log.loss
        if loss.lost:
            low, high = bound_loss(loss.single, loss.kept, self.delta)
            yield (
                f"lost states: {loss.single} of {loss.kept + loss.single}, a rate of "
                f"{loss.single / (loss.kept + loss.single):.3g} in [{low:.3g}, {high:.3g}] with "
                f"probability {1 - self.delta:g}, if each is lost by chance"
            )
        if loss.outages:
            longest = sorted(loss.outages, reverse=True)[:SHOWN_OUTAGES]
            more = ", ..." if len(loss.outages) > SHOWN_OUTAGES else ""
            ticks = ", ".join(map(str, longest)) + more
            yield f"outages: {len(loss.outages)}, of {ticks} states, not in that rate"
        if loss.unused:
            yield f"not used: {loss.unused} states at the ends of episodes, late or lost"

    def _write_verdict(self) -> str:
        best, title = self.best_form, self.form.title
        same, other = best == self.form.form, FORMS[best].title
        if self.holds and same:
            return f"verdict: {title} fit this log"
        if self.holds:
            return (
                f"verdict: no test speaks against {title}, "
                f"but {other} explain the log better: --form {best}"
            )
        failed = [test.what for test in self.tests if not test.holds]
        what = "; ".join(f"{name}: {REMEDIES[name]}" for name in failed)
        advice = "" if same else f"; {other} explain it better: --form {best}"
        return f"verdict: the log breaks {title} ({what}){advice}"

    def _count_delays(self) -> list[float]:
        """How often the states of the log were 0, 1, ... late, those not cut short."""
        counts = Counter(sample.delay for sample in self.log.samples if not sample.censored)
        n = max(counts.total(), 1)
        return [counts[d] / n for d in range(max(counts, default=0) + 1)]

    def save(self, path: str | Path) -> None:
        """Writes the law to a JSON file, for `--inter-arrival FILE` and `read_law`."""
        spans = [attrs.asdict(one) for one in self.intervals]
        write_law(path, self.laws, self.max_delay, {"delta": self.delta, "intervals": spans})

    def plot(self, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
        """Draws how often each question was answered yes, and the delays of the log and the law."""
        if axes is None:
            from matplotlib.figure import Figure

            axes = list(Figure(figsize=(9, 3.6), layout="constrained").subplots(1, 2))
        left, right = axes
        shown = sorted(self.intervals, key=lambda one: -one.asked)[:MOST_QUESTIONS]
        shown.sort(key=lambda one: (str(one.group), one.before, one.delay))
        for i, one in enumerate(shown):
            left.plot([i, i], [one.low, one.high], color="0.6", linewidth=5, solid_capstyle="butt")
            left.plot(i, one.share, "o", color="black", markersize=4)
        words = f"certified, {1 - self.delta:.0%} for all" if self.certified else "no guarantee"
        left.set(
            title=f"does the next state come now? ({words})",
            xlabel="delay before → delay that is asked for",
            ylabel="probability",
            ylim=(-0.03, 1.03),
            xlim=(-0.6, len(shown) - 0.4),
            xticks=range(len(shown)),
        )
        names = [f"{one.before}→{one.delay}" for one in shown]
        left.set_xticklabels(names, rotation=0 if len(shown) < 9 else 60)
        seen = self._count_delays()[: self.max_delay + 1]
        right.bar(range(len(seen)), seen, color="0.8", label="log")
        if len(self.laws) == 1:
            (law,) = self.laws.values()
            steps = max(len(self.log.samples) // self.log.episodes, 1)
            label = f"fitted {self.form.form}, {steps} steps"
            right.plot(law.delays(self.max_delay, steps), "o-", color="black", label=label)
        right.set(title="delays", xlabel="delay in ticks", ylabel="share")
        right.set(xticks=range(self.max_delay + 1), ylim=(0, 1.3 * right.get_ylim()[1]))
        right.legend(loc="upper right")
        for ax in axes:
            ax.title.set_fontsize(10)
        return axes


def fit_delay(
    form: type[DelayKernel] | str,
    log: Any,
    *,
    per_pair: bool = False,
    max_delay: int | None = None,
    delta: float = 0.05,
    tick: float | str | None = None,
    false_alarm: float = 0.01,
) -> FittedDelay:
    """The most likely law of one form, its confidence set, and tests of its assumption.

    form: `InterArrival`, `Lags` or `DelayChain`, or "best": the one that explains the log best.
    log: a CSV file or a frame with the columns episode, step, sent, shown (perhaps end, state,
    action), or with episode, step, age; or such rows; or simulated episodes; or a `DelayLog`.
    per_pair: one law for each state and action. max_delay: the delay at which the system cuts;
    later states of the log are cut to it; None: the largest of the log. tick: how long one step
    takes, in the unit of the log or as "10s"; None: the spacing of `sent`.

    >>> import pkd_delay
    >>> times = [(0, 0), (1, 2), (2, 3), (3, 3), (4, 4), (5, 6), (6, 6)]
    >>> rows = [dict(episode=1, step=t, sent=t, shown=shown) for t, shown in times]
    >>> fit_delay(pkd_delay.Lags, rows)
    <FittedDelay: lags, one law, 6 delays>
    """
    named = isinstance(form, str)
    require(
        one_of("form", form, [*FORMS, "best"]) if named else find_no_form(form),
        failure("delta", delta),
        fraction("false_alarm", false_alarm),
        if_given(whole, "max_delay", max_delay),
        flag("per_pair", per_pair),
    )
    read = log if isinstance(log, DelayLog) else read_log(log, tick, max_delay)
    samples = read.samples
    if per_pair and not read.has_pairs:
        raise ModelError("the log has no states and actions; expected the columns state and action")
    largest = max(max(sample.before, sample.delay) for sample in samples)
    if max_delay is not None and largest > max_delay:
        raise ModelError(
            f"the log has a delay of {largest} ticks; expected at most max_delay={max_delay}"
        )
    if max_delay is None and largest > MOST_DELAY:
        raise ModelError(_propose_cut(samples, largest))
    largest = largest if max_delay is None else max_delay
    evidence = compare_forms(samples, largest, per_pair=per_pair)
    if isinstance(form, str):
        form = FORMS[max(evidence, key=lambda name: evidence[name]) if form == "best" else form]
    return FittedDelay(
        form,
        estimate(form, samples, largest, per_pair),
        largest,
        delta,
        find_intervals(form, samples, largest, per_pair, delta),
        read,
        evidence,
        run_tests(form, read, largest, per_pair, false_alarm),
        certified=max_delay is not None,
    )


def _propose_cut(samples: Sequence[Sample], largest: int) -> str:
    """A refusal of a long tail, with the cut that would keep nearly all of the mass."""
    delays = sorted(sample.delay for sample in samples)
    cuts = [delays[math.ceil((1 - tail) * len(delays)) - 1] for tail in TAILS]
    cut = next((cut for cut in cuts if cut <= MOST_DELAY), None)
    said = f"the log has delays of up to {largest} ticks; expected at most {MOST_DELAY}"
    if cut is None:
        return (
            f"{said}, and {TAILS[-1]:.0%} are longer than {cuts[-1]}: --tick T makes ticks longer"
        )
    later = sum(delay > cut for delay in delays)
    return (
        f"{said} unless max_delay is given: --max-delay {cut} cuts {later} of {len(delays)} delays"
    )


def _write_factor(gain: float) -> str:
    power = abs(gain) / math.log(10)
    size = f"10^{power:.0f}" if power >= 3 else f"{10**power:.3g}"
    return f"{size} times {'more' if gain > 0 else 'less'} likely"
