"""The picture of a fitted law: answers with their intervals, and delays beside those of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pkd_delay.fitting import FittedDelay

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_fit"]

MOST_QUESTIONS = 24  # that have room beside each other


def draw_fit(fit: FittedDelay, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Left: how often each question was answered yes. Right: the delays of the log and the law."""
    if axes is None:
        from matplotlib.figure import Figure

        axes = list(Figure(figsize=(9, 3.6), layout="constrained").subplots(1, 2))
    left, right = axes
    shown = sorted(fit.intervals, key=lambda one: -one.asked)[:MOST_QUESTIONS]
    shown.sort(key=lambda one: (str(one.group), one.before, one.delay))
    for i, one in enumerate(shown):
        left.plot([i, i], [one.low, one.high], color="0.6", linewidth=5, solid_capstyle="butt")
        left.plot(i, one.share, "o", color="black", markersize=4)
    words = f"certified, {1 - fit.delta:.0%} for all" if fit.certified else "no guarantee"
    left.set(
        title=f"does the next state come now? ({words})",
        xlabel="delay before → delay that is asked for",
        ylabel="probability",
        ylim=(-0.03, 1.03),
        xticks=range(len(shown)),
    )
    left.set_xticklabels(
        [f"{one.before}→{one.delay}" for one in shown], rotation=0 if len(shown) < 9 else 60
    )
    seen = Counter(sample.delay for sample in fit.log.samples if not sample.censored)
    n = max(sum(seen.values()), 1)
    ticks = range(fit.max_delay + 1)
    right.bar(ticks, [seen[d] / n for d in ticks], color="0.8", label="log")
    if len(fit.laws) == 1:
        steps = max(len(fit.log.samples) // fit.log.episodes, 1)
        law = next(iter(fit.laws.values())).delays(fit.max_delay, steps)
        right.plot(ticks, law, "o-", color="black", label=f"fitted {fit.form.form}, {steps} steps")
    right.set(title="delays", xlabel="delay in ticks", ylabel="share", xticks=ticks)
    right.set_ylim(top=1.3 * right.get_ylim()[1])  # room for the legend
    right.legend(loc="upper right")
    left.set_xlim(-0.6, len(shown) - 0.4)
    for ax in axes:
        ax.title.set_fontsize(10)
    return axes
