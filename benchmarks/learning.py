"""Episodes per second of `pkd.learn` and of rlberry's UCBVI on the same small table.

The instance is random with S = 10, A = 2, H = 20; probabilities are multiples of 1/64, because
rlberry wants rows that sum to 1 exactly. Both sides replan after every episode, run the same number
of episodes, and are compiled before the clock starts. rlberry 0.6, and rlberry-scool, which took
over its UCBVI, have environments of their own (`environments.py`). Two ratios are printed: against
rlberry as it comes, with its own FiniteMDP, and against rlberry with a sampler that we wrote to
make its episodes cheaper (see `rlberry_peer.py`).

    python benchmarks/learning.py --out out --cache ~/.cache/pkd-benchmarks
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from environments import CACHE, find_python
from measuring import make_parser

import pkd
from pkd.cli.output import table, write_csv

PEERS = {"rlberry-0.6": "rlberry 0.6", "rlberry-scool": "rlberry-scool 0.7"}
MILLION = 1_000_000


class Speed(NamedTuple):
    """One measurement."""

    what: str
    per_second: float
    episodes: int


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for the table (default: out)"
    )
    parser.add_argument(
        "--cache",
        type=Path,
        default=CACHE,
        help="folder for the environments of the peers",
    )
    parser.add_argument(
        "--episodes", type=int, default=10_000, help="episodes of each side (default: 10000)"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="the best of them counts, for both sides: noise only slows down (default: 3)",
    )
    parser.add_argument("--without-peer", action="store_true", help="measure pkd alone")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    problem = instance()
    file = args.out / "learning-instance.npz"
    problem.save_npz(file)
    pythons: dict[str, Path] = {}
    for name in () if args.without_peer else PEERS:
        found = find_python(name, args.cache)
        if isinstance(found, str):
            print(f"{name}: {found}")
        else:
            pythons[name] = found
    best: dict[str, Speed] = {}
    for _ in range(args.rounds):
        # The sides take turns, so that a busy spell of the machine meets both.
        for speed in [
            *ours(problem, args.episodes, min(MILLION, 100 * args.episodes)),
            *(
                one
                for name, python in pythons.items()
                for one in rlberry(python, PEERS[name], file, args.episodes)
            ),
        ]:
            best[speed.what] = max(
                speed, best.get(speed.what, speed), key=lambda one: one.per_second
            )

    slowest = min(one.per_second for one in best.values() if one.what.endswith("replan every"))
    for what, sampler in (("as it comes", "FiniteMDP"), ("with our faster sampler", "QuickMDP")):
        peers = [one.per_second for one in best.values() if sampler in one.what]
        if peers:
            print(
                f"pkd (the slower of its two rules) / rlberry {what} (its fastest setting): "
                f"{slowest / max(peers):.1f}"
            )
    headers = ["what", "episodes per second", "episodes", "seconds"]
    rows = [
        (one.what, one.per_second, one.episodes, one.episodes / one.per_second)
        for one in best.values()
    ]
    print(table(headers, rows))
    write_csv(args.out / "learning.csv", headers, rows)


def instance(n_states: int = 10, n_actions: int = 2, horizon: int = 20) -> pkd.TabularMDP:
    """A random table."""
    rng = np.random.default_rng(0)
    transitions = (
        rng.multinomial(64, rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))) / 64
    )
    return pkd.TabularMDP(transitions, rng.random((n_states, n_actions)), horizon)


def ours(problem: pkd.TabularMDP, episodes: int, many: int) -> Iterator[Speed]:
    """`pkd.learn`, replanning every episode, then many episodes with doubling.

    The whole call is timed, the exact optimum included.
    """
    compiled = pkd.compile(problem.model())
    for count, replan in ((episodes, "every"), (many, "doubling")):
        for rule in (pkd.MVP(), pkd.MVP.practical()):
            pkd.learn(
                compiled, problem.law(), 10, optimism=rule, replan=replan
            )  # compiles, or reads the cache
            began = time.perf_counter()
            pkd.learn(compiled, problem.law(), count, optimism=rule, replan=replan)
            yield Speed(
                f"pkd, {rule.label}, replan {replan}", count / (time.perf_counter() - began), count
            )


def rlberry(python: Path, title: str, file: Path, episodes: int) -> Iterator[Speed]:
    """The peer's settings, each timed by itself."""
    command = [
        str(python),
        str(Path(__file__).with_name("rlberry_peer.py")),
        str(file),
        str(episodes),
    ]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, speed in json.loads(printed.splitlines()[-1]).items():
        yield Speed(f"{title} UCBVI, {name}", speed, episodes)


if __name__ == "__main__":
    main()
