"""Selling seats before a deadline: the seats left are book-keeping (s), nature shows who buys.

Dynamic pricing as airlines do it (Gallego and van Ryzin 1994). At each step one customer may come
and buys at the posted price or leaves. How demand falls with the price is unknown, and z is the
price itself. The law of a price is seen only by asking it, so the agent must explore. This is the
shortest model of the package.

>>> pricing(seats=3).model().land(3, 2.0, 1)
(2.0, 2)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import expect
from pkd_examples.options import check_options, listed, options_of, whole
from pkd_examples.problem import Problem, choose, show_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@attrs.frozen(kw_only=True)
class Pricing(pkd.NoiseMDP):
    """s: seats left. w: 1 if the customer of this step buys, 0 otherwise."""

    horizon: int = whole(20, least=1)
    seats: int = whole(5, least=1)
    prices: tuple[float, ...] = listed((1.0, 2.0, 3.0, 4.0, 5.0), distinct=True)
    __attrs_post_init__ = check_options

    def initial(self) -> int:
        return self.seats

    def choices(self, s: Any) -> Any:
        return self.prices if s else pkd.END

    def noise(self, s: Any, a: Any) -> Any:
        return a

    def outcomes(self, z: Any) -> Any:
        return 0, 1

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, int]:
        return a * w, s - w


@options_of(Pricing)
def pricing(
    *, customers: float = 0.9, scale: float = 2.0, log: str | None = None, **options: Any
) -> Problem[Pricing]:
    """Dynamic pricing with demand Pr(buys at price p) = customers * exp(-p / scale).

    The other options are the fields of `Pricing`. `log`: a CSV file of (z, x') = (price, 0 or 1).
    """
    expect.require(
        expect.fraction("customers", customers, closed=True),
        expect.number("scale", scale, above=True),
    )
    model = Pricing(**options)
    sells = {price: min(1.0, customers * math.exp(-price / scale)) for price in model.prices}
    return Problem(
        "pricing", model, {price: {0: 1 - p, 1: p} for price, p in sells.items()}, picture
    ).fit(log)


def picture(problem: Problem[Pricing], plan: pkd.Plan, ax: Axes) -> Axes:
    """The posted price by the number of seats left and the step."""
    model = problem.model()
    steps, seats = range(1, model.horizon + 1), range(1, model.seats + 1)
    asked = [[choose(plan, h, None, left) for h in steps] for left in seats]
    show_numbers(ax, asked, most=max(a for row in asked for a in row if a is not None))
    ax.set_xticks(range(len(steps)), [str(h) for h in steps])
    ax.set_yticks(range(len(seats)), [str(left) for left in seats])
    ax.set(xlabel="step", ylabel="seats left", title="What to charge (?: not reached)")
    return ax
