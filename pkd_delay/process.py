"""Delayed problems with their truth: Assumption 1 of the paper.

A delayed problem is a base problem, the law of its inter-arrival times and the largest delay.
`Delayed` delays any problem; `DelayedMDP` is the same for a `pkd.TabularMDP`, the paper's SDMDP
(M, P_delay, D_max). Both give the two adapters, `known()` and `unknown()`, and one `law()` for
them. Which of the two a learner gets is said by `delay_law` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

import pkd
from pkd import ModelError, PartiallyKnownMDP, TabularMDP
from pkd_delay.augmented import find_count_faults
from pkd_delay.base import BaseFacts, Instead, survey
from pkd_delay.inter_arrival import (
    DelayOf,
    InterArrival,
    InterArrivalOf,
    OneLaw,
    OneLawForAll,
    find_faults,
    per_action,
)
from pkd_delay.known import KnownDelay, Pending, find_longest
from pkd_delay.law import DelayLaw
from pkd_delay.unknown import DelayFeature, Queued, UnknownDelay

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["DelayLawKind", "Delayed", "DelayedMDP", "Sizes"]

DelayLawKind = Literal["known", "unknown"]
GivenLaws = OneLaw | Mapping[tuple[int, int], OneLaw] | ArrayLike  # of a DelayedMDP
SHOWN_FINDINGS = 5  # bad rows of one table that are named; the rest is counted


@attrs.frozen(eq=False, slots=False)
class Delayed:
    """Any problem, delayed.

        Delta_h ~ P_delay(s_h, a_h) on {-1, ..., W},   D_h = clip(D_{h-1} + Delta_h; 0, max_delay)

    with D_0 = 0. s_{h+1} is shown at the beginning of step h + 1 + D_h, or at the end of the
    episode. `problem` is an object with .model() and .law(), a pair (model, law), or a registered
    name. `inter_arrival` is {Delta: probability}, or a function (x, y, a) of the base that gives
    one. `delay_law` says whether a learner knows that law: its model is then the `KnownDelay` or
    the `UnknownDelay`. `delay_feature` and `instead` are those of the adapters.

    >>> from pkd_delay.planning import plan
    >>> round(plan(Delayed.constant("two_state_chain", 1)).value, 10)
    9.1
    """

    problem: pkd.Problem = attrs.field(converter=pkd.as_problem)
    inter_arrival: InterArrivalOf
    max_delay: int
    delay_law: DelayLawKind = "known"
    delay_feature: DelayFeature = None
    instead: Instead = None

    def __attrs_post_init__(self) -> None:
        found = find_count_faults(self.max_delay, "max_delay")
        try:
            refuse_other_words(self.delay_law)
        except ModelError as error:
            found += error.findings
        try:
            _ = self.delay_of
        except ModelError as error:
            found += error.findings
        base: object = self.base  # a user's method may return anything
        if not isinstance(base, PartiallyKnownMDP):
            found.append(
                f"the problem's model() is {type(base).__name__}; expected a pkd.PartiallyKnownMDP"
            )
        if found:
            raise ModelError(found)

    @classmethod
    def constant(cls, problem: Any, delay: int) -> Delayed:
        """Every state comes `delay` steps late; the first one is seen at once.

        Delta = delay always, and the clip at D = delay keeps D_h there.
        """
        found = find_count_faults(delay, "delay")
        if found:
            raise ModelError(found)
        return cls(problem, {delay: 1.0}, delay)

    @cached_property
    def base(self) -> PartiallyKnownMDP:
        """The model that is delayed."""
        return self.problem.model()

    @cached_property
    def base_law(self) -> Law:
        """The truth about the base."""
        return self.problem.law()

    @cached_property
    def delay_of(self) -> DelayOf:
        """The law of Delta after the base's (x, y, a)."""
        return per_action(self.inter_arrival)

    @cached_property
    def facts(self) -> BaseFacts:
        """What the adapters must know of the base."""
        return survey(self.base, self.instead)

    @cached_property
    def longest(self) -> int:
        """W, the largest inter-arrival time."""
        return find_longest(self.base, self.facts, self.delay_of)

    @property
    def n_features(self) -> int | None:
        """|Z| in the logarithms of both adapters; None: what the adapters say."""
        return None

    def model(self) -> KnownDelay | UnknownDelay:
        """What a learner gets."""
        return self.known() if self.delay_law == "known" else self.unknown()

    def known(self) -> KnownDelay:
        """The adapter for a known law of the delay (Theorem 1)."""
        return self._known

    def unknown(self) -> UnknownDelay:
        """The adapter for an unknown law of the delay (Theorem 2): it gets W and D, not the law."""
        return self._unknown

    def law(self) -> DelayLaw:
        """The truth, for the simulator and the exact planner of either adapter."""
        return self._law

    @cached_property
    def _known(self) -> KnownDelay:
        return KnownDelay(
            self.base,
            self.delay_of,
            self.max_delay,
            instead=self.instead,
            n_features=self.n_features,
            facts=self.facts,
        )

    @cached_property
    def _unknown(self) -> UnknownDelay:
        return UnknownDelay(
            self.base,
            self.longest,
            self.max_delay,
            delay_feature=self.delay_feature,
            instead=self.instead,
            n_features=self.n_features,
            facts=self.facts,
        )

    @cached_property
    def _law(self) -> DelayLaw:
        later = [(Pending, self.known), (Queued, self.unknown)]
        return DelayLaw(self.base_law, self.delay_of, self.model(), later=later)

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What the base does when a queued action a meets its state (x, y)."""
        if self.instead is None or a in self.base.actions(x, y):
            return a
        return self.instead(x, y, a)

    def shown_as(self, x: Any, y: Any) -> Any:
        """The state of the base as the agent sees it: (x, y)."""
        return x, y

    def seen(self, state: Any) -> tuple[Any, Any]:
        """The base's (x, y) behind a state that the agent sees: the inverse of `shown_as`."""
        x, y = state
        return x, y


def refuse_other_words(delay_law: Any) -> None:
    """ModelError unless `delay_law` is one of the two words for what the learner knows."""
    if delay_law not in ("known", "unknown"):
        raise ModelError(f'delay_law is {delay_law!r}; expected "known" or "unknown"')


@attrs.frozen(eq=False)
class _Table:
    """A tabular MDP of which the learner knows a bound on the number of successors."""

    mdp: TabularMDP
    branching: int | None

    def model(self) -> PartiallyKnownMDP:
        return self.mdp.model(branching=self.branching)

    def law(self) -> Law:
        return self.mdp.law()


@attrs.frozen
class Sizes:
    """The sizes of the augmented MDP by the paper's definitions.

    Pairs are (known law, unknown law).
    """

    queues: int
    augmented_states: int
    y: tuple[int, int]
    z: tuple[int, int]


@attrs.frozen(eq=False, slots=False, init=False)
class DelayedMDP(Delayed):
    """A tabular MDP whose states are shown late: a `Delayed` whose states are numbers.

    `inter_arrival` is one law {Delta: probability} for all (s, a), or {(s, a): law}, or an array
    (S, A, W + 2) of Pr(Delta = -1), ..., Pr(Delta = W); it is kept as an array. `branching` is a
    known bound B on the support of P(s, a), default S. |Z| in the logarithms of both adapters is
    the W'SA of MVP-Delayed, W' = max(W, 1).

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> chain = two_state_chain(horizon=2)
    >>> delayed = pkd_delay.DelayedMDP(chain, {0: 0.5, 1: 0.5}, max_delay=1)
    >>> round(pkd_delay.plan(delayed).value, 12)  # 1, then 1 if s_2 is shown in time and else .9
    1.95
    """

    # (S, A, W + 2): Pr(Delta = -1), ..., Pr(Delta = W)
    inter_arrival: NDArray[np.float64] = attrs.field(kw_only=True)  # type: ignore[assignment]
    mdp: TabularMDP = attrs.field(kw_only=True)
    branching: int | None = attrs.field(kw_only=True)

    def __init__(
        self,
        mdp: TabularMDP,
        inter_arrival: GivenLaws,
        max_delay: int,
        branching: int | None = None,
        *,
        delay_law: DelayLawKind = "known",
    ) -> None:
        if not isinstance(mdp, TabularMDP):
            raise ModelError(
                f"mdp is {type(mdp).__name__}; expected a pkd.TabularMDP "
                "(for any other model use pkd_delay.Delayed)"
            )
        if mdp.n_tables > 1 or mdp.discount < 1 or not mdp.on_offer.all():
            raise ModelError(
                "mdp changes with the step, is discounted, or has actions that are not on offer; "
                "expected a plain table (for any other model use pkd_delay.Delayed)"
            )
        found = find_count_faults(max_delay, "max_delay")
        table, wrong = _make_table(inter_arrival, mdp.n_states, mdp.n_actions)
        found += wrong
        problem = _Table(mdp, branching)
        try:
            problem.model()
        except ModelError as error:
            found += error.findings
        if found:
            raise ModelError(found)
        table.flags.writeable = False
        self.__attrs_init__(
            problem=problem,
            inter_arrival=table,
            max_delay=max_delay,
            delay_law=delay_law,
            mdp=mdp,
            branching=branching,
        )

    @classmethod
    def constant(cls, mdp: TabularMDP, delay: int, branching: int | None = None) -> DelayedMDP:
        """Every state comes `delay` steps late; s_1 is seen at once.

        Delta = delay always, and the clip at D = delay keeps D_h there.

        >>> import pkd_delay
        >>> from pkd_delay.problems import two_state_chain
        >>> late = [pkd_delay.DelayedMDP.constant(two_state_chain(), d) for d in (0, 1, 2)]
        >>> [round(pkd_delay.plan(delayed).value, 12) for delayed in late]
        [10.0, 9.1, 8.46]
        """
        found = find_count_faults(delay, "delay")
        if found:
            raise ModelError(found)
        return cls(mdp, {delay: 1.0}, delay, branching)

    @cached_property
    def longest(self) -> int:
        """W, the largest inter-arrival time that has a place in the table."""
        return int(self.inter_arrival.shape[2]) - 2

    @property
    def sizes(self) -> Sizes:
        """The sizes of the augmented MDP by the paper's definitions."""
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
    def delay_of(self) -> DelayOf:
        rows = self.inter_arrival.tolist()
        laws = {law: InterArrival(law) for actions in rows for law in map(tuple, actions)}
        if len(laws) == 1:
            return OneLawForAll(next(iter(laws.values())))
        table = [[laws[tuple(row)] for row in actions] for actions in rows]
        return lambda x, y, a: table[x][a]

    @property
    def n_features(self) -> int:
        """W'SA with W' = max(W, 1): the |Z| in the logarithms of MVP-Delayed."""
        return max(self.longest, 1) * self.mdp.n_states * self.mdp.n_actions

    def shown_as(self, x: int, y: None) -> int:
        """The state of the base as the agent sees it: its number."""
        return x

    def seen(self, state: int) -> tuple[int, None]:
        return state, None


def _make_table(
    given: GivenLaws, n_states: int, n_actions: int
) -> tuple[NDArray[np.float64], list[str]]:
    """The law of every (s, a) as an array (S, A, W + 2), and what is wrong with it."""
    pairs = [(s, a) for s in range(n_states) for a in range(n_actions)]
    nothing = np.zeros((n_states, n_actions, 2))
    found: list[str] = []
    laws: dict[tuple[int, int], tuple[Any, str]]
    if isinstance(given, Mapping) and given and all(isinstance(key, tuple) for key in given):
        found = [
            f"inter_arrival has a law for {key!r}; "
            f"expected (s, a) with s < {n_states} and a < {n_actions}"
            for key in given
            if key not in set(pairs)
        ]
        by_pair: Mapping[Any, Any] = given
        laws = {(s, a): (by_pair.get((s, a)), f"inter_arrival[{s}, {a}]") for s, a in pairs}
    elif isinstance(given, Mapping | InterArrival) or np.ndim(given) == 1:
        laws = dict.fromkeys(pairs, (given, "inter_arrival"))
    else:
        array = np.asarray(given)
        if array.ndim != 3 or array.shape[:2] != nothing.shape[:2] or array.shape[2] < 2:
            return nothing, [
                (
                    f"inter_arrival has shape {array.shape}; expected (S, A, W + 2) = "
                    f"({n_states}, {n_actions}, at least 2): "
                    "Pr(Delta = -1), Pr(Delta = 0), ..., Pr(Delta = W)"
                )
            ]
        laws = {(s, a): (array[s, a].tolist(), f"inter_arrival[{s}, {a}]") for s, a in pairs}
    wrong = _find_wrong_rows(laws)
    if found or wrong:
        return nothing, found + wrong
    rows = {pair: InterArrival.of(law, where).probabilities for pair, (law, where) in laws.items()}
    table = np.zeros((n_states, n_actions, max(map(len, rows.values()))))
    for (s, a), row in rows.items():
        table[s, a, : len(row)] = row
    return table, []


def _find_wrong_rows(laws: Mapping[tuple[int, int], tuple[Any, str]]) -> list[str]:
    given = [(law, where) for law, where in laws.values() if not isinstance(law, InterArrival)]
    wrong = list(dict.fromkeys(text for law, where in given for text in find_faults(law, where)))
    if len(wrong) > SHOWN_FINDINGS:
        wrong[SHOWN_FINDINGS:] = [f"... and {len(wrong) - SHOWN_FINDINGS} more of this kind"]
    return wrong
