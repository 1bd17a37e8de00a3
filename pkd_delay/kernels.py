"""Compiled code for delays: the hindsight of `pkd_delay.hindsight`, in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd import kernels


class Delays(NamedTuple):
    """What the kernel must know of the delays. A note says which action of the base is resolved."""

    row_ptr: np.ndarray  # (law rows + 1,)
    waited: np.ndarray  # (features,) of an arrival the steps waited; -2 for every other feature
    empty: np.ndarray  # (features,) bool
    law: np.ndarray  # (notes, W + 2): Pr(Delta = -1), ...
    place_ptr: np.ndarray  # (notes * (W + 2) + 1,)
    place: np.ndarray  # the counts that a Delta adds to: (note, Delta) -> places
    row: np.ndarray  # their rows
    longest: int


@kernels.jit()
def look_back(delays, tally, path, moves, rng, deltas):
    """Counts what one episode teaches and records the raw Deltas. Returns whether a plan is due."""
    due = False
    features = delays.waited.shape[0]
    low, high, found = -1, delays.longest, 0
    for i in range(moves):
        row, outcome, note = int(path[i, 0]), int(path[i, 1]), int(path[i, 2])
        waited = delays.waited[row] if row < features else -2
        if waited > -2:
            if outcome > 0:
                low = waited + 1
            elif delays.empty[row]:
                high = 0
            else:
                low = high = waited
        elif row < features:
            due = kernels.count(tally, row, delays.row_ptr[row] + outcome) or due
        if note < 0:
            continue
        delta = draw_delta(delays.law[note], low, high, rng)
        if found < deltas.shape[0]:
            deltas[found] = delta
        found += 1
        at = note * (delays.longest + 2) + delta + 1
        for k in range(delays.place_ptr[at], delays.place_ptr[at + 1]):
            due = kernels.count(tally, delays.row[k], delays.place[k]) or due
        low, high = -1, delays.longest
    return due


@kernels.jit()
def draw_delta(law, low, high, rng):
    """Delta given low <= Delta <= high."""
    total = 0.0
    for j in range(low + 1, high + 2):
        total += law[j]
    mark = kernels.uniform(rng) * total
    last = low
    for j in range(low + 1, high + 2):
        if law[j] > 0.0:
            last = j - 1
            mark -= law[j]
            if mark < 0.0:
                break
    return last


@kernels.jit(nogil=True)
def play_nodes(walk, delays, world, policy, tally, visited, rng, path, deltas, returns):
    """Plays episodes on the node engine until a plan is due or `returns` is full.

    Returns how many, and whether a plan is due.
    """
    for k in range(returns.shape[0]):
        returns[k], due, moves = kernels.rollout_nodes(walk, world, policy, visited, rng, path)
        due = look_back(delays, tally, path, moves, rng, deltas) or due
        if due:
            return k + 1, True
    return returns.shape[0], False


@kernels.jit(nogil=True)
def play_stripes(g, walk, delays, world, policy, tally, visited, rng, path, deltas, returns):
    """The same on the stripe engine."""
    for k in range(returns.shape[0]):
        returns[k], due, moves = kernels.rollout_stripes(g, walk, world, policy, visited, rng, path)
        due = look_back(delays, tally, path, moves, rng, deltas) or due
        if due:
            return k + 1, True
    return returns.shape[0], False
