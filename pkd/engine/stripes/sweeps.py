"""Backward sweeps of the stripe engine: what they derive from a belief, their memory, the layers.

Memory is two layers of values and the settlement. It belongs to one call at a time and is lent to
the next one afterwards. Threads share the tiles of a large layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import attrs
import numpy as np

from pkd.engine.belief import Belief
from pkd.engine.compiled import Policy, reward_limits
from pkd.engine.set_values import PLACES
from pkd.engine.stripes import kernels
from pkd.engine.stripes.arrays import StripeArrays
from pkd.engine.stripes.columns import AT_ONCE, Work
from pkd.engine.stripes.passes import Layout
from pkd.engine.stripes.table import StripeTable
from pkd.engine.threads import Crew, get_threads
from pkd.model import UnknownReward
from pkd.optimism import CERTIFIED, EXACT, NUMPY, ONE_ROUND

NONE = np.zeros((0, 0))
NO_PAIRS = NONE, NONE, np.zeros(0, np.int64), NONE  # with them pairs are only counted
PARALLEL_WORK = 1_000_000  # states from which threads may share a layer
ASKED = 1 << 18  # pairs that are gathered for a rule in numpy at once


class Derived(NamedTuple):
    """What a call derives from a belief: what `kernels.values` is told."""

    belief: Belief  # without a rule in Python
    pack: kernels.Pack
    bonus: bool | None
    tables: np.ndarray | None  # of sets of laws
    given: np.ndarray | None  # values of pairs that a rule in numpy has


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


class Sweeper:
    """The sweeps over some stripes, and the memory that they lend one another."""

    def __init__(
        self, table: StripeTable, layout: Layout, arrays: StripeArrays, row_ptr: np.ndarray,
        n_unknown: int, rewards: Sequence[UnknownReward], horizon: int,
    ) -> None:  # fmt: skip
        self.table, self.layout, self.arrays, self.row_ptr = table, layout, arrays, row_ptr
        self.n_unknown, self.rewards, self.horizon = n_unknown, rewards, horizon
        self.known_rewards, self.reward_means = table.reward_arrays()  # (rows of rewards, X) each
        self.n_states = len(table.xs) * layout.columns[0]
        self._free: list[Memory] = []  # memory of finished calls, for the next one
        self._pairs: list[int] | None = None

    def sweep(
        self, belief: Belief, form: int, policy: Policy, *, follow: bool
    ) -> tuple[float, bool]:
        """The value of the start, and whether the policy changed."""
        memory = self.borrow(belief)
        try:
            derived = self.derive(belief, form)
            changed = self.sweep_to(0, belief, derived, memory, policy, follow)
            return self._value_start(memory), changed > 0
        finally:
            self._free.append(memory)

    def find_visits(
        self, belief: Belief, form: int, policy: Policy, which: int, sign: float
    ) -> float:
        """The most visits of a feature (or of n_unknown + a reward); sign -1: the least ones."""
        g = self.arrays.stripes
        if which < self.n_unknown:  # each branch is paid by its row of laws, no action is
            paid = np.concatenate([g.law == which, np.zeros((1, g.law.shape[1]), bool)])
            none = np.full_like(g.action_reward, len(g.law))
            g = g._replace(branch_reward=g.branch_law, action_reward=none)
        else:
            paid = self.reward_means == which - self.n_unknown
        derived = self.derive(belief, form)
        derived = derived._replace(pack=derived.pack._replace(reward=sign * paid))
        memory = self.borrow(belief)
        try:
            self.sweep_to(0, belief, derived, memory, policy, follow=False, g=g)
            return sign * self._value_start(memory)
        finally:
            self._free.append(memory)

    def _value_start(self, memory: Memory) -> float:
        v = memory.layers[0].v
        return math.fsum(p * v[x, y] for x, y, p in self.layout.start)

    def derive(self, belief: Belief, form: int) -> Derived:
        """What a call derives from a belief. form: whose code it runs in."""
        tables = self._tables(belief) if form == CERTIFIED else None
        bonus = True if form not in (EXACT, CERTIFIED, NUMPY) else None
        given = np.zeros(0) if form == NUMPY else None
        return Derived(belief.plain, self._pack(belief), bonus, tables, given)

    def _pack(self, belief: Belief) -> kernels.Pack:
        """The laws of a belief, packed, and its rewards."""
        g, size = self.arrays.stripes, len(belief.p)
        rows = len(self.row_ptr) - 1
        end, x, q = np.zeros(rows, np.int64), np.zeros(size, np.int64), np.zeros(size)
        if belief.form == CERTIFIED:
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

    def _tables(self, belief: Belief) -> np.ndarray:
        """The tables of values over sets of laws; empty for exact values."""
        quick = belief.form == CERTIFIED and belief.rounds == ONE_ROUND
        tables = np.zeros(len(belief.radius) * 2 * PLACES if quick else 0)
        if quick:
            kernels.fill_tables(belief.radius, tables)
        return tables

    def _fill(self, means: np.ndarray) -> np.ndarray:
        """The rewards of all rows, with the given values for unknown ones."""
        if not len(means):
            return self.known_rewards
        return self.known_rewards + np.where(self.reward_means >= 0, means[self.reward_means], 0.0)

    def sweep_to(
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
        self.sweep_layer(
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
            changed += self.sweep_layer(
                g, crew, belief, derived, first, t, source, target, policy, follow
            )
        return changed

    def sweep_layer(
        self, g: kernels.Stripes, crew: Crew, belief: Belief, derived: Derived, first: int, t: int,
        source: kernels.Layer, target: kernels.Layer, policy: Policy, follow: bool,
    ) -> int:  # fmt: skip
        """Sweeps one layer: level `first` from the next layer, then the CHANCE levels."""
        lo, hi = (
            (kernels.CHANCES, g.settlement)
            if t < self.horizon
            else (g.settlement, len(g.level_ptr) - 1)
        )
        d = derived
        if belief.form != NUMPY and crew.threads < 2 and self.n_states < PARALLEL_WORK:
            work = self._make_work(policy)
            return int(kernels.sweep_layer(
                g, *d, work, first, lo, hi, t, source, target, policy, follow
            ))  # fmt: skip
        changed = 0
        for level in range(lo - 1, hi):
            which, read = (first, source) if level < lo else (level, target)
            if which < 0 or not g.level_active[which, t]:
                continue
            tiles = kernels.tiles_of(g, which, t)

            def work_on(
                begin: int, end: int, tiles: np.ndarray = tiles, read: kernels.Layer = read
            ) -> int:
                told, work = d, self._make_work(policy)
                if belief.form == NUMPY:
                    told = d._replace(given=self._ask(g, belief, d, tiles, begin, end, read))
                return int(kernels.values(
                    g, *told, work, tiles, begin, end, t, read, target, policy, follow
                ))  # fmt: skip

            if belief.form == NUMPY:
                changed += sum(work_on(*part) for part in self._cut(d, tiles))
            else:
                changed += crew.share(work_on, len(tiles), float(g.tile_count[tiles].sum()))
        return changed

    def sweep_alone(
        self, g: kernels.Stripes, belief: Belief, derived: Derived, source: kernels.Layer,
        target: kernels.Layer,
    ) -> None:  # fmt: skip
        """The values of the only tile of other stripes than the engine's own."""
        tiles, choices = np.zeros(1, np.int64), np.zeros(1, np.uint8)
        if belief.form == NUMPY:
            given = self._ask(g, belief, derived, tiles, 0, 1, source)
            derived = derived._replace(given=given)
        work = self._make_work(choices)
        kernels.values(g, *derived, work, tiles, 0, 1, 0, source, target, choices, False)

    def _ask(
        self, g: kernels.Stripes, belief: Belief, derived: Derived, tiles: np.ndarray, begin: int,
        end: int, source: kernels.Layer,
    ) -> np.ndarray:  # fmt: skip
        """The values that a rule in numpy gives the pairs of tiles[begin:end]."""
        told = g, derived.belief, derived.pack, self._make_work(), tiles, begin, end, source
        n = int(kernels.gather(*told, *NO_PAIRS))
        if n == 0:
            return np.zeros(0)
        longest = int(np.diff(self.row_ptr[: self.n_unknown + 1]).max(initial=1))
        p, v = np.empty((2, longest, n))
        row, limits = np.zeros(n, np.int64), np.empty((2, n))
        kernels.gather(*told, p, v, row, limits)
        return belief.ask(p, v, row, limits)

    def _cut(self, derived: Derived, tiles: np.ndarray) -> Iterator[tuple[int, int]]:
        """Portions of some tiles with at most ASKED pairs of an unknown feature, or of one tile."""
        if self._pairs is None:  # of each tile
            g, layer = self.arrays.stripes, kernels.Layer(NONE, NONE, NONE)
            every = np.arange(len(g.tile_batch))
            told = g, derived.belief, derived.pack, self._make_work(), every
            self._pairs = [int(kernels.gather(*told, i, i + 1, layer, *NO_PAIRS)) for i in every]
        begin, count = 0, 0
        for i, tile in enumerate(tiles.tolist()):
            if count and count + self._pairs[tile] > ASKED:
                yield begin, i
                begin, count = i, 0
            count += self._pairs[tile]
        yield begin, len(tiles)

    def _make_work(self, policy: Policy | None = None) -> Work:
        """Memory for the columns of one tile."""
        width, most, longest = self._widths
        kind = np.uint8 if policy is None else policy.dtype
        rows = np.empty((9, width))
        return Work._make([
            *rows, np.empty(width, np.uint64), np.empty(AT_ONCE * width), np.empty(most),
            np.empty(most, kind), np.empty(longest),
        ])  # fmt: skip

    @cached_property
    def _widths(self) -> tuple[int, int, int]:
        """(numbers that a tile needs for one stripe, columns of a tile, outcomes of a row)."""
        g = self.arrays.stripes
        fans = np.ones(len(g.batch_ptr) - 1, np.int64)
        for batch in range(len(fans)):
            mine = g.batch_stripe[g.batch_ptr[batch] : g.batch_ptr[batch + 1]]
            fans[batch] = max(1, int(g.stripe_fan[mine].max(initial=1)))
        width = int((g.tile_count * fans[g.tile_batch]).max(initial=1))
        longest = int(np.diff(self.row_ptr).max(initial=1))
        return width, int(g.tile_count.max(initial=1)), longest

    def forget(self) -> None:
        """Frees the memory of finished calls."""
        self._free.clear()

    def borrow(self, belief: Belief) -> Memory:
        """The memory of one call: no two calls share one."""
        ranged = math.isnan(belief.width)
        try:
            memory = self._free.pop()
        except IndexError:
            memory = Memory.allocate(len(self.table.xs), self.layout)
        return memory.with_ranges() if ranged else memory
