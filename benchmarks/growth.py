"""How seconds grow with each size of a problem: D, S, A, B, H by planning, |Z| and K by learning.

Planning: `planners.py pkd`, one size at a time, the others as in `BASE`. Learning, as a child of
this script: a table with two actions, a plan before each of 200 episodes, for |Z| = 2 S, with five
known successors of each pair and with all S states as possible ones; and ten states with plans at
doublings, for K episodes. Dashed, through the last point: growth as the number of (state, action,
outcome) triples per sweep, which is |Z| S where all states may follow, and linear for K.

    python benchmarks/growth.py --out out [--quick]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from measuring import Case, add_limits, make_parser, report, run_case

PLANNERS = str(Path(__file__).with_name("planners.py"))
BASE = {"S": 20, "A": 4, "B": 5, "H": 20, "D": 6}
GRIDS = {
    "D": [2, 3, 4, 5, 6, 7, 8],
    "S": [10, 20, 40, 80, 160],
    "A": [2, 3, 4, 5, 6],
    "B": [2, 5, 10, 20],
    "H": [10, 20, 40, 80],
    "|Z|": [20, 40, 80, 160, 320, 640],
    "|Z|, any successor": [20, 40, 80, 160, 320, 640],
    "K": [1_000, 10_000, 100_000, 1_000_000],
}
QUICK = {name: sizes[:2] for name, sizes in GRIDS.items()}


def measure(name: str, size: int, limit: float, memory: int) -> Case:
    """Seconds at one size."""
    if name in BASE:
        sizes = {**BASE, name: size}
        words = ",".join(f"{letter}={value}" for letter, value in sizes.items())
        return run_case(PLANNERS, ["pkd", "--sizes", words], limit, memory)
    return run_case(__file__, ["--learn", name, str(size)], limit, memory)


def learn(name: str, size: int) -> float:
    """Seconds of learning, kernels compiled before."""
    import numpy as np

    import pkd

    states, episodes, replan = (10, size, "doubling") if name == "K" else (size // 2, 200, "every")
    rng = np.random.default_rng(0)
    transitions = np.zeros((states, 2, states))
    for s in range(states):
        for a in range(2):
            transitions[s, a, rng.choice(states, 5, replace=False)] = rng.dirichlet(np.ones(5))
    mdp = pkd.TabularMDP(transitions, rng.random((states, 2)), 20)
    compiled = pkd.compile(mdp.model(support=name != "|Z|, any successor"))
    pkd.learn(compiled, mdp.law(), 5, optimism=pkd.MVP(), replan=replan)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        pkd.learn(compiled, mdp.law(), episodes, optimism=pkd.MVP(), replan=replan)
        times.append(time.perf_counter() - began)
    return min(times)


def expect(name: str, size: int) -> float:
    """What a sweep costs, up to a factor: H S A^(D+1) B, |Z| or |Z| S; linear in K."""
    if name not in BASE:
        return float(size) ** (2 if name == "|Z|, any successor" else 1)
    at = {**BASE, name: size}
    return float(at["H"] * at["S"] * at["A"] ** (at["D"] + 1) * at["B"])


def draw(found: dict[str, list[tuple[int, float]]], path: Path) -> None:
    """One panel per size, logarithmic on both axes."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(12, 5.5), layout="constrained")
    for axis, (name, points) in zip(axes.flat, found.items(), strict=False):
        if points:
            sizes, seconds = zip(*points, strict=True)
            shape = [expect(name, size) for size in sizes]
            axis.plot(sizes, seconds, "o-", color="#0072B2", label="measured")
            scaled = [seconds[-1] * value / shape[-1] for value in shape]
            axis.plot(sizes, scaled, "--", color="#D55E00", label="expected growth")
        axis.set(xscale="linear" if name == "D" else "log", yscale="log", xlabel=name)
        axis.grid(alpha=0.3)
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds")
    axes.flat[0].legend()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = make_parser(__doc__)
    add_limits(parser)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--learn", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.learn:
        report(solve=learn(args.learn[0], int(args.learn[1])))
        return
    from pkd.cli.output import write_csv

    found: dict[str, list[tuple[int, float]]] = {}
    for name, sizes in (QUICK if args.quick else GRIDS).items():
        found[name] = []
        for size in sizes:
            case = measure(name, size, args.limit, args.memory)
            print(f"{name} = {size}: {case}", flush=True)
            if isinstance(case, dict):
                found[name].append((size, case["solve"]))
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [(name, *point) for name, points in found.items() for point in points]
    write_csv(args.out / "growth.csv", ["size", "value", "seconds"], rows)
    draw(found, args.out / "growth.svg")


if __name__ == "__main__":
    main()
