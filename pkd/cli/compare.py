"""Several agents side by side on one model: means over seeds with bootstrap intervals, and a plot.

  pkd compare inventory --rules certified,mvp,greedy --seeds 5 --plot rules.png
  pkd compare gambler --rules practical,mvp:c1=1,c2=1,my_agents:QLearning --save out/gambler

With --save every finished run is kept, and the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse

from pkd.cli.arguments import add_learning, add_model, say_remarks
from pkd.cli.experiment import add_bound, find_bounds, run_with
from pkd.cli.learn import model_words
from pkd.cli.output import write_files
from pkd.model import ModelError

HELP = "compare agents and rules of optimism over seeds"


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    parser.add_argument(
        "--rules",
        "--agents",
        type=_read_agents,
        default="certified,mvp,practical,greedy",
        metavar="R,...",
        help="rules and agents, such as certified, mvp:c1=1 or module:Class (default: %(default)s)",
    )
    add_learning(parser, seeds=5)
    add_bound(parser)
    parser.add_argument("--save", metavar="FOLDER", help="keep every run, and go on from there")
    parser.add_argument(
        "--form",
        choices=("plain", "markdown", "latex"),
        default="plain",
        help="how the table is written (default: plain)",
    )


def run(args: argparse.Namespace) -> int:
    from pkd.experiments.comparison import Comparison
    from pkd.experiments.spec import ModelSpec, label_model, make_grid
    from pkd.model_words import find_words

    words = model_words(args.typed, _add_own)
    say_remarks(find_words(words).remarks)
    grid = make_grid(
        ModelSpec(label_model(words), words),
        args.rules,
        args.episodes,
        range(args.seed, args.seed + args.seeds),
        delta=args.delta,
        replan=args.replan,
    )
    comparison = Comparison(run_with(argparse.Namespace(dask=None, **vars(args)), grid, args.save))
    [model] = comparison.results.models
    print(
        f"{model}: optimal value {comparison.results[0].optimal_value:.10g}, {args.episodes:,} "
        f"episodes, mean over {args.seeds} seeds, 95% bootstrap intervals"
    )
    print(comparison.table(args.form))
    first = comparison.first_value(model)
    if first is not None:
        print(
            f"The gain goes from {first:.7g}, the lowest value of a first policy, to the optimum; "
            "episodes: median over seeds"
        )
    write_files(
        args.csv,
        comparison.headers,
        comparison.lines(),
        args.plot,
        lambda: comparison.plot(find_bounds(args, grid)),
    )
    return 0


def _read_agents(text: str) -> list[str]:
    from pkd.experiments.spec import make_agent, split_agents

    names = split_agents(text)
    findings: list[str] = []
    for name in names:
        try:
            make_agent(name)
        except ModelError as problem:
            findings.extend(problem.findings)
    if findings:
        raise argparse.ArgumentTypeError("; ".join(findings))
    return names
