"""The law P_eff of a model, estimated from a log of (z, x') pairs.

A log holds what was known beforehand (the feature z) and what followed (x'). The estimate is the
empirical law of the paper's generic algorithm, smoothed if asked for. One can plan with it, or
simulate with it as the truth.
"""

from __future__ import annotations

import ast
import csv
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pkd

__all__ = ["FittedLaw", "fit_law", "read_log"]


class FittedLaw:
    """P(x' | z) = (n(z, x') + smoothing) / (n(z) + smoothing * len(outcomes(z))).

    It is uniform where z was never seen. The law is a callable, so it also answers for features
    that the log does not mention. A feature without outcomes is an unknown reward; its values are
    those of the log.
    """

    def __init__(
        self, model: pkd.PartiallyKnownMDP, counts: dict[Hashable, Counter[Any]], smoothing: float
    ) -> None:
        self._model, self._counts, self._smoothing = model, counts, smoothing

    def __call__(self, z: Any) -> dict[Any, float]:
        seen = self._counts.get(z, Counter())
        outcomes = tuple(self._model.outcomes(z)) or tuple(seen)
        if not outcomes:
            raise pkd.ModelError(
                f"the log never mentions {z!r}, and the model lists no outcomes for it; "
                "add it to the log"
            )
        smoothing = self._smoothing if seen else 1.0
        total = seen.total() + smoothing * len(outcomes)
        return {x: (seen[x] + smoothing) / total for x in outcomes}


def fit_law(
    model: pkd.PartiallyKnownMDP, pairs: Iterable[tuple[Any, Any]], smoothing: float = 0.0
) -> FittedLaw:
    """The empirical law of a log of (z, x') pairs.

    `smoothing` is added to the count of every possible x'.

    >>> from pkd_examples.gambler import gambler
    >>> log = [("coin", "heads"), ("coin", "tails"), ("coin", "tails")]
    >>> fit_law(gambler().model(), log, smoothing=1)("coin")
    {'heads': 0.4, 'tails': 0.6}
    """
    if not smoothing >= 0:
        raise pkd.ModelError(f"fit_law(smoothing={smoothing!r}): expected a number of at least 0")
    counts: dict[Hashable, Counter[Any]] = {}
    for z, x in pairs:
        counts.setdefault(z, Counter())[x] += 1
    findings = [
        f"the log has x'={x!r} after z={z!r}, which is not among outcomes(z)={possible!r}; "
        "correct the log or the model"
        for z, seen in counts.items()
        for possible in [tuple(model.outcomes(z))]
        for x in seen
        if possible and x not in possible
    ]
    if findings:
        raise pkd.ModelError(findings)
    return FittedLaw(model, counts, smoothing)


def read_log(path: str | Path) -> Iterator[tuple[Any, Any]]:
    """The (z, x') pairs of a CSV file with the columns z and x.

    A cell is a Python literal; any other text is taken as it is.
    """
    with Path(path).open(newline="") as file:
        rows = csv.DictReader(file)
        if not {"z", "x"} <= set(rows.fieldnames or ()):
            raise pkd.ModelError(
                f"{path}: expected a first line with the columns z and x, found {rows.fieldnames}"
            )
        for row in rows:
            yield _value(row["z"]), _value(row["x"])


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text.strip()
