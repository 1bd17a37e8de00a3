"""Certified bounds on the average reward of an endless run hold for every law that fits the data.

The reference computes the best gain of a law by trying all stationary policies and solving for the
stationary distribution of each.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import pkd

REWARDS = [[0.2, 0.0], [1.0, 0.5], [0.3, 0.9]]


def find_gain(law):
    """The best long-run average: law (S, A, S) with positive entries, so chains are ergodic."""
    states = range(len(law))
    best = -np.inf
    for actions in product(range(2), repeat=len(law)):
        rows = np.array([law[s][actions[s]] for s in states])
        system = np.vstack([(rows - np.eye(len(law))).T, np.ones(len(law))])
        share = np.linalg.lstsq(system, np.array([0, 0, 0, 1.0]), rcond=None)[0]
        best = max(best, sum(share[s] * REWARDS[s][actions[s]] for s in states))
    return best


def test_the_gain_of_the_truth_is_inside_for_every_log():
    """40 laws with a log each; at delta = 0.05 eight misses have a probability below 0.1%."""
    held, widths = 0, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        law = rng.dirichlet(np.full(3, 2.0), size=(3, 2))
        drawn = {(s, a): rng.multinomial(500, law[s, a]) for s in range(3) for a in range(2)}
        counts = {z: dict(enumerate(row.tolist())) for z, row in drawn.items()}
        table = pkd.TabularMDP(law, REWARDS, horizon=60)
        found = pkd.certify(table, counts).gain
        held += found.low <= find_gain(law) <= found.high
        widths.append(found.width)
    assert held > 32
    assert 0 < np.mean(widths) < 0.5


def test_much_data_gives_the_gain_itself():
    law = np.random.default_rng(1).dirichlet(np.full(3, 2.0), size=(3, 2))
    counts = {(s, a): dict(enumerate(1e9 * law[s, a])) for s in range(3) for a in range(2)}
    found = pkd.certify(pkd.TabularMDP(law, REWARDS, horizon=100), counts).gain
    assert found.low == pytest.approx(find_gain(law), abs=1e-3)
    assert found.high == pytest.approx(find_gain(law), abs=1e-3)


def test_a_run_that_ends_or_is_discounted_has_no_gain():
    assert pkd.certify("gambler", {"coin": {"heads": 5, "tails": 5}}).gain is None
    law = np.full((3, 2, 3), 1 / 3)
    table = pkd.discounted(pkd.TabularMDP(law, REWARDS, horizon=30), 0.9)
    assert pkd.certify(table, {(0, 0): {0: 5}}).gain is None


def test_a_short_horizon_gives_wide_bounds_that_hold():
    for seed in range(10):
        law = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=(3, 2)) + 1e-3
        law /= law.sum(axis=2, keepdims=True)
        counts = {(s, a): dict(enumerate(1e9 * law[s, a])) for s in range(3) for a in range(2)}
        found = pkd.certify(pkd.TabularMDP(law, REWARDS, horizon=4), counts).gain
        assert found.low <= find_gain(law) <= found.high
        assert found.width > 1e-3
