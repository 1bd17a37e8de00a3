"""Learns online, episode after episode, against the true law, and measures regret against the exact optimum.

  pkd learn inventory --episodes 1e5 --optimism practical --seeds 5 --plot regret.png
  pkd learn two_state_chain --inter-arrival -1:.2,0:.5,2:.3 --max-delay 4 --delay-law unknown
  pkd learn --config experiment.toml

Rules of optimism: mvp (the paper's constants, with its guarantee), mvp-max (its monotone form), practical (small constants, no guarantee),
hoeffding, greedy (no exploration), posterior (sampling).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pkd.cli.arguments import add_learning, add_model, find_model, writable
from pkd.cli.output import table, write_csv

if TYPE_CHECKING:
    import pkd

HELP = "learn online and measure regret"
RULES = ("mvp", "mvp-max", "practical", "hoeffding", "greedy", "posterior")
COLUMNS = ("seed", "optimal value", "return per episode", "return at the end", "regret", "optimism violations", "plans", "seconds")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    add_learning(parser, seeds=1)
    parser.add_argument("--optimism", choices=RULES, default="mvp", help="rule of optimism (default: mvp)")
    parser.add_argument("--save", type=writable, metavar="FILE", help="save the run; with several seeds their numbers join the name")


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    law = found.with_law()
    import pkd

    optimism = rule(args.optimism)
    compiled = pkd.compile(found.model)
    pkd.learn(compiled, law, 1)  # compiles the kernels, or reads their cache: not a part of the seconds in the table
    runs: dict[int, pkd.Run] = {}
    for one in range(args.seed, args.seed + args.seeds):
        runs[one] = pkd.learn(
            compiled,
            law,
            args.episodes,
            optimism=optimism,
            delta=args.delta,
            seed=one,
            replan=args.replan,
            progress=not args.quiet and sys.stderr.isatty(),
        )
        if args.save:
            kept = attrs.evolve(runs[one], model_words=_model_words(args.typed))
            kept.save(_numbered(args.save, one) if args.seeds > 1 else args.save)
    results = [row(one, found_run) for one, found_run in runs.items()]
    if args.csv:
        write_csv(args.csv, COLUMNS, results)
    if args.plot:
        from pkd.cli.regret_plot import regret_plot

        regret_plot(args.plot, f"{found.name}, {args.episodes:,} episodes", [list(runs.values())])
    print(f"{found.name}: {optimism.label}, {args.episodes:,} episodes, replanning: {args.replan}, delta {args.delta:g}")
    print(table(COLUMNS, results))
    return 0


def rule(name: str) -> Any:
    """The rule of optimism with this name."""
    import pkd

    makers: tuple[Callable[[], Any], ...] = (
        pkd.MVP,
        lambda: pkd.MVP(monotone=True),
        pkd.MVP.practical,
        pkd.Hoeffding,
        pkd.Greedy,
        pkd.PosteriorSampling,
    )
    return dict(zip(RULES, makers, strict=True))[name]()


def row(one: int, run: pkd.Run) -> tuple[Any, ...]:
    """One line of the table of results."""
    regret = float(run.regret[-1])
    return (
        one,
        run.optimal_value,
        run.optimal_value - regret / len(run.regret),
        float(run.policy_values[-1]),
        regret,
        run.violations,
        len(run.plans),
        round(run.seconds, 3),
    )


def _model_words(typed: Sequence[str]) -> tuple[str, ...]:
    """The words of a command line that say which model it is: all that are left when the others are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--debug", action="store_true")
    _add_own(parser)
    _, (_command, *words) = parser.parse_known_args(typed)
    return tuple(words)


def _numbered(path: Path, one: int) -> Path:
    return path.with_stem(f"{path.stem}-{one}")
