"""One planner on one problem: a table under a constant delay D, as the child of `bench.py`.

The problem is random with S states, A actions, B successors and horizon H. Peers get the explicit
model of the full queues: a state (s, q), q the D actions whose effect is not shown yet, oldest
first; an action moves s by the oldest one and joins the queue. H steps of it from nothing give the
value of the delayed problem, max_q V_1(s_1, q): the last D actions that join are never executed.
Peers that take terminal values also solve the H - D steps that the value needs (`least`).

Every planner gets its own best documented settings. `first` is its first solve, compiling included;
`solve` is the fastest of a few later ones, `whole` is build and solve together, and for pkd the
constructors and `pkd_delay.plan`. This file imports nothing but numpy and scipy: peers run
in environments without pkd.

    python benchmarks/planners.py quantecon --sizes S=20,A=4,B=5,H=20,D=4
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from measuring import make_parser, report

REPEATS = 5
SIZES = {"S": 20, "A": 4, "B": 5, "H": 20, "D": 4}
# mdpsolver wants a discount below 1. This one moves no value by more than H^2 times its distance.
ALMOST_ONE = 1.0 - 1e-13


class Problem(NamedTuple):
    """A table and a delay."""

    transitions: np.ndarray  # (S, A, S)
    rewards: np.ndarray  # (S, A)
    near: np.ndarray  # (S A, B) the successors of each pair
    horizon: int
    delay: int


class Explicit(NamedTuple):
    """The explicit model of full queues; row s A^(D+1) + q A + a is the pair ((s, q), a)."""

    states: int
    actions: int
    weights: np.ndarray  # (rows, B)
    columns: np.ndarray  # (rows, B)
    rewards: np.ndarray  # (rows,)
    settled: np.ndarray  # (states,): what a queue still earns when no action follows


def make_problem(sizes: dict[str, int]) -> Problem:
    """A random table with B successors of each pair."""
    S, A, B = sizes["S"], sizes["A"], sizes["B"]
    rng = np.random.default_rng(0)
    transitions, near = np.zeros((S, A, S)), np.zeros((S * A, B), int)
    for row in range(S * A):
        s, a = divmod(row, A)
        near[row] = np.sort(rng.choice(S, B, replace=False))
        transitions[s, a, near[row]] = rng.dirichlet(np.ones(B))
    return Problem(transitions, rng.random((S, A)), near, sizes["H"], sizes["D"])


def make_explicit(problem: Problem) -> Explicit:
    """The explicit model, by array operations: no peer waits for a loop of ours."""
    S, A = problem.rewards.shape
    queues = A**problem.delay
    s, q, a = (part.ravel() for part in np.indices((S, queues, A)))
    if problem.delay:
        oldest, joined = q // (queues // A), (q % (queues // A)) * A + a
    else:
        oldest, joined = a, q
    near = problem.near[s * A + oldest]
    weights = problem.transitions[s[:, None], oldest[:, None], near]
    settled = np.zeros((S, 1))
    for _ in range(problem.delay):
        following = np.einsum("sat,tq->saq", problem.transitions, settled)
        settled = (problem.rewards[:, :, None] + following).reshape(S, -1)
    columns = near * queues + joined[:, None]
    rewards = problem.rewards[s, oldest]
    return Explicit(S * queues, A, weights, columns, rewards, settled.ravel())


def make_matrix(model: Explicit) -> Any:
    """The transition matrix, rows by state and action."""
    import scipy.sparse

    rows, branches = model.columns.shape
    ptr = np.arange(0, rows * branches + 1, branches)
    parts = (model.weights.ravel(), model.columns.ravel(), ptr)
    return scipy.sparse.csr_matrix(parts, shape=(rows, model.states))


Solve = Callable[[], float]  # solves the problem and returns its value
Made = tuple[Solve, Solve | None]  # all H steps; the least that gives the value, if it can


def use_pkd(problem: Problem) -> Made:
    import pkd
    import pkd_delay

    mdp = pkd.TabularMDP(problem.transitions, problem.rewards, problem.horizon)
    branching = problem.near.shape[1]
    delayed = pkd_delay.DelayedMDP.constant(mdp, problem.delay, branching=branching)
    compiled, law = pkd.compile(delayed.known()), delayed.law()
    return (lambda: pkd.plan(compiled, law).value), None


def plan_whole(problem: Problem) -> float:
    """From the constructors to the value and all policies, as a user of pkd writes it."""
    import pkd
    import pkd_delay

    mdp = pkd.TabularMDP(problem.transitions, problem.rewards, problem.horizon)
    branching = problem.near.shape[1]
    late = pkd_delay.DelayedMDP.constant(mdp, problem.delay, branching=branching)
    return pkd_delay.plan(late).value


def use_quantecon(problem: Problem) -> Made:
    from quantecon.markov import DiscreteDP, backward_induction

    model = make_explicit(problem)
    states, actions = np.divmod(np.arange(len(model.rewards)), model.actions)
    matrix = make_matrix(model)
    ddp = DiscreteDP(model.rewards, matrix, 1.0 - 1e-16, states, actions)
    ddp.beta = 1.0

    def solve(steps: int, terminal: np.ndarray) -> float:
        return _best(problem, backward_induction(ddp, steps, terminal)[0][0])

    return _in_both_ways(problem, model, solve)


def use_scipy(problem: Problem) -> Made:
    """Ten lines by hand: V = max_a (r + P V), and the policy of each step."""
    model = make_explicit(problem)
    matrix = make_matrix(model)

    def solve(steps: int, terminal: np.ndarray) -> float:
        v, policy = terminal, np.empty((steps, model.states), np.int8)
        for h in reversed(range(steps)):
            q = (model.rewards + matrix @ v).reshape(model.states, model.actions)
            policy[h], v = q.argmax(axis=1), q.max(axis=1)
        return _best(problem, v)

    return _in_both_ways(problem, model, solve)


def use_stormpy(problem: Problem) -> Made:
    """Storm's sparse engine: the largest reward within H steps, for all initial states at once."""
    import stormpy
    from stormpy.datastructures import SparseMatrixBuilder
    from stormpy.models import SparseMdp, SparseModelComponents, SparseRewardModel, StateLabeling

    model = make_explicit(problem)
    rows = len(model.rewards)
    builder = SparseMatrixBuilder(rows, model.states, model.columns.size, True, True, model.states)
    add = builder.add_next_value
    columns, weights = model.columns.tolist(), model.weights.tolist()
    for row in range(rows):
        if row % model.actions == 0:
            builder.new_row_group(row)
        for column, weight in zip(columns[row], weights[row], strict=True):
            add(row, column, weight)
    labels = StateLabeling(model.states)
    labels.add_label("init")
    for q in range(model.states // len(problem.rewards)):
        labels.add_label_to_state("init", q)
    pay = SparseRewardModel(optional_state_action_reward_vector=model.rewards.tolist())
    parts = SparseModelComponents(builder.build(), labels, {"r": pay})
    mdp = SparseMdp(parts)
    (question,) = stormpy.parse_properties(f'R{{"r"}}max=? [C<={problem.horizon}]')

    def solve() -> float:
        answer = stormpy.model_checking(mdp, question, only_initial_states=True)
        return max(map(answer.get_value, mdp.initial_states))

    return solve, None


def use_mdpsolver(problem: Problem) -> Made:
    """mdpsolver has no horizon: the model is one of layers, and the last one is an end.

    Layers come last step first, so that one Gauss-Seidel pass computes every value.
    """
    import mdpsolver

    model = make_explicit(problem)
    states, steps, actions = model.states, problem.horizon, model.actions
    shape = (states, actions, -1)
    rewards = model.rewards.reshape(states, actions).tolist()
    weights = model.weights.reshape(shape).tolist()
    columns = model.columns.reshape(shape)
    end = [[1.0] for _ in range(actions)], [[0] for _ in range(actions)]
    layers = [(columns + 1 + states * (h - 1)).tolist() for h in range(1, steps)]
    first = np.zeros((states, actions, 1), int).tolist()  # the last step leads to the end
    sure = np.ones((states, actions, 1)).tolist()
    solver = mdpsolver.model()
    solver.mdp(
        discount=ALMOST_ONE,
        rewards=[[0.0] * actions] + rewards * steps,
        tranMatProbs=[end[0], *sure, *(weights * (steps - 1))],
        tranMatColumns=[end[1], *first, *(row for layer in layers for row in layer)],
    )
    at = 1 + states * (steps - 1)
    queues = states // len(problem.rewards)

    def solve() -> float:
        # Its threads are for standard updates only, which would need H passes.
        solver.solve(algorithm="vi", update="gs", tolerance=1e-9, parallel=False)
        return max(solver.getValue(at + q) for q in range(queues))

    return solve, None


def use_mdpax(problem: Problem) -> Made:
    """mdpax describes a model by functions of (state, action, event); it runs on the CPU here."""
    from mdpax_peer import make_solver

    model = make_explicit(problem)
    every = make_solver(problem, np.zeros(model.states))
    least = make_solver(problem, model.settled)
    return (
        lambda: _best(problem, every(problem.horizon)),
        lambda: _best(problem, least(problem.horizon - problem.delay)),
    )


def _in_both_ways(
    problem: Problem, model: Explicit, solve: Callable[[int, np.ndarray], float]
) -> Made:
    """All H steps from nothing, and the H - D steps from what the queue still earns."""
    nothing = np.zeros(model.states)
    return (
        lambda: solve(problem.horizon, nothing),
        lambda: solve(problem.horizon - problem.delay, model.settled),
    )


def _best(problem: Problem, v: np.ndarray) -> float:
    """max_q V(s_1, q): the first D actions are chosen at once."""
    return float(np.asarray(v).reshape(len(problem.rewards), -1)[0].max())


def measure_limit(problem: Problem) -> dict[str, float]:
    """Seconds for reading and writing V of all (s, q) once per step: what no sweep can beat.

    bandwidth: gigabytes per second, read and written bytes together.
    """
    v = np.zeros(len(problem.rewards) * problem.rewards.shape[1] ** problem.delay)
    w = np.ones_like(v)

    def move() -> float:
        for _ in range(problem.horizon):
            np.copyto(w, v)
        return 0.0

    move()
    seconds = _fastest(move)[0]
    return {"solve": seconds, "bandwidth": 2e-9 * problem.horizon * v.nbytes / seconds}


PLANNERS: dict[str, Callable[[Problem], Made]] = {
    "pkd": use_pkd,
    "quantecon": use_quantecon,
    "scipy": use_scipy,
    "stormpy": use_stormpy,
    "mdpsolver": use_mdpsolver,
    "mdpax": use_mdpax,
}
LIMIT = "limit"


def measure(name: str, problem: Problem, repeats: int) -> dict[str, float]:
    """The numbers of one planner. Its imports count as building in `ready` only."""
    began = time.perf_counter()
    solve, least = PLANNERS[name](problem)  # imports and builds
    ready = time.perf_counter()
    value = solve()
    first = time.perf_counter()
    PLANNERS[name](problem)
    numbers = {"first": first - ready, "ready": first - began, "value": value}
    numbers["build"] = time.perf_counter() - first
    numbers["solve"], again = _fastest(solve, repeats)
    if again != value:
        raise SystemExit(f"{name} gives {value} and then {again}")
    numbers["whole"] = numbers["build"] + numbers["solve"]
    if name == "pkd":
        plan_whole(problem)
        numbers["whole"], again = _fastest(lambda: plan_whole(problem), repeats)
        if abs(again - value) > 1e-12:
            raise SystemExit(f"pkd gives {value} and then {again}")
    if least is not None:
        least()
        numbers["least"], short = _fastest(least, repeats)
        numbers["apart"] = abs(short - value)
    return numbers


def _fastest(job: Callable[[], float], repeats: int = REPEATS) -> tuple[float, float]:
    """Seconds of the fastest of a few calls, and what the last one gave."""
    times, answer = [], 0.0
    for _ in range(repeats):
        began = time.perf_counter()
        answer = job()
        times.append(time.perf_counter() - began)
    return min(times), answer


def read_sizes(words: str) -> dict[str, int]:
    """`S=20,A=4` over the default sizes."""
    given = dict(word.split("=") for word in words.split(",") if word)
    return {**SIZES, **{name: int(value) for name, value in given.items()}}


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("planner", choices=[*PLANNERS, LIMIT])
    parser.add_argument("--sizes", default="", help="such as S=20,A=4,B=5,H=20,D=4")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    args = parser.parse_args()
    problem = make_problem(read_sizes(args.sizes))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if args.planner == LIMIT:
        report(**measure_limit(problem))
    else:
        report(**measure(args.planner, problem, args.repeats))


if __name__ == "__main__":
    main()
