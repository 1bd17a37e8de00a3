"""Regret with late observations: theory, shared features, known book-keeping.

Three tables. First the constants of the theory for a million episodes on a small instance (S = 3,
A = 2, H = 5, D = 2, W = 1): regret as episodes grow tenfold, its growth as a power of K, and how
often optimism failed. Then practical constants on S = 5, A = 2, H = 10, D = 3, W = 2: MVP-Delayed
against counts per augmented state and against a learner that ignores the delay. Last the
autoscaler, composed (the load alone is learned) and as its flattened table with the same delays.
Regret is against the exact optimum of the delayed problem.

    python benchmarks/delay_regret.py --seeds 3 --out out
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import make_parser

import pkd
from pkd.cli.output import table, write_csv
from pkd.experiments import rivals
from pkd_delay import DelayedMDP, learn
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp
from pkd_delay.rivals import IgnoreDelay

GOAL = 0.95
DECADES = (1_000, 10_000, 100_000, 1_000_000)
THEORY_HEADERS = (
    "delay law",
    "seed",
    *(f"regret at {k:,}" for k in DECADES),
    "power of K, last decade",
    "plans",
    "violations",
    "seconds",
)
PRACTICAL_HEADERS = (
    "problem",
    "agent",
    "features",
    "episodes",
    "regret",
    "lowest",
    "highest",
    f"episodes to {GOAL:.0%}",
)
Learner = Callable[[int], pkd.Run]  # seed -> run


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for the tables (default: out)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="seeds of every agent (default: 3)")
    parser.add_argument(
        "--episodes",
        type=int,
        default=2_000,
        help="episodes with practical constants (default: 2000)",
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    theory = list(theory_rows(args.seeds))
    write_csv(args.out / "delay_regret_theory.csv", THEORY_HEADERS, theory)
    print(table(THEORY_HEADERS, theory), end="\n\n", flush=True)

    practical = [
        *random_rows(args.episodes, args.seeds),
        *autoscaler_rows(args.episodes, args.seeds),
    ]
    write_csv(args.out / "delay_regret_practical.csv", PRACTICAL_HEADERS, practical)
    print(table(PRACTICAL_HEADERS, practical))


def theory_rows(seeds: int) -> Iterator[tuple[Any, ...]]:
    """A million episodes with the constants of the theorem, for both delay laws."""
    delayed = DelayedMDP(
        random_mdp(states=3, actions=2, horizon=5, successors=3, seed=1),
        {-1: 0.2, 0: 0.4, 1: 0.4},
        2,
    )
    for delay_law in ("known", "unknown"):
        for seed in range(seeds):
            run = learn(delayed, DECADES[-1], delay_law=delay_law, seed=seed)
            regret = [float(run.regret[k - 1]) for k in DECADES]
            power = float(np.log10(regret[-1] / regret[-2]))
            cells = (f"{value:.0f}" for value in regret)
            yield (
                delay_law,
                seed,
                *cells,
                f"{power:.2f}",
                len(run.plans),
                run.violations,
                f"{run.seconds:.2f}",
            )


def random_rows(episodes: int, seeds: int) -> Iterator[tuple[Any, ...]]:
    """MVP-Delayed and its rivals, all with practical constants."""
    delayed = DelayedMDP(
        random_mdp(states=5, actions=2, horizon=10, successors=5, seed=0),
        {-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1},
        3,
    )
    law, rule = delayed.law(), pkd.MVP.practical()
    known, unknown, own = (
        pkd.compile(delayed.known()),
        pkd.compile(delayed.unknown()),
        rivals.CountsPerState(delayed.known()),
    )
    alone, alone_law = pkd.compile(own), own.law(law)
    agents: dict[str, Learner] = {
        "MVP-Delayed, known law": lambda seed: pkd.learn(
            known, law, episodes, optimism=rule, seed=seed
        ),
        "MVP-Delayed, unknown law": lambda seed: pkd.learn(
            unknown, law, episodes, optimism=rule, seed=seed
        ),
        "counts per augmented state": lambda seed: pkd.learn(
            alone, alone_law, episodes, optimism=rule, seed=seed
        ),
        "ignores the delay": lambda seed: pkd.experiment(
            delayed, IgnoreDelay(optimism=rule), episodes, [seed]
        )[0],
    }
    for agent, one in agents.items():
        yield practical_row("random, S=5", agent, [one(seed) for seed in range(seeds)])


def autoscaler_rows(episodes: int, seeds: int) -> Iterator[tuple[Any, ...]]:
    """The same delayed world with known book-keeping, and as a table with every (s, a) learned."""
    composed = autoscaler()
    flat = DelayedMDP(
        pkd.flatten(composed.base, composed.base_law), {-1: 0.2, 0: 0.4, 1: 0.4}, composed.max_delay
    )
    for agent, delayed in (
        ("MVP-Delayed, composed", composed),
        ("MVP-Delayed, flattened table", flat),
    ):
        compiled, law = pkd.compile(delayed.known()), delayed.law()
        runs = [
            pkd.learn(compiled, law, episodes, optimism=pkd.MVP.practical(), seed=seed)
            for seed in range(seeds)
        ]
        yield practical_row("autoscaler", agent, runs)


def practical_row(problem: str, agent: str, runs: list[pkd.Run]) -> tuple[Any, ...]:
    """Mean regret and its range, and the median number of episodes to the goal."""
    regrets = [float(run.regret[-1]) for run in runs]
    episodes = len(runs[0].returns)
    reached = sorted(run.episodes_to(GOAL, baseline=0.0) or episodes + 1 for run in runs)[
        len(runs) // 2
    ]
    cells = (f"{value:.1f}" for value in (sum(regrets) / len(runs), min(regrets), max(regrets)))
    return (
        problem,
        agent,
        len(runs[0].counts),
        episodes,
        *cells,
        reached if reached <= episodes else f"> {episodes}",
    )


if __name__ == "__main__":
    main()
