"""Agents that tests name by words, in this and in other processes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import pkd


class QLearning(pkd.Agent):
    """Optimistic Q-learning on (h, x, y): the agent of the tutorial."""

    def __init__(self, rate: float = 1.0, show: bool = True) -> None:
        self.rate, self.show = rate, show

    def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.model, self.q, self.n = model, {}, {}
        self.high = float(model.horizon)

    def act(self, h: int, x: Any, y: Any) -> Any:
        return max(self.model.actions(x, y), key=lambda a: self.q.get((h, x, y, a), self.high))

    def observe(self, episode: pkd.Episode) -> None:
        h, moves = 0, list(episode)
        for i, move in enumerate(moves):
            if move.action is None:
                continue
            h += 1
            key = (h, move.x, move.y, move.action)
            ahead = moves[i + 1 :]
            following = next((m for m in ahead if m.action is not None), None)
            paid = move.reward + sum(m.reward for m in ahead[: _count_chance(ahead)])
            paid += 0.0 if following else episode.final
            value = 0.0
            if following is not None:
                actions = self.model.actions(following.x, following.y)
                place = (h + 1, following.x, following.y)
                value = max(self.q.get((*place, a), self.high) for a in actions)
            self.n[key] = self.n.get(key, 0) + 1
            step = self.rate * (self.model.horizon + 1) / (self.model.horizon + self.n[key])
            self.q[key] = (1 - step) * self.q.get(key, self.high) + step * (paid + value)

    def policy(self) -> Any:
        if not self.show:
            return None
        q, model, high = dict(self.q), self.model, self.high
        return lambda h, x, y: max(model.actions(x, y), key=lambda a: q.get((h, x, y, a), high))


def _count_chance(moves: list[pkd.Transition]) -> int:
    """How many moves come before the next decision."""
    return next((i for i, move in enumerate(moves) if move.action is not None), len(moves))


class Random(pkd.Agent):
    """Plays at random and notes every run that it begins in a file."""

    def __init__(self, log: str = "", seconds: float = 0.0, die: str = "") -> None:
        self.log, self.seconds, self.die = log, seconds, die

    def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        log = self.log or os.environ.get("PKD_TEST_LOG")
        if log:
            with Path(log).open("a") as file:
                file.write(f"{model.horizon} {seed}\n")
        time.sleep(self.seconds)
        if self.die and not Path(self.die).exists():
            Path(self.die).touch()
            os.kill(os.getpid(), 9)

    def act(self, h: int, x: Any, y: Any) -> Any:
        actions = list(self.model.actions(x, y))
        return actions[self.rng.integers(len(actions))]

    def observe(self, episode: pkd.Episode) -> None:
        pass


class Forgetful(QLearning):
    """It does not keep its argument under the name of the argument."""

    def __init__(self, speed: float) -> None:
        super().__init__(rate=1.0)
        self._speed = speed
