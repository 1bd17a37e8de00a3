"""Steps per second of late observations: Gymnasium's `DelayObservation` and `pkd_delay.LateEnv`.

Both wrap the same environment (FrozenLake 8x8, delay 2) and are driven by the same actions and
seeds, as a child of `bench.py`. Gymnasium's wrapper gives the old observation alone, and zeros
before the first one; `LateEnv` also gives its age, what is pending and what is new, and shows the
end. `agree` is the share of steps, from the first arrival to the end of an episode, at which both
give the same observation.

    python benchmarks/wrappers.py late
"""

from __future__ import annotations

import time
from typing import Any

import gymnasium as gym
import numpy as np
from measuring import make_parser, report

DELAY = 2


def make(name: str) -> gym.Env[Any, Any]:
    """The environment, wrapped or not."""
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=True)
    if name == "bare":
        return env
    if name == "gymnasium":
        return gym.wrappers.DelayObservation(env, DELAY)
    from pkd_delay import LateEnv

    return LateEnv(env, observations=DELAY)


def play(env: gym.Env[Any, Any], actions: list[int]) -> float:
    """Steps per second; episodes follow each other."""
    env.reset(seed=0)
    began = time.perf_counter()
    for action in actions:
        *_, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return len(actions) / (time.perf_counter() - began)


def compare(actions: list[int]) -> float:
    """The share of steps at which both wrappers show the same."""
    one, other = make("gymnasium"), make("late")
    same = shown = taken = 0
    one.reset(seed=0), other.reset(seed=0)
    for seed, action in enumerate(actions, 1):
        old, _, over, cut, _ = one.step(action)
        new, _, late_over, late_cut, _ = other.step(action)
        taken += 1
        if over or cut or late_over or late_cut:
            one.reset(seed=seed), other.reset(seed=seed)
            taken = 0
        elif taken >= DELAY:
            shown += 1
            same += int(old == new["observation"])
    return same / max(shown, 1)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("wrapper", choices=["bare", "gymnasium", "late"])
    parser.add_argument("--steps", type=int, default=50_000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    actions = rng.integers(4, size=args.steps).tolist()
    speed = max(play(make(args.wrapper), actions) for _ in range(3))
    numbers = {"speed": speed}
    if args.wrapper != "bare":
        numbers["agree"] = compare(actions[:5000])
    report(**numbers)


if __name__ == "__main__":
    main()
