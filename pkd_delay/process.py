"""Delayed problems with their truth: a base problem, the law of its inter-arrival times and the largest delay (Assumption 1 of the paper).

`DelayedMDP` delays a `pkd.TabularMDP` and is the paper's SDMDP (M, P_delay, D_max). `Delayed` does the same for any problem, that is any
object with .model() and .law(). Both give the two adapters, `known()` and `unknown()`, and one `law()` that serves them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd import ModelError, PartiallyKnownMDP, TabularMDP
from pkd_delay.augmented import count_faults
from pkd_delay.base import Instead
from pkd_delay.inter_arrival import InterArrival, InterArrivalOf, faults, per_action
from pkd_delay.known import KnownDelay
from pkd_delay.law import DelayLaw
from pkd_delay.unknown import DelayFeature, UnknownDelay

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["DelayLawKind", "Delayed", "DelayedMDP", "DelayedProblem", "Sizes", "refuse_other_words"]

DelayLawKind = Literal["known", "unknown"]
SHOWN_FINDINGS = 5  # bad rows of one table that are named; the rest is counted


def refuse_other_words(delay_law: Any) -> None:
    """ModelError unless `delay_law` is one of the two words for what the learner knows."""
    if delay_law not in ("known", "unknown"):
        raise ModelError(f'delay_law is {delay_law!r}; expected "known" or "unknown"')


def _as_given(value: Any) -> Any:
    return value  # its shape needs the mdp, so `__attrs_post_init__` makes the array


class Problem(Protocol):
    """A model with the law that nature follows."""

    def model(self) -> PartiallyKnownMDP: ...

    def law(self) -> Law: ...


class DelayedProblem(ABC):
    """What every delayed problem offers."""

    max_delay: int

    @property
    @abstractmethod
    def base(self) -> PartiallyKnownMDP:
        """The model that is delayed."""

    @property
    @abstractmethod
    def base_law(self) -> Law:
        """Its truth."""

    @property
    @abstractmethod
    def delay_of(self) -> Callable[[Any, Any, Any], InterArrival]:
        """The law of Delta after the base's (x, y, a)."""

    @abstractmethod
    def known(self) -> KnownDelay:
        """The adapter for a known law of the delay (Theorem 1)."""

    @abstractmethod
    def unknown(self) -> UnknownDelay:
        """The adapter for an unknown law of the delay (Theorem 2): it gets the bounds W and D, not the law."""

    @abstractmethod
    def shown_as(self, x: Any, y: Any) -> Any:
        """The state of the base as the agent sees it."""

    @abstractmethod
    def seen(self, state: Any) -> tuple[Any, Any]:
        """The base's (x, y) behind a state that the agent sees: the inverse of `shown_as`."""

    def model(self) -> KnownDelay | UnknownDelay:
        return self.known()

    def law(self) -> DelayLaw:
        """The truth, for the simulator and the exact planner of either adapter."""
        return DelayLaw(self.base_law, self.delay_of, self.known(), self.unknown())


@attrs.frozen(eq=False, slots=False)
class Delayed(DelayedProblem):
    """Any problem, delayed. `inter_arrival` is {Delta: probability}, or a function (x, y, a) of the base that gives one.

    With delay_law="unknown" its model is the `UnknownDelay`. `delay_feature` and `instead` are those of the adapters.

    >>> from pkd_delay.problems import two_state_chain
    >>> from pkd_delay.planning import plan
    >>> round(plan(Delayed.constant(two_state_chain(), 1)).value, 10)
    9.1
    """

    problem: Problem
    inter_arrival: InterArrivalOf
    max_delay: int
    delay_law: DelayLawKind = attrs.field(default="known")
    delay_feature: DelayFeature = None
    instead: Instead = None

    @delay_law.validator
    def _check_delay_law(self, attribute: Any, value: Any) -> None:
        refuse_other_words(value)

    @classmethod
    def constant(cls, problem: Problem, delay: int) -> Delayed:
        """Every state comes `delay` steps late; the first one is seen at once."""
        return cls(problem, {delay: 1.0}, delay)

    @cached_property
    def base(self) -> PartiallyKnownMDP:
        return self.problem.model()

    @cached_property
    def base_law(self) -> Law:
        return self.problem.law()

    @cached_property
    def delay_of(self) -> Callable[[Any, Any, Any], InterArrival]:
        return per_action(self.inter_arrival)

    @cached_property
    def _known(self) -> KnownDelay:
        return KnownDelay(self.base, self.delay_of, self.max_delay, instead=self.instead)

    def known(self) -> KnownDelay:
        return self._known

    @cached_property
    def _unknown(self) -> UnknownDelay:
        known = self.known()
        options: dict[str, Any] = {"delay_feature": self.delay_feature, "instead": self.instead, "facts": known.facts}
        return UnknownDelay(self.base, known.longest, self.max_delay, **options)

    def unknown(self) -> UnknownDelay:
        return self._unknown

    def model(self) -> KnownDelay | UnknownDelay:
        return self.known() if self.delay_law == "known" else self.unknown()

    def shown_as(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y

    def seen(self, state: tuple[Any, Any]) -> tuple[Any, Any]:
        return state


@attrs.frozen
class Sizes:
    """The sizes of the augmented MDP by the paper's definitions: (known law, unknown law) where the two differ."""

    queues: int
    augmented_states: int
    y: tuple[int, int]
    z: tuple[int, int]


@attrs.frozen(eq=False, slots=False)
class DelayedMDP(DelayedProblem):
    """A tabular MDP whose states are shown late.

        Delta_h ~ P_delay(s_h, a_h) on {-1, ..., W},   D_h = clip(D_{h-1} + Delta_h; 0, max_delay),   D_0 = 0

    s_{h+1} is shown at the beginning of step h + 1 + D_h, or at the end of the episode. `inter_arrival` is one law {Delta: probability} for
    all (s, a), or {(s, a): law}, or an array; it is kept as an array. `branching` is a known bound B on the support of P(s, a), default S.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = pkd_delay.DelayedMDP(two_state_chain(horizon=2), {0: 0.5, 1: 0.5}, max_delay=1)
    >>> round(pkd_delay.plan(delayed).value, 12)  # 1, then 1 if the second state is shown in time and else .9
    1.95
    """

    mdp: TabularMDP
    inter_arrival: NDArray[np.float64] = attrs.field(converter=_as_given)  # (S, A, W + 2): Pr(Delta = -1), ..., Pr(Delta = W)
    max_delay: int
    branching: int | None = None

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.mdp, TabularMDP):
            raise ModelError(f"mdp is {type(self.mdp).__name__}; expected a pkd.TabularMDP (for any other model use pkd_delay.Delayed)")
        found = count_faults(self.max_delay, "max_delay")
        table, wrong = _table(self.inter_arrival, self.mdp.n_states, self.mdp.n_actions)
        found += wrong
        try:
            self.mdp.model(branching=self.branching)
        except ModelError as error:
            found += error.findings
        if found:
            raise ModelError(found)
        table.flags.writeable = False
        object.__setattr__(self, "inter_arrival", table)

    @classmethod
    def constant(cls, mdp: TabularMDP, delay: int, branching: int | None = None) -> DelayedMDP:
        """Every state comes `delay` steps late: Delta = delay always, and the clip at D = delay keeps D_h there; s_1 is seen at once.

        >>> import pkd_delay
        >>> from pkd_delay.problems import two_state_chain
        >>> [round(pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(), delay)).value, 12) for delay in (0, 1, 2)]
        [10.0, 9.1, 8.46]
        """
        found = count_faults(delay, "delay")
        if found:
            raise ModelError(found)
        return cls(mdp, {delay: 1.0}, delay, branching)

    @property
    def longest(self) -> int:
        """W, the largest inter-arrival time of the table."""
        return int(self.inter_arrival.shape[2]) - 2

    @property
    def sizes(self) -> Sizes:
        S, A, H, W = self.mdp.n_states, self.mdp.n_actions, self.mdp.horizon, self.longest
        queues = sum(A**n for n in range(self.max_delay + 1))
        counters = W + 3  # -1, ..., W and tran
        return Sizes(
            queues=queues,
            augmented_states=S * queues * counters * (H + 1),
            y=(queues * counters * (H + 1), queues * (H + 1)),
            z=(S * (A + 1), S * A * counters * 3),
        )

    @cached_property
    def base(self) -> PartiallyKnownMDP:
        return self.mdp.model(branching=self.branching)

    @property
    def base_law(self) -> Law:
        return self.mdp.law()

    @cached_property
    def delay_of(self) -> Callable[[Any, Any, Any], InterArrival]:
        rows = [[InterArrival(tuple(row)) for row in rows] for rows in self.inter_arrival.tolist()]
        return lambda x, y, a: rows[x][a]

    @property
    def _features(self) -> int:
        """W' S A with W' = max(W, 1): the |Z| in the logarithms of MVP-Delayed, for both adapters."""
        return max(self.longest, 1) * self.mdp.n_states * self.mdp.n_actions

    @cached_property
    def _known(self) -> KnownDelay:
        return KnownDelay(self.base, self.delay_of, self.max_delay, n_features=self._features)

    def known(self) -> KnownDelay:
        return self._known

    @cached_property
    def _unknown(self) -> UnknownDelay:
        return UnknownDelay(self.base, self.longest, self.max_delay, n_features=self._features, facts=self.known().facts)

    def unknown(self) -> UnknownDelay:
        return self._unknown

    def shown_as(self, x: int, y: None) -> int:
        return x

    def seen(self, state: int) -> tuple[int, None]:
        return state, None


def _table(given: Any, n_states: int, n_actions: int) -> tuple[NDArray[np.float64], list[str]]:
    """The law of every (s, a) as an array (S, A, W + 2), and what is wrong with it."""
    pairs = [(s, a) for s in range(n_states) for a in range(n_actions)]
    nothing = np.zeros((n_states, n_actions, 2))
    if isinstance(given, Mapping) and given and all(isinstance(key, tuple) for key in given):
        strangers = [key for key in given if key not in set(pairs)]
        found = [f"inter_arrival has a law for {key!r}; expected (s, a) with s < {n_states} and a < {n_actions}" for key in strangers]
        laws: dict[tuple[int, int], tuple[Any, str]] = {(s, a): (given.get((s, a)), f"inter_arrival[{s}, {a}]") for s, a in pairs}
    elif isinstance(given, Mapping) or np.ndim(given) == 1:
        found, laws = [], dict.fromkeys(pairs, (given, "inter_arrival"))
    else:
        array = np.asarray(given)
        if array.ndim != 3 or array.shape[:2] != (n_states, n_actions) or array.shape[2] < 2:
            expected = f"(S, A, W + 2) = ({n_states}, {n_actions}, at least 2): Pr(Delta = -1), Pr(Delta = 0), ..., Pr(Delta = W)"
            return nothing, [f"inter_arrival has shape {array.shape}; expected {expected}"]
        found, laws = [], {(s, a): (array[s, a].tolist(), f"inter_arrival[{s}, {a}]") for s, a in pairs}
    wrong = list(dict.fromkeys(text for law, where in laws.values() for text in faults(law, where)))
    if len(wrong) > SHOWN_FINDINGS:
        wrong[SHOWN_FINDINGS:] = [f"... and {len(wrong) - SHOWN_FINDINGS} more of this kind"]
    if found or wrong:
        return nothing, found + wrong
    rows = {pair: InterArrival.of(law, where).probabilities for pair, (law, where) in laws.items()}
    table = np.zeros((n_states, n_actions, max(map(len, rows.values()))))
    for (s, a), row in rows.items():
        table[s, a, : len(row)] = row
    return table, []
