"""The delayed problem as mdpax wants it: functions of (state, action, event), written with jax.

A state is (s, q), an event is the number of a successor, 0..B - 1. A solver for a given number of
steps is value iteration without discount that stops after them: its threshold is never met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from mdpax.core.problem import Problem
from mdpax.solvers import ValueIteration

jax.config.update("jax_enable_x64", True)
BATCH = 1 << 16  # states at a time: large batches are fastest on one device


class LateTable(Problem):
    """A table whose actions are shown D steps late."""

    def __init__(self, transitions: Any, rewards: Any, near: Any, delay: int, terminal: Any):
        self.S, self.A = rewards.shape
        self.queues, self.delay = self.A**delay, delay
        states, branches = np.arange(self.S)[:, None, None], near.shape[1]
        followers = near.reshape(self.S, self.A, branches)
        weights = transitions[states, np.arange(self.A)[None, :, None], followers]
        self.near, self.weights = jnp.array(followers, jnp.int32), jnp.array(weights)
        self.pay, self.terminal = jnp.array(rewards), jnp.array(terminal)
        self.branches = branches
        super().__init__()

    @property
    def name(self) -> str:
        return "late table"

    def _construct_state_space(self) -> Any:
        return jnp.arange(self.S * self.queues, dtype=jnp.int32).reshape(-1, 1)

    def _construct_action_space(self) -> Any:
        return jnp.arange(self.A, dtype=jnp.int32).reshape(-1, 1)

    def _construct_random_event_space(self) -> Any:
        return jnp.arange(self.branches, dtype=jnp.int32).reshape(-1, 1)

    def state_to_index(self, state: Any) -> Any:
        return state[0]

    def _read(self, state: Any, action: Any) -> tuple[Any, Any, Any]:
        """(s, the action that takes effect, the queue after it)."""
        s, q = state[0] // self.queues, state[0] % self.queues
        if self.delay == 0:
            return s, action[0], q
        rest = self.queues // self.A
        return s, q // rest, (q % rest) * self.A + action[0]

    def random_event_probability(self, state: Any, action: Any, event: Any) -> Any:
        s, oldest, _ = self._read(state, action)
        return self.weights[s, oldest, event[0]]

    def transition(self, state: Any, action: Any, event: Any) -> tuple[Any, Any]:
        s, oldest, joined = self._read(state, action)
        following = self.near[s, oldest, event[0]] * self.queues + joined
        return jnp.array([following]), self.pay[s, oldest]

    def initial_value(self, state: Any) -> Any:
        return self.terminal[state[0]]


def make_solver(problem: Any, terminal: np.ndarray) -> Callable[[int], np.ndarray]:
    """V after a number of steps; each call starts from the terminal values again."""
    table = LateTable(problem.transitions, problem.rewards, problem.near, problem.delay, terminal)
    solver = ValueIteration(
        table, gamma=1.0, epsilon=1e-300, max_batch_size=BATCH, verbose=0, jax_double_precision=True
    )
    begun = solver.values

    def solve(steps: int) -> np.ndarray:
        solver.values, solver.iteration = begun, 0
        return np.asarray(solver.solve(max_iterations=steps).values)

    return solve
