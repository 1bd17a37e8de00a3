"""A log as a file: its encoding, its separator, its columns, and its lines as text.

A log is a CSV file with a first line that names its columns. One column holds what was known
beforehand (the feature z), one what followed (the outcome x'), and a third one may say how often.
Other columns are left alone. What the cells mean is the business of `pkd.logs`.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from pkd.model import ModelError

__all__ = ["Cells", "read_cells"]

# The names of a column, the usual one first; upper and lower case are alike.
FEATURE = ("z", "feature", "features", "context", "key")
OUTCOME = ("x", "x'", "x_next", "next", "outcome", "value", "reward", "result")
NUMBER = ("count", "counts", "samples")
SEPARATORS = (",", ";", "\t", "|")
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PACKED = {b"PK\x03\x04": "a workbook or a zip archive", b"\x1f\x8b": "packed with gzip"}


class Cells(NamedTuple):
    """One line of a log as text."""

    line: int  # from 1, the first line included
    z: str
    x: str
    n: str  # how often; "1" where no column says it
    comma: bool  # whether a comma may stand for the decimal point: it does not separate cells


def read_cells(path: str | Path) -> Iterator[Cells]:
    """The lines of a log; a file that is none is a ModelError."""
    text = _decode(path, Path(path).read_bytes())
    separator, columns, width = _find_columns(path, text)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    z, x, n = columns
    try:
        for number, row in enumerate(rows):
            if number == 0 or not any(cell.strip() for cell in row):
                continue
            row = [cell.strip() for cell in row] + [""] * (width - len(row))
            yield Cells(
                rows.line_num, row[z], row[x], "1" if n is None else row[n], separator != ","
            )
    except csv.Error as problem:
        raise ModelError(f"{path}, line {rows.line_num}: {problem}; expected CSV") from None


def _decode(path: str | Path, data: bytes) -> str:
    """The text of a file: by its byte-order mark, else UTF-8, else UTF-16, else Latin-1."""
    for start, what in PACKED.items():
        if data.startswith(start):
            raise ModelError(f"{path} is {what}, not text; save it as CSV")
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data:
        # Half of the bytes of Latin text in UTF-16 are 0; without a mark their places say which.
        encoding = "utf-16-be" if data[:1] == b"\0" else "utf-16-le"
    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as problem:
        if encoding is not None:
            raise ModelError(
                f"{path} is not text: {encoding} fails at byte {problem.start}; save it as UTF-8"
            ) from None
        text = data.decode("latin-1")
    if "\0" in text:
        raise ModelError(f"{path} is not text: it has zero bytes; expected CSV, saved as UTF-8")
    return text


def _find_columns(path: str | Path, text: str) -> tuple[str, tuple[int, int, int | None], int]:
    """(separator, places of feature, outcome and number, how many columns there are)."""
    header: list[str] = []
    for separator in SEPARATORS:
        found = _read_header(text, separator)
        header = found if len(found) > len(header) else header
        names = [name.strip().casefold() for name in found]
        z, x, n = (_place(names, accepted) for accepted in (FEATURE, OUTCOME, NUMBER))
        if z is not None and x is not None:
            return separator, (z, x, n), len(names)
    raise ModelError(
        f"{path}: expected a first line with the columns z and x, found {header}; other names of "
        f"z are {', '.join(FEATURE[1:])}, of x {', '.join(OUTCOME[1:])}"
    )


def _read_header(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error:
        return []


def _place(names: Sequence[str], accepted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in accepted if name in names), None)
