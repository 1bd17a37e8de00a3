"""Random delayed MDPs for the tests: tiny tables with zero entries, Delta = -1, both clips, and every edge of the sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import pkd
from pkd_delay import DelayedMDP


@st.composite
def delayed_mdps(draw, *, unit_rewards=False, largest_tree=30_000):
    """A DelayedMDP small enough for expectimax over histories: A^H trees of (S (W + 2))^H hidden trajectories, at most `largest_tree`."""
    S, A, W = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 3))
    H = draw(st.integers(1, 5).filter(lambda H: (A * S * (W + 2)) ** H <= largest_tree))
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
