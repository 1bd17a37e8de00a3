"""Grids of runs: the same bits whoever computes them, in whatever order, interrupted or not."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import pkd
from pkd.experiments.claims import Claims
from pkd.experiments.store import Store

HERE = Path(__file__).parent
MODELS = ["two_state_chain --horizon 3", "two_state_chain --horizon 4"]
AGENTS = ["practical", "posterior", "agents_for_tests:QLearning", "agents_for_tests:Random"]


@pytest.fixture(autouse=True)
def _agents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def differ(one: pkd.Results, other: pkd.Results) -> list[str]:
    """The runs and arrays that are not equal to the bit."""
    assert one.cells == other.cells
    names = ("policy_values", "returns", "upper_values", "plans", "optimal_value", "problem")
    return [
        f"{cell} {name}"
        for cell, a, b in zip(one.cells, one, other, strict=True)
        for name in names
        if np.asarray(getattr(a, name)).tobytes() != np.asarray(getattr(b, name)).tobytes()
    ]


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file but the times, by its path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.parent.name != "times"
    }


def test_the_grid_has_every_model_with_every_agent_and_every_seed() -> None:
    results = pkd.experiment(MODELS, AGENTS[:2], 20, seeds=[5, 2])
    assert len(results) == 2 * 2 * 2
    assert [cell.seed for cell in results.cells[:4]] == [5, 2, 5, 2]
    assert results.models == tuple(MODELS)
    assert results[0].seed == 5


def test_every_executor_gives_the_same_bits() -> None:
    expected = pkd.experiment(MODELS, AGENTS, 30, seeds=2)
    with ThreadPoolExecutor(3) as threads:
        workers: list[int | Executor] = [2, threads]
        for who in workers:
            assert differ(expected, pkd.experiment(MODELS, AGENTS, 30, seeds=2, workers=who)) == []


def test_a_record_does_not_depend_on_the_rest_of_the_grid() -> None:
    whole = pkd.experiment(MODELS, AGENTS, 20, seeds=3)
    part = pkd.experiment(MODELS[1], AGENTS[2], 20, seeds=[1])
    label = part.agents[0]
    [record] = [one for one in whole.records(MODELS[1], label) if one.seed == 1]
    assert record.returns.tobytes() == part[0].returns.tobytes()


def test_a_worker_that_is_killed_changes_nothing(tmp_path: Path) -> None:
    flag = tmp_path / "died"
    words = f"agents_for_tests:Random:die={flag}"
    found = pkd.experiment(MODELS, {"random": words}, 20, seeds=4, workers=2)
    assert flag.exists()
    assert differ(pkd.experiment(MODELS, {"random": AGENTS[3]}, 20, seeds=4), found) == []


def test_a_job_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    words = "agents_for_tests:Random:die=/nowhere/at/all"  # the flag cannot be written
    with pytest.raises(pkd.ModelError, match="Random"):
        pkd.experiment(MODELS[0], words, 5, seeds=1, workers=2)


def test_what_is_in_the_folder_is_not_computed_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    agents = {"random": f"agents_for_tests:Random:log={log}"}
    for seeds in (2, 2, 3):
        pkd.experiment(MODELS, agents, 20, seeds=seeds, folder=tmp_path / "f")
    assert sorted(log.read_text().split("\n")[:-1]) == [
        f"{h} {k}" for h in (3, 4) for k in (0, 1, 2)
    ]


def test_a_file_has_the_same_bytes_whenever_it_is_written(tmp_path: Path) -> None:
    pkd.experiment(MODELS, AGENTS, 20, seeds=2, folder=tmp_path / "a")
    time.sleep(2.1)  # the times of a zip file count in steps of two seconds
    pkd.experiment(MODELS, AGENTS, 20, seeds=2, folder=tmp_path / "b", workers=2)
    one, other = read_tree(tmp_path / "a"), read_tree(tmp_path / "b")
    assert len(one) == 1 + 16
    assert one == other


def start(folder: Path, log: Path, *more: str) -> subprocess.Popen[bytes]:
    file = folder.parent / "grid.toml"
    file.write_text(
        f"""
        models = {json.dumps(MODELS)}
        agents = ["practical", "agents_for_tests:Random:seconds=0.05"]
        episodes = 20
        seeds = 6
        """
    )
    command = [sys.executable, "-m", "pkd", "experiment", str(file), "--folder", str(folder)]
    quiet, told = subprocess.DEVNULL, {**os.environ, "PKD_TEST_LOG": str(log)}
    return subprocess.Popen([*command, *more], cwd=HERE, stdout=quiet, stderr=quiet, env=told)


def test_a_killed_experiment_ends_with_the_same_bytes_and_nothing_twice(tmp_path: Path) -> None:
    assert start(tmp_path / "whole", tmp_path / "log0").wait() == 0
    log, folder, moments = tmp_path / "log", tmp_path / "killed", random.Random(1)
    for kill in range(2):
        main = start(folder, log)
        # Some runs are there before the kill, but not all.
        while len(list(folder.glob("runs/*Random*.npz"))) < 3 * kill + 1 and main.poll() is None:
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 0.1))
        main.send_signal(signal.SIGKILL)
        main.wait()
    done, begun = len(list(folder.glob("runs/*Random*.npz"))), log.read_text().count("\n")
    assert 3 < done < 12
    assert start(folder, log).wait() == 0
    assert log.read_text().count("\n") - begun == 12 - done  # exactly what was missing
    whole = read_tree(tmp_path / "whole")
    assert len(whole) == 1 + 24
    assert whole == read_tree(folder)


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    log, folder = tmp_path / "log", tmp_path / "shared"
    both = [start(folder, log) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    begun = log.read_text().split("\n")[:-1]
    assert len(begun) == len(set(begun)) == 12
    assert sorted(path.name for path in folder.iterdir()) == ["experiment.json", "runs", "times"]


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    code = (
        "import sys, os; from pathlib import Path; from pkd.experiments.claims import Claims; "
        "claims = Claims(Path(sys.argv[1])).__enter__(); assert claims.take('run'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.0"]
    with Claims(tmp_path) as claims:
        assert claims.take("run")
        assert not Claims(tmp_path).take("run")  # now it is ours
    assert not tmp_path.exists()


def test_a_claim_of_another_machine_is_stale_after_a_minute(tmp_path: Path) -> None:
    claim = tmp_path / "run.0"
    claim.write_text(json.dumps({"machine": "elsewhere", "process": 1, "started": "1"}))
    assert not Claims(tmp_path).take("run")
    long_ago = time.time() - 61
    os.utime(claim, (long_ago, long_ago))
    assert Claims(tmp_path).take("run")


def test_a_long_run_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pkd.learning import Trial

    pkd.experiment(MODELS[0], "practical", 3000, seeds=1, folder=tmp_path / "whole")
    monkeypatch.setattr("pkd.learning.CHECKPOINT_SECONDS", -1.0)
    save, resumed = Trial.save, []

    def save_and_stop(self: Trial, path: Path) -> None:
        save(self, path)
        if self.done > 100:
            raise KeyboardInterrupt

    monkeypatch.setattr(Trial, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        pkd.experiment(MODELS[0], "practical", 3000, seeds=1, folder=tmp_path / "part")
    monkeypatch.setattr(Trial, "save", save)
    go = Trial.go
    monkeypatch.setattr(Trial, "go", lambda self, *a: resumed.append(self.done) or go(self, *a))
    pkd.experiment(MODELS[0], "practical", 3000, seeds=1, folder=tmp_path / "part")
    assert max(resumed) > 100
    assert read_tree(tmp_path / "whole") == read_tree(tmp_path / "part")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(
        pkd.ModelError, match=r"cannot be written: .*; the experiment was not started"
    ):
        pkd.experiment(MODELS[0], "greedy", 5, seeds=1, folder=tmp_path / "file" / "f")


def test_a_full_disk_is_named_and_leaves_only_whole_files(tmp_path: Path) -> None:
    folder = tmp_path / "f"
    pkd.experiment(MODELS[0], "greedy", 5000, seeds=1, folder=folder)
    before = read_tree(folder)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    try:
        with pytest.raises(pkd.ModelError, match=r"1 of 3 runs are stored in .*; make room"):
            pkd.experiment(MODELS[0], "greedy", 5000, seeds=3, folder=folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    kept = {name: data for name, data in read_tree(folder).items() if name.startswith("runs/")}
    assert kept == {name: data for name, data in before.items() if name.startswith("runs/")}
    pkd.experiment(MODELS[0], "greedy", 5000, seeds=3, folder=folder)
    assert len(pkd.load_results(folder)) == 3


def test_a_run_of_another_model_with_the_same_name_is_refused(tmp_path: Path) -> None:
    first = pkd.TabularMDP([[[1.0]]], [[1.0]], horizon=2)
    other = pkd.TabularMDP([[[1.0]]], [[2.0]], horizon=2)
    pkd.experiment({"m": first}, "greedy", 5, seeds=1, folder=tmp_path)
    with pytest.raises(pkd.ModelError, match="another model that was called m"):
        pkd.experiment({"m": other}, "greedy", 5, seeds=1, folder=tmp_path)


def test_an_agent_that_fails_in_a_worker_is_named_with_its_job(tmp_path: Path) -> None:
    with pytest.raises(pkd.ModelError, match=r"Random, seed [01]: agent Random: begin raised"):
        pkd.experiment(MODELS[0], "agents_for_tests:Random:log=/nowhere/at/all", 5, 2, workers=2)


def test_an_object_that_cannot_be_sent_is_named() -> None:
    class Local(pkd.Greedy):  # type: ignore[misc]
        pass

    with pytest.raises(pkd.ModelError, match="cannot be sent to another process"):
        pkd.experiment(MODELS[0], Local(), 5, seeds=2, workers=2)


def test_workers_must_be_a_number_or_an_executor() -> None:
    with pytest.raises(pkd.ModelError, match="workers is 0; expected"):
        pkd.experiment(MODELS[0], "greedy", 5, seeds=2, workers=0)


def test_results_come_back_from_the_folder(tmp_path: Path) -> None:
    made = pkd.experiment(MODELS, AGENTS, 20, seeds=2, folder=tmp_path)
    loaded = pkd.load_results(tmp_path)
    assert differ(made, loaded) == []
    columns = loaded.arrays()
    assert columns["regret"].tolist() == [float(record.regret[-1]) for record in made]
    exact = [name in ("practical", "posterior") or "Q" in name for _, name, _ in loaded.cells]
    kinds = ["estimated" if "Random" in name else "exact" for _, name, _ in loaded.cells]
    assert columns["regret_is"].tolist() == kinds
    assert any(exact)
    next(iter((tmp_path / "runs").iterdir())).unlink()
    with pytest.raises(pkd.ModelError, match="15 of 16 runs are there"):
        pkd.load_results(tmp_path)
    assert len(pkd.load_results(tmp_path, partial=True)) == 15


def test_results_are_a_frame_and_a_table_of_text(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    results = pkd.experiment(MODELS, AGENTS[:1], 20, seeds=2)
    frame = results.frame()
    results.to_csv(tmp_path / "runs.csv")
    again = pandas.read_csv(tmp_path / "runs.csv")
    assert frame.drop(columns="seconds").equals(again.drop(columns="seconds"))
    results.to_csv(tmp_path / "curves.csv", curves=True)
    curves = pandas.read_csv(tmp_path / "curves.csv")
    assert curves.groupby(["model", "agent", "seed"])["regret"].last().tolist() == pytest.approx(
        frame.sort_values(["model", "agent", "seed"])["regret"].tolist()
    )


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    pkd.experiment(MODELS[0], "greedy", 20, seeds=1, folder=tmp_path)
    [path] = (tmp_path / "runs").iterdir()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(pkd.ModelError, match=path.name):
        pkd.load_results(tmp_path)[0]
    assert Store(tmp_path).is_done(path.stem)


def test_a_model_file_that_changes_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for pay in (1.0, 2.0):
        np.savez("m.npz", P=np.ones((1, 1, 1)), r=np.array([[pay]]))
        results = pkd.experiment("m.npz --horizon 3", "greedy", 5, seeds=1)
        assert results[0].optimal_value == 3 * pay
