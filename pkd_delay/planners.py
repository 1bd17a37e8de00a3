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

import attrs

import pkd
from pkd import Agent, Episode, ModelError, PartiallyKnownMDP
from pkd_delay.base import State
from pkd_delay.sight import Forecast, Sight

if TYPE_CHECKING:
    from pkd.model import Law
    from pkd.planning import Policy
    from pkd.rule_words import Rule
    from pkd_delay.sight import Ask

__all__ = ["QMDP", "BasePlanner", "IgnoreDelay", "ModelBasedSimulation", "find_step"]

# Q of the base without delay: (h, state) -> {action: value}.
Values = dict[tuple[int, State], dict[Any, float]]


@attrs.frozen
class Situation:
    """What an agent knows when it chooses."""

    values: Values  # of the base without delay
    forecast: Forecast
    offer: tuple[Any, ...]  # the actions that may be chosen
    h: int
    shown: State  # the last one
    queue: tuple[Any, ...]  # the actions chosen since

    @property
    def belief(self) -> dict[State, float]:
        """The probability of each state that the base can be in now."""
        return self.forecast.after(self.shown, self.queue)


class BasePlanner(Agent):
    """Learns the law of the base, plans for the base without delay, and acts on what is old.

    The base is learned by a rule of optimism from all its moves, which are known at the end of an
    episode; forecasts use the observed frequencies. informed=True: it is told the true law, as an
    oracle is, and what is lost is lost by the way it acts. A subclass says how it acts.
    """

    name = ""

    def __init__(
        self, *, optimism: Rule | None = None, delta: float = 0.05, informed: bool = False
    ) -> None:
        self.optimism = pkd.as_rule(pkd.MVP.practical() if optimism is None else optimism)
        self.delta, self.informed = delta, bool(informed)
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
                self.sight.base, episodes, optimism=self.optimism, delta=self.delta, seed=seed
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
        values = {
            (h, state): plan.values(h, *state)
            for h in range(1, self.model.horizon + 1)
            for state in plan.states(h)
        }
        known: dict[tuple[int, State, tuple[Any, ...]], Any] = {}
        self._policy = partial(self._look_up, known, values, Forecast(self.sight, law))

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
            known[key] = self.choose(Situation(values, forecast, offer, *key))
        return known[key]

    @abstractmethod
    def choose(self, at: Situation) -> Any:
        """One of the actions on offer, by the values of the base without delay."""


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


class ModelBasedSimulation(BasePlanner):
    """Model based simulation (Walsh, Nouri, Li and Littman 2007, 2009).

    It plans without delay and acts as if the base were in its most likely state:

        a = argmax_a Q_h(s, a),   s = argmax_s b(s)

    with b the `Forecast`. It is optimal if the base is deterministic. The papers have a constant
    delay and a discount, and roll the most likely successor forward from action to action; here b
    is exact and its largest entry is taken, the plan has a horizon, and the base is learned by a
    rule of optimism. No guarantee.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> agent = ModelBasedSimulation(informed=True)
    >>> agent.inform(late.law())
    >>> agent.begin(late.known(), episodes=1, seed=0)
    >>> round(pkd.evaluate(late, agent.policy()), 10), round(pkd.plan(late).value, 10)
    (9.1, 9.1)
    """

    name = "Model based simulation"

    def choose(self, at: Situation) -> Any:
        belief = at.belief
        likely = max(belief, key=belief.__getitem__)
        if (at.h, likely) not in at.values:  # the base has ended; nothing matters any more
            return at.offer[0]
        return _find_best(at.values[at.h, likely])


class QMDP(BasePlanner):
    """QMDP over the belief (Littman, Cassandra and Kaelbling 1995).

        a = argmax_a sum_s b(s) Q_h(s, a)

    with b the `Forecast` and Q that of the base without delay: it acts as if all uncertainty were
    gone after this step. It is optimal without delay and if the base is deterministic. No
    guarantee.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> agent = QMDP(informed=True)
    >>> agent.inform(late.law())
    >>> agent.begin(late.known(), episodes=1, seed=0)
    >>> round(pkd.evaluate(late, agent.policy()), 10)
    9.1
    """

    name = "QMDP"

    def choose(self, at: Situation) -> Any:
        totals = dict.fromkeys(at.offer, 0.0)
        for state, p in at.belief.items():
            if (at.h, state) in at.values:  # otherwise the base has ended there
                for a in at.offer:
                    totals[a] += p * at.values[at.h, state][self.sight.do(*state, a)]
        return _find_best(totals)


class IgnoreDelay(BasePlanner):
    """Takes the last shown state for the current one: the plan of the base, followed late.

        a = argmax_a Q_h(last shown state, a)

    If the base cannot be in that state at step h, Q is that of the step at which it was there. No
    guarantee.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(stay=0.1), 1)
    >>> agent = IgnoreDelay(informed=True)
    >>> agent.inform(late.law())
    >>> agent.begin(late.known(), episodes=1, seed=0)
    >>> round(pkd.evaluate(late, agent.policy()), 10)  # a state that moves on with .9
    1.9
    """

    name = "Ignores the delay"

    def choose(self, at: Situation) -> Any:
        h = find_step(at.values, at.h, at.shown, at.queue)
        return _find_best(at.values[h, at.shown])


def find_step(known: Mapping[Any, Any], h: int, shown: State, queue: tuple[Any, ...]) -> int:
    """The step for which a state is looked up: now, or when the base was there."""
    return h if (h, shown) in known else h - len(queue)
