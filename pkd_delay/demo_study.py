"""The runs of `pkd demo`: which agents learn under which rules, and the exact values beside them.

Every run and every exact value is a job of its own, so that several processes can share them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import attrs
import numpy as np

import pkd
from pkd_delay.autoscaler import spot_autoscaler
from pkd_delay.blind import Blind
from pkd_delay.process import Delayed
from pkd_delay.rivals import CountsPerState, learn_ignoring_delay

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["Curve", "Study", "find_ends", "run_study"]

DELTA = 0.05
# Episodes of two runs that show what takes long: plans get rarer, so they are cheap.
LONG = 50_000
LONGEST_DELAY = 3  # of the panel with the price of each tick

KNOWN, UNKNOWN = "delay law known", "delay law unknown"
PER_STATE, IGNORING = "counts per augmented state", "ignores the delay"
CERTIFIED, PRACTICAL, PUBLISHED, GREEDY = (
    pkd.Certified(), pkd.MVP.practical(), pkd.MVP(), pkd.Greedy(),
)  # fmt: skip
Curve = tuple[str, pkd.Optimism]  # (agent, rule)
CURVES: tuple[Curve, ...] = (
    (KNOWN, CERTIFIED),
    (UNKNOWN, CERTIFIED),
    (KNOWN, PRACTICAL),
    (KNOWN, GREEDY),
    (KNOWN, PUBLISHED),
    (PER_STATE, PRACTICAL),
    (IGNORING, PRACTICAL),
)
LONG_RUNS = ((KNOWN, CERTIFIED), (KNOWN, PUBLISHED))
# Some count of its own doubles in every episode, so "doubling" would plan before each.
_SELDOM = pkd.Replan(features=None, growth=1.1)


@attrs.frozen
class Study:
    """All runs of the demonstration, and the exact values beside them."""

    episodes: int
    runs: Mapping[Curve, list[pkd.Run]]  # one run for each seed
    optimum: float
    ignoring: float  # exact value of the best plan for the undelayed base, in the delayed world
    unexplored: float  # exact value of the best plan for a spot replica that is kept half the time
    # For constant delay 0, 1, ...: the optimum, and the value of ignoring the delay.
    price: list[tuple[float, float]]

    def interval(self, k: int) -> tuple[float, float]:
        """What is certified of the optimum in episode k: the widest interval of all seeds."""
        low, high = find_ends(self.runs[KNOWN, CERTIFIED])
        return float(low[k - 1]), float(high[k - 1])


def run_study(episodes: int, seeds: int, *, progress: bool, workers: int | None) -> Study:
    """Runs every agent with every seed, and finds the exact values."""
    # One worker begins with the kernels of the certified rule and compiles them while the others
    # compile the rest. Short jobs come last, so that all workers end together.
    first, *others = (
        (_learn, curve, seed, max(episodes, LONG) if curve in LONG_RUNS else episodes)
        for curve in CURVES
        for seed in range(seeds)
    )
    price = [(_find_price, delay) for delay in range(LONGEST_DELAY + 1)]
    jobs = [first, *price[::-1], *others[::-1], (_find_ignoring,), (_find_unexplored,)]
    with _make_bar(progress, len(jobs)) as bar:
        bar.set_description("compiling and learning")
        count = min(4, pkd.workers.available()) if workers is None else workers
        found = pkd.workers.spread(operator.call, jobs, count, bar.update)
    results = dict(zip(jobs, found, strict=True))
    runs = {
        curve: [results[job] for job in (first, *others) if job[1] == curve] for curve in CURVES
    }
    return Study(
        episodes,
        runs,
        optimum=results[first].optimal_value,
        ignoring=results[_find_ignoring,],
        unexplored=results[_find_unexplored,],
        price=[results[job] for job in price],
    )


def find_ends(runs: list[pkd.Run]) -> tuple[np.ndarray, np.ndarray]:
    """Per episode the lowest certified lower and the highest upper value of all runs."""
    lowers = [run.lower_values for run in runs if run.lower_values is not None]
    return np.min(lowers, axis=0), np.max([run.upper_values for run in runs], axis=0)


def _learn(curve: Curve, seed: int, episodes: int) -> pkd.Run:
    """One run of an agent, without its plans."""
    agent, rule = curve
    if agent == IGNORING:
        return learn_ignoring_delay(
            spot_autoscaler(), episodes, optimism=rule, delta=DELTA, seed=seed,
            compiled=_compile_world(KNOWN)[0],
        )  # fmt: skip
    run = pkd.learn(
        *_compile_world(agent), episodes, optimism=rule, delta=DELTA, seed=seed,
        replan=_SELDOM if agent == PER_STATE else "doubling",
    )  # fmt: skip
    return attrs.evolve(run, policy=None, interval=None)


@cache
def _compile_world(agent: str) -> tuple[pkd.Compiled, pkd.Law]:
    """The compiled model that an agent learns on, and its law."""
    delayed = spot_autoscaler()
    if agent == PER_STATE:
        per_state = CountsPerState(delayed.known())
        return pkd.compile(per_state, large=False), per_state.law(delayed.law())
    model = delayed.unknown() if agent == UNKNOWN else delayed.known()
    return pkd.compile(model, large=False), delayed.law()


def _find_price(delay: int) -> tuple[float, float]:
    """The optimum under a constant delay, and what an agent that ignores it gets."""
    late = Delayed.constant(spot_autoscaler().problem, delay)
    # For the small engine, like everything else here: a first use should not wait until the other
    # engine is compiled, too.
    model, law = pkd.compile(late.known(), large=False), late.law()
    return pkd.plan(model, law).value, _evaluate_blind(late, model)


def _find_ignoring() -> float:
    """What an agent gets that knows all laws and ignores the delay."""
    return _evaluate_blind(spot_autoscaler(), _compile_world(KNOWN)[0])


def _evaluate_blind(delayed: Delayed, compiled: pkd.Compiled) -> float:
    blind = Blind(delayed.known(), pkd.plan(delayed.base, delayed.base_law))
    return pkd.evaluate(compiled, delayed.law(), blind)


def _find_unexplored() -> float:
    """What an agent gets that knows the load, and believes of spot what Greedy does without data.

    That is the uniform law.
    """
    compiled, law = _compile_world(KNOWN)
    return pkd.evaluate(compiled, law, pkd.plan(compiled, spot_autoscaler(kept=0.5).law()))


def _make_bar(wanted: bool, total: int) -> tqdm[NoReturn]:
    from tqdm import tqdm

    return tqdm(total=total, disable=not wanted, leave=False)
