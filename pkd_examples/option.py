"""An American put on a binomial tree with unknown drift: when to stop.

The price of a share moves up by a factor u or down by 1/u at each step (Cox, Ross and Rubinstein
1979). The holder of a put may sell the share at the strike price at any step, once. Time and the
number of up moves are book-keeping (s). Nature shows whether the price moves up, and its
probability is the only unknown: z = "move". With drift = rate the value of the plan is the price of
the option.

>>> put = american_put(horizon=1, strike=40.0, spot=36.0).model()
>>> put.land((0, 0), "exercise", None)
(4.0, 'closed')
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import check_options, number, options_of, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLOSED = "closed"


@attrs.frozen(kw_only=True)
class AmericanPut(pkd.NoiseMDP):
    """s: (step, up moves), or CLOSED after the exercise.

    Price = spot * u^(2 ups - step), u = exp(volatility sqrt(years / horizon)). Money is discounted
    to the start: exercising at step t pays exp(-rate t years/horizon) * max(strike - price, 0).
    """

    horizon: int = whole(50, least=1)  # steps of the tree
    spot: float = number(36.0, 0, above=True)
    strike: float = number(40.0, 0, above=True)
    volatility: float = number(0.2, 0, above=True)
    years: float = number(1.0, 0, above=True)
    rate: float = number(0.06)
    __attrs_post_init__ = check_options

    @property
    def up(self) -> float:
        return math.exp(self.volatility * math.sqrt(self.years / self.horizon))

    def price(self, s: tuple[int, int]) -> float:
        return self.spot * self.up ** (2 * s[1] - s[0])

    def initial(self) -> Any:
        return 0, 0

    def choices(self, s: Any) -> Any:
        return pkd.END if s == CLOSED else ("hold", "exercise")

    def noise(self, s: Any, a: Any) -> Any:
        return pkd.sure(None) if a == "exercise" else "move"

    def outcomes(self, z: Any) -> Any:
        return "up", "down"

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, Any]:
        return (
            (self.ending(s), CLOSED) if a == "exercise" else (0.0, (s[0] + 1, s[1] + (w == "up")))
        )

    def ending(self, s: Any) -> float:
        if s == CLOSED:
            return 0.0
        return math.exp(-self.rate * self.years * s[0] / self.horizon) * max(
            self.strike - self.price(s), 0.0
        )


@options_of(AmericanPut)
def american_put(
    *, drift: float | None = None, log: str | None = None, **options: Any
) -> Problem[AmericanPut]:
    """An American put with Pr(up) = (exp(drift years/horizon) - 1/u) / (u - 1/u).

    The default of drift is rate. The other options are the fields of `AmericanPut`. `log`: a CSV
    file of (z, x') = (move, up or down).
    """
    model = AmericanPut(**options)
    growth = math.exp((model.rate if drift is None else drift) * model.years / model.horizon)
    up = (growth - 1 / model.up) / (model.up - 1 / model.up)
    if not 0 <= up <= 1:
        raise pkd.ModelError(
            f"american_put(drift={drift!r}) makes Pr(up) = {up:g}; "
            "expected a number between 0 and 1: take more steps"
        )
    return Problem("american_put", model, {"move": {"up": up, "down": 1 - up}}, picture).fit(log)


def picture(problem: Problem[AmericanPut], plan: pkd.Plan, ax: Axes) -> Axes:
    """The exercise boundary: the highest price at which the put is exercised, against time."""
    model = problem.model()
    times, boundary = [], []
    # Odd steps visit other prices: drawn together they would make a saw.
    for t in range(0, model.horizon, 2):
        prices = [
            model.price((t, ups))
            for ups in range(t + 1)
            if choose(plan, t + 1, None, (t, ups)) == "exercise"
        ]
        times.append(t * model.years / model.horizon)
        boundary.append(max((price for price in prices if price < model.strike), default=math.nan))
    ax.step(times, boundary, where="post", label="exercise below this price")
    ax.axhline(model.strike, linestyle=":", label="strike")
    ax.set(
        xlabel="time in years", ylabel="price of the share", title="Exercise boundary of the put"
    )
    ax.legend(fontsize="small")
    return ax
