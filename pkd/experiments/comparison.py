"""`compare`: agents side by side on one or several models, as a table and a figure.

It is the table and the figure of `pkd compare` and `pkd experiment`. Every line says whether regret
is exact or estimated, and what is guaranteed.
"""

from __future__ import annotations

import statistics as plain_statistics
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.experiments.experiment import experiment
from pkd.experiments.record import Record
from pkd.experiments.results import Results
from pkd.experiments.statistics import (
    Interval,
    Pair,
    Profile,
    bootstrap_mean,
    compare_pairs,
    fit_slope,
    profile_performance,
    rank_agents,
)
from pkd.results.tables import Cell, format_table
from pkd.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GOAL", "HEADERS", "Comparison", "compare"]

GOAL = 0.95
HEADERS = (
    "model",
    "agent",
    "return per episode",
    "return at the end",
    "regret",
    "95% from",
    "to",
    "regret is",
    f"episodes to {GOAL:.0%} of the gain",
    "violations",
    "guarantee",
    "seconds",
)


def compare(
    models: Any,
    agents: Any = ("certified", "mvp", "practical", "greedy"),
    episodes: int = 10_000,
    seeds: Any = 5,
    *,
    delta: float = 0.05,
    replan: Schedule = "doubling",
    workers: int | Executor = 1,
    folder: str | Path | None = None,
    progress: bool = False,
) -> Comparison:
    """Agents side by side: `experiment`, or its Results, as a table and a figure.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> agents = {"published": "mvp", "small": "practical"}
    >>> comparison = pkd.compare({"coin": coin}, agents, episodes=2000, seeds=3)
    >>> pair = comparison.pair("coin", "small", "published")
    >>> pair.difference < 0 and pair.high < 0  # small constants have less regret here
    True
    """
    if isinstance(models, Results):
        return Comparison(models)
    return Comparison(
        experiment(
            models,
            list(agents) if isinstance(agents, tuple) else agents,
            episodes,
            seeds,
            delta=delta,
            replan=replan,
            workers=workers,
            folder=folder,
            progress=progress,
        )
    )


class Comparison:
    """The runs of an experiment as a table, as a figure, and as statistics over its seeds.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> found = pkd.compare({"coin": coin}, ["practical", "greedy"], episodes=100, seeds=4)
    >>> print(found.table("latex").splitlines()[0])
    \\begin{tabular}{lrrrrrlrrlr}
    """

    def __init__(self, results: Results) -> None:
        self.results = results

    def __repr__(self) -> str:
        return self.table()

    @cached_property
    def rows(self) -> list[tuple[Cell, ...]]:
        """A line for each model and agent, as HEADERS says: means over the seeds."""
        return [row for model in self.results.models for row in self._list_rows(model)]

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of `table`: one model needs no column."""
        return HEADERS if len(self.results.models) > 1 else HEADERS[1:]

    def table(self, form: str = "plain") -> str:
        """The table as plain text, "markdown" or "latex" (with the rules of booktabs)."""
        return format_table(self.headers, self.lines(), form)

    def lines(self) -> list[tuple[Cell, ...]]:
        """The rows without the column of the model where there is only one."""
        skip = len(HEADERS) - len(self.headers)
        return [row[skip:] for row in self.rows]

    def plot(self, bounds: Mapping[str, Callable[[float], float]] | None = None) -> Figure:
        """Regret and value over episodes, one row for each model.

        bounds: for a model, the bound of the theorem as a function of K, such as
        `pkd.bounds.ModelBound.of(model)`.
        """
        from pkd.results.plots import draw_regret

        groups, curves = {}, {}
        for model in self.results.models:
            runs = [self.results.records(model, agent) for agent in self.results.agents]
            title = f"{model}, {len(runs[0][0].returns):,} episodes"
            groups[title] = runs
            if bounds and model in bounds:
                curves[title] = bounds[model]
        return draw_regret(groups, curves)

    def first_value(self, model: str) -> float | None:
        """The lowest value of a first policy on a model; None where no agent shows one."""
        firsts = [record.policy_values[0] for record in self._all(model)]
        known = [float(value) for value in firsts if not np.isnan(value)]
        return min(known, default=None)

    def pair(self, model: str, first: str, second: str) -> Pair:
        """The regret of one agent less that of another, seed by seed."""
        return compare_pairs(self._final(model, first), self._final(model, second))

    def ranks(self) -> dict[str, Interval]:
        """The mean rank of each agent over models and seeds; 1 is the least regret."""
        return rank_agents(self._scores())

    def profile(self) -> Profile:
        """Shares of runs with at most tau times the regret of the best agent on the model."""
        return profile_performance(self._scores())

    def slope(self, model: str, agent: str) -> Interval:
        """The slope of log regret over log episode; 1/2 is regret of the order sqrt(K)."""
        return fit_slope(self.results.curves(model, agent))

    def _scores(self) -> dict[str, np.ndarray]:
        """Regret at the end, (models, seeds) for each agent."""
        models = self.results.models
        return {
            agent: np.array([self._final(model, agent) for model in models])
            for agent in self.results.agents
        }

    def _final(self, model: str, agent: str) -> list[float]:
        return [float(record.regret[-1]) for record in self.results.records(model, agent)]

    def _all(self, model: str) -> list[Record]:
        agents = self.results.agents
        return [record for agent in agents for record in self.results.records(model, agent)]

    def _list_rows(self, model: str) -> list[tuple[Cell, ...]]:
        first = self.first_value(model)
        rows = []
        for agent in self.results.agents:
            rows.append(_make_row(self.results.records(model, agent), first))
        return rows


def _make_row(records: list[Record], first: float | None) -> tuple[Cell, ...]:
    """Means over the seeds, the interval of the regret, and the median of the episodes to the goal.

    first: where the gain starts.
    """
    regrets = [float(record.regret[-1]) for record in records]
    interval = bootstrap_mean(np.array(regrets))
    episodes, optimum = len(records[0].returns), records[0].optimal_value
    several, kinds = len(records) > 1, {record.regret_is for record in records}
    exact = kinds == {"exact"}
    violations = [record.violations for record in records]
    return (
        records[0].model,
        records[0].label,
        optimum - float(interval.mean) / episodes,
        float(np.mean([record.policy_values[-1] for record in records])) if exact else "",
        float(interval.mean),
        float(interval.low) if several else "",
        float(interval.high) if several else "",
        "exact" if exact else "estimated",
        _find_reached(records, first, episodes) if exact and first is not None else "",
        "" if None in violations else sum(number or 0 for number in violations),
        records[0].guarantee,
        round(float(np.mean([record.seconds for record in records])), 3),
    )


def _find_reached(records: list[Record], first: float, episodes: int) -> Cell:
    reached = [record.episodes_to(GOAL, first) or float("inf") for record in records]
    median = plain_statistics.median(reached)
    if median == float("inf"):
        return f"> {episodes}"
    return int(median) if median == int(median) else median
