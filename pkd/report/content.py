"""What a page is about: chapters of models, and in each the runs of every agent.

A saved `Run` and a `Record` of an experiment have the same arrays, so one form holds both. Runs
that differ only in their seed are one group: one line of the table, one line of the figure.
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

from pkd.experiments.record import Record
from pkd.experiments.results import load_results
from pkd.experiments.store import Store
from pkd.results.run import Run

__all__ = ["Chapter", "Content", "Group", "read_folder", "read_runs"]


@attrs.frozen(eq=False)
class Group:
    """Runs of one agent on one model; they differ in their seeds."""

    agent: str
    runs: Sequence[Run | Record]
    files: Sequence[str]

    @property
    def exact(self) -> bool:
        """Whether the value of every policy is known."""
        return not any(np.isnan(run.policy_values).any() for run in self.runs)

    @property
    def regrets(self) -> list[float]:
        """At the end, by run."""
        return [float(run.regret[-1]) for run in self.runs]

    @property
    def seeds(self) -> list[int]:
        return [int(run.config["seed"]) for run in self.runs]

    @property
    def label(self) -> str:
        """The agent, and what is guaranteed if its name does not say so."""
        guarantee = self.runs[0].guarantee
        return self.agent if guarantee in self.agent.lower() else f"{self.agent}, {guarantee}"


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
    def episodes(self) -> int:
        """Of the longest run."""
        return max(len(run.returns) for group in self.groups for run in group.runs)

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

    @property
    def runs(self) -> list[Run | Record]:
        groups = [group for chapter in self.chapters for group in chapter.groups]
        return [run for group in groups for run in group.runs]


def read_folder(folder: str | Path) -> Content:
    """The experiment in a folder, as far as it is computed."""
    listed, results = Store(folder).listed(), load_results(folder, partial=True)
    there: dict[tuple[str, str], list[Record]] = {}
    for cell, record in zip(results.cells, results, strict=True):
        there.setdefault((cell.model, cell.agent), []).append(record)
    chapters = []
    for model, words in listed["models"].items():
        groups = [
            Group(agent, there[model, agent], [""] * len(there[model, agent]))
            for agent in listed["agents"]
            if (model, agent) in there
        ]
        if groups:
            chapters.append(Chapter(model, tuple(shlex.split(words or "")), groups))
    return Content(
        listed.get("title") or _ask(chapters),
        chapters,
        f"pkd experiment experiment.toml --folder {shlex.quote(str(folder))}",
        _write_file(listed),
        len(listed["runs"]) - len(results),
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
        chapter = models.setdefault((_name_model(group[0]), group[0].optimal_value), [])
        chapter.append(Group(group[0].label, group, files))
    chapters = []
    for (name, _), agents in models.items():
        words = agents[0].runs[0].model_words  # type: ignore[union-attr]
        chapters.append(Chapter(name, tuple(words), _tell_apart(agents)))
    return Content(_ask(chapters), chapters, f"pkd verify {shlex.join(runs)}")


def _ask(chapters: Iterable[Chapter]) -> str:
    """The question of a page that was given none."""
    models = list(dict.fromkeys(chapter.model for chapter in chapters))
    return f"How much regret on {', '.join(models)}?"


def _name_model(run: Run) -> str:
    return " ".join(run.model_words) or str(run.config["model"]).lstrip("_")


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
    for key in ("models", "agents"):
        for label, words in listed[key].items():
            lines += ["", f"[[{key}]]", f"label = {json.dumps(label)}"]
            if words:
                lines.append(f"words = {json.dumps(words)}")
            else:
                lines.append("# it was given as an object of Python, which words cannot say")
    return "\n".join(lines) + "\n"
