"""Agents that learn the base, plan for it without delay, and act on what is old.

They differ in what they make of the last shown state and the queue. `ModelBasedSimulation` acts at
the most likely current state, `QMDP` weighs all states by their probabilities, `IgnoreDelay` acts
at the last shown state.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pkd
from pkd import Agent, Episode, ModelError, PartiallyKnownMDP
from pkd.rules import as_rule, schedule_for
from pkd_delay.base import State
from pkd_delay.rivals.sight import Forecast, Sight
from pkd_delay.transforms.blind import Blind

if TYPE_CHECKING:
    from pkd.model import Law
    from pkd.planning.plan import Policy
    from pkd.rules import Rule
    from pkd.rules.schedule import Schedule
    from pkd_delay.rivals.sight import Ask

__all__ = ["QMDP", "BasePlanner", "IgnoreDelay", "ModelBasedSimulation"]

# Q of the base without delay: (h, state) -> {action: value}.
Values = dict[tuple[int, State], dict[Any, float]]


class BasePlanner(Agent):
    """Learns the law of the base, plans for the base without delay, and acts on what is old.

    The base is learned by a rule of optimism from all its moves, which are known at the end of an
    episode; forecasts use the observed frequencies. informed=True: it is told the true law, as an
    oracle is, and what is lost is lost by the way it acts. A subclass says how it acts.
    """

    name = ""

    def __init__(
        self,
        *,
        optimism: Rule | None = None,
        delta: float = 0.05,
        informed: bool = False,
        replan: Schedule = "doubling",
    ) -> None:
        self.optimism = as_rule(pkd.MVP.practical() if optimism is None else optimism)
        self.delta, self.informed = delta, bool(informed)
        self.replan = schedule_for(self.optimism.every_episode, replan).text
        self.knows_law = self.informed
        self._law: Law | None = None

    @property
    def label(self) -> str:
        return f"{self.name}, {'law known' if self.knows_law else self.optimism.name}"

    def inform(self, law: Law) -> None:
        self._law = law

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.model, self.sight = model, Sight(model)
        self._plan: pkd.Plan | None = None
        self._learner = None
        if not self.knows_law:
            self._learner = pkd.OptimisticLearner(
                self.sight.base,
                episodes,
                optimism=self.optimism,
                delta=self.delta,
                seed=seed,
                replan=self.replan,
            )
        elif self._law is None:
            raise ModelError(f"{type(self).__name__}.begin() without the law; call inform(law)")
        self._prepare()

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self._policy(h, x, y)

    def observe(self, episode: Episode) -> None:
        if self._learner is not None:
            self._learner.observe(self.sight.retell(episode))
            self._prepare()

    def policy(self) -> Policy:
        return self._policy

    def _prepare(self) -> None:
        """A new policy, if there is a new plan."""
        if self._learner is None:
            assert self._law is not None
            law: Ask = self.sight.find_base_law(self._law)
            plan = pkd.plan(self.sight.base, law)
        else:
            plan = self._learner.plan
            if plan is self._plan:
                return
            law = partial(_estimate, self.sight.base, self._learner.counts)
        self._plan = plan
        self._policy = self.make_policy(plan, law)

    @abstractmethod
    def make_policy(self, plan: pkd.Plan, law: Ask) -> Policy:
        """How a plan for the base is followed; law: of the base, for forecasts."""


class BeliefPlanner(BasePlanner):
    """Acts by the values of the base without delay, and by where the base may be now."""

    def make_policy(self, plan: pkd.Plan, law: Ask) -> Policy:
        values = {
            (h, state): plan.values(h, *state)
            for h in range(1, self.model.horizon + 1)
            for state in plan.states(h)
        }
        known: dict[tuple[int, State, tuple[Any, ...]], Any] = {}
        return partial(self._look_up, known, values, Forecast(self.sight, law))

    def _look_up(
        self,
        known: dict[tuple[int, State, tuple[Any, ...]], Any],
        values: Values,
        forecast: Forecast,
        h: int,
        x: Any,
        y: Any,
    ) -> Any:
        shown, queue = self.sight.read(x, y)
        key = (h, shown, queue)
        if key not in known:
            offer = tuple(self.model.actions(x, y))
            known[key] = self.choose(h, forecast.after(shown, queue), values, offer)
        return known[key]

    @abstractmethod
    def choose(
        self, h: int, belief: dict[State, float], values: Values, offer: tuple[Any, ...]
    ) -> Any:
        """One of the actions on offer, by the values of the base without delay.

        belief: the probability of each state that the base can be in now.
        """


def _estimate(
    base: PartiallyKnownMDP, counts: Mapping[Any, Mapping[Any, float]], z: Any
) -> dict[Any, float]:
    """Observed frequencies; uniform where nothing was seen."""
    row = counts.get(z, {})
    total = sum(row.values())
    if total > 0:
        return {x: n / total for x, n in row.items()}
    outcomes = list(base.outcomes(z))
    return dict.fromkeys(outcomes, 1 / len(outcomes))


def _find_best(values: Mapping[Any, float]) -> Any:
    """The first of the best actions."""
    return max(values, key=values.__getitem__)


class ModelBasedSimulation(BeliefPlanner):
    """Model based simulation (Walsh, Nouri, Li and Littman 2007, 2009).

    It plans without delay and acts as if the base were in its most likely state:

        a = argmax_a Q_h(s, a),   s = argmax_s b(s)

    with b the `Forecast`. It is optimal if the base is deterministic. The papers have a constant
    delay and a discount, and roll the most likely successor forward from action to action; here b
    is exact and its largest entry is taken, the plan has a horizon, and the base is learned by a
    rule of optimism. No guarantee.
    """

    name = "Model based simulation"

    def choose(
        self, h: int, belief: dict[State, float], values: Values, offer: tuple[Any, ...]
    ) -> Any:
        likely = max(belief, key=belief.__getitem__)
        if (h, likely) not in values:  # the base has ended; nothing matters any more
            return offer[0]
        return _find_best(values[h, likely])


class QMDP(BeliefPlanner):
    """QMDP over the belief (Littman, Cassandra and Kaelbling 1995).

        a = argmax_a sum_s b(s) Q_h(s, a)

    with b the `Forecast` and Q that of the base without delay: it acts as if all uncertainty were
    gone after this step. It is optimal without delay and if the base is deterministic. No
    guarantee.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> agent = QMDP(informed=True)
    >>> agent.inform(late.law())
    >>> agent.begin(late.known(), episodes=1, seed=0)
    >>> round(pkd.evaluate(late, agent.policy()), 10)
    9.1
    """

    name = "QMDP"

    def choose(
        self, h: int, belief: dict[State, float], values: Values, offer: tuple[Any, ...]
    ) -> Any:
        totals = dict.fromkeys(offer, 0.0)
        for state, p in belief.items():
            if (h, state) in values:  # otherwise the base has ended there
                for a in offer:
                    totals[a] += p * values[h, state][self.sight.do(*state, a)]
        return _find_best(totals)


class IgnoreDelay(BasePlanner):
    """Takes the last shown state for the current one: the plan of the base, followed late.

        a = argmax_a Q_h(last shown state, a)

    If the base cannot be in that state at step h, Q is that of the step at which it was there
    (`Blind`). No guarantee.
    """

    name = "Ignores the delay"

    def make_policy(self, plan: pkd.Plan, law: Ask) -> Policy:
        return Blind(self.model, plan)
