"""The run engine: V[x, y] over runs, for large structured models. Memory is two layers of values and one byte per decision and step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.compiled import Compiled, world_of
from pkd.graph import Graph
from pkd.kernels import flat, run_walk
from pkd.kernels import runs as kernels
from pkd.kernels.forms import NO_BONUS
from pkd.model import CHANCE, END, Episode, Law, ModelError, PartiallyKnownMDP
from pkd.optimism import Bonus
from pkd.passes import Layout, reduced, unreduced, windows
from pkd.recording import recorded
from pkd.run_arrays import arrays_of, cover_of
from pkd.runs import CHANCES, DECISIONS, LAST, SETTLED, RunTable

if TYPE_CHECKING:
    from pkd.learning import Trial

__all__ = ["RunEngine"]

KEPT_CELLS = 50_000_000  # as many bytes may it take to know for every layer what can occur
PARALLEL_WORK = 10_000_000  # states times steps from which threads pay for their compilation


class RunEngine(Compiled):
    """A model as runs."""

    def __init__(self, model: PartiallyKnownMDP, table: RunTable, graph: Graph | None = None) -> None:
        super().__init__(
            model, table.features, table.outcomes, [[p for _, p in law] for law in table.known], table.unknown_rewards, table.n_y
        )
        self.table, self.explored = table, graph
        self._lay(reduced(table, self.horizon))
        self._known_rewards = np.array([table.reward.rows[known] for known, _ in table.rewards])
        self._reward_means = np.array([table.mean.rows[mean] for _, mean in table.rewards])
        self._kept: tuple[Any, int, Any] | None = None
        self._reach: dict[int, np.ndarray] = {}  # what `_reached` found, by layer

    def _lay(self, layout: Layout) -> None:
        self.layout = layout
        self.arrays = arrays_of(self.table, layout.runs, windows(layout.start, layout.runs, self.horizon), self.horizon)
        self.parallel = len(self.table.xs) * layout.columns * self.horizon >= PARALLEL_WORK

    def __repr__(self) -> str:
        return (
            f"<{type(self.model).__name__} compiled: {len(self.table.xs)} x by {self.layout.columns} columns, "
            f"{len(self.layout.runs)} runs, {len(self.features)} unknown features, horizon {self.horizon}>"
        )

    @property
    def n_states(self) -> int:
        return len(self.table.xs) * self.layout.columns

    def policy(self) -> np.ndarray:
        """The arm of each state in each layer; `RunArrays.choice_at` says where."""
        most = max((len(run.moves) for run in self.layout.runs), default=1)
        return np.zeros(self.arrays.runs.policy_ptr[-1], np.uint8 if most <= 256 else np.int64)

    # -- sweeps --------------------------------------------------------------------------------------------------------------------

    def believe(self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, episodes: int, delta: float) -> kernels.Belief:
        declared = self.model.return_range
        ceiling = math.inf if declared is None else float(declared[1])
        width = math.nan if declared is None else float(declared[1]) - float(declared[0])
        ell = np.zeros((len(self.arrays.ell_rows), len(self.table.xs)))
        if bonus.form == NO_BONUS:
            width = 0.0  # no ranges are needed
        else:
            for i, (law, share) in enumerate(self.arrays.ell_rows):
                rows, shares = self.table.law.rows[law], self.table.share.rows[share]
                unknown = rows >= 0
                shares = np.where(np.isnan(shares), 1 / self.n_y, shares)
                ell[i, unknown] = self.ell(bonus, rows[unknown], shares[unknown], episodes, delta)
        reward = np.empty_like(self._known_rewards)
        n = np.zeros(len(self.features))
        packed = np.zeros(len(self.row_ptr) - 1, np.int64), np.zeros(len(p), np.int64), np.zeros(len(p))
        belief = kernels.Belief(p, *packed, mean, reward, bonus.form, bonus.c1, bonus.c2, bonus.free, ceiling, width, n, ell)
        self.refresh(belief)
        return belief

    def refresh(self, belief: kernels.Belief) -> None:
        kernels.fill_rewards(self._known_rewards, self._reward_means, belief.mean, belief.reward)
        kernels.pack(self.row_ptr, self.arrays.runs.row_x, belief.p, belief.end, belief.x, belief.q)

    def sweep(self, belief: kernels.Belief, policy: np.ndarray, *, follow: bool) -> tuple[float, bool]:
        room, changed = self._down_to(0, belief, policy, follow)
        value = math.fsum(p * room.layers[0].v[x, y] for x, y, p in self.layout.start)
        return value, bool(changed)

    def _down_to(self, until: int, belief: kernels.Belief, policy: np.ndarray, follow: bool) -> tuple[_Room, int]:
        """Sweeps from the end down to layer `until`; that layer and the next one stay in the room until the next sweep."""
        self._kept = None
        room = self._ranged_room if math.isnan(belief.width) else self._room
        room.fill(self.layout)
        layer: Any = kernels.layer_parallel if self.parallel else kernels.layer_serial
        g, changed, bounds = self.arrays.runs, 0, self._reward_bounds
        layer(g, belief, -1, g.settlement, len(g.level_ptr) - 1, self.horizon, room.settled, room.settled, *bounds, policy, follow)
        for t in range(self.horizon - 1, until - 1, -1):
            first, source = (kernels.LAST, room.settled) if t == self.horizon - 1 else (kernels.STEP, room.layers[(t + 1) % 2])
            changed += layer(g, belief, first, kernels.CHANCES, g.settlement, t, source, room.layers[t % 2], *bounds, policy, follow)
        return room, changed

    @cached_property
    def _room(self) -> _Room:
        return _Room.of(len(self.table.xs), self.layout)

    @cached_property
    def _ranged_room(self) -> _Room:
        return self._room.ranged()

    @cached_property
    def _reward_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        bounds = []
        for limits in ([r.low for r in self.rewards], [r.high for r in self.rewards]):
            out = np.empty_like(self._known_rewards)
            kernels.fill_rewards(self._known_rewards, self._reward_means, np.array(limits, float), out)
            bounds.append(out)
        return bounds[0], bounds[1]

    # -- states by name ------------------------------------------------------------------------------------------------------------

    def action_at(self, policy: np.ndarray, h: int, x: Any, y: Any) -> Any:
        self._check_step(h)
        actions = self.model.actions(x, y)
        if actions is CHANCE or actions is END:
            raise ModelError(f"(x={x!r}, y={y!r}) takes no action: it is a CHANCE or END state")
        i, column = self._place(h, x, y)
        return list(actions)[policy[self._choice(h, i, column)]]

    def values_at(self, belief: kernels.Belief, policy: np.ndarray, h: int, x: Any, y: Any) -> dict[Any, float]:
        """From a table without passes, so that every state of the model is there."""
        self._check_step(h)
        i, column = self._place(h, x, y)
        plain, t = self.plain, h - 1
        if plain._kept is None or plain._kept[0] is not belief or plain._kept[1] != t:
            mine = plain._as_mine(belief, self)
            room, _ = plain._down_to(t, mine, plain.policy(), follow=False)
            plain._kept = belief, t, (mine, room)
        mine, room = plain._kept[2]
        actions = self.model.actions(x, y)
        if actions is CHANCE or actions is END:
            return {None: float(room.layers[t % 2].v[i, column])}
        last = t == self.horizon - 1
        arms = plain.arrays.arms_alone(LAST if last else DECISIONS, i, column)
        out = np.zeros((len(self.table.xs), len(actions)))
        source = room.settled if last else room.layers[(t + 1) % 2]
        tiles, choices = np.zeros(1, np.int64), np.zeros(1, np.uint8)
        kernels.values(arms, mine, tiles, 0, 1, 0, source, kernels.Layer(out, out, out), *self._reward_bounds, choices, False)
        return dict(zip(list(actions), out[i].tolist(), strict=True))

    @cached_property
    def plain(self) -> RunEngine:
        """The same table without passes."""
        plain = RunEngine.__new__(RunEngine)
        plain.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name not in ("_room", "_ranged_room", "_walk", "plain")}
        )
        plain._kept, plain._reach = None, {}
        plain._lay(unreduced(self.table))
        return plain

    def _as_mine(self, belief: kernels.Belief, other: RunEngine) -> kernels.Belief:
        """A belief of an engine with other ways, for this one: only the rows of ell are ordered differently."""
        ell = np.zeros((len(self.arrays.ell_rows), len(self.table.xs)))
        theirs = {key: i for i, key in enumerate(other.arrays.ell_rows)}
        for i, key in enumerate(self.arrays.ell_rows):
            if key in theirs:
                ell[i] = belief.ell[theirs[key]]
        return belief._replace(ell=ell)

    def _check_step(self, h: int) -> None:
        if not 1 <= h <= self.horizon:
            raise ModelError(f"step {h!r} is outside 1..{self.horizon}")

    def _place(self, h: int, x: Any, y: Any) -> tuple[int, int]:
        i, column = self.table.x_index.get(x), self.table.column_of(y)
        if i is None or column is None or not self._holds(h - 1, i, column):
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur at step {h}")
        return i, column

    def _holds(self, t: int, x: int, column: int) -> bool:
        if self.explored is not None:
            node = self.explored.layers.index.get((self.table.xs[x], self.table.y_of(column)))
            return node is not None and self.explored.holds(t, node)
        if (x, column) in self.table.ends:
            return True
        if self.plain._keeps_layers:
            return bool(self.plain._reached(t)[x, column])
        parts = [LAST, CHANCES] if t == self.horizon - 1 else [DECISIONS, CHANCES]
        return any(
            (run := self.plain.arrays.run_at(part, x, column, missing=-1)) >= 0 and self.plain.arrays.window[run] >> t & 1 for part in parts
        )

    def _choice(self, h: int, x: int, column: int) -> int:
        part, t = LAST if h == self.horizon else DECISIONS, h - 1
        for place in self.layout.places(column):  # a merged column is computed in some layers and its original in others
            run = self.arrays.run_at(part, x, place, missing=-1)
            if run >= 0 and self.arrays.window[run] >> t & 1:
                return self.arrays.choice_at(t, x, place)
        raise ModelError(f"(x={self.table.xs[x]!r}, y={self.table.y_of(column)!r}) takes no action at step {h}")

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        self._check_step(h)
        if self.explored is not None:
            yield from self.explored.decision_states(h)
            return
        reached = self.plain._reached(h - 1)
        for run, window in zip(self.table.runs, self.plain.arrays.window, strict=True):
            if run.part == (LAST if h == self.horizon else DECISIONS) and window >> (h - 1) & 1:
                xs = self.table.sets.rows[run.xs]
                for x, i in np.argwhere(reached[xs, run.start : run.start + run.length].T)[:, ::-1].tolist():
                    yield self.table.xs[xs[x]], self.table.y_of(run.start + i)

    def _reached(self, t: int) -> np.ndarray:
        """Which states can occur in layer t, (X, columns)."""
        g, shape = self.arrays.runs, (len(self.table.xs), self.layout.columns)
        if t not in self._reach and not any(before < t for before in self._reach):
            first = np.zeros(shape, bool)
            for x, y, _ in self.layout.start:
                first[x, y] = True
            self._reach[0] = self._with_chances(0, first)
        while t not in self._reach:
            before = max(before for before in self._reach if before < t)
            there = np.zeros(shape, bool)
            run_walk.reach(g, kernels.STEP, before, self._reach[before], there)
            if not self._keeps_layers:
                self._reach.clear()
            self._reach[before + 1] = self._with_chances(before + 1, there)
        return self._reach[t]

    @property
    def _keeps_layers(self) -> bool:
        """Whether what can occur is remembered for every layer, and not for the last one asked about alone."""
        return self.n_states * self.horizon <= KEPT_CELLS

    def _with_chances(self, t: int, here: np.ndarray) -> np.ndarray:
        """Adds what the CHANCE states of layer t lead to, the highest level first."""
        for level in range(self.arrays.runs.settlement - 1, kernels.CHANCES - 1, -1):
            run_walk.reach(self.arrays.runs, level, t, here, here)
        return here

    def arms_of(self, act: Any) -> np.ndarray:
        policy, findings = self.policy(), list[str]()
        for h in range(1, self.horizon + 1):
            for x, y in self.decision_states(h):
                actions, action = list(self.model.actions(x, y)), act(h, x, y)
                if action not in actions:
                    findings.append(f"the policy takes {action!r} at step {h} in (x={x!r}, y={y!r}); expected one of {actions!r}")
                    continue
                policy[self._choice(h, *self._place(h, x, y))] = actions.index(action)
        if findings:
            raise ModelError(findings[:10])
        return policy

    # -- episodes ------------------------------------------------------------------------------------------------------------------

    def world(self, law: Law) -> flat.World:
        return world_of(self, law, np.zeros(0), np.cumsum([p for _, _, p in self.table.start]))

    @cached_property
    def _walk(self) -> run_walk.Walk:
        table, layout = self.table, self.layout
        return run_walk.Walk(
            self.horizon,
            cover_of(table, layout.runs, (DECISIONS, CHANCES)),
            cover_of(table, layout.runs, (LAST,)),
            cover_of(table, layout.runs, (SETTLED,)),
            *_keys(layout.ends, layout.columns),
            *_keys(layout.settled_ends, layout.settled_columns),
            layout.columns,
            layout.settled_columns,
            np.array([x for x, _, _ in layout.start], np.int64),
            np.array([y for _, y, _ in layout.start], np.int64),
            np.array(list(accumulate(p for _, _, p in layout.start))),
            self._reward_means,
        )

    def learn_chunk(self, run: Trial, chunk: slice) -> None:
        def episodes(policy: np.ndarray, tally: flat.Tally, rng: np.ndarray, returns: np.ndarray) -> tuple[int, bool]:
            count, due = run_walk.episodes(self.arrays.runs, self._walk, self._known_rewards, run.world, policy, tally, rng, returns)
            return int(count), bool(due)

        run.in_bulk(chunk, episodes)

    def followed(self, act: Callable[[int, Any, Any], Any]) -> Callable[[int, Any, Any], Any]:
        return act

    def episode(
        self, world: flat.World, policy: np.ndarray | Callable[[int, Any, Any], Any], tally: flat.Tally, rng: np.ndarray
    ) -> tuple[Episode, float, bool]:
        starts = [(self.table.xs[x], self.table.y_of(column)) for x, column, _ in self.table.start]
        act = policy if callable(policy) else partial(self.action_at, policy)
        return recorded(self, world, starts, act, tally, rng)


@attrs.frozen(eq=False)
class _Room:
    """Two layers and the settlement."""

    layers: list[kernels.Layer]
    settled: kernels.Layer

    @classmethod
    def of(cls, n_x: int, layout: Layout) -> _Room:
        """Room for values alone."""
        v = [np.zeros((n_x, max(columns, 1))) for columns in (layout.columns, layout.columns, layout.settled_columns)]
        one, two, settled = (kernels.Layer(values, values, values) for values in v)
        return cls([one, two], settled)

    def ranged(self) -> _Room:
        """The same room with the possible return to go."""
        return _Room([_ranged(layer) for layer in self.layers], _ranged(self.settled))

    def fill(self, layout: Layout) -> None:
        """The ends, which no run computes."""
        for (x, y), final in layout.ends.items():
            for layer in self.layers:
                layer.v[x, y] = layer.low[x, y] = layer.high[x, y] = final
        for (x, y), final in layout.settled_ends.items():
            self.settled.v[x, y] = self.settled.low[x, y] = self.settled.high[x, y] = final


def _ranged(layer: kernels.Layer) -> kernels.Layer:
    return kernels.Layer(layer.v, np.zeros_like(layer.v), np.zeros_like(layer.v))


def _keys(ends: dict[tuple[int, int], float], columns: int) -> tuple[np.ndarray, np.ndarray]:
    pairs = sorted((x * columns + y, pay) for (x, y), pay in ends.items())
    return np.array([key for key, _ in pairs], np.int64), np.array([pay for _, pay in pairs], float)
