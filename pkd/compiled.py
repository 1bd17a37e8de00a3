"""A compiled model: the flat program with everything that planning and learning need beside it, made once and used many times.

`compile` explores a model and chooses how to compute with it. All functions of `pkd` accept the result in place of the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from pkd import law as laws
from pkd.graph import Graph, explore
from pkd.kernels import flat
from pkd.kernels.forms import NO_BONUS
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import Bonus
from pkd.program import assemble, stops

__all__ = ["Compiled", "compile"]


def compile(model: PartiallyKnownMDP | Compiled, large: bool | None = None) -> Compiled:
    """The compiled form of a model; a compiled one is returned as it is."""
    return model if isinstance(model, Compiled) else Compiled(explore(model))


class Compiled:
    """The arrays of one model. It holds no law."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.model = graph.model
        self.horizon = graph.horizon
        self.program, self.pairs = assemble(graph)
        self.n_unknown_outcomes = int(self.program.row_ptr[len(graph.features)])
        self._known_p = np.array([p for known in graph.known for _, p in known.law if p > 0], float)
        self._check_declared()

    def __repr__(self) -> str:
        return (
            f"<{type(self.model).__name__} compiled: {len(self.graph.layers.states)} states, {len(self.graph.features)} unknown features, "
            f"horizon {self.horizon}>"
        )

    @cached_property
    def actions(self) -> list[tuple[Any, ...]]:
        """The actions of each node, in the order of its arms."""
        arms = [self.graph.layers.arms.get(node) or self.graph.last_arms.get(node, []) for node in range(len(self.graph.layers.states))]
        return [tuple(arm.action for arm in row) for row in arms]

    # -- values in and out ---------------------------------------------------------------------------------------------------------

    def layers(self, count: int) -> np.ndarray:
        """Room for `count` layers of values, (count, nodes), with the ends filled in."""
        v = np.zeros((count, len(self.graph.layers.states)))
        ends = stops(self.graph.layers)
        v[:, ends] = self.program.final[ends]
        return v

    def settlement(self) -> np.ndarray:
        """Room for the values of the settlement, with the stopping states filled in."""
        return self.program.final_settled.copy()

    def policy(self) -> np.ndarray:
        """Room for a policy: the arm of each node in each layer, (H, nodes)."""
        most = int(np.diff(self.program.arm_ptr).max(initial=1))
        return np.zeros((self.horizon, len(self.graph.layers.states)), np.uint8 if most <= 256 else np.uint16 if most <= 65536 else np.int64)

    # -- laws ----------------------------------------------------------------------------------------------------------------------

    def truth(self, law: Law) -> flat.Estimate:
        """A given law as what a sweep believes: plain expectations."""
        p = np.concatenate([laws.probabilities(law, self.graph.features, self.graph.outcomes), self._known_p])
        mean = np.array([math.fsum(x * q for x, q in row.items()) for row in laws.reward_laws(law, self.graph.rewards)], float)
        return self._believe(p, mean, Bonus(NO_BONUS), np.zeros(0), self._one_layer(0.0), self._one_layer(0.0))

    def optimistic(self, bonus: Bonus, episodes: int, delta: float) -> flat.Estimate:
        """Room for an optimistic belief: the bonus and its logarithms are set, the law and the counts are still empty."""
        p = np.concatenate([np.zeros(self.n_unknown_outcomes), self._known_p])
        if bonus.form == NO_BONUS:
            cap = width = self._one_layer(0.0)
        elif self.model.return_range is not None:
            low, high = self.model.return_range
            cap, width = self._one_layer(math.inf), self._one_layer(float(high) - float(low))
        else:
            cap, width = self.caps
        return self._believe(p, np.zeros(len(self.graph.rewards)), bonus, self.ell(bonus, episodes, delta), cap, width)

    def _believe(self, p: np.ndarray, mean: np.ndarray, bonus: Bonus, ell: np.ndarray, cap: np.ndarray, width: np.ndarray) -> flat.Estimate:
        declared = self.model.return_range
        ceiling = math.inf if declared is None else float(declared[1])
        n = np.zeros(len(self.graph.features))
        return flat.Estimate(p, mean, bonus.form, bonus.c1, bonus.c2, bonus.free, ceiling, n, ell, cap, width)

    def _one_layer(self, value: float) -> np.ndarray:
        return np.full((1, len(self.pairs)), value)

    def world(self, law: Law) -> flat.World:
        """A given law as what episodes are drawn from."""
        rows = laws.reward_laws(law, self.graph.rewards)
        program = self.program
        return flat.World(
            rows=cumulative(self.truth(law).p, program.row_ptr),
            branches=cumulative(program.branch_p, program.branch_ptr),
            starts=np.cumsum(program.start_p),
            reward_ptr=np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)]).astype(np.int64),
            reward_value=np.array([value for row in rows for value in row], float),
            reward_rows=np.concatenate([np.cumsum(list(row.values())) for row in rows]) if rows else np.zeros(0),
        )

    def tally(self) -> flat.Tally:
        """Empty counts."""
        z, w = len(self.graph.features), len(self.graph.rewards)
        low = np.array([reward.low for reward in self.graph.rewards], float)
        return flat.Tally(np.zeros(self.n_unknown_outcomes), np.zeros(z), np.ones(z), np.zeros((3, w)), np.ones(w), low)

    # -- the bonus -----------------------------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """|Z| in the logarithms."""
        return self.model.n_features or max(len(self.graph.features), 1)

    @cached_property
    def branching(self) -> np.ndarray:
        """B(z) of each feature."""
        return np.array([self.model.branching(z) for z in self.graph.features], float)

    @cached_property
    def _shares(self) -> np.ndarray:
        """The weight in the union bound of each pair with an unknown feature (1 elsewhere)."""
        uniform = 1 / len(self.graph.ys)
        weights = np.ones(len(self.pairs))
        for i, (_, row, y) in enumerate(self.pairs):
            if row >= 0:
                share = self.model.share(self.graph.features[row], self.graph.ys[y])
                weights[i] = uniform if share is None else share
        return weights

    def ell(self, bonus: Bonus, episodes: int, delta: float) -> np.ndarray:
        """ell(z, y') = min(ell1, B(z) ell2(z)) of each pair; the rule's own constant where it has one."""
        rows = self.program.pair_row
        if bonus.log_factor is not None:
            return np.full(len(rows), bonus.log_factor)
        ell = np.zeros(len(rows))
        unknown = rows < len(self.graph.features)
        b = self.branching[rows[unknown]]
        ell1 = np.log(32 * self.horizon**2 * self.n_features * episodes / (delta * self._shares[unknown]))
        ell[unknown] = np.minimum(ell1, b * np.log(32 * self.horizon * b * self.n_features * episodes / delta))
        return ell

    def reward_bonus(self, bonus: Bonus, episodes: int, delta: float) -> np.ndarray:
        """For each unknown reward: ell, low, high, and whether its mean is estimated optimistically."""
        rewards = self.graph.rewards
        ell = bonus.log_factor
        if ell is None:
            ell = math.log(32 * self.horizon**2 * max(len(rewards), 1) * episodes / delta)
        optimistic = 0.0 if bonus.form == NO_BONUS else 1.0
        return np.array([[ell, r.low, r.high, optimistic] for r in rewards], float).reshape(-1, 4).T.copy()

    # -- the possible returns ------------------------------------------------------------------------------------------------------

    def _ranges(self, rooms: int) -> tuple[np.ndarray, ...]:
        """[lo, hi] of the last `rooms` layers that were computed and of the settlement, and the cap and width of every pair and layer."""
        rewards = self.graph.rewards
        low, high = np.array([r.low for r in rewards], float), np.array([r.high for r in rewards], float)
        hi, lo, hi_settled, lo_settled = self.layers(rooms), self.layers(rooms), self.settlement(), self.settlement()
        cap, width = np.zeros((2, self.horizon + 1, len(self.pairs)))
        flat.ranges(self.program, low, high, hi, lo, hi_settled, lo_settled, cap, width)
        return lo, hi, lo_settled, hi_settled, cap, width

    @cached_property
    def caps(self) -> tuple[np.ndarray, np.ndarray]:
        """max hi and max hi - min lo of each pair in each layer, (H + 1, pairs)."""
        *_, cap, width = self._ranges(2)
        return cap, width

    @cached_property
    def possible_return(self) -> tuple[float, float]:
        """The smallest and largest return of an episode."""
        lo, hi, *_ = self._ranges(2)
        starts = self.program.start_node
        return float(lo[0, starts].min()), float(hi[0, starts].max())

    def _check_declared(self) -> None:
        """A declared range that a return to go can leave, or shares above 1, would break optimism silently."""
        findings = []
        if self.model.return_range is not None:
            findings.extend(self._range_findings(*map(float, self.model.return_range)))
        totals: dict[int, dict[int, float]] = {}
        for i, (_, row, y) in enumerate(self.pairs):
            if row >= 0:
                totals.setdefault(row, {})[y] = self._shares[i]
        for row, by_y in totals.items():
            if not all(weight > 0 for weight in by_y.values()) or math.fsum(by_y.values()) > 1 + 1e-9:
                z, total = self.graph.features[row], math.fsum(by_y.values())
                findings.append(f"share({z!r}, y) sums to {total:g} over y; expected at most 1, each > 0")
        if findings:
            raise ModelError(findings)

    def _range_findings(self, low: float, high: float) -> Iterator[str]:
        lo, hi, lo_settled, hi_settled, *_ = self._ranges(self.horizon)
        slack = 1e-9 * max(1.0, abs(low), abs(high))
        for t in range(self.horizon + 1):
            side, bottom, top = (
                (self.graph.layers, lo[t], hi[t]) if t < self.horizon else (self.graph.settled, lo_settled, hi_settled)
            )
            for node in np.flatnonzero((bottom < low - slack) | (top > high + slack)):
                if t == self.horizon or self.graph.holds(t, int(node)):
                    x, y = side.states[node]
                    where = f"at step {t + 1}" if t < self.horizon else "after the last action"
                    possible = f"the return to go from (x={x!r}, y={y!r}) {where} can be {bottom[node]:g} to {top[node]:g}"
                    yield f"return_range is ({low:g}, {high:g}), but {possible}"
                    return

    # -- counts --------------------------------------------------------------------------------------------------------------------

    def counted(self, counts: Mapping[Any, Mapping[Any, float]]) -> flat.Tally:
        """A tally of given counts {z: {x': n}}, of an unknown reward {w: {value: n}}; every count of something the model calls impossible is a finding."""
        tally = self.tally()
        findings = []
        rewards = {reward.feature: w for w, reward in enumerate(self.graph.rewards)}
        for z, row in counts.items():
            if z in rewards:
                self._add_rewards(tally, rewards[z], row)
                continue
            if z not in self._feature_index:
                findings.append(f"counts have the feature {z!r}, which cannot occur in the model")
                continue
            place = self._outcome_index[self._feature_index[z]]
            for x, number in row.items():
                if x not in place:
                    findings.append(f"counts of {z!r} have the outcome {x!r}, which is not in outcomes({z!r})")
                elif not (number >= 0 and math.isfinite(number)):
                    findings.append(f"counts of {z!r}, {x!r} are {number!r}; expected a number >= 0")
                else:
                    tally.counts[place[x]] += number
                    tally.n[self._feature_index[z]] += number
        if findings:
            raise ModelError(findings)
        return tally

    @staticmethod
    def _add_rewards(tally: flat.Tally, w: int, row: Mapping[Any, float]) -> None:
        for value, number in row.items():
            shifted = value - tally.reward_low[w]
            tally.reward_sums[:, w] += np.array([number, number * shifted, number * shifted * shifted])

    def count(self, tally: flat.Tally, samples: Iterable[tuple[Any, Any]]) -> bool:
        """Adds (z, x') samples to a tally; returns whether a plan became due."""
        due = False
        for z, x in samples:
            try:
                row = self._feature_index[z]
                place = self._outcome_index[row][x]
            except KeyError:
                raise ModelError(f"samples gave ({z!r}, {x!r}): the model has no such feature, or the outcome is not in outcomes({z!r})") from None
            tally.counts[place] += 1.0
            tally.n[row] += 1.0
            due |= bool(tally.n[row] >= tally.marks[row])
        return due

    @cached_property
    def _feature_index(self) -> dict[Any, int]:
        return {z: row for row, z in enumerate(self.graph.features)}

    @cached_property
    def _outcome_index(self) -> list[dict[Any, int]]:
        return [{x: int(start) + i for i, x in enumerate(states)} for start, states in zip(self.program.row_ptr[:-1], self.graph.outcomes, strict=False)]

    def named(self, tally: flat.Tally) -> dict[Any, dict[Any, float]]:
        """Counts by name: {z: {x': n}}, zeros left out."""
        named: dict[Any, dict[Any, float]] = {}
        for row, (z, states) in enumerate(zip(self.graph.features, self.graph.outcomes, strict=True)):
            start = int(self.program.row_ptr[row])
            named[z] = {x: float(tally.counts[start + i]) for i, x in enumerate(states) if tally.counts[start + i] > 0}
        return named


def cumulative(p: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """Cumulative sums within each segment ptr[i]:ptr[i + 1]."""
    out = np.empty_like(p)
    for lo, hi in zip(ptr[:-1], ptr[1:], strict=True):
        np.cumsum(p[lo:hi], out=out[lo:hi])
    return out
