"""Certificates: intervals of policies of every kind, in words, and how to narrow them.

`test_certified.py` compares both engines with the definition; here it is the certificate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import pkd
from pkd.certification import confidence
from pkd.certification.certificate import _find_places
from pkd.certification.confidence import radius
from pkd.certification.unrefuted import Unrefuted
from pkd.engine import Compiled
from tests import reference
from tests.certification.test_confidence import log_ratio, mp, textbook_interval
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
Counts = Mapping[Any, Mapping[Any, float]]


class Toss(pkd.NoiseMDP):
    """One toss of a coin with some sides, each with its own pay."""

    horizon = 1

    def __init__(self, pay: tuple[float, ...] = (0.0, 1.0)) -> None:
        self.pay = pay

    def initial(self) -> Any:
        return "start"

    def choices(self, s: Any) -> Any:
        return ["toss"]

    def noise(self, s: Any, a: Any) -> Any:
        return "coin"

    def outcomes(self, z: Any) -> Any:
        return range(len(self.pay))

    def land(self, s: Any, a: Any, w: Any) -> Any:
        return self.pay[w], "start"


class Two(Toss):
    """Two coins; the agent chooses which one is tossed."""

    def choices(self, s: Any) -> Any:
        return ["one", "two"]

    def noise(self, s: Any, a: Any) -> Any:
        return a


class Again(Toss):
    """Three tosses of the same coin; a toss may be refused for a sure pay."""

    horizon = 3

    def choices(self, s: Any) -> Any:
        return ["toss", "rest"]

    def noise(self, s: Any, a: Any) -> Any:
        return "coin" if a == "toss" else pkd.sure(None)

    def land(self, s: Any, a: Any, w: Any) -> Any:
        return (0.3, s) if w is None else (self.pay[w] * (2.0 if s == w else 1.0), w)


def draw(compiled: Compiled, law: pkd.Law, numbers: Mapping[Any, int], rng: Any) -> Counts:
    """Counts of so many independent samples of each feature and each unknown reward."""
    counts = {}
    for z, n in numbers.items():
        row = law(z) if callable(law) else law[z]
        p = np.array(list(row.values()))
        seen = rng.multinomial(n, p / p.sum())
        counts[z] = {x: float(k) for x, k in zip(row, seen, strict=True) if k}
    return counts


def add(one: Counts, other: Counts) -> Counts:
    return {
        z: {
            x: one.get(z, {}).get(x, 0.0) + other.get(z, {}).get(x, 0.0)
            for x in {**one.get(z, {}), **other.get(z, {})}
        }
        for z in {**one, **other}
    }


# -- the sets themselves ---------------------------------------------------------------------------


@both_engines
@pytest.mark.parametrize(("heads", "tails"), [(1, 0), (3, 7), (50, 50), (0, 200), (123, 4567)])
def test_one_coin_has_the_textbook_kl_interval_digit_for_digit(
    large: bool, heads: int, tails: int
) -> None:
    """C to all digits, and {mu : kl(mean, mu) <= C}, both in 60 digits.

    The ends may lie outside by 1e-9, which is how far the search goes, and never inside.
    """
    found = pkd.certify(pkd.compile(Toss(), large=large), {"coin": {0: tails, 1: heads}})
    level = (log_ratio([heads, tails], 2) - mp.log(mp.mpf("0.05"))) / (heads + tails)
    assert found.evidence[0].radius == pytest.approx(float(level), rel=1e-13, abs=0)
    low, high = textbook_interval(heads, tails, 0.05)
    assert low - 1e-9 <= found.low <= low + 1e-15
    assert high - 1e-15 <= found.high <= high + 1e-9


def simplex(sides: int, steps: int) -> Iterator[tuple[float, ...]]:
    """All laws whose probabilities are multiples of 1/steps."""
    for cuts in itertools.combinations(range(steps + sides - 1), sides - 1):
        edges = [-1, *cuts, steps + sides - 1]
        yield tuple((b - a - 1) / steps for a, b in itertools.pairwise(edges))


def laws_in_the_ball(counts: tuple[int, ...], delta: float, steps: int) -> list[tuple[float, ...]]:
    c, n = radius(counts, delta), sum(counts)
    found = []
    for q in simplex(len(counts), steps):
        if all(q[i] > 0 for i, k in enumerate(counts) if k):
            kl = sum(k / n * math.log(k / n / q[i]) for i, k in enumerate(counts) if k)
            if kl <= c:
                found.append(q)
    return found


@pytest.mark.parametrize("counts", [(5, 2, 1), (30, 0, 12), (0, 0, 4)])
def test_one_toss_has_the_extremes_over_all_laws_of_a_grid(counts: tuple[int, ...]) -> None:
    pay = (0.0, 0.4, -1.0)
    found = pkd.certify(Toss(pay), {"coin": dict(enumerate(counts))}, delta=0.1)
    values = [math.fsum(map(math.prod, zip(q, pay, strict=True)))
              for q in laws_in_the_ball(counts, 0.1, 200)]  # fmt: skip
    assert found.low <= min(values) <= found.low + 0.02
    assert found.high - 0.02 <= max(values) <= found.high


@pytest.mark.parametrize("counts", [(5, 2, 1), (30, 0, 12)])
def test_several_tosses_hold_the_values_of_all_laws_of_a_grid(counts: tuple[int, ...]) -> None:
    """One law for all steps: its values lie within, whatever it is, for V* and for a policy."""
    model, rest = Again((0.0, 0.4, 1.0)), lambda h, x, y: "toss" if h < 3 else "rest"
    data = {"coin": dict(enumerate(counts))}
    found = pkd.certify(model, data, policy=rest, delta=0.1)
    for q in laws_in_the_ball(counts, 0.1, 12):
        law = {"coin": dict(enumerate(q))}
        assert found.low <= pkd.evaluate(model, law, rest) <= found.high
        assert found.optimal_low <= pkd.plan(model, law).value <= found.optimal_high


def test_without_data_the_interval_is_all_that_can_happen() -> None:
    found = pkd.certify(Toss((-2.0, 3.0, 1.0)), {})
    assert (found.low, found.high) == (-2.0, 3.0)
    assert [(one.samples, one.radius) for one in found.evidence] == [(0.0, math.inf)]


def test_counts_of_zero_are_no_data() -> None:
    assert pkd.certify(Toss(), {"coin": {0: 0, 1: 0}}).high == 1.0
    one = pkd.certify(Toss((0.0, 1.0, 5.0)), {"coin": {0: 3, 1: 4, 2: 0}})
    other = pkd.certify(Toss((0.0, 1.0, 5.0)), {"coin": {0: 3, 1: 4}})
    assert (one.low, one.high) == (other.low, other.high)
    assert one.high > 1.5  # an outcome that was never seen is possible


def test_a_declared_branching_narrows_the_interval() -> None:
    class Narrow(Toss):
        def branching(self, z: Any) -> int:
            return 2

    data, pay = {"coin": {0: 50, 1: 50}}, (0.0, 1.0, 0.5, 0.5, 0.5)
    wide, narrow = (pkd.certify(kind(pay), data) for kind in (Toss, Narrow))
    assert narrow.gap < wide.gap
    expected = radius([50, 50, 0, 0, 0], 0.05, branching=2)
    assert narrow.evidence[0].radius == pytest.approx(expected, rel=1e-12)
    assert 0 < narrow.more_samples()["coin"] < wide.more_samples()["coin"]
    # Without data two outcomes are expected evenly, 0 and 1; they vary more than all five.
    wide, narrow = (pkd.certify(kind(pay), {}) for kind in (Toss, Narrow))
    assert narrow.more_samples()["coin"] > wide.more_samples()["coin"]


def test_an_unknown_reward_has_the_interval_of_its_mean() -> None:
    class Tip(Toss):
        def land(self, s: Any, a: Any, w: Any) -> Any:
            return pkd.UnknownReward("tip", -1.0, 3.0), "start"

        def noise(self, s: Any, a: Any) -> Any:
            return pkd.sure(0)

    model = pkd.compile(Tip())
    assert list(model.reward_index) == ["tip"]
    # 40 tips with the mean 1, the middle: 20 heads and 20 tails of a coin.
    low, high = textbook_interval(20, 20, 0.05)
    found = pkd.certify(model, {"tip": {0.0: 20, 2.0: 20}})
    assert (found.low, found.high) == pytest.approx((4 * low - 1, 4 * high - 1), abs=1e-8)
    assert found.evidence[0].radius == pytest.approx(radius([20, 20], 0.05), rel=1e-12)
    assert found.more_samples()["tip"] > 80


# -- policies --------------------------------------------------------------------------------------


def weigh(case: Case) -> Any:
    """A policy that takes each action with a probability of its own."""

    def act(h: int, x: Any, y: Any) -> dict[Any, float]:
        actions = list(case.model.actions(x, y))
        total = sum(range(h, h + len(actions)))
        return {a: (h + i) / total for i, a in enumerate(actions)}

    return act


@both_engines
@given(case=cases(), delta=st.sampled_from([0.01, 0.5]))
def test_a_random_policy_has_the_interval_of_the_definition(
    large: bool, case: Case, delta: float
) -> None:
    """Every part of the contract: CHANCE states, starts, settlements, unknown rewards, B(z)."""
    policy, close = weigh(case), {"rel": 0, "abs": 1e-8 * case.scale}
    compiled = pkd.compile(case.model, large=large)
    found = pkd.certify(compiled, case.counts, policy=policy, delta=delta)
    low, high = (
        reference.certified(case.model, case.counts, delta, policy=policy, least=least).value
        for least in (True, False)
    )
    assert (found.low, found.high) == pytest.approx((low, high), **close)


@both_engines
@given(case=cases(hindsight=False))
def test_a_policy_lies_within_the_optimum_and_keeps_its_certificate_in_any_form(
    large: bool, case: Case
) -> None:
    compiled = pkd.compile(case.model, large=large)
    plan = pkd.plan(compiled, case.law)
    other = pkd.plan(pkd.compile(case.model, large=not large), case.law)
    slack = 1e-8 * case.scale
    found = [
        pkd.certify(compiled, case.counts, policy=one)
        for one in (plan, plan.action, lambda h, x, y: {plan.action(h, x, y): 1.0})
    ]
    for one in found:
        assert one.low == pytest.approx(found[0].low, rel=0, abs=slack)
        assert one.high == pytest.approx(found[0].high, rel=0, abs=slack)
    best = pkd.certify(compiled, case.counts)
    for one in (found[0], pkd.certify(compiled, case.counts, policy=other)):
        assert one.low <= best.low + slack
        assert one.high <= best.high + slack
        assert (one.optimal_low, one.optimal_high) == (best.low, best.high)


def test_a_plan_of_another_engine_is_followed_by_its_actions() -> None:
    """Engines number their states in their own ways."""
    model, counts = Again((0.0, 0.4, 1.0)), {"coin": {0: 5, 1: 2, 2: 3}}
    compiled, other = (pkd.compile(model, large=large) for large in (False, True))
    plan = pkd.plan(other, {"coin": {0: 0.3, 1: 0.3, 2: 0.4}})
    found, expected = (
        pkd.certify(compiled, counts, policy=policy) for policy in (plan, plan.action)
    )
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_policy_comes_from_any_file_of_a_plan_or_a_run(tmp_path: Path) -> None:
    run = pkd.learn("pricing", 30, optimism=pkd.Greedy(), seed=1)
    assert run.policy is not None
    run.save(tmp_path / "run.npz")
    run.policy.save(tmp_path / "plan.npz")
    run.policy.to_csv(tmp_path / "plan.csv")
    run.policy.to_json(tmp_path / "plan.json")
    expected = pkd.certify("pricing", run.counts, policy=run.policy)
    for name in ("run.npz", "plan.npz", "plan.csv", "plan.json"):
        found = pkd.certify("pricing", run.counts, policy=tmp_path / name)
        assert (found.low, found.high) == (expected.low, expected.high)


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match="policy is 3; expected a Plan, a function"):
        pkd.certify(Toss(), {}, policy=3)  # type: ignore[arg-type]
    with pytest.raises(pkd.ModelError, match=r"the policy takes 'jump', expected one of"):
        pkd.certify(Toss(), {}, policy=lambda h, x, y: {"jump": 1.0})
    with pytest.raises(pkd.ModelError, match="counts have the feature 'dice'"):
        pkd.certify(Toss(), {"dice": {1: 3}})


def test_a_random_policy_keeps_the_union_bound_of_the_model() -> None:
    """A policy that meets one of two coins may have been chosen by the data of both."""

    data = {"one": {0: 40, 1: 60}, "two": {0: 10, 1: 3}}
    sure, random = (
        pkd.certify(Two(), data, policy=policy)
        for policy in (lambda h, x, y: "one", lambda h, x, y: {"one": 1.0})
    )
    assert (random.low, random.high) == pytest.approx((sure.low, sure.high), abs=1e-12)
    assert random.evidence[0].radius == pytest.approx(radius([40, 60], 0.05, weight=0.5))


# -- in words --------------------------------------------------------------------------------------


def test_the_sentence_rounds_outwards() -> None:
    found = pkd.certify(Toss(), {"coin": {0: 500, 1: 500}}, policy=lambda h, x, y: "toss")
    assert found.sentence == (
        "with 95% confidence this policy earns between 0.439 and 0.561 per episode; "
        "the best possible policy at most 0.561"
    )
    low, high = (float(found.sentence.split(word)[1].split()[0]) for word in ("between", " and"))
    assert low <= found.low
    assert found.high <= high
    assert high - low <= 1.2 * found.gap


@given(
    pay=st.tuples(*[st.floats(-1e6, 1e6, allow_subnormal=False)] * 2),
    counts=st.tuples(*[st.integers(0, 10**6)] * 2),
    delta=st.floats(1e-6, 0.9),
)
def test_what_the_sentence_says_is_true(
    pay: tuple[float, ...], counts: tuple[int, ...], delta: float
) -> None:
    found = pkd.certify(Toss(pay), {"coin": dict(enumerate(counts))}, delta=delta)
    low, high = (float(found.sentence.split(word)[1].split()[0]) for word in ("between", " and"))
    assert low <= found.low <= found.high <= high
    assert high - low <= 1.2 * found.gap + 3e-6 * max(map(abs, pay))


def test_the_best_policy_has_a_sentence_of_its_own() -> None:
    found = pkd.certify(Toss((-1.0, 1.0)), {"coin": {0: 10, 1: 90}}, delta=0.001)
    assert found.policy_low is None
    assert found.sentence.startswith(
        "with 99.9% confidence the best possible policy earns between "
    )
    low = found.sentence.rsplit(" ", 1)[1]
    assert found.sentence.endswith(f"per episode; the robust plan at least {low}")
    assert repr(found) == f"<Certificate: {found.sentence}>"


def test_a_policy_that_earns_nothing_has_a_sentence() -> None:
    """Its interval is [0, 0], while the best possible policy may earn something."""

    class Leave(Toss):
        def choices(self, s: Any) -> Any:
            return ["toss", "leave"]

        def reward(self, x: Any, y: Any, a: Any) -> Any:
            return 0.0 if a == "leave" or x is None else super().reward(x, y, a)

    found = pkd.certify(Leave((0.0, 0.0)), {"coin": {0: 5, 1: 5}})
    assert "between 0 and 0 per episode" in repr(found)


@pytest.mark.parametrize(
    ("low", "high", "best", "said"),
    [
        (0.0, 0.0, 1.0, "earns between 0 and 0 per episode; the best possible policy at most 1"),
        (-231.7, -0.3, -0.3, "earns between -232 and 0 per episode"),
        (-1e-9, 0.0, 0.0, "between -1.01E-9 and 0 per"),
        (1e300, 1e300, 1e300, "between 1e+300 and 1e+300"),
    ],
)
def test_no_bound_is_minus_zero_and_none_crashes(
    low: float, high: float, best: float, said: str
) -> None:
    found = pkd.certify(Toss(), {"coin": {0: 5, 1: 5}})
    shown = attrs.evolve(
        found, optimal_low=low, optimal_high=best, policy_low=low, policy_high=high
    )
    assert said in repr(shown)


@both_engines
@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e-310, 5e-324])
def test_values_however_small_have_an_interval(scale: float, large: bool) -> None:
    """The inverse of a range below 1e-308 is no number."""
    model, law = Toss((0.0, scale)), {"coin": {0: 0.5, 1: 0.5}}
    value = pkd.plan(model, law).value
    found = pkd.certify(pkd.compile(model, large=large), {"coin": {0: 5, 1: 5}})
    assert found.low <= value <= found.high <= scale
    assert "per episode" in repr(found)


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (0.05, "with 95% confidence the best"),
        (1e-5, "with 99.999% confidence the best"),
        (3e-9, "with confidence 1 - 3e-09 the best"),
        (1e-100, "with confidence 1 - 1e-100 the best"),
    ],
)
def test_confidence_is_never_said_to_be_complete(delta: float, said: str) -> None:
    assert pkd.certify(Toss(), {"coin": {0: 5, 1: 5}}, delta=delta).sentence.startswith(said)


@pytest.mark.parametrize("delta", [1e-101, 1e-300, 5e-324, 0.0, 1.0, float("nan"), True])
def test_a_delta_out_of_range_is_refused_everywhere(delta: float) -> None:
    counts = {"coin": {0: 5, 1: 5}}
    for call in (
        lambda: pkd.certify(Toss(), counts, delta=delta),
        lambda: pkd.optimistic_plan(Toss(), counts, episodes=10, delta=delta),
        lambda: pkd.OptimisticLearner(Toss(), delta=delta),
        lambda: radius([5, 5], delta),
        lambda: confidence.radii([[5, 5]], delta),
    ):
        with pytest.raises(pkd.ModelError, match=r"delta is .*; expected a number between 0 and 1"):
            call()


def test_a_table_names_features_samples_and_radii() -> None:
    found = pkd.certify("inventory", {0: {3: 10}, 6: {1: 5}})
    lines = found.table(most=2).splitlines()
    assert lines[0].split() == ["feature", "samples", "radius"]
    assert lines[1].startswith("demand on Mon       10 ")
    assert lines[2:] == ["demand on Tue        0     inf", "... 5 more"]


# -- more samples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inventory", "kuhn", "pricing", "maintenance"])
def test_the_samples_that_are_asked_for_about_halve_the_interval(name: str) -> None:
    """In simulation: the mean over ten logs of new width / old width."""
    problem, rng = pkd.as_problem(name), np.random.default_rng(7)
    compiled, law, ratios = pkd.compile(problem.model()), problem.law(), []
    features = [*compiled.features, *compiled.reward_index]
    for _ in range(10):
        counts = draw(compiled, law, dict.fromkeys(features, 1000), rng)
        found = pkd.certify(compiled, counts)
        more = found.more_samples()
        again = pkd.certify(compiled, add(counts, draw(compiled, law, more, rng)))
        ratios.append(again.gap / found.gap)
    assert 0.4 <= float(np.mean(ratios)) <= 0.6


def test_the_samples_that_are_asked_for_serve_the_policy_in_question() -> None:
    """A policy that plays one of two coins needs samples of that coin alone."""

    data = {"one": {0: 40, 1: 60}, "two": {0: 10, 1: 3}}
    assert set(pkd.certify(Two(), data, policy=lambda h, x, y: "one").more_samples()) == {"one"}
    assert set(pkd.certify(Two(), data).more_samples()) == {"one", "two"}


def test_the_samples_that_are_asked_for_cost_less_than_the_same_for_all() -> None:
    """A coin at stake for 10 and one for 1: the first gets more, and the sum is smaller."""

    class Uneven(Toss):
        horizon = 2

        def noise(self, s: Any, a: Any) -> Any:
            return "dear" if s == "start" else "cheap"

        def land(self, s: Any, a: Any, w: Any) -> Any:
            return (10.0 if s == "start" else 1.0) * w, "second"

    model, half = pkd.compile(Uneven()), {0: 500, 1: 500}
    found = pkd.certify(model, {"dear": half, "cheap": half})
    more = found.more_samples()
    assert more["dear"] > more.get("cheap", 0)
    times = 1.0
    while True:  # the same number of both, until the interval is halved
        times *= 1.02
        row = {x: times * n for x, n in half.items()}
        if pkd.certify(model, {"dear": row, "cheap": row}).gap <= 0.5 * found.gap:
            break
    assert sum(more.values()) < 0.9 * 2 * 1000 * (times - 1)


def test_asking_for_more_samples_changes_nothing() -> None:
    found = pkd.certify("kuhn", {})
    before = found.evidence, found.table()
    first = found.more_samples()
    assert (found.evidence, found.table()) == before
    assert found.more_samples() == first
    assert sum(found.more_samples(0.9).values()) < sum(found.more_samples(0.2).values())


@pytest.mark.parametrize("share", [0, 1, 1.5, -1])
def test_a_share_must_lie_between_0_and_1(share: float) -> None:
    with pytest.raises(pkd.ModelError, match=r"share is .*; expected a number between 0 and 1"):
        pkd.certify(Toss(), {}).more_samples(share)


def test_a_point_needs_no_more_samples() -> None:
    found = pkd.certify(Toss((2.0, 2.0)), {})
    assert (found.gap, found.more_samples()) == (0.0, {})
    assert "between 2.000000 and 2.000000 per" in found.sentence


# -- coverage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gambler", "kuhn", "pricing"])
def test_certificates_of_fixed_logs_hold_as_often_as_they_say(name: str) -> None:
    """`benchmarks/certificate_coverage.py` is the long form."""
    problem, rng = pkd.as_problem(name), np.random.default_rng(3)
    compiled, law, failures = pkd.compile(problem.model()), problem.law(), 0
    features = [*compiled.features, *compiled.reward_index]
    policy = pkd.plan(compiled, law)
    for k in range(100):
        counts = draw(compiled, law, dict.fromkeys(features, int(2 ** (k % 10))), rng)
        found = pkd.certify(compiled, counts, policy=policy, delta=0.2)
        best = found.optimal_low <= policy.value <= found.optimal_high
        failures += not (best and found.low <= policy.value <= found.high)
    assert binom.sf(failures - 1, 100, 0.2) > 1e-3


@pytest.mark.parametrize(("gap", "places"), [(30.5, 0), (29.5, 1), (0.305, 2), (0.295, 3)])
def test_rounding_costs_at_most_a_thirtieth_of_the_interval(gap: float, places: int) -> None:
    assert _find_places(gap, 0.0, gap) == places


def test_an_interval_of_no_length_is_shown_with_six_digits() -> None:
    assert _find_places(0.0, 0.25, 0.25) == 7
    assert _find_places(0.0, 0.0, 0.0) == 0


def test_a_table_shows_thirty_features_and_says_how_many_there_are() -> None:
    chain = pkd.UnknownTable(n_states=4, n_actions=10, horizon=2)
    text = pkd.certify(chain, {}).table()
    assert len([line for line in text.splitlines() if "inf" in line]) == 30
    assert text.endswith("... 50 more")  # 40 laws and 40 rewards
    assert "more" not in pkd.certify(chain, {}).table(most=80)


def test_more_samples_are_expected_to_show_what_is_known_so_far(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen outcomes keep their frequencies, rewards their mean; without data it is the middle."""
    compiled = pkd.compile(pkd.UnknownTable(2, 1, horizon=2, reward_range=(1.0, 5.0)))
    paid = list(compiled.reward_index)
    sets = Unrefuted(compiled, {(0, 0): {0: 30, 1: 10}, paid[0]: {2.0: 3, 4.0: 1}}, 0.05)
    filled: list[Any] = []
    monkeypatch.setattr(compiled, "estimate", lambda belief, tally, *rest: filled.append(tally))
    sets.expect(np.array([4.0, 6.0, 8.0, 10.0]))
    assert len(filled) == 2  # for the largest and for the least values
    tally = filled[0]
    assert tally.n.tolist() == [44, 6]
    assert tally.counts.tolist() == pytest.approx([33, 11, 0, 2, 2, 2])  # the third is the end
    assert tally.rewards[0].tolist() == [12, 10]
    assert tally.rewards[1].tolist() == pytest.approx([2.5, 3.0])
    assert sets.numbers.tolist() == [40, 0, 4, 0]  # what there is stays as it is


def test_a_set_takes_the_part_of_delta_that_it_has_elsewhere() -> None:
    compiled = pkd.compile(pkd.UnknownTable(2, 1, horizon=2, reward_range=(0.0, 1.0)))
    one, other = (Unrefuted(compiled, {(0, 0): {0: 5}}, delta) for delta in (0.05, 0.001))
    before = one.radii()[0]
    one.take_budget(other)
    assert one.budget == other.budget
    assert one.radii()[0] == pytest.approx(other.radii()[0])
    assert one.radii()[0] - before == pytest.approx(math.log(50) / 5)


@pytest.mark.parametrize("seen", [{2.0: 3, 4.0: 1}, {2.0: 0.5}])
def test_the_radius_of_a_reward_is_that_of_a_coin(seen: Any) -> None:
    compiled = pkd.compile(pkd.UnknownTable(2, 1, horizon=2, reward_range=(1.0, 5.0)))
    sets = Unrefuted(compiled, {next(iter(compiled.reward_index)): seen}, 0.05)
    found = sets.radii()[len(compiled.features) :].tolist()
    total, heads = sum(seen.values()), sum(n * (pay - 1) / 4 for pay, n in seen.items())
    expected = radius([heads, total - heads], 0.05, weight=math.exp(-sets.budget) / 0.05)
    assert found == [pytest.approx(expected), math.inf]
