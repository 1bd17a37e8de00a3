"""The sizes of a delayed MDP, from which `pkd bound` evaluates Theorems 1 to 3.

  pkd bound --states 5 --actions 2 --horizon 10 --max-delay 3 --longest 2 --branching 5

The command line finds this module in the entry-point group `pkd.bounds`. Rates are compared with
the previous bound (Chen et al. 2023) on equal terms: the paper quotes that bound without its
logarithms, so all of these rows leave them out, and lower-order terms too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pkd
from pkd import ModelError, cli

__all__ = ["SIZES", "bounds", "configure"]

SIZES = ("states", "actions", "longest", "branching")  # of its own; --horizon belongs to the model
NEEDED = ("states", "actions", "horizon", "max_delay")
LOWER = "Theorem 3 (lower bound)"
RATE = "leading rate without logarithms"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the flags; --horizon and --max-delay are flags of every command that takes a model."""
    group = parser.add_argument_group("sizes of a delayed MDP", "in place of a model")
    group.add_argument("--states", type=cli.positive, metavar="S")
    group.add_argument("--actions", type=cli.positive, metavar="A")
    longest = "the largest inter-arrival time (default: the largest delay)"
    group.add_argument("--longest", type=cli.positive, metavar="W", help=longest)
    support = "bound on the support of P(s, a) (default: S)"
    group.add_argument("--branching", type=cli.positive, metavar="B", help=support)


def bounds(args: argparse.Namespace) -> cli.Bounds:
    """Theorems 1 to 3 and the previous bound."""
    missing = [f"--{name.replace('_', '-')}" for name in NEEDED if getattr(args, name) is None]
    if missing:
        raise ModelError(
            f"the sizes {', '.join(missing)} are missing; "
            "expected --states, --actions, --horizon and --max-delay, or a model"
        )
    from pkd_delay.theory.bounds import DelaySizes

    S, A, H, D = (getattr(args, name) for name in NEEDED)
    W, B = D if args.longest is None else args.longest, args.branching or S
    sizes = DelaySizes(S, A, H, D, W, B, args.delta)

    def lead(rate: Callable[..., pkd.bounds.Bound]) -> Callable[[float], pkd.bounds.Bound]:
        return lambda k: pkd.bounds.Bound(rate(k, logarithms=False).leading)

    curves: cli.Curves = {
        "Theorem 1 (known delay law), explicit": sizes.known_delay,
        "Theorem 2 (unknown delay law), explicit": sizes.unknown_delay,
        f"Theorem 1, {RATE}": lead(sizes.known_delay_rate),
        f"Theorem 2, {RATE}": lead(sizes.unknown_delay_rate),
        f"previous bound (Chen et al. 2023), {RATE}": sizes.previous_rate,
    }
    notes = [
        f"The rows with a {RATE} can be compared with each other, not with the explicit bounds."
    ]
    if sizes.code_size < 2:
        notes.append(
            f"{LOWER} says nothing at these sizes: "
            "D~ = floor(min(D, H/4, B/2, S/4 - 1)) must be at least 2"
        )
    else:
        curves[LOWER] = sizes.lower_bound
        lower = sizes.lower_bound(args.episodes)
        if not lower.proved:
            why = "; ".join(lower.unmet) or "D~ is far below the absolute constant of the proof"
            notes.append(f"{LOWER}: at these sizes a formula, not proved: {why}")
    return cli.Bounds(f"S={S}, A={A}, H={H}, D={D}, W={W}, B={B}", float(H), curves, tuple(notes))
