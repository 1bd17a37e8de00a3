"""A million episodes of MVP-Delayed, law of the delay known and unknown, replanning by doubling.

Also replanning before every episode.

The instance is random: S = 5, A = 2, H = 10, D = 3, W = 2. Kernels are compiled before the clock
starts.

    python benchmarks/delay_learning.py [--episodes 1000000] [--out out]
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from measuring import make_parser

import pkd
import pkd_delay
from pkd.cli.output import table, write_csv


def instance() -> pkd_delay.DelayedMDP:
    rng = np.random.default_rng(1)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(5), (5, 2)), rng.random((5, 2)), 10)
    return pkd_delay.DelayedMDP(mdp, {-1: 0.2, 0: 0.4, 1: 0.2, 2: 0.2}, 3)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for the table (default: out)"
    )
    args = parser.parse_args()
    delayed, rows = instance(), []
    for law in ("known", "unknown"):
        for replan, episodes in (("doubling", args.episodes), ("every", args.episodes // 50)):
            for rule in (pkd.MVP(), pkd.MVP.practical()):
                pkd_delay.learn(delayed, 3, delay_law=law, replan=replan, optimism=rule)
                began = time.perf_counter()
                run = pkd_delay.learn(
                    delayed, episodes, delay_law=law, replan=replan, optimism=rule
                )
                seconds = time.perf_counter() - began
                rows.append(
                    (
                        law,
                        replan,
                        rule.label,
                        episodes,
                        seconds,
                        episodes / seconds,
                        len(run.plans),
                        run.regret[-1],
                        run.violations,
                    )
                )
    headers = [
        "delay law",
        "replan",
        "rule",
        "episodes",
        "seconds",
        "episodes/s",
        "plans",
        "regret",
        "violations",
    ]
    print(
        table(
            headers,
            [
                (*row[:4], round(row[4], 2), round(row[5]), row[6], round(row[7], 1), row[8])
                for row in rows
            ],
        )
    )
    args.out.mkdir(parents=True, exist_ok=True)
    write_csv(args.out / "delay_learning.csv", headers, rows)


if __name__ == "__main__":
    main()
