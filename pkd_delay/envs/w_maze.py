"""The W-maze, the gridworld on which delayed agents are compared in the literature.

Nath, Baranwal and Khadilkar, Revisiting State Augmentation Methods for Reinforcement Learning with
Stochastic Delays (2021): 7 x 11 cells, two walls that make the W, three goals in the middle of the
top row. The agent starts in a random cell of the left column. Every step costs 1, the step into a
goal pays 11, and an episode has at most 300 steps. Nothing in it is random but the start.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

__all__ = ["WMaze"]

# '#': wall, 'G': goal, '.': free
MAZE = (
    ".###GGG####",
    "...#...#...",
    "...#...#...",
    "...#...#...",
    "...........",
    "...........",
    "...........",
)
ROWS, COLUMNS = len(MAZE), len(MAZE[0])
SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right
GOAL, COST = 11.0, -1.0


class WMaze(gym.Env[np.int64, np.int64]):
    """The W-maze: cell (row, column) is state 11 row + column; actions are up, down, left, right.

    `P[s][a]` is [(probability, s', reward, terminated)], as in Gymnasium's own tables.

    >>> maze = WMaze()
    >>> maze.P[4 * 11 + 5][0], maze.P[1 * 11 + 5][0]  # one up, and into the goal
    ([(1.0, 38, -1.0, False)], [(1.0, 5, 11.0, True)])
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"]}  # noqa: RUF012  # Gymnasium's declaration

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Discrete(ROWS * COLUMNS)
        self.action_space = spaces.Discrete(len(SIDES))
        self.P = {s: {a: [_move(s, side)] for a, side in enumerate(SIDES)} for s in range(77)}
        self.initial_state_distrib = np.zeros(ROWS * COLUMNS)
        self.initial_state_distrib[::COLUMNS] = 1.0 / ROWS

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Starts in the left column."""
        super().reset(seed=seed)
        self._here = int(self.np_random.integers(ROWS)) * COLUMNS
        return np.int64(self._here), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Moves; a wall stops."""
        ((_, self._here, reward, over),) = self.P[self._here][int(action)]
        return np.int64(self._here), reward, over, False, {}

    def render(self) -> str | None:
        """The maze with the agent in it, as text."""
        if self.render_mode != "ansi":
            return None
        row, column = divmod(self._here, COLUMNS)
        lines = [list(line) for line in MAZE]
        lines[row][column] = "A"
        return "\n".join("".join(line) for line in lines)


def _move(state: int, side: tuple[int, int]) -> tuple[float, int, float, bool]:
    row, column = state // COLUMNS + side[0], state % COLUMNS + side[1]
    inside = 0 <= row < ROWS and 0 <= column < COLUMNS
    if not inside or MAZE[row][column] == "#":
        return 1.0, state, COST, False
    goal = MAZE[row][column] == "G"
    return 1.0, row * COLUMNS + column, GOAL if goal else COST, goal
