"""The growth of regret with D on the hard instances of Theorem 3.

MVP-Delayed is compared with an agent that counts per augmented state.

The sizes meet the theorem's conditions: S = 52 gives a tree with 16 pairs (leaf, action), each with
a code of D~ = D digits behind it, H = 32, A = 2, B = 2 D. Every seed draws an instance from the
proof's prior (degree 2) with one better pair, and runs it. The scale of the codes is the proof's,
eps = sqrt(D S A log D / (96 K)), or a multiple of it. MVP-Delayed counts per (s, a); the naive
agent runs the same rule with the same constants on the same augmented MDP, but counts per (s,
queue), so that A^D queues learn apart what is one law.

Where theory and measurement differ: at the proof's own scale the pairs can hardly be told apart, by
design. Both agents then lose nearly what choosing at random loses, and this grows with D because
eps does: the shape of the lower bound, but no difference between agents. Only a multiple of eps
shows what sharing the counts is worth. The growth is that of eps, sqrt(D log D); the bound grows
like sqrt(D / log D), because the proof also matches more moments as D grows, which costs a factor
log D of the gap; here the degree stays 2. The bound is far below every measurement because of its
constants, and is proved only for D~ above 2.8 million; here it is a formula. The agents also have
to learn the tree; the proof counts only the codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import numpy as np

import pkd
from benchmarks.studies.measure import Estimate, against, mean, ratio, slope
from benchmarks.studies.report import Report, command_line, curve, panels, sizes_as_ticks
from pkd_delay.theory.hard import HardInstance, InstancePrior, lower_bound

STATES, ACTIONS, HORIZON, DEGREE = 52, 2, 32, 2
AGENTS = ("MVP-Delayed", "naive")
HEADERS = [
    "eps / proof",
    "agent",
    "D",
    "seeds",
    "eps",
    "gap",
    "features",
    "regret",
    "s.e.",
    "share of choosing at random",
    "lower bound",
]


@attrs.frozen
class Setting:
    delays: Sequence[int] = (2, 3, 4, 5)
    naive_up_to: int = 4  # its plans and its features grow like A^D
    multiples: Sequence[int] = (1, 18)
    episodes: int = 3_000
    seeds: int = 30


QUICK = Setting(delays=(2, 3), naive_up_to=3, episodes=2_000, multiples=(1, 16), seeds=5)


class PerAugmentedState(pkd.PartiallyKnownMDP):
    """A delayed model that does not share laws between queues: z = (z of the model, y)."""

    def __init__(self, model: pkd.PartiallyKnownMDP) -> None:
        self.model, self.horizon, self.return_range = model, model.horizon, model.return_range

    def start(self) -> Any:
        return self.model.start()

    def actions(self, x: Any, y: Any) -> Any:
        return self.model.actions(x, y)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return self.model.reward(x, y, a)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return self._apart(self.model.step(x, y, a), y)

    def last_step(self, x: Any, y: Any, a: Any) -> Any:
        return self._apart(self.model.last_step(x, y, a), y)

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.model.outcomes(z[0])

    def branching(self, z: Any) -> int:
        return self.model.branching(z[0])

    def _apart(self, branches: Iterable[Any], y: Any) -> list[Any]:
        return [(p, y_next, z if isinstance(z, pkd.Known) else (z, y)) for p, y_next, z in branches]


def study(setting: Setting) -> Report:
    figure, axes = panels(len(setting.multiples))
    rows: list[Sequence[Any]] = []
    lines = []
    for ax, multiple in zip(axes, setting.multiples, strict=True):
        regrets: dict[str, list[Any]] = {agent: [] for agent in AGENTS}
        nothing = []
        for delay in setting.delays:
            theorem = lower_bound(STATES, ACTIONS, HORIZON, delay, 2 * delay, setting.episodes)
            prior = InstancePrior(
                STATES, ACTIONS, HORIZON, delay, 2 * delay, multiple * theorem.scale, DEGREE
            )
            instances = [draw(prior, seed) for seed in range(setting.seeds)]
            nothing.append(
                setting.episodes
                * np.array([instance.optimal_value - at_random(instance) for instance in instances])
            )
            for agent in AGENTS[: 1 + (delay <= setting.naive_up_to)]:
                features, sample = runs(agent, instances, setting.episodes)
                regrets[agent].append(sample)
                share, m = ratio(sample, nothing[-1]), mean(sample)
                size = [setting.seeds, prior.scale, prior.gap, features]
                rows.append(
                    [multiple, agent, delay, *size, m.value, m.error, share.value, theorem.value]
                )
        for agent, samples in regrets.items():
            curve(ax, setting.delays[: len(samples)], [mean(sample) for sample in samples], agent)
        curve(
            ax,
            setting.delays,
            [mean(sample) for sample in nothing],
            "choosing at random",
            linestyle=":",
            color="0.6",
        )
        times = "the proof's eps" if multiple == 1 else f"{multiple} times the proof's eps"
        ax.set(xscale="log", yscale="log", title=times)
        ax.set(xlabel="D", ylabel=f"regret after {setting.episodes} episodes, bars of two s.e.")
        sizes_as_ticks(ax, setting.delays)
        ax.legend(fontsize="small")
        lines += conclusions(times, setting.delays, regrets, nothing)
    constants = {
        "sizes": f"S = {STATES}, A = {ACTIONS}, H = {HORIZON}, B = 2 D, D~ = D",
        "K": setting.episodes,
        "seeds": (
            f"0..{setting.seeds - 1}, each with its own instance (prior of degree {DEGREE}, the "
            "better pair drawn uniformly)"
        ),
        "constants": pkd.MVP.practical().label
        + " (c1 = 0.5, c2 = 0.25, log factor 1) for both agents",
        "replan": "doubling",
    }
    below = min(row[HEADERS.index("regret")] / row[HEADERS.index("lower bound")] for row in rows)
    lines.append(
        f"The formula of the lower bound is at least {below:.3g} times smaller than every mean "
        "regret here: its constant, 1/4608, is what the proof can show, and the theorem starts "
        "at a D~ of some millions."
    )
    return Report(
        "hard_instances",
        "Regret against D on hard instances",
        constants,
        HEADERS,
        rows,
        lines,
        figure,
    )


def draw(prior: InstancePrior, seed: int) -> HardInstance:
    """The instance of one seed, its better pair included."""
    pairs = prior.draw(seed).codes.shape[:2]
    leaf, action = np.random.default_rng([seed, 1]).integers(pairs)
    return prior.draw(seed, special=(int(leaf), int(action)))


def at_random(instance: HardInstance) -> float:
    """The value of random actions: each code is hit with probability 1/2, whatever theta is."""
    return float(instance.pay().mean() / 2)


def runs(agent: str, instances: Sequence[HardInstance], episodes: int) -> tuple[int, Any]:
    """The agent's number of features, and its regret on each instance, by seed.


    The models of all instances are the same, because a model does not hold its law; so one is
    compiled for all.
    """
    known = instances[0].delayed().known()
    compiled = pkd.compile(known if agent == "MVP-Delayed" else PerAugmentedState(known))
    sample = []
    for seed, instance in enumerate(instances):
        rows = instance.mdp().law()
        law = rows if agent == "MVP-Delayed" else lambda z, rows=rows: rows[z[0]]
        sample.append(
            pkd.learn(compiled, law, episodes, optimism=pkd.MVP.practical(), seed=seed).regret[-1]
        )
    return len(compiled.features), np.array(sample)


def conclusions(
    times: str, delays: Sequence[int], regrets: dict[str, list[Any]], nothing: Sequence[Any]
) -> list[str]:
    """The growth of each agent with D, and how far each is from choosing at random."""
    lines = []
    for agent, samples in regrets.items():
        here = delays[: len(samples)]
        grown = slope(here, samples) if len(samples) > 1 else Estimate(float("nan"), float("nan"))
        lost = slope(here, nothing[: len(samples)]) if len(samples) > 1 else grown
        share = ratio(samples[-1], nothing[len(samples) - 1])
        lines.append(
            f"{times}, {agent}: from D = {here[0]} to {here[-1]} regret grows like "
            f"D^{grown.value:.2f} (s.e. {grown.error:.1g}), choosing at random like "
            f"D^{lost.value:.2f}; at D = {here[-1]} its share of that regret is {share}, which "
            f"{against(share, 1.0, '1')}."
        )
    both = len(regrets["naive"])
    if both:
        apart = ratio(regrets["naive"][-1], regrets["MVP-Delayed"][both - 1])
        lines.append(
            f"{times}, D = {delays[both - 1]}: the naive agent has {apart} times the regret of "
            "MVP-Delayed."
        )
    return lines


if __name__ == "__main__":
    command_line(study, Setting(), QUICK, __doc__)
