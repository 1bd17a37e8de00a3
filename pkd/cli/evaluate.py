"""The exact value of a policy: its expected return, its spread, and what it loses to the optimum;
and episodes of it, with their mean return beside the exact one. `simulate` plays 100 episodes if
nothing else is said.

The policy is a function of your own, (h, x, y) -> action (or {action: probability}), or a
plan, run or policy in a file that pkd wrote. Where states are shown late, a function of (h, x, y)
is asked about the state that was shown last, and a function of (h, state, queue, waited) is also
told what was done since then.

  pkd evaluate inventory --policy my_policies:order_up_to_six
  pkd evaluate inventory --policy policy.json
  pkd simulate inventory --policy my_policies:order_up_to_six --show 1 --csv moves.csv
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import (
    add_model,
    add_policy,
    find_model,
    find_policy,
    name_model,
    positive,
    seed,
    writable,
)
from pkd.cli.output import Cell, make_records, print_json, table, write_csv

if TYPE_CHECKING:
    import pkd
    from pkd.planning.plan import Policy

HELP = "the exact value of a policy, and episodes of it"
HEADERS = ("episode", "move", "step", "x", "y", "action", "reward", "x'", "y'")


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    _add_own(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    """All but the model."""
    plays = parser.prog.endswith("simulate")
    add_policy(parser, "the optimal plan")
    parser.add_argument(
        "--episodes",
        type=positive,
        default=100 if plays else None,
        metavar="K",
        help=f"play this many episodes (default: {100 if plays else 'none'})",
    )
    parser.add_argument("--seed", type=seed, default=0, help="the seed (default: 0)")
    parser.add_argument(
        "--show", type=positive, metavar="N", help="print the moves of the first N episodes"
    )
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write every move")


def run(args: argparse.Namespace) -> int:
    found = find_model(args)
    import pkd

    law, compiled = found.with_law(), pkd.compile(found.model)
    name = name_model(args, _add_own)
    best = None if args.policy else pkd.plan(compiled, law)
    policy = best or find_policy(found, args.policy)
    value = pkd.evaluate(compiled, law, policy)
    if args.episodes is not None:
        world = pkd.Simulator(compiled, law, seed=args.seed)
        played = _play(args, name, world, policy, float(value))
        if args.json:
            print_json({"model": found.name, "policy": args.policy, **played})
        return 0
    optimum = (best or pkd.plan(compiled, law)).value
    numbers = {
        "value of the policy": float(value),
        "standard deviation of the return": _find_deviation(value),
        "optimal value": optimum,
        "loss": max(optimum - value, 0.0),
    }
    if args.json:
        [told] = make_records(list(numbers), [list(numbers.values())])
        print_json({"model": found.name, "policy": args.policy, **told})
        return 0
    print(f"{name}, {args.policy or 'the optimal plan'}, {found.model.horizon} steps, exact")
    print(
        table(["number", "per episode"], [[k, "" if v is None else v] for k, v in numbers.items()])
    )
    return 0


def _find_deviation(value: pkd.Evaluation) -> float | None:
    """The standard deviation; None where only this is too large to compute."""
    from pkd.explore.limits import TooLargeError

    try:
        return value.deviation
    except TooLargeError as error:
        print(f"pkd: no standard deviation: {error}", file=sys.stderr)
        return None


def _play(
    args: argparse.Namespace, name: str, world: pkd.Simulator, policy: Policy, exact: float
) -> dict[str, Any]:
    """Episodes of a policy: the moves of the first ones, their mean return, and a file of all."""
    from pkd.progress import watch

    kept = args.episodes if args.csv is not None else min(args.show or 0, args.episodes)
    episodes = [world.episode(policy) for _ in watch(range(kept), "playing")]
    rest = world.returns(policy, args.episodes - kept)
    returns = [episode.total for episode in episodes] + rest.tolist()
    shown = [] if args.json else episodes[: args.show or 0]
    for number, episode in enumerate(shown, start=1):
        print(f"episode {number}: return {episode.total:.7g}\n{episode.table()}\n")
    mean = math.fsum(returns) / len(returns)
    spread = math.sqrt(math.fsum((r - mean) ** 2 for r in returns) / max(len(returns) - 1, 1))
    error = spread / math.sqrt(len(returns))
    if not args.json:
        print(
            f"{name}: mean return {mean:.7g} +- {error:.2g} over {len(returns)} episodes "
            f"(standard error); exact {exact:.7g}"
        )
    if args.csv is not None:
        write_csv(args.csv, HEADERS, list(_list_moves(world.compiled.model, episodes)))
    told = {"episodes": len(returns), "mean_return": mean, "standard_error": error}
    return {**told, "exact_value": exact, "seed": args.seed}


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
