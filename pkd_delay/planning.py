"""`plan`, `learn` and `optimistic_plan` in the words of delayed MDPs.

MVP-Delayed (the paper's Algorithm 4) is `pkd.learn` on `KnownDelay` or `UnknownDelay`; nothing is
added here but names. `DelayedPlan` is a `pkd.Plan` asked with the paper's (h, last shown state,
queue, waited). Two plans are made elsewhere: of a small table that is always D steps late, in
`pkd_delay.constant`, and bounds (`gap`), in `pkd_delay.long`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

import pkd
from pkd import ModelError, files
from pkd.expect import instance, key, one_of, require, show, whole
from pkd.explore import TooLargeError
from pkd_delay.augmented import SHOWN, Augmented
from pkd_delay.constant import ConstantPlan, plan_constant
from pkd_delay.delayed import Delayed, DelayedMDP, DelayLawKind
from pkd_delay.long.learning import LongRun, learn_long
from pkd_delay.long.plan import BoundedPlan, plan_long
from pkd_delay.policies import LatePlan
from pkd_delay.unknown import Move

if TYPE_CHECKING:
    from pkd.planning.stationary import Stationary
    from pkd.rules import Rule

BOUNDS = "or give gap=0.01 for bounds on the optimum and a policy between them"
Counts = dict[Any, dict[Any, float]]  # {z: {x': n}}
T = TypeVar("T")
SHOWN_VALUES = 5  # of what an error says was expected


@attrs.frozen(eq=False, repr=False, slots=False)
class DelayedPlan(LatePlan):
    """The best policy for every step of a delayed problem, or an optimistic one.

    A state of a `DelayedMDP` is a number; of any other `Delayed` it is the base's (x, y). `core` is
    the same plan in the core's words, (h, x, y): it saves, plots and finds stationary policies.

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.models.tables import two_state_chain
    >>> best = plan(DelayedMDP.constant(two_state_chain(horizon=3), 1))
    >>> best.action(2, state=0, queue=(0,), waited=1), round(best.evaluate(), 10)
    (0, 2.8)
    """

    delayed: Delayed
    _model: Augmented | None = None
    _core: pkd.Plan | None = None
    _constant: ConstantPlan | None = None  # has the actions and the value of a small table

    @property
    def model(self) -> Augmented:
        """The augmented MDP that the plan is for."""
        return self.delayed.known() if self._model is None else self._model

    @cached_property
    def core(self) -> pkd.Plan:
        """The same plan in the words of the core."""
        return pkd.plan(self.model, self.delayed.law()) if self._core is None else self._core

    def __repr__(self) -> str:
        return (
            f"<DelayedPlan: value {self.value:.6g}, horizon {self.model.horizon}, "
            f"delays up to {self.model.max_delay}>"
        )

    def _repr_html_(self) -> str:
        """Value, policy and picture, for a notebook."""
        return self.core._repr_html_()

    @property
    def value(self) -> float:
        """The expected return; the upper value for an optimistic plan."""
        return float(self.core.value) if self._constant is None else self._constant.value

    def action(self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        if self._constant is not None and isinstance(queue, Iterable):
            queue = tuple(queue)
            found = self._constant.find(h, state, queue, waited)
            if found is not None:
                return found
        return self._ask(self.core.action, h, state, queue, waited)

    def values(
        self, h: int, state: Any, queue: Iterable[Any] = (), waited: int = 0
    ) -> dict[Any, float]:
        """Q of every action there."""
        return dict(self._ask(self.core.values, h, state, queue, waited))

    def _ask(
        self, ask: Callable[..., T], h: int, state: Any, queue: Iterable[Any], waited: int
    ) -> T:
        """What the plan of the augmented model says; errors speak of state, queue and waited."""
        done = tuple(queue) if isinstance(queue, Iterable) else queue
        place = self._place(state, done, waited)
        try:
            return ask(h, *place)
        except ModelError:
            require(key("state", state), whole("waited", waited))
            met = [self.model.read(*one) for one in self.core.states(h)]
            raise ModelError(self._say_where(met, h, state, done, waited)) from None

    def _place(self, state: Any, queue: Iterable[Any], waited: int) -> tuple[Any, Any]:
        require(instance("queue", queue, Iterable, "the actions since then, oldest first"))
        return self.model.place(*self.delayed.seen(state), tuple(queue), waited)

    def _say_where(
        self, met: list[Any], h: int, state: Any, queue: tuple[Any, ...], waited: int
    ) -> str:
        """What is wrong with a place that is none of the decisions (x, y, queue, waited)."""
        of_state = [(tuple(q), w) for x, y, q, w in met if (x, y) == self.delayed.seen(state)]
        lengths = sorted({len(q) for q, _ in of_state})
        waits = sorted({w for q, w in of_state if len(q) == len(queue)})
        here = f"state {state!r} with a queue of {len(queue)}"
        if not of_state:
            shown = list(dict.fromkeys(self.delayed.shown_as(x, y) for x, y, _, _ in met))
            said = f"cannot be the last one shown at step {h}; expected {_either(shown)}"
            return f"state {state!r} {said}"
        if not waits:
            return f"{here} cannot occur at step {h}; expected a queue of {_either(lengths)}"
        if waited not in waits:
            said = f"cannot have waited {waited} at step {h}; expected waited {_either(waits)}"
            return f"{here} {said}"
        actions = list(self.model.facts.actions)
        return f"{here}, {queue!r}, cannot occur at step {h}; expected actions of {actions!r}"

    def evaluate(self) -> pkd.Evaluation:
        """The exact expected return of this policy under the truth."""
        return pkd.evaluate(self.model, self.delayed.law(), self.core)

    def rows(self, step: int | None = None) -> Iterator[files.Row]:
        """The policy of one step or of all, with the value of every action; short queues first."""
        actions = {a: i for i, a in enumerate(self.model.facts.actions)}
        states = {state: i for i, state in enumerate(self.model.facts.decisions)}

        def order(state: tuple[Any, Any]) -> tuple[int, list[int], int, int]:
            x, y, queue, waited = self.model.read(*state)
            entries = [actions[a] for a in queue or ()]
            return len(entries), entries, waited, states[x, y]

        for h in range(1, self.model.horizon + 1) if step is None else (step,):
            for x, y in sorted(self.core.states(h), key=order):
                action, values = self.core.action(h, x, y), self.core.values(h, x, y)
                yield self._say_place(files.Row(h, {"x": x, "y": y}, action, values))

    def _say_place(self, row: files.Row) -> files.Row:
        """A row of the core in the words of a delayed problem."""
        base_x, base_y, queue, waited = self.model.read(row.state["x"], row.state["y"])
        shown = self.delayed.shown_as(base_x, base_y)
        return row._replace(state={"state": shown, "queue": tuple(queue or ()), "waited": waited})

    def describe(self) -> dict[str, Any]:
        return self.core.describe()

    def list_rows(self, *, values: bool = False, every_state: bool = False) -> Iterator[files.Row]:
        return map(self._say_place, self.core.list_rows(values, every_state))

    def stationary(self) -> DelayedStationary:
        """The policy of the beginning of this plan, for a controller that never stops.

        It depends on the state that was last shown, the queue and the wait alone.

        >>> from pkd_delay import DelayedMDP
        >>> from pkd_delay.models.tables import two_state_chain
        >>> keep = plan(DelayedMDP.constant(two_state_chain(horizon=30), 1)).stationary()
        >>> keep.action(0, queue=(0,), waited=1), keep.core.loss
        (0, 0.0)
        """
        return DelayedStationary(self, self.core.stationary())

    def save(self, path: str | Path) -> None:
        """Writes the plan to an .npz file of plain arrays, for `pkd.Plan.load`."""
        self.core.save(path)


def _either(values: list[Any]) -> str:
    """One of some values, in words; of many, the first ones."""
    words = [repr(value) for value in values[:SHOWN_VALUES]]
    return " or ".join(words) + (", ..." if len(values) > SHOWN_VALUES else "")


@attrs.frozen(eq=False)
class DelayedStationary:
    """A stationary policy of a delayed problem; `core` says what it loses, also for ever."""

    plan: DelayedPlan
    core: Stationary

    def action(self, state: Any, queue: Iterable[Any] = (), waited: int = 0) -> Any:
        """What to do: `state` was shown last, `waited` steps ago, and `queue` was done since."""
        return self.core.action(*self.plan._place(state, queue, waited))

    def to_json(self, path: str | Path, *, values: bool = False) -> int:
        """Writes one row per state, without a step: `.action(h, state, queue, waited)`."""
        said = {"value": self.core.value, "value_is": "its exact return over the horizon"}
        rows = map(self.plan._say_state, map(self.plan._say_place, self.core.rows(values)))
        return files.write_policy_json(path, rows, self.plan._describe() | said)

    def to_csv(self, path: str | Path, *, values: bool = False) -> int:
        """The same with labels."""
        rows = map(self.plan._say_place, self.core.rows(values))
        spread = (row._replace(state=self.plan._spread(row.state)) for row in rows)
        return files.write_policy_csv(path, spread, self.plan._label)


@overload
def plan(
    delayed: Delayed,
    *,
    gap: float,
    seconds: float = ...,
    memory: float = ...,
    delta: float = ...,
) -> BoundedPlan: ...
@overload
def plan(delayed: Delayed) -> DelayedPlan: ...
@overload
def plan(delayed: pkd.Problem) -> DelayedPlan | pkd.Plan: ...
def plan(
    delayed: pkd.Problem, *, gap: float | None = None, **limits: Any
) -> DelayedPlan | BoundedPlan | pkd.Plan:
    """The optimal plan: the best over all policies that may use everything they have seen.

    delayed: a `DelayedMDP`, another `Delayed`, or a name of one.
    It is made with the true laws, whatever a learner knows of them. A problem whose actions alone
    are late has a plain `pkd.Plan`. Where the exact plan does not fit, gap=0.01 gives bounds on
    the optimum that are at most one per cent apart, if `seconds` and `memory` allow, and a policy
    whose value is at least the lower one: `BoundedPlan`. `limits` are those of
    `pkd_delay.long.plan.plan_long`.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> best = pkd_delay.plan(pkd_delay.DelayedMDP.constant(two_state_chain(), 1))
    >>> best.action(1, 0), {a: round(q, 12) for a, q in best.values(1, 0).items()}
    (0, {0: 9.1, 1: 8.1})
    >>> chain = two_state_chain(horizon=40)
    >>> found = pkd_delay.plan(pkd_delay.DelayedMDP.constant(chain, 30), gap=1e-7)
    >>> round(found.low, 4), round(found.high, 4)
    (22.5031, 22.5031)
    """
    if gap is not None:
        if not isinstance(delayed, Delayed):
            raise ModelError(
                "gap: bounds are for late observations; leave it out for an exact plan"
            )
        return plan_long(delayed, gap, **limits)
    if limits:
        raise ModelError(f"{', '.join(limits)} without gap; expected gap=0.01 or the like")
    if not isinstance(delayed, Delayed):
        return pkd.plan(delayed)
    if (constant := plan_constant(delayed)) is not None:
        return DelayedPlan(delayed, constant=constant)
    model = delayed.known()
    try:
        return DelayedPlan(delayed, model, pkd.plan(model, delayed.law()))
    except TooLargeError as error:
        raise TooLargeError(f"{error}, {BOUNDS}") from None


@overload
def learn(
    delayed: Delayed,
    episodes: int,
    *,
    gap: float,
    seconds: float = ...,
    memory: float | None = ...,
    delta: float = ...,
    seed: int = ...,
    progress: bool | None = ...,
) -> LongRun: ...
@overload
def learn(
    delayed: pkd.Problem,
    episodes: int | None = None,
    *,
    delay_law: DelayLawKind | None = None,
    **options: Any,
) -> pkd.Run: ...
def learn(
    delayed: pkd.Problem,
    episodes: int | None = None,
    *,
    delay_law: DelayLawKind | None = None,
    gap: float | None = None,
    **options: Any,
) -> pkd.Run | LongRun:
    """A run of the optimistic algorithm; `options` are those of `pkd.learn`.

    delayed: a `DelayedMDP` or another `Delayed`. With `optimism=pkd.MVP()` it is MVP-Delayed as
    published. episodes: of the run. delay_law: whether the learner knows the law of the delay;
    None: what the problem says. Under a long delay, gap=0.05 plans between bounds:
    `pkd_delay.long.learning.learn_long`.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(), 1)
    >>> run = pkd_delay.learn(late, episodes=20, delay_law="unknown")
    >>> round(run.optimal_value, 12), float(run.upper_values[0]), run.violations
    (9.1, 10.0, 0)
    """
    if gap is not None:
        if not isinstance(delayed, Delayed) or delay_law not in (None, delayed.delay_law):
            raise ModelError("gap: for late observations and the delay law of the problem only")
        return learn_long(delayed, episodes, gap=gap, **options)  # type: ignore[arg-type]
    if not isinstance(delayed, Delayed):
        problem = pkd.as_problem(delayed)
        if delay_law is not None:
            raise ModelError(
                f"delay_law is {delay_law!r}, but no observation of the problem is late"
            )
        return pkd.learn(problem, episodes, **options)
    told = delayed.delay_law if delay_law is None else delay_law
    require(one_of("delay_law", told, ("known", "unknown")))
    model = delayed.known() if told == "known" else delayed.unknown()
    return pkd.learn(model, delayed.law(), episodes, **options)


def optimistic_plan(
    delayed: DelayedMDP,
    transition_counts: ArrayLike,
    delay_counts: ArrayLike | None = None,
    *,
    episodes: int,
    delta: float = 0.05,
    optimism: Rule | None = None,
) -> DelayedPlan:
    """The plan that MVP-Delayed makes from given counts; `.value` is its upper value.

    delayed: the problem. optimism: a rule, or its words. delta: the probability with which the
    value may not be an upper one. transition_counts: (S, A, S) of s'. delay_counts: (S, A, W + 2)
    of Delta = -1..W for an unknown law of the delay, None for a known one. As in the paper, each
    (s, a) has a law of its own. episodes: of the whole run.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain()
    >>> counts, late = 10 * chain.transitions, pkd_delay.DelayedMDP.constant(chain, 1)
    >>> for rule in (pkd.MVP(), pkd.Greedy()):
    ...     plan = pkd_delay.optimistic_plan(late, counts, episodes=20, optimism=rule)
    ...     print(round(plan.value, 12))
    10.0
    9.1
    """
    require(instance("delayed", delayed, DelayedMDP, "a pkd_delay.DelayedMDP"))
    if delay_counts is None and delayed.delay_law == "unknown":
        raise ModelError(
            'delay_counts is None, but delay_law of the problem is "unknown"; '
            "expected counts of Delta, or a problem with a known law"
        )
    delayed = delayed.per_pair()
    model = delayed.known() if delay_counts is None else delayed.unknown()
    counts = name_counts(delayed, transition_counts, delay_counts)
    rule = pkd.MVP() if optimism is None else optimism
    core = pkd.optimistic_plan(model, counts, episodes=episodes, delta=delta, optimism=rule)
    return DelayedPlan(delayed, model, core)


def name_counts(
    delayed: DelayedMDP, transition_counts: ArrayLike, delay_counts: ArrayLike | None = None
) -> Counts:
    """Count arrays as the core wants them, without what cannot be met within the horizon.

    N(s, a, j) = number of Delta >= j,   estimated hazard (N(j) - N(j+1)) / N(j),
    empty queue: (N(-1) - N(1)) / N(-1)
    """
    S, A = delayed.mdp.n_states, delayed.mdp.n_actions
    moves = _check_counts("transition_counts", transition_counts, (S, A, S))
    acting = dict.fromkeys(x for x, _ in delayed.facts.decisions)
    if delay_counts is None:
        return {(s, a): dict(enumerate(moves[s, a].tolist())) for s in acting for a in range(A)}
    wide = delayed.longest + 1 - delayed.form.first
    deltas = _check_counts("delay_counts", delay_counts, (S, A, wide))
    model = delayed.unknown()
    counts: Counts = {}
    for s in acting:
        for a in range(A):
            row = {(t, SHOWN): n for t, n in enumerate(moves[s, a].tolist())}
            counts[Move((s, a), model.depth)] = row
            key = model.delay_key(s, None, a)
            for delta, n in enumerate(deltas[s, a].tolist(), start=delayed.form.first):
                for z, outcome in model.teach(key, delta):
                    row = counts.setdefault(z, {})
                    row[outcome] = row.get(outcome, 0.0) + n
    return counts


def _check_counts(name: str, counts: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if isinstance(counts, Mapping):
        raise ModelError(
            f"{name} is a mapping; expected an array of shape {shape} "
            "(pkd.optimistic_plan takes {z: {x': n}})"
        )
    try:
        array = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.zeros(())
    if array.shape != shape:
        if array.ndim:
            raise ModelError(f"{name} has shape {array.shape}; expected {shape}")
        raise ModelError(f"{name} is {show(counts)}; expected an array of shape {shape}")
    bad = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise ModelError(
            [
                f"{name}{[int(i) for i in at]} is {array[tuple(at)]}; expected a count >= 0"
                for at in bad[:5]
            ]
        )
    return array
