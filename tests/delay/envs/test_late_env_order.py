"""Nothing is early, nothing is lost, everything is in order: for random laws, lengths and ends."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkd_delay import Lags, LateEnv

pytest.importorskip("gymnasium")
import gymnasium as gym
from gymnasium import spaces


class Diary(gym.Env):
    """Every observation is unique: the number of steps, also in `info`; each step pays 2^-step."""

    observation_space = spaces.Box(0, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, length, truncates):
        self.length, self.truncates = length, truncates

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0]), {"secret": 0}

    def step(self, action):
        self.time += 1
        over = self.time == self.length
        info = {"secret": self.time}
        ends = (over and not self.truncates, over and self.truncates)
        return np.array([float(self.time)]), 0.5**self.time, *ends, info


@st.composite
def delays(draw):
    """What `observations` may be, with the largest delay."""
    most = draw(st.integers(0, 4))
    kind = draw(st.sampled_from(["constant", "law", "step", "travel"]))
    weights = st.lists(st.integers(0, 3), min_size=2, max_size=5).filter(any)
    if kind == "constant":
        return most, None
    first, second = (np.array(draw(weights), float) for _ in range(2))
    first, second = first / first.sum(), second / second.sum()
    if kind == "travel":
        return Lags(dict(enumerate(first.tolist()))), None
    if kind == "law":
        return tuple(first), most
    return (lambda h, o, a: tuple(first if h % 2 else second)), most


@given(
    law=delays(), length=st.integers(1, 12), truncates=st.booleans(), horizon=st.integers(1, 14),
    limited=st.booleans(), late=st.booleans(), seed=st.integers(0, 2**20), data=st.data(),
)  # fmt: skip
def test_an_episode_is_causal_ordered_and_complete(
    law, length, truncates, horizon, limited, late, seed, data
):
    env = LateEnv(
        Diary(length, truncates), law[0], max_delay=law[1], start="late" if late else "shown",
        horizon=horizon if limited else None,
    )  # fmt: skip
    observation, info = env.reset(seed=seed)
    h, paid, shown, sent, over = 1, 0.0, [], [], False
    most = env.packing.queue
    while True:
        assert observation in env.observation_space
        news = observation["news"][: observation["arrived"], 0].astype(int).tolist()
        shown += news
        # In order, none is lost, none is repeated.
        assert shown == list(range(len(shown)))
        # Causal: the observation after the k-th action is not shown before that action.
        assert not shown or shown[-1] <= h - 1
        # Information comes with its observation, and with nothing else.
        secret = info.get("secret")
        assert secret == (shown[-1] if news else None)
        if shown:
            assert observation["observation"][0] == shown[-1]
        # What is paid belongs to what is shown.
        assert paid == pytest.approx(sum(0.5**k for k in shown if k))
        if over:
            break
        assert "late" not in info
        age = int(observation["age"])
        assert age == h - 1 - (shown[-1] if shown else 0) <= most
        assert observation["pending"][:age].tolist() == sent[len(sent) - age :]
        action = data.draw(st.integers(0, 2))
        sent.append(action)
        observation, reward, terminated, truncated, info = env.step(action)
        paid, over, h = paid + reward, terminated or truncated, h + 1
    done = min(length, horizon) if limited else length
    assert shown == list(range(done + 1))
    assert observation["age"] == 0
    assert terminated == (done == length and not truncates)
    # Each was shown when it was due: D_h of the record says so.
    record = info["late"]["delays"]
    assert len(record) == done
    assert all(0 <= delay <= env._rule.max_delay for delay in record)
    assert all(after >= before - 1 for before, after in pairwise(record))


@given(law=delays(), seed=st.integers(0, 2**20))
def test_every_observation_is_shown_exactly_when_it_is_due(law, seed):
    env = LateEnv(Diary(9, truncates=True), law[0], max_delay=law[1], horizon=9)
    observation, _ = env.reset(seed=seed)
    step_of, over = {0: 1}, False
    while not over:
        observation, _, terminated, truncated, info = env.step(0)
        over = terminated or truncated
        for k in observation["news"][: observation["arrived"], 0].astype(int).tolist():
            step_of[k] = int(observation["step"][0])
    for k, delay in enumerate(info["late"]["delays"], start=1):
        assert step_of[k] == min(k + 1 + delay, 10)
