"""Several rules of optimism side by side on one model: mean and range over seeds, and a plot with bands.

pkd compare inventory --rules mvp,practical,greedy --seeds 5 --plot rules.png
pkd compare two_state_chain --delay 2 --rules practical,hoeffding
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import add_learning, add_model, find_model
from pkd.cli.learn import RULES, learned, model_words
from pkd.cli.output import table, write_csv

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
    f"episodes to {GOAL:.0%}",
    "violations",
    "seconds",
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    parser.add_argument(
        "--rules", type=_rules, default="mvp,practical,greedy", metavar="R,...", help=f"rules, of {', '.join(RULES)} (default: %(default)s)"
    )
    add_learning(parser, seeds=5)


def run(args: argparse.Namespace) -> int:
    seeds = range(args.seed, args.seed + args.seeds)
    flat = learned(args, model_words(args.typed, _add_own), [(name, one, None) for name in args.rules for one in seeds])
    runs = [flat[i : i + args.seeds] for i in range(0, len(flat), args.seeds)]
    name = find_model(args).name
    rows = [_row(same) for same in runs]
    if args.csv:
        write_csv(args.csv, HEADERS, rows)
    if args.plot:
        from pkd.cli.regret_plot import regret_plot

        regret_plot(args.plot, f"{name}, {args.episodes:,} episodes", runs)
    print(f"{name}: optimal value {runs[0][0].optimal_value:.10g}, {args.episodes:,} episodes, mean over {args.seeds} seeds")
    print(table(HEADERS, rows))
    return 0


def _row(runs: list[pkd.Run]) -> tuple[Any, ...]:
    """Means over the seeds, the range of the regret, and the median number of episodes to the goal."""
    count, optimum = len(runs), runs[0].optimal_value
    regrets = [float(run.regret[-1]) for run in runs]
    regret = sum(regrets) / count
    reached = sorted(run.episodes_to(GOAL) or float("inf") for run in runs)[count // 2]
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


def _rules(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in RULES]
    if unknown:
        raise argparse.ArgumentTypeError(f"expected rules of {', '.join(RULES)}, found {unknown[0]!r}")
    return names
