"""How often a fitted law of the delay holds the truth, and what its tests say of logs.

For each form of law and each length of log: in how many of 200 simulated logs the true law lies in
its confidence set (at least 95% is promised), how far the estimate is off, how often a test raises
a false alarm, and how often a log of another form is named as such: by a test, or by the verdict,
which also says when another form explains the log better. A second table asks the same of logs that
stop early: where the base ends, and where the agent stops.

    python benchmarks/fit_delay.py --runs 200 --out out
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import pkd
from pkd_delay import DelayChain, Delayed, DelayedMDP, InterArrival, Lags
from pkd_delay.episodes import DelayedEpisode, simulate
from pkd_delay.laws.fitting import fit_delay
from pkd_delay.laws.kernel import DelayKernel
from pkd_delay.laws.logs import read_log
from pkd_delay.models.tables import two_state_chain
from pkd_examples.gambler import gambler

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


class Coin(pkd.NoiseMDP):
    """A base that ends with probability 1/2 in each step."""

    horizon = 10

    def initial(self) -> str:
        return "on"

    def choices(self, s: Any) -> Any:
        return (0, 1) if s == "on" else pkd.END

    def noise(self, s: Any, a: Any) -> str:
        return "coin"

    def outcomes(self, z: Any) -> tuple[str, str]:
        return "on", "off"

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        return 0.0, w


def stop_early(record: DelayedEpisode, episode: int) -> list[dict[str, Any]]:
    """The rows until the agent sees that the state has changed: it stops, and no column says so."""
    rows = record.log_rows(episode)
    seen = [row["shown"] for row in rows if row["state"] != rows[0]["state"]]
    end = min([*seen, record.horizon])
    return [{**row, "end": None} for row in rows if row["sent"] <= end]


def forget_end(record: DelayedEpisode, episode: int) -> list[dict[str, Any]]:
    """All rows of an episode, without the column `end`."""
    return [{**row, "end": None} for row in record.log_rows(episode)]


# Where a log ends: (base, episodes of a log, the rows of an episode).
ENDS: dict[str, tuple[Any, int, Callable[[DelayedEpisode, int], list[dict[str, Any]]]]] = {
    "the base ends with probability 1/2": (
        (Coin(), {"coin": {"on": 0.5, "off": 0.5}}), 200, DelayedEpisode.log_rows,
    ),
    "the same, without the column `end`": (
        (Coin(), {"coin": {"on": 0.5, "off": 0.5}}), 200, forget_end,
    ),
    "a gambler with 2 of 4 coins": (gambler(goal=4, capital=2), 100, DelayedEpisode.log_rows),
    "the agent stops when it sees a change": (two_state_chain(horizon=20), 100, stop_early),
}  # fmt: skip


def fit_ended(name: str, end: str, seed: int) -> tuple[bool, bool, int]:
    """Whether the set holds the true law, whether a test raises an alarm, and the delays read."""
    law, largest = LAWS[name]
    base, episodes, rows = ENDS[end]
    late = Delayed(base, law, largest)
    records = simulate(late, lambda h, *_: 1, episodes, seed)
    log = read_log([row for i, record in enumerate(records) for row in rows(record, i)])
    fit = fit_delay(type(law), log, max_delay=largest)
    return fit.contains(law), not fit.holds, len(log.samples)


def measure_end(name: str, end: str, runs: int) -> str:
    """One line of the second table."""
    found = [fit_ended(name, end, seed) for seed in range(runs)]
    inside, alarms, samples = np.sum(found, axis=0)
    cells = (end, name, f"{samples / runs:.0f}", f"{inside} of {runs}", alarms)
    return f"| {' | '.join(map(str, cells))} |"


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
    """Prints and writes the tables."""
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
    lines += ["", "| where the log ends | law | delays | true law in its set | false alarms |"]
    lines += ["|---|---|---|---|---|"]
    for end in ENDS:
        for name in LAWS:
            lines.append(measure_end(name, end, args.runs))
            print(lines[-1], flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "fit_delay.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
