"""What a compiled model says without any engine: features, outcomes, counts by name, its identity.

`Structure` is the part of `pkd.engine.compiled.Compiled` that reads the graph and nothing else:
which features and outcomes there are, what was counted of them, and whether what the model
declares about them can be true.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pkd.adapters import proves_range
from pkd.check import explain
from pkd.engine import doors
from pkd.engine.arrays import find_array
from pkd.engine.belief import Tally
from pkd.expect import if_given, instance, number, require, show, whole
from pkd.explore import overrides
from pkd.explore.graph import Graph
from pkd.explore.limits import refuse_bytes
from pkd.explore.sizes import (
    RETURNS,
    find_most_visits,
    find_share_totals,
    may_overflow,
    returns_within,
    sweep_returns,
)
from pkd.families import Family
from pkd.files.values import key_of
from pkd.model import ModelError, UnknownReward

# {z: {x': n}}, of an unknown reward {feature: {value: n}}
Counts = Mapping[Any, Mapping[Any, float]]
OUTCOME_BYTES = 90  # measured: an outcome of a feature in all laws, counts and beliefs of a learner


class Structure:
    """Features, outcomes and rewards of a model, with everything that is known by their names."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.model, self.horizon = graph, graph.model, graph.horizon
        self.rewards, self.n_y = graph.rewards, graph.n_y
        self.known_p = np.array([p for law in graph.known for _, p in law.law if p > 0], float)
        self.refuse_size()

    @cached_property
    def features(self) -> Sequence[Any]:
        """The unknown features, in the order of all arrays."""
        return self.graph.features

    @cached_property
    def outcomes(self) -> Sequence[tuple[Any, ...]]:
        """The outcomes of each feature, in the order of all arrays."""
        return self.graph.outcomes

    @property
    def families(self) -> dict[int, Family]:
        """The families of laws that features declare, by row."""
        return self.graph.families

    @cached_property
    def row_ptr(self) -> np.ndarray:
        """Where the outcomes of each law row begin: features first, then known laws."""
        return self.graph.row_ptr

    def refuse_size(self) -> None:
        """Refuses a model whose laws and counts do not fit into the memory."""
        outcomes = int(self.row_ptr[len(self.features)])
        refuse_bytes(
            OUTCOME_BYTES * outcomes,
            f"{type(self.model).__name__} lists {outcomes:,} outcomes of {len(self.features):,} "
            "unknown features, which",
        )

    def return_ranges(self) -> Iterator[tuple[str, float, float]]:
        """(where, lowest, highest return to go) of the states, the widest ones at least."""
        graph = self.graph
        for layer in sweep_returns(graph):
            settled = layer.t == self.horizon
            side = graph.settled if settled else graph.layers
            nodes = np.fromiter(graph.ends if settled else graph.members[layer.t], np.int64)
            when = "after the last action" if settled else f"at step {layer.t + 1}"
            low, high = layer.low[nodes], layer.high[nodes]
            for i in {int(low.argmin()), int(high.argmax())} if len(nodes) else ():
                x, y = graph.state(side, int(nodes[i]))
                yield f"to go from (x={x!r}, y={y!r}) {when}", float(low[i]), float(high[i])

    @property
    def n_features(self) -> int:
        """|Z| in the logarithms."""
        return self.model.n_features or max(len(self.features), 1)

    @cached_property
    def most_visits(self) -> int:
        """N in the logarithms: the most samples of one feature that an episode can teach."""
        return self.model.most_samples() or find_most_visits(self.graph)

    @cached_property
    def branching(self) -> np.ndarray:
        """B(z) of each feature."""
        if not overrides(self.model, "branching"):
            return np.array([len(states) for states in self.outcomes], float)
        return np.array([self.model.branching(z) for z in self.features], float)

    # -- counts ------------------------------------------------------------------------------------

    def tally(self, counts: Counts | None = None) -> Tally:
        """Counts {z: {x': n}} as a tally; a count that the model calls impossible is a finding.

        They may be an array, or {"p": array} with counts of unknown rewards by name beside it, in
        the order of `row_ptr`: of all outcomes of the first feature, of the second one, and so on.
        """
        z, w = len(self.features), len(self.rewards)
        tally = Tally(
            np.zeros(int(self.row_ptr[z])), np.zeros(z), np.ones(z), np.zeros((3, w)), np.ones(w),
            np.zeros(z + w, np.int64), np.zeros(5),
        )  # fmt: skip
        array, named = find_array(counts) or (None, counts)
        findings = self._find_no_counts(named)
        findings += [] if array is None else self._fill_counts(tally, array)
        require(findings)
        with np.errstate(over="ignore"):  # a sum that overflows is a finding
            for name, row in (named or {}).items():
                if name in self.reward_index:
                    findings.extend(self._add_rewards(tally, self.reward_index[name], row))
                elif name not in self.feature_index:
                    findings.append(
                        f"counts have the feature {name!r}, which cannot occur in the model"
                    )
                else:
                    findings.extend(self._add_counts(tally, name, row))
        tally.spent[:] = 0.0
        findings += self._find_refuted(tally.counts)
        if not (np.isfinite(tally.n).all() and np.isfinite(tally.rewards).all()):
            findings.append("counts add up to more than a number can hold")
        if findings:
            raise ModelError(findings)
        return tally

    def _find_no_counts(self, counts: Any) -> list[str]:
        """What says that counts are no {z: {x': n}} at all."""
        wanted = "a mapping {z: {x': n}}"
        findings = if_given(instance, "counts", counts, Mapping, wanted)
        if findings or counts is None:
            return findings
        rows = ((f"counts of {show(z)}", row) for z, row in counts.items())
        return [
            finding for name, row in rows for finding in instance(name, row, Mapping, "{x': n}")
        ]

    def _fill_counts(self, tally: Tally, array: np.ndarray) -> list[str]:
        size, ptr = len(tally.counts), self.row_ptr[: len(tally.n) + 1]
        if array.shape != (size,) or array.dtype.kind not in "fiu":
            said = f"counts are an array of shape {array.shape} of {array.dtype}; expected {size}"
            return [f"{said} numbers, in the order of compiled.features and compiled.outcomes"]
        bad = np.flatnonzero(~((array >= 0) & np.isfinite(array)))
        if len(bad):
            return [f"counts[{bad[0]}] is {array[bad[0]]!r}; expected a number >= 0"]
        tally.counts[:] = array
        if size:
            tally.n[:] = np.add.reduceat(tally.counts, ptr[:-1])
        return []

    def _add_rewards(self, tally: Tally, w: int, row: Mapping[Any, float]) -> Iterator[str]:
        z, low, high = self.rewards[w].feature, self.rewards[w].low, self.rewards[w].high
        for value, n in row.items():
            if number("reward", value, -math.inf) or not low <= value <= high:
                yield (
                    f"counts of {z!r} have the reward {value!r}; expected a number in [{low!r}, "
                    f"{high!r}]"
                )
            elif number("n", n):
                yield f"counts of {z!r}, {value!r} are {show(n)}; expected a number >= 0"
            elif n > 0:
                doors.count_reward(tally, w, float(value), float(n))

    def _add_counts(self, tally: Tally, z: Any, row: Mapping[Any, float]) -> Iterator[str]:
        z_row = self.feature_index[z]
        for x, n in row.items():
            at = self.place(z_row, x)
            if at is None:
                yield f"counts of {z!r} have the outcome {x!r}, which is not in outcomes({z!r})"
            elif number("n", n):
                yield f"counts of {z!r}, {x!r} are {show(n)}; expected a number >= 0"
            else:
                tally.counts[at] += n
                tally.n[z_row] += n

    def _find_refuted(self, counts: np.ndarray) -> Iterator[str]:
        """The features of which more distinct outcomes were seen than B(z) allows."""
        seen = np.concatenate(([0], np.cumsum(counts > 0)))[self.row_ptr[: len(self.features) + 1]]
        numbers = np.diff(seen)
        for row in np.flatnonzero(numbers > self.branching).tolist():
            yield self._say_refuted(row, int(numbers[row]))

    def _say_refuted(self, row: int, seen: int) -> str:
        z, bound = self.features[row], f"{self.branching[row]:.0f}"
        return (
            f"{seen} distinct outcomes of {z!r} were seen, but branching({z!r}) is {bound}; "
            "the data refute this bound: declare a larger one"
        )

    def count(self, tally: Tally, samples: Iterable[tuple[Any, Any]]) -> bool:
        """Adds (z, x') samples to a tally, all or none; returns whether a plan is due."""
        found = list[tuple[int, int]]()
        for z, x in samples:
            row = self.feature_index.get(z, -1)
            place = self.place(row, x) if row >= 0 else None
            if place is None:
                raise ModelError(
                    f"samples gave ({z!r}, {x!r}): the model has no such feature, or the outcome "
                    f"is not in outcomes({z!r})"
                )
            found.append((row, place))
        new: dict[int, set[int]] = {}
        for row, place in found:
            if tally.counts[place] == 0:
                new.setdefault(row, set()).add(place)
        refuted = []
        for row, places in new.items():
            before = tally.counts[int(self.row_ptr[row]) : int(self.row_ptr[row + 1])]
            seen = int(np.count_nonzero(before)) + len(places)
            if seen > self.branching[row]:
                refuted.append(self._say_refuted(row, seen))
        if refuted:
            raise ModelError(refuted)
        due = False
        for row, place in found:
            due |= bool(doors.count(tally, row, place))
        return due

    def name_counts(self, counts: Any) -> Any:
        """Counts that are an array, by name; others as they are."""
        given = find_array(counts)
        array = given is not None and given[0].ndim == 1  # pairs (z, x') have two axes
        return self.named_counts(self.tally(counts)) if array else counts

    def named_counts(self, tally: Tally) -> dict[Any, dict[Any, float]]:
        """Counts by name: {z: {x': n}}, zeros left out.

        Of an unknown reward only the number, the mean and the variance of its payments are kept.
        Its counts are two values with the same three: every rule makes the same of them.
        """
        named: dict[Any, dict[Any, float]] = {}
        for row, z in enumerate(self.features):
            at = int(self.row_ptr[row])
            seen = np.flatnonzero(tally.counts[at : int(self.row_ptr[row + 1])]).tolist()
            states = self.outcomes[row] if seen else ()
            named[z] = {states[i]: float(tally.counts[at + i]) for i in seen}
        for reward, moments in zip(self.rewards, tally.rewards.T.tolist(), strict=True):
            number, mean, squares = moments
            named[reward.feature] = two_values(number, mean, squares, reward.low, reward.high)
        return named

    @property
    def names(self) -> dict[str, Any]:
        """Features and outcomes by their repr, for files that hold only text."""
        values = (*self.features, *(x for states in self.graph.sets for x in states))
        return {repr(value): value for value in values}

    @cached_property
    def feature_index(self) -> Mapping[Any, int]:
        """The row of each unknown feature."""
        return {z: row for row, z in enumerate(self.features)}

    @cached_property
    def reward_index(self) -> dict[Any, int]:
        """The number of each unknown reward."""
        return {reward.feature: w for w, reward in enumerate(self.rewards)}

    def place(self, row: int, x: Any) -> int | None:
        """Where the outcome x of a row is counted; None: it is no outcome of the row."""
        i = self._outcome_index[self.graph.feature_set[row]].get(x)
        return None if i is None else int(self.row_ptr[row]) + i

    @cached_property
    def _outcome_index(self) -> list[dict[Any, int]]:
        """For each set of outcomes; many features may share one."""
        return [{x: i for i, x in enumerate(states)} for states in self.graph.sets]

    # -- what must hold whatever the engine --------------------------------------------------------

    def check_declared(self) -> None:
        """Refuses a B(z), |Z|, share or return range that would break optimism in silence."""
        findings = [*self._size_findings(), *self._range_findings()]
        if findings:
            explain(self.model)  # the same finding in the words of the check
            raise ModelError(findings)

    def _size_findings(self) -> Iterator[str]:
        if self.model.n_features is not None:
            yield from whole("n_features", self.model.n_features, least=1)
        yield from self._branching_findings()
        for reward in self.rewards:
            if reward.feature in self.feature_index:
                yield f"{reward.feature!r} names both a feature of x' and an UnknownReward"
        yield from self._share_findings()

    def _branching_findings(self) -> Iterator[str]:
        if overrides(self.model, "branching"):
            for z, states in zip(self.features, self.outcomes, strict=True):
                b = self.model.branching(z)
                yield from whole(f"branching({z!r})", b, least=1, most=len(states))

    def _range_findings(self) -> Iterator[str]:
        declared: Any = self.model.return_range
        if declared is not None and proves_range(self.model):
            return
        if declared is None:
            if may_overflow(self.graph) and not returns_within(self.graph, *RETURNS):
                yield f"returns can leave [{RETURNS[0]:g}, {RETURNS[1]:g}]; scale the rewards down"
            return
        if not (isinstance(declared, tuple | list) and len(declared) == 2):
            yield f"return_range = {declared!r}; expected None, or two numbers (low, high)"
            return
        least, most = map(float, declared)
        if not -math.inf < least <= most < math.inf:
            yield f"return_range = {declared!r}; expected finite numbers with low <= high"
            return
        slack = 1e-9 * max(1.0, abs(least), abs(most))
        for where, low, high in self.return_ranges():
            if not (low >= least - slack and high <= most + slack):
                yield (
                    f"return_range is ({least:g}, {most:g}), but the return {where} can be "
                    f"{low:g} to {high:g}"
                )
                return

    def _share_findings(self) -> Iterator[str]:
        """Shares of one feature sum to at most 1 over the y' that come with it."""
        if not overrides(self.model, "share"):
            return
        for z, total in find_share_totals(self.graph).items():
            if total > 1 + 1e-9:
                yield f"share({z!r}, y) sums to {total:g} over y; expected at most 1"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that a plan depends on, laws apart."""
        digest = hashlib.sha256(
            f"{self.horizon} {self.n_y} {self.n_features} {self.model.return_range}".encode()
        )
        for cells in self.graph.cells:
            for values in (
                cells.node, cells.action_ptr, cells.reward, cells.mean, cells.branch_ptr, cells.p,
                cells.row, cells.landing, cells.share,
            ):  # fmt: skip
                digest.update(np.array(values).tobytes())
        digest.update(self.branching.tobytes())
        for row, family in self.families.items():
            digest.update(f"{row} {family.identity}".encode())
        digest.update(self._identify_layout())
        for nodes in self.graph.landings:
            digest.update(np.array(nodes, np.int64).tobytes())
        names = chain(self.features, self.graph.sets, (law.law for law in self.graph.known))
        rewards = ((r.feature, r.low, r.high) for r in self.rewards)
        for name in chain(names, rewards, [tuple(self.graph.start)]):
            try:
                digest.update(key_of(name).encode())
            except TypeError:  # a value that no file can hold: only its type is compared
                digest.update(type(name).__name__.encode())
        return digest.hexdigest()

    def _identify_layout(self) -> bytes:
        """What the fingerprint needs of an engine's own order of states."""
        return b""


def two_values(
    number: float, mean: float, squares: float, low: float, high: float
) -> dict[float, float]:
    """{value: count} with this number, mean and sum of squared deviations, within [low, high].

    >>> two_values(4.0, 1.0, 4.0, 0.0, 5.0)
    {0.0: 2.0, 2.0: 2.0}
    >>> two_values(4.0, 1.0, 12.0, 0.0, 5.0)  # not symmetric: no value is below 0
    {0.0: 3.0, 4.0: 1.0}
    """
    if number <= 0:
        return {}
    variance = squares / number
    below, above = mean - low, high - mean
    if variance <= 0 or below <= 0 or above <= 0:
        return {min(max(mean, low), high): number}
    spread = math.sqrt(variance)
    down = min(spread, below)
    up = min(variance / down, above)
    down = min(variance / up, below)
    share = up / (down + up)
    return {max(mean - down, low): number * share, min(mean + up, high): number * (1 - share)}


def reward_limits(rewards: Iterable[UnknownReward]) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest value of each unknown reward."""
    rewards = list(rewards)
    return np.array([r.low for r in rewards], float), np.array([r.high for r in rewards], float)
