"""Exploration: how long it takes from a model to its value, where the model is not a plain table.

For each case, in processes of their own: seconds to compile and to plan one after the other,
seconds of `pkd.plan(model, law)` as a whole, the value, the states, how often compiling asks the
model's methods (counted in one more run, by a subclass), asks per second of compiling, and peak
memory.

    python benchmarks/exploring.py [--limit 120] [--only taxi]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from measuring import Case, add_limits, make_parser, report, run_case, show, timed

import pkd
from pkd.cli.output import table

COUNTED = ("actions", "step", "step_many", "last_step", "reward", "outcomes", "share", "final")
LARGE_SHOP: dict[str, Any] = {"capacity": 60, "max_order": 30, "max_demand": 60}


def inventory(**options: Any) -> pkd.Problem:
    from pkd_examples.inventory import inventory

    return inventory(**options)


def late_actions(**options: Any) -> pkd.Problem:
    from pkd_examples.late_actions import late_actions

    return late_actions(**options)


def taxi(delay: int) -> pkd.Problem:
    """Taxi-v4 of Gymnasium, each observation late by `delay` steps."""
    import pkd_delay

    world = pkd.TabularMDP.from_gymnasium("Taxi-v4", 40)
    if not delay:
        return world
    delayed = pkd_delay.DelayedMDP.constant(world, delay)
    return pkd.as_problem((delayed.known(), delayed.law()))


class TwoProducts(pkd.PartiallyKnownMDP):
    """An inventory of two products: 10 (size + 1)^2 states, asked one by one.

    x: the demand for both, 3 d + e, or 9 in the morning. y: the two stocks, size + 1 levels each.
    """

    horizon = 60

    def __init__(self, size: int) -> None:
        self.size = size
        self.grid = (10, (size + 1) ** 2)

    def start(self) -> Any:
        return 9, 0

    def actions(self, x: Any, y: Any) -> Any:
        return range(4) if x == 9 else pkd.CHANCE

    def reward(self, x: Any, y: Any, a: Any) -> float:
        one, other = divmod(y, self.size + 1)
        d, e = divmod(x, 3)
        return -1.0 * ((a & 1) + (a >> 1)) if x == 9 else float(2 * min(one, d) + 3 * min(other, e))

    def step(self, x: Any, y: Any, a: Any) -> Any:
        one, other = divmod(y, self.size + 1)
        d, e = divmod(x, 3)
        if x == 9:
            stocks = min(one + 12 * (a & 1), self.size), min(other + 12 * (a >> 1), self.size)
            return [(1.0, stocks[0] * (self.size + 1) + stocks[1], "demand")]
        return [(1.0, max(one - d, 0) * (self.size + 1) + max(other - e, 0), pkd.sure(9))]

    def outcomes(self, z: Any) -> Any:
        return range(9)


class TwoProductsAtOnce(TwoProducts):
    """The same model, asked for many states at once."""

    def step_many(self, x: Any, y: Any) -> Any:
        one, other = np.divmod(y, self.size + 1)
        d, e = np.divmod(x, 3)
        morning = x == 9
        for a in range(4):
            first = np.minimum(one + 12 * (a & 1), self.size)
            after = first * (self.size + 1) + np.minimum(other + 12 * (a >> 1), self.size)
            yield a, morning, -1.0 * ((a & 1) + (a >> 1)), [(1.0, after, "demand")]
        left = np.maximum(one - d, 0) * (self.size + 1) + np.maximum(other - e, 0)
        paid = 2.0 * np.minimum(one, d) + 3 * np.minimum(other, e)
        yield None, ~morning, paid, [(1.0, left, pkd.sure(9))]


def products(size: int, at_once: bool) -> pkd.Problem:
    model = (TwoProductsAtOnce if at_once else TwoProducts)(size)
    return pkd.as_problem((model, {"demand": dict.fromkeys(range(9), 1 / 9)}))


CASES: dict[str, Callable[[], pkd.Problem]] = {
    "inventory 60, lead time 1": lambda: inventory(lead_time=1, **LARGE_SHOP),
    "inventory 120, lead time 1": lambda: inventory(lead_time=1, **LARGE_SHOP | {"capacity": 120}),
    "inventory 60, lead time 4": lambda: inventory(lead_time=4, capacity=60),
    **{f"taxi, delay {delay}": partial(taxi, delay) for delay in range(4)},
    "late actions, delay 6": lambda: late_actions(delay=6),
    "two products 99, one by one": lambda: products(99, False),
    "two products 99, step_many": lambda: products(99, True),
    "two products 329, step_many": lambda: products(329, True),
}


def main() -> None:
    parser = make_parser(__doc__)
    add_limits(parser)
    parser.add_argument("--only", default="", metavar="WORD", help="only cases with this word")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        small = warm_up()
        pkd.plan(
            small.model(), small.law()
        )  # imports and kernels are loaded before the clock starts
        MEASURES[args.measure](CASES[args.case]() if args.case else small)
        return
    names = [name for name in CASES if args.only in name]
    if not names:
        parser.error(f"--only {args.only}: expected a word of one of {', '.join(CASES)}")
    if any("taxi" in name for name in names) and not has_gymnasium():
        print("Gymnasium is not installed: the cases of the taxi are left out.")
        names = [name for name in names if "taxi" not in name]
    for measure in MEASURES:  # fills the cache of compiled code
        run_case(__file__, ["--measure", measure], 300, args.memory)
    headers = [
        "case", "compile s", "plan s", "whole s", "value", "states", "asks", "asks/s",
        "MB in parts", "MB whole", "remark",
    ]  # fmt: skip
    rows = []
    for name in names:
        rows.append(row(name, args.limit, args.memory))
        told = zip(headers[1:], rows[-1][1:], strict=True)
        figures = ", ".join(f"{header} {cell}" for header, cell in told if cell not in ("-", ""))
        print(f"{name}: {figures}", flush=True)  # kept if a later case is interrupted
    print(table(headers, rows))


def row(name: str, limit: float, memory: int) -> list[str]:
    def run(measure: str) -> Case:
        return run_case(__file__, ["--measure", measure, "--case", name], limit, memory)

    parts, whole = run("parts"), run("whole")
    asks: Case = run("asks") if isinstance(parts, dict) else {}
    speed = "-"
    if isinstance(parts, dict) and isinstance(asks, dict):
        speed = f"{asks['asks'] / parts['compile']:,.0f}"
    remarks = {"in parts": parts, "whole": whole, "asks": asks}
    return [
        name, show(parts, "compile"), show(parts, "plan"), show(whole, "whole"),
        show(whole if isinstance(whole, dict) else parts, "value", 9), show(parts, "states", 0),
        show(asks, "asks", 0), speed, show(parts, "memory", 0), show(whole, "memory", 0),
        "; ".join(f"{part}: {case}" for part, case in remarks.items() if isinstance(case, str)),
    ]  # fmt: skip


def measure_parts(problem: pkd.Problem) -> None:
    """Compiles the model, then plans; in the child."""
    model, law = problem.model(), problem.law()
    seconds: dict[str, float] = {}
    with timed(seconds, "compile"):
        compiled = pkd.compile(model)
    with timed(seconds, "plan"):
        plan = pkd.plan(compiled, law)
    report(**seconds, value=plan.value, states=compiled.n_states)


def measure_whole(problem: pkd.Problem) -> None:
    """Plans with the law at hand, which says what can be reached; in the child."""
    seconds: dict[str, float] = {}
    with timed(seconds, "whole"):
        plan = pkd.plan(problem.model(), problem.law())
    report(**seconds, value=plan.value)


def measure_asks(problem: pkd.Problem) -> None:
    """Counts the questions that compiling asks; in the child."""
    model = problem.model()
    asked = count_asks(model)
    pkd.compile(model)
    report(asks=sum(asked.values()))


MEASURES = {"parts": measure_parts, "whole": measure_whole, "asks": measure_asks}


def count_asks(model: pkd.PartiallyKnownMDP) -> dict[str, int]:
    """Makes a model, and the model that it transforms, count the calls of their methods.

    A call from inside another one (`last_step` that calls `step`, an adapter that asks its base) is
    not a question of the compiler and is not counted. Returns the counts, which grow later.
    """
    asked, inside = dict.fromkeys(COUNTED, 0), [False]

    def count(method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def ask(self: Any, *values: Any) -> Any:
            if inside[0]:
                return method(self, *values)
            asked[name] += 1
            inside[0] = True
            try:
                return method(self, *values)
            finally:
                inside[0] = False

        return ask

    for each in (model, getattr(model, "base", None)):
        if isinstance(each, pkd.PartiallyKnownMDP):
            own = type(each)
            methods = {name: count(getattr(own, name), name) for name in COUNTED}
            # Without slots of its own a subclass has the layout of its base, so it can replace it.
            subclass = type(own.__name__, (own,), {"__slots__": (), **methods})
            object.__setattr__(each, "__class__", subclass)
    return asked


def warm_up() -> pkd.Problem:
    return inventory(horizon=3, capacity=3, max_order=2, max_demand=2, lead_time=1)


def has_gymnasium() -> bool:
    return find_spec("gymnasium") is not None  # not imported: this process must stay small


if __name__ == "__main__":
    main()
