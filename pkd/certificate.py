"""What data prove: an interval for V* or for the value of a policy, and the robust plan.

Over the sets of laws that the data have not refuted (`pkd.confidence`)

    high = max_a sum_y' P_Y(y'|s,a) [r + max {q.V(., y') : q in set(z)}],   low with the minimum,

so with probability 1 - delta the truth lies in [low, high], whatever policy produced the data and
at whatever time one looks. With a policy given it stands in place of max_a in both. All intervals
of one set of data hold together: a policy may be chosen by looking at the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import attrs

from pkd.engine import Compiled, compile
from pkd.engine.compiled import Act, Counts
from pkd.evaluation import RandomisedError, refuse_weights
from pkd.following import Following
from pkd.model import ModelError
from pkd.planning import Model, Plan, Policy, check_schedule, to_function
from pkd.results.files import read_npz
from pkd.results.run import Run
from pkd.unrefuted import Question, Unrefuted, find_more_samples

__all__ = ["Certificate", "Evidence", "certify"]

HEADER = ("feature", "samples", "radius")
SHOWN_ROWS = 30  # lines of a printed table
DIGITS = 30.0  # a bound is rounded by at most this part of the interval


class Evidence(NamedTuple):
    """What the data say about one feature."""

    feature: Any
    label: str
    samples: float  # N(z)
    radius: float  # C(z): the set is {q : KL(p^, q) <= C(z)}; infinite without data


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
    feature  samples  radius
    coin     1000     0.00737
    """

    optimal_low: float
    optimal_high: float
    policy_low: float | None  # None: no policy was given
    policy_high: float | None
    delta: float
    plan: Plan  # attains optimal_low: the robust plan
    _question: Question  # what can be asked again with more data

    @property
    def low(self) -> float:
        """The lower value of the policy, or of V* where no policy was given."""
        return self.optimal_low if self.policy_low is None else self.policy_low

    @property
    def high(self) -> float:
        """The upper value of the policy, or of V* where no policy was given."""
        return self.optimal_high if self.policy_high is None else self.policy_high

    @property
    def gap(self) -> float:
        """high - low. Without a policy, the robust plan is that close to V*."""
        return self.high - self.low

    @property
    def sentence(self) -> str:
        """The certificate in words; low values are rounded down, high ones up."""
        sure = f"with {100 * (1 - self.delta):.6g}% confidence"
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
        """Features with the number of their samples and the radius of their set of laws."""
        found = self.evidence
        rows = [(e.label, f"{e.samples:.10g}", f"{e.radius:.3g}") for e in found[:most]]
        lines = [HEADER, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join(text + ([f"... {len(found) - most} more"] if len(found) > most else []))

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
        if not 0 < share < 1:
            raise ModelError(f"share is {share!r}; expected a number between 0 and 1")
        return find_more_samples(self._question, share, progress=progress)


def certify(
    model: Model, counts: Counts, *, policy: Policy | str | Path | None = None, delta: float = 0.05
) -> Certificate:
    """[low, high] for V*, or for the value of a policy, from counts {z: {x': n}} or a `Log`.

    A policy is a plan, a function (h, x, y) that gives an action or {action: probability}, or the
    file of a plan or a run that was saved. The guarantee needs that the model is right: samples of
    a feature are independent draws of one law.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}})  # the true value is 1/2
    >>> round(found.low, 3), round(found.high, 3), found.plan.action(1, 0, None)
    (0.434, 1.0, 0)
    >>> found = pkd.certify(coin.model(), {(0, 0): {0: 500, 1: 500}}, policy=lambda h, x, y: 0)
    >>> round(found.low, 3), round(found.high, 3)
    (0.434, 0.566)
    """
    check_schedule(1, delta)
    compiled = compile(model)
    sets = Unrefuted(compiled, counts, delta)
    robust, high = sets.plan_least(), sets.best()
    if policy is None:
        question = Question(sets, None)
        return Certificate(robust.value, high, None, None, delta, robust, question)
    question = _ask(sets, counts, delta, _read_policy(policy, compiled))
    own = question.interval()
    return Certificate(robust.value, high, *own, delta, robust, question)


def _ask(sets: Unrefuted, counts: Counts, delta: float, policy: Policy) -> Question:
    """The interval of a policy as a question to an engine that can follow it."""
    compiled = sets.compiled
    if isinstance(policy, Plan) and policy.compiled is compiled:
        return Question(sets, policy.choices)
    plain, act = compiled.plain, to_function(policy)
    try:
        choices = plain.tabulate(refuse_weights(act))
    except RandomisedError:
        return _ask_random(sets, counts, delta, act)
    return Question(sets if plain is compiled else Unrefuted(plain, counts, delta), choices)


def _ask_random(sets: Unrefuted, counts: Counts, delta: float, act: Act) -> Question:
    """The same for a policy that chooses at random.

    A policy may not meet every feature, and it may have been chosen by the data. So each set keeps
    the part of delta that it has in the model itself.
    """
    compiled = sets.compiled
    engine = compile(Following(compiled.model, act), large=False)
    met = {**engine.feature_index, **engine.reward_index}
    own = Unrefuted(engine, {z: row for z, row in counts.items() if z in met}, delta)
    own.take_budget(sets)
    return Question(own, engine.policy())


def _read_policy(policy: Policy | str | Path, compiled: Compiled) -> Policy:
    """A policy from a file, or as it was given."""
    if not isinstance(policy, str | Path):
        if not isinstance(policy, Plan) and not callable(policy):
            raise ModelError(
                f"policy is {policy!r}; expected a Plan, a function (h, x, y) -> action, or the "
                "file of a saved plan or run"
            )
        return policy
    _, meta = read_npz(policy)
    if meta.get("kind") == "Plan":
        return Plan.load(policy, compiled)
    if "kind" in meta:
        own = compiled.model.load_policy(policy)
        if own is None:
            raise ModelError(f"{policy} holds a {meta['kind']}; expected a saved plan or run")
        return own
    found = Run.load(policy, compiled).policy
    if found is None:
        raise ModelError(f"{policy} is a run without a policy; expected a saved plan or run")
    return found


def _list_evidence(sets: Unrefuted) -> Iterator[Evidence]:
    model = sets.compiled.model
    names = [*sets.compiled.features, *sets.compiled.reward_index]
    for z, n, c in zip(names, sets.numbers.tolist(), sets.radii().tolist(), strict=True):
        yield Evidence(z, model.feature_label(z), n, c)


def _find_places(gap: float, low: float, high: float) -> int:
    """Decimal places with which rounding costs a small part of the interval."""
    unit = gap / DIGITS if gap > 0 else max(abs(low), abs(high), 1e-300) * 1e-6
    return max(0, min(300, math.ceil(-math.log10(unit))))


def _round(value: float, places: int, direction: str) -> str:
    step = Decimal(1).scaleb(-places)
    return str(Decimal(value).quantize(step, direction)) if abs(value) < 1e20 else f"{value:g}"
