"""The return of a policy, found forwards: its mean and variance, or its whole law.

The joint law of the state and of what has been paid so far goes from layer to layer, as pairs
(node, paid) with their probability. For the law of the return, equal pairs are joined, and so are
those whose sums differ by rounding or by a tolerance. For mean and variance all pairs of one node
are joined: a node then holds the mean and the variance of what was paid on the ways to it,

    m = sum_i p_i m_i / p,    v = sum_i p_i (v_i + (m_i - m)^2) / p,    p = sum_i p_i.

Every term of v is a square or a variance, so nothing cancels.

A worked example: a fair coin is tossed twice and pays 1 for each head. After one toss the pairs are
(head, 1) and (tail, 0), after two (head, 2), (tail, 1), (head, 1), (tail, 0), each with probability
1/4. The episode ends, the state no longer matters, and the law is {0: 1/4, 1: 1/2, 2: 1/4}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from pkd.engine.compiled import Truth
from pkd.engine.nodes.kernels import LAST
from pkd.explore.graph import DECIDE
from pkd.explore.segments import lengths_to_ptr, spread
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine

LIVE_PER_VALUE = 4  # pairs (state, paid so far) that may be held for each value of the law
CHUNK = 1 << 21  # moves that are followed at once
NOISE = 1e-12  # sums that differ by less, relative to the largest one, differ by rounding

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


class _Mass(NamedTuple):
    """Probability over pairs (node, paid so far)."""

    node: Array  # (pairs,)
    paid: Array  # (1, pairs), or (2, pairs): mean and variance of what was paid
    p: Array  # (pairs,)

    def take(self, which: Array | slice) -> _Mass:
        return _Mass(self.node[which], self.paid[:, which], self.p[which])


_Join = Callable[[_Mass, bool], _Mass]  # (pairs, whether they have ended) -> fewer pairs


def find_moments(engine: NodeEngine, truth: Truth, choices: Choices) -> tuple[float, float]:
    """The mean and the variance of the return."""
    found = _run(engine, truth, choices, 2, _join_nodes)
    return float(found.paid[0, 0]), float(found.paid[1, 0])


def _join_nodes(mass: _Mass, ended: bool) -> _Mass:
    """All pairs of one node as one."""
    if not len(mass.p):
        return mass
    total = np.bincount(mass.node, mass.p)
    kept = np.flatnonzero(total)
    share = mass.p / total[mass.node]
    mean = np.bincount(mass.node, share * mass.paid[0])
    squares = mass.paid[1] + (mass.paid[0] - mean[mass.node]) ** 2
    variance = np.bincount(mass.node, share * squares)
    return _Mass(kept, np.array([mean[kept], variance[kept]]), total[kept])


def find_return_law(
    engine: NodeEngine, truth: Truth, choices: Choices, *, tolerance: float, most: int
) -> dict[float, float]:
    """{value: probability} of the return, values ascending; at most `most` values."""
    step = tolerance / ((engine.horizon + 2) * len(engine.program.levels))

    def join(mass: _Mass, ended: bool) -> _Mass:
        found = _join_close(mass, step)
        if len(found.p) > (most if ended else LIVE_PER_VALUE * most):
            raise ModelError(
                f"the law of the return needs {len(found.p):,} values so far; it may have "
                f"{most:,}. Give returns(tolerance=...) to join values that are close, or a "
                "larger max_values"
            )
        return found

    law = _run(engine, truth, choices, 1, join)
    return dict(zip(law.paid[0].tolist(), law.p.tolist(), strict=True))


def _join_close(mass: _Mass, step: float) -> _Mass:
    """Joins equal pairs (node, paid), and those that differ by rounding or by the step."""
    if not len(mass.p):
        return mass
    mass = mass.take(np.lexsort((mass.paid[0], mass.node)))
    paid = mass.paid[0]
    width = max(step, NOISE * float(np.abs(paid).max()))
    gap = (np.diff(paid) > width) | (np.diff(mass.node) > 0)
    starts = np.flatnonzero(np.concatenate([[True], gap]))
    # A long chain of close values is cut into pieces that are at most `width` wide.
    reach = paid - np.repeat(paid[starts], np.diff(starts, append=len(paid)))
    piece = np.ceil(reach / width - 1.0) if width > 0 else np.zeros(len(reach))
    starts = np.flatnonzero(np.concatenate([[True], gap | (np.diff(np.maximum(piece, 0.0)) > 0)]))
    if len(starts) == len(paid):
        return mass
    first = paid[starts]
    p = np.add.reduceat(mass.p, starts)
    offset = paid - np.repeat(first, np.diff(starts, append=len(paid)))
    mean = first + np.add.reduceat(mass.p * offset, starts) / p
    return _Mass(mass.node[starts], mean[None], p)


def _run(engine: NodeEngine, truth: Truth, choices: Choices, rows: int, join: _Join) -> _Mass:
    """What has been paid at the end, as pairs of node 0. rows: of `_Mass.paid`."""
    forward = _Forward(engine, truth, join)
    nodes, horizon = engine.program.start_node, engine.horizon
    here = _Mass(nodes, np.zeros((rows, len(nodes))), engine.program.start_p)
    forward.ended = here.take(slice(0))
    for t in range(horizon):
        here = forward.pass_chances(here, settled=False)
        cell_of = engine.flat.cell_of[1 if t == horizon - 1 else 0]
        here = forward.move(here, cell_of[here.node], choices.ptr, choices.weigh(t))
    forward.pass_chances(here, settled=True)
    return join(forward.ended, True)


class _Forward:
    """The moves of a model under its law."""

    ended: _Mass

    def __init__(self, engine: NodeEngine, truth: Truth, join: _Join) -> None:
        flat = self.flat = engine.flat
        self.world, self.p, self.join = truth.world, truth.belief.p, join
        reward_ptr, rows = self.world.reward_ptr, self.world.reward_rows
        self.reward_p = np.diff(rows, prepend=0.0)
        self.reward_p[reward_ptr[:-1]] = rows[reward_ptr[:-1]]
        reach = np.concatenate([[0], np.cumsum(np.diff(flat.landing_ptr)[flat.landing])])
        total = np.concatenate([[0], np.cumsum(np.diff(reach[flat.branch_ptr]))])
        self.fan = np.diff(total[flat.action_ptr])  # moves of each cell

    def pass_chances(self, here: _Mass, *, settled: bool) -> _Mass:
        """Runs through the CHANCE states of a layer and returns the decisions."""
        flat, decisions = self.flat, [here.take(slice(0))]
        cell_of, final = flat.cell_of[2 if settled else 0], flat.final[int(settled)]
        kinds = flat.kind[int(settled)]
        nothing = np.zeros(0)
        while len(here.p):
            decides = np.full(len(here.p), not settled) & (kinds[here.node] == DECIDE)
            decisions.append(here.take(decides))
            cell = np.where(decides, -1, cell_of[here.node])
            over = here.take(~decides & (cell < 0))
            over.paid[0] += final[over.node]
            # All ends are one node: only what was paid matters.
            over = over._replace(node=np.zeros(len(over.p), np.int64))
            self.ended = self.join(_concatenate([self.ended, over]), True)
            here = self.move(here.take(cell >= 0), cell[cell >= 0], nothing, nothing)
        return self.join(_concatenate(decisions), False)

    def move(self, here: _Mass, cell: Array, ptr: Array, weights: Array) -> _Mass:
        """Where one move leads, in portions that fit into memory."""
        found = here.take(slice(0))
        for part in _cut(self.fan[cell]):
            moved = self._follow(here.take(part), cell[part], ptr, weights)
            found = self.join(_concatenate([found, moved]), False)
        return found

    def _follow(self, here: _Mass, cell: Array, ptr: Array, weights: Array) -> _Mass:
        """The mass after one move from these cells."""
        flat = self.flat
        which, action = spread(flat.action_ptr[cell], flat.action_ptr[cell + 1])
        p, paid = here.p[which], here.paid[:, which]
        if len(cell) and flat.part[cell[0]] <= LAST:  # decisions: the policy weighs the actions
            first = ptr[flat.choice[flat.node[cell]]]
            p = p * weights[first[which] + action - flat.action_ptr[cell][which]]
            action, paid, p = action[p > 0], paid[:, p > 0], p[p > 0]
        paid[0] += flat.reward[action]
        action, paid, p = self._pay(action, paid, p)
        which, branch = spread(flat.branch_ptr[action], flat.branch_ptr[action + 1])
        p, paid = p[which] * flat.p[branch], paid[:, which]
        landing, row = flat.landing[branch], flat.row[branch]
        which, place = spread(flat.landing_ptr[landing], flat.landing_ptr[landing + 1])
        outcome = place - flat.landing_ptr[landing][which]
        p = p[which] * self.p[flat.row_ptr[row][which] + outcome]
        kept = p > 0
        return _Mass(flat.landing_node[place[kept]], paid[:, which[kept]], p[kept])

    def _pay(self, action: Array, paid: Array, p: Array) -> tuple[Array, Array, Array]:
        """The same with each value that an unknown reward of the action can have."""
        world, w = self.world, self.flat.mean[action]
        if not (w >= 0).any():
            return action, paid, p
        known = w < 0
        first, last = world.reward_ptr[w], world.reward_ptr[w + 1]
        which, value = spread(np.where(known, 0, first), np.where(known, 1, last))
        sure = known[which]
        paid = paid[:, which]
        paid[0] += np.where(sure, 0.0, world.reward_value[value])
        return action[which], paid, p[which] * np.where(sure, 1.0, self.reward_p[value])


def _concatenate(parts: list[_Mass]) -> _Mass:
    node, paid, p = zip(*parts, strict=True)
    return _Mass(np.concatenate(node), np.concatenate(paid, axis=1), np.concatenate(p))


def _cut(fan: Array) -> Iterator[slice]:
    """Slices of entries whose moves together number about CHUNK."""
    total = np.cumsum(fan)
    begin = 0
    while begin < len(fan):
        before = int(total[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(total, before + CHUNK, "right")), begin + 1)
        yield slice(begin, end)
        begin = end
