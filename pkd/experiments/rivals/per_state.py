"""Rules of optimism with phi_Z forgotten, so that nothing learned in one state helps in another.

They are MVP, UCBVI and their like as they were published, on the whole state (x, y).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pkd.episode import Episode
from pkd.expect import fraction, require
from pkd.experiments.agent import Agent
from pkd.learning.learner import OptimisticLearner
from pkd.model import Known, Law, PartiallyKnownMDP, UnknownReward
from pkd.optimism import MVP, Guarantee
from pkd.planning.plan import Plan
from pkd.rules import Rule, as_rule
from pkd.rules.schedule import Schedule, schedule_for
from pkd.wrapped import Wrapped

if TYPE_CHECKING:
    from pkd.model import Branch

__all__ = ["CountsPerState", "Own", "PerState"]


class Own(NamedTuple):
    """A feature that no other state shares."""

    x: Any
    y: Any
    action: Any
    y_next: Any
    feature: Any  # the shared one, by which the truth is looked up


class CountsPerState(Wrapped):
    """A model with phi_Z forgotten: every (x, y, a, y') is a feature of its own.

    It learns from visited states only. A feature comes with one y', so its share in the union bound
    is 1: it does not pay log |Y|. |Z| is the number of its own features.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> class Kiosk(pkd.PartiallyKnownMDP):
    ...     horizon = 3
    ...     def start(self): return 0, 0
    ...     def actions(self, x, y): return [0, 1]
    ...     def reward(self, x, y, a): return min(x, y) - 0.25 * a
    ...     def step(self, x, y, a): return [(1.0, a, "demand")]
    ...     def outcomes(self, z): return [0, 1]
    >>> own = rivals.CountsPerState(Kiosk())
    >>> len(pkd.compile(Kiosk()).features), len(pkd.compile(own).features)
    (1, 8)
    >>> pkd.plan(own, own.law({"demand": {0: 0.5, 1: 0.5}})).value  # the value stays as it is
    0.5
    """

    def __init__(self, model: PartiallyKnownMDP) -> None:
        super().__init__(model)
        self.n_features, self.samples_cover_visits = None, False

    def first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y

    def law(self, law: Law) -> Callable[[Any], Mapping[Any, float]]:
        """The truth of this model, from that of the model it was made of."""

        def ask(z: Any) -> Mapping[Any, float]:
            feature = z.feature if isinstance(z, Own) else z  # an unknown reward stays shared
            return law[feature] if isinstance(law, Mapping) else law(feature)

        return ask

    def actions(self, x: Any, y: Any) -> Any:
        return self.base.actions(x, y)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.base.step(x, y, a))

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return self._own(x, y, a, self.base.last_step(x, y, a))

    def _own(self, x: Any, y: Any, a: Any, branches: Iterable[Branch]) -> list[Branch]:
        return [
            (p, y_next, z if isinstance(z, Known) else Own(x, y, a, y_next, z))
            for p, y_next, z in branches
        ]

    def outcomes(self, z: Own) -> Iterable[Any]:
        return self.base.outcomes(z.feature)

    def branching(self, z: Own) -> int:
        return self.base.branching(z.feature)

    def share(self, z: Own, y: Any) -> float:
        return 1.0

    def reward(self, x: Any, y: Any, a: Any) -> float | UnknownReward:
        return self.base.reward(x, y, a)

    def final(self, x: Any, y: Any) -> float:
        return self.base.final(x, y)

    def y_label(self, y: Any) -> str:
        return self.base.y_label(y)

    def feature_label(self, z: Own) -> str:
        where = f"x={self.x_label(z.x)}, y={self.y_label(z.y)}"
        if z.action is not None:
            where += f", action {self.action_label(z.action)}"
        return f"{self.base.feature_label(z.feature)} in {where}"


class PerState(Agent):
    """A rule of optimism on counts per state: plain MVP or UCBVI on the whole state (x, y).

    It knows P_Y, rewards and outcomes, as the learner on the model itself does, and shares nothing
    between states. `optimism` is a rule, its name, or {"rule": name, constant: value}. The rule's
    own guarantee holds with the sizes of `CountsPerState`.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> rivals.PerState(optimism="hoeffding").label
    'Hoeffding, per state'
    >>> rivals.PerState(optimism={"rule": "mvp", "c1": 1.0, "c2": 1.0}).label
    'MVP, c1=1, c2=1, per state'
    """

    def __init__(
        self, *, optimism: Rule = MVP(), delta: float = 0.05, replan: Schedule = "doubling"
    ) -> None:
        require(fraction("PerState: delta", delta))
        self.optimism, self.delta = as_rule(optimism), float(delta)
        self.replan = schedule_for(self.optimism.every_episode, replan).text

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
