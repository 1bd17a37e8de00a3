"""Progress on a terminal for everything that takes longer than two seconds; nothing elsewhere.

`watch` counts the steps of a loop. `working` shows the time of one long call, which must release
the interpreter lock, as the sweeps of both engines do.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TextIO, TypeVar

__all__ = ["watch", "working"]

PATIENCE = 2.0  # seconds before anything is shown
PAUSE = 0.5  # seconds between two lines

Item = TypeVar("Item")


def watch(items: Iterable[Item], what: str) -> Iterable[Item]:
    """The same items; how many have been done is shown from the third second on.

    >>> list(watch(range(3), "counting"))
    [0, 1, 2]
    """
    return _count(items, what, sys.stderr) if sys.stderr.isatty() else items


def _count(items: Iterable[Item], what: str, out: TextIO) -> Iterator[Item]:
    total = f" of {len(items):,}" if isinstance(items, Sized) else ""
    began = shown = time.perf_counter()
    written = False
    try:
        for done, item in enumerate(items):
            now = time.perf_counter()
            if now - began >= PATIENCE and now - shown >= PAUSE:
                out.write(f"\r{what}: {done:,}{total} ")
                out.flush()
                shown, written = now, True
            yield item
    finally:
        if written:
            _clear(out)


@contextmanager
def working(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Shows how long the block has been running, from the third second on."""
    out = sys.stderr if stream is None else stream
    if not out.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_tick, args=(what, out, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _tick(what: str, out: TextIO, done: threading.Event) -> None:
    began, shown = time.perf_counter(), False
    while not done.wait(PAUSE):
        elapsed = time.perf_counter() - began
        if elapsed >= PATIENCE:
            out.write(f"\r{what}: {elapsed:.0f} s ")
            out.flush()
            shown = True
    if shown:
        _clear(out)


def _clear(out: TextIO) -> None:
    """Clears the line."""
    out.write("\r\x1b[K")
    out.flush()
