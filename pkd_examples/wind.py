"""Navigation in an unknown wind: the position is book-keeping (s), nature shows the gust.

The windy grid of Sutton and Barto (example 6.5): a boat moves one cell, and the wind of the column
it leaves carries it further up. The map of the wind regions is known (a forecast), their strengths
are not: z = region. Unlike a price or a demand, the wind of a region is seen only by going there,
so the agent must explore.

>>> wind(rows=7).model().land((3, 6), "right", 2)
(-1.0, (5, 7))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

import pkd
from pkd_examples.options import check_options, flag, listed, options_of, whole
from pkd_examples.problem import Problem, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOUR = {"left": (0, -1), "right": (0, 1), "up": (1, 0), "down": (-1, 0)}
EIGHT = FOUR | {
    "up-left": (1, -1),
    "up-right": (1, 1),
    "down-left": (-1, -1),
    "down-right": (-1, 1),
}


@attrs.frozen(kw_only=True)
class Wind(pkd.NoiseMDP):
    """s: (row, column), rows counted upwards.

    Each step costs 1 until the goal is reached. The boat cannot leave the grid.
    """

    horizon: int = whole(40, least=1)
    rows: int = whole(7, least=1)
    regions: tuple[int, ...] = listed((0, 0, 0, 1, 1, 1, 2, 2, 1, 0))  # of each column
    first: tuple[int, int] = listed((3, 0), 2)
    goal: tuple[int, int] = listed((3, 7), 2)
    strongest: int = whole(3, least=0)  # the largest gust
    diagonal: bool = flag(False)  # eight moves instead of four
    __attrs_post_init__ = check_options

    def initial(self) -> Any:
        return self.first

    def choices(self, s: Any) -> Any:
        return pkd.END if s == self.goal else tuple(EIGHT if self.diagonal else FOUR)

    def noise(self, s: Any, a: Any) -> Any:
        return self.regions[s[1]]

    def outcomes(self, z: Any) -> Iterable[int]:
        return range(self.strongest + 1)

    def land(self, s: Any, a: Any, w: Any) -> tuple[float, tuple[int, int]]:
        up, right = EIGHT[a]
        row, column = s[0] + up + w, s[1] + right
        return -1.0, (min(max(row, 0), self.rows - 1), min(max(column, 0), len(self.regions) - 1))

    def feature_label(self, z: Any) -> str:
        return f"wind in region {z}"


@options_of(Wind)
def wind(
    *,
    strengths: Sequence[int] = (0, 1, 2),
    gusts: bool = True,
    log: str | None = None,
    **options: Any,
) -> Problem[Wind]:
    """The windy grid; region i has wind of strength strengths[i].

    With `gusts` it is one more or one less with probability 1/3 each. A calm region (strength 0)
    has no gusts. The other options are the fields of `Wind`. `log`: a CSV file of (z, x') =
    (region, gust).
    """
    model = Wind(**options)
    regions = range(len(strengths))
    findings = []
    if not all(
        isinstance(mean, int) and 0 <= mean + (gusts and mean > 0) <= model.strongest
        for mean in strengths
    ):
        findings.append(
            f"wind(strengths={strengths!r}): expected whole numbers from 0, "
            f"with gusts at most strongest={model.strongest}"
        )
    if not set(model.regions) <= set(regions):
        findings.append(
            f"wind(regions={model.regions!r}): expected indices of strengths={strengths!r}"
        )
    for name, (row, column) in (("first", model.first), ("goal", model.goal)):
        if not (0 <= row < model.rows and 0 <= column < len(model.regions)):
            findings.append(
                f"wind({name}={(row, column)}): "
                f"expected a cell of the {model.rows} x {len(model.regions)} grid"
            )
    if findings:
        raise pkd.ModelError(findings)
    law = {
        z: dict.fromkeys((mean - 1, mean, mean + 1), 1 / 3) if gusts and mean else {mean: 1.0}
        for z, mean in enumerate(strengths)
    }
    return Problem("wind", model, law, picture).fit(log)


def picture(problem: Problem[Wind], plan: pkd.Plan, ax: Axes) -> Axes:
    """The wind map: darker columns have more wind, arrows show the moves halfway through."""
    model, law = problem.model(), problem.law()
    mean = [
        sum(gust * p for gust, p in (law(z) if callable(law) else law[z]).items())
        for z in model.regions
    ]
    ax.imshow([mean] * model.rows, origin="lower", cmap="Blues", vmin=0, vmax=model.strongest + 1)
    for row in range(model.rows):
        for column in range(len(model.regions)):
            action = choose(plan, model.horizon // 2 + 1, None, (row, column))
            if action is not None:
                up, right = EIGHT[action]
                ax.arrow(
                    column - 0.3 * right,
                    row - 0.3 * up,
                    0.35 * right,
                    0.35 * up,
                    head_width=0.2,
                    color="black",
                )
    mark: dict[str, Any] = {"ha": "center", "va": "center", "color": "red", "weight": "bold"}
    ax.text(model.first[1] - 0.3, model.first[0] + 0.3, "S", **mark)
    ax.text(model.goal[1], model.goal[0], "G", **mark)
    ax.set(xlabel="column", ylabel="row", title="Where to steer; the wind blows up")
    return ax
