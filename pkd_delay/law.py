"""The truth of a delayed model: the law of its features, and the raw Deltas shown at the end.

Only the simulator and the exact planner get it; the models never hold it. One object serves both
adapters: it answers the base's features (`KnownDelay`), and `Move` and `Arrival` (`UnknownDelay`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd import Episode, ModelError
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.delay_kernel import DelayKernel
from pkd_delay.features import Arrival, Move, next_depth
from pkd_delay.inter_arrival import DelayOf, InterArrivalOf, OneLawForAll, per_action
from pkd_delay.unknown import Hindsight, UnknownDelay

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["DelayLaw", "collect_laws"]

SHOWN_FINDINGS = 5


class DelayLaw:
    """z -> {x': probability} for a delayed base.

        Move(z):                 P_eff(z) of the base
        Arrival(x, a, c, False): tran with Pr(Delta = c | Delta >= c), else c + 1
        Arrival(x, a, 0, True):  tran with Pr(Delta <= 0), else 1
        any other form of law:   tran with Pr(D_h = d + c | D_{h-1} = d, D_h >= d + c), else c + 1

    where "tran" is the outcome (x, TRAN) and a number c the outcome (x, c). Every other feature is
    one of the base, and so are moves and arrivals of another depth: the base may be delayed itself.

    >>> from pkd_delay import DelayedMDP
    >>> from pkd_delay.problems import two_state_chain
    >>> law = DelayedMDP.constant(two_state_chain(horizon=3), 1).law()
    >>> round(law((0, 1))[0], 10)
    0.9
    """

    def __init__(
        self,
        base: Law,
        inter_arrival: InterArrivalOf,
        *models: Augmented,
        later: Iterable[tuple[type, Callable[[], Augmented]]] = (),
    ) -> None:
        """`models`: the adapters whose features and episodes it will be asked about.

        `later` holds pairs (class of an augmented y, how to get its adapter), for adapters that
        are not built before they are asked about. The law is checked against an UnknownDelay as
        soon as that is there.
        """
        self._base, self.delay_of = base, per_action(inter_arrival)
        self._models = {model.y_type: model for model in models}
        self._later = dict(later)
        # The depth of the features of an UnknownDelay of this base; -1: there is no such adapter.
        self._depth = next_depth(models[0].facts.features) if models else -1
        self._laws: dict[Any, DelayKernel] | None = None  # of each delay_key
        if UnknownDelay.y_type in self._models:
            self._arrival_laws()

    def _model(self, y_type: type) -> Augmented:
        """The adapter with this class of y, built if need be."""
        if y_type not in self._models:
            if y_type not in self._later:
                raise ModelError(
                    f"this DelayLaw has no adapter for {y_type.__name__}; give it the model that "
                    "it shall answer for"
                )
            self._models[y_type] = self._later[y_type]()
        return self._models[y_type]

    def _arrival_laws(self) -> Mapping[Any, DelayKernel]:
        """The law of the delay for each delay_key of the UnknownDelay."""
        if self._laws is None:
            self._laws = collect_laws(self._unknown_model(), self.delay_of)
        return self._laws

    def _find_law(self, z: Arrival) -> DelayKernel:
        if isinstance(self.delay_of, OneLawForAll):  # whatever the model tells apart
            return self.delay_of.law
        return self._arrival_laws()[self._unknown_model().key_of(z)]

    def _unknown_model(self) -> UnknownDelay:
        model = self._model(UnknownDelay.y_type)
        assert isinstance(model, UnknownDelay)
        return model

    def __call__(self, z: Any) -> Mapping[Any, float]:
        if isinstance(z, Move | Arrival) and z.depth == self._depth:
            if isinstance(z, Move):
                law = _ask(self._base, z.feature)
                return {(x_next, SHOWN): p for x_next, p in law.items()}
            p = self._find_law(z).arrival(*z.delays)
            return {(z.x, TRAN): p, (z.x, z.waited + 1): 1.0 - p}
        return _ask(self._base, z)

    def reveal(self, episode: Episode, rng: np.random.Generator) -> Any:
        """What is shown at the end: the raw Deltas, for an `UnknownDelay`, and the base's part.

        An `UnknownDelay` with revealed=False gets the base's part alone. The augmented trajectory
        says that low <= Delta <= high for each action of the base. Where the end or a clip hid the
        rest, Delta is drawn from its law on that range. So trajectory and Deltas have their true
        joint law.
        """
        if not episode.transitions:  # the base started at an END
            return ()
        model = self._model(type(episode.transitions[0].y))
        base_reveal = getattr(self._base, "reveal", None)
        base_part = None
        if base_reveal is not None:
            base_part = base_reveal(model.base_episode(episode), rng)
        if not isinstance(model, UnknownDelay) or not model.revealed:
            return base_part
        deltas = tuple(
            self.delay_of(x, y, a).numbers(0).draw(rng, low, high)
            for x, y, a, low, high in _find_ranges(model, episode)
        )
        return deltas if base_reveal is None else Hindsight(deltas, base_part)


def collect_laws(model: UnknownDelay, delay_of: DelayOf) -> dict[Any, DelayKernel]:
    """The law of each delay_key: one key must not hide two laws, and W must cover them all."""
    laws: dict[Any, DelayKernel] = {}
    found: list[str] = []
    for x, y in model.facts.decisions:
        for a in model.base.actions(x, y):
            law, key = delay_of(x, y, a), model.delay_key(x, y, a)
            where = f"inter_arrival(x={x!r}, y={y!r}, a={a!r})"
            if type(law) is not model.form:
                found.append(
                    f"{where} is {type(law).__name__}; the model learns {model.form.__name__}: "
                    "give the model form= the form of the law"
                )
            elif _reaches_beyond(law, model.longest):
                found.append(
                    f"{where} reaches {law.longest}; the model has longest={model.longest}"
                )
            if laws.setdefault(key, law) is not law and laws[key] != law:
                found.append(
                    f"{where} is {law.to_table()}, but another state and action with delay_feature "
                    f"{key!r} has {laws[key].to_table()}; delay_feature must tell them apart"
                )
    if found:
        raise ModelError(found[:SHOWN_FINDINGS])
    return laws


def _reaches_beyond(law: DelayKernel, longest: int) -> bool:
    befores = range((law.largest or 0) + 1)
    return any(law.numbers(before).at_least(longest + 1) > 0.0 for before in befores)


def _ask(law: Law, z: Any) -> Mapping[Any, float]:
    return law[z] if isinstance(law, Mapping) else law(z)


def _find_ranges(model: UnknownDelay, episode: Episode) -> list[tuple[Any, Any, Any, int, int]]:
    """(x, y, action, low, high) for each action of the base: what the path says of its Delta."""
    known = []
    low, high, taken = model.form.first, model.longest, 0
    for move in episode:
        x, y, queue, counter = model.read(move.x, move.y)
        taken += move.action is not None
        step = model.step if taken < model.horizon else model.last_step
        z = step(move.x, move.y, move.action)[0][2]
        if isinstance(z, Arrival):
            number, at_most = model.form.ask(*z.delays)
            if move.x_next[1] != TRAN:
                low = number + 1
            else:
                low, high = (low, number) if at_most else (number, number)
        if counter == TRAN and queue:
            known.append((x, y, model.done(x, y, queue.oldest), low, high))
            low, high = model.form.first, model.longest
    return known
