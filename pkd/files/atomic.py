"""Every file of this software is written here, whole or not at all, and read here without trust.

Text, CSV tables, and arrays with JSON in one .npz file. A writer puts its file beside the target
and renames it. A reader answers every damaged or hostile file with one ModelError: sizes are
compared with what the file claims before anything is inflated, and nothing is unpickled.
"""

from __future__ import annotations

import csv
import io
import json
import os
import struct
import time
import tokenize
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pkd.expect import is_stream, pathname, require
from pkd.model import ModelError
from pkd.workers import memory

__all__ = [
    "neutralise",
    "read_arrays",
    "read_npz",
    "replacing",
    "say",
    "write_csv",
    "write_npz",
    "write_text",
]

PAUSES = (0.01, 0.05, 0.1, 0.2, 0.4)  # seconds between attempts to replace a file that is in use
META = "meta"  # the array that holds the JSON text
SHARE = 0.5  # of the memory of this machine that the arrays of one file may take
INFLATION = 1032  # deflate cannot make more bytes out of one
FORMULA = tuple("=+-@\t\r")  # a spreadsheet runs a cell that starts with one of these
# What the standard library and NumPy raise on damaged files.
DAMAGE = (
    AttributeError,
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OSError,
    OverflowError,
    RuntimeError,  # also NotImplementedError and RecursionError
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,  # NumPy tokenizes a header that it cannot read
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file beside the target that takes its place at the end, so nobody ever sees half a file."""
    require(pathname("path", path))
    path = Path(path)
    if is_stream(path):
        with path.open("ab") as stream:
            yield stream
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _replace(beside, path)
    except BaseException as problem:
        # A full disk names no file, and this one has a name that the user never typed.
        if isinstance(problem, OSError) and problem.filename in (None, str(beside)):
            problem.errno, problem.strerror = problem.errno or 0, problem.strerror or str(problem)
            problem.filename = str(path)
        with suppress(OSError):  # the first error is the one to be told
            beside.unlink(missing_ok=True)
        raise


def _replace(beside: Path, path: Path) -> None:
    """Windows refuses while another program reads the target, which is seldom for long."""
    for wait in PAUSES if os.name == "nt" else ():
        try:
            beside.replace(path)
            return
        except PermissionError:
            time.sleep(wait)
    beside.replace(path)


def write_text(path: str | Path, text: str) -> None:
    """Writes a text in UTF-8, whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


def write_csv(path: str | Path, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Writes a table with all digits, whole or not at all.

    A text that a spreadsheet would run as a formula (it starts with =, +, - or @ and is no number)
    gets an apostrophe in front.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([neutralise(header) for header in headers])
    writer.writerows([neutralise(cell) for cell in row] for row in rows)
    write_text(path, text.getvalue())


def write_npz(
    path: str | Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, object]
) -> None:
    """Writes arrays and JSON, whole or not at all."""
    text = json.dumps(meta)  # before a file is opened: what JSON cannot say is the caller's error
    with replacing(path) as file:
        np.savez_compressed(file, **{META: np.array(text), **arrays})  # type: ignore[arg-type]


def read_npz(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the JSON of a file that `write_npz` wrote."""
    arrays = _read(path, "is not a file that pkd wrote")
    if META not in arrays:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise ModelError(
            f"{path} is an .npz file, but not one that pkd wrote: it has no description of its "
            f"content ('{META}'), only {found}. Give a file that `pkd learn --save` or `save` wrote"
        )
    try:
        meta = json.loads(str(arrays.pop(META)))
    except DAMAGE as error:
        raise ModelError(f"{path} is not a file that pkd wrote: {say(error)}") from None
    if not isinstance(meta, dict):
        raise ModelError(f"{path} is not a file that pkd wrote: '{META}' is no JSON object")
    return arrays, meta


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of any .npz file by name; ModelError for everything else."""
    return _read(path, "cannot be read as an .npz file")


def _read(path: str | Path, complaint: str) -> dict[str, np.ndarray]:
    require(pathname("path", path))
    try:
        if not Path(path).exists():
            raise ModelError(f"{path} does not exist")
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file")
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len({member.filename for member in members}) < len(members):
                raise ValueError("two of its members have one name")
            _refuse_size(members, Path(path).stat().st_size)
            return {_name(member): _read_array(archive, member) for member in members}
    except ModelError:
        raise
    except DAMAGE as error:
        raise ModelError(f"{path} {complaint}: {say(error)}") from None


def _refuse_size(members: Sequence[zipfile.ZipInfo], stored: int) -> None:
    claimed = sum(member.file_size for member in members)
    most = int(SHARE * memory())
    if claimed > most:
        raise ValueError(f"it claims {claimed:,} bytes; this machine reads {most:,} at most")
    if sum(member.compress_size for member in members) > stored or any(
        member.file_size > INFLATION * max(member.compress_size, 1) for member in members
    ):
        raise ValueError(f"it claims {claimed:,} bytes, which its {stored:,} bytes cannot hold")


def _name(member: zipfile.ZipInfo) -> str:
    if not member.filename.endswith(".npy"):
        raise ValueError(f"it holds {member.filename!r}, which is no array")
    return member.filename.removesuffix(".npy")


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array whose header promises exactly the bytes that are there."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.hasobject or dtype.fields is not None:
            raise ValueError(f"the array {_name(member)!r} holds {dtype}; expected numbers or text")
        content = dtype.itemsize
        for length in shape:
            content *= int(length)
        found = member.file_size - file.tell()
        if content != found:
            raise ValueError(
                f"the array {_name(member)!r} has {found:,} bytes where its header says {content:,}"
            )
    with archive.open(member) as file:
        array: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
    return array


def neutralise(cell: object) -> object:
    """A cell that no spreadsheet takes for a formula; numbers, alone or in a row, stay as they are.

    >>> [neutralise(cell) for cell in ("low", "-1 0", "-", "=1+2", "@sum")]
    ['low', '-1 0', '-', "'=1+2", "'@sum"]
    """
    if not isinstance(cell, str) or not cell.startswith(FORMULA):
        return cell
    harmless = all(word == "-" or _is_number(word) for word in cell.split())
    return cell if harmless else f"'{cell}"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def say(error: BaseException) -> str:
    """What is wrong with a file, in one line."""
    if isinstance(error, RecursionError):
        return "its description is nested too deeply"
    if isinstance(error, MemoryError):
        return "it needs more memory than there is"
    return " ".join(str(error).split()) or type(error).__name__
