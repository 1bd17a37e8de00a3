"""Outcomes of which a log may say only that they were at least so large, such as lost sales.

A shop that sells its last unit does not see the demand: it was at least the stock. A log that keeps
"5" for such a day lies, and one that leaves the day out lies, too. `Censored` draws an outcome of
v_0 < v_1 < ... by coins, each a feature of its own:

    is it v_k, given that it is at least v_k?      h_k = Pr(v_k) / Pr(v_k or more)

"At least v_k" is a sample of the coins before k and of no other. If the limit was known before the
outcome was drawn, as a stock is, then each coin that was tossed came up by its h_k, whatever the
limits were. So all sets of laws of coins are honest, and the optimum is that of the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from pkd.model import CHANCE, Branch, Known, Law, ModelError, sure
from pkd.problem import as_model
from pkd.wrapped import Wrapped

__all__ = ["Censored", "Coin", "More"]


class More(Enum):
    """The outcome of a coin: it is not this value but a larger one."""

    MORE = "more"


class Coin(NamedTuple):
    """Whether an outcome of z is its k-th value, given that it is no smaller one."""

    z: Any
    k: int


class Counting(NamedTuple):
    """The y while an outcome of z is found; then the base is in y."""

    y: Any
    z: Any
    k: int


class Censored(Wrapped):
    """The same model, whose unknown outcomes are numbers that are found by coins.

    >>> from pkd_examples.inventory import inventory
    >>> import pkd
    >>> shop = inventory(horizon=3, capacity=3, max_order=2, max_demand=3, lead_time=0, demand=1)
    >>> model = Censored(shop)
    >>> abs(pkd.plan(model, model.law(shop.law())).value - pkd.plan(shop).value) < 1e-12
    True
    >>> model.list_samples(0, 2, censored=True)  # at least 2 customers came
    [(Coin(z=0, k=0), <More.MORE: 'more'>), (Coin(z=0, k=1), <More.MORE: 'more'>)]
    """

    def __init__(self, base: Any) -> None:
        super().__init__(as_model(base))
        if self.base.samples is not None:
            kind = type(self.base).__name__
            raise ModelError(f"{kind} says itself what an episode teaches, so it has no coins")
        self.n_features = None
        self._values: dict[Any, tuple[Any, ...]] = {}

    def list_values(self, z: Any) -> tuple[Any, ...]:
        """The outcomes of a feature of the base, the smallest first."""
        if z not in self._values:
            values = list(self.base.outcomes(z))
            if not all(isinstance(value, int | float) for value in values):
                raise ModelError(
                    f"{self.base.feature_label(z)} has outcomes that are no numbers, so none can "
                    "be 'at least' another; expected numbers"
                )
            self._values[z] = tuple(sorted(values))
        return self._values[z]

    def list_samples(self, z: Any, value: Any, *, censored: bool) -> list[tuple[Coin, Any]]:
        """The coins that one outcome teaches; censored: it was at least `value`."""
        values = self.list_values(z)
        place, last = values.index(value), len(values) - 2
        found = [(Coin(z, k), More.MORE if k < last else values[-1]) for k in range(place)]
        return found if censored or place > last else [*found, (Coin(z, place), value)]

    def law(self, base: Law) -> Law:
        """The truth about the coins from that about the base."""

        def find(coin: Coin) -> Mapping[Any, float]:
            row = base[coin.z] if isinstance(base, Mapping) else base(coin.z)
            here, more = self.outcomes(coin)
            tail = sum(row.get(value, 0.0) for value in self.list_values(coin.z)[coin.k :])
            p = row.get(here, 0.0) / tail if tail > 0 else 1.0
            return {here: p, more: 1.0 - p}

        return find

    def first(self, x: Any, y: Any) -> tuple[Any, Any]:
        return x, y

    def actions(self, x: Any, y: Any) -> Any:
        return CHANCE if isinstance(y, Counting) else self.base.actions(x, y)

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        if isinstance(y, Counting):
            return self._count(x, y)
        return list(self._toss(self.base.step(x, y, a)))

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        if isinstance(y, Counting):
            return self._count(x, y)
        return list(self._toss(self.base.last_step(x, y, a)))

    def _toss(self, branches: Iterable[Any]) -> Iterator[Branch]:
        for p, y, z in branches:
            if isinstance(z, Known):
                yield p, y, z
            elif len(values := self.list_values(z)) == 1:
                yield p, y, sure(values[0])
            else:
                yield p, Counting(y, z, 0), Coin(z, 0)

    def _count(self, x: Any, y: Counting) -> list[Branch]:
        if x is More.MORE:
            return [(1.0, y._replace(k=y.k + 1), Coin(y.z, y.k + 1))]
        return [(1.0, y.y, sure(x))]

    def outcomes(self, z: Coin) -> tuple[Any, Any]:
        values = self.list_values(z.z)
        return values[z.k], values[-1] if z.k == len(values) - 2 else More.MORE

    def branching(self, z: Coin) -> int:
        return 2

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return 0.0 if isinstance(y, Counting) else self.base.reward(x, y, a)

    def final(self, x: Any, y: Any) -> float:
        return 0.0 if isinstance(y, Counting) else self.base.final(x, y)

    def x_label(self, x: Any) -> str:
        return "more" if x is More.MORE else self.base.x_label(x)

    def y_label(self, y: Any) -> str:
        return self.base.y_label(y.y if isinstance(y, Counting) else y)

    def feature_label(self, z: Coin) -> str:
        value = self.list_values(z.z)[z.k]
        return f"{self.base.feature_label(z.z)}: {value}, if it is that or more"
