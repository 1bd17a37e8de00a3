"""A compiled model: what both engines share.

It holds features, outcomes and logarithms, but no law.

Two engines implement it: `pkd.engine.nodes` for small and unstructured models, `pkd.engine.stripes`
for large ones with a queue. `pkd.engine.compile` chooses.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pkd.check.laws import checked_law
from pkd.engine import bonus as kernels
from pkd.engine.belief import NO_DRAWS, Belief, Tally, World
from pkd.engine.segments import accumulate, lengths_to_ptr
from pkd.engine.structure import Counts, Structure, reward_limits
from pkd.model import Episode, Law, ModelError
from pkd.optimism import CERTIFIED, DRAWS, KL_BALL, L1_BALL, NO_BONUS, OVER_SETS, PYTHON, Bonus

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

__all__ = ["Act", "Compiled", "Counts", "Player", "Policy", "Truth", "reward_limits"]

# Which action each decision state takes in each layer, in the engine's own order.
Policy = np.ndarray
Act = Callable[[int, Any, Any], Any]  # (h, x, y) -> action
Result = TypeVar("Result")


class Player(Protocol):
    """Plays episodes and counts what they teach, in compiled code; an adapter may supply one.

    It fills `returns` until a plan is due and answers (how many episodes, whether one is due).
    """

    def __call__(
        self, policy: Policy, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]: ...


class FusedLearning(Protocol):
    """What a fused loop reads and writes of `pkd.learning.Learning`."""

    belief: Belief
    bonus: Bonus
    reward_bonus: np.ndarray
    tally: Tally
    rng: np.ndarray
    policy: Policy
    upper: float

    @property
    def most_samples(self) -> float: ...


class FusedTrial(Protocol):
    """What a fused loop reads and writes of a run in progress."""

    truth: Truth
    value: float
    uppers: np.ndarray
    values: np.ndarray
    returns: np.ndarray
    planned: np.ndarray

    @property
    def learning(self) -> FusedLearning: ...


class Truth(NamedTuple):
    """A law, read once: what plans are made for, and what episodes are drawn from."""

    belief: Belief
    world: World
    law: Law


class Compiled(Structure):
    """One model, ready to be planned for.

    Calls may run side by side: nothing is shared but structure.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> pkd.compile(coin.model())
    <_TabularModel compiled: 2 states, 4 unknown features, horizon 3>
    """

    weights: dict[tuple[int, float], int]  # the distinct (row, share) of unknown rows; -1: uniform
    # Whether all sweeps run in the code that also knows values over sets of laws. The bits are the
    # same; a process that learns by them then compiles one sweep instead of two.
    over_sets: bool = False

    # -- what an engine does -----------------------------------------------------------------------

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states (x, y) are planned for."""

    @abstractmethod
    def policy(self) -> Policy:
        """An empty policy: the first action everywhere."""

    @abstractmethod
    def check_policy(self, policy: np.ndarray) -> None:
        """Raises a ModelError unless an array can be a policy of this model."""

    @abstractmethod
    def sweep(self, belief: Belief, policy: Policy, *, follow: bool) -> tuple[float, bool]:
        """One backward sweep: (value of the start, whether the policy changed).

        follow: the policy is evaluated, not chosen.
        """

    @abstractmethod
    def find_visits(self, belief: Belief, which: int, *, most: bool) -> float:
        """The largest or least expected number of visits of an episode, over all policies.

        which: an unknown feature, or len(features) + an unknown reward. belief: without a bonus.
        """

    @abstractmethod
    def action_at(self, policy: Policy, h: int, x: Any, y: Any) -> Any:
        """What a policy does."""

    @abstractmethod
    def values_at(self, belief: Belief, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action under a belief; {None: V_h} where no action is taken."""

    @abstractmethod
    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""

    @abstractmethod
    def tabulate(self, act: Act) -> Policy:
        """A callable (h, x, y) -> action as a policy of this engine."""

    @property
    @abstractmethod
    def plain(self) -> Compiled:
        """The engine with every state apart, for policies that treat merged states differently."""

    @property
    @abstractmethod
    def explicit(self) -> NodeEngine:
        """The model with every state apart, for what only the node engine can do."""

    @abstractmethod
    def episodes(
        self, world: World, policy: Policy, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        """Plays episodes until `returns` is full or a plan is due: (how many, whether one is)."""

    @abstractmethod
    def record(
        self, world: World, policy: Policy, tally: Tally, rng: np.ndarray
    ) -> tuple[Episode, bool]:
        """Plays one episode and writes it down: (episode, whether a plan is due)."""

    @abstractmethod
    def new_path(self) -> np.ndarray:
        """Memory for the moves of the longest possible episode.

        Its columns begin with row, outcome, note.
        """

    @abstractmethod
    def call_walk(
        self,
        on_nodes: Callable[..., Result],
        on_stripes: Callable[..., Result],
        arguments: tuple[object, ...],
    ) -> Result:
        """Calls an adapter's kernel for this engine: its arrays first, then the arguments."""

    def fused_loop(self, trial: FusedTrial) -> Callable[[slice], int] | None:
        """The loop "plan, play, count" over some episodes as one compiled call, or None.

        It answers how many it has played: it stops where the logarithms in force hold no longer.
        """
        return None

    # -- beliefs -----------------------------------------------------------------------------------

    def truth(self, law: Law) -> Truth:
        """A given law; one that does not fit the model is a ModelError."""
        branching = {z: int(b) for z, b in zip(self.features, self.branching, strict=True)}
        ranges = {reward.feature: (reward.low, reward.high) for reward in self.rewards}
        outcomes = dict(zip(self.features, self.outcomes, strict=True))
        found = checked_law(outcomes, law, branching=branching, rewards=ranges)
        unknown_p = [found[z].get(x, 0.0) for z, states in outcomes.items() for x in states]
        p = np.concatenate([np.array(unknown_p, float), self.known_p])
        paid = [sorted(found[reward.feature].items()) for reward in self.rewards]
        mean = np.array([math.fsum(value * q for value, q in row) for row in paid], float)
        world = World(
            rows=accumulate(p, self.row_ptr),
            reward_ptr=lengths_to_ptr(np.array([len(row) for row in paid], np.int64)),
            reward_value=np.array([float(value) for row in paid for value, _ in row], float),
            reward_rows=np.concatenate(
                [np.zeros(0), *(np.cumsum([q for _, q in row]) for row in paid)]
            ),
        )
        return Truth(self.believe(p, mean, Bonus(NO_BONUS), 1, 0.5), world, law)

    def optimistic(self, bonus: Bonus, episodes: int, delta: float) -> Belief:
        """A belief before any data; `estimate` fills in the law and the counts."""
        p = np.concatenate([np.zeros(int(self.row_ptr[len(self.features)])), self.known_p])
        return self.believe(p, np.zeros(len(self.rewards)), bonus, episodes, delta)

    def believe(
        self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, episodes: int, delta: float
    ) -> Belief:
        """A belief with the law p and the means of unknown rewards."""
        n, ell = np.zeros(len(self.features)), np.zeros(max(len(self.weights), 1))
        sets = np.full(len(n), math.inf), self.budgets(delta / bonus.parts), self.branching
        self.over_sets |= bonus.form in OVER_SETS
        if bonus.form == NO_BONUS:
            return Belief(p, n, mean, ell, *sets, NO_BONUS, 0.0, 0.0, 0.0, math.inf, 0.0, 1.0, 1)
        if bonus.form in (KL_BALL, L1_BALL):
            sets = sets[0], self._ball_budgets(bonus, episodes, delta), sets[2]
        if bonus.form in (*OVER_SETS, L1_BALL) and bonus.free == math.inf:
            # No part of it is MVP-Est.
            c1 = float(bonus.c1) if bonus.form == L1_BALL else 0.0
            return Belief(
                p, n, mean, ell, *sets, bonus.form, c1, 0.0, math.inf, math.inf, 0.0, 1.0,
                bonus.rounds,
            )  # fmt: skip
        self.fill_logarithms(ell, bonus, episodes, delta)
        ceiling, width = math.inf, math.nan
        if self.model.return_range is not None:
            low, high = map(float, self.model.return_range)
            ceiling, width = high, high - low
        c1, c2, free = float(bonus.c1), float(bonus.c2), float(bonus.free)
        draws = NO_DRAWS
        if bonus.form == DRAWS:
            draws = np.zeros((bonus.draws, int(self.row_ptr[len(n)]) + len(n)))
        rule = None if bonus.rule is None else (bonus.rule, 1)
        return Belief(
            p, n, mean, ell, *sets, bonus.form, c1, c2, free, ceiling, width, 1.0, bonus.rounds,
            draws, rule,
        )  # fmt: skip

    def fill_logarithms(self, ell: np.ndarray, bonus: Bonus, episodes: int, delta: float) -> None:
        """Fills the logarithm of each distinct (row, share)."""
        if self.weights and bonus.free != math.inf:  # some part of it is MVP-Est
            rows, shares = np.array(list(self.weights)).T
            shares = np.where(shares < 0, 1 / self.n_y, shares)
            ell[:] = self.ell(bonus, rows.astype(np.int64), shares, episodes, delta / bonus.parts)

    def pessimistic(self, belief: Belief) -> Belief:
        """The same sets of laws for least values; `estimate` fills in the means of rewards."""
        if belief.form != CERTIFIED:
            raise ModelError("least values need a certified belief; give optimism=Certified()")
        return belief._replace(
            mean=belief.mean.copy(), free=math.inf, ceiling=math.inf, width=0.0, sign=-1.0
        )

    def budgets(self, delta: float) -> np.ndarray:
        """log(1 / (weight delta)) of a set by the rank of its feature.

        With Z sets in all, the weight of rank r is 1/(2 Z) + 1/(2 r (1 + 1/2 + ... + 1/Z)). These
        sum to 1 over r = 1..Z, so features that are never seen cost the others little. The rank of
        a feature is settled before its first sample is known: of those that come together all get
        the last rank. Rank 0 stands for data that are not ranked; there all weigh 1/Z. A feature
        with one outcome has nothing to refute and needs no weight.
        """
        count = max(sum(len(states) > 1 for states in self.outcomes) + len(self.rewards), 1)
        ranks = np.arange(1, count + 1)
        weights = 0.5 / count + 0.5 / (ranks * (1.0 / ranks).sum())
        return -np.log(delta * np.concatenate([[1 / count], weights]))

    def _ball_budgets(self, bonus: Bonus, episodes: int, delta: float) -> np.ndarray:
        """What the radii of KL_BALL and L1_BALL are made of, for features and for rewards.

        With S outcomes of a feature and S A = |Z|, as in a table; for rewards S A is their number.
        KL_BALL: C_P, and C_R^2. L1_BALL: log(2 A / delta), A >= 1, and log(2 S A / delta).
        """
        size = np.array([len(states) for states in self.outcomes], float)
        n_rewards = max(len(self.rewards), 1)
        if bonus.form == L1_BALL:
            actions = np.maximum(self.n_features / np.maximum(size, 1.0), 1.0)
            rewards = math.log(2 * n_rewards / delta)
            return np.append(np.log(2 * actions / delta), np.full(len(self.rewards), rewards))
        log_t = max(math.log(episodes * self.horizon), 1.0)
        b = np.log(2 * math.e * size * self.n_features * log_t / delta)
        inner = b + 1 / log_t
        features = bonus.c1 * size * (b + np.log(inner) * (1 + 1 / inner))
        rewards = bonus.c1 * math.log(4 * n_rewards * log_t / delta) / 1.99
        return np.append(features, np.full(len(self.rewards), rewards))

    def estimate(
        self, belief: Belief, tally: Tally, bonus: Bonus, reward_bonus: np.ndarray,
        rng: np.ndarray, *, rank: bool = False,
    ) -> None:  # fmt: skip
        """Fills a belief from the counts. rank: features with new data get their rank."""
        given, belief, limits = belief, belief._replace(rule=None), reward_bonus[1:]
        prior, sets = float(bonus.prior) or None, belief.form == CERTIFIED or None
        paid = len(self.rewards) > 0 or None
        kernels.estimate(self.row_ptr, belief, tally, prior, sets, paid, rank, rng, *reward_bonus)
        if belief.form in (KL_BALL, L1_BALL):
            kernels.estimate_balls(self.row_ptr, belief, tally, *limits)
        elif belief.form == DRAWS:
            weight = float(bonus.weight)
            kernels.estimate_draws(self.row_ptr, belief, tally, weight, rng, *limits)
        elif belief.form == PYTHON:
            self._ask_rule_for_rewards(given, tally)

    def _ask_rule_for_rewards(self, belief: Belief, tally: Tally) -> None:
        """The means of unknown rewards by a rule in Python, as if they were coins."""
        for w, reward in enumerate(self.rewards):
            low, high, n = reward.low, reward.high, float(tally.rewards[0, w])
            belief.mean[w] = high
            if n > 0 and high > low:
                share = min(max((float(tally.rewards[1, w]) - low) / (high - low), 0.0), 1.0)
                p, v = np.array([1 - share, share]), np.array([low, high], float)
                belief.mean[w] = min(high, belief.ask_rule(p, v, n, high - low))

    def suited_to(self, bonus: Bonus, *, quiet: bool = False) -> Compiled:
        """The compiled model that can plan by a rule: a rule in Python needs every state apart."""
        if not bonus.apart or self.explicit is self or quiet:
            return self.explicit if bonus.apart else self
        warnings.warn(
            f"{type(bonus.rule).__name__} is written in Python, so this model is planned with "
            "every state apart and not as stripes; that is slow and takes more memory. A compiled "
            "form of the rule works for large models: see CONTRIBUTING.md, 'Add an optimism rule'",
            stacklevel=3,
        )
        return self.explicit

    # -- the logarithms of the bonus ---------------------------------------------------------------

    def ell(
        self, bonus: Bonus, rows: np.ndarray, shares: np.ndarray, episodes: int, delta: float
    ) -> np.ndarray:
        """ell(z, y') = min(ell1, B(z) ell2(z)) of rows z and shares of y'.

        ell1 = log(32 N^2 |Z| K / (delta share)) and ell2 = log(32 N B(z) |Z| K / delta). The N of
        the paper is H: a step samples a feature once. A rule may have a constant of its own.
        """
        if bonus.log_factor is not None:
            return np.full(rows.shape, float(bonus.log_factor))
        b, size = self.branching[rows], float(self.n_features)
        most = self.most_visits
        ell1 = np.log(32 * most**2 * size * episodes / (delta * shares))
        ell: np.ndarray = np.minimum(ell1, b * np.log(32 * most * b * size * episodes / delta))
        return ell

    def reward_bonus(self, bonus: Bonus, episodes: int, delta: float) -> np.ndarray:
        """For each unknown reward: ell, low and high, (3, rewards)."""
        ell = bonus.log_factor
        if ell is None:
            delta /= bonus.parts
            ell = math.log(32 * self.most_visits**2 * max(len(self.rewards), 1) * episodes / delta)
        return np.array([[ell, r.low, r.high] for r in self.rewards], float).reshape(-1, 3).T.copy()
