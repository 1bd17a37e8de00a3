"""Random delayed MDPs for the tests: tiny tables with zero entries, Delta = -1, both clips, and
every edge of the sizes.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import pkd
from pkd_delay import DelayedMDP


@st.composite
def delayed_mdps(draw, *, unit_rewards=False, largest_tree=30_000):
    """A DelayedMDP small enough for expectimax over histories: A^H trees of (S (W + 2))^H hidden
    trajectories, at most `largest_tree`.
    """
    S, A, W = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    H = draw(st.integers(1, 5).filter(lambda H: largest_tree >= (A * S * (W + 2)) ** H))
    D = draw(st.integers(0, H + 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rewards = rng.random((S, A)) if unit_rewards else rng.normal(size=(S, A)) * 3
    mdp = pkd.TabularMDP(sparse_rows(rng, (S, A), S), rewards, H, sparse_rows(rng, (), S))
    return DelayedMDP(mdp, sparse_rows(rng, (S, A), W + 2), D)


def sparse_rows(rng, shape, n):
    """Random probability rows in which about a quarter of the entries is 0."""
    rows = rng.dirichlet(np.full(n, 0.7), shape)
    rows[rng.random(rows.shape) < 0.25] = 0.0
    keep = np.zeros(rows.shape)
    keep[..., rng.integers(n)] = 1.0
    rows = np.where(rows.sum(axis=-1, keepdims=True) > 0, rows, keep)
    return rows / rows.sum(axis=-1, keepdims=True)


class TableBase(pkd.PartiallyKnownMDP):
    """A random partially known MDP: decision states in y = 0 and 1, CHANCE in y = 2, ENDs, known
    features, a settlement, final pay.

    x is 0 or 1, actions are 0, ..., A - 1, features "z0", "z1" and "z2" have a law that the model
    does not hold (`random_base` gives it).
    """

    def __init__(self, rng, A, horizon, *, ends, chance_start):
        self.horizon, self._A, self._ends = horizon, A, ends
        self._final = rng.normal(size=(2, 3))
        self._rewards = rng.normal(size=(2, 3, A + 1))
        self._steps = [self._random_steps(rng, A) for _ in range(2)]
        self._start = {(0, 2): 0.5, (1, 0): 0.5} if chance_start else (0, 0)

    @staticmethod
    def _random_steps(rng, A):
        steps = {}
        for x in range(2):
            for y in range(3):
                for a in range(A) if y < 2 else (None,):
                    # Chance leads to no chance, so there is no cycle.
                    targets = (0, 1, 2) if y < 2 else (0, 1)
                    features = [pkd.Known({0: 0.3, 1: 0.7}), pkd.sure(1), "z0", "z1", "z2"]
                    p = sparse_rows(rng, (), len(targets))
                    steps[x, y, a] = [
                        (float(q), t, features[rng.integers(len(features))])
                        for q, t in zip(p, targets, strict=True)
                    ]
        return steps

    def start(self):
        return self._start

    def actions(self, x, y):
        if self._ends and (x, y) == (1, 1):
            return pkd.END
        return pkd.CHANCE if y == 2 else range(self._A)

    def step(self, x, y, a):
        return self._steps[0][x, y, a]

    def last_step(self, x, y, a):
        return self._steps[1][x, y, a]

    def outcomes(self, z):
        return (0, 1)

    def reward(self, x, y, a):
        return float(self._rewards[x, y, -1 if a is None else a])

    def final(self, x, y):
        return float(self._final[x, y])


@st.composite
def bases(draw):
    """(base, law of its features, law of Delta as a function of (x, y, a), max_delay)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A, H, W = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(0, 2))
    base = TableBase(rng, A, H, ends=draw(st.booleans()), chance_start=draw(st.booleans()))
    law = {f"z{i}": dict(enumerate(sparse_rows(rng, (), 2).tolist())) for i in range(3)}
    delays = sparse_rows(rng, (2, 2, A), W + 2)
    return base, law, lambda x, y, a: delays[x, y, a].tolist(), draw(st.integers(0, H))
