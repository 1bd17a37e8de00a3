"""How often a fitted law of the delay holds the truth, and what its tests say of logs.

For each form of law and each length of log: in how many of 200 simulated logs the true law lies in
its confidence set (at least 95% is promised), how far the estimate is off, how often a test raises
a false alarm, and how often a log of another form is named as such: by a test, or by the verdict,
which also says when another form explains the log better.

    python benchmarks/fit_delay.py --runs 200 --out out
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pkd_delay import DelayChain, DelayedMDP, DelayKernel, InterArrival, Lags, simulate
from pkd_delay.delay_log import read_log
from pkd_delay.fitting import fit_delay
from pkd_delay.problems import two_state_chain

LAWS: dict[str, tuple[DelayKernel, int]] = {
    "inter-arrival": (InterArrival((0.3, 0.3, 0.25, 0.15)), 3),
    "lags": (Lags((0.5, 0.3, 0.2)), 2),
    "chain": (DelayChain([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.2, 0.8]]), 2),
}
HEAD = (
    "| law | episodes of 20 steps | true law in its set | mean error of the chance of an arrival | "
)
HEAD += "false alarms | named by Assumption 1's tests | verdict is against Assumption 1 | "
HEAD += "best form is the true one |"


def measure(name: str, episodes: int, runs: int) -> str:
    """One line of the table."""
    law, largest = LAWS[name]
    late = DelayedMDP(two_state_chain(horizon=20), law, largest)
    inside, alarms, named, against, best, errors = 0, 0, 0, 0, 0, []
    for seed in range(runs):
        records = simulate(late, lambda h, state, queue, waited: h % 2, episodes, seed)
        log = read_log(records)
        fit = fit_delay(type(law), log, max_delay=largest)
        inside += fit.contains(law)
        alarms += not fit.holds
        best += fit.best_form == name
        errors += [abs(i.share - law.arrival(i.before, i.delay)) for i in fit.intervals]
        assumed = fit_delay(InterArrival, log, max_delay=largest)
        named += not assumed.holds
        against += not assumed.holds or assumed.best_form != "inter-arrival"
    cells = (
        name, episodes, f"{inside} of {runs}", f"{np.mean(errors):.4f}", alarms, named, against,
        best,
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Prints and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--episodes", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    lines = [HEAD, "|---|---|---|---|---|---|---|---|"]
    for name in LAWS:
        for episodes in args.episodes:
            lines.append(measure(name, episodes, args.runs))
            print(lines[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "fit_delay.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
