"""Every command prints typed JSON, knows near misses, and hides what few need until it is asked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pkd.cli import build_parser, main
from pkd.cli.commands import list_commands
from pkd.cli.completion import complete

LOG = "z,x\n" + "coin,heads\ncoin,tails\ncoin,tails\n" * 20
ARRIVALS = "episode,step,age\n" + "".join(f"{e},{t},{t % 2}\n" for e in range(4) for t in range(9))
COMMANDS = {
    "models": ["gambler"],
    "agents": [],
    "plan": ["gambler"],
    "evaluate": ["gambler"],
    "simulate": ["gambler", "--show", "2"],
    "export": ["gambler", "--out", "policy.json"],
    "learn": ["gambler", "--episodes", "20", "--seeds", "2", "--save", "run.npz"],
    "compare": ["gambler", "--episodes", "20", "--seeds", "2", "--rules", "mvp,greedy"],
    "experiment": ["small.toml", "--quiet"],
    "certify": ["gambler", "--log", "log.csv", "--save", "robust.npz"],
    "bound": ["gambler"],
    "check": ["gambler"],
    "verify": ["run-0.npz"],
    "report": ["run-0.npz"],
    "cache": [],
    "completion": ["bash"],
    "benchmark": ["pkd/LateTwoState-d1-v0"],
    "demo": ["--episodes", "20", "--seeds", "1"],
    "fit-delay": ["arrivals.csv"],
    "latency": ["two_state_chain", "--up-to", "1"],
}
SLOW = {"demo"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    Path("arrivals.csv").write_text(ARRIVALS)
    Path("small.toml").write_text(
        'models = ["gambler"]\nagents = ["greedy"]\nepisodes = 20\nseeds = 2\n'
    )
    return tmp_path


def find_keys(told: Any) -> Iterator[str]:
    if isinstance(told, dict):
        for key, value in told.items():
            yield key
            if key not in ("values", "options"):  # of actions and models: the user's own names
                yield from find_keys(value)
    elif isinstance(told, list):
        for one in told:
            yield from find_keys(one)


def find_values(told: Any) -> Iterator[Any]:
    if isinstance(told, dict | list):
        for one in told.values() if isinstance(told, dict) else told:
            yield from find_values(one)
    else:
        yield told


def test_every_command_is_tried() -> None:
    assert sorted(COMMANDS) == sorted(list_commands())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in COMMANDS]
)
def test_json_is_one_object_whose_numbers_are_numbers(
    name: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name in ("verify", "report"):
        main(["learn", *COMMANDS["learn"], "--quiet"])
        capsys.readouterr()
    assert main([name, *COMMANDS[name], "--json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)
    assert told
    assert all(re.fullmatch(r"[a-z0-9_]+", key) for key in find_keys(told))
    texts = [value for value in find_values(told) if isinstance(value, str)]
    assert [text for text in texts if re.fullmatch(r"-?\d+\.?\d*(e[+-]?\d+)?", text)] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["lern"], "did you mean 'learn'?"),
        (["xyzzy"], "pkd --help lists all of them"),
        (["plan", "gambler", "--horizn", "3"], "did you mean --horizon?"),
        (["learn", "gambler", "--optimism", "hoefding"], "did you mean 'hoeffding'?"),
        (["plan", "gamblr"], "did you mean 'gambler'?"),
        (["agents", "ucbv"], "did you mean 'ucbvi'?"),
        (["compare", "gambler", "--rules", "ucbv"], "did you mean 'ucbvi'?"),
    ],
)
def test_a_near_miss_is_named(
    words: list[str], hint: str, error_of: Callable[[list[str]], str]
) -> None:
    assert hint in error_of(words)


def test_help_is_short_and_help_all_has_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as stop:
            main(["plan", flag])
        assert stop.value.code == 0
        said[flag] = capsys.readouterr().out
    assert "--inter-arrival" not in said["--help"]
    assert "--help-all" in said["--help"]
    assert "--inter-arrival LAW" in said["--help-all"]
    assert "--missing P" in said["--help-all"]
    assert main(["plan", "two_state_chain", "--delay", "1"]) == 0  # hidden flags work


@pytest.mark.parametrize("name", list_commands())
def test_every_command_formats_its_help(name: str) -> None:
    parser = next(iter(p for p in build_parser(name).commands() if p.prog.endswith(f" {name}")))
    assert "--json" in parser.format_help()
    assert set(re.findall(r"--[a-z-]+", parser.format_help())) <= set(
        re.findall(r"--[a-z-]+", parser.format_all())
    )


def test_words_are_completed() -> None:
    assert complete(["fi"]) == ["fit-delay"]
    assert complete(["certify", "gam"]) == ["gambler"]
    assert complete(["learn", "gambler", "--inter"]) == ["--inter-arrival"]
    assert complete(["compare", "gambler", "--rules", "ucb"]) == ["ucbvi"]
    assert complete(["learn", "gambler", "--optimism", "ucb"]) == []
    assert complete(["latency", "gambler", "--late", "a"]) == ["actions"]
    assert complete(["nothing", "x"]) == []


def test_a_shell_gets_a_script_that_calls_pkd(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "pkd completion --words" in capsys.readouterr().out


def test_bash_completes_a_command() -> None:
    main_ = "import sys; from pkd.cli import main; sys.exit(main(sys.argv[1:]))"
    script = f"""
    pkd() {{ {sys.executable} -c '{main_}' "$@"; }}
    eval "$(pkd completion bash)"
    COMP_WORDS=(pkd cert) COMP_CWORD=1
    _pkd
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 127:
        pytest.skip("there is no bash")
    assert done.stdout.strip() == "certify"


def test_old_caches_are_listed_and_removed(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pkd.engine import jit

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(files))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(files / "home"))
    jit.cache_folder.cache_clear()
    try:
        old, kept, present = files / "pkd-kernels-0000", files / "pkd-kernels-mine", None
        for folder, name in ((old, "kernel.nbc"), (kept, "notes.txt")):
            folder.mkdir()
            (folder / name).write_bytes(b"x" * 1000)
        present = Path(jit.cache_folder())
        main(["cache", "--json"])
        told = {
            one["folder"]: one["state"] for one in json.loads(capsys.readouterr().out)["caches"]
        }
        assert told == {str(old): "old", str(present): "in use"}
        main(["cache", "--remove-old"])
        assert not old.exists()
        assert kept.exists()
        assert present.exists()
    finally:
        jit.cache_folder.cache_clear()


@pytest.mark.parametrize("kind", ["policy.json", "policy.csv", "run.npz", "robust.npz"])
@pytest.mark.parametrize("command", ["evaluate", "simulate", "certify"])
def test_every_command_reads_every_policy_that_pkd_wrote(
    kind: str, command: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write = {
        "policy.json": ["export", "gambler", "--out", kind],
        "policy.csv": ["export", "gambler", "--out", kind],
        "run.npz": ["learn", "gambler", "--episodes", "50", "--save", kind, "--quiet"],
        "robust.npz": ["certify", "gambler", "--log", "log.csv", "--save", kind],
    }[kind]
    assert main(write) in (0, 1)
    log = ["--log", "log.csv"] if command == "certify" else []
    assert main([command, "gambler", "--policy", kind, *log]) in (0, 1)
    assert capsys.readouterr().err == ""


def test_a_saved_run_is_a_log(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["learn", "gambler", "--episodes", "50", "--save", "run.npz", "--quiet"])
    capsys.readouterr()
    assert main(["certify", "gambler", "--log", "run.npz", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert 0.0 <= told["low"] < told["high"] <= 1.0


def test_the_benchmark_needs_no_gymnasium() -> None:
    code = (
        "import sys; sys.modules['gymnasium'] = None; from pkd.cli import main; "
        "main(['benchmark', 'pkd/LateTaxi-d1-v0']); "
        "sys.exit(main(['benchmark', 'pkd/LateTaxi-d1-v0', '--recompute']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pkd/LateTaxi-d1-v0" in done.stdout
    assert done.returncode == 2
    assert "pip install 'pkd[gymnasium]'" in done.stderr
