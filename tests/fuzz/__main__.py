"""`python -m tests.fuzz --seconds 120`: every campaign for its share of the time.

Each campaign runs in a process of its own, which says each seed before it tries it. So a crash of
the interpreter, a hang and a lack of memory are findings with a seed like every other one. The
exit code is 1 where something was found.
"""

from __future__ import annotations

import argparse
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.campaign import CAMPAIGNS, attack
from tests.fuzz.defects import DEFECTS, put_back

PATIENCE = 120.0  # seconds without a word before an attack counts as a hang
GIGABYTES = 8  # of addresses for one campaign; compiled code alone takes two


class Outcome(NamedTuple):
    """What one campaign did."""

    name: str
    seeds: int
    inputs: int
    seconds: float
    findings: list[str]


def main(words: list[str] | None = None) -> int:
    """Runs the campaigns, prints a line for each, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="for all campaigns together")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of each campaign")
    parser.add_argument("--count", type=int, default=10**9, help="seeds of each campaign at most")
    parser.add_argument("--only", nargs="+", choices=CAMPAIGNS, default=CAMPAIGNS)
    parser.add_argument("--most", type=int, default=5, help="findings of a campaign at most")
    parser.add_argument("--defect", choices=DEFECTS, help="put an old defect back first")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.inside:
        if args.defect is not None:
            put_back(args.defect)
        return _run_inside(args.only[0], args.seed, args.count, args.seconds)
    found = 0
    for name in args.only:
        share = args.seconds / len(args.only)
        outcome = run_campaign(name, args.seed, args.count, share, args.most, args.defect)
        _say(
            f"{outcome.name:8} {outcome.seeds:6} seeds {outcome.inputs:8} inputs "
            f"{outcome.seconds:6.1f} s  {len(outcome.findings)} findings"
        )
        found += len(outcome.findings)
        for finding in outcome.findings:
            _say(f"  {finding}")
    return 1 if found else 0


def run_campaign(
    name: str, seed: int, count: int, seconds: float, most: int, defect: str | None = None
) -> Outcome:
    """Runs seeds from `seed` on for so many seconds; goes on behind one that ends its process."""
    began, seeds, inputs, findings = time.monotonic(), 0, 0, list[str]()
    first, end = seed, seed + count
    while first < end and len(findings) < most and time.monotonic() - began < seconds:
        left = seconds - (time.monotonic() - began)
        for kind, at, text in _listen(name, first, end - first, left, defect):
            if kind == "end":
                seeds, inputs, first = seeds + 1, inputs + int(text), at + 1
            elif kind == "found":
                findings.append(_repeat(name, at, text))
                seeds, first = seeds + 1, at + 1
            elif kind == "stop" and at == 0:  # it has used its time
                first = end
            elif kind == "stop":  # `first` ended its process
                findings.append(_repeat(name, first, text))
                first += 1
            if len(findings) >= most:
                break
    return Outcome(name, seeds, inputs, time.monotonic() - began, findings)


def _listen(
    name: str, seed: int, count: int, seconds: float, defect: str | None
) -> Iterator[tuple[str, int, str]]:
    """The words of a process that tries seeds, and last ("stop", exit code, what it said)."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz", "--inside"]
    command += ["--only", name, "--seed", str(seed), "--count", str(count)]
    command += ["--seconds", str(seconds), *([] if defect is None else ["--defect", defect])]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        lines: queue.Queue[str | None] = queue.Queue()

        def read(stream: Iterator[str] = process.stdout) -> None:  # type: ignore[assignment]
            for line in stream:
                lines.put(line)
            lines.put(None)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            while True:
                try:
                    line = lines.get(timeout=PATIENCE)
                except queue.Empty:
                    yield "stop", -9, f"no word for {PATIENCE:.0f} s: it hangs"
                    return
                if line is None:
                    break
                kind, at, text = line.rstrip("\n").split(" ", 2)
                yield kind, int(at), text
            code = process.wait()
            errors.seek(0)
            said = " | ".join(errors.read().strip().splitlines()[:6])
            yield "stop", code, f"the process ended with the code {code}: {said}"
        finally:
            process.kill()
            process.wait()


def _run_inside(name: str, seed: int, count: int, seconds: float) -> int:
    """Tries seeds one after another and says each before and after."""
    words = os.fdopen(os.dup(1), "w", buffering=1)  # the software may print; our words stay apart
    os.dup2(2, 1)
    _limit_memory()
    began = time.monotonic()
    for at in range(seed, seed + count):
        if at > seed and time.monotonic() - began >= seconds:
            break
        words.write(f"begin {at} -\n")
        with tempfile.TemporaryDirectory(prefix="pkd-fuzz-") as folder:
            try:
                inputs = attack(name, at, Path(folder))
            except Exception as problem:  # noqa: BLE001 - whatever it is, it is a finding
                words.write(f"found {at} {_describe(problem)}\n")
                continue
        words.write(f"end {at} {inputs}\n")
    return 0


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))


def _describe(problem: BaseException) -> str:
    frames = list(traceback.extract_tb(problem.__traceback__))[-2:]
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(problem).__name__} at {where}: {' '.join(str(problem).split())[:400]}"


def _repeat(name: str, seed: int, text: str) -> str:
    return f"{text}\n    again: python -m tests.fuzz --only {name} --seed {seed} --count 1"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
