"""The one reader of logs: a CSV file, a frame of another library, or rows, as columns of cells.

A CSV log has a first line that names its columns. Commas, semicolons, tabs and |, UTF-8, UTF-16
and Latin-1 are read, with or without a byte-order mark. A frame is one of pandas or polars, or any
object with `__dataframe__`, the interchange protocol of data frames. What the cells mean is the
business of those who read a table: `pkd.certification.logs` for every model, adapters for more.
"""

from __future__ import annotations

import codecs
import csv
import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from pkd.expect import pathname, require, show
from pkd.model import ModelError

__all__ = ["Table", "is_blank", "is_frame", "read_table"]

SEPARATORS = (",", ";", "\t", "|")
BLANK = frozenset({"", "na", "n/a", "<na>", "nan", "nat", "none", "null"})
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
PACKED = {b"PK\x03\x04": "a workbook or a zip archive", b"\x1f\x8b": "packed with gzip"}


@attrs.frozen(eq=False)
class Table:
    """A log in columns.

    >>> table = read_table([{"Z": "coin", "x": 1}, {"Z": "coin", "x": 0}])
    >>> table.columns, table.say_place(1)
    ({'z': ['coin', 'coin'], 'x': [1, 0]}, 'the log, row 2')
    """

    source: str  # the file, or "the log"
    unit: str  # what a place is: a line or a row
    places: Sequence[int]  # of each row, the first line of a file included
    columns: Mapping[str, Sequence[Any]]  # by names in lower case; all have one length
    comma: bool = False  # whether a comma may stand for the decimal point

    def __len__(self) -> int:
        return len(self.places)

    def find(self, names: Sequence[str]) -> Sequence[Any] | None:
        """The first column with one of these names; None: there is none."""
        return next((self.columns[name] for name in names if name in self.columns), None)

    def say_place(self, i: int) -> str:
        """Where row i is, for errors."""
        return f"{self.source}, {self.unit} {self.places[i]}"


def read_table(log: Any) -> Table:
    """The columns of a CSV file, of a frame, or of rows that are mappings."""
    if isinstance(log, str | Path):
        return _read_csv(log)
    if is_frame(log):
        columns = _read_frame(log)
    else:
        rows = list(log) if isinstance(log, Iterable) else [log]
        if not all(isinstance(row, Mapping) for row in rows):
            wanted = "a CSV file, a frame, or rows as mappings"
            raise ModelError(f"log is {show(log)}; expected {wanted}")
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name) for row in rows] for name in names}
    n = max(map(len, columns.values()), default=0)
    named = {str(name).strip().casefold(): cells for name, cells in columns.items()}
    return Table("the log", "row", range(1, n + 1), named)


def is_frame(log: Any) -> bool:
    """Whether this is a frame of pandas or polars, or has the interchange protocol."""
    return hasattr(log, "__dataframe__") or (hasattr(log, "columns") and hasattr(log, "to_dict"))


def is_blank(cell: Any) -> bool:
    """Whether a cell says nothing: empty, None, NaN, NaT, <NA>.

    >>> [is_blank(cell) for cell in ("", None, float("nan"), " NULL ", 0, "0")]
    [True, True, True, True, False, False]
    """
    return cell is None or str(cell).strip().casefold() in BLANK


def _read_frame(frame: Any) -> dict[Any, list[Any]]:
    if not hasattr(frame, "columns"):
        try:
            from pandas.api.interchange import from_dataframe
        except ImportError:
            raise ModelError(
                f"the log is a {type(frame).__name__}, which only pandas can read here; install "
                "pandas, or give a CSV file"
            ) from None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # newer versions of pandas name a successor
            frame = from_dataframe(frame)
    return {name: frame[name].to_list() for name in frame.columns}


def _read_csv(path: str | Path) -> Table:
    require(pathname("path", path))
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    text = _decode(path, data)
    headers = {separator: _read_header(text, separator) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda one: len(headers[one]))
    names = [name.strip().casefold() for name in headers[separator]]
    columns: list[list[str]] = [[] for _ in names]
    places = []
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for number, row in enumerate(rows):
            cells = [cell.strip() for cell in row]
            if number == 0 or not any(cells):
                continue
            places.append(rows.line_num)
            cells += [""] * (len(names) - len(cells))
            for column, cell in zip(columns, cells, strict=False):
                column.append(cell)
    except csv.Error as problem:
        raise ModelError(f"{path}, line {rows.line_num}: {problem}; expected CSV") from None
    named: dict[str, list[str]] = {}
    for name, column in zip(names, columns, strict=True):
        named.setdefault(name, column)
    return Table(str(path), "line", places, named, separator != ",")


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


def _read_header(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])
    except csv.Error:
        return []
