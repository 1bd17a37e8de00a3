"""One job of an experiment: a model, an agent and a seed, which any process can turn into a record.

A job is small and picklable. It builds its model where it runs, and the process keeps the last one.
The record does not depend on the process, the order of the jobs or the number of threads.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs

from pkd.engine.threads import set_threads
from pkd.experiments.play import World, describe_agent
from pkd.experiments.record import Record
from pkd.experiments.spec import AgentSpec, Grid, ModelSpec
from pkd.learning import learn
from pkd.model import ModelError
from pkd.optimism import Optimism

__all__ = ["Job", "Prepared", "list_jobs", "prepare", "run_job"]

_LONGEST_NAME = 60  # characters of a label in the name of a file
_here = threading.local()  # the last world of this thread


@attrs.frozen
class Prepared:
    """What all jobs of one model share: its optimum is planned once."""

    optimum: float
    fingerprint: str


@attrs.frozen
class Job:
    """One run that is to be computed."""

    model: ModelSpec
    agent: AgentSpec
    seed: int
    episodes: int
    delta: float
    replan: str
    key: str  # the name of its file, without an ending
    config: dict[str, Any]  # as the record will have it
    prepared: Prepared | None = None  # None: not known yet
    checkpoint: str | None = None  # a file

    def __str__(self) -> str:
        return f"{self.model.label}, {self.agent.label}, seed {self.seed}"


def list_jobs(grid: Grid) -> Iterator[Job]:
    """Every job of a grid; those of one model stand together."""
    agents = [(spec, spec.build()) for spec in grid.agents]
    for model in grid.models:
        for spec, agent in agents:
            config = {"agent": describe_agent(agent), "episodes": grid.episodes}
            if isinstance(agent, Optimism):
                config |= {"delta": grid.delta, "replan": grid.replan}
            for seed in grid.seeds:
                told = {**config, "seed": seed}
                key = _name(model, spec, told)
                yield Job(model, spec, seed, grid.episodes, grid.delta, grid.replan, key, told)


def prepare(model: ModelSpec, agents: Iterable[AgentSpec]) -> Prepared:
    """Builds a model, plans its optimum, and has the kernels compiled before workers start."""
    world = _build_world(model)
    for agent in (spec.build() for spec in agents):
        if isinstance(agent, Optimism):
            learn(world.compiled, world.law, 1, optimism=agent, optimal_value=0.0)
    return Prepared(float(world.optimum), world.fingerprint)


def run_job(job: Job, *, alone: bool = False) -> Record:
    """The record of a job. alone: no other job runs beside it, so all threads may be used."""
    if not alone:
        set_threads(1)  # jobs share the machine by processes, and not by threads as well
    world = _find_world(job)
    if job.prepared is not None and world.fingerprint != job.prepared.fingerprint:
        raise ModelError(
            f"{job.model.label} is another model in this process: its fingerprint differs. "
            "Expected the same files and versions wherever jobs run, and a model that is built "
            "the same way every time"
        )
    record = world.play(
        job.agent.build(),
        job.episodes,
        job.seed,
        delta=job.delta,
        replan=job.replan,
        checkpoint=_find_checkpoint(job),
    )
    return attrs.evolve(record, label=job.agent.label, model=job.model.label)


def _build_world(model: ModelSpec) -> World:
    """The world of a model, which this thread keeps until the next one.

    A compiled model has working arrays, so two threads must not share one.
    """
    _here.label, _here.world = model.label, model.build()
    world: World = _here.world
    return world


def _find_world(job: Job) -> World:
    """The world of a job: the last one of this thread if it is the same."""
    world: World | None = getattr(_here, "world", None)
    shared = job.prepared
    if (
        world is None
        or shared is None
        or _here.label != job.model.label
        or world.fingerprint != shared.fingerprint
    ):
        world = _build_world(job.model)
    if shared is not None:
        world.given_optimum = shared.optimum
    return world


def _find_checkpoint(job: Job) -> Path | None:
    """The file of a checkpoint; None where its folder is not there, as on another machine."""
    if job.checkpoint is None or not Path(job.checkpoint).parent.is_dir():
        return None
    return Path(job.checkpoint)


def _name(model: ModelSpec, agent: AgentSpec, config: dict[str, Any]) -> str:
    """Words for people, and a digest of everything that the job is told."""
    # The words of an agent say options that its class may not keep.
    words = [model.label, model.words, agent.label, agent.words]
    told = json.dumps([*words, config], sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    return f"{_slug(model.label)}--{_slug(agent.label)}--{config['seed']}--{digest}"


def _slug(label: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", label).strip("_.-")[:_LONGEST_NAME]
