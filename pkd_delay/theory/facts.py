"""Numbers of delayed problems that are known from elsewhere, for `pkd verify`.

Each is (what, expected, found, tolerance).
"""

from __future__ import annotations

from collections.abc import Iterator

from pkd_delay.delayed import DelayedMDP
from pkd_delay.models.tables import riverswim, two_state_chain
from pkd_delay.planning import plan
from pkd_delay.theory.bounds import DelaySizes
from pkd_delay.theory.remez import best_approximation


def facts() -> Iterator[tuple[str, float, float, float]]:
    """The facts of late observations."""
    guess = DelayedMDP(two_state_chain(horizon=3, stay=0.5), {-1: 0.5, 1: 0.5}, max_delay=2)
    what = "delay: arrivals with an empty queue, worked by hand "
    yield what + "(errata, 1; the printed rule gives 2.25)", 2.5, plan(guess).value, 1e-12

    closed = sum((1 + 0.8 ** min(t, 4)) / 2 for t in range(10))
    what = "delay: the two-state chain four late, sum over t < 10 of (1 + .8^min(t, 4)) / 2"
    yield what, closed, plan(DelayedMDP.constant(two_state_chain(), 4)).value, 1e-10

    swim = plan(DelayedMDP.constant(riverswim(), 3)).value
    what = "delay: RiverSwim three late, H=20 "
    what += "(numbers of Osband et al. 2013; enumerated independently)"
    yield what, 3.3966522172, swim, 5e-11

    error = float(best_approximation(4).error)
    what = "lower bound: the best polynomial of degree 4 for |x| (Varga and Carpenter 1985)"
    yield what, 0.06762089927778, error, 1e-13

    bound = DelaySizes(100, 2, 100, max_delay=10, branching=40).lower_bound(1e6)
    what = "lower bound: S=100, A=2, H=100, D=10, B=40, K=1e6 (Theorem 3, constant corrected)"
    yield what, 65.276832, bound, 1e-6
