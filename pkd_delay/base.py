"""What a delay must know of the model that it delays, found by one walk over the reachable states.

The agent chooses before it sees the state that its action will meet. So the base must offer the
same actions everywhere, or the user must say what is done instead of an action that is not on
offer. The adapters read nothing of this module but `survey` and `BaseFacts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from pkd import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward

__all__ = ["BaseFacts", "Instead", "State", "survey"]

State = tuple[Any, Any]  # (x, y) of the base
Instead = Callable[[Any, Any, Any], Any] | None  # (x, y, a) -> what is done where a is not on offer


@attrs.frozen
class BaseFacts:
    """Facts about the reachable part of a base model."""

    actions: tuple[Any, ...]  # what the agent may choose, whatever it has not seen
    # Each decision state: the first step at which it can occur, and the first one from 2 on.
    decisions: Mapping[State, tuple[int, float]]
    n_y: int  # distinct reachable y
    n_states: int  # distinct reachable (x, y)
    features: tuple[Any, ...]  # distinct unknown features of x'
    tabular: bool  # one y, no CHANCE, no END, no final pay: the paper's own case
    unit_rewards: bool  # every reward lies in [0, 1]

    @property
    def n_features(self) -> int:
        """The number of distinct unknown features."""
        return len(self.features)


def survey(base: PartiallyKnownMDP, instead: Instead = None) -> BaseFacts:
    """The facts about a base; ModelError if an action that the agent may queue cannot be done."""
    walk = _Walk(base)
    walk.run()
    if not walk.first:
        raise ModelError(
            f"{type(base).__name__} has no decision state, so there is nothing to delay; "
            "expected at least one"
        )
    decisions = {state: (h, walk.again.get(state, math.inf)) for state, h in walk.first.items()}
    n_y = len({y for _, y in walk.kinds})
    plain = all(
        kind is not CHANCE and kind is not END and not base.final(*state)
        for state, kind in walk.kinds.items()
    )
    return BaseFacts(
        actions=_find_common_actions(base, {s: tuple(walk.kinds[s]) for s in decisions}, instead),
        decisions=decisions,
        n_y=n_y,
        n_states=len(walk.kinds),
        features=tuple(walk.features),
        tabular=plain and n_y == 1,
        unit_rewards=walk.lowest >= 0.0 and walk.highest <= 1.0,
    )


def _find_common_actions(
    base: PartiallyKnownMDP, offers: Mapping[State, tuple[Any, ...]], instead: Instead
) -> tuple[Any, ...]:
    first, common = next(iter(offers.items()))
    if instead is None:
        for (x, y), offer in offers.items():
            if offer != common:
                raise ModelError(
                    f"{type(base).__name__}.actions(x={x!r}, y={y!r}) is {list(offer)!r} but "
                    f"actions(x={first[0]!r}, y={first[1]!r}) is {list(common)!r}; a delayed agent "
                    "chooses before it sees the state, so all decision states must offer the same "
                    "actions, or `instead=(x, y, a) -> action` must say what is done when a is not "
                    "on offer"
                )
        return common
    union = tuple(dict.fromkeys(a for offer in offers.values() for a in offer))
    found = []
    for (x, y), offer in offers.items():
        for a in union:
            if a not in offer and instead(x, y, a) not in offer:
                found.append(
                    f"instead(x={x!r}, y={y!r}, a={a!r}) is {instead(x, y, a)!r}; "
                    f"expected one of {list(offer)!r}"
                )
    if found:
        raise ModelError(found)
    return union


class _Walk:
    """The states that are reachable within the horizon, layer by layer.

    Ordered dicts serve as sets, so that the order is the same every time.
    """

    def __init__(self, base: PartiallyKnownMDP) -> None:
        self.base = base
        self.kinds: dict[State, Any] = {}  # what actions(x, y) said
        self.first: dict[State, int] = {}  # decision states: first step at which they can occur
        self.again: dict[State, int] = {}  # the same from step 2 on
        self.features: dict[Any, None] = {}
        self.lowest, self.highest = math.inf, -math.inf  # rewards
        self._after: dict[tuple[bool, State], dict[State, None]] = {}

    def run(self) -> None:
        start = self.base.start()
        states = [s for s, p in start.items() if p > 0] if isinstance(start, Mapping) else [start]
        layer = self._enter(1, dict.fromkeys(states))
        for step in range(2, self.base.horizon + 1):
            following = self._enter(step, self._move(layer, settling=False))
            if following.keys() == layer.keys():  # then every later layer is this one too
                break
            layer = following
        self._close(self._move(layer, settling=True), settling=True)

    def _enter(self, step: int, arriving: dict[State, None]) -> dict[State, None]:
        """The layer of one step; notes its decision states."""
        layer = self._close(arriving, settling=False)
        for state in layer:
            if self._decides(state):
                self.first.setdefault(state, step)
                if step > 1:
                    self.again.setdefault(state, step)
        return layer

    def _close(self, layer: dict[State, None], *, settling: bool) -> dict[State, None]:
        """The given states and those that chance moves lead to."""
        todo = list(layer)
        for state in todo:  # the list grows while it is read
            if self._kind(state) is CHANCE:
                for found in self._successors(state, settling=settling):
                    if found not in layer:
                        layer[found] = None
                        todo.append(found)
        return layer

    def _move(self, layer: dict[State, None], *, settling: bool) -> dict[State, None]:
        """The states to which the decision states of a layer lead."""
        following: dict[State, None] = {}
        for state in layer:
            if self._decides(state):
                following.update(self._successors(state, settling=settling))
        return following

    def _kind(self, state: State) -> Any:
        if state not in self.kinds:
            self.kinds[state] = self.base.actions(*state)
        return self.kinds[state]

    def _decides(self, state: State) -> bool:
        return self._kind(state) is not CHANCE and self._kind(state) is not END

    def _successors(self, state: State, *, settling: bool) -> dict[State, None]:
        if (settling, state) not in self._after:
            kind, step = self._kind(state), self.base.last_step if settling else self.base.step
            found: dict[State, None] = {}
            for a in (None,) if kind is CHANCE else kind:
                self._note_reward(self.base.reward(*state, a))
                for p, y_next, z in step(*state, a):
                    if p > 0:
                        found.update(((x_next, y_next), None) for x_next in self._outcomes(z))
            self._after[settling, state] = found
        return self._after[settling, state]

    def _outcomes(self, z: Any) -> Iterable[Any]:
        if isinstance(z, Known):
            return [x_next for x_next, p in z.law if p > 0]
        self.features[z] = None
        return list(self.base.outcomes(z))

    def _note_reward(self, reward: float | UnknownReward) -> None:
        if isinstance(reward, UnknownReward):
            self.lowest = min(self.lowest, reward.low)
            self.highest = max(self.highest, reward.high)
        else:
            self.lowest = min(self.lowest, reward)
            self.highest = max(self.highest, reward)
