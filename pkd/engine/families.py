"""Values over the laws of declared families that the data have not refuted, beside those over sets.

A certified belief of a model with families (`pkd.families`) asks `Unrefuted` for its values, in
numpy: the largest q.V over the cells of a family, and over {q : KL(p^, q) <= C(z)} of a feature
without one. The kernels fill its radii, ranks and means as without families. What is told,
radii, budgets and counts, says all: with the families of the model it gives the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from pkd.engine import doors
from pkd.engine.set_values import CERTAIN, largest_over_balls
from pkd.families import Cells, Family
from pkd.model import ModelError
from pkd.optimism import ALL_ROUNDS, Pairs, PythonRule

__all__ = ["FAMILIES", "Unrefuted", "log_mixture"]

FAMILIES = "families"  # the name of the rule in files
KEPT = 64  # cells that are remembered


@attrs.frozen(eq=False)
class Unrefuted(PythonRule):
    """What stands for the kernel of sets in a model with families."""

    families: Mapping[int, Family]  # by row
    names: Mapping[int, str]  # of their features, for messages
    row_ptr: np.ndarray  # (unknown rows + 1,)
    sign: float = 1.0  # 1 for the largest value, -1 for the least
    _found: dict[tuple[int, bytes], Cells] = attrs.field(factory=dict, repr=False)

    values_unseen = True

    def to_config(self) -> dict[str, Any]:
        return {"rule": FAMILIES}

    @property
    def size(self) -> int:
        """How many numbers are told: a radius for each row, then budget and counts of families."""
        lengths = np.diff(self.row_ptr)
        return len(lengths) + sum(1 + int(lengths[row]) for row in self.families)

    def tell(
        self, radius: np.ndarray, budget: np.ndarray, counts: np.ndarray, told: np.ndarray
    ) -> None:
        """Fills what is told; budget: log(1 / (weight delta)) of each row."""
        told[: len(radius)] = np.minimum(radius, CERTAIN)
        at = len(radius)
        for row in self.families:
            part = counts[self.row_ptr[row] : self.row_ptr[row + 1]]
            told[at], told[at + 1 : at + 1 + len(part)] = budget[row], part
            at += 1 + len(part)

    def find_cells(self, told: np.ndarray, row: int) -> Cells:
        """What is left of the family of a row; a ModelError if nothing is."""
        at = len(self.row_ptr) - 1
        for other in self.families:
            size = int(self.row_ptr[other + 1] - self.row_ptr[other])
            if other == row:
                break
            at += 1 + size
        part = np.ascontiguousarray(told[at : at + 1 + size])
        key = row, part.tobytes()
        if key not in self._found:
            counts, family = part[1:], self.families[row]
            found = family.unrefuted(counts, float(part[0]), log_mixture(counts))
            if not len(found.lower):
                raise ModelError(
                    f"the data refute that {self.names[row]} has a law of {family!r}; declare "
                    "another family, or list its outcomes alone"
                )
            if len(self._found) >= KEPT:
                self._found.pop(next(iter(self._found)))
            self._found[key] = found
        return self._found[key]

    def values(self, pairs: Pairs) -> np.ndarray:
        radius = pairs.told[: len(self.row_ptr) - 1]
        out, mine = np.empty(len(pairs.row)), np.isin(pairs.row, [*self.families])
        rest = ~mine
        if rest.any():
            p, v = pairs.P[rest].T.copy(), self.sign * pairs.V[rest].T
            found = np.empty(int(rest.sum()))
            level = radius[pairs.row[rest]]
            largest_over_balls(p, v.copy(), level, ALL_ROUNDS, np.zeros(len(p)), found)
            out[rest] = self.sign * found
        for row in np.unique(pairs.row[mine]).tolist():
            here, size = pairs.row == row, int(self.row_ptr[row + 1] - self.row_ptr[row])
            p, v = pairs.P[here, :size], pairs.V[here, :size]
            if radius[row] == 0.0:  # it is taken as it is estimated
                out[here] = (p * v).sum(axis=1)
            else:
                out[here] = self.sign * self.find_cells(pairs.told, row).largest(self.sign * v)
        return out


def log_mixture(counts: np.ndarray) -> float:
    """log w(n) of `pkd.engine.confidence`, all outcomes possible.

    >>> round(log_mixture(np.array([1.0, 1.0])), 6)  # 1/16
    -2.772589
    """
    seen = counts[counts > 0]
    best = float(seen @ np.log(seen / seen.sum())) if len(seen) else 0.0
    return best - float(doors.evidence(counts, 0, len(counts), float(len(counts))))
