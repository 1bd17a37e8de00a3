"""The law P_eff of a model, estimated from a log of (z, x') pairs.

The estimate is the empirical law of the paper's generic algorithm, smoothed if asked for. One can
plan with it, or simulate with it as the truth. How far it may be from the truth is what
`pkd.certify` says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pkd.certification.logs import Log, as_log
from pkd.expect import number, require
from pkd.families import Family
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.planning.plan import Model
from pkd.problem import as_model

__all__ = ["FittedLaw", "fit_law"]


class FittedLaw:
    """P(x' | z) = (n(z, x') + smoothing) / (n(z) + smoothing * len(outcomes(z))).

    It is uniform where z was never seen. Where `outcomes(z)` is a family (`pkd.families`) it is the
    family's most likely law, for counts with the smoothing. A feature without outcomes is an
    unknown reward; its values are those of the log.

    >>> import pkd
    >>> law = pkd.fit_law("gambler", {"coin": {"heads": 1, "tails": 3}})
    >>> law("coin"), law.log.samples
    ({'heads': 0.25, 'tails': 0.75}, {'coin': 4.0})
    """

    def __init__(self, model: PartiallyKnownMDP, log: Log, smoothing: float) -> None:
        self._model, self.log, self._smoothing = model, log, smoothing

    def __repr__(self) -> str:
        return f"<FittedLaw of {self.log.source}>"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know of the log: how much there is, and what is missing."""
        said = self.log.summary().splitlines()
        if self.log.unseen:
            said[-1] += ": there the law is uniform"
        return tuple(said)

    def __call__(self, z: Any) -> dict[Any, float]:
        seen = self.log.get(z, {})
        declared = seen if z in self.log.rewards else self._model.outcomes(z)
        outcomes = tuple(declared)
        if isinstance(declared, Family):
            counts = [seen.get(x, 0.0) + self._smoothing for x in outcomes]
            return dict(zip(outcomes, declared.fit(counts).tolist(), strict=True))
        if not outcomes:
            raise ModelError(
                f"{self.log.source} never mentions the reward {z!r}, so its law is unknown; add it "
                "to the log"
            )
        total = sum(seen.values())
        smoothing = self._smoothing if total else 1.0
        total += smoothing * len(outcomes)
        return {x: (seen.get(x, 0.0) + smoothing) / total for x in outcomes}


def fit_law(
    model: Model,
    log: str | Path | Iterable[tuple[Any, Any]] | Mapping[Any, Mapping[Any, float]],
    smoothing: float = 0.0,
) -> FittedLaw:
    """The empirical law of a log: a file, a frame, pairs (z, x') or counts {z: {x': n}}.

    model: whose features and outcomes the log names; a problem, too, whose law is not used.
    `smoothing` is added to the count of every possible x'.

    >>> log = [("coin", "heads"), ("coin", "tails"), ("coin", "tails")]
    >>> fit_law("gambler", log, smoothing=1)("coin")
    {'heads': 0.4, 'tails': 0.6}
    """
    require(number("smoothing", smoothing))
    return FittedLaw(as_model(model), as_log(model, log), smoothing)
