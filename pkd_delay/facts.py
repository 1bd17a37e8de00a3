"""Numbers of delayed problems that are known from elsewhere, for `pkd verify`.

Each is (what, expected, found, tolerance).
"""

from __future__ import annotations

from collections.abc import Iterator

from pkd_delay.bounds import lower_bound
from pkd_delay.planning import plan
from pkd_delay.problems import riverswim, two_state_chain
from pkd_delay.process import DelayedMDP
from pkd_delay.theory.remez import best_approximation

__all__ = ["facts"]


def facts() -> Iterator[tuple[str, float, float, float]]:
    """The facts of late observations."""
    guess = DelayedMDP(two_state_chain(horizon=3, stay=0.5), {-1: 0.5, 1: 0.5}, max_delay=2)
    yield (
        (
            "delay: arrivals with an empty queue, worked by hand "
            "(errata, 1; the printed rule gives 2.25)"
        ),
        2.5,
        plan(guess).value,
        1e-12,
    )

    closed = sum((1 + 0.8 ** min(t, 4)) / 2 for t in range(10))
    chain = plan(DelayedMDP.constant(two_state_chain(), 4)).value
    yield (
        "delay: the two-state chain four late, sum over t < 10 of (1 + .8^min(t, 4)) / 2",
        closed,
        chain,
        1e-10,
    )

    swim = plan(DelayedMDP.constant(riverswim(), 3)).value
    yield (
        (
            "delay: RiverSwim three late, H=20 "
            "(numbers of Osband et al. 2013; enumerated independently)"
        ),
        3.3966522172,
        swim,
        5e-11,
    )

    error = float(best_approximation(4).error)
    yield (
        "lower bound: the best polynomial of degree 4 for |x| (Varga and Carpenter 1985)",
        0.06762089927778,
        error,
        1e-13,
    )

    bound = float(lower_bound(100, 2, 100, 10, 40, 1e6))
    sizes = "S=100, A=2, H=100, D=10, B=40, K=1e6"
    yield f"lower bound: {sizes} (Theorem 3, constant corrected)", 65.276832, bound, 1e-6
