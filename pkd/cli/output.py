"""How results are written: aligned tables for people, CSV for programs, figures for papers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["number", "save_figure", "table", "write_csv"]


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns under their headers; numbers to the right, words to the left.

    >>> print(table(["city", "size"], [["Bern", 134], ["Ulm", 7.5]]))
    city  size
    Bern   134
    Ulm    7.5
    """
    cells = [[number(value) for value in row] for row in rows]
    rows = [list(headers), *cells]
    widths = [max(len(row[i]) for row in rows) for i in range(len(headers))]
    right = [_is_numeric([row[i] for row in cells]) for i in range(len(headers))]
    lines = ("  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def number(value: Any) -> str:
    """A number with seven digits that matter, anything else as it is."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def write_csv(path: Path, headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """All rows with all digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(headers)
        writer.writerows(rows)


def save_figure(figure: Any, path: Path) -> None:
    """Writes a matplotlib figure; the suffix says the format."""
    supported = figure.canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".") not in supported:
        from pkd.model import ModelError

        raise ModelError(f"{path}: expected a name that ends in one of {', '.join(sorted(supported))}")
    figure.savefig(path, dpi=150)


def _is_numeric(column: Sequence[str]) -> bool:
    """Whether a column holds numbers; "> 200" and "1,000" are numbers, nothing and "never" stand beside them."""
    numbers = [cell.removeprefix("> ").replace(",", "").rstrip("%") for cell in column if cell not in ("", "never")]
    return bool(numbers) and all(map(_is_number, numbers))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
