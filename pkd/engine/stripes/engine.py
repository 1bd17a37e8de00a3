"""`StripeEngine`: V[x, y] over stripes, for large models with a queue.

Memory is two layers of values and one byte per decision and step.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.adapters import proves_range
from pkd.check import explained
from pkd.engine.belief import Belief, Tally, World
from pkd.engine.compiled import Compiled, Policy, Result
from pkd.engine.stripes import kernels, walk
from pkd.engine.stripes.arrays import cover, find_deciding_columns, to_arrays
from pkd.engine.stripes.lookup import find_windows
from pkd.engine.stripes.passes import Layout, keep, reduce
from pkd.engine.stripes.sweeps import Derived, Memory, Sweeper
from pkd.engine.stripes.table import StripeTable, build_table
from pkd.engine.threads import Crew
from pkd.explore import explore
from pkd.explore.graph import CHANCES, LAST, SETTLED, STEP, Graph
from pkd.explore.limits import refuse_bytes
from pkd.explore.segments import lengths_to_ptr
from pkd.explore.sizes import is_declared_range_safe
from pkd.model import CHANCE, END, ModelError
from pkd.optimism import EXACT, SUM, Bonus

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

KEPT_CELLS = 50_000_000  # bytes allowed for caching reachable states per layer
PATH = 3  # columns of a path: law row, outcome, note
MOST_COLUMNS = 2**60  # beyond it columns cannot be numbered


class StripeEngine(Compiled):
    """A model as stripes."""

    engine = "stripes"

    def __init__(self, graph: Graph, table: StripeTable | None = None) -> None:
        """table: keep all of its stripes apart; by default a new one goes through the passes."""
        super().__init__(graph)
        if graph.n_states >= MOST_COLUMNS:
            refuse_bytes(graph.n_states, self._describe(graph.n_states))
        self.table = build_table(graph) if table is None else table
        self.weights = self.table.weights
        self._set_rows()
        self.layout = layout = (
            reduce(self.table, self.horizon) if table is None else keep(self.table)
        )
        windows = find_windows(layout.start, layout.stripes, self.horizon)
        self._refuse_size(layout, windows)
        self.arrays = to_arrays(self.table, layout, windows, self.horizon)
        self.sweeper = Sweeper(
            self.table, layout, self.arrays, self.row_ptr, len(self.features), self.rewards,
            self.horizon,
        )  # fmt: skip
        self._kept: tuple[Belief, int, Derived, Memory] | None = None
        self._reach: dict[int, np.ndarray] = {}  # which states can occur, by layer
        self._lock = threading.RLock()  # guards what is cached between calls
        if table is None:
            self.check_declared()

    def _range_findings(self) -> Iterator[str]:
        # Bounds from the graph are cheap and usually enough; else sweep over the stripes.
        safe = proves_range(self.model) or is_declared_range_safe(self.graph)
        return iter(()) if safe else super()._range_findings()

    def _set_rows(self) -> None:
        """The table numbers known laws by their outcomes among x; inlined laws may be new."""
        sizes = [*map(len, self.outcomes), *map(len, self.table.known)]
        self.row_ptr = lengths_to_ptr(np.array(sizes, np.int64))
        self.known_p = np.array([p for law in self.table.known for _, p in law], float)

    def _refuse_size(self, layout: Layout, windows: list[int]) -> None:
        """Refuses a model whose two layers of values, settlement and policy do not fit."""
        size = len(self.table.xs)
        lowest, beyond = find_deciding_columns(layout.stripes, windows, self.horizon)
        choices = sum(map(int, beyond)) - sum(map(int, lowest))
        values = 8 * (2 * layout.columns[0] + layout.columns[1])
        refuse_bytes(size * (values + choices), self._describe(size * layout.columns[0]))

    def _describe(self, n_states: int) -> str:
        count = f"{n_states:,}" if n_states < 10**15 else f"{n_states:.3g}"
        return f"{type(self.model).__name__} has {count} states; a plan of {self.horizon} steps"

    def __repr__(self) -> str:
        return (
            f"<{type(self.model).__name__} compiled: {len(self.table.xs)} x by "
            f"{self.layout.columns[0]} columns, {len(self.layout.stripes)} stripes, "
            f"{len(self.features)} unknown features, horizon {self.horizon}>"
        )

    @property
    def n_states(self) -> int:
        return len(self.table.xs) * self.layout.columns[0]

    @cached_property
    def plain(self) -> StripeEngine:
        """The same table without passes: every state apart."""
        return StripeEngine(self.graph, self.table)

    def _identify_layout(self) -> bytes:
        """Where blocks and entries stand, and what moves do with a queue; no names."""
        graph, letters = self.graph, self.graph.letters

        def encode(entries: Iterable[Any]) -> list[int]:
            return [letters[entry] for entry in entries]

        cells = [
            ([encode(prefix) for prefix in part.prefix],
             [(encode(front), encode(back)) for front, back in part.ends])
            for part in graph.cells
        ]  # fmt: skip
        lengths = [block.length for block in graph.blocks]
        places = [list(offsets.items()) for offsets in self.table.offsets]
        order = encode(self.table.alphabet)
        return repr((cells, lengths, places, order, graph.landing_block)).encode()

    @cached_property
    def explicit(self) -> NodeEngine:
        """Explores the model once more, without hiding queues."""
        from pkd.engine.nodes.engine import NodeEngine

        with explained(self.model):
            return NodeEngine(explore(self.model))

    # -- sweeps ------------------------------------------------------------------------------------

    def sweep(self, belief: Belief, policy: Policy, *, follow: bool) -> tuple[float, bool]:
        return self.sweeper.sweep(belief, self.find_form(belief), policy, follow=follow)

    def find_visits(self, belief: Belief, which: int, *, most: bool) -> float:
        form, sign = self.find_form(belief), 1.0 if most else -1.0
        return self.sweeper.find_visits(belief, form, self.policy(), which, sign)

    # -- policies ----------------------------------------------------------------------------------

    def policy(self, size: int | None = None) -> Policy:
        """The action of each state in each layer; `StripeArrays.choice_at` says where."""
        most = max((len(stripe.actions) for stripe in self.layout.stripes), default=1)
        size = int(self.arrays.stripes.policy_ptr[-1]) if size is None else size
        return np.zeros(size, np.uint8 if most <= 256 else np.int64)

    def _forget_choices(self) -> tuple[kernels.Stripes, Policy]:
        """Stripes whose layers all write their choices to one place, for sweeps for values alone.

        The choices of all layers would be the largest array of such a sweep.
        """
        g = self.arrays.stripes
        largest = int(np.diff(g.policy_ptr).max(initial=0))
        return g._replace(policy_ptr=np.zeros_like(g.policy_ptr)), self.policy(largest)

    def has_choices(self, policy: np.ndarray) -> bool:
        g = self.arrays.stripes
        for stripe, window in zip(self.layout.stripes, self.arrays.windows, strict=True):
            for t in range(self.horizon) if stripe.part in (STEP, LAST) else ():
                if window >> t & 1:
                    width = int(g.policy_to[t] - g.policy_from[t])
                    layer = policy[g.policy_ptr[t] : g.policy_ptr[t + 1]].reshape(-1, width)
                    at = stripe.start - int(g.policy_from[t])
                    chosen = layer[self.table.sets[stripe.xs], at : at + stripe.length]
                    if (chosen < 0).any() or (chosen >= len(stripe.actions)).any():
                        return False
        return True

    def find_choice(self, h: int, x: Any, y: Any) -> tuple[Any, Sequence[Any] | None]:
        self.check_step(h)
        actions = self.model.actions(x, y)
        if actions is CHANCE or actions is END:
            return None, None
        return self._find_choice(h, *self._place(h, x, y)), tuple(actions)

    def decisions(self, h: int) -> Iterator[tuple[Any, Any, Any, list[Any]]]:
        for i, column in self._list_decisions(h):
            x, y = self.table.xs[i], self.table.y_of(column)
            yield self._find_choice(h, i, column), x, y, list(self.model.actions(x, y))

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        for i, column in self._list_decisions(h):
            yield self.table.xs[i], self.table.y_of(column)

    def _list_decisions(self, h: int) -> Iterator[tuple[int, int]]:
        """(x, column of the table) of the decision states that can occur at step h."""
        self.check_step(h)
        plain = self.plain
        reached = plain._find_reached(h - 1)
        part = LAST if h == self.horizon else STEP
        for stripe, window in zip(self.table.stripes, plain.arrays.windows, strict=True):
            if stripe.part == part and window >> (h - 1) & 1:
                xs = self.table.sets[stripe.xs]
                marked = reached[xs, stripe.start : stripe.end]
                for i, x in np.argwhere(marked.T).tolist():
                    yield int(xs[x]), stripe.start + i

    def _place(self, h: int, x: Any, y: Any) -> tuple[int, int]:
        i, column = self.table.x_index.get(x), self.table.column_of(y)
        if i is None or column is None or not self._holds(h - 1, i, column):
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur at step {h}")
        return i, column

    def _find_choice(self, h: int, x: int, column: int) -> int:
        part, t = LAST if h == self.horizon else STEP, h - 1
        for place in self.layout.places(column):  # a merged column is computed in some layers only
            stripe = self.arrays.stripe_at(part, x, place)
            if stripe >= 0 and self.arrays.windows[stripe] >> t & 1:
                return self.arrays.choice_at(t, x, place)
        raise ModelError(
            f"(x={self.table.xs[x]!r}, y={self.table.y_of(column)!r}) takes no action at step {h}"
        )

    # -- states by name ----------------------------------------------------------------------------

    def values_at(self, belief: Belief, h: int, x: Any, y: Any) -> dict[Any, float]:
        """From the table without passes, so that every state of the model is there."""
        self.check_step(h)
        i, column = self._place(h, x, y)
        plain, t = self.plain, h - 1
        with plain._lock:
            if plain._kept is None or plain._kept[0] is not belief or plain._kept[1] != t:
                self.sweeper.forget()  # its memory: there is room for one of both
                derived = plain.sweeper.derive(belief, plain.find_form(belief))
                memory = plain.sweeper.borrow(belief)
                g, choices = plain._forget_choices()
                plain.sweeper.sweep_to(t, belief, derived, memory, choices, follow=False, g=g)
                plain._kept = belief, t, derived, memory
            _, _, derived, memory = plain._kept
            actions = self.model.actions(x, y)
            if actions is CHANCE or actions is END:
                return {None: float(memory.layers[t % 2].v[i, column])}
            last = t == self.horizon - 1
            stripe = plain.arrays.stripe_at(LAST if last else STEP, i, column)
            alone = plain.arrays.isolate_actions(stripe, i, column)
            out = np.zeros((len(self.table.xs), len(tuple(actions))))
            source = memory.settled if last else memory.layers[(t + 1) % 2]
            target = kernels.Layer(out, out, out)
            plain.sweeper.sweep_alone(alone, belief, derived, source, target)
        return dict(zip(tuple(actions), out[i].tolist(), strict=True))

    def _holds(self, t: int, x: int, column: int) -> bool:
        plain = self.plain
        if plain._keeps_layers:
            return bool(plain._find_reached(t)[x, column])
        parts = [LAST, CHANCES] if t == self.horizon - 1 else [STEP, CHANCES]
        found = [plain.arrays.stripe_at(part, x, column) for part in parts]
        return any(stripe >= 0 and plain.arrays.windows[stripe] >> t & 1 for stripe in found)

    def _find_reached(self, t: int) -> np.ndarray:
        """Which states can occur in layer t, (X, columns)."""
        g, shape = self.arrays.stripes, (len(self.table.xs), self.layout.columns[0])
        with self._lock:
            if t not in self._reach and not any(before < t for before in self._reach):
                first = np.zeros(shape, bool)
                for x, y, _ in self.layout.start:
                    first[x, y] = True
                self._reach[0] = self._add_chances(0, first)
            while t not in self._reach:
                before = max(before for before in self._reach if before < t)
                there = np.zeros(shape, bool)
                walk.reach(g, kernels.STEP, before, self._reach[before], there)
                if not self._keeps_layers:
                    self._reach.clear()
                self._reach[before + 1] = self._add_chances(before + 1, there)
            return self._reach[t]

    @property
    def _keeps_layers(self) -> bool:
        """Whether reachable states are cached for all layers; else only for the last one asked."""
        return self.n_states * self.horizon <= KEPT_CELLS

    def _add_chances(self, t: int, here: np.ndarray) -> np.ndarray:
        """Adds what the CHANCE states of layer t lead to, the highest level first."""
        for level in range(self.arrays.stripes.settlement - 1, kernels.CHANCES - 1, -1):
            walk.reach(self.arrays.stripes, level, t, here, here)
        return here

    def return_ranges(self) -> Iterator[tuple[str, float, float]]:
        """Over the reachable states; over all states of their stripes where reach is not cached."""
        if not self.graph.hidden:
            yield from super().return_ranges()
            return
        plain, crew, horizon = self.plain, Crew(1), self.horizon
        truth = self.optimistic(Bonus(EXACT), 1, 0.5)
        # A belief under which a sweep computes the possible returns to go of every state.
        belief = truth._replace(form=SUM, free=1.0, width=math.nan)
        sweeper = plain.sweeper
        derived = sweeper.derive(belief, SUM)
        memory, (g, policy) = sweeper.borrow(belief), plain._forget_choices()
        memory.clear(self.table.over, plain.layout)
        source = memory.settled
        for t in range(horizon, -1, -1):
            first = -1 if t == horizon else kernels.LAST if t == horizon - 1 else kernels.STEP
            layer = memory.settled if t == horizon else memory.layers[t % 2]
            sweeper.sweep_layer(g, crew, belief, derived, first, t, source, layer, policy, False)
            when = "after the last action" if t == horizon else f"at step {t + 1}"
            found = list(plain._list_ranges(layer, t))
            if found:
                lows, highs = zip(*found, strict=True)
                yield f"to go {when}", min(lows), max(highs)
            source = layer

    def _list_ranges(self, layer: kernels.Layer, t: int) -> Iterator[tuple[float, float]]:
        """The lowest and the highest return to go of each stripe in a layer."""
        settled = t == self.horizon
        reached = self._find_reached(t) if self._keeps_layers and not settled else None
        for stripe, window in zip(self.layout.stripes, self.arrays.windows, strict=True):
            if window >> t & 1 and (stripe.part == SETTLED) == settled:
                at = np.ix_(self.table.sets[stripe.xs], np.arange(stripe.start, stripe.end))
                lows, highs = layer.low[at], layer.high[at]
                if reached is not None:
                    lows, highs = lows[reached[at]], highs[reached[at]]
                if lows.size:
                    yield float(lows.min()), float(highs.max())

    # -- episodes ----------------------------------------------------------------------------------

    @cached_property
    def walk(self) -> walk.Walk:
        """What episodes need beside the stripes."""
        table, layout = self.table, self.layout
        return walk.Walk(
            self.horizon,
            cover(table, layout.stripes, (STEP, CHANCES)),
            cover(table, layout.stripes, (LAST,)),
            cover(table, layout.stripes, (SETTLED,)),
            np.array([x for x, _, _ in layout.start], np.int64),
            np.array([y for _, y, _ in layout.start], np.int64),
            np.cumsum([p for _, _, p in layout.start]),
            self.sweeper.known_rewards,
            self.sweeper.reward_means,
        )

    def episodes(
        self, world: World, policy: Policy, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        g, path = self.arrays.stripes, np.zeros((0, PATH))
        count, due = walk.episodes(g, self.walk, world, policy, tally, rng, path, returns)
        return int(count), bool(due)

    def call_walk(
        self,
        on_nodes: Callable[..., Result],
        on_stripes: Callable[..., Result],
        arguments: tuple[object, ...],
    ) -> Result:
        return on_stripes(self.arrays.stripes, self.walk, *arguments)

    def new_path(self) -> np.ndarray:
        """Memory for the moves of the longest possible episode."""
        return np.zeros(((self.horizon + 1) * (len(self.arrays.stripes.level_ptr) + 1), PATH))
