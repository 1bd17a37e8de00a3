"""How often optimism fails, as a function of delta and of the constants.

A plan fails if its upper value is below the optimum.

The theory says that with probability 1 - delta no plan of a run fails, for c1 = 20/3 and c2 = 400/9
= c1^2. The constants are scaled down along c2 = c1^2, with the theory's logarithm ell in place, so
that delta still matters; then come the practical constants and no bonus at all. Replanning is after
every episode, as published, so that every chance to fail is taken. The problems are a delayed MDP
and two models with few features, where a plan hangs on few numbers.

Where theory and measurement differ: the theorem promises a share of failing runs of at most delta,
and what is seen with its constants is less. delta enters only through log(1/delta), next to the
logarithms of the sizes and of K, so it is a weak knob: a hundredfold smaller delta changes the
bonus by less than a halving of the constants does. Failing is not regret, either: a plan below the
optimum may still choose well, and on these problems a smaller bonus, as long as there is one, has
more failures and less regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

import pkd
from benchmarks.studies.measure import mean
from benchmarks.studies.report import Report, command_line, panels
from pkd_delay import DelayedMDP
from pkd_delay.models.tables import random_mdp
from pkd_examples.gambler import gambler
from pkd_examples.wind import wind

THEORY = pkd.MVP()
OTHERS = {"practical": pkd.MVP.practical(), "no bonus": pkd.Greedy()}
HEADERS = [
    "problem",
    "constants",
    "c1 / (20/3)",
    "delta",
    "K",
    "runs",
    "runs that fail",
    "share of runs",
    "95% at most",
    "share of plans",
    "regret",
    "s.e.",
]


@attrs.frozen
class Setting:
    scales: Sequence[float] = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
    deltas: Sequence[float] = (0.5, 0.05, 0.0005)
    episodes: int = 400
    seeds: int = 60


QUICK = Setting(scales=(1.0, 0.1, 0.05, 0.02), deltas=(0.5, 0.0005), episodes=200, seeds=12)


def problems() -> dict[str, Any]:
    """Each has .model() and .law()."""
    mdp = random_mdp(states=3, actions=2, horizon=6, successors=3, seed=0)
    return {
        "delayed": DelayedMDP(mdp, {-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}, max_delay=2),
        "gambler": gambler(goal=12, capital=5, horizon=12),
        "wind": wind(horizon=10),
    }


def scaled(scale: float) -> pkd.MVP:
    """c1 = scale * 20/3 and c2 = c1^2, with the theory's logarithm."""
    return pkd.MVP(c1=scale * THEORY.c1, c2=scale**2 * THEORY.c2)


def study(setting: Setting) -> Report:
    figure, axes = panels(len(problems()))
    rows: list[Sequence[Any]] = []
    for ax, (name, problem) in zip(axes, problems().items(), strict=True):
        compiled, law = pkd.compile(problem.model()), problem.law()
        for delta in setting.deltas:
            shares = []
            for scale in setting.scales:
                rows.append(
                    [
                        name,
                        "scaled",
                        scale,
                        delta,
                        *failures(compiled, law, scaled(scale), delta, setting),
                    ]
                )
                shares.append(rows[-1][HEADERS.index("share of runs")])
            ax.plot(setting.scales, shares, marker="o", markersize=4, label=f"delta = {delta:g}")
        for label, rule in OTHERS.items():  # these do not look at delta
            rows.append(
                [name, label, "-", "-", *failures(compiled, law, rule, setting.deltas[0], setting)]
            )
        practical = rows[-len(OTHERS)][HEADERS.index("share of runs")]
        ax.axhline(practical, color="0.6", linestyle=":", label="practical constants")
        ax.set(xscale="log", ylim=(-0.03, 1.03), title=name)
        ax.set(xlabel="c1 / (20/3), with c2 = c1^2", ylabel="share of runs with a failing plan")
        ax.legend(fontsize="small")
    constants = {
        "problems": (
            "random_mdp(3, 2, 6, 3, seed 0) delayed by {-1: .2, 0: .4, 1: .3, 2: .1} with D = 2; "
            "gambler(goal=12, capital=5, horizon=12); wind(horizon=10)"
        ),
        "K": setting.episodes,
        "seeds": f"0..{setting.seeds - 1}",
        "replan": "every",
        "practical": "c1 = 0.5, c2 = 0.25, log factor 1",
    }
    return Report(
        "optimism_failures",
        "How often optimism fails",
        constants,
        HEADERS,
        rows,
        conclusions(rows, setting),
        figure,
    )


def failures(compiled: Any, law: Any, rule: Any, delta: float, setting: Setting) -> list[Any]:
    """The columns from K on: how many runs have a plan below the optimum, and their regret."""
    runs = [
        pkd.learn(
            compiled, law, setting.episodes, optimism=rule, delta=delta, seed=seed, replan="every"
        )
        for seed in range(setting.seeds)
    ]
    failing = sum(run.violations > 0 for run in runs)
    plans = sum(run.violations for run in runs) / sum(len(run.plans) for run in runs)
    regret = mean(np.array([run.regret[-1] for run in runs]))
    return [
        setting.episodes,
        setting.seeds,
        failing,
        failing / setting.seeds,
        at_most(failing, setting.seeds),
        plans,
        regret.value,
        regret.error,
    ]


def at_most(failing: int, runs: int) -> float:
    """The upper 5% confidence bound on the probability of failing (Clopper and Pearson).

    With no failure it is 1 - 0.05^(1/runs).
    """
    from scipy.stats import beta

    return 1.0 if failing == runs else float(beta.ppf(0.95, failing + 1, runs - failing))


def conclusions(rows: Sequence[Sequence[Any]], setting: Setting) -> list[str]:
    table = [dict(zip(HEADERS, row, strict=True)) for row in rows]
    full = [row for row in table if row["c1 / (20/3)"] == 1.0]
    lines = []
    if full:
        lines.append(
            f"With the constants of the theory {sum(row['runs that fail'] for row in full)} of "
            f"{sum(row['runs'] for row in full)} runs had a failing plan, over all problems and "
            f"all delta; the theorem allows a share of delta, up to {max(setting.deltas):g} here."
        )
    for name in dict.fromkeys(row["problem"] for row in table):
        mine = [row for row in table if row["problem"] == name]
        scale = [row for row in mine if row["constants"] == "scaled"]
        safe = [
            s
            for s in setting.scales
            if not any(row["runs that fail"] for row in scale if row["c1 / (20/3)"] == s)
        ]
        broken = [s for s in setting.scales if s not in safe]
        by_delta = [
            [row["share of runs"] for row in scale if row["delta"] == d]
            for d in (max(setting.deltas), min(setting.deltas))
        ]
        moved = max(abs(a - b) for a, b in zip(*by_delta, strict=True))
        practical = next(row for row in mine if row["constants"] == "practical")
        slow = max((row["regret"] for row in full if row["problem"] == name), default=float("nan"))
        lines.append(
            f"{name}: no run fails at c1/(20/3) in {safe or 'no tried value'}, some do at "
            f"{broken or 'no tried value'}; from delta = {max(setting.deltas):g} to "
            f"{min(setting.deltas):g} the share of failing runs moves by at most {moved:.2g}."
        )
        lines.append(
            f"{name}: with practical constants {practical['share of runs']:.2g} of the runs and "
            f"{practical['share of plans']:.2g} of the plans fail; the regret is "
            f"{practical['regret']:.3g}, against {slow:.3g} for the constants of the theory."
        )
    lines.append(
        "Where fewer runs fail than the theorem allows, this is why: its union bound adds up "
        "events that mostly happen together or not at all, and its Bernstein inequality is used "
        "with room in every step."
    )
    return lines


if __name__ == "__main__":
    command_line(study, Setting(), QUICK, __doc__)
