"""Episodes of an `UnknownDelay` in compiled code: what `UnknownDelay.samples` says of an episode.

The path of an episode says of each action's Delta that low <= Delta <= high. At the end the raw
Delta is shown; here it is drawn from its law on that range, so that path and Deltas have their true
joint law, and the arrivals that it decides are counted. Where no Delta is ever shown, the visited
arrivals are counted. A test holds this equal to `samples`, move by move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pkd_delay.features import Arrival
from pkd_delay.inter_arrival import DelayOf
from pkd_delay.kernels import Delays, play_nodes, play_stripes
from pkd_delay.law import collect_laws

if TYPE_CHECKING:
    from pkd import Compiled
    from pkd.engine.belief import Tally, World
    from pkd_delay.unknown import UnknownDelay

__all__ = ["HindsightPlayer"]


class HindsightPlayer:
    """The core's `Player` for an `UnknownDelay`: plays episodes and counts what they teach."""

    def __init__(
        self, compiled: Compiled, model: UnknownDelay, world: World, delay_of: DelayOf
    ) -> None:
        self.compiled, self.world = compiled, world
        self.delays = _lay_out(compiled, model, delay_of)
        self.path = compiled.new_path()
        self.deltas = np.zeros(model.horizon, np.int64)  # at most one per action

    def __call__(
        self, policy: np.ndarray, tally: Tally, rng: np.ndarray, returns: np.ndarray
    ) -> tuple[int, bool]:
        n = np.zeros_like(tally.n)
        visited = tally._replace(
            counts=np.zeros_like(tally.counts), n=n, marks=np.full_like(n, np.inf)
        )
        common = (
            self.delays,
            self.world,
            policy,
            tally,
            visited,
            rng,
            self.path,
            self.deltas,
            returns,
        )
        count, due = self.compiled.call_walk(play_nodes, play_stripes, common)
        return int(count), bool(due)


def _lay_out(compiled: Compiled, model: UnknownDelay, delay_of: DelayOf) -> Delays:
    features, longest, notes = compiled.features, model.longest, compiled.graph.notes
    laws = collect_laws(model, delay_of)
    shift = model.form.first + 1  # a Delta has a place for -1, a lag leaves it empty
    table, ptr = np.zeros((len(notes), longest + 2)), [0]
    place, row = list[int](), list[int]()
    for i, (key,) in enumerate(notes):
        p = laws[key].numbers(0).probabilities[: longest + 2 - shift]
        table[i, shift : shift + len(p)] = p
        for delta in range(-1, longest + 1):
            for z, outcome in model.arrivals(key, delta) if delta >= model.form.first else ():
                row.append(compiled.feature_index[z])
                at = compiled.place(row[-1], outcome)
                assert at is not None
                place.append(at)
            ptr.append(len(place))
    asked, at_most = np.full(len(features), -2, np.int64), np.zeros(len(features), bool)
    alike_ptr, alike = [0], list[int]()
    for i, z in enumerate(features):
        if isinstance(z, Arrival) and z.depth == model.depth:
            asked[i], at_most[i] = model.form.ask(*z.delays)
            if not model.revealed:
                alike += [compiled.feature_index[other] for other in model.alike(z)]
        alike_ptr.append(len(alike))
    return Delays(
        row_ptr=compiled.row_ptr,
        asked=asked,
        at_most=at_most,
        alike_ptr=np.array(alike_ptr, np.int64),
        alike=np.array(alike, np.int64),
        law=table,
        place_ptr=np.array(ptr, np.int64),
        place=np.array(place, np.int64),
        row=np.array(row, np.int64),
        longest=longest,
        revealed=model.revealed,
    )
