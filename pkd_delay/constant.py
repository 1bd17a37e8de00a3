"""The exact plan of a small table under a constant delay, straight from its arrays.

A state is shown D steps late, always. So what the agent knows at step h > D is the state of D steps
ago and the D actions since: S A^D values per step, in one loop. For small ones, exploring the
augmented MDP would take longer than to solve it; a larger one is left to the engine, which merges
what is alike. `DelayedPlan` asks this plan for actions and for the value, and makes the plan of the
augmented MDP when anything else is asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd_delay import kernels
from pkd_delay.delayed import Delayed, DelayedMDP
from pkd_delay.laws.arrivals import DelayRule

__all__ = ["ConstantPlan", "plan_constant"]

MOST_CHOICES = 1 << 23  # actions of all states and steps that are held, one byte each


@attrs.frozen(eq=False, slots=False)
class ConstantPlan:
    """The best action of every state, queue and step."""

    mdp: Any  # the table
    delay: int
    value: float
    choices: NDArray[np.uint8]  # (H - D, S, A^D)
    heads: NDArray[np.uint8]  # (S, 1 + A + ... + A^(D - 1)): while nothing new is shown

    def find(self, h: Any, state: Any, queue: tuple[Any, ...], waited: Any) -> int | None:
        """The action in a state that can occur; None for any other, or one of another type."""
        horizon, (n_states, n_actions) = self.mdp.horizon, self.mdp.rewards.shape
        numbers = (h, state, waited, *queue)
        if not all(type(n) is int for n in numbers) or not (
            1 <= h <= horizon and 0 <= state < n_states and len(queue) == min(h - 1, self.delay)
        ):
            return None
        fits = waited == (h - 1 if h <= self.delay + 1 else 0)
        if not (fits and self._reached[max(h - 1 - self.delay, 0)][state]):
            return None
        place = 0
        for a in queue:
            if not 0 <= a < n_actions:
                return None
            place = place * n_actions + a
        if h > self.delay:
            return int(self.choices[h - 1 - self.delay, state, place])
        return int(self.heads[state, sum(n_actions**n for n in range(h - 1)) + place])

    @cached_property
    def _reached(self) -> list[NDArray[np.bool_]]:
        """Which states the model of the table can be in at step 1, 2, ...: a dense one in all."""
        moves = self.mdp.transitions
        if isinstance(moves, np.ndarray):
            start = self.mdp.start_distribution > 0
            return [start, *[np.ones_like(start)] * (self.mdp.horizon - 1)]
        here, found = self.mdp.start_distribution > 0, list[NDArray[np.bool_]]()
        ptr, to = moves.matrix.indptr, moves.matrix.indices
        from_state = np.repeat(np.arange(len(ptr) - 1) // self.mdp.n_actions, np.diff(ptr))
        for _ in range(self.mdp.horizon):
            found.append(here)
            after = np.zeros_like(here)
            after[to[here[from_state]]] = True
            here = after
        return found


def _list_moves(transitions: Any, states: int, actions: int) -> tuple[Any, Any, Any]:
    """(pointers of the rows s A + a, successors, probabilities)."""
    if not isinstance(transitions, np.ndarray):
        matrix = transitions.matrix
        return matrix.indptr, matrix.indices, matrix.data
    rows = transitions.reshape(states * actions, states)
    where = np.flatnonzero(rows)
    of, to = np.divmod(where, states)
    return np.searchsorted(of, np.arange(states * actions + 1)), to, rows.ravel()[where]


def plan_constant(delayed: Delayed) -> ConstantPlan | None:
    """The plan of a small table under a constant delay; None: it is another problem."""
    if type(delayed) is not DelayedMDP or delayed.instead is not None:
        return None
    mdp, law = delayed.mdp, delayed.delay_of.one
    horizon, (states, actions) = mdp.horizon, mdp.rewards.shape
    delay = min(delayed.max_delay, horizon)
    small = max(horizon, 1) * states * actions**delay <= MOST_CHOICES if delay < 64 else False
    if law is None or delay < 1 or not small or not DelayRule(delayed.max_delay, law).always:
        return None
    queues = actions**delay
    ptr, to, p = _list_moves(mdp.transitions, states, actions)
    table = (ptr.astype(np.int64), to.astype(np.int64), np.array(p), np.array(mdp.rewards))
    choices = np.zeros((horizon - delay, states, queues), np.uint8)
    heads = np.zeros((states, sum(actions**n for n in range(delay))), np.uint8)
    v, w = np.zeros((2, states, queues))
    first = np.zeros(states)
    kernels.plan_constant(table, horizon, delay, v, w, np.zeros(queues), choices, heads, first)
    start, value = mdp.start, 0.0
    if not isinstance(start, np.ndarray):
        return ConstantPlan(mdp, delay, float(first[start]), choices, heads)
    for share, one in zip(start.tolist(), first.tolist(), strict=True):
        value += share * one
    return ConstantPlan(mdp, delay, value, choices, heads)
