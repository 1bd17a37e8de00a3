"""Runs the demonstration of an installed package: a table, a few sentences, and a figure in
out/demo.png.

  pkd demo
  pkd demo --episodes 1000 --seeds 10 --out somewhere

Any package can register one in the entry-point group `pkd.demos`: a callable with the keywords
episodes, seeds and progress.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pkd.cli.arguments import positive
from pkd.cli.output import Cell, table, write_files
from pkd.model import ModelError
from pkd.problem import installed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Showcase(Protocol):
    """What a demonstration returns."""

    @property
    def title(self) -> str: ...

    @property
    def headers(self) -> Sequence[str]: ...

    @property
    def rows(self) -> Sequence[Sequence[Cell]]: ...

    @property
    def notes(self) -> Sequence[str]:
        """Sentences below the table."""

    @property
    def figure(self) -> Figure: ...


HELP = "run the main demonstration: table, figure in out/demo.png"
GROUP = "pkd.demos"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="which demonstration (default: the first that is installed)",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="K",
        help="episodes of each run (default: the demonstration's own)",
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help="how many seeds (default: the demonstration's own)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="FOLDER",
        help="where table and figure go (default: out)",
    )


def run(args: argparse.Namespace) -> int:
    show = _choose(args.name)
    args.out.mkdir(parents=True, exist_ok=True)
    given = {"episodes": args.episodes, "seeds": args.seeds}
    shown = show(
        progress=sys.stderr.isatty(),
        **{key: value for key, value in given.items() if value is not None},
    )
    print(shown.title)
    print(table(shown.headers, shown.rows))
    for note in shown.notes:
        print(note)
    csv, plot = args.out / "demo.csv", args.out / "demo.png"
    write_files(csv, shown.headers, shown.rows, plot, lambda: shown.figure)
    print(f"table: {csv}, figure: {plot}")
    return 0


def _choose(name: str | None) -> Callable[..., Showcase]:
    demos = installed(GROUP)
    if not demos:
        raise ModelError(
            "no installed package has a demonstration; expected one in the entry-point group "
            f"{GROUP}"
        )
    if name is not None and name not in demos:
        raise ModelError(f"no demonstration is called {name!r}; expected one of {', '.join(demos)}")
    chosen: Callable[..., Showcase] = demos[name or next(iter(demos))]
    return chosen
