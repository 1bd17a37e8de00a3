"""Evaluates the paper's regret bounds, for a model or from sizes.

  pkd bound inventory --episodes 1e6 --plot bound.png

Explicit bounds hold with probability 1 - delta for the theory constants of MVP and a new plan in
every episode; with --replan doubling in `pkd learn`, the default, for twice the number. Rates are
O-forms with constant 1 and promise nothing by themselves. A bound says something from the episode
on at which it falls below the largest regret there can be, H K.

Any package can add bounds from sizes in the entry-point group `pkd.bounds`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import attrs

from pkd.cli.arguments import add_model, find_model, fraction, picture, positive, writable
from pkd.cli.output import Cell, make_records, print_json, table, write_files
from pkd.model import ModelError
from pkd.problem import installed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pkd.theory.bounds import Bound

HELP = "evaluate the regret bounds"
GROUP = "pkd.bounds"
HEADERS = ("bound", "regret", "leading term", "lower order", "below H K from")
Curves = dict[str, "Callable[[float], Bound | float]"]  # label -> K -> bound


@attrs.frozen
class Bounds:
    """Bounds that are shown together."""

    title: str
    width: float  # H, or the length of the range of returns: width * K is the trivial bound
    curves: Curves
    notes: tuple[str, ...] = ()  # sentences below the table


class Source(Protocol):
    """A module that evaluates bounds from sizes which the user types instead of a model."""

    SIZES: tuple[str, ...]  # its arguments, none of which goes together with a model

    def configure(self, parser: argparse.ArgumentParser, /) -> None:
        """Adds its arguments."""

    def bounds(self, args: argparse.Namespace, /) -> Bounds:
        """The bounds at the sizes that were typed; a ModelError names those that are missing."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    for source in _sources():
        source.configure(parser)
    parser.add_argument(
        "--episodes", type=positive, default=10_000, metavar="K", help="episodes (default: 10000)"
    )
    delta = "probability with which a bound may fail (default: 0.05)"
    parser.add_argument("--delta", type=fraction, default=0.05, help=delta)
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write the table")
    curves = "draw the bounds over the episodes"
    parser.add_argument("--plot", type=picture, metavar="FILE", help=curves)


def run(args: argparse.Namespace) -> int:
    found = _bound_model(args) if args.words or args.model else _bound_sizes(args)
    rows = [_make_row(label, curve, args.episodes, found) for label, curve in found.curves.items()]
    if args.json:
        said = {"problem": found.title, "episodes": args.episodes, "delta": args.delta}
        said |= {"largest_regret": found.width * args.episodes, "notes": list(found.notes)}
        print_json({**said, "bounds": make_records(HEADERS, rows)})
        write_files(args.csv, HEADERS, rows, args.plot, lambda: _draw(args, found))
        return 0
    print(
        f"{found.title}, {args.episodes:,} episodes, delta {args.delta:g}; "
        f"largest possible regret {found.width * args.episodes:.7g}"
    )
    print(table(HEADERS, rows))
    for note in found.notes:
        print(note)
    write_files(args.csv, HEADERS, rows, args.plot, lambda: _draw(args, found))
    return 0


def _sources() -> list[Source]:
    return list(installed(GROUP).values())


def _list_given(source: Source, args: argparse.Namespace) -> list[str]:
    """The sizes of a source that were typed, as flags."""
    names = [name for name in source.SIZES if getattr(args, name, None) is not None]
    return [f"--{name.replace('_', '-')}" for name in names]


def _bound_model(args: argparse.Namespace) -> Bounds:
    """The general theorem on a model; the width of its returns takes the place of H."""
    found = find_model(args)
    from pkd.theory.bounds import ModelBound

    given = [flag for source in _sources() for flag in _list_given(source, args)]
    if given:
        raise ModelError(
            f"{', '.join(given)}: {found.name} has its own sizes; "
            "expected a model or sizes, not both"
        )
    bound = ModelBound.of(found.model, args.delta)
    return Bounds(found.name, bound.width, {"general theorem, explicit": bound})


def _bound_sizes(args: argparse.Namespace) -> Bounds:
    sources = _sources()
    if not sources:
        raise ModelError(
            "no model was named, and no installed package evaluates bounds from sizes; "
            f"expected a model, or a package with the entry-point group {GROUP}"
        )
    return max(sources, key=lambda source: len(_list_given(source, args))).bounds(args)


def _make_row(
    label: str, curve: Callable[[float], Bound | float], episodes: int, found: Bounds
) -> tuple[Cell, ...]:
    from pkd import bounds

    value = curve(episodes)
    if not isinstance(value, bounds.Bound):
        return label, float(value), "", "", ""
    first = float(bounds.smallest_episodes(curve, found.width))
    return label, float(value), value.leading, value.lower_order, first


def _draw(args: argparse.Namespace, found: Bounds) -> Figure:
    from matplotlib.figure import Figure

    from pkd import bounds

    figure = Figure(figsize=(8, 5), layout="constrained")
    grid = [10**e for e in range(13)]
    axes = bounds.plot(found.curves, grid, found.width, figure.subplots())
    axes.axvline(args.episodes, color="0.8", linewidth=1)
    axes.set_title(found.title)
    axes.legend(fontsize="small", frameon=False)
    return figure
