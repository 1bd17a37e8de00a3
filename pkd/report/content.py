"""What a page is about: chapters of models, and in each the runs of every agent.

Runs that differ only in their seed are one group: one line of the table, one line of the figure.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from pkd.experiments.results import Results, load_results
from pkd.experiments.store import Store
from pkd.results.run import Run

__all__ = ["Chapter", "Content", "Group", "read_folder", "read_runs"]

MOST_CHAPTERS = 12  # models that have a figure and a description each


@attrs.frozen(eq=False)
class Group:
    """Runs of one agent on one model; they differ in their seeds."""

    agent: str
    runs: Sequence[Run]
    files: Sequence[str]

    @property
    def regrets(self) -> list[float]:
        """At the end, by run."""
        return [float(run.regret[-1]) for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        return [run.seed for run in self.runs]


@attrs.frozen(eq=False)
class Chapter:
    """One model."""

    model: str
    words: tuple[str, ...]  # of the command line, from which it can be built again; may be empty
    groups: Sequence[Group]

    @property
    def optimum(self) -> float:
        return self.groups[0].runs[0].optimal_value

    @property
    def first_value(self) -> float | None:
        """The lowest value of a first policy, where the gain starts; None: no agent shows one."""
        firsts = [float(run.policy_values[0]) for group in self.groups for run in group.runs]
        return min((value for value in firsts if not np.isnan(value)), default=None)


@attrs.frozen(eq=False)
class Content:
    """Everything that a page shows."""

    question: str
    chapters: Sequence[Chapter]
    rerun: str  # commands
    file: str = ""  # an experiment file that makes the same grid; empty for saved runs
    missing: int = 0  # runs of the grid that are not there
    results: Results | None = None  # of many models or a sweep, which are shown together

    @property
    def runs(self) -> Sequence[Run]:
        groups = [group for chapter in self.chapters for group in chapter.groups]
        return [run for group in groups for run in group.runs]


def read_folder(folder: str | Path) -> Content:
    """The experiment in a folder, as far as it is computed.

    More models than `MOST_CHAPTERS` have no chapters of their own.
    """
    listed, results = Store(folder).listed(), load_results(folder, partial=True)
    chapters = []
    for model in results.models if len(results.models) <= MOST_CHAPTERS else ():
        groups = []
        for agent in results.select(model).agents:
            runs = results.runs(model, agent)
            groups.append(Group(agent, runs, [""] * len(runs)))
        chapters.append(Chapter(model, tuple(shlex.split(listed["models"][model] or "")), groups))
    return Content(
        listed.get("title") or _ask(results.models),
        chapters,
        f"pkd experiment experiment.toml --folder {shlex.quote(str(folder))}",
        _write_file(listed),
        len(listed["runs"]) - len(results),
        results if results.parameters or not chapters else None,
    )


def read_runs(runs: Mapping[str, Run]) -> Content:
    """Saved runs, by the names of their files."""
    groups: dict[str, tuple[list[Run], list[str]]] = {}
    for name, run in runs.items():
        told = [run.model_words, {**run.config, "seed": None}, run.optimal_value]
        # A run that was not saved may have a NumPy number as its seed.
        key = json.dumps(told, sort_keys=True, default=str)
        found = groups.setdefault(key, ([], []))
        found[0].append(run)
        found[1].append(name)
    models: dict[tuple[str, float], list[Group]] = {}
    for group, files in groups.values():
        name = " ".join(group[0].model_words) or group[0].model
        chapter = models.setdefault((name, group[0].optimal_value), [])
        chapter.append(Group(group[0].label, group, files))
    chapters = []
    for (name, _), agents in models.items():
        chapters.append(Chapter(name, agents[0].runs[0].model_words, _tell_apart(agents)))
    return Content(
        _ask(chapter.model for chapter in chapters), chapters, f"pkd verify {shlex.join(runs)}"
    )


def _ask(models: Iterable[str]) -> str:
    """The question of a page that was given none."""
    found = list(dict.fromkeys(models))
    more = f" and {len(found) - 3} more" if len(found) > 4 else ""
    return f"How much regret on {', '.join(found[:3] if more else found)}{more}?"


def _tell_apart(groups: list[Group]) -> list[Group]:
    """Adds a number to names that occur twice."""
    times = Counter(group.agent for group in groups)
    return [
        attrs.evolve(group, agent=f"{group.agent} ({i})") if times[group.agent] > 1 else group
        for i, group in enumerate(groups, start=1)
    ]


def _write_file(listed: Mapping[str, Any]) -> str:
    """The experiment file of the grid, as far as words can say it."""
    lines = [f"title = {json.dumps(listed['title'])}"] if listed.get("title") else []
    lines += [f"{key} = {json.dumps(listed[key])}" for key in ("episodes", "seeds", "delta")]
    lines.append(f"replan = {json.dumps(listed['replan'])}")
    told = listed.get("file", {})
    if told.get("sweep"):
        lines.append(f"sweep = {_say_toml(told['sweep'])}")
    for key in ("models", "agents"):
        for entry in told.get(key, ()):
            lines += ["", f"[[{key}]]"]
            lines += [f"{k} = {json.dumps(v)}" for k, v in entry.items() if v is not None]
            if not entry["words"] and not entry.get("world"):
                lines.append("# it was given as an object of Python, which words cannot say")
    return "\n".join(lines) + "\n"


def _say_toml(value: Any) -> str:
    """A value in TOML, tables in one line."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{json.dumps(k)} = {_say_toml(v)}' for k, v in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_say_toml, value))}]"
    return json.dumps(value)
