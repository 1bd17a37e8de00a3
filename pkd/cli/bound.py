"""Evaluates the paper's regret bounds, from the sizes of a delayed MDP or from a model.

  pkd bound --states 5 --actions 2 --horizon 10 --max-delay 3 --longest 2 --branching 5 --episodes 1e4
  pkd bound inventory --episodes 1e6 --plot bound.png

Explicit bounds hold with probability 1 - delta for the theory constants. Rates are the O-forms with constant 1 and promise nothing by
themselves. A bound says something from the episode on at which it falls below H K, the largest regret there can be.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import add_model, find_model, fraction, positive, writable
from pkd.cli.output import save_figure, table, write_csv
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.bounds import Bound

HELP = "evaluate the regret bounds"
SIZES = ("states", "actions", "horizon", "max_delay", "longest", "branching")
HEADERS = ("bound", "regret", "leading term", "lower order", "below H K from")
LOWER = "Theorem 3 (lower bound)"
Curves = dict[str, Callable[[float], Any]]  # label -> K -> a Bound, or a number


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--states", type=positive, metavar="S")
    parser.add_argument("--actions", type=positive, metavar="A")
    with contextlib.suppress(argparse.ArgumentError):  # an installed transformer may have this flag already
        parser.add_argument("--max-delay", type=positive, metavar="D")
    parser.add_argument("--longest", type=positive, metavar="W", help="the largest inter-arrival time (default: the largest delay)")
    parser.add_argument("--branching", type=positive, metavar="B", help="bound on the support of P(s, a) (default: S)")
    parser.add_argument("--episodes", type=positive, default=10_000, metavar="K", help="episodes (default: 10000)")
    parser.add_argument("--delta", type=fraction, default=0.05, help="probability with which a bound may fail (default: 0.05)")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write the table")
    parser.add_argument("--plot", type=writable, metavar="FILE", help="draw the bounds over the episodes")


def run(args: argparse.Namespace) -> int:
    named = args.words or args.model
    title, width, curves = _of_model(args) if named else _of_sizes(args)
    rows = [_row(label, curve, args.episodes, width) for label, curve in curves.items()]
    if args.csv:
        write_csv(args.csv, HEADERS, rows)
    if args.plot:
        _draw(args, title, width, curves)
    print(f"{title}, {args.episodes:,} episodes, delta {args.delta:g}; largest possible regret {width * args.episodes:.7g}")
    print(table(HEADERS, rows))
    if not named and LOWER not in curves:
        print(f"{LOWER} says nothing at these sizes: D~ = floor(min(D, H/4, B/2, S/4 - 1)) must be at least 2")
    return 0


def _of_model(args: argparse.Namespace) -> tuple[str, float, Curves]:
    """The general theorem on a model; the width of its returns takes the place of H."""
    found = find_model(args)
    from pkd import bounds
    from pkd.sizes import measure

    given = [f"--{name}" for name in ("states", "actions", "longest", "branching") if getattr(args, name) is not None]
    if given:
        raise ModelError(f"{', '.join(given)}: {found.name} has its own sizes; expected a model or sizes, not both")
    sizes = measure(found.model)
    curves: Curves = {"general theorem, explicit": lambda k: bounds.regret_bound(sizes, k, args.delta)}
    return found.name, sizes.width, curves


def _of_sizes(args: argparse.Namespace) -> tuple[str, float, Curves]:
    """Theorems 1 to 3 and the previous bound."""
    missing = [f"--{name.replace('_', '-')}" for name in SIZES[:4] if getattr(args, name) is None]
    if missing:
        raise ModelError(f"the sizes {', '.join(missing)} are missing; expected --states, --actions, --horizon and --max-delay, or a model")
    from pkd import bounds

    S, A, H, D = args.states, args.actions, args.horizon, args.max_delay
    W, B, delta = D if args.longest is None else args.longest, args.branching or S, args.delta
    curves: Curves = {
        "Theorem 1 (known delay law), explicit": lambda k: bounds.known_delay(S, A, H, D, W, B, k, delta),
        "Theorem 2 (unknown delay law), explicit": lambda k: bounds.unknown_delay(S, A, H, D, W, B, k, delta),
        "Theorem 1, rate": lambda k: bounds.known_delay_rate(S, A, H, D, B, k, delta),
        "Theorem 2, rate": lambda k: bounds.unknown_delay_rate(S, A, H, D, W, B, k, delta),
        "previous bound (Chen et al. 2023), rate": lambda k: bounds.previous_rate(S, A, H, D, k),
    }
    if bounds.code_size(S, H, D, B) >= 2:
        curves[LOWER] = lambda k: bounds.lower_bound(S, A, H, D, B, k)
    return f"S={S}, A={A}, H={H}, D={D}, W={W}, B={B}", float(H), curves


def _row(label: str, curve: Callable[[float], Any], episodes: int, width: float) -> tuple[Any, ...]:
    from pkd import bounds

    value: Bound | float = curve(episodes)
    if not isinstance(value, bounds.Bound):
        return label, value, "", "", ""
    return label, float(value), value.leading, value.lower_order, float(bounds.smallest_episodes(curve, width))


def _draw(args: argparse.Namespace, title: str, width: float, curves: Curves) -> None:
    from matplotlib.figure import Figure

    from pkd import bounds

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = bounds.plot(curves, [10**e for e in range(13)], width, figure.subplots())
    axes.axvline(args.episodes, color="0.8", linewidth=1)
    axes.set_title(title)
    axes.legend(fontsize="small", frameon=False)
    save_figure(figure, args.plot)
