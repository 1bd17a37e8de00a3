"""The hard instances of Theorem 3: trees whose leaves hide codes, behind a constant delay.

A CodeMDP has states (i, b), i = 1..d, b in {0, 1}: i counts down whatever is done, and at (1, b)
the action b leads to success, which pays 1 in every step from then on, any other to failure. The
first (i, b) is drawn from P(theta) and is not shown in time, so the agent must commit to a code
word: the sign of each theta_i. Its optimum is affine in |theta|_1, so finding the best (leaf,
action) is estimating l1-norms (`pkd_delay.l1`). Optimal values are in closed form.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

import pkd
from pkd.expect import require, whole
from pkd_delay.delayed import DelayedMDP
from pkd_delay.theory.bounds import DelaySizes
from pkd_delay.theory.l1 import matching_degree
from pkd_delay.theory.remez import Prior, moment_matching_priors

Floats = NDArray[np.float64]


def _frozen_codes(value: Sequence[Sequence[Sequence[float]]] | Floats) -> Floats:
    codes = np.array(value, dtype=np.float64)
    codes.flags.writeable = False
    return codes


@attrs.frozen(eq=False)
class HardInstance:
    """One MDP of the family: the tree, the codes behind its leaves, the delay that hides them."""

    levels: tuple[int, ...]  # nodes of the tree, root first, leaves last
    codes: Floats = attrs.field(converter=_frozen_codes)  # theta of each (leaf, action), (L, A, d)
    horizon: int
    delay: int
    one_shot: bool = False  # success pays once instead of in every step that is left

    def __attrs_post_init__(self) -> None:
        require(self._findings())

    @property
    def code_size(self) -> int:
        """d, the length of a code word."""
        return int(self.codes.shape[2])

    def pay(self) -> Floats:
        """What success pays after entering at (i, b): H - H_tree - i steps are left, (d,)."""
        left = self.horizon - len(self.levels) - np.arange(1, self.code_size + 1)
        return np.minimum(left, 1.0) if self.one_shot else left.astype(float)

    def values(self) -> Floats:
        """The best return through each pair: sum_i pay_i (1 + |theta_i|) / (2 d), (L, A)."""
        values: Floats = (1 + np.abs(self.codes)) @ self.pay() / (2 * self.code_size)
        return values

    @property
    def optimal_value(self) -> float:
        """The largest of `values`: the tree is known and leads anywhere."""
        return float(self.values().max())

    def code_word(self, leaf: int, action: int) -> tuple[int, ...]:
        """The best actions a_1..a_d after (leaf, action): a_i = 1 where theta_i >= 0, else 0."""
        return tuple(int(theta >= 0) for theta in self.codes[leaf, action])

    def mdp(self) -> pkd.TabularMDP:
        """The MDP without its delay.

        States: the tree level by level, (1, 0), (1, 1), (2, 0), ..., success, failure.
        """
        (_, actions, size), nodes = self.codes.shape, sum(self.levels)
        success, failure = nodes + 2 * size, nodes + 2 * size + 1
        transitions = np.zeros((failure + 1, actions, failure + 1))
        first = 0
        for width, below in pairwise(self.levels):
            for node in range(width):
                children = range(node * actions, min((node + 1) * actions, below))
                for a in range(actions):
                    # A node with fewer children than actions reaches some of them twice.
                    child = children[a % len(children)]
                    transitions[first + node, a, first + width + child] = 1.0
            first += width
        entry = np.stack([1 - self.codes, 1 + self.codes], axis=3) / (2 * size)
        leaves = slice(nodes - self.levels[-1], nodes)
        transitions[leaves, :, nodes:success] = entry.reshape(-1, actions, 2 * size)
        for i, b in np.ndindex(size, 2):
            here = nodes + 2 * i + b
            transitions[here, :, here - 2 if i else failure] = 1.0
            if i == 0:
                transitions[here, b] = np.eye(failure + 1)[success]
        transitions[success, :, failure if self.one_shot else success] = 1.0
        transitions[failure, :, failure] = 1.0
        rewards = np.zeros((failure + 1, actions))
        rewards[success] = 1.0
        tree = [(level, node) for level, width in enumerate(self.levels) for node in range(width)]
        names = [f"tree {level}.{node}" for level, node in tree]
        names += [f"({i}, {b})" for i in range(1, size + 1) for b in (0, 1)]
        return pkd.TabularMDP(
            transitions, rewards, self.horizon, state_names=[*names, "success", "failure"]
        )

    def delayed(self) -> DelayedMDP:
        """The instance as a delayed MDP with constant delay and support bound B = 2 d."""
        return DelayedMDP.constant(self.mdp(), self.delay, branching=2 * self.code_size)

    def _findings(self) -> list[str]:
        leaves = self.levels[-1] if self.levels else 0
        shape = self.codes.shape
        if len(shape) != 3 or shape[0] != leaves or shape[1] < 2 or shape[2] < 1:
            wanted = f"(leaves, actions, code size) = ({leaves}, 2 or more, 1 or more)"
            return [f"codes have shape {shape}; expected {wanted}"]
        _, actions, size = shape
        needed = len(self.levels) + size + 1
        findings = [
            f"levels {self.levels}: {below} nodes need {parents} parents with {actions} actions, "
            f"not {width}"
            for width, below in pairwise(self.levels)
            if width != (parents := ceil(below / actions))
        ]
        if self.levels[0] != 1:
            root = self.levels[0]
            findings.append(f"levels {self.levels} start with {root} nodes; a tree has one root")
        if (largest := np.abs(self.codes).max()) > 1:
            findings.append(f"codes reach {largest:g} in size; expected every theta in [-1, 1]")
        if self.horizon < needed:
            findings.append(
                f"horizon is {self.horizon}; {len(self.levels)} levels, {size} code steps and one "
                f"that pays need {needed}"
            )
        if self.delay < size:
            findings.append(
                f"delay is {self.delay}; a delay below the code size {size} would show the code "
                "before it is played"
            )
        return findings


def code_mdp(theta: Sequence[float], horizon: int | None = None, actions: int = 2) -> HardInstance:
    """A CodeMDP behind one entry state, paid once: its optimum is 1/2 + |theta|_1 / (2 d).

    The entry state is needed because a delayed MDP shows its first state. With a horizon success
    pays in every step that is left.

    >>> code_mdp([0.5, -0.25]).optimal_value
    0.6875
    """
    steps = len(theta) + 2 if horizon is None else horizon
    return HardInstance((1,), [[theta] * actions], steps, len(theta), one_shot=horizon is None)


def tree_levels(states: int, actions: int) -> tuple[int, ...]:
    """The widths of the tree, root first.

    It has L leaves, L the power of two with S/8 <= L < S/4, and one parent for up to A children.
    """
    require(whole("states", states, 8), whole("actions", actions, 2))
    levels = [1]
    while 8 * levels[0] < states:
        levels[0] *= 2
    while levels[0] > 1:
        levels.insert(0, ceil(levels[0] / actions))
    return tuple(levels)


@attrs.frozen
class InstancePrior:
    """The prior over hard instances in the proof of Theorem 3.

    Each theta of each (leaf, action) is drawn from scale * nu_1, given that its value stays below
    `threshold`; one special pair is drawn from scale * nu_2 and is typically better by `gap`.
    `degree` many moments of nu_1 and nu_2 agree.
    """

    sizes: DelaySizes
    scale: float  # eps
    degree: int  # k
    proved: bool = False  # whether the theorem holds at these sizes; else it is a formula there

    @classmethod
    def of_theorem(
        cls, sizes: DelaySizes, episodes: float, degree: int | None = None
    ) -> InstancePrior:
        """The prior for K episodes: eps = sqrt(D~ S A log D~ / (96 K)), if the conditions hold.

        degree: k, the even number of `l1.matching_degree` unless given.
        """
        theorem = sizes.lower_bound(episodes)
        require(theorem.unmet)
        k = matching_degree(theorem.code_size) if degree is None else degree
        return cls(sizes, theorem.scale, k, theorem.proved)

    @property
    def threshold(self) -> float:
        """alpha: the mean value under nu_1 and a quarter of the way to that under nu_2.

        Only the part of the value that depends on theta.
        """
        low, high = self._means()
        return self._find_worth(low + (high - low) / 4)

    @property
    def gap(self) -> float:
        """By how much a typical special pair is better: half of the way between the two means."""
        low, high = self._means()
        return self._find_worth((high - low) / 2)

    def draw(
        self, seed: int = 0, special: tuple[int, int] | Literal["random"] | None = "random"
    ) -> HardInstance:
        """One instance, with one special pair that is drawn from nu_2.

        special: its (leaf, action); "random": drawn uniformly, as in the proof; None: there is no
        special pair, and all are drawn from nu_1.
        """
        rng, size, horizon = np.random.default_rng(seed), self.sizes.code_size, self.sizes.horizon
        levels = tree_levels(self.sizes.states, self.sizes.actions)
        if special == "random":
            # A stream of its own: the other pairs do not depend on which one is special.
            place = np.random.default_rng([seed, 1]).integers((levels[-1], self.sizes.actions))
            special = (int(place[0]), int(place[1]))
        weights = (horizon - len(levels) - np.arange(1, size + 1)) / (2 * size)
        nu_1, nu_2 = self._measures()
        codes = np.empty((levels[-1], self.sizes.actions, size))
        for pair in np.ndindex(*codes.shape[:2]):
            codes[pair] = self._theta(nu_2 if pair == special else nu_1, rng)
            while pair != special and np.abs(codes[pair]) @ weights >= self.threshold:
                codes[pair] = self._theta(nu_1, rng)
        return HardInstance(levels, codes, horizon, self.sizes.max_delay)

    def _measures(self) -> tuple[Prior, Prior]:
        return moment_matching_priors(self.degree, 40)

    def _means(self) -> tuple[float, float]:
        nu_1, nu_2 = self._measures()
        return float(nu_1.absolute_mean()), float(nu_2.absolute_mean())

    def _find_worth(self, size: float) -> float:
        """The theta part of the value if every |theta_i| is scale * size.

        That is scale * size times the mean of (H~ - i)/2 over i.
        """
        height = len(tree_levels(self.sizes.states, self.sizes.actions))
        return (
            self.scale * size * (2 * (self.sizes.horizon - height) - 1 - self.sizes.code_size) / 4
        )

    def _theta(self, prior: Prior, rng: np.random.Generator) -> Floats:
        points, chances = np.array(prior.points(), dtype=float).T
        return self.scale * rng.choice(points, self.sizes.code_size, p=chances / chances.sum())
