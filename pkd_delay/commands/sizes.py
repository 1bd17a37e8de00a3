"""The sizes of a delayed MDP, from which `pkd bound` evaluates Theorems 1 to 3.

  pkd bound --states 5 --actions 2 --horizon 10 --max-delay 3 --longest 2 --branching 5 --episodes
  1e4

The command line finds this module in the entry-point group `pkd.bounds`. Rates are compared with
the previous bound (Chen et al. 2023) on equal terms: the paper quotes that bound without its
logarithms, so all of these rows leave them out, and lower-order terms too.
"""

from __future__ import annotations

import argparse

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
    group.add_argument(
        "--longest",
        type=cli.positive,
        metavar="W",
        help="the largest inter-arrival time (default: the largest delay)",
    )
    group.add_argument(
        "--branching",
        type=cli.positive,
        metavar="B",
        help="bound on the support of P(s, a) (default: S)",
    )


def bounds(args: argparse.Namespace) -> cli.Bounds:
    """Theorems 1 to 3 and the previous bound."""
    missing = [f"--{name.replace('_', '-')}" for name in NEEDED if getattr(args, name) is None]
    if missing:
        raise ModelError(
            f"the sizes {', '.join(missing)} are missing; "
            "expected --states, --actions, --horizon and --max-delay, or a model"
        )
    from pkd_delay import bounds as theory
    from pkd_delay.bounds import Bound

    S, A, H, D = args.states, args.actions, args.horizon, args.max_delay
    W, B, delta = D if args.longest is None else args.longest, args.branching or S, args.delta
    curves: cli.Curves = {
        "Theorem 1 (known delay law), explicit": lambda k: theory.known_delay(
            S, A, H, D, W, B, k, delta
        ),
        "Theorem 2 (unknown delay law), explicit": lambda k: theory.unknown_delay(
            S, A, H, D, W, B, k, delta
        ),
        f"Theorem 1, {RATE}": lambda k: Bound(
            theory.known_delay_rate(S, A, H, D, B, k, logarithms=False).leading
        ),
        f"Theorem 2, {RATE}": lambda k: Bound(
            theory.unknown_delay_rate(S, A, H, D, W, B, k, logarithms=False).leading
        ),
        f"previous bound (Chen et al. 2023), {RATE}": lambda k: theory.previous_rate(S, A, H, D, k),
    }
    notes = [
        f"The rows with a {RATE} can be compared with each other, not with the explicit bounds."
    ]
    if theory.code_size(S, H, D, B) < 2:
        notes.append(
            f"{LOWER} says nothing at these sizes: "
            "D~ = floor(min(D, H/4, B/2, S/4 - 1)) must be at least 2"
        )
    else:
        curves[LOWER] = lambda k: theory.lower_bound(S, A, H, D, B, k)
        if not theory.lower_bound(S, A, H, D, B, args.episodes).proved:
            notes.append(f"{LOWER}: at these sizes a formula, not proved; pkd_delay.hard says why")
    return cli.Bounds(f"S={S}, A={A}, H={H}, D={D}, W={W}, B={B}", float(H), curves, tuple(notes))
