"""The mean and the variance of the return of a policy, by one sweep backward over the layers.

With M(s) and U(s) the mean and the variance of the return to go,

    M(s) = E[r + M(s')],    U(s) = E[Var(r) + U(s') + (r + M(s') - M(s))^2].

Every term of U is a square or a variance, so nothing cancels. In the arrays here row 0 is M and
row 1 is U.

A worked example: a fair coin is tossed twice and pays 1 for each head. After the first toss M is .5
and U is .25 in both states; at the start M = 1, and U = .25 + ((1.5 - 1)^2 + (.5 - 1)^2) / 2 = .5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from pkd.engine.compiled import Truth
from pkd.engine.nodes.kernels import CHANCES, LAST, STEP
from pkd.engine.segments import lengths_to_ptr, spread

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

__all__ = ["Choices", "find_moments", "read_reward_law"]

Array = np.ndarray


@attrs.frozen(eq=False)
class Choices:
    """The probabilities of all actions, layer by layer. Actions are counted over all decisions."""

    ptr: Array  # (decisions + 1,)
    layers: list[tuple[Array, Array]]  # (which action, its probability) where it is positive

    def weigh(self, t: int) -> Array:
        """The probability of each action in layer t, (actions of all decisions,)."""
        weights = np.zeros(int(self.ptr[-1]))
        places, values = self.layers[t]
        weights[places] = values
        return weights

    @classmethod
    def from_plan(cls, engine: NodeEngine, choices: Array) -> Choices:
        """A policy of the engine: one action for each decision."""
        ptr = lengths_to_ptr(engine.n_actions)
        sure = np.ones(len(ptr) - 1)
        return cls(ptr, [(ptr[:-1] + layer, sure) for layer in choices])


class _Level(NamedTuple):
    """The cells of one level and the pairs that are ready for it."""

    groups: tuple[int, int]
    cells: tuple[int, int]
    places: Array | None  # of the actions of its cells among all choices; None: CHANCE


def find_moments(engine: NodeEngine, truth: Truth, choices: Choices) -> tuple[float, float]:
    """The mean and the variance of the return, by one backward recursion over the layers."""
    g, horizon = engine.program, engine.horizon
    levels = [_read_level(engine, choices, number) for number in range(len(g.levels))]
    edges = _Edges(engine, truth.belief.p)
    paid = _find_reward_moments(truth)
    final, settled_final = engine.flat.final
    # Row 0 is the mean, row 1 the variance of the return to go.
    layers = [np.array([final, np.zeros_like(final)]) for _ in range(2)]
    settled = np.array([settled_final, np.zeros_like(settled_final)])
    for t in range(horizon, -1, -1):
        weights = choices.weigh(t) if t < horizon else np.zeros(0)
        for number, level in enumerate(levels):
            if (number >= g.settlement) != (t == horizon):
                continue
            if number == (STEP if t == horizon - 1 else LAST):
                continue
            target = settled if t == horizon else layers[t % 2]
            source = target
            if number < CHANCES:
                source = settled if number == LAST else layers[(t + 1) % 2]
            edges.fill(level, t, source)
            _back_up(engine, level, t, edges.e, source, paid, weights, target)
    start = layers[0][:, g.start_node]
    mean = float(g.start_p @ start[0])
    return mean, float(g.start_p @ (start[1] + (start[0] - mean) ** 2))


def _read_level(engine: NodeEngine, choices: Choices, number: int) -> _Level:
    g = engine.program
    first, last, group_first, group_last = g.levels[number].tolist()
    places = None
    if number < CHANCES:
        chosen = g.cell_choice[first:last]
        _, places = spread(choices.ptr[chosen], choices.ptr[chosen + 1])
    return _Level((group_first, group_last), (first, last), places)


def _find_reward_moments(truth: Truth) -> Array:
    """The mean and the variance of each unknown reward, and of a reward that is known: 0, 0."""
    moments = np.zeros((2, len(truth.belief.mean) + 1))
    for w, mean in enumerate(truth.belief.mean.tolist()):
        values, masses = read_reward_law(truth, w)
        moments[:, w] = mean, masses @ (values - mean) ** 2
    return moments


def read_reward_law(truth: Truth, w: int) -> tuple[Array, Array]:
    """The values of an unknown reward and their probabilities."""
    world = truth.world
    at = slice(int(world.reward_ptr[w]), int(world.reward_ptr[w + 1]))
    return world.reward_value[at], np.diff(world.reward_rows[at], prepend=0.0)


class _Edges:
    """From pairs (law row, landing) to nodes, for outcomes of positive probability."""

    def __init__(self, engine: NodeEngine, p: Array) -> None:
        g = self.g = engine.program
        first = g.group_ptr[g.pair_group]
        pair, place = spread(first, g.group_ptr[g.pair_group + 1])
        q = p[g.row_ptr[g.pair_row[pair]] + place - first[pair]]
        kept = q > 0
        self.q, self.pair, self.node = q[kept], pair[kept], g.group_node[place[kept]]
        self.ptr = lengths_to_ptr(np.bincount(self.pair, minlength=len(g.pair_row)))
        self.e = np.zeros((2, len(g.pair_row)))  # mean and variance of what follows each pair

    def fill(self, level: _Level, t: int, source: Array) -> None:
        """The mean and the variance of what follows the pairs of a level."""
        g, (first, last) = self.g, level.groups
        last = first + int(np.searchsorted(g.group_first[first:last], t, "right"))
        pairs = slice(int(g.group_pair[first]), int(g.group_pair[last]))
        if pairs.start == pairs.stop:
            return
        ptr = self.ptr[pairs]
        at = slice(int(ptr[0]), int(self.ptr[pairs.stop]))
        ptr = ptr - at.start
        q, (mean, variance) = self.q[at], source[:, self.node[at]]
        self.e[0, pairs] = np.add.reduceat(q * mean, ptr)
        mean -= self.e[0][self.pair[at]]
        self.e[1, pairs] = np.add.reduceat(q * (variance + mean * mean), ptr)


def _back_up(
    engine: NodeEngine, level: _Level, t: int, e: Array, source: Array, paid: Array, weights: Array,
    target: Array,
) -> None:  # fmt: skip
    """Fills the mean and the variance of the return to go of the cells of a level.

    A branch reads its pair in e, or the one node of source that a known law leads to.
    """
    g, (first, last) = engine.program, level.cells
    last = first + int(np.searchsorted(g.cell_first[first:last], t, "right"))
    if first == last:
        return
    action_ptr = g.action_ptr[first : last + 1]
    actions = slice(int(action_ptr[0]), int(action_ptr[-1]))
    branch_ptr = g.branch_ptr[actions.start : actions.stop + 1]
    branches = slice(int(branch_ptr[0]), int(branch_ptr[-1]))
    p, pair = g.branch_p[branches], g.branch_pair[branches]
    after, variance = np.empty((2, len(pair)))
    lone = pair < 0
    after[~lone], variance[~lone] = e[:, pair[~lone]]
    after[lone], variance[lone] = source[:, -1 - pair[lone]]
    after += g.branch_reward[branches]
    ptr = branch_ptr[:-1] - branches.start
    q = np.add.reduceat(p * after, ptr)
    after -= np.repeat(q, np.diff(branch_ptr))
    u = np.add.reduceat(p * (variance + after * after), ptr)
    q += paid[0, g.action_mean[actions]]
    u += paid[1, g.action_mean[actions]]
    if level.places is not None:
        chosen, ptr = weights[level.places[: len(q)]], action_ptr[:-1] - actions.start
        mean = np.add.reduceat(chosen * q, ptr)
        u += (q - np.repeat(mean, np.diff(action_ptr))) ** 2
        q, u = mean, np.add.reduceat(chosen * u, ptr)
    target[:, g.cell_node[first:last]] = q, u
