"""Who computes: this process, a pool of processes, or any `concurrent.futures.Executor`.

A pool whose worker is killed is replaced, and what was not finished is submitted again. An executor
of the user must do that itself, as Dask does.
"""

from __future__ import annotations

import os
import pickle
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context, parent_process
from typing import Any

from pkd.experiments.jobs import Job, run_job
from pkd.experiments.record import Record
from pkd.model import ModelError
from pkd.workers import limit_processes

__all__ = ["Alone", "Crew", "Foreign", "Pool", "connect_dask", "hire"]

AHEAD = 2  # jobs in the hands of the executor for each worker, so that none of them waits
DASK_SECONDS = 10.0  # that a scheduler has to answer


class Crew(ABC):
    """Computes jobs; `room` says how many may be submitted at once."""

    room: int = 1

    @abstractmethod
    def submit(self, job: Job) -> Future[Record]:
        """Begins a job, or does it."""

    def renew(self) -> bool:
        """Replaces what has broken down; False: it cannot."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Lets everybody go; jobs that were not begun are dropped."""


class Alone(Crew):
    """This process, which may use all its threads."""

    def submit(self, job: Job) -> Future[Record]:
        future: Future[Record] = Future()
        try:
            future.set_result(run_job(job, alone=True))
        except Exception as problem:  # noqa: BLE001 - given to whoever asks for the result
            future.set_exception(problem)
        return future

    def close(self) -> None:
        """There is nobody to let go."""


class Pool(Crew):
    """Processes of this machine."""

    def __init__(self, workers: int) -> None:
        self.workers, self.room = limit_processes(workers), AHEAD * workers
        self.pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        # Not by fork: a process whose threads hold locks must not be forked.
        return ProcessPoolExecutor(
            self.workers, get_context("spawn"), initializer=_leave_with_parent
        )

    def submit(self, job: Job) -> Future[Record]:
        return self.pool.submit(run_job, job)

    def renew(self) -> bool:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.pool = self._start()
        return True

    def close(self) -> None:
        # Running jobs are dropped too: an interrupt must not wait for them.
        workers = list((getattr(self.pool, "_processes", None) or {}).values())
        self.pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()


class Foreign(Crew):
    """An executor that the user gave, and keeps."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.waiting: set[Future[Record]] = set()
        self.room = AHEAD * _count_workers(executor)

    def submit(self, job: Job) -> Future[Record]:
        future = self.executor.submit(run_job, job)
        self.waiting.add(future)
        future.add_done_callback(self.waiting.discard)
        return future

    def close(self) -> None:
        for future in list(self.waiting):
            future.cancel()


def hire(workers: Any, jobs: Iterable[Job]) -> Crew:
    """The crew for `workers`: a whole number, or an Executor."""
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if not (is_number and workers >= 1) and not hasattr(workers, "submit"):
        raise ModelError(
            f"workers is {workers!r}; expected a whole number >= 1, or an executor with "
            "submit(function, *arguments), such as concurrent.futures gives"
        )
    if workers == 1:
        return Alone()
    _refuse_unpicklable(jobs)
    return Pool(workers) if is_number else Foreign(workers)


def connect_dask(address: str) -> tuple[Any, Callable[[], None]]:
    """(an executor of the Dask scheduler at this address, a function that leaves it)."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise ModelError("--dask needs the package distributed: pip install 'pkd[dask]'") from None
    try:
        client = distributed.Client(address, timeout=DASK_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as problem:
        said = " ".join(str(problem).split()) or type(problem).__name__
        raise ModelError(f"no Dask scheduler answers at {address}: {said}") from problem
    return client.get_executor(), client.close


def _count_workers(executor: Any) -> int:
    """How many jobs an executor may do at once; four where it does not tell."""
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None and hasattr(client, "nthreads"):
        return max(1, int(sum(client.nthreads().values())))
    return max(1, int(getattr(executor, "_max_workers", 4) or 4))


def _refuse_unpicklable(jobs: Iterable[Job]) -> None:
    findings = []
    parts = {id(part): part for job in jobs for part in (job.model, job.agent)}
    for part in parts.values():
        try:
            pickle.dumps(part)
        except Exception as problem:  # noqa: BLE001 - objects of the user raise anything here
            findings.append(
                f"{part.label} cannot be sent to another process: {problem}; define it at the "
                "top of a module, name it by words such as module:object, or use workers=1"
            )
    if findings:
        raise ModelError(findings)


def _leave_with_parent() -> None:
    """A worker whose parent was killed would wait for work forever."""

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True, name="pkd-parent").start()
