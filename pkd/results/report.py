"""One HTML page of saved runs, for people: what was run, how regret and optimism went, what was
seen, and what is done.

The page is a single file without scripts that asks for nothing outside. Runs that differ only in
their seed are one configuration: one line of the comparison and one band of its figure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from pkd import __version__
from pkd.optimism import Optimism, from_config
from pkd.results.intervals import bootstrap_mean
from pkd.results.markup import STYLE, escape, table
from pkd.results.plots import plot_regret, plot_values
from pkd.results.run import MOST_DECISIONS, Run
from pkd.results.svg import CSS, drawing, inline

__all__ = ["page"]

GOAL = 0.95
FAR_APART = 20.0  # ratio of regrets from which on a logarithmic axis is needed
EXTREMES = 5  # features at each end of the table of counts
WIDTH = 5.2  # inches of a figure: so that its letters can be read where the page is 400 pixels wide


def page(runs: Mapping[str, Run]) -> str:
    """The page of some runs, by the names of their files."""
    groups = _group_configurations(runs)
    models = list(dict.fromkeys(_name_model(run) for run in runs.values()))
    title = f"pkd report: {', '.join(models)}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(_write_summary(runs, groups))}</p>',
    ]
    if len(runs) > 1:
        parts.append(_write_comparison(groups))
    parts += [
        _write_section(name, run, number)
        for number, (name, run) in enumerate(runs.items(), start=1)
    ]
    # With this policy a browser loads nothing from outside and runs no script.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{STYLE}\n{CSS}</style>"
    )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _group_configurations(runs: Mapping[str, Run]) -> list[list[Run]]:
    """Runs that differ only in their seed, together."""
    groups: dict[str, list[Run]] = {}
    for run in runs.values():
        key = json.dumps(
            [run.model_words, {**run.config, "seed": None}, run.optimal_value],
            sort_keys=True,
            default=str,  # a run that was not saved may have a NumPy number as its seed
        )
        groups.setdefault(key, []).append(run)
    return list(groups.values())


def _write_summary(runs: Mapping[str, Run], groups: Sequence[Sequence[Run]]) -> str:
    versions = ", ".join(dict.fromkeys(run.version for run in runs.values()))
    what = f"{_format_count(len(runs), 'run')} of {_format_count(len(groups), 'configuration')}"
    return f"{what}; learned with pkd {versions}, page made by pkd {__version__}."


def _write_comparison(groups: Sequence[Sequence[Run]]) -> str:
    headers = [
        "model",
        "rule",
        "episodes",
        "seeds",
        "optimum",
        "regret",
        "95% interval",
        *_LATE,
        "violations of optimism",
    ]
    rows = []
    for group in groups:
        final = [float(run.regret[-1]) for run in group]
        interval = bootstrap_mean(np.array(final))
        violations, plans = (
            sum(run.violations for run in group),
            sum(len(run.plans) for run in group),
        )
        rows.append(
            [
                _name_model(group[0]),
                group[0].label,
                f"{len(group[0].returns):,}",
                _name_seeds(group),
                _format_number(group[0].optimal_value),
                _format_number(float(np.mean(final))),
                f"{_format_number(float(interval.low))} to {_format_number(float(interval.high))}"
                if len(group) > 1
                else "",
                _format_number(float(np.mean([_measure_late_regret(run) for run in group]))),
                _find_reached(group, _find_first_value(groups, group[0])),
                f"{violations} of {plans} plans",
            ]
        )
    # One model for all lines is in the title, and a single seed has no range.
    columns = [
        i
        for i in range(len(headers))
        if any(row[i] for row in rows) and (i > 0 or len({row[0] for row in rows}) > 1)
    ]
    listed = table(
        [headers[i] for i in columns],
        [[row[i] for i in columns] for row in rows],
        _MEANS,
        wide=True,
    )
    return f"<section><h2>Comparison</h2>{listed}{_draw_joint_figure(groups)}</section>"


_MEANS = (
    "Means over seeds with bootstrap intervals; of the episodes to the goal the median. The gain "
    "goes from the value of the first policy (the lowest of the runs of one model) to the optimum."
)
_LATE = ("regret per episode, last tenth", f"episodes to {GOAL:.0%} of the gain")


def _draw_joint_figure(groups: Sequence[Sequence[Run]]) -> str:
    several = len({_name_model(group[0]) for group in groups}) > 1
    # A legend names the model without its options.
    labels = _make_distinct(
        [
            f"{_name_model(group[0]).split()[0]}: {group[0].label}" if several else group[0].label
            for group in groups
        ]
    )
    final = [float(np.mean([run.regret[-1] for run in group])) for group in groups]
    with drawing(WIDTH, 3.4 + 0.16 * len(groups)) as figure:
        axes = figure.subplots()
        for group, label in zip(groups, labels, strict=True):
            plot_regret(group, ax=axes, label=label)
        if min(final) > 0 and max(final) > FAR_APART * min(final):
            axes.set_yscale("log")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
        says = "Cumulative regret over episodes. At the end: " + "; ".join(
            f"{label}: {_format_number(regret)}"
            for label, regret in zip(labels, final, strict=True)
        )
        drawn = inline(figure, says, "joint")
    band = (
        " A line is the mean over seeds, its band the bootstrap interval of the mean."
        if max(map(len, groups)) > 1
        else ""
    )
    caption = f"Cumulative regret against the exact optimum.{band}"
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _write_section(name: str, run: Run, number: int) -> str:
    config, rule = run.config, from_config(run.config["optimism"])
    first = float(run.policy_values[0])
    given = {
        key: value
        for key, value in config["optimism"].get("arguments", config["optimism"]).items()
        if key != "rule" and value not in (None, False)
    }
    constants = ", ".join(
        f"{key} = {value if isinstance(value, str) else _format_number(value)}"
        for key, value in given.items()
    )
    facts = {
        "file": name,
        "model": f"{_name_model(run)} ({config['model']})"
        if run.model_words
        else f"{config['model']}, given as an object",
        "rule of optimism": rule.label + (f" ({constants})" if constants else ""),
        "guarantee": _state_guarantee(rule, config["delta"]),
        "episodes": f"{len(run.returns):,}",
        "replanning": f"{config['replan']}: {_format_count(len(run.plans), 'plan')}",
        "seed": str(config["seed"]),
        "time, version": f"{run.seconds:.3g} s with pkd {run.version}",
        "optimal value": _format_number(run.optimal_value),
        "final regret": _format_number(float(run.regret[-1])),
        _LATE[0]: _format_number(_measure_late_regret(run)),
        _LATE[1]: (
            f"{_find_reached([run], first)}; the first policy is worth {_format_number(first)}"
        ),
        "value of the last policy": _format_number(float(run.policy_values[-1])),
        "violations of optimism": (
            f"{run.violations} of {_format_count(len(run.plans), 'plan')} "
            "had an upper value below the optimum"
        ),
    }
    listed = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in facts.items()
    )
    heading = f"{_name_model(run)}: {rule.label}, seed {config['seed']}"
    content = (
        f"<dl>{listed}</dl>{_draw_figure(run, number)}{_write_counts(run)}{_write_decisions(run)}"
    )
    return f"<section><h2>{escape(heading)}</h2>{content}</section>"


def _state_guarantee(rule: Optimism, delta: float) -> str:
    """What is proved about the values of a rule, in a sentence."""
    if rule.guarantee == "certified":
        return f"certified: all values hold at all times with probability {1 - delta:g}"
    if rule.guarantee == "as published":
        return f"as published: all upper values hold with probability {1 - delta:g}"
    return "no guarantee"


def _draw_figure(run: Run, number: int) -> str:
    with drawing(WIDTH, 5.6) as figure:
        upper, lower = figure.subplots(2, 1)
        legend = plot_regret([run], ax=upper).get_legend()
        if legend is not None:
            legend.remove()  # one line needs no name
        plot_values([run], ax=lower)
        handles, labels = lower.get_legend_handles_labels()
        lower.legend(
            handles,
            [label.partition(",")[0] for label in labels],
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
        )
        believed, worth = (
            f"{_format_number(float(v[0]))} to {_format_number(float(v[-1]))}"
            for v in (run.upper_values, run.policy_values)
        )
        says = (
            "Two panels over episodes. Cumulative regret ends at "
            f"{_format_number(float(run.regret[-1]))}. Upper values go from {believed}, values of "
            f"the policy from {worth}; the optimum is {_format_number(run.optimal_value)}."
        )
        drawn = inline(figure, says, f"run {number}")
    caption = (
        "Above: cumulative regret. Below: what the plans believed, what their policies are worth, "
        "and the optimum."
    )
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _write_counts(run: Run) -> str:
    labels = [str(z) for z in run.counts] if run.words is None else run.words.features
    visits = [
        (label, sum(row.values()), len(row))
        for label, row in zip(labels, run.counts.values(), strict=True)
    ]
    if not visits:
        return "<h3>Counts</h3><p>The model has no unknown feature.</p>"
    visits.sort(key=lambda row: -row[1])
    never = sum(n == 0 for _, n, _ in visits)
    cells = [[label, f"{n:,.0f}", str(seen)] for label, n, seen in visits]
    if len(cells) > 2 * EXTREMES:
        cells = [
            *cells[:EXTREMES],
            [f"… {len(cells) - 2 * EXTREMES} more", "", ""],
            *cells[-EXTREMES:],
        ]
    some = (
        f"{_format_count(len(visits), 'unknown feature')}, {never or 'none'} of them never "
        "visited; the most visited first."
    )
    return f"<h3>Counts</h3>{table(['feature', 'visits', 'outcomes seen'], cells, some)}"


def _write_decisions(run: Run) -> str:
    if run.words is None or not run.words.decisions:
        return ""
    rows = [[str(cell) for cell in row] for row in run.words.decisions]
    headers = ["step", "x", "y", "action"]
    # A y without meaning (tables) or an x that is None at every decision (noise models) is not
    # worth a column.
    columns = [
        i for i in range(4) if i not in (1, 2) or any(row[i] not in ("", "None") for row in rows)
    ]
    cut = (
        f" The first {MOST_DECISIONS} states are kept in words."
        if len(rows) == MOST_DECISIONS
        else ""
    )
    listed = table(
        [headers[i] for i in columns],
        [[row[i] for i in columns] for row in rows],
        f"What the last plan does.{cut}",
    )
    summary = f"<summary>The last plan, {_format_count(len(rows), 'state')}</summary>"
    return f"<h3>Policy</h3><details>{summary}{listed}</details>"


def _measure_late_regret(run: Run) -> float:
    """Regret per episode over the last tenth of the episodes."""
    return float(
        np.mean(run.optimal_value - run.policy_values[-math.ceil(len(run.policy_values) / 10) :])
    )


def _find_reached(group: Sequence[Run], baseline: float) -> str:
    """The median over seeds of the episodes to the goal."""
    found = sorted(run.episodes_to(GOAL, baseline) or math.inf for run in group)
    middle = found[len(group) // 2]
    return f"{int(middle):,}" if middle < math.inf else f"> {len(group[0].returns):,}"


def _find_first_value(groups: Sequence[Sequence[Run]], like: Run) -> float:
    """The lowest value of a first policy among the runs of the same model."""
    same = [run for group in groups for run in group if _name_model(run) == _name_model(like)]
    return min(float(run.policy_values[0]) for run in same)


def _name_model(run: Run) -> str:
    return " ".join(run.model_words) or str(run.config["model"]).lstrip("_")


def _name_seeds(group: Sequence[Run]) -> str:
    """0 to 4, or 0, 3, 7."""
    seeds = sorted(int(run.config["seed"]) for run in group)
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _make_distinct(labels: Sequence[str]) -> list[str]:
    """Labels with a number where one occurs twice."""
    return [
        f"{label} ({i})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels, start=1)
    ]


def _format_number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    # Rounding noise is printed as 0.
    return f"{value:.6g}" if abs(value) > 1e-12 else "0"


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
