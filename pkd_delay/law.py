"""The truth of a delayed model: the law of its features, and the raw inter-arrival times that are shown at the end of an episode.

Only the simulator and the exact planner get it; the models never hold it. One object serves both adapters: it answers the base's features
(`KnownDelay`), and `Move` and `Arrival` (`UnknownDelay`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd import Episode, ModelError
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.inter_arrival import InterArrival, InterArrivalOf, per_action
from pkd_delay.unknown import Arrival, Hindsight, Move, UnknownDelay

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["DelayLaw"]


class DelayLaw:
    """z -> {x': probability} for a delayed base.

        Move(z):                 P_eff(z) of the base
        Arrival(x, a, c, False): tran with Pr(Delta = c | Delta >= c), else c + 1
        Arrival(x, a, 0, True):  tran with Pr(Delta <= 0), else 1

    where "tran" is the outcome (x, TRAN) and a number c the outcome (x, c).

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.problems import two_state_chain
    >>> law = DelayedMDP.constant(two_state_chain(horizon=3), 1).law()
    >>> round(law((0, 1))[0], 10)
    0.9
    """

    def __init__(self, base: Law, inter_arrival: InterArrivalOf, *models: Augmented) -> None:
        """`models`: the adapters whose episodes it will be asked about; arrivals are answered for an `UnknownDelay` among them."""
        self._base, self.delay_of = base, per_action(inter_arrival)
        self._models = {model.y_type: model for model in models}
        self._of_feature: dict[tuple[Any, Any], InterArrival] = {}
        for model in models:
            if isinstance(model, UnknownDelay):
                self._fill(model)

    def _fill(self, model: UnknownDelay) -> None:
        """The law of Delta for each (x, delay_feature). One feature must not hide two laws, and W must cover them all."""
        found: list[str] = []
        for x, y in model.facts.decisions:
            for a in model.base.actions(x, y):
                law, key = self.delay_of(x, y, a), (x, model.delay_feature(x, y, a))
                where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
                if sum(law.probabilities[model.longest + 2 :]) > 0:
                    found.append(f"{where} reaches {law.longest}; the model has longest={model.longest}")
                if self._of_feature.setdefault(key, law) != law:
                    found.append(
                        f"{where} is {law.probabilities}, but another action with delay_feature {key[1]!r} has "
                        f"{self._of_feature[key].probabilities}; delay_feature must tell them apart"
                    )
        if found:
            raise ModelError(found)

    def __call__(self, z: Any) -> Mapping[Any, float]:
        if UnknownDelay.y_type not in self._models:
            return _ask(self._base, z)  # a base may have arrivals of its own
        if isinstance(z, Arrival):
            law = self._of_feature[z.x, z.given]
            p = law.at_most_zero if z.empty else law.hazard(z.waited)
            return {(z.x, TRAN): p, (z.x, z.waited + 1): 1.0 - p}
        if isinstance(z, Move):
            return {(x_next, SHOWN): p for x_next, p in _ask(self._base, z.feature).items()}
        return _ask(self._base, z)

    def reveal(self, episode: Episode, rng: np.random.Generator) -> Any:
        """What is shown at the end: the raw Delta of each action of the base, for an `UnknownDelay`; and what the base's law reveals.

        The augmented trajectory says that low <= Delta <= high; where the end or a clip hid the rest, Delta is drawn from its law on that
        range. So trajectory and Deltas have their true joint law.
        """
        if not episode.transitions:  # the base started at an END
            return ()
        model = self._models[type(episode.transitions[0].y)]
        base_reveal = getattr(self._base, "reveal", None)
        base_part = None if base_reveal is None else base_reveal(model.base_episode(episode), rng)
        if not isinstance(model, UnknownDelay):
            return base_part
        deltas = tuple(self.delay_of(x, y, a).draw(rng, low, high) for x, y, a, low, high in _censored(model, episode))
        return deltas if base_reveal is None else Hindsight(deltas, base_part)


def _ask(law: Law, z: Any) -> Mapping[Any, float]:
    return law[z] if isinstance(law, Mapping) else law(z)


def _censored(model: UnknownDelay, episode: Episode) -> list[tuple[Any, Any, Any, int, int]]:
    """(x, y, action, low, high) for each action of the base: what the trajectory says of its Delta."""
    known = []
    low, high, taken = -1, model.longest, 0
    for move in episode:
        x, y, queue, counter = model.read(move.x, move.y)
        taken += move.action is not None
        branches = (model.step if taken < model.horizon else model.last_step)(move.x, move.y, move.action)
        z = branches[0][2]
        if isinstance(z, Arrival):
            arrived = move.x_next[1] == TRAN
            if arrived:
                low, high = (low, 0) if z.empty else (z.waited, z.waited)
            else:
                low = z.waited + 1
        if counter == TRAN and queue:
            known.append((x, y, model.done(x, y, queue[0]), low, high))
            low, high = -1, model.longest
    return known
