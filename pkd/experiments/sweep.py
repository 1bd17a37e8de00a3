"""A sweep: values of flags and options, of which every combination is a model or an agent.

    [sweep]
    states = [4, 8, 16]                 # an option, or a flag, of every model
    horizon = [5, 10]
    seed = [0, 1, 2]                    # of models: the column `instance`
    episodes = [1000, 4000]             # of the runs
    [sweep.shape]                       # names, each of which sets several
    narrow = { actions = 2, successors = 1 }
    wide = { actions = 4, successors = 3 }
    [sweep.agents]
    c1 = [0.5, 1.0]                     # of every agent that has it
    replan = ["doubling", "every"]

Each key is a parameter of a run: a column of every table, and an axis of figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, product
from typing import Any, TypeVar

import attrs

from pkd.model import ModelError
from pkd.problem import parse_options

__all__ = ["INSTANCE", "Cell", "Point", "Sweep", "read_sweep", "spread"]

Cell = str | int | float
Over = Mapping[str, Mapping[Cell, Mapping[str, Any]]]  # parameter: value: what it sets
Spec = TypeVar("Spec", bound=Any)
INSTANCE = "instance"  # the parameter whose values are draws of a model
NAMES = {"seed": INSTANCE}  # the seed of a run has that column already


@attrs.frozen
class Point:
    """The place of a model or an agent in a sweep."""

    base: str = ""  # its label without the sweep
    values: Mapping[str, Cell] = attrs.field(factory=dict)  # of the parameters


@attrs.frozen
class Sweep:
    """What is swept of models, and of agents."""

    models: Over = attrs.field(factory=dict)
    agents: Over = attrs.field(factory=dict)


def read_sweep(given: Mapping[str, Any]) -> Sweep:
    """A sweep as a file or a call says it; one ModelError names every finding.

    >>> read_sweep({"seed": [0, 1]}).models
    {'instance': {0: {'seed': 0}, 1: {'seed': 1}}}
    """
    findings: list[str] = []

    def read(entries: Any, where: str) -> dict[str, dict[Cell, dict[str, Any]]]:
        found: dict[str, dict[Cell, dict[str, Any]]] = {}
        for key, values in entries.items() if isinstance(entries, Mapping) else ():
            if isinstance(values, Mapping):
                rows = {_number(name): told for name, told in values.items()}
                fits = all(isinstance(told, Mapping) for told in rows.values())
            else:
                listed = list(values) if isinstance(values, list | tuple | range) else []
                rows = {_name(value): {key: value} for value in listed}
                fits = len(rows) == len(listed)
            if not rows or not fits:
                findings.append(
                    f"[{where}] {key} is {values!r}; expected a list of different values, or a "
                    "table of names with what each of them sets"
                )
            found[NAMES.get(str(key), str(key))] = rows
        return found

    agents = given.get("agents", {}) if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(agents, Mapping):
        raise ModelError(f"sweep is {given!r}; expected a table of parameters and their values")
    models = {key: values for key, values in given.items() if key != "agents"}
    sweep = Sweep(read(models, "sweep"), read(agents, "sweep.agents"))
    for name in sweep.models.keys() & sweep.agents.keys():
        findings.append(f"[sweep] {name} is a parameter of models and of agents; rename one")
    if findings:
        raise ModelError(findings)
    return sweep


def spread(read: Callable[[Mapping[str, Any]], Spec], over: Over) -> list[Spec]:
    """What `read` makes at every point of a sweep, without the parameters that it does not take.

    read: {flag or option: value} -> a model or an agent with a label.
    """
    taken = _find_taken(read, over)
    base = _find_base(read)
    made = []
    for chosen in product(*(over[name].items() for name in taken)):
        values = dict(zip(taken, (value for value, _ in chosen), strict=True))
        spec = read({key: one for _, told in chosen for key, one in told.items()})
        label = base or spec.label
        said = "".join(f" {name}={value}" for name, value in values.items())
        made.append(attrs.evolve(spec, label=label + said, point=Point(label, values)))
    return made


def _find_taken(read: Callable[[Mapping[str, Any]], Any], over: Over) -> tuple[str, ...]:
    """The most parameters whose first values are taken together."""
    first = None
    for count in range(len(over), -1, -1):
        for names in combinations(over, count):
            values = [next(iter(over[name].values())) for name in names]
            try:
                read({key: one for told in values for key, one in told.items()})
                return names
            except ModelError as problem:
                first = first or problem
    assert first is not None
    raise first


def _find_base(read: Callable[[Mapping[str, Any]], Any]) -> str:
    """The label without the sweep; "" if it is nothing without it."""
    try:
        return str(read({}).label)
    except ModelError:
        return ""


def _name(value: Any) -> Cell:
    return value if isinstance(value, str | int | float) else str(value).replace(" ", "")


def _number(name: str) -> Cell:
    value = parse_options([f"it={name}"])["it"]
    return value if isinstance(value, int | float) else name
