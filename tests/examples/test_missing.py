"""Missing observations against the closed form of the two-state chain.

Also at both ends of what the gauge can do: it always answers, or only when it must.
"""

from __future__ import annotations

import numpy as np
import pytest

import pkd
from pkd.episode import list_samples
from pkd_examples.missing import missing_observations
from pkd_examples.tank import tank

STAY = [[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2]


@pytest.mark.parametrize(("shown", "longest"), [(0.5, 3), (0.2, 2), (0.9, 9), (0.0, 4), (1.0, 4)])
def test_the_value_is_that_of_the_age_of_what_was_seen_last(shown: float, longest: int) -> None:
    # The chain ignores actions, so news of age g is worth (1 + .8^g)/2; the age falls to 0 with
    # probability `shown`, else grows by one.
    ages, expected = {0: 1.0}, 0.0
    for _ in range(8):
        expected += sum(p * (1 + 0.8**age) / 2 for age, p in ages.items())
        grown = {age + 1: p * (1 - shown) for age, p in ages.items() if age < longest}
        ages = {0: 1 - sum(grown.values()), **grown}
    world = pkd.TabularMDP(STAY, np.eye(2), 8)
    model = pkd.Missing(world, 1 - shown, longest=longest)
    assert pkd.plan(model, world.law()).value == pytest.approx(expected, abs=1e-12)


def test_a_gauge_that_always_answers_is_the_undelayed_world() -> None:
    world, gauge = tank(), missing_observations(shown=1.0)
    assert pkd.plan(gauge.model(), gauge.law()).value == pytest.approx(
        pkd.plan(world.model(), world.law()).value, abs=1e-12
    )


def test_an_episode_teaches_every_transition_though_few_states_were_shown() -> None:
    problem = missing_observations(shown=0.1, longest=3, horizon=9)
    model = problem.model()
    for episode in pkd.simulate((model, problem.law()), lambda h, x, y: 1, 20, seed=5):
        assert len(list(list_samples(model, episode))) == 9


def test_rewards_are_paid_for_every_step() -> None:
    # A reward of one in every state is worth the horizon, whatever goes missing.
    world = pkd.TabularMDP(STAY, np.ones((2, 2)), 7)
    model = pkd.Missing(world, 0.7, longest=3)
    assert pkd.plan(model, world.law()).value == pytest.approx(7.0)
