"""How results are shown: aligned tables for people, CSV for programs, figures for papers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pkd.model import ModelError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "PICTURES",
    "Cell",
    "draw_file",
    "number",
    "save_figure",
    "table",
    "write_csv",
    "write_files",
]

Cell = str | int | float
PICTURES = ("eps", "jpeg", "jpg", "pdf", "pgf", "png", "ps", "svg", "svgz", "tif", "tiff", "webp")


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns under their headers; numbers to the right, words to the left.

    >>> print(table(["city", "size"], [["Bern", 134], ["Ulm", 7.5]]))
    city  size
    Bern   134
    Ulm    7.5
    """
    from pkd.results.tables import format_table

    return format_table(headers, rows)


def number(value: Cell) -> str:
    """A number with seven digits that matter, anything else as it is."""
    from pkd.results.tables import format_number

    return format_number(value)


def write_csv(path: str | Path, headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Writes all rows with all digits, whole or not at all."""
    from pkd.results.files import write_csv as write

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


def draw_file(plot: Path | None, draw: Callable[[], Figure], csv: Path | None = None) -> None:
    """Writes the figure that was asked for; csv: the table that is written already."""
    if plot is None:
        return
    try:
        save_figure(draw(), plot)
    except Exception as problem:
        kept = "" if csv is None else f"; the table is complete in {csv}"
        raise ModelError(f"{plot} was not drawn: {problem}{kept}") from problem


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a matplotlib figure, whole or not at all; the suffix says the format."""
    kind = path.suffix.removeprefix(".")
    if kind not in PICTURES:
        raise ModelError(f"{path}: expected a name that ends in one of {', '.join(PICTURES)}")
    from pkd.results.files import replacing

    with replacing(path) as file:
        figure.savefig(file, format=kind, dpi=150)
