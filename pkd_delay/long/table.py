"""A base as a table: its decision states, numbered; one more state is its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward
from pkd.episode import list_branches
from pkd_delay.base import State
from pkd_delay.delayed import Delayed

if TYPE_CHECKING:
    from pkd.model import Law

__all__ = ["DREAM", "Table", "find_range", "make_optimistic_table", "make_table"]

ROUNDING = 1e-12


class _Dream:
    """The outcome of a law that stands for all probability that the data do not vouch for."""

    def __repr__(self) -> str:
        return "DREAM"


DREAM = _Dream()
DREAMT: State = (DREAM, None)


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


Pick = Callable[[Iterable[float]], float]  # max or min
Moves = dict[State, list[tuple[float, dict[State, float]]]]  # of every action: pay, next states


def make_table(delayed: Delayed) -> Table:
    """The table of the base of a delayed problem, under its law."""
    actions, H = delayed.facts.actions, delayed.base.horizon
    forward = _Forward(delayed.base, delayed.base_law)
    early, start = forward.open()
    states: dict[State, int] = {}
    moves: Moves = {}
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
    settled = {state: _settle(forward, delayed, state) for state in layer}
    return _pack(delayed, states, early, start, moves, settled)


def make_optimistic_table(delayed: Delayed, law: Law) -> Table:
    """The table of laws that may give DREAM, a state that pays the most for ever.

    It has every decision state, also those that the laws never reach.
    """
    actions, H, tabular = delayed.facts.actions, delayed.base.horizon, delayed.facts.tabular
    forward, known = _Forward(delayed.base, law), list(delayed.facts.decisions)
    early, start = forward.open()
    early_on = [s for s, (first, _) in delayed.facts.decisions.items() if first < H]
    moves = {s: [forward.move(s, delayed.done(*s, a), 1) for a in actions] for s in early_on}
    settled = {s: _settle(forward, delayed, s) for s in known}
    # A base that may have ended pays nothing afterwards; a dream must not pay less.
    least = -math.inf if tabular else 0.0
    top = max([least, *(paid for told in moves.values() for paid, _ in told)])
    top_last = max([least, *(paid for told in settled.values() for paid in told)])
    moves[DREAMT] = [(top if H > 1 else 0.0, {DREAMT: 1.0})] * len(actions)
    settled[DREAMT] = [top_last] * len(actions)
    states = {state: i for i, state in enumerate((*known, DREAMT))}
    return _pack(delayed, states, early, start, moves, settled)


def find_range(delayed: Delayed) -> float:
    """At least the difference between any two returns, whatever the laws of the base are."""
    base, forward, H = delayed.base, _Forward(delayed.base, {}), delayed.base.horizon

    def add(pick: Pick) -> float:
        step, last = (
            pick([
                forward.limit_move(s, delayed.done(*s, a), taken, pick)
                for s in delayed.facts.decisions for a in delayed.facts.actions
            ])
            for taken in (0, H)
        )  # fmt: skip
        if not delayed.facts.tabular:  # an END pays nothing afterwards
            step, last = pick([step, 0.0]), pick([last, 0.0])
        first = base.start()
        opening = first if isinstance(first, Mapping) else (first,)
        return pick(forward.find_limit(s, 0, pick) for s in opening) + (H - 1) * step + last

    return add(max) - add(min)


def _settle(forward: _Forward, delayed: Delayed, state: State) -> list[float]:
    """What every action pays in the last step, with the settlement and the final pay."""
    found = []
    for a in delayed.facts.actions:
        paid, reached = forward.move(state, delayed.done(*state, a), delayed.base.horizon)
        ends = ((s, p) for s, p in reached.items() if s != DREAMT)
        found.append(paid + sum(p * delayed.base.final(*s) for s, p in ends))
    return found


def _pack(
    delayed: Delayed,
    states: dict[State, int],
    early: float,
    start: dict[State, float],
    moves: Moves,
    settled: dict[State, list[float]],
) -> Table:
    """The arrays of a table."""
    actions, end = delayed.facts.actions, len(states)
    pay, last = np.zeros((end + 1, len(actions))), np.zeros((end + 1, len(actions)))
    rows = [[{end: 1.0} for _ in actions] for _ in range(end + 1)]
    for state, told in moves.items():
        for k, (pay[states[state], k], reached) in enumerate(told):
            row = {states[s]: p for s, p in reached.items() if p > 0.0}
            left = 1.0 - sum(row.values())
            rows[states[state]][k] = row if left < ROUNDING else {**row, end: left}
    for state, paid in settled.items():
        last[states[state]] = paid
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
        self._limits: dict[tuple[State, Any, bool, Pick], float] = {}

    def open(self) -> tuple[float, dict[State, float]]:
        """(what is paid before the first decision, law of its state)."""
        first = self.model.start()
        return self.settle(dict(first) if isinstance(first, Mapping) else {first: 1.0}, 0)

    def move(self, state: State, a: Any, taken: int) -> tuple[float, dict[State, float]]:
        """(expected pay, law of the next decision state) of an action and its chance moves."""
        key = (state, a, taken < self.model.horizon)
        if key not in self._moves:
            paid = self._pay(state, a) + self._promise(state, a, taken)
            more, reached = self.settle(self._step(state, a, taken), taken)
            self._moves[key] = paid + more, reached
        return self._moves[key]

    def settle(self, states: dict[State, float], taken: int) -> tuple[float, dict[State, float]]:
        """Through the chance states; what ends is paid and dropped."""
        paid, resting = 0.0, dict[Any, float]()
        while states:
            further: dict[State, float] = {}
            for state, p in states.items():
                kind = None if state == DREAMT else self.model.actions(*state)
                if kind is CHANCE:
                    paid += p * (self._pay(state, None) + self._promise(state, None, taken))
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
                    reached = DREAMT if x_next is DREAM else (x_next, y_next)
                    found[reached] = found.get(reached, 0.0) + p * q
        return found

    def _promise(self, state: State, a: Any, taken: int) -> float:
        """What a dream that begins here pays for the rest of this step: the most there is."""
        paid = 0.0
        for p, y_next, z in list_branches(self.model, *state, a, taken):
            q = 0.0 if isinstance(z, Known) else self._ask(z).get(DREAM, 0.0)
            if q > 0.0:
                paid += p * q * max(self.find_limit((x, y_next), taken) for x in self._list(z))
        return paid

    def find_limit(self, state: State, taken: int, pick: Pick = max) -> float:
        """The most that a state pays by chance until the next decision, or the least.

        A final pay is part of it, after the last action and at an END.
        """
        kind = self.model.actions(*state)
        if kind is CHANCE:
            return self.limit_move(state, None, taken, pick)
        settling = kind is END or taken == self.model.horizon
        return self.model.final(*state) if settling else 0.0

    def limit_move(self, state: State, a: Any, taken: int, pick: Pick = max) -> float:
        """The most that an action can pay until the next decision, or the least."""
        key = (state, a, taken == self.model.horizon, pick)
        if key not in self._limits:
            after = [
                self.find_limit((x, y_next), taken, pick)
                for _, y_next, z in list_branches(self.model, *state, a, taken)
                for x in self._list(z)
            ]
            self._limits[key] = self._pay(state, a) + pick(after)
        return self._limits[key]

    def _list(self, z: Any) -> list[Any]:
        """Every x' that may follow a feature."""
        if isinstance(z, Known):
            return [x for x, p in z.law if p > 0.0]
        return list(self.model.outcomes(z))

    def _pay(self, state: State, a: Any) -> float:
        paid = self.model.reward(*state, a)
        if isinstance(paid, UnknownReward):
            return math.fsum(value * p for value, p in self._ask(paid.feature).items())
        return paid
