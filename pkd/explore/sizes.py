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
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from pkd.explore import explore, overrides
from pkd.explore.flat import Flat
from pkd.explore.graph import (
    CHANCES,
    LAST,
    SETTLED,
    STEP,
    STOP,
    Graph,
    QueuesMatterError,
    count_union,
)
from pkd.explore.limits import refuse_seconds
from pkd.explore.segments import take
from pkd.model import ModelError, PartiallyKnownMDP

if TYPE_CHECKING:
    from pkd.engine.compiled import Compiled

__all__ = [
    "RETURNS",
    "FeatureSize",
    "Layer",
    "Sizes",
    "find_most_visits",
    "find_share_totals",
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

LEVEL_SECONDS = 1e-4  # measured: of one level of one step of a small model
MOST_COUNTED = 1e10  # features x branches x steps that are swept to count each feature by itself
VISIT_NUMBERS = 10**7  # that a pass over the visits of single features may hold

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


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
    """The returns to go of the settlement, then of layers H - 1, ..., 0."""
    flat = graph.flat
    low, unknown = flat.reward.copy(), flat.mean >= 0
    high, mean = low.copy(), flat.mean[unknown]
    low[unknown] = np.array([float(r.low) for r in graph.rewards])[mean]
    high[unknown] = np.array([float(r.high) for r in graph.rewards])[mean]
    draws, no = (flat.row < flat.n_unknown).astype(float), np.zeros(len(flat.row))
    pay = np.array([-low, high, np.zeros(len(low))])
    for t, values in _sweep(
        graph, pay, np.array([no, no, draws]), np.array([[-1.0], [1.0], [0.0]])
    ):
        yield Layer(t, -values[0], values[1], values[2])


def find_most_visits(graph: Graph) -> int:
    """N: the most samples of one feature, or payments of one unknown reward, of an episode.

        n_t(s) = max over a, y', x' that can follow of  [z is drawn] + n_{t+1}(x', y')

    It is at least the number of layers whose values are averaged over x': H, or H + 1 if there are
    draws before the first action and after the last one. An action draws once, so H is exceeded
    only where CHANCE states draw. One pass counts all features together; only if that is too much,
    each counts by itself. Where counting each takes long, it is the number of all together: an
    upper bound, which logarithms may take.
    """
    flat = graph.flat
    waits, draws = flat.part >= CHANCES, flat.row < flat.n_unknown
    action_ptr, branch_ptr = flat.action_ptr, flat.branch_ptr[flat.action_ptr]
    drawn = _any(draws, branch_ptr)  # of each cell
    if not (waits & (drawn | _any(flat.mean >= 0, action_ptr))).any():
        return graph.horizon
    first = [flat.part[i] == CHANCES and int(flat.node[i]) in graph.members[0] for i in
             np.flatnonzero(drawn).tolist()]  # fmt: skip
    late = np.isin(flat.part, (LAST, SETTLED))
    least = graph.horizon + bool((drawn & late).any() and any(first))
    try:
        together = _count_visits(graph, None)
    except QueuesMatterError:
        together = least + 1
    if together <= least:
        return least
    if graph.hidden:
        return find_most_visits(explore(graph.model))
    names = np.arange(len(graph.features) + len(graph.rewards))
    if len(names) * len(flat.row) * graph.horizon > MOST_COUNTED:
        return together
    size = max(VISIT_NUMBERS // max(len(graph.layers.x), len(flat.row)), 1)
    apart = (_count_visits(graph, names[i : i + size]) for i in range(0, len(names), size))
    return max(least, *apart)


def _any(marks: NDArray[np.bool_], ptr: Indices) -> NDArray[np.bool_]:
    """Whether something is marked in each segment."""
    return np.diff(np.concatenate([[0], np.cumsum(marks)])[ptr]) > 0


def _count_visits(graph: Graph, names: Indices | None) -> int:
    """The most visits of one of some features and rewards; None: of all features together."""
    flat = graph.flat
    if names is None:
        pay, gain = (flat.mean >= 0)[None], (flat.row < flat.n_unknown)[None]
    else:
        paid = np.where(flat.mean >= 0, flat.mean + flat.n_unknown, -1)
        # Known laws have the numbers of rewards among rows.
        row = np.where(flat.row < flat.n_unknown, flat.row, -1)
        pay, gain = paid == names[:, None], row == names[:, None]
    _, values = deque(
        _sweep(graph, pay.astype(float), gain.astype(float), np.zeros(1)), maxlen=1
    ).pop()
    return int(values[:, [node for node, *_ in graph.start]].max())


def _sweep(
    graph: Graph, pay: Numbers, gain: Numbers, ends: Numbers
) -> Iterator[tuple[int, Numbers]]:
    """(t, the largest sums of pay to go, (k, nodes)) of t = H, the settlement, and H - 1, ..., 0.

    pay: (k, actions). gain: (k, branches), paid by a branch. ends: how often `final` is paid.
    """
    flat, horizon = graph.flat, graph.horizon
    in_layers = np.where(flat.part == SETTLED, 0, flat.node)
    level = graph.levels[0][in_layers]
    level[flat.part == SETTLED] = graph.levels[1][flat.node[flat.part == SETTLED]]
    windows = flat.first[in_layers], flat.last[in_layers]
    decides = np.isin(flat.part, (STEP, LAST))

    def list_levels(part: int, first: Indices, last: Indices) -> list[_Level]:
        mine = np.where(flat.part == part, level + decides, 0)
        cells = [np.flatnonzero(mine == i) for i in range(1, mine.max(initial=0) + 1)]
        return [_Level(flat, pay, gain, which, first[which], last[which]) for which in cells]

    step, chances = list_levels(STEP, *windows), list_levels(CHANCES, *windows)
    seconds = LEVEL_SECONDS * horizon * (len(step) + len(chances))
    refuse_seconds(seconds, f"to bound the returns of {horizon:,} steps")
    everywhere = np.zeros_like(level), np.full_like(level, horizon)
    final, settling = list_levels(LAST, *everywhere), list_levels(SETTLED, *everywhere)
    finals = []
    for kind, part in zip(flat.kind, (CHANCES, SETTLED), strict=True):
        paid, mine = np.full((len(pay), len(kind)), -np.inf), flat.part == part
        cells = np.flatnonzero(mine)[kind[flat.node[mine]] == STOP]
        found = np.broadcast_to(flat.reward[flat.action_ptr[cells]] * ends, (len(pay), len(cells)))
        for row, numbers in zip(paid, found, strict=True):
            np.maximum.at(row, flat.node[cells], numbers)
        finals.append(paid)
    after = finals[1]
    for cells in settling:
        cells.improve(horizon, after, after)
    yield horizon, after
    for t in range(horizon - 1, -1, -1):
        values = finals[0].copy()
        for cells in final if t == horizon - 1 else step:
            cells.improve(t, values, after)
        for cells in chances:
            cells.improve(t, values, values)
        yield t, values
        after = values


class _Level:
    """Cells that can be computed at once, with the layers in which they occur."""

    def __init__(
        self, flat: Flat, pay: Numbers, gain: Numbers, cells: Indices, first: Indices, last: Indices
    ) -> None:
        self.flat, self.pay, self.gain = flat, pay, gain
        self.cells, self.first, self.last = cells, first, last
        self.alone = len(np.unique(flat.node[cells])) == len(cells)  # each is all of its node
        self.here = np.zeros(0, np.int64)

    def improve(self, t: int, values: Numbers, after: Numbers) -> None:
        """The largest sum of each node, in `values`, from those that can follow, in `after`."""
        here = self.cells[(self.first <= t) & (t <= self.last)]
        if not len(here):
            return
        if not np.array_equal(here, self.here):  # most layers are alike
            self.here = here
            self._take(here)
        with np.errstate(over="ignore"):  # what overflows is infinite
            follows = _largest(after[:, self.target], self.target_ptr)[:, self.landing]
            action = _largest(follows + self.gains, self.branch_ptr) + self.pays
            found, nodes = _largest(action, self.action_ptr), self.flat.node[here]
        if self.alone:
            values[:, nodes] = found
            return
        for row, numbers in zip(values, found, strict=True):  # a node with hidden queues
            np.maximum.at(row, nodes, numbers)

    def _take(self, cells: Indices) -> None:
        flat = self.flat
        self.action_ptr, actions = take(flat.action_ptr, cells)
        self.branch_ptr, branches = take(flat.branch_ptr, actions)
        used, self.landing = np.unique(flat.landing[branches], return_inverse=True)
        self.target_ptr, targets = take(flat.landing_ptr, used)
        self.target = flat.landing_node[targets]
        self.gains, self.pays = self.gain[:, branches], self.pay[:, actions]


def _largest(values: Numbers, ptr: Indices) -> Numbers:
    """The largest value of each segment, -inf where it is empty: (k, n) -> (k, segments)."""
    full = ptr[1:] > ptr[:-1]
    if len(full) and full.all():
        return np.maximum.reduceat(values, ptr[:-1], axis=1)
    out = np.full((len(values), len(full)), -np.inf)
    if full.any():
        out[:, full] = np.maximum.reduceat(values, ptr[:-1][full], axis=1)
    return out


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
    unknown = max((max(abs(r.low), abs(r.high)) for r in graph.rewards), default=0.0)
    return max(graph.largest_reward, unknown) > LARGE_REWARD


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
    except (TypeError, ValueError, QueuesMatterError):
        return False


def _measure_features(graph: Graph) -> Iterator[FeatureSize]:
    unknown = graph.flat.row < graph.flat.n_unknown
    shares, spread = graph.flat.share[unknown], np.zeros(len(graph.features))
    found = np.where(np.isnan(shares), graph.n_y, 1 / shares)
    np.maximum.at(spread, graph.flat.row[unknown], found)
    own = overrides(graph.model, "branching")
    for z, states, most in zip(graph.features, graph.outcomes, spread.tolist(), strict=True):
        b: Any = graph.model.branching(z) if own else len(states)
        if not b >= 1:
            raise ModelError(f"branching({z!r}) is {b!r}; expected a positive whole number")
        yield FeatureSize(int(b), most)


def find_share_totals(graph: Graph) -> Mapping[Hashable, float]:
    """The sum of the shares of each feature over the y' that come with it."""
    shared: Mapping[tuple[int, int, float], Any] = graph.shared
    if not graph.hidden:
        flat, block = graph.flat, np.array(graph.landing_block, np.int64)
        mine = np.flatnonzero(flat.row < flat.n_unknown)
        keys = zip(flat.row[mine].tolist(), block[flat.landing[mine]].tolist(),
                   np.nan_to_num(flat.share[mine], nan=-1.0).tolist(), strict=True)  # fmt: skip
        shared = {key: [()] for key in keys}
    parts: dict[int, list[float]] = {}
    for (row, _, share), queues in shared.items():
        weight = 1 / graph.n_y if share < 0 else share
        parts.setdefault(row, []).append(weight * count_union(queues))
    return {graph.features[row]: math.fsum(found) for row, found in parts.items()}
