"""What all regret bounds are made of: two terms, two logarithms, and the constants 56 and 2640 of the paper's explicit bound."""

from __future__ import annotations

from collections.abc import Mapping
from math import e, log, sqrt

from pkd.model import ModelError

__all__ = ["Bound", "check_sizes", "explicit", "support_log", "union_log"]

LEADING, LOWER = 56, 2640  # the constants of the two terms, from the lemmas "per episode" (28, 660) and "sum of U" (4)


class Bound(float):
    """A regret bound is a number that remembers its two terms: `leading` grows with sqrt(K), `lower_order` with log(K)."""

    leading: float
    lower_order: float

    def __new__(cls, leading: float, lower_order: float = 0.0) -> Bound:
        bound = super().__new__(cls, leading + lower_order)
        bound.leading, bound.lower_order = leading, lower_order
        return bound

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return (self.leading, self.lower_order)


def union_log(horizon: int, n_y: float, n_features: int, episodes: float, delta: float = 0.05, *, printed: bool = False) -> float:
    """ell_1 = log(32 H^2 |Y| |Z| K / delta) pays for a union bound over y; `printed` has H in place of H^2."""
    return log(32 * horizon ** (1 if printed else 2) * n_y * n_features * episodes / delta)


def support_log(support: int, horizon: int, n_features: int, episodes: float, delta: float = 0.05) -> float:
    """ell_2(z) = log(32 H B(z) |Z| K / delta) pays, B(z) times, for all functions on B(z) points."""
    return log(32 * horizon * support * n_features * episodes / delta)


def explicit(width: float, visits: float, episodes: float, first: float, lower: float) -> Bound:
    """The two terms from sum_z ell(z) and sum_z B(z) ell_2(z); `visits` bounds the count of one feature."""
    growth = log(e * visits)
    return Bound(LEADING * width * sqrt(episodes * growth * first), LOWER * width * growth * lower)


def check_sizes(delays: Mapping[str, int] | None = None, *, delta: float, **sizes: float) -> None:
    """Raises one ModelError with every size that is below 1, every delay below 0, and a delta outside (0, 1)."""
    findings = [f"{name} is {size!r}; expected a number of at least 1" for name, size in sizes.items() if not size >= 1]
    findings += [f"{name} is {delay!r}; expected 0 or more" for name, delay in (delays or {}).items() if not delay >= 0]
    if not 0 < delta < 1:
        findings.append(f"delta is {delta!r}; expected a probability strictly between 0 and 1")
    if findings:
        raise ModelError(findings)
