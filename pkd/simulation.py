"""Episodes drawn from a model and its law under a policy, as the records that a learner is shown."""

from __future__ import annotations

import numpy as np

from pkd.compiled import compile
from pkd.model import Episode, Law
from pkd.planning import Model, Policy, policy_arms, seeded

__all__ = ["simulate"]


def simulate(model: Model, law: Law, policy: Policy, episodes: int, seed: int = 0) -> list[Episode]:
    """So many episodes under a policy. A law with `reveal(episode, rng)` fills `Episode.revealed`."""
    compiled = compile(model)
    world, arms, rng, reveal = compiled.world(law), policy_arms(compiled, policy), seeded(seed), Revealer(law, seed)
    return [reveal(compiled.episode(world, arms, compiled.tally(), rng)[0]) for _ in range(episodes)]


class Revealer:
    """Adds to an episode what its law shows at the end."""

    def __init__(self, law: Law, seed: int) -> None:
        self._reveal = getattr(law, "reveal", None)
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=(1,))))

    def __call__(self, episode: Episode) -> Episode:
        return episode if self._reveal is None else Episode(episode.transitions, self._reveal(episode, self.rng))
