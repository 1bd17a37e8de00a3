"""A compiled model: what every engine shares. It holds the features, their outcomes and the logarithms of the bonus, but no law.

Two engines fill it with life: the flat program (`pkd.flat_engine`) for small and unstructured models, the run engine (`pkd.run_engine`)
for large structured ones; `pkd.engines.compile` chooses.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.check.laws import checked_law
from pkd.kernels import flat
from pkd.kernels.forms import NO_BONUS
from pkd.model import Episode, Law, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.optimism import Bonus

if TYPE_CHECKING:
    from pkd.learning import Trial

__all__ = ["Compiled"]


class Compiled(ABC):
    """One model, ready to be planned for: policies, beliefs and worlds are arrays that the engine alone understands.

    >>> from pkd.engines import compile
    >>> from pkd.tabular import TabularMDP
    >>> coin = TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> compile(coin.model())
    <_TabularModel compiled: 2 states, 4 unknown features, horizon 3>
    """

    def __init__(
        self,
        model: PartiallyKnownMDP,
        features: Sequence[Any],
        outcomes: Sequence[tuple[Any, ...]],
        known: Sequence[Sequence[float]],
        rewards: Sequence[UnknownReward],
        n_y: int,
    ) -> None:
        self.model, self.horizon = model, model.horizon
        self.features, self.outcomes, self.rewards, self.n_y = features, outcomes, rewards, n_y
        self.row_ptr = np.array([0, *accumulate(map(len, [*outcomes, *known]))], np.int64)
        self.known_p = np.array([p for row in known for p in row], float)

    # -- what an engine does -------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def n_states(self) -> int:
        """How many states (x, y) are planned for."""

    @abstractmethod
    def policy(self) -> np.ndarray:
        """Room for a policy."""

    @abstractmethod
    def believe(self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, episodes: int, delta: float) -> Any:
        """A belief with the law p and the means of unknown rewards; for an optimistic one, the rest of the bonus."""

    @abstractmethod
    def sweep(self, belief: Any, policy: np.ndarray, *, follow: bool) -> tuple[float, bool]:
        """One backward sweep: the value from the start, and whether the policy changed. follow: the policy is evaluated, not chosen."""

    @abstractmethod
    def action_at(self, policy: np.ndarray, h: int, x: Any, y: Any) -> Any:
        """What a policy does."""

    @abstractmethod
    def values_at(self, belief: Any, policy: np.ndarray, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q_h of every action; {None: V_h} where there is none."""

    @abstractmethod
    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""

    @abstractmethod
    def arms_of(self, act: Any) -> np.ndarray:
        """A callable (h, x, y) -> action as a policy array."""

    @abstractmethod
    def learn_chunk(self, run: Trial, chunk: slice) -> None:
        """So many episodes of a run, all in compiled code."""

    @property
    @abstractmethod
    def plain(self) -> Compiled:
        """The engine with every state apart, for policies that tell merged states from each other."""

    @abstractmethod
    def followed(self, act: Callable[[int, Any, Any], Any]) -> Any:
        """A callable (h, x, y) -> action as what `episode` takes for a policy."""

    @abstractmethod
    def episode(self, world: Any, policy: Any, tally: flat.Tally, rng: np.ndarray) -> tuple[Episode, float, bool]:
        """One recorded episode, its return, and whether the tally, to which what was visited is added, makes a plan due."""

    @abstractmethod
    def world(self, law: Law) -> Any:
        """A given law as what episodes are drawn from."""

    # -- beliefs -------------------------------------------------------------------------------------------------------------------

    def truth(self, law: Law) -> Any:
        """A given law as a belief: plain expectations."""
        p, rewards = self.read(law)
        mean = np.array([math.fsum(x * q for x, q in row.items()) for row in rewards], float)
        return self.believe(p, mean, Bonus(NO_BONUS), 1, 0.5)

    def read(self, law: Law) -> tuple[np.ndarray, list[dict[float, float]]]:
        """The probabilities of all rows one after the other, and the laws of unknown rewards; a law that does not fit is a ModelError."""
        branching = {z: int(b) for z, b in zip(self.features, self.branching, strict=True)}
        ranges = {reward.feature: (reward.low, reward.high) for reward in self.rewards}
        found = checked_law(dict(zip(self.features, self.outcomes, strict=True)), law, branching=branching, rewards=ranges)
        p = [found[z].get(x, 0.0) for z, states in zip(self.features, self.outcomes, strict=True) for x in states]
        return np.concatenate([np.array(p, float), self.known_p]), [found[reward.feature] for reward in self.rewards]

    def optimistic(self, bonus: Bonus, episodes: int, delta: float) -> Any:
        """Room for an optimistic belief; `estimate` fills in the law and the counts."""
        p = np.concatenate([np.zeros(int(self.row_ptr[len(self.features)])), self.known_p])
        return self.believe(p, np.zeros(len(self.rewards)), bonus, episodes, delta)

    def estimate(self, belief: Any, tally: flat.Tally, bonus: Bonus, reward_bonus: np.ndarray, rng: np.ndarray) -> None:
        """Fills a belief from the counts."""
        flat.estimate(self.row_ptr, len(self.features), belief, tally, bonus.prior or None, rng, reward_bonus)
        self.refresh(belief)

    @abstractmethod
    def refresh(self, belief: Any) -> None:
        """Brings what is derived from a belief's law, means and counts up to date."""

    # -- the logarithms of the bonus -----------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """|Z| in the logarithms."""
        return self.model.n_features or max(len(self.features), 1)

    @cached_property
    def branching(self) -> np.ndarray:
        """B(z) of each feature."""
        return np.array([self.model.branching(z) for z in self.features], float)

    def ell(self, bonus: Bonus, rows: np.ndarray, shares: np.ndarray, episodes: int, delta: float) -> np.ndarray:
        """ell(z, y') = min(ell1, B(z) ell2(z)) for unknown rows z and shares of y'; the rule's own constant where it has one."""
        if bonus.log_factor is not None:
            return np.full(rows.shape, bonus.log_factor)
        b = self.branching[rows]
        ell1 = np.log(32 * self.horizon**2 * self.n_features * episodes / (delta * shares))
        ell: np.ndarray = np.minimum(ell1, b * np.log(32 * self.horizon * b * self.n_features * episodes / delta))
        return ell

    def reward_bonus(self, bonus: Bonus, episodes: int, delta: float) -> np.ndarray:
        """For each unknown reward: ell, low, high, and whether its mean is estimated optimistically, (4, rewards)."""
        ell = bonus.log_factor
        if ell is None:
            ell = math.log(32 * self.horizon**2 * max(len(self.rewards), 1) * episodes / delta)
        optimistic = 0.0 if bonus.form == NO_BONUS else 1.0
        return np.array([[ell, r.low, r.high, optimistic] for r in self.rewards], float).reshape(-1, 4).T.copy()

    # -- what comes from files -----------------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """What a file must have been saved with to fit this model: horizon, states, features, outcomes, actions."""
        from pkd.results.values import key_of

        @cache
        def name(value: Any) -> str:
            try:
                return key_of(value)
            except TypeError:
                return repr(value)

        digest = hashlib.sha256(f"{self.horizon} {self.n_states} {self.policy().shape} {self.policy().dtype}".encode())
        for z, row in zip(self.features, self.outcomes, strict=True):
            digest.update(";".join(map(name, (z, *row))).encode())
        for h in range(1, self.horizon + 1):
            digest.update(repr(sorted(len(self.model.actions(x, y)) for x, y in self.decision_states(h))).encode())
        return digest.hexdigest()

    def check_policy(self, arms: np.ndarray) -> None:
        """ModelError unless an array can be a policy of this model."""
        room = self.policy()
        if arms.shape != room.shape or arms.dtype != room.dtype:
            raise ModelError(
                f"the saved policy is {arms.dtype} of shape {arms.shape}, the model needs {room.dtype} of shape {room.shape}; "
                "give the model of the run"
            )
        most = max(len(self.model.actions(x, y)) for h in range(1, self.horizon + 1) for x, y in self.decision_states(h))
        if arms.size and not (0 <= arms.min() and arms.max() < most):
            raise ModelError(f"the saved policy has the action number {arms.max()}; expected 0 to {most - 1}")

    # -- counts --------------------------------------------------------------------------------------------------------------------

    def tally(self) -> flat.Tally:
        """Empty counts."""
        z, w = len(self.features), len(self.rewards)
        return flat.Tally(np.zeros(int(self.row_ptr[z])), np.zeros(z), np.ones(z), np.zeros((3, w)), np.ones(w))

    def counted(self, counts: Mapping[Any, Mapping[Any, float]]) -> flat.Tally:
        """A tally of given counts {z: {x': n}}, of an unknown reward {w: {value: n}}; what the model calls impossible is a finding."""
        tally = self.tally()
        findings: list[str] = []
        rewards = self.reward_index
        for z, row in counts.items():
            if z in rewards:
                findings.extend(self._add_rewards(tally, rewards[z], row))
            elif z not in self.feature_index:
                findings.append(f"counts have the feature {z!r}, which cannot occur in the model")
            else:
                findings.extend(self._add_counts(tally, z, row))
        if findings:
            raise ModelError(findings)
        return tally

    def _add_rewards(self, tally: flat.Tally, w: int, row: Mapping[Any, float]) -> Iterator[str]:
        z, low, high = self.rewards[w].feature, self.rewards[w].low, self.rewards[w].high
        for value, number in row.items():
            if not low <= value <= high:
                yield f"counts of {z!r} have the reward {value!r}; expected a number in [{low!r}, {high!r}]"
            elif not (number >= 0 and math.isfinite(number)):
                yield f"counts of {z!r}, {value!r} are {number!r}; expected a number >= 0"
            elif number > 0:
                flat.add_reward(tally, w, float(value), float(number))

    def _add_counts(self, tally: flat.Tally, z: Any, row: Mapping[Any, float]) -> Iterator[str]:
        place = self._outcome_index[self.feature_index[z]]
        for x, number in row.items():
            if x not in place:
                yield f"counts of {z!r} have the outcome {x!r}, which is not in outcomes({z!r})"
            elif not (number >= 0 and math.isfinite(number)):
                yield f"counts of {z!r}, {x!r} are {number!r}; expected a number >= 0"
            else:
                tally.counts[place[x]] += number
                tally.n[self.feature_index[z]] += number

    def count(self, tally: flat.Tally, samples: Iterable[tuple[Any, Any]]) -> bool:
        """Adds (z, x') samples to a tally; returns whether a plan became due."""
        due = False
        for z, x in samples:
            try:
                row = self.feature_index[z]
                place = self._outcome_index[row][x]
            except KeyError:
                raise ModelError(
                    f"samples gave ({z!r}, {x!r}): the model has no such feature, or the outcome is not in outcomes({z!r})"
                ) from None
            tally.counts[place] += 1.0
            tally.n[row] += 1.0
            due |= bool(tally.n[row] >= tally.marks[row])
        return due

    def named_counts(self, tally: flat.Tally) -> dict[Any, dict[Any, float]]:
        """Counts by name: {z: {x': n}}, zeros left out."""
        index = self._outcome_index
        return {z: {x: float(tally.counts[i]) for x, i in index[row].items() if tally.counts[i] > 0} for row, z in enumerate(self.features)}

    @property
    def names(self) -> dict[str, Any]:
        """Features and outcomes by their repr, for files that hold only text."""
        return {repr(value): value for value in (*self.features, *(x for states in self.outcomes for x in states))}

    @cached_property
    def feature_index(self) -> dict[Any, int]:
        """The row of each unknown feature."""
        return {z: row for row, z in enumerate(self.features)}

    @cached_property
    def reward_index(self) -> dict[Any, int]:
        """The number of each unknown reward."""
        return {reward.feature: w for w, reward in enumerate(self.rewards)}

    @cached_property
    def _outcome_index(self) -> list[dict[Any, int]]:
        return [{x: int(self.row_ptr[row]) + i for i, x in enumerate(states)} for row, states in enumerate(self.outcomes)]


def cumulative(p: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """Cumulative sums within each segment ptr[i]:ptr[i + 1]."""
    out = np.empty_like(p)
    for lo, hi in pairwise(ptr):
        np.cumsum(p[lo:hi], out=out[lo:hi])
    return out


def world_of(compiled: Compiled, law: Law, branches: np.ndarray, starts: np.ndarray) -> flat.World:
    """A law as cumulative sums, with those of the known branches and starts."""
    p, rows = compiled.read(law)
    return flat.World(
        rows=cumulative(p, compiled.row_ptr),
        branches=branches,
        starts=starts,
        reward_ptr=np.array([0, *accumulate(map(len, rows))], np.int64),
        reward_value=np.array([value for row in rows for value in row], float),
        reward_rows=np.concatenate([np.cumsum(list(row.values())) for row in rows]) if rows else np.zeros(0),
    )
