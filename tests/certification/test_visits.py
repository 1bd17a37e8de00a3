"""`pkd.exploration`: how often each feature is seen, over all policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import pkd
from pkd.episode import list_samples
from tests import reference
from tests.queue_strategies import QueueCase, queue_cases
from tests.strategies import Case, Shape, build, cases

both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def assert_same(model: Any, law: Any, large: bool) -> None:
    found = pkd.exploration(pkd.compile(model, large=large), law)
    met = reference.reachable(model)
    assert {row.feature for row in found.visits} == met.features | met.reward_features
    for z, least, most in found.visits:
        assert least == pytest.approx(reference.visits(model, law, z, min), abs=1e-12), z
        assert most == pytest.approx(reference.visits(model, law, z, max), abs=1e-12), z


@both_engines
@given(case=cases())
def test_visits_are_those_of_the_definition(large: bool, case: Case) -> None:
    assert_same(case.model, case.law, large)


@both_engines
@given(case=queue_cases())
def test_visits_of_models_with_queues_are_those_of_the_definition(
    large: bool, case: QueueCase
) -> None:
    assert_same(case.model, case.law, large)


@pytest.mark.parametrize("seed", range(12))
def test_no_policy_sees_a_feature_less_than_least_or_more_than_most(seed: int) -> None:
    """All deterministic policies of a tiny model, one after the other."""
    case = build(
        Shape(
            seed=seed,
            horizon=2,
            n_x=2,
            n_y=2,
            chance=0.4 * (seed % 2),
            settlement=seed % 3 == 0,
            unknown_rewards=seed % 4 == 0,
        )
    )
    for z, least, most in pkd.exploration(case.model, case.law).visits:
        assert (least, most) == pytest.approx(
            reference.visits_of_policies(case.model, case.law, z), abs=1e-12
        )


def test_simulated_episodes_visit_as_often_as_the_sweeps_say() -> None:
    """Under random play of riverswim the mean count of every feature lies within the two ends."""
    problem = pkd.as_problem("riverswim")
    model, law = problem.model(), problem.law()
    found = pkd.exploration(model, law)
    episodes = pkd.simulate((model, law), lambda h, x, y: h % 2, 400, seed=1)
    seen = dict.fromkeys((row.feature for row in found.visits), 0)
    for episode in episodes:
        for z, _ in list_samples(model, episode):
            seen[z] += 1
    assert sum(seen.values()) == 400 * model.horizon
    for z, least, most in found.visits:
        slack = 5 * model.horizon / np.sqrt(400)
        assert least - slack <= seen[z] / 400 <= most + slack


class Inputs(pkd.PartiallyKnownMDP):
    """A demand comes at every step whatever is ordered; with `paid` an order may be refused."""

    horizon = 3

    def __init__(self, optional: bool = False, rest: float = 0.0) -> None:
        self.optional, self.rest = optional, rest

    def start(self) -> Any:
        return 0, "open"

    def actions(self, x: Any, y: Any) -> Any:
        return ["order", "wait"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        if a == "wait" and self.optional:
            branches = [(1 - self.rest, "closed", pkd.sure(0)), (self.rest, "open", "demand")]
            return [branch for branch in branches if branch[0] > 0]
        return [(1.0, "open", "demand")]

    def outcomes(self, z: Any) -> Any:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(x if a == "order" else 1 - x)


LAW = {"demand": {0: 0.3, 1: 0.7}}


def test_inputs_that_come_whatever_is_done_need_no_exploration() -> None:
    found = pkd.exploration(Inputs(), LAW)
    assert found.visits == (("demand", 3.0, 3.0),)
    assert not found.needed
    assert found.must_seek == []
    assert "Exploration is not needed" in str(found)
    assert "2601.20694" in str(found)


def test_a_feature_that_can_be_avoided_must_be_sought() -> None:
    found = pkd.exploration(Inputs(optional=True), LAW)
    assert found.visits == (("demand", 0.0, 3.0),)
    assert found.needed
    assert found.must_seek == ["demand"]
    assert "must be sought" in str(found)
    assert "demand" in str(found)


def test_a_feature_seen_by_all_but_not_equally_often_need_not_be_sought() -> None:
    found = pkd.exploration(Inputs(optional=True, rest=0.25), LAW)
    assert found.visits == (("demand", 0.75, 3.0),)
    assert found.needed
    assert found.must_seek == []
    assert "not equally often" in str(found)


class Arms(pkd.PartiallyKnownMDP):
    """Two arms with unknown payments, and nothing else that is unknown."""

    horizon = 2

    def start(self) -> Any:
        return 0, None

    def actions(self, x: Any, y: Any) -> Any:
        return ["left", "right"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, None, pkd.sure(0))]

    def outcomes(self, z: Any) -> Any:
        return (0,)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return pkd.UnknownReward(a, 0.0, 1.0)


@both_engines
def test_an_unknown_reward_counts_like_a_feature(large: bool) -> None:
    model = pkd.compile(Arms(), large=large)
    found = pkd.exploration(model, {"left": {0.5: 1.0}, "right": {0.0: 0.5, 1.0: 0.5}})
    assert found.visits == (("left", 0.0, 2.0), ("right", 0.0, 2.0))
    assert found.must_seek == ["left", "right"]


def test_a_table_of_visits_is_cut_where_it_is_long() -> None:
    text = pkd.exploration("riverswim").table(most=2).splitlines()
    assert text[0].split() == ["feature", "least", "most"]
    assert len(text) == 4
    assert text[-1].startswith("... ")
