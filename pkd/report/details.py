"""What a reader may open: every run of an agent, what it was told, what it saw and what it does."""

from __future__ import annotations

import math

import numpy as np

from pkd.experiments.record import Record
from pkd.report.content import Chapter, Group
from pkd.report.numbers import GOAL, count, mean_interval, median_episodes, number, state_guarantee
from pkd.results.markup import escape, table
from pkd.results.run import MOST_DECISIONS, Run

__all__ = ["HEADERS", "list_row", "write_group"]

EXTREMES = 5  # features at each end of the table of counts
REACHED = f"episodes to {GOAL:.0%} of the gain"
HEADERS = (
    "agent", "guarantee", "regret", "95% interval", "regret is",
    "value at the end", REACHED, "violations of optimism",
)  # fmt: skip


def list_row(chapter: Chapter, group: Group) -> list[str]:
    """The line of an agent in the table, as HEADERS says: means over its seeds."""
    regret, interval = mean_interval(group.regrets)
    runs = group.runs
    last = float(np.mean([run.policy_values[-1] for run in runs]))
    return [
        group.agent,
        runs[0].guarantee,
        regret,
        interval,
        "exact" if group.exact else "estimated",
        number(last) if group.exact else "",
        _find_reached(chapter, group),
        _count_violations(group),
    ]


def write_group(chapter: Chapter, group: Group, *, opened: bool) -> str:
    """A <details> element with everything that is known about one agent on one model."""
    first = group.runs[0]
    parts = [_list_facts(chapter, group), _list_runs(chapter, group)]
    if isinstance(first, Run):
        parts += [_write_counts(first), _write_decisions(first)]
    summary = f"{group.label}: {count(len(group.runs), 'run')}"
    start = "<details open>" if opened else "<details>"
    return f"{start}<summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def _list_facts(chapter: Chapter, group: Group) -> str:
    first = group.runs[0]
    config = first.config
    told = config["agent"] if isinstance(first, Record) else config["optimism"]
    facts = {
        "model": _name_model(chapter, first),
        "agent": group.agent + _list_constants(told),
        "guarantee": state_guarantee(first.guarantee, config.get("delta")),
        "episodes": f"{len(first.returns):,}",
        "replanning": str(config.get("replan", "")),
        "optimal value": number(chapter.optimum),
        "first policy": number(chapter.first_value),
        "made by": _name_versions(first),
    }
    listed = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items() if value
    )
    return f"<dl>{listed}</dl>"


def _name_model(chapter: Chapter, first: Run | Record) -> str:
    if chapter.words:
        return " ".join(chapter.words)
    kind = first.config.get("model", chapter.model) if isinstance(first, Run) else chapter.model
    return f"{kind}, given as an object"


def _name_versions(first: Run | Record) -> str:
    if isinstance(first, Run):
        return f"pkd {first.version}"
    return ", ".join(f"{name} {number}" for name, number in first.versions.items())


def _list_constants(told: dict[str, object]) -> str:
    given = told.get("arguments", told)
    assert isinstance(given, dict)
    kept = {
        key: value
        for key, value in given.items()
        if key not in ("rule", "agent", "label") and value not in (None, False)
    }
    listed = ", ".join(f"{key} = {number(value)}" for key, value in kept.items())
    return f" ({listed})" if listed else ""


def _list_runs(chapter: Chapter, group: Group) -> str:
    """One line for each run."""
    headers = [
        "file", "seed", "regret", "regret per episode, last tenth", "value at the end", REACHED,
        "plans", "violations", "seconds",
    ]  # fmt: skip
    rows = []
    for run, file in zip(group.runs, group.files, strict=True):
        alone = Group(group.agent, [run], [file])
        rows.append(
            [
                file,
                str(run.config["seed"]),
                number(float(run.regret[-1])),
                number(_measure_late_regret(run)),
                number(float(run.policy_values[-1])) if group.exact else "",
                _find_reached(chapter, alone),
                str(len(run.plans)) if len(run.plans) else "",
                "" if run.violations is None else str(run.violations),
                number(float(f"{run.seconds:.3g}")),
            ]
        )
    kept = [i for i in range(len(headers)) if any(row[i] for row in rows)]
    chosen = [[row[i] for i in kept] for row in rows]
    return table([headers[i] for i in kept], chosen, "Every run", wide=True)


def _find_reached(chapter: Chapter, group: Group) -> str:
    """The median over seeds of the episodes to the goal; empty where nobody can tell."""
    first = chapter.first_value
    if first is None or not group.exact:
        return ""
    reached = [run.episodes_to(GOAL, first) for run in group.runs]
    return median_episodes(reached, len(group.runs[0].returns))


def _count_violations(group: Group) -> str:
    found = [run.violations for run in group.runs]
    if any(one is None for one in found):
        return ""
    plans = sum(len(run.plans) for run in group.runs)
    return f"{sum(one or 0 for one in found)} of {plans:,} plans"


def _measure_late_regret(run: Run | Record) -> float:
    """Regret per episode over the last tenth of the episodes."""
    tenth = math.ceil(len(run.returns) / 10)
    before = float(run.regret[-tenth - 1]) if tenth < len(run.returns) else 0.0
    return (float(run.regret[-1]) - before) / tenth


def _write_counts(run: Run) -> str:
    labels = [str(z) for z in run.counts] if run.words is None else run.words.features
    visits = [
        (label, sum(row.values()), len(row))
        for label, row in zip(labels, run.counts.values(), strict=True)
    ]
    if not visits:
        return "<h4>Counts</h4><p>The model has no unknown feature.</p>"
    visits.sort(key=lambda row: -row[1])
    never = sum(n == 0 for _, n, _ in visits)
    cells = [[label, f"{n:,.0f}", str(seen)] for label, n, seen in visits]
    if len(cells) > 2 * EXTREMES:
        more = [f"… {len(cells) - 2 * EXTREMES} more", "", ""]
        cells = [*cells[:EXTREMES], more, *cells[-EXTREMES:]]
    some = (
        f"Seed {run.config['seed']}: {count(len(visits), 'unknown feature')}, {never or 'none'} of "
        "them never visited; the most visited first."
    )
    return f"<h4>Counts</h4>{table(['feature', 'visits', 'outcomes seen'], cells, some)}"


def _write_decisions(run: Run) -> str:
    if run.words is None or not run.words.decisions:
        return ""
    rows = [[str(cell) for cell in row] for row in run.words.decisions]
    headers = ["step", "x", "y", "action"]
    # A y without meaning (tables), or an x that is None at every decision, needs no column.
    kept = [
        i for i in range(4) if i not in (1, 2) or any(row[i] not in ("", "None") for row in rows)
    ]
    cut = f" The first {MOST_DECISIONS} states are kept." if len(rows) == MOST_DECISIONS else ""
    caption = f"Seed {run.config['seed']}: what the last plan does.{cut}"
    chosen = [[row[i] for i in kept] for row in rows]
    listed = table([headers[i] for i in kept], chosen, caption)
    summary = f"<summary>The last plan, {count(len(rows), 'state')}</summary>"
    return f"<h4>Policy</h4><details>{summary}{listed}</details>"
