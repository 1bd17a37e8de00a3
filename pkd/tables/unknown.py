"""`UnknownTable`: a table of which nothing is known but its size.

x is the state, y is trivial, z = (s, a), as for a table. The laws, the rewards and, if asked for,
the start are unknown, so that a learner can be set before an environment that has no table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from pkd.expect import flag, function, require, whole
from pkd.model import CHANCE, END, Branch, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.workers import memory

__all__ = ["OVER", "START", "UnknownTable"]

START: Final = "start"  # x before the first state is drawn, and the feature of its law
OVER: Final = "over"  # x after the environment has ended an episode
Successors = Mapping[tuple[int, int], Iterable[int]] | Callable[[int, int], Iterable[int]]


MOST_SIZE = 1 << 31  # of a horizon and of numbers of states and actions


class UnknownTable(PartiallyKnownMDP):
    """A model of which nothing is known: states 0..S-1, actions 0..A-1, rewards within a range.

    successors: which states can follow (s, a), where that is known: a mapping by (s, a), or a
    function (s, a) -> states. start: a state, {state: probability}, or None for an unknown law,
    which is learned, too. ends: whether an episode can end before the horizon; its x is then OVER.

    >>> import pkd
    >>> model = UnknownTable(2, 2, horizon=3)
    >>> learner = pkd.OptimisticLearner(model)
    >>> learner.upper_value  # it hopes for the largest reward in every step
    3.0
    >>> moves = [(0, 1, 1, 0.5), (1, 0, 1, 1.0), (1, 0, OVER, 0.0)]  # s, a, s', reward
    >>> learner.observe([pkd.Transition(s, None, a, t, None, r) for s, a, t, r in moves])
    >>> learner.counts[1, 0]
    {1: 1.0, 'over': 1.0}
    """

    START = START
    OVER = OVER

    def __init__(
        self,
        n_states: int,
        n_actions: int,
        horizon: int,
        successors: Successors | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        *,
        start: int | Mapping[int, float] | None = 0,
        ends: bool = True,
    ) -> None:
        _refuse(n_states, n_actions, horizon, reward_range, start)
        if successors is not None and not isinstance(successors, Mapping):
            require(function("successors", successors, "(s, a) -> states, or a mapping"))
        require(flag("ends", ends))
        if successors is None:
            _refuse_memory(int(n_states), int(n_actions), int(n_states) + ends)
        self.horizon = int(horizon)
        self.n_states, self.n_actions = int(n_states), int(n_actions)
        self.low, self.high = map(float, reward_range)
        self._start, self._ends = start, ends
        self._actions = range(self.n_actions)
        # One object for all features, so that they share one set of outcomes.
        self._states: Sequence[Any] = (*range(self.n_states), OVER) if ends else range(n_states)
        self._successors = successors

    def start(self) -> Any:
        if self._start is None:
            return START, None
        if isinstance(self._start, Mapping):
            return {(int(s), None): float(p) for s, p in self._start.items()}
        return int(self._start), None

    def actions(self, x: Any, y: None) -> Any:
        return CHANCE if x == START else END if x == OVER else self._actions

    def step(self, x: Any, y: None, a: Any) -> Sequence[Branch]:
        return [(1.0, None, START if a is None else (x, a))]

    def outcomes(self, z: Any) -> Sequence[Any]:
        if z == START:
            return range(self.n_states)
        if self._successors is None:
            return self._states
        given = self._successors
        found = given(*z) if callable(given) else given[z]
        states = tuple(dict.fromkeys(int(s) for s in found))
        strange = [s for s in states if not 0 <= s < self.n_states]
        if strange or not (states or self._ends):
            raise ModelError(
                f"successors of (s={z[0]}, a={z[1]}) are {states}; expected states from 0 to "
                f"{self.n_states - 1}, at least one"
            )
        return (*states, OVER) if self._ends else states

    def reward(self, x: Any, y: None, a: Any) -> float | UnknownReward:
        if a is None:
            return 0.0
        if self.low == self.high:
            return self.low
        return UnknownReward(("reward", x, a), self.low, self.high)

    def y_label(self, y: None) -> str:
        return ""


def _refuse(n_states: Any, n_actions: Any, horizon: Any, reward_range: Any, start: Any) -> None:
    """A ModelError that names everything that is wrong with the arguments."""
    sizes = {"n_states": n_states, "n_actions": n_actions, "horizon": horizon}
    findings = [
        finding for name, size in sizes.items() for finding in whole(name, size, 1, MOST_SIZE)
    ]
    try:
        low, high = map(float, reward_range)
        if not -math.inf < low <= high < math.inf:
            raise ValueError
    except (TypeError, ValueError):
        findings.append(f"reward_range is {reward_range!r}; expected two numbers, low <= high")
    if not findings and start is not None:
        states = list(start) if isinstance(start, Mapping) else [start]
        findings += [f for s in states for f in whole("a state of start", s, most=n_states - 1)]
    require(findings)


def _refuse_memory(n_states: int, n_actions: int, n_outcomes: int) -> None:
    """A ModelError where counts of all (s, a, s') do not fit this machine."""
    needed, there = 8 * n_states * n_actions * n_outcomes, memory()
    if needed > there:
        raise ModelError(
            f"counts of {n_states} states, {n_actions} actions and {n_outcomes} outcomes of each "
            f"need {needed / 2**30:.3g} GiB; this machine has {there / 2**30:.3g} GiB. Say by "
            "successors= which states can follow"
        )
