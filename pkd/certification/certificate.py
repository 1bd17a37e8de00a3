"""What data prove: an interval for V* or for the value of a policy, and the robust plan.

Over the sets of laws that the data have not refuted (`pkd.certification.confidence`)

    high = max_a sum_y' P_Y(y'|s,a) [r + max {q.V(., y') : q in set(z)}],   low with the minimum,

so with probability 1 - delta the truth lies in [low, high], whatever policy produced the data and
at whatever time one looks. With a policy given it stands in place of max_a in both. All intervals
of one set of data hold together: a policy may be chosen by looking at the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from pkd.certification.assumptions import LogTest, check_log
from pkd.certification.logs import Log, as_log
from pkd.certification.unrefuted import Question, Unrefuted, find_more_samples
from pkd.engine import Compiled, compile
from pkd.engine.compiled import Act, Counts
from pkd.expect import fraction, require, show, whole
from pkd.files.frames import make_frame
from pkd.files.policies import adapt_policy
from pkd.model import ModelError
from pkd.planning.plan import Model, Plan, Policy, check_schedule
from pkd.planning.simulation import RandomisedError, refuse_weights
from pkd.planning.stationary import EndlessBounds, Interval
from pkd.planning.under_policy import UnderPolicy
from pkd.progress import working
from pkd.results.policies import read_policy
from pkd.show.tables import format_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Certificate", "Evidence", "certify"]

HEADER = ("feature", "samples", "radius")
SHOWN_ROWS = 30  # lines of a printed table
SMALL = 1e-6  # a delta below it is written out, since 1 - delta looks like 1
DIGITS = 30.0  # a bound is rounded by at most this part of the interval


class Evidence(NamedTuple):
    """What the data say about one feature."""

    feature: Any
    label: str
    samples: float  # N(z)
    radius: float  # C(z): the set is {q : KL(p^, q) <= C(z)}; infinite without data
    parameters: str = ""  # of a declared family, those that are left: the set is that of their laws


@attrs.frozen(eq=False, repr=False)
class Certificate:
    """With probability 1 - delta, all at once:

        optimal_low <= V* <= optimal_high,   policy_low <= V^policy <= policy_high,
        and the robust plan earns at least optimal_low.

    `low` and `high` are those of the policy if one was given, else those of V*.

    >>> import pkd
    >>> counts = {"coin": {"heads": 400, "tails": 600}}
    >>> found = pkd.certify("gambler", counts, policy=pkd.plan("gambler"))
    >>> print(found.sentence)  # doctest: +NORMALIZE_WHITESPACE
    with 95% confidence this policy earns between 0.203 and 0.348 per episode; the best possible
    policy at most 0.348
    >>> print(found.table())
    feature  samples   radius
    coin        1000  0.00737
    """

    optimal_low: float
    optimal_high: float
    policy_low: float | None  # None: no policy was given
    policy_high: float | None
    delta: float
    plan: Plan  # attains optimal_low: the robust plan
    _question: Question  # what can be asked again with more data
    log_test: LogTest | None = None  # None: counts have no order, so nothing could be tested

    @property
    def low(self) -> float:
        """The lower value of the policy, or of V* where no policy was given."""
        return self.optimal_low if self.policy_low is None else self.policy_low

    @property
    def high(self) -> float:
        """The upper value of the policy, or of V* where no policy was given."""
        return self.optimal_high if self.policy_high is None else self.policy_high

    @property
    def rejected(self) -> bool:
        """Whether the log speaks against what a certificate assumes: nothing is certified then."""
        return self.log_test is not None and not self.log_test.ok

    @property
    def gap(self) -> float:
        """high - low. Without a policy, the robust plan is that close to V*."""
        return self.high - self.low

    @property
    def gain(self) -> Interval | None:
        """Bounds on the best average reward per step of a run that never stops.

        They hold with the same confidence, together with everything else here. None: episodes
        end by themselves, are discounted, or are too short to see the states come back.

        >>> import pkd
        >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
        >>> coin = pkd.TabularMDP(tosses, [[0.0, -1.0], [1.0, -1.0]], horizon=50)
        >>> counts = {(s, 0): {0: 500, 1: 500} for s in (0, 1)}
        >>> found = pkd.certify(coin, counts | {(0, 1): {0: 9}, (1, 1): {1: 9}}).gain
        >>> found.low < 0.5 < found.high  # heads in half of the steps
        True
        """
        sets = self._question.sets
        engine = sets.compiled.explicit
        if isinstance(engine.model, UnderPolicy) or engine.rewards:
            return None
        if engine is not sets.compiled:
            counts = sets.compiled.named_counts(sets.tally)
            sets = Unrefuted(engine, counts, self.delta)
        bounds = EndlessBounds(engine, sets.low, None)
        # Narrowed sets hold for V* of the horizon alone, so the whole sets stand here.
        return None if bounds.discount < 1 else bounds.find_gain(sets.low, sets.high)

    @property
    def sentence(self) -> str:
        """The certificate in words; low values are rounded down, high ones up."""
        sure = f"with {100 * (1 - self.delta):.10g}% confidence"
        if self.delta < SMALL:
            sure = f"with confidence 1 - {self.delta:g}"
        if self.rejected:
            sure = "NOT certified, since the log breaks the assumptions: if they held,"
        places = _find_places(self.gap, self.low, self.high)
        low, high = _round(self.low, places, ROUND_FLOOR), _round(self.high, places, ROUND_CEILING)
        if self.policy_low is None:
            return (
                f"{sure} the best possible policy earns between {low} and {high} per episode; "
                f"the robust plan at least {low}"
            )
        best = _round(self.optimal_high, places, ROUND_CEILING)
        return (
            f"{sure} this policy earns between {low} and {high} per episode; the best possible "
            f"policy at most {best}"
        )

    def __repr__(self) -> str:
        return f"<Certificate: {self.sentence}>"

    @property
    def evidence(self) -> list[Evidence]:
        """What the data say about each unknown feature and reward, in the order of the model."""
        return list(_list_evidence(self._question.sets))

    def table(self, most: int = SHOWN_ROWS) -> str:
        """Features with the number of their samples and the radius of their set of laws.

        A feature with a declared family has the parameters that are left in place of a radius.
        """
        require(whole("most", most))
        rows = [
            (e.label, f"{e.samples:.10g}", e.parameters or f"{e.radius:.3g}") for e in self.evidence
        ]
        return format_table(HEADER, rows, most=most)

    def to_frame(self) -> pd.DataFrame:
        """The evidence as a pandas frame: feature, samples, radius, and parameters of families."""
        names = (*HEADER, "parameters")
        return make_frame(dict(zip(names, e[1:], strict=True)) for e in self.evidence)

    def more_samples(self, share: float = 0.5, *, progress: bool = False) -> dict[Any, int]:
        """{z: how many more samples} after which the interval is about `share` as wide as now.

        Features without a use are left out; the most wanted come first. Two assumptions make it an
        estimate: more samples show the frequencies of those that are there, with some unseen
        outcomes while there are outcomes that were seen only once; and each feature narrows the
        interval like 1 / sqrt(N(z)). Without data all outcomes count as equally likely: sample a
        part, and ask again.

        w(z) = the width that z makes by itself, with all other laws known, by two sweeps;
        a(z) = w(z) sqrt(N(z)), so the interval is about sum_z a(z) / sqrt(N(z));
        the least sum of N'(z) for a width is at N'(z) = max(N(z), c a(z)^(2/3)), and c is found by
        computing the interval that these samples would give.

        >>> import pkd
        >>> found = pkd.certify("gambler", {"coin": {"heads": 400, "tails": 600}})
        >>> found.more_samples()
        {'coin': 3458}
        >>> again = pkd.certify("gambler", {"coin": {"heads": 1783, "tails": 2675}})
        >>> round(again.gap / found.gap, 2)
        0.5
        """
        require(fraction("share", share))
        return find_more_samples(self._question, share, progress=progress)


def certify(
    model: Model, counts: Any, *, policy: Policy | str | Path | None = None, delta: float = 0.05
) -> Certificate:
    """[low, high] for V*, or for the value of a policy, from counts {z: {x': n}} or from a log.

    A log is a `Log`, a CSV file, a frame, or pairs (z, x') in order of time. It is tested
    (`pkd.certification.assumptions`): a log that breaks the assumptions certifies nothing.
    A policy is a plan, a function (h, x, y) that gives an action or {action: probability}, or a
    file that pkd wrote: a plan, a run, or a table of rules. The guarantee needs that the model is
    right: samples of a feature are independent draws of one law. delta: the probability with which
    the statement may fail.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}})  # the true value is 1/2
    >>> round(found.low, 3), round(found.high, 3), found.plan.action(1, 0, None)
    (0.434, 1.0, 0)
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}}, policy=lambda h, x, y: 0)
    >>> round(found.low, 3), round(found.high, 3)
    (0.434, 0.566)
    """
    check_schedule(1, delta)
    compiled = compile(model)
    counts = compiled.name_counts(counts)
    log = counts if isinstance(counts, Mapping) else as_log(compiled, counts)
    found = check_log(compiled.model, log) if isinstance(log, Log) else None
    with working(f"certifying {compiled.n_states:,} states over {compiled.horizon} steps"):
        sets = Unrefuted(compiled, log, delta)
        robust, high = sets.plan_least(), sets.best()
        if policy is None:
            question = Question(sets, None)
            return Certificate(robust.value, high, None, None, delta, robust, question, found)
        question = _ask(sets, log, delta, _read_policy(policy, compiled))
        own = question.interval()
    return Certificate(robust.value, high, *own, delta, robust, question, found)


def _ask(sets: Unrefuted, counts: Counts, delta: float, policy: Policy) -> Question:
    """The interval of a policy as a question to an engine that can follow it."""
    compiled = sets.compiled
    if isinstance(policy, Plan) and policy.compiled is compiled:
        return Question(sets, policy.choices)
    plain = compiled.plain
    try:
        choices = plain.tabulate(refuse_weights(policy))
    except RandomisedError:
        return _ask_random(sets, counts, delta, policy)
    return Question(sets if plain is compiled else Unrefuted(plain, counts, delta), choices)


def _ask_random(sets: Unrefuted, counts: Counts, delta: float, act: Act) -> Question:
    """The same for a policy that chooses at random.

    A policy may not meet every feature, and it may have been chosen by the data. So each set keeps
    the part of delta that it has in the model itself.
    """
    compiled = sets.compiled
    engine = compile(UnderPolicy(compiled.model, act), large=False)
    met = {**engine.feature_index, **engine.reward_index}
    own = Unrefuted(engine, {z: row for z, row in counts.items() if z in met}, delta)
    own.take_budget(sets)
    return Question(own, engine.policy())


def _read_policy(policy: Policy | str | Path, compiled: Compiled) -> Policy:
    """A policy from a file, or as it was given."""
    if not isinstance(policy, str | Path):
        if not callable(policy) or isinstance(policy, type):
            raise ModelError(
                f"policy is {show(policy)}; expected a Plan, a function (h, x, y) -> action, or a "
                "file of a policy that pkd wrote"
            )
        return policy if isinstance(policy, Plan) else adapt_policy(compiled.model, policy)
    return read_policy(policy, compiled)


def _list_evidence(sets: Unrefuted) -> Iterator[Evidence]:
    model = sets.compiled.model
    names = [*sets.compiled.features, *sets.compiled.reward_index]
    left = sets.find_parameters()
    numbers = zip(names, sets.numbers.tolist(), sets.radii().tolist(), strict=True)
    for row, (z, n, c) in enumerate(numbers):
        yield Evidence(z, model.feature_label(z), n, c, left.get(row, ""))


def _find_places(gap: float, low: float, high: float) -> int:
    """Decimal places with which rounding costs a small part of the interval."""
    unit = gap / DIGITS or max(abs(low), abs(high)) * 1e-6 or 1.0
    return max(0, min(300, math.ceil(-math.log10(unit))))


def _round(value: float, places: int, direction: str) -> str:
    if abs(value) >= 1e20:
        return f"{value:g}"
    exact = Context(prec=400, rounding=direction)  # 20 digits before the point, 300 after it
    rounded = exact.quantize(Decimal(value), Decimal(1).scaleb(-places))
    return str(rounded) if rounded else "0"  # never -0
