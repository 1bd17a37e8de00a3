"""A compiled model: what both engines share.

It holds features, outcomes and logarithms, but no law.

Two engines implement it: `pkd.engine.nodes` for small and unstructured models, `pkd.engine.stripes`
for large ones with a queue. `pkd.engine.compile` chooses.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pkd.check.laws import checked_law
from pkd.engine import bonus as kernels
from pkd.engine.belief import NO_DRAWS, Belief, Tally, World
from pkd.engine.segments import accumulate, lengths_to_ptr
from pkd.explore import overrides
from pkd.graph import Graph
from pkd.model import Episode, Law, ModelError, UnknownReward
from pkd.optimism import CERTIFIED, DRAWS, KL_BALL, L1_BALL, NO_BONUS, OVER_SETS, PYTHON, Bonus
from pkd.results.values import key_of
from pkd.sizes import RETURNS, find_most_visits, may_overflow, returns_within

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

__all__ = ["Act", "Compiled", "Player", "Policy", "Truth"]

# Which action each decision state takes in each layer, in the engine's own order.
Policy = np.ndarray
Act = Callable[[int, Any, Any], Any]  # (h, x, y) -> action
Result = TypeVar("Result")
# {z: {x': n}}, of an unknown reward {feature: {value: n}}
Counts = Mapping[Any, Mapping[Any, float]]


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


class Compiled(ABC):
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

    def __init__(self, graph: Graph) -> None:
        self.graph, self.model, self.horizon = graph, graph.model, graph.horizon
        self.features, self.outcomes, self.rewards = graph.features, graph.outcomes, graph.rewards
        self.n_y = graph.n_y
        known = [[p for _, p in law.law if p > 0] for law in graph.known]
        self.row_ptr = lengths_to_ptr(
            np.array([*map(len, self.outcomes), *map(len, known)], np.int64)
        )
        self.known_p = np.array([p for row in known for p in row], float)

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

    @abstractmethod
    def return_ranges(self) -> Iterator[tuple[str, float, float]]:
        """(where, lowest, highest return to go) of the states, the widest ones at least."""

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
        self, belief: Belief, tally: Tally, bonus: Bonus, reward_bonus: np.ndarray, rng: np.ndarray
    ) -> None:
        """Fills a belief from the counts."""
        given, belief, limits = belief, belief._replace(rule=None), reward_bonus[1:]
        kernels.estimate(
            self.row_ptr, belief, tally, float(bonus.prior) or None, rng, *reward_bonus
        )
        if belief.form == CERTIFIED:
            kernels.estimate_sets(self.row_ptr, belief, tally)
            if len(self.rewards):
                kernels.estimate_reward_sets(belief, tally, *limits)
        elif belief.form in (KL_BALL, L1_BALL):
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

    @property
    def n_features(self) -> int:
        """|Z| in the logarithms."""
        return self.model.n_features or max(len(self.features), 1)

    @cached_property
    def most_visits(self) -> int:
        """N in the logarithms: the most samples of one feature that an episode can teach."""
        return self.model.most_samples() or find_most_visits(self.graph)

    @cached_property
    def branching(self) -> np.ndarray:
        """B(z) of each feature."""
        if not overrides(self.model, "branching"):
            return np.array([len(states) for states in self.outcomes], float)
        return np.array([self.model.branching(z) for z in self.features], float)

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

    # -- counts ------------------------------------------------------------------------------------

    def tally(self, counts: Counts | None = None) -> Tally:
        """Counts {z: {x': n}} as a tally; a count that the model calls impossible is a finding."""
        z, w = len(self.features), len(self.rewards)
        tally = Tally(
            np.zeros(int(self.row_ptr[z])), np.zeros(z), np.ones(z), np.zeros((3, w)), np.ones(w),
            np.zeros(z + w, np.int64),
        )  # fmt: skip
        findings: list[str] = []
        with np.errstate(over="ignore"):  # a sum that overflows is a finding
            for name, row in (counts or {}).items():
                if name in self.reward_index:
                    findings.extend(self._add_rewards(tally, self.reward_index[name], row))
                elif name not in self.feature_index:
                    findings.append(
                        f"counts have the feature {name!r}, which cannot occur in the model"
                    )
                else:
                    findings.extend(self._add_counts(tally, name, row))
        if not (np.isfinite(tally.n).all() and np.isfinite(tally.rewards).all()):
            findings.append("counts add up to more than a number can hold")
        if findings:
            raise ModelError(findings)
        return tally

    def _add_rewards(self, tally: Tally, w: int, row: Mapping[Any, float]) -> Iterator[str]:
        z, low, high = self.rewards[w].feature, self.rewards[w].low, self.rewards[w].high
        for value, number in row.items():
            if not low <= value <= high:
                yield (
                    f"counts of {z!r} have the reward {value!r}; expected a number in [{low!r}, "
                    f"{high!r}]"
                )
            elif not (number >= 0 and math.isfinite(number)):
                yield f"counts of {z!r}, {value!r} are {number!r}; expected a number >= 0"
            elif number > 0:
                kernels.count_reward(tally, w, float(value), float(number))

    def _add_counts(self, tally: Tally, z: Any, row: Mapping[Any, float]) -> Iterator[str]:
        z_row = self.feature_index[z]
        for x, number in row.items():
            at = self.place(z_row, x)
            if at is None:
                yield f"counts of {z!r} have the outcome {x!r}, which is not in outcomes({z!r})"
            elif not (number >= 0 and math.isfinite(number)):
                yield f"counts of {z!r}, {x!r} are {number!r}; expected a number >= 0"
            else:
                tally.counts[at] += number
                tally.n[z_row] += number

    def count(self, tally: Tally, samples: Iterable[tuple[Any, Any]]) -> bool:
        """Adds (z, x') samples to a tally; returns whether a plan is due."""
        due = False
        for z, x in samples:
            row = self.feature_index.get(z, -1)
            place = self.place(row, x) if row >= 0 else None
            if place is None:
                raise ModelError(
                    f"samples gave ({z!r}, {x!r}): the model has no such feature, or the outcome "
                    f"is not in outcomes({z!r})"
                )
            tally.counts[place] += 1.0
            tally.n[row] += 1.0
            due |= bool(tally.n[row] >= tally.marks[row])
        return due

    def named_counts(self, tally: Tally) -> dict[Any, dict[Any, float]]:
        """Counts by name: {z: {x': n}}, zeros left out.

        Of an unknown reward only the number, the mean and the variance of its payments are kept.
        Its counts are two values with the same three: every rule makes the same of them.
        """
        named: dict[Any, dict[Any, float]] = {}
        for row, z in enumerate(self.features):
            at = int(self.row_ptr[row])
            seen = np.flatnonzero(tally.counts[at : int(self.row_ptr[row + 1])]).tolist()
            named[z] = {self.outcomes[row][i]: float(tally.counts[at + i]) for i in seen}
        for reward, moments in zip(self.rewards, tally.rewards.T.tolist(), strict=True):
            number, mean, squares = moments
            named[reward.feature] = two_values(number, mean, squares, reward.low, reward.high)
        return named

    @property
    def names(self) -> dict[str, Any]:
        """Features and outcomes by their repr, for files that hold only text."""
        values = (*self.features, *(x for states in self.graph.sets for x in states))
        return {repr(value): value for value in values}

    @cached_property
    def feature_index(self) -> dict[Any, int]:
        """The row of each unknown feature."""
        return {z: row for row, z in enumerate(self.features)}

    @cached_property
    def reward_index(self) -> dict[Any, int]:
        """The number of each unknown reward."""
        return {reward.feature: w for w, reward in enumerate(self.rewards)}

    def place(self, row: int, x: Any) -> int | None:
        """Where the outcome x of a row is counted; None: it is no outcome of the row."""
        i = self._outcome_index[self.graph.feature_set[row]].get(x)
        return None if i is None else int(self.row_ptr[row]) + i

    @cached_property
    def _outcome_index(self) -> list[dict[Any, int]]:
        """For each set of outcomes; many features may share one."""
        return [{x: i for i, x in enumerate(states)} for states in self.graph.sets]

    # -- what must hold whatever the engine --------------------------------------------------------

    def check_declared(self) -> None:
        """Refuses a B(z), |Z|, share or return range that would break optimism in silence."""
        findings = [*self._size_findings(), *self._range_findings()]
        if findings:
            from pkd.check import explain

            explain(self.model)  # the same finding in the words of the check
            raise ModelError(findings)

    def _size_findings(self) -> Iterator[str]:
        size: Any = self.model.n_features
        if size is not None and (
            isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1
        ):
            yield f"n_features = {size!r}; expected None or a positive whole number"
        if overrides(self.model, "branching"):
            for z, states in zip(self.features, self.outcomes, strict=True):
                b: Any = self.model.branching(z)
                if (
                    isinstance(b, bool)
                    or not isinstance(b, int | np.integer)
                    or not 1 <= b <= len(states)
                ):
                    yield (
                        f"branching({z!r}) is {b!r}; expected a whole number from 1 to "
                        f"{len(states)}"
                    )
        for reward in self.rewards:
            if reward.feature in self.feature_index:
                yield f"{reward.feature!r} names both a feature of x' and an UnknownReward"
        yield from self._share_findings()

    def _range_findings(self) -> Iterator[str]:
        declared: Any = self.model.return_range
        if declared is None:
            if may_overflow(self.graph) and not returns_within(self.graph, *RETURNS):
                yield f"returns can leave [{RETURNS[0]:g}, {RETURNS[1]:g}]; scale the rewards down"
            return
        if not (isinstance(declared, tuple | list) and len(declared) == 2):
            yield f"return_range = {declared!r}; expected None, or two numbers (low, high)"
            return
        least, most = map(float, declared)
        if not -math.inf < least <= most < math.inf:
            yield f"return_range = {declared!r}; expected finite numbers with low <= high"
            return
        slack = 1e-9 * max(1.0, abs(least), abs(most))
        for where, low, high in self.return_ranges():
            if not (low >= least - slack and high <= most + slack):
                yield (
                    f"return_range is ({least:g}, {most:g}), but the return {where} can be "
                    f"{low:g} to {high:g}"
                )
                return

    def _share_findings(self) -> Iterator[str]:
        """Shares of one feature sum to at most 1 over the y' that come with it."""
        if not overrides(self.model, "share"):
            return
        for z, total in self.share_totals().items():
            if total > 1 + 1e-9:
                yield f"share({z!r}, y) sums to {total:g} over y; expected at most 1"

    @abstractmethod
    def share_totals(self) -> Mapping[Hashable, float]:
        """The sum of the shares of each feature over the y' that come with it."""

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that a plan depends on, laws apart."""
        digest = hashlib.sha256(
            f"{self.horizon} {self.n_y} {self.n_features} {self.model.return_range}".encode()
        )
        for cells in self.graph.cells:
            for values in (
                cells.node, cells.action_ptr, cells.reward, cells.mean, cells.branch_ptr, cells.p,
                cells.row, cells.landing, cells.share,
            ):  # fmt: skip
                digest.update(np.array(values).tobytes())
        digest.update(self.branching.tobytes())
        digest.update(self._identify_layout())
        for nodes in self.graph.landings:
            digest.update(np.array(nodes, np.int64).tobytes())
        names = chain(self.features, self.graph.sets, (law.law for law in self.graph.known))
        rewards = ((r.feature, r.low, r.high) for r in self.rewards)
        for name in chain(names, rewards, [tuple(self.graph.start)]):
            try:
                digest.update(key_of(name).encode())
            except TypeError:  # a value that no file can hold: only its type is compared
                digest.update(type(name).__name__.encode())
        return digest.hexdigest()

    def _identify_layout(self) -> bytes:
        """What the fingerprint needs of an engine's own order of states."""
        return b""


def two_values(
    number: float, mean: float, squares: float, low: float, high: float
) -> dict[float, float]:
    """{value: count} with this number, mean and sum of squared deviations, within [low, high].

    >>> two_values(4.0, 1.0, 4.0, 0.0, 5.0)
    {0.0: 2.0, 2.0: 2.0}
    >>> two_values(4.0, 1.0, 12.0, 0.0, 5.0)  # not symmetric: no value is below 0
    {0.0: 3.0, 4.0: 1.0}
    """
    if number <= 0:
        return {}
    variance = squares / number
    below, above = mean - low, high - mean
    if variance <= 0 or below <= 0 or above <= 0:
        return {min(max(mean, low), high): number}
    spread = math.sqrt(variance)
    down = min(spread, below)
    up = min(variance / down, above)
    down = min(variance / up, below)
    share = up / (down + up)
    return {max(mean - down, low): number * share, min(mean + up, high): number * (1 - share)}


def reward_limits(rewards: Iterable[UnknownReward]) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest value of each unknown reward."""
    rewards = list(rewards)
    return np.array([r.low for r in rewards], float), np.array([r.high for r in rewards], float)
