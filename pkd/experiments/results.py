"""`Results`: the runs of an experiment, in memory or in its folder, as tables, figures, statistics.

A large experiment does not fit into memory, so a run of a folder is read when it is asked for.
Runs of a sweep have parameters. `pkd.experiments.axes` says what an interval is over: instances,
which are draws of a model, or settings of other parameters, or seeds.
"""

from __future__ import annotations

import statistics as plain_statistics
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pkd.expect import (
    if_given,
    instance,
    key,
    number,
    one_of,
    pathname,
    require,
    show,
    texts,
    wholes,
)
from pkd.experiments.axes import EPISODES, Bounds, find_lines, find_slopes
from pkd.experiments.statistics import (
    Pair,
    Profile,
    average,
    compare_all,
    compare_pair,
    correct,
    fit_slope,
    profile_performance,
    rank_agents,
)
from pkd.experiments.store import Store
from pkd.experiments.sweep import INSTANCE, Point
from pkd.files.atomic import write_csv
from pkd.files.frames import make_frame
from pkd.model import ModelError
from pkd.results.run import Run
from pkd.show.intervals import FEWEST, Interval, mean_interval, say_mean
from pkd.show.plots import ROWS, Line, Style, choose_styles, draw_lines, draw_regret, thin
from pkd.show.saving import save_figure
from pkd.show.tables import Cell, format_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["GOAL", "HEADERS", "Entry", "Results", "load_results"]

GOAL = 0.95  # of the gain
HEADERS = (
    "replan", "return per episode", "return at the end", "regret", "regret is",
    f"episodes to {GOAL:.0%} of the gain", "violations", "guarantee", "seconds",
)  # fmt: skip
COLUMNS = (
    "seed", "episodes", "replan", "optimal_value", "regret", "regret_is",
    "return_per_episode", "last_value", "violations", "guarantee", "seconds",
)  # fmt: skip
PANELS = ("regret", "value")
OVER = ("seeds", "instances")
POINTS = 100  # of a curve in a long table


class Entry(NamedTuple):
    """One run of the grid."""

    model: str
    agent: str
    seed: int


class Results:
    """The runs of an experiment, in the order of its grid.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> results = pkd.experiment({"coin": coin}, {"a": "mvp", "b": "greedy"}, 100, seeds=2)
    >>> results.agents
    ('a', 'b')
    >>> columns = results.arrays()
    >>> columns["seed"].tolist(), columns["regret_is"].tolist()[:1]
    ([0, 1, 0, 1], ['exact'])
    """

    def __init__(
        self,
        cells: Sequence[tuple[str, str, int]],
        load: Callable[[int], Run],
        models: Mapping[str, Point] | None = None,
        agents: Mapping[str, Point] | None = None,
        styles: Mapping[str, Style] | None = None,
    ):
        self.cells = tuple(Entry(*cell) for cell in cells)
        self._load = load
        self._points = models or {}, agents or {}
        self.styles = styles or choose_styles(self.agents)  # of each agent, in every figure
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

    def __getitem__(self, place: int) -> Run:
        return self._load(range(len(self))[place])

    def __iter__(self) -> Iterator[Run]:
        return (self[i] for i in range(len(self)))

    @property
    def models(self) -> tuple[str, ...]:
        """The labels of the models."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def agents(self) -> tuple[str, ...]:
        """The labels of the agents."""
        return tuple(dict.fromkeys(cell.agent for cell in self.cells))

    @property
    def parameters(self) -> dict[str, tuple[Cell, ...]]:
        """The parameters of the sweep, each with its values."""
        found: dict[str, dict[Cell, None]] = {}
        for which, names in ((0, self.models), (1, self.agents)):
            for name in names:
                for parameter, value in self.point(which, name).values.items():
                    found.setdefault(parameter, {})[value] = None
        return {key: tuple(values) for key, values in found.items()}

    def select(
        self,
        models: str | Sequence[str] | None = None,
        agents: str | Sequence[str] | None = None,
        **values: Any,
    ) -> Results:
        """The runs of these models and agents where parameters have these values, or one of them.

        Names are labels, with or without what a sweep adds. Agents keep their colours.
        """
        require(if_given(texts, "models", models), if_given(texts, "agents", agents))
        wanted = [None if one is None else set(_as_list(one)) for one in (models, agents)]
        allowed = {name: _as_list(value) for name, value in values.items()}
        require(*(key(name, one) for name, listed in allowed.items() for one in listed))
        parameters = self.parameters
        if unknown := [name for name in allowed if name not in parameters]:
            raise ModelError(
                f"there is no parameter {', '.join(unknown)}; expected one of "
                f"{', '.join(parameters) or 'none: no sweep'}"
            )
        kept = [
            i
            for i, cell in enumerate(self.cells)
            if all(
                names is None or names & {name, self.point(which, name).base}
                for which, (names, name) in enumerate(zip(wanted, cell[:2], strict=True))
            )
            and all(self._coordinates(cell).get(name, ...) in one for name, one in allowed.items())
        ]
        if not kept:
            raise ModelError(
                f"no run is left; expected models of {list(self.models)[:9]}, agents of "
                f"{list(self.agents)} and values of {parameters}"
            )
        cells = [self.cells[i] for i in kept]
        return Results(cells, lambda i: self[kept[i]], *self._points, self.styles)

    def runs(self, model: str, agent: str) -> list[Run]:
        """The runs of an agent on a model, one for each seed."""
        require(key("model", model), key("agent", agent))
        if (model, agent) not in self._places:
            raise ModelError(
                f"there are no runs of the agent {show(agent)} on the model {show(model)}; "
                f"expected agents of {list(self.agents)} and models of {list(self.models)}"
            )
        return [self[i] for i in self._places[model, agent]]

    def curves(self, model: str, agent: str, episodes: np.ndarray | None = None) -> np.ndarray:
        """Cumulative regret, (seeds, episodes); episodes: which, from 0."""
        runs = self.runs(model, agent)
        if episodes is None:
            return np.array([run.regret for run in runs])
        require(wholes("episodes", episodes, 0, len(runs[0].regret) - 1, row=True))
        chosen = np.asarray(episodes)
        return np.array([run.regret[chosen] for run in runs])

    def regrets(self, at: int | Sequence[int] | None = None, against: str = "world") -> np.ndarray:
        """Cumulative regret after `at` episodes, (runs,) or (runs, numbers); None: at the end.

        against: the best policy of the "world"; or, where learners have another model, "model", the
        optimal policy of that model under the law of its problem, as it fares in the world.
        """
        require(one_of("against", against, ("world", "model")))
        if at is not None:
            shortest = min(row[len(self.names) + 1] for row in self._rows)
            require(wholes("at", at, 1, shortest))
        if against == "model":
            least = [
                run.optimal_value - run.config.get("model_optimum", run.optimal_value)
                for run in self
            ]
            spent = np.array([len(run.returns) for run in self])
            off = np.array(least) * spent if at is None else np.multiply.outer(least, np.array(at))
            return np.asarray(self.regrets(at) - off)
        if at is None:
            return np.array([row[len(self.names) + COLUMNS.index("regret")] for row in self._rows])
        places = np.asarray(at) - 1
        return np.array([run.regret[places] for run in self])

    def arrays(self) -> dict[str, np.ndarray]:
        """One row for each run, as columns: its names, its parameters, and what it is worth."""
        columns = [*self.names, *COLUMNS]
        return {name: np.array([row[i] for row in self._rows]) for i, name in enumerate(columns)}

    def to_frame(self) -> pd.DataFrame:
        """`arrays` as a pandas frame: one row for each run."""
        return make_frame(self.arrays())

    def frame(self) -> pd.DataFrame:
        """The old name of `to_frame`."""
        warnings.warn("frame() is now to_frame()", DeprecationWarning, stacklevel=2)
        return self.to_frame()

    def to_csv(self, path: str | Path, *, curves: bool = False) -> None:
        """One line for each run; curves: one for each run and each of some hundred episodes."""
        if not curves:
            write_csv(path, [*self.names, *COLUMNS], self._rows)
            return
        headers = (*self.names, "seed", "episode", "regret", "regret_is")
        write_csv(path, headers, self._list_points())

    @cached_property
    def lines(self) -> list[tuple[Cell, ...]]:
        """A line for each model and agent: its names and parameters, then as HEADERS says."""
        return [
            (*self._name(self.cells[places[0]]), *_make_line(self.runs(*key), self._firsts[key[0]]))
            for key, places in self._places.items()
        ]

    def table(
        self,
        form: str = "plain",
        *,
        columns: Sequence[str] | None = None,
        x: str | None = None,
        at: int | None = None,
    ) -> str:
        """`lines` as plain text, "markdown" or "latex" (with the rules of booktabs).

        columns: which of the headers. x: a row for each value of this parameter and a column for
        each agent, with the regret after `at` episodes. One model needs no column.
        """
        if x is not None:
            drawn = self.axis(x, at)
            values = list(dict.fromkeys(value for line in drawn.values() for value in line.x))
            rows = [[v, *(line.say(v) for line in drawn.values())] for v in values]
            return format_table([x, *drawn], rows, form)
        headers = [*self.names, *HEADERS]
        if columns is None:
            columns = headers[len({line[0] for line in self.lines}) == 1 :]
        if unknown := [name for name in columns if name not in headers]:
            raise ModelError(f"there is no column {unknown}; expected some of {headers}")
        kept = [headers.index(name) for name in columns]
        return format_table(columns, [[line[i] for i in kept] for line in self.lines], form)

    def plot(
        self,
        bounds: Bounds | None = None,
        *,
        x: str | None = None,
        at: int | None = None,
        split: str | None = None,
        show: Sequence[str] = PANELS,
        size: tuple[float, float] | None = None,
        style: Any = None,
        path: str | Path | None = None,
    ) -> Figure:
        """Regret and value over episodes, or regret after `at` episodes against a parameter x.

        bounds: for a model, the bound of the theorem as a function of K, such as
        `pkd.bounds.ModelBound.of(model)`. x: a parameter, "episodes", "model" or "agent". split: a
        parameter, of
        which each value gets a panel. show: panels of each model; only regret where there are more
        than three. size: inches. style: a style sheet of matplotlib, or its settings. path: where
        the figure is written, with its fonts.
        """
        from matplotlib import style as sheets

        wanted = "a function of K for each model"
        require(
            if_given(instance, "bounds", bounds, Mapping, wanted),
            if_given(one_of, "split", split, self.parameters),
            *(one_of("show", one, PANELS) for one in _as_list(show)),
            if_given(_find_size_faults, "size", size),
            if_given(pathname, "path", path),
        )
        small = {"font.size": 8.0} if split or len(self.models) > ROWS else {}
        styles = [small, *([] if style is None else _as_list(style))]
        try:
            with sheets.context(styles):
                pass
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as problem:
            raise ModelError(f"style is {style!r}: {' '.join(str(problem).split())}") from None
        with sheets.context(styles):
            if x is not None:
                parts = {"": self}
                if split is not None:
                    values = self.parameters.get(split) or ()
                    chosen: list[dict[str, Any]] = [{split: v} for v in values]
                    parts = {f"{split} = {one[split]}": self.select(**one) for one in chosen}
                panels = {name: part.axis(x, at, bounds) for name, part in parts.items()}
                figure = draw_lines(panels, x, at or self.least_episodes, size=size)
            else:
                groups = {
                    model: {a: self.runs(m, a) for m, a in self._places if m == model}
                    for model in self.models
                }
                figure = draw_regret(groups, bounds, show=show, size=size, styles=self.styles)
        if path is not None:
            save_figure(figure, Path(path))
        return figure

    def axis(self, x: str, at: int | None = None, bounds: Bounds | None = None) -> dict[str, Line]:
        """Regret after `at` episodes against x, as `plot` draws it: a line for each agent."""
        return find_lines(self, x, at, bounds)

    def slopes(self, x: str, at: int | None = None) -> dict[str, Interval]:
        """The slope of log regret over log x of each agent, by least squares, with its interval.

        A unit in which an agent never loses anything has no slope and is left out.
        """
        return find_slopes(self, x, at)

    def first_value(self, model: str) -> float | None:
        """The lowest value of a first policy on a model; None where no agent shows one."""
        require(one_of("model", model, self.models))
        return self._firsts[model]

    def pair(self, model: str, first: str, second: str) -> Pair:
        """The regret of one agent less that of another, seed by seed."""
        require(
            one_of("model", model, self.models),
            one_of("first", first, self.agents),
            one_of("second", second, self.agents),
        )
        return compare_pair(self._final(model, first), self._final(model, second))

    def pairs(self, over: str = "seeds") -> dict[tuple[str, ...], Pair]:
        """Every two agents on every model, with p corrected by Holm for all of them.

        over="instances": every two agents on all models, each instance being one pair of means, or
        each model where there are no draws.
        """
        require(one_of("over", over, OVER))
        if over == "instances":
            means = {
                name: average(rows.mean(axis=1), self.draws) for name, rows in self.scores.items()
            }
            what = "settings" if self.draws is None else "instances"
            found = compare_all({name: row.tolist() for name, row in means.items()}, what)
            return {(a, b): pair for (a, b), pair in found.items()}
        agents = list(combinations(self.agents, 2))
        return correct({(m, a, b): self.pair(m, a, b) for m in self.models for a, b in agents})

    def ranks(self) -> dict[str, Interval]:
        """The mean rank of each agent over models and seeds; 1 is the least regret.

        The interval is over `units`.
        """
        return rank_agents(self.scores, over=self.units, draws=self.draws)

    headers = HEADERS  # of `lines`, after `names`

    @property
    def guarantees(self) -> dict[str, str]:
        """What is proved about each agent."""
        place = len(self.names) + COLUMNS.index("guarantee")
        found = zip(self.cells, self._rows, strict=True)
        return {cell.agent: str(row[place]) for cell, row in found}

    @property
    def units(self) -> str:
        """Over what ranks go: the instances or settings of a sweep, or seeds."""
        return self.find_units() if self.parameters and len(self.models) >= FEWEST else "seeds"

    def find_units(self, x: str = "") -> str:
        """What units with another value than that of x are: draws, or settings of parameters."""
        drawn = len(self.parameters.get(INSTANCE, ())) >= FEWEST and x != INSTANCE
        return "instances" if drawn else "settings"

    @property
    def draws(self) -> list[str] | None:
        """The draw of each model; None without draws."""
        if self.find_units() == "settings":
            return None
        points = [self.point(0, name) for name in self.models]
        return [f"{point.base} {point.values.get(INSTANCE)}" for point in points]

    def profile(self) -> Profile:
        """Shares of runs with at most tau times the regret of the best agent on the model."""
        return profile_performance(self.scores)

    def slope(self, model: str, agent: str) -> Interval:
        """The slope of log regret over log episode; 1/2 is regret of the order sqrt(K)."""
        return fit_slope(self.curves(model, agent))

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """Regret at the end, (models, seeds) for each agent."""
        rows = {a: [self._final(model, a) for model in self.models] for a in self.agents}
        if len({len(row) for one in rows.values() for row in one}) > 1:
            raise ModelError("some runs are missing; all models and agents need the same seeds")
        return {agent: np.array(row) for agent, row in rows.items()}

    def _final(self, model: str, agent: str) -> list[float]:
        found = self.regrets()
        return [float(found[i]) for i in self._places.get((model, agent), ())]

    def _list_points(self) -> Iterator[tuple[Any, ...]]:
        for cell, run in zip(self.cells, self, strict=True):
            regret = run.regret
            for k in thin(len(regret), POINTS):
                yield (*self._name(cell), cell.seed, int(k) + 1, float(regret[k]), run.regret_is)

    def point(self, which: int, label: str) -> Point:
        """The place in a sweep of a model (0) or an agent (1)."""
        return self._points[which].get(label) or Point(label)

    def _coordinates(self, cell: Entry) -> dict[str, Cell]:
        return {**self.point(0, cell.model).values, **self.point(1, cell.agent).values}

    @cached_property
    def names(self) -> list[str]:
        """The columns that tell models and agents apart; `episodes` is a column of every run."""
        return ["model", "agent", *(name for name in self.parameters if name != EPISODES)]

    def _name(self, cell: Entry) -> list[Cell]:
        told = self._coordinates(cell)
        bases = [self.point(0, cell.model).base, self.point(1, cell.agent).base]
        return [*bases, *(told.get(name, "") for name in self.names[2:])]

    @cached_property
    def _firsts(self) -> dict[str, float | None]:
        """Of each model the lowest value of a first policy, where the gain starts."""
        found: dict[str, float | None] = dict.fromkeys(self.models)
        for cell, (first, _) in zip(self.cells, self._read, strict=True):
            before = found[cell.model]
            if not np.isnan(first):
                found[cell.model] = first if before is None else min(before, first)
        return found

    @property
    def _rows(self) -> list[tuple[Any, ...]]:
        return [row for _, row in self._read]

    @cached_property
    def _read(self) -> list[tuple[float, tuple[Any, ...]]]:
        """The first value and the row of every run, which is read once for all of them."""
        return [
            (
                float(run.policy_values[0]),
                (
                    *self._name(cell),
                    cell.seed,
                    len(run.returns),
                    str(run.config.get("replan", "")),
                    run.optimal_value,
                    regret := float(run.regret[-1]),
                    run.regret_is,
                    run.optimal_value - regret / len(run.returns),
                    float(run.policy_values[-1]),
                    -1 if run.violations is None else run.violations,
                    run.guarantee,
                    run.seconds,
                ),
            )
            for cell, run in zip(self.cells, self, strict=True)
        ]

    @property
    def least_episodes(self) -> int:
        """Of the shortest run."""
        return min(int(row[len(self.names) + 1]) for row in self._rows)


def _find_size_faults(name: str, size: Any) -> list[str]:
    if isinstance(size, list | tuple) and len(size) == 2:
        return [fault for one in size for fault in number(name, one, above=True)]
    return [f"{name} is {size!r}; expected (width, height) in inches"]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | set) else [value]


def load_results(folder: str | Path, *, partial: bool = False) -> Results:
    """The results in the folder of an experiment; partial: also where some runs are missing.

    >>> import pkd, tempfile
    >>> from pkd.tables.coin import coin
    >>> folder = tempfile.mkdtemp()
    >>> made = pkd.experiment({"coin": coin}, ["greedy"], 100, seeds=2, folder=folder)
    >>> pkd.load_results(folder)[1].regret[-1] == made[1].regret[-1]
    np.True_
    """
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
    models, agents = (
        {label: Point(*point) for label, point in one.items()}
        for one in store.listed().get("points", ({}, {}))
    )
    return Results(cells, lambda i: store.read(found[i]["key"]), models, agents)


def _make_line(runs: list[Run], first: float | None) -> tuple[Cell, ...]:
    """Means over the seeds, and the median of the episodes to the goal, as HEADERS says.

    first: where the gain starts.
    """
    regrets = mean_interval(np.array([run.regret[-1] for run in runs]))
    episodes, optimum = len(runs[0].returns), runs[0].optimal_value
    exact = all(run.regret_is == "exact" for run in runs)
    violations = [run.violations for run in runs]
    reached: Cell = ""
    if exact and first is not None:
        middle = plain_statistics.median(run.episodes_to(GOAL, first) or np.inf for run in runs)
        reached = (
            f"> {episodes}" if middle == np.inf else int(middle) if middle % 1 == 0 else middle
        )
    return (
        str(runs[0].config.get("replan", "")),
        optimum - float(regrets.value) / episodes,
        float(np.mean([run.policy_values[-1] for run in runs])) if exact else "",
        say_mean(regrets),
        "exact" if exact else "estimated",
        reached,
        "" if None in violations else sum(number or 0 for number in violations),
        runs[0].guarantee,
        round(float(np.mean([run.seconds for run in runs])), 3),
    )
