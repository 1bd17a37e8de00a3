"""`pkd verify`: this installation against outside numbers, saved runs against themselves."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import pkd
from pkd.cli import main
from pkd.cli.learn import _add_own, model_words
from pkd.tables.tabular import TabularMDP

Facts = Callable[[], Iterator[tuple[str, float, float, float]]]


def test_this_installation_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"pkd {pkd.__version__}, Python ")
    assert all(line.startswith("ok ") for line in lines)
    assert last.startswith(f"{len(lines)} of {len(lines)} as expected")
    for word in (
        "Howard 1960",
        "empty queue",
        "Dubins and Savage",
    ):  # the core and both adapters speak
        assert any(word in line for line in lines)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Facts]:
    """What packages contribute, to be filled by a test."""
    facts: dict[str, Facts] = {}
    monkeypatch.setattr("pkd.cli.verify.registered", lambda group: {name: name for name in facts})
    monkeypatch.setattr("pkd.cli.verify.load_point", facts.__getitem__)
    return facts


@pytest.mark.parametrize(
    ("found", "good"),
    [
        (2.0, True),
        (2.0 + 1e-10, True),
        (2.0 - 1e-10, True),
        (2.1, False),
        (1.9, False),
        (math.nan, False),
        (math.inf, False),
    ],
)
def test_a_number_must_be_within_its_tolerance(
    installed: dict[str, Facts], found: float, good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    installed["toy"] = lambda: iter([("two", 2.0, found, 1e-9), ("one", 1.0, 1.0, 0.0)])
    assert main(["verify"]) == (0 if good else 1)
    _, line, other, last = capsys.readouterr().out.splitlines()
    assert line == f"{'ok     ' if good else 'DIFFERS'}  two: expected 2, found {found:.12g}"
    assert other == "ok       one: expected 1, found 1"
    assert last.startswith(f"{1 + good} of 2 as expected")


def test_a_package_that_breaks_off_does_not_hide_the_others(
    installed: dict[str, Facts], capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Iterator[tuple[str, float, float, float]]:
        yield "fine", 1.0, 1.0, 0.0
        raise ValueError("no such table")

    installed["a"] = broken
    installed["b"] = lambda: iter([("also fine", 1.0, 1.0, 0.0)])
    assert main(["verify"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == [
        "ok       fine: expected 1, found 1",
        "DIFFERS  a: broke off with ValueError: no such table",
        "ok       also fine: expected 1, found 1",
    ]


def test_a_package_that_cannot_be_imported_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [EntryPoint(name, "no_such_package:facts", "pkd.facts") for name in "ab"]
    monkeypatch.setattr("pkd.problem.entry_points", lambda group: points)
    assert main(["verify"]) == 1
    assert capsys.readouterr().out.splitlines()[1:3] == [
        f"DIFFERS  {name}: broke off with ModelError: "
        f"{name} cannot be imported: No module named 'no_such_package'"
        for name in "ab"
    ]


def test_nothing_to_check_is_no_success(
    installed: dict[str, Facts], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify"]) == 2
    assert "expected a callable in the entry-point group pkd.facts" in capsys.readouterr().err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table in it."""
    rng = np.random.default_rng(4)
    TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), 5).save_npz(
        tmp_path / "table.npz"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def learned(*words: str) -> str:
    """The name of the file of a short run."""
    assert main(["learn", *words, "--episodes", "60", "--quiet", "--save", "run.npz"]) == 0
    return "run.npz"


@pytest.mark.parametrize(
    "words",
    [
        ["table.npz"],
        [
            "table.npz",
            "--horizon",
            "3",
            "--optimism",
            "posterior",
            "--replan",
            "every",
            "--seed",
            "5",
            "--delta",
            "0.2",
        ],
        [
            "two_state_chain",
            "--option",
            "stay=0.7",
            "--inter-arrival",
            "-1:.2,0:.5,2:.3",
            "--max-delay",
            "2",
            "--delay-law",
            "unknown",
        ],
        ["gambler", "--option", "goal=8", "--option", "capital=3", "--optimism", "practical"],
    ],
)
def test_a_saved_run_comes_out_to_the_bit(
    folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    path = learned(*words)
    capsys.readouterr()
    assert main(["verify", path]) == 0
    assert capsys.readouterr().out.startswith(
        f"run.npz: ok, regret, upper values and counts come out to the bit: {words[0]}"
    )


def test_an_experiment_file_is_no_longer_needed(folder: Path) -> None:
    Path("experiment.toml").write_text(
        'model = "gambler"\nseed = 2\n[options]\ngoal = 8\ncapital = 3\n'
    )
    path = learned("--config", "experiment.toml")
    Path("experiment.toml").unlink()
    assert main(["verify", path]) == 0


def bumped(array: np.ndarray) -> np.ndarray:
    """An array whose third number is the next one that a float can be."""
    other = array.copy()
    other[2] = np.nextafter(other[2], np.inf)
    return other


TAMPERED: dict[str, Callable[[pkd.Run], dict[str, Any]]] = {
    "1 of 60 upper values differ, first number 3:": lambda run: {
        "upper_values": bumped(run.upper_values)
    },
    "1 of 60 policy values differ, first number 3:": lambda run: {
        "policy_values": bumped(run.policy_values)
    },
    "1 of 60 returns differ, first number 3:": lambda run: {"returns": bumped(run.returns)},
    "plans": lambda run: {"plans": run.plans[:-1]},
    "the optimal value is": lambda run: {"optimal_value": run.optimal_value + 1e-15},
    "the counts of 1 features differ": lambda run: {
        "counts": {z: {**row, 0: 99.0} if z == (0, 0) else row for z, row in run.counts.items()}
    },
    "returns differ": lambda run: {"config": {**run.config, "seed": 1}},
    "the configuration is": lambda run: {"config": {**run.config, "model": "Another"}},
}


@pytest.mark.parametrize("said", TAMPERED)
def test_a_file_that_was_changed_is_noticed(
    folder: Path, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = learned("table.npz")
    saved = pkd.Run.load(path)
    attrs.evolve(saved, **TAMPERED[said](saved)).save(path)
    capsys.readouterr()
    assert main(["verify", path]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("run.npz: DIFFERS, saved and repeated: ")
    assert said in printed


def test_another_table_of_the_same_name_is_noticed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = learned("table.npz")
    TabularMDP(np.full((3, 2, 3), 1 / 3), np.ones((3, 2)), 5).save_npz("table.npz")
    capsys.readouterr()
    assert main(["verify", path]) == 1
    assert "the optimal value is" in capsys.readouterr().out


def test_a_model_that_was_an_object_cannot_be_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TabularMDP.from_npz("table.npz")
    pkd.learn(table.model(), table.law(), 5).save("run.npz")
    assert main(["verify", "run.npz"]) == 2
    line = (
        "run.npz: cannot be repeated: the file does not say how its model, a _TabularModel, "
        "is made: it was given as an object"
    )
    assert capsys.readouterr().out.startswith(line)


def test_a_model_that_is_gone_cannot_be_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = learned("table.npz")
    Path("table.npz").unlink()
    capsys.readouterr()
    assert main(["verify", path]) == 2
    assert capsys.readouterr().out.startswith(
        "run.npz: cannot be repeated: table.npz: expected an .npz file"
    )


def test_a_difference_weighs_more_than_a_run_that_cannot_be_repeated(folder: Path) -> None:
    path = learned("table.npz")
    saved = pkd.Run.load(path)
    attrs.evolve(saved, upper_values=bumped(saved.upper_values)).save("changed.npz")
    attrs.evolve(saved, model_words=()).save("object.npz")
    assert main(["verify", "object.npz", path, "changed.npz"]) == 1


def test_code_that_a_file_names_is_run_only_on_request(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "from pkd.tables.tabular import TabularMDP\nprint('imported')\n"
        "def shop():\n    return TabularMDP([[[1.0]]], [[1.0]], 2)\n"
    )
    Path("shop_for_tests.py").write_text(code)
    path = learned("shop_for_tests:shop")
    del sys.modules["shop_for_tests"]
    capsys.readouterr()
    assert main(["verify", path]) == 2
    line = (
        "run.npz: cannot be repeated: its model shop_for_tests:shop is code that the file names; "
        "--trust imports it\n"
    )
    assert capsys.readouterr().out == line
    assert main(["verify", path, "--trust"]) == 0


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["grid"], ["grid"]),
        (
            ["--seeds", "3", "grid", "--quiet", "--delay", "1", "--save=x.npz", "--debug"],
            ["grid", "--delay", "1"],
        ),
        (
            ["--ep", "5", "--option", "rows=2", "grid", "--inter-arrival=-1:1"],
            ["--option", "rows=2", "grid", "--inter-arrival=-1:1"],
        ),
        (
            ["--model=grid", "--option=rows=2", "--optimism", "greedy"],
            ["--model=grid", "--option=rows=2"],
        ),
    ],
)
def test_the_words_of_the_model_are_those_that_are_left(typed: list[str], words: list[str]) -> None:
    assert list(model_words(["learn", *typed], _add_own)) == words
