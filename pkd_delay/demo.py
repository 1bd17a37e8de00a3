"""The main job of `pkd demo`: a late autoscaler with a spot replica, learned under several rules.

All agents act in the same delayed world and are measured by its exact optimum. The result is a
table, some sentences and a figure. The command line finds it in the entry-point group `pkd.demos`,
prints the first two and writes the third.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import attrs
import numpy as np

import pkd
from pkd_delay.autoscaler import KEPT, RECLAIMED, SPOT, spot_autoscaler
from pkd_delay.demo_figure import draw_study
from pkd_delay.demo_study import (
    DELTA,
    GREEDY,
    IGNORING,
    KNOWN,
    PUBLISHED,
    Study,
    run_study,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Showcase", "autoscaler_demo"]

GOAL = 0.95  # of the optimum


@attrs.frozen
class Showcase:
    """What a demonstration shows."""

    title: str
    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: list[str]
    figure: Figure


def autoscaler_demo(
    *, episodes: int = 500, seeds: int = 3, progress: bool = False, workers: int | None = None
) -> Showcase:
    """Learns the autoscaler with a spot replica and compares.

    With a known delay law, the certified run and the one as published have at least 50,000
    episodes.

    workers: processes that share the runs; by default as many as the machine runs at once, and not
    more than four.
    """
    delayed = spot_autoscaler()
    study = run_study(episodes, seeds, progress=progress, workers=workers)
    world = f"{delayed.base.horizon} ticks, delays of 0 to {delayed.max_delay} ticks"
    return Showcase(
        title=(
            f"autoscaler with a spot replica: {world}; {episodes:,} episodes, "
            f"{seeds} seed{'s' if seeds > 1 else ''}"
        ),
        headers=("agent", "rule", "return per episode", "regret", f"episodes to {GOAL:.0%}"),
        rows=_make_rows(study),
        notes=_write_notes(study),
        figure=draw_study(study),
    )


def _make_rows(study: Study) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("optimum", "", f"{study.optimum:.3f}", f"{0:.1f}", "")]
    for (agent, rule), runs in study.runs.items():
        regret = np.mean([run.regret[study.episodes - 1] for run in runs])
        value = f"{study.optimum - regret / study.episodes:.3f}"
        rows.append((agent, rule.label, value, f"{regret:.1f}", _label_episodes(runs)))
    loss = (study.optimum - study.ignoring) * study.episodes
    rows.append((IGNORING, "knows all laws", f"{study.ignoring:.3f}", f"{loss:.1f}", "never"))
    return rows


def _label_episodes(runs: list[pkd.Run]) -> str:
    """The median over seeds of the episode from which all policies are good enough."""
    reached = [run.episodes_to(GOAL, baseline=0.0) for run in runs]
    middle = statistics.median(np.inf if episode is None else episode for episode in reached)
    if not np.isfinite(middle):
        return f"> {len(runs[0].returns):,}"
    return f"{middle:,.1f}".removesuffix(".0")


def _write_notes(study: Study) -> list[str]:
    prompt, long = study.price[0][0], len(study.runs[KNOWN, PUBLISHED][0].returns)
    delay, ignorance = 1 - study.optimum / prompt, 1 - study.ignoring / prompt
    seen = sum(
        run.counts.get(SPOT, {}).get(outcome, 0.0)
        for run in study.runs[KNOWN, GREEDY]
        for outcome in (KEPT, RECLAIMED)
    )
    first, last = study.interval(study.episodes), study.interval(long)
    return [
        (
            f"Regret is that of the first {study.episodes:,} episodes; episodes to {GOAL:.0%} of "
            "the optimum: median over seeds. As published and certified with a known delay law "
            f"were continued to {long:,} episodes."
        ),
        (
            f"Without delay the optimum is {prompt:.3f}. These delays cost {delay:.1%} of it; "
            f"ignoring them costs {ignorance:.1%}."
        ),
        (
            f"After {study.episodes:,} episodes it is certified, with probability {1 - DELTA:.0%}, "
            f"that the optimum lies in [{first[0]:.2f}, {first[1]:.2f}]; after {long:,} in "
            f"[{last[0]:.2f}, {last[1]:.2f}] (the widest interval of all seeds)."
        ),
        (
            "Without data Greedy expects to lose the spot replica at every second tick. At that "
            f"rate it does not pay, so Greedy never looks: it saw {seen:.0f} ticks of spot in "
            f"{len(study.runs[KNOWN, GREEDY])} runs. Its limit is {study.unexplored:.3f}, "
            f"{1 - study.unexplored / study.optimum:.1%} below the optimum."
        ),
    ]
