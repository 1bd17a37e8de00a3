"""The folder of an experiment: one file for each finished run, written as it arrives.

    experiment.json        the grid: what is in the folder
    runs/KEY.npz           one run: arrays and JSON, the same bytes whoever computed it and when
    times/KEY.json         how long it took; the only files that differ from time to time
    checkpoints/, claims/  while runs are computed: gone at the end

A run is done if its file is there, was told the same and is about the same model. Nothing is ever
changed in place.
"""

from __future__ import annotations

import errno
import glob
import json
import shlex
import time
from pathlib import Path
from typing import Any

import attrs

from pkd.experiments.jobs import Job
from pkd.experiments.record import Record
from pkd.experiments.spec import Grid
from pkd.model import ModelError
from pkd.results.files import read_npz, write_npz, write_text

__all__ = ["Store"]

LEFT_SECONDS = 10.0  # after which nobody writes a small file any more


class Store:
    """The files of one folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def open(self, grid: Grid, jobs: list[Job]) -> None:
        """Makes the folder and writes down what will be in it."""
        listed = [
            {"key": job.key, "model": job.model.label, "agent": job.agent.label, "seed": job.seed}
            for job in jobs
        ]
        words = [shlex.join(model.words) or None for model in grid.models]
        text = {
            "form": "experiment 1",
            "title": grid.title,
            "models": dict(zip((model.label for model in grid.models), words, strict=True)),
            "agents": {agent.label: agent.words or None for agent in grid.agents},
            "seeds": list(grid.seeds),
            "episodes": grid.episodes,
            "delta": grid.delta,
            "replan": grid.replan,
            "runs": listed,
        }
        written, path = json.dumps(text, indent=1), self.folder / "experiment.json"
        try:
            for name in ("runs", "times", "checkpoints"):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != written:
                write_text(path, written)
        except OSError as problem:
            raise self.explain(problem, "the experiment was not started") from problem

    def listed(self) -> dict[str, Any]:
        """What `experiment.json` says; ModelError where there is none."""
        path = self.folder / "experiment.json"
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(read, dict) or "runs" not in read:
                raise ValueError("it lists no runs")
        except FileNotFoundError:
            raise ModelError(
                f"{self.folder} is not the folder of an experiment: it has no experiment.json"
            ) from None
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

    def read(self, key: str) -> Record:
        """The record of a finished run, with the time that it took."""
        path = self.path(key)
        record = Record.from_file(path, *read_npz(path))
        try:
            times = json.loads((self.folder / "times" / f"{key}.json").read_text(encoding="utf-8"))
            return attrs.evolve(record, seconds=float(times["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return record  # nobody knows how long it took

    def check(self, job: Job) -> Record:
        """The record of a job; a ModelError where the file is about something else."""
        record = self.read(job.key)
        assert job.prepared is not None
        path = self.path(job.key)
        if record.problem != job.prepared.fingerprint:
            raise ModelError(
                f"{path} is a run of another model that was called {job.model.label} too (the "
                "fingerprints differ); choose another folder, or remove that file"
            )
        if json.dumps(record.config, sort_keys=True) != json.dumps(job.config, sort_keys=True):
            raise ModelError(
                f"{path}: expected a run that was told {job.config}, found {dict(record.config)}; "
                "choose another folder, or remove that file"
            )
        return record

    def write(self, key: str, record: Record) -> None:
        """Keeps a finished run; its checkpoint is not needed any more."""
        times = {"seconds": round(record.seconds, 6)}
        write_text(self.folder / "times" / f"{key}.json", json.dumps(times))
        write_npz(self.path(key), *record.to_file())
        self.clean(key)

    def clean(self, key: str) -> None:
        """Removes what a process left behind that was killed while it computed this run."""
        name = glob.escape(key)
        for pattern in (f"checkpoints/{name}.npz", f"*/.{name}.*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        """Removes the folder of checkpoints if nobody needs it, and what a killed process left."""
        for path in self.folder.glob(".experiment.json.*"):
            if time.time() - path.stat().st_mtime > LEFT_SECONDS:
                path.unlink(missing_ok=True)
        try:
            (self.folder / "checkpoints").rmdir()
        except OSError:  # other processes have files in it
            return

    def explain(self, problem: OSError, rest: str) -> ModelError:
        """An error of the disk as a ModelError that says what to do."""
        what = "the disk is full" if problem.errno == errno.ENOSPC else problem.strerror
        return ModelError(f"{problem.filename or self.folder} cannot be written: {what}; {rest}")
