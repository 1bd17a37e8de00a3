"""What a page shows of many models at once: regret against each parameter of a sweep, and ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pkd import __version__
from pkd.experiments.results import HEADERS, Results
from pkd.experiments.statistics import compare_all, list_ranks, rank_agents
from pkd.model import ModelError
from pkd.report.figures import draw_axis
from pkd.report.sayings import count, judge, say_interval
from pkd.show.markup import make_table
from pkd.show.tables import format_number

__all__ = ["list_sections", "rank", "rank_results", "summarise_results"]


def summarise_results(results: Results, missing: int) -> str:
    """How many runs of what, in a sentence; missing: runs of the grid that are not there."""
    columns, first = results.arrays(), results[0]
    lengths = " and ".join(f"{one:,}" for one in sorted(set(columns["episodes"].tolist())))
    sizes = {
        "model": len(results.models),
        "agent": len(results.agents),
        "seed": len(set(columns["seed"].tolist())),
    }
    rest = f" {count(missing, 'run')} of the grid are not there yet." if missing else ""
    return (
        f"{count(len(results), 'run')} of {lengths} episodes: "
        f"{', '.join(count(many, noun) for noun, many in sizes.items())}; "
        f"learned with pkd {first.versions['pkd']}, page made by pkd {__version__}.{rest}"
    )


def list_sections(results: Results) -> list[dict[str, Any]]:
    """A section for each parameter of a sweep, then the line of every model and agent."""
    sections: list[dict[str, Any]] = []
    for x, values in results.parameters.items():
        if len(values) < 2:
            continue
        lines = results.axis(x)
        rows = [[str(value), *(line.say(value) for line in lines.values())] for value in values]
        first = next(iter(lines.values()))
        over = f"over {first.units} {first.what}"
        caption = f"Mean regret at the end, and half of its 95% interval: of each value {over}."
        shown = make_table([x, *lines], rows, caption, wide=True)
        figure = draw_axis(lines, x, min(results.arrays()["episodes"]))
        title, said = f"Regret against {x}", _say_slopes(results, x, over)
        sections.append({"title": title, "said": said, "figure": figure, "table": shown})
    rows = [[format_number(cell) for cell in line] for line in results.lines]
    shown = make_table([*results.names, *HEADERS], rows)
    title = "Every model and agent"
    return [*sections, {"title": title, "said": "", "figure": None, "table": shown}]


def _say_slopes(results: Results, x: str, over: str) -> str:
    """The slopes on logarithmic axes in a sentence; "" where x or a regret has no logarithm."""
    try:
        slopes = results.slopes(x)
    except ModelError:
        return ""
    told = "; ".join(
        f"{name} {one.value:.2f} ({say_interval(one, 2)})" for name, one in slopes.items()
    )
    return f"Slope of log regret over log {x}, with its 95% interval {over}: {told}."


def rank_results(results: Results) -> dict[str, Any] | None:
    """The ranks in an experiment; None where runs are missing."""
    try:
        return rank(results.scores, results.guarantees, results.units, results.draws)
    except ModelError:
        return None


def rank(
    scores: Mapping[str, np.ndarray],
    guarantees: Mapping[str, str],
    units: str,
    draws: Sequence[str] | None = None,
) -> dict[str, Any] | None:
    """The mean rank of each agent, and what tests say about these ranks.

    scores: (models, seeds) each; units: what intervals and tests are over; draws: of each model.
    """
    models = len(next(iter(scores.values())))
    if len(scores) < 2 or models < 2:
        return None
    ranks = rank_agents(scores, over=units, draws=draws)
    rows = [
        [name, guarantees[name], f"{one.value:.3g}", say_interval(one, 3)]
        for name, one in ranks.items()
    ]
    means = {name: float(one.value) for name, one in ranks.items()}
    caption = f"Ranks by regret over {models} models; 1 is the least regret."
    headers = ["agent", "guarantee", "mean rank", f"95% interval over {units}"]
    table = make_table(headers, sorted(rows, key=lambda row: means[row[0]]), caption)
    pairs = compare_all(list_ranks(scores, units, draws), units)
    return {"said": judge(means, pairs, "mean rank"), "table": table}
