"""The gambler: capital is book-keeping (s), nature shows the coin.

A gambler stakes part of the capital on a coin of unknown bias and stops at 0 or at the goal (Sutton
and Barto, example 4.3; theory by Dubins and Savage). One feature, the coin, replaces every pair
(capital, stake). The goal pays 1 through `ending`, so that a win with the last toss counts.

>>> gambler(goal=8).model().land(3, 2, "heads")
(0.0, 5)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import expect
from pkd_examples.options import check_options, options_of, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@attrs.frozen(kw_only=True)
class Gambler(pkd.NoiseMDP):
    """s: the capital. A stake is cut to the capital and to what is missing to the goal."""

    goal: int = whole(20, least=2)
    capital: int = whole(8, least=0)  # at the start
    horizon: int = whole(30, least=1)
    __attrs_post_init__ = check_options

    def initial(self) -> int:
        return self.capital

    def choices(self, s: Any) -> Any:
        return range(1, self.goal // 2 + 1) if 0 < s < self.goal else pkd.END

    def noise(self, s: Any, a: Any) -> Any:
        return "coin"

    def outcomes(self, z: Any) -> Any:
        return "heads", "tails"

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, int]:
        stake = min(a, s, self.goal - s)
        return 0.0, s + stake if w == "heads" else s - stake

    def ending(self, s: Any) -> float:
        return float(s >= self.goal)


@options_of(Gambler)
def gambler(*, win: float = 0.4, log: str | None = None, **options: Any) -> Problem[Gambler]:
    """The gambler with a coin that shows heads with probability `win`.

    The other options are the fields of `Gambler`. `log`: a CSV file of (z, x') = (coin, heads or
    tails) in place of `win`.
    """
    expect.require(expect.fraction("win", win, closed=True))
    model = Gambler(**options)
    return Problem("gambler", model, {"coin": {"heads": win, "tails": 1 - win}}, picture).fit(log)


def picture(problem: Problem[Gambler], plan: pkd.Plan, ax: Axes) -> Axes:
    """Stake against capital, halfway through: the smallest of the best stakes."""
    model = problem.model()
    levels = range(1, model.goal)
    stakes = [choose(plan, model.horizon // 2 + 1, None, level) for level in levels]
    ax.bar(
        levels,
        [
            0 if a is None else min(a, s, model.goal - s)
            for s, a in zip(levels, stakes, strict=True)
        ],
        width=1.0,
    )
    ax.locator_params(integer=True)
    ax.set(xlabel="capital", ylabel="stake", title="How much to stake, halfway through")
    return ax
