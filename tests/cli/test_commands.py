"""Commands of other packages, bounds of other packages, `python -m pkd`, and a fast start."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import pkd
from pkd.cli import build_parser, commands, main
from pkd.cli.commands import find_command, list_commands

GREET = """
HELP = "say hello 100%% of the time"
def configure(parser):
    parser.add_argument("--name", default="you")
def run(args):
    print("hello", args.name)
    return 7
"""


@pytest.fixture
def greet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`greet` is a command of a package, `gone` one whose package is missing, `half` has no run."""
    (tmp_path / "greet_for_tests.py").write_text(GREET)
    (tmp_path / "half_for_tests.py").write_text("HELP = 'half'\ndef configure(parser): pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("greet_for_tests", "half_for_tests"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    points = [
        EntryPoint("greet", "greet_for_tests", commands.GROUP),
        EntryPoint("gone", "no_such_package", commands.GROUP),
        EntryPoint("half", "half_for_tests", commands.GROUP),
        EntryPoint("plan", "greet_for_tests", commands.GROUP),
    ]
    own = {commands.GROUP: points}
    monkeypatch.setattr("pkd.problem.entry_points", lambda group: own.get(group, []))


@pytest.mark.usefixtures("greet")
def test_a_command_of_another_package_runs_and_gives_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["greet", "--name", "Ada"]) == 7
    assert capsys.readouterr().out == "hello Ada\n"


@pytest.mark.usefixtures("greet")
def test_the_help_lists_every_command_and_says_which_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "greet say hello 100% of the time" in said
    assert "gone the command gone cannot be imported: No module named 'no_such_package'" in said


@pytest.mark.usefixtures("greet")
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("gone", "pkd: error: the command gone cannot be imported: No module named 'no_such_pa"),
        ("half", "pkd: error: the command half: expected a module with HELP, configure(parser) a"),
    ],
)
def test_a_broken_command_is_one_line(
    name: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name]) == 2
    said = capsys.readouterr().err
    assert said.startswith(line)
    assert said.count("\n") == 1


@pytest.mark.usefixtures("greet")
def test_a_package_cannot_replace_a_command_of_the_core() -> None:
    assert find_command("plan").__name__ == "pkd.cli.plan"  # type: ignore[attr-defined]
    assert list_commands().count("plan") == 1


@pytest.mark.usefixtures("greet")
def test_other_commands_do_not_load_it() -> None:
    build_parser("plan")
    assert "greet_for_tests" not in sys.modules
    build_parser("greet")
    assert "greet_for_tests" in sys.modules


def test_latency_is_a_command_of_the_delay_package() -> None:
    assert "latency" not in commands.OWN
    assert find_command("latency").__name__ == "pkd_delay.cli.latency"  # type: ignore[attr-defined]


def test_bound_without_a_source_of_sizes_needs_a_model(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pkd.cli.bound.installed", lambda group: {})
    assert main(["bound"]) == 2
    expected = (
        "pkd: error: no model was named, and no installed package evaluates bounds from sizes"
    )
    assert capsys.readouterr().err.startswith(expected)


def test_bound_says_that_the_lower_bound_is_not_proved_at_small_sizes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = ["--states", "100", "--actions", "2", "--horizon", "100", "--max-delay", "10"]
    assert main(["bound", *sizes]) == 0
    assert (
        "Theorem 3 (lower bound): at these sizes a formula, not proved" in capsys.readouterr().out
    )


def test_python_m_pkd_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pkd", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"pkd {pkd.__version__}\n"


def test_learn_goes_on_from_a_checkpoint_with_more_episodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["learn", "riverswim", "--quiet", "--seeds", "2", "--csv", "found.csv"]
    for episodes in ("20", "60"):
        assert main([*words, "--episodes", episodes, "--checkpoint", "run.npz"]) == 0
    kept = Path("found.csv").read_text().splitlines()
    assert main([*words, "--episodes", "60"]) == 0
    alone = Path("found.csv").read_text().splitlines()
    drop_seconds = lambda lines: [line.rpartition(",")[0] for line in lines]  # noqa: E731
    assert drop_seconds(kept) == drop_seconds(alone)
    assert {path.name for path in tmp_path.glob("run*")} == {"run-0.npz", "run-1.npz"}


def test_a_run_that_has_not_learned_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "riverswim", "--quiet", "--episodes", "20", "--optimism", "mvp"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("not learned yet: the policy in use earns 0.")
    assert "of 3.39726; try more --episodes" in said


def test_a_run_that_reached_its_gap_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "gambler", "--quiet", "--until", "0.2"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == ("certified: with 95% confidence the robust policy is within 0.2 of the optimum")


def test_what_is_finished_is_shown_when_learning_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pkd.cli import learn

    real = learn.learn_one

    def stop_at_the_third(job: learn.Job) -> object:
        if job.options["seed"] == 2:
            raise KeyboardInterrupt
        return real(job)

    monkeypatch.setattr(learn, "learn_one", stop_at_the_third)
    assert main(["learn", "gambler", "--quiet", "--episodes", "30", "--seeds", "4"]) == 130
    found = capsys.readouterr()
    assert len([line for line in found.out.splitlines() if line.startswith("   ")]) == 2
    assert found.err == (
        "stopped: 2 of 4 seeds are finished; --checkpoint FILE keeps unfinished runs\n"
    )


def test_known_successors_are_told_without_the_law(capsys: pytest.CaptureFixture[str]) -> None:
    from pkd.cli.arguments import find_model, model_arguments

    words = ["riverswim", "--known-successors"]
    found = find_model(model_arguments(words)).model
    assert list(found.outcomes((0, 0))) == [0]  # left of the first state nothing else can follow
    assert list(found.outcomes((0, 1))) == [0, 1]
    assert main(["plan", "inventory", "--known-successors"]) == 2
    assert "expected a table" in capsys.readouterr().err
