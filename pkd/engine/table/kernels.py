"""Reachable states and exact sweeps of a table, from its arrays.

A *cell* is a state with a clock, k S + s. A *row* is one of the successors, s A + a, or
(k S + s) A + a if laws change. Sums run over the successors of a row in their order, one by one, so
that values have the bits that the engine of nodes gives.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.jit import inner, jit
from pkd.engine.set_values import Place


class Rows(NamedTuple):
    """A table as a sweep reads it."""

    period: int
    changes: bool  # whether rows depend on the clock
    ptr: np.ndarray  # (rows + 1,) pointers into `states`; (1,) if all states follow each row
    states: np.ndarray  # successors; (0,) if all states follow each row
    rewards: np.ndarray  # (1 or period, S, A); -inf: not on offer
    place: np.ndarray  # (cells,) number of a node, or -1 where it cannot be reached
    first: np.ndarray  # (cells,) the first layer with this cell


@jit(nogil=True)
def find_reached(g, starts, horizon, cells):
    """Numbers cells in the order of the walk: layer by layer, each before those that follow it.

    Fills g.place and g.first, and `cells` with the cell of each number. Cells of layer H are not
    numbered: they are settled. Returns how many there are.
    """
    size, actions = g.rewards.shape[1], g.rewards.shape[2]
    count = np.int64(0)
    for i in range(starts.shape[0]):
        g.place[starts[i]] = count
        cells[count] = starts[i]
        count += 1
    begin, t = np.int64(0), 1
    while begin < count and t < horizon:
        end = count
        clock = t % g.period * size
        left = size  # cells of this clock that have no number
        for s in range(size):
            left -= 1 if g.place[clock + s] >= 0 else 0
        for i in range(begin, end):
            if left == 0:
                break
            k, s = cells[i] // size, cells[i] % size
            paid = g.rewards[k if g.rewards.shape[0] > 1 else 0, s]
            row = (cells[i] if g.changes else s) * actions
            for a in range(actions):
                if paid[a] == -np.inf:
                    continue
                low, high = np.int64(0), size
                if g.states.shape[0] > 0:
                    low, high = np.int64(g.ptr[row + a]), np.int64(g.ptr[row + a + 1])
                for j in range(low, high):
                    after = clock + (g.states[j] if g.states.shape[0] > 0 else j)
                    if g.place[after] < 0:
                        g.place[after] = count
                        g.first[after] = t
                        cells[count] = after
                        count += 1
                        left -= 1
        begin = end
        t += 1
    return count


@jit(nogil=True)
def number_rows(g, cells, feature, rows):
    """Numbers the rows of reached cells in the order of the walk; returns how many there are.

    feature: (rows of the table,) filled with -1 at first; rows: the row of each number.
    """
    size, actions = g.rewards.shape[1], g.rewards.shape[2]
    count = np.int64(0)
    for i in range(cells.shape[0]):
        k, s = cells[i] // size, cells[i] % size
        row = (cells[i] if g.changes else s) * actions
        for a in range(actions):
            offered = g.rewards[k if g.rewards.shape[0] > 1 else 0, s, a] > -np.inf
            if offered and feature[row + a] < 0:
                feature[row + a] = count
                rows[count] = row + a
                count += 1
    return count


@jit(nogil=True)
def find_image(g, k, marked, there):
    """Marks the states that can follow marked ones of the clock k; both (S,)."""
    size, actions = g.rewards.shape[1], g.rewards.shape[2]
    for s in range(size):
        if not marked[s]:
            continue
        row = (k * size + s if g.changes else s) * actions
        for a in range(actions):
            if g.rewards[k if g.rewards.shape[0] > 1 else 0, s, a] == -np.inf:
                continue
            if g.states.shape[0] == 0:
                there[:] = True
                return
            for j in range(g.ptr[row + a], g.ptr[row + a + 1]):
                there[g.states[j]] = True


@jit(nogil=True)
def arrange(g, rows, ptr, source, target, back):
    """Copies the probabilities of a table to the features that its rows are, or back.

    rows: of each feature; ptr: pointers of features into their array.
    """
    size = g.rewards.shape[1]
    for z in range(rows.shape[0]):
        begin = rows[z] * size
        if g.states.shape[0] > 0:
            begin = np.int64(g.ptr[rows[z]])
        for j in range(ptr[z + 1] - ptr[z]):
            if back:
                target[begin + j] = source[ptr[z] + j]
            else:
                target[ptr[z] + j] = source[begin + j]


@inner()
def value_rows(g, p, after, begin, end, e):
    """e = pV of the rows begin..end - 1, which all states follow; eight sums side by side."""
    size, row = Place(g.rewards.shape[1]), begin
    while row + 8 <= end:
        i0 = Place(row) * size
        i1, i2, i3, i4 = i0 + size, i0 + 2 * size, i0 + 3 * size, i0 + 4 * size
        i5, i6, i7 = i4 + size, i4 + 2 * size, i4 + 3 * size
        e0 = e1 = e2 = e3 = e4 = e5 = e6 = e7 = 0.0
        for j in range(size):
            value = after[j]
            e0 += p[i0 + j] * value
            e1 += p[i1 + j] * value
            e2 += p[i2 + j] * value
            e3 += p[i3 + j] * value
            e4 += p[i4 + j] * value
            e5 += p[i5 + j] * value
            e6 += p[i6 + j] * value
            e7 += p[i7 + j] * value
        e[row], e[row + 1], e[row + 2], e[row + 3] = e0, e1, e2, e3
        e[row + 4], e[row + 5], e[row + 6], e[row + 7] = e4, e5, e6, e7
        row += 8
    while row < end:
        i0, e0 = Place(row) * size, 0.0
        for j in range(size):
            e0 += p[i0 + j] * after[j]
        e[row] = e0
        row += 1


@jit(nogil=True)
def sweep(g, p, v, e, policy, follow, layers, portion):
    """V and the policy of layers[0], ..., layers[1] (downward) for the states of a portion.

    p: the probabilities of all rows. v: (two layers or more, S), V of layer t in row t modulo their
    number. e: (rows,) memory, read where all states follow each row. follow: the policy is
    evaluated. Returns whether it changed. A thread that gets a part of the states sweeps one layer.
    """
    size, actions, changed = g.rewards.shape[1], g.rewards.shape[2], False
    dense = g.states.shape[0] == 0
    for t in range(layers[0], layers[1] - 1, -1):
        k = t % g.period
        paid = g.rewards[k if g.rewards.shape[0] > 1 else 0]
        now, after, chosen = v[t % v.shape[0]], v[(t + 1) % v.shape[0]], policy[t]
        base = k * size * actions if g.changes else 0
        if dense:
            begin, end = base + portion[0] * actions, base + portion[1] * actions
            value_rows(g, p, after, begin, end, e)
        for s in range(portion[0], portion[1]):
            cell = k * size + s
            if g.place[cell] < 0 or g.first[cell] > t:
                continue
            row, node = base + s * actions, g.place[cell]
            wanted, offered, best, which = chosen[node], 0, -np.inf, 0
            for a in range(actions):
                if paid[s, a] == -np.inf:
                    continue
                if not follow or offered == wanted:
                    value = 0.0
                    if dense:
                        value = e[row + a]
                    else:
                        for j in range(Place(g.ptr[row + a]), Place(g.ptr[row + a + 1])):
                            value += p[j] * after[g.states[j]]
                    value += paid[s, a]
                    if value > best:
                        best, which = value, offered
                offered += 1
            now[s] = best
            if not follow and wanted != which:
                chosen[node] = which
                changed = True
    return changed
