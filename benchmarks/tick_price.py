"""What a log says of the price of the first tick of delay of the autoscaler.

For logs of 5,000 and 50,000 loads: how often the certified bounds hold the true price, how often
their lower end is above 0, and how wide they are beside those of two values apart and beside draws
from the posterior, which guarantee nothing.

    python benchmarks/tick_price.py --runs 200 --out out
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

import pkd
from pkd_delay import Delayed
from pkd_delay.latency.curve import DelayCost, measure_certified, strip
from pkd_delay.models.autoscaler import CHAIN, autoscaler

Counts = dict[str, dict[str, float]]


def draw_log(samples: int, seed: int) -> Counts:
    """How often each load followed each, along one path."""
    rng = np.random.default_rng(seed)
    rows = {z: (list(row), np.cumsum(list(row.values()))) for z, row in CHAIN.items()}
    counts: Counter[tuple[str, str]] = Counter()
    load = next(iter(CHAIN))
    for mark in rng.random(samples):
        names, sums = rows[load]
        following = names[min(int(np.searchsorted(sums, mark)), len(names) - 1)]
        counts[load, following] += 1
        load = following
    return {z: {x: float(counts[z, x]) for x in CHAIN} for z in CHAIN}


def bound_first_tick(counts: Counts, delta: float = 0.05) -> DelayCost:
    """The line of a delay of one tick."""
    ticks = [(d, lambda given, d=d: Delayed.constant(strip(given), d)) for d in (0, 1)]
    return measure_certified(autoscaler(), counts, ticks, delta)[1]


def main() -> None:
    """Prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--samples", type=int, nargs="+", default=[5_000, 50_000])
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    problem = autoscaler()
    fast, slow = (
        pkd.plan(Delayed.constant(strip(problem), d).known(), problem.law()).value for d in (0, 1)
    )
    truth = fast - slow
    lines = [f"The true price is {truth:.4f}.", ""]
    lines += ["| samples | bounds hold it | lower end above 0 | mean bounds | mean of draws |"]
    lines += ["|---|---|---|---|---|"]
    for samples in args.samples:
        found = [bound_first_tick(draw_log(samples, seed)) for seed in range(args.runs)]
        price = np.array([line.price for line in found])
        drawn = np.array([line.drawn for line in found]).mean(axis=0)
        held = int(np.sum((price[:, 0] <= truth) & (truth <= price[:, 1])))
        low, high = price.mean(axis=0)
        cells = (
            f"{samples:,}", f"{held} of {args.runs}", f"{int(np.sum(price[:, 0] > 0))}",
            f"{low:.3f} to {high:.3f}", f"{drawn[0]:.3f} to {drawn[1]:.3f}",
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "tick_price.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
