"""Threads: a plan with one thread and with several, on a quiet machine and beside busy processes.

The model is a constant delay of 8 with S = 20, A = 4, B = 5, H = 20. It is compiled once. One and
several threads take turns in one process, so that both meet the same machine. The ratio is seconds
with several threads / seconds with one: below 1 threads gain, above 1 they lose.

    python benchmarks/threads.py [--threads 2] [--busy 1] [--repeats 15]
"""

from __future__ import annotations

import statistics
import time

from delay_planning import B, make_table
from measuring import burn, make_parser

import pkd
import pkd_delay
from pkd.cli.output import table
from pkd.engine import Compiled


def set_threads(count: int) -> None:
    """Sets how many threads a sweep may use."""
    from pkd.engine.threads import set_threads

    set_threads(count)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--threads", type=int, default=2, help="default: %(default)s")
    parser.add_argument(
        "--busy", type=int, default=1, help="busy processes beside the plan (default: %(default)s)"
    )
    parser.add_argument("--repeats", type=int, default=15, help="default: %(default)s")
    parser.add_argument("--delay", type=int, default=8, help="default: %(default)s")
    args = parser.parse_args()
    if args.threads < 2 or args.busy < 0 or args.repeats < 1:
        parser.error(
            "expected --threads of at least 2, --busy of at least 0, --repeats of at least 1"
        )
    delayed = pkd_delay.DelayedMDP.constant(make_table(), args.delay, branching=B)
    compiled, law = pkd.compile(delayed.known()), delayed.law()
    values = set()
    for count in (1, args.threads):
        set_threads(count)
        values.add(pkd.plan(compiled, law).value)
    headers = ["machine", "threads", "median s", "fastest s", "slowest s", "ratio of medians"]
    rows: list[list[object]] = []
    for name, busy in (("quiet", 0), (f"beside {args.busy} busy", args.busy)):
        with burn(busy):
            times = take_turns(compiled, law, (1, args.threads), args.repeats)
        one = statistics.median(times[1])
        for count, seconds in times.items():
            median = statistics.median(seconds)
            figures = [f"{s:.4f}" for s in (median, min(seconds), max(seconds))]
            rows.append([name, count, *figures, "" if count == 1 else f"{median / one:.2f}"])
    print(table(headers, rows))
    print(f"The value has the same bits with each number of threads: {len(values) == 1}.")


def take_turns(
    compiled: Compiled, law: pkd.Law, counts: tuple[int, ...], repeats: int
) -> dict[int, list[float]]:
    """Seconds of each plan, by the number of threads."""
    times: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(repeats):
        for count in counts:
            set_threads(count)
            began = time.perf_counter()
            pkd.plan(compiled, law)
            times[count].append(time.perf_counter() - began)
    return times


if __name__ == "__main__":
    main()
