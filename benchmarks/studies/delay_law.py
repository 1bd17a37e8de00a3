"""Known against unknown law of the delay: Theorem 2 adds H sqrt(W S A K) to the bound of Theorem 1.

One random MDP is delayed with inter-arrival times uniform on -1..W and D = 3, for several W. The
same learner is run once with the law of the delay given (`KnownDelay`) and once without
(`UnknownDelay`), which has W + 2 more features of two outcomes for each (s, a). The raw
inter-arrival times are shown at the end of an episode.

Where theory and measurement differ: in the theorem the extra term is of the same order in K as the
rest, and the ratio of the two explicit bounds is about the worst law and the worst problem. In a
run every step of an episode teaches one inter-arrival time, which counts for several arrivals at
once, and an error in them costs only as much as the plan depends on when the next state comes. On
one fixed problem the cost of an unknown law is mostly a longer burn-in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

import pkd
from benchmarks.studies.measure import against, final_regrets, mean, ratio
from benchmarks.studies.report import Report, command_line, curve, from_zero, panels, sizes_as_ticks
from pkd_delay import DelayedMDP, bounds
from pkd_delay.problems import random_mdp

STATES, ACTIONS, HORIZON, MAX_DELAY = 3, 2, 6, 3
RULES = {"practical": pkd.MVP.practical(), "theory": pkd.MVP()}
LAWS = ("known", "unknown")
HEADERS = [
    "constants",
    "W",
    "law",
    "features",
    "K",
    "seeds",
    "regret",
    "s.e.",
    "unknown / known",
    "its s.e.",
    "ratio of the bounds",
]


@attrs.frozen
class Setting:
    longest: Sequence[int] = (1, 2, 3)
    episodes: Mapping[str, int] = attrs.field(
        factory=lambda: {"practical": 20_000, "theory": 200_000}
    )
    seeds: int = 12


QUICK = Setting(longest=(1, 3), episodes={"practical": 5_000, "theory": 100_000}, seeds=4)


def problem(longest: int) -> DelayedMDP:
    """The random MDP with inter-arrival times uniform on -1..W."""
    mdp = random_mdp(STATES, ACTIONS, HORIZON, successors=3, seed=0)
    return DelayedMDP(mdp, dict.fromkeys(range(-1, longest + 1), 1 / (longest + 2)), MAX_DELAY)


def study(setting: Setting) -> Report:
    figure, axes = panels(len(RULES))
    rows: list[Sequence[Any]] = []
    lines = []
    for ax, (name, rule) in zip(axes, RULES.items(), strict=True):
        curves: dict[str, list[Any]] = {law: [] for law in LAWS}
        episodes = setting.episodes[name]
        for longest in setting.longest:
            delayed = problem(longest)
            models = {
                "known": pkd.compile(delayed.known()),
                "unknown": pkd.compile(delayed.unknown()),
            }
            sample = {
                law: final_regrets(models[law], delayed.law(), episodes, rule, range(setting.seeds))
                for law in LAWS
            }
            times = ratio(sample["unknown"], sample["known"])
            sizes = (STATES, ACTIONS, HORIZON, MAX_DELAY, longest, STATES, episodes)
            theorem = float(bounds.unknown_delay(*sizes) / bounds.known_delay(*sizes))
            for law in LAWS:
                m = mean(sample[law])
                curves[law].append(m)
                features = len(models[law].features)
                run = [episodes, setting.seeds, m.value, m.error]
                rows.append([name, longest, law, features, *run, times.value, times.error, theorem])
            lines.append(
                f"{name} constants, K = {episodes}, W = {longest}: an unknown law costs {times} "
                f"times the regret, which {against(times, 1.0, '1')}; the explicit bounds have a "
                f"ratio of {theorem:.3g}."
            )
        for law, means in curves.items():
            curve(ax, setting.longest, means, f"law {law}")
        from_zero(ax)
        ax.set(
            title=rule.label,
            xlabel="W, the largest inter-arrival time",
            ylabel=f"regret after {episodes} episodes",
        )
        sizes_as_ticks(ax, setting.longest)
        ax.legend(fontsize="small")
    constants = {
        "problem": (
            f"random_mdp({STATES}, {ACTIONS}, {HORIZON}, 3, seed 0), Delta uniform on -1..W, D = "
            f"{MAX_DELAY}"
        ),
        "seeds": f"0..{setting.seeds - 1}",
        "delta": 0.05,
        "replan": "doubling",
    }
    lines.append(
        "The ratio of the bounds is for the worst law and the worst problem. In a run all "
        "arrivals of a state and action are learned from the same inter-arrival times, and an "
        "error in them costs only as much as the plan depends on when the next state comes."
    )
    return Report(
        "delay_law",
        "Known against unknown law of the delay",
        constants,
        HEADERS,
        rows,
        lines,
        figure,
    )


if __name__ == "__main__":
    command_line(study, Setting(), QUICK, __doc__)
