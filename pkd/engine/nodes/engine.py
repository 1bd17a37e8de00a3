"""`NodeEngine`: a model as a list of nodes, for small and unstructured models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from pkd.engine.belief import Belief, Tally, World
from pkd.engine.compiled import Compiled, FusedTrial, Policy, Result
from pkd.engine.nodes import kernels, walk
from pkd.engine.nodes.program import assemble_program, assemble_walk
from pkd.episode import Episode, Transition
from pkd.explore.flat import Flat
from pkd.explore.graph import CHANCES, DECIDE, LAST, SETTLED, STEP, Graph
from pkd.explore.segments import Segments
from pkd.explore.sizes import sweep_returns
from pkd.model import ModelError
from pkd.optimism import CERTIFIED, EXACT, NUMPY, ONE_ROUND

# Numbers that one compiled call of a sweep reads: a fraction of a second.
PORTION_SIZE = 2e7
KEPT_BYTES = 1 << 28  # of the values that are kept for questions


class NodeEngine(Compiled):
    """Every state apart."""

    engine = "nodes"

    def __init__(self, graph: Graph) -> None:
        self._start(graph)
        assert self.program  # made now: a cycle of CHANCE states is refused
        self.check_declared()

    def _start(self, graph: Graph) -> None:
        super().__init__(graph)
        # (belief, layer, Q and V of some layers from this one on)
        self._kept: tuple[Belief, int, np.ndarray, np.ndarray] | None = None

    @cached_property
    def weights(self) -> dict[tuple[int, float], int]:  # type: ignore[override]
        """The distinct (row, share) of unknown rows."""
        found: dict[tuple[int, float], int] = {}
        self.__dict__["program"] = assemble_program(self.graph, found)
        return found

    @cached_property
    def program(self) -> kernels.Program:
        """The program of a sweep, made together with the weights."""
        assert self.weights is not None
        program: kernels.Program = self.__dict__["program"]
        return program

    @cached_property
    def walk(self) -> walk.Walk:
        """What episodes go through."""
        return assemble_walk(self.graph)

    @property
    def flat(self) -> Flat:
        return self.graph.flat

    def __repr__(self) -> str:
        return (
            f"<{type(self.model).__name__} compiled: {self.n_states} states, {len(self.features)} "
            f"unknown features, horizon {self.horizon}>"
        )

    @property
    def n_states(self) -> int:
        return len(self.graph.layers.x)

    @property
    def plain(self) -> NodeEngine:
        return self

    @property
    def explicit(self) -> NodeEngine:
        return self

    @cached_property
    def full(self) -> kernels.Program:
        """The program of a sweep over every state, also those that are inlined elsewhere."""
        return assemble_program(self.graph, dict(self.weights), inline=False)

    # -- policies ----------------------------------------------------------------------------------

    @cached_property
    def n_actions(self) -> np.ndarray:
        """How many actions each decision has, in the order of a policy."""
        counts = np.ones(int((self.flat.choice >= 0).sum()), np.int64)
        decisions = np.arange(self.walk.decisions)
        counts[self.walk.cell_choice[decisions]] = np.diff(self.flat.action_ptr)[decisions]
        return counts

    def policy(self) -> Policy:
        """The action of each decision node in each layer, (H, decisions)."""
        most = int(self.n_actions.max(initial=1))
        return np.zeros((self.horizon, len(self.n_actions)), np.uint8 if most <= 256 else np.int64)

    def has_choices(self, policy: np.ndarray) -> bool:
        return bool(((policy >= 0) & (policy < self.n_actions)).all())

    def find_choice(self, h: int, x: Any, y: Any) -> tuple[Any, Sequence[Any] | None]:
        node = self._find_node(h, x, y)
        return (h - 1, self.flat.choice[node]), self.graph.layers.choices[node]

    def decisions(self, h: int) -> Iterator[tuple[Any, Any, Any, list[Any]]]:
        self.check_step(h)
        side, choice = self.graph.layers, self.flat.choice
        for node in sorted(self.graph.members[h - 1]):
            if side.kind[node] == DECIDE:
                x, y = self.graph.state(side, node)
                yield (h - 1, choice[node]), x, y, list(side.choices[node])

    def _find_node(self, h: int, x: Any, y: Any) -> int:
        self.check_step(h)
        node = self.graph.find(x, y)
        if node is None or not self.graph.holds(h - 1, node):
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur at step {h}")
        return node

    # -- sweeps ------------------------------------------------------------------------------------

    def sweep(self, belief: Belief, policy: Policy, *, follow: bool) -> tuple[float, bool]:
        scratch = self.scratch(self.program, belief)
        return self._sweep(self.program, belief, scratch, policy, follow, -1)

    def _sweep(
        self, program: kernels.Program, belief: Belief, scratch: kernels.Scratch, policy: Policy,
        follow: bool, keep: int,
    ) -> tuple[float, bool]:  # fmt: skip
        if belief.form == NUMPY:
            return self._sweep_by_rule(program, belief, scratch, policy, follow, keep)
        which, value, changed = self._find_sweep(belief), 0.0, False
        for layers in self._find_portions(program):
            value, other = kernels.sweep(
                program, belief, scratch, *which, policy, follow, keep, *layers
            )
            changed |= bool(other)
        return float(value), changed

    def _sweep_by_rule(
        self, program: kernels.Program, belief: Belief, scratch: kernels.Scratch, policy: Policy,
        follow: bool, keep: int,
    ) -> tuple[float, bool]:  # fmt: skip
        """A sweep that asks a rule in numpy for the pairs of each level."""
        plain, changed = belief.plain, False
        scratch.packed[:] = belief.p[program.packing]
        asked = {level: _Asked(program, belief, level) for level in range(len(program.levels))}
        for t in range(self.horizon, -1, -1):
            target = scratch.settled if t == self.horizon else scratch.v[t % 2]
            for level in _list_levels(program, t):
                source = target
                if level < kernels.CHANCES:
                    last = level == kernels.LAST
                    source = scratch.settled if last else scratch.v[(t + 1) % 2]
                pairs = asked[level]
                if pairs.move_to(t):
                    at = t if len(scratch.cap) > 1 else 0, pairs.group
                    limits = np.array([scratch.cap[at], scratch.width[at]])
                    found = belief.ask(pairs.p, source.take(pairs.node), pairs.row, limits)
                    scratch.e[pairs.pair] = found
                changed |= bool(
                    kernels.sweep_level(program, plain, scratch, level, t, policy, follow, keep)
                )
            if 0 <= t - keep < len(scratch.kept):
                scratch.kept[t - keep] = target
        return float(program.start_p @ scratch.v[0][program.start_node]), changed

    def _find_portions(self, program: kernels.Program) -> Iterator[tuple[int, int]]:
        """The layers H..0 in portions (top, bottom): an interrupt is answered between two."""
        size = max(int(PORTION_SIZE // (len(program.packing) + len(program.branch_p) + 1)), 1)
        for top in range(self.horizon, -1, -size):
            yield top, max(top - size + 1, 0)

    def find_visits(self, belief: Belief, which: int, *, most: bool) -> float:
        g, sign, mean = self.program, 1.0 if most else -1.0, np.zeros(len(self.rewards))
        paid = np.zeros(len(g.branch_p))
        if which < len(self.features):
            # An inlined CHANCE state passes on alone, so a branch draws from its own row only.
            drawn = np.flatnonzero(g.branch_pair >= 0)
            paid[drawn[g.pair_row[g.branch_pair[drawn]] == which]] = sign
        else:
            mean[which - len(self.features)] = sign
        scratch = self.scratch(g, belief)
        scratch.v[...] = scratch.settled[...] = 0.0  # nothing is paid at the end
        program, asked = g._replace(branch_reward=paid), belief._replace(mean=mean)
        value, _ = self._sweep(program, asked, scratch, self.policy(), False, -1)
        return sign * value

    def scratch(
        self, program: kernels.Program, belief: Belief, *, keep: int = 0
    ) -> kernels.Scratch:
        """The memory of one call. keep: the layers of which Q and V are kept."""
        cap, width = self._find_limits(program, belief)
        largest = int(np.diff(program.group_pair).max(initial=1))
        return kernels.Scratch(
            v=np.tile(self.flat.final[0], (2, 1)),
            settled=self.flat.final[1].copy(),
            e=np.zeros(len(program.pair_row)),
            packed=np.zeros(len(program.packing)),
            seen=np.zeros(len(program.row_ptr) - 1, np.int64),
            rows=np.zeros((7, largest)),
            bonus=np.zeros((2, len(program.pair_row))),
            cap=cap,
            width=width,
            q=np.zeros((keep, len(program.action_mean))),
            kept=np.zeros((keep, self.n_states)),
        )

    def _find_sweep(
        self, belief: Belief
    ) -> tuple[bool | None, np.ndarray | None, kernels.Alone | None]:
        """Which sweep a belief takes, as `kernels.sweep` is told: (bonus, sets, alone)."""
        form = self.find_form(belief)
        if form != CERTIFIED:
            return None if form == EXACT else True, None, None
        longest = int(np.diff(self.row_ptr).max(initial=1))
        gaps, seen_gaps, p = np.zeros((3, longest))
        if longest < kernels.MANY and belief.rounds == ONE_ROUND:
            return None, gaps, None
        last = int(self.row_ptr[len(self.features)])
        end, seen = np.zeros(len(self.features), np.int64), np.zeros(last, np.int64)
        return None, gaps, kernels.Alone(seen_gaps, p, end, seen)

    def _find_limits(
        self, program: kernels.Program, belief: Belief
    ) -> tuple[np.ndarray, np.ndarray]:
        """The cap on pV + bonus and the width of values, for each group.

        Only one layer if all layers have the same.
        """
        if math.isnan(belief.width):
            return self._caps if program is self.program else self._find_caps(program)
        groups = len(program.group_matrix)
        return np.full((1, groups), math.inf), np.full((1, groups), belief.width)

    @cached_property
    def _caps(self) -> tuple[np.ndarray, np.ndarray]:
        return self._find_caps(self.program)

    def _find_caps(self, program: kernels.Program) -> tuple[np.ndarray, np.ndarray]:
        """(H + 1, groups), from the returns to go of the nodes that a group leads to.

        A group of decisions reads the next layer, one of CHANCE states their own.
        """
        g, horizon = program, self.horizon
        cap, width = np.zeros((2, horizon + 1, len(g.group_matrix)))
        last_group = g.levels[:, 3].tolist()
        bounds = [0, *last_group[:CHANCES], last_group[g.settlement - 1], last_group[-1]]
        parts = [
            Segments(g.group_ptr, g.group_first, g.group_last, *pair) for pair in pairwise(bounds)
        ]
        for layer in sweep_returns(self.graph):
            t = layer.t
            readers = (
                [(SETTLED, t), (LAST, t - 1)] if t == horizon else [(CHANCES, t), (STEP, t - 1)]
            )
            for part, at in readers:
                groups = parts[part]
                if groups.move_to(at):
                    nodes = g.group_node[groups.elements]
                    top = np.maximum.reduceat(layer.high[nodes], groups.starts)
                    least = np.minimum.reduceat(layer.low[nodes], groups.starts)
                    cap[at, groups.which], width[at, groups.which] = top, top - least
        return cap, width

    def values_at(self, belief: Belief, h: int, x: Any, y: Any) -> dict[Any, float]:
        node, t = self._find_node(h, x, y), h - 1
        kept = self._kept
        if kept is None or kept[0] is not belief or not kept[1] <= t < kept[1] + len(kept[2]):
            most = KEPT_BYTES // (8 * (self.n_states + len(self.full.action_mean))) + 1
            scratch = self.scratch(self.full, belief, keep=min(self.horizon - t, most))
            self._sweep(self.full, belief, scratch, self.policy(), False, t)
            kept = self._kept = belief, t, scratch.q, scratch.kept
        choices = self.graph.layers.choices[node]
        if choices is None:
            return {None: float(kept[3][t - kept[1], node])}
        cell = int(self._find_cell(t)[node])
        first = int(self.full.action_ptr[cell])
        return {a: float(kept[2][t - kept[1], first + i]) for i, a in enumerate(choices)}

    def find_values(self, belief: Belief, policy: Policy, t: int, *, follow: bool) -> np.ndarray:
        """V of every node in layer t, (nodes,); follow: of the policy, which is not changed."""
        scratch = self.scratch(self.full, belief, keep=1)
        self._sweep(self.full, belief, scratch, policy.copy(), follow, t)
        found: np.ndarray = scratch.kept[0]
        return found

    def _find_cell(self, t: int) -> np.ndarray:
        """The cell of each decision node in layer t, in the full program."""
        level = kernels.LAST if t == self.horizon - 1 else kernels.STEP
        first, last = self.full.levels[level, :2]
        cells = np.full(self.n_states, -1)
        cells[self.full.cell_node[first:last]] = np.arange(first, last)
        return cells

    # -- episodes ----------------------------------------------------------------------------------

    def episodes(
        self, world: World, policy: Policy, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        count, due, _ = walk.episodes(self.walk, world, policy, tally, rng, NO_PATH, returns)
        return int(count), bool(due)

    def call_walk(
        self,
        on_nodes: Callable[..., Result],
        on_stripes: Callable[..., Result],
        arguments: tuple[object, ...],
    ) -> Result:
        return on_nodes(self.walk, *arguments)

    def new_path(self) -> np.ndarray:
        """Memory for the moves of the longest possible episode."""
        levels = len(self.full.levels)
        return np.zeros(((self.horizon + 1) * levels, walk.PATH))

    def record(
        self, world: World, policy: Policy, tally: Tally, rng: np.ndarray
    ) -> tuple[Episode, bool]:
        path, returns = self.new_path(), np.zeros(1)
        _, due, moves = walk.episodes(self.walk, world, policy, tally, rng, path, returns)
        return self.name_path(path[:moves], float(returns[0])), bool(due)

    def name_path(self, path: np.ndarray, total: float) -> Episode:
        """The path of a rollout in the values of the model."""
        graph, flat, transitions, paid = self.graph, self.flat, [], 0.0
        n_unknown = len(self.features)
        for row, outcome, _, reward, cell, action, branch in path.tolist():
            cell = int(cell)
            side = graph.settled if flat.part[cell] == SETTLED else graph.layers
            node = int(flat.node[cell])
            x, y = graph.state(side, node)
            chosen = None
            if cell < self.walk.decisions:
                chosen = tuple(side.choices[node])[int(action - flat.action_ptr[cell])]
            states = graph.row_states(int(row) if row < n_unknown else n_unknown - 1 - int(row))
            y_next = graph.blocks[graph.landing_block[int(flat.landing[int(branch)])]].y
            transitions.append(Transition(x, y, chosen, states[int(outcome)], y_next, reward))
            paid += reward
        return Episode(transitions, final=total - paid)

    def fused_loop(self, trial: FusedTrial) -> Callable[[slice], int] | None:
        if trial.learning.belief.form == NUMPY:
            return None
        if len(list(self._find_portions(self.program))) > 1:  # long sweeps must answer interrupts
            return None
        learning, truth, state = trial.learning, trial.truth, np.array([np.nan, np.nan])
        scratch, exact = (self.scratch(self.program, b) for b in (learning.belief, truth.belief))
        which = self._find_sweep(learning.belief)
        paid = True if len(self.rewards) else None

        def play(chunk: slice) -> int:
            state[:] = learning.upper, trial.value
            count = kernels.learn(
                self.program, self.walk, learning.belief, truth.belief, scratch, exact, *which,
                paid, learning.most_samples, truth.world, learning.tally,
                float(learning.bonus.prior) or None, learning.reward_bonus, learning.rng, state,
                learning.policy, NO_PATH, trial.uppers[chunk], trial.values[chunk],
                trial.returns[chunk],
            )  # fmt: skip
            trial.planned[chunk.start : chunk.start + count] = True
            learning.upper, trial.value = map(float, state)
            return int(count)

        return play


class _Asked:
    """The pairs of one level that a rule in numpy is asked for in a layer; B: most outcomes."""

    pair: np.ndarray  # (n,)
    row: np.ndarray  # (n,)
    group: np.ndarray  # (n,)
    node: np.ndarray  # (B, n) the nodes that follow
    p: np.ndarray  # (B, n)

    def __init__(self, g: kernels.Program, b: Belief, level: int) -> None:
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


NO_PATH = np.zeros((0, walk.PATH))


def _list_levels(g: kernels.Program, t: int) -> list[int]:
    """The levels of a layer, in the order of a sweep."""
    if t == g.horizon:
        return list(range(g.settlement, len(g.levels)))
    first = kernels.LAST if t == g.horizon - 1 else kernels.STEP
    return [first, *range(kernels.CHANCES, g.settlement)]
