"""Problems of the shipped studies that need more than a table: hard instances, and boards.

An experiment file names them by `pkd_delay.theory.studied:hard_instance` and
`pkd_delay.theory.studied:board`, with their arguments as options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import numpy as np

import pkd
from pkd.expect import number, require, whole
from pkd.experiments import rivals
from pkd_delay.delayed import DelayedMDP
from pkd_delay.theory.bounds import DelaySizes
from pkd_delay.theory.hard import InstancePrior

STATES, ACTIONS, HORIZON, DEGREE = 52, 2, 32, 2  # sizes that meet the conditions of Theorem 3
NOISES = 3


def hard_instance(
    delay: int = 2,
    episodes: float = 3000,
    multiple: float = 1.0,
    seed: int = 0,
    shared: bool = True,
) -> DelayedMDP | tuple[rivals.CountsPerState, pkd.Law]:
    """One draw from the prior of Theorem 3 for `episodes` episodes, with the gap of the proof.

    S = 52, A = 2, H = 32, B = 2 D; the scale of the codes is `multiple` times the proof's
    eps = sqrt(D S A log D / (96 K)), and the gap grows with it. The prior has degree 2. Without
    `shared` a learner counts per augmented state: it does not know that queues share their laws.
    """
    require(number("multiple", multiple, above=True))
    prior = InstancePrior.of_theorem(
        DelaySizes(STATES, ACTIONS, HORIZON, delay, branching=2 * delay), episodes, DEGREE
    )
    delayed = attrs.evolve(prior, scale=multiple * prior.scale).draw(seed).delayed()
    if shared:
        return delayed
    apart = rivals.CountsPerState(delayed.known())
    return apart, apart.law(delayed.law())


def board(
    states: int = 32, groups: int = 2, parts: int = 1, seed: int = 0, horizon: int = 6
) -> tuple[Board, pkd.Law]:
    """A board with its law: |Z| = groups * parts, whatever the number of states."""
    made = Board(states, groups, parts, seed, horizon)
    return made, made.find_law


class Board(pkd.NoiseMDP):
    """s' = f(s, a, w) with random known tables; only the law of w in {0, 1, 2} is unknown.

    The law depends on the group of (s, a), and z = (group, part of the group): a learner is not
    told that the parts of a group share their law. So |Z| = groups * parts, and the problem itself
    does not depend on `parts`.
    """

    def __init__(
        self, states: int = 32, groups: int = 2, parts: int = 1, seed: int = 0, horizon: int = 6
    ) -> None:
        sizes = {"states": states, "groups": groups, "parts": parts}
        require(*(whole(name, value, 1) for name, value in sizes.items()))
        rng = np.random.default_rng(seed)
        self.horizon = horizon
        self.pay = rng.random((states, ACTIONS)).tolist()
        self.target = rng.integers(states, size=(states, ACTIONS, NOISES)).tolist()
        order = rng.permutation(states * ACTIONS)
        self.group = (order % groups).reshape(states, ACTIONS).tolist()
        self.part = (order // groups % parts).reshape(states, ACTIONS).tolist()
        self._laws = rng.dirichlet(np.ones(NOISES), size=groups).tolist()

    def initial(self) -> int:
        return 0

    def choices(self, s: int) -> range:
        return range(ACTIONS)

    def noise(self, s: int, a: int) -> tuple[int, int]:
        return self.group[s][a], self.part[s][a]

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(NOISES)

    def land(self, s: int, a: int, w: int) -> tuple[float, int]:
        return self.pay[s][a], self.target[s][a][w]

    def find_law(self, z: tuple[int, int]) -> Mapping[int, float]:
        """The truth: one law for each group, whatever the part. It is not for learners."""
        return dict(enumerate(self._laws[z[0]]))
