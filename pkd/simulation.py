"""Episodes drawn from a model and its law under a policy, as the records that a learner is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from pkd.compiled import Compiled
from pkd.engines import compile
from pkd.kernels import flat
from pkd.model import Episode, Law
from pkd.planning import Model, Plan, Policy, acting, seeded

__all__ = ["Recorder", "simulate"]


def simulate(model: Model, law: Law, policy: Policy, episodes: int, seed: int = 0) -> list[Episode]:
    """So many episodes under a policy. A law with `reveal(episode, rng)` fills `Episode.revealed`.

    >>> import pkd
    >>> coin = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> [episode] = pkd.simulate(coin.model(), coin.law(), lambda h, x, y: 1, episodes=1)  # action 1 stays where it is
    >>> [(move.x, move.action, move.x_next) for move in episode]
    [(0, 1, 0), (0, 1, 0), (0, 1, 0)]
    """
    recorder, rng = Recorder(compile(model), law, seed), seeded(seed)
    recorder.follow(policy)
    tally = recorder.compiled.tally()
    return [recorder.episode(tally, rng)[0] for _ in range(episodes)]


class Recorder:
    """Draws episodes move by move and writes down every state by name."""

    def __init__(self, compiled: Compiled, law: Law, seed: int) -> None:
        self.compiled, self._world = compiled, compiled.world(law)
        self._reveal = getattr(law, "reveal", None)
        self._policy: Any = None
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=(1,))))  # for what the law reveals

    def follow(self, policy: Policy) -> None:
        """From now on episodes follow this policy."""
        own = isinstance(policy, Plan) and policy.compiled is self.compiled
        self._policy = policy.arms if own else self.compiled.followed(acting(policy))  # type: ignore[union-attr]

    def episode(self, tally: flat.Tally, rng: np.ndarray) -> tuple[Episode, float, bool]:
        """An episode, its return, and whether the tally, to which what was visited is added, makes a plan due."""
        episode, total, due = self.compiled.episode(self._world, self._policy, tally, rng)
        if self._reveal is not None:
            episode = Episode(episode.transitions, self._reveal(episode, self.rng))
        return episode, total, due
