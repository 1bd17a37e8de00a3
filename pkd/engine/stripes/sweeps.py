"""Backward sweeps of the stripe engine: what they derive from a belief, their memory, the layers.

Memory is two layers of values and the settlement. It belongs to one call at a time and is lent to
the next one afterwards. Threads share the tiles of a large layer.
"""

from __future__ import annotations

import math
from functools import cached_property

import attrs
import numpy as np

from pkd.engine.belief import Belief
from pkd.engine.compiled import Compiled, Policy, reward_limits
from pkd.engine.set_values import PLACES
from pkd.engine.stripes import kernels
from pkd.engine.stripes.arrays import StripeArrays
from pkd.engine.stripes.passes import Layout
from pkd.engine.stripes.table import StripeTable
from pkd.engine.threads import Crew, get_threads
from pkd.model import ModelError
from pkd.optimism import CERTIFIED, DRAWS, L1_BALL, ONE_ROUND, OVER_SETS, PYTHON

__all__ = ["Derived", "Memory", "StripeSweeps"]

PARALLEL_WORK = 1_000_000  # states from which threads may share a layer
# From a belief: packed laws, tables of sets, what other rules need.
Derived = tuple[kernels.Pack, np.ndarray | None, kernels.Other | None]


@attrs.frozen(eq=False)
class Memory:
    """Two layers and the settlement."""

    layers: list[kernels.Layer]
    settled: kernels.Layer

    @classmethod
    def allocate(cls, n_x: int, layout: Layout) -> Memory:
        """Memory for values alone."""
        sizes = layout.columns[0], layout.columns[0], layout.columns[1]
        v = [np.zeros((n_x, max(columns, 1))) for columns in sizes]
        one, two, settled = (kernels.Layer(values, values, values) for values in v)
        return cls([one, two], settled)

    def with_ranges(self) -> Memory:
        """The same memory with the possible return to go."""
        if self.settled.low is not self.settled.v:
            return self
        return Memory([_add_ranges(layer) for layer in self.layers], _add_ranges(self.settled))

    def clear(self, over: list[int], layout: Layout) -> None:
        """Stopping is worth nothing more; no stripe computes its column."""
        for which, layer in ((0, self.layers[0]), (0, self.layers[1]), (1, self.settled)):
            if over[which] >= 0:
                column = layout.columns[which] - 1
                layer.v[:, column] = layer.low[:, column] = layer.high[:, column] = 0.0


def _add_ranges(layer: kernels.Layer) -> kernels.Layer:
    return kernels.Layer(layer.v, np.zeros_like(layer.v), np.zeros_like(layer.v))


class StripeSweeps(Compiled):
    """The sweeps of `StripeEngine`, which lays out the stripes."""

    table: StripeTable
    layout: Layout
    arrays: StripeArrays
    _free: list[Memory]  # memory of finished calls, for the next one
    _known_rewards: np.ndarray  # (rows of rewards, X)
    _reward_means: np.ndarray  # (rows of rewards, X) which unknown reward, or -1

    def sweep(self, belief: Belief, policy: Policy, *, follow: bool) -> tuple[float, bool]:
        memory = self._borrow(belief)
        try:
            derived = self._derive(belief)
            changed = self._sweep_to(0, belief, derived, memory, policy, follow)
            v = memory.layers[0].v
            value = math.fsum(p * v[x, y] for x, y, p in self.layout.start)
        finally:
            self._free.append(memory)
        return value, changed > 0

    def find_visits(self, belief: Belief, which: int, *, most: bool) -> float:
        g, sign = self.arrays.stripes, 1.0 if most else -1.0
        if which < len(self.features):  # each branch is paid by its row of laws, no action is
            paid = np.concatenate([g.law == which, np.zeros((1, g.law.shape[1]), bool)])
            none = np.full_like(g.action_reward, len(g.law))
            g = g._replace(branch_reward=g.branch_law, action_reward=none)
        else:
            paid = self._reward_means == which - len(self.features)
        derived = self._pack(belief)._replace(reward=sign * paid), self._tables(belief), None
        memory = self._borrow(belief)
        try:
            self._sweep_to(0, belief, derived, memory, self.policy(), follow=False, g=g)
            v = memory.layers[0].v
            return sign * math.fsum(p * v[x, y] for x, y, p in self.layout.start)
        finally:
            self._free.append(memory)

    def _derive(self, belief: Belief) -> Derived:
        """What a call derives from a belief."""
        if belief.form == PYTHON:
            raise ModelError(
                "values by a rule in Python need every state apart; give the model and the rule "
                "to optimistic_plan, learn or OptimisticLearner, which see to it"
            )
        other = None
        if belief.form == DRAWS:
            other = kernels.Other(belief.draws, None)
        elif belief.form == L1_BALL:
            other = kernels.Other(None, True)
        return self._pack(belief), self._tables(belief), other

    def _pack(self, belief: Belief) -> kernels.Pack:
        """The laws of a belief, packed, and its rewards."""
        g, size = self.arrays.stripes, len(belief.p)
        rows = len(self.row_ptr) - 1
        end, x, q = np.zeros(rows, np.int64), np.zeros(size, np.int64), np.zeros(size)
        if belief.form in (*OVER_SETS, L1_BALL):
            kernels.pack_whole(self.row_ptr, g.row_x, belief.p, end, x, q)
        else:
            kernels.pack(self.row_ptr, g.row_x, belief.p, end, x, q)
        lowest, highest = map(self._fill, reward_limits(self.rewards))
        longest = int(np.diff(self.row_ptr).max(initial=1))
        reward = self._fill(belief.mean)
        return kernels.Pack(end, x, q, reward, lowest, highest, longest, self._outcome_sets)

    @cached_property
    def _outcome_sets(self) -> np.ndarray:
        """A number for each law row; rows with the same outcomes have the same one."""
        numbers: dict[tuple[int, ...], int] = {}
        rows = np.split(self.arrays.stripes.row_x, self.row_ptr[1:-1])
        return np.array(
            [numbers.setdefault(tuple(sorted(row.tolist())), len(numbers)) for row in rows],
            np.int64,
        )

    def _tables(self, belief: Belief) -> np.ndarray | None:
        """The tables of values over sets of laws; empty for exact values, None for other rules."""
        if belief.form not in OVER_SETS and not (belief.form <= CERTIFIED and self.over_sets):
            return None
        quick = belief.form in OVER_SETS and belief.rounds == ONE_ROUND
        tables = np.zeros(len(belief.radius) * 2 * PLACES if quick else 0)
        if quick:
            kernels.fill_tables(belief.radius, tables)
        return tables

    def _fill(self, means: np.ndarray) -> np.ndarray:
        """The rewards of all rows, with the given values for unknown ones."""
        if not len(means):
            return self._known_rewards
        return self._known_rewards + np.where(
            self._reward_means >= 0, means[self._reward_means], 0.0
        )

    def _sweep_to(
        self,
        until: int,
        belief: Belief,
        derived: Derived,
        memory: Memory,
        policy: Policy,
        follow: bool,
        g: kernels.Stripes | None = None,
    ) -> int:
        """Sweeps from the end down to layer `until`: how many choices changed.

        That layer and the next one stay in the memory. g: other stripes than the engine's own.
        """
        changed, horizon = 0, self.horizon
        g = self.arrays.stripes if g is None else g
        crew = Crew(get_threads() if self.n_states >= PARALLEL_WORK else 1)
        memory.clear(self.table.over, self.layout)
        self._sweep_layer(
            g, crew, belief, derived, -1, horizon, memory.settled, memory.settled, policy, follow
        )
        for t in range(horizon - 1, until - 1, -1):
            last = t == horizon - 1
            first, source = (
                (kernels.LAST, memory.settled)
                if last
                else (kernels.STEP, memory.layers[(t + 1) % 2])
            )
            target = memory.layers[t % 2]
            changed += self._sweep_layer(
                g, crew, belief, derived, first, t, source, target, policy, follow
            )
        return changed

    def _sweep_layer(
        self, g: kernels.Stripes, crew: Crew, belief: Belief, derived: Derived, first: int, t: int,
        source: kernels.Layer, target: kernels.Layer, policy: Policy, follow: bool,
    ) -> int:  # fmt: skip
        """Sweeps one layer: level `first` from the next layer, then the CHANCE levels."""
        lo, hi = (
            (kernels.CHANCES, g.settlement)
            if t < self.horizon
            else (g.settlement, len(g.level_ptr) - 1)
        )
        if crew.threads < 2 and self.n_states < PARALLEL_WORK:
            return int(
                kernels.sweep_layer(
                    g, belief, *derived, first, lo, hi, t, source, target, policy, follow
                )
            )
        changed = 0
        for level in range(lo - 1, hi):
            which, read = (first, source) if level < lo else (level, target)
            if which < 0 or not g.level_active[which, t]:
                continue
            tiles = kernels.tiles_of(g, which, t)

            def work(
                begin: int, end: int, tiles: np.ndarray = tiles, read: kernels.Layer = read
            ) -> int:
                return int(
                    kernels.values(
                        g, belief, *derived, tiles, begin, end, t, read, target, policy, follow
                    )
                )

            changed += crew.share(work, len(tiles), float(g.tile_count[tiles].sum()))
        return changed

    def _borrow(self, belief: Belief) -> Memory:
        """The memory of one call: no two calls share one."""
        ranged = math.isnan(belief.width)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = Memory.allocate(len(self.table.xs), self.layout)
        return memory.with_ranges() if ranged else memory
