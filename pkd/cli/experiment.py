"""Runs a grid of models, agents and seeds from one file; a killed experiment is resumed.

  pkd experiment inventory                     an experiment file of an installed package
  pkd experiment my.toml --workers 4           processes of this machine
  pkd experiment my.toml --dask tcp://10.0.0.1:8786
  pkd experiment my.toml --status              what is done, without computing anything
  pkd experiment my.toml --x states --at 900   regret against a parameter of its sweep
  pkd experiment --list                        the files of installed packages

Every finished run is a file in the folder, and the same command computes only what is missing. One
process at a time may work on a folder. The results are the same bits in any case.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from pkd.cli.arguments import picture, positive, say_remarks, writable
from pkd.cli.output import Cell, draw_file, make_records, print_json, table
from pkd.model import ModelError

if TYPE_CHECKING:
    from pkd.experiments.grid import Grid
    from pkd.experiments.results import Results

MOST_MODELS = 12  # that are printed line by line
HELP = "run models, agents and seeds from one file"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="an experiment file, or the name of an installed one",
    )
    parser.add_argument("--list", action="store_true", help="list the installed experiment files")
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="W",
        help="processes that share the runs (default: 1)",
    )
    who.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler whose workers do the runs")
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        help="where runs are kept (default: as the file says, or out/ and the file's name)",
    )
    parser.add_argument("--status", action="store_true", help="say what is done, and stop")
    parser.add_argument("--csv", type=writable, metavar="FILE", help="write one line for each run")
    parser.add_argument("--plot", type=picture, metavar="FILE", help="draw the cumulative regret")
    parser.add_argument(
        "--x", metavar="NAME", help="table and figure: regret against this parameter of the sweep"
    )
    parser.add_argument(
        "--at", type=positive, metavar="K", help="regret after K episodes (default: at the end)"
    )
    parser.add_argument("--split", metavar="NAME", help="a panel for each value of this parameter")
    add_output(parser)
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def add_output(parser: argparse.ArgumentParser) -> None:
    """--bound and --form."""
    parser.add_argument(
        "--bound", action="store_true", help="draw the explicit bound of the theorem, too"
    )
    parser.add_argument(
        "--form",
        choices=("plain", "markdown", "latex"),
        default="plain",
        help="how the table is written (default: plain)",
    )


def run(args: argparse.Namespace) -> int:
    from pkd.cli.experiment_file import find_file, list_files, read_experiment

    if args.list:
        _show(args, ("name", "file"), [(name, str(path)) for name, path in list_files().items()])
        return 0
    if args.file is None:
        raise ModelError("no experiment was named; expected a file, or --list")
    path = find_file(args.file)
    grid, outputs = read_experiment(path)
    folder = Path(args.folder or outputs.folder or Path("out") / path.stem)
    if args.status:
        _show(args, ("model", "agent", "done", "left"), _count_done(grid, folder))
        return 0
    args.csv = args.csv or (outputs.csv and Path(outputs.csv))
    args.plot = args.plot or (outputs.plot and Path(outputs.plot))
    args.x, args.at = args.x or outputs.x, args.at or outputs.at
    args.split = args.split or outputs.split
    began = time.perf_counter()
    results = run_experiment(
        args,
        grid,
        folder,
        lambda _: f"{len(grid)} runs in {folder}; {time.perf_counter() - began:.1f} s",
    )
    if outputs.curves:
        results.to_csv(outputs.curves, curves=True)
    if outputs.table:
        from pkd.files.atomic import write_text

        form = "latex" if outputs.table.endswith(".tex") else "markdown"
        write_text(Path(outputs.table), results.table(form, x=args.x, at=args.at) + "\n")
    return 0


def _show(args: argparse.Namespace, headers: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    if args.json:
        print_json(make_records(headers, rows))
    else:
        print(table(headers, rows))


def run_experiment(
    args: argparse.Namespace,
    grid: Grid,
    folder: str | Path | None,
    describe: Callable[[Results], str],
) -> Results:
    """Computes a grid, prints its table and a line about it, and writes what was asked for."""
    from pkd.experiments.experiment import connect_dask, run_grid

    if not grid.file["sweep"]:
        for model in grid.models:
            say_remarks(model.remarks, model.label)
    with ExitStack() as stack:
        workers = args.workers
        if args.dask is not None:
            workers, leave = connect_dask(args.dask)
            stack.callback(leave)
        results = run_grid(grid, workers, folder, progress=False if args.quiet else None)
    x, at = getattr(args, "x", None), getattr(args, "at", None)
    if x is None and len(results.models) > MOST_MODELS:
        x = next(iter(results.parameters), None)  # a line for each model would be too many
    if args.json:
        columns = results.arrays()
        cells = zip(*(column.tolist() for column in columns.values()), strict=True)
        print_json({"episodes": grid.episodes, "runs": make_records(list(columns), cells)})
    else:
        print(results.table(args.form, x=x, at=at))
        seeds = len(grid.seeds)
        over = "one seed" if seeds == 1 else f"means over {seeds} seeds, Student's 95% intervals"
        print(f"{grid.episodes:,} episode{'s' * (grid.episodes > 1)}, {over}; {describe(results)}")
    if args.csv is not None:
        results.to_csv(args.csv)
    split = getattr(args, "split", None)
    bounds = _find_bounds(args, grid)
    draw_file(args.plot, lambda: results.plot(bounds, x=x, at=at, split=split), args.csv)
    return results


def _find_bounds(args: argparse.Namespace, grid: Grid) -> dict[str, Callable[[float], float]]:
    """The bound of each model as a function of the episodes, if it is asked for."""
    from pkd.theory.bounds import ModelBound

    if not args.bound:
        return {}
    return {one.label: ModelBound.of(one.build().compiled, grid.delta) for one in grid.models}


def _count_done(grid: Grid, folder: Path) -> list[tuple[Cell, ...]]:
    """What is done and left for each model and agent."""
    from pkd.experiments.grid import list_jobs
    from pkd.experiments.store import Store

    store = Store(folder)
    rows: dict[tuple[str, str], list[int]] = {}
    for job in list_jobs(grid):
        rows.setdefault((job.model.label, job.agent.label), [0, 0])[not store.is_done(job.key)] += 1
    return [(*names, *row) for names, row in rows.items()]
