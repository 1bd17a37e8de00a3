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
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pkd.cli.arguments import add_learning, add_model, find_model, model_arguments, writable
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
    seeds = range(args.seed, args.seed + args.seeds)
    files = [None if args.save is None else _numbered(args.save, one) if args.seeds > 1 else args.save for one in seeds]
    words = model_words(args.typed, _add_own)
    runs = learned(args, words, [(args.optimism, one, file) for one, file in zip(seeds, files, strict=True)])
    results = [row(one, found_run) for one, found_run in zip(seeds, runs, strict=True)]
    if args.csv:
        write_csv(args.csv, COLUMNS, results)
    name = find_model(args).name
    if args.plot:
        from pkd.cli.regret_plot import regret_plot

        regret_plot(args.plot, f"{name}, {args.episodes:,} episodes", [runs])
    print(f"{name}: {runs[0].label}, {args.episodes:,} episodes, replanning: {args.replan}, delta {args.delta:g}")
    print(table(COLUMNS, results))
    return 0


def learned(args: argparse.Namespace, words: tuple[str, ...], jobs: Sequence[tuple[str, int, Path | None]]) -> list[pkd.Run]:
    """The run of every (rule, seed, file to save it in), by as many workers as the arguments say."""
    from pkd.workers import spread

    world(words)  # what is wrong with the model is found here, once
    wanted = not args.quiet and sys.stderr.isatty()
    alone = args.workers == 1 or len(jobs) == 1
    common = words, args.episodes, args.delta, args.replan, wanted and alone
    if alone or not wanted:
        return spread(one_run, [(*common, *job) for job in jobs], args.workers)
    from tqdm import tqdm

    with tqdm(total=len(jobs), desc="runs", leave=False) as bar:
        return spread(one_run, [(*common, *job) for job in jobs], args.workers, bar.update)


def one_run(
    words: tuple[str, ...], episodes: int, delta: float, replan: Any, progress: bool, optimism: str, seed: int, file: Path | None
) -> pkd.Run:
    """One run, without its policy, which stays in the file."""
    import pkd

    compiled, law = world(words)
    run = pkd.learn(compiled, law, episodes, optimism=rule(optimism), delta=delta, seed=seed, replan=replan, progress=progress)
    if file is not None:
        attrs.evolve(run, model_words=words).save(file)
    return attrs.evolve(run, policy=None)


@lru_cache(maxsize=1)
def world(words: tuple[str, ...]) -> tuple[pkd.Compiled, Any]:
    """The compiled model that the words name, with its law, and the kernels compiled too: they are not a part of the seconds of a run."""
    import pkd

    found = find_model(model_arguments(words))
    compiled, law = pkd.compile(found.model), found.with_law()
    pkd.learn(compiled, law, 1)
    return compiled, law


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


def model_words(typed: Sequence[str], add_own: Callable[[argparse.ArgumentParser], None]) -> tuple[str, ...]:
    """The words of a command line that say which model it is: all that are left when the command's own are read."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--debug", action="store_true")
    add_own(parser)
    _, (_command, *words) = parser.parse_known_args(typed)
    return tuple(words)


def _numbered(path: Path, one: int) -> Path:
    return path.with_stem(f"{path.stem}-{one}")
