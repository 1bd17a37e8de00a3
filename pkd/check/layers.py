"""Which states an episode can be in at each layer h = 1..H, and the smallest and largest return from there.

The paper's episode has H steps; ours also has CHANCE moves inside a layer and a settlement after the last action. States are numbered, and
moves are edges between numbers, so that a layer is one pass over arrays. Used for the states that `last_step` must answer for, and to hold
a declared `return_range` against the rewards.
"""

from __future__ import annotations

from array import array

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ["Edges", "Moves", "Reach", "reachable", "returns_to_go"]

Mask = NDArray[np.bool_]
Values = NDArray[np.float64]


@attrs.frozen
class Moves:
    """Possible moves between numbered states with their rewards, all (moves,)."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    low: Values
    high: Values

    def negated(self) -> Moves:
        """The same moves with rewards -r: their largest return is minus the smallest of these."""
        return Moves(self.source, self.target, -self.high, -self.low)


@attrs.define
class Edges:
    """Moves while they are being collected."""

    source: array[int] = attrs.field(factory=lambda: array("q"))
    target: array[int] = attrs.field(factory=lambda: array("q"))
    low: array[float] = attrs.field(factory=lambda: array("d"))
    high: array[float] = attrs.field(factory=lambda: array("d"))

    def add(self, source: int, targets: list[int], low: float, high: float) -> None:
        """One move from `source` to each of `targets`, with a reward in [low, high]."""
        self.source.extend([source] * len(targets))
        self.target.extend(targets)
        self.low.extend([low] * len(targets))
        self.high.extend([high] * len(targets))

    def moves(self) -> Moves:
        """All moves collected so far."""
        return Moves(np.array(self.source, np.int64), np.array(self.target, np.int64), np.array(self.low), np.array(self.high))


@attrs.frozen
class Reach:
    """The states of each layer; from some layer on they repeat, so that a long horizon costs no more than its period."""

    masks: list[Mask]  # (states,) for layers 1, 2, ...
    repeats_from: int  # index into masks: after the last mask this one follows again

    def at(self, layer: int) -> Mask:
        """The states that layer `layer`, counted from 1, can be in, (states,)."""
        index, period = layer - 1, len(self.masks) - self.repeats_from
        return self.masks[index if index < len(self.masks) else self.repeats_from + (index - self.repeats_from) % period]


def reachable(start: list[int], states: int, horizon: int, inside: Moves, onward: Moves) -> Reach:
    """Layer h+1 is what `onward` moves reach from layer h, closed under `inside` moves."""
    mask = np.zeros(states, bool)
    mask[start] = True
    masks: list[Mask] = []
    known: dict[bytes, int] = {}
    while True:
        mask = _closed(mask, inside)
        key = np.packbits(mask).tobytes()
        if key in known or len(masks) == horizon:
            return Reach(masks, known.get(key, len(masks) - 1))
        known[key] = len(masks)
        masks.append(mask)
        mask = np.zeros(states, bool)
        mask[onward.target[masks[-1][onward.source]]] = True


def returns_to_go(reach: Reach, horizon: int, main: tuple[Moves, Moves, Values], settlement: tuple[Moves, Moves, Values]) -> list[Values]:
    """The largest return to go of each state in layers 1..H and in the settlement: H + 1 arrays (states,), -inf where a state cannot be.

    main: CHANCE moves, action moves before the last, and what END pays, -inf elsewhere; settlement: CHANCE moves, moves by the last action,
    and what stopping pays. CHANCE moves must be acyclic.
    """
    inside, onward, ended = main
    settling, last, stopped = settlement
    layers = [_swept(stopped, settling)]
    for layer in range(horizon, 0, -1):
        values = _swept(_best(ended, layers[-1], last if layer == horizon else onward), inside)
        here = np.flatnonzero(reach.at(layer))  # a mask ends before the states that only the settlement has
        layers.append(np.full(len(values), -np.inf))
        layers[-1][here] = values[here]
    return layers[::-1]


def _closed(mask: Mask, inside: Moves) -> Mask:
    while True:
        grown = mask.copy()
        grown[inside.target[mask[inside.source]]] = True
        if np.array_equal(grown, mask):
            return mask
        mask = grown


def _best(floor: Values, after: Values, moves: Moves) -> Values:
    values = floor.copy()
    np.maximum.at(values, moves.source, moves.high + after[moves.target])
    return values


def _swept(values: Values, inside: Moves) -> Values:
    # Each sweep settles one more level of CHANCE states, so that without a cycle this ends.
    while True:
        swept = _best(values, values, inside)
        if np.array_equal(swept, values):
            return values
        values = swept
