"""Compiled code for delays: the hindsight of `pkd_delay.hindsight`, in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd import kernels


class Delays(NamedTuple):
    """What the kernel must know of the delays."""

    waited: np.ndarray  # (rows,) of an arrival the steps waited; -2 for every other feature
    empty: np.ndarray  # (rows,) bool
    resolves: (
        np.ndarray
    )  # (slots,) which action of the base is resolved by the move of a slot, or -1
    law: np.ndarray  # (actions of the base, W + 2): Pr(Delta = -1), ...
    place_ptr: np.ndarray  # (actions of the base * (W + 2) + 1,)
    place: np.ndarray  # the counts that a Delta adds to: (action, Delta) -> places
    row: np.ndarray  # their rows
    longest: int


@kernels.jit()
def look_back(program, delays, tally, path, moves, rng, deltas):
    """Counts what one episode teaches; writes the raw Deltas down.

    Returns whether a mark was reached.
    """
    due = False
    low, high, found = -1, delays.longest, 0
    for i in range(moves):
        slot, branch, outcome = int(path[i, 0]), int(path[i, 2]), int(path[i, 3])
        row = program.pair_row[program.branch_pair[branch]]
        waited = delays.waited[row] if row < program.n_unknown else -2
        if waited > -2:
            if outcome > 0:
                low = waited + 1
            elif delays.empty[row]:
                high = 0
            else:
                low = high = waited
        elif row < program.n_unknown:
            due = kernels.count(tally, row, program.row_ptr[row] + outcome) or due
        action = delays.resolves[slot]
        if action < 0:
            continue
        delta = drawn(delays.law[action], low, high, rng)
        if found < deltas.shape[0]:
            deltas[found] = delta
        found += 1
        at = action * (delays.longest + 2) + delta + 1
        for k in range(delays.place_ptr[at], delays.place_ptr[at + 1]):
            due = kernels.count(tally, delays.row[k], delays.place[k]) or due
        low, high = -1, delays.longest
    return due


@kernels.jit()
def drawn(law, low, high, rng):
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


@kernels.jit()
def episodes(program, delays, world, policy, tally, visited, rng, path, deltas, returns):
    """Episodes under a fixed policy until a mark is reached or `returns` is full.

    Returns (how many, whether a mark was reached).
    """
    for k in range(returns.shape[0]):
        returns[k], due, moves = kernels.rollout(program, world, policy, visited, rng, path)
        due = look_back(program, delays, tally, path, moves, rng, deltas) or due
        if due:
            return k + 1, True
    return returns.shape[0], False
