"""Writes the tables and figures of docs/reference/studies.md from the folders of the studies.

    for study in episodes delay features delay_law certified rivals; do
        pkd experiment study_$study --workers 2
    done
    python -m benchmarks.studies.publish out

A table has one line for each model and agent, a figure one mark for each: the mean regret over
seeds and its bootstrap interval.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import pkd
from pkd.cli.output import save_figure, write_csv
from pkd.results.intervals import bootstrap_mean
from pkd.results.plots import COLOURS

DOCS = Path(__file__).resolve().parents[2] / "docs"
STUDIES = ("episodes", "delay", "features", "delay_law", "certified", "rivals")
HEADERS = ["model", "agent", "guarantee", "regret", "95% interval", "violations", "seeds"]
MARKS = "osD^v"
ORACLE, RANDOM = "Oracle (knows the law)", "Random play"  # the landmarks of the study of rivals


def main() -> None:
    base = Path(sys.argv[1] if len(sys.argv) > 1 else "out")
    for name in STUDIES:
        results = pkd.load_results(base / f"study_{name}")
        write_csv(DOCS / "reference" / "studies" / f"{name}.csv", HEADERS, list_rows(results))
        save_figure(choose_figure(results), DOCS / "_static" / f"study_{name}.png")
        print(f"{name}: {results}")


def choose_figure(results: Any) -> Figure:
    """Curves for one model, a row for each model, or a row for each of many agents."""
    if len(results.models) == 1:
        return pkd.compare(results).plot()
    return draw(results) if len(results.agents) <= len(MARKS) else draw_rivals(results)


def list_rows(results: Any) -> list[list[Any]]:
    rows = []
    for model in results.models:
        for agent in results.agents:
            records = results.records(model, agent)
            found = bootstrap_mean(np.array([record.regret[-1] for record in records]))
            known = [record.violations for record in records if record.violations is not None]
            plans = sum(len(record.plans) for record in records)
            rows.append(
                [
                    model,
                    agent,
                    records[0].guarantee,
                    f"{found.mean:.5g}",
                    f"{found.low:.5g} to {found.high:.5g}",
                    f"{sum(known)} of {plans}" if known else "",
                    len(records),
                ]
            )
    return rows


def describe(results: Any, agent: str) -> str:
    """An agent and what is proved about it."""
    guarantee = results.records(results.models[0], agent)[0].guarantee
    return agent if guarantee in agent.lower() else f"{agent}, {guarantee}"


def draw(results: Any) -> Figure:
    """A row for each model, a mark for each agent, on a logarithmic axis of regret."""
    models, agents = results.models, results.agents
    figure = Figure(figsize=(8.5, 1.4 + 0.42 * len(models)), layout="constrained")
    ax = figure.subplots()
    for i, agent in enumerate(agents):
        found = [
            bootstrap_mean(np.array([r.regret[-1] for r in results.records(model, agent)]))
            for model in models
        ]
        means = np.array([one.mean for one in found])
        bars = [means - [one.low for one in found], [one.high for one in found] - means]
        bars = np.maximum(bars, 0.0)  # rounding
        places = np.arange(len(models)) + 0.12 * (i - (len(agents) - 1) / 2)
        ax.errorbar(
            means,
            places,
            xerr=bars,
            fmt=MARKS[i],
            color=COLOURS[i],
            markersize=5,
            label=describe(results, agent),
        )
    ax.set_yticks(range(len(models)), models)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel="cumulative regret: mean over seeds, 95% bootstrap interval")
    ax.grid(alpha=0.2)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def draw_rivals(results: Any) -> Figure:
    """A row for each agent, a mark for each model: regret as a share of that of random play."""
    models = results.models
    agents = [agent for agent in results.agents if agent not in (ORACLE, RANDOM)]
    figure = Figure(figsize=(10, 1.4 + 0.3 * len(agents)), layout="constrained")
    ax = figure.subplots()
    for i, model in enumerate(models):
        chance = np.mean([record.regret[-1] for record in results.records(model, RANDOM)])
        found = [
            bootstrap_mean(np.array([r.regret[-1] / chance for r in results.records(model, agent)]))
            for agent in agents
        ]
        means = np.array([one.mean for one in found])
        bars = [means - [one.low for one in found], [one.high for one in found] - means]
        places = np.arange(len(agents)) + 0.15 * (i - (len(models) - 1) / 2)
        ax.errorbar(
            means, places, xerr=np.maximum(bars, 0.0), fmt=MARKS[i], color=COLOURS[i], markersize=5,
            label=model,
        )  # fmt: skip
    ax.axvline(1.0, color="0.5", linestyle="--", label="random play")
    ax.set_yticks(range(len(agents)), [describe(results, agent) for agent in agents])
    ax.invert_yaxis()
    ax.set(xlabel="cumulative regret / that of random play; 95% bootstrap intervals")
    ax.grid(alpha=0.2)
    figure.legend(loc="outside upper center", ncols=len(models) + 1, frameon=False)
    return figure


if __name__ == "__main__":
    main()
