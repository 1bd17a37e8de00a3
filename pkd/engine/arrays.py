"""A law as one array: the probabilities of all outcomes, in the order of a compiled model.

The rows are `compiled.features`, and the places of a row are its `compiled.outcomes`. The array of
all of them, one after the other, is cut by `compiled.row_ptr`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pkd.expect import require
from pkd.model import ModelError
from pkd.tables.findings import TOLERANCE, normalise_segments, sum_segments

SHOWN = 5  # rows that are named


class ArrayLaw(Mapping[Any, Mapping[Any, float]]):
    """The law of an array as {z: {x': probability}}, with the laws of unknown rewards, if any."""

    def __init__(
        self,
        features: Sequence[Any],
        outcomes: Sequence[Sequence[Any]],
        row_ptr: np.ndarray,
        branching: np.ndarray,
        p: np.ndarray,
        rewards: Mapping[Any, Any],
    ) -> None:
        self.features, self.outcomes = features, outcomes
        self.row_ptr, self.rewards = row_ptr[: len(features) + 1], rewards
        self.p = self._read(p, branching)
        self._index: dict[Any, int] = {}

    def _read(self, given: np.ndarray, branching: np.ndarray) -> np.ndarray:
        ptr, size = self.row_ptr, int(self.row_ptr[-1])
        if given.shape != (size,) or given.dtype.kind not in "fiu":
            raise ModelError(
                f"law is an array of shape {given.shape} of {given.dtype}; expected {size} "
                "probabilities, in the order of compiled.features and compiled.outcomes"
            )
        p = given.astype(float)
        sums = sum_segments(p, ptr)
        p = normalise_segments(p, ptr, sums)
        negative = np.diff(np.concatenate([[0], np.cumsum(~(p >= 0))])[ptr]) > 0
        support = np.diff(np.concatenate([[0], np.cumsum(p > 0)])[ptr])
        uneven = ~negative & ~(np.abs(sums - 1) <= TOLERANCE)
        rows = np.flatnonzero(negative | uneven | (support > branching)).tolist()
        findings = []
        for z in rows[:SHOWN]:
            if negative[z]:
                said = "holds a negative probability, or no number"
            elif uneven[z]:
                said = f"sums to {float(sums[z])!r}, not 1"
            else:
                said = f"has {support[z]} x' of positive probability, more than {branching[z]:g}"
            findings.append(f"law[{self.features[z]!r}] {said}")
        if len(rows) > SHOWN:
            findings.append(f"... and {len(rows) - SHOWN} more of this kind (law)")
        require(findings)
        return p

    def __getitem__(self, z: Any) -> Mapping[Any, float]:
        if z in self.rewards:
            found: Mapping[Any, float] = self.rewards[z]
            return found
        if not self._index:
            self._index.update((feature, i) for i, feature in enumerate(self.features))
        row = self._index[z]
        p = self.p[int(self.row_ptr[row]) : int(self.row_ptr[row + 1])].tolist()
        return {x: q for x, q in zip(self.outcomes[row], p, strict=True) if q > 0}

    def __iter__(self) -> Iterator[Any]:
        yield from self.features
        yield from self.rewards

    def __len__(self) -> int:
        return len(self.features) + len(self.rewards)


def find_array(given: Any) -> tuple[np.ndarray, dict[Any, Any]] | None:
    """The array of a law or of counts, with what was given by name beside it; None: there is none.

    >>> find_array({"p": np.ones(1), "tip": {0: 1.0}})
    (array([1.]), {'tip': {0: 1.0}})
    """
    if isinstance(given, np.ndarray):
        return given, {}
    if type(given) is dict and isinstance(given.get("p"), np.ndarray):
        rest = dict(given)
        return rest.pop("p"), rest
    return None
