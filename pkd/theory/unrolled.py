"""A small model under its true law in flat arrays, every state of every step apart.

A node (step, x, y) has moves, one for each action, a move has branches, and a branch has an edge to
each node that can follow. Nodes stand in the order of their levels, each above those of all nodes
that can follow, so that a sweep goes from level to level and every node is met once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from pkd.episode import list_branches
from pkd.explore.sizes import measure
from pkd.model import CHANCE, END, Known, Law, ModelError, PartiallyKnownMDP
from pkd.theory.bounds import support_log, union_log

Node = tuple[int, Any, Any]  # (step, x, y)
Array = Any  # a number, or an array of them


class Branch(NamedTuple):
    """p, y' and z of one branch, with the true law of x' and the logarithms of its lemmas."""

    p: float
    z: Any  # None where the law is known
    law: Mapping[Any, float]
    ell_1: float = 0.0  # log(32 H^2 |Z| K / (share delta))
    ell_2: float = 0.0
    wide: float = 0.0  # B(z) ell_2(z)


class Part(NamedTuple):
    """The nodes of one level, and where their moves, branches and edges stand."""

    nodes: slice
    place: slice  # among the nodes with moves
    moves: slice
    branches: slice
    edges: slice
    first_move: Array  # of each node, from the first one of the part; so are the others
    first_branch: Array  # of each move
    first_edge: Array  # of each branch


class Unrolled:
    """Nodes, moves, branches and edges of a model, and sums over them."""

    def __init__(self, model: PartiallyKnownMDP, law: Law, episodes: int, delta: float) -> None:
        self.model, self.sizes = model, measure(model)
        self.episodes, self.delta = episodes, delta
        self.law: Any = law if callable(law) else law.__getitem__
        self.features: dict[Any, tuple[float, float]] = {}  # z: largest (ell, B ell_2)
        start = model.start()
        first = start if isinstance(start, Mapping) else {start: 1.0}
        begin = {(1, *state): p for state, p in first.items() if p > 0}
        self._fill(*self._explore(begin))
        self.start = {self.nodes[node]: p for node, p in begin.items()}

    def _explore(self, begin: Mapping[Node, float]) -> tuple[dict[Node, int], dict[Node, Any]]:
        """The level of each node, and its moves (action, reward, [(branch, nodes after)])."""
        moves: dict[Node, list[Any]] = {}
        levels: dict[Node, int] = {}
        waiting = list(begin)
        while waiting:
            node = waiting[-1]
            if node not in moves:
                moves[node] = list(self._list_moves(node))
            after = [one for *_, branches in moves[node] for _, rest in branches for one in rest]
            ahead = [one for one in after if one not in levels]
            if ahead and node not in levels:
                waiting += ahead
                continue
            levels[node] = 1 + max((levels[one] for one in after), default=-1)
            waiting.pop()
        return levels, moves

    def _list_moves(self, node: Node) -> Iterator[tuple[Any, float, list[Any]]]:
        h, x, y = node
        actions, horizon = self.model.actions(x, y), self.model.horizon
        if actions is END or (h > horizon and actions is not CHANCE):
            return
        for a in (None,) if actions is CHANCE else tuple(actions):
            reward: Any = self.model.reward(x, y, a)
            if reward < 0:
                raise ModelError(
                    f"inspect_proof: the reward of (x={x!r}, y={y!r}, a={a!r}) is {reward!r}; "
                    "expected rewards >= 0, because the sum of variances over an episode is "
                    "bounded with them; add a constant to all rewards"
                )
            step, branches = h if a is None else h + 1, []
            for p, y_next, z in list_branches(self.model, x, y, a, step - 1):
                branch = self._find_branch(p, z, y_next)
                branches.append((branch, [(step, x_next, y_next) for x_next in branch.law]))
            yield a, float(reward), branches

    def _find_branch(self, p: float, z: Any, y: Any) -> Branch:
        if isinstance(z, Known):
            return Branch(p, None, {x: q for x, q in z.law if q > 0})
        sizes, share, b = self.sizes, self.model.share(z, y), self.model.branching(z)
        rest = sizes.n_features, self.episodes, self.delta
        ell_1 = union_log(sizes.horizon, sizes.n_y if share is None else 1 / share, *rest)
        ell_2 = support_log(b, sizes.horizon, *rest)
        before, _ = self.features.get(z, (0.0, 0.0))
        self.features[z] = max(before, min(ell_1, b * ell_2)), b * ell_2
        truth = self.law(z)
        law = {x: float(truth.get(x, 0.0)) for x in self.model.outcomes(z)}
        return Branch(p, z, law, ell_1, ell_2, b * ell_2)

    def _fill(self, levels: Mapping[Node, int], moves: Mapping[Node, list[Any]]) -> None:
        """Branches (B,), edges (E,), and the parts of all levels."""
        listed = sorted(levels, key=levels.__getitem__)
        self.nodes = {node: i for i, node in enumerate(listed)}
        self.places: list[dict[Any, int]] = []  # the move of each action of a node, if any
        rewards: list[float] = []
        branches: list[Branch] = []
        edges: list[int] = []
        ends = [(0, 0, 0, 0, 0)]  # of each level: nodes, those with moves, moves, branches, edges
        first: tuple[list[int], ...] = ([], [], [])  # move of a node, branch of a move, edge
        for _, level in groupby(listed, key=levels.__getitem__):
            for node in level:
                places = {a: len(rewards) + i for i, (a, *_) in enumerate(moves[node])}
                self.places.append(places)
                if places:
                    first[0].append(len(rewards))
                for _, reward, found in moves[node]:
                    rewards.append(reward)
                    first[1].append(len(branches))
                    for branch, after in found:
                        branches.append(branch)
                        first[2].append(len(edges))
                        edges += [self.nodes[one] for one in after]
            sizes = len(self.places), len(first[0]), len(rewards), len(branches), len(edges)
            ends.append(sizes)
        self.p, self.ell_1, self.ell_2, self.wide = (
            np.array([getattr(b, name) for b in branches])
            for name in ("p", "ell_1", "ell_2", "wide")
        )
        self.feature = [branch.z for branch in branches]
        self.ell = np.minimum(self.ell_1, self.wide)
        self.unknown = np.array([z is not None for z in self.feature], bool)
        self.at = np.flatnonzero([bool(places) for places in self.places])  # nodes with moves
        self.branch = np.repeat(np.arange(len(branches)), [len(b.law) for b in branches])
        self.reward, self.target = np.array(rewards), np.array(edges, int)
        firsts = [np.array(one, int) for one in first]
        self.move = np.repeat(np.arange(len(rewards)), np.diff(firsts[1], append=len(branches)))
        self.q = np.array([q for b in branches for q in b.law.values()])
        self.pairs = [(b.z, x) for b in branches for x in b.law]

        def cut(begin: tuple[int, ...], end: tuple[int, ...]) -> Part:
            slices = [slice(*pair) for pair in zip(begin, end, strict=True)]
            starts = (one[part] for one, part in zip(firsts, slices[1:4], strict=True))
            relative = (one - i for one, i in zip(starts, begin[2:], strict=True))
            return Part(*slices, *relative)

        self.parts = [cut(*pair) for pair in pairwise(ends)]
        self.parts = [part for part in self.parts if len(part.first_move)]
        self.whole = cut(ends[0], ends[-1])

    def settle(self) -> Array:
        """The final pay of the nodes without moves, 0 elsewhere."""
        values = np.zeros(len(self.nodes))
        for (_, x, y), i in self.nodes.items():
            if not self.places[i]:
                values[i] = self.model.final(x, y)
        return values

    def mean(self, q: Array, values: Array, part: Part | None = None) -> Array:
        """sum_x' q(x') values(x') of each branch; q: (E,), values: (..., nodes)."""
        part = part or self.whole
        ahead = q[part.edges] * values[..., self.target[part.edges]]
        return np.add.reduceat(ahead, part.first_edge, axis=-1)

    def spread(self, q: Array, values: Array, part: Part | None = None) -> Array:
        """The variance of the values under q, of each branch."""
        part = part or self.whole
        mean = self.mean(q, values, part)[self.branch[part.edges] - part.branches.start]
        off = (values[self.target[part.edges]] - mean) ** 2
        return np.add.reduceat(q[part.edges] * off, part.first_edge)

    def sum(self, values: Array, part: Part | None = None) -> Array:
        """sum p values over the branches of each move; values: (..., branches of the part)."""
        part = part or self.whole
        return np.add.reduceat(self.p[part.branches] * values, part.first_branch, axis=-1)
