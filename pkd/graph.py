"""The explicit graph of a model: every state, feature and move that can occur, and in which layer.

Layer t = h - 1 holds the states in which the (h)-th action is about to be chosen, with the CHANCE states before it; after the last action
comes the settlement, whose states are listed apart because `last_step` rules there. Nothing unreachable is asked of the model.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from pkd.model import CHANCE, END, Known, ModelError, PartiallyKnownMDP, UnknownReward

DECIDE, CHANCE_STATE, STOP = 0, 1, 2  # what a node is
PROBABILITY_SLACK = 1e-9


@attrs.frozen
class Arm:
    """A move: an action of a decision node, or the one move of a CHANCE node."""

    action: Any
    reward: float  # the known part
    mean: int  # index of the UnknownReward, or -1
    branches: tuple[tuple[float, int, int], ...]  # (probability, row, y' as an index into ys)
    targets: list[int]  # the nodes that it can lead to


@attrs.define
class Side:
    """The nodes of the layers, or those of the settlement."""

    states: list[tuple[Any, Any]] = attrs.Factory(list)
    index: dict[tuple[Any, Any], int] = attrs.Factory(dict)
    kind: list[int] = attrs.Factory(list)
    final: list[float] = attrs.Factory(list)
    arms: dict[int, list[Arm]] = attrs.Factory(dict)  # moves by `step` in the layers, by `last_step` in the settlement


@attrs.define
class Graph:
    """What `explore` found. Rows are the laws that moves refer to: unknown features first, then known laws."""

    model: PartiallyKnownMDP
    horizon: int
    layers: Side = attrs.Factory(Side)
    settled: Side = attrs.Factory(Side)
    last_arms: dict[int, list[Arm]] = attrs.Factory(dict)  # moves of the last action, into the settlement
    start: list[tuple[int, float]] = attrs.Factory(list)
    ys: list[Any] = attrs.Factory(list)
    features: list[Any] = attrs.Factory(list)
    outcomes: list[tuple[Any, ...]] = attrs.Factory(list)  # of each feature
    known: list[Known] = attrs.Factory(list)  # of row -1 - i in `Arm.branches`
    rewards: list[UnknownReward] = attrs.Factory(list)
    first: list[int] = attrs.Factory(list)  # the first layer of each node
    last: list[int] = attrs.Factory(list)  # the last layer of each node
    members: list[set[int]] | None = None  # the nodes of each layer; None where layers only grow, so that `first` says it all

    def holds(self, t: int, node: int) -> bool:
        """Whether the node can occur in layer t."""
        if self.members is not None:
            return node in self.members[t]
        return self.first[node] <= t

    def decision_states(self, h: int) -> Iterator[tuple[Any, Any]]:
        """The decision states that can occur at step h."""
        for node, state in enumerate(self.layers.states):
            if self.layers.kind[node] == DECIDE and self.holds(h - 1, node):
                yield state

    def row_states(self, row: int) -> tuple[Any, ...]:
        """The x' of a row, in its order."""
        return self.outcomes[row] if row >= 0 else tuple(x for x, p in self.known[-1 - row].law if p > 0)


def explore(model: PartiallyKnownMDP) -> Graph:
    """The graph of everything reachable; a model that breaks the contract gets the full report of `check_model`."""
    try:
        horizon = model.horizon
        if not isinstance(horizon, int) or horizon < 1:
            raise ModelError(f"horizon is {horizon!r}, not a positive whole number")
        graph = _Explorer(Graph(model, horizon)).run()
        if graph.layers.kind == [] or graph.start == []:
            raise ModelError("start() gives no state of positive probability")
        return graph
    except Exception:
        from pkd.check import check_model

        check_model(model)
        raise


class _Explorer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.model = graph.model
        self.y_index: dict[Any, int] = {}
        self.feature_index: dict[Any, int] = {}
        self.known_index: dict[Known, int] = {}
        self.reward_index: dict[Any, int] = {}
        self.successors: dict[int, list[int]] = {}
        self.landed: dict[tuple[bool, tuple[Any, ...], int], list[int]] = {}

    def run(self) -> Graph:
        graph, layers = self.graph, self.graph.layers
        start = self.model.start()
        for state, p in start.items() if isinstance(start, dict) else [(start, 1.0)]:
            x, y = state
            if not p >= 0:
                raise ModelError(f"start() gives {state!r} the probability {p!r}")
            if p > 0:
                graph.start.append((self.node(layers, x, y), float(p)))
        if abs(math.fsum(p for _, p in graph.start) - 1) > PROBABILITY_SLACK:
            raise ModelError(f"start() sums to {math.fsum(p for _, p in graph.start)!r}, not 1")
        self.walk({node for node, _ in graph.start})
        self.settle()
        return graph

    def walk(self, layer: set[int]) -> None:
        """Layers S_t = F(S_{t-1}) with F(A | B) = F(A) | F(B): while they only grow, F is asked of the new nodes alone."""
        graph = self.graph
        members, fresh, grows, before = [layer], self.close(layer), False, set[int]()
        layer |= fresh
        for t in range(1, graph.horizon):
            image = self.close(self.image(fresh))
            layer, before = (layer | image) if grows else image, layer
            grows = before <= layer
            fresh = layer - before if grows else layer
            if not fresh:
                members.extend([before] * (graph.horizon - t))
                break
            members.append(layer)
        for node in members[-1]:
            if graph.layers.kind[node] == DECIDE:
                self.expand(node, last=True)
        count = len(graph.layers.states)
        graph.first, graph.last = [graph.horizon] * count, [-1] * count
        for t, layer in reversed(list(enumerate(members))):
            if t + 1 < len(members) and layer is members[t + 1] and t > 0 and layer is members[t - 1]:
                continue
            for node in layer:
                graph.first[node] = t
                graph.last[node] = max(graph.last[node], t)
        growing = all(a is b or a <= b for a, b in itertools.pairwise(members))
        graph.members = None if growing else members

    def image(self, nodes: set[int]) -> set[int]:
        """Where one action leads; an END stays, which keeps layers growing."""
        reached = set[int]()
        for node in nodes:
            if self.graph.layers.kind[node] == DECIDE:
                self.expand(node, last=False)
                reached.update(self.successors[node])
            elif self.graph.layers.kind[node] == STOP:
                reached.add(node)
        return reached

    def close(self, nodes: set[int]) -> set[int]:
        """The nodes with all that their CHANCE states lead to."""
        closed, pending = set(nodes), list(nodes)
        while pending:
            node = pending.pop()
            if self.graph.layers.kind[node] != CHANCE_STATE:
                continue
            self.expand(node, last=False)
            for target in self.successors[node]:
                if target not in closed:
                    closed.add(target)
                    pending.append(target)
        return closed

    def settle(self) -> None:
        side = self.graph.settled
        node = 0
        while node < len(side.states):  # the list grows while it is read
            if side.kind[node] == CHANCE_STATE:
                x, y = side.states[node]
                side.arms[node] = [self.arm(x, y, None, self.model.last_step, side)]
            node += 1

    def expand(self, node: int, *, last: bool) -> None:
        graph, layers = self.graph, self.graph.layers
        known = graph.last_arms if last and layers.kind[node] == DECIDE else layers.arms
        if node in known:
            return
        x, y = layers.states[node]
        if layers.kind[node] == CHANCE_STATE:
            arm = self.arm(x, y, None, self.model.step, layers)
            known[node], self.successors[node] = [arm], arm.targets
            return
        side, step = (graph.settled, self.model.last_step) if last else (layers, self.model.step)
        known[node] = [self.arm(x, y, action, step, side) for action in self.model.actions(x, y)]
        if not last:
            self.successors[node] = list({target for arm in known[node] for target in arm.targets})

    def arm(self, x: Any, y: Any, action: Any, step: Any, side: Side) -> Arm:
        merged: dict[tuple[int, int], float] = {}
        for p, y_next, z in step(x, y, action):
            if not p >= 0:
                raise ModelError(f"a move from x={x!r}, y={y!r} by {action!r} has the probability {p!r}")
            if p > 0:
                key = (self.row(z), self.y(y_next))
                merged[key] = merged.get(key, 0.0) + float(p)
        if abs(math.fsum(merged.values()) - 1) > PROBABILITY_SLACK:
            raise ModelError(f"the moves from x={x!r}, y={y!r} by {action!r} sum to {math.fsum(merged.values())!r}, not 1")
        targets = [node for row, i in merged for node in self.landings(side, row, i)]
        reward = self.model.reward(x, y, action)
        mean = -1
        if isinstance(reward, UnknownReward):
            mean = self._interned(self.reward_index, self.graph.rewards, reward.feature, reward)
            reward = 0.0
        if not math.isfinite(reward):
            raise ModelError(f"reward(x={x!r}, y={y!r}, a={action!r}) is {reward!r}, not a finite number")
        return Arm(action, float(reward), mean, tuple((p, row, i) for (row, i), p in merged.items()), targets)

    def landings(self, side: Side, row: int, y: int) -> list[int]:
        """The nodes that a row leads to with the y' of index y; rows with the same outcomes share them."""
        states = self.graph.row_states(row)
        key = (side is self.graph.settled, states, y)
        if key not in self.landed:
            self.landed[key] = [self.node(side, x_next, self.graph.ys[y]) for x_next in states]
        return self.landed[key]

    def node(self, side: Side, x: Any, y: Any) -> int:
        found = side.index.get((x, y))
        if found is not None:
            return found
        kind, final = _kind(self.model.actions(x, y), x, y), 0.0
        if kind == STOP or (side is self.graph.settled and kind == DECIDE):
            kind, final = STOP, float(self.model.final(x, y))
            if not math.isfinite(final):
                raise ModelError(f"final(x={x!r}, y={y!r}) is {final!r}, not a finite number")
        self.y(y)
        side.index[x, y] = node = len(side.states)
        side.states.append((x, y))
        side.kind.append(kind)
        side.final.append(final)
        return node

    def row(self, z: Any) -> int:
        """Features count up from 0, known laws down from -1."""
        graph = self.graph
        if isinstance(z, Known):
            if z not in self.known_index and abs(math.fsum(p for _, p in z.law) - 1) > PROBABILITY_SLACK:
                raise ModelError(f"{z!r} does not sum to 1")
            return -1 - self._interned(self.known_index, graph.known, z, z)
        if z not in self.feature_index:
            states = tuple(self.model.outcomes(z))
            if not states or len(set(states)) < len(states):
                raise ModelError(f"outcomes({z!r}) is {states!r}: expected distinct values, at least one")
            graph.outcomes.append(states)
        return self._interned(self.feature_index, graph.features, z, z)

    def y(self, y: Any) -> int:
        return self._interned(self.y_index, self.graph.ys, y, y)

    @staticmethod
    def _interned(index: dict[Any, int], values: list[Any], key: Any, value: Any) -> int:
        found = index.get(key)
        if found is None:
            found = index[key] = len(values)
            values.append(value)
        return found


def _kind(actions: Any, x: Any, y: Any) -> int:
    if actions is CHANCE:
        return CHANCE_STATE
    if actions is END:
        return STOP
    if not isinstance(actions, Iterable) or not list(actions):
        raise ModelError(f"actions(x={x!r}, y={y!r}) is {actions!r}: expected a non-empty sequence, pkd.CHANCE or pkd.END")
    return DECIDE
