"""How often a certificate holds: simulated logs of six models, fixed and adaptive.

Each log is certified at delta = .05 for V* and for the policy that is optimal under the frequencies
of the log, so the policy depends on the data. A certificate fails if the exact V* or the exact
value of that policy lies outside.

- fixed: so many independent samples of every feature, 2^0 to 2^11 in turn.
- adaptive: what a learner has seen after 1 to 512 episodes in turn; it chose what to look at by
  what it had seen.

One model declares a family of laws (`pkd.families`). Upper values of V* use the narrower sets of
`pkd.planning.estimator.narrow` where features have more than four outcomes.

    python benchmarks/certificate_coverage.py --logs 1000
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from tqdm import tqdm

import pkd
from pkd.cli import table
from pkd_examples.inventory import Inventory, poisson

FAMILY = "inventory of 4 days, Poisson demand declared"
MODELS = ("gambler", "inventory", "kuhn", "pricing", "riverswim", FAMILY)
SLACK = 1e-9  # of the optimal value, for rounding


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=1000, help="per model and kind (default: 1000)")
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", default=MODELS)
    args = parser.parse_args()
    rows = []
    with tqdm(total=2 * len(args.models) * args.logs, unit="log") as bar:
        for name in args.models:
            world = World(name)
            for kind, make in (("fixed", world.draw_fixed), ("adaptive", world.learn)):
                failed = 0
                width = []
                for k in range(args.logs):
                    counts = make(k, args.seed)
                    holds, share = world.judge(counts, args.delta)
                    failed += not holds
                    width.append(share)
                    bar.update()
                held = 100 * (1 - failed / args.logs)
                rows.append(
                    (name, kind, args.logs, failed, f"{held:.4g}%", float(np.median(width)))
                )
    headers = ["model", "logs", "number", "failures", "held", "median width / all that can happen"]
    print(table(headers, rows))


class World:
    """A model, its law, and logs that are drawn from it."""

    def __init__(self, name: str) -> None:
        problem = declared() if name == FAMILY else pkd.as_problem(name)
        self.compiled, self.law = pkd.compile(problem.model()), problem.law()
        self.optimum = pkd.plan(self.compiled, self.law).value
        self.everything = pkd.certify(self.compiled, {}).gap

    def draw_fixed(self, k: int, seed: int) -> dict[Any, dict[Any, float]]:
        """2^(k mod 12) samples of each feature."""
        rng, counts = np.random.default_rng([seed, k]), {}
        for z in (*self.compiled.features, *self.compiled.reward_index):
            row = self.law(z) if callable(self.law) else self.law[z]
            p = np.array(list(row.values()))
            seen = rng.multinomial(2 ** (k % 12), p / p.sum())
            counts[z] = {x: float(n) for x, n in zip(row, seen, strict=True) if n}
        return counts

    def learn(self, k: int, seed: int) -> Any:
        """What a learner has seen after 2^(k mod 10) episodes."""
        run = pkd.learn(
            self.compiled, self.law, 2 ** (k % 10), optimism=pkd.Certified(minimax=False),
            seed=1000 * seed + k, optimal_value=self.optimum,
        )  # fmt: skip
        return run.counts

    def judge(self, counts: Any, delta: float) -> tuple[bool, float]:
        """Whether a certificate holds, and its width as a part of all that can happen."""
        likely = pkd.optimistic_plan(
            self.compiled, counts, episodes=1, optimism=pkd.Greedy()
        )  # the best policy under the frequencies
        found = pkd.certify(self.compiled, counts, policy=likely, delta=delta)
        value = float(pkd.evaluate(self.compiled, self.law, likely))
        slack = SLACK * max(1.0, abs(self.optimum))
        holds = (
            found.optimal_low - slack <= self.optimum <= found.optimal_high + slack
            and found.low - slack <= value <= found.high + slack
        )
        return holds, (found.optimal_high - found.optimal_low) / self.everything


class Demand(Inventory):
    """An inventory whose demand is known to be Poisson, with unknown means."""

    def outcomes(self, z: Any) -> pkd.Poisson:
        return pkd.Poisson(max=self.max_demand)


def declared() -> Any:
    """A small one, with the laws of the shipped model."""
    model = Demand(horizon=4, days=2, capacity=5, max_order=2, max_demand=5, stock=2)
    return pkd.as_problem((model, {0: poisson(1.0, 5), 1: poisson(2.5, 5)}))


if __name__ == "__main__":
    main()
