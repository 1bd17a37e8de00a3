"""The pairs that a rule in numpy is asked for, level by level."""

from __future__ import annotations

import numpy as np

from pkd.engine.belief import Belief
from pkd.engine.nodes.kernels import Program
from pkd.explore.segments import Segments

Array = np.ndarray


class Asked:
    """The pairs of one level that a rule in numpy is asked for in a layer; B: most outcomes."""

    pair: Array  # (n,)
    row: Array  # (n,)
    group: Array  # (n,)
    node: Array  # (B, n) the nodes that follow
    p: Array  # (B, n)

    def __init__(self, g: Program, b: Belief, level: int) -> None:
        self.g, self.b = g, b
        lo, hi = g.levels[level, 2:]
        self.groups = Segments(g.group_pair, g.group_first, g.group_last, lo, hi)
        # The layers whose pairs differ from those of the next layer.
        ends, starts = g.group_last[lo:hi].tolist(), g.group_first[lo:hi].tolist()
        self.changes = {g.horizon, *ends, *(first - 1 for first in starts)}
        self.pair, self.seen = np.zeros(0, np.int64), False

    def move_to(self, t: int) -> bool:
        """Takes the pairs of layer t; the last call was for t + 1. Whether there are any."""
        if t in self.changes or not self.seen:
            self._take(t)
        return len(self.pair) > 0

    def _take(self, t: int) -> None:
        self.seen = True
        self.groups.move_to(t)
        g, pair = self.g, self.groups.elements
        self.pair = pair[g.pair_row[pair] < g.n_unknown] if len(self.groups.which) else pair[:0]
        if len(self.pair):
            self.row, self.group = g.pair_row[self.pair], g.pair_group[self.pair]
            size = g.row_ptr[self.row + 1] - g.row_ptr[self.row]
            j = np.arange(size.max())[:, None]
            place = np.where(j < size, j, 0)
            self.node = g.group_node[g.group_ptr[self.group] + place]
            self.p = np.where(j < size, self.b.p[g.row_ptr[self.row] + place], 0.0)
