"""Steps per second of 1,024 late CartPoles in one run, beside Gymnasium's vectors without lateness.

python benchmarks/late_vector.py
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym

import pkd_delay

COPIES, STEPS, REPEATS = 1024, 60, 3
LAW = {"observations": {-1: 0.3, 0: 0.4, 1: 0.3}, "max_delay": 3}


def make_late() -> gym.Env[Any, Any]:
    return pkd_delay.LateEnv(gym.make("CartPole-v1"), **LAW)


def make_numpy() -> gym.vector.VectorEnv[Any, Any, Any]:
    return gym.make_vec("CartPole-v1", COPIES, vectorization_mode="vector_entry_point")


WORLDS = {
    "gymnasium.vector.SyncVectorEnv, not late": lambda: gym.make_vec(
        "CartPole-v1", COPIES, vectorization_mode="sync"
    ),
    "LateVectorEnv": lambda: pkd_delay.LateVectorEnv("CartPole-v1", COPIES, **LAW),
    "LateVectorEnv, flat": lambda: pkd_delay.LateVectorEnv("CartPole-v1", COPIES, flat=True, **LAW),
    "SyncVectorEnv of 1,024 LateEnv": lambda: gym.vector.SyncVectorEnv([make_late] * COPIES),
    "CartPole in numpy, not late": make_numpy,
    "LateVectorEnv of CartPole in numpy": lambda: pkd_delay.LateVectorEnv(
        make_numpy(), end="at once", **LAW
    ),
    "the same, flat": lambda: pkd_delay.LateVectorEnv(
        make_numpy(), end="at once", flat=True, **LAW
    ),
}


def measure(world: gym.vector.VectorEnv[Any, Any, Any]) -> float:
    """Steps of all copies per second."""
    world.reset(seed=0)
    world.action_space.seed(0)
    actions = [world.action_space.sample() for _ in range(STEPS)]
    best = 0.0
    for _ in range(REPEATS):
        began = time.perf_counter()
        for action in actions:
            world.step(action)
        best = max(best, COPIES * STEPS / (time.perf_counter() - began))
    return best


def main() -> None:
    found = {name: measure(make()) for name, make in WORLDS.items()}
    reference = found["gymnasium.vector.SyncVectorEnv, not late"]
    for name, speed in found.items():
        print(f"{name:45} {speed:12,.0f} steps/s  {speed / reference:6.2f}")


if __name__ == "__main__":
    main()
