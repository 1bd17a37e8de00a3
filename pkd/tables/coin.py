"""A coin, the smallest table in which a choice matters, for the examples of docstrings.

State 1 pays 1 per step. In both states action 0 tosses the coin, and action 1 leaves it as it lies.
"""

from __future__ import annotations

from pkd.tables.tabular import TabularMDP

__all__ = ["coin", "short_coin"]

_TOSSES = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
coin = TabularMDP(_TOSSES, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
short_coin = TabularMDP(_TOSSES, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
