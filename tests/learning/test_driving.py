"""A learner in an environment that it has no table of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay.envs.drive import drive
from pkd_delay.models.tables import two_state_chain

gymnasium = pytest.importorskip("gymnasium")


def lake(limit: int | None = None) -> Any:
    return gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=limit or 100)


def test_a_frozen_lake_is_learned_without_its_table() -> None:
    """Without ice the goal is six steps away: the best return is 1."""
    learner = pkd.OptimisticLearner(pkd.UnknownTable(16, 4, 8), optimism=pkd.MVP.practical())
    paid = pkd.drive(lake(), learner, 600, seed=3)
    assert learner.observed == len(paid) == 600
    assert paid[-20:].mean() == 1.0


def test_unknown_starts_are_learned_too() -> None:
    taxi = gymnasium.make("Taxi-v4")
    model = pkd.UnknownTable(500, 6, 4, reward_range=(-10, 20), start=None)
    learner = pkd.OptimisticLearner(model, replan="total")
    pkd.drive(taxi, learner, 12, seed=1)
    assert sum(learner.counts["start"].values()) == 12


@pytest.mark.parametrize("stop", [1, 7, 20])
def test_a_program_that_was_stopped_goes_on_with_the_same_bits(stop: int, tmp_path: Path) -> None:
    model, file = pkd.UnknownTable(16, 4, 8), tmp_path / "learner.npz"
    alone = pkd.OptimisticLearner(model)
    expected = pkd.drive(lake(), alone, 30, seed=5)
    first = pkd.drive(lake(), pkd.OptimisticLearner(model), stop, seed=5, save=file)
    again = pkd.OptimisticLearner.load(file, model)
    assert [*first, *pkd.drive(lake(), again, 30, seed=5, save=file)] == expected.tolist()
    assert again.counts == alone.counts


def test_a_time_limit_shorter_than_the_horizon_is_refused() -> None:
    learner = pkd.OptimisticLearner(pkd.UnknownTable(16, 4, 50))
    with pytest.raises(pkd.ModelError, match="cut the episode off after 3 steps; expected 50"):
        pkd.drive(lake(limit=3), learner, 5)


def test_observations_that_are_no_numbers_are_refused() -> None:
    cart = gymnasium.make("CartPole-v1")
    learner = pkd.OptimisticLearner(pkd.UnknownTable(4, 2, 5))
    with pytest.raises(pkd.ModelError, match="expected the number of a state"):
        pkd.drive(cart, learner, 1)


@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_a_late_environment_is_driven_to_the_counts_of_its_episodes(
    kind: str, tmp_path: Path
) -> None:
    late = pkd_delay.DelayedMDP(two_state_chain(horizon=5), {-1: 0.2, 0: 0.5, 1: 0.3}, 2)
    model, file = late.known() if kind == "known" else late.unknown(), tmp_path / "learner.npz"
    alone = pkd.OptimisticLearner(model)
    expected = drive(pkd_delay.LateEnv(late), alone, 40, seed=2)
    moves = [z for z in alone.counts if kind == "known" or hasattr(z, "feature")]
    assert sum(sum(alone.counts[z].values()) for z in moves) == 40 * 5
    drive(pkd_delay.LateEnv(late), pkd.OptimisticLearner(model), 11, seed=2, save=file)
    again = pkd.OptimisticLearner.load(file, model)
    assert drive(pkd_delay.LateEnv(late), again, 40, seed=2).tolist() == [*expected[11:]]


def test_a_late_lake_is_learned_without_its_table() -> None:
    """Constant delay 1, no ice: nothing is lost by the delay, the best return is 1."""
    base = pkd.UnknownTable(16, 4, 8)
    model = pkd_delay.KnownDelay(base, {1: 1.0}, 1)
    learner = pkd.OptimisticLearner(model, optimism=pkd.MVP.practical())
    env = pkd_delay.LateEnv(lake(), observations=1, horizon=8)
    paid = drive(env, learner, 500, seed=4)
    assert np.mean(paid[-20:]) == 1.0


def test_a_model_without_late_observations_is_refused() -> None:
    env = pkd_delay.LateEnv(lake(), observations=1, horizon=8)
    with pytest.raises(pkd.ModelError, match=r"expected pkd_delay\.KnownDelay or UnknownDelay"):
        drive(env, pkd.OptimisticLearner(pkd.UnknownTable(16, 4, 8)), 1)
