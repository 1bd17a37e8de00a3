"""Compiled code for delays: the hindsight of `pkd_delay.hindsight`, in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd import kernels

NO_ARRIVAL = -2


class Delays(NamedTuple):
    """`Lessons` in arrays. A note says whose number a tran resolves.

    A Delta stands for the number that makes a delay: -1, ..., W; a lag is never -1.
    """

    row_ptr: np.ndarray  # (law rows + 1,)
    # (features, 2, 2): [low, high] of the number by which the outcome follows; NO_ARRIVAL
    limits: np.ndarray
    alike_ptr: np.ndarray  # (features + 1,) the rows that have the law of an arrival ...
    alike: np.ndarray  # ... if visited arrivals are all that an episode teaches
    law: np.ndarray  # (notes, W + 2): Pr(Delta = -1), ...
    place_ptr: np.ndarray  # (notes * (W + 2) + 1,)
    place: np.ndarray  # the counts that a Delta adds to: (note, Delta) -> places
    row: np.ndarray  # their rows
    longest: int
    revealed: bool  # whether raw numbers are shown at the end


@kernels.jit()
def look_back(delays, tally, path, moves, rng, deltas):
    """Counts what one episode teaches and records the raw Deltas. Returns whether a plan is due."""
    due = False
    features = delays.limits.shape[0]
    low, high, found = -1, delays.longest, 0
    for i in range(moves):
        row, outcome, note = int(path[i, 0]), int(path[i, 1]), int(path[i, 2])
        arrival = row < features and delays.limits[row, 0, 0] != NO_ARRIVAL
        if arrival and not delays.revealed:
            for k in range(delays.alike_ptr[row], delays.alike_ptr[row + 1]):
                other = delays.alike[k]
                due = kernels.count(tally, other, delays.row_ptr[other] + outcome) or due
        elif arrival:
            low = max(low, delays.limits[row, outcome, 0])
            high = min(high, delays.limits[row, outcome, 1])
        elif row < features:
            due = kernels.count(tally, row, delays.row_ptr[row] + outcome) or due
        if note < 0:
            continue
        delta = draw_delta(delays.law[note], low, high, rng)
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
    """Plays until a plan is due or `returns` is full: (how many episodes, whether one is due)."""
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


@kernels.jit(nogil=True)
def plan_constant(table, horizon, delay, v, w, total, choices, heads, first):
    """The exact plan of a table whose states are all `delay` >= 1 steps late, delay <= horizon.

        V_t(s, q) = r(s, q_1) + max_a sum_s' P(s'|s, q_1) V_{t+1}(s', q_2 ... q_D a),  t >= D
        V_t(s, q) = max_a V_{t+1}(s, q a),  t < D,  where s is the first state

    After the last action the queue is resolved. A queue is a number, its oldest action first.
    v, w: (S, A^D). total: (A^D,). choices: (H - D, S, A^D), of the layers D, ..., H - 1; heads:
    (S, 1 + A + ... + A^(D-1)), of the layers before. first: (S,) for V_0.
    """
    ptr, to, p, r = table
    states, actions = r.shape
    v[:, 0], count = 0.0, 1
    for _ in range(delay):  # what a queue of n actions still earns
        for s in range(states):
            for a in range(actions):
                for k in range(count):
                    earned = 0.0
                    for i in range(ptr[s * actions + a], ptr[s * actions + a + 1]):
                        earned += p[i] * v[to[i], k]
                    w[s, a * count + k] = r[s, a] + earned
        count *= actions
        v, w = w, v
    rest = count // actions
    for t in range(horizon - 1, delay - 1, -1):
        for s in range(states):
            for a in range(actions):
                total[:] = 0.0
                for i in range(ptr[s * actions + a], ptr[s * actions + a + 1]):
                    share, row = p[i], v[to[i]]
                    for k in range(count):
                        total[k] += share * row[k]
                for k in range(rest):
                    best, which = r[s, a] + total[k * actions], 0
                    for b in range(1, actions):
                        value = r[s, a] + total[k * actions + b]
                        if value > best:
                            best, which = value, b
                    w[s, a * rest + k] = best
                    choices[t - delay, s, a * rest + k] = which
        v, w = w, v
    begin = heads.shape[1]
    for _ in range(delay):
        count //= actions
        begin -= count
        for s in range(states):
            for k in range(count):
                best, which = v[s, k * actions], 0
                for b in range(1, actions):
                    if v[s, k * actions + b] > best:
                        best, which = v[s, k * actions + b], b
                v[s, k] = best
                heads[s, begin + k] = which
    for s in range(states):
        first[s] = v[s, 0]
