"""Lists the caches of compiled kernels, and removes those that no present source made.

pkd cache
pkd cache --remove-old

Every edit of a kernel and every version of numba makes a new cache of some 50 MB. One is old if it
is not that of this installation. Another installation on this machine may still use it; it would
compile again, which takes less than a minute.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from pkd.cli.output import Cell, make_records, print_json, table

HELP = "list and remove caches of compiled kernels"
HEADERS = ("folder", "MB", "days since use", "state")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--remove-old", action="store_true", help="remove all but the present one")


def run(args: argparse.Namespace) -> int:
    from pkd.engine.jit import PREFIX, cache_folder, list_roots

    present = Path(cache_folder())
    roots = {present.parent, *list_roots()}
    folders = sorted(one for root in roots for one in root.glob(f"{PREFIX}*") if _is_cache(one))
    rows, freed = list[tuple[Cell, ...]](), 0.0
    for folder in folders:
        files = [one.stat() for one in folder.rglob("*") if one.is_file()]
        size = sum(one.st_size for one in files) / 1e6
        used = max((one.st_mtime for one in files), default=folder.stat().st_mtime)
        state = "in use" if folder == present else "old"
        if args.remove_old and folder != present:
            shutil.rmtree(folder)
            state, freed = "removed", freed + size
        rows.append((str(folder), round(size, 1), round((time.time() - used) / 86400, 1), state))
    if args.json:
        print_json({"caches": make_records(HEADERS, rows), "freed_mb": round(freed, 1)})
        return 0
    print(table(HEADERS, rows))
    old = sum(row[3] == "old" for row in rows)
    if args.remove_old:
        print(f"{freed:.1f} MB freed")
    elif old:
        print(f"{old} old: pkd cache --remove-old removes them")
    return 0


def _is_cache(folder: Path) -> bool:
    """Whether a folder holds what numba writes, and nothing else."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    return folder.is_dir() and all(one.suffix in (".nbi", ".nbc") for one in files)
