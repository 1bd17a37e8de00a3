"""Runs a grid of models, agents and seeds from one file; what is done is not done again.

  pkd experiment inventory                     an experiment file of an installed package
  pkd experiment my.toml --workers 4           processes of this machine
  pkd experiment my.toml --dask tcp://10.0.0.1:8786
  pkd experiment my.toml --status              what is done, without computing anything
  pkd experiment --list                        the files of installed packages

Every finished run is a file in the folder, so a killed experiment goes on where it stopped, and
several processes may work on one folder. The results are the same bits in any case.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pkd.cli.arguments import picture, positive, say_remarks, writable
from pkd.cli.output import Cell, save_figure, table
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.experiments.record import Record
    from pkd.experiments.spec import Grid

HELP = "run models, agents and seeds from one file"
REDRAW_SECONDS = 0.2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="an experiment file, or the name of an installed one",
    )
    parser.add_argument("--list", action="store_true", help="list the installed experiment files")
    who = parser.add_mutually_exclusive_group()
    add_workers(parser, who)
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where runs are kept (default: as the file says, or out/ and the file's name)",
    )
    parser.add_argument("--status", action="store_true", help="say what is done, and stop")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write one line for each run")
    parser.add_argument("--plot", type=picture, metavar="FILE", help="draw the cumulative regret")
    add_bound(parser)
    parser.add_argument(
        "--form",
        choices=("plain", "markdown", "latex"),
        default="plain",
        help="how the table is written (default: plain)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def add_bound(parser: argparse.ArgumentParser) -> None:
    """--bound."""
    parser.add_argument(
        "--bound", action="store_true", help="draw the explicit bound of the theorem, too"
    )


def find_bounds(args: argparse.Namespace, grid: Grid) -> dict[str, Any]:
    """The bound of each model as a function of the episodes, if it is asked for."""
    from pkd.bounds import ModelBound

    if not args.bound:
        return {}
    return {one.label: ModelBound.of(one.build().compiled, grid.delta) for one in grid.models}


def add_workers(parser: argparse.ArgumentParser, who: Any) -> None:
    """--workers and --dask."""
    who.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="W",
        help="processes that share the runs (default: 1)",
    )
    who.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler whose workers do the runs")


def run(args: argparse.Namespace) -> int:
    from pkd.cli.experiment_file import find_file, list_files, read_experiment

    if args.list:
        print(table(("name", "file"), [(name, str(path)) for name, path in list_files().items()]))
        return 0
    if args.file is None:
        raise ModelError("no experiment was named; expected a file, or --list")
    path = find_file(args.file)
    grid, outputs = read_experiment(path)
    folder = Path(args.folder or outputs.folder or Path("out") / path.stem)
    if args.status:
        print(table(("model", "agent", "done", "running", "left"), _count(grid, folder)))
        return 0
    from pkd.experiments.comparison import Comparison

    for model in grid.models:
        say_remarks(model.remarks, model.label)
    began = time.perf_counter()
    comparison = Comparison(run_with(args, grid, folder))
    print(comparison.table(args.form))
    print(
        f"{len(grid)} runs of {grid.episodes:,} episodes in {folder}; means over "
        f"{len(grid.seeds)} seeds, 95% bootstrap intervals; {time.perf_counter() - began:.1f} s"
    )
    csv, plot = args.csv or outputs.csv, args.plot or outputs.plot
    if csv:
        comparison.results.to_csv(csv)
    if outputs.curves:
        comparison.results.to_csv(outputs.curves, curves=True)
    if plot:
        save_figure(comparison.plot(find_bounds(args, grid)), Path(plot))
    return 0


def run_with(args: argparse.Namespace, grid: Grid, folder: Path | None) -> Any:
    """The results of a grid, computed by whom --workers or --dask says."""
    from pkd.experiments.executors import connect_dask
    from pkd.experiments.experiment import run_grid

    watch = Live(grid) if not args.quiet and sys.stderr.isatty() else None
    with ExitStack() as stack:
        workers = args.workers
        if args.dask is not None:
            workers, leave = connect_dask(args.dask)
            stack.callback(leave)
        return run_grid(grid, workers, folder, watch)


def _count(grid: Grid, folder: Path) -> list[tuple[Cell, ...]]:
    """What is done, being done and left for each model and agent."""
    from pkd.experiments.claims import Claims
    from pkd.experiments.jobs import list_jobs
    from pkd.experiments.store import Store

    store, claims = Store(folder), Claims(folder / "claims")
    rows: dict[tuple[str, str], list[int]] = {}
    for job in list_jobs(grid):
        row = rows.setdefault((job.model.label, job.agent.label), [0, 0, 0])
        done = store.is_done(job.key)
        row[0 if done else 1 if claims.is_taken(job.key) else 2] += 1
    return [(*names, *row) for names, row in rows.items()]


def shorten(label: str, width: int) -> str:
    """A label in at most `width` columns; its two ends are left, where labels differ most.

    >>> shorten("two_state_chain --lags 0:.5,1:.5", 20)
    'two_state..:.5,1:.5'
    """
    half = width // 2 - 1
    return label if len(label) <= width else f"{label[:half]}..{label[-half + 1 :]}"


class Live:
    """A table of what is done that renews itself, and a bar with the time left."""

    def __init__(self, grid: Grid, write: Callable[[str], Any] = sys.stderr.write) -> None:
        self.sums: dict[tuple[str, str], list[float]] = {
            (model.label, agent.label): [0, 0.0] for model in grid.models for agent in grid.agents
        }
        self.seeds, self.write = len(grid.seeds), write
        self.lines = self.done = self.found = self.total = 0
        self.began = self.drawn = 0.0

    def begin(self, total: int) -> None:
        self.total, self.began = total, time.perf_counter()
        self._draw()

    def finish(self, record: Record, *, computed: bool) -> None:
        row = self.sums[record.model, record.label]
        row[0] += 1
        row[1] += float(record.regret[-1])
        self.done += 1
        self.found += not computed
        if time.perf_counter() - self.drawn > REDRAW_SECONDS:
            self._draw()

    def end(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self.lines:
            self.write(f"\x1b[{self.lines}F\x1b[J")
        self.lines = 0

    def _draw(self) -> None:
        from tqdm import tqdm

        self.drawn = time.perf_counter()
        size = shutil.get_terminal_size()
        rows: list[tuple[Cell, ...]] = [
            (
                *(shorten(name, size.columns // 3) for name in names),
                f"{int(n)}/{self.seeds}",
                total / n if n else "",
            )
            for names, (n, total) in self.sums.items()
            if n < self.seeds or self.done == self.total
        ]
        shown = table(("model", "agent", "runs", "mean regret"), rows[: max(1, size.lines - 4)])
        bar = tqdm.format_meter(
            self.done,
            self.total,
            self.drawn - self.began,
            ncols=size.columns - 1,
            unit="run",
            initial=self.found,
        )
        lines = [line[: size.columns - 1] for line in [*shown.splitlines(), bar]]
        self._clear()
        self.write("".join(f"{line}\n" for line in lines))
        self.lines = len(lines)
