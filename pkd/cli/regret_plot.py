"""Regret of one or several rules over episodes, beside the value of the policy in use: the picture
of `pkd learn` and `pkd demo`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    import pkd

__all__ = ["draw_regret"]


def draw_regret(title: str, rules: Sequence[Sequence[pkd.Run]]) -> Figure:
    """Left: cumulative regret, the mean over seeds and their range. Right: the mean value of the
    policy in use, and the exact optimum.

    rules: for each rule its runs, which differ in their seeds. The legend names each rule with its
    constants.
    """
    import numpy as np
    from matplotlib.figure import Figure

    from pkd.results.plots import POINTS, plot_regret

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for runs in rules:
        plot_regret(runs, ax=left)
        # Many early episodes and few late ones: the axis is logarithmic.
        episodes = np.unique(np.geomspace(1, len(runs[0].policy_values), POINTS).astype(int)) - 1
        right.step(
            episodes + 1,
            np.mean([run.policy_values[episodes] for run in runs], axis=0),
            where="post",
            label=runs[0].label,
        )
    right.axhline(rules[0][0].optimal_value, color="black", linestyle=":", label="exact optimum")
    if len(rules) > 1:
        left.set_yscale("log")  # theory and practical constants lie orders of magnitude apart
    left.set_title(title)
    right.set(xlabel="episode", ylabel="expected return of the policy in use", xscale="log")
    seeds = len(rules[0])
    right.set_title(f"mean over {seeds} seeds; bands: their range" if seeds > 1 else "one seed")
    right.legend()
    return figure
