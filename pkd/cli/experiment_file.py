"""The experiment file: models, agents, seeds and outputs in TOML, checked as a whole.

    title = "Does a longer lead time make demand harder to learn?"
    episodes = 5000
    seeds = 10                              # or a list: [3, 5, 8]
    agents = ["certified", "mvp:c1=1,c2=1", { agent = "my_agents:QLearning", rate = 0.5 }]

    [[models]]
    model = "inventory"
    horizon = 20
    [models.options]
    lead_time = 2

    [outputs]
    folder = "out/inventory"

A key of a model is a long flag of the command line; a model may also be its words,
"inventory --horizon 20", or a table of them with a label, {label = "long", words = "..."}. A key of
an agent is one of its options; a rule with constants is a table,
{agent = "per_state", optimism = {rule = "mvp", c1 = 1.0}}. A rule may have its own `replan`. With
world = "words of another model" learners get the one model and play in the other.
[sweep] makes many models and agents: `pkd.experiments.sweep`. Every finding is in one error.
"""

from __future__ import annotations

import os
import shlex
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from pkd.cli.config import list_flags
from pkd.cli.output import PICTURES
from pkd.experiments.grid import Grid, make_grid, split_words
from pkd.model import ModelError
from pkd.problem import registered
from pkd.rules import RULES

__all__ = ["GROUP", "Outputs", "find_file", "list_files", "read_experiment"]

GROUP = "pkd.experiments"  # the entry-point group of packages that hold experiment files
REQUIRED = ("models", "agents", "episodes", "seeds")
PATHS = ("folder", "csv", "curves", "plot", "table")  # among the outputs
OPTIONAL = ("delta", "replan", "sweep", "outputs", "title")


@attrs.frozen
class Outputs:
    """Where results go, as a file says; None: nowhere."""

    folder: str | None = None
    csv: str | None = None
    curves: str | None = None
    plot: str | None = None
    table: str | None = None  # .tex or .md
    x: str | None = None  # the parameter of the table and the figure
    at: int | None = None  # their number of episodes
    split: str | None = None  # the parameter of panels


def read_experiment(path: Path) -> tuple[Grid, Outputs]:
    """The grid and the outputs of an experiment file; one ModelError names every finding."""
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ModelError(f"{path}: expected a TOML file: {problem}") from None
    known = (*REQUIRED, *OPTIONAL)
    findings = [f"{key} is missing" for key in REQUIRED if key not in entries]
    unknown = [key for key in entries if key not in known]
    findings += [f"{key}: expected one of {', '.join(known)}" for key in unknown]
    outputs = _read_outputs(entries.get("outputs", {}), findings)
    models = _read_list(path, entries, "models", _word_model, findings)
    agents = _read_list(path, entries, "agents", _word_agent, findings)
    title = entries.get("title", "")
    if not isinstance(title, str):
        findings.append(f"title: expected a text, found {title!r}")
    grid = None
    try:
        grid = make_grid(
            models,
            agents,
            entries.get("episodes", 1),
            entries.get("seeds", 1),
            delta=entries.get("delta", 0.05),
            replan=entries.get("replan", "doubling"),
            sweep=entries.get("sweep"),
        )
    except ModelError as problem:
        findings += [found for found in problem.findings if not _follows(found, models, agents)]
    if findings or grid is None:
        listed = "".join(f"\n  - {finding}" for finding in findings)
        raise ModelError(f"{path}: {len(findings)} findings{listed}")
    return attrs.evolve(grid, title=title), outputs


def list_files() -> dict[str, Path]:
    """The experiment files of installed packages by name."""
    found: dict[str, Path] = {}
    for point in registered(GROUP).values():
        folder = Path(str(resources.files(point.value)))
        found |= {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return found


def find_file(word: str) -> Path:
    """The file that a user's word stands for: a path, or the name of an installed one."""
    path = Path(word)
    if path.is_file():
        return path
    installed = list_files()
    if word in installed:
        return installed[word]
    raise ModelError(
        f"there is no experiment file {word}; expected a path, or one of {', '.join(installed)}"
    )


def _read_list(
    path: Path, entries: dict[str, Any], key: str, read: Any, findings: list[str]
) -> list[Any]:
    """The models or agents in words, or in tables that `make_grid` takes."""
    given = entries.get(key, [])
    made: list[Any] = []
    for place, one in enumerate(given if isinstance(given, list) else [given], 1):
        try:
            if isinstance(one, str):
                made.append(one)
            elif isinstance(one, dict):
                table = dict(one)
                label = table.pop("label", None)
                if key == "agents" and isinstance(table.get("words"), str):
                    table["agent"] = table.pop("words")
                whole = isinstance(table.get("words"), str) and len(table) == 1
                words = table["words"] if whole else read(str(path), table)
                made.append(words if label is None else {str(label): words})
            else:
                raise ModelError(f"expected words or a table, found {one!r}")
        except ModelError as problem:
            where = f"{key.removesuffix('s')} {place}"
            findings.extend(f"{where}: {finding}" for finding in problem.findings)
    return made


def _word_model(path: str, table: dict[str, Any]) -> Any:
    if not isinstance(table.get("model"), str):
        raise ModelError("a table of a model needs model = NAME")
    name = table.pop("model")
    world = table.pop("world", None)
    if world is not None:
        return {"model": _word_model(path, {"model": name, **table}), "world": world}
    if isinstance(table.get("options", {}).get("seed"), list):
        raise ModelError(
            f"seed = {table['options']['seed']} is one seed that is a list; for an instance of "
            "each write it into [sweep]"
        )
    return shlex.join([*shlex.split(name), *list_flags(path, table)])


def _word_agent(path: str, table: dict[str, Any]) -> str | dict[str, str]:
    if not isinstance(table.get("agent"), str):
        raise ModelError("a table of an agent needs agent = NAME")
    name = table.pop("agent")
    rule = split_words(name)[0].lower() in RULES
    replan = table.pop("replan", None) if rule else None
    options = {**table.pop("options", {}), **table}
    words = ",".join(f"{key}={_say(value)}" for key, value in options.items())
    words = f"{name}{',' if split_words(name)[1] else ':'}{words}" if words else name
    return words if replan is None else {"agent": words, "replan": replan}


def _say(value: Any) -> str:
    """A value as an option of an agent: a list is a tuple, and a table is a mapping."""
    if not isinstance(value, list | dict):
        return str(value)
    return repr(tuple(value) if isinstance(value, list) else value).replace(" ", "")


def _read_outputs(given: Any, findings: list[str]) -> Outputs:
    names = [field.name for field in attrs.fields(Outputs)]
    if not isinstance(given, dict) or not set(given) <= set(names):
        findings.append(f"outputs: expected a table with {', '.join(names)}, found {given!r}")
        return Outputs()
    findings += [
        f"outputs: {key}: expected a {'number' if key == 'at' else 'text'}, found {value!r}"
        for key, value in given.items()
        if type(value) is not (int if key == "at" else str)
    ]
    for key, value in given.items():
        if key in PATHS and isinstance(value, str):
            findings += _find_unwritable(key, Path(value))
    return Outputs(**given)


def _find_unwritable(key: str, path: Path) -> list[str]:
    """What would keep a long experiment from writing at its end."""
    if key == "plot" and path.suffix[1:] not in PICTURES:
        return [f"outputs: plot: {path} ends in none of {', '.join(PICTURES)}"]
    above = next((one for one in (path, *path.parents) if one.exists() or one.is_symlink()), path)
    fits = above.is_file() if above == path and key != "folder" else above.is_dir()
    if fits and os.access(above, os.W_OK):
        return []
    return [f"outputs: {key}: {path} cannot be written, because of {above}"]


def _follows(finding: str, models: Any, agents: Any) -> bool:
    """Whether a finding only says that a list is empty, of which the reason is named already."""
    return (not models and finding.startswith("there is no model;")) or (
        not agents and finding.startswith("there is no agent;")
    )
