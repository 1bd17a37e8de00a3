"""`experiment`: every model with every agent and every seed, computed by whoever is there.

What a folder has is not computed again, so a killed experiment goes on where it stopped. Two
processes on one folder share the work. The records are the same bits in any case.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import attrs

from pkd.engine.threads import get_threads, set_threads
from pkd.experiments.claims import Claims
from pkd.experiments.executors import Alone, Crew, hire
from pkd.experiments.jobs import Job, list_jobs, prepare
from pkd.experiments.record import Record
from pkd.experiments.results import Results
from pkd.experiments.spec import Grid, make_grid
from pkd.experiments.store import Store
from pkd.model import ModelError
from pkd.schedule import Schedule

__all__ = ["Watch", "experiment", "run_grid"]

POLL_SECONDS = 0.2  # between two looks at the runs of other processes
MOST_ATTEMPTS = 4  # of a job whose worker dies


class Watch(Protocol):
    """Somebody who wants to see the progress."""

    def begin(self, total: int) -> None:
        """Called once."""

    def finish(self, record: Record, *, computed: bool) -> None:
        """A run is there; computed: by this process, not found in the folder."""

    def end(self) -> None:
        """Called once, also after an error."""


def experiment(
    models: Any,
    agents: Any,
    episodes: int,
    seeds: Any,
    *,
    delta: float = 0.05,
    replan: Schedule = "doubling",
    workers: int | Executor = 1,
    folder: str | Path | None = None,
    progress: bool = False,
) -> Results:
    """Every model with every agent and every seed.

    models, agents: one or several of them, or {label: one}; a model is a problem or words of the
    command line, an agent an `Agent`, a rule of optimism, or words such as "mvp:c1=1". seeds: how
    many, or which. workers: processes, or any `concurrent.futures.Executor`. folder: every run is
    written there as soon as it is finished, and what is there is not computed again. delta and
    replan are for rules of optimism.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> agents = {"small": "practical", "none": "greedy"}
    >>> results = pkd.experiment({"coin": coin}, agents, 200, seeds=3)
    >>> len(results), results.models, results.curves("coin", "none").shape
    (6, ('coin',), (3, 200))
    """
    grid = make_grid(models, agents, episodes, seeds, delta=delta, replan=replan)
    return run_grid(grid, workers, folder, _Bar() if progress else None)


def run_grid(
    grid: Grid,
    workers: int | Executor = 1,
    folder: str | Path | None = None,
    watch: Watch | None = None,
) -> Results:
    """Computes what is missing of a grid; the results come in the order of the grid."""
    jobs = list(list_jobs(grid))
    crew = hire(workers, jobs)
    threads = get_threads()
    try:
        store = None if folder is None else Store(folder)
        if store is not None:
            store.open(grid, jobs)
        with (
            Claims(store.folder / "claims") if store else nullcontext() as claims,
            _watching(watch, len(jobs)) as seen,
        ):
            records = _Work(_prepare(jobs, store), crew, store, claims, seen).do()
    finally:
        crew.close()
        if not isinstance(crew, Alone):
            set_threads(threads)
    if store is not None:
        store.close()
    keys = [(job.model.label, job.agent.label, job.seed) for job in jobs]
    load = records.__getitem__ if store is None else store.read
    return Results(keys, lambda i: load(jobs[i].key))


def _prepare(jobs: list[Job], store: Store | None) -> list[Job]:
    """The jobs with what those of one model share, and with the files of their checkpoints."""
    agents = list({job.agent.label: job.agent for job in jobs}.values())
    models = {job.model.label: job.model for job in jobs}
    shared = {label: prepare(model, agents) for label, model in models.items()}
    ready = []
    for job in jobs:
        checkpoint = None if store is None else str(store.checkpoint(job.key).absolute())
        ready.append(attrs.evolve(job, prepared=shared[job.model.label], checkpoint=checkpoint))
    return ready


class _Work:
    """The jobs of one call: some wait, some are computed here, some by other processes."""

    def __init__(
        self,
        jobs: list[Job],
        crew: Crew,
        store: Store | None,
        claims: Claims | None,
        watch: Watch | None,
    ) -> None:
        self.jobs, self.crew, self.store, self.claims, self.watch = jobs, crew, store, claims, watch
        self.waiting = deque(jobs)
        self.elsewhere: deque[Job] = deque()  # claimed by other processes
        self.running: dict[Future[Record], Job] = {}
        self.records: dict[str, Record] = {}  # where there is no store
        self.attempts: Counter[str] = Counter()
        self.done = 0

    def do(self) -> dict[str, Record]:
        """Computes all jobs; with a store the records are in its files."""
        try:
            self._do()
        except OSError as problem:
            if self.store is None:
                raise
            rest = f"{self._say_done()}; make room and run the same again"
            raise self.store.explain(problem, rest) from problem
        return self.records

    def _do(self) -> None:
        while self.waiting or self.running or self.elsewhere:
            self._submit()
            if self.running:
                self._collect()
            elif self.elsewhere:
                time.sleep(POLL_SECONDS)
                self.waiting, self.elsewhere = self.elsewhere, deque()
        if self.claims is not None and self.store is not None:
            for job in self.jobs:
                self.claims.sweep(job.key, self.store.clean)

    def _submit(self) -> None:
        while self.waiting and len(self.running) < self.crew.room:
            job = self.waiting.popleft()
            if self._is_done(job):
                continue
            if self.claims is not None and not self.claims.take(job.key):
                self.elsewhere.append(job)
                continue
            if self._is_done(job):  # finished between the look and the claim
                self._release(job)
                continue
            self._start(job)

    def _start(self, job: Job) -> None:
        try:
            self.running[self.crew.submit(job)] = job
        except BrokenExecutor as problem:
            self._retry(job, problem)
            self.crew.renew()

    def _collect(self) -> None:
        finished, _ = wait(self.running, timeout=None, return_when=FIRST_COMPLETED)
        broken: BrokenExecutor | None = None
        for future in finished:
            job = self.running.pop(future)
            try:
                self._keep(job, future.result())
            except BrokenExecutor as problem:
                broken = problem
                self._retry(job, problem)
            except ModelError as problem:
                raise ModelError([f"{job}: {finding}" for finding in problem.findings]) from problem
        if broken is not None:
            for job in self.running.values():
                self._retry(job, broken)
            self.running.clear()
            if not self.crew.renew():
                raise ModelError(f"the executor broke down: {broken}; {self._say_done()}")

    def _keep(self, job: Job, record: Record) -> None:
        if self.store is None:
            self.records[job.key] = record
        else:
            self.store.write(job.key, record)
        self._release(job)
        self._finish(record, computed=True)

    def _retry(self, job: Job, problem: BaseException) -> None:
        self.attempts[job.key] += 1
        if self.attempts[job.key] >= MOST_ATTEMPTS:
            raise ModelError(
                f"{job}: a worker process died {MOST_ATTEMPTS} times while it was computed or "
                f"waited ({problem}); is there enough memory? {self._say_done()}"
            ) from problem
        self._release(job)
        self.waiting.appendleft(job)

    def _release(self, job: Job) -> None:
        if self.claims is not None and job.key in self.claims.held:
            self.claims.release(job.key)

    def _is_done(self, job: Job) -> bool:
        if self.store is None or not self.store.is_done(job.key):
            return False
        self._finish(self.store.check(job), computed=False)
        return True

    def _finish(self, record: Record, *, computed: bool) -> None:
        self.done += 1
        if self.watch is not None:
            self.watch.finish(record, computed=computed)

    def _say_done(self) -> str:
        kept = "done" if self.store is None else f"stored in {self.store.folder}"
        return f"{self.done} of {len(self.jobs)} runs are {kept}"


@contextmanager
def _watching(watch: Watch | None, total: int) -> Iterator[Watch | None]:
    if watch is None:
        yield None
        return
    watch.begin(total)
    try:
        yield watch
    finally:
        watch.end()


class _Bar:
    """A progress bar over runs, with the time left."""

    bar: Any

    def begin(self, total: int) -> None:
        from tqdm import tqdm

        self.bar = tqdm(total=total, unit="run", leave=False)

    def finish(self, record: Record, *, computed: bool) -> None:
        if not computed:
            self.bar.initial += 1  # what was there already says nothing about the speed
        self.bar.update()

    def end(self) -> None:
        self.bar.close()
