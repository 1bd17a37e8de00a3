"""Planning under a constant delay: `pkd_delay.plan` against QuantEcon on the explicit model.

Both solve the same problem (S = 20, A = 4, B = 5 successors, H = 20) exactly and must agree on its
value. QuantEcon gets the explicit model of the full queues and is timed for its solve alone, after
a first call that compiles it; its building time is shown apart. Twice: for all H backward steps,
which give values and a policy of every step as `pkd` does; and for H - D steps, the least that
gives the value, because the first D actions can be chosen at once from the start, by a maximum over
the queues. The optimistic plan is timed on counts that keep values below their caps.

    python benchmarks/delay_planning.py [--delays 4 6 8] [--peak 10] [--out out]
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from measuring import make_parser

import pkd
import pkd_delay

S, A, B, H = 20, 4, 5, 20
REPEATS = 7


def make_table() -> pkd.TabularMDP:
    rng = np.random.default_rng(0)
    transitions = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            transitions[s, a, rng.choice(S, B, replace=False)] = rng.dirichlet(np.ones(B))
    return pkd.TabularMDP(transitions, rng.random((S, A)), H)


def fastest(job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the fastest of a few calls, and what the last one gave."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        answer = job()
        times.append(time.perf_counter() - began)
    return min(times), answer


def ours(mdp: pkd.TabularMDP, delay: int) -> dict[str, float]:
    delayed = pkd_delay.DelayedMDP.constant(mdp, delay, branching=B)
    law = delayed.law()
    pkd.plan(delayed.known(), law)  # compiles the kernels
    build, compiled = fastest(lambda: pkd.compile(delayed.known()))
    exact, plan = fastest(lambda: pkd.plan(compiled, law))
    counts = {z: {x: 10**6 * p for x, p in law(z).items()} for z in compiled.features}
    optimistic, upper = fastest(lambda: pkd.optimistic_plan(compiled, counts, episodes=1000))
    return {
        "build": build,
        "solve": exact,
        "optimistic": optimistic,
        "value": plan.value,
        "upper": upper.value,
    }


def quantecon(mdp: pkd.TabularMDP, delay: int) -> dict[str, float]:
    """The explicit model: state (s, q) with a full queue q, oldest action first.

    An action moves s by q_1 and joins the queue.
    """
    from quantecon.markov import DiscreteDP, backward_induction

    began = time.perf_counter()
    queues = A**delay
    s, q, a = (
        part.ravel()
        for part in np.meshgrid(np.arange(S), np.arange(queues), np.arange(A), indexing="ij")
    )
    oldest, joined = q // (queues // A), (q % (queues // A)) * A + a
    support = [np.flatnonzero(row) for row in mdp.transitions.reshape(S * A, S)]
    near = np.array(support)[s * A + oldest]  # (rows, B)
    weights = mdp.transitions[s[:, None], oldest[:, None], near]
    rows = np.repeat(np.arange(len(s)), B)
    law = scipy.sparse.csr_matrix(
        (weights.ravel(), (rows, (near * queues + joined[:, None]).ravel())),
        shape=(len(s), S * queues),
    )
    ddp = DiscreteDP(mdp.rewards[s, oldest], law, 1.0 - 1e-16, s * queues + q, a)
    ddp.beta = 1.0
    settled = np.zeros((S, 1))
    for _ in range(delay):  # what the queue still earns when no action follows
        following = np.einsum("sat,tq->saq", mdp.transitions, settled)
        settled = (mdp.rewards[:, :, None] + following).reshape(S, -1)
    build = time.perf_counter() - began
    backward_induction(ddp, 1, settled.ravel())  # compiles its kernels
    every, _ = fastest(lambda: backward_induction(ddp, H, settled.ravel()))
    least, (values, _) = fastest(lambda: backward_induction(ddp, H - delay, settled.ravel()))
    return {
        "build": build,
        "every": every,
        "least": least,
        "value": float(values[0].reshape(S, queues)[0].max()),
    }


def peak(delay: int) -> float:
    """Megabytes at the most that a fresh process needs for one plan."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (delay,))


def _peak(delay: int) -> float:
    pkd_delay.plan(pkd_delay.DelayedMDP.constant(make_table(), delay, branching=B))
    # Not ru_maxrss: a child starts with its parent's, and the parent has held QuantEcon's model.
    status = Path("/proc/self/status").read_text()
    return (
        int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
        / 1024
    )


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--delays", type=int, nargs="+", default=[4, 6, 8])
    parser.add_argument(
        "--peak",
        type=int,
        default=None,
        help="also measure the peak memory of a plan with this delay",
    )
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    mdp = make_table()
    lines = [
        (
            "| D | pkd: build / solve / optimistic, s | QuantEcon: build / H / H - D steps, s | "
            "ratio, H / H - D steps | optimistic / exact |"
        ),
        "|---|---|---|---|---|",
    ]
    for delay in args.delays:
        mine, peer = ours(mdp, delay), quantecon(mdp, delay)
        if abs(mine["value"] - peer["value"]) > 1e-9:
            raise SystemExit(f"delay {delay}: pkd finds {mine['value']}, QuantEcon {peer['value']}")
        lines.append(
            f"| {delay} | {mine['build']:.3f} / {mine['solve']:.4f} / {mine['optimistic']:.4f} | "
            f"{peer['build']:.2f} / {peer['every']:.3f} / {peer['least']:.3f} | "
            f"{peer['every'] / mine['solve']:.1f} / {peer['least'] / mine['solve']:.1f} | "
            f"{mine['optimistic'] / mine['solve']:.2f} |"
        )
        print(lines[-1], flush=True)
    if args.peak is not None:
        lines.append(
            f"\nPeak memory of one plan with delay {args.peak}: {peak(args.peak):.0f} MB, the "
            "process and its packages included."
        )
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "delay_planning.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
