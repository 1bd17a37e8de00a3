"""The floor and the ceiling of every comparison: random play, and an oracle that knows the law."""

from __future__ import annotations

from typing import Any

from pkd.episode import Episode
from pkd.experiments.agent import Agent, make_rng
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.planning.plan import Plan, Policy, plan

__all__ = ["Oracle", "RandomPlay"]


class RandomPlay(Agent):
    """Every action on offer with the same probability. It learns nothing.

    >>> import pkd
    >>> from pkd.experiments import rivals
    >>> toss, stay = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]
    >>> rows, pay = [[toss, stay[0]], [toss, stay[1]]], [[0.0, 0.0], [1.0, 1.0]]
    >>> coin, agent = pkd.TabularMDP(rows, pay, horizon=3), rivals.RandomPlay()
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
    >>> from pkd.experiments import rivals
    >>> from pkd.tables.coin import coin
    >>> agent = rivals.Oracle()
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
        self._plan = plan(self.compile(model), self._law)

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self._plan.action(h, x, y)

    def observe(self, episode: Episode) -> None:
        pass

    def policy(self) -> Plan:
        return self._plan
