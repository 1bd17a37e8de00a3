"""First use: what a user waits for after an installation, when no kernel has been compiled yet.

Each case runs in a fresh process with an empty folder for compiled kernels, then once more with the
folder that the first run has filled. Seconds are those of the whole process, imports included.

    python benchmarks/first_use.py [--limit 120] [--only learn]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

from measuring import Case, add_limits, make_parser, report, run_case, show

import pkd
from pkd.cli.output import table


def plan_table() -> float:
    """The plan of a table with two states."""
    coin = _coin()
    return pkd.plan(coin.model(), coin.law()).value


def learn_table() -> float:
    """A thousand episodes on the same table."""
    coin = _coin()
    return float(pkd.learn(coin.model(), coin.law(), 1000, seed=0).regret[-1])


def plan_delay() -> float:
    """The plan of a constant delay of 8 with S = 20, A = 4, H = 20."""
    import pkd_delay

    return pkd_delay.plan(pkd_delay.DelayedMDP.constant(_world(20, 4, 20), 8)).value


def learn_delay() -> float:
    """A hundred episodes with a random delay of at most 3, S = 5, A = 2, H = 10."""
    import pkd_delay

    delayed = pkd_delay.DelayedMDP(_world(5, 2, 10), {-1: 0.2, 0: 0.5, 2: 0.3}, 3)
    return float(pkd_delay.learn(delayed, 100, seed=0).regret[-1])


def demo() -> float:
    """The command `pkd demo`."""
    from pkd.cli import main

    with tempfile.TemporaryDirectory() as folder:
        main(["demo", "--out", folder])
    return 0.0


def _coin() -> pkd.TabularMDP:
    transitions = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    return pkd.TabularMDP(transitions, [[0.0, 0.0], [1.0, 1.0]], horizon=3)


def _world(states: int, actions: int, horizon: int) -> pkd.TabularMDP:
    import numpy as np

    rng = np.random.default_rng(0)
    transitions = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            near = rng.choice(states, min(5, states), replace=False)
            transitions[s, a, near] = rng.dirichlet(np.ones(len(near)))
    return pkd.TabularMDP(transitions, rng.random((states, actions)), horizon)


CASES: dict[str, Callable[[], float]] = {
    "plan, small table": plan_table,
    "learn, small table": learn_table,
    "plan, large delay": plan_delay,
    "learn, small delay": learn_delay,
    "pkd demo": demo,
}


def main() -> None:
    parser = make_parser(__doc__)
    add_limits(parser)
    parser.add_argument("--only", default="", metavar="WORD", help="only cases with this word")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        report(value=CASES[args.case]())
        return
    headers = ["what", "empty cache s", "filled cache s", "ratio", "peak MB, empty", "remark"]
    rows = []
    for name in CASES:
        if args.only in name:
            print(f"{name} ...", flush=True)
            rows.append(row(name, args.limit, args.memory))
    print(table(headers, rows))


def row(name: str, limit: float, memory: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        first, again = (_run(name, limit, memory, environment) for _ in range(2))
    ratio = "-"
    if isinstance(first, dict) and isinstance(again, dict):
        ratio = f"{first['seconds'] / again['seconds']:.1f}"
    remark = first if isinstance(first, str) else ""
    return [
        name, show(first, "seconds", 2), show(again, "seconds", 2), ratio, show(first, "memory", 0),
        remark,
    ]  # fmt: skip


def _run(name: str, limit: float, memory: int, environment: dict[str, str]) -> Case:
    began = time.perf_counter()
    case = run_case(__file__, ["--case", name], limit, memory, environment)
    seconds = time.perf_counter() - began
    return case if isinstance(case, str) else {**case, "seconds": seconds}


if __name__ == "__main__":
    main()
