"""Learning under a long delay, by optimistic plans between bounds: `learn_long`, `LongLearner`.

Each probability P(x'|z) gets a lower confidence limit. The part u(z) that is left goes to a dream,
a state that pays the most for ever. Every policy earns in this optimistic problem at least what it
earns in the true one, so `high` of its bounds is at least the optimum, whatever the delay. With R
the range of returns, and a plan whenever some count has doubled,

    sum_k (V* - V^k) <= sum_k (high_k - low_k) + R sum_k E min(1, sum_h u_k(z_h))
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import attrs
import numpy as np
from scipy.special import betaln, xlogy

import pkd
from pkd import Episode, ModelError, Transition, UnknownReward
from pkd.episode import list_samples
from pkd.expect import failure, flag, if_given, instance, number, require, show, whole
from pkd.expect import seed as check_seed
from pkd.progress import watch
from pkd_delay.delayed import Delayed
from pkd_delay.episodes import simulate
from pkd_delay.long.line import make_line
from pkd_delay.long.plan import LATE, BoundedPlan, plan_long, plan_table
from pkd_delay.long.table import DREAM, find_range, make_optimistic_table

__all__ = ["LongLearner", "LongRun", "PlanMade", "find_lower", "learn_long"]

HALVINGS = 50
OPTIMUM = 10  # times the seconds of a plan: for the bounds on the optimum
PLAN_SHARE = 0.5  # of delta: for simulated lower values of all plans together


def find_lower(k: np.ndarray, n: float, delta: float) -> np.ndarray:
    """Lower limits for probabilities of outcomes seen k of n times, for all n at once.

        B(k + 1/2, n - k + 1/2) / B(1/2, 1/2)  <  p^k (1 - p)^(n - k) / delta

    The left side over the likelihood of the true p is a martingale that begins at 1 (Robbins), so
    a true p breaks this for some n with probability delta at most (Ville's inequality).

    >>> find_lower(np.array([0.0, 50.0, 100.0]), 100.0, 0.05).round(3)
    array([0.   , 0.338, 0.943])
    """
    k = np.asarray(k, float)
    least = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) + np.log(delta)
    low, high = np.zeros(len(k)), k / max(n, 1.0)
    for _ in range(HALVINGS):
        p = (low + high) / 2
        refuted = xlogy(k, p) + xlogy(n - k, 1 - p) <= least
        low, high = np.where(refuted, p, low), np.where(refuted, high, p)
    return np.where(k > 0, low, 0.0)


class PlanMade(NamedTuple):
    """A plan of a learner."""

    episode: int  # the first one that it acts in
    low: float  # what its policy earns in the optimistic problem, at least
    high: float  # at least the optimum, with the probability of the learner
    delta: float  # with which probability `low` may fail; 0: it is exact
    seconds: float


class LongLearner:
    """Acts by an optimistic plan between bounds, and learns from each episode that it is shown.

    It has the base and the law of the delay, which must be one law for all states and actions, and
    never the law of the base. `drive` and `LateEnv` take it like a `pkd.OptimisticLearner`.

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = DelayedMDP.constant(two_state_chain(), 1)
    >>> learner = LongLearner(late, gap=0.01)
    >>> learner.observe(simulate(late, learner.plan.action, 1)[0].augmented(late.known()))
    >>> learner.observed, round(learner.upper_value, 2), sum(map(len, learner.counts.values())) > 0
    (1, 10.0, True)
    """

    def __init__(
        self,
        delayed: Delayed,
        *,
        gap: float = 0.05,
        seconds: float = 1.0,
        memory: float | None = None,
        delta: float = 0.05,
    ) -> None:
        """Gap, seconds and memory are those of each plan, as in `pkd_delay.plan`."""
        require(
            instance("delayed", delayed, Delayed, LATE), number("gap", gap),
            number("seconds", seconds, above=True),
            if_given(number, "memory", memory), failure("delta", delta),
        )  # fmt: skip
        if delayed.delay_law != "known":
            raise ModelError(
                "the law of the delay is unknown, so there are no bounds to plan by; expected a "
                "known one, or pkd_delay.learn without gap"
            )
        self.delayed, self.places = delayed, make_line(delayed)
        self.model, self.gap, self.delta = delayed.known(), gap, delta
        self.seconds, self.memory = seconds, memory
        self.outcomes = {z: list(delayed.base.outcomes(z)) for z in delayed.facts.features}
        if any(_learns_rewards(delayed)):
            raise ModelError(
                "rewards of the base are to be learned, and plans within a gap know all rewards; "
                "expected pkd_delay.learn without gap"
            )
        self.counts: dict[Any, dict[Any, float]] = {z: {} for z in self.outcomes}
        self.observed, self.plans = 0, list[PlanMade]()
        self._plan: BoundedPlan | None = None
        self._totals = dict.fromkeys(self.outcomes, 0.0)  # of the plan in force
        self._missing: dict[Any, float] = dict.fromkeys(self.outcomes, 1.0)  # its u(z)

    def find_law(self) -> dict[Any, dict[Any, float]]:
        """{z: {x': lower limit}}, with what is left for DREAM; all hold at once with 1 - delta."""
        delta = (1 - PLAN_SHARE) * self.delta / max(1, sum(map(len, self.outcomes.values())))
        laws = {}
        for z, states in self.outcomes.items():
            if len(states) == 1:
                laws[z] = {states[0]: 1.0}
                continue
            k = np.array([self.counts[z].get(x, 0.0) for x in states])
            low = find_lower(k, k.sum(), delta)
            law = {x: p for x, p in zip(states, low.tolist(), strict=True) if p > 0.0}
            laws[z] = {**law, DREAM: 1.0 - sum(law.values())}
        return laws

    @property
    def due(self) -> bool:
        """Whether some count has doubled since the plan in force."""
        return self._plan is None or any(
            sum(row.values()) >= max(1.0, 2 * self._totals[z]) for z, row in self.counts.items()
            if len(self.outcomes[z]) > 1
        )  # fmt: skip

    @property
    def plan(self) -> BoundedPlan:
        """The plan in force, made when it is first asked for."""
        if self._plan is None or self.due:
            began, laws = time.perf_counter(), self.find_law()
            table, j = make_optimistic_table(self.delayed, laws), len(self.plans) + 1
            share = PLAN_SHARE * self.delta / (j * (j + 1))  # they sum to their part of delta
            found = plan_table(
                self.delayed, table, self.places, self.gap, seconds=self.seconds,
                memory=self.memory, delta=share,
            )  # fmt: skip
            took = time.perf_counter() - began
            self.plans.append(PlanMade(self.observed, found.low, found.high, found.delta, took))
            self._plan = found
            self._totals = {z: sum(row.values()) for z, row in self.counts.items()}
            self._missing = {z: law.get(DREAM, 0.0) for z, law in laws.items()}
        return self._plan

    @property
    def upper_value(self) -> float:
        """An upper bound on the optimum: `high` of the plan in force."""
        return self.plan.high

    def act(self, h: int, x: Any, y: Any) -> Any:
        """The action at step h (from 1) in the augmented state (x, y) of `delayed.known()`."""
        return self.plan.act(h, x, y)

    def observe(self, episode: Episode | Iterable[Transition]) -> None:
        """Learns from a finished episode of the base or of `delayed.known()`."""
        if not isinstance(episode, Episode):
            moves = tuple(episode) if isinstance(episode, Iterable) else ()
            if not moves or not all(isinstance(move, Transition) for move in moves):
                raise ModelError(
                    f"episode is {show(episode)}; expected a pkd.Episode, or pkd.Transitions"
                )
            episode = Episode(moves)
        self.learn_from(list(list_samples(self.model, episode)))

    def learn_from(self, samples: list[tuple[Any, Any]]) -> float:
        """Counts the (z, x') of an episode; min(1, sum of u(z)) of the plan in force."""
        findings = [
            f"{z!r} -> {x!r} is no outcome of the base" for z, x in samples
            if x not in self.outcomes.get(z, ())
        ]  # fmt: skip
        if findings:
            raise ModelError(findings[:20])
        surprise = min(1.0, sum(self._missing[z] for z, _ in samples))
        for z, x in samples:
            self.counts[z][x] = self.counts[z].get(x, 0.0) + 1.0
        self.observed += 1
        return surprise


def _learns_rewards(delayed: Delayed) -> Iterable[bool]:
    base = delayed.base
    for x, y in delayed.facts.decisions:
        yield any(isinstance(base.reward(x, y, a), UnknownReward) for a in base.actions(x, y))


@attrs.frozen(eq=False, repr=False)
class LongRun:
    """What a learner was paid, by which plans, and bounds on the optimum."""

    paid: np.ndarray  # (K,)
    surprise: np.ndarray  # (K,) min(1, sum_h u(z_h)): what may be paid too little, over R
    plans: tuple[PlanMade, ...]
    optimum: BoundedPlan  # planned with the true law
    range_of_return: float  # R
    delta: float

    def __repr__(self) -> str:
        low, high = self.regret()
        return (
            f"<LongRun: {len(self.paid):,} episodes, {len(self.plans)} plans, "
            f"regret between {low[-1]:.6g} and {high[-1]:.6g}>"
        )

    def _spread(self, values: Iterable[float]) -> np.ndarray:
        """Values of plans, for each episode."""
        first = [plan.episode for plan in self.plans] + [len(self.paid)]
        return np.repeat(np.array(list(values)), np.diff(first))

    @property
    def upper_values(self) -> np.ndarray:
        """(K,) the upper value of the plan of each episode."""
        return self._spread(plan.high for plan in self.plans)

    @property
    def gaps(self) -> np.ndarray:
        """(K,) high - low of the plan of each episode."""
        return self._spread(plan.high - plan.low for plan in self.plans)

    @property
    def violations(self) -> int:
        """Plans whose upper value is below the optimum for sure."""
        return sum(plan.high < self.optimum.low for plan in self.plans)

    def regret(self) -> tuple[np.ndarray, np.ndarray]:
        """(K,) twice: K low - paid and K high - paid, with the bounds on the optimum.

        These are the payments that were drawn. Their luck has mean 0.
        """
        k, paid = np.arange(1, len(self.paid) + 1), np.cumsum(self.paid)
        return k * self.optimum.low - paid, k * self.optimum.high - paid

    def bound(self) -> np.ndarray:
        """(K,) what sum_k (V* - V^k) is at most, from the data alone, for each K.

            sum_k gap_k + R (sum_k min(1, sum_h u_k(z_h)) + sqrt(K log(1/delta) / 2))

        Each holds with probability 1 - 2 delta: delta for the limits and the plans, and delta for
        the last term (Azuma and Hoeffding).
        """
        k = np.arange(1, len(self.paid) + 1)
        luck = np.sqrt(k * np.log(1 / self.delta) / 2)
        most: np.ndarray = np.cumsum(self.gaps + self.range_of_return * self.surprise)
        most += self.range_of_return * luck
        return most


def learn_long(
    delayed: Delayed,
    episodes: int,
    *,
    gap: float,
    seconds: float = 1.0,
    memory: float | None = None,
    delta: float = 0.05,
    seed: int = 0,
    progress: bool | None = False,
) -> LongRun:
    """A run of `LongLearner` in a delayed problem; gap and seconds are those of each plan.

    The bounds on the optimum, planned with the true law, get ten times the seconds.
    """
    require(
        whole("episodes", episodes, 1), check_seed("seed", seed),
        if_given(flag, "progress", progress),
    )  # fmt: skip
    learner = LongLearner(delayed, gap=gap, seconds=seconds, memory=memory, delta=delta)
    optimum = plan_long(delayed, gap, seconds=OPTIMUM * seconds, memory=memory)
    words = np.random.default_rng(seed).integers(2**62, size=episodes).tolist()
    paid, surprise = np.zeros(episodes), np.zeros(episodes)
    answers: dict[Any, Any] = {}
    plan: BoundedPlan | None = None
    for k, word in enumerate(watch(words, "learning", wanted=progress)):
        if learner.plan is not plan:
            plan, answers = learner.plan, {}

        def act(*asked: Any, plan: BoundedPlan = plan, answers: dict[Any, Any] = answers) -> Any:
            if asked not in answers:
                answers[asked] = plan.action(*asked)
            return answers[asked]

        (episode,) = simulate(delayed, act, 1, word)
        moves = (move for part in (episode.opening, *episode.moves) for move in part)
        base_episode = pkd.Episode(tuple(moves), final=episode.final)
        surprise[k] = learner.learn_from(list(list_samples(delayed.base, base_episode)))
        paid[k] = episode.total
    return LongRun(paid, surprise, tuple(learner.plans), optimum, find_range(delayed), delta)
