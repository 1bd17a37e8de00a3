"""A crude bound on the delay.

The remark after Theorem 2 says that the actual delays matter, not the D_max that the learner is
told.

The delay is decided by the first action and stays: Delta is uniform on {0, 1, 2} in the start
state, which is never seen again, and 0 from then on. So no D_h exceeds 2, whatever bound the
learner is told. Three learners are told larger and larger bounds. The first knows the law of the
delay. The second knows it too, but shares its union bound evenly over all queues up to the told
length, so that each pays D log A where MVP-Delayed pays n log A for a queue of length n. The third
does not know the law, and is told a crude W as large as its crude D.

Where theory and measurement differ: with a known law the remark is exact, because queues that
cannot occur are never planned for and a queue's share depends on its own length: the runs are the
same to the last bit. With an unknown law the remark holds up to constants and logarithms only: the
crude W stands in every logarithm, and the learner has to see that long waits do not happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import pkd
from benchmarks.studies.measure import against, final_regrets, mean, ratio
from benchmarks.studies.report import Report, command_line, curve, from_zero, panels, sizes_as_ticks
from pkd_delay import KnownDelay, UnknownDelay
from pkd_delay.hindsight import DelayLaw
from pkd_delay.models.tables import random_mdp

STATES, ACTIONS, HORIZON, ACTUAL = 3, 2, 8, 2
# The theory's logarithm is where shares and W enter; practical constants have neither.
RULE = pkd.MVP()
LEARNERS = ("law known", "law known, even shares", "law unknown")
HEADERS = [
    "learner",
    "constants",
    "D told",
    "W told",
    "K",
    "seeds",
    "regret",
    "s.e.",
    "times that of the true D",
    "its s.e.",
]


@attrs.frozen
class Setting:
    told: Sequence[int] = (2, 3, 4, 5, 6, 7)
    episodes: int = 100_000
    seeds: int = 10


QUICK = Setting(told=(2, 3, 4), episodes=30_000, seeds=3)


class EvenShares(KnownDelay):
    """An even union bound: the same share for every queue of length 0 to the told bound + 1."""

    def queue_share(self, n: int) -> float:
        queues = sum(float(ACTIONS) ** length for length in range(self.max_delay + 2))
        return self.horizon / (self.horizon + 1) / queues


def base() -> pkd.TabularMDP:
    """A random MDP behind a start state of its own, which leads anywhere."""
    mdp = random_mdp(STATES, ACTIONS, HORIZON, successors=STATES, seed=0)
    transitions = np.zeros((STATES + 1, ACTIONS, STATES + 1))
    transitions[:STATES, :, :STATES] = mdp.transitions
    transitions[STATES, :, :STATES] = 1 / STATES
    rewards = np.vstack([mdp.rewards, np.zeros((1, ACTIONS))])
    return pkd.TabularMDP(transitions, rewards, HORIZON, start=STATES)


def inter_arrival(x: int, y: Any, a: int) -> dict[int, float]:
    """Delta is uniform on 0..ACTUAL in the start state and 0 everywhere else."""
    return dict.fromkeys(range(ACTUAL + 1), 1 / (ACTUAL + 1)) if x == STATES else {0: 1.0}


def study(setting: Setting) -> Report:
    mdp = base()
    figure, axes = panels(len(LEARNERS))
    rows: list[Sequence[Any]] = []
    lines = []
    for ax, learner in zip(axes, LEARNERS, strict=True):
        unknown = learner == "law unknown"
        samples = []
        for told in setting.told:
            model, law = made(learner, mdp, told)
            samples.append(final_regrets(model, law, setting.episodes, RULE, range(setting.seeds)))
            m, times = mean(samples[-1]), ratio(samples[-1], samples[0])
            waits = told if unknown else ACTUAL
            rows.append(
                [
                    learner,
                    RULE.label,
                    told,
                    waits,
                    setting.episodes,
                    setting.seeds,
                    m.value,
                    m.error,
                    times.value,
                    times.error,
                ]
            )
        curve(ax, setting.told, [mean(sample) for sample in samples], RULE.label)
        from_zero(ax)
        ax.set(title=learner)
        sizes_as_ticks(ax, setting.told)
        ax.set(
            xlabel=f"D told to the learner (no delay exceeds {ACTUAL})",
            ylabel=f"regret after {setting.episodes} episodes",
        )
        ax.legend(fontsize="small")
        lines.append(conclusion(learner, setting.told, samples))
    constants = {
        "problem": (
            f"random_mdp({STATES}, {ACTIONS}, {HORIZON}, {STATES}, seed 0) behind a start state "
            f"with Delta uniform on 0..{ACTUAL}, then Delta = 0"
        ),
        "seeds": f"0..{setting.seeds - 1}",
        "delta": 0.05,
        "replan": "doubling",
    }
    return Report(
        "crude_max_delay", "A crude bound on the delay", constants, HEADERS, rows, lines, figure
    )


def made(learner: str, mdp: pkd.TabularMDP, told: int) -> tuple[Any, Any]:
    """The compiled model of a learner that is told the bound, and the truth."""
    kind = EvenShares if learner == "law known, even shares" else KnownDelay
    model = mdp.model(support=True)  # so that it knows that the start state does not come back
    known = kind(model, inter_arrival, told)
    unknown = UnknownDelay(model, longest=told, max_delay=told)
    law = DelayLaw(mdp.law(), known.inter_arrival, known, unknown)
    # One engine for all bounds: the other one draws its random numbers in another order.
    return pkd.compile(unknown if learner == "law unknown" else known, large=False), law


def conclusion(learner: str, told: Sequence[int], samples: Sequence[Any]) -> str:
    """What the crudest bound costs."""
    apart = max(float(np.max(np.abs(sample - samples[0]))) for sample in samples)
    if apart == 0.0:
        return (
            f"{learner}: the regret of every seed is the same number for every bound from "
            f"{told[0]} to {told[-1]}."
        )
    times = ratio(samples[-1], samples[0])
    return (
        f"{learner}: told {told[-1]} in place of {told[0]}, the regret is {times} times that of "
        f"the true bound, which {against(times, 1.0, '1')}."
    )


if __name__ == "__main__":
    command_line(study, Setting(), QUICK, __doc__)
