"""Start-up: what a user waits for before anything is computed.

Each line is the best of several fresh processes.

python benchmarks/startup.py --out out
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from measuring import make_parser

from pkd.cli.output import table, write_csv

ROUNDS = 7

HELP = "from pkd.cli import main; main(['--help'])"
IMPORT = "import time; began = time.perf_counter(); import pkd; print(time.perf_counter() - began)"
FIRST_PLAN = """
import time
import pkd
tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
mdp = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
began = time.perf_counter()
pkd.plan(mdp.model(), mdp.law())
print(time.perf_counter() - began)
"""


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="folder for the table (default: out)"
    )
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)

    process(FIRST_PLAN)  # fills the cache of compiled code
    rows = [
        ("an empty Python process, for comparison", whole("pass")),
        ("pkd --help, the whole process", whole(HELP)),
        ("import pkd", inside(IMPORT)),
        ("the first plan from a warm cache, imports included", inside(FIRST_PLAN)),
    ]
    headers = ["what", "seconds"]
    print(table(headers, [(name, round(seconds, 4)) for name, seconds in rows]))
    write_csv(args.out / "startup.csv", headers, rows)


def whole(program: str) -> float:
    """Seconds from the start of a process to its end."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        process(program)
        times.append(time.perf_counter() - began)
    return min(times)


def inside(program: str) -> float:
    """Seconds that the program measures itself."""
    return min(float(process(program)) for _ in range(ROUNDS))


def process(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
