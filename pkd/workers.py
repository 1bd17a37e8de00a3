"""Independent jobs in several processes. Every job is a function by name with its arguments and a
seed among them, so that what comes out does not depend on how many processes there are, or on which
of them did what.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

__all__ = ["available", "hold_interrupts", "limit_processes", "memory", "open_pool", "spread"]

Result = TypeVar("Result")
STUCK_SECONDS = 2.0  # after which a dead process or the thread of a dead pool is given up
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
    from concurrent.futures import as_completed

    finished = {} if kept is None else kept
    with open_pool(min(workers, len(jobs))) as pool:
        with hold_interrupts():
            numbers = {pool.submit(function, *job): number for number, job in enumerate(jobs)}
        for future in as_completed(numbers):
            finished[numbers[future]] = future.result()
            done()
    return [finished[number] for number in range(len(jobs))]


@contextmanager
def open_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that ends with the block, together with the jobs that still run.

    Submit within `hold_interrupts`. The thread of the pool has ended, too, so that it neither
    prints a traceback later nor keeps this process from ending.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Not by fork: a process whose threads hold locks, as those of parallel kernels may, must not be
    # forked.
    pool = ProcessPoolExecutor(
        limit_processes(count), get_context("spawn"), initializer=_start_worker
    )
    try:
        yield pool
    finally:
        with hold_interrupts():
            parts: Any = pool  # typeshed has other types for what is private
            started, manager = list(parts._processes.values()), parts._executor_manager_thread
            results, calls = parts._result_queue, parts._call_queue
            for process in started:
                process.kill()
            for process in started:
                process.join(STUCK_SECONDS)
            # The manager may wait for the other half of a result: that pipe has an end now.
            results._writer.close()
            pool.shutdown(wait=False, cancel_futures=True)
            if manager is not None:
                manager.join(STUCK_SECONDS)
                # Before Python 3.11.7 it waits until half a job has been sent. Not sooner: two
                # threads must not close one end.
                if manager.is_alive():
                    calls._reader.close()
                    manager.join(STUCK_SECONDS)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """An interrupt comes at the end of the block; processes that start in it never get one."""
    handler = signal.getsignal(signal.SIGINT)
    hold = current_thread() is main_thread() and handler is not None
    block = hasattr(signal, "pthread_sigmask")
    seen = []
    if hold:
        signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    if block:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        if block:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if hold:
            signal.signal(signal.SIGINT, handler)
        if seen:
            signal.raise_signal(signal.SIGINT)


def _start_worker() -> None:
    """One thread, no interrupts, and an end if the parent is killed: it would wait forever.

    Workers share the machine by processes and not by threads as well; numba reads this when it is
    imported, and fails if it changes later.
    """
    if "numba" not in sys.modules:
        os.environ["NUMBA_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where no signal can be blocked

    from multiprocessing import parent_process

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    Thread(target=watch, daemon=True, name="pkd-parent").start()
