"""A problem: a model together with the law that nature follows.

The model (P_Y and phi_Z of the paper) is what a learner gets. Only the exact planner and the
simulator may see the law (P_eff). Every entry point of this package returns one `Problem`; the
command line uses nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

import pkd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Model = TypeVar("Model", bound=pkd.PartiallyKnownMDP)


@attrs.frozen(repr=False)
class Problem(Generic[Model]):
    """A model, its law, and how its optimal policy is drawn.

    >>> from pkd_examples.gambler import gambler
    >>> gambler()
    <Problem gambler: Gambler, horizon 30>
    """

    name: str
    _model: Model
    _law: pkd.Law
    _picture: Callable[[Problem[Model], pkd.Plan, Axes], Axes]
    remarks: tuple[str, ...] = ()  # what the command line tells its user about the law

    def __repr__(self) -> str:
        model = self._model
        return f"<Problem {self.name}: {type(model).__name__}, horizon {model.horizon}>"

    def model(self) -> Model:
        """What is known: P_Y, phi_Z and the rewards."""
        return self._model

    def law(self) -> pkd.Law:
        """What is not known: P_eff."""
        return self._law

    def picture(self, plan: pkd.Plan, ax: Axes | None = None) -> Axes:
        """The plan as a person of the field would draw it, on `ax` or on new axes."""
        if ax is None:
            from matplotlib import pyplot  # imported late: it costs most of a second

            ax = pyplot.subplots(layout="constrained")[1]
        return self._picture(self, plan, ax)

    def fit(
        self, log: str | Path | Iterable[tuple[Any, Any]] | None, smoothing: float = 0.0
    ) -> Problem[Model]:
        """The same model with the law of a log; None changes nothing.

        A log is an iterable of (z, x') pairs, or the path of a CSV file of them (`pkd.read_log`).
        """
        if log is None:
            return self
        law = pkd.fit_law(self._model, log, smoothing)
        return attrs.evolve(self, law=law, remarks=law.remarks)


def choose(plan: pkd.Plan, h: int, x: Any, y: Any) -> Any:
    """The plan's action in (x, y) at step h; None where no episode can be there at that step."""
    try:
        return plan.action(h, x, y)
    except pkd.ModelError:
        return None


def choose_first(plan: pkd.Plan, x: Any, y: Any) -> Any:
    """The plan's action in (x, y) at the first step at which it can occur; None: at no step."""
    steps = range(1, plan.compiled.horizon + 1)
    found = (choose(plan, h, x, y) for h in steps)
    return next((action for action in found if action is not None), None)


def show_numbers(ax: Axes, rows: Sequence[Sequence[float | None]], most: float) -> None:
    """A table of numbers, darker where they are larger; None is a question mark."""
    import numpy as np

    shades = [[np.nan if number is None else number for number in row] for row in rows]
    ax.imshow(shades, aspect="auto", cmap="Blues", vmin=0, vmax=1.8 * max(most, 1))
    for i, row in enumerate(rows):
        for j, number in enumerate(row):
            text = "?" if number is None else f"{number:g}"
            ax.text(j, i, text, ha="center", va="center", fontsize="small")
