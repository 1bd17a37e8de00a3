"""A problem: a model together with the law that nature follows.

The model (P_Y and phi_Z of the paper) is what a learner gets; the law (P_eff) is what only the exact planner and the simulator may see.
Every entry point of this package returns one `Problem`; the command line uses nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

import pkd
from pkd_examples.fitting import fit_law, read_log

__all__ = ["Problem", "chosen"]


@attrs.frozen
class Problem:
    """A model, its law, and how its optimal policy is drawn."""

    name: str
    _model: pkd.PartiallyKnownMDP
    _law: Any  # z -> {x': probability}, a mapping or a callable
    _picture: Callable[[Problem, Any, Any], Any] = attrs.field(repr=False)

    def model(self) -> Any:
        """What is known: P_Y, phi_Z and the rewards."""
        return self._model

    def law(self) -> Any:
        """What is not: P_eff."""
        return self._law

    def picture(self, plan: Any, ax: Any = None) -> Any:
        """The plan as a person of the field would draw it; returns the matplotlib axes."""
        if ax is None:
            from matplotlib import pyplot  # late: it costs most of a second

            ax = pyplot.subplots(layout="constrained")[1]
        return self._picture(self, plan, ax)

    def fitted(
        self, log: str | Path | Iterable[tuple[Any, Any]] | None, smoothing: float = 0.0
    ) -> Problem:
        """The same model with the law of a log: (z, x') pairs, or the path of a CSV file of them; None changes nothing."""
        if log is None:
            return self
        pairs = read_log(log) if isinstance(log, str | Path) else log
        return attrs.evolve(self, law=fit_law(self._model, pairs, smoothing))


def chosen(plan: Any, h: int, x: Any, y: Any) -> Any:
    """The plan's action in (x, y) at step h, or None where no episode can be in that state at that step."""
    try:
        return plan.action(h, x, y)
    except pkd.ModelError:
        return None
