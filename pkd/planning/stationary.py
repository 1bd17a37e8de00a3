"""Controllers that never stop: discounts, and the policy of a long horizon used for ever.

A stationary policy is a function of the state (x, y) alone. `Plan.stationary` takes it from the
beginning of a plan, where the end of the horizon matters least: in each state it does what the plan
does at the first step at which the state can occur. What that loses within the horizon is computed
exactly. For an endless run there are bounds: if V_n is the best return over n more steps, and C a
set of states that is never left and comes back to itself after T steps,

    min_C (V_{n+T} - V_n)  <=  T g(s)  <=  max_C (V_{n+T} - V_n)      for the best average reward g,

whatever the classes of the chain (the bounds of Odoni). With discount gamma and d = gamma^T,

    d/(1-d) min(0, min_C (V_{n+T} - V_n))  <=  V(s) - V_{n+T}(s)  <=  d/(1-d) max(0, max_C (...)).

The same inequalities with the returns of the stationary policy bound what it is worth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pkd.expect import require, show, whole
from pkd.explore.graph import DECIDE, STOP
from pkd.files.policies import ANY_STEP, Row, write_policy_csv, write_policy_json
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.planning.evaluation import evaluate
from pkd.planning.plan import Plan
from pkd.problem import Problem, as_problem
from pkd.tables.discounting import Discounted, find_discount_faults
from pkd.tables.tabular import TabularMDP

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine


@attrs.frozen
class Interval:
    """Two numbers between which a third one lies, up to rounding.

    >>> Interval(1.0, 1.5).width
    0.5
    """

    low: float
    high: float

    @property
    def width(self) -> float:
        return self.high - self.low


@attrs.frozen(eq=False, slots=False)
class DiscountedProblem:
    """A problem with a known chance of ending after each action."""

    problem: Problem
    discount: float

    def model(self) -> PartiallyKnownMDP:
        return self._model

    def law(self) -> Law:
        return self.problem.law()

    @cached_property
    def _model(self) -> PartiallyKnownMDP:
        return Discounted(self.problem.model(), self.discount)

    def picture(self, plan: Plan) -> Any:
        """The picture of the problem itself: decision states are the same."""
        draw = getattr(self.problem, "picture", None)
        if draw is None:
            raise ModelError("this problem has no picture of its own")
        return draw(plan)


def discounted(given: Any, discount: float) -> Any:
    """The same model or problem with a known chance 1 - discount of ending after each action.

    The expected return is then the discounted one: an action and what follows it before the next
    action is paid in full, and all that comes later is worth `discount` times as much. A learner
    knows the chance. given: a model gives a model, anything else a problem.

    >>> import pkd
    >>> one = pkd.TabularMDP([[[1.0]]], [[1.0]], horizon=3)
    >>> pkd.plan(pkd.discounted(one, 0.5)).value  # 1 + 1/2 + 1/4
    1.75
    """
    require(find_discount_faults(discount))
    if isinstance(given, TabularMDP):
        return attrs.evolve(given, discount=given.discount * discount)
    if isinstance(given, PartiallyKnownMDP):
        return Discounted(given, discount)
    return DiscountedProblem(as_problem(given), discount)


@attrs.frozen(eq=False, repr=False)
class Stationary:
    """A policy of the state alone, taken from the beginning of a plan, with what it loses.

    It is a function (h, x, y) -> action that does not look at h.

    >>> import pkd
    >>> rows = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(rows, [[0.0, 0.0], [1.0, 1.0]], horizon=50)
    >>> keep = pkd.plan(coin).stationary()
    >>> keep.action(0, None), keep.action(1, None), keep.loss  # toss until it lies well
    (0, 1, 0.0)
    >>> round(keep.gain.low, 9), round(keep.gain.high, 9)  # 1 per step, for ever
    (1.0, 1.0)
    """

    plan: Plan
    value: float  # its expected return over the horizon, exactly
    season: int  # T: the states that can occur come back after so many steps
    # The best average reward per step of an endless run, and that of this policy. None: episodes
    # end by themselves or are discounted, or the horizon is too short to see the states come back.
    gain: Interval | None
    policy_gain: Interval | None
    # With a discount: the best expected return of an endless run, and that of this policy.
    endless_value: Interval | None
    policy_endless_value: Interval | None
    _rules: Mapping[tuple[Any, Any], tuple[int, Any]] = attrs.field(repr=False)  # -> step, action

    def __repr__(self) -> str:
        return f"<Stationary: {len(self._rules)} states, loses {self.loss:.6g} of the horizon>"

    @property
    def loss(self) -> float:
        """What it loses over the horizon, exactly: the optimum less its expected return."""
        return max(self.plan.value - self.value, 0.0)

    @property
    def endless_loss(self) -> float | None:
        """At most so much is lost for ever: per step, or of the discounted return."""
        for best, mine in (
            (self.gain, self.policy_gain),
            (self.endless_value, self.policy_endless_value),
        ):
            if best is not None and mine is not None:
                return max(best.high - mine.low, 0.0)
        return None

    def __call__(self, h: int, x: Any, y: Any) -> Any:
        return self.action(x, y)

    def action(self, x: Any, y: Any) -> Any:
        """What to do in (x, y), at any step."""
        if (x, y) not in self._rules:
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur within the horizon")
        return self._rules[x, y][1]

    def rows(self, values: bool = True) -> Iterator[Row]:
        """The policy state by state, with the values at the step that it was taken from."""
        for (x, y), (h, action) in sorted(self._rules.items(), key=lambda rule: rule[1][0]):
            found = self.plan.values(h, x, y) if values else {}
            yield Row(ANY_STEP, {"x": x, "y": y}, action, found)

    def to_csv(self, path: str | Path, *, values: bool = False) -> int:
        """Writes one line per state, like `Plan.to_csv`, without a step."""
        return write_policy_csv(path, self.rows(values), self.plan.label)

    def to_json(self, path: str | Path, *, values: bool = False) -> int:
        """Writes one row per state, like `Plan.to_json`, without a step."""
        said = {"value": self.value, "value_is": "its exact return over the horizon"}
        return write_policy_json(path, self.rows(values), self.plan.describe() | said)


def make_stationary(plan: Plan, season: int | None = None) -> Stationary:
    """The stationary policy of a plan that knows its law."""
    if plan.truth is None:
        raise ModelError(
            "stationary() needs the law that the plan was made for; this plan was made from counts "
            "or read from a file"
        )
    rules: dict[tuple[Any, Any], tuple[int, Any]] = {}
    for h in range(1, plan.compiled.horizon + 1):
        for x, y in plan.states(h):
            if (x, y) not in rules:
                rules[x, y] = h, plan.action(h, x, y)
    value = evaluate(plan.compiled, plan.truth.law, lambda h, x, y: rules[x, y][1])
    engine = plan.compiled.explicit
    bounds = EndlessBounds(engine, engine.truth(plan.truth.law).belief, season)
    best, mine = bounds.find(None), bounds.find(lambda h, x, y: rules[x, y][1])
    ends = bounds.discount == 1
    return Stationary(
        plan,
        float(value),
        bounds.season,
        best if ends else None,
        mine if ends else None,
        None if ends else best,
        None if ends else mine,
        rules,
    )


class EndlessBounds:
    """Bounds for an endless run, from the values of two steps that are a season apart."""

    def __init__(self, engine: NodeEngine, belief: Any, season: int | None) -> None:
        self.engine, self.belief = engine, belief
        members, model = engine.graph.members, engine.model
        self.discount = model.discount if isinstance(model, Discounted) else 1.0
        period = members.period
        self.season = period if season is None else season
        if whole("season", self.season, 1) or self.season % period:
            raise ModelError(
                f"season is {show(season)}; expected a multiple of {period}, after which the "
                "states that can occur come back"
            )
        # The first layer that comes back; if the walk saw no repetition, there is none.
        self.layer = len(members.distinct) - period
        kind = engine.graph.layers.kind
        stops = any(kind[node] == STOP for layer in members.distinct for node in layer)
        self.closed = (
            len(members.distinct) < engine.horizon
            and self.layer + self.season < engine.horizon
            and (self.discount < 1 or not stops)
        )

    def find_gain(self, low: Any, high: Any) -> Interval | None:
        """Bounds on the best average reward per step for all laws between two beliefs.

        An operator L below that of the law and of some policy, and H above those of all policies:
        L^T V >= V + m T and H^T W <= W + M T on states that are never left give m <= g <= M.
        """
        least, most = (self._find_differences(one, None) for one in (low, high))
        if least is None or most is None:
            return None
        return Interval(float(least.min()) / self.season, float(most.max()) / self.season)

    def _find_differences(self, belief: Any, act: Any) -> Any:
        """V of a layer less V a season later, in its decision states; None: there are none."""
        engine = self.engine
        kind = engine.graph.layers.kind
        nodes = [n for n in engine.graph.members[self.layer] if kind[n] == DECIDE]
        if not self.closed or not nodes:
            return None
        policy = engine.policy() if act is None else engine.tabulate(act)
        now, later = (
            engine.find_values(belief, policy, t, follow=act is not None)[nodes]
            for t in (self.layer, self.layer + self.season)
        )
        return now - later

    def find(self, act: Any) -> Interval | None:
        """Bounds for a policy, or with None for the best one; None: there are none."""
        difference = self._find_differences(self.belief, act)
        if difference is None:
            return None
        low, high = float(difference.min()), float(difference.max())
        if self.discount == 1:
            return Interval(low / self.season, high / self.season)
        policy = self.engine.policy() if act is None else self.engine.tabulate(act)
        value, _ = self.engine.sweep(self.belief, policy, follow=act is not None)
        d = self.discount**self.season
        rest = self.discount**self.layer * d / (1 - d)
        return Interval(value + rest * min(low, 0.0), value + rest * max(high, 0.0))
