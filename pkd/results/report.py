"""One HTML page of saved runs, for people: what was run, how regret and optimism went, what was
seen, and what is done.

The page is a single file without scripts that asks for nothing outside. Runs that differ only in
their seed are one configuration: one line of the comparison and one band of its figure.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pkd import __version__
from pkd.optimism import from_config
from pkd.results.plots import plot_regret, plot_values
from pkd.results.run import MOST_DECISIONS, Run
from pkd.results.svg import CSS, drawing, inline

__all__ = ["page"]

GOAL = 0.95
FAR_APART = 20.0  # ratio of regrets from which on a logarithmic axis is needed
EXTREMES = 5  # features at each end of the table of counts
WIDTH = 5.2  # inches of a figure: so that its letters can be read where the page is 400 pixels wide
STYLE = """:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--soft:#5a5a5a;--rule:#d8d8d8}
@media (prefers-color-scheme: dark){
:root{--ink:#e8e8e8;--paper:#16181c;--soft:#a8a8a8;--rule:#3a3e45}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.2}
h2{font-size:1.25rem;line-height:1.3;margin:2.5rem 0 .5rem}
h2{border-top:1px solid var(--rule);padding-top:1rem}
h3{font-size:1rem;margin:1.5rem 0 .3rem}
h1,h2,h3,dd{overflow-wrap:anywhere}td{overflow-wrap:break-word}
p{margin:.4rem 0}.soft,figcaption,caption{color:var(--soft);font-size:.9rem}
figure{margin:1rem 0}caption{text-align:left;padding-bottom:.3rem}
dl{display:grid;grid-template-columns:minmax(7rem,auto) 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.25rem .9rem .25rem 0}
th,td{border-bottom:1px solid var(--rule)}
th{font-weight:600}td.n,th.n{text-align:right}.scroll{overflow-x:auto}summary{cursor:pointer}
@media (max-width:40rem){dl{grid-template-columns:2fr 3fr}
table.wide thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
table.wide,table.wide tbody,table.wide tr,table.wide td,table.wide caption{display:block}
table.wide,table.wide tbody,table.wide tr,table.wide td,table.wide caption{width:100%}
table.wide tr{border-bottom:2px solid var(--rule);padding:.5rem 0}
table.wide td,table.wide td.n{display:flex;justify-content:space-between;gap:1rem}
table.wide td,table.wide td.n{border:0;padding:.1rem 0;text-align:right}
table.wide td::before{content:attr(data-label);color:var(--soft);text-align:left}
table.wide td::before{flex:none;max-width:50%}
table.wide td:empty{display:none}}"""


def page(runs: Mapping[str, Run]) -> str:
    """The page of some runs, by the names of their files."""
    groups = _configurations(runs)
    models = list(dict.fromkeys(_model(run) for run in runs.values()))
    title = f"pkd report: {', '.join(models)}"
    parts = [f"<h1>{_text(title)}</h1>", f'<p class="soft">{_text(_summary(runs, groups))}</p>']
    if len(runs) > 1:
        parts.append(_comparison(groups))
    parts += [
        _section(name, run, number) for number, (name, run) in enumerate(runs.items(), start=1)
    ]
    # The browser holds us to it: nothing from outside, and no script.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{_text(title)}</title><style>{STYLE}\n{CSS}</style>"
    )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _configurations(runs: Mapping[str, Run]) -> list[list[Run]]:
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


def _summary(runs: Mapping[str, Run], groups: Sequence[Sequence[Run]]) -> str:
    versions = ", ".join(dict.fromkeys(run.version for run in runs.values()))
    what = f"{_count(len(runs), 'run')} of {_count(len(groups), 'configuration')}"
    return f"{what}; learned with pkd {versions}, page made by pkd {__version__}."


def _comparison(groups: Sequence[Sequence[Run]]) -> str:
    headers = [
        "model",
        "rule",
        "episodes",
        "seeds",
        "optimum",
        "regret",
        "lowest to highest",
        *_LATE,
        "violations of optimism",
    ]
    rows = []
    for group in groups:
        final = [float(run.regret[-1]) for run in group]
        violations, plans = (
            sum(run.violations for run in group),
            sum(len(run.plans) for run in group),
        )
        rows.append(
            [
                _model(group[0]),
                group[0].label,
                f"{len(group[0].returns):,}",
                _seeds(group),
                _number(group[0].optimal_value),
                _number(float(np.mean(final))),
                f"{_number(min(final))} to {_number(max(final))}" if len(group) > 1 else "",
                _number(float(np.mean([_late_regret(run) for run in group]))),
                _reached(group, _first_value(groups, group[0])),
                f"{violations} of {plans} plans",
            ]
        )
    # One model for all lines is in the title, and a single seed has no range.
    columns = [
        i
        for i in range(len(headers))
        if any(row[i] for row in rows) and (i > 0 or len({row[0] for row in rows}) > 1)
    ]
    table = _table(
        [headers[i] for i in columns],
        [[row[i] for i in columns] for row in rows],
        _MEANS,
        wide=True,
    )
    return f"<section><h2>Comparison</h2>{table}{_joint_figure(groups)}</section>"


_MEANS = (
    "Means over seeds; of the episodes to the goal the median. The gain goes from the value of the "
    "first policy (the lowest of the runs of one model) to the optimum."
)
_LATE = ("regret per episode, last tenth", f"episodes to {GOAL:.0%} of the gain")


def _joint_figure(groups: Sequence[Sequence[Run]]) -> str:
    several = len({_model(group[0]) for group in groups}) > 1
    # In a legend there is room for the name of a model, not for its options.
    labels = _distinct(
        [
            f"{_model(group[0]).split()[0]}: {group[0].label}" if several else group[0].label
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
            f"{label}: {_number(regret)}" for label, regret in zip(labels, final, strict=True)
        )
        drawn = inline(figure, says, "joint")
    band = (
        " A line is the mean over seeds, its band goes from the lowest to the highest."
        if max(map(len, groups)) > 1
        else ""
    )
    caption = f"Cumulative regret against the exact optimum.{band}"
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _section(name: str, run: Run, number: int) -> str:
    config, rule = run.config, from_config(run.config["optimism"])
    first = float(run.policy_values[0])
    given = {
        key: value
        for key, value in config["optimism"].items()
        if key != "rule" and value not in (None, False)
    }
    constants = ", ".join(f"{key} = {_number(value)}" for key, value in given.items())
    facts = {
        "file": name,
        "model": f"{_model(run)} ({config['model']})"
        if run.model_words
        else f"{config['model']}, given as an object",
        "rule of optimism": rule.label + (f" ({constants})" if constants else ""),
        "guarantee": _guarantee(rule.label, config["delta"]),
        "episodes": f"{len(run.returns):,}",
        "replanning": f"{config['replan']}: {_count(len(run.plans), 'plan')}",
        "seed": str(config["seed"]),
        "time, version": f"{run.seconds:.3g} s with pkd {run.version}",
        "optimal value": _number(run.optimal_value),
        "final regret": _number(float(run.regret[-1])),
        _LATE[0]: _number(_late_regret(run)),
        _LATE[1]: f"{_reached([run], first)}; the first policy is worth {_number(first)}",
        "value of the last policy": _number(float(run.policy_values[-1])),
        "violations of optimism": (
            f"{run.violations} of {_count(len(run.plans), 'plan')} "
            "had an upper value below the optimum"
        ),
    }
    listed = "".join(
        f"<dt>{_text(key)}</dt><dd>{_text(value)}</dd>" for key, value in facts.items()
    )
    heading = f"{_model(run)}: {rule.label}, seed {config['seed']}"
    content = f"<dl>{listed}</dl>{_figure(run, number)}{_counts(run)}{_decisions(run)}"
    return f"<section><h2>{_text(heading)}</h2>{content}</section>"


def _guarantee(label: str, delta: float) -> str:
    if label.endswith("theory constants"):
        proof = "the paper" if label.startswith("MVP") else "UCBVI-CH"
        return f"theory constants of {proof}: optimism holds with probability {1 - delta:g}"
    if label.startswith(("MVP", "Hoeffding")):
        return "none: practical constants"
    return "none: the rule adds no bonus"


def _figure(run: Run, number: int) -> str:
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
            f"{_number(float(v[0]))} to {_number(float(v[-1]))}"
            for v in (run.upper_values, run.policy_values)
        )
        says = (
            "Two panels over episodes. Cumulative regret ends at "
            f"{_number(float(run.regret[-1]))}. Upper values go from {believed}, "
            f"values of the policy from {worth}; the optimum is {_number(run.optimal_value)}."
        )
        drawn = inline(figure, says, f"run {number}")
    caption = (
        "Above: cumulative regret. Below: what the plans believed, what their policies are worth, "
        "and the optimum."
    )
    return f"<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _counts(run: Run) -> str:
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
        f"{_count(len(visits), 'unknown feature')}, {never or 'none'} of them never visited; "
        "the most visited first."
    )
    return f"<h3>Counts</h3>{_table(['feature', 'visits', 'outcomes seen'], cells, some)}"


def _decisions(run: Run) -> str:
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
    table = _table(
        [headers[i] for i in columns],
        [[row[i] for i in columns] for row in rows],
        f"What the last plan does.{cut}",
    )
    summary = f"<summary>The last plan, {_count(len(rows), 'state')}</summary>"
    return f"<h3>Policy</h3><details>{summary}{table}</details>"


def _late_regret(run: Run) -> float:
    """Regret per episode over the last tenth of the episodes."""
    return float(
        np.mean(run.optimal_value - run.policy_values[-math.ceil(len(run.policy_values) / 10) :])
    )


def _reached(group: Sequence[Run], baseline: float) -> str:
    """The median over seeds of the episodes to the goal."""
    found = sorted(run.episodes_to(GOAL, baseline) or math.inf for run in group)
    middle = found[len(group) // 2]
    return f"{int(middle):,}" if middle < math.inf else f"> {len(group[0].returns):,}"


def _first_value(groups: Sequence[Sequence[Run]], like: Run) -> float:
    """The lowest value of a first policy among the runs of the same model."""
    same = [run for group in groups for run in group if _model(run) == _model(like)]
    return min(float(run.policy_values[0]) for run in same)


def _model(run: Run) -> str:
    return " ".join(run.model_words) or str(run.config["model"]).lstrip("_")


def _seeds(group: Sequence[Run]) -> str:
    """0 to 4, or 0, 3, 7."""
    seeds = sorted(int(run.config["seed"]) for run in group)
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _distinct(labels: Sequence[str]) -> list[str]:
    """Labels with a number where one occurs twice."""
    return [
        f"{label} ({i})" if labels.count(label) > 1 else label
        for i, label in enumerate(labels, start=1)
    ]


def _table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], caption: str, *, wide: bool = False
) -> str:
    """A table of texts; a wide one becomes a list of cards on a narrow screen and keeps its roles
    there.
    """
    kept = [list(row) for row in rows]
    right = [all(_is_number(row[i]) for row in kept) for i in range(len(headers))]
    sides = ['class="n" ' if one else "" for one in right]
    head = "".join(
        f'<th {side}scope="col" role="columnheader">{_text(name)}</th>'
        for name, side in zip(headers, sides, strict=True)
    )
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<td {side}role="cell" data-label="{_text(name)}">{_text(cell)}</td>'
            for name, side, cell in zip(headers, sides, row, strict=True)
        )
        + "</tr>"
        for row in kept
    )
    return (
        f'<div class="scroll"><table role="table"{" class=wide" if wide else ""}>'
        f"<caption>{_text(caption)}</caption>"
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "") or "0")
    except ValueError:
        return False
    return True


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return (
        f"{value:.6g}" if abs(value) > 1e-12 else "0"
    )  # what rounding leaves of nothing is nothing


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _text(value: str) -> str:
    return html.escape(value)
