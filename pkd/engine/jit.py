"""Compiles kernels once, into a cache named by a hash of the sources that they are made of.

numba's own cache looks only at the file of the function that it compiles. It does not notice an
edit of a function or of a number that comes from another file. The hash notices it: an edit makes a
new cache.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numba

# No C wrapper: nothing calls one, and it takes a twentieth of the time of compiling.
SHARED: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = Path(__file__).parents[1]
PREFIX = "pkd-kernels-"  # of the name of a cache folder


def jit(*, allocates: bool = False, nogil: bool = False) -> Callable[[Function], Function]:
    """`numba.njit(cache=True)` with our cache folder, for kernels that Python calls.

    No fastmath, so that the order of operations is the one written. Arrays that a kernel is given
    outlive the call, so it does not count references to them, which takes a seventh of the time of
    compiling. allocates: it makes arrays of its own, so it has to.
    """
    return _compiler(cache=True, _nrt=allocates, nogil=nogil)


def inner(*, allocates: bool = False) -> Callable[[Function], Function]:
    """A part of kernels, which needs no Python wrapper and no cache file.

    Python must not call it: there is nothing to call. tests/engine/test_inner_kernels.py looks.
    """
    return _compiler(no_cpython_wrapper=True, _nrt=allocates)


def _compiler(**options: Any) -> Callable[[Function], Function]:
    def compile_later(function: Function) -> Function:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = cache_folder(function.__code__.co_filename)
        try:
            compiled: Function = numba.njit(**SHARED, **options)(function)
        finally:
            numba.config.CACHE_DIR = before
        return compiled

    return compile_later


@cache
def cache_folder(file: str | None = None) -> str:
    """The cache folder, named by a hash of numba's version, of `list_sources` and of `file`.

    It lies in the first writable place of NUMBA_CACHE_DIR, the user's cache, the temporary folder.
    numba unpickles what it finds there, so in the temporary folder, where anybody may write, it
    must be the user's own. `file` holds a kernel, also one of another package: numba knows it by
    its size and its time alone, which two installed versions may share.
    """
    digest, sources = hashlib.sha256(numba.__version__.encode()), list_sources()
    own = [] if file is None or Path(file) in sources else [Path(file)]
    for source in (*sources, *(path for path in own if path.is_file())):
        digest.update(source.read_bytes())
    name = f"{PREFIX}{digest.hexdigest()[:16]}"
    for root in list_roots():
        if _writable(folder := root / name):
            return str(folder)
    folder = Path(tempfile.gettempdir()) / name
    if _writable(folder) and _is_private(folder):
        return str(folder)
    return tempfile.mkdtemp(prefix=name)


def list_roots() -> list[Path]:
    """Where caches may lie, the first choice first."""
    given = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    return [*(Path(root) for root in given if root), Path("~/.cache").expanduser()]


def list_sources() -> list[Path]:
    """The files that hold kernels, and those whose numbers the compiler writes into kernels."""
    return [*sorted((PACKAGE / "engine").rglob("*.py")), PACKAGE / "optimism.py"]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Whether nobody but this user can write into a folder, and nobody else made it."""
    told = folder.lstat()
    own = not hasattr(os, "getuid") or (told.st_uid == os.getuid() and not told.st_mode & 0o022)
    return own and stat.S_ISDIR(told.st_mode)
