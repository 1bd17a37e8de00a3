"""`TableEngine`: a table as arrays. Exact sweeps read them; every other rule has the list of nodes.

A law is read in bulk where it lies in arrays, too. The program and the walk of the engine of nodes
are made when something asks for them: optimism, simulation, distributions of the return.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pkd.adapters import Table, find_masses
from pkd.engine.compiled import Policy, Truth
from pkd.engine.nodes.engine import NodeEngine
from pkd.engine.table import kernels
from pkd.engine.table.graph import TableGraph, freeze
from pkd.engine.threads import Crew, get_threads
from pkd.model import Law, PartiallyKnownMDP

__all__ = ["TableEngine"]

PORTION_SIZE = 5e7  # successors that one compiled call reads: a fraction of a second
SHARED_SIZE = 2e5  # successors of a layer from which on threads share it
THIN_SIZE = 10_000  # entries of a dense table from which on its zeros may be left out
THIN_PART = 8  # ... if at most one entry in so many is none
KEPT_BYTES = 1 << 28  # values of layers that are kept for questions


class TableEngine(NodeEngine):
    """Every state apart, read from arrays."""

    engine = "table"
    graph: TableGraph

    def __init__(self, model: PartiallyKnownMDP, table: Table, most: int | None = None) -> None:
        self._start(TableGraph(model, table, most))
        g, rows = self.graph.rows, self.graph.n_rows
        self._e = 0 if len(g.states) else rows
        successors = len(g.states) or rows * self.graph.size
        self._load = successors / (g.period if g.changes else 1) + self.graph.size  # of a layer
        self._values: tuple[Truth, int, np.ndarray] | None = None
        self.check_declared()

    def refuse_size(self) -> None:
        """The graph has asked for the memory."""

    @property
    def n_states(self) -> int:
        return self.graph.n_states

    # -- features and laws -------------------------------------------------------------------------

    @property
    def n_weights(self) -> int:
        return len(self.features)  # they come with all y' alike

    @cached_property
    def branching(self) -> np.ndarray:
        found = np.diff(self.row_ptr).astype(float)
        most = self.graph.table.branching
        return found if most is None else np.minimum(found, most)

    def _branching_findings(self) -> Iterator[str]:
        return iter(())  # the table says it as a whole

    @cached_property
    def feature_index(self) -> Mapping[Any, int]:
        return FeatureIndex(self.graph)

    def place(self, row: int, x: Any) -> int | None:
        if isinstance(x, bool) or not isinstance(x, int | np.integer):
            return None
        states = self.graph.list_outcomes(row)
        i = int(np.searchsorted(states, x))
        found = i < len(states) and states[i] == x
        return int(self.row_ptr[row]) + i if found else None

    def truth(self, law: Law) -> Truth:
        """A law by the rows of the table, whichever form it has."""
        graph, masses = self.graph, find_masses(law, self.graph.table)
        if masses is None:
            given = super().truth(law)
            law, masses = given.law, np.zeros(len(graph.rows.states) or self._e * graph.size)
            source = freeze(given.masses)
            kernels.arrange(graph.rows, graph.row, self.row_ptr, source, masses, True)
        return Truth(self, law, [], freeze(masses), self._arrange)

    def _arrange(self, masses: np.ndarray) -> np.ndarray:
        graph, p = self.graph, np.empty(int(self.row_ptr[-1]))
        kernels.arrange(graph.rows, graph.row, self.row_ptr, masses, p, False)
        return p

    # -- policies ----------------------------------------------------------------------------------

    @cached_property
    def n_actions(self) -> np.ndarray:
        clock, s = np.divmod(self.graph.cell, self.graph.size)
        rewards = self.graph.table.rewards
        counts: np.ndarray = (rewards > -np.inf).sum(axis=-1)
        found: np.ndarray = counts[clock if len(rewards) > 1 else 0, s]
        return found

    def find_choice(self, h: int, x: Any, y: Any) -> tuple[Any, Sequence[Any] | None]:
        node = self._find_node(h, x, y)
        return (h - 1, node), [action for *_, action in self.graph.list_choices(node)]

    def decisions(self, h: int) -> Iterator[tuple[Any, Any, Any, list[Any]]]:
        self.check_step(h)
        nodes = self.graph.list_layer(h - 1).tolist()
        for node, (x, y) in zip(nodes, self.graph.decision_states(h), strict=True):
            yield (h - 1, node), x, y, [a for *_, a in self.graph.list_choices(node)]

    # -- sweeps ------------------------------------------------------------------------------------

    def solve(self, truth: Truth, policy: Policy, *, follow: bool = False) -> tuple[float, bool]:
        v = np.zeros((2, self.graph.size))
        changed = self._sweep_table(truth, policy, v, follow, 0)
        starts = self.graph.cell[: len(self.graph.start)]
        first = [p for _, _, p in self.graph.start]
        return _add(first, v[0, starts % self.graph.size].tolist()), changed

    def _sweep_table(
        self, truth: Truth, policy: Policy, v: np.ndarray, follow: bool, bottom: int
    ) -> bool:
        """The layers H - 1, ..., bottom; V of layer t ends in v[t % len(v)], V of layer H is 0."""
        size, e = self.graph.size, np.zeros(self._e)
        g, p, load = self._leave_out_zeros(truth.masses)
        threads, top = get_threads() if load >= SHARED_SIZE else 1, self.horizon - 1
        changed = False
        if threads == 1 and load < PORTION_SIZE:
            step = max(int(PORTION_SIZE / load), 1)
            for t in range(top, bottom - 1, -step):
                layers = t, max(t - step + 1, bottom)
                changed |= kernels.sweep(g, p, v, e, policy, follow, layers, (0, size))
            return bool(changed)
        crew = Crew(threads)
        for t in range(top, bottom - 1, -1):

            def work(begin: int, end: int, t: int = t) -> int:
                return int(kernels.sweep(g, p, v, e, policy, follow, (t, t), (begin, end)))

            changed |= bool(crew.share(work, size, load))
        return bool(changed)

    def _leave_out_zeros(self, p: np.ndarray) -> tuple[kernels.Rows, np.ndarray, float]:
        """The rows as a sweep reads them, their masses, and the load of a layer.

        Of a dense table that is mostly zeros (Gymnasium's are) only what is left is read. Sums keep
        their order, and so their bits.
        """
        g, size = self.graph.rows, self.graph.size
        thin = not len(g.states) and THIN_SIZE <= len(p) <= np.iinfo(g.ptr.dtype).max
        if not thin or THIN_PART * np.count_nonzero(p) > len(p):
            return g, p, self._load
        kept = np.flatnonzero(p)
        ptr = np.searchsorted(kept, np.arange(0, len(p) + 1, size)).astype(g.ptr.dtype)
        g = g._replace(ptr=ptr, states=(kept % size).astype(g.states.dtype))
        return g, freeze(p[kept]), len(kept) / (g.period if g.changes else 1) + size

    def find_values_under(self, truth: Truth, h: int, x: Any, y: Any) -> dict[Any, float]:
        node, t, kept = self._find_node(h, x, y), h - 1, self._values
        if kept is None or kept[0] is not truth or not kept[1] <= t < kept[1] + len(kept[2]) - 1:
            most = max(KEPT_BYTES // (8 * self.graph.size), 2)
            v = np.zeros((min(self.horizon - t + 1, most), self.graph.size))
            self._sweep_table(truth, self.policy(), v, False, t)
            kept = self._values = truth, t, v
        after, found = kept[2][(t + 1) % len(kept[2])], dict[Any, float]()
        for row, paid, action in self.graph.list_choices(node):
            first, states = self.graph.list_successors(row)
            follows = truth.masses[first : first + len(states)] * after[states]
            found[action] = float(np.cumsum(follows)[-1] + paid)  # added one by one, as in a sweep
        return found


class FeatureIndex(Mapping[Any, int]):
    """The number of each feature."""

    def __init__(self, graph: TableGraph) -> None:
        self._graph = graph

    def __getitem__(self, z: Any) -> int:
        found = self._graph.find_feature(z)
        if found < 0:
            raise KeyError(z)
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._graph.features)

    def __len__(self) -> int:
        return len(self._graph.features)


def _add(p: list[float], values: list[float]) -> float:
    """sum_i p_i v_i, one by one as in a kernel."""
    total = 0.0
    for share, value in zip(p, values, strict=True):
        total += share * value
    return total
