"""Small tabular problems: RiverSwim, the two-state chain, random MDPs, and a windy grid.

Each is a `pkd.TabularMDP`, so it has .model() and .law(), and
`DelayedMDP(riverswim(), inter_arrival, max_delay)` delays it.
"""

from __future__ import annotations

import numpy as np

from pkd import TabularMDP
from pkd.expect import fraction, require, whole

__all__ = ["grid", "random_mdp", "riverswim", "two_state_chain"]


def riverswim(horizon: int = 20, length: int = 6) -> TabularMDP:
    """Swim upstream to the large reward, or stay at the small one.

    From Strehl and Littman (2008), with the numbers of Osband et al. (2013).
    Left is sure. Right: one on with .35, stay with .6, one back with .05; in the first state one on
    with .6, else stay; in the last stay with .6, one back with .4. Left in the first state pays
    .005, right in the last state pays 1. A delay costs almost nothing here.
    """
    require(whole("length", length, 2))
    P, r = np.zeros((length, 2, length)), np.zeros((length, 2))
    for s in range(length):
        P[s, 0, max(s - 1, 0)] = 1.0
        P[s, 1, s] += 0.6
        P[s, 1, min(s + 1, length - 1)] += 0.35
        P[s, 1, max(s - 1, 0)] += 0.05
    P[0, 1] = 0.0
    P[0, 1, :2] = 0.4, 0.6
    P[-1, 1] = 0.0
    P[-1, 1, -2:] = 0.4, 0.6
    r[0, 0], r[-1, 1] = 0.005, 1.0
    return TabularMDP(P, r, horizon, action_names=["left", "right"])


def two_state_chain(horizon: int = 10, stay: float = 0.9) -> TabularMDP:
    """Name the current state: r = 1 if a = s.

    The state stays with probability `stay` whatever is done; it starts in state 0. With the
    constant delay d the optimum is sum_{t < H} (1 + |2 stay - 1|^min(t, d)) / 2, so the price of
    each tick of delay is exact.
    """
    require(fraction("stay", stay, closed=True))
    rows, names = np.array([[stay, 1.0 - stay], [1.0 - stay, stay]]), ["low", "high"]
    P = np.repeat(rows[:, None, :], 2, axis=1)
    return TabularMDP(P, np.eye(2), horizon, state_names=names, action_names=names)


def random_mdp(
    states: int = 5, actions: int = 2, horizon: int = 10, successors: int = 5, seed: int = 0
) -> TabularMDP:
    """Every (s, a) leads to `successors` random states with random probabilities.

    Rewards are uniform on [0, 1].

    Give branching=successors to `DelayedMDP` where the learner may know that bound.
    """
    sizes = whole("states", states, 1) + whole("actions", actions, 1)
    require(sizes, whole("successors", successors, 1, states))
    rng = np.random.default_rng(seed)
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            masses = rng.dirichlet(np.ones(successors))  # drawn first: the seed's table stays
            P[s, a, rng.choice(states, successors, replace=False)] = masses
    return TabularMDP(P, rng.random((states, actions)), horizon)


def grid(rows: int = 4, columns: int = 4, horizon: int = 16, wind: float = 0.2) -> TabularMDP:
    """Walk from the top left to the bottom right corner, which pays 1 per step.

    With probability `wind` a step goes to a random side.
    """
    sizes = whole("rows", rows, 1) + whole("columns", columns, 1)
    require(sizes, fraction("wind", wind, closed=True))
    sides = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    P, r = np.zeros((len(cells), 4, len(cells))), np.zeros((len(cells), 4))
    for s, (i, j) in enumerate(cells):
        targets = [
            min(max(i + di, 0), rows - 1) * columns + min(max(j + dj, 0), columns - 1)
            for di, dj in sides.values()
        ]
        for a, target in enumerate(targets):
            P[s, a, target] += 1.0 - wind
            for blown in targets:
                P[s, a, blown] += wind / 4
    r[-1] = 1.0
    names = [f"{i},{j}" for i, j in cells]
    return TabularMDP(P, r, horizon, state_names=names, action_names=list(sides))
