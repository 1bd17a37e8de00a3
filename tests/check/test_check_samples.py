"""`check_samples` tests on data whether phi_Z is sufficient.

Here: p-values against their definition, false alarms under policies that react to what they see,
and wrong features that are caught.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.check.samples import check_samples
from pkd.episode import Episode, Transition
from pkd.model import ModelError
from tests.kiosk import LAW, Kiosk

Triple = tuple[Any, Any, tuple[Any, Any, Any]]


class StockKiosk(Kiosk):
    """A kiosk whose demand depends on what is on display: its feature names the stock."""

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [
            (p, y_next, ("demand", y_next) if z == "demand" else z)
            for p, y_next, z in super().step(x, y, a)
        ]


STOCK_LAW = {
    ("demand", 0): {0: 0.8, 1: 0.2},
    ("demand", 1): {0: 0.5, 1: 0.5},
    ("demand", 2): {0: 0.2, 1: 0.8},
}


def defined_p_value(samples: list[Triple], n_outcomes: int, place: int) -> float:
    """j (j + 1) / E(z), sample by sample.

    E(z) is the mean of prod q / max_P prod P over four views, two warm-ups and two strengths.
    """
    ratios = []
    for view in (lambda c: c[0], lambda c: c[1], lambda c: c[2], lambda c: c):
        for warm_up in (0, 8 * n_outcomes):
            for k in (4.0, 32.0):
                seen, seen_in, joint, log_q = Counter[Any](), Counter[Any](), Counter[Any](), 0.0
                for i, (_, x, context) in enumerate(samples):
                    g = view(context)
                    pooled = (seen[x] + 0.5) / (i + 0.5 * n_outcomes)
                    if i >= warm_up:
                        log_q += math.log((joint[g, x] + k * pooled) / (seen_in[g] + k))
                    seen[x] += 1
                    seen_in[g] += 1
                    joint[g, x] += 1
                rest = Counter(x for _, x, _ in samples[warm_up:])
                ratios.append(
                    math.exp(log_q - sum(n * math.log(n / rest.total()) for n in rest.values()))
                )
    return min(1.0, place * (place + 1) / (sum(ratios) / len(ratios)))


def drawn(
    seed: int, n: int, probability: Callable[[Any], float], feature: Any = "demand"
) -> list[Triple]:
    """Samples x' in {0, 1} after random contexts; Pr(x' = 1) is a function of the context."""
    rng = np.random.default_rng(seed)
    contexts = [
        (None, int(y), int(a))
        for y, a in zip(rng.integers(0, 3, n), rng.integers(0, 2, n), strict=True)
    ]
    return [(feature, int(rng.random() < probability(context)), context) for context in contexts]


def test_the_p_values_are_those_of_the_definition() -> None:
    first, second = (
        drawn(1, 90, lambda c: 0.3 + 0.2 * c[1]),
        drawn(2, 70, lambda c: 0.5, feature="rain"),
    )
    mixed = [sample for pair in zip(first, second, strict=False) for sample in pair] + first[
        len(second) :
    ]
    report = check_samples(Kiosk(), mixed)
    assert report.p_values["demand"] == pytest.approx(defined_p_value(first, 2, 1), rel=1e-9)
    assert report.p_values["rain"] == pytest.approx(defined_p_value(second, 2, 2), rel=1e-9)
    assert report.p_values["demand"] < 1


def alarms(
    samples: Callable[[np.random.Generator], Iterable[Triple]], rounds: int, false_alarm: float
) -> int:
    return sum(
        not check_samples(Kiosk(), samples(np.random.default_rng(seed)), false_alarm).ok
        for seed in range(rounds)
    )


def test_false_alarms_are_rare_in_sparse_tables() -> None:
    def sparse(rng: np.random.Generator) -> Iterable[Triple]:
        for _ in range(150):
            yield f"z{rng.integers(3)}", int(rng.random() < 0.1), (None, int(rng.integers(40)), 0)

    assert alarms(sparse, rounds=300, false_alarm=0.1) <= 30


def test_false_alarms_are_rare_when_the_policy_stops_at_a_lucky_moment() -> None:
    def until_unusual(rng: np.random.Generator) -> Iterable[Triple]:
        # Stays with action 0 until its frequency looks unusual: a permutation test alarms about
        # twice as often as it states.
        n, ones, action = 0, 0, 0
        for _ in range(300):
            x = int(rng.random() < 0.5)
            yield "demand", x, (None, 1, action)
            n, ones = (n + 1, ones + x) if action == 0 else (n, ones)
            action = int(action == 1 or (n >= 8 and abs(ones - n / 2) > math.sqrt(n)))

    assert alarms(until_unusual, rounds=300, false_alarm=0.1) <= 30


def test_false_alarms_are_rare_when_one_looks_after_every_batch() -> None:
    def looked_at(seed: int) -> bool:
        samples = drawn(seed, 400, lambda c: 0.5)
        return any(not check_samples(Kiosk(), samples[:n], 0.1).ok for n in range(40, 401, 40))

    assert sum(looked_at(seed) for seed in range(150)) <= 15


def test_a_dependence_of_medium_size_is_found_in_a_thousand_samples() -> None:
    found = [
        not check_samples(Kiosk(), drawn(seed, 1000, lambda c: 0.35 + 0.3 * c[2]), 0.01).ok
        for seed in range(50)
    ]
    assert sum(found) >= 45


@pytest.fixture(scope="module")
def stock_episodes() -> list[Episode]:
    model = StockKiosk()
    return pkd.simulate((model, STOCK_LAW), lambda h, x, y: (h + y) % 2, 1500, seed=3)


def test_a_feature_that_forgets_the_stock_is_caught_in_episodes(
    stock_episodes: list[Episode],
) -> None:
    report = check_samples(Kiosk(), stock_episodes)
    assert not report.ok
    assert report.tests[0].feature == "demand"
    assert report.tests[0].differs_in == "y'"
    assert {name for name, _ in report.tests[0].pair} == {"y'=0", "y'=2"}


def test_a_sufficient_feature_passes_in_the_same_episodes(stock_episodes: list[Episode]) -> None:
    report = check_samples(StockKiosk(), stock_episodes)
    assert report.ok
    assert set(report.p_values) <= set(STOCK_LAW)
    assert sum(test.samples for test in report.tests) == sum(
        move.x is None and move.y_next != "closed" for episode in stock_episodes for move in episode
    )


def test_a_compiled_model_serves_as_well(stock_episodes: list[Episode]) -> None:
    assert check_samples(pkd.compile(Kiosk()), stock_episodes[:300]) == check_samples(
        Kiosk(), stock_episodes[:300]
    )


def test_a_wrong_feature_is_found_in_what_a_learner_collected() -> None:
    learner = pkd.OptimisticLearner(StockKiosk(), episodes=1200, optimism=pkd.MVP.practical())
    rng, collected = np.random.default_rng(5), []
    model = StockKiosk()
    for _ in range(1200):
        (x, y), moves, taken = model.start(), [], 0
        while model.actions(x, y) is not pkd.END and not (taken == model.horizon and x is None):
            a = learner.act(taken + 1, x, y) if x is None else None
            taken += x is None
            branches = model.step(x, y, a)
            _, y_next, z = branches[rng.choice(len(branches), p=[p for p, _, _ in branches])]
            law = dict(z.law) if isinstance(z, pkd.Known) else STOCK_LAW[z]
            x_next = list(law)[rng.choice(len(law), p=list(law.values()))]
            moves.append(Transition(x, y, a, x_next, y_next))
            x, y = x_next, y_next
        collected.append(Episode(moves))
        learner.observe(collected[-1])
    assert not check_samples(Kiosk(), collected).ok
    assert check_samples(StockKiosk(), collected).ok


def test_a_feature_seen_in_one_context_has_p_value_one() -> None:
    report = check_samples(Kiosk(), [("demand", t % 2, (None, 1, 0)) for t in range(50)])
    assert report.p_values == {"demand": 1.0}
    assert report.tests[0].pair == ()


def test_a_context_may_be_any_value() -> None:
    report = check_samples(Kiosk(), [("demand", t % 2, "ab"[t % 2]) for t in range(200)])
    assert report.tests[0].pair == (("'a'", {0: 100}), ("'b'", {1: 100}))


def test_the_report_names_two_contexts_with_their_counts() -> None:
    samples: list[Triple] = [("demand", t % 2, (None, 1, t % 2)) for t in range(100)]
    p = defined_p_value(samples, 2, 1)
    text = (
        "x' depends on a, not only on z: feature 'demand': 100 samples in 2 contexts, p = "
        f"{p:.3g}; x' was {{0: 50}} after a=0 and {{1: 50}} after a=1; let the feature tell these "
        "apart"
    )
    report = check_samples(Kiosk(), samples)
    assert str(report) == text
    with pytest.raises(ModelError) as error:
        report.raise_if_failed()
    assert error.value.findings == (text,)


def test_a_report_without_findings_says_how_much_it_saw() -> None:
    report = check_samples(Kiosk(), [("demand", t % 2, (None, 1, t % 3)) for t in range(60)])
    assert str(report) == (
        "no dependence found in 60 samples of 1 features: smallest p = 1, false alarms at most 0.01"
    )
    report.raise_if_failed()


def test_what_the_model_rules_out_is_reported() -> None:
    moves = [
        Transition(None, 1, 0, 7, 1),
        Transition(None, 1, 0, 0, 3),
        Transition(None, 1, 0, 0, "closed"),
    ]
    report = check_samples(Kiosk(), [Episode([move]) for move in moves] * 2)
    assert report.impossible == (
        "x' = 7 followed the feature 'demand', which cannot lead there (seen 2 times)",
        "y' = 3 followed (x=None, y=1, a=0), which cannot lead there (seen 2 times)",
        (
            "x' = 0 followed the feature Known(law=((None, 1.0),)), which cannot lead there (seen "
            "2 times)"
        ),
    )
    assert not report.ok


def test_a_settlement_is_judged_by_last_step() -> None:
    class Sale(Kiosk):
        """The last order is answered by customers of another kind."""

        def last_step(self, x: Any, y: Any, a: Any) -> Any:
            return [
                (p, y_next, "sale" if z == "demand" else z)
                for p, y_next, z in super().step(x, y, a)
            ]

    law = LAW | {"sale": {0: 0.9, 1: 0.1}}
    report = check_samples(Sale(), pkd.simulate((Sale(), law), lambda h, x, y: h % 2, 800, seed=1))
    assert report.ok
    assert set(report.p_values) == {"demand", "sale"}


@pytest.mark.parametrize("rate", [0, 1, -0.1, 2])
def test_a_false_alarm_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ModelError) as error:
        check_samples(Kiosk(), [], rate)
    assert error.value.findings == (f"false_alarm is {rate!r}; expected a number between 0 and 1",)
