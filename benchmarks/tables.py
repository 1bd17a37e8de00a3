"""Plain tables: planning beside ten lines of scipy and of numpy, and schedules of learning.

    python benchmarks/tables.py                     everything, below ten minutes
    python benchmarks/tables.py sparse --states 20000 200000
    python benchmarks/tables.py schedules
    python benchmarks/tables.py learn               10,000 episodes, beside UCBVI of rlberry

Each case is measured in a process of its own: seconds from the arrays to the value and all
policies (the best of three), and the memory that this took, as a multiple of the arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from environments import CACHE, find_python
from measuring import add_limits, peak_memory, report, run_case

ACTIONS, SUCCESSORS, STEPS = 4, 5, 30
SIZES = {"sparse": [20_000, 200_000, 1_000_000], "dense": [1_000, 3_000]}
PROGRAMS = {"peer": "scipy or numpy", "1": "pkd, one thread", "2": "pkd, two threads"}
LONG = (("sparse", 1_000), ("dense", 200))  # tables on which 10,000 episodes are learned
PEER_EPISODES = 200
LEARNING = ((10, 20_000), (100, 5_000), (1_000, 2_000))  # states, episodes
SCHEDULES = ("doubling", "slack", "total", "growth=1.2")


def make_arrays(kind: str, states: int) -> tuple[Any, np.ndarray]:
    """P with the row s A + a, and r (S, A)."""
    rng = np.random.default_rng(0)
    rewards = rng.random((states, ACTIONS))
    if kind == "dense":
        p = rng.random((states, ACTIONS, states))
        p /= p.sum(axis=-1, keepdims=True)
        return p, rewards
    from scipy.sparse import csr_array

    n = states * ACTIONS
    p = rng.dirichlet(np.ones(SUCCESSORS), n)
    after = rng.integers(0, states, (n, SUCCESSORS), dtype=np.int32)
    ptr = np.arange(n + 1, dtype=np.int32) * SUCCESSORS
    matrix = csr_array((p.ravel(), after.ravel(), ptr), shape=(n, states))
    matrix.sum_duplicates()
    return matrix, rewards


def solve_by_hand(p: Any, rewards: np.ndarray) -> tuple[float, np.ndarray]:
    """Ten lines of scipy or numpy."""
    matrix = p if p.ndim == 2 else p.reshape(-1, p.shape[-1])
    v, policy = np.zeros(len(rewards)), np.empty((STEPS, len(rewards)), np.uint8)
    for t in range(STEPS - 1, -1, -1):
        q = rewards + (matrix @ v).reshape(rewards.shape)
        policy[t] = q.argmax(axis=1)
        v = q.max(axis=1)
    return float(v[0]), policy


def solve_by_pkd(p: Any, rewards: np.ndarray) -> tuple[float, np.ndarray]:
    import pkd

    plan = pkd.plan(pkd.TabularMDP(p, rewards, STEPS))
    return plan.value, plan.choices


def measure_planning(kind: str, states: int, program: str) -> None:
    solve: Callable[..., tuple[float, np.ndarray]] = solve_by_hand
    if program != "peer":
        os.environ["PKD_THREADS"] = program
        solve = solve_by_pkd
        solve(*make_arrays(kind, 50))  # compiles
    p, rewards = make_arrays(kind, states)
    parts = (p,) if kind == "dense" else (p.data, p.indices, p.indptr)
    size = rewards.nbytes + sum(part.nbytes for part in parts)
    seconds, before = [], peak_memory()
    for _ in range(3):
        began = time.perf_counter()
        value, _ = solve(p, rewards)
        seconds.append(time.perf_counter() - began)
    more = (peak_memory() - before) * 2**20 / size
    report(seconds=min(seconds), value=value, share=more)


def measure_peer(kind: str, states: int) -> None:
    """Episodes per second of UCBVI of rlberry on the same table, from a few of its episodes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.npz"
        p, rewards = make_arrays(kind, states)
        dense = p if kind == "dense" else p.toarray().reshape(states, ACTIONS, states)
        dense /= dense.sum(axis=-1, keepdims=True)
        np.savez(file, P=dense, r=rewards, horizon=20, start=0)
        peer = str(Path(__file__).with_name("rlberry_peer.py"))
        python = find_python("rlberry-0.6", CACHE)
        if isinstance(python, str):
            raise SystemExit(python)
        words = [str(python), peer, str(file), str(PEER_EPISODES)]
        found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    report(seconds=10_000 / max(found.values()))


def measure_learning(states: int, episodes: int, schedule: str, kind: str = "sparse") -> None:
    import pkd

    p, rewards = make_arrays(kind, states)
    compiled = pkd.compile(mdp := pkd.TabularMDP(p, rewards, 20))
    law, rule = mdp.law(), "practical"
    pkd.learn(compiled, law, 2, optimism=rule, replan=schedule)  # compiles
    found = [pkd.learn(compiled, law, episodes, optimism=rule, replan=schedule, seed=seed)
             for seed in range(2)]  # fmt: skip
    report(
        seconds=float(np.mean([run.seconds for run in found])),
        plans=float(np.mean([len(run.plans) for run in found])),
        regret=float(np.mean([run.regret[-1] for run in found])),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", nargs="?", default="all", choices=["all", *SIZES, "schedules", "learn"]
    )
    parser.add_argument("--states", type=int, nargs="+")
    parser.add_argument("--case", nargs="+", help=argparse.SUPPRESS)
    add_limits(parser)
    args = parser.parse_args()
    if args.case:
        kind, states, word = args.case[0], int(args.case[1]), args.case[-1]
        if kind == "peer":
            return measure_peer(word, states)
        if kind == "long":
            return measure_learning(states, int(args.case[2]), "auto", word)
        if kind == "learn":
            return measure_learning(states, int(args.case[2]), word)
        return measure_planning(kind, states, word)

    def run(*words: object) -> Any:
        case = [args.what, "--case", *map(str, words)]
        return run_case(__file__, case, args.limit, args.memory)

    for kind in SIZES if args.what == "all" else {args.what} & SIZES.keys():
        for states in args.states or SIZES[kind]:
            found = {word: run(kind, states, word) for word in PROGRAMS}
            for word, numbers in found.items():
                if isinstance(numbers, str):
                    print(f"{kind} S = {states:,}, {PROGRAMS[word]}: {numbers}", flush=True)
                    continue
                peer: Any = found["peer"]
                ratio = (
                    "-" if isinstance(peer, str) else f"{numbers['seconds'] / peer['seconds']:.2f}"
                )
                print(
                    f"{kind} S = {states:,}, {PROGRAMS[word]}: {numbers['seconds']:.4f} s, "
                    f"{ratio} times the peer, memory {numbers['share']:.2f} times the arrays, "
                    f"value {numbers['value']:.10g}", flush=True,
                )  # fmt: skip
    if args.what in ("all", "schedules"):
        for states, episodes in LEARNING:
            for word in SCHEDULES[1 if states > 500 else 0 :]:
                print(f"S = {states:,}, {episodes:,} episodes, {word}: "
                      f"{run('learn', states, episodes, word)}", flush=True)  # fmt: skip
    if args.what in ("all", "learn"):
        for kind, states in LONG:
            for word, title in (("long", "pkd"), ("peer", "UCBVI of rlberry, extrapolated")):
                found = run(word, states, 10_000, kind)
                print(f"{kind} S = {states:,}, 10,000 episodes, {title}: {found}", flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
