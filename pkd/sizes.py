"""The sizes of a model, read from its graph: its unknown features, |Y|, the range of its returns.

They are what the regret theorem needs (`pkd.bounds`), and what a declared `return_range` is held
against (`pkd.check`). Returns to go are computed backward, layer by layer:

    high_t(s) = max over a, y', x' that can follow of  r(s, a) + high_{t+1}(x', y')

and low_t likewise. An action that pays an unknown reward pays its low or its high. In a graph with
hidden queues a node stands for many states: its numbers then bound those of all of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.explore import explore, overrides
from pkd.graph import CHANCES, LAST, SETTLED, STEP, STOP, Cells, Graph, Side
from pkd.model import ModelError, PartiallyKnownMDP

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled

__all__ = [
    "RETURNS",
    "FeatureSize",
    "Layer",
    "Sizes",
    "find_most_visits",
    "is_declared_range_safe",
    "may_overflow",
    "measure",
    "returns_within",
    "sweep_returns",
]

LARGE_REWARD = 1e290  # below it no sum of rewards leaves the range of numbers
RETURNS = (
    -(2.0**1022),
    2.0**1022,
)  # where returns must lie, so that differences of them are numbers

VISIT_NUMBERS = 10**7  # that a pass over the visits of single features may hold

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
_Pay = Callable[[Graph, Cells], tuple[Numbers, Numbers]]  # (k, actions) and (k, branches)


@attrs.frozen
class FeatureSize:
    """One unknown feature z in the regret theorem."""

    branching: int  # B(z)
    spread: float  # the largest 1 / share(z, y') over the y' that can come with z; at most |Y|


@attrs.frozen
class Sizes:
    """What can happen in a model, whatever its law and the policy."""

    horizon: int
    features: tuple[FeatureSize, ...]
    n_features: int  # |Z| in the logarithms
    n_rewards: int  # unknown rewards
    n_y: int  # distinct y, layers and settlement together
    width: float  # of the declared return range, or the widest range of returns from a start state
    unknown_moves: int  # the most moves with an unknown feature in one episode
    most_visits: int  # see `find_most_visits`


class Layer(NamedTuple):
    """The returns to go of one layer, all (nodes,); meant for the nodes that can occur there."""

    t: int  # 0 .. H - 1, and H for the settlement
    low: Numbers
    high: Numbers
    moves: Numbers  # the most unknown moves to go


def measure(model: PartiallyKnownMDP | Compiled) -> Sizes:
    """The sizes of a model from one walk; a compiled model is not walked again.

    Only where a compiled model hides its queues its states are walked once more, one by one: a
    hidden queue bounds the returns but does not give them.
    """
    if isinstance(model, PartiallyKnownMDP):
        graph = explore(model)
    else:
        graph = explore(model.model) if model.graph.hidden else model.graph
    try:
        return _measure_graph(graph)
    except ModelError:
        from pkd.check import explain

        explain(graph.model)  # the same finding in the words of the check
        raise


def _measure_graph(graph: Graph) -> Sizes:
    first = deque(sweep_returns(graph), maxlen=1).pop()
    at = np.array([node for node, *_ in graph.start])
    declared = graph.model.return_range
    width = (first.high - first.low)[at].max() if declared is None else declared[1] - declared[0]
    features = tuple(_measure_features(graph))
    return Sizes(
        horizon=graph.horizon,
        features=features,
        n_features=graph.model.n_features or len(features),
        n_rewards=len(graph.rewards),
        n_y=graph.n_y,
        width=float(width),
        unknown_moves=int(first.moves[at].max()),
        most_visits=graph.model.most_samples() or find_most_visits(graph),
    )


def sweep_returns(graph: Graph) -> Iterator[Layer]:
    """The returns to go of the settlement, then of layers H - 1, ..., 0.

    CHANCE states that form a cycle are a ModelError.
    """
    for t, values in _sweep(graph, _pay_returns):
        yield Layer(t, -values[0], values[1], values[2])


def find_most_visits(graph: Graph) -> int:
    """N: the most samples of one feature, or payments of one unknown reward, of an episode.

        n_t(s) = max over a, y', x' that can follow of  [z is drawn] + n_{t+1}(x', y')

    It is at least the number of layers whose values are averaged over x': H, or H + 1 if there are
    draws before the first action and after the last one. An action draws once, so H is exceeded
    only where CHANCE states draw. One pass counts all features together; only if that is too much,
    each counts by itself.
    """
    waits = [graph.cells[part] for part in (CHANCES, SETTLED)]
    if not any(max((*cells.row, *cells.mean), default=-1) >= 0 for cells in waits):
        return graph.horizon
    late = any(max(graph.cells[part].row, default=-1) >= 0 for part in (LAST, SETTLED))
    least = graph.horizon + (late and _draws_first(graph))
    try:
        together = _count_visits(graph, None)
    except ModelError:  # where queues are hidden, one node stands for many states: no real cycle
        if not graph.hidden:
            raise
        together = least + 1
    if together <= least:
        return least
    if graph.hidden:
        return find_most_visits(explore(graph.model))
    names = np.arange(len(graph.features) + len(graph.rewards))
    numbers = max(len(graph.layers.x), *(len(cells.row) for cells in graph.cells))
    size = max(VISIT_NUMBERS // numbers, 1)
    apart = (_count_visits(graph, names[i : i + size]) for i in range(0, len(names), size))
    return max(least, *apart)


def _draws_first(graph: Graph) -> bool:
    """Whether a CHANCE state before the first action draws from an unknown law."""
    cells, first = graph.cells[CHANCES], graph.members[0]
    return any(
        node in first and max((cells.row[k] for k in cells.branches(i)), default=-1) >= 0
        for i, node in enumerate(cells.node)
    )


def _count_visits(graph: Graph, names: Indices | None) -> int:
    """The most visits of one of some features and rewards; None: of all features together."""
    _, values = deque(_sweep(graph, partial(_pay_visits, names=names)), maxlen=1).pop()
    return int(values[:, [node for node, *_ in graph.start]].max())


def _sweep(graph: Graph, pay: _Pay) -> Iterator[tuple[int, Numbers]]:
    """(t, the largest sums of pay to go, (k, nodes)) of t = H, the settlement, and H - 1, ..., 0.

    CHANCE states that form a cycle are a ModelError.
    """
    levels, settling = _order(graph, CHANCES, pay), _order(graph, SETTLED, pay)
    step, last = _count_moves(graph, STEP, pay), _count_moves(graph, LAST, pay)
    size = len(step.pay)
    after, first = np.full((size, len(graph.settled.x)), -np.inf), last
    _improve(after, after, settling)
    yield graph.horizon, after
    for t in range(graph.horizon - 1, -1, -1):
        values = np.full((size, len(graph.layers.x)), -np.inf)
        _improve(values, after, [first])
        _improve(values, values, levels)
        yield t, values
        after, first = values, step


def returns_within(graph: Graph, low: float, high: float) -> bool:
    """Whether every return to go lies in [low, high]; with hidden queues False may be wrong."""
    for layer in sweep_returns(graph):
        settled = layer.t == graph.horizon
        nodes = np.fromiter(graph.ends if settled else graph.members[layer.t], np.int64)
        if not ((layer.low[nodes] >= low).all() and (layer.high[nodes] <= high).all()):
            return False
    return True


def may_overflow(graph: Graph) -> bool:
    """Whether rewards are so large that sums of them may leave the range of numbers."""
    known = max(float(np.abs(np.array(c.reward)).max(initial=0.0)) for c in graph.cells)
    unknown = max((max(abs(r.low), abs(r.high)) for r in graph.rewards), default=0.0)
    return max(known, unknown) > LARGE_REWARD


def is_declared_range_safe(graph: Graph) -> bool:
    """Whether the returns surely lie in the declared range; False: look closer."""
    declared = graph.model.return_range
    if declared is None:
        return not may_overflow(graph)
    try:
        low, high = map(float, declared)
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        sensible = -math.inf < low <= high < math.inf
        return sensible and returns_within(graph, low - slack, high + slack)
    except (TypeError, ValueError):  # no range, or CHANCE states that only hidden queues tell apart
        return False


def _measure_features(graph: Graph) -> Iterator[FeatureSize]:
    rows = np.concatenate([np.array(cells.row, np.int64) for cells in graph.cells])
    shares = np.concatenate([np.array(cells.share, float) for cells in graph.cells])[rows >= 0]
    spread = np.zeros(len(graph.features))
    np.maximum.at(spread, rows[rows >= 0], np.where(np.isnan(shares), graph.n_y, 1 / shares))
    own = overrides(graph.model, "branching")
    for z, states, most in zip(graph.features, graph.outcomes, spread.tolist(), strict=True):
        b: Any = graph.model.branching(z) if own else len(states)
        if not b >= 1:
            raise ModelError(f"branching({z!r}) is {b!r}; expected a positive whole number")
        yield FeatureSize(int(b), most)


@attrs.frozen
class _Moves:
    """Some cells of one part: cell -> actions -> branches -> landing -> nodes."""

    node: Indices  # (cells,)
    action_ptr: Indices
    branch_ptr: Indices
    landing: Indices  # (branches,) a place in target_ptr
    target_ptr: Indices
    target: Indices
    gain: Numbers  # (k, branches) what a branch pays
    pay: Numbers  # (k, actions) what an action pays
    stops: NDArray[np.bool_]  # (actions,) the episode is over

    def take(self, which: Indices) -> _Moves:
        """Some of the cells."""
        action_ptr, actions = _take(self.action_ptr, which)
        branch_ptr, branches = _take(self.branch_ptr, actions)
        used, landing = np.unique(self.landing[branches], return_inverse=True)
        target_ptr, targets = _take(self.target_ptr, used)
        return _Moves(
            node=self.node[which],
            action_ptr=action_ptr,
            branch_ptr=branch_ptr,
            landing=landing,
            target_ptr=target_ptr,
            target=self.target[targets],
            gain=self.gain[:, branches],
            pay=self.pay[:, actions],
            stops=self.stops[actions],
        )

    def follow(self, values: Numbers) -> Numbers:
        """The largest value that can follow each branch; values: (k, nodes)."""
        return _largest(values[:, self.target], self.target_ptr)[:, self.landing]

    def back_up(self, values: Numbers) -> Numbers:
        """The largest value of each cell, (k, cells), from those of the nodes."""
        action = _largest(self.follow(values) + self.gain, self.branch_ptr)
        action[:, self.stops] = 0.0
        return _largest(action + self.pay, self.action_ptr)


def _improve(values: Numbers, after: Numbers, levels: list[_Moves]) -> None:
    with np.errstate(over="ignore"):  # what overflows is infinite
        for moves in levels:
            for row, found in zip(values, moves.back_up(after), strict=True):
                np.maximum.at(row, moves.node, found)


def _order(graph: Graph, part: int, pay: _Pay) -> list[_Moves]:
    """The moves of CHANCE and END states by level: each level leads to lower ones and elsewhere."""
    side = graph.settled if part == SETTLED else graph.layers
    rest, levels = _count_moves(graph, part, pay), []
    while len(rest.node):
        waiting = np.zeros((1, len(side.x)))
        waiting[0, rest.node] = 1.0
        blocked = _largest(rest.follow(waiting), rest.branch_ptr)
        ready = ~(_largest(blocked, rest.action_ptr)[0] > 0)
        if not ready.any():
            raise ModelError("CHANCE states form a cycle, so that time stands still")
        levels.append(rest.take(np.flatnonzero(ready)))
        rest = rest.take(np.flatnonzero(~ready))
    return levels


def _count_moves(graph: Graph, part: int, pay: _Pay) -> _Moves:
    """The moves of one part of a graph."""
    cells: Cells = graph.cells[part]
    source: Side = graph.settled if part == SETTLED else graph.layers
    node, action_ptr = np.array(cells.node, np.int64), np.array(cells.action_ptr, np.int64)
    used, landing = np.unique(np.array(cells.landing, np.int64), return_inverse=True)
    targets = [graph.landings[i] for i in used.tolist()]
    of_actions, of_branches = pay(graph, cells)
    stops = (np.array(source.kind, np.int64) == STOP)[node]
    return _Moves(
        node=node,
        action_ptr=action_ptr,
        branch_ptr=np.array(cells.branch_ptr, np.int64),
        landing=landing,
        target_ptr=_find_pointers(np.array([len(nodes) for nodes in targets], np.int64)),
        target=np.fromiter(chain.from_iterable(targets), np.int64),
        gain=of_branches,
        pay=of_actions,
        stops=np.repeat(stops, np.diff(action_ptr)),
    )


def _pay_returns(graph: Graph, cells: Cells) -> tuple[Numbers, Numbers]:
    """Actions pay -low, high and nothing; branches pay 1 to the third for an unknown feature."""
    mean = np.array(cells.mean, np.int64)
    low = np.array(cells.reward, float)
    high = low.copy()
    unknown = np.flatnonzero(mean >= 0)
    low[unknown] = np.array([float(r.low) for r in graph.rewards])[mean[unknown]]
    high[unknown] = np.array([float(r.high) for r in graph.rewards])[mean[unknown]]
    draws = (np.array(cells.row, np.int64) >= 0).astype(float)
    nothing = np.zeros(len(draws))
    return np.array([-low, high, np.zeros(len(low))]), np.array([nothing, nothing, draws])


def _pay_visits(graph: Graph, cells: Cells, names: Indices | None) -> tuple[Numbers, Numbers]:
    """A visit of the k-th name pays 1; None: that of any feature or unknown reward."""
    row, mean = np.array(cells.row, np.int64), np.array(cells.mean, np.int64)
    if names is None:
        return (mean >= 0)[None].astype(float), (row >= 0)[None].astype(float)
    paid = mean + np.where(mean >= 0, len(graph.features), 0)
    return (paid == names[:, None]).astype(float), (row == names[:, None]).astype(float)


def _take(ptr: Indices, which: Indices) -> tuple[Indices, Indices]:
    """Some segments one after the other: (their pointers, where their elements were)."""
    first, count = ptr[which], ptr[which + 1] - ptr[which]
    new = _find_pointers(count)
    return new, np.arange(new[-1]) + np.repeat(first - new[:-1], count)


def _find_pointers(lengths: Indices) -> Indices:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _largest(values: Numbers, ptr: Indices) -> Numbers:
    """The largest value of each segment, -inf where it is empty: (k, n) -> (k, segments)."""
    out = np.full((len(values), len(ptr) - 1), -np.inf)
    full = ptr[1:] > ptr[:-1]
    if full.any():
        out[:, full] = np.maximum.reduceat(values, ptr[:-1][full], axis=1)
    return out
