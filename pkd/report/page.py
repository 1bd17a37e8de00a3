"""The page: the question, the table, one chapter for each model, and how to run it again.

It is a single file without scripts that asks for nothing outside. It can be read on a telephone and
on paper, where everything that a screen folds is open.
"""

from __future__ import annotations

import numpy as np

from pkd import __version__
from pkd.experiments.record import Record
from pkd.experiments.statistics import compare_pairs, rank_agents
from pkd.report.content import Chapter, Content
from pkd.report.details import HEADERS, list_row, write_group
from pkd.report.figures import draw_chapter
from pkd.report.numbers import count, mean_interval, seeds
from pkd.report.structure import write_structure
from pkd.results.markup import STYLE, escape, table
from pkd.results.svg import CSS

__all__ = ["write_page"]

# Folded parts are open on paper; browsers keep what is folded in `::details-content`.
PRINT = """pre{overflow-x:auto;font-size:.85rem}details{margin:.4rem 0}
details details{margin-left:1rem}h4{font-size:.95rem;margin:1rem 0 .3rem}
@media print{:root{--ink:#000;--paper:#fff;--soft:#444;--rule:#bbb}
main{max-width:none;padding:0}figure,tr{break-inside:avoid}h2,h3,h4{break-after:avoid}
.scroll,pre{overflow:visible}pre{white-space:pre-wrap}table{font-size:.75rem}
details::details-content{content-visibility:visible;display:block}
details>summary{list-style:none;font-weight:600}}"""
MEANS = (
    "Means over seeds with 95% bootstrap intervals; of the episodes to the goal the median. The "
    "gain goes from the lowest value of a first policy to the optimum."
)


def write_page(content: Content, *, trust: bool = False) -> str:
    """The page as text; trust: whether modules that the files name as models are imported."""
    chapters = content.chapters
    parts = [
        f"<h1>{escape(content.question)}</h1>",
        f'<p class="soft">{escape(_summarise(content))}</p>',
        _write_answers(content),
        _write_ranks(content),
        *(
            _write_chapter(chapter, place, trust=trust, alone=len(content.runs) == 1)
            for place, chapter in enumerate(chapters, start=1)
        ),
        _write_rerun(content),
    ]
    # With this policy a browser loads nothing from outside and runs no script.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        '<meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>pkd report: {escape(content.question)}</title>"
        f"<style>{STYLE}\n{CSS}\n{PRINT}</style>"
    )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _summarise(content: Content) -> str:
    runs = content.runs
    versions = dict.fromkeys(
        run.versions["pkd"] if isinstance(run, Record) else run.version for run in runs
    )
    numbers = {int(run.config["seed"]) for run in runs}
    lengths = sorted({len(run.returns) for run in runs})
    episodes = " and ".join(f"{length:,}" for length in lengths)
    missing = f" {count(content.missing, 'run')} of the grid are not there yet." * bool(
        content.missing
    )
    return (
        f"{count(len(runs), 'run')} of {episodes} episodes, "
        f"seed{'s' if len(numbers) > 1 else ''} {seeds(numbers)}; learned with pkd "
        f"{', '.join(versions)}, page made by pkd {__version__}.{missing}"
    )


def _write_answers(content: Content) -> str:
    """For each model the agent with the least regret, and how sure that is."""
    said = [f"<li>{escape(_answer(chapter))}</li>" for chapter in content.chapters]
    compared = any(len(chapter.groups) > 1 for chapter in content.chapters)
    return f"<ul>{''.join(said)}</ul>" if compared else ""


def _answer(chapter: Chapter) -> str:
    order = sorted(chapter.groups, key=lambda group: sum(group.regrets) / len(group.runs))
    best = order[0]
    mean, interval = mean_interval(best.regrets)
    sentence = f"{chapter.model}: least regret has {best.label}, {mean}"
    sentence += f" (95% interval {interval})" if interval else ""
    if len(order) > 1 and best.seeds == order[1].seeds and len(best.runs) > 1:
        pair = compare_pairs(best.regrets, order[1].regrets)
        sentence += (
            f"; then {order[1].label}, {-pair.difference:.6g} more ({-pair.high:.6g} to "
            f"{-pair.low:.6g} seed by seed, p = {pair.p:.2g})"
        )
    return f"{sentence}."


def _write_ranks(content: Content) -> str:
    """The mean rank of each agent over models and seeds, where all have the same seeds."""
    chapters = content.chapters
    names = [[group.agent for group in chapter.groups] for chapter in chapters]
    counted = {len(group.runs) for chapter in chapters for group in chapter.groups}
    if (
        len(chapters) < 2
        or len(names[0]) < 2
        or len(counted) > 1
        or names.count(names[0]) < len(chapters)
    ):
        return ""
    scores = {
        name: np.array([chapter.groups[i].regrets for chapter in chapters])
        for i, name in enumerate(names[0])
    }
    guarantees = [group.runs[0].guarantee for group in chapters[0].groups]
    rows = [
        [name, guarantee, f"{rank.mean:.3g}", f"{rank.low:.3g} to {rank.high:.3g}"]
        for (name, rank), guarantee in zip(rank_agents(scores).items(), guarantees, strict=True)
    ]
    if counted == {1}:
        rows = [row[:3] for row in rows]
    headers = ["agent", "guarantee", "mean rank", "95% interval"][: len(rows[0])]
    caption = f"Ranks by regret over {len(chapters)} models; 1 is the least regret."
    return table(headers, sorted(rows, key=lambda row: float(row[2])), caption)


def _write_table(chapter: Chapter) -> str:
    rows = [list_row(chapter, group) for group in chapter.groups]
    # A single seed has no interval, and one that all agents share is in the heading.
    kept = [i for i in range(len(HEADERS)) if any(row[i] for row in rows)]
    chosen = [[row[i] for i in kept] for row in rows]
    return table([HEADERS[i] for i in kept], chosen, MEANS, wide=True)


def _write_chapter(chapter: Chapter, place: int, *, trust: bool, alone: bool) -> str:
    groups = "".join(write_group(chapter, group, opened=alone) for group in chapter.groups)
    return (
        f"<section><h2>{escape(chapter.model)}</h2>{_write_table(chapter)}"
        f"{draw_chapter(chapter, place)}"
        f"{write_structure(chapter, place, trust=trust)}<h3>The runs</h3>{groups}</section>"
    )


def _write_rerun(content: Content) -> str:
    words = f"<pre>{escape(content.rerun)}</pre>"
    if content.file:
        words = (
            "<p>Save the file below as experiment.toml. With the folder of these runs, what is "
            "done is not done again; with a new folder everything is computed anew, to the same "
            f"bits.</p>{words}<details><summary>experiment.toml</summary>"
            f"<pre>{escape(content.file)}</pre></details>"
        )
    else:
        words = f"<p>This repeats the runs and compares them to the bit.</p>{words}"
    return f"<section><h2>How to run it again</h2>{words}</section>"
