"""How results are shown: aligned tables for people, CSV for programs, figures for papers."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd.model import ModelError
from pkd.show.saving import PICTURES, save_figure
from pkd.show.tables import Cell
from pkd.show.tables import format_table as table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PICTURES",
    "Cell",
    "draw_file",
    "make_records",
    "print_json",
    "save_figure",
    "table",
    "write_csv",
    "write_files",
    "write_findings",
]


def print_json(told: Any) -> None:
    """Prints a result as JSON: numbers are numbers, and what is no finite number is null."""
    print(json.dumps(_make_plain(told), indent=1, allow_nan=False))


def make_records(
    headers: Sequence[str], rows: Iterable[Sequence[Cell | None]]
) -> list[dict[str, Any]]:
    """The rows of a table for JSON; a blank cell is null.

    >>> make_records(["optimal value", "if ignored"], [(1.5, "")])
    [{'optimal_value': 1.5, 'if_ignored': None}]
    """
    keys = [re.sub(r"[^a-z0-9]+", "_", header.lower()).strip("_") for header in headers]
    return [
        {k: None if cell == "" else cell for k, cell in zip(keys, row, strict=True)} for row in rows
    ]


def _make_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _make_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def write_csv(path: str | Path, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Writes all rows with all digits, whole or not at all."""
    from pkd.files.atomic import write_csv as write

    write(path, headers, rows)


def write_files(
    csv: Path | None,
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    plot: Path | None,
    draw: Callable[[], Figure],
) -> None:
    """Writes the table and the figure that were asked for.

    A figure that fails does not take back the table; the error says that it is there.
    """
    if csv is not None:
        write_csv(csv, headers, rows)
    draw_file(plot, draw, csv)


def write_findings(
    path: Path | None,
    typed: Sequence[str],
    title: str,
    said: Iterable[str],
    tables: Iterable[tuple[str, Sequence[str], Iterable[Sequence[Cell]]]] = (),
    *,
    draw: Callable[[], Figure] | None = None,
    advice: Iterable[str] = (),
) -> None:
    """Writes what was found for `pkd report`, if that was asked for; typed: the command's words.

    tables: (caption, headers, rows) of each.
    """
    if path is None:
        return
    from pkd.report.decision import make_findings

    words = shlex.join(["pkd", *typed])
    figure = None if draw is None else draw()
    make_findings(title, said, tables, figure=figure, advice=advice, command=words).write(path)


def draw_file(plot: Path | None, draw: Callable[[], Figure], csv: Path | None = None) -> None:
    """Writes the figure that was asked for; csv: the table that is written already."""
    if plot is None:
        return
    try:
        save_figure(draw(), plot)
    except Exception as problem:
        kept = "" if csv is None else f"; the table is complete in {csv}"
        raise ModelError(f"{plot} was not drawn: {problem}{kept}") from problem
