"""A Dask scheduler with two worker processes on this machine computes the same bits."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pkd
from pkd.cli import main

distributed = pytest.importorskip("distributed")
HERE = Path(__file__).parent
MODELS = ["two_state_chain --horizon 3", "two_state_chain --horizon 4"]
AGENTS = ["practical", "agents_for_tests:Random:seconds=0.02", "agents_for_tests:QLearning"]

# Dask leaves loops and sockets to the garbage collector when its processes end.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # The workers import the agents of these tests; they get the path of this process.
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster:
            yield cluster


def read_runs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("runs/*.npz")}


def test_two_dask_workers_write_the_bytes_of_one_process(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f"models = {MODELS}\nagents = {AGENTS}\nepisodes = 20\nseeds = 3\n")
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    assert main(["experiment", str(file), "--folder", str(alone)]) == 0
    address = cluster.scheduler_address
    assert main(["experiment", str(file), "--folder", str(shared), "--dask", address]) == 0
    assert len(read_runs(alone)) == 2 * 3 * 3
    assert read_runs(alone) == read_runs(shared)


def test_a_dask_worker_that_is_killed_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    agents = {"random": "agents_for_tests:Random:seconds=0.1"}
    pkd.experiment(MODELS, agents, 20, seeds=8, folder=tmp_path / "alone")
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        pids = client.run(os.getpid)

        def kill_one() -> None:
            while len(read_runs(tmp_path / "shared")) < 2:
                time.sleep(0.02)
            os.kill(next(iter(pids.values())), signal.SIGKILL)

        killer = threading.Thread(target=kill_one)
        killer.start()
        pkd.experiment(
            MODELS, agents, 20, seeds=8, folder=tmp_path / "shared", workers=client.get_executor()
        )
        killer.join()
        assert client.run(os.getpid) != pids
    assert read_runs(tmp_path / "alone") == read_runs(tmp_path / "shared")


def test_a_scheduler_that_does_not_answer_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pkd.experiments.experiment.DASK_SECONDS", 0.5)
    file = tmp_path / "grid.toml"
    file.write_text(f"models = {MODELS}\nagents = ['greedy']\nepisodes = 20\nseeds = 1\n")
    words = ["experiment", str(file), "--folder", str(tmp_path / "f"), "--dask", "127.0.0.1:9"]
    assert main(words) == 2
    assert "no Dask scheduler answers at 127.0.0.1:9" in capsys.readouterr().err
