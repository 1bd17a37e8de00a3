"""Tests on data whether phi_Z is sufficient: given z, does x' depend on what led to z?

The null hypothesis is the paper's assumption, x' ~ P_eff(z) whatever (x, y, a, y') came before. A
permutation or chi-square test needs contexts that were fixed in advance. Where a policy chose them
after seeing earlier x', such a test raises false alarms too often: 8% instead of 5% under Thompson
sampling, 12% under a policy that leaves an action at a lucky moment. The likelihood ratio

    E(z) = (1/J) sum_j prod_i q_j(x'_i | context_i, earlier samples) / max_P prod_i P(x'_i)

is valid for every policy: each q_j predicts from the past alone, so E(z) has mean at most 1 under
the null, and by Ville's inequality it exceeds 1/alpha at any time with probability at most alpha.
One may look as often as one likes while data come in. The price is power: it takes about four times
the samples that a permutation test takes where that one is valid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.episode import Episode, list_branches
from pkd.expect import fraction, key, require, show
from pkd.families import Family
from pkd.model import Known, Law, ModelError, PartiallyKnownMDP
from pkd.problem import Problem, as_model

_STRENGTHS: Final = (4.0, 32.0)  # samples that pooled frequencies weigh against one context
_WARM_UPS: Final = (0, 8)  # samples per outcome that only train a predictor; 0: none
_COMPARED: Final = 12  # groups among which the two that disagree most are looked for
_EPISODE_NAMES: Final = ("x", "y", "a", "y'")
_TRIPLE_NAMES: Final = ("x", "y", "a")

Samples = list[tuple[tuple[Any, ...], Any]]  # (context, x') of one feature, in order of time


@attrs.frozen
class FeatureTest:
    """What the samples of one feature say."""

    feature: Hashable
    samples: int
    contexts: int  # different contexts among the samples
    p_value: float  # corrected for the number of features
    differs_in: str  # the part of the context that predicts x' best
    pair: tuple[
        tuple[str, dict[Any, int]], ...
    ]  # two values of that part with the counts of x' after each; empty with one context
    family: str = ""  # the declared family, where that is what was tested

    def __str__(self) -> str:
        data = f"{self.samples} samples in {self.contexts} contexts, p = {self.p_value:.3g}"
        head = f"feature {self.feature!r}: {data}"
        shown = " and ".join(f"{counts} after {name}" for name, counts in self.pair)
        return f"{head}; x' was {shown}" if shown else head


@attrs.frozen
class SampleReport:
    """The tests of all features that were seen, smallest p-value first."""

    false_alarm: float
    tests: tuple[FeatureTest, ...]
    impossible: tuple[str, ...] = ()  # what was seen and the model rules out

    @property
    def ok(self) -> bool:
        """Whether nothing was found.

        With a sufficient phi_Z this is False with probability at most `false_alarm`.
        """
        return not self.impossible and all(test.p_value > self.false_alarm for test in self.tests)

    @property
    def p_values(self) -> dict[Hashable, float]:
        """Corrected p-values: a feature is rejected where its value is at most `false_alarm`.

        With a declared family it is the smaller one of two.
        """
        return {test.feature: test.p_value for test in reversed(self.tests)}

    @property
    def findings(self) -> tuple[str, ...]:
        """What a ModelError would list."""
        failed = (test for test in self.tests if test.p_value <= self.false_alarm)
        dependent = (
            f"x' depends on {test.differs_in}, not only on z: {test}; "
            "let the feature tell these apart"
            if not test.family
            else f"x' has no law of {test.family}: {test}; declare another family, or none"
            for test in failed
        )
        return (*self.impossible, *dependent)

    def raise_if_failed(self) -> None:
        """Raises a ModelError with all findings, if there are any."""
        if not self.ok:
            raise ModelError(self.findings)

    def __str__(self) -> str:
        if not self.ok:
            return "\n".join(self.findings)
        data = f"{sum(test.samples for test in self.tests)} samples of {len(self.tests)} features"
        smallest = min((test.p_value for test in self.tests), default=1.0)
        tested = f"smallest p = {smallest:.3g}, false alarms at most {self.false_alarm:g}"
        return f"no dependence found in {data}: {tested}"


def check_samples(
    model: PartiallyKnownMDP | Problem | str | tuple[PartiallyKnownMDP, Law],
    episodes: Iterable[Any],
    false_alarm: float = 0.01,
) -> SampleReport:
    """Tests for every feature that occurs whether x' depends on the context given z.

    It reports and raises nothing about the data. model: a model or a problem. episodes: `Episode`s,
    or (z, x', (x, y, a)) triples, in order of time. The probability that a sufficient phi_Z is
    rejected, for any feature, is at most `false_alarm`, whatever policy collected the data: the
    j-th feature to appear gets the share 1/(j (j + 1)) of it. Where `outcomes(z)` is a family
    (`pkd.families`), half of that share goes to a test of the family: the ratio w(n) / max_t prod_i
    p_t(x'_i), with w(n) the probability of the samples if the law is drawn from Dirichlet(1/2), has
    mean at most 1, too.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> after_0 = ((0, 0), 0, (0, None, 0))  # x' copies the action, which z does not tell
    >>> after_1 = ((0, 0), 1, (0, None, 1))
    >>> report = pkd.check_samples(coin.model(), [after_0, after_1] * 50)
    >>> report.ok, report.tests[0].differs_in
    (False, 'a')
    """
    require(fraction("false_alarm", false_alarm))
    model = as_model(model)
    collected, names, impossible = _collect(model, episodes)
    tests: list[FeatureTest] = []
    for j, (z, samples) in enumerate(collected.items(), start=1):
        declared, cost = model.outcomes(z), j * (j + 1)
        if isinstance(declared, Family):
            cost *= 2
            tests.append(_test_family(z, samples, declared, cost))
        tests.append(_test_feature(z, samples, len(tuple(declared)), names, cost))
    return SampleReport(
        false_alarm, tuple(sorted(tests, key=lambda test: test.p_value)), impossible
    )


def _collect(
    model: PartiallyKnownMDP, episodes: Iterable[Any]
) -> tuple[dict[Any, Samples], tuple[str, ...], tuple[str, ...]]:
    """(samples of each feature by first appearance, names of a context's parts, what cannot be)."""
    collected: dict[Any, Samples] = {}
    impossible: Counter[str] = Counter()
    outcomes: dict[Any, frozenset[Any]] = {}
    names: tuple[str, ...] = _EPISODE_NAMES
    listed = isinstance(episodes, Iterable) and not isinstance(episodes, str | bytes)
    for item in episodes if listed else [episodes]:
        if isinstance(item, Episode):
            found = _read_moves(model, item, impossible)
        else:
            if not isinstance(item, tuple | list) or len(item) != 3 or key("item", item[0]):
                raise ModelError(
                    f"episodes is {show(episodes)}; expected pkd.Episodes, or triples (z, x', "
                    "context)"
                )
            z, x_next, context = item
            names = _TRIPLE_NAMES
            whole = isinstance(context, tuple) and len(context) == len(names)
            found = iter([(z, x_next, context if whole else (context,))])
        for z, x_next, context in found:
            if z not in outcomes:
                outcomes[z] = (
                    frozenset(x for x, p in z.law if p > 0)
                    if isinstance(z, Known)
                    else frozenset(model.outcomes(z))
                )
            if x_next not in outcomes[z]:
                impossible[
                    f"x' = {x_next!r} followed the feature {z!r}, which cannot lead there"
                ] += 1
            elif not isinstance(z, Known):
                collected.setdefault(z, []).append((context, x_next))
    return (
        collected,
        names,
        tuple(f"{text} (seen {_word_times(n)})" for text, n in impossible.items()),
    )


def _read_moves(
    model: PartiallyKnownMDP, episode: Episode, impossible: Counter[str]
) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """(z, x', context) of every move of an episode."""
    taken = 0
    for move in episode:
        taken += move.action is not None
        branches = list_branches(model, move.x, move.y, move.action, taken)
        features = [z for _, y_next, z in branches if y_next == move.y_next]
        if features:
            yield features[0], move.x_next, (move.x, move.y, move.action, move.y_next)
        else:
            impossible[
                f"y' = {move.y_next!r} followed (x={move.x!r}, y={move.y!r}, a={move.action!r}), "
                "which cannot lead there"
            ] += 1


def _test_feature(
    z: Any, samples: Samples, n_outcomes: int, names: tuple[str, ...], cost: int
) -> FeatureTest:
    contexts = [context for context, _ in samples]
    outcome, values = _encode([x_next for _, x_next in samples])
    n_contexts = len(set(contexts))
    whole = f"({', '.join(names)})"
    # Parts before the whole: where both predict equally well, the part is the better explanation.
    parts = enumerate(names) if len(contexts[0]) == len(names) else ()
    views = {name: [(context[i],) for context in contexts] for i, name in parts} | {whole: contexts}
    logs = {
        name: _compute_log_ratios(_encode(view)[0], outcome, n_outcomes)
        for name, view in views.items()
    }
    differs_in = max(logs, key=lambda name: max(logs[name]))
    ratios = np.concatenate(list(logs.values()))
    # The shares 1 / cost sum to at most 1 however many features appear.
    log_p = math.log(len(ratios)) - float(np.logaddexp.reduce(ratios)) + math.log(cost)
    p_value = math.exp(min(0.0, log_p)) if n_contexts > 1 else 1.0
    pair = (
        _find_most_different(
            views[differs_in], outcome, values, names if differs_in == whole else (differs_in,)
        )
        if n_contexts > 1
        else ()
    )
    return FeatureTest(z, len(samples), n_contexts, p_value, differs_in, pair)


def _test_family(z: Any, samples: Samples, family: Family, cost: int) -> FeatureTest:
    """Whether some law of the family explains the samples nearly as well as laws at large do."""
    seen = Counter(x_next for _, x_next in samples)
    n = [float(seen[x]) for x in family]
    half = 0.5 * len(n)
    log_w = math.lgamma(half) - math.lgamma(len(samples) + half)
    log_w += sum(math.lgamma(c + 0.5) - math.lgamma(0.5) for c in n)
    log_p = family.most_likely(n) - log_w + math.log(cost)
    p_value = math.exp(min(0.0, log_p))
    contexts = len({context for context, _ in samples})
    return FeatureTest(z, len(samples), contexts, p_value, "", (), repr(family))


def _compute_log_ratios(
    group: NDArray[np.int64], outcome: NDArray[np.int64], n_outcomes: int
) -> list[float]:
    """log of prod_i q(x'_i | group_i, past) / max_P prod_i P(x'_i) over samples after a warm-up.

    One number for each warm-up and strength k. q mixes frequencies in the same group with those of
    all earlier samples: (n_gx + k p_x) / (n_g + k), p_x = (n_x + 1/2) / (n + B/2).
    """
    pooled = (_count_earlier(outcome) + 0.5) / (np.arange(len(outcome)) + 0.5 * n_outcomes)
    in_group, alike = _count_earlier(group), _count_earlier(group * n_outcomes + outcome)
    ratios = []
    for warm_up in _WARM_UPS:
        rest = slice(warm_up * n_outcomes, None)
        best = _compute_log_likelihood(np.bincount(outcome[rest]).astype(float))
        for k in _STRENGTHS:
            ratios.append(float(np.sum(np.log((alike + k * pooled) / (in_group + k))[rest])) - best)
    return ratios


def _count_earlier(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier entries equal each entry, (n,)."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ranks = np.empty(len(codes), np.int64)
    ranks[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    return ranks


def _encode(values: list[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    index: dict[Any, int] = {}
    return np.array([index.setdefault(value, len(index)) for value in values], np.int64), list(
        index
    )


def _find_most_different(
    contexts: list[tuple[Any, ...]],
    outcome: NDArray[np.int64],
    values: list[Any],
    names: tuple[str, ...],
) -> tuple[tuple[str, dict[Any, int]], ...]:
    """The two groups whose frequencies of x' disagree most, by the ratio of two laws to one."""
    group, keys = _encode(contexts)
    if len(keys) < 2:
        return ()
    table = np.zeros((len(keys), len(values)))
    np.add.at(table, (group, outcome), 1)
    pooled = table.sum(axis=0)
    against_all = [_compare_two_laws(row, pooled - row) for row in table]
    candidates = np.argsort(against_all, kind="stable")[::-1][:_COMPARED]
    one, other = max(
        combinations(candidates.tolist(), 2),
        key=lambda pair: _compare_two_laws(table[pair[0]], table[pair[1]]),
    )
    return tuple(
        (
            _name_context(keys[g], names),
            {values[i]: int(table[g, i]) for i in np.flatnonzero(table[g])},
        )
        for g in sorted((one, other))
    )


def _compare_two_laws(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """log max likelihood of two laws minus that of one law for both."""
    return (
        _compute_log_likelihood(one)
        + _compute_log_likelihood(other)
        - _compute_log_likelihood(one + other)
    )


def _compute_log_likelihood(counts: NDArray[np.float64]) -> float:
    seen = counts[counts > 0]
    return float(np.sum(seen * np.log(seen / seen.sum())))


def _name_context(context: tuple[Any, ...], names: tuple[str, ...]) -> str:
    if len(context) != len(names):
        return repr(context[0])
    text = ", ".join(f"{name}={value!r}" for name, value in zip(names, context, strict=True))
    return f"({text})" if len(names) > 1 else text


def _word_times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
