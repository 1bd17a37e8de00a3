"""Bounds for long delays, family by family: gap, seconds, memory and nodes for each delay.

Each case is a process of its own, after one that compiles the kernels. `gap` is high - low of the
larger of both; `sim` says that the lower bound was simulated (it fails with probability .001). Then
random laws with a largest delay of 12; seconds beside the exact engine and QuantEcon where these
fit; learning; and what simple policies earn beside the bounds.

    python benchmarks/long_delays.py [--quick] [--seconds 10] [--gap 0.005]

The search uses one thread, whatever the machine has: nets are small and every pass depends on the
one before.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from long_families import FAMILIES
from measuring import peak_memory, report, run_case
from planners import Problem, use_quantecon

import pkd
import pkd_delay
from pkd_delay import Delayed, Lags
from pkd_delay.episodes import simulate

DELAYS = 8, 12, 16, 24
FAR = "autoscaler", "riverswim", "maintenance", "lake 4x4", "nearly deterministic"  # also D = 30
LAWS: dict[str, tuple[Any, int | None]] = {
    "lags": (Lags({0: 0.3, 2: 0.3, 6: 0.3, 12: 0.1}), None),
    "change": ({-1: 0.3, 0: 0.4, 1: 0.2, 2: 0.1}, 12),
}
BOTH = (("random", "4"), ("random", "6"), ("random", "8"), ("maintenance", "8"),
        ("riverswim", "12"))  # fmt: skip  # where exact planners can, too
LEARN = (("riverswim", "20"), ("autoscaler", "12"))
EPISODES, RUN = 400, 3000  # of a simple policy; of a learner


def late(name: str, delay: str) -> Delayed:
    """A family under a constant delay, or under one of LAWS."""
    law, largest = LAWS[delay] if delay in LAWS else ({int(delay): 1.0}, int(delay))
    return Delayed(FAMILIES[name](), law, largest)


def one(name: str, delay: str, gap: float, seconds: float) -> None:
    """One case, in a process of its own."""
    pkd_delay.plan(Delayed.constant("two_state_chain", 2), gap=0.1)
    began = time.perf_counter()
    plan = pkd_delay.plan(late(name, delay), gap=gap, seconds=seconds)
    took = time.perf_counter() - began
    report(
        low=plan.low, high=plan.high, gap=plan.gap, seconds=took, delta=plan.delta,
        nodes=plan.bounds.log[-1].nodes, memory=peak_memory(),
    )  # fmt: skip


def exact(name: str, delay: str) -> None:
    """The exact engine, building its model included."""
    pkd_delay.plan(Delayed.constant("two_state_chain", 2))
    began = time.perf_counter()
    value = pkd_delay.plan(late(name, delay)).value
    report(value=value, seconds=time.perf_counter() - began)


def quantecon(name: str, delay: str) -> None:
    """QuantEcon on the explicit model of full queues; its fewest steps, from what a queue earns."""
    mdp = FAMILIES[name]()
    assert isinstance(mdp, pkd.TabularMDP)
    B = int((mdp.transitions > 0).sum(axis=2).max())
    near = np.argsort(-mdp.transitions, axis=2)[:, :, :B].reshape(-1, B)
    began = time.perf_counter()
    near.sort(axis=1)
    least = use_quantecon(
        Problem(mdp.transitions, mdp.rewards, near, mdp.horizon, int(delay))
    )[1]  # fmt: skip
    built = time.perf_counter()
    assert least is not None
    least()  # compiles
    first = time.perf_counter()
    value = least()
    report(value=value, seconds=built - began + time.perf_counter() - first)


def learn(name: str, delay: str, gap: float) -> None:
    """A learner that plans between bounds, a second for each plan."""
    run = pkd_delay.learn(late(name, delay), RUN, gap=gap)
    tail = run.paid[RUN // 2 :]
    low, high = run.regret()
    report(
        low=run.optimum.low, high=run.optimum.high, paid=tail.mean(), upper=run.upper_values[-1],
        regret_low=low[-1], regret_high=high[-1], gaps=run.gaps.sum(), bound=run.bound()[-1],
        plans=len(run.plans), seconds=sum(plan.seconds for plan in run.plans),
    )  # fmt: skip


def rivals(name: str, delay: str) -> None:
    """What an agent earns that ignores the delay, acts at the likeliest state, or by QMDP."""
    problem = late(name, delay)
    model, found = problem.known(), {}
    for agent in (
        pkd_delay.rivals.IgnoreDelay(informed=True),
        pkd_delay.rivals.ModelBasedSimulation(informed=True),
        pkd_delay.rivals.QMDP(informed=True),
    ):
        agent.inform(problem.law())
        agent.begin(model, episodes=1, seed=0)
        act = agent.policy()

        def play(h: int, state: Any, queue: Any, waited: int, act: Any = act) -> Any:
            return act(h, *model.place(*problem.seen(state), queue, waited))

        paid = [e.total for e in simulate(problem, play, EPISODES)]
        found[type(agent).__name__] = float(np.mean(paid))
    report(**found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="D = 16 only, 5 s each")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--gap", type=float, default=0.005)
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--exact", nargs=2)
    parser.add_argument("--quantecon", nargs=2)
    parser.add_argument("--learn", nargs=2)
    parser.add_argument("--rivals", nargs=2)
    args = parser.parse_args()
    if args.one:
        one(*args.one, args.gap, args.seconds)
    elif args.exact:
        exact(*args.exact)
    elif args.quantecon:
        quantecon(*args.quantecon)
    elif args.learn:
        learn(*args.learn, args.gap)
    elif args.rivals:
        rivals(*args.rivals)
    else:
        show_all(args.quick, args.gap, 5.0 if args.quick else args.seconds)


def show_all(quick: bool, gap: float, seconds: float) -> None:
    """Every table."""

    def case(kind: str, name: str, delay: str) -> Any:
        words = [kind, name, delay, "--gap", str(gap), "--seconds", str(seconds)]
        return run_case(__file__, words, 120, 8000)

    def show(name: str, delay: str) -> None:
        found = case("--one", name, delay)
        if isinstance(found, str):
            print(f"{name:22} {delay:>6}  {found}")
            return
        kind = "sim" if found["delta"] else "   "
        print(
            f"{name:22} {delay:>6}  {found['gap']:8.3%} {kind} {found['low']:10.5g} "
            f"{found['high']:10.5g} {found['seconds']:6.1f} s {found['nodes']:9,.0f} nodes "
            f"{found['memory']:6,.0f} MB",
            flush=True,
        )

    for delay in (16,) if quick else DELAYS:
        for name in FAMILIES:
            show(name, str(delay))
    for name in FAR[: 1 if quick else None]:
        show(name, "30")
    for delay in LAWS:
        for name in ("random", "autoscaler", "maintenance", "lake 4x4", "servo"):
            if not quick or name == "autoscaler":
                show(name, delay)
    print("seconds: within a gap, by the exact engine, by QuantEcon on the explicit model")
    for name, delay in BOTH[:: 1 if not quick else 4]:
        told = [case(kind, name, delay) for kind in ("--one", "--exact", "--quantecon")]
        words = [one if isinstance(one, str) else f"{one['seconds']:.2f} s" for one in told]
        print(f"{name:22} {delay:>6}  {', '.join(words)}", flush=True)
        values = [one["value"] for one in told[1:] if not isinstance(one, str)]
        if len(values) == 2 and abs(values[0] - values[1]) > 1e-6 * abs(values[0]):
            raise SystemExit(f"the exact engine finds {values[0]}, QuantEcon {values[1]}")
    print(f"learning, {RUN} episodes:")
    for name, delay in LEARN[: 1 if quick else None]:
        found = case("--learn", name, delay)
        told = (
            found if isinstance(found, str) else ", ".join(f"{k} {v:.4g}" for k, v in found.items())
        )
        print(f"{name:22} {delay:>6}  {told}", flush=True)
    print("what simple policies earn:")
    for name in ("random", "lake 4x4", "servo", "service", "courier")[: 1 if quick else None]:
        found = case("--rivals", name, "16")
        told = (
            found if isinstance(found, str) else ", ".join(f"{k} {v:.4g}" for k, v in found.items())
        )
        print(f"{name:22}     16  {told}", flush=True)


if __name__ == "__main__":
    main()
