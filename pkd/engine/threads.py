"""Threads that share the tiles of a sweep, and never lose against one thread.

Kernels release the interpreter's lock, so plain threads suffice. Work is handed out in small
portions: a thread that the machine holds up takes fewer of them. The speed of one thread and of
all threads is measured while a sweep runs, and the faster setting is used; the results are the same
bits in both.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pkd.workers import available

PORTIONS = 8  # per thread and level
# Columns of one portion of a thread that works alone: a fraction of a second.
PORTION_SIZE = 5e6
MEASURE_AGAIN = 12  # levels between two measurements of the slower setting

_count: int | None = None
_pool: tuple[int, int, ThreadPoolExecutor] | None = None  # (process, threads, pool)
_lock = threading.Lock()


def get_threads() -> int:
    """How many threads a large sweep may use: `set_threads`, PKD_THREADS, or all cores."""
    if _count is not None:
        return _count
    said = os.environ.get("PKD_THREADS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    return available()


def set_threads(count: int | None) -> None:
    """Sets how many threads a large sweep may use; None: the cores there are."""
    global _count
    _count = count


def _helpers(threads: int) -> ThreadPoolExecutor:
    """The pool of this process; a forked child makes its own."""
    global _pool
    with _lock:
        if _pool is None or _pool[:2] != (os.getpid(), threads):
            _pool = os.getpid(), threads, ThreadPoolExecutor(threads - 1, thread_name_prefix="pkd")
        return _pool[2]


class Crew:
    """Shares the work of one sweep."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._rate = [0.0, 0.0]  # seconds per unit of work: alone, together
        self._levels = 0

    def share(self, work: Callable[[int, int], int], count: int, size: float) -> int:
        """Calls work(begin, end) for portions of 0..count - 1, which cost `size` in all.

        Returns the sum of its answers.
        """
        if self.threads < 2 or count < 2:
            return self._alone(work, count, size)
        together = self._choose()
        began = time.perf_counter()
        changed = self._together(work, count) if together else self._alone(work, count, size)
        self._rate[together] = (time.perf_counter() - began) / max(size, 1.0)
        return changed

    def _choose(self) -> bool:
        self._levels += 1
        if not all(self._rate):
            return self._levels % 2 == 1
        faster = self._rate[1] <= self._rate[0]
        return faster if self._levels % MEASURE_AGAIN else not faster

    @staticmethod
    def _alone(work: Callable[[int, int], int], count: int, size: float) -> int:
        """In portions, so that an interrupt is answered between two of them."""
        portions = max(1, min(count, int(size / PORTION_SIZE)))
        return sum(
            work(i * count // portions, (i + 1) * count // portions) for i in range(portions)
        )

    def _together(self, work: Callable[[int, int], int], count: int) -> int:
        portions = min(count, PORTIONS * self.threads)
        ticket, stopped = itertools.count(), threading.Event()

        def take() -> int:
            changed = 0
            while (i := next(ticket)) < portions and not stopped.is_set():
                changed += work(i * count // portions, (i + 1) * count // portions)
            return changed

        others = [_helpers(self.threads).submit(take) for _ in range(self.threads - 1)]
        try:
            changed = take()
        except BaseException:  # an interrupt: the other threads stop after their portion
            stopped.set()
            raise
        return changed + sum(other.result() for other in others if not other.cancel())
