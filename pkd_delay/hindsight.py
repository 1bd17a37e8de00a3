"""Episodes of an `UnknownDelay` in compiled code: what `UnknownDelay.samples` says of an episode, without leaving the kernel.

The path of an episode says of each action's Delta that low <= Delta <= high. At the end the raw Delta is shown; here it is drawn from its
law on that range, so that path and Deltas have their true joint law, and the arrivals that it decides are counted. A test holds this equal to
`samples`, move by move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd import kernels
from pkd_delay.augmented import TRAN
from pkd_delay.inter_arrival import InterArrival
from pkd_delay.unknown import Arrival, UnknownDelay

if TYPE_CHECKING:
    from pkd.flat_engine import FlatProgram
    from pkd_delay.law import DelayLaw

__all__ = ["HindsightSimulator"]


class Delays(NamedTuple):
    """What the kernel must know of the delays."""

    waited: np.ndarray  # (rows,) of an arrival the steps waited; -2 for every other feature
    empty: np.ndarray  # (rows,) bool
    resolves: np.ndarray  # (slots,) which action of the base is resolved by the move of a slot, or -1
    law: np.ndarray  # (actions of the base, W + 2): Pr(Delta = -1), ...
    place_ptr: np.ndarray  # (actions of the base * (W + 2) + 1,)
    place: np.ndarray  # the counts that a Delta adds to: (action, Delta) -> places
    row: np.ndarray  # their rows
    longest: int


@kernels.jit()
def look_back(program, delays, tally, path, moves, rng, deltas):
    """Counts what one episode teaches; writes the raw Deltas down. Returns whether a mark was reached."""
    due = False
    low, high, found = -1, delays.longest, 0
    for i in range(moves):
        slot, branch, outcome = int(path[i, 0]), int(path[i, 2]), int(path[i, 3])
        row = program.pair_row[program.branch_pair[branch]]
        waited = delays.waited[row] if row < program.n_unknown else -2
        if waited > -2:
            if outcome > 0:
                low = waited + 1
            elif delays.empty[row]:
                high = 0
            else:
                low = high = waited
        elif row < program.n_unknown:
            due = kernels.count(tally, row, program.row_ptr[row] + outcome) or due
        action = delays.resolves[slot]
        if action < 0:
            continue
        delta = drawn(delays.law[action], low, high, rng)
        if found < deltas.shape[0]:
            deltas[found] = delta
        found += 1
        at = action * (delays.longest + 2) + delta + 1
        for k in range(delays.place_ptr[at], delays.place_ptr[at + 1]):
            due = kernels.count(tally, delays.row[k], delays.place[k]) or due
        low, high = -1, delays.longest
    return due


@kernels.jit()
def drawn(law, low, high, rng):
    """Delta given low <= Delta <= high."""
    total = 0.0
    for j in range(low + 1, high + 2):
        total += law[j]
    mark = kernels.uniform(rng) * total
    last = low
    for j in range(low + 1, high + 2):
        if law[j] > 0.0:
            last = j - 1
            mark -= law[j]
            if mark < 0.0:
                break
    return last


@kernels.jit()
def episodes(program, delays, world, policy, tally, visited, rng, path, deltas, returns):
    """Episodes under a fixed policy until a mark is reached or `returns` is full. Returns (how many, whether a mark was reached)."""
    for k in range(returns.shape[0]):
        returns[k], due, moves = kernels.rollout(program, world, policy, visited, rng, path)
        due = look_back(program, delays, tally, path, moves, rng, deltas) or due
        if due:
            return k + 1, True
    return returns.shape[0], False


class HindsightSimulator:
    """Draws the episodes of an `UnknownDelay` and counts what they teach."""

    def __init__(self, compiled: FlatProgram, model: UnknownDelay, law: DelayLaw) -> None:
        self._compiled, self._world = compiled, compiled.world(law)
        self.delays = _delays(compiled, model, law)
        self.path = compiled.path.copy()
        self.deltas = np.zeros(model.horizon, np.int64)

    def episodes(self, policy: np.ndarray, tally: Any, rng: np.ndarray, returns: np.ndarray) -> tuple[int, bool]:
        """Fills `returns` until a plan is due: how many episodes that took, and whether one is."""
        n = np.zeros_like(tally.n)
        visited = tally._replace(counts=np.zeros_like(tally.counts), n=n, marks=np.full_like(n, np.inf))
        count, due = episodes(
            self._compiled.program, self.delays, self._world, policy, tally, visited, rng, self.path, self.deltas, returns
        )
        return int(count), bool(due)


def _delays(compiled: FlatProgram, model: UnknownDelay, law: DelayLaw) -> Delays:
    features, longest = compiled.features, model.longest
    rows = {z: i for i, z in enumerate(features)}
    places = {z: {x: int(compiled.row_ptr[i]) + j for j, x in enumerate(compiled.outcomes[i])} for z, i in rows.items()}
    actions: dict[tuple[Any, Any, Any], int] = {}  # (x, y, a) of the base
    resolves = np.full(len(compiled.program.slot_node), -1)
    for slot, (x, y) in enumerate(compiled.slot_states()):
        base_x, base_y, queue, counter = model.read(x, y)
        if counter == TRAN and queue:
            resolves[slot] = actions.setdefault((base_x, base_y, model.done(base_x, base_y, queue[0])), len(actions))
    table, ptr, place, row = np.zeros((len(actions), longest + 2)), [0], list[int](), list[int]()
    for (x, y, a), i in actions.items():
        delay: InterArrival = law.delay_of(x, y, a)
        table[i, : len(delay.probabilities)] = delay.probabilities[: longest + 2]
        for delta in range(-1, longest + 1):
            for z, outcome in model.arrivals(x, model.delay_feature(x, y, a), delta):
                place.append(places[z][outcome])
                row.append(rows[z])
            ptr.append(len(place))
    return Delays(
        waited=np.array([z.waited if isinstance(z, Arrival) else -2 for z in features], np.int64),
        empty=np.array([isinstance(z, Arrival) and z.empty for z in features], bool),
        resolves=resolves,
        law=table,
        place_ptr=np.array(ptr, np.int64),
        place=np.array(place, np.int64),
        row=np.array(row, np.int64),
        longest=longest,
    )
