"""The certified rule beside the others: regret, violations, and when learning may stop.

    python benchmarks/certified.py regret [--seeds 20] [--episodes 20000] [--workers 2]
    python benchmarks/certified.py violations [--runs 2000]
    python benchmarks/certified.py stopping [--runs 50]
    python benchmarks/certified.py mixed [--runs 100] [--seeds 3] [--rules certified rate]
    python benchmarks/certified.py sweeps

`regret`: every shipped model under every rule. `violations`: many runs of the certified rule, and
in how many of them some upper value fell below the optimum, or some lower value rose above it.
`stopping`: runs until the certified gap is a quarter of the way from random play to the optimum,
whether the robust policy was then that good, and how many episodes the bound of the paper would ask
for. `mixed`: random models with a weather that no action changes and states that actions change;
the default rule beside the one that explores everywhere. Their seeds are 0, 1, 2, ...: nobody chose
them. `sweeps`: the time of one certified sweep against one exact sweep of the same model, in one
run.

Each prints a Markdown table and writes it to out/certified-NAME.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
from measuring import make_parser
from mixed import Mixed

import pkd
from pkd import workers
from pkd.engine import Compiled
from pkd.rules.literature import KLUCRL, OPSRL, UCRL2, BayesUCBVI

# Words that name a model, as `pkd.as_problem` finds it, and what is learned of it.
MODELS = (
    "admission", "american_put", "autoscaler", "battery", "blackjack", "gambler", "grid",
    "inventory", "kuhn", "late_actions", "maintenance", "missing_observations", "pricing",
    "random_mdp", "riverswim", "spot_autoscaler", "tank", "two_state_chain", "wind",
)  # fmt: skip
UNKNOWN_DELAY = "autoscaler, unknown delay law"
STOPPING = (
    "admission", "gambler", "kuhn", "late_actions", "maintenance", "pricing", "random_mdp",
    "riverswim", "two_state_chain", "wind",
)  # fmt: skip
RULES: dict[str, pkd.Optimism] = {
    "certified": pkd.Certified(),
    "everywhere": pkd.Certified(explore="everywhere"),
    "rate": pkd.Certified(rate=0.05),
    "set alone": pkd.Certified(minimax=False, explore="everywhere"),
    "mvp": pkd.MVP(),
    "practical": pkd.MVP.practical(),
    "hoeffding": pkd.Hoeffding(),
    "greedy": pkd.Greedy(),
    "posterior": pkd.PosteriorSampling(),
    "kl-ucrl": KLUCRL(),
    "ucrl2": UCRL2(),
    "bayes-ucbvi": BayesUCBVI(),
    "opsrl": OPSRL(),
}
SUMMARY = (
    "Regret as published / certified, over the models where both lose anything: least "
    "{least:.1f}, median {median:.1f}. {seeds} seeds, {episodes:,} episodes, delta 0.05."
)
MIXED = "certified", "everywhere", "practical", "greedy"
GOAL = 0.95
LITTLE = 0.1  # regret that is added before a ratio is taken
GAP = 0.25  # of the way from random play to the optimum, where a run stops


@lru_cache(maxsize=2)
def build(name: str) -> tuple[Compiled, pkd.Law, float]:
    """The compiled model, its law and its optimal value."""
    if name == UNKNOWN_DELAY:
        from pkd_delay.models.autoscaler import autoscaler

        problem: pkd.Problem = autoscaler(delay_law="unknown")
    else:
        problem = pkd.as_problem(name)
    compiled, law = pkd.compile(problem.model()), problem.law()
    return compiled, law, pkd.plan(compiled, law).value


def learn(name: str, rule: str, seed: int, episodes: int) -> tuple[float, float, float, int, int]:
    """(regret, first value, episodes to the goal, upper and lower violations) of one run."""
    compiled, law, optimum = build(name)
    run = pkd.learn(compiled, law, episodes, optimism=RULES[rule], seed=seed, optimal_value=optimum)
    reached = run.episodes_to(GOAL, baseline=worst(name)) or math.inf
    return (
        float(run.regret[-1]), float(run.policy_values[0]), reached, run.violations,
        run.lower_violations,
    )  # fmt: skip


@lru_cache(maxsize=2)
def worst(name: str) -> float:
    """The value of the first policy of MVP, which knows nothing: there the way starts."""
    compiled, law, optimum = build(name)
    run = pkd.learn(compiled, law, 1, optimism=pkd.MVP(), optimal_value=optimum)
    return float(run.policy_values[0])


@lru_cache(maxsize=2)
def play_randomly(name: str) -> float:
    """The exact value of random play."""
    compiled, law, _ = build(name)

    def act(h: int, x: object, y: object) -> dict[object, float]:
        actions = list(compiled.model.actions(x, y))
        return dict.fromkeys(actions, 1 / len(actions))

    return float(pkd.evaluate(compiled, law, act))


def study_regret(args: argparse.Namespace) -> list[str]:
    names = args.models or [*MODELS, UNKNOWN_DELAY]
    jobs = [
        (name, rule, seed, args.episodes)
        for name in names
        for rule in args.rules
        for seed in range(args.seeds)
    ]
    found = dict(zip(jobs, spread(learn, jobs, args), strict=True))
    labels = [RULES[rule].label for rule in args.rules]
    lost, reached, wrong, ratios = [], [], [], []
    for name in names:
        runs = {
            rule: [found[name, rule, seed, args.episodes] for seed in range(args.seeds)]
            for rule in args.rules
        }
        regrets = {rule: statistics.mean(run[0] for run in runs[rule]) for rule in args.rules}
        goals = {rule: statistics.median(run[2] for run in runs[rule]) for rule in args.rules}
        row = [name, str(len(build(name)[0].features))]
        row += [f"{regrets[rule]:,.4g}" for rule in args.rules]
        if regrets.get("mvp") and regrets.get("certified"):
            ratios.append(regrets["mvp"] / regrets["certified"])
            row.append(f"{ratios[-1]:,.1f}")
        else:
            row.append("")
        lost.append(row)
        median = (goals[rule] for rule in args.rules)
        reached.append([name, *(f"{k:,.0f}" if k < math.inf else "-" for k in median)])
        wrong.append([name, *(", ".join(count(runs, args.rules, at)) or "none" for at in (3, 4))])
    lines = markdown(["model", "features", *labels, "MVP, as published / certified"], lost)
    if ratios:
        lines += ["", SUMMARY.format(
            least=min(ratios), median=statistics.median(ratios), seeds=args.seeds,
            episodes=args.episodes,
        )]  # fmt: skip
    lines += ["", f"Episodes to {GOAL:.0%} of the way, medians over seeds; -: not reached.", ""]
    lines += markdown(["model", *labels], reached)
    lines += ["", f"Runs of {args.seeds} with a value on the wrong side of the optimum.", ""]
    return lines + markdown(["model", "upper value below V*", "lower value above V*"], wrong)


def count(runs: dict[str, list[tuple[float, ...]]], rules: Iterable[str], at: int) -> list[str]:
    """In how many runs of each rule something was violated."""
    found = {rule: sum(run[at] > 0 for run in runs[rule]) for rule in rules}
    return [f"{rule} {number}" for rule, number in found.items() if number]


def study_violations(args: argparse.Namespace) -> list[str]:
    names = args.models or [*MODELS, UNKNOWN_DELAY]
    each = math.ceil(args.runs / len(names))
    jobs = [
        (name, "certified", 1000 + seed, args.episodes) for name in names for seed in range(each)
    ]
    found = spread(learn, jobs, args)
    rows = []
    for i, name in enumerate(names):
        part = found[i * each : (i + 1) * each]
        rows.append([name, str(each), str(sum(run[3] > 0 for run in part)),
                     str(sum(run[4] > 0 for run in part))])  # fmt: skip
    total = [sum(run[at] > 0 for run in found) for at in (3, 4)]
    rows.append(["all", str(len(found)), *map(str, total)])
    head = ["model", "runs", "with an upper value below V*", "with a lower value above V*"]
    return [*markdown(head, rows), "", f"{args.episodes:,} episodes each, delta 0.05."]


def stop(name: str, seed: int) -> tuple[float, float, float]:
    """(episodes, gap, what the robust policy loses) of a run that stops by itself."""
    compiled, law, optimum = build(name)
    goal = GAP * (optimum - play_randomly(name))
    run = pkd.learn(compiled, law, until=goal, seed=seed, optimal_value=optimum)
    assert run.interval is not None
    assert run.interval.robust is not None
    loss = optimum - float(pkd.evaluate(compiled, law, run.interval.robust))
    return len(run.returns), goal, loss


def study_stopping(args: argparse.Namespace) -> list[str]:
    names = args.models or STOPPING
    jobs = [(name, seed) for name in names for seed in range(args.runs)]
    found = spread(stop, jobs, args)
    rows = []
    for i, name in enumerate(names):
        part = found[i * args.runs : (i + 1) * args.runs]
        goal = part[0][1]
        episodes = sorted(run[0] for run in part)
        worst_loss = max(run[2] for run in part)
        rows.append([
            name, f"{goal:.4g}", f"{statistics.median(episodes):,.0f}",
            f"{episodes[0]:,} to {episodes[-1]:,}", f"{worst_loss:.3g}",
            str(sum(run[2] > goal for run in part)), f"{ask_paper(name, goal):.2g}",
        ])  # fmt: skip
    head = ["model", "epsilon", "episodes, median", "range", "largest loss of the robust policy",
            "runs that lost more than epsilon", "episodes by the paper's bound"]  # fmt: skip
    way = "a quarter of the way from random play to the optimum"
    return [*markdown(head, rows), "", f"{args.runs} runs each, delta 0.05. epsilon: {way}."]


def ask_paper(name: str, goal: float) -> float:
    """The least power of two K at which the explicit regret bound is at most K epsilon."""
    compiled, _, _ = build(name)
    episodes = 1
    while pkd.bounds.regret_bound(compiled, episodes) > goal * episodes:
        episodes *= 2
        if episodes > 2**80:
            return math.inf
    return float(episodes)


def play_mixed(number: int, rule: str, seeds: int, episodes: int) -> float:
    """The mean regret of a rule in one random model."""
    rng = np.random.default_rng(number)
    compiled = pkd.compile(Mixed(rng))
    law = {
        z: dict(zip(states, rng.dirichlet(np.full(len(states), 0.5)).tolist(), strict=True))
        for z, states in zip(compiled.features, compiled.outcomes, strict=True)
    }
    runs = [
        pkd.learn(compiled, law, episodes, optimism=RULES[rule], seed=seed) for seed in range(seeds)
    ]
    return statistics.mean(float(run.regret[-1]) for run in runs)


def study_mixed(args: argparse.Namespace) -> list[str]:
    rules = tuple(args.rules)
    other = "everywhere" if "everywhere" in rules else rules[-1]
    numbers = range(args.first, args.first + args.runs)
    jobs = [(i, rule, args.seeds, args.episodes) for i in numbers for rule in rules]
    found = dict(zip(jobs, spread(play_mixed, jobs, args), strict=True))
    regrets = {rule: np.array([found[job] for job in jobs if job[1] == rule]) for rule in rules}
    ratio = (regrets["certified"] + LITTLE) / (regrets[other] + LITTLE)
    rows = [
        [str(number), *(f"{regrets[rule][i]:,.4g}" for rule in rules), f"{ratio[i]:.2f}"]
        for i, number in enumerate(numbers)
    ]
    rows.append(["sum", *(f"{regrets[rule].sum():,.5g}" for rule in rules), ""])
    better, worse = int((ratio < 1 / 1.1).sum()), int((ratio > 1.1).sum())
    head = ["model", *(RULES[rule].label for rule in rules), f"certified / {other}"]
    said = (
        f"{args.runs} models, {args.seeds} seeds, {args.episodes:,} episodes. Certified has less "
        f"regret than {RULES[other].name} by more than a tenth in {better}, more in {worse}; the "
        f"ratio is {ratio.min():.2f} to {ratio.max():.2f}, median {np.median(ratio):.2f}. (Each "
        f"regret counts as {LITTLE:g} more in a ratio, because some are 0.)"
    )
    return [*markdown(head, rows), "", said]


def study_sweeps(args: argparse.Namespace) -> list[str]:
    import pkd_delay

    rng = np.random.default_rng(0)
    P = np.zeros((20, 4, 20))
    for s in range(20):
        for a in range(4):
            P[s, a, rng.choice(20, 5, replace=False)] = rng.dirichlet(np.ones(5))
    large = pkd_delay.DelayedMDP.constant(pkd.TabularMDP(P, rng.random((20, 4)), 20), 8)
    problems: dict[str, Callable[[], tuple[Compiled, pkd.Law]]] = {
        name: lambda name=name: build(name)[:2]  # type: ignore[misc]
        for name in (
            args.models or ["riverswim", "gambler", "kuhn", "inventory", "autoscaler", "battery"]
        )
    }
    problems["constant delay 8, S=20 A=4 B=5 H=20"] = lambda: (
        pkd.compile(large.known()), large.law(),
    )  # fmt: skip
    rows = []
    for name, make in problems.items():
        compiled, law = make()
        run = pkd.learn(compiled, law, 300)
        times = {}
        truth = compiled.truth(law).belief
        beliefs = {"exact": truth}
        for rule in ("certified", "set alone", "mvp"):
            beliefs[rule] = pkd.optimistic_plan(
                compiled, run.counts, episodes=300, optimism=RULES[rule]
            ).belief
        policy = compiled.policy()
        for belief in beliefs.values():
            compiled.sweep(belief, policy, follow=False)
        for what in [*beliefs] * args.repeats:
            began = time.perf_counter()
            compiled.sweep(beliefs[what], policy, follow=False)
            times.setdefault(what, []).append(time.perf_counter() - began)
        exact = statistics.median(times["exact"])
        row = [name, type(compiled).__name__, f"{1e3 * exact:.3g}"]
        row += [
            f"{statistics.median(times[what]) / exact:.2f}"
            for what in ("certified", "set alone", "mvp")
        ]
        rows.append(row)
        print(row, flush=True)
    head = [
        "model",
        "engine",
        "exact sweep, ms",
        "certified / exact",
        "set alone / exact",
        "MVP / exact",
    ]
    return markdown(head, rows)


def spread(function: Callable[..., object], jobs: list, args: argparse.Namespace) -> list:
    from tqdm import tqdm

    with tqdm(total=len(jobs), mininterval=5) as bar:
        return workers.spread(function, jobs, args.workers, bar.update)


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + [
        "| " + " | ".join(row) + " |" for row in rows
    ]


STUDIES = {"regret": study_regret, "violations": study_violations, "stopping": study_stopping,
           "mixed": study_mixed, "sweeps": study_sweeps}  # fmt: skip


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--rules", nargs="*", choices=RULES)
    parser.add_argument("--first", type=int, default=0, help="mixed: the first random model")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=None)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--workers", type=int, default=workers.available())
    parser.add_argument("--out", type=Path, default=Path("out"))
    args = parser.parse_args()
    args.rules = args.rules or (list(MIXED) if args.study == "mixed" else list(RULES))
    args.runs = args.runs or {"violations": 2000, "stopping": 50, "mixed": 100}.get(args.study, 0)
    lines = STUDIES[args.study](args)
    print("\n".join(lines))
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / f"certified-{args.study}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
