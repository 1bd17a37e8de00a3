"""PPO on a CartPole four steps late: pending actions in the observation, or the last one alone.

    python benchmarks/late_ppo.py --out out/late_ppo.csv --plot docs/_static/late_ppo.png

It needs stable-baselines3 (extra sb3). Five seeds of each take half an hour on one core.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import pkd_delay

STEPS, SEEDS, COPIES, DELAY = 60_000, 5, 8, 4
KINDS = {True: "with pending actions", False: "last observation alone"}


class LastSeen(gym.ObservationWrapper[Any, Any, Any]):
    """Only the observation that was shown last, as an agent that ignores lateness sees it."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = env.observation_space["observation"]  # type: ignore[index]

    def observation(self, observation: Any) -> Any:
        return observation["observation"]


def train(seed: int, pending: bool) -> list[tuple[int, float]]:
    """(steps of all copies, return) of every episode."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make() -> Any:
        late = pkd_delay.LateEnv(gym.make("CartPole-v1"), observations=DELAY, news=False)
        return Monitor(pkd_delay.FlatLateEnv(late) if pending else LastSeen(late))

    found: list[tuple[int, float]] = []

    class Curve(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            ended = [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
            found.extend((self.num_timesteps, float(paid)) for paid in ended)
            return True

    agent = PPO(
        "MlpPolicy", DummyVecEnv([make] * COPIES), n_steps=256, batch_size=256, seed=seed,
        device="cpu",
    )  # fmt: skip
    agent.learn(STEPS, callback=Curve())
    return found


def smooth(curve: list[tuple[int, float]], grid: np.ndarray) -> np.ndarray:
    """The mean return of the episodes that ended within 5,000 steps before each place."""
    steps, paid = (np.array(column) for column in zip(*curve, strict=True))
    return np.array([paid[(steps > g - 5000) & (steps <= g)].mean() for g in grid])


def draw(curves: dict[tuple[bool, int], list[tuple[int, float]]], path: Path) -> None:
    """Means over the seeds with bands of one standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes, grid = figure.subplots(), np.arange(5000, STEPS + 1, 1000)
    for kind, label in KINDS.items():
        lines = np.array([smooth(c, grid) for (one, _), c in curves.items() if one is kind])
        mean, error = lines.mean(axis=0), lines.std(axis=0, ddof=1) / np.sqrt(len(lines))
        axes.plot(grid, mean, label=label)
        axes.fill_between(grid, mean - error, mean + error, alpha=0.25)
        tail = lines[:, grid > 0.8 * STEPS].mean(axis=1)
        print(f"{label:24} {tail.mean():6.1f} +- {tail.std(ddof=1) / np.sqrt(len(tail)):.1f}")
    axes.set(xlabel="steps", ylabel="return of an episode", ylim=(0, None))
    axes.legend(loc="upper left", frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("out/late_ppo.csv"))
    parser.add_argument("--plot", type=Path, default=Path("out/late_ppo.png"))
    args = parser.parse_args()
    curves = {(kind, seed): train(seed, kind) for seed in range(SEEDS) for kind in KINDS}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with args.out.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("pending", "seed", "steps", "return"))
        rows.writerows((*key, *one) for key, curve in curves.items() for one in curve)
    draw(curves, args.plot)


if __name__ == "__main__":
    main()
