"""The regret of one or several rules over episodes, with a band over seeds: the picture of `pkd learn` and `pkd demo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pkd.cli.output import save_figure

if TYPE_CHECKING:
    import pkd

POINTS = 1000  # of a curve: a million episodes need no million points


def regret_plot(path: Path, title: str, rules: Mapping[str, Sequence[pkd.Run]]) -> None:
    """Left: cumulative regret, the mean over seeds and their range. Right: the value of the policy in use, beside the exact optimum."""
    import matplotlib

    matplotlib.use("Agg")
    import numpy as np
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for label, runs in rules.items():
        episodes = len(runs[0].regret)
        at = np.unique(np.linspace(0, episodes - 1, min(POINTS, episodes)).astype(int))
        regret = np.array([run.regret[at] for run in runs])
        values = np.array([run.policy_values[at] for run in runs])
        for axes, curves in ((left, regret), (right, values)):
            (line,) = axes.plot(at + 1, curves.mean(axis=0), label=label)
            if len(runs) > 1:
                axes.fill_between(at + 1, curves.min(axis=0), curves.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)
    optimum = next(iter(rules.values()))[0].optimal_value
    right.axhline(optimum, color="black", linestyle=":", label="exact optimum")
    left.set(xlabel="episode", ylabel="cumulative regret", title=title, ylim=(0, None))
    right.set(xlabel="episode", ylabel="expected return of the policy in use", xscale="log")
    seeds = max(len(runs) for runs in rules.values())
    right.legend(fontsize="small", title=f"mean and range over {seeds} seeds" if seeds > 1 else None)
    save_figure(figure, path)
    pyplot.close(figure)
