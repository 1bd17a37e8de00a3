"""Admission control: y counts the free servers, x is the payment that the next customer offers.

The access-control queue of Sutton and Barto (example 10.2). At each step the customer at the head
of the queue offers a payment and is accepted or turned away. How many busy servers become free is
random, but its law is known: it is P_Y. Only the law of the payments is learned. This file uses the
contract in its two-method form: `known_kernel` and `feature`.

>>> model = admission(servers=2, free=0.5).model()
>>> model.known_kernel(4, 1, "accept")  # the one free server is taken; both may become free
[(0.25, 0), (0.5, 1), (0.25, 2)]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import check_options, flag, listed, options_of, probability, weigh, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@attrs.frozen(kw_only=True)
class Admission(pkd.PartiallyKnownMDP):
    """x: what the customer at the head pays (None before the first one comes). y: free servers.

    Pr(k become free) = C(busy, k) free^k (1 - free)^(busy - k). Accepting without a free server
    turns the customer away.
    """

    horizon: int = whole(50, least=1)
    servers: int = whole(10, least=1)
    free: float = probability(0.06)
    payments: tuple[float, ...] = listed((1, 2, 4, 8), distinct=True)
    same_step: bool = flag(True)  # may a server taken now become free at once?
    __attrs_post_init__ = check_options

    def start(self) -> Any:
        return None, self.servers

    def actions(self, x: Any, y: Any) -> Any:
        return pkd.CHANCE if x is None else ("reject", "accept")

    def known_kernel(self, x: Any, y: Any, a: Any) -> list[tuple[float, int]]:
        if x is None:
            return [(1.0, y)]
        taken = self._count_taken(y, a)
        busy = self.servers - y + (taken if self.same_step else 0)
        return [
            (
                math.comb(busy, freed) * self.free**freed * (1 - self.free) ** (busy - freed),
                y - taken + freed,
            )
            for freed in range(busy + 1)
        ]

    def feature(self, x: Any, y: Any, a: Any, y_next: Any) -> str:
        return "payment"

    def outcomes(self, z: Any) -> tuple[float, ...]:
        return self.payments

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.0 if x is None else x * self._count_taken(y, a)

    def _count_taken(self, y: int, a: str) -> int:
        return int(a == "accept" and y > 0)

    def x_label(self, x: Any) -> str:
        return "nobody" if x is None else f"pays {x:g}"

    def y_label(self, y: Any) -> str:
        return f"{y} free"


@options_of(Admission)
def admission(
    *, weights: tuple[float, ...] | None = None, log: str | None = None, **options: Any
) -> Problem[Admission]:
    """Access control with payments drawn with the given weights (default: equal weights).

    The other options are the fields of `Admission`. `log`: a CSV file of (z, x') = (payment,
    amount).
    """
    model = Admission(**options)
    weights = (1.0,) * len(model.payments) if weights is None else tuple(weights)
    law = {"payment": weigh("weights", model.payments, weights)}
    return Problem("admission", model, law, picture).fit(log)


def picture(problem: Problem[Admission], plan: pkd.Plan, ax: Axes) -> Axes:
    """Accept and reject over free servers and payments, halfway through.

    This is the policy of figure 10.5 in Sutton and Barto.
    """
    model = problem.model()
    h = model.horizon // 2 + 1
    grid = [
        [choose(plan, h, x, y) == "accept" for y in range(1, model.servers + 1)]
        for x in model.payments
    ]
    ax.imshow(
        grid,
        origin="lower",
        aspect="auto",
        cmap="Greens",
        vmin=0,
        vmax=1.5,
        extent=(0.5, model.servers + 0.5, -0.5, len(grid) - 0.5),
    )
    ax.set_yticks(range(len(model.payments)), [f"{x:g}" for x in model.payments])
    ax.set(xlabel="free servers", ylabel="payment offered", title="Accept (green) or reject")
    return ax
