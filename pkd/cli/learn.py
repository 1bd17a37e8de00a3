"""Learns online, episode after episode, against the true law, and measures regret.

  pkd learn inventory --episodes 1e5 --seeds 5 --plot regret.png
  pkd learn riverswim --until 0.5
  pkd learn --config experiment.toml

Regret is measured against the exact optimum. --optimism lists the rules: certified is guaranteed,
with lower values and a gap, and mvp has the constants of the paper, as published. The table of
results says what a rule guarantees. A rule of your own is module:Class.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from pkd.cli.arguments import (
    EPISODES,
    add_learning,
    add_model,
    amount,
    find_model,
    model_arguments,
    model_words,
    rule,
    writable,
)
from pkd.cli.output import Cell, make_records, print_json, table, write_files
from pkd.rules import RULES, make_rule

if TYPE_CHECKING:
    import pkd
    from pkd.engine import Compiled

HELP = "learn online and measure regret"
LEARNED = 0.95  # of the way from the first policy to the optimum
INTERRUPTED = 130  # the exit code of a program that was stopped by Ctrl-C
COLUMNS = (
    "seed",
    "optimal value",
    "return per episode",
    "return at the end",
    "regret",
    "certified gap",
    "optimism violations",
    "plans",
    "seconds",
)


@attrs.frozen
class Job:
    """One run that a worker process can do from words alone."""

    words: tuple[str, ...]  # of the command line, that say which model it is
    optimism: str
    file: Path | None  # where the run is saved
    options: dict[str, Any]  # of `pkd.learn`


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    add_learning(parser, seeds=1)
    parser.add_argument(
        "--optimism",
        type=rule,
        default="certified",
        metavar="RULE",
        help=f"rule of optimism: {', '.join(RULES)}, or module:Class; constants follow a colon, "
        "such as mvp:c1=1,c2=1 (default: certified)",
    )
    parser.set_defaults(episodes=None)
    parser.add_argument(
        "--until",
        type=amount,
        metavar="GAP",
        help="stop when the robust policy is certified to be within GAP of the optimum",
    )
    parser.add_argument(
        "--save",
        type=writable,
        metavar="FILE",
        help="save the run; with several seeds their numbers join the name",
    )
    parser.add_argument(
        "--checkpoint",
        type=writable,
        metavar="FILE",
        help="keep the run there while it goes on; the same command goes on where it stopped",
    )


def run(args: argparse.Namespace) -> int:
    if args.episodes is None and args.until is None:
        args.episodes = EPISODES
    seeds = range(args.seed, args.seed + args.seeds)
    words = model_words(args.typed, _add_own)
    name, found = learn_all(args, words, seeds)
    runs = list(found.values())
    if not runs:
        print("stopped before a seed was finished" + _say_how_to_go_on(args), file=sys.stderr)
        return INTERRUPTED
    rows = [_make_row(one, run) for one, run in found.items()]
    if args.json:
        told = {"model": name, "rule": runs[0].label, "replan": runs[0].config["replan"]}
        told |= {"delta": args.delta, "guaranteed": runs[0].guaranteed}
        told |= {"unexplored": runs[0].unexplored, "remarks": _find_remarks(runs)}
        print_json({**told, "runs": make_records(("episodes", *COLUMNS), _count_first(runs, rows))})
    else:
        _print(args, name, runs, rows)
    from pkd.show.plots import draw_regret

    groups = {name: {runs[0].label: runs}}
    write_files(args.csv, COLUMNS, rows, args.plot, lambda: draw_regret(groups))
    if len(runs) < args.seeds:
        left = f"stopped: {len(runs)} of {args.seeds} seeds are finished"
        print(left + _say_how_to_go_on(args), file=sys.stderr)
        return INTERRUPTED
    return 0


def _count_first(
    runs: Sequence[pkd.Run], rows: Sequence[tuple[Cell, ...]]
) -> Iterator[tuple[Cell, ...]]:
    """The rows, each with the number of its episodes first."""
    for run, row in zip(runs, rows, strict=True):
        yield len(run.returns), *row


def _print(
    args: argparse.Namespace, name: str, runs: Sequence[pkd.Run], rows: Sequence[tuple[Cell, ...]]
) -> None:
    print(
        f"{name}: {runs[0].label}, {_count_episodes(runs)} episodes, "
        f"replanning: {runs[0].config['replan']}, delta {args.delta:g}; regret is exact; "
        f"guaranteed: {runs[0].guaranteed}"
    )
    if unexplored := runs[0].unexplored:
        print(f"not explored, since they come whatever is done: {_list_some(unexplored)}")
    print(table(COLUMNS, rows))
    for line in _find_remarks(runs):
        print(line)


def _say_how_to_go_on(args: argparse.Namespace) -> str:
    if args.checkpoint is None:
        return "; --checkpoint FILE keeps unfinished runs"
    return f"; the same command goes on from {args.checkpoint}"


def _find_remarks(runs: Sequence[pkd.Run]) -> list[str]:
    """What a table of numbers does not say: that something was not learned yet, or was reached."""
    late = [run for run in runs if run.episodes_to(LEARNED) is None]
    if late:
        run = min(late, key=lambda run: float(run.policy_values[-1]))
        which = "" if len(runs) == 1 else f" in {len(late)} of {len(runs)} seeds"
        earned = f"{run.policy_values[-1]:.6g} of {run.optimal_value:.6g}"
        advice = "try more --episodes, or --optimism practical, which guarantees nothing"
        return [f"not learned yet{which}: the policy in use earns {earned}; {advice}"]
    goal = runs[0].config.get("until")
    if goal is not None and all(run.gap <= goal for run in runs):
        sure = f"with {100 * (1 - float(runs[0].config['delta'])):.10g}% confidence"
        each = "" if len(runs) == 1 else " for each seed by itself"
        return [f"certified{each}: {sure} the robust policy is within {goal:g} of the optimum"]
    return []


def learn_all(
    args: argparse.Namespace, words: tuple[str, ...], seeds: Sequence[int]
) -> tuple[str, dict[int, pkd.Run]]:
    """The name of the model, and the run of every seed; if interrupted, of the finished ones.

    Here the model is built once and its optimum planned once; other processes build their own
    model.
    """
    import pkd
    from pkd.files.values import refuse_unwritable

    name, compiled, law = build_world(words)
    if args.save is not None or args.checkpoint is not None:
        refuse_unwritable(chain(compiled.features, *compiled.outcomes))
    alone = args.workers == 1 or len(seeds) == 1
    wanted = not args.quiet and sys.stderr.isatty()
    options = {
        "episodes": args.episodes,
        "delta": args.delta,
        "replan": args.replan,
        "until": args.until,
        "optimal_value": pkd.plan(compiled, law).value,
        "progress": wanted and alone,
    }
    todo = []
    for seed in seeds:
        file, checkpoint = (
            path if path is None or len(seeds) == 1 else path.with_stem(f"{path.stem}-{seed}")
            for path in (args.save, args.checkpoint)
        )
        own = {**options, "seed": seed, "checkpoint": checkpoint}
        todo.append((Job(words, args.optimism, file, own),))
    kept: dict[int, pkd.Run] = {}
    bar = pkd.progress.count("runs", len(seeds), wanted=wanted and not alone)
    with bar as advance, suppress(KeyboardInterrupt):  # what is finished is shown
        pkd.workers.spread(learn_one, todo, args.workers, advance, kept)
    return name, {seeds[number]: kept[number] for number in sorted(kept)}


def learn_one(job: Job) -> pkd.Run:
    """One run, without its policy, which stays in the file."""
    import pkd

    _, compiled, law = build_world(job.words)
    run = pkd.learn(compiled, law, optimism=make_rule(job.optimism), **job.options)
    if job.file is not None:
        attrs.evolve(run, model_words=job.words).save(job.file)
    return run.without_plans()


@lru_cache(maxsize=1)
def build_world(words: tuple[str, ...]) -> tuple[str, Compiled, pkd.Law]:
    """The label, the compiled model and the law that the words say.

    The kernels are compiled here too: that time is not a part of the seconds of a run.
    """
    import pkd
    from pkd.experiments.grid import label_model

    found = find_model(model_arguments(words))
    compiled, law = pkd.compile(found.model), found.with_law()
    pkd.learn(compiled, law, 1, optimal_value=0.0)
    return label_model(words), compiled, law


def _make_row(one: int, run: pkd.Run) -> tuple[Cell, ...]:
    """One line of the table of results."""
    regret = float(run.regret[-1])
    return (
        one,
        run.optimal_value,
        run.optimal_value - regret / len(run.regret),
        float(run.policy_values[-1]),
        regret,
        run.gap if run.interval is not None else "",
        run.violations or 0,
        len(run.plans),
        round(run.seconds, 3),
    )


def _list_some(labels: Sequence[str], most: int = 10) -> str:
    """The first labels, and how many more there are."""
    more = f" and {len(labels) - most} more" if len(labels) > most else ""
    return ", ".join(labels[:most]) + more


def _count_episodes(runs: Sequence[pkd.Run]) -> str:
    """How many episodes the runs have, in words."""
    least, most = min(len(run.returns) for run in runs), max(len(run.returns) for run in runs)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"
