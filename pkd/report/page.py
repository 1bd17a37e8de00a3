"""What the template of a page shows: tables, facts, and sentences about which agent is better.

The page is a single file without scripts that asks for nothing outside. It can be read on a
telephone and on paper, where everything that a screen folds is open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pkd import __version__
from pkd.experiments.results import GOAL
from pkd.experiments.statistics import (
    compare_pair,
    correct,
)
from pkd.optimism import Guarantee
from pkd.report.content import Chapter, Content, Group
from pkd.report.decision import list_words
from pkd.report.figures import draw_chapter
from pkd.report.overview import list_sections, rank, rank_results, summarise_results
from pkd.report.sayings import count, judge, say_interval, say_number
from pkd.report.structure import describe_model
from pkd.results.run import MOST_DECISIONS, Run
from pkd.show.intervals import mean_interval, median_interval
from pkd.show.markup import Table, make_table, render
from pkd.show.plots import choose_styles, is_exact

__all__ = ["write_page"]

DIGITS = 4  # of a regret and its interval
EXTREMES = 5  # features at each end of the table of counts
REACHED = f"episodes to {GOAL:.0%} of the gain"
HEADERS = (
    "agent", "guarantee", "replan", "regret", "95% interval", "regret is",
    "value at the end", REACHED, "violations of optimism",
)  # fmt: skip
RUN_HEADERS = (
    "file", "seed", "regret", "regret is", "regret per episode, last tenth", "value at the end",
    REACHED, "plans", "violations", "seconds",
)  # fmt: skip
MEANS = (
    "Means over seeds with Student's 95% intervals, which need three seeds; of the episodes to the "
    "goal the median, from six seeds on with its 95% interval. The gain goes from the lowest value "
    "of a first policy to the optimum."
)


def write_page(content: Content, *, trust: bool = False) -> str:
    """The page as text; trust: whether modules that the files name as models are imported."""
    agents = [group.agent for chapter in content.chapters for group in chapter.groups]
    results = content.results
    styles = results.styles if results else choose_styles(agents)
    said = _compare(content.chapters)
    chapters = [
        {
            "model": chapter.model,
            "said": sentence,
            "table": make_table(
                HEADERS, [_list_means(chapter, group) for group in chapter.groups], MEANS, wide=True
            ),
            "figure": draw_chapter(chapter, styles, place),
            "structure": describe_model(chapter, place, trust=trust),
            "groups": [_describe_group(chapter, group) for group in chapter.groups],
        }
        for place, (chapter, sentence) in enumerate(zip(content.chapters, said, strict=True), 1)
    ]
    return render(
        "report.html",
        content=content,
        summary=_summarise(content),
        ranks=rank_results(results) if results else _rank(content.chapters),
        overview=list_sections(results) if results else [],
        chapters=chapters,
        words=list_words("episode optimum policy regret feature violations"),
        alone=len(content.chapters) > 0 and len(content.runs) == 1,
    )


def _summarise(content: Content) -> str:
    runs: Sequence[Run] = content.runs
    if content.results is not None:
        return summarise_results(content.results, content.missing)
    made = ", ".join(dict.fromkeys(run.versions["pkd"] for run in runs))
    seeds = sorted({run.seed for run in runs})
    lengths = " and ".join(f"{length:,}" for length in sorted({len(run.returns) for run in runs}))
    whole = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1))
    listed = f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))
    missing = f" {count(content.missing, 'run')} of the grid are not there yet."
    return (
        f"{count(len(runs), 'run')} of {lengths} episodes, seed{'s' if len(seeds) > 1 else ''} "
        f"{listed}; learned with pkd {made}, page made by pkd {__version__}."
        f"{missing if content.missing else ''}"
    )


def _compare(chapters: Sequence[Chapter]) -> list[str]:
    """For each model, which agents have less regret; all comparisons are corrected together."""
    pairs = correct(
        {
            (place, one.agent, other.agent): compare_pair(one.regrets, other.regrets)
            for place, chapter in enumerate(chapters)
            for i, one in enumerate(chapter.groups)
            for other in chapter.groups[i + 1 :]
            if one.seeds == other.seeds
        }
    )
    return [
        judge(
            {group.agent: float(np.mean(group.regrets)) for group in chapter.groups},
            {(a, b): pair for (i, a, b), pair in pairs.items() if i == place},
            "mean regret",
        )
        for place, chapter in enumerate(chapters)
    ]


def _rank(chapters: Sequence[Chapter]) -> dict[str, Any] | None:
    """The mean rank of each agent over models and seeds, where all have the same seeds."""
    names = [[group.agent for group in chapter.groups] for chapter in chapters]
    counted = {len(group.runs) for chapter in chapters for group in chapter.groups}
    alike = len(counted) == 1 and names.count(names[0]) == len(names)
    if len(chapters) < 2 or len(names[0]) < 2 or not alike:
        return None
    scores = {
        name: np.array([chapter.groups[i].regrets for chapter in chapters])
        for i, name in enumerate(names[0])
    }
    told = {group.agent: group.runs[0].guarantee for group in chapters[0].groups}
    return rank(scores, told, "seeds")


def _list_means(chapter: Chapter, group: Group) -> list[str]:
    """The line of an agent in the table, as HEADERS says: means over its seeds."""
    runs, exact = group.runs, is_exact(group.runs)
    regret = mean_interval(np.array(group.regrets))
    last = float(np.mean([run.policy_values[-1] for run in runs]))
    violations = [run.violations for run in runs if run.violations is not None]
    plans = sum(len(run.plans) for run in runs)
    return [
        group.agent,
        runs[0].guarantee,
        str(runs[0].config.get("replan", "")),
        say_number(float(regret.value), DIGITS),
        say_interval(regret, DIGITS),
        "exact" if exact else "estimated",
        say_number(last) if exact else "",
        _find_reached(chapter, runs),
        f"{sum(violations)} of {plans:,} plans" if len(violations) == len(runs) else "",
    ]


def _describe_group(chapter: Chapter, group: Group) -> dict[str, Any]:
    """Everything that is known about one agent on one model."""
    first, config = group.runs[0], group.runs[0].config
    name = group.agent
    if first.guarantee not in name.lower():
        name = f"{name}, {first.guarantee}"
    kind = config.get("model", chapter.model)
    facts = {
        "model": " ".join(chapter.words) or f"{kind}, given as an object",
        "agent": group.agent + _list_constants(config.get("optimism") or config["agent"]),
        "guarantee": _state_guarantee(first.guarantee, config.get("delta")),
        "episodes": f"{len(first.returns):,}",
        "replanning": str(config.get("replan", "")),
        "optimal value": say_number(chapter.optimum),
        "the model's own optimum in this world": say_number(config.get("model_optimum", "")),
        "first policy": "" if chapter.first_value is None else say_number(chapter.first_value),
        "remark": str(config.get("remark", "")),
        "made by": first.software,
    }
    rows = [_list_run(chapter, *one) for one in zip(group.runs, group.files, strict=True)]
    return {
        "title": f"{name}: {count(len(group.runs), 'run')}",
        "facts": facts,
        "runs": make_table(RUN_HEADERS, rows, "Every run", wide=True),
        "counts": _list_counts(first),
        "decisions": _list_decisions(first),
    }


def _list_run(chapter: Chapter, run: Run, file: str) -> list[str]:
    tenth = math.ceil(len(run.returns) / 10)
    late = float(np.sum(run.optimal_value - run.values[-tenth:])) / tenth
    exact = run.regret_is == "exact"
    return [
        file,
        str(run.seed),
        say_number(float(run.regret[-1])),
        run.regret_is,
        say_number(late),
        say_number(float(run.policy_values[-1])) if exact else "",
        _find_reached(chapter, [run]),
        str(len(run.plans)) if len(run.plans) else "",
        "" if run.violations is None else str(run.violations),
        "" if math.isnan(run.seconds) else f"{run.seconds:.3g}",
    ]


def _find_reached(chapter: Chapter, runs: Sequence[Run]) -> str:
    """The median over seeds of the episodes to the goal, with its interval; "" if unknown."""
    if chapter.first_value is None or not is_exact(runs):
        return ""
    reached = [run.episodes_to(GOAL, chapter.first_value) or math.inf for run in runs]
    most = max(len(run.returns) for run in runs)

    def say(value: float) -> str:
        return f"{value:,.1f}".removesuffix(".0") if value < math.inf else f"> {most:,}"

    median, low, high = map(float, median_interval(np.array(reached)))
    return say(median) if math.isnan(low) else f"{say(median)} ({say(low)} to {say(high)})"


def _list_constants(told: Mapping[str, Any]) -> str:
    kept = {
        key: value
        for key, value in told.get("arguments", told).items()
        if key not in ("rule", "agent", "label") and value not in (None, False)
    }
    listed = ", ".join(f"{key} = {say_number(value)}" for key, value in kept.items())
    return f" ({listed})" if listed else ""


def _list_counts(run: Run) -> Table | None:
    labels = [str(z) for z in run.counts] if run.words is None else run.words.features
    visits = [
        (label, sum(row.values()), len(row))
        for label, row in zip(labels, run.counts.values(), strict=True)
    ]
    if not visits:
        return None
    visits.sort(key=lambda row: -row[1])
    never = sum(n == 0 for _, n, _ in visits)
    cells = [[label, f"{n:,.0f}", str(seen)] for label, n, seen in visits]
    if len(cells) > 2 * EXTREMES:
        more = [f"… {len(cells) - 2 * EXTREMES} more", "", ""]
        cells = [*cells[:EXTREMES], more, *cells[-EXTREMES:]]
    some = (
        f"Seed {run.seed}: {count(len(visits), 'unknown feature')}, {never or 'none'} of them "
        "never visited; the most visited first."
    )
    return Table(["feature", "visits", "outcomes seen"], cells, some)


def _list_decisions(run: Run) -> Table | None:
    if run.words is None or not run.words.decisions:
        return None
    rows = [[str(cell) for cell in row] for row in run.words.decisions]
    cut = f" The first {MOST_DECISIONS} states are kept." if len(rows) == MOST_DECISIONS else ""
    caption = f"Seed {run.seed}: what the last plan does in {count(len(rows), 'state')}.{cut}"
    return make_table(["step", "x", "y", "action"], rows, caption)


def _state_guarantee(guarantee: Guarantee, delta: float | None) -> str:
    """What is proved about the values of a rule, in a sentence."""
    if guarantee == "no guarantee" or delta is None:
        return guarantee
    if guarantee == "certified":
        return f"certified: all values hold at all times with probability {1 - delta:g}"
    return f"as published: all upper values hold with probability {1 - delta:g}"
