"""`Results`: the records of an experiment, in memory or in its folder, and their tidy forms.

A large experiment does not fit into memory, so a record of a folder is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.experiments.record import Record
from pkd.model import ModelError
from pkd.results.files import write_csv
from pkd.results.plots import thin

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Results", "load_results"]

COLUMNS = (
    "model", "agent", "seed", "episodes", "optimal_value", "regret", "regret_is",
    "return_per_episode", "last_value", "violations", "guarantee", "seconds",
)  # fmt: skip
POINTS = 100  # of a curve in a long table


class Cell(NamedTuple):
    """One run of the grid."""

    model: str
    agent: str
    seed: int


class Results:
    """The runs of an experiment, in the order of its grid.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> results = pkd.experiment({"coin": coin}, {"a": "mvp", "b": "greedy"}, 100, seeds=2)
    >>> results.agents
    ('a', 'b')
    >>> columns = results.arrays()
    >>> columns["seed"].tolist(), columns["regret_is"].tolist()[:1]
    ([0, 1, 0, 1], ['exact'])
    """

    def __init__(self, cells: Sequence[tuple[str, str, int]], load: Callable[[int], Record]):
        self.cells = tuple(Cell(*cell) for cell in cells)
        self._load = load
        self._rows: dict[int, tuple[Any, ...]] = {}
        self._places: dict[tuple[str, str], list[int]] = {}
        for i, (model, agent, _) in enumerate(self.cells):
            self._places.setdefault((model, agent), []).append(i)

    def __repr__(self) -> str:
        seeds = len({cell.seed for cell in self.cells})
        return (
            f"<Results: {len(self)} runs; {len(self.models)} models, {len(self.agents)} agents, "
            f"{seeds} seeds>"
        )

    def __len__(self) -> int:
        return len(self.cells)

    def __getitem__(self, place: int) -> Record:
        return self._load(range(len(self))[place])

    def __iter__(self) -> Iterator[Record]:
        return (self[i] for i in range(len(self)))

    @property
    def models(self) -> tuple[str, ...]:
        """The labels of the models."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def agents(self) -> tuple[str, ...]:
        """The labels of the agents."""
        return tuple(dict.fromkeys(cell.agent for cell in self.cells))

    def records(self, model: str, agent: str) -> list[Record]:
        """The records of one agent on one model, one for each seed."""
        if (model, agent) not in self._places:
            raise ModelError(
                f"there are no runs of {agent!r} on {model!r}; expected agents of "
                f"{list(self.agents)} and models of {list(self.models)}"
            )
        return [self[i] for i in self._places[model, agent]]

    def curves(self, model: str, agent: str, episodes: np.ndarray | None = None) -> np.ndarray:
        """Cumulative regret, (seeds, episodes); episodes: which, from 0."""
        chosen: Any = slice(None) if episodes is None else episodes
        return np.array([record.regret[chosen] for record in self.records(model, agent)])

    def arrays(self) -> dict[str, np.ndarray]:
        """One row for each run, as columns: its names, its regret, and what it is worth."""
        rows = [self._row(i) for i in range(len(self))]
        return {name: np.array([row[i] for row in rows]) for i, name in enumerate(COLUMNS)}

    def frame(self) -> pd.DataFrame:
        """`arrays` as a pandas frame; pandas must be installed."""
        try:
            import pandas as pd
        except ImportError:
            raise ModelError(
                "frame() needs pandas: pip install pandas; arrays() works without it"
            ) from None
        return pd.DataFrame(self.arrays())

    def to_csv(self, path: str | Path, *, curves: bool = False) -> None:
        """One line for each run; curves: one for each run and each of some hundred episodes."""
        if not curves:
            write_csv(path, COLUMNS, (self._row(i) for i in range(len(self))))
            return
        headers = ("model", "agent", "seed", "episode", "regret", "regret_is")
        write_csv(path, headers, self._list_points())

    def _list_points(self) -> Iterator[tuple[Any, ...]]:
        for cell, record in zip(self.cells, self, strict=True):
            regret, chosen = record.regret, thin(len(record.returns), POINTS)
            for k in chosen:
                yield (*cell, int(k) + 1, float(regret[k]), record.regret_is)

    def _row(self, place: int) -> tuple[Any, ...]:
        if place not in self._rows:
            record = self[place]
            regret, episodes = float(record.regret[-1]), len(record.returns)
            violations = record.violations
            self._rows[place] = (
                *self.cells[place],
                episodes,
                record.optimal_value,
                regret,
                record.regret_is,
                record.optimal_value - regret / episodes,
                float(record.policy_values[-1]),
                -1 if violations is None else violations,
                record.guarantee,
                record.seconds,
            )
        return self._rows[place]


def load_results(folder: str | Path, *, partial: bool = False) -> Results:
    """The results in the folder of an experiment; partial: also where some runs are missing.

    >>> import pkd, tempfile
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> folder = tempfile.mkdtemp()
    >>> made = pkd.experiment({"coin": coin}, ["greedy"], 100, seeds=2, folder=folder)
    >>> pkd.load_results(folder)[1].regret[-1] == made[1].regret[-1]
    np.True_
    """
    from pkd.experiments.store import Store

    store = Store(folder)
    runs = store.listed()["runs"]
    found = [run for run in runs if store.is_done(run["key"])]
    if len(found) < len(runs) and not partial:
        raise ModelError(
            f"{folder}: {len(found)} of {len(runs)} runs are there; run the experiment again to "
            "compute the rest, or load with partial=True"
        )
    if not found:
        raise ModelError(f"{folder}: none of {len(runs)} runs is there yet")
    cells = [(run["model"], run["agent"], run["seed"]) for run in found]
    return Results(cells, lambda i: store.read(found[i]["key"]))
