"""The folder of an experiment: one file for each finished run, written as it arrives.

    experiment.json   the grid: what is in the folder
    runs/KEY.npz      one run: arrays and JSON, the same bytes whoever computed it and when
    times/KEY.json    how long it took; the only files that differ from time to time
    checkpoints/      unfinished runs of rules: gone at the end
    lock              held by the process that computes

A run is done if its file is there, was told the same and is about the same model. Nothing is ever
changed in place.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from pkd.expect import pathname, require
from pkd.experiments.grid import Grid, Job
from pkd.files.atomic import write_text
from pkd.model import ModelError
from pkd.results.run import Run

__all__ = ["Store"]


PARTS = ("runs", "times", "checkpoints")
LEFT = re.compile(r"\.[\w.=-]+\.(npz|json)\.[0-9a-f]{32}")  # a file of ours, half written
KEY = re.compile(r"[\w.=-]+")  # the name of a run's file without its ending: never a path


class Store:
    """The files of one folder."""

    def __init__(self, folder: str | Path) -> None:
        require(pathname("folder", folder))
        self.folder = Path(folder)

    @contextmanager
    def open(self, grid: Grid, jobs: list[Job]) -> Iterator[None]:
        """Makes the folder and holds its lock; another process that holds it is a ModelError."""
        text = {
            "title": grid.title,
            "models": {one.label: shlex.join(one.words) or None for one in grid.models},
            "agents": [one.label for one in grid.agents],
            "points": [
                {one.label: attrs.astuple(one.point) for one in specs}
                for specs in (grid.models, grid.agents)
            ],
            "file": grid.file,
            "seeds": list(grid.seeds),
            "episodes": grid.episodes,
            "delta": grid.delta,
            "replan": grid.replan,
            "runs": [
                {
                    "key": job.key,
                    "model": job.model.label,
                    "agent": job.agent.label,
                    "seed": job.told["seed"],
                }
                for job in jobs
            ],
        }
        try:
            for name in PARTS:
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            lock = (self.folder / "lock").open("wb")
        except OSError as problem:
            raise self.explain(problem, "the experiment was not started") from problem
        with lock:
            if not _take(lock):
                raise ModelError(
                    f"{self.folder} is in use: another process computes runs of it; wait for it, "
                    "or choose another folder"
                )
            write_text(self.folder / "experiment.json", json.dumps(text, indent=1, default=str))
            self._clean(jobs)
            yield
            if not any((self.folder / "checkpoints").iterdir()):
                (self.folder / "checkpoints").rmdir()

    def _clean(self, jobs: list[Job]) -> None:
        """Removes what a process left behind that was killed."""
        places = (self.folder, *(self.folder / name for name in PARTS))
        parts = [path for place in places for path in place.glob(".*") if LEFT.fullmatch(path.name)]
        parts += [self.checkpoint(job.key) for job in jobs if self.is_done(job.key)]
        for path in parts:
            path.unlink(missing_ok=True)

    def listed(self) -> dict[str, Any]:
        """What `experiment.json` says; ModelError where there is none."""
        path = self.folder / "experiment.json"
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(read, dict) or not isinstance(read.get("runs"), list):
                raise ValueError("it lists no runs")
            for run in read["runs"]:
                if not isinstance(run, dict) or not isinstance(key := run.get("key"), str):
                    raise ValueError(f"{run!r} names no file of a run")
                if not KEY.fullmatch(key):
                    raise ValueError(f"{run!r} names no file of a run")
                if not {"model", "agent", "seed"} <= run.keys():
                    raise ValueError(f"{run!r} lacks model, agent or seed")
        except (FileNotFoundError, NotADirectoryError):
            raise ModelError(
                f"{self.folder} is not the folder of an experiment: it has no experiment.json"
            ) from None
        except OSError as problem:
            raise ModelError(f"{path} cannot be read: {problem.strerror}") from None
        except ValueError as problem:
            raise ModelError(f"{path} is not the list of an experiment: {problem}") from None
        return read

    def path(self, key: str) -> Path:
        return self.folder / "runs" / f"{key}.npz"

    def checkpoint(self, key: str) -> Path:
        return self.folder / "checkpoints" / f"{key}.npz"

    def is_done(self, key: str) -> bool:
        """Whether the file of a run is there."""
        return self.path(key).exists()

    def read(self, key: str) -> Run:
        """A finished run, with the time that it took."""
        run = Run.load(self.path(key))
        try:
            times = json.loads((self.folder / "times" / f"{key}.json").read_text(encoding="utf-8"))
            return attrs.evolve(run, seconds=float(times["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return run  # nobody knows how long it took

    def check(self, job: Job) -> None:
        """A ModelError where the file of a job is about something else."""
        run, path = self.read(job.key), self.path(job.key)
        if run.world != job.fingerprint:
            raise ModelError(
                f"{path} is a run of another model that was called {job.model.label} too (the "
                "fingerprints differ); choose another folder, or remove that file"
            )
        found = {key: run.config.get(key) for key in job.told}
        if json.dumps(found, sort_keys=True) != json.dumps(job.told, sort_keys=True):
            raise ModelError(
                f"{path}: expected a run that was told {job.told}, found {found}; choose another "
                "folder, or remove that file"
            )

    def write(self, key: str, run: Run) -> None:
        """Keeps a finished run; its checkpoint is not needed any more."""
        times = {"seconds": round(run.seconds, 6)}
        write_text(self.folder / "times" / f"{key}.json", json.dumps(times))
        attrs.evolve(run, seconds=float("nan")).save(self.path(key))
        self.checkpoint(key).unlink(missing_ok=True)

    def explain(self, problem: OSError, rest: str) -> ModelError:
        """An error of the disk as a ModelError that says what to do."""
        what = "the disk is full" if problem.errno == errno.ENOSPC else problem.strerror
        return ModelError(f"{problem.filename or self.folder} cannot be written: {what}; {rest}")


def _take(file: BinaryIO) -> bool:
    """Locks an open file for this process until it is closed or dies; False: another one has it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
