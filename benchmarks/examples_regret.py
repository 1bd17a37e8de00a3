"""Regret on the example domains: what the structure is worth, and where exploration is.

Per domain, over many seeds, with one set of constants: the optimistic algorithm on |Z| shared
features (MVP); the same on the same MDP with phi_Z forgotten, so that each pair (s, a) learns alone
(unshared); the same on the flattened table (flat), which is told its expected rewards and supports,
and with them part of the law wherever rewards depend on what nature shows; Greedy on the shared
features; and MVP with the constants of the theory. Writes one figure per domain and one table.

    python benchmarks/examples_regret.py --seeds 20 --episodes 20000 --out out/examples
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from measuring import make_parser

import pkd
from pkd_examples.admission import admission
from pkd_examples.battery import battery
from pkd_examples.blackjack import blackjack
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory
from pkd_examples.kuhn import kuhn
from pkd_examples.late_actions import late_actions
from pkd_examples.maintenance import maintenance
from pkd_examples.missing import missing_observations
from pkd_examples.option import american_put
from pkd_examples.pricing import pricing
from pkd_examples.wind import wind

SCORE = 0.9
LABELS = {
    "MVP": "MVP on shared features, practical constants",
    "unshared": "MVP without sharing, practical constants",
    "flat": "MVP on the flattened table, practical constants",
    "Greedy": "Greedy on shared features",
    "theory": "MVP on shared features, theory constants",
}
CURVES = {"MVP": "C0", "unshared": "C3", "flat": "C1", "Greedy": "C2", "theory": "C7"}


@attrs.frozen
class Domain:
    """A problem of a size that the flattened MDP can hold, and who decides what is seen."""

    make: Callable[[], Any]
    exogenous: bool  # every policy sees the same features equally often


DOMAINS = {
    "inventory": Domain(
        lambda: inventory(
            demand=(1, 3, 2), horizon=9, capacity=6, max_order=4, max_demand=6, stock=2
        ),
        True,
    ),
    "battery": Domain(
        lambda: battery(hours=12, horizon=12, capacity=2, prices=(10.0, 40.0, 100.0)), True
    ),
    "admission": Domain(lambda: admission(servers=4, free=0.1, horizon=20), True),
    "option": Domain(lambda: american_put(horizon=10), False),
    "gambler": Domain(lambda: gambler(goal=12, capital=5, horizon=12), True),
    "blackjack": Domain(blackjack, True),
    "kuhn": Domain(kuhn, False),
    "late_actions": Domain(lambda: late_actions(levels=5, delay=2, horizon=10), False),
    "missing_observations": Domain(
        lambda: missing_observations(levels=5, longest=2, horizon=10), False
    ),
    "wind": Domain(wind, False),
    "pricing": Domain(pricing, False),
    "maintenance": Domain(lambda: maintenance(horizon=20), False),
}


@attrs.frozen
class Study:
    """The runs of one domain."""

    values: dict[str, np.ndarray]  # curve -> (seeds, episodes) exact value of each policy
    optimal: float
    uniform: float  # value of choosing uniformly at random
    features: int
    unshared: int  # features when phi_Z is forgotten
    flat: int  # (s, a) of the flattened table
    seconds: float

    def regret(self, curve: str) -> np.ndarray:
        """Cumulative regret, (seeds, episodes)."""
        return np.cumsum(self.optimal - self.values[curve], axis=1)

    def episodes_to_score(self, curve: str) -> int | None:
        """The first episode from which the mean policy has 90% of the optimum's gain.

        The gain is counted from uniform play.
        """
        score = (self.values[curve].mean(axis=0) - self.uniform) / (self.optimal - self.uniform)
        below = np.flatnonzero(score < SCORE - 1e-9)
        first = int(below[-1]) + 2 if below.size else 1
        return first if first <= score.size else None


class Unshared(pkd.PartiallyKnownMDP):
    """A model with phi_Z forgotten: z = (x, y, a, y') with the true z, for its law."""

    def __init__(self, base: Any) -> None:
        self.base, self.horizon = base, base.horizon

    def start(self) -> Any:
        return self.base.start()

    def actions(self, x: Any, y: Any) -> Any:
        return self.base.actions(x, y)

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return self.base.reward(x, y, a)

    def final(self, x: Any, y: Any) -> float:
        return float(self.base.final(x, y))

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return self._told_apart(self.base.step, x, y, a)

    def last_step(self, x: Any, y: Any, a: Any) -> Any:
        return self._told_apart(self.base.last_step, x, y, a)

    def outcomes(self, z: Any) -> Any:
        return self.base.outcomes(z[-1])

    def _told_apart(self, step: Any, x: Any, y: Any, a: Any) -> Any:
        return [
            (p, y_next, z if isinstance(z, pkd.Known) else (x, y, a, y_next, z))
            for p, y_next, z in step(x, y, a)
        ]


def study(domain: Domain, seeds: int, episodes: int) -> Study:
    """All algorithms on one domain."""
    began = time.perf_counter()
    problem = domain.make()
    law, table = problem.law(), pkd.flatten(problem.model(), problem.law())
    model, unshared, flat = (
        pkd.compile(problem.model()),
        pkd.compile(Unshared(problem.model())),
        pkd.compile(table.model(support=True)),
    )

    def told_apart(z: Any) -> Any:
        return law[
            z[-1] if len(z) == 5 else z
        ]  # the features of unknown rewards are shared all the same

    practical = pkd.MVP.practical()
    curves = {
        "MVP": (model, law, practical),
        "unshared": (unshared, told_apart, practical),
        "flat": (flat, table.law(), practical),
        "Greedy": (model, law, pkd.Greedy()),
        "theory": (model, law, pkd.MVP()),
    }
    values, features, optimal = {}, {}, 0.0
    for curve, (world, nature, rule) in curves.items():
        runs = [
            pkd.learn(world, nature, episodes, optimism=rule, seed=seed) for seed in range(seeds)
        ]
        values[curve], optimal, features[curve] = (
            np.array([run.policy_values for run in runs]),
            runs[0].optimal_value,
            len(runs[0].counts),
        )
    sizes = [features[curve] for curve in ("MVP", "unshared", "flat")]
    return Study(values, optimal, uniform_value(table), *sizes, time.perf_counter() - began)


def uniform_value(table: pkd.TabularMDP) -> float:
    """The value of choosing uniformly at random, by backward induction over the table."""
    step, pay = table.transitions.mean(axis=1), table.rewards.mean(axis=1)
    value = np.zeros(len(pay))
    for _ in range(table.horizon):
        value = pay + step @ value
    return float(value[table.start] if np.ndim(table.start) == 0 else table.start @ value)


def draw(name: str, found: Study, path: Path) -> None:
    """Mean cumulative regret with the spread from the smallest to the largest seed."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, ax = pyplot.subplots(layout="constrained")
    for curve, colour in CURVES.items():
        regret = found.regret(curve)
        steps = np.arange(1, regret.shape[1] + 1)
        ax.plot(
            steps,
            regret.mean(axis=0),
            color=colour,
            label=LABELS[curve],
        )
        ax.fill_between(steps, regret.min(axis=0), regret.max(axis=0), color=colour, alpha=0.15)
    ax.set(
        xscale="log",
        yscale="symlog",
        xlabel="episode",
        ylabel="cumulative regret",
        title=(
            f"{name}: {found.features} feature{'s' if found.features > 1 else ''}, unshared "
            f"{found.unshared}, flat {found.flat}"
        ),
    )
    ax.set_ylim(bottom=0)
    ax.legend(fontsize="small")
    figure.savefig(path)
    pyplot.close(figure)


def table_row(name: str, domain: Domain, found: Study) -> list[str]:
    """One line of the table."""
    reached = {curve: found.episodes_to_score(curve) for curve in CURVES}
    episodes = found.values["MVP"].shape[1]

    def times(curve: str) -> str:
        ours, theirs = reached["MVP"], reached[curve]
        return (
            "-"
            if ours is None
            else f"{theirs / ours:.3g}"
            if theirs
            else f"> {episodes / ours:.3g}"
        )

    regrets = [f"{found.regret(curve)[:, -1].mean():.4g}" for curve in CURVES]
    shown = [str(reached[curve] or f"> {episodes}") for curve in CURVES]
    sizes = [str(found.features), str(found.unshared), str(found.flat)]
    return [
        name,
        "no" if domain.exogenous else "yes",
        *sizes,
        *shown,
        times("unshared"),
        times("flat"),
        *regrets,
    ]


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("out/examples"))
    parser.add_argument("--domains", nargs="*", choices=DOMAINS, default=list(DOMAINS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    head = [
        "domain",
        "actions choose what is seen",
        "features",
        "unshared",
        "flat",
        *(f"episodes to 90%: {curve}" for curve in CURVES),
    ]
    head += [
        "times fewer than unshared",
        "times fewer than flat",
        *(f"regret: {curve}" for curve in CURVES),
    ]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name in args.domains:
        found = study(DOMAINS[name], args.seeds, args.episodes)
        draw(name, found, args.out / f"{name}.png")
        lines.append("| " + " | ".join(table_row(name, DOMAINS[name], found)) + " |")
        print(lines[-1], f" {found.seconds:.0f} s", flush=True)
        (args.out / "table.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
