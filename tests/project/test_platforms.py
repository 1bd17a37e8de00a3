"""What differs on Windows and macOS, by pretending to be there."""

from __future__ import annotations

import builtins
import errno
import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pkd
from pkd import workers
from pkd.cli import main
from pkd.explore import limits
from pkd.files import atomic as files
from pkd.tables.tabular import TabularMDP


def test_a_system_without_sysconf_is_given_eight_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")
    assert workers.memory() == 2**33


def test_a_system_that_does_not_tell_its_memory_is_given_eight_gibibytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sysconf", lambda name: -1)
    assert workers.memory() == 2**33


def test_a_system_without_affinity_counts_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    from pkd.engine import threads

    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delenv("PKD_THREADS", raising=False)
    monkeypatch.setattr(threads, "_count", None)  # whatever another test has set
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert (workers.available(), threads.get_threads()) == (3, 3)


@pytest.mark.parametrize(("platform", "expected"), [("darwin", 5000), ("freebsd", 5000 * 1024)])
def test_memory_in_use_is_known_without_proc(
    platform: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(ru_maxrss=5000)
    told = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: usage)
    monkeypatch.setattr(limits, "Path", lambda name: Path("/nowhere"))
    monkeypatch.setitem(sys.modules, "resource", told)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "platform", platform)
    assert limits.read_resident() == expected


def test_a_system_that_tells_no_memory_in_use_says_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name == "resource":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(limits, "Path", lambda name: Path("/nowhere"))
    monkeypatch.delitem(sys.modules, "resource", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert limits.read_resident() == 0


@pytest.mark.parametrize("times", [2, 99])
def test_a_file_in_use_is_replaced_as_soon_as_it_is_free(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, busy, waits = tmp_path / "run.csv", iter(range(times)), list[float]()
    replace = Path.replace

    def refuse(self: Path, path: Path) -> Path:
        if next(busy, None) is not None:
            raise PermissionError(13, "in use", str(path))
        return replace(self, path)

    monkeypatch.setattr(files, "os", SimpleNamespace(name="nt", fsync=os.fsync))
    monkeypatch.setattr(files.time, "sleep", waits.append)
    monkeypatch.setattr(Path, "replace", refuse)
    if times == 2:
        files.write_text(target, "done")
        assert target.read_text(encoding="utf-8") == "done"
        assert len(waits) == 2
    else:
        with pytest.raises(PermissionError):
            files.write_text(target, "done")
        assert list(tmp_path.iterdir()) == []


def test_a_pool_has_no_more_processes_than_windows_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    class StopError(Exception):
        """Ends the call before a process starts."""

    def pool(most: int, *_: Any, **__: Any) -> Any:
        asked.append(most)
        raise StopError

    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor", pool)
    for name in ("posix", "nt"):
        monkeypatch.setattr(workers, "os", SimpleNamespace(name=name))
        with pytest.raises(StopError):
            workers.spread(divmod, [(1, 1)] * 100, workers=90)
    assert asked == [90, 61]


def test_a_console_that_lacks_a_character_shows_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.npz"
    table = TabularMDP([[[1.0]]], [[1.0]], 1, state_names=("caf\u00e9 \u2192",))
    table.save_npz(path)
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    assert main(["plan", str(path)]) == 0
    assert b"caf\\xe9 \\u2192" in raw.getvalue()


def test_a_closed_pipe_is_no_error_on_windows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(pkd, "plan", stopped, raising=False)
    monkeypatch.setattr("pkd.cli.os", SimpleNamespace(name="nt"))
    assert main(["plan", "two_state_chain"]) == 0
    assert capsys.readouterr().err == ""


def test_a_pattern_that_the_shell_leaves_alone_names_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = TabularMDP([[[1.0]]], [[1.0]], 1)
    for seed in (1, 2):
        pkd.learn(table, 3, optimism=pkd.Greedy(), seed=seed).save(f"run-{seed}.npz")
    assert main(["report", "run-*.npz"]) == 0
    assert capsys.readouterr().out == "report.html: 2 runs\n"
    assert main(["report", "gone-*.npz"]) == 2
    assert "gone-*.npz does not exist" in capsys.readouterr().err
