"""What a delay must know of the model it delays: which actions may be queued blindly, how many y and features there are, how it pays.

The agent chooses before it sees the state that its action will meet. So the base must offer the same actions everywhere, or somebody must
say what is done instead of an action that is not on offer. One walk over the base's reachable states, layer by layer, finds all of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from pkd import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward

__all__ = ["BaseFacts", "Instead", "survey"]

State = tuple[Any, Any]  # (x, y) of the base
Instead = Callable[[Any, Any, Any], Any] | None  # (x, y, a) -> the action that is done when a is not on offer in (x, y)


@attrs.frozen
class BaseFacts:
    """What the walk found."""

    actions: tuple[Any, ...]  # what the agent may choose, whatever it has not seen
    decisions: Mapping[State, tuple[int, float]]  # each decision state: the first step at which it can occur, and the first from 2 on
    n_y: int  # distinct reachable y
    n_states: int  # distinct reachable (x, y)
    n_features: int  # distinct unknown features
    chances: Mapping[tuple[bool, State], tuple[State, ...]]  # (after the last action?, CHANCE state) -> the CHANCE states that may follow
    tabular: bool  # one y, no CHANCE, no END, no final pay: the paper's own case
    unit_rewards: bool  # every reward lies in [0, 1]


def survey(base: PartiallyKnownMDP, instead: Instead = None) -> BaseFacts:
    """Walks the base from its start; raises ModelError where an action that the agent may queue cannot be done."""
    walk = _Walk(base)
    walk.run()
    decisions = {state: (first, walk.again.get(state, math.inf)) for state, first in walk.first.items()}
    if not decisions:
        raise ModelError(f"{type(base).__name__} has no decision state, so there is nothing to delay; expected at least one")
    offers = {state: tuple(walk.kinds[state]) for state in decisions}
    plain = all(kind is not CHANCE and kind is not END and not base.final(*state) for state, kind in walk.kinds.items())
    return BaseFacts(
        actions=_common_actions(base, offers, instead),
        decisions=decisions,
        n_y=len({y for _, y in walk.kinds}),
        n_states=len(walk.kinds),
        n_features=len(walk.features),
        chances=walk.chances(),
        tabular=plain and len({y for _, y in walk.kinds}) == 1,
        unit_rewards=walk.lowest >= 0.0 and walk.highest <= 1.0,
    )


def _common_actions(base: PartiallyKnownMDP, offers: Mapping[State, tuple[Any, ...]], instead: Instead) -> tuple[Any, ...]:
    first = next(iter(offers))
    if instead is None:
        for (x, y), offer in offers.items():
            if offer != offers[first]:
                raise ModelError(
                    f"{type(base).__name__}.actions(x={x!r}, y={y!r}) is {list(offer)!r} but actions(x={first[0]!r}, y={first[1]!r}) is "
                    f"{list(offers[first])!r}; a delayed agent chooses before it sees the state, so all decision states must offer "
                    "the same actions, or `instead=(x, y, a) -> action` must say what is done when a is not on offer"
                )
        return offers[first]
    union = tuple(dict.fromkeys(a for offer in offers.values() for a in offer))
    found = []
    for (x, y), offer in offers.items():
        for a in union:
            if a not in offer and instead(x, y, a) not in offer:
                found.append(f"instead(x={x!r}, y={y!r}, a={a!r}) is {instead(x, y, a)!r}; expected one of {list(offer)!r}")
    if found:
        raise ModelError(found)
    return union


class _Walk:
    """Everything reachable in the base within its horizon. Ordered dicts serve as sets, so that the order is the same every time."""

    def __init__(self, base: PartiallyKnownMDP) -> None:
        self.base = base
        self.kinds: dict[State, Any] = {}  # what actions(x, y) said
        self.first: dict[State, int] = {}  # decision states and the first step at which they can occur
        self.again: dict[State, int] = {}  # the same from step 2 on
        self.features: dict[Any, None] = {}
        self.lowest, self.highest = float("inf"), float("-inf")
        self._after: dict[tuple[bool, State], dict[State, None]] = {}

    def run(self) -> None:
        start = self.base.start()
        states = [state for state, p in start.items() if p > 0] if isinstance(start, Mapping) else [start]
        layer = self._layer(1, dict.fromkeys(states))
        for step in range(2, self.base.horizon + 1):
            following = self._layer(step, self._move(layer, settling=False))
            if following.keys() == layer.keys():  # then every later layer is this one too
                break
            layer = following
        self._closure(self._move(layer, settling=True), settling=True)

    def _layer(self, step: int, arriving: dict[State, None]) -> dict[State, None]:
        layer = self._closure(arriving, settling=False)
        for state in layer:
            if self._decides(state):
                self.first.setdefault(state, step)
                if step > 1:
                    self.again.setdefault(state, step)
        return layer

    def _closure(self, layer: dict[State, None], *, settling: bool) -> dict[State, None]:
        """The states of one layer: those given and those that chance moves lead to."""
        todo = list(layer)
        for state in todo:
            if self._kind(state) is CHANCE:
                for found in self._successors(state, settling=settling):
                    if found not in layer:
                        layer[found] = None
                        todo.append(found)
        return layer

    def _move(self, layer: dict[State, None], *, settling: bool) -> dict[State, None]:
        """Where the decision states of a layer lead."""
        following: dict[State, None] = {}
        for state in layer:
            if self._decides(state):
                following.update(self._successors(state, settling=settling))
        return following

    def chances(self) -> dict[tuple[bool, State], tuple[State, ...]]:
        """For each CHANCE state, by `step` and by `last_step`, the CHANCE states that it leads to."""
        kept = {key: found for key, found in self._after.items() if self.kinds[key[1]] is CHANCE}
        return {key: tuple(state for state in found if self._kind(state) is CHANCE) for key, found in kept.items()}

    def _kind(self, state: State) -> Any:
        if state not in self.kinds:
            self.kinds[state] = self.base.actions(*state)
        return self.kinds[state]

    def _decides(self, state: State) -> bool:
        return self._kind(state) is not CHANCE and self._kind(state) is not END

    def _successors(self, state: State, *, settling: bool) -> dict[State, None]:
        if (settling, state) not in self._after:
            kind = self._kind(state)
            found: dict[State, None] = {}
            for a in (None,) if kind is CHANCE else kind:
                self._note_reward(self.base.reward(*state, a))
                for p, y_next, z in (self.base.last_step if settling else self.base.step)(*state, a):
                    if p > 0:
                        found.update(((x_next, y_next), None) for x_next in self._landings(z))
            self._after[settling, state] = found
        return self._after[settling, state]

    def _landings(self, z: Any) -> list[Any]:
        if isinstance(z, Known):
            return [x_next for x_next, p in z.law if p > 0]
        self.features[z] = None
        return list(self.base.outcomes(z))

    def _note_reward(self, reward: float | UnknownReward) -> None:
        low, high = (reward.low, reward.high) if isinstance(reward, UnknownReward) else (reward, reward)
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)
