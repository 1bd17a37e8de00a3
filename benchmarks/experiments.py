"""Experiments are the same bytes whoever computes them, and whenever they are interrupted.

  python benchmarks/experiments.py --out out                    a small grid, 5 kills
  python benchmarks/experiments.py --seeds 20 --kills 20 --out out       all: 12 models, 8 agents

One grid is computed by one process, by two processes, by a Dask scheduler with two worker processes
on 127.0.0.1, and by a process that is killed (signal 9) at random moments and started again. The
files must be equal, and no run that was stored may be computed again. Two killed workers, one of a
pool and one of Dask, must change nothing either.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pkd.cli import table, write_csv

MODELS = [
    "riverswim", "riverswim --delay 1", "riverswim --delay 2", "two_state_chain --delay 1",
    "random_mdp", "grid", "gambler", "tank", "maintenance", "pricing", "kuhn", "late_actions",
]  # fmt: skip
AGENTS = [
    "certified", "mvp", "mvp:c1=1,c2=1", "practical", "hoeffding", "greedy", "posterior",
    "coin_agent:Coin",
]  # fmt: skip
# An agent that notes every run that it begins, with the grid's own process number.
COIN = """
import os
import numpy as np
import pkd

class Coin(pkd.Agent):
    def begin(self, model, *, episodes, seed):
        self.model, self.rng = model, np.random.default_rng(seed)
        if "PKD_LOG" in os.environ:
            with open(os.environ["PKD_LOG"], "a") as file:
                file.write(f"{type(model).__name__} {model.horizon} {seed}\\n")

    def act(self, h, x, y):
        actions = list(self.model.actions(x, y))
        return actions[self.rng.integers(len(actions))]

    def observe(self, episode):
        pass
"""


class Trials:
    """The ways to compute one grid, each in a folder of its own."""

    def __init__(self, place: Path, models: int, seeds: int, episodes: int) -> None:
        self.place = place
        self.file = place / "grid.toml"
        (place / "coin_agent.py").write_text(COIN, encoding="utf-8")
        self.file.write_text(
            f"models = {json.dumps(MODELS[:models])}\nagents = {json.dumps(AGENTS)}\n"
            f"episodes = {episodes}\nseeds = {seeds}\n",
            encoding="utf-8",
        )
        self.runs = models * len(AGENTS) * seeds

    def start(self, name: str, *more: str) -> subprocess.Popen[bytes]:
        folder = self.place / name
        command = [sys.executable, "-m", "pkd", "experiment", str(self.file)]
        told = {
            **os.environ,
            "PKD_LOG": str(self.place / f"{name}.log"),
            # A killed process leaves semaphores, which its own helper process cleans up.
            "PYTHONWARNINGS": "ignore::UserWarning:multiprocessing.resource_tracker",
        }
        return subprocess.Popen(
            [*command, "--folder", str(folder), *more],
            cwd=self.place,
            env=told,
            stdout=subprocess.DEVNULL,
        )

    def finish(self, name: str, *more: str) -> float:
        began = time.perf_counter()
        code = self.start(name, *more).wait()
        if code:
            raise SystemExit(f"{name}: exit code {code}")
        return time.perf_counter() - began

    def digest(self, name: str) -> str:
        """One number for all files but the times."""
        found = hashlib.sha256()
        for path in sorted((self.place / name).rglob("*")):
            if path.is_file() and path.parent.name != "times":
                found.update(str(path.relative_to(self.place / name)).encode())
                found.update(path.read_bytes())
        return found.hexdigest()

    def count(self, name: str) -> int:
        return len(list((self.place / name / "runs").glob("*.npz")))

    def begun(self, name: str) -> int:
        log = self.place / f"{name}.log"
        return log.read_text().count("\n") if log.exists() else 0

    def stored(self, name: str) -> int:
        return len(list((self.place / name / "runs").glob("*--Coin--*.npz")))

    def list_files(self, name: str) -> dict[Path, tuple[int, int]]:
        """Each stored run, and what changes when it is written anew."""
        found = {path: path.stat() for path in (self.place / name / "runs").glob("*.npz")}
        return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}

    def kill(self, name: str, kills: int) -> tuple[float, int]:
        """Kills the main process at random moments, then lets it finish.

        Returns the seconds, and how many runs were computed although they were stored: files that
        were written anew, and runs that the last process began beyond those that were missing.
        Results that were on their way from a worker when the process was killed were not stored.
        """
        moments, began = random.Random(0), time.perf_counter()
        kept: dict[Path, tuple[int, int]] = {}
        for number in range(kills):
            goal = (number + 1) * self.runs // (kills + 2)
            main = self.start(name, "--workers", "2")
            while self.count(name) < goal and main.poll() is None:
                time.sleep(0.01)
            time.sleep(moments.uniform(0.0, 0.3))
            main.send_signal(signal.SIGKILL)
            main.wait()
            time.sleep(0.5)  # its workers leave
            kept = {**self.list_files(name), **kept}  # as they were when first seen
        before, begun = self.stored(name), self.begun(name)
        self.finish(name)
        missing = self.runs // len(AGENTS) - before
        now = self.list_files(name)
        twice = sum(now[path] != was for path, was in kept.items())
        twice += self.begun(name) - begun - missing
        return time.perf_counter() - began, twice


@contextmanager
def dask(place: Path) -> Iterator[Any]:
    """A scheduler and two worker processes on this machine."""
    from distributed import LocalCluster

    sys.path.insert(0, str(place))  # the workers get this path
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


def kill_worker(trials: Trials, name: str, pids: list[int]) -> None:
    """Kills one worker when a third of the runs is there."""
    while trials.count(name) < trials.runs // 3:
        time.sleep(0.02)
    os.kill(pids[0], signal.SIGKILL)


def run_dask(trials: Trials, name: str, cluster: Any, *, kill: bool) -> float:
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())
    killer = threading.Thread(target=kill_worker, args=(trials, name, pids))
    if kill:
        killer.start()
    seconds = trials.finish(name, "--dask", cluster.scheduler_address)
    if kill:
        killer.join()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=len(MODELS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        trials = Trials(Path(place), args.models, args.seeds, args.episodes)
        rows: list[tuple[str, float, str, str]] = []

        def note(name: str, seconds: float, twice: str = "") -> None:
            equal = trials.digest(name) == trials.digest("alone")
            rows.append((name, round(seconds, 1), "equal" if equal else "DIFFERENT", twice))
            print(*rows[-1], flush=True)

        note("alone", trials.finish("alone"))
        note("two processes", trials.finish("two processes", "--workers", "2"))
        with dask(trials.place) as cluster:
            note("dask", run_dask(trials, "dask", cluster, kill=False))
            note("dask, worker killed", run_dask(trials, "dask, worker killed", cluster, kill=True))
        seconds, twice = trials.kill("killed", args.kills)
        note("killed", seconds, str(twice))
    headers = ("computed by", "seconds", "files", "computed twice")
    print(f"{trials.runs} runs, {args.kills} kills")
    print(table(headers, rows))
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        write_csv(args.out / "experiments.csv", headers, rows)
    if any("DIFFERENT" in row or row[3] not in ("", "0") for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
