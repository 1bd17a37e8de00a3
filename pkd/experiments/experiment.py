"""`experiment`: every model with every agent and every seed; `compare`: one model.

What a folder has is not computed again, so an experiment that was killed is resumed by the same
call. The runs are the same bits whoever computes them.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from multiprocessing import current_process
from pathlib import Path
from typing import Any

import attrs

from pkd.engine.threads import get_threads, set_threads
from pkd.expect import show
from pkd.experiments.grid import AgentSpec, Grid, Job, keep_world, list_jobs, make_grid, run_job
from pkd.experiments.results import Results
from pkd.experiments.store import Store
from pkd.learning.learn import learn
from pkd.model import ModelError
from pkd.optimism import Optimism
from pkd.progress import count
from pkd.results.run import Run
from pkd.rules.schedule import Schedule
from pkd.workers import hold_interrupts, open_pool

__all__ = ["compare", "connect_dask", "experiment", "run_grid"]

MOST_WORKERS = 1000
UNGUARDED = 77  # the exit code of a worker whose script has no guard
MOST_DEATHS = 4  # of workers, one after the other, without a finished run between them
DASK_SECONDS = 10.0  # that a scheduler has to answer


def compare(
    model: Any,
    agents: Any = ("certified", "mvp", "practical", "greedy"),
    episodes: int = 10_000,
    seeds: Any = 10,
    **options: Any,
) -> Results:
    """Agents side by side on one model: `experiment` with defaults, and the same options.

    model, agents, episodes, seeds: as there. options: all others of `experiment`.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> results = pkd.compare({"coin": coin}, {"published": "mvp", "small": "practical"}, 2000)
    >>> pair = results.pair("coin", "small", "published")
    >>> pair.difference < 0, pair.p < 0.05  # small constants have less regret here
    (True, True)
    """
    return experiment(model, agents, episodes, seeds, **options)


def experiment(
    models: Any,
    agents: Any,
    episodes: int,
    seeds: Any,
    *,
    delta: float = 0.05,
    replan: Schedule = "doubling",
    sweep: Mapping[str, Any] | None = None,
    workers: int | Executor = 1,
    folder: str | Path | None = None,
    progress: bool = False,
) -> Results:
    """Every model with every agent and every seed.

    models, agents: one or several of them, or {label: one}; a model is a problem or words of the
    command line, an agent an `Agent`, a rule of optimism, words such as "mvp:c1=1", or a table
    {"agent": one of these, "replan": "every"}. episodes: of each run. seeds: how many, or which.
    sweep: {parameter: values}, every combination of which is a model (`pkd.experiments.sweep`).
    workers: processes, or any `concurrent.futures.Executor`. folder: every run is written there as
    soon as it is finished, and what is there is not computed again. delta and replan are for rules
    of optimism; a rule whose plan is random plans before every episode. progress: a bar on stderr.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> agents = {"small": "practical", "none": "greedy"}
    >>> results = pkd.experiment({"coin": coin}, agents, 200, seeds=3)
    >>> len(results), results.models, results.curves("coin", "none").shape
    (6, ('coin',), (3, 200))
    """
    grid = make_grid(models, agents, episodes, seeds, delta=delta, replan=replan, sweep=sweep)
    return run_grid(grid, workers, folder, progress=progress)


def run_grid(
    grid: Grid,
    workers: int | Executor = 1,
    folder: str | Path | None = None,
    *,
    progress: bool | None = False,
) -> Results:
    """Computes what is missing of a grid; the results come in the order of the grid."""
    jobs = list(list_jobs(grid))
    _check_workers(workers, jobs)
    store = None if folder is None else Store(folder)
    kept: dict[str, Run] = {}
    threads = get_threads()
    with store.open(grid, jobs) if store else nullcontext():
        jobs = _prepare(jobs, store)
        if store is not None:
            for job in jobs:
                if store.is_done(job.key):
                    store.check(job)
        left = [job for job in jobs if store is None or not store.is_done(job.key)]
        done = len(jobs) - len(left)
        try:
            with count("runs", len(jobs), wanted=progress, done=done) as advance:
                for job, run in _compute(left, workers):
                    if store is None:
                        kept[job.key] = run
                    else:
                        store.write(job.key, run)
                    done += 1
                    advance()
        except (OSError, _WorkersDiedError) as problem:
            where = "done" if store is None else f"stored in {store.folder}"
            rest = f"{done} of {len(jobs)} runs are {where}"
            if isinstance(problem, _WorkersDiedError):
                raise ModelError(f"{problem} {rest}") from problem
            if store is None:
                raise
            raise store.explain(problem, f"{rest}; make room and run the same again") from problem
        finally:
            set_threads(threads)
    cells = [(job.model.label, job.agent.label, job.told["seed"]) for job in jobs]
    load = kept.__getitem__ if store is None else store.read
    models = {one.label: one.point for one in grid.models}
    agents = {one.label: one.point for one in grid.agents}
    return Results(cells, lambda i: load(jobs[i].key), models, agents)


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


def _prepare(jobs: list[Job], store: Store | None) -> list[Job]:
    """The jobs with what those of one model share, and with the files of their checkpoints.

    The optimum is planned here, and the kernels are compiled before workers start.
    """
    agents: dict[str, AgentSpec] = {job.agent.label: job.agent for job in jobs}
    shared: dict[str, tuple[float, str]] = {}
    ready = []
    for job in jobs:
        label = job.model.label
        if label not in shared:
            world = job.model.build()
            for agent in (spec.build() for spec in agents.values()):
                if isinstance(agent, Optimism):
                    learn(world.compiled, world.law, 1, optimism=agent, optimal_value=0.0)
            shared[label] = world.optimum, world.fingerprint
            keep_world(label, world)
        optimum, fingerprint = shared[label]
        file = None if store is None else str(store.checkpoint(job.key).absolute())
        ready.append(attrs.evolve(job, optimum=optimum, fingerprint=fingerprint, checkpoint=file))
    return ready


def _compute(jobs: list[Job], workers: int | Executor) -> Iterator[tuple[Job, Run]]:
    """Each job with its run, as it is finished; a pool whose worker dies is replaced."""
    if workers == 1:
        for job in jobs:
            with _name_job(job):
                run = run_job(job, alone=True)
            yield job, run
        return
    left, deaths = {job.key: job for job in jobs}, 0
    processes, given = (workers, None) if isinstance(workers, int) else (0, workers)
    started: list[Any] = []
    while left:
        try:
            where: AbstractContextManager[Executor] = (
                nullcontext(given) if given else open_pool(processes)
            )
            with where as pool:
                with nullcontext() if given else hold_interrupts():
                    futures = {pool.submit(run_job, job): job for job in left.values()}
                started = list((getattr(pool, "_processes", None) or {}).values())
                try:
                    for future in as_completed(futures):
                        job = futures.pop(future)
                        with _name_job(job):
                            run = future.result()
                        yield left.pop(job.key), run
                        deaths = 0
                finally:
                    # A pool of our own ends with its jobs. Its thread would fail on a future that
                    # others have cancelled.
                    for future in futures if given else ():
                        future.cancel()
        except BrokenExecutor as problem:
            if any(process.exitcode == UNGUARDED for process in started):
                raise ModelError(
                    f"workers={workers} runs this script again in every worker, and that would "
                    'start workers, too; put the call under `if __name__ == "__main__":`, or '
                    "use workers=1"
                ) from None
            deaths += 1
            first = next(iter(left.values()))
            if isinstance(workers, Executor) or deaths == MOST_DEATHS:
                raise _WorkersDiedError(
                    f"{first}: a worker process died {deaths} times while this job or another was "
                    f"computed ({problem}); is there enough memory?"
                ) from problem


class _WorkersDiedError(Exception):
    """Workers die again and again."""


@contextmanager
def _name_job(job: Job) -> Iterator[None]:
    try:
        yield
    except ModelError as problem:
        raise ModelError([f"{job}: {finding}" for finding in problem.findings]) from problem


def _check_workers(workers: Any, jobs: Iterable[Job]) -> None:
    """A ModelError where workers are neither a number nor an executor, or cannot get the jobs."""
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if is_number and workers > 1 and getattr(current_process(), "_inheriting", False):
        os._exit(UNGUARDED)  # a worker that imports the script of its parent: the parent says so
    if not (is_number and 1 <= workers <= MOST_WORKERS) and not hasattr(workers, "submit"):
        raise ModelError(
            f"workers is {show(workers)}; expected a whole number from 1 to {MOST_WORKERS}, or an "
            "executor with submit(function, *arguments), such as concurrent.futures gives"
        )
    if is_number and workers == 1:
        return
    findings = []
    for part in {id(part): part for job in jobs for part in (job.model, job.agent)}.values():
        try:
            pickle.dumps(part)
        except Exception as problem:  # noqa: BLE001 - objects of the user raise anything here
            findings.append(
                f"{part.label} cannot be sent to another process: {problem}; define it at the "
                "top of a module, name it by words such as module:object, or use workers=1"
            )
    if findings:
        raise ModelError(findings)
