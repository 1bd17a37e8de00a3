"""The peer's side of `learning.py`: UCBVI of rlberry on an instance from an .npz file.

A Python that has rlberry runs it.

Prints one JSON line: episodes per second for each setting. Settings that could hold it back are
tried both ways: full backward induction or real-time dynamic programming, its own FiniteMDP or an
environment with a faster sampler, its log on or off. numba is installed, which rlberry then uses,
and everything is compiled before the clock starts.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from bisect import bisect

import numpy as np
import rlberry

try:
    from rlberry.agents import UCBVIAgent
    from rlberry.envs.finite import FiniteMDP
except ImportError:  # from 0.7 on the agents are a package of their own
    from rlberry.envs.finite_mdp import FiniteMDP
    from rlberry_scool.agents import UCBVIAgent

rlberry.logger.setLevel("ERROR")


class QuickMDP(FiniteMDP):
    """The same process; a step is one uniform number and a bisection instead of `rng.choice`."""

    def __init__(self, R, P, initial_state_distribution=0):
        self._cumulative = [[row.tolist() for row in rows] for rows in P.cumsum(axis=2)]
        self._pay = R.tolist()
        super().__init__(R, P, initial_state_distribution)

    def step(self, action):
        before, self.state = (
            self.state,
            bisect(self._cumulative[self.state][action], self.rng.random()),
        )
        return self.state, self._pay[before][action], False, False, {}


def episodes_per_second(problem, episodes, environment, real_time_dp, log):
    """The speed of `fit`, with the kernels compiled by a short run before it."""
    horizon = int(problem["horizon"])

    def agent():
        env = environment(problem["r"], problem["P"], int(problem["start"]))
        made = UCBVIAgent(env, horizon=horizon, real_time_dp=real_time_dp, seeder=1)
        if not log:
            made.set_writer(None)
        return made

    agent().fit(20)
    timed = agent()
    began = time.perf_counter()
    timed.fit(episodes)
    return episodes / (time.perf_counter() - began)


def main():
    """rlberry_peer.py INSTANCE.npz EPISODES"""
    problem, episodes = np.load(sys.argv[1], allow_pickle=False), int(sys.argv[2])
    speeds = {}
    for environment, real_time_dp, log in itertools.product(
        (FiniteMDP, QuickMDP), (False, True), (True, False)
    ):
        name = (
            f"{environment.__name__}, "
            f"{'real-time DP' if real_time_dp else 'full backward induction'}, log "
            f"{'on' if log else 'off'}"
        )
        speeds[name] = episodes_per_second(problem, episodes, environment, real_time_dp, log)
    print(json.dumps(speeds))


if __name__ == "__main__":
    main()
