"""The main job of `pkd demo`: a late autoscaler, learned by MVP-Delayed and by its rivals.

All agents act in the same delayed world and are measured by its exact optimum. The result is a
table, some sentences and a figure. The command line finds it in the entry-point group `pkd.demos`,
prints the first two and writes the third.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NoReturn

import attrs
import numpy as np

import pkd
from pkd_delay.autoscaler import autoscaler
from pkd_delay.process import Delayed
from pkd_delay.rivals import CountsPerState, IgnoringDelay, learn_ignoring_delay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from tqdm import tqdm

__all__ = ["Showcase", "autoscaler_demo"]

GOAL = 0.95  # of the optimum
# Episodes of the run with theory constants: it learns slowly, and is cheap.
LONG = 20_000
LONGEST_DELAY = 3  # of the panel with the price of each tick

KNOWN, UNKNOWN = "MVP-Delayed, known delay law", "MVP-Delayed, unknown delay law"
PRACTICAL, THEORY, NONE = "practical", "theory", "no bonus"
PER_STATE, IGNORING = "counts per augmented state", "ignores the delay, learns"
Curve = tuple[str, str]  # (agent, constants)
COMPARED: tuple[Curve, ...] = (
    (KNOWN, PRACTICAL),
    (UNKNOWN, PRACTICAL),
    (KNOWN, NONE),
    (KNOWN, THEORY),
    (UNKNOWN, THEORY),
    (PER_STATE, PRACTICAL),
    (IGNORING, PRACTICAL),
)
_LONGEST_FIRST = sorted(
    COMPARED, key=lambda curve: (PER_STATE, IGNORING, UNKNOWN, KNOWN).index(curve[0])
)
COLOURS: Mapping[Curve, str] = {
    (KNOWN, PRACTICAL): "tab:blue",
    (UNKNOWN, PRACTICAL): "tab:green",
    (PER_STATE, PRACTICAL): "tab:red",
    (IGNORING, PRACTICAL): "tab:orange",
    (KNOWN, THEORY): "tab:gray",
}


@attrs.frozen
class Showcase:
    """What a demonstration shows."""

    title: str
    headers: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: list[str]
    figure: Figure


@attrs.frozen
class Study:
    """All runs of the demonstration, and the exact values beside them."""

    episodes: int
    runs: Mapping[Curve, list[pkd.Run]]  # one run for each seed
    optimum: float
    ignoring: float  # exact value of the best plan for the undelayed base, in the delayed world
    # For constant delay 0, 1, ...: the optimum, and the value of ignoring the delay.
    price: list[tuple[float, float]]


def autoscaler_demo(
    *, episodes: int = 200, seeds: int = 5, progress: bool = False, workers: int | None = None
) -> Showcase:
    """Learns the autoscaler and compares.

    The run with theory constants and a known law has at least 20,000 episodes.

    workers: processes that share the runs; by default as many as the machine runs at once, and not
    more than four.
    """
    delayed = autoscaler()
    # The longest jobs first, so that no worker is left with one at the end.
    runs = [
        (curve, seed, max(episodes, LONG) if curve == (KNOWN, THEORY) else episodes)
        for curve in _LONGEST_FIRST
        for seed in range(seeds)
    ]
    jobs = [
        *((_find_price, delay) for delay in reversed(range(LONGEST_DELAY + 1))),
        (_find_ignoring,),
        *((_learn, *job) for job in runs),
    ]
    with _make_bar(progress, len(jobs)) as bar:
        bar.set_description("compiling and learning")
        count = min(4, pkd.workers.available()) if workers is None else workers
        found = pkd.workers.spread(operator.call, jobs, count, bar.update)
    prices, ignoring = found[LONGEST_DELAY::-1], found[LONGEST_DELAY + 1]
    learned = found[LONGEST_DELAY + 2 :]
    by_curve = {
        curve: [run for run, job in zip(learned, runs, strict=True) if job[0] == curve]
        for curve in COMPARED
    }
    study = Study(episodes, by_curve, by_curve[KNOWN, PRACTICAL][0].optimal_value, ignoring, prices)
    world = f"{delayed.base.horizon} ticks, delays of 0 to {delayed.max_delay} ticks"
    return Showcase(
        title=f"autoscaler: {world}; {episodes:,} episodes, {seeds} seed{'s' if seeds > 1 else ''}",
        headers=("agent", "constants", "return per episode", "regret", f"episodes to {GOAL:.0%}"),
        rows=_make_rows(study),
        notes=_write_notes(study),
        figure=_draw_figure(study),
    )


def _learn(curve: Curve, seed: int, episodes: int) -> pkd.Run:
    """One run of an agent, without its policy."""
    agent, constants = curve
    delayed = autoscaler()
    rule = {PRACTICAL: pkd.MVP.practical, THEORY: pkd.MVP, NONE: pkd.Greedy}[constants]()
    if agent == IGNORING:
        return learn_ignoring_delay(
            delayed, episodes, optimism=rule, seed=seed, compiled=_compile_world(KNOWN)[0]
        )
    return attrs.evolve(
        pkd.learn(*_compile_world(agent), episodes, optimism=rule, seed=seed), policy=None
    )


@cache
def _compile_world(agent: str) -> tuple[pkd.Compiled, pkd.Law]:
    """The compiled model that an agent learns on, and its law."""
    delayed = autoscaler()
    if agent == PER_STATE:
        per_state = CountsPerState(delayed.known())
        return pkd.compile(per_state, large=False), per_state.law(delayed.law())
    model = delayed.unknown() if agent == UNKNOWN else delayed.known()
    return pkd.compile(model, large=False), delayed.law()


def _find_price(delay: int) -> tuple[float, float]:
    """The optimum under a constant delay, and what an agent that ignores it gets."""
    late = Delayed.constant(autoscaler().problem, delay)
    # For the small engine, like everything else here: a first use should not wait until the other
    # engine is compiled, too.
    model, law = pkd.compile(late.known(), large=False), late.law()
    return pkd.plan(model, law).value, _evaluate_blind(late, model)


def _find_ignoring() -> float:
    """What an agent gets that knows the law of the load and ignores the delay."""
    return _evaluate_blind(autoscaler(), _compile_world(KNOWN)[0])


def _evaluate_blind(delayed: Delayed, compiled: pkd.Compiled) -> float:
    blind = IgnoringDelay(delayed, pkd.plan(delayed.base, delayed.base_law))
    return pkd.evaluate(compiled, delayed.law(), blind)


def _make_rows(study: Study) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("optimum", "", f"{study.optimum:.3f}", f"{0:.1f}", "")]
    for (agent, constants), runs in study.runs.items():
        regret = np.mean([run.regret[study.episodes - 1] for run in runs])
        value = f"{study.optimum - regret / study.episodes:.3f}"
        rows.append((agent, constants, value, f"{regret:.1f}", _label_episodes(runs)))
    loss = (study.optimum - study.ignoring) * study.episodes
    rows.append(
        ("ignores the delay, law known", "", f"{study.ignoring:.3f}", f"{loss:.1f}", "never")
    )
    return rows


def _label_episodes(runs: list[pkd.Run]) -> str:
    """The median over seeds of the episode from which all policies are good enough."""
    reached = [run.episodes_to(GOAL, baseline=0.0) for run in runs]
    found = sorted(np.inf if episode is None else episode for episode in reached)
    middle = found[len(found) // 2]
    return f"{middle:,.0f}" if np.isfinite(middle) else f"> {len(runs[0].returns):,}"


def _write_notes(study: Study) -> list[str]:
    current, long = study.price[0][0], len(study.runs[KNOWN, THEORY][0].returns)
    delay, ignorance = 1 - study.optimum / current, 1 - study.ignoring / current
    return [
        (
            f"Without delay the optimum is {current:.3f}. These delays cost {delay:.1%} of it; "
            f"ignoring them costs {ignorance:.1%}."
        ),
        (
            f"Regret is that of the first {study.episodes:,} episodes; "
            f"episodes to {GOAL:.0%} of the optimum: median over seeds."
        ),
        (
            "Theory constants guarantee optimism and pay for it: with a known delay law that run "
            f"was continued to {long:,} episodes."
        ),
        (
            "Practical constants promise nothing. The load does not depend on what is done, so "
            "here even a learner without bonus sees enough."
        ),
    ]


def _draw_figure(study: Study) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 5.2), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(5, 5, 4))
    for curve, colour in COLOURS.items():
        runs = study.runs[curve]
        k = np.unique(np.geomspace(1, len(runs[0].returns), 400).astype(int)) - 1
        name = f"{curve[0]}: {curve[1]} constants"
        _draw_band(left, k, [run.regret[k] for run in runs], colour, name)
        _draw_band(middle, k, [run.policy_values[k] for run in runs], colour)
        if curve[0] in (KNOWN, UNKNOWN):
            upper = np.mean([run.upper_values[k] for run in runs], axis=0)
            middle.plot(k + 1, upper, color=colour, linestyle="--", linewidth=1)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="episode",
        ylabel="cumulative regret",
        title="Regret against the exact optimum",
    )
    middle.axhline(
        study.optimum, color="black", linestyle=":", linewidth=1.2, label="exact optimum"
    )
    middle.plot([], [], color="black", linestyle="--", linewidth=1, label="upper value of a plan")
    middle.plot([], [], color="black", label="exact value of its policy")
    lowest = min(run.policy_values.min() for runs in study.runs.values() for run in runs)
    middle.set(
        xscale="log",
        xlabel="episode",
        ylabel="return of an episode",
        title="What plans believe, what they are worth",
    )
    middle.set_ylim(lowest - 0.5, study.optimum + 1.2 * (study.optimum - lowest))
    middle.legend(loc="upper right", frameon=False, fontsize="small")
    _draw_price(right, study)
    seeds = len(study.runs[KNOWN, PRACTICAL])
    figure.suptitle(
        f"An autoscaler whose metrics come 0 to 3 ticks late: mean over {seeds} seeds, "
        "bands from the lowest to the highest"
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def _draw_band(
    ax: Axes, k: np.ndarray, curves: Iterable[np.ndarray], colour: str, label: str | None = None
) -> None:
    table = np.array(list(curves))
    ax.plot(k + 1, table.mean(axis=0), color=colour, label=label)
    ax.fill_between(
        k + 1, table.min(axis=0), table.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def _draw_price(ax: Axes, study: Study) -> None:
    best, blind = np.array(study.price).T
    ticks = np.arange(len(best))
    ax.plot(ticks, best, "o-", color="black", label="optimum, and its change per tick")
    ax.plot(ticks, blind, "s-", color="tab:orange", label="ignores the delay, law known")
    for tick in ticks[1:]:
        ax.annotate(
            f"{best[tick] - best[tick - 1]:.2f}",
            (tick, best[tick]),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
        )
    ax.set(
        xlabel="constant delay in ticks",
        ylabel="return of an episode",
        title="The price of each tick of delay",
        xticks=ticks,
    )
    ax.margins(x=0.08, y=0.12)
    ax.legend(loc="lower left", frameon=False, fontsize="small")


def _make_bar(wanted: bool, total: int) -> tqdm[NoReturn]:
    from tqdm import tqdm

    return tqdm(total=total, disable=not wanted, leave=False)
