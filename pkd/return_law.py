"""The law of the return of a policy, found forwards.

The joint law of the state and of what has been paid so far goes from layer to layer. It is kept as
pairs (node, paid) with their probability. Equal pairs are joined, and so are those whose sums
differ by rounding or by a tolerance.

A worked example: a fair coin is tossed twice and pays 1 for each head. After one toss the pairs are
(head, 1) and (tail, 0), after two (head, 2), (tail, 1), (head, 1), (tail, 0), each with probability
1/4. The episode ends, the state no longer matters, and the law is {0: 1/4, 1: 1/2, 2: 1/4}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import attrs
import numpy as np

from pkd.engine.compiled import Truth
from pkd.engine.nodes.kernels import LAST
from pkd.engine.segments import spread
from pkd.graph import DECIDE
from pkd.model import ModelError
from pkd.return_moments import Array, Choices, read_reward_law

if TYPE_CHECKING:
    from pkd.engine.nodes.engine import NodeEngine
    from pkd.engine.nodes.program import Flat

__all__ = ["find_return_law"]

LIVE_PER_VALUE = 4  # pairs (state, paid so far) that may be held for each value of the law
CHUNK = 1 << 21  # moves that are followed at once
NOISE = 1e-12  # sums that differ by less, relative to the largest one, differ by rounding


def find_return_law(
    engine: NodeEngine, truth: Truth, choices: Choices, *, tolerance: float, most: int
) -> dict[float, float]:
    """{value: probability} of the return, values ascending; at most `most` values."""
    return _Forward(engine, truth, choices, tolerance, most).run()


class _Mass(NamedTuple):
    """Probability over pairs (node, paid so far)."""

    node: Array
    paid: Array
    p: Array

    def take(self, which: Array | slice) -> _Mass:
        return _Mass(self.node[which], self.paid[which], self.p[which])


NOTHING = _Mass(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@attrs.define(eq=False, slots=False)
class _Forward:
    """The joint law of the state and of what has been paid, from the start to the end."""

    engine: NodeEngine
    truth: Truth
    choices: Choices
    tolerance: float
    most: int

    def __attrs_post_init__(self) -> None:
        flat: Flat = self.engine.flat
        self.flat = flat
        self.step = self.tolerance / ((self.engine.horizon + 2) * (len(self.engine.program.levels)))
        reach = np.concatenate([[0], np.cumsum(np.diff(flat.landing_ptr)[flat.landing])])
        fan = reach[flat.branch_ptr[1:]] - reach[flat.branch_ptr[:-1]]  # moves of each action
        total = np.concatenate([[0], np.cumsum(fan)])
        self.fan = total[flat.action_ptr[1:]] - total[flat.action_ptr[:-1]]  # of each cell
        self.ended: list[_Mass] = []

    def run(self) -> dict[float, float]:
        program, horizon = self.engine.program, self.engine.horizon
        here = _Mass(program.start_node, np.zeros(len(program.start_node)), program.start_p)
        for t in range(horizon):
            here = self._pass(here, t, settled=False)
            cell_of = self.flat.cell_of[1 if t == horizon - 1 else 0]
            here = self._move(here, cell_of[here.node], t)
        self._pass(here, horizon, settled=True)
        law = self._merge(_join(self.ended))
        if len(law.p) > self.most:
            raise self._refusal(len(law.p))
        return dict(zip(law.paid.tolist(), law.p.tolist(), strict=True))

    def _pass(self, here: _Mass, t: int, *, settled: bool) -> _Mass:
        """Runs through the CHANCE states of a layer and returns the decisions."""
        flat, decisions = self.flat, [NOTHING]
        cell_of, final = flat.cell_of[2 if settled else 0], flat.final[int(settled)]
        kinds = flat.kind[int(settled)]
        while len(here.p):
            decides = np.zeros(len(here.p), bool) if settled else kinds[here.node] == DECIDE
            decisions.append(here.take(decides))
            cell = np.where(decides, -1, cell_of[here.node])
            stops = ~decides & (cell < 0)
            over = here.take(stops)
            # All ends are one node: only what was paid matters.
            self.ended.append(
                _Mass(np.zeros(len(over.p), np.int64), over.paid + final[over.node], over.p)
            )
            self.ended = [self._merge(_join(self.ended))]
            self._check(len(self.ended[0].p), self.most)
            passes = ~decides & ~stops
            here = self._move(here.take(passes), cell[passes], t)
        return self._merge(_join(decisions))

    def _move(self, here: _Mass, cell: Array, t: int) -> _Mass:
        """Where one move leads, in portions that fit into memory."""
        found = NOTHING
        weights = self.choices.weigh(t) if t < self.engine.horizon else np.zeros(0)
        for part in _cut(self.fan[cell]):
            moved = self._follow(here.take(part), cell[part], weights)
            found = self._merge(_join([found, moved]))
            self._check(len(found.p), LIVE_PER_VALUE * self.most)
        return found

    def _follow(self, here: _Mass, cell: Array, weights: Array) -> _Mass:
        """The mass after one move from these cells."""
        flat, belief = self.flat, self.truth.belief
        action, paid, p = self._pay(*self._choose(here, cell, weights))
        which, branch = spread(flat.branch_ptr[action], flat.branch_ptr[action + 1])
        p, paid = p[which] * flat.p[branch], paid[which]
        landing, row = flat.landing[branch], flat.row[branch]
        which, place = spread(flat.landing_ptr[landing], flat.landing_ptr[landing + 1])
        outcome = place - flat.landing_ptr[landing][which]
        p = p[which] * belief.p[flat.row_ptr[row][which] + outcome]
        kept = p > 0
        return _Mass(flat.landing_node[place[kept]], paid[which[kept]], p[kept])

    def _choose(self, here: _Mass, cell: Array, weights: Array) -> tuple[Array, Array, Array]:
        """(action, paid with its known reward, probability) of all actions that are taken."""
        flat = self.flat
        which, action = spread(flat.action_ptr[cell], flat.action_ptr[cell + 1])
        p = here.p[which]
        if len(cell) and flat.part[cell[0]] <= LAST:  # decisions: the policy weighs the actions
            first = self.choices.ptr[flat.choice[flat.node[cell]]]
            p = p * weights[first[which] + action - flat.action_ptr[cell][which]]
        kept = p > 0
        return action[kept], here.paid[which[kept]] + flat.reward[action[kept]], p[kept]

    def _pay(self, action: Array, paid: Array, p: Array) -> tuple[Array, Array, Array]:
        """The same with each value that an unknown reward of the action can have."""
        world, w = self.truth.world, self.flat.mean[action]
        if not (w >= 0).any():
            return action, paid, p
        known = w < 0
        first, last = world.reward_ptr[w], world.reward_ptr[w + 1]
        which, value = spread(np.where(known, 0, first), np.where(known, 1, last))
        masses = np.concatenate(
            [read_reward_law(self.truth, i)[1] for i in range(len(world.reward_ptr) - 1)]
        )
        sure = known[which]
        p = p[which] * np.where(sure, 1.0, masses[value])
        paid = paid[which] + np.where(sure, 0.0, world.reward_value[value])
        return action[which], paid, p

    def _merge(self, mass: _Mass) -> _Mass:
        """Joins equal pairs (node, paid), and those that differ by rounding or by the tolerance."""
        if not len(mass.p):
            return mass
        mass = mass.take(np.lexsort((mass.paid, mass.node)))
        width = max(self.step, NOISE * float(np.abs(mass.paid).max()))
        gap = (np.diff(mass.paid) > width) | (np.diff(mass.node) > 0)
        starts = np.flatnonzero(np.concatenate([[True], gap]))
        # A long chain of close values is cut into pieces that are at most `width` wide.
        reach = mass.paid - np.repeat(mass.paid[starts], np.diff(starts, append=len(mass.p)))
        piece = np.ceil(reach / width - 1.0) if width > 0 else np.zeros(len(reach))
        cut = np.concatenate([[True], gap | (np.diff(np.maximum(piece, 0.0)) > 0)])
        starts = np.flatnonzero(cut)
        if len(starts) == len(mass.p):
            return mass
        first = mass.paid[starts]
        p = np.add.reduceat(mass.p, starts)
        offset = mass.paid - np.repeat(first, np.diff(starts, append=len(mass.p)))
        return _Mass(mass.node[starts], first + np.add.reduceat(mass.p * offset, starts) / p, p)

    def _check(self, found: int, most: int) -> None:
        if found > most:
            raise self._refusal(found)

    def _refusal(self, found: int) -> ModelError:
        return ModelError(
            f"the law of the return needs {found:,} values so far; it may have {self.most:,}. Give "
            "returns(tolerance=...) to join values that are close, or a larger max_values"
        )


def _join(parts: list[_Mass]) -> _Mass:
    return parts[0] if len(parts) == 1 else _Mass(*map(np.concatenate, zip(*parts, strict=True)))


def _cut(fan: Array) -> Iterator[slice]:
    """Slices of entries whose moves together number about CHUNK."""
    total = np.cumsum(fan)
    begin = 0
    while begin < len(fan):
        before = int(total[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(total, before + CHUNK, "right")), begin + 1)
        yield slice(begin, end)
        begin = end
