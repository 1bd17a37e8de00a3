"""DelayedEnv keeps Gymnasium's contract and shows exactly what the observation promises."""

import numpy as np
import pytest

import pkd
from pkd_delay import DelayedEnv, DelayedMDP
from pkd_delay.problems import grid

pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env

SIX_STEPS = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.25, 0.5], [0.75, 1.0]]), 6)


def env(max_delay=3):
    return DelayedEnv(DelayedMDP(SIX_STEPS, {-1: 0.3, 0: 0.3, 2: 0.4}, max_delay))


@pytest.mark.parametrize("max_delay", [0, 1, 3, 20])
def test_gymnasiums_own_checker_passes(max_delay):
    check_env(
        DelayedEnv(DelayedMDP(grid(horizon=5), {-1: 0.3, 0: 0.3, 2: 0.4}, max_delay)),
        skip_render_check=True,
    )


def test_the_observations_of_table_two():
    """Delta = 1, 2, -1, 1: nothing new at steps 2, 4 and 5, two states at once at step 6, the rest
    at the end.
    """
    world = env()
    observation, info = world.reset(seed=4, options={"deltas": (1, 2, -1, 1, 0, 0)})
    seen = [observation]
    assert info == {}
    for action in (0, 1, 1, 0, 1, 0):
        observation, _, over, _, info = world.step(action)
        seen.append(observation)
    assert over
    assert [int(o["step"]) for o in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [int(o["age"]) for o in seen] == [0, 1, 1, 2, 3, 2, 0]
    assert [int(o["waited"]) for o in seen] == [0, 1, 0, 1, 2, 0, 0]
    assert [int((o["news"] > 0).sum()) for o in seen] == [1, 0, 1, 0, 0, 2, 3]
    assert seen[4]["pending"].tolist() == [2, 2, 1]
    assert seen[5]["pending"].tolist() == [1, 2, 0]
    assert [int(s) - 1 for o in seen for s in o["news"] if s > 0] == list(info["states"])
    assert info["deltas"] == (1, 2, -1, 1, 0, 0)
    assert info["delays"] == (1, 3, 2, 3, 3, 3)


def test_nothing_yet_is_no_state():
    """With a constant delay the first news after s_1 comes late.

    Until then `news` is all zeros, which no state is written as.
    """
    world = DelayedEnv(DelayedMDP.constant(SIX_STEPS, 3))
    world.reset(seed=0)
    for _ in range(3):
        observation, reward, _, _, _ = world.step(0)
        assert not observation["news"].any()
        assert reward == 0.0
    assert world.step(0)[0]["news"].any()


def test_all_rewards_are_paid_by_the_end():
    world = env()
    world.reset(seed=7)
    total, over = 0.0, False
    while not over:
        _, reward, over, truncated, info = world.step(1)
        total += reward
        assert not truncated
    assert total == pytest.approx(sum(SIX_STEPS.rewards[s, 1] for s in info["states"][:6]))


def test_a_seed_repeats_the_episode():
    def run(seed):
        world = env()
        world.reset(seed=seed)
        for _ in range(6):
            info = world.step(0)[4]
        return info

    assert run(5) == run(5)
    assert any(run(5) != run(seed) for seed in range(6, 12))
