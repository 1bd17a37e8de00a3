"""The exact test of exogenous features, against visits computed from the definition."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pkd
from pkd.engine.exogenous import as_fractions, draw_prime, find_exogenous
from tests import reference
from tests.queue_strategies import QueueCase, queue_cases
from tests.strategies import Case, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def draw_law(model: Any, z: Any, rng: random.Random) -> dict[Any, float]:
    """A law of full support; for the feature of an unknown reward none is needed."""
    masses = {x: rng.uniform(0.1, 1.0) for x in model.outcomes(z)}
    return {x: mass / sum(masses.values()) for x, mass in masses.items()}


def is_fixed(model: Any, law: Any, z: Any) -> bool:
    """Whether all policies see z equally often under three laws of full support."""
    met = reference.reachable(model)
    for seed in range(3):
        rng = random.Random(seed)
        drawn = {**law, **{other: draw_law(model, other, rng) for other in met.features}}
        least, most = (reference.visits(model, drawn, z, best) for best in (min, max))
        if most - least > 1e-9:
            return False
    return True


def assert_same(model: Any, law: Any, large: bool) -> None:
    compiled = pkd.compile(model, large=large)
    names = [*compiled.features, *(reward.feature for reward in compiled.rewards)]
    for z, found in zip(names, find_exogenous(compiled), strict=True):
        assert found == is_fixed(model, law, z), z


@both_engines
@given(case=cases())
def test_a_feature_is_exogenous_iff_no_policy_changes_its_visits(large: bool, case: Case) -> None:
    assert_same(case.model, case.law, large)


@both_engines
@given(case=queue_cases())
def test_the_same_with_queues(large: bool, case: QueueCase) -> None:
    assert_same(case.model, case.law, large)


class CoinsBeforeAChoice(pkd.PartiallyKnownMDP):
    """Only if `coins` tosses all show heads there is a choice, and only one action shows "bet"."""

    def __init__(self, coins: int) -> None:
        self.coins, self.horizon = coins, coins + 2

    def start(self) -> tuple[int, int]:
        return 1, 0

    def actions(self, x: int, y: int) -> Any:
        return [0, 1] if y == self.coins and x == 1 else [0]

    def step(self, x: int, y: int, a: int) -> Any:
        if y < self.coins:
            return [(1.0, y + 1 if x == 1 else self.coins + 1, "coin")]
        return [(1.0, self.coins + 1, "bet" if a else pkd.sure(0))]

    def outcomes(self, z: str) -> range:
        return range(2)

    def reward(self, x: int, y: int, a: int) -> float:
        return 0.0


def test_thirty_coins_before_a_choice_do_not_hide_it() -> None:
    """The visits of "bet" differ by 2^-30 times a constant: no tolerance would see it."""
    compiled = pkd.compile(CoinsBeforeAChoice(30))
    found = dict(zip(compiled.features, find_exogenous(compiled).tolist(), strict=True))
    assert found == {"coin": True, "bet": False}
    law = {"coin": {0: 0.75, 1: 0.25}, "bet": {0: 0.5, 1: 0.5}}
    visits = {row.feature: row for row in pkd.exploration(compiled, law).visits}
    assert visits["bet"].most < 1e-15  # and yet it depends on what is done


class RareBranch(pkd.NoiseMDP):
    """Action 1 leads with a known probability of 1e-12 to a place where "rare" is drawn."""

    horizon = 2

    def initial(self) -> str:
        return "start"

    def choices(self, s: str) -> Any:
        return [0, 1] if s == "start" else [0]

    def noise(self, s: str, a: int) -> Any:
        if s == "start":
            return pkd.Known({"there": 1e-12, "here": 1 - 1e-12}) if a else pkd.sure("here")
        return "rare" if s == "there" else pkd.sure("here")

    def outcomes(self, z: str) -> list[str]:
        return ["here", "there"]

    def land(self, s: str, a: int, w: str) -> tuple[float, str]:
        return 0.0, w


def test_a_known_branch_of_probability_1e_12_counts() -> None:
    assert not find_exogenous(pkd.compile(RareBranch())).any()


@pytest.mark.parametrize(
    ("name", "exogenous", "features"),
    [("autoscaler", 4, 4), ("spot_autoscaler", 4, 5), ("battery", 116, 116), ("riverswim", 0, 12)],
)
def test_how_many_features_of_shipped_models_are_exogenous(
    name: str, exogenous: int, features: int
) -> None:
    found = find_exogenous(pkd.compile(pkd.as_problem(name).model()))
    assert (int(found.sum()), len(found)) == (exogenous, features)


def test_work_beyond_the_bound_leaves_features_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pkd.engine.exogenous.MOST_WORK", 0.0)
    assert not find_exogenous(pkd.compile(pkd.as_problem("battery").model())).any()


def test_a_list_of_probabilities_sums_to_one_exactly() -> None:
    for p in ([0.1] * 10, [1 / 3, 1 / 3, 1 / 3], [1e-12, 1 - 1e-12], [1.0]):
        assert sum(as_fractions(p)) == 1
    assert as_fractions([1 / 3, 2 / 3]) == [Fraction(1, 3), Fraction(2, 3)]
    assert as_fractions([1e-12, 1 - 1e-12])[0] > 0


def test_primes_are_primes() -> None:
    small = [n for n in range(2, 46_342) if all(n % d for d in range(2, int(n**0.5) + 1))]
    for seed in range(20):
        prime = draw_prime(random.Random(seed))
        assert 2**30 < prime < 2**31
        assert (prime % np.array(small) != 0).all()
