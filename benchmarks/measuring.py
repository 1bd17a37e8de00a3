"""Measures one case of a benchmark in a process of its own, within limits of time and memory.

A script calls `run_case(__file__, words)`. The child is the same script with the same words, and
answers with `report(**numbers)`. So a slow case does not stop a table, and the peak memory of one
case does not hide that of the next. The parent must stay small: a child inherits its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "Case",
    "add_limits",
    "burn",
    "make_parser",
    "peak_memory",
    "report",
    "run_case",
    "show",
    "timed",
]

MEGABYTE = 2**20
Case = dict[str, float] | str  # the numbers that a case reported, or why there are none


def make_parser(text: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the text of a script, line by line."""
    return argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_limits(parser: argparse.ArgumentParser, limit: float = 120, memory: int = 8000) -> None:
    """Adds the options that `run_case` needs."""
    parser.add_argument(
        "--limit",
        type=float,
        default=limit,
        metavar="SECONDS",
        help="stop a case after this time (default: %(default)g)",
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=memory,
        metavar="MB",
        help="stop a case that holds more than this (default: %(default)s)",
    )


def run_case(
    script: str,
    words: list[str],
    limit: float,
    memory: int,
    environment: dict[str, str] | None = None,
    python: str = sys.executable,
) -> Case:
    """The numbers that `script` reports when called with `words`, or why it reports none."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        command = [python, script, *words]
        child = subprocess.Popen(command, stdout=out, stderr=errors, env=environment)
        stopped = _watch(child, limit, memory)
        out.seek(0)
        errors.seek(0)
        if stopped:
            return stopped
        if child.returncode:
            lines = errors.read().strip().splitlines() or [f"ended with {child.returncode}"]
            return lines[-1][:70]
        answer: dict[str, float] = json.loads(out.read().strip().splitlines()[-1])
        return answer


def _watch(child: subprocess.Popen[bytes], limit: float, memory: int) -> str:
    """Waits for the child, and ends it at a limit. Returns why it was ended, or nothing."""
    # Not by a limit of the address space: compiled code reserves far more than it uses.
    began = time.monotonic()
    while True:
        try:
            child.wait(0.1)
            return ""
        except subprocess.TimeoutExpired:
            pass
        held = _resident(child.pid)
        too_long = time.monotonic() - began > limit
        if too_long or held > memory:
            child.kill()
            child.wait()
            return f"over {limit:g} s" if too_long else f"over {memory} MB"


def _resident(pid: int) -> float:
    """Megabytes that a process holds now; 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * resource.getpagesize() / MEGABYTE


def report(**numbers: float) -> None:
    """Called by the child: hands its numbers and its peak memory to `run_case`."""
    print(json.dumps({**numbers, "memory": peak_memory()}))


def peak_memory() -> float:
    """Megabytes that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (MEGABYTE if sys.platform == "darwin" else 1024)


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Writes the seconds that a block takes into `seconds[name]`."""
    began = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - began


@contextmanager
def burn(processes: int) -> Iterator[None]:
    """Keeps this many processes busy beside a block."""
    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        threading.Event().wait(0.5 if processes else 0.0)  # they must have started
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def show(case: Case, name: str, digits: int = 3) -> str:
    """One number of a case for a table, or a dash."""
    value = None if isinstance(case, str) else case.get(name)
    if value is None:
        return "-"
    return f"{value:,.0f}" if digits == 0 else f"{value:.{digits}f}"
