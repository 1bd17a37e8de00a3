"""The possible return to go from each node, and what it says of the values that follow a group.

It depends on rewards and on which nodes follow, not on a law, so it is found once for a model.

A worked example: the coin table of `pkd.engine.nodes.kernels`, with H = 3 and rewards 0 in state 0
and 1 in state 1. In the last layer lo = hi = (0, 1). The one group leads to both nodes, so one
layer earlier its cap is max hi = 1 and its width is max hi - min lo = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.nodes.kernels import CHANCES, LAST, STEP, Program
from pkd.engine.segments import take

__all__ = ["Ranges", "find_ranges"]

Array = np.ndarray


class Ranges(NamedTuple):
    """[lo, hi] of the nodes, and for each group the cap max hi and the width max hi - min lo."""

    cap: Array  # (H + 1, groups); the last layer is the settlement
    width: Array  # (H + 1, groups)
    lo: Array  # (layers, nodes); layer t stands at t % layers
    hi: Array  # (layers, nodes)
    lo_settled: Array  # (nodes of the settlement,)
    hi_settled: Array  # (nodes of the settlement,)


class Segments:
    """Those of the segments ptr[i]..ptr[i + 1], lo <= i < hi, that occur in a layer.

    first, last: the layers in which each occurs; first ascends.
    """

    def __init__(self, ptr: Array, first: Array, last: Array, lo: int, hi: int) -> None:
        self.ptr, self.first, self.last, self.lo, self.hi = ptr, first, last, lo, hi
        self.which, self.elements, self.starts = np.zeros((3, 0), np.int64)

    def move_to(self, t: int) -> bool:
        """Takes the segments of layer t; returns whether there are any."""
        end = self.lo + np.searchsorted(self.first[self.lo : self.hi], t, side="right")
        which = self.lo + np.flatnonzero(self.last[self.lo : end] >= t)
        if not np.array_equal(which, self.which):  # most layers are alike
            starts, self.elements = take(self.ptr, which)
            self.which, self.starts = which, starts[:-1]
        return len(which) > 0


def find_ranges(
    g: Program, low: Array, high: Array, final: tuple[Array, Array], layers: int
) -> Ranges:
    """low, high: of unknown rewards; final: what nodes pay at the end, of layers and settlement.

    layers: how many layers of [lo, hi] are kept, 2 at least.
    """
    lo, hi = np.tile(final[0], (2, layers, 1))
    cap, width = np.zeros((2, g.horizon + 1, len(g.group_matrix)))
    found = Ranges(cap, width, lo, hi, final[1].copy(), final[1].copy())
    owner = np.repeat(g.action_mean, np.diff(g.branch_ptr))
    r_lo, r_hi = (g.branch_reward + np.append(paid, 0.0)[owner] for paid in (low, high))
    cell_ptr = g.branch_ptr[g.action_ptr]  # the branches of a cell, of all its actions
    cells = [Segments(cell_ptr, g.cell_first, g.cell_last, *level[:2]) for level in g.levels]
    groups = [Segments(g.group_ptr, g.group_first, g.group_last, *level[2:]) for level in g.levels]
    for t in range(g.horizon, -1, -1):
        at = t % layers
        here = found[4:] if t == g.horizon else (lo[at], hi[at])
        for level in _list_levels(g, t):
            after = here
            if level < CHANCES:
                after = found[4:] if level == LAST else (lo[(t + 1) % layers], hi[(t + 1) % layers])
            part = groups[level]
            if part.move_to(t):
                nodes = g.group_node[part.elements]
                top = np.maximum.reduceat(after[1][nodes], part.starts)
                least = np.minimum.reduceat(after[0][nodes], part.starts)
                cap[t, part.which], width[t, part.which] = top, top - least
            part = cells[level]
            if part.move_to(t):
                k, nodes = part.elements, g.cell_node[part.which]
                pair = g.branch_pair[k]
                drawn = pair >= 0  # the others lead to one node
                worst, best = (end[np.where(drawn, 0, -1 - pair)] for end in after)
                group = g.pair_group[pair[drawn]]
                # A decision reads the groups of CHANCE levels one layer later.
                when = t + ((level < CHANCES) & (group >= g.levels[LAST, 3]))
                best[drawn] = cap[when, group]
                worst[drawn] = best[drawn] - width[when, group]
                here[1][nodes] = np.maximum.reduceat(r_hi[k] + best, part.starts)
                here[0][nodes] = np.minimum.reduceat(r_lo[k] + worst, part.starts)
    return found


def _list_levels(g: Program, t: int) -> list[int]:
    """The levels of a layer, in the order of the sweep."""
    if t == g.horizon:
        return list(range(g.settlement, len(g.levels)))
    return [LAST if t == g.horizon - 1 else STEP, *range(CHANCES, g.settlement)]
