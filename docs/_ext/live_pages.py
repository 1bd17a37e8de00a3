"""Directives whose text comes from the code itself, so that a page cannot fall behind it.

`command-help` is the help of `pkd` and of each of its commands, `check-catalogue` every check of `pkd.check_model` with what its docstring
says, `model-list` the registered models, and `paper-map` one part of docs/map.toml as a table.
"""

from __future__ import annotations

import inspect
import os
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

MAP = Path(__file__).parent.parent / "map.toml"


class Live(SphinxDirective):
    """A directive that writes Markdown."""

    def written(self) -> str:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(StringList(self.written().splitlines(), source=type(self).__name__), 0, section)
        return section.children


class CommandHelp(Live):
    def written(self) -> str:
        os.environ["COLUMNS"] = "100"  # argparse folds its lines to the terminal
        from pkd.cli import build_parser

        parser = build_parser()
        commands = next(action.choices for action in parser._actions if action.dest == "command")
        parts = [f"```text\n{parser.format_help()}```"]
        parts += [f"**pkd {name}**\n\n```text\n{command.format_help()}```" for name, command in commands.items()]
        return "\n\n".join(parts)


class CheckCatalogue(Live):
    def written(self) -> str:
        from pkd.check import CHECKS

        lines = ["| check | what it says |", "|---|---|"]
        for check in CHECKS:
            sentence = " ".join((inspect.getdoc(check) or "").split("\n\n")[0].split()).replace("|", r"\|")
            lines.append(f"| `{check.__module__.rpartition('.')[2]}.{check.__name__}` | {sentence} |")
        return "\n".join(lines)


class ModelList(Live):
    def written(self) -> str:
        lines = ["| name | made by | what it is |", "|---|---|---|"]
        for entry in sorted(entry_points(group="pkd.models"), key=lambda entry: entry.name):
            summary = (inspect.getdoc(entry.load()) or "").split("\n\n")[0]
            text = " ".join(summary.split()).replace("|", r"\|")
            lines.append(f"| `{entry.name}` | `{entry.value}` | {text} |")
        return "\n".join(lines)


class PaperMap(Live):
    option_spec = {"part": directives.unchanged_required}  # noqa: RUF012 - docutils declares it so

    def written(self) -> str:
        self.env.note_dependency(str(MAP))
        lines = ["| in the paper | what it says | code | tests |", "|---|---|---|---|"]
        for item in tomllib.loads(MAP.read_text(encoding="utf-8"))["item"]:
            if item["part"] == self.options["part"]:
                lines.append(f"| {_named(item)} | {item['says']} | {_code(item)} | {_listed(item.get('tests', []))} |")
        return "\n".join(lines)


def _named(item: dict[str, Any]) -> str:
    return f"**{item['name']}** `{item['label']}`" if "label" in item else f"**{item['name']}**"


def _code(item: dict[str, Any]) -> str:
    return " ".join(part for part in (_listed(item.get("code", [])), item.get("why", "")) if part)


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command-help", CommandHelp)
    app.add_directive("check-catalogue", CheckCatalogue)
    app.add_directive("model-list", ModelList)
    app.add_directive("paper-map", PaperMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
