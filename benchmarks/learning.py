"""Learning speed: episodes per second of `pkd.learn` on a small table, beside UCBVI of rlberry on the same table in the same run.

The instance is random with S = 10, A = 2, H = 20; probabilities are multiples of 1/64, because rlberry wants rows that sum to 1 exactly.
Both sides replan after every episode, run the same number of episodes, and are compiled before the clock starts. rlberry 0.6 needs its own
environment (numpy 1.26, gymnasium 0.29), which is built once in a cache folder. Two ratios are printed: against rlberry as it comes, with
its own FiniteMDP, and against rlberry with a sampler that we wrote to make its episodes cheaper (see `rlberry_peer.py`).

    python benchmarks/learning.py --out out --cache ~/.cache/pkd-benchmarks
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import pkd
from pkd.cli.output import table, write_csv

PEER = ["rlberry==0.6.0", "numpy==1.26.4", "gymnasium==0.29.1", "numba"]
ROUNDS = 3  # the best of them counts, for both sides: noise of the machine only slows down
MILLION = 1_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the table (default: out)")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "pkd-benchmarks", help="folder for rlberry's environment")
    parser.add_argument("--episodes", type=int, default=10_000, help="episodes of each side (default: 10000)")
    parser.add_argument("--without-peer", action="store_true", help="measure pkd alone")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    problem = instance()
    rows = ours(problem, args.episodes)
    slowest = min(speed for _, speed, *_ in rows[:2])
    if not args.without_peer:
        peers = rlberry(problem, args.episodes, args.cache, args.out)
        rows += peers
        for what, sampler in (("as it comes", "FiniteMDP"), ("with our faster sampler", "QuickMDP")):
            fastest = max(speed for name, speed, *_ in peers if sampler in name)
            print(f"pkd (the slower of its two rules) / rlberry {what} (its fastest setting): {slowest / fastest:.1f}")
    headers = ["what", "episodes per second", "episodes", "seconds"]
    print(table(headers, rows))
    write_csv(args.out / "learning.csv", headers, rows)


def instance(n_states: int = 10, n_actions: int = 2, horizon: int = 20) -> pkd.TabularMDP:
    """A random table."""
    rng = np.random.default_rng(0)
    transitions = rng.multinomial(64, rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))) / 64
    return pkd.TabularMDP(transitions, rng.random((n_states, n_actions)), horizon)


def ours(problem: pkd.TabularMDP, episodes: int) -> list[tuple[str, float, int, float]]:
    """`pkd.learn`, replanning every episode, then a million episodes with doubling; the whole call is timed, the exact optimum included."""
    rows = []
    compiled = pkd.compile(problem.model())
    for count, replan in ((episodes, "every"), (MILLION, "doubling")):
        for rule in (pkd.MVP(), pkd.MVP.practical()):
            pkd.learn(compiled, problem.law(), 10, optimism=rule, replan=replan)  # compiles, or reads the cache
            seconds = seconds_of(partial(pkd.learn, compiled, problem.law(), count, optimism=rule, replan=replan))
            rows.append((f"pkd, {rule.label}, replan {replan}", count / seconds, count, seconds))
    return rows


def rlberry(problem: pkd.TabularMDP, episodes: int, cache: Path, out: Path) -> list[tuple[str, float, int, float]]:
    """The peer's settings, each the best of several rounds."""
    file = out / "learning-instance.npz"
    problem.save_npz(file)
    command = [str(environment(cache)), str(Path(__file__).with_name("rlberry_peer.py")), str(file), str(episodes)]
    speeds: dict[str, float] = {}
    for _ in range(ROUNDS):
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, speed in json.loads(printed.splitlines()[-1]).items():
            speeds[name] = max(speed, speeds.get(name, 0.0))
    return [(f"rlberry 0.6 UCBVI, {name}", speed, episodes, episodes / speed) for name, speed in speeds.items()]


def environment(cache: Path) -> Path:
    """A Python with rlberry, built the first time."""
    home = cache / "rlberry-0.6"
    python = home / "bin" / "python"
    ready = home / "ready"
    if not ready.exists():
        print(f"building an environment with {', '.join(PEER)} in {home}", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEER], check=True)
        ready.touch()
    return python


def seconds_of(learn: Callable[[], object]) -> float:
    """Wall-clock seconds of the fastest of several calls."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        learn()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
