"""Milliseconds of set-up per single episode, and episodes per second in bulk.

Three ways to play: `pkd.simulate` anew for each episode, one `pkd.Simulator` for all of them, and
`Simulator.returns` in compiled code.

    python benchmarks/simulation.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pkd

MODELS = ("inventory", "riverswim", "random_mdp", "blackjack")
FEW, MANY, BULK = 20, 500, 100_000


def measure(play: Callable[[], object], repeats: int) -> float:
    """Milliseconds per call."""
    play()
    began = time.perf_counter()
    for _ in range(repeats):
        play()
    return 1000 * (time.perf_counter() - began) / repeats


def main() -> None:
    print(f"{'model':14} {'anew ms':>9} {'Simulator ms':>13} {'ratio':>7} {'bulk episodes/s':>16}")
    for name in MODELS:
        problem = pkd.as_problem(name)
        model, law = problem.model(), problem.law()
        plan = pkd.plan(model, law)
        world = pkd.Simulator(plan.compiled, law)
        anew = measure(lambda: pkd.simulate((model, law), plan.action, 1), FEW)  # noqa: B023
        once = measure(lambda: world.episode(plan), MANY)  # noqa: B023
        world.returns(plan, 10)
        began = time.perf_counter()
        world.returns(plan, BULK)
        rate = BULK / (time.perf_counter() - began)
        print(f"{name:14} {anew:9.2f} {once:13.4f} {anew / once:7.0f} {rate:16,.0f}")


if __name__ == "__main__":
    main()
