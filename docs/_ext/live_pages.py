"""Directives whose text comes from the code, so that a page is never out of date.

`command-help` is the help of `pkd` and of each of its commands. `check-catalogue` lists every check
of `pkd.check_model` with its docstring. `model-list` lists the registered models. `paper-map` is
one part of docs/map.toml.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from abc import ABC, abstractmethod
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from pkd.rules import RULES

MAP = Path(__file__).parent.parent / "map.toml"


class Live(SphinxDirective, ABC):
    """A directive that writes Markdown."""

    @abstractmethod
    def written(self) -> str:
        """What stands in its place."""

    def run(self) -> list[nodes.Node]:
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(
            StringList(self.written().splitlines(), source=type(self).__name__), 0, section
        )
        return section.children


class CommandHelp(Live):
    def written(self) -> str:
        os.environ["COLUMNS"] = "100"  # argparse folds its lines to the terminal
        from pkd.cli import build_parser
        from pkd.cli.commands import list_commands

        parts = [f"```text\n{build_parser().format_help()}```"]
        for name in list_commands():
            parser = build_parser(name)
            commands = next(a.choices for a in parser._actions if a.dest == "command")
            parts.append(f"**pkd {name}**\n\n```text\n{commands[name].format_all()}```")
        return "\n\n".join(parts)


class CheckCatalogue(Live):
    def written(self) -> str:
        from pkd.check import CHECKS

        lines = ["| check | what it says |", "|---|---|"]
        for check in CHECKS:
            sentence = " ".join((inspect.getdoc(check) or "").split("\n\n")[0].split()).replace(
                "|", r"\|"
            )
            lines.append(
                f"| `{check.__module__.rpartition('.')[2]}.{check.__name__}` | {sentence} |"
            )
        return "\n".join(lines)


class ModelList(Live):
    def written(self) -> str:
        lines = ["| name | made by | what it is |", "|---|---|---|"]
        for entry in sorted(entry_points(group="pkd.models"), key=lambda entry: entry.name):
            summary = (inspect.getdoc(entry.load()) or "").split("\n\n")[0]
            text = " ".join(summary.split()).replace("|", r"\|")
            lines.append(f"| `{entry.name}` | `{entry.value}` | {text} |")
        return "\n".join(lines)


class ModelGallery(Live):
    """Each registered model with a picture of its optimal policy, drawn for the pages."""

    def written(self) -> str:
        folder = Path(self.env.srcdir) / "_gallery"
        folder.mkdir(exist_ok=True)
        parts = []
        for entry in sorted(entry_points(group="pkd.models"), key=lambda entry: entry.name):
            name, summary = entry.name, _summarise(entry.load())
            draw_model(name, folder / f"{name}.png")
            alt = f"What the optimal policy of the model {name} does"
            parts.append(
                f"## {name}\n\n{summary}\n\n![{alt}](/_gallery/{name}.png)\n\n"
                f"```text\npkd plan {name}\npkd learn {name} --episodes 1000\n```"
            )
        return "\n\n".join(parts)


def _summarise(factory: Any) -> str:
    return " ".join((inspect.getdoc(factory) or "").split("\n\n")[0].split()).replace("|", r"\|")


def draw_model(name: str, path: Path) -> None:
    """The picture that `pkd plan NAME --plot` draws."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    import pkd
    from pkd.cli.plan import draw
    from pkd.words.models import find_words

    found = find_words([name])
    figure = draw(found, pkd.plan(found.model, found.with_law()))
    figure.savefig(path, dpi=80)
    plt.close(figure)


class RuleList(Live):
    def written(self) -> str:
        lines = ["| rule | class | constants |", "|---|---|---|"]
        for word, (kind, constants) in RULES.items():
            said = ", ".join(f"`{name}={value}`" for name, value in constants.items())
            lines.append(f"| `{word}` | `{kind.__name__}` | {said or 'its defaults'} |")
        return "\n".join(lines)


class PaperMap(Live):
    option_spec = {"part": directives.unchanged_required}  # noqa: RUF012 - docutils declares it so

    def written(self) -> str:
        self.env.note_dependency(str(MAP))
        items = tomllib.loads(MAP.read_text(encoding="utf-8"))["item"]
        return "\n\n".join(_entry(item) for item in items if item["part"] == self.options["part"])


def _entry(item: dict[str, Any]) -> str:
    """One item as an entry of a definition list; names that the reference knows become links."""
    label = f" `{item['label']}`" if "label" in item else ""
    code = (
        "Code: " + ", ".join(f"{{py:obj}}`{name}`" for name in item["code"]) + "."
        if "code" in item
        else ""
    )
    tests = (
        "Tests: " + ", ".join(f"`{name.removeprefix('tests/')}`" for name in item["tests"]) + "."
        if "tests" in item
        else ""
    )
    said = item["says"][0].upper() + item["says"][1:] + "."
    return "\n".join(
        [
            f"{item['name']}{label}",
            *(f": {line}\n" for line in (said, item.get("why", ""), code, tests) if line),
        ]
    )


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    app.add_directive("check-catalogue", CheckCatalogue)
    app.add_directive("model-list", ModelList)
    app.add_directive("rule-list", RuleList)
    app.add_directive("model-gallery", ModelGallery)
    app.add_directive("paper-map", PaperMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
