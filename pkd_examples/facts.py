"""Numbers of the domains that are known from outside this package, for `pkd verify`.

A fact is (what, expected, found, tolerance).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pkd
from pkd_examples.admission import admission
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory
from pkd_examples.kuhn import kuhn
from pkd_examples.option import american_put
from pkd_examples.problem import Problem


def facts() -> Iterator[tuple[str, float, float, float]]:
    """The facts of the domains beyond delays."""
    for capital, chance in ((25, 0.16), (50, 0.4), (75, 0.64)):
        value = _optimum(gambler(goal=100, capital=capital, win=0.4, horizon=8))
        yield (
            f"gambler: from {capital} to 100 with a coin of .4 (Dubins and Savage 1965, bold play)",
            chance,
            value,
            1e-12,
        )

    put = american_put(horizon=50, spot=36.0, strike=40.0, rate=0.06, volatility=0.2, years=1.0)
    yield (
        "american_put: spot 36, strike 40, one year (Cox, Ross and Rubinstein 1979, tree of 50)",
        4.4844980629,
        _optimum(put),
        1e-9,
    )

    average = _optimum(admission(horizon=401)) - _optimum(admission(horizon=400))
    yield (
        "admission: optimal average reward of access control (Sutton and Barto, example 10.2)",
        2.7476419506,
        average,
        1e-9,
    )

    newsvendor = inventory(
        demand=6, horizon=1, lead_time=0, capacity=30, max_order=20, max_demand=40, stock=0
    )
    cost = -_optimum(newsvendor)
    yield (
        "inventory: the newsvendor's cost, demand Poisson(6), holding 1, shortage 4 (stockpyl)",
        3.5701069457709416,
        cost,
        1e-9,
    )

    game = _optimum(kuhn(seat=1, bluff=1 / 3, call=1 / 3))
    yield (
        "kuhn: the value of the game for the first player (Kuhn 1950), -1/18",
        -1 / 18,
        game,
        1e-12,
    )


def _optimum(problem: Problem[Any]) -> float:
    return pkd.plan(problem.model(), problem.law()).value
