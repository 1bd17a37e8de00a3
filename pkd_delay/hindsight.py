"""Episodes of an `UnknownDelay` in compiled code, with what `UnknownDelay.samples` says of them.

The path of an episode says of each action's Delta that low <= Delta <= high. At the end the raw
Delta is shown; here it is drawn from its law on that range, so that path and Deltas have their true
joint law, and the arrivals that it decides are counted. A test holds this equal to `samples`, move
by move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pkd_delay.augmented import TRAN
from pkd_delay.inter_arrival import InterArrival
from pkd_delay.kernels import Delays, episodes
from pkd_delay.unknown import Arrival, UnknownDelay

if TYPE_CHECKING:
    from pkd.flat_engine import FlatProgram
    from pkd_delay.law import DelayLaw

__all__ = ["HindsightSimulator"]


class HindsightSimulator:
    """Draws the episodes of an `UnknownDelay` and counts what they teach."""

    def __init__(self, compiled: FlatProgram, model: UnknownDelay, law: DelayLaw) -> None:
        self._compiled, self._world = compiled, compiled.world(law)
        self.delays = _delays(compiled, model, law)
        self.path = compiled.path.copy()
        self.deltas = np.zeros(model.horizon, np.int64)

    def episodes(
        self, policy: np.ndarray, tally: Any, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        """Fills `returns` until a plan is due: how many episodes that took, and whether one is."""
        n = np.zeros_like(tally.n)
        visited = tally._replace(
            counts=np.zeros_like(tally.counts), n=n, marks=np.full_like(n, np.inf)
        )
        count, due = episodes(
            self._compiled.program,
            self.delays,
            self._world,
            policy,
            tally,
            visited,
            rng,
            self.path,
            self.deltas,
            returns,
        )
        return int(count), bool(due)


def _delays(compiled: FlatProgram, model: UnknownDelay, law: DelayLaw) -> Delays:
    features, longest = compiled.features, model.longest
    rows = {z: i for i, z in enumerate(features)}
    places = {
        z: {x: int(compiled.row_ptr[i]) + j for j, x in enumerate(compiled.outcomes[i])}
        for z, i in rows.items()
    }
    actions: dict[tuple[Any, Any, Any], int] = {}  # (x, y, a) of the base
    resolves = np.full(len(compiled.program.slot_node), -1)
    for slot, (x, y) in enumerate(compiled.slot_states()):
        base_x, base_y, queue, counter = model.read(x, y)
        if counter == TRAN and queue:
            resolves[slot] = actions.setdefault(
                (base_x, base_y, model.done(base_x, base_y, queue[0])), len(actions)
            )
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
