"""Ways to damage a file: its bytes, its arrays, its description, its header."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["damage", "forge"]

JUNK: tuple[Any, ...] = (
    None, True, -1, 0, 1, 10**30, 1e308, float("nan"), "", "x", "é\x00", [], {}, [[]], {"a": 1},
    "nan", [1, 2], -0.5, 2**63, "[" * 50,
)  # fmt: skip


def damage(path: Path, rng: random.Random, others: list[Path]) -> str:
    """Damages the bytes of a file in place; returns how."""
    content = bytearray(path.read_bytes())
    how = rng.choice(["flip", "flip", "cut", "zeros", "insert", "repeat", "swap", "empty", "word"])
    at = rng.randrange(len(content)) if content else 0
    if how == "flip":
        for _ in range(rng.choice([1, 1, 8])):
            at = rng.randrange(len(content))
            content[at] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del content[at:]
    elif how == "zeros":
        content[at : at + 40] = bytes(len(content[at : at + 40]))
    elif how == "insert":
        content[at:at] = rng.randbytes(rng.randint(1, 30))
    elif how == "repeat":
        content += content[at:]
    elif how == "swap":
        content = bytearray(rng.choice(others).read_bytes())
    elif how == "empty":
        content.clear()
    else:
        word = str(rng.choice(JUNK)).encode()
        content[at : at + len(word)] = word
    path.write_bytes(content)
    return how


def forge(path: Path, rng: random.Random) -> str:
    """Changes what an .npz file says, with sums that are right; returns how."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    name = rng.choice(sorted(arrays))
    how = rng.choice(
        ["values", "values", "type", "shape", "drop", "swap", "header", "meta", "meta"]
    )
    if how == "header":
        _claim(path, arrays, name, rng)
        return f"{how} of {name}"
    if how == "meta" and "meta" in arrays:
        arrays["meta"] = np.array(json.dumps(_disturb(json.loads(str(arrays["meta"])), rng)))
    elif how == "type":
        kind = rng.choice(["i1", "u1", "f4", "c16", "U3", "?", "S2", "f8", "i8"])
        arrays[name] = np.zeros(arrays[name].shape, kind)
    elif how == "shape":
        arrays[name] = rng.choice(SHAPES)(arrays[name])
    elif how == "drop":
        del arrays[name]
    elif how == "swap":
        other = rng.choice(sorted(arrays))
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif arrays[name].dtype.kind in "iuf" and arrays[name].size:
        flat = arrays[name].copy().reshape(-1)
        low, high = (0, 255) if flat.dtype.kind == "u" else (-100, 100)
        wild = [low, high, 7] if flat.dtype.kind in "iu" else [-1.0, 2.0, np.nan, np.inf, 1e300]
        for _ in range(rng.choice([1, 3, flat.size])):
            flat[rng.randrange(flat.size)] = rng.choice(wild)
        arrays[name] = flat.reshape(arrays[name].shape)
    np.savez_compressed(path, **arrays)
    return f"{how} of {name}"


SHAPES: list[Callable[[np.ndarray], np.ndarray]] = [
    lambda array: array[..., None],
    lambda array: array.reshape(-1)[:-1],
    lambda array: np.concatenate([array.reshape(-1)] * 2),
    lambda array: array.reshape(-1)[:0],
    lambda array: array.T,
    lambda array: np.broadcast_to(array, (3, *array.shape)),
]


def _claim(path: Path, arrays: dict[str, np.ndarray], name: str, rng: random.Random) -> None:
    """Writes a file whose header of one array claims something else than is there."""
    claimed = rng.choice([(10**15,), (-3,), (2**40, 2**40), (0,), (1, 2, 3), (10**6,)])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, array in arrays.items():
            text = io.BytesIO()
            if each == name:
                header = {"descr": array.dtype.str, "fortran_order": False, "shape": claimed}
                np.lib.format.write_array_header_1_0(text, header)
                text.write(array.tobytes())
            else:
                np.lib.format.write_array(text, array, allow_pickle=False)
            archive.writestr(f"{each}.npy", text.getvalue())


def _disturb(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """The same JSON with junk in one place."""
    if rng.random() < 0.25 * depth or not isinstance(value, dict | list) or not value:
        return rng.choice(JUNK)
    if isinstance(value, list):
        copy = list(value)
        at: Any = rng.randrange(len(copy))
    else:
        copy, at = dict(value), rng.choice(sorted(value))  # type: ignore[assignment]
    if rng.random() < 0.15:
        del copy[at]
    else:
        copy[at] = _disturb(copy[at], rng, depth + 1)
    return copy
