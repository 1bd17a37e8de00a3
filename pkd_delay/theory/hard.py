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
from math import ceil, log, sqrt
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

import pkd
from pkd_delay import bounds
from pkd_delay.process import DelayedMDP
from pkd_delay.theory.l1 import matching_degree, smallest_dimension
from pkd_delay.theory.remez import Prior, moment_matching_priors

__all__ = ["HardInstance", "InstancePrior", "LowerBound", "code_mdp", "lower_bound", "tree_levels"]

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
        if findings := self._findings():
            raise pkd.ModelError(findings)

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

    @property
    def best_pair(self) -> tuple[int, int]:
        """The (leaf, action) with the largest value, the first of equals."""
        leaf, action = divmod(int(self.values().argmax()), self.codes.shape[1])
        return leaf, action

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
                    child = children[
                        a % len(children)
                    ]  # a node with fewer children than actions reaches some of them twice
                    transitions[first + node, a, first + width + child] = 1.0
            first += width
        entry = np.stack([1 - self.codes, 1 + self.codes], axis=3) / (2 * size)
        transitions[nodes - self.levels[-1] : nodes, :, nodes:success] = entry.reshape(
            self.levels[-1], actions, 2 * size
        )
        for i, b in np.ndindex(size, 2):
            here = nodes + 2 * i + b
            transitions[here, :, here - 2 if i else failure] = 1.0
            if i == 0:
                transitions[here, b] = np.eye(failure + 1)[success]
        transitions[success, :, failure if self.one_shot else success] = 1.0
        transitions[failure, :, failure] = 1.0
        rewards = np.zeros((failure + 1, actions))
        rewards[success] = 1.0
        names = [
            f"tree {level}.{node}"
            for level, width in enumerate(self.levels)
            for node in range(width)
        ]
        names += [f"({i}, {b})" for i in range(1, size + 1) for b in (0, 1)]
        return pkd.TabularMDP(
            transitions, rewards, self.horizon, state_names=[*names, "success", "failure"]
        )

    def delayed(self) -> DelayedMDP:
        """The instance as a delayed MDP with constant delay and support bound B = 2 d."""
        return DelayedMDP.constant(self.mdp(), self.delay, branching=2 * self.code_size)

    def _findings(self) -> list[str]:
        leaves = self.levels[-1] if self.levels else 0
        if (
            self.codes.ndim != 3
            or self.codes.shape[0] != leaves
            or self.codes.shape[1] < 2
            or self.codes.shape[2] < 1
        ):
            return [
                (
                    f"codes have shape {self.codes.shape}; expected (leaves, actions, code size) = "
                    f"({leaves}, 2 or more, 1 or more)"
                )
            ]
        actions, size = self.codes.shape[1:]
        findings = []
        for width, below in pairwise(self.levels):
            if width != ceil(below / actions):
                findings.append(
                    f"levels {self.levels}: {below} nodes need {ceil(below / actions)} parents "
                    f"with {actions} actions, not {width}"
                )
        if self.levels[0] != 1:
            findings.append(
                f"levels {self.levels} start with {self.levels[0]} nodes; a tree has one root"
            )
        if not (np.abs(self.codes) <= 1).all():
            findings.append(
                f"codes reach {np.abs(self.codes).max():g} in size; expected every theta in [-1, 1]"
            )
        if self.horizon < (needed := len(self.levels) + size + 1):
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
    d = len(theta)
    return HardInstance(
        (1,),
        [[theta] * actions],
        d + 2 if horizon is None else horizon,
        d,
        one_shot=horizon is None,
    )


def tree_levels(states: int, actions: int) -> tuple[int, ...]:
    """The widths of the tree, root first.

    It has L leaves, L the power of two with S/8 <= L < S/4, and one parent for up to A children.

    >>> tree_levels(52, 3)
    (1, 3, 8)
    """
    if states < 8 or actions < 2:
        raise pkd.ModelError(
            f"states = {states}, actions = {actions}; "
            "the tree needs 8 states and 2 actions at least"
        )
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

    states: int
    actions: int
    horizon: int
    max_delay: int
    branching: int
    scale: float  # eps
    degree: int  # k
    proved: bool = False  # whether the theorem holds at these sizes; else it is a formula there

    @classmethod
    def of_theorem(
        cls,
        states: int,
        actions: int,
        horizon: int,
        max_delay: int,
        branching: int,
        episodes: float,
        degree: int | None = None,
    ) -> InstancePrior:
        """The prior for K episodes: eps = sqrt(D~ S A log D~ / (96 K)).

        degree: k, the even number of `l1.matching_degree` unless given.
        """
        theorem = lower_bound(states, actions, horizon, max_delay, branching, episodes)
        k = matching_degree(theorem.code_size) if degree is None else degree
        scale, proved = theorem.scale, theorem.proved
        return cls(states, actions, horizon, max_delay, branching, scale, k, proved)

    @property
    def code_size(self) -> int:
        """D~."""
        return bounds.code_size(self.states, self.horizon, self.max_delay, self.branching)

    @property
    def threshold(self) -> float:
        """alpha: the mean value under nu_1 and a quarter of the way to that under nu_2.

        Only the part of the value that depends on theta.
        """
        nu_1, nu_2 = self._measures()
        low, high = float(nu_1.absolute_mean()), float(nu_2.absolute_mean())
        return self._find_worth(low + (high - low) / 4)

    @property
    def gap(self) -> float:
        """By how much a typical special pair is better: half of the way between the two means."""
        nu_1, nu_2 = self._measures()
        return self._find_worth(float(nu_2.absolute_mean() - nu_1.absolute_mean()) / 2)

    def draw(
        self, seed: int = 0, special: tuple[int, int] | Literal["random"] | None = "random"
    ) -> HardInstance:
        """One instance, with one special pair that is drawn from nu_2.

        special: its (leaf, action); "random": drawn uniformly, as in the proof; None: there is no
        special pair, and all are drawn from nu_1.
        """
        rng = np.random.default_rng(seed)
        levels = tree_levels(self.states, self.actions)
        if special == "random":
            # A stream of its own: the other pairs do not depend on which one is special.
            place = np.random.default_rng([seed, 1]).integers((levels[-1], self.actions))
            special = (int(place[0]), int(place[1]))
        weights = (self.horizon - len(levels) - np.arange(1, self.code_size + 1)) / (
            2 * self.code_size
        )
        nu_1, nu_2 = self._measures()
        codes = np.empty((levels[-1], self.actions, self.code_size))
        for pair in np.ndindex(*codes.shape[:2]):
            codes[pair] = self._theta(nu_2 if pair == special else nu_1, rng)
            while pair != special and np.abs(codes[pair]) @ weights >= self.threshold:
                codes[pair] = self._theta(nu_1, rng)
        return HardInstance(levels, codes, self.horizon, self.max_delay)

    def _measures(self) -> tuple[Prior, Prior]:
        return moment_matching_priors(self.degree, 40)

    def _find_worth(self, size: float) -> float:
        """The theta part of the value if every |theta_i| is scale * size.

        That is scale * size times the mean of (H~ - i)/2 over i.
        """
        remaining = self.horizon - len(tree_levels(self.states, self.actions))
        return self.scale * size * (2 * remaining - 1 - self.code_size) / 4

    def _theta(self, prior: Prior, rng: np.random.Generator) -> Floats:
        points, chances = (
            np.array(column, dtype=float) for column in zip(*prior.points(), strict=True)
        )
        return self.scale * rng.choice(points, size=self.code_size, p=chances / chances.sum())


@attrs.frozen
class LowerBound:
    """Theorem 3 at given sizes."""

    value: float  # the expected regret that some instance forces on any algorithm
    code_size: int  # D~
    scale: float  # eps
    samples: float  # n = 48 K / (S A): how often a pair may be tried without telling nu_1 from nu_2
    gap: float  # eps H / (192 log D~): what a wrong pair loses per episode
    # D~ reaches the theorem's absolute constant, about 2.8 million; below it `value` is a formula.
    proved: bool


def lower_bound(
    states: int,
    actions: int,
    horizon: int,
    max_delay: int,
    branching: int,
    episodes: float,
    *,
    printed: bool = False,
) -> LowerBound:
    """The lower bound with its conditions checked.

    `printed` has the paper's constant 3072 in place of 4608.
    """
    size = bounds.code_size(states, horizon, max_delay, branching)
    findings = [
        f"{what} is {found:g}; the theorem needs {needed}"
        for what, found, needed, met in [
            ("states", states, "S >= 8", states >= 8),
            ("actions", actions, "A >= 2", actions >= 2),
            (
                "D~ = min(D, H/4, B/2, S/4 - 1)",
                size,
                "at least 2 for the formula to make sense",
                size >= 2,
            ),
        ]
        if not met
    ]
    if not findings:
        height, pairs, least = (
            8 + 4 * log(states, actions),
            states * actions,
            size * states * actions * log(size) / 24,
        )
        if horizon < height:
            findings.append(
                f"horizon is {horizon}; the theorem needs H >= 8 + 4 log_A S = {height:.4g}"
            )
        if episodes < least:
            findings.append(
                f"episodes is {episodes:g}; the theorem needs K >= D~ S A log(D~)/24 = {least:.6g}"
            )
        if pairs <= 96:
            findings.append(f"S A is {pairs}; n = 48 K/(S A) stays below K/2 only for S A > 96")
    if findings:
        raise pkd.ModelError(findings)
    scale = sqrt(size * pairs * log(size) / (96 * episodes))
    return LowerBound(
        value=bounds.lower_bound(
            states, actions, horizon, max_delay, branching, episodes, printed=printed
        ),
        code_size=size,
        scale=scale,
        samples=48 * episodes / pairs,
        gap=scale * horizon / (192 * log(size)),
        proved=size >= smallest_dimension(weighted=True),
    )
