"""Files, written atomically: text, and arrays with JSON in one .npz, which is read without pickle."""

from __future__ import annotations

import json
import os
import uuid
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pkd.model import ModelError

META = "meta"  # the array that holds the JSON text


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A file that is written beside the target and then renamed, so that a reader never sees half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Writes a text in UTF-8, atomically."""
    with replacing(path) as file:
        file.write(text.encode())


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any]) -> None:
    """Writes arrays and JSON, atomically."""
    with replacing(path) as file:
        np.savez_compressed(file, **{META: np.array(json.dumps(meta)), **arrays})  # type: ignore[arg-type]


def read_npz(path: str | Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the JSON of a file that `write_npz` wrote."""
    try:
        if Path(path).is_file() and not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file")  # NumPy would advise to unpickle it
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays.pop(META)))
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelError(f"{path} is not a file that pkd wrote: {error}") from None
    return arrays, meta


def csv_cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in "=+-@" and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
