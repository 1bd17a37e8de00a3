"""One inter-arrival law: hazards, conditional draws, and what is refused."""

import math

import numpy as np
import pytest

from pkd import ModelError
from pkd_delay import InterArrival


@pytest.mark.parametrize(
    ("probabilities", "hazards", "empty"),
    [
        ((0.2, 0.4, 0.3, 0.1), (0.2, 0.5, 0.75, 1.0), 0.6),
        ((0.5, 0.0, 0.5), (0.5, 0.0, 1.0), 0.5),
        ((0.25, 0.25, 0.25, 0.25), (1 / 4, 1 / 3, 1 / 2, 1.0), 0.5),
    ],
)
def test_hazards_and_the_empty_queue(probabilities, hazards, empty):
    law = InterArrival(probabilities)
    assert [law.hazard(j) for j in range(-1, law.longest + 1)] == pytest.approx(hazards, abs=1e-12)
    assert law.at_most_zero == pytest.approx(empty, abs=1e-12)


def test_an_impossible_wait_has_hazard_one():
    assert InterArrival.of({0: 1.0, 3: 0.0}).hazard(2) == 1.0
    assert InterArrival.of({0: 1.0}).hazard(7) == 1.0


def test_the_hazards_rebuild_the_law():
    law = InterArrival((0.1, 0.35, 0.0, 0.25, 0.3))
    survived, rebuilt = 1.0, []
    for j in range(-1, 4):
        rebuilt.append(survived * law.hazard(j))
        survived *= 1 - law.hazard(j)
    assert rebuilt == pytest.approx(law.probabilities, abs=1e-12)


def test_a_mapping_and_a_list_give_the_same_law():
    assert InterArrival.of({-1: 0.2, 0: 0.5, 2: 0.3}) == InterArrival.of([0.2, 0.5, 0.0, 0.3])


@pytest.mark.parametrize("only", [-1, 0, 2])
def test_a_single_inter_arrival_time_is_a_law(only):
    law = InterArrival.of({only: 1.0})
    assert law.longest == max(only, 0)
    assert law.draw(np.random.default_rng(0)) == only


def test_draws_follow_the_law_on_a_window():
    law, rng = InterArrival((0.2, 0.4, 0.3, 0.1)), np.random.default_rng(1)
    n = 20_000
    draws = [law.draw(rng, low=0, high=1) for _ in range(n)]
    assert set(draws) == {0, 1}
    assert np.mean(draws) == pytest.approx(3 / 7, abs=4 * math.sqrt(0.25 / n))


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (
            {-2: 0.5, 0: 0.5},
            "inter_arrival has Delta = -2; a delay shrinks by at most 1 per state, so Delta >= -1",
        ),
        ({0: 0.5, 1: 0.4}, "inter_arrival sums to 0.9, not 1"),
        ({0: math.nan}, "inter_arrival has probability nan; expected a number in [0, 1]"),
        (
            {0: -0.1, 1: 1.1},
            "2 findings\n  - inter_arrival has probability -0.1; expected a number in [0, 1]\n",
        ),
        ({0.5: 1.0}, "inter_arrival has Delta = 0.5; expected an integer"),
        ({}, "inter_arrival is empty; give {Delta: probability} with Delta in -1, 0, 1, ..."),
        ([1.0], "inter_arrival has 1 entries; expected Pr(Delta = -1), Pr(Delta = 0), ..."),
        (None, "inter_arrival has no law; give {Delta: probability} with Delta in -1, 0, 1, ..."),
        (
            "slow",
            (
                "inter_arrival is 'slow'; expected {Delta: probability} or the probabilities of "
                "Delta = -1, 0, ..., W"
            ),
        ),
        ({0: "often"}, "inter_arrival has probability 'often'; expected a number in [0, 1]"),
    ],
)
def test_a_bad_law_is_refused_with_its_fault(law, message):
    with pytest.raises(ModelError) as error:
        InterArrival.of(law)
    assert str(error.value).startswith(message)
