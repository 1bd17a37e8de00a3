"""`pkd demo`: a late autoscaler with a spot replica, learned under several rules.

The runs are small experiments in one delayed world, measured by its exact optimum. `run_study`
makes them; the other functions show them as a table, as sentences and as a figure.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

import pkd
from pkd.experiments import rivals
from pkd_delay.delayed import Delayed
from pkd_delay.models.autoscaler import spot_autoscaler
from pkd_delay.rivals import IgnoreDelay
from pkd_delay.transforms.blind import Blind

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pkd.engine import Compiled

__all__ = ["HEADERS", "Study", "draw_study", "make_rows", "make_title", "run_study", "write_notes"]

DELTA = 0.05
GOAL = 0.95  # of the optimum
HEADERS = ("agent", "rule", "return per episode", "regret", f"episodes to {GOAL:.0%}")
# Episodes of two runs that show what takes long: plans get rarer, so they are cheap.
LONG = 50_000
LONGEST_DELAY = 3  # of the panel with the price of each tick
# Some count of a state's own doubles in every episode, so "doubling" would plan before each.
SELDOM = pkd.Replan(features=None, growth=1.1)

KNOWN, UNKNOWN = "delay law known", "delay law unknown"
PER_STATE, IGNORING = "counts per augmented state", "ignores the delay"
CERTIFIED, EVERYWHERE = pkd.Certified(), pkd.Certified(explore="everywhere")
PRACTICAL, PUBLISHED, GREEDY = pkd.MVP.practical(), pkd.MVP(), pkd.Greedy()
Curve = tuple[str, pkd.Optimism]  # (agent, rule)
# Six colours of `pkd.show.plots` and two more; a test tells them apart for colour-blind readers.
COLOURS: Mapping[Curve, str] = {
    (KNOWN, CERTIFIED): "#0072B2",
    (UNKNOWN, CERTIFIED): "#56B4E9",
    (KNOWN, EVERYWHERE): "#882255",
    (KNOWN, PRACTICAL): "#009E73",
    (KNOWN, GREEDY): "#D55E00",
    (KNOWN, PUBLISHED): "#7F7F7F",
    (PER_STATE, PRACTICAL): "#CC79A7",
    (IGNORING, PRACTICAL): "#E69F00",
}


@attrs.frozen
class AgentProblem:
    """The problem that an agent learns, for the engine of small models, which compiles quickly.

    Its name is all that another process needs to make it.
    """

    agent: str

    def model(self) -> Compiled:
        return _compile_problem(self.agent)

    def law(self) -> pkd.Law:
        model, law = _compile_problem(self.agent).model, spot_autoscaler().law()
        return model.law(law) if isinstance(model, rivals.CountsPerState) else law


@cache
def _compile_problem(agent: str) -> Compiled:
    delayed = spot_autoscaler()
    model: Any = delayed.unknown() if agent == UNKNOWN else delayed.known()
    if agent == PER_STATE:
        model = rivals.CountsPerState(model)
    return pkd.compile(model, large=False)


# What is run: the agent, its rules, whether for long, and when it plans anew.
RUNS: tuple[tuple[str, tuple[pkd.Optimism, ...], bool, Any], ...] = (
    (KNOWN, (CERTIFIED, PUBLISHED), True, "doubling"),
    (KNOWN, (EVERYWHERE, PRACTICAL, GREEDY), False, "doubling"),
    (UNKNOWN, (CERTIFIED,), False, "doubling"),
    (PER_STATE, (PRACTICAL,), False, SELDOM),
    (IGNORING, (PRACTICAL,), False, "doubling"),
)


@attrs.frozen
class Study:
    """All runs of the demonstration, and the exact values beside them."""

    episodes: int
    runs: Mapping[Curve, list[pkd.Run]]  # one run for each seed
    world: tuple[float, float]  # the optimum, and the value of ignoring the delay
    price: list[tuple[float, float]]  # the same for constant delays of 0, 1, ... ticks
    unexplored: float  # of the best plan for a spot replica that is kept half of the time

    def find_ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Per episode the lowest certified lower and the highest upper value of all seeds."""
        runs = self.runs[KNOWN, CERTIFIED]
        lower = [run.lower_values for run in runs if run.lower_values is not None]
        return np.min(lower, axis=0), np.max([run.upper_values for run in runs], axis=0)


def run_study(
    episodes: int, seeds: int, *, progress: bool = False, workers: int | None = None
) -> Study:
    """Runs every agent with every seed, and finds the exact values.

    With a known delay law, the certified run and the one as published have at least 50,000
    episodes. workers: processes that share the runs; by default as many as the machine runs at
    once, and not more than four.
    """
    count = min(4, pkd.workers.available()) if workers is None else workers
    runs: dict[Curve, list[pkd.Run]] = {}
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        for agent, rules, long, replan in RUNS:
            # A model that takes long to compile stays in this process.
            shared = pool if count > 1 and agent != PER_STATE else 1
            found = pkd.experiment(
                {agent: AgentProblem(agent)},
                {rule.label: _find_player(agent, rule) for rule in rules},
                max(episodes, LONG) if long else episodes, seeds,
                delta=DELTA, replan=replan, workers=shared, progress=progress,
            )  # fmt: skip
            runs |= {(agent, rule): found.runs(agent, rule.label) for rule in rules}
    problem, world = spot_autoscaler().problem, AgentProblem(KNOWN)
    pessimist = pkd.plan(world.model(), spot_autoscaler(kept=0.5).law())
    return Study(
        episodes,
        {curve: runs[curve] for curve in COLOURS},
        world=_find_price(spot_autoscaler()),
        price=[_find_price(Delayed.constant(problem, d)) for d in range(LONGEST_DELAY + 1)],
        unexplored=float(pkd.evaluate(world.model(), world.law(), pessimist)),
    )


def _find_price(late: Delayed) -> tuple[float, float]:
    """The optimum under a delay, and what an agent that knows all laws and ignores it gets."""
    model, law = late.known(), late.law()
    blind = Blind(model, pkd.plan(late.base, late.base_law))
    compiled = pkd.compile(model, large=False)
    return pkd.plan(compiled, law).value, float(pkd.evaluate(compiled, law, blind))


def _find_player(agent: str, rule: pkd.Optimism) -> pkd.Agent | pkd.Optimism:
    """What plays: a rule in the world of its agent, or an agent that learns by this rule."""
    return IgnoreDelay(optimism=rule, delta=DELTA) if agent == IGNORING else rule


def make_title(study: Study) -> str:
    """What was run."""
    delayed, seeds = spot_autoscaler(), len(study.runs[KNOWN, CERTIFIED])
    return (
        f"autoscaler with a spot replica: {delayed.base.horizon} ticks, delays of 0 to "
        f"{delayed.max_delay} ticks; {study.episodes:,} episodes, {seeds} seed{'s' * (seeds > 1)}"
    )


def make_rows(study: Study) -> list[tuple[str, ...]]:
    """The table under `HEADERS`: the optimum, every agent, and who ignores the delay for ever."""
    (optimum, blind), K = study.world, study.episodes
    rows: list[tuple[str, ...]] = [("optimum", "", f"{optimum:.3f}", f"{0:.1f}", "")]
    for (agent, rule), runs in study.runs.items():
        regret = np.mean([run.regret[K - 1] for run in runs])
        value = f"{optimum - regret / K:.3f}"
        rows.append((agent, rule.label, value, f"{regret:.1f}", _label_episodes(runs)))
    loss = (optimum - blind) * K
    return [*rows, (IGNORING, "knows all laws", f"{blind:.3f}", f"{loss:.1f}", "never")]


def _label_episodes(runs: list[pkd.Run]) -> str:
    """The median over seeds of the episode from which all policies are good enough."""
    reached = [run.episodes_to(GOAL, baseline=0.0) for run in runs]
    middle = statistics.median(np.inf if episode is None else episode for episode in reached)
    if not np.isfinite(middle):
        return f"> {len(runs[0].returns):,}"
    return f"{middle:,.1f}".removesuffix(".0")


def write_notes(study: Study) -> list[str]:
    """The sentences below the table."""
    greedy, (low, high), K = study.runs[KNOWN, GREEDY], study.find_ends(), study.episodes
    lost = {
        rule: np.mean([run.regret[K - 1] for run in study.runs[KNOWN, rule]])
        for rule in (CERTIFIED, EVERYWHERE, PRACTICAL)
    }
    heart = (
        "The load comes whatever is done; only the spot replica must be tried. Certified knows "
        f"that from the model and loses {lost[CERTIFIED]:.1f} in {K:,} episodes, "
        f"{lost[EVERYWHERE]:.1f} if it explores everywhere; practical constants lose "
        f"{lost[PRACTICAL]:.1f} and guarantee nothing."
    )
    (optimum, blind), (prompt, _), long = study.world, study.price[0], len(low)
    delay, ignorance = 1 - optimum / prompt, 1 - blind / prompt
    best = max(run.policy_values.max() for run in greedy)
    regret = (
        f"Regret is that of the first {K:,} episodes; episodes to {GOAL:.0%} of the optimum: "
        "median over seeds. As published and certified with a known delay law were continued to "
        f"{long:,} episodes."
    )
    price = (
        f"Without delay the optimum is {prompt:.3f}. These delays cost {delay:.1%} of it; "
        f"ignoring them costs {ignorance:.1%}."
    )
    certified = (
        f"After {K:,} episodes it is certified, with probability {1 - DELTA:.0%}, that the optimum "
        f"lies in [{low[K - 1]:.2f}, {high[K - 1]:.2f}]; after {long:,} in [{low[-1]:.2f}, "
        f"{high[-1]:.2f}] (the widest interval of all seeds)."
    )
    unseen = (
        "Without data Greedy expects to lose the spot replica at every second tick. At that rate "
        f"it does not pay, so Greedy never looks: the best plan of its {len(greedy)} runs is worth "
        f"{best:.3f}. Its limit is {study.unexplored:.3f}, {1 - study.unexplored / optimum:.1%} "
        "below the optimum."
    )
    return [heart, regret, price, certified, unseen]


def draw_study(study: Study) -> Figure:
    """Regret, the certified interval of the optimum, the price of a tick; one legend below.

    Each seed is one thin line, and their mean is a thick one. A few seeds have no band: a range
    from the lowest to the highest would only say how many there are.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 5.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(5, 5, 4))
    for (agent, rule), runs in study.runs.items():
        dashes = "--" if agent == PER_STATE else "-"  # it lies on another curve for a while
        curves = [run.regret for run in runs]
        _draw_seeds(left, curves, COLOURS[agent, rule], f"{rule.label}; {agent}", dashes)
    title = "Regret against the exact optimum"
    left.set(xscale="log", yscale="log", xlabel="episode", ylabel="cumulative regret", title=title)
    _draw_interval(middle, study)
    _draw_price(right, study)
    seeds = len(study.runs[KNOWN, CERTIFIED])
    lines = "one seed" if seeds == 1 else f"{seeds} seeds: a thin line each, their mean thick"
    figure.suptitle(
        f"An autoscaler with a spot replica, and with metrics that come 0 to 3 ticks late ({lines})"
    )
    handles = left.get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_interval(ax: Axes, study: Study) -> None:
    """The certified interval of the optimum, the optimum, and what two policies are worth."""
    low, high = study.find_ends()
    k = _choose_episodes(len(low))
    ax.fill_between(
        k + 1, low[k], high[k], color=COLOURS[KNOWN, CERTIFIED], alpha=0.15, linewidth=0,
        step="post", label=f"certified with {1 - DELTA:.0%}",
    )  # fmt: skip
    label = "exact optimum"
    ax.axhline(study.world[0], color="black", linestyle=":", linewidth=1.5, label=label)
    for rule, words in ((CERTIFIED, "certified"), (GREEDY, "Greedy")):
        values = [run.policy_values for run in study.runs[KNOWN, rule]]
        label = f"exact value of the policy, {words}"
        _draw_seeds(ax, values, COLOURS[KNOWN, rule], label)
    ax.set(xscale="log", xlabel="episode", ylabel="return of an episode",
           title="Certified interval of the optimum")  # fmt: skip
    ax.legend(loc="upper right", frameon=False, fontsize="small")


def _draw_seeds(
    ax: Axes, curves: list[np.ndarray], colour: str, label: str, dashes: str = "-"
) -> None:
    """A thin line for each seed, and a thick one for their mean."""
    k = _choose_episodes(len(curves[0]))
    table = np.array(curves)[:, k]
    ax.plot(k + 1, table.mean(axis=0), color=colour, label=label, linestyle=dashes, linewidth=1.8)
    if len(table) > 1:
        ax.plot(k + 1, table.T, color=colour, linewidth=0.5, alpha=0.7)


def _choose_episodes(count: int) -> np.ndarray:
    """Some of 0, ..., count - 1, evenly on a logarithmic axis."""
    return np.unique(np.geomspace(1, count, 400).astype(int)) - 1


def _draw_price(ax: Axes, study: Study) -> None:
    best, blind = np.array(study.price).T
    ticks = np.arange(len(best))
    ax.plot(ticks, best, "o-", color="black", label="optimum, and its change per tick")
    colour = COLOURS[IGNORING, PRACTICAL]
    ax.plot(ticks, blind, "s-", color=colour, label="ignores the delay")
    for tick in ticks[1:]:
        change, at = f"{best[tick] - best[tick - 1]:.2f}", (tick, best[tick])
        ax.annotate(change, at, xytext=(5, 6), textcoords="offset points")
    ax.set(xlabel="constant delay in ticks", ylabel="return of an episode",
           title="The price of each tick of delay", xticks=ticks)  # fmt: skip
    ax.margins(x=0.3, y=0.18)
    ax.legend(loc="lower left", frameon=False, fontsize="small")
