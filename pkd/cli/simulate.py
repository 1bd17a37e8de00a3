"""Plays episodes: the mean return with its standard error beside the exact value, and the moves of
the first episodes.

pkd simulate gambler --episodes 1000
pkd simulate inventory --policy my_rules:order_up_to_six --show 1 --csv moves.csv
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pkd.cli.arguments import add_model, find_model, positive, seed, writable
from pkd.cli.output import Cell, write_csv
from pkd.cli.policies import add_policy, find_policy
from pkd.progress import watch

if TYPE_CHECKING:
    import pkd

HELP = "play episodes and show them"
HEADERS = ("episode", "move", "step", "x", "y", "action", "reward", "x'", "y'")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_policy(parser, "the optimal plan")
    parser.add_argument(
        "--episodes", type=positive, default=100, metavar="K", help="episodes (default: 100)"
    )
    parser.add_argument("--seed", type=seed, default=0, help="the seed (default: 0)")
    parser.add_argument(
        "--show", type=positive, metavar="N", help="print the moves of the first N episodes"
    )
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write every move")


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd

    law, policy = found.with_law(), find_policy(found, args.policy)
    compiled = policy.compiled if isinstance(policy, pkd.Plan) else pkd.compile(found.model)
    exact = float(pkd.evaluate(compiled, law, policy))
    world = pkd.Simulator(compiled, law, seed=args.seed)
    kept = args.episodes if args.csv is not None else min(args.show or 0, args.episodes)
    episodes = [world.episode(policy) for _ in watch(range(kept), "playing")]
    rest = world.returns(policy, args.episodes - kept)
    returns = [episode.total for episode in episodes] + rest.tolist()
    for number, episode in enumerate(episodes[: args.show or 0], start=1):
        print(f"episode {number}: return {episode.total:.7g}\n{episode.table()}\n")
    mean = math.fsum(returns) / len(returns)
    spread = math.sqrt(math.fsum((r - mean) ** 2 for r in returns) / max(len(returns) - 1, 1))
    error = spread / math.sqrt(len(returns))
    print(
        f"{found.name}: mean return {mean:.7g} +- {error:.2g} over {len(returns)} episodes "
        f"(standard error); exact {exact:.7g}"
    )
    if args.csv is not None:
        write_csv(args.csv, HEADERS, list(_list_moves(found.model, episodes)))
    return 0


def _list_moves(
    model: pkd.PartiallyKnownMDP, episodes: list[pkd.Episode]
) -> Iterator[tuple[Cell, ...]]:
    """One line per move, in the words of the model; a CHANCE state has no action."""
    for number, episode in enumerate(episodes, start=1):
        taken = 0
        for at, move in enumerate(episode, start=1):
            taken += move.action is not None
            action = "" if move.action is None else model.action_label(move.action)
            now = model.x_label(move.x), model.y_label(move.y)
            after = model.x_label(move.x_next), model.y_label(move.y_next)
            yield number, at, taken, *now, action, move.reward or 0.0, *after
