"""What tests of the command line share: a folder with a small table, and the line of a refusal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pkd.cli import main
from pkd.tables.tabular import TabularMDP

OWN = """
import pkd
from pkd_delay.models.tables import two_state_chain

class Plain:
    pass

class Broken(pkd.NoiseMDP):
    horizon = 2
    def initial(self): return 0
    def choices(self, s): return []
    def noise(self, s, a): return "coin"
    def outcomes(self, z): return [0, 1]
    def land(self, s, a, w): return w, s

class Crashing(Broken):
    def choices(self, s): return {}["no such key"]

def order_up_to_six(h, x, y):
    return min(max(6 - y[1], 0), 6)

def stay_low(h, x, y):
    return 0

def last_entry(h, state, queue, waited):
    return queue[-1] if queue else state

def flip(h, x, y):
    return {0: 0.5, 1: 0.5}

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the module `own_for_tests`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("own_for_tests.py").write_text(OWN)
    sys.modules.pop("own_for_tests", None)
    return tmp_path


@pytest.fixture
def climb(folder: Path) -> str:
    """A ladder of three rungs: `up` climbs for sure, `rest` pays the number of the rung. The
    optimum of 4 steps is 0 + 0 + 2 + 2.
    """
    up, rest = ([[0, 1, 0], [0, 0, 1], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    TabularMDP(
        list(zip(up, rest, strict=True)),
        [[0, 0], [0, 1], [0, 2]],
        4,
        state_names=["ground", "middle", "top"],
        action_names=["up", "rest"],
    ).save_npz("climb.npz")
    return "climb.npz"


@pytest.fixture
def error_of(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """The one line that a command prints before it stops with exit code 2."""

    def refuse(words: list[str]) -> str:
        try:
            code: Any = main(words)
        except SystemExit as stop:
            code = stop.code
        said = capsys.readouterr().err
        assert (code, said.count("\n")) == (2, 1)
        return said

    return refuse
