"""The main job of `pkd demo`: a late autoscaler with a spot replica, learned under several rules.

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
from pkd_delay.autoscaler import KEPT, RECLAIMED, SPOT, spot_autoscaler
from pkd_delay.process import Delayed
from pkd_delay.rivals import CountsPerState, IgnoringDelay, learn_ignoring_delay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from tqdm import tqdm

__all__ = ["Showcase", "autoscaler_demo"]

GOAL = 0.95  # of the optimum
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
# Each with its colour, by Okabe and Ito: the eyes of all readers tell them apart.
COLOURS: Mapping[Curve, str] = {
    (KNOWN, CERTIFIED): "#0072B2",
    (UNKNOWN, CERTIFIED): "#56B4E9",
    (KNOWN, PRACTICAL): "#009E73",
    (KNOWN, GREEDY): "#D55E00",
    (KNOWN, PUBLISHED): "#7F7F7F",
    (PER_STATE, PRACTICAL): "#CC79A7",
    (IGNORING, PRACTICAL): "#E69F00",
}
LONG_RUNS = ((KNOWN, CERTIFIED), (KNOWN, PUBLISHED))
# Some count of its own doubles in every episode, so "doubling" would plan before each.
_SELDOM = pkd.Replan(features=None, growth=1.1)


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
    unexplored: float  # exact value of the best plan for a spot replica that is kept half the time
    # For constant delay 0, 1, ...: the optimum, and the value of ignoring the delay.
    price: list[tuple[float, float]]

    def interval(self, k: int) -> tuple[float, float]:
        """What is certified of the optimum in episode k: the widest interval of all seeds."""
        low, high = _find_ends(self.runs[KNOWN, CERTIFIED])
        return float(low[k - 1]), float(high[k - 1])


def autoscaler_demo(
    *, episodes: int = 500, seeds: int = 3, progress: bool = False, workers: int | None = None
) -> Showcase:
    """Learns the autoscaler with a spot replica and compares.

    With a known delay law, the certified run and the one as published have at least 50,000
    episodes.

    workers: processes that share the runs; by default as many as the machine runs at once, and not
    more than four.
    """
    delayed = spot_autoscaler()
    # One worker begins with the kernels of the certified rule and compiles them while the others
    # compile the rest. Short jobs come last, so that all workers end together.
    first, *others = (
        (_learn, curve, seed, max(episodes, LONG) if curve in LONG_RUNS else episodes)
        for curve in COLOURS
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
        curve: [results[job] for job in (first, *others) if job[1] == curve] for curve in COLOURS
    }
    study = Study(
        episodes,
        runs,
        optimum=results[first].optimal_value,
        ignoring=results[_find_ignoring,],
        unexplored=results[_find_unexplored,],
        price=[results[job] for job in price],
    )
    world = f"{delayed.base.horizon} ticks, delays of 0 to {delayed.max_delay} ticks"
    return Showcase(
        title=(
            f"autoscaler with a spot replica: {world}; {episodes:,} episodes, "
            f"{seeds} seed{'s' if seeds > 1 else ''}"
        ),
        headers=("agent", "rule", "return per episode", "regret", f"episodes to {GOAL:.0%}"),
        rows=_make_rows(study),
        notes=_write_notes(study),
        figure=_draw_figure(study),
    )


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
    blind = IgnoringDelay(delayed, pkd.plan(delayed.base, delayed.base_law))
    return pkd.evaluate(compiled, delayed.law(), blind)


def _find_unexplored() -> float:
    """What an agent gets that knows the load, and believes of spot what Greedy does without data.

    That is the uniform law.
    """
    compiled, law = _compile_world(KNOWN)
    return pkd.evaluate(compiled, law, pkd.plan(compiled, spot_autoscaler(kept=0.5).law()))


def _make_rows(study: Study) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("optimum", "", f"{study.optimum:.3f}", f"{0:.1f}", "")]
    for (agent, rule), runs in study.runs.items():
        regret = np.mean([run.regret[study.episodes - 1] for run in runs])
        value = f"{study.optimum - regret / study.episodes:.3f}"
        rows.append((agent, rule.label, value, f"{regret:.1f}", _label_episodes(runs)))
    loss = (study.optimum - study.ignoring) * study.episodes
    rows.append((IGNORING, "knows all laws", f"{study.ignoring:.3f}", f"{loss:.1f}", "never"))
    return rows


def _label_episodes(runs: list[pkd.Run]) -> str:
    """The median over seeds of the episode from which all policies are good enough."""
    reached = [run.episodes_to(GOAL, baseline=0.0) for run in runs]
    found = sorted(np.inf if episode is None else episode for episode in reached)
    middle = found[len(found) // 2]
    return f"{middle:,.0f}" if np.isfinite(middle) else f"> {len(runs[0].returns):,}"


def _write_notes(study: Study) -> list[str]:
    prompt, long = study.price[0][0], len(study.runs[KNOWN, PUBLISHED][0].returns)
    delay, ignorance = 1 - study.optimum / prompt, 1 - study.ignoring / prompt
    seen = sum(
        run.counts.get(SPOT, {}).get(outcome, 0.0)
        for run in study.runs[KNOWN, GREEDY]
        for outcome in (KEPT, RECLAIMED)
    )
    first, last = study.interval(study.episodes), study.interval(long)
    return [
        (
            f"Regret is that of the first {study.episodes:,} episodes; episodes to {GOAL:.0%} of "
            "the optimum: median over seeds. As published and certified with a known delay law "
            f"were continued to {long:,} episodes."
        ),
        (
            f"Without delay the optimum is {prompt:.3f}. These delays cost {delay:.1%} of it; "
            f"ignoring them costs {ignorance:.1%}."
        ),
        (
            f"After {study.episodes:,} episodes it is certified, with probability {1 - DELTA:.0%}, "
            f"that the optimum lies in [{first[0]:.2f}, {first[1]:.2f}]; after {long:,} in "
            f"[{last[0]:.2f}, {last[1]:.2f}] (the widest interval of all seeds)."
        ),
        (
            "Without data Greedy expects to lose the spot replica at every second tick. At that "
            f"rate it does not pay, so Greedy never looks: it saw {seen:.0f} ticks of spot in "
            f"{len(study.runs[KNOWN, GREEDY])} runs. Its limit is {study.unexplored:.3f}, "
            f"{1 - study.unexplored / study.optimum:.1%} below the optimum."
        ),
    ]


def _draw_figure(study: Study) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 5.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(5, 5, 4))
    for curve, colour in COLOURS.items():
        runs = study.runs[curve]
        k = _choose_episodes(len(runs[0].returns))
        name = f"{curve[1].label}; {curve[0]}"
        dashes = "--" if curve[0] == PER_STATE else "-"  # it lies on another curve for a while
        _draw_band(left, k, [run.regret[k] for run in runs], colour, name, dashes)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="episode",
        ylabel="cumulative regret",
        title="Regret against the exact optimum",
    )
    _draw_interval(middle, study)
    _draw_price(right, study)
    seeds = len(study.runs[KNOWN, CERTIFIED])
    figure.suptitle(
        "An autoscaler with a spot replica, and with metrics that come 0 to 3 ticks late "
        f"({seeds} seeds: mean, and from the lowest to the highest)"
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False
    )
    return figure


def _choose_episodes(count: int) -> np.ndarray:
    """Some of 0, ..., count - 1, evenly on a logarithmic axis."""
    return np.unique(np.geomspace(1, count, 400).astype(int)) - 1


def _find_ends(runs: list[pkd.Run]) -> tuple[np.ndarray, np.ndarray]:
    """Per episode the lowest certified lower and the highest upper value of all runs."""
    lowers = [run.lower_values for run in runs if run.lower_values is not None]
    return np.min(lowers, axis=0), np.max([run.upper_values for run in runs], axis=0)


def _draw_interval(ax: Axes, study: Study) -> None:
    """The certified interval of the optimum, the optimum, and what two policies are worth."""
    certified = study.runs[KNOWN, CERTIFIED]
    k = _choose_episodes(len(certified[0].returns))
    low, high = _find_ends(certified)
    colour = COLOURS[KNOWN, CERTIFIED]
    ax.fill_between(
        k + 1, low[k], high[k], color=colour, alpha=0.15, linewidth=0, step="post",
        label=f"certified with {1 - DELTA:.0%}",
    )  # fmt: skip
    ax.axhline(study.optimum, color="black", linestyle=":", linewidth=1.5, label="exact optimum")
    for curve, words in (((KNOWN, CERTIFIED), "certified"), ((KNOWN, GREEDY), "Greedy")):
        runs = study.runs[curve]
        k = _choose_episodes(len(runs[0].returns))
        _draw_band(
            ax, k, [run.policy_values[k] for run in runs], COLOURS[curve],
            f"exact value of the policy, {words}",
        )  # fmt: skip
    ax.set(
        xscale="log",
        xlabel="episode",
        ylabel="return of an episode",
        title="Certified interval of the optimum",
    )
    ax.legend(loc="upper right", frameon=False, fontsize="small")


def _draw_band(
    ax: Axes,
    k: np.ndarray,
    curves: Iterable[np.ndarray],
    colour: str,
    label: str,
    dashes: str = "-",
) -> None:
    table = np.array(list(curves))
    ax.plot(k + 1, table.mean(axis=0), color=colour, label=label, linestyle=dashes)
    ax.fill_between(
        k + 1, table.min(axis=0), table.max(axis=0), color=colour, alpha=0.2, linewidth=0
    )


def _draw_price(ax: Axes, study: Study) -> None:
    best, blind = np.array(study.price).T
    ticks = np.arange(len(best))
    ax.plot(ticks, best, "o-", color="black", label="optimum, and its change per tick")
    ax.plot(
        ticks,
        blind,
        "s-",
        color=COLOURS[IGNORING, PRACTICAL],
        label="ignores the delay",
    )
    for tick in ticks[1:]:
        ax.annotate(
            f"{best[tick] - best[tick - 1]:.2f}",
            (tick, best[tick]),
            xytext=(5, 6),
            textcoords="offset points",
        )
    ax.set(
        xlabel="constant delay in ticks",
        ylabel="return of an episode",
        title="The price of each tick of delay",
        xticks=ticks,
    )
    ax.margins(x=0.3, y=0.18)
    ax.legend(loc="lower left", frameon=False, fontsize="small")


def _make_bar(wanted: bool, total: int) -> tqdm[NoReturn]:
    from tqdm import tqdm

    return tqdm(total=total, disable=not wanted, leave=False)
