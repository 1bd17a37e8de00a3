"""The depot: what does the choice of an engine cost for 520,520 states without a queue?

The state is stock x trucks at home x weekday, and in the evening (CHANCE) the demand.
`pkd.compile(model)` chooses an engine; `pkd.compile(model, large=False)` takes the plain one at
once. The first should not take much longer than the second, whatever it chooses. Each runs in a
process of its own.

    python benchmarks/depot.py [--capacity 129] [--trucks 10] [--demand 50] [--independent]
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import attrs
from measuring import Case, add_limits, make_parser, report, run_case, show, timed

import pkd
from pkd.cli.output import table
from pkd.model import Branch

DAYS = 7
ENGINES = {"chosen": None, "plain": False}  # the argument `large` of pkd.compile


@attrs.frozen(kw_only=True)
class Depot(pkd.PartiallyKnownMDP):
    """x: the demand just seen (None in the morning). y: (weekday, stock, trucks at home).

    In the morning some trucks leave, and each brings `load` units before the customers come. Of the
    trucks that are away one comes home with probability `back`, or with `independent` each of them:
    a known chance. In the evening (CHANCE) the demand is served. Its law depends on the weekday:
    z = weekday.
    """

    horizon: int = 21
    capacity: int = 129
    trucks: int = 10
    demand: int = 50  # the largest
    load: int = 13
    most: int = 4  # trucks that can leave in one morning
    back: float = 0.6
    independent: bool = False

    def start(self) -> Any:
        return None, (0, self.capacity // 2, self.trucks)

    def actions(self, x: Any, y: Any) -> Any:
        return range(min(y[2], self.most) + 1) if x is None else pkd.CHANCE

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        day, stock, home = y
        if x is not None:
            return [(1.0, ((day + 1) % DAYS, max(stock - x, 0), home), pkd.sure(None))]
        available, home = min(stock + self.load * a, self.capacity), home - a
        away = self.trucks - home
        return [(p, (day, available, home + k), day) for k, p in enumerate(self._returns(away))]

    def _returns(self, away: int) -> list[float]:
        """Pr(k trucks come home), k = 0, 1, ..."""
        n = away if self.independent else min(away, 1)
        q = self.back
        return [math.comb(n, k) * q**k * (1 - q) ** (n - k) for k in range(n + 1)]

    def outcomes(self, z: Any) -> range:
        return range(self.demand + 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return -2.0 * a if x is None else float(min(x, y[1]) - 0.05 * max(y[1] - x, 0))


def depot_law(model: Depot) -> dict[int, dict[int, float]]:
    """Demand around a mean that rises through the week: weights exp(-(d - mean)^2 / 200)."""
    law = {}
    for day in range(DAYS):
        mean = model.demand * (0.25 + 0.05 * day)
        weights = [math.exp(-((d - mean) ** 2) / 200) for d in range(model.demand + 1)]
        law[day] = {d: weight / sum(weights) for d, weight in enumerate(weights)}
    return law


def main() -> None:
    parser = make_parser(__doc__)
    sizes = ("horizon", "capacity", "trucks", "demand")
    defaults = Depot()
    for name in sizes:
        default = getattr(defaults, name)
        parser.add_argument(f"--{name}", type=int, default=default, help="default: %(default)s")
    parser.add_argument(
        "--independent", action="store_true", help="trucks come home independently: more branches"
    )
    add_limits(parser, limit=300)
    parser.add_argument("--case", choices=ENGINES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    options = {name: getattr(args, name) for name in sizes}
    if args.case:
        measure(Depot(**options, independent=args.independent), args.case)
        return
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    words += ["--independent"] * args.independent
    run_case(__file__, ["--capacity", "3", "--demand", "2", "--case", "plain"], 300, args.memory)
    cases = {
        name: run_case(__file__, [*words, "--case", name], args.limit, args.memory)
        for name in ENGINES
    }
    headers = ["engine", "states", "compile s", "states/s", "plan s", "value", "peak MB", "remark"]
    print(table(headers, [row(name, case) for name, case in cases.items()]))
    chosen, plain = cases["chosen"], cases["plain"]
    if isinstance(chosen, dict) and isinstance(plain, dict):
        print(f"chosen / plain, seconds to compile: {chosen['compile'] / plain['compile']:.2f}")
    elif isinstance(plain, dict):
        print(f"chosen / plain, seconds to compile: no ratio, the chosen engine was {chosen}")


def measure(model: Depot, engine: str) -> None:
    """One compilation and one plan; in the child."""
    small = Depot(horizon=2, capacity=3, trucks=1, demand=2)
    pkd.plan(small, depot_law(small))  # imports and kernels are loaded before the clock starts
    seconds: dict[str, float] = {}
    with timed(seconds, "compile"):
        compiled = pkd.compile(model, large=ENGINES[engine])
    with timed(seconds, "plan"):
        plan = pkd.plan(compiled, depot_law(model))
    report(**seconds, states=compiled.n_states, value=plan.value)


def row(name: str, case: Case) -> list[str]:
    if isinstance(case, str):
        return [name, "-", "-", "-", "-", "-", "-", case]
    speed = f"{case['states'] / case['compile']:,.0f}"
    return [
        name, show(case, "states", 0), show(case, "compile"), speed, show(case, "plan"),
        show(case, "value", 8), show(case, "memory", 0), "",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
