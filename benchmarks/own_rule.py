"""A rule in numpy against the compiled rule with the same formula: milliseconds of one sweep.

python benchmarks/own_rule.py
"""

from __future__ import annotations

import time
from typing import Any

import attrs
import numpy as np

import pkd
from pkd.cli.output import table
from pkd.engine import Compiled
from pkd.planning.plan import seed_words

REPEATS = 20


@attrs.frozen
class Root(pkd.PythonRule):
    """`pkd.Hoeffding(c, log_factor=1)` in numpy."""

    c: float = 1.0

    def values(self, pairs: Any) -> Any:
        mean = np.einsum("nb,nb->n", pairs.P, pairs.V)
        return mean + self.c * pairs.width / np.sqrt(pairs.N)


@attrs.frozen
class Bernstein(pkd.PythonRule):
    """`pkd.MVP.practical()` in numpy."""

    def values(self, pairs: Any) -> Any:
        p, gaps = pairs.P, pairs.V - pairs.V[:, :1]
        mean = np.einsum("nb,nb->n", p, gaps)
        variance = np.einsum("nb,nb,nb->n", p, gaps, gaps) - mean * mean
        bonus = 0.5 * np.sqrt(np.maximum(variance, 0.0) / pairs.N)
        value = pairs.V[:, 0] + mean + bonus + 0.25 * pairs.width / pairs.N
        return np.where(pairs.N > 1, value, np.minimum(pairs.cap, 1e300))


PAIRS: list[tuple[pkd.Optimism, pkd.Optimism]] = [
    (pkd.Hoeffding(1.0, log_factor=1.0), Root()),
    (pkd.MVP.practical(), Bernstein()),
]


def dense(states: int, actions: int, horizon: int) -> pkd.TabularMDP:
    rng = np.random.default_rng(0)
    transitions = rng.dirichlet(np.ones(states), (states, actions))
    return pkd.TabularMDP(transitions, rng.random((states, actions)), horizon)


def measure(compiled: Compiled, counts: Any, rule: pkd.Optimism) -> tuple[float, float]:
    """(milliseconds of one sweep, its value)."""
    bonus, policy = rule.bonus(), compiled.policy()
    belief = compiled.optimistic(bonus, 1000, 0.05)
    limits = compiled.reward_bonus(bonus, 1000, 0.05)
    compiled.estimate(belief, compiled.tally(counts), bonus, limits, seed_words(0))
    best, value = np.inf, 0.0
    for _ in range(REPEATS):
        began = time.perf_counter()
        value, _ = compiled.sweep(belief, policy, follow=False)
        best = min(best, time.perf_counter() - began)
    return 1000 * best, value


def main() -> None:
    rows = []
    for name, problem in (("autoscaler", "autoscaler"), ("dense table, S = 50", dense(50, 4, 20))):
        found = pkd.as_problem(problem)
        counts = pkd.learn(found, 300, optimism=pkd.MVP.practical()).counts
        compiled = pkd.compile(found)
        for rule, own in PAIRS:
            (quick, one), (slow, other) = (measure(compiled, counts, r) for r in (rule, own))
            assert abs(one - other) <= 1e-9 * abs(one), (one, other)
            kind = type(compiled).__name__
            ratio = f"{slow / quick:.1f}"
            rows.append([name, kind, own.name, f"{quick:.2f}", f"{slow:.2f}", ratio])
    print(table(["model", "engine", "rule", "compiled ms", "numpy ms", "ratio"], rows))


if __name__ == "__main__":
    main()
