"""Publishes a study: a figure, a CSV with all digits, and a page.

The page has the constants, the table and the conclusions.

A study is a function from its settings to a `Report`. `command_line` makes a command of it.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs
from matplotlib.figure import Figure

import pkd
from pkd.cli.output import save_figure, table, write_csv

__all__ = ["Report", "command_line", "curve", "from_zero", "panels", "publish", "sizes_as_ticks"]

Setting = TypeVar("Setting")
WIDTH = 150  # characters of a line under a figure


@attrs.frozen
class Report:
    """What a study found."""

    name: str  # of the files
    title: str
    constants: Mapping[str, Any]  # sizes, seeds, delta and all else that was fixed
    headers: Sequence[str]
    rows: Sequence[Sequence[Any]]
    conclusions: Sequence[str]
    figure: Figure

    def column(self, header: str) -> list[Any]:
        """One column of the table."""
        place = list(self.headers).index(header)
        return [row[place] for row in self.rows]

    def where(self, **wanted: Any) -> list[dict[str, Any]]:
        """The rows in which each named column has the given value, as dictionaries."""
        named = [dict(zip(self.headers, row, strict=True)) for row in self.rows]
        return [row for row in named if all(row[name] == value for name, value in wanted.items())]

    @property
    def caption(self) -> str:
        """The constants in one line."""
        return "; ".join(f"{name}: {value}" for name, value in self.constants.items())


def publish(report: Report, out: Path) -> None:
    """Writes NAME.png, NAME.csv and NAME.md, and prints the page."""
    out.mkdir(parents=True, exist_ok=True)
    report.figure.suptitle(report.title)
    report.figure.supxlabel(textwrap.fill(report.caption, WIDTH), fontsize=7)
    save_figure(report.figure, out / f"{report.name}.png")
    write_csv(out / f"{report.name}.csv", report.headers, report.rows)
    body = textwrap.indent(
        table(report.headers, [[_short(value) for value in row] for row in report.rows]), "    "
    )
    ends = "\n".join(f"- {sentence}" for sentence in report.conclusions)
    page = f"# {report.title}\n\n{report.caption}\n\n{body}\n\n{ends}\n"
    (out / f"{report.name}.md").write_text(page, encoding="utf-8")
    print(page)


def command_line(
    study: Callable[[Setting], Report], full: Setting, quick: Setting, doc: str | None
) -> None:
    """Runs a study as a command with --quick and --out."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer seeds and sizes")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("out/studies"),
        help="folder for the files (default: out/studies)",
    )
    args = parser.parse_args()
    began = time.perf_counter()
    report = study(quick if args.quick else full)
    mode = {"mode": "quick" if args.quick else "full", "pkd": pkd.__version__}
    publish(attrs.evolve(report, constants={**report.constants, **mode}), args.out)
    print(f"{report.name}: {time.perf_counter() - began:.0f} s")


def panels(count: int) -> tuple[Figure, list[Any]]:
    """A figure with so many axes side by side, which needs no screen."""
    figure = Figure(figsize=(6.2 * count, 5.2), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def curve(ax: Any, x: Sequence[float], estimates: Sequence[Any], label: str, **style: Any) -> None:
    """Estimates with a bar of two standard errors."""
    values, errors = zip(*((e.value, e.error) for e in estimates), strict=True)
    ax.errorbar(
        x,
        values,
        yerr=[2 * error for error in errors],
        label=label,
        **{"marker": "o", "markersize": 4, "capsize": 2} | style,
    )


def from_zero(ax: Any) -> None:
    """Starts the y-axis at zero and leaves room above the data."""
    ax.set_ylim(0, 1.15 * ax.dataLim.y1)


def sizes_as_ticks(ax: Any, sizes: Sequence[int]) -> None:
    """Marks the sizes that were run on the x-axis, and no others."""
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set_xticks([], minor=True)


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value
