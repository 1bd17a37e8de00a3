"""The growth of regret with |Z| at fixed S A, and with S A at fixed |Z|.

The bound has |Z| and no S A.

The problems are boards: in state s action a pays a known reward and moves to a known state f(s, a,
w), all drawn at random; only the law of w in {0, 1, 2} is unknown. It depends on the group of (s,
a). In the first part the board has two laws and stays the same, while the learner is told less and
less: each group is cut into equal parts, of which it does not know that they share a law. In the
second part there are always four groups, and the board grows. Each seed draws its own board.

Where theory and measurement differ: the leading term of the bound is sqrt(|Z| K), but on one board
regret is mostly what it takes to see each feature often enough, the bound's second term, which is
linear in |Z|. So the slope is expected near 1 rather than 1/2, and smaller once |Z| is so large
that K episodes do not suffice and regret stops at that of an agent that has learned nothing. That
S A does not matter holds up to a logarithm (|Y|) and up to the board itself: a larger board is a
different problem with other gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import pkd
from benchmarks.studies.measure import against, mean, rising, slope
from benchmarks.studies.report import Report, command_line, curve, panels, sizes_as_ticks
from pkd_delay.theory.studied import ACTIONS, NOISES, Board

HORIZON = 6
LAWS_OF_FIRST, GROUPS_OF_SECOND = 2, 4
PARTS = ("|Z| grows", "S A grows")
HEADERS = [
    "part",
    "constants",
    "S A",
    "|Z|",
    "K",
    "seeds",
    "regret",
    "s.e.",
    "slope from the size before",
]


@attrs.frozen
class Setting:
    states: int = 32  # of the first part
    features: Sequence[int] = (2, 4, 8, 16, 32, 64)
    boards: Sequence[int] = (4, 8, 16, 32, 64, 128)  # S of the second part
    episodes: Mapping[str, int] = attrs.field(
        factory=lambda: {"practical": 20_000, "theory": 100_000}
    )
    seeds: int = 30


QUICK = Setting(
    states=16,
    features=(2, 8, 32),
    boards=(4, 16, 64),
    episodes={"practical": 5_000, "theory": 50_000},
    seeds=5,
)
RULES = {"practical": pkd.MVP.practical(), "theory": pkd.MVP()}


def study(setting: Setting) -> Report:
    figure, axes = panels(2)
    rows: list[Sequence[Any]] = []
    lines = []
    parts = {
        PARTS[0]: [
            (z, (setting.states, LAWS_OF_FIRST, z // LAWS_OF_FIRST)) for z in setting.features
        ],
        PARTS[1]: [(ACTIONS * s, (s, GROUPS_OF_SECOND, 1)) for s in setting.boards],
    }
    for ax, (part, points) in zip(axes, parts.items(), strict=True):
        sizes = [size for size, _ in points]
        for name, rule in RULES.items():
            episodes = setting.episodes[name]
            samples = [regrets(shape, episodes, rule, setting.seeds) for _, shape in points]
            means = [mean(sample) for sample in samples]
            for (_, (s, groups, cut)), m, local in zip(
                points, means, rising(sizes, samples), strict=True
            ):
                rows.append(
                    [
                        part,
                        name,
                        ACTIONS * s,
                        groups * cut,
                        episodes,
                        setting.seeds,
                        m.value,
                        m.error,
                        local,
                    ]
                )
            found = slope(sizes, samples)
            curve(ax, sizes, means, f"{rule.label}, K = {episodes}: slope {found.value:.2f}")
            predicted, words = (
                (0.5, "the 1/2 of the leading term") if part == PARTS[0] else (0.0, "0")
            )
            lines.append(
                f"{part}, {name} constants, K = {episodes}: the slope is {found}, which "
                f"{against(found, predicted, words)}."
            )
        ax.set(xscale="log", yscale="log", title=part)
        sizes_as_ticks(ax, sizes)
        ax.set(
            xlabel=part.removesuffix(" grows"), ylabel="regret, mean of the seeds, bars of two s.e."
        )
        ax.legend(fontsize="small")
    constants = {
        "boards": f"H = {HORIZON}, A = {ACTIONS}, {NOISES} noises",
        "|Z| grows": f"S = {setting.states}, {LAWS_OF_FIRST} true laws",
        "S A grows": f"|Z| = {GROUPS_OF_SECOND}",
        "seeds": f"0..{setting.seeds - 1}, each with its own board",
        "delta": 0.05,
        "replan": "doubling",
    }
    lines.append(
        "Slopes in |Z| above 1/2 belong to the term of the bound that is linear in |Z|: on one "
        "board with its gaps, regret is mostly the price of seeing every feature often enough. "
        "Where the slope falls at the right end, K is too small to learn so many features."
    )
    lines.append(
        "A slope in S A other than 0 is not the price of learning more laws: |Z| is the same. It "
        "is the boards that differ, and for the constants of the theory log |Y| as well."
    )
    return Report(
        "feature_sharing",
        "Regret against |Z| and against S A",
        constants,
        HEADERS,
        rows,
        lines,
        figure,
    )


def regrets(shape: tuple[int, int, int], episodes: int, rule: Any, seeds: int) -> Any:
    """The regret of each seed on its own board."""
    boards = [Board(*shape, seed, HORIZON) for seed in range(seeds)]
    found = [
        pkd.learn(board, board.find_law, episodes, optimism=rule, seed=seed)
        for seed, board in enumerate(boards)
    ]
    return np.array([run.regret[-1] for run in found])


if __name__ == "__main__":
    command_line(study, Setting(), QUICK, __doc__)
