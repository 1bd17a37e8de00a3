"""Late worlds of Gymnasium, planned, learned and played: exact values against the real environment.

For FrozenLake, CliffWalking and Taxi, with observations or actions 0 to 3 steps late: the exact
optimum, the exact value of a policy that was learned through `pkd_delay.LateEnv`, and the mean
return of both policies in it. A last check compares both kinds of lateness where they have the same
optimum: the first d commands are not the agent's own, so the world waits for them.

    python benchmarks/wrapped.py                 prints the table and writes it into the docs
    python benchmarks/wrapped.py --world lake    one world, printed only
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs
import gymnasium as gym
import numpy as np

import pkd
import pkd_delay
from pkd.files.atomic import write_text
from pkd_delay.envs.drive import drive, play
from pkd_delay.transforms.late_actions import LateCommands

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "wrapped.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
HEAD = (
    "| world | late | d | optimum | played | abs(z) | learned by | value of what was learned | "
    "played | abs(z) |\n|---|---|---:|---:|---:|---:|---|---:|---:|---:|"
)
LIMIT = 4.0  # standard errors


@attrs.frozen
class World:
    """An environment with a table, and how long it is learned and played."""

    name: str
    id: str
    options: dict[str, Any]
    horizon: int
    rule: pkd.Optimism
    episodes: int  # learned from
    played: int  # episodes of each policy
    first: int = 0  # the action that is executed before the first command has come

    def make(self, kind: str, d: int) -> pkd_delay.LateEnv:
        """The environment with observations or actions d steps late."""
        base = gym.make(self.id, disable_env_checker=True, **self.options)
        late = {"observations": d} if kind == "observations" else {"observations": 0, "actions": d}
        return pkd_delay.LateEnv(
            base, **late, first_action=self.first, horizon=self.horizon, news=False
        )


WORLDS = {
    "lake": World("FrozenLake 4x4", "FrozenLake-v1", {}, 30, pkd.Certified(), 2000, 1000),
    "lake8": World(
        "FrozenLake 8x8", "FrozenLake-v1", {"map_name": "8x8"}, 60, pkd.Greedy(), 1000, 1000
    ),
    "cliff": World(
        "CliffWalking, slippery", "CliffWalking-v1", {"is_slippery": True}, 100, pkd.Greedy(), 300,
        300, first=3,
    ),
    "taxi": World("Taxi, rainy", "Taxi-v4", {"is_rainy": True}, 20, pkd.Greedy(), 300, 300),
}  # fmt: skip


@attrs.frozen
class Played:
    """A policy: its exact value, and what it earned."""

    exact: float
    mean: float
    error: float  # standard error of the mean

    @property
    def z(self) -> float:
        """By how many standard errors the mean misses the exact value."""
        off = abs(self.mean - self.exact)
        return 0.0 if off < 1e-9 else off / self.error if self.error else np.inf


@attrs.frozen
class Line:
    """One line of the table."""

    world: World
    kind: str
    d: int
    best: Played
    learned: Played
    seconds: float

    def __str__(self) -> str:
        world = self.world
        name = f"{world.name}, H = {world.horizon}"
        rule = f"{type(world.rule).__name__}, {world.episodes}"
        cells = [name, self.kind, str(self.d), *_tell(self.best), rule, *_tell(self.learned)]
        return f"| {' | '.join(cells)} |"


def _tell(played: Played) -> list[str]:
    return [f"{played.exact:.4f}", f"{played.mean:.4f} ± {played.error:.4f}", f"{played.z:.2f}"]


def study(world: World, kind: str, d: int, seed: int = 0) -> Line:
    """Plans, learns and plays one late world."""
    began = time.perf_counter()
    env = world.make(kind, d)
    plan = pkd_delay.plan(env.problem())
    best = _play(env, plan, plan.value, world.played, seed)
    problem = env.problem(known_successors=True)
    learner = pkd.OptimisticLearner(
        problem.model(), world.episodes, optimism=world.rule, seed=seed, replan="total"
    )
    drive(env, learner, world.episodes, seed=seed + 1)
    exact = float(pkd.evaluate(learner.compiled, problem.law(), learner.plan))
    learned = _play(env, learner.plan, exact, world.played, seed + 2)
    return Line(world, kind, d, best, learned, time.perf_counter() - began)


def _play(env: pkd_delay.LateEnv, plan: Any, exact: float, episodes: int, seed: int) -> Played:
    paid = play(env, plan, episodes, seed=seed)
    return Played(exact, float(paid.mean()), float(paid.std(ddof=1) / np.sqrt(episodes)))


class Waiting(pkd.PartiallyKnownMDP):
    """A base after some steps in which nothing happens; y is (steps to wait, y of the base)."""

    def __init__(self, base: pkd.PartiallyKnownMDP, steps: int) -> None:
        self.base, self.steps, self.horizon = base, steps, base.horizon + steps

    def start(self) -> Any:
        start = self.base.start()
        states = start.items() if isinstance(start, dict) else [(start, 1.0)]
        return {(x, (self.steps, y)): p for (x, y), p in states}

    def actions(self, x: Any, y: Any) -> Any:
        return self.base.actions(x, y[1])

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return 0.0 if y[0] else self.base.reward(x, y[1], a)

    def step(self, x: Any, y: Any, a: Any) -> Iterable[Any]:
        if y[0]:
            return [(1.0, (y[0] - 1, y[1]), pkd.sure(x))]
        return [(p, (0, y_next), z) for p, y_next, z in self.base.step(x, y[1], a)]

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.base.outcomes(z)


def compare_kinds(world: World, d: int) -> tuple[float, float]:
    """The optimum with observations d steps late, and with actions d steps late after waiting."""
    late = world.make("observations", d).problem(known_successors=True)
    seen_late = pkd_delay.plan(late).value
    assert isinstance(late, pkd_delay.Delayed)
    commands = LateCommands(Waiting(late.base, d), d)
    return seen_late, pkd.plan(commands, late.base_law).value


def main() -> None:
    """Prints the table; all worlds together also go into the docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", choices=[*WORLDS, "all"], default="all")
    args = parser.parse_args()
    names = list(WORLDS) if args.world == "all" else [args.world]
    lines, same = [], []
    print(HEAD)
    for name in names:
        for kind in ("observations", "actions"):
            for d in range(4):
                lines.append(study(WORLDS[name], kind, d))
                print(lines[-1], f"{lines[-1].seconds:.0f} s", flush=True)
        same += [compare_kinds(WORLDS[name], d) for d in range(1, 4)]
        print(f"largest difference of the optima: {_find_gap(same):.1e}", flush=True)
    largest = max(max(line.best.z, line.learned.z) for line in lines)
    words = (
        f"The largest of {2 * len(lines)} abs(z) is {largest:.2f}. The optimum of late "
        "observations and that of late actions after d steps of waiting differ by less than "
        f"{max(_find_gap(same), 1e-12):.0e}, for d = 1, 2, 3 in all worlds."
    )
    print(words)
    if args.world == "all":
        head, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        body = "\n".join([BEGIN, "", HEAD, *map(str, lines), "", words, "", END])
        write_text(PAGE, head + body + rest.split(END)[1])
    if largest > LIMIT:
        raise SystemExit(f"a mean return is {largest:.1f} standard errors off; expected {LIMIT:g}")


def _find_gap(same: list[tuple[float, float]]) -> float:
    return max(abs(one - other) for one, other in same)


if __name__ == "__main__":
    main()
