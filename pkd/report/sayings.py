"""How a page says numbers, intervals and comparisons."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pkd.experiments.statistics import Pair
from pkd.show.intervals import FEW, Interval

__all__ = ["Pairs", "count", "judge", "say_interval", "say_number"]

HUGE = 1e9  # from which on a number is said by its first digits
Pairs = Mapping[tuple[str, str], Pair]


def judge(means: Mapping[str, float], pairs: Pairs, what: str) -> str:
    """Which agents the tests tell from the one with the least mean; "" if none are compared."""
    best, *others = sorted(means, key=lambda agent: means[agent])
    found = {
        other: pair
        for other in others
        if (pair := pairs.get((best, other)) or pairs.get((other, best))) is not None
    }
    if not found:
        return ""
    pair = next(iter(found.values()))
    after = f" after Holm for {pair.comparisons} comparisons" if pair.comparisons > 1 else ""
    tests = f"sign-flip tests over {pair.seeds} {pair.units}, p at most 0.05{after}"
    more = [agent for agent, one in found.items() if one.differs]
    open_ = [agent for agent, one in found.items() if not one.differs]
    if not more:
        few = pair.seeds < pair.seeds_needed
        needed = f"; {pair.seeds_needed} {pair.units} at least can tell" if few else ""
        return f"No agent's {what} is told from the least, that of {best} ({tests}{needed})."
    rest = f"; {', '.join(open_)}: no difference found" if open_ else ""
    return f"{best} has a lower {what} than {', '.join(more)}{rest} ({tests})."


def say_interval(found: Interval, digits: int = 6) -> str:
    if np.isnan(found.low):
        return FEW
    return f"{say_number(float(found.low), digits)} to {say_number(float(found.high), digits)}"


def say_number(value: object, digits: int = 6) -> str:
    """Some digits, and all those of a whole part that is not huge; rounding noise is 0.

    >>> say_number(2 / 3), say_number(21493.2, 4), say_number(1e-14), say_number("exact")
    ('0.666667', '21493', '0', 'exact')
    """
    if not isinstance(value, float):
        return str(value)
    if 10**digits <= abs(value) < HUGE:
        return f"{value:.0f}"
    return f"{value:.{digits}g}" if abs(value) > 1e-12 else "0"


def count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'' if many == 1 else 's'}"
