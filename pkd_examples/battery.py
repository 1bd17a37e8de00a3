"""Battery arbitrage: the charge is book-keeping (y), nature shows the price of electricity (x).

Each hour the owner of a battery sees the price and buys one unit, holds, or sells one. The next
price depends on the hour and the price now, never on the battery: z = (hour, price), and one law
serves every charge and every action. The agent sees x when it chooses. The hour is part of y
because the methods of a model are not told the step.

>>> battery().model().step(2, (23, 1), "buy")  # 23:00, price bin 2, one unit in the battery
[(1.0, (0, 2), (23, 2))]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import expect
from pkd.model import Branch
from pkd_examples.options import check_options, listed, number, options_of, probability, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOVES = {"sell": -1, "hold": 0, "buy": 1}


@attrs.frozen(kw_only=True)
class Battery(pkd.PartiallyKnownMDP):
    """x: index of the price now. y: (hour, charge).

    Selling one unit earns efficiency * price, buying one costs the price.
    """

    horizon: int = whole(24, least=1)
    hours: int = whole(24, least=1)  # length of the day
    capacity: int = whole(4, least=1)
    charge: int = whole(0, least=0)  # at the start
    price: int = whole(1, least=0)  # index of the first price
    prices: tuple[float, ...] = listed((10.0, 30.0, 50.0, 80.0, 120.0))
    efficiency: float = probability(0.9)
    salvage: float = number(0.0)  # paid for each unit left at the end
    __attrs_post_init__ = check_options

    def start(self) -> Any:
        return self.price, (0, self.charge)

    def actions(self, x: Any, y: Any) -> Any:
        return tuple(MOVES)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        hour, charge = y
        return [(1.0, ((hour + 1) % self.hours, self._move_charge(charge, a)), (hour, x))]

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(len(self.prices))

    def reward(self, x: Any, y: Any, a: Any) -> float:
        bought = self._move_charge(y[1], a) - y[1]
        return float(-self.prices[x] * (bought if bought > 0 else self.efficiency * bought))

    def final(self, x: Any, y: Any) -> float:
        return float(self.salvage * y[1])

    def _move_charge(self, charge: int, a: str) -> int:
        return min(max(charge + MOVES[a], 0), self.capacity)

    def x_label(self, x: Any) -> str:
        return f"price {self.prices[x]:g}"

    def y_label(self, y: Any) -> str:
        return f"{y[0]:02d}:00, charge {y[1]}"

    def feature_label(self, z: Any) -> str:
        return f"after {self.prices[z[1]]:g} at {z[0]:02d}:00"


@options_of(Battery)
def battery(
    *, persistence: float = 0.6, noise: float = 0.7, log: str | None = None, **options: Any
) -> Problem[Battery]:
    """A battery in a market with a price peak in the morning and a higher one in the evening.

    `price_chain` gives the law. The other options are the fields of `Battery`. `log`: a CSV file of
    (z, x') = ((hour, price index), next price index).
    """
    expect.require(
        expect.fraction("persistence", persistence, closed=True),
        expect.number("noise", noise, above=True),
    )
    model = Battery(**options)
    expect.require(
        expect.whole("price", model.price, most=len(model.prices) - 1),
        expect.whole("charge", model.charge, most=model.capacity),
    )
    return Problem("battery", model, price_chain(model, persistence, noise), picture).fit(log)


def price_chain(
    model: Battery, persistence: float, noise: float
) -> dict[tuple[int, int], dict[int, float]]:
    """P(x' | hour, x) proportional to exp(-(x' - m)^2 / (2 noise^2)).

    m = persistence * x + (1 - persistence) * usual(hour + 1)
    """
    top = len(model.prices) - 1

    def usual(hour: int) -> float:
        time = 24 * (hour % model.hours) / model.hours
        return top * min(
            1.0, 0.7 * math.exp(-((time - 8) ** 2) / 8) + math.exp(-((time - 19) ** 2) / 10)
        )

    law = {}
    for hour in range(model.hours):
        for x in range(top + 1):
            middle = persistence * x + (1 - persistence) * usual(hour + 1)
            weights = {
                x_next: math.exp(-((x_next - middle) ** 2) / (2 * noise**2))
                for x_next in range(top + 1)
            }
            law[hour, x] = {
                x_next: weight / sum(weights.values()) for x_next, weight in weights.items()
            }
    return law


def picture(problem: Problem[Battery], plan: pkd.Plan, ax: Axes) -> Axes:
    """Sell, hold and buy over hours and prices, for a half-full battery on the first day."""
    model = problem.model()
    hours, half = range(min(model.hours, model.horizon)), model.capacity // 2
    grid = [
        [
            math.nan if a is None else float(MOVES[a])
            for hour in hours
            for a in [choose(plan, hour + 1, x, (hour, half))]
        ]
        for x in range(len(model.prices))
    ]
    ax.imshow(grid, origin="lower", aspect="auto", cmap="RdYlGn_r", vmin=-1.8, vmax=1.8)
    for x, row in enumerate(grid):
        for hour, move in enumerate(row):
            ax.text(
                hour,
                x,
                {-1.0: "sell", 0.0: "", 1.0: "buy"}.get(move, "?"),
                ha="center",
                va="center",
                fontsize="x-small",
                rotation=90,
            )
    ax.set_yticks(range(len(model.prices)), [f"{price:g}" for price in model.prices])
    ax.set(
        xlabel="hour",
        ylabel="price now",
        title="What a half-full battery does (empty: hold, ?: not reached)",
    )
    return ax
