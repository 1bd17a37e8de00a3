"""A log of late states as production writes it, and how `pkd fit-delay` reads it.

50,000 states of one sensor, one each 10 s, with lags of 0, 1, 2 or 3 ticks, delivered in order. 1%
are lost, 2% are written twice, the rows are shuffled in short stretches, times are ISO timestamps
of two zones or epochs in s, ms, us or ns, and for 2,000 ticks nothing was recorded.

    python benchmarks/messy_log.py --runs 20 --out out
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from pkd_delay import Lags
from pkd_delay.laws.estimation import bound_loss
from pkd_delay.laws.fitting import fit_delay

LAW = Lags({0: 0.55, 1: 0.3, 2: 0.1, 3: 0.05})
TICK, LOSS = 10.0, 0.01
OUTAGE = (0.4, 0.44)  # parts of the log
MESSES = ("blanks", "duplicates", "units", "zones", "shuffled", "outage", "gaps", "jitter")
ZONES = (UTC, timezone(timedelta(hours=5, minutes=30)))
Cell = str | int | float | None


def make_rows(
    seed: int, n: int = 50_000, messes: Collection[str] = MESSES, start: float = 1.7e9
) -> list[dict[str, Cell]]:
    """The rows of a log: step, sent, shown. Messes that are not named are left out."""
    rng = np.random.default_rng(seed)
    lags = rng.choice(len(LAW.probabilities), size=n, p=LAW.probabilities)
    delay, rows = 0, list[dict[str, Cell]]()
    lost = rng.random(n) < LOSS
    jitter = rng.uniform(-4e-7, 4e-7, (n, 2)) if "jitter" in messes else np.zeros((n, 2))
    for t in range(n):
        delay = max(delay - 1, int(lags[t]))
        sent = start + TICK * t + jitter[t, 0]
        shown: float | None = start + TICK * (t + delay) + jitter[t, 1]
        if "outage" in messes and OUTAGE[0] <= t / n < OUTAGE[1]:
            shown = None
        if lost[t] and "gaps" in messes and t % 2 and 0 < t < n - 1:
            continue
        if lost[t] and "blanks" in messes:
            shown = None
        row = {"step": t, "sent": write(sent, rng, messes)}
        row["shown"] = None if shown is None else write(max(shown, sent), rng, messes)
        rows += [row] * (1 + ("duplicates" in messes and rng.random() < 0.02))
    if "shuffled" in messes:
        order = np.argsort(np.arange(len(rows)) + rng.uniform(0, 5, len(rows)))
        rows = [rows[i] for i in order]
    return rows


def write(seconds: float, rng: np.random.Generator, messes: Collection[str]) -> Cell:
    """One time in a unit and a zone that change from cell to cell."""
    unit = int(rng.integers(5)) if "units" in messes else 0
    if unit == 4 or "zones" in messes:
        zone = ZONES[int(rng.integers(2)) if "zones" in messes else 0]
        if unit == 4 or "units" not in messes:
            return datetime.fromtimestamp(round(seconds, 6), zone).isoformat(
                timespec="microseconds"
            )
    nanoseconds = round(seconds * 1e6) * 1000
    return f"{seconds:.6f}" if unit == 0 else nanoseconds // (10**6, 10**3, 1)[min(unit, 3) - 1]


def write_log(path: Path, seed: int, messes: Collection[str] = MESSES, n: int = 50_000) -> Path:
    """The same as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ("step", "sent", "shown"))
        writer.writeheader()
        writer.writerows(make_rows(seed, n, messes))
    return path


def main() -> None:
    """Prints and writes a line for each log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = ["| seed | seconds | MB | law in its set | best form | loss rate | in | outages |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for seed in range(args.runs):
        path = write_log(args.out / "messy.csv", seed)
        began = time.perf_counter()
        fit = fit_delay("best", path, max_delay=3)
        seconds = time.perf_counter() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        loss = fit.log.loss
        low, high = bound_loss(loss.single, loss.kept, 0.05)
        rate = loss.single / (loss.kept + loss.single)
        cells = (
            seed, f"{seconds:.1f}", f"{memory:.0f}", fit.contains(LAW), fit.best_form,
            f"{rate:.4f} in [{low:.4f}, {high:.4f}]", low <= LOSS <= high, loss.outages,
        )  # fmt: skip
        lines.append(f"| {' | '.join(map(str, cells))} |")
        print(lines[-1], flush=True)
    (args.out / "messy_log.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
