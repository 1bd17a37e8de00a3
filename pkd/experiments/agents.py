"""Agents for any model that stand beside the optimistic algorithm: its rivals and its landmarks.

`RandomPlay` is the floor and `Oracle` the ceiling of every comparison. `PerState` runs a rule of
optimism on the model with phi_Z forgotten, so that nothing learned in one state helps in another:
MVP, UCBVI and their like as they were published, on the whole state (x, y). The Q-learners are in
`q_learning` and `optimistic_q`. Rules of optimism on the model itself, `Greedy` and
`PosteriorSampling` among them, need no agent here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pkd.experiments.agent import Agent
from pkd.experiments.options import check_options, make_rng
from pkd.learner import OptimisticLearner
from pkd.model import Episode, Known, Law, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.optimism import MVP, Guarantee
from pkd.planning import Plan, Policy, plan
from pkd.rule_words import Rule, as_rule
from pkd.schedule import Schedule, read_schedule

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["CountsPerState", "Oracle", "Own", "PerState", "RandomPlay"]


class RandomPlay(Agent):
    """Every action on offer with the same probability. It learns nothing.

    >>> import pkd
    >>> toss, stay = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
    >>> rows, pay = [[toss, stay[0]], [toss, stay[1]]], [[0.0, 0.0], [1.0, 1.0]]
    >>> coin, agent = pkd.TabularMDP(rows, pay, horizon=3), pkd.RandomPlay()
    >>> agent.begin(coin.model(), episodes=1, seed=0)
    >>> pkd.evaluate(coin, agent.policy())
    0.625
    """

    @property
    def label(self) -> str:
        return "Random play"

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.model = model
        self._rng = make_rng(seed)
        self._policy: Policy = self._weigh

    def act(self, h: int, x: Any, y: Any) -> Any:
        offer = tuple(self.model.actions(x, y))
        return offer[int(self._rng.random() * len(offer))]

    def observe(self, episode: Episode) -> None:
        pass

    def policy(self) -> Policy:
        return self._policy

    def _weigh(self, h: int, x: Any, y: Any) -> dict[Any, float]:
        offer = tuple(self.model.actions(x, y))
        return dict.fromkeys(offer, 1 / len(offer))


class Oracle(Agent):
    """Knows the true law and plays the optimal plan: its regret is 0.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> agent = pkd.Oracle()
    >>> agent.inform(coin.law())
    >>> agent.begin(coin.model(), episodes=1, seed=0)
    >>> agent.policy().value
    1.25
    """

    knows_law = True
    _law: Law | None = None

    @property
    def label(self) -> str:
        return "Oracle (knows the law)"

    def inform(self, law: Law) -> None:
        self._law = law

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        if self._law is None:
            raise ModelError("Oracle.begin() without the law; call inform(law) first")
        self._plan = plan(model, self._law)

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self._plan.action(h, x, y)

    def observe(self, episode: Episode) -> None:
        pass

    def policy(self) -> Plan:
        return self._plan


class Own(NamedTuple):
    """A feature that no other state shares."""

    x: Any
    y: Any
    action: Any
    y_next: Any
    feature: Any  # the shared one, by which the truth is looked up


class CountsPerState(PartiallyKnownMDP):
    """A model with phi_Z forgotten: every (x, y, a, y') is a feature of its own.

    It learns from visited states only. A feature comes with one y', so its share in the union bound
    is 1: it does not pay log |Y|. |Z| is the number of its own features.

    >>> import pkd
    >>> class Kiosk(pkd.PartiallyKnownMDP):
    ...     horizon = 3
    ...     def start(self): return 0, 0
    ...     def actions(self, x, y): return [0, 1]
    ...     def reward(self, x, y, a): return min(x, y) - 0.25 * a
    ...     def step(self, x, y, a): return [(1.0, a, "demand")]
    ...     def outcomes(self, z): return [0, 1]
    >>> own = pkd.CountsPerState(Kiosk())
    >>> len(pkd.compile(Kiosk()).features), len(pkd.compile(own).features)
    (1, 8)
    >>> pkd.plan(own, own.law({"demand": {0: 0.5, 1: 0.5}})).value  # the value stays as it is
    0.5
    """

    def __init__(self, model: PartiallyKnownMDP) -> None:
        self.shared = model
        self.horizon = model.horizon
        self.return_range = model.return_range

    def law(self, law: Law) -> Callable[[Any], Mapping[Any, float]]:
        """The truth of this model, from that of the model it was made of."""

        def ask(z: Any) -> Mapping[Any, float]:
            feature = z.feature if isinstance(z, Own) else z  # an unknown reward stays shared
            return law[feature] if isinstance(law, Mapping) else law(feature)

        return ask

    def start(self) -> Any:
        return self.shared.start()

    def actions(self, x: Any, y: Any) -> Any:
        return self.shared.actions(x, y)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.shared.step(x, y, a))

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.shared.last_step(x, y, a))

    def _own(self, x: Any, y: Any, a: Any, branches: Iterable[Branch]) -> list[Branch]:
        return [
            (p, y_next, z if isinstance(z, Known) else Own(x, y, a, y_next, z))
            for p, y_next, z in branches
        ]

    def outcomes(self, z: Own) -> Iterable[Any]:
        return self.shared.outcomes(z.feature)

    def branching(self, z: Own) -> int:
        return self.shared.branching(z.feature)

    def share(self, z: Own, y: Any) -> float:
        return 1.0

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.shared.reward(x, y, a)

    def final(self, x: Any, y: Any) -> float:
        return self.shared.final(x, y)

    def x_label(self, x: Any) -> str:
        return self.shared.x_label(x)

    def y_label(self, y: Any) -> str:
        return self.shared.y_label(y)

    def action_label(self, a: Any) -> str:
        return self.shared.action_label(a)

    def feature_label(self, z: Own) -> str:
        where = f"x={self.x_label(z.x)}, y={self.y_label(z.y)}"
        if z.action is not None:
            where += f", action {self.action_label(z.action)}"
        return f"{self.shared.feature_label(z.feature)} in {where}"


class PerState(Agent):
    """A rule of optimism on counts per state: plain MVP or UCBVI on the whole state (x, y).

    It knows P_Y, rewards and outcomes, as the learner on the model itself does, and shares nothing
    between states. `optimism` is a rule, its name, or {"rule": name, constant: value}. The rule's
    own guarantee holds with the sizes of `CountsPerState`.

    >>> import pkd
    >>> pkd.PerState(optimism="hoeffding").label
    'Hoeffding, per state'
    >>> pkd.PerState(optimism={"rule": "mvp", "c1": 1.0, "c2": 1.0}).label
    'MVP, c1=1, c2=1, per state'
    """

    def __init__(
        self, *, optimism: Rule = MVP(), delta: float = 0.05, replan: Schedule = "doubling"
    ) -> None:
        check_options(
            type(self).__name__,
            ("delta", delta, lambda value: 0 < value < 1, "a number between 0 and 1"),
        )
        self.optimism, self.delta = as_rule(optimism), float(delta)
        self.replan = read_schedule(replan).text

    @property
    def label(self) -> str:
        return f"{self.optimism.name}, per state"

    @property
    def guarantee(self) -> Guarantee:
        return self.optimism.guarantee

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.learner = OptimisticLearner(
            CountsPerState(model),
            episodes,
            optimism=self.optimism,
            delta=self.delta,
            seed=seed,
            replan=self.replan,
        )

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self.learner.act(h, x, y)

    def observe(self, episode: Episode) -> None:
        self.learner.observe(episode)

    def policy(self) -> Plan:
        return self.learner.plan
