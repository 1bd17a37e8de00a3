"""Maintenance of a machine that wears: the wear is x, there is no y, and earnings are unknown too.

A machine at wear x earns a random amount and wears further. A replacement takes a step, has a known
cost, and makes the machine new. Two things are learned: how wear grows, z = wear, and what each
wear earns, an `UnknownReward`. Without y this is an ordinary MDP in which the law of one action is
known.

>>> maintenance().model().step(3, None, "replace")
[(1.0, None, Known(law=((0, 1.0),)))]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd import expect
from pkd.model import Branch
from pkd_examples.options import check_options, number, options_of, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@attrs.frozen(kw_only=True)
class Maintenance(pkd.PartiallyKnownMDP):
    """x: wear, 0 (new) to `worst`. y: None. Running earns between 0 and `best`."""

    horizon: int = whole(30, least=1)
    worst: int = whole(6, least=1)
    jump: int = whole(2, least=1)  # the most that wear grows in one step
    best: float = number(1.0, 0, above=True)
    cost: float = number(1.5, 0)  # of a replacement
    __attrs_post_init__ = check_options

    def start(self) -> Any:
        return 0, None

    def actions(self, x: Any, y: Any) -> Any:
        return "run", "replace"

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return [(1.0, None, pkd.sure(0) if a == "replace" else ("wear", x))]

    def outcomes(self, z: Any) -> range:
        if z[0] == "earns":  # an amount is not a next x
            return range(0)
        return range(z[1], min(z[1] + self.jump, self.worst) + 1)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return -self.cost if a == "replace" else pkd.UnknownReward(("earns", x), 0.0, self.best)

    def x_label(self, x: Any) -> str:
        return f"wear {x}"

    def feature_label(self, z: Any) -> str:
        return f"{z[0]} at wear {z[1]}"


@options_of(Maintenance)
def maintenance(
    *, wearing: float = 0.4, log: str | None = None, **options: Any
) -> Problem[Maintenance]:
    """A machine whose wear grows with probability `wearing` and which earns `best` or nothing.

    Wear grows by each amount up to `jump` with the same probability. Pr(earns best at wear x) =
    1 - x/(worst + 1). The other options are the fields of `Maintenance`. `log`: a CSV file of
    (z, x') = ((wear, now), next wear) and ((earns, now), amount).
    """
    expect.require(expect.fraction("wearing", wearing, closed=True))
    model = Maintenance(**options)
    law: dict[Any, dict[Any, float]] = {}
    for wear in range(model.worst + 1):
        now, *further = model.outcomes(("wear", wear))
        law["wear", wear] = {
            now: 1 - wearing if further else 1.0,
            **{later: wearing / len(further) for later in further},
        }
        law["earns", wear] = {
            model.best: 1 - wear / (model.worst + 1),
            0.0: wear / (model.worst + 1),
        }
    return Problem("maintenance", model, law, picture).fit(log)


def picture(problem: Problem[Maintenance], plan: pkd.Plan, ax: Axes) -> Axes:
    """The wear at which the machine is replaced, over time: the control limit."""
    model = problem.model()
    steps = range(1, model.horizon + 1)
    for h in steps:
        for wear in range(model.worst + 1):
            action = choose(plan, h, wear, None)
            if action is not None:
                ax.plot(h, wear, "rs" if action == "replace" else "g.", markersize=5)
    ax.plot([], [], "rs", label="replace")
    ax.plot([], [], "g.", label="run")
    ax.set(xlabel="step", ylabel="wear", title="When to replace the machine")
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    return ax
