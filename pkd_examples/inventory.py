"""Inventory with a lead time: stock and pipeline are book-keeping (y), nature shows the demand (x).

The classical model of operations research. Each morning an order is placed. It arrives `lead_time`
days later, before the customers of that day come. The law of the demand depends only on the day of
the week: z = weekday. Seven laws are learned, for thousands of pairs (stock and pipeline, order).
Rewards are negative costs, paid when the demand is seen.

The pipeline is a `pkd.Queue`, and a step reads only its oldest order. So a long lead time compiles
quickly, although there are (max_order + 1)^lead_time pipelines.

>>> problem = inventory(horizon=7, lead_time=0)
>>> monday = (0, 3, pkd.Queue())  # three in stock, nothing on its way
>>> problem.model().step(None, monday, 4)  # four are ordered: the customers find seven
[(1.0, (0, 7, Queue(())), 0)]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd.model import Branch
from pkd.transforms import Travel
from pkd_examples.options import check_options, number, options_of, whole
from pkd_examples.problem import Problem, choose_first, show_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MORNING = pkd.sure(None)  # no demand has been seen yet


@attrs.frozen(kw_only=True)
class Inventory(pkd.PartiallyKnownMDP):
    """x: the demand just seen (None in the morning). y: (day, stock, queue of orders on their way).

    In the morning (decision) the order joins the pipeline and the oldest one arrives. In the
    evening (CHANCE) the demand is served:

        left = available - demand
        cost = unit*order + fixed*[order > 0] + holding*max(left, 0) + shortage*max(-left, 0)
    """

    horizon: int = whole(14, least=1)
    days: int = whole(7, least=1)  # length of the season
    capacity: int = whole(12, least=1)  # stock above it is lost
    max_order: int = whole(6, least=1)
    max_demand: int = whole(10, least=1)
    lead_time: int = whole(1, least=0)
    backlog: int = whole(0, least=0)  # customers who wait; the others are lost
    stock: int = whole(4, least=-1000)  # at the start
    unit: float = number(0.0)
    fixed: float = number(0.0, 0)
    holding: float = number(1.0, 0)
    shortage: float = number(4.0, 0)
    salvage: float = number(0.0)  # paid for each unit left at the end
    __attrs_post_init__ = check_options

    def start(self) -> Any:
        return None, (0, self.stock, pkd.Queue((0,) * self.lead_time))

    def actions(self, x: Any, y: Any) -> Any:
        return range(self.max_order + 1) if x is None else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        day, stock, pipeline = y
        if x is None:
            coming = pipeline.push(a)
            available = min(stock + coming.oldest, self.capacity)
            return [(1.0, (day, available, coming.pop()), day)]
        return [(1.0, ((day + 1) % self.days, max(stock - x, -self.backlog), pipeline), MORNING)]

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(self.max_demand + 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        if x is None:
            return -float(self.unit * a + self.fixed * (a > 0))
        return -float(self.holding * max(y[1] - x, 0) + self.shortage * max(x - y[1], 0))

    def final(self, x: Any, y: Any) -> float:
        return float(self.salvage * max(y[1], 0))

    def y_label(self, y: Any) -> str:
        coming = f", coming {'+'.join(map(str, y[2]))}" if y[2] else ""
        return f"day {y[0] + 1}, stock {y[1]}{coming}"

    def feature_label(self, z: Any) -> str:
        return f"demand on {DAYS[z]}" if self.days == len(DAYS) else f"demand on day {z + 1}"


@options_of(Inventory, without=("days",))
def inventory(
    *,
    demand: float | Sequence[float] = (1, 1, 2, 2, 3, 5, 4),
    log: str | None = None,
    **options: Any,
) -> Problem[Inventory]:
    """Inventory with Poisson demand, one mean for each day of the season.

    A single number gives the same law every day. The other options are the fields of `Inventory`;
    `lead_time` may be {days: probability}, too (`pkd_examples.lead_times`). `log`: a CSV file of
    (z, x') = (weekday, demand) in place of the Poisson law.
    """
    means = tuple(demand) if isinstance(demand, Sequence) else (demand,)
    good = all(isinstance(mean, int | float) and 0 <= mean < math.inf for mean in means)
    if not means or not good:
        raise pkd.ModelError(
            f"inventory(demand={demand!r}): "
            "expected a mean of at least 0, or one for each day of the season"
        )
    model = _make_model(days=len(means), **options)
    law = {day: poisson(mean, model.max_demand) for day, mean in enumerate(means)}
    return Problem("inventory", model, law, picture).fit(log)


def _make_model(**options: Any) -> Inventory:
    lead_time = options.get("lead_time")
    if not isinstance(lead_time, Mapping):
        return Inventory(**options)
    from pkd_examples.lead_times import InventoryWithLeadTimes

    travel = Travel(lead_time)
    options["lead_time"] = 0  # nothing is on its way at the start
    return InventoryWithLeadTimes(**options, lead_times=travel.law)


def poisson(mean: float, largest: int) -> dict[int, float]:
    """The Poisson law Pr(n) = exp(-mean) mean^n / n!, with all mass above `largest` put there."""
    law = {n: math.exp(-mean) * mean**n / math.factorial(n) for n in range(largest)}
    return {**law, largest: max(0.0, 1.0 - sum(law.values()))}


def picture(problem: Problem[Inventory], plan: pkd.Plan, ax: Axes) -> Axes:
    """The order for each day and stock with nothing on its way: a base-stock or an (s, S) policy.

    In each state it is what the plan does when the state can first occur, far from the end.
    """
    model = problem.model()
    nothing = pkd.Queue((0,) * model.lead_time)
    levels = range(-model.backlog, model.capacity + 1)
    days = range(min(model.days, model.horizon))
    orders = [[choose_first(plan, None, (day, level, nothing)) for level in levels] for day in days]
    show_numbers(ax, orders, most=model.max_order)
    ax.set_xticks(range(len(levels)), [str(level) for level in levels])
    ax.set_yticks(list(days), [model.feature_label(d).removeprefix("demand on ") for d in days])
    ax.set(
        xlabel="stock in the morning, nothing on its way",
        ylabel="day",
        title="How much to order (?: not reached)",
    )
    return ax
