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
{agent = "per_state", optimism = {rule = "mvp", c1 = 1.0}}. Every finding is in one error.
"""

from __future__ import annotations

import shlex
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import attrs

from pkd.cli.config import list_flags
from pkd.experiments.spec import Grid, Named, make_grid
from pkd.model import ModelError
from pkd.problem import registered

__all__ = ["GROUP", "Outputs", "find_file", "list_files", "read_experiment"]

GROUP = "pkd.experiments"  # the entry-point group of packages that hold experiment files
REQUIRED = ("models", "agents", "episodes", "seeds")
OPTIONAL = ("delta", "replan", "outputs", "title")


@attrs.frozen
class Outputs:
    """Where results go, as a file says; None: nowhere."""

    folder: str | None = None
    csv: str | None = None
    curves: str | None = None
    plot: str | None = None


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
) -> list[Named]:
    """The models or agents in words, with the labels that they have."""
    given = entries.get(key, [])
    made = []
    for place, one in enumerate(given if isinstance(given, list) else [given], 1):
        try:
            if isinstance(one, str):
                made.append(Named(None, one))
            elif isinstance(one, dict):
                table = dict(one)
                label = table.pop("label", None)
                whole = isinstance(table.get("words"), str) and len(table) == 1
                words = table["words"] if whole else read(str(path), table)
                made.append(Named(None if label is None else str(label), words))
            else:
                raise ModelError(f"expected words or a table, found {one!r}")
        except ModelError as problem:
            where = f"{key.removesuffix('s')} {place}"
            findings.extend(f"{where}: {finding}" for finding in problem.findings)
    return made


def _word_model(path: str, table: dict[str, Any]) -> str:
    if not isinstance(table.get("model"), str):
        raise ModelError("a table of a model needs model = NAME")
    name = table.pop("model")
    return shlex.join([name, *list_flags(path, table)])


def _word_agent(path: str, table: dict[str, Any]) -> str:
    if not isinstance(table.get("agent"), str):
        raise ModelError("a table of an agent needs agent = NAME")
    name = table.pop("agent")
    options = {**table.pop("options", {}), **table}
    words = ",".join(f"{key}={_say(value)}" for key, value in options.items())
    return f"{name}:{words}" if words else name


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
        f"outputs: {key}: expected a path, found {value!r}"
        for key, value in given.items()
        if not isinstance(value, str)
    ]
    return Outputs(**given)


def _follows(finding: str, models: Any, agents: Any) -> bool:
    """Whether a finding only says that a list is empty, of which the reason is named already."""
    return (not models and finding.startswith("there is no model;")) or (
        not agents and finding.startswith("there is no agent;")
    )
