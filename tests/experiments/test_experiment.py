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
from pkd.cli import INTERRUPTED, main
from pkd.experiments.grid import list_jobs, make_grid
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
    names = ("policy_values", "returns", "upper_values", "plans", "optimal_value", "world")
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
        if path.is_file() and path.parent.name != "times" and path.name != "lock"
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


def test_a_run_does_not_depend_on_the_rest_of_the_grid() -> None:
    whole = pkd.experiment(MODELS, AGENTS, 20, seeds=3)
    part = pkd.experiment(MODELS[1], AGENTS[2], 20, seeds=[1])
    label = part.agents[0]
    [run] = [one for one in whole.runs(MODELS[1], label) if one.seed == 1]
    assert run.returns.tobytes() == part[0].returns.tobytes()


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
    with (folder.parent / "said").open("wb") as said:
        return subprocess.Popen(
            [*command, *more],
            cwd=HERE,
            stdout=quiet,
            stderr=said,
            env=told,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


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


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupted_experiment_says_so_in_one_line_and_is_resumed(
    tmp_path: Path, workers: str
) -> None:
    folder, log = tmp_path / "interrupted", tmp_path / "log"
    main = start(folder, log, "--quiet", "--workers", workers)
    while not list(folder.glob("runs/*Random*.npz")) and main.poll() is None:
        time.sleep(0.02)
    main.send_signal(signal.SIGINT)
    code, said = main.wait(), (tmp_path / "said").read_text()
    assert (code, said) == (INTERRUPTED, "pkd: interrupted\n")
    assert len(list(folder.glob("runs/*Random*.npz"))) < 12
    assert start(folder, log).wait() == 0
    assert start(tmp_path / "whole", tmp_path / "log0").wait() == 0
    assert read_tree(tmp_path / "whole") == read_tree(folder)


def test_a_second_process_on_a_folder_is_refused_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, folder = make_grid(MODELS[0], "greedy", 5, 1), tmp_path / "f"
    words = ["compare", *MODELS[0].split(), "--rules", "greedy", "--episodes", "5"]
    words += ["--seeds", "1", "--save", str(folder)]
    with Store(folder).open(grid, list(list_jobs(grid))):
        assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"pkd: error: {folder} is in use: another process computes runs of it")
    assert said.count("\n") == 1
    assert main(words) == 0
    names = ["experiment.json", "lock", "runs", "times"]
    assert sorted(path.name for path in folder.iterdir()) == names


def test_a_long_run_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pkd.learning.learn import Trial

    pkd.experiment(MODELS[0], "practical", 3000, seeds=1, folder=tmp_path / "whole")
    monkeypatch.setattr("pkd.learning.learn.CHECKPOINT_SECONDS", -1.0)
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
    assert columns["regret"].tolist() == [float(run.regret[-1]) for run in made]
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
    frame = results.to_frame()
    results.to_csv(tmp_path / "runs.csv")
    again = pandas.read_csv(tmp_path / "runs.csv")
    assert frame.drop(columns="seconds").equals(again.drop(columns="seconds"))
    results.to_csv(tmp_path / "curves.csv", curves=True)
    curves = pandas.read_csv(tmp_path / "curves.csv")
    assert not curves.duplicated(["model", "agent", "seed", "episode"]).any()
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


def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        'import pkd\nprint("once")\npkd.compare("gambler", "greedy", 2, 2, workers=2)\n'
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    # Workers begin the script until their pool is closed; without the guard there is no end.
    assert done.stdout.count("once") < 10
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .startswith("pkd.model.ModelError: workers=2 runs this script again in every worker")
    )


def test_hidden_files_of_a_folder_that_are_not_ours_are_left_alone(tmp_path: Path) -> None:
    """The folder `runs` of a user, or a link to one, may hold anything."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".profile").write_text("mine", encoding="utf-8")
    left = home / f".a--b--0--c.npz.{'0' * 32}"
    left.write_text("half a run", encoding="utf-8")
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "runs").symlink_to(home)
    (folder / "times").mkdir()
    (folder / "times" / ".git").mkdir()
    pkd.experiment(MODELS[:1], ["greedy"], 3, 1, folder=folder)
    assert (home / ".profile").read_text(encoding="utf-8") == "mine"
    assert not left.exists()
    assert len(pkd.load_results(folder)) == 1


@pytest.mark.parametrize("key", ["../secret", "/etc/passwd", "a/b", "", 3, None, {"a": 1}])
def test_a_list_of_runs_names_no_files_elsewhere(key: object, tmp_path: Path) -> None:
    pkd.experiment(MODELS[:1], ["greedy"], 3, 1, folder=tmp_path)
    listed = json.loads((tmp_path / "experiment.json").read_text(encoding="utf-8"))
    listed["runs"][0]["key"] = key
    (tmp_path / "experiment.json").write_text(json.dumps(listed), encoding="utf-8")
    with pytest.raises(pkd.ModelError, match="is not the list of an experiment"):
        pkd.load_results(tmp_path)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('folder = "file.txt"', "outputs: folder: file.txt cannot be written"),
        ('csv = "file.txt/a.csv"', "outputs: csv: file.txt/a.csv cannot be written, because of"),
        ('csv = "here"', "outputs: csv: here cannot be written"),
        ('curves = "loop/a.csv"', "outputs: curves: loop/a.csv cannot be written"),
        ('plot = "a.doc"', "outputs: plot: a.doc ends in none of"),
    ],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_first_run(
    output: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("", encoding="utf-8")
    Path("here").mkdir()
    Path("loop").symlink_to("loop")
    text = (
        f'models = ["gambler"]\nagents = ["greedy"]\nepisodes = 3\nseeds = 1\n[outputs]\n{output}\n'
    )
    Path("grid.toml").write_text(text, encoding="utf-8")
    assert main(["experiment", "grid.toml"]) == 2
    assert said in capsys.readouterr().err
    assert not Path("out").exists()
