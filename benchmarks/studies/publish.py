"""Reruns the shipped studies and writes the tables and figures of docs/reference/studies.md.

    python -m benchmarks.studies.publish out            # what is missing is computed, one process
    python -m benchmarks.studies.publish out delay      # one study

A study of a sweep has a row for each value of its parameter, and the slope in it where it has one;
any other has a row for each model and agent. Every number is a mean with half of its 95% interval.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pkd
from pkd.cli.experiment_file import find_file, read_experiment
from pkd.experiments.experiment import run_grid
from pkd.files.atomic import write_csv

DOCS = Path(__file__).resolve().parents[2] / "docs"
STUDIES = (
    "episodes", "sizes", "delay", "shared", "features", "states", "delay_law", "certified",
    "rivals",
)  # fmt: skip
COLUMNS = ["model", "agent", "guarantee", "replan", "regret", "violations"]


def main() -> None:
    base, *names = sys.argv[1:] or ["out"]
    for name in names or STUDIES:
        grid, outputs = read_experiment(find_file(f"study_{name}"))
        results = run_grid(grid, folder=Path(base) / f"study_{name}", progress=None)
        headers, rows = list_rows(results, outputs)
        write_csv(DOCS / "reference" / "studies" / f"{name}.csv", headers, rows)
        x = outputs.x or ("agent" if len(results.agents) > len(results.models) else "model")
        path = DOCS / "_static" / f"study_{name}.png"
        results.plot(x=x, at=outputs.at, split=outputs.split, path=path)
        print(f"{name}: {results}")


def list_rows(results: Any, outputs: Any) -> tuple[list[str], list[list[Any]]]:
    """The table of a study."""
    if outputs.x is None:
        headers = [*results.names, *results.headers]
        kept = [headers.index(name) for name in COLUMNS]
        return COLUMNS, [[line[i] for i in kept] for line in results.lines]
    split = outputs.split
    parts = {"": results}
    if split is not None:
        parts = {str(v): results.select(**{split: v}) for v in results.parameters[split]}
    rows: list[list[Any]] = []
    for name, part in parts.items():
        lines = part.axis(outputs.x, outputs.at)
        values = list(dict.fromkeys(value for line in lines.values() for value in line.x))
        found = [[value, *(line.say(value) for line in lines.values())] for value in values]
        try:
            slopes = part.slopes(outputs.x, outputs.at).values()
            rounded = [[round(float(end), 2) + 0.0 for end in one] for one in slopes]  # no -0.00
            said = ["{:.2f} ({:.2f} to {:.2f})".format(*ends) for ends in rounded]
            # A hyphen in front would be taken for a formula, and get an apostrophe.
            found.append(["slope", *(text.replace("-", "\N{MINUS SIGN}") for text in said)])
        except pkd.ModelError:
            pass  # names have no logarithm, and where regret is 0 it has none
        rows += [[name, *row] for row in found] if split else found
        over = next(iter(lines.values()))
        what = f"{outputs.x} (95% over {over.units} {over.what})"
    return [*([split] if split else []), what, *lines], rows


if __name__ == "__main__":
    main()
