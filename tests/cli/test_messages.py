"""Every message names the file, the finding and the remedy, and shows no internals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.cli import main
from pkd.experiments import play as play_module
from pkd.experiments.grid import ModelSpec
from pkd.tables.tabular import TabularMDP

LOG = """
from pathlib import Path
from pkd.tables.tabular import TabularMDP

def bakery(log):
    Path(log).read_text(encoding="utf-8")
    return TabularMDP([[[1.0]]], [[1.0]], 2)
"""
OPAQUE = """
import pkd

class Coin:
    pass

class Toss(pkd.NoiseMDP):
    horizon = 2
    coin = Coin()
    def initial(self): return 0
    def choices(self, s): return [0]
    def noise(self, s, a): return self.coin
    def outcomes(self, z): return [0, 1]
    def land(self, s, a, w): return float(w), 0

def toss():
    return Toss(), {Toss.coin: {0: 0.5, 1: 0.5}}
"""


Refusal = Callable[[list[str]], str]


@pytest.fixture(autouse=True)
def _table(folder: Path) -> None:
    TabularMDP([[[1.0]]], [[1.0]], 2).save_npz("t.npz")


def test_check_lists_every_finding_of_a_bad_table(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("bad.npz", P=np.full((2, 1, 2), 0.4), r=np.array([[np.nan], [0.0]]), horizon=0)
    assert main(["check", "bad.npz"]) == 1
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "bad.npz: transitions[0, 0] sums to 0.8, not 1",
        "bad.npz: transitions[1, 0] sums to 0.8, not 1",
        "bad.npz: rewards[0, 0] is nan, not a finite number",
        "bad.npz: horizon is 0; expected a whole number >= 1",
    ]
    assert printed.out == "bad.npz: 4 findings\n"


def test_a_count_of_findings_counts_those_that_are_not_shown(
    capsys: pytest.CaptureFixture[str], error_of: Refusal
) -> None:
    np.savez("bad.npz", P=np.full((18, 2, 18), 0.4), r=np.zeros((18, 2)), horizon=0)
    assert main(["check", "bad.npz"]) == 1
    assert capsys.readouterr().out == "bad.npz: 37 findings\n"  # 36 rows and the horizon
    assert error_of(["plan", "bad.npz"]).endswith("(and 36 more; --debug shows all)\n")


def test_other_commands_say_how_many_findings_there_are(
    error_of: Refusal,
) -> None:
    np.savez("bad.npz", P=np.full((2, 1, 2), 0.4), r=np.zeros((2, 1)), horizon=1)
    said = error_of(["plan", "bad.npz"])
    assert said == (
        "pkd: error: bad.npz: transitions[0, 0] sums to 0.8, not 1 "
        "(and 1 more; --debug shows all)\n"
    )


def test_a_log_in_another_encoding_says_so(error_of: Refusal) -> None:
    Path("log_for_tests.py").write_text(LOG)
    Path("log.csv").write_bytes("z,x\ncafé,1\n".encode("latin-1"))
    said = error_of(["plan", "log_for_tests:bakery", "--option", "log=log.csv"])
    assert said == (
        "pkd: error: log.csv is not UTF-8 text: byte 0xe9 at position 7; save it as UTF-8\n"
    )


def test_a_file_that_no_word_names_is_found_by_the_line_that_reads_it(
    error_of: Refusal,
) -> None:
    Path("hidden_for_tests.py").write_text(
        LOG.replace("def bakery(log):", "def bakery(log='log.csv'):")
    )
    Path("log.csv").write_bytes("z,x\ncafé,1\n".encode("latin-1"))
    said = error_of(["plan", "hidden_for_tests:bakery"])
    assert said.startswith("pkd: error: a file that ")
    assert said.endswith(" reads is not UTF-8 text: byte 0xe9 at position 7; save it as UTF-8\n")


def test_bounds_may_be_asked_for_more_episodes_than_can_be_kept() -> None:
    sizes = ["--states", "5", "--actions", "2", "--horizon", "9", "--max-delay", "2"]
    assert main(["bound", *sizes, "--episodes", "1e12"]) == 0


@pytest.mark.parametrize("command", ["verify", "report"])
def test_a_table_is_no_run(command: str, error_of: Refusal) -> None:
    np.savez("noh.npz", P=np.ones((1, 1, 1)), r=np.ones((1, 1)))
    said = error_of([command, "noh.npz"])
    assert said == (
        "pkd: error: noh.npz is an .npz file, but not one that pkd wrote: it has no description of "
        "its content ('meta'), only P, r. Give a file that `pkd learn --save` or `save` wrote\n"
    )


def test_a_figure_that_fails_says_that_the_table_is_there(
    error_of: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    TabularMDP(np.eye(2)[:, None], np.zeros((2, 1)), 1).save_npz("w.npz")

    def fail(*_: object, **__: object) -> None:
        raise pkd.ModelError("there is no paper")

    monkeypatch.setattr("pkd.show.policy_plots.plot_policy", fail)
    said = error_of(["plan", "w.npz", "--csv", "p.csv", "--plot", "p.png"])
    assert said == (
        "pkd: error: p.png was not drawn: there is no paper; the table is complete in p.csv\n"
    )
    assert Path("p.csv").read_text(encoding="utf-8").count("\n") == 2
    assert not Path("p.png").exists()


def test_what_cannot_be_saved_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str], error_of: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("toss_for_tests.py").write_text(OPAQUE)
    words = ["learn", "toss_for_tests:toss", "--episodes", "10"]
    assert main(words) == 0  # without a file it runs
    capsys.readouterr()
    monkeypatch.setattr("pkd.cli.learn.learn_one", lambda job: pytest.fail("the run started"))
    said = error_of([*words, "--save", "run.npz"])
    assert "cannot be written to a file" in said


def test_compare_builds_its_model_once_and_plans_its_optimum_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, planned, given = [], [], []
    build, plan, learn = ModelSpec.build, play_module.solve, play_module.learn

    def learn_and_note(*args: Any, **options: Any) -> pkd.Run:
        given.append(options.get("optimal_value"))
        return learn(*args, **options)

    monkeypatch.setattr(ModelSpec, "build", lambda self: made.append(1) or build(self))
    monkeypatch.setattr(play_module, "solve", lambda *args: planned.append(1) or plan(*args))
    monkeypatch.setattr(play_module, "learn", learn_and_note)
    words = ["compare", "t.npz", "--episodes", "5", "--seeds", "2", "--rules", "mvp,greedy"]
    assert main(words) == 0
    assert (len(made), len(planned)) == (1, 1)
    assert given == [2.0] * 4  # 1 in each of 2 steps
