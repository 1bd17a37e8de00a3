"""Several rules of optimism side by side on one model: mean and range over seeds, and a plot with
bands.

pkd compare inventory --rules certified,mvp,greedy --seeds 5 --plot rules.png
pkd compare gambler --rules practical,hoeffding:c=1,opsrl:draws=4
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pkd.cli.arguments import add_learning, add_model
from pkd.cli.learn import learn_all, model_words
from pkd.cli.output import Cell, table, write_files
from pkd.cli.rules import RULES, read_rules

if TYPE_CHECKING:
    import pkd

HELP = "compare rules of optimism over seeds"
GOAL = 0.95
HEADERS = (
    "rule",
    "return per episode",
    "return at the end",
    "regret",
    "lowest",
    "highest",
    f"episodes to {GOAL:.0%} of the gain",
    "violations",
    "seconds",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    parser.add_argument(
        "--rules",
        type=read_rules,
        default="certified,mvp,practical,greedy",
        metavar="R,...",
        help=f"rules, of {', '.join(RULES)}, or module:Class, with constants after a colon, such "
        "as mvp:c1=1,c2=1 (default: %(default)s)",
    )
    add_learning(parser, seeds=5)


def run(args: argparse.Namespace) -> int:
    seeds = range(args.seed, args.seed + args.seeds)
    jobs = [(name, one, None) for name in args.rules for one in seeds]
    name, flat = learn_all(args, model_words(args.typed, _add_own), jobs)
    runs = [flat[i : i + args.seeds] for i in range(0, len(flat), args.seeds)]
    first = min(float(run.policy_values[0]) for run in flat)
    rows = [_make_row(same, first) for same in runs]
    print(
        f"{name}: optimal value {flat[0].optimal_value:.10g}, {args.episodes:,} episodes, "
        f"mean over {args.seeds} seeds"
    )
    print(table(HEADERS, rows))
    print(
        f"The gain goes from {first:.7g}, the lowest value of a first policy, to the optimum; "
        "episodes: median over seeds"
    )
    from pkd.cli.regret_plot import draw_regret

    title = f"{name}, {args.episodes:,} episodes"
    write_files(args.csv, HEADERS, rows, args.plot, lambda: draw_regret(title, runs))
    return 0


def _make_row(runs: list[pkd.Run], first: float) -> tuple[Cell, ...]:
    """Means over the seeds, the range of the regret, and the median of the episodes to the goal.

    first: where the gain starts.
    """
    count, optimum = len(runs), runs[0].optimal_value
    regrets = [float(run.regret[-1]) for run in runs]
    regret = sum(regrets) / count
    reached = sorted(run.episodes_to(GOAL, first) or float("inf") for run in runs)[count // 2]
    return (
        runs[0].label,
        optimum - regret / len(runs[0].returns),
        sum(float(run.policy_values[-1]) for run in runs) / count,
        regret,
        min(regrets),
        max(regrets),
        int(reached) if reached < float("inf") else f"> {len(runs[0].returns)}",
        sum(run.violations for run in runs),
        round(sum(run.seconds for run in runs) / count, 3),
    )
