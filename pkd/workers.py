"""Independent jobs in several processes. Every job is a function by name with its arguments and a
seed among them, so that what comes out does not depend on how many processes there are, or on which
of them did what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

__all__ = ["available", "limit_processes", "memory", "spread"]

Result = TypeVar("Result")
UNKNOWN_MEMORY = 2**33  # bytes that are assumed where the system does not tell
MOST_PROCESSES = 61  # of one pool on Windows


def available() -> int:
    """How many processes can run at once on this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_processes(count: int) -> int:
    """This many processes, or as many as a pool can have on this system."""
    return min(count, MOST_PROCESSES) if os.name == "nt" else count


def memory() -> int:
    """Bytes of memory of this machine; 8 GiB where the system does not tell."""
    try:
        size, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return UNKNOWN_MEMORY
    return size * pages if size > 0 and pages > 0 else UNKNOWN_MEMORY  # -1: not told


def spread(
    function: Callable[..., Result],
    jobs: Sequence[tuple[Any, ...]],
    workers: int = 1,
    done: Callable[[], Any] = lambda: None,
    kept: dict[int, Result] | None = None,
) -> list[Result]:
    """function(*job) for every job, in the order of the jobs; `done` is called after each.

    kept: gets each result by the number of its job as it comes, also if the call is interrupted.

    With several workers the function must be importable and its arguments and results picklable.
    One worker is this process itself.

    >>> spread(divmod, [(7, 2), (9, 4)])
    [(3, 1), (2, 1)]
    """
    if workers <= 1 or len(jobs) <= 1:
        results = []
        for number, job in enumerate(jobs):
            results.append(function(*job))
            if kept is not None:
                kept[number] = results[-1]
            done()
        return results
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    # Not by fork: a process whose threads hold locks, as those of parallel kernels may, must not be
    # forked.
    with ProcessPoolExecutor(
        limit_processes(min(workers, len(jobs))), get_context("spawn"), initializer=_one_thread
    ) as pool:
        waiting = [pool.submit(function, *job) for job in jobs]
        try:
            numbers = {future: number for number, future in enumerate(waiting)}
            for future in as_completed(waiting):
                result = future.result()
                if kept is not None:
                    kept[numbers[future]] = result
                done()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in waiting]


def _one_thread() -> None:
    """Workers share the machine by processes and not by threads as well; numba reads this when it
    is imported.
    """
    os.environ["NUMBA_NUM_THREADS"] = "1"
