"""The inventory by plain backward induction on arrays, written from its story.

    W(available, pipeline') = E[-holding (available - d)^+ - shortage (d - available)^+
                                + V_{h+1}(left, pipeline')]
    V_h(stock, (o, rest)) = max_a -unit a - fixed [a > 0]
                                  + W(min(stock + o, capacity), (rest, a))

The first axis is the stock from -backlog to capacity. Each further axis is one order of the
pipeline, the oldest first. Without a lead time o is the new order a itself, and the same code
serves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pkd_examples.inventory import Inventory


def optimal_value(shop: Inventory, law: Mapping[int, Mapping[int, float]]) -> float:
    """V_1 at the first stock with nothing on its way; law: day -> {demand: probability}."""
    stock = np.arange(-shop.backlog, shop.capacity + 1)
    orders = np.arange(shop.max_order + 1)
    price = shop.unit * orders + shop.fixed * (orders > 0)
    arrive = np.minimum(stock[:, None] + orders, shop.capacity) + shop.backlog  # (stock, order)
    shape = (len(stock), *(len(orders),) * shop.lead_time)
    value = np.zeros(shape) + _column(shop.salvage * np.maximum(stock, 0), shape)
    for h in reversed(range(shop.horizon)):
        evening = np.zeros(shape)
        for demand, p in law[h % shop.days].items():
            left = stock - demand
            paid = -shop.holding * np.maximum(left, 0) - shop.shortage * np.maximum(-left, 0)
            after = value[np.maximum(left, -shop.backlog) + shop.backlog]
            evening += p * (_column(paid, shape) + after)
        value = (evening[arrive] - price).max(axis=-1)
    return float(value[(shop.stock + shop.backlog, *(0,) * shop.lead_time)])


def _column(of_stock: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return of_stock.reshape(-1, *(1,) * (len(shape) - 1))
