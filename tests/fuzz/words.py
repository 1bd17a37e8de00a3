"""The command line against random words.

No traceback, no line of our own sources, an exit code 0, 1 or 2, bounded memory, and an answer to
Ctrl-C for a command that takes long.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pkd
from pkd.cli import main

__all__ = ["attack"]

COMMANDS = (
    "plan", "evaluate", "simulate", "export", "learn", "compare", "certify", "bound", "check",
    "report", "fit-delay", "latency", "models", "", "plam", "--version", "--help",
)  # fmt: skip
MODELS = (
    "gambler", "two_state_chain", "riverswim", "tank", "kuhn", "wind", "table.npz", "none.npz",
    "notes.txt", "FrozenLake-v1", "NoSuchEnv-v3", "os:path", "no_module:x", "json:dumps", "", "é",
    ".", "gambler:", ":", "pkd:plan", "missing_observations", "random_mdp", "run.npz",
)  # fmt: skip
FLAGS = (
    "--horizon", "--discount", "--option", "--config", "--delay", "--inter-arrival", "--lags",
    "--max-delay", "--delay-law", "--shared-delay", "--hidden-delays", "--instead", "--step",
    "--all", "--csv", "--plot", "--json", "--episodes", "--replan", "--delta", "--seed", "--seeds",
    "--quiet", "--optimism", "--until", "--save", "--log", "--policy", "--share", "--up-to",
    "--states", "--actions", "--longest", "--branching", "--exploration", "--out", "--format",
    "--no-such-flag", "-h", "--", "-x",
)  # fmt: skip
VALUES = (
    "0", "1", "2", "3", "-1", "-2", "0.5", "1.5", "nan", "inf", "-inf", "1e3", "1e99", "1e400", "",
    " ", "x", "é", "\x00", "none", "None", "True", "[]", "a=b", "=", "a=", "=b", "0:.5,1:.5",
    "-1:.2,0:.8", "0:1", "0:2", "0:nan", ":", ",", "mvp", "mvp:c1=1,c2=1", "mvp:c1=x", "certified",
    "greedy", "posterior", "hoeffding:c=7", "os:path", "every", "doubling", "total", "every 3",
    "known", "unknown", "first", "table.npz", "run.npz", "notes.txt", "log.csv", "folder",
    "no/such/file", "out.csv", "out.png", "out.npz", "out.json", "x.toml", "bad.toml", "p=0.4",
    "capital=2", "goal=5", "states=3", "seed=1", "9" * 30, "0x10", "1_000", "\u0661",
)  # fmt: skip
COMMAND_SECONDS = 4.0  # then Ctrl-C
ANSWER_SECONDS = 20.0  # after Ctrl-C; a compiler may be at work
MOST_BYTES = 3 << 30
EACH = 6  # command lines of one attack
INTERNAL = re.compile(r"\bat \S*[\\/](pkd|pkd_delay|pkd_examples)[\\/]\S+\.py:\d+|Traceback")


def attack(seed: int, folder: Path) -> int:
    """Some random command lines in a folder with good and bad files."""
    rng = random.Random(seed)
    with _working_in(folder):
        _fill()
        for _ in range(EACH):
            _try(_choose(rng))
    return EACH


def _choose(rng: random.Random) -> list[str]:
    words = [rng.choice(COMMANDS)]
    if rng.random() < 0.9:
        words.append(rng.choice(MODELS[:7] if rng.random() < 0.7 else MODELS))
    for _ in range(rng.choice([0, 1, 2, 3, 5])):
        words.append(rng.choice(FLAGS))
        if rng.random() < 0.85:
            words.append(rng.choice(VALUES))
    if rng.random() < 0.7 and words[0] in ("learn", "compare"):
        words += ["--episodes", "20"]
    if rng.random() < 0.1:
        rng.shuffle(words)
    return words


def _try(words: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    interrupted, code = False, None
    began = time.monotonic()
    with _alarm(COMMAND_SECONDS) as rung:
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        except SystemExit as stop:
            code = stop.code
        except KeyboardInterrupt:  # it rang outside of the command
            code = 130
        interrupted = bool(rung)
    late = time.monotonic() - began - COMMAND_SECONDS
    said = err.getvalue()
    assert code in ((0, 1, 2, 130) if interrupted else (0, 1, 2)), f"{words}: exit code {code}"
    assert late < ANSWER_SECONDS, f"{words}: answered Ctrl-C after {late:.0f} s"
    assert not INTERNAL.search(said), f"{words}: {said.strip()[-300:]}"
    assert code != 2 or said.strip(), f"{words}: exit code 2 without a word"
    assert _used() < MOST_BYTES, f"{words}: {_used() >> 20} MB"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[list[int]]:
    """Ctrl-C after so many seconds, where the system has a timer."""
    rung: list[int] = []
    if not hasattr(signal, "setitimer"):
        yield rung
        return

    def ring(number: int, frame: Any) -> None:
        rung.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before, path = Path.cwd(), [*sys.path]
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = path


def _fill() -> None:
    mdp = pkd.TabularMDP([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]], [[0, 1], [1, 0]], 3)
    mdp.save_npz("table.npz")
    pkd.learn(mdp, 3).save("run.npz")
    Path("notes.txt").write_text("z,x\n1,2\n", encoding="utf-8")
    Path("log.csv").write_text("z;x\ncoin;heads\ncoin;tails\n", encoding="utf-8")
    Path("x.toml").write_text('model = "gambler"\n', encoding="utf-8")
    Path("bad.toml").write_text("model = \n", encoding="utf-8")
    Path("folder").mkdir(exist_ok=True)


def _used() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
