"""The inventory with a random lead time: `pkd.transforms.Travel` says when orders arrive.

Orders do not overtake. If an order arrives, the older ones arrive with it at the latest (R. S.
Kaplan, 1970, "A dynamic inventory model with stochastic lead times"): each order has a lead time of
its own, and is delivered as soon as it or a newer one has come. The law of the lead time is known,
so still only the demand is learned.

>>> from pkd_examples.inventory import inventory
>>> shop = inventory(lead_time={1: 0.5, 2: 0.5}).model()
>>> monday = (0, 3, pkd.Queue((2,)))  # three in stock, two were ordered yesterday
>>> for probability, y, _ in shop.step(None, monday, 4):
...     print(probability, y)
0.5 (0, 5, Queue((4,)))
0.5 (0, 3, Queue((2, 4)))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs

import pkd
from pkd.model import Branch
from pkd.transforms import Travel
from pkd_examples.inventory import Inventory

ARRIVES = "arrives"


@attrs.frozen(kw_only=True, slots=False, eq=False)
class InventoryWithLeadTimes(Inventory):
    """An `Inventory` whose orders take a random number of days.

    y has a fourth entry, ARRIVES, while one more order is delivered in the morning.
    """

    lead_times: Mapping[int, float]  # {days: probability}, in place of lead_time

    @cached_property
    def travel(self) -> Travel:
        """The law of the lead time."""
        return Travel(self.lead_times)

    def start(self) -> Any:
        return None, (0, self.stock, pkd.Queue())

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if y[-1] == ARRIVES else super().actions(x, y)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        day, stock, pipeline = y[:3]
        if x is not None:
            return super().step(x, y, a)
        if y[-1] == ARRIVES:
            return self._deliver(1.0, day, stock, pipeline)
        coming = pipeline.push(a)
        p = self.travel.comes(len(coming), 0)
        later = [(1 - p, (day, stock, coming), day)] if p < 1 else []
        return (self._deliver(p, day, stock, coming) if p > 0 else []) + later

    def _deliver(self, p: float, day: int, stock: int, coming: pkd.Queue) -> list[Branch]:
        """The oldest order arrives with probability p, and perhaps the next one with it."""
        available, left = min(stock + coming.oldest, self.capacity), coming.pop()
        more = self.travel.comes(len(left), -1) if left else 0.0
        both = (
            (p * (1 - more), (day, available, left), day),
            (p * more, (day, available, left, ARRIVES), pkd.sure(None)),
        )
        return [branch for branch in both if branch[0] > 0]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0 if y[-1] == ARRIVES else super().reward(x, y, a)
