"""Regret against a parameter: lines with intervals over instances or seeds, and slopes.

An interval is over the values of `instance`, the draws of a model, where a sweep has three or more
of them. Each is one number, the mean of its seeds and of all other parameters: models of one draw
are not independent. Without such draws an interval is over settings, the combinations of the other
parameters, if there are three or more, else over seeds, of which each is the mean of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.expect import if_given, key, require, whole
from pkd.experiments.sweep import INSTANCE, Cell, Point
from pkd.model import ModelError
from pkd.show.intervals import FEWEST, Interval, mean_interval
from pkd.show.plots import Line, choose_styles

if TYPE_CHECKING:
    from pkd.experiments.results import Results

__all__ = ["EPISODES", "Bounds", "find_lines", "find_slopes"]

EPISODES = "episodes"
AXES = (EPISODES, "model", "agent")  # beside the parameters
ROUND = (1, 2, 5)  # times powers of 10: numbers of episodes on an axis that is no sweep
Bounds = Mapping[str, Callable[[float], float]]
Unit = dict[int, list[float]]  # seed: regrets, of an instance or a setting
Table = dict[Cell, dict[str, Unit]]  # value of x: name of a unit: unit


def find_lines(
    results: Results, x: str, at: int | None = None, bounds: Bounds | None = None
) -> dict[str, Line]:
    """Regret after `at` episodes against x, as `Results.plot` draws it: a line for each agent."""
    lines = {}
    cuts = _cut(results, x, at)
    styles = choose_styles(results.models) if x == "agent" else results.styles
    for name, (cells, values, table) in cuts.items():
        style = styles.get(name) or styles[results.cells[cells[0]].agent]
        found = [_average(table[value]) for value in values]
        joined = Interval(*(np.array(part) for part in zip(*found, strict=True)))
        what = results.find_units(x) if len(table[values[0]]) >= FEWEST else "seeds"
        units = min(len(_find_units(table[value])) for value in values)
        lines[name] = Line(list(values), joined, units, what, style)
    if bounds:
        lines["bound"] = _bound(results, x, at, bounds)
    return lines


def find_slopes(results: Results, x: str, at: int | None = None) -> dict[str, Interval]:
    """The slope of log regret over log x of each agent, by least squares, with its interval.

    A unit in which an agent never loses anything has no slope and is left out.
    """
    found = {}
    for name, (_, values, table) in _cut(results, x, at).items():
        if not all(isinstance(v, int | float) and v > 0 for v in values) or len(values) < 2:
            raise ModelError(f"a slope needs two positive values of {x}; found {list(values)}")
        rows = [_find_units(table[value]) for value in values]
        units = [unit for unit in rows[0] if all(unit in row for row in rows)]
        points = np.array([[row[unit] for unit in units] for row in rows])
        points = points[:, points.any(axis=0)]
        if not points.size or not (points > 0).all():
            raise ModelError(f"a slope needs positive regret; {name} has none somewhere")
        logs = np.log(np.array(values, float))
        found[name] = mean_interval(np.polyfit(logs, np.log(points), 1)[0])
    return found


def _cut(
    results: Results, x: str, at: int | None
) -> dict[str, tuple[list[int], list[Cell], Table]]:
    """For each line: its runs, the values of x, and the table."""
    require(key("x", x), if_given(whole, "at", at, 1, results.least_episodes))
    swept = x in results.parameters
    if not swept and x not in AXES:
        raise ModelError(f"x is {x!r}; expected one of {', '.join([*results.parameters, *AXES])}")
    ats: list[int] = []
    if not swept and x == EPISODES:
        ats = _choose_lengths(at or results.least_episodes)
    regrets, drawn = results.regrets(ats or at), results.find_units(x) == "instances"
    lines: dict[str, tuple[list[int], list[Cell], Table]] = {}
    for i, cell in enumerate(results.cells):
        model, agent = results.point(0, cell.model), results.point(1, cell.agent)
        if swept and x not in {**model.values, **agent.values}:
            continue
        told = {**model.values, **agent.values, "model": cell.model, "agent": cell.agent}
        name = cell.model if x == "agent" else _join(agent, x)
        unit = "" if x in ("model", "agent") else _join(model, x)
        if unit and drawn:
            unit = f"{model.base} {model.values.get(INSTANCE)}"
        runs, values, table = lines.setdefault(name, ([], [], {}))
        runs.append(i)
        for j, value in enumerate(ats or [told[x]]):
            if value not in table:
                values.append(value)
            regret = float(regrets[i, j] if ats else regrets[i])
            seeds = table.setdefault(value, {}).setdefault(unit, {})
            seeds.setdefault(cell.seed, []).append(regret)
    for _, values, _ in lines.values():
        if all(isinstance(value, int | float) for value in values):
            values.sort()
    return lines


def _bound(results: Results, x: str, at: int | None, bounds: Bounds) -> Line:
    """The mean of the bounds of the models of each value."""
    found: dict[Cell, list[float]] = {}
    for name in results.models:
        point = results.point(0, name).values
        if x == EPISODES and x not in point:
            for k in _choose_lengths(at or results.least_episodes):
                found.setdefault(k, []).append(float(bounds[name](k)))
        elif x in point:
            episodes = int(point.get(EPISODES, at or results.least_episodes))
            found.setdefault(point[x], []).append(float(bounds[name](episodes)))
    means = np.array([np.mean(values) for values in found.values()])
    style = {"color": "0.5", "linestyle": "--"}
    return Line(list(found), Interval(means, means * np.nan, means * np.nan), 0, "", style)


def _choose_lengths(last: int) -> list[int]:
    """Round numbers from a hundredth of the last one on, and the last one.

    >>> _choose_lengths(4000)
    [50, 100, 200, 500, 1000, 2000, 4000]
    """
    found = [digit * 10**power for power in range(len(str(last))) for digit in ROUND]
    return [*(k for k in found if last / 100 <= k < last), last]


def _join(point: Point, x: str) -> str:
    """The label without the parameter x."""
    rest = (f" {key}={value}" for key, value in point.values.items() if key != x)
    return point.base + "".join(rest)


def _find_units(units: Mapping[str, Unit]) -> dict[Any, float]:
    """What an interval is over: of three units or more their means, else means by seed."""
    if len(units) >= FEWEST:
        return {
            name: float(np.mean(np.concatenate(list(unit.values()))))
            for name, unit in units.items()
        }
    rows = list(units.values())
    seeds = [seed for seed in rows[0] if all(seed in row for row in rows)]
    return {seed: float(np.mean([np.mean(row[seed]) for row in rows])) for seed in seeds}


def _average(units: Mapping[str, Unit]) -> Interval:
    return mean_interval(np.array(list(_find_units(units).values())))
