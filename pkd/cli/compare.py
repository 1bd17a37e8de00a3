"""Several agents side by side on one model: means over seeds with their intervals, and a plot.

  pkd compare inventory --rules certified,mvp,greedy --seeds 20 --plot rules.png
  pkd compare gambler --rules practical,mvp:c1=1,c2=1,my_agents:QLearning --folder out/gambler

It is an experiment with one model. With --folder every finished run is kept, and the same command
computes only what is missing.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pkd.cli.arguments import add_learning, add_model, model_words
from pkd.cli.experiment import add_output, run_experiment
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.experiments.results import Results

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
    add_learning(parser, seeds=10)
    keep = "keep every run there; resume from there"
    parser.add_argument("--folder", "--save", dest="save", metavar="FOLDER", help=keep)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    from pkd.experiments.grid import ModelSpec, label_model, make_grid
    from pkd.words.models import find_words

    words = model_words(args.typed, _add_own)
    model = ModelSpec(label_model(words), words, remarks=find_words(words).remarks)
    seeds = range(args.seed, args.seed + args.seeds)
    grid = make_grid(model, args.rules, args.episodes, seeds, delta=args.delta, replan=args.replan)
    args.dask = None

    def describe(results: Results) -> str:
        first = results.first_value(model.label)
        said = f"{model.label}: optimal value {results[0].optimal_value:.10g}"
        if first is not None:
            said += f"; the gain starts at {first:.7g}, the lowest value of a first policy"
        return said

    run_experiment(args, grid, args.save, describe)
    return 0


def _read_agents(text: str) -> list[str]:
    from pkd.experiments.grid import make_agent, split_agents

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
