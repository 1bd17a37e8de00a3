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


def tell(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(0.05)


def start_script(folder: Path, call: str, said: Path) -> subprocess.Popen[bytes]:
    """Another process that spreads jobs of this module over two workers."""
    script = folder / "script.py"
    script.write_text(
        "import signal\nimport test_workers\nfrom pkd.workers import spread\n"
        'if __name__ == "__main__":\n'
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"    try:\n        {call}\n"
        '    except KeyboardInterrupt:\n        print("interrupted")\n'
    )
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with said.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, str(script)],
            stdout=subprocess.PIPE,
            stderr=file,
            env={**os.environ, "PYTHONPATH": path},
        )


@pytest.mark.skipif(os.name == "nt", reason="no signal is sent to one process there")
@pytest.mark.parametrize("size", [1, 50_000_000])
def test_an_interrupt_ends_all_workers_at_once(tmp_path: Path, size: int) -> None:
    """A worker that is killed half way through a large result leaves nobody who waits for it."""
    said = tmp_path / "said"
    jobs = f"[({size},)] * 100_000"
    call = f"spread(test_workers.make_large, {jobs}, 2, lambda: print(1, flush=True))"
    main = start_script(tmp_path, call, said)
    assert main.stdout is not None
    assert main.stdout.readline() == b"1\n"
    time.sleep(0.05)
    main.send_signal(signal.SIGINT)
    try:
        out = main.communicate(timeout=60)[0]
    finally:
        main.kill()
    assert out.endswith(b"interrupted\n")
    assert (main.returncode, said.read_text()) == (0, "")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    call = f"spread(test_workers.tell, [({str(tmp_path)!r},)] * 100_000, 2)"
    main = start_script(tmp_path, call, tmp_path / "said")
    while len(pids := [int(p.name) for p in tmp_path.iterdir() if p.name.isdigit()]) < 2:
        assert main.poll() is None
        time.sleep(0.02)
    main.kill()
    main.communicate()
    last = time.monotonic() + 60
    while any(map(is_alive, pids)):
        assert time.monotonic() < last
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """A process that has ended may still be in the table of processes."""
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


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
