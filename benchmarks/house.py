"""How large the house is: lines, files, names, and how many modules each way passes.

`python benchmarks/house.py` prints one table. A module is passed if one of its functions runs;
compiled kernels count where they are called from Python.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pkd
import pkd_delay

ROOT = Path(pkd.__file__).parents[1]
PACKAGES = ("pkd", "pkd_delay", "pkd_examples")


def count_files(folder: str) -> tuple[int, int]:
    """(files, lines) of the Python sources of a folder."""
    files = sorted((ROOT / folder).rglob("*.py"))
    return len(files), sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


def count_passed(call: Callable[[], Any]) -> int:
    """How many modules of the three packages run when something is called, once all is imported."""
    passed: set[str] = set()
    call()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if (
            event == "call"
            and name.split(".")[0] in PACKAGES
            and frame.f_code.co_name != "<module>"
        ):
            passed.add(name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(passed)


def main() -> None:
    for folder in (*PACKAGES, "tests"):
        files, lines = count_files(folder)
        print(f"{folder:32} {files:5} files {lines:7,} lines")
    for package in (pkd, pkd_delay):
        name = package.__name__
        top = len(list((ROOT / name).glob("*.py")))
        print(f"{name:32} {top:5} modules at the top {len(package.__all__):5} public names")
    chain = importlib.import_module("pkd_delay.models.tables").two_state_chain()
    table = importlib.import_module("pkd_delay.models.tables").riverswim()
    counts = {(0, 0): {0: 5, 1: 5}}
    small = importlib.import_module("pkd.tables.tabular").TabularMDP(
        [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]], [[0.0, 0.0], [1.0, 1.0]], horizon=3
    )
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[str, Callable[[], Any]] = {
            "plan": lambda: pkd.plan(table),
            "learn": lambda: pkd.learn(table, 20),
            **{
                f"pkd_delay.plan, always {delay} late": lambda delay=delay: pkd_delay.plan(
                    pkd_delay.DelayedMDP.constant(chain, delay)
                )
                for delay in (8, 14)
            },
            "pkd_delay.plan, random delay": lambda: pkd_delay.plan(
                pkd_delay.Delayed(chain, {0: 0.5, 1: 0.5}, max_delay=2)
            ),
            "certify": lambda: pkd.certify(small.model(), counts),
            "experiment": lambda: pkd.experiment(
                {"coin": small}, ["greedy"], 10, seeds=3, folder=tempfile.mkdtemp(dir=folder)
            ),
        }
        for name, call in ways.items():
            print(f"{name:32} {count_passed(call):5} modules passed")


if __name__ == "__main__":
    main()
