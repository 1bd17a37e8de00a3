"""Jobs in several processes: the same results in the same order, and errors as they were raised."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pkd
from pkd.cli import main
from pkd.workers import available, spread


def fails(which: int) -> int:
    if which == 2:
        raise pkd.ModelError([f"job {which} is bad", "twice"])
    return which


def test_results_come_in_the_order_of_the_jobs() -> None:
    ended: list[int] = []
    assert spread(divmod, [(7, 2), (9, 4), (8, 3)], 2, lambda: ended.append(1)) == [
        (3, 1),
        (2, 1),
        (2, 2),
    ]
    assert len(ended) == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_job_is_the_error_of_all(workers: int) -> None:
    with pytest.raises(pkd.ModelError) as caught:
        spread(fails, [(1,), (2,), (3,)], workers)
    assert caught.value.findings == ("job 2 is bad", "twice")


def make_large(size: int) -> bytes:
    return bytes(size)


@pytest.mark.skipif(os.name == "nt", reason="no signal is sent to one process there")
@pytest.mark.parametrize("size", [1, 50_000_000])
def test_an_interrupt_ends_all_workers_at_once(tmp_path: Path, size: int) -> None:
    """A worker that is killed half way through a large result leaves nobody who waits for it."""
    script, said = tmp_path / "script.py", tmp_path / "said"
    script.write_text(
        "import signal\nfrom pkd.workers import spread\nfrom test_workers import make_large\n"
        'if __name__ == "__main__":\n'
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    try:\n"
        f"        spread(make_large, [({size},)] * 100_000, 2, lambda: print(1, flush=True))\n"
        "    except KeyboardInterrupt:\n"
        '        print("interrupted")\n'
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with said.open("wb") as file:
        main = subprocess.Popen(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            stderr=file,
            env={**os.environ, "PYTHONPATH": path},
        )
    assert main.stdout is not None
    assert main.stdout.readline() == b"1\n"
    time.sleep(0.05)
    main.send_signal(signal.SIGINT)
    try:
        out = main.communicate(timeout=60)[0]
    finally:
        main.kill()
    assert out.splitlines()[-1] == b"interrupted"
    assert (main.returncode, said.read_text()) == (0, "")


def test_there_is_at_least_one_worker() -> None:
    assert available() >= 1


def test_a_seed_gives_the_same_bits_whatever_the_number_of_workers(tmp_path: Path) -> None:
    words = [
        "learn",
        "two_state_chain",
        "--delay",
        "1",
        "--episodes",
        "200",
        "--optimism",
        "practical",
        "--seeds",
        "2",
        "--quiet",
    ]
    for workers in ("1", "2"):
        assert (
            main([*words, "--workers", workers, "--save", str(tmp_path / f"by{workers}.npz")]) == 0
        )
    for seed in (0, 1):
        alone, shared = (
            pkd.Run.load(tmp_path / f"by{workers}-{seed}.npz") for workers in ("1", "2")
        )
        assert alone.config["seed"] == seed
        assert alone.differences(shared) == []
        assert alone.words is not None  # the policy of a worker reaches its file


def test_compare_shares_its_runs(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = [
        "compare",
        "two_state_chain",
        "--episodes",
        "100",
        "--rules",
        "practical,greedy",
        "--seeds",
        "2",
        "--quiet",
    ]
    tables = []
    for workers in ("1", "2"):
        assert main([*words, "--workers", workers, "--csv", str(tmp_path / f"{workers}.csv")]) == 0
        lines = (tmp_path / f"{workers}.csv").read_text().splitlines()
        tables.append([line.rsplit(",", 1)[0] for line in lines])  # the last column is seconds
    assert tables[0] == tables[1]
    assert "practical" in capsys.readouterr().out
