"""Words that a command cannot take: each gets one line that says what was expected."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

import pkd
from pkd.cli import main
from pkd_delay.problems import two_state_chain

OWN = """
from pkd_delay.problems import two_state_chain

class Plain:
    pass

number = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("own_for_refusals.py").write_text(OWN)
    sys.modules.pop("own_for_refusals", None)
    return tmp_path


@pytest.fixture
def run(folder: Path) -> pkd.Run:
    chain = two_state_chain(horizon=3)
    return pkd.learn(chain.model(), chain.law(), 5, optimism=pkd.Greedy())


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that is refused prints; it must end with the code 2."""
    try:
        code: Any = main(words)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["export", "two_state_chain", "--out", "p.txt"],
            "'p.txt': expected a name that ends in one of",
        ),
        (
            ["export", "two_state_chain", "--out", "p.drn", "--stationary"],
            "p.drn: a policy is written as .csv or .json",
        ),
        (
            ["learn", "two_state_chain", "--until", "soon"],
            "argument --until: expected a number above 0, found 'soon'",
        ),
        (
            ["learn", "two_state_chain", "--until", "0"],
            "argument --until: expected a number above 0, found '0'",
        ),
        (["learn", "two_state_chain", "--replan", "seldom"], "argument --replan: "),
        (["learn", "two_state_chain", "--seed", "x"], "expected a whole number of at least 0"),
        (
            ["learn", "two_state_chain", "--optimism", "own_for_refusals:Missing"],
            "as module:Class it is not found",
        ),
        (
            ["learn", "two_state_chain", "--optimism", "own_for_refusals:Plain"],
            "own_for_refusals:Plain is no rule; expected a subclass of pkd.Optimism",
        ),
        (
            ["learn", "two_state_chain", "--optimism", "best"],
            "optimism rule 'best' is unknown; expected one of",
        ),
        (
            ["learn", "two_state_chain", "--optimism", "mvp:monotone=3"],
            "monotone is 3; expected true or false",
        ),
        (
            ["learn", "two_state_chain", "--optimism", "mvp:c1=true"],
            "c1 is True; expected a number",
        ),
        (
            ["compare", "two_state_chain", "--rules", "greedy,best"],
            "no agent is called 'best'. Expected a name",
        ),
    ],
)
def test_a_word_that_cannot_be_taken_is_named(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in said(words, capsys)


def test_a_run_from_python_does_not_say_how_its_model_is_made(
    run: pkd.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    run.save("run.npz")
    message = said(["export", "run.npz", "--out", "p.csv"], capsys)
    assert "run.npz does not say how its model is made" in message
    assert not Path("p.csv").exists()


def test_a_policy_is_not_written_as_a_problem(
    run: pkd.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    attrs.evolve(run, model_words=("two_state_chain", "--horizon", "3")).save("run.npz")
    message = said(["export", "run.npz", "--out", "p.prism"], capsys)
    assert "p.prism: a policy is written as .csv or .json" in message


def test_export_imports_what_a_run_names_only_if_it_is_trusted(
    run: pkd.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("own_for_refusals:two_state_chain", "--horizon", "3")
    attrs.evolve(run, model_words=words).save("run.npz")
    message = said(["export", "run.npz", "--out", "p.csv"], capsys)
    assert "run.npz names own_for_refusals:two_state_chain as its model; give --trust" in message
    assert "own_for_refusals" not in sys.modules
    assert main(["export", "run.npz", "--out", "p.csv", "--trust"]) == 0


def test_a_stationary_policy_of_episodes_that_end_has_no_endless_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["export", "gambler", "--stationary", "--out", "p.csv"]) == 0
    assert "no bound for an endless run: episodes end" in capsys.readouterr().out


def test_a_model_that_cannot_be_imported_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pkd.cli import models
    from pkd.problem import load_point

    def load(point: Any) -> Any:
        if point.name == "gambler":
            raise pkd.ModelError("gambler cannot be imported")
        return load_point(point)

    monkeypatch.setattr(models, "load_point", load)
    assert main(["models"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "gambler: gambler cannot be imported\n"
    assert "\nriverswim " in shown.out
    assert "gambler cannot be imported" in said(["models", "gambler"], capsys)


def test_options_by_any_name_are_not_listed() -> None:
    from pkd.cli.models import list_options

    def factory(size: int, *more: int, win: float = 0.4, **others: Any) -> None: ...

    assert list(list_options(factory)) == [("size", "must be given"), ("win", "0.4")]
