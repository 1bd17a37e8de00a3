"""A base as a table: its decision states, numbered; one more state is its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward
from pkd.episode import list_branches
from pkd_delay.base import State
from pkd_delay.delayed import Delayed

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["Table", "make_table"]

ROUNDING = 1e-12


@attrs.frozen
class Table:
    """What every action amounts to until the next decision: CHANCE states are summed out.

    to[s, a, :n[s, a]] are the successors of s under a, with probabilities p. A final pay and the
    settlement are part of the pay of the last step.
    """

    states: dict[State, int]  # the decision states; the number after them is the end
    actions: tuple[Any, ...]
    start: np.ndarray  # (S,)
    early: float  # mean of what is paid before the first decision
    to: np.ndarray  # (S, A, B)
    p: np.ndarray
    n: np.ndarray  # (S, A)
    pay: np.ndarray  # (S, A) mean pay of an action before the last step
    last: np.ndarray  # (S, A) and in the last step


def make_table(delayed: Delayed) -> Table:
    """The table of the base of a delayed problem, under its law."""
    base, actions, H = delayed.base, delayed.facts.actions, delayed.base.horizon
    forward, first = _Forward(base, delayed.base_law), base.start()
    opening = dict(first) if isinstance(first, Mapping) else {first: 1.0}
    early, start = forward.settle(opening, 0)
    states: dict[State, int] = {}
    moves: dict[State, list[tuple[float, dict[State, float]]]] = {}
    layer, before = set(start), set[State]()
    for h in range(1, H):
        if layer == before:
            break
        for state in layer - moves.keys():
            states[state] = len(states)
            moves[state] = [forward.move(state, delayed.done(*state, a), h) for a in actions]
        after = {s for state in layer for _, row in moves[state] for s, p in row.items() if p > 0.0}
        layer, before = after, layer
    for state in layer:
        states.setdefault(state, len(states))
    end = len(states)
    pay, last = np.zeros((end + 1, len(actions))), np.zeros((end + 1, len(actions)))
    rows = [[{end: 1.0} for _ in actions] for _ in range(end + 1)]
    for state, told in moves.items():
        for k, (pay[states[state], k], reached) in enumerate(told):
            row = {states[s]: p for s, p in reached.items() if p > 0.0}
            left = 1.0 - sum(row.values())
            rows[states[state]][k] = row if left < ROUNDING else {**row, end: left}
    for state in layer:
        for k, a in enumerate(actions):
            paid, reached = forward.move(state, delayed.done(*state, a), H)
            last[states[state], k] = paid + sum(p * base.final(*s) for s, p in reached.items())
    law = np.zeros(end + 1)
    for state, p in start.items():
        law[states[state]] = p
    law[end] = max(0.0, 1.0 - law.sum())
    return Table(states, actions, law, early, *_list_rows(rows), pay, last)


def _list_rows(rows: list[list[dict[int, float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(successors, probabilities, how many) of laws."""
    n = np.array([[len(row) for row in told] for told in rows])
    to, p = np.zeros((*n.shape, n.max()), np.int32), np.zeros((*n.shape, n.max()))
    for s, told in enumerate(rows):
        for k, row in enumerate(told):
            to[s, k, : len(row)] = list(row)
            p[s, k, : len(row)] = np.array(list(row.values())) / sum(row.values())
    return to, p, n


class _Forward:
    """One step of a model at a time, with its CHANCE states summed out."""

    def __init__(self, model: PartiallyKnownMDP, law: Law) -> None:
        self.model = model
        self._ask = law.__getitem__ if isinstance(law, Mapping) else law
        self._moves: dict[tuple[State, Any, bool], tuple[float, dict[State, float]]] = {}

    def move(self, state: State, a: Any, taken: int) -> tuple[float, dict[State, float]]:
        """(expected pay, law of the next decision state) of an action and its chance moves."""
        key = (state, a, taken < self.model.horizon)
        if key not in self._moves:
            paid = self._pay(state, a)
            more, reached = self.settle(self._step(state, a, taken), taken)
            self._moves[key] = paid + more, reached
        return self._moves[key]

    def settle(self, states: dict[State, float], taken: int) -> tuple[float, dict[State, float]]:
        """Through the chance states; what ends is paid and dropped."""
        paid, resting = 0.0, dict[Any, float]()
        while states:
            further: dict[State, float] = {}
            for state, p in states.items():
                kind = self.model.actions(*state)
                if kind is CHANCE:
                    paid += p * self._pay(state, None)
                    for s, q in self._step(state, None, taken).items():
                        further[s] = further.get(s, 0.0) + p * q
                elif kind is END:
                    paid += p * self.model.final(*state)
                else:
                    resting[state] = resting.get(state, 0.0) + p
            states = further
        return paid, resting

    def _step(self, state: State, a: Any, taken: int) -> dict[State, float]:
        found: dict[State, float] = {}
        for p, y_next, z in list_branches(self.model, *state, a, taken):
            for x_next, q in z.law if isinstance(z, Known) else self._ask(z).items():
                if q > 0:
                    found[x_next, y_next] = found.get((x_next, y_next), 0.0) + p * q
        return found

    def _pay(self, state: State, a: Any) -> float:
        paid = self.model.reward(*state, a)
        if isinstance(paid, UnknownReward):
            return math.fsum(value * p for value, p in self._ask(paid.feature).items())
        return paid
