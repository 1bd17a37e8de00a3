"""The flat program with everything beside it: the engine for small and unstructured models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.compiled import Compiled, cumulative, world_of
from pkd.graph import DECIDE, Graph
from pkd.kernels import flat
from pkd.kernels.forms import NO_BONUS
from pkd.model import Episode, Law, ModelError, Transition
from pkd.optimism import Bonus
from pkd.program import assemble, stops

if TYPE_CHECKING:
    from pkd.learning import Trial

__all__ = ["FlatProgram"]


class FlatProgram(Compiled):
    """A model as a list of nodes."""

    def __init__(self, graph: Graph) -> None:
        known = [[p for _, p in law.law if p > 0] for law in graph.known]
        super().__init__(graph.model, graph.features, graph.outcomes, known, graph.rewards, len(graph.ys))
        self.graph = graph
        self.program, self.pairs = assemble(graph)
        self._room = self.layers(2), self.settlement(), *self._scratch()
        self._kept: tuple[Any, np.ndarray, int, np.ndarray] | None = None
        self._check_declared()

    def __repr__(self) -> str:
        return (
            f"<{type(self.model).__name__} compiled: {self.n_states} states, {len(self.features)} unknown features, horizon {self.horizon}>"
        )

    @property
    def n_states(self) -> int:
        return len(self.graph.layers.states)

    @property
    def plain(self) -> FlatProgram:
        return self

    @cached_property
    def actions(self) -> list[tuple[Any, ...]]:
        """The actions of each node, in the order of its arms."""
        arms = [self.graph.layers.arms.get(node) or self.graph.last_arms.get(node, []) for node in range(self.n_states)]
        return [tuple(arm.action for arm in row) for row in arms]

    def layers(self, count: int) -> np.ndarray:
        """Room for `count` layers of values, (count, nodes), with the ends filled in."""
        v = np.zeros((count, self.n_states))
        ends = stops(self.graph.layers)
        v[:, ends] = self.program.final[ends]
        return v

    def settlement(self) -> np.ndarray:
        """Room for the values of the settlement, with the stopping states filled in."""
        return self.program.final_settled.copy()

    def _scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the values of pairs, and for the moments of a group."""
        return np.zeros(len(self.pairs)), np.zeros((3, int(np.diff(self.program.group_pair).max(initial=1))))

    def policy(self) -> np.ndarray:
        """The arm of each node in each layer, (H, nodes)."""
        most = int(np.diff(self.program.arm_ptr).max(initial=1))
        return np.zeros((self.horizon, self.n_states), np.uint8 if most <= 256 else np.int64)

    # -- sweeps --------------------------------------------------------------------------------------------------------------------

    def believe(self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, episodes: int, delta: float) -> flat.Estimate:
        declared = self.model.return_range
        ceiling = math.inf if declared is None else float(declared[1])
        ell = np.zeros(len(self.pairs))
        if bonus.form == NO_BONUS:
            cap = width = self._one_layer(0.0)
        else:
            unknown = self.program.pair_row < len(self.features)
            ell[unknown] = self.ell(bonus, self.program.pair_row[unknown], self._shares[unknown], episodes, delta)
            if declared is None:
                cap, width = self.caps
            else:
                cap, width = self._one_layer(math.inf), self._one_layer(float(declared[1]) - float(declared[0]))
        n, packed, seen = np.zeros(len(self.features)), np.zeros(len(self.program.packing)), np.zeros(len(self.row_ptr) - 1, np.int64)
        belief = flat.Estimate(p, packed, seen, mean, bonus.form, bonus.c1, bonus.c2, bonus.free, ceiling, n, ell, cap, width)
        self.refresh(belief)
        return belief

    def refresh(self, belief: flat.Estimate) -> None:
        flat.pack(self.program, belief)

    @property
    def _groups(self) -> int:
        return len(self.program.group_matrix)

    def _one_layer(self, value: float) -> np.ndarray:
        return np.full((1, self._groups), value)

    def sweep(self, belief: flat.Estimate, policy: np.ndarray, *, follow: bool) -> tuple[float, bool]:
        value, changed = flat.sweep(self.program, belief, *self._room, policy, follow)
        return float(value), bool(changed)

    # -- states by name ------------------------------------------------------------------------------------------------------------

    def action_at(self, policy: np.ndarray, h: int, x: Any, y: Any) -> Any:
        node = self._node(h, x, y)
        if self.graph.layers.kind[node] != DECIDE:
            raise ModelError(f"(x={x!r}, y={y!r}) takes no action: it is a CHANCE or END state")
        return self.actions[node][policy[h - 1, node]]

    def values_at(self, belief: flat.Estimate, policy: np.ndarray, h: int, x: Any, y: Any) -> dict[Any, float]:
        """Q of an action is the value of taking it here and following the plan elsewhere."""
        node, t = self._node(h, x, y), h - 1
        if self._kept is None or self._kept[0] is not belief or self._kept[1] is not policy or self._kept[2] != t:
            self._kept = belief, policy, t, self._values_of(belief, policy, t)
        values = self._kept[3]
        if self.graph.layers.kind[node] != DECIDE:
            return {None: float(values[-1, node])}
        return {action: float(values[arm, node]) for arm, action in enumerate(self.actions[node])}

    def _values_of(self, belief: flat.Estimate, policy: np.ndarray, t: int) -> np.ndarray:
        """Q of every arm of every node of layer t, and at last V of every node, (arms + 1, nodes): one sweep for each number of an arm."""
        most = np.array([max(len(actions), 1) for actions in self.actions])
        found, v = np.zeros((int(most.max(initial=1)) + 1, self.n_states)), self.layers(self.horizon)
        for arm in range(len(found)):
            changed = policy.copy()
            if arm < len(found) - 1:
                changed[t] = np.minimum(arm, most - 1)
            flat.sweep(self.program, belief, v, self.settlement(), *self._scratch(), changed, True)
            found[arm] = v[t]
        return found

    def _node(self, h: int, x: Any, y: Any) -> int:
        if not 1 <= h <= self.horizon:
            raise ModelError(f"step {h!r} is outside 1..{self.horizon}")
        node = self.graph.layers.index.get((x, y))
        if node is None or not self.graph.holds(h - 1, node):
            raise ModelError(f"(x={x!r}, y={y!r}) cannot occur at step {h}")
        return node

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        return self.graph.decision_states(h)

    def arms_of(self, act: Any) -> np.ndarray:
        policy, graph, findings = self.policy(), self.graph, list[str]()
        for node, (x, y) in enumerate(graph.layers.states):
            if graph.layers.kind[node] != DECIDE:
                continue
            place = {action: i for i, action in enumerate(self.actions[node])}
            for t in range(graph.first[node], graph.last[node] + 1):
                if graph.holds(t, node):
                    action = act(t + 1, x, y)
                    if action in place:
                        policy[t, node] = place[action]
                    else:
                        findings.append(
                            f"the policy takes {action!r} at step {t + 1} in (x={x!r}, y={y!r}); expected one of {list(place)!r}"
                        )
        if findings:
            raise ModelError(findings[:10])
        return policy

    # -- episodes ------------------------------------------------------------------------------------------------------------------

    def world(self, law: Law) -> flat.World:
        return world_of(self, law, cumulative(self.program.branch_p, self.program.branch_ptr), np.cumsum(self.program.start_p))

    def learn_chunk(self, run: Trial, chunk: slice) -> None:
        nowhere = np.zeros((0, 5))
        if not run.every:  # plans are few, and a loop that holds them takes longer to compile than they do

            def episodes(policy: np.ndarray, tally: flat.Tally, rng: np.ndarray, returns: np.ndarray) -> tuple[int, bool]:
                count, due = flat.episodes(self.program, run.world, policy, tally, rng, nowhere, returns)
                return int(count), bool(due)

            run.in_bulk(chunk, episodes)
            return
        prior = run.bonus.prior or None
        flat.learn(
            self.program, run.belief, run.truth, run.world, run.tally, prior, run.reward_bonus, run.every, run.rng, run.state,
            *self._room, run.policy, nowhere, run.upper[chunk], run.value[chunk], run.returns[chunk], run.planned[chunk],
        )  # fmt: skip

    def followed(self, act: Callable[[int, Any, Any], Any]) -> np.ndarray:
        return self.arms_of(act)

    def episode(self, world: flat.World, policy: np.ndarray, tally: flat.Tally, rng: np.ndarray) -> tuple[Episode, float, bool]:
        total, due, moves = flat.rollout(self.program, world, policy, tally, rng, self.path)
        return self.recorded(self.path[:moves]), float(total), bool(due)

    def slot_states(self) -> list[tuple[Any, Any]]:
        """The state (x, y) of every slot of the program."""
        settled_from = int(self.program.blocks[self.program.settlement - 1, 1])
        sides = self.graph.layers, self.graph.settled
        return [sides[int(slot >= settled_from)].states[node] for slot, node in enumerate(self.program.slot_node)]

    @cached_property
    def path(self) -> np.ndarray:
        """Room for the longest possible episode."""
        blocks = len(self.program.blocks)
        return np.zeros((self.horizon * blocks + blocks, 5))

    def recorded(self, path: np.ndarray) -> Episode:
        """The path of a rollout in the model's own values."""
        graph, program = self.graph, self.program
        settled_from = int(program.blocks[program.settlement - 1, 1])
        transitions = []
        for slot, arm, branch, outcome, reward in path:
            node = int(program.slot_node[int(slot)])
            side = graph.layers if slot < settled_from else graph.settled
            x, y = side.states[node]
            action = self.actions[node][int(arm - program.arm_ptr[int(slot)])] if side.kind[node] == DECIDE else None
            _, row, y_next = self.pairs[int(program.branch_pair[int(branch)])]
            transitions.append(Transition(x, y, action, graph.row_states(row)[int(outcome)], graph.ys[y_next], float(reward)))
        return Episode(transitions)

    # -- shares and possible returns -----------------------------------------------------------------------------------------------

    @cached_property
    def _shares(self) -> np.ndarray:
        """The weight in the union bound of each pair with an unknown feature (1 elsewhere)."""
        weights = np.ones(len(self.pairs))
        for i, (_, row, y) in enumerate(self.pairs):
            if row >= 0:
                share = self.model.share(self.features[row], self.graph.ys[y])
                weights[i] = 1 / self.n_y if share is None else share
        return weights

    def _ranges(self, rooms: int) -> tuple[np.ndarray, ...]:
        """[lo, hi] of the last `rooms` layers computed and of the settlement, and the cap and width of every group and layer."""
        low, high = np.array([r.low for r in self.rewards], float), np.array([r.high for r in self.rewards], float)
        hi, lo, hi_settled, lo_settled = self.layers(rooms), self.layers(rooms), self.settlement(), self.settlement()
        cap, width = np.zeros((2, self.horizon + 1, self._groups))
        flat.ranges(self.program, low, high, hi, lo, hi_settled, lo_settled, cap, width)
        return lo, hi, lo_settled, hi_settled, cap, width

    @cached_property
    def caps(self) -> tuple[np.ndarray, np.ndarray]:
        """max hi and max hi - min lo of each group of pairs in each layer, (H + 1, groups)."""
        *_, cap, width = self._ranges(2)
        return cap, width

    def _check_declared(self) -> None:
        """A declared range that a return to go can leave, or shares above 1, would break optimism silently."""
        findings: list[str] = []
        if self.model.return_range is not None:
            findings.extend(self._range_findings(*map(float, self.model.return_range)))
        totals: dict[int, dict[int, float]] = {}
        for i, (_, row, y) in enumerate(self.pairs):
            if row >= 0:
                totals.setdefault(row, {})[y] = self._shares[i]
        for row, by_y in totals.items():
            if not all(weight > 0 for weight in by_y.values()) or math.fsum(by_y.values()) > 1 + 1e-9:
                z, total = self.features[row], math.fsum(by_y.values())
                findings.append(f"share({z!r}, y) sums to {total:g} over y; expected at most 1, each > 0")
        if findings:
            raise ModelError(findings)

    def _range_findings(self, low: float, high: float) -> Iterator[str]:
        lo, hi, lo_settled, hi_settled, *_ = self._ranges(self.horizon)
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        for t in range(self.horizon + 1):
            side, bottom, top = (self.graph.layers, lo[t], hi[t]) if t < self.horizon else (self.graph.settled, lo_settled, hi_settled)
            for node in np.flatnonzero((bottom < low - slack) | (top > high + slack)):
                if t == self.horizon or self.graph.holds(t, int(node)):
                    x, y = side.states[node]
                    where = f"at step {t + 1}" if t < self.horizon else "after the last action"
                    possible = f"the return to go from (x={x!r}, y={y!r}) {where} can be {bottom[node]:g} to {top[node]:g}"
                    yield f"return_range is ({low:g}, {high:g}), but {possible}"
                    return
