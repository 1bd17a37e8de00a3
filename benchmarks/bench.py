"""One command, one page of tables: pkd beside its peers and beside the limit of the machine.

Planning: `planners.py`, the same problem and the same value to 1e-9 for every program; a row says
so where it is not. One more delay (`--peak`) is for pkd alone, with its memory. Learning:
`learning.py` and `delay_learning.py`. Wrappers: `wrappers.py`. Start-up: `startup.py`. Growth:
`growth.py`. Each case runs in a process of its own, with an empty cache of compiled kernels, so
that its first call is a first call. What is not installed is skipped, and its row says so.
`--page` writes the tables into a page, between the two lines that mark them.

    python benchmarks/bench.py --out out [--page docs/reference/performance.md] [--quick]
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from environments import CACHE, find_python
from measuring import Case, add_limits, make_parser, run_case, show

HERE = Path(__file__).parent
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
AGREE = 1e-9
# A planner, the module that it needs, and the environment that has it, where that is another one.
PEERS = {
    "pkd": ("pkd", None),
    "quantecon": ("quantecon", None),
    "scipy": ("scipy", None),
    "stormpy": ("stormpy", None),
    "mdpsolver": ("mdpsolver", None),
    "mdpax": ("mdpax", "mdpax"),
}
NAMES = {"scipy": "scipy, ten lines by hand", "quantecon": "QuantEcon"}


def plan(args: argparse.Namespace, delay: int, names: Iterable[str] = PEERS) -> list[str]:
    """The table of planners for one delay."""
    sizes = f"S=6,A=2,B=3,H=8,D={delay}" if args.quick else f"D={delay}"
    cases = {name: _run_planner(name, sizes, args) for name in names}
    limit = run_case(
        str(HERE / "planners.py"), ["limit", "--sizes", sizes], args.limit, args.memory
    )
    ours = cases["pkd"]
    rows = []
    for name, case in cases.items():
        rows.append([
            NAMES.get(name, name), show(case, "build", 4), show(case, "first", 3),
            show(case, "solve", 5), show(case, "least", 5), _divide(case, "solve", ours),
            _divide(case, "least", ours), show(case, "whole", 5),
            _divide(case, "whole", ours, "whole"), show(case, "memory", 0), _check(case, ours),
        ])  # fmt: skip
    if isinstance(limit, dict):
        remark = f"reading and writing V once per step, {limit['bandwidth']:.1f} GB/s"
        rows.append([
            "the machine's limit", "-", "-", show(limit, "solve", 5), "-",
            _divide(limit, "solve", ours), "-", "-", "-", "-", remark,
        ])  # fmt: skip
    headers = [
        "program", "build s", "first call s", "solve s", "H - D steps s", "solve / pkd",
        "H - D steps / pkd", "whole s", "whole / pkd", "peak MB", "value",
    ]  # fmt: skip
    return [f"**Planning, constant delay {delay}.**", "", *_write_table(headers, rows)]


def _run_planner(name: str, sizes: str, args: argparse.Namespace) -> Case:
    module, environment = PEERS[name]
    python: Path | str = sys.executable
    if environment:
        python = find_python(environment, args.cache)
        if isinstance(python, str):
            return python
    found = subprocess.run(
        [
            python,
            "-c",
            f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)",
        ]
    )
    if found.returncode:
        return "skipped: not installed here"
    print(f"{name}, {sizes} ...", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        clean = {**os.environ, "NUMBA_CACHE_DIR": folder}
        words = [name, "--sizes", sizes, *(["--repeats", "1"] if args.quick else [])]
        script = str(HERE / "planners.py")
        return run_case(script, words, args.limit, args.memory, clean, str(python))


def _divide(case: Case, name: str, ours: Case, part: str = "solve") -> str:
    """How often our part fits into a peer's."""
    if isinstance(case, str) or isinstance(ours, str) or name not in case:
        return "-"
    return f"{case[name] / ours[part]:.2f}"


def _check(case: Case, ours: Case) -> str:
    """The value, and whether it is ours."""
    if isinstance(case, str):
        return case
    if isinstance(ours, str):
        return f"{case['value']:.10f}"
    apart = max(abs(case["value"] - ours["value"]), case.get("apart", 0.0))
    return f"{case['value']:.10f}" + ("" if apart <= AGREE else f", **{apart:.1e} apart**")


def wrap(args: argparse.Namespace) -> list[str]:
    """The table of wrappers."""
    rows = []
    names = {
        "bare": "FrozenLake-v1 8x8, no wrapper",
        "gymnasium": "Gymnasium DelayObservation",
        "late": "pkd_delay.LateEnv",
    }
    words = ["--steps", "2000"] if args.quick else []
    for name, title in names.items():
        case = run_case(str(HERE / "wrappers.py"), [name, *words], args.limit, args.memory)
        agree = "-" if isinstance(case, dict) else case
        if isinstance(case, dict) and "agree" in case:
            agree = f"{case['agree']:.0%}"
        rows.append([title, show(case, "speed", 0), agree])
    headers = ["environment", "steps/s", "same observation as the other wrapper"]
    return ["**Late observations, constant delay 2.**", "", *_write_table(headers, rows)]


def run_script(title: str, name: str, args: argparse.Namespace, *words: str) -> list[str]:
    """The table that another benchmark writes as CSV."""
    print(f"{name} ...", flush=True)
    command = [sys.executable, str(HERE / f"{name}.py"), "--out", str(args.out), *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return [f"**{title}** not measured: {(done.stderr.splitlines() or ['?'])[-1]}"]
    with (args.out / f"{name}.csv").open() as file:
        headers, *rows = list(csv.reader(file))
    return [f"**{title}**", "", *_write_table(headers, [[_shorten(v) for v in r] for r in rows])]


def _shorten(word: str) -> str:
    try:
        return f"{float(word):.4g}" if "." in word else word
    except ValueError:
        return word


def _write_table(headers: list[str], rows: list[list[str]]) -> list[str]:
    lines = [headers, ["---"] * len(headers), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def describe_machine() -> str:
    """The processor, its load and the day: what numbers must be read with."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":")[1].strip() if models else name
    load = os.getloadavg()[0]
    quiet = "quiet" if load < 0.5 else "**busy: do not quote these numbers**"
    day = time.strftime("%Y-%m-%d")
    return (
        f"Measured on {day}: {name}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {load:.1f} before the first case ({quiet})."
    )


def write_page(page: Path, lines: list[str], figure: Path) -> None:
    """Replaces what stands between the two marks of a page, and puts the figure beside it."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page} has no lines {BEGIN} and {END}")
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    if figure.exists():
        shutil.copy(figure, page.with_name(figure.name))
        lines = [*lines, f"![Seconds of planning and of learning by each size]({figure.name})"]
    page.write_text(before + "\n".join([BEGIN, "", *lines, "", END]) + after)


def main() -> None:
    parser = make_parser(__doc__)
    add_limits(parser, limit=600)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--page", type=Path, help="write the tables into this page, too")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder for peers' environments")
    parser.add_argument("--delays", type=int, nargs="+", default=[2, 4, 6, 8])
    parser.add_argument(
        "--peak",
        type=int,
        default=10,
        metavar="D",
        help="a delay for pkd alone, whose explicit model needs up to 16 GB (default: 10)",
    )
    parser.add_argument("--only", choices=["planning", "learning", "wrappers", "growth"])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    parts = [[describe_machine()]]
    if args.quick:
        parts.append(["**Tiny sizes: these numbers only show that the script runs.**"])
    if args.only in (None, "planning"):
        parts += [plan(args, delay) for delay in ([1] if args.quick else args.delays)]
        parts.append(plan(args, 2 if args.quick else args.peak, ["pkd"]))
    if args.only in (None, "wrappers"):
        parts.append(wrap(args))
    if args.only in (None, "learning"):
        few = ["--episodes", "500"] if args.quick else []
        # The slowest settings of the peers play a hundred episodes per second.
        peers = few or ["--episodes", "3000"]
        parts += [
            run_script("Start-up.", "startup", args),
            run_script(
                "Learning, S = 10, A = 2, H = 20.", "learning", args, "--cache", str(args.cache),
                *peers, *(["--rounds", "1"] if args.quick else []),
            ),
            run_script(
                "Learning under delay, S = 5, A = 2, H = 10, D = 3, W = 2.", "delay_learning", args,
                *few,
            ),
        ]  # fmt: skip
    lines = [line for part in parts for line in (*part, "")]
    (args.out / "performance.md").write_text("\n".join(lines))
    print("\n".join(lines))
    if args.only in (None, "growth"):
        words = ["--out", str(args.out), *(["--quick"] if args.quick else [])]
        subprocess.run([sys.executable, str(HERE / "growth.py"), *words], check=True)
    print(f"all of it took {(time.monotonic() - began) / 60:.1f} minutes")
    if args.page:
        write_page(args.page, lines, args.out / "growth.svg")


if __name__ == "__main__":
    main()
