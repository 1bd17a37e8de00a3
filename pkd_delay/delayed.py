"""Delayed problems with their truth: Assumption 1 of the paper, and any other chain of delays.

A delayed problem is a base problem, the law of its delay and the largest delay.
`Delayed` delays any problem; `DelayedMDP` is the same for a `pkd.TabularMDP`, the paper's SDMDP
(M, P_delay, D_max). Both give the two adapters, `known()` and `unknown()`, and one `law()` for
them. Which of the two a learner gets is said by `delay_law` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

import pkd
from pkd import ModelError, PartiallyKnownMDP, TabularMDP
from pkd.expect import flag, function, if_given, one_of, require, show, whole
from pkd_delay.base import BaseFacts, Instead, survey
from pkd_delay.hindsight import DelayLaw
from pkd_delay.known import KnownDelay, Pending, find_form, find_largest
from pkd_delay.laws.kernel import (
    MOST_NUMBER,
    DelayKernel,
    DelayOf,
    OneLaw,
    OneOrMany,
    as_kernel,
    per_action,
)
from pkd_delay.unknown import DelayFeature, Queued, UnknownDelay, share_one_law

if TYPE_CHECKING:
    from pkd.model import Law

DelayLawKind = Literal["known", "unknown"]
GivenLaws = OneLaw | Mapping[tuple[int, int], OneLaw] | ArrayLike  # of a DelayedMDP
SHOWN_FINDINGS = 5  # bad rows of one table that are named; the rest is counted


@attrs.frozen(eq=False, slots=False)
class Delayed:
    """Any problem, delayed.

        Delta_h ~ P_delay(s_h, a_h) on {-1, ..., W},   D_h = clip(D_{h-1} + Delta_h; 0, max_delay)

    with D_0 = 0. s_{h+1} is shown at the beginning of step h + 1 + D_h, or at the end of the
    episode. `problem` is an object with .model() and .law(), a pair (model, law), or a registered
    name. `inter_arrival` is {Delta: probability}, or `Lags` or a `DelayChain` in its place, or a
    function (x, y, a) of the base that gives one of them. `max_delay` may be left out where the law
    has a largest delay. `delay_law` says whether a learner knows that law: its model is then the
    `KnownDelay` or the `UnknownDelay`.

    A law for all states and actions is learned as one law, and a function (x, y, a) as one law per
    (x, y, a); `shared` True or False says otherwise, and `delay_feature` says it in detail.
    `revealed`: whether the raw numbers are shown at the end of an episode. `delay_feature`,
    `revealed` and `instead` are those of the adapters.

    >>> from pkd_delay import plan
    >>> round(plan(Delayed.constant("two_state_chain", 1)).value, 10)
    9.1
    """

    problem: pkd.Problem = attrs.field(converter=pkd.as_problem)
    inter_arrival: OneOrMany | DelayOf
    max_delay: int = None  # type: ignore[assignment]  # None: the largest delay of the law
    delay_law: DelayLawKind = "known"
    delay_feature: DelayFeature = None
    instead: Instead = None
    shared: bool | None = None  # None: what the law says
    revealed: bool = True
    # What the command line tells its user about this problem.
    remarks: tuple[str, ...] = attrs.field(default=(), kw_only=True)

    def __attrs_post_init__(self) -> None:
        found = one_of("delay_law", self.delay_law, ("known", "unknown"))
        found += if_given(
            function, "delay_feature", self.delay_feature, "(x, y, a) -> what it says"
        )
        found += if_given(function, "instead", self.instead, "(x, y, a) -> action")
        found += if_given(flag, "shared", self.shared) + flag("revealed", self.revealed)
        try:
            largest = find_largest(self.delay_of, self.max_delay)
            object.__setattr__(self, "max_delay", largest)
        except ModelError as error:
            found += error.findings
        if self.max_delay is not None:
            found = [*whole("max_delay", self.max_delay), *found]
        base: object = self.base  # a user's method may return anything
        if not isinstance(base, PartiallyKnownMDP):
            found.append(
                f"the problem's model() is {type(base).__name__}; expected a pkd.PartiallyKnownMDP"
            )
        if found:
            raise ModelError(found)

    @classmethod
    def constant(cls, problem: Any, delay: int, *, instead: Instead = None) -> Delayed:
        """Every state comes `delay` steps late; the first one is seen at once.

        Delta = delay always, and the clip at D = delay keeps D_h there.
        """
        require(whole("delay", delay) or whole("delay", delay, 0, MOST_NUMBER))
        return cls(problem, {delay: 1.0}, delay, instead=instead)

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
        """The law of the delay after the base's (x, y, a)."""
        return per_action(self.inter_arrival)

    @property
    def is_shared(self) -> bool:
        """Whether an unknown law of the delay is learned as one law for all states and actions."""
        return self._is_one_law if self.shared is None else self.shared

    @property
    def _is_one_law(self) -> bool:
        return self.delay_of.one is not None

    @cached_property
    def facts(self) -> BaseFacts:
        """What the adapters must know of the base."""
        return survey(self.base, self.instead)

    @cached_property
    def longest(self) -> int:
        """W, the largest inter-arrival time, or the largest lag."""
        return find_form(self.base, self.facts, self.delay_of)[1]

    @cached_property
    def form(self) -> type[DelayKernel]:
        """The class of the law of the delay: how a number that is drawn makes the delay."""
        return find_form(self.base, self.facts, self.delay_of)[0]

    def describe_delay(self) -> str:
        """What the law of the delay means in lags, over the steps of one episode.

        >>> Delayed("two_state_chain", {-1: 0.2, 0: 0.5, 1: 0.3}, 2).describe_delay()
        '0, 1, 2 ticks late with .38, .337, .283; mean .903 (over 10 steps)'
        """
        if self.delay_of.one is not None:
            return self.delay_of.one.describe(self.max_delay, self.base.horizon)
        return f"up to {self.max_delay} ticks late, by a law that depends on state and action"

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

    @property
    def picture(self) -> Callable[[pkd.Plan], Any] | None:
        """The base's own picture of a policy under delay; None: it is drawn as any other."""
        draw = getattr(self.problem, "late_picture", None)
        return None if draw is None else partial(draw, self.model())

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
            delay_feature=self.delay_feature or (share_one_law if self.is_shared else None),
            form=self.form,
            revealed=self.revealed,
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
        """The base's (x, y) behind a state that the agent sees: the inverse of `shown_as`.

        The state of a `NoiseMDP` may be given without its x, which is always None.
        """
        pair = isinstance(state, tuple) and len(state) == 2
        if isinstance(self.base, pkd.NoiseMDP) and not (pair and state[0] is None):
            return None, state
        if not pair:
            raise ModelError(f"state is {state!r}; expected the (x, y) of the base")
        x, y = state
        return x, y


@attrs.frozen(eq=False, slots=False)
class _BoundedTable:
    """A tabular MDP of which the learner knows a bound on the number of successors."""

    mdp: TabularMDP
    branching: int | None

    def model(self) -> PartiallyKnownMDP:
        return self._made

    @cached_property
    def _made(self) -> PartiallyKnownMDP:
        return self.mdp.model(branching=self.branching)

    def law(self) -> Law:
        return self.mdp.law()


@attrs.frozen
class AugmentedSizes:
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

    `inter_arrival` is one law {Delta: probability} for all (s, a), or {(s, a): law} by numbers or
    names of the table, or an array (S, A, W + 2) of Pr(Delta = -1), ..., Pr(Delta = W); it is kept
    as an array. A law may be `Lags`
    or a `DelayChain`, too: then the array has its table for each (s, a). One law for all (s, a) is
    learned as one law where it is unknown; shared=False learns one per (s, a), as the paper does.
    `branching` is a known bound B on the support of P(s, a), default S. |Z| in the logarithms of
    both adapters is the W'SA of MVP-Delayed, W' = max(W, 1).

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain(horizon=2)
    >>> delayed = pkd_delay.DelayedMDP(chain, {0: 0.5, 1: 0.5}, max_delay=1)
    >>> round(pkd_delay.plan(delayed).value, 12)  # 1, then 1 if s_2 is shown in time and else .9
    1.95
    """

    # (S, A, W + 2): Pr(Delta = -1), ..., Pr(Delta = W); (S, A, W + 1) for lags
    inter_arrival: NDArray[np.float64] = attrs.field(kw_only=True)  # type: ignore[assignment]
    mdp: TabularMDP = attrs.field(kw_only=True)
    branching: int | None = attrs.field(kw_only=True)
    law_form: type[DelayKernel] = attrs.field(kw_only=True)
    one_law: bool = attrs.field(kw_only=True)  # whether one law was given for all (s, a)

    def __init__(
        self,
        mdp: TabularMDP,
        inter_arrival: GivenLaws,
        max_delay: int | None = None,
        branching: int | None = None,
        *,
        delay_law: DelayLawKind = "known",
        delay_feature: DelayFeature = None,
        shared: bool | None = None,
        revealed: bool = True,
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
        found = [] if max_delay is None else whole("max_delay", max_delay)
        problem = _BoundedTable(mdp, branching)
        try:
            given = _number_pairs(inter_arrival, mdp)
            table, form = _make_table(given, mdp.n_states, mdp.n_actions)
        except ModelError as error:
            found += error.findings
        try:
            problem.model()
        except ModelError as error:
            found += error.findings
        require(found)
        self.__attrs_init__(
            problem=problem,
            inter_arrival=table,
            max_delay=max_delay,  # type: ignore[arg-type]  # None: the largest of the law
            delay_law=delay_law,
            delay_feature=delay_feature,
            shared=shared,
            revealed=revealed,
            mdp=mdp,
            branching=branching,
            law_form=form,
            one_law=_is_one_law(inter_arrival),
        )

    @classmethod
    def constant(  # type: ignore[override]  # a table offers every action everywhere
        cls, mdp: TabularMDP, delay: int, branching: int | None = None
    ) -> DelayedMDP:
        """Every state comes `delay` steps late; s_1 is seen at once.

        Delta = delay always, and the clip at D = delay keeps D_h there.

        >>> import pkd_delay
        >>> from pkd_delay.models.tables import two_state_chain
        >>> late = [pkd_delay.DelayedMDP.constant(two_state_chain(), d) for d in (0, 1, 2)]
        >>> [round(pkd_delay.plan(delayed).value, 12) for delayed in late]
        [10.0, 9.1, 8.46]
        """
        require(whole("delay", delay) or whole("delay", delay, 0, MOST_NUMBER))
        return cls(mdp, {delay: 1.0}, delay, branching)

    @cached_property
    def longest(self) -> int:
        """W, the largest inter-arrival time (or lag) that has a place in the table."""
        return int(self.inter_arrival.shape[2]) + self.law_form.first - 1

    @property
    def form(self) -> type[DelayKernel]:
        """The class of the law of the delay."""
        return self.law_form

    @property
    def _is_one_law(self) -> bool:
        return self.one_law

    def per_pair(self) -> DelayedMDP:
        """The same problem with a law of the delay for each (s, a), as the paper learns it.

        A `delay_feature` that was given stays.
        """
        if not self.is_shared:
            return self
        return DelayedMDP(
            self.mdp,
            {(s, a): self.delay_of(s, None, a) for s, a in np.ndindex(self.mdp.rewards.shape)},
            self.max_delay,
            self.branching,
            delay_law=self.delay_law,
            delay_feature=self.delay_feature,
            revealed=self.revealed,
        )

    @property
    def sizes(self) -> AugmentedSizes:
        """The sizes of the augmented MDP by the paper's definitions."""
        S, A, H, W = self.mdp.n_states, self.mdp.n_actions, self.mdp.horizon, self.longest
        queues = sum(A**n for n in range(self.max_delay + 1))
        counters = W + 3  # -1, ..., W and tran
        return AugmentedSizes(
            queues=queues,
            augmented_states=S * queues * counters * (H + 1),
            y=(queues * counters * (H + 1), queues * (H + 1)),
            z=(S * (A + 1), S * A * counters * 3),
        )

    @cached_property
    def delay_of(self) -> DelayOf:
        make: Any = self.law_form
        if self.one_law:
            return per_action(make(_freeze(self.inter_arrival[0, 0].tolist())))
        rows = [[_freeze(law) for law in actions] for actions in self.inter_arrival.tolist()]
        laws = {law: make(law) for actions in rows for law in actions}
        if len(laws) == 1:
            return per_action(next(iter(laws.values())))
        table = [[laws[law] for law in actions] for actions in rows]
        return per_action(lambda x, y, a: table[x][a])

    @property
    def n_features(self) -> int:
        """W'SA with W' = max(W, 1): the |Z| in the logarithms of MVP-Delayed."""
        return max(self.longest, 1) * self.mdp.n_states * self.mdp.n_actions

    def shown_as(self, x: int, y: None) -> int:
        """The state of the base as the agent sees it: its number."""
        return x

    def seen(self, state: int) -> tuple[int, None]:
        return state, None


def _is_one_law(given: GivenLaws) -> bool:
    """Whether one law is given for all (s, a)."""
    if isinstance(given, Mapping):
        return not given or not all(isinstance(key, tuple) for key in given)
    try:
        return isinstance(given, DelayKernel) or np.ndim(given) == 1
    except ValueError:  # lists of different lengths
        return False


def _number_pairs(given: GivenLaws, mdp: TabularMDP) -> Any:
    """Laws {(s, a): law} with numbers in the place of the names of states and actions."""
    if not isinstance(given, Mapping):
        return given
    states: dict[Any, Any] = {name: i for i, name in enumerate(mdp.state_names or ())}
    actions: dict[Any, Any] = {name: i for i, name in enumerate(mdp.action_names or ())}
    return {
        (states.get(key[0], key[0]), actions.get(key[1], key[1]))
        if isinstance(key, tuple) and len(key) == 2
        else key: law
        for key, law in given.items()
    }


def _make_table(
    given: GivenLaws, n_states: int, n_actions: int
) -> tuple[NDArray[np.float64], type[DelayKernel]]:
    """The law of every (s, a) as an array (S, A, W + 2), and its form; ModelError for any fault."""
    if _is_one_law(given):
        one = as_kernel(given)  # type: ignore[arg-type]
        row = np.array(one.to_table())
        table = np.tile(row, (n_states, n_actions, *[1] * row.ndim))
        table.flags.writeable = False
        return table, type(one)
    pairs = list(np.ndindex(n_states, n_actions))
    laws: dict[tuple[int, int], DelayKernel] = {}
    if not isinstance(given, Mapping):
        try:
            array = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"inter_arrival is {show(given)}; expected {{Delta: probability}}, one for "
                "each (s, a), or an array"
            ) from None
        if array.ndim != 3 or array.shape[:2] != (n_states, n_actions) or array.shape[2] < 2:
            raise ModelError(
                f"inter_arrival has shape {array.shape}; expected (S, A, W + 2) = "
                f"({n_states}, {n_actions}, at least 2): "
                "Pr(Delta = -1), Pr(Delta = 0), ..., Pr(Delta = W)"
            )
        given = {pair: array[pair].tolist() for pair in pairs}
    by_pair: Any = given
    found = [
        f"inter_arrival has a law for {key!r}; "
        f"expected (s, a) with s < {n_states} and a < {n_actions}"
        for key in given
        if key not in set(pairs)
    ]
    for s, a in pairs:
        try:
            laws[s, a] = as_kernel(by_pair.get((s, a)), f"inter_arrival[{s}, {a}]")
        except ModelError as error:
            found += error.findings
    if found:
        more = len(found) - SHOWN_FINDINGS
        raise ModelError(found[:SHOWN_FINDINGS] + [f"... and {more} more"] * (more > 0))
    forms = sorted({law.form for law in laws.values()})
    sizes = {law.longest for law in laws.values()}
    form = type(laws[0, 0])
    if len(forms) > 1 or (not form.drawn and len(sizes) > 1):
        mixed = f"inter_arrival has laws of the forms {', '.join(forms)} and of different sizes"
        raise ModelError(f"{mixed}; expected one form of law for all (s, a), chains of one size")
    tables = {pair: np.array(law.to_table()) for pair, law in laws.items()}
    table = np.zeros((n_states, n_actions, *max(tables.values(), key=len).shape))
    for (s, a), law in tables.items():
        table[s, a, : len(law)] = law
    table.flags.writeable = False
    return table, form


def _freeze(table: list[Any]) -> tuple[Any, ...]:
    """Nested lists as nested tuples, which can be keys."""
    return tuple(_freeze(row) if isinstance(row, list) else row for row in table)
