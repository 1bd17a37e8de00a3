"""Progress on a terminal for everything that takes longer than two seconds; nothing elsewhere.

`watch` counts the steps of a loop. `working` shows the time of one long call, which must release
the interpreter lock, as the sweeps of both engines do.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO, TypeVar

__all__ = ["watch", "working"]

PATIENCE = 2.0  # seconds before anything is shown
PAUSE = 0.5  # seconds between two lines

Item = TypeVar("Item")


def watch(items: Iterable[Item], what: str, total: int | None = None) -> Iterable[Item]:
    """The same items; a bar is shown from the third second on.

    >>> list(watch(range(3), "counting"))
    [0, 1, 2]
    """
    if not sys.stderr.isatty():
        return items
    from tqdm import tqdm

    return tqdm(items, desc=what, total=total, delay=PATIENCE, leave=False)


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
        out.write("\r\x1b[K")
        out.flush()
