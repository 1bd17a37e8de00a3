"""A compiled model: what both engines share.

It holds features, outcomes and logarithms, but no law.

Two engines implement it: `pkd.engine.nodes` for small and unstructured models, `pkd.engine.stripes`
for large ones with a queue. `pkd.engine.compile` chooses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import attrs
import numpy as np

from pkd.check.laws import read_law
from pkd.engine import bonus as kernels
from pkd.engine.arrays import ArrayLaw, find_array
from pkd.engine.belief import Asking, Belief, Tally, World
from pkd.engine.families import Unrefuted
from pkd.engine.structure import Counts, Structure, reward_limits
from pkd.expect import key, require, whole
from pkd.explore.reach import reach
from pkd.explore.segments import accumulate, lengths_to_ptr
from pkd.files.policies import NoRowError
from pkd.model import Law, ModelError
from pkd.optimism import CERTIFIED, EXACT, NUMPY, Bonus, Facts

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

__all__ = ["Act", "Compiled", "Counts", "Player", "Policy", "Truth", "reward_limits"]

# Which action each decision state takes in each layer, in the engine's own order.
Policy = np.ndarray
Act = Callable[[int, Any, Any], Any]  # (h, x, y) -> action
Result = TypeVar("Result")
SHOWN_FINDINGS = 10
STRANGE = 1e-8  # the divergence of a law from its family that is no rounding


class Player(Protocol):
    """Plays episodes and counts what they teach, in compiled code; an adapter may supply one.

    It fills `returns` until a plan is due and answers (how many episodes, whether one is due).
    """

    def __call__(
        self, policy: Policy, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]: ...


class FusedLearning(Protocol):
    """What a fused loop reads and writes of `pkd.learning.learn.Learning`."""

    tally: Tally
    rng: np.ndarray
    policy: Policy
    upper: float

    @property
    def belief(self) -> Belief: ...
    @property
    def bonus(self) -> Bonus: ...
    @property
    def reward_bonus(self) -> np.ndarray: ...
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


@attrs.frozen(eq=False, slots=False)
class Truth:
    """A law, read once: what plans are made for, and what episodes are drawn from."""

    compiled: Compiled
    law: Law
    paid: list[list[tuple[float, float]]]  # of each unknown reward (value, probability), ascending
    masses: np.ndarray  # (outcomes of all law rows,) in the order of `read` or of a table
    read: Callable[[np.ndarray], np.ndarray] = lambda masses: masses  # masses -> p of a belief

    @cached_property
    def belief(self) -> Belief:
        """The law as an exact belief."""
        mean = [math.fsum(value * q for value, q in row) for row in self.paid]
        p = self.read(self.masses)
        return self.compiled.believe(p, np.array(mean, float), Bonus(EXACT), 1, 0.5)

    @cached_property
    def world(self) -> World:
        """What episodes are drawn from."""
        paid = self.paid
        return World(
            rows=accumulate(self.belief.p, self.compiled.row_ptr),
            reward_ptr=lengths_to_ptr(np.array([len(row) for row in paid], np.int64)),
            reward_value=np.array([float(value) for row in paid for value, _ in row], float),
            reward_rows=np.concatenate(
                [np.zeros(0), *(np.cumsum([q for _, q in row]) for row in paid)]
            ),
        )


class Compiled(Structure, ABC):
    """One model, ready to be planned for.

    Calls may run side by side: nothing is shared but structure.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> pkd.compile(coin.model())
    <_TabularModel compiled: 2 states, 4 unknown features, horizon 3>
    """

    weights: dict[tuple[int, float], int]  # the distinct (row, share) of unknown rows; -1: uniform
    engine: str  # "table", "nodes" or "stripes"
    why: str = "it was made directly"  # why this engine was chosen
    # The form of the last rule: exact sweeps run in its code, which gives the same bits, so that a
    # process that learns compiles one sweep instead of two.
    usual: int = EXACT
    exogenous: np.ndarray | None = None  # of `pkd.engine.exogenous.settle`, once it has looked

    # -- what an engine does -----------------------------------------------------------------------

    @property
    def n_weights(self) -> int:
        return len(self.weights)

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states (x, y) are planned for."""

    @abstractmethod
    def policy(self) -> Policy:
        """An empty policy: the first action everywhere."""

    def check_policy(self, policy: np.ndarray) -> None:
        """Raises a ModelError unless an array can be a policy of this model."""
        expected = self.policy()
        if policy.shape != expected.shape or policy.dtype != expected.dtype:
            raise ModelError(
                f"the saved policy has the shape {policy.shape} of {policy.dtype}; this model "
                f"needs {expected.shape} of {expected.dtype}"
            )
        if not self.has_choices(policy):
            raise ModelError("the saved policy takes actions that this model does not have")

    @abstractmethod
    def has_choices(self, policy: np.ndarray) -> bool:
        """Whether every decision state has the action that an array of the right shape names."""

    @abstractmethod
    def sweep(self, belief: Belief, policy: Policy, *, follow: bool) -> tuple[float, bool]:
        """One backward sweep: (value of the start, whether the policy changed).

        follow: the policy is evaluated, not chosen.
        """

    def solve(self, truth: Truth, policy: Policy, *, follow: bool = False) -> tuple[float, bool]:
        """The same sweep under a law."""
        return self.sweep(truth.belief, policy, follow=follow)

    def find_values_under(self, truth: Truth, h: int, x: Any, y: Any) -> dict[Any, float]:
        """`values_at` under a law."""
        return self.values_at(truth.belief, h, x, y)

    @abstractmethod
    def find_visits(self, belief: Belief, which: int, *, most: bool) -> float:
        """The largest or least expected number of visits of an episode, over all policies.

        which: an unknown feature, or len(features) + an unknown reward. belief: without a bonus.
        """

    @abstractmethod
    def find_choice(self, h: int, x: Any, y: Any) -> tuple[Any, Sequence[Any] | None]:
        """Where a policy has the choice of a state, and its actions; None: it takes none."""

    @abstractmethod
    def decisions(self, h: int) -> Iterator[tuple[Any, Any, Any, list[Any]]]:
        """(place in a policy, x, y, actions) of the decision states that can occur at step h."""

    def check_step(self, h: int) -> None:
        """A ModelError if there is no such step."""
        if type(h) is not int or not 1 <= h <= self.horizon:
            require(whole("the step h", h, 1, self.horizon))

    def action_at(self, policy: Policy, h: int, x: Any, y: Any) -> Any:
        """What a policy does."""
        try:
            place, actions = self.find_choice(h, x, y)
        except TypeError:
            require(key("x", x), key("y", y))
            raise
        if actions is None:
            raise ModelError(f"(x={x!r}, y={y!r}) takes no action: it is a CHANCE or END state")
        return actions[policy[place]]

    @abstractmethod
    def values_at(self, belief: Belief, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action under a belief; {None: V_h} where no action is taken."""

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        return ((x, y) for _, x, y, _ in self.decisions(h))

    def tabulate(self, act: Act) -> Policy:
        """A callable (h, x, y) -> action as a policy of this engine."""
        policy, findings, complete = self.policy(), list[str](), True
        for h in range(1, self.horizon + 1):
            for place, x, y, actions in self.decisions(h):
                try:
                    action = act(h, x, y)
                except NoRowError:
                    complete = False
                    continue
                if action in actions:
                    policy[place] = actions.index(action)
                else:
                    findings.append(
                        f"the policy takes {action!r} at step {h} in (x={x!r}, y={y!r}); "
                        f"expected one of {actions!r}"
                    )
        if findings:
            raise ModelError(findings[:SHOWN_FINDINGS])
        if not complete:  # a policy from a file has rows where it comes; elsewhere any action does
            for h, states in reach(self.model, act):
                for x, y in states:
                    act(h, x, y)
        return policy

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
        law, paid = self.name_law(law), list[list[tuple[float, float]]]()
        ranges = {reward.feature: (reward.low, reward.high) for reward in self.rewards}
        p, count = self.read_masses(law), 0
        branching, outcomes = dict[Any, int](), dict[Any, Sequence[Any]]()
        if p is None:
            branching = {z: int(b) for z, b in zip(self.features, self.branching, strict=True)}
            outcomes, count = dict(zip(self.features, self.outcomes, strict=True)), len(branching)
            p = np.concatenate([np.zeros(int(self.row_ptr[count])), self.known_p])
        found = read_law(outcomes, law, branching=branching, rewards=ranges)
        for row, (_, masses) in enumerate(found):
            if row < count:
                places = slice(int(self.row_ptr[row]), int(self.row_ptr[row + 1]))
                p[places] = [masses.get(x, 0.0) for x in self.outcomes[row]]
            else:
                paid.append(sorted(masses.items()))
        require(self._find_strangers(p))
        return Truth(self, law, paid, p)

    def _find_strangers(self, p: np.ndarray) -> Iterator[str]:
        """The laws that are none of the family that their feature declares."""
        for row, family in self.families.items():
            law = p[self.row_ptr[row] : self.row_ptr[row + 1]]
            best = float(law[law > 0] @ np.log(law[law > 0]))  # no law explains it better
            if family.most_likely(law) < best - STRANGE:
                yield f"the law of {self.features[row]!r} is none of {family!r}, which it declares"

    def name_law(self, law: Law | np.ndarray) -> Law:
        """A law as it is read by name; an array, or {"p": array}, in the order of the outcomes.

        With an array, laws of unknown rewards stand beside it under their own names.

        >>> import pkd
        >>> from pkd.tables.coin import coin
        >>> compiled = pkd.compile(coin)
        >>> compiled.features, compiled.row_ptr.tolist()
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [0, 2, 4, 6, 8])
        >>> pkd.plan(compiled, np.array([0.5, 0.5, 1, 0, 0.5, 0.5, 0, 1])).value
        1.25
        """
        given = find_array(law)
        if given is None:
            assert not isinstance(law, np.ndarray)
            return law
        p, rewards = given
        return ArrayLaw(self.features, self.outcomes, self.row_ptr, self.branching, p, rewards)

    def read_masses(self, law: Law) -> np.ndarray | None:
        """The probabilities of all law rows where they lie in an array; None: the law is asked."""
        if isinstance(law, ArrayLaw) and law.features is self.features:
            return np.concatenate([law.p, self.known_p])
        return None

    def find_form(self, belief: Belief) -> int:
        """Whose code a sweep of a belief runs in: an exact one takes that of the last rule."""
        return self.usual if belief.form == EXACT else belief.form

    def optimistic(self, bonus: Bonus, episodes: int, delta: float) -> Belief:
        """A belief before any data; `estimate` fills in the law and the counts."""
        p = np.concatenate([np.zeros(int(self.row_ptr[len(self.features)])), self.known_p])
        return self.believe(p, np.zeros(len(self.rewards)), bonus, episodes, delta)

    def believe(
        self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, episodes: int, delta: float
    ) -> Belief:
        """A belief with the law p and the means of unknown rewards."""
        size = len(self.features)
        if bonus.form not in (EXACT, NUMPY):
            self.usual = bonus.form
        exact = bonus.form == EXACT  # reads none of the following, which cost no memory as zeros
        none = np.zeros(size)
        belief = Belief(
            p=p,
            n=none,
            mean=mean,
            ell=np.zeros(max(self.n_weights, 1)),
            radius=none if exact else np.full(size, math.inf),
            budget=none if exact else self.budgets(delta / bonus.parts),
            bound=none if exact else self.branching,
            form=bonus.form,
            c1=float(bonus.c1),
            c2=float(bonus.c2),
            free=float(bonus.free),
            rounds=bonus.rounds,
            exogenous=np.zeros(size + len(self.rewards), np.bool_),
        )
        if bonus.exogenous is not None:
            belief = belief._replace(exogenous=bonus.exogenous)
        if bonus.form == CERTIFIED and self.families:
            # Sets alone: their values hold whatever MVP-Est says.
            rule = self.unrefuted
            return belief._replace(
                form=NUMPY, free=math.inf, width=math.nan, told=np.zeros(rule.size),
                asking=Asking(rule),
            )  # fmt: skip
        if bonus.form == EXACT or bonus.free == math.inf:  # no part of it is MVP-Est
            return belief
        if bonus.rule is None:  # one in numpy has no logarithms
            self.fill_logarithms(belief.ell, bonus, episodes, delta)
        belief = belief._replace(width=math.nan)
        if self.model.return_range is not None:
            low, high = map(float, self.model.return_range)
            belief = belief._replace(ceiling=high, width=high - low)
        if bonus.rule is None:
            return belief
        told = episodes if bonus.needs_episodes else None
        belief = belief._replace(asking=Asking(bonus.rule, 1, told, delta))
        facts = self._find_facts(belief, self.tally(), np.ones(4, np.uint64))
        return belief._replace(told=np.array(bonus.rule.prepare(facts), float))

    def _find_facts(self, belief: Belief, tally: Tally, rng: np.ndarray) -> Facts:
        """What a rule in numpy is told before a plan."""
        asking, size = belief.asking, len(self.features)
        assert asking is not None
        return Facts(
            asking.k, asking.episodes, self.horizon, asking.delta, self.n_features,
            self.row_ptr[: size + 1], tally.counts, tally.n, tally.rewards,
            *reward_limits(self.rewards), rng,
        )  # fmt: skip

    def fill_logarithms(self, ell: np.ndarray, bonus: Bonus, episodes: int, delta: float) -> None:
        """Fills the logarithm of each distinct (row, share)."""
        if self.weights and bonus.free != math.inf:  # some part of it is MVP-Est
            rows, shares = np.array(list(self.weights)).T
            shares = np.where(shares < 0, 1 / self.n_y, shares)
            ell[:] = self.ell(bonus, rows.astype(np.int64), shares, episodes, delta / bonus.parts)

    def pessimistic(self, belief: Belief) -> Belief:
        """The same sets of laws for least values; `estimate` fills in the means of rewards."""
        if not self.has_sets(belief):
            raise ModelError("least values need a certified belief; give optimism=Certified()")
        least = belief._replace(
            mean=belief.mean.copy(), free=math.inf, ceiling=math.inf, width=0.0, sign=-1.0
        )
        if belief.asking is None:
            return least
        rule = attrs.evolve(self.unrefuted, sign=-1.0)
        return least._replace(width=math.nan, asking=attrs.evolve(belief.asking, rule=rule))

    def has_sets(self, belief: Belief) -> bool:
        """Whether the values of a belief are those over sets of laws."""
        asking = belief.asking
        return belief.form == CERTIFIED or (
            asking is not None and isinstance(asking.rule, Unrefuted)
        )

    @cached_property
    def unrefuted(self) -> Unrefuted:
        """What gives values over sets of laws in a model with families."""
        names = {row: self.model.feature_label(self.features[row]) for row in self.families}
        return Unrefuted(self.families, names, self.row_ptr[: len(self.features) + 1])

    def fit(self, row: int, counts: np.ndarray) -> np.ndarray:
        """The estimate of a law: that of its family, or the frequencies; even without data."""
        if row in self.families:
            return self.families[row].fit(counts)
        n = float(counts.sum())
        return counts / n if n > 0 else np.full(len(counts), 1 / len(counts))

    def budgets(self, delta: float) -> np.ndarray:
        """log(1 / (weight delta)) of a set by the rank of its feature.

        With Z sets in all, the weight of rank r is 1/(2 Z) + 1/(2 r (1 + 1/2 + ... + 1/Z)). These
        sum to 1 over r = 1..Z, so features that are never seen cost the others little. The rank of
        a feature is settled before its first sample is known: of those that come together all get
        the last rank. Rank 0 stands for data that are not ranked; there all weigh 1/Z. A feature
        with one outcome has nothing to refute and needs no weight.
        """
        open_rows = np.diff(self.row_ptr[: len(self.features) + 1]) > 1
        count = max(int(open_rows.sum()) + len(self.rewards), 1)
        ranks = np.arange(1, count + 1)
        weights = 0.5 / count + 0.5 / (ranks * (1.0 / ranks).sum())
        return -np.log(delta * np.concatenate([[1 / count], weights]))

    def estimate(
        self, belief: Belief, tally: Tally, bonus: Bonus, reward_bonus: np.ndarray,
        rng: np.ndarray, *, rank: bool = False,
    ) -> None:  # fmt: skip
        """Fills a belief from the counts. rank: features with new data get their rank."""
        sets = self.has_sets(belief) or None
        prior, paid = float(bonus.prior) or None, len(self.rewards) > 0 or None
        plain = belief.plain._replace(form=CERTIFIED) if sets else belief.plain
        if belief.asking is not None and not sets:
            paid = None
        kernels.estimate(self.row_ptr, plain, tally, prior, sets, paid, rank, rng, reward_bonus)
        if belief.asking is not None and sets:
            for row in self.families:
                at = slice(int(self.row_ptr[row]), int(self.row_ptr[row + 1]))
                belief.p[at] = self.fit(row, tally.counts[at])
            budget = belief.budget[tally.rank[: len(belief.n)]]
            self.unrefuted.tell(belief.radius, budget, tally.counts, belief.told)
        elif belief.asking is not None:
            facts = self._find_facts(belief, tally, rng)
            belief.told[...] = belief.asking.rule.prepare(facts)
            belief.ask_for_means(facts, belief.mean)

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
