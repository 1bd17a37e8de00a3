"""`NodeEngine`: a model as a list of nodes, for small and unstructured models."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pkd.engine.belief import Belief, Tally, World
from pkd.engine.compiled import Act, Compiled, FusedTrial, Policy, Result, reward_limits
from pkd.engine.nodes import kernels, python_rule, walk
from pkd.engine.nodes.program import assemble_program, assemble_walk, flatten
from pkd.engine.nodes.ranges import find_ranges
from pkd.graph import DECIDE, SETTLED, Graph, Side
from pkd.model import Episode, ModelError, Transition
from pkd.optimism import CERTIFIED, DRAWS, L1_BALL, ONE_ROUND, OVER_SETS, PYTHON

__all__ = ["NodeEngine"]

# Numbers that one compiled call of a sweep reads: a fraction of a second.
PORTION_SIZE = 2e7


class NodeEngine(Compiled):
    """Every state apart."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.weights = {}
        self.flat = flatten(graph)
        self.walk = assemble_walk(graph, self.flat)
        self.program = assemble_program(graph, self.flat, self.weights)
        self._kept: tuple[Belief, int, np.ndarray, np.ndarray] | None = None
        self.check_declared()

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
        return assemble_program(self.graph, self.flat, dict(self.weights), inline=False)

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

    def check_policy(self, policy: np.ndarray) -> None:
        expected = self.policy()
        if policy.shape != expected.shape or policy.dtype != expected.dtype:
            raise ModelError(
                f"the saved policy has the shape {policy.shape} of {policy.dtype}; this model "
                f"needs {expected.shape} of {expected.dtype}"
            )
        if (policy < 0).any() or (policy >= self.n_actions).any():
            raise ModelError("the saved policy takes actions that this model does not have")

    def action_at(self, policy: Policy, h: int, x: Any, y: Any) -> Any:
        node = self._find_node(h, x, y)
        choices = self.graph.layers.choices[node]
        if choices is None:
            raise ModelError(f"(x={x!r}, y={y!r}) takes no action: it is a CHANCE or END state")
        return tuple(choices)[policy[h - 1, self.flat.choice[node]]]

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        self._check_step(h)
        return self.graph.decision_states(h)

    def tabulate(self, act: Act) -> Policy:
        policy, graph, findings = self.policy(), self.graph, list[str]()
        side = graph.layers
        for h in range(1, self.horizon + 1):
            for node in graph.members[h - 1]:
                if side.kind[node] == DECIDE:
                    (x, y), actions = graph.state(side, node), list(side.choices[node])
                    action = act(h, x, y)
                    if action in actions:
                        policy[h - 1, self.flat.choice[node]] = actions.index(action)
                    else:
                        findings.append(
                            f"the policy takes {action!r} at step {h} in (x={x!r}, y={y!r}); "
                            f"expected one of {actions!r}"
                        )
        if findings:
            raise ModelError(findings[:10])
        return policy

    def _check_step(self, h: int) -> None:
        if not 1 <= h <= self.horizon:
            raise ModelError(f"step {h!r} is outside 1..{self.horizon}")

    def _find_node(self, h: int, x: Any, y: Any) -> int:
        self._check_step(h)
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
        if belief.form == PYTHON:
            return python_rule.sweep(program, belief, scratch, policy, follow, keep)
        extra, value, changed = self._find_extra(belief), 0.0, False
        for layers in self._find_portions(program):
            value, other = kernels.sweep(
                program, belief, scratch, *extra, policy, follow, keep, *layers
            )
            changed |= bool(other)
        return float(value), changed

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
        self, program: kernels.Program, belief: Belief, *, keep: bool = False
    ) -> kernels.Scratch:
        """The memory of one call."""
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
            q=np.zeros(len(program.action_mean) if keep else 0),
            kept=np.zeros(self.n_states if keep else 0),
        )

    def _find_extra(self, belief: Belief) -> tuple[kernels.SetMemory | None, kernels.Other | None]:
        """Memory that only some rules need: (of values over KL balls, of the other ones)."""
        longest = int(np.diff(self.row_ptr).max(initial=1))
        if belief.form in OVER_SETS or (belief.form <= CERTIFIED and self.over_sets):
            gaps, seen_gaps, p = np.zeros((3, longest))
            exact = belief.form in OVER_SETS and belief.rounds > ONE_ROUND
            if longest < kernels.MANY and not exact:
                return kernels.SetMemory(gaps, None, None, None, None), None
            last = int(self.row_ptr[len(self.features)])
            end, seen = np.zeros(len(self.features), np.int64), np.zeros(last, np.int64)
            return kernels.SetMemory(gaps, seen_gaps, p, end, seen), None
        if belief.form == L1_BALL:
            order = np.zeros(longest, np.int64)
            return None, kernels.Other(np.zeros(longest), order, None, None)
        if belief.form == DRAWS:
            return None, kernels.Other(None, None, belief.draws, np.zeros(belief.rounds))
        return None, None

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
        found = find_ranges(program, *reward_limits(self.rewards), self.flat.final, 2)
        return found.cap, found.width

    def return_ranges(self) -> Iterator[tuple[str, float, float]]:
        layers = max(self.horizon, 2)
        limits = reward_limits(self.rewards)
        _, _, lo, hi, lo_settled, hi_settled = find_ranges(
            self.full, *limits, self.flat.final, layers
        )
        for t in range(self.horizon):
            nodes = np.fromiter(self.graph.members[t], np.int64)
            yield from self._find_extremes(
                self.graph.layers, nodes, lo[t], hi[t], f"at step {t + 1}"
            )
        nodes = np.fromiter(self.graph.ends, np.int64)
        yield from self._find_extremes(
            self.graph.settled, nodes, lo_settled, hi_settled, "after the last action"
        )

    def _find_extremes(
        self, side: Side, nodes: np.ndarray, lo: np.ndarray, hi: np.ndarray, when: str
    ) -> Iterator[tuple[str, float, float]]:
        for node in (
            {int(nodes[lo[nodes].argmin()]), int(nodes[hi[nodes].argmax()])} if len(nodes) else ()
        ):
            x, y = self.graph.state(side, node)
            yield f"to go from (x={x!r}, y={y!r}) {when}", float(lo[node]), float(hi[node])

    def values_at(self, belief: Belief, h: int, x: Any, y: Any) -> dict[Any, float]:
        node, t = self._find_node(h, x, y), h - 1
        kept = self._kept
        if kept is None or kept[0] is not belief or kept[1] != t:
            scratch = self.scratch(self.full, belief, keep=True)
            self._sweep(self.full, belief, scratch, self.policy(), False, t)
            kept = self._kept = belief, t, scratch.q, scratch.kept
        choices = self.graph.layers.choices[node]
        if choices is None:
            return {None: float(kept[3][node])}
        cell = int(self._find_cell(t)[node])
        first = int(self.full.action_ptr[cell])
        return {action: float(kept[2][first + i]) for i, action in enumerate(choices)}

    def find_values(self, belief: Belief, policy: Policy, t: int, *, follow: bool) -> np.ndarray:
        """V of every node in layer t, (nodes,); follow: of the policy, which is not changed."""
        scratch = self.scratch(self.full, belief, keep=True)
        self._sweep(self.full, belief, scratch, policy.copy(), follow, t)
        return scratch.kept

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
        if trial.learning.belief.form > CERTIFIED:  # only the usual rules are worth the compiling
            return None
        if len(list(self._find_portions(self.program))) > 1:  # long sweeps must answer interrupts
            return None
        learning, truth, state = trial.learning, trial.truth, np.array([np.nan, np.nan])
        scratch, exact = (self.scratch(self.program, b) for b in (learning.belief, truth.belief))
        sets, _ = self._find_extra(learning.belief)
        paid = learning.reward_bonus if len(self.rewards) else None
        ell, low, high = learning.reward_bonus

        def play(chunk: slice) -> int:
            state[:] = learning.upper, trial.value
            count = kernels.learn(
                self.program, self.walk, learning.belief, truth.belief, scratch, exact, sets,
                paid, learning.most_samples, truth.world, learning.tally,
                float(learning.bonus.prior) or None, ell, low, high, learning.rng, state,
                learning.policy, NO_PATH, trial.uppers[chunk], trial.values[chunk],
                trial.returns[chunk],
            )  # fmt: skip
            trial.planned[chunk.start : chunk.start + count] = True
            learning.upper, trial.value = map(float, state)
            return int(count)

        return play

    # -- shares ------------------------------------------------------------------------------------

    def share_totals(self) -> Mapping[Hashable, float]:
        block = np.array(self.graph.landing_block, np.int64)
        unknown = self.flat.row < len(self.features)
        pairs = np.unique(
            np.array([self.flat.row[unknown], block[self.flat.landing[unknown]]]),
            axis=1,
            return_index=True,
        )
        rows, places = pairs[0][0], pairs[1]
        shares = self.flat.share[unknown][places]
        shares = np.where(np.isnan(shares), 1 / self.n_y, shares)
        totals = np.bincount(rows, weights=shares, minlength=len(self.features))
        return dict(zip(self.features, totals.tolist(), strict=True))


NO_PATH = np.zeros((0, walk.PATH))
