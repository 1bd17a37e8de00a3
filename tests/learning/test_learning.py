"""Many episodes: `pkd.learn`, `pkd.OptimisticLearner`, `pkd.simulate` and the `Run`."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
from pkd.episode import list_samples
from tests import reference
from tests.reference import Rule
from tests.strategies import Case, Shape, build, cases

RULES = {
    "practical": (Rule("mvp", 0.5, 0.25, 1.0), pkd.MVP.practical()),
    "max": (Rule("mvp-max", 0.5, 0.25, 1.0), pkd.MVP(0.5, 0.25, log_factor=1.0, monotone=True)),
    "greedy": (Rule("greedy"), pkd.Greedy()),
}
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])
both_schedules = pytest.mark.parametrize("schedule", ["every", "doubling"])
FEW_EXAMPLES = settings(max_examples=15)

Samples = list[tuple[Any, Any]]


def samples_of_each_episode(
    compiled: Any, law: Any, episodes: int, **options: Any
) -> list[Samples]:
    """What `learn` counted in episode 1, 2, ..., from runs of that many episodes.

    A run with the same seed and fewer episodes is the beginning of a longer one.
    """
    before: dict[tuple[Any, Any], float] = {}
    found = []
    for k in range(1, episodes + 1):
        counts = pkd.learn(compiled, law, k, **options).counts
        now = {(z, x): n for z, row in counts.items() for x, n in row.items()}
        found.append(
            [pair for pair, n in now.items() for _ in range(round(n - before.get(pair, 0)))]
        )
        before = now
    return found


def in_force(plans: list[tuple[int, float]], episodes: int) -> list[float]:
    """The upper value of each episode's plan, from (first episode, value) of each plan."""
    return [
        next(value for first, value in reversed(plans) if first <= k)
        for k in range(1, episodes + 1)
    ]


@both_engines
@both_schedules
@pytest.mark.parametrize("rule", list(RULES))
@FEW_EXAMPLES
@given(case=cases(unknown_rewards=False))
def test_learn_plans_when_and_what_the_plain_learner_plans(
    large: bool, schedule: Any, rule: str, case: Case
) -> None:
    plain, ours = RULES[rule]
    options = {"optimism": ours, "seed": 5, "replan": schedule}
    compiled = pkd.compile(case.model, large=large)
    run = pkd.learn(compiled, case.law, 12, **options)
    expected = reference.replans(
        case.model,
        samples_of_each_episode(compiled, case.law, 12, **options),
        plain,
        schedule,
        0.05,
    )
    assert [k + 1 for k in run.plans] == [k for k, _ in expected]
    assert run.upper_values == pytest.approx(
        np.array(in_force(expected, 12)), rel=0, abs=1e-10 * case.scale
    )


@both_engines
@given(case=cases())
def test_the_last_policy_value_is_the_exact_value_of_the_last_policy(
    large: bool, case: Case
) -> None:
    run = pkd.learn(
        pkd.compile(case.model, large=large), case.law, 30, optimism=pkd.MVP.practical()
    )
    exact = reference.evaluation(case.model, case.law, run.policy.action).value
    assert run.policy_values[-1] == pytest.approx(exact, rel=0, abs=1e-10 * case.scale)


@given(case=cases())
def test_regret_adds_up_what_each_policy_loses(case: Case) -> None:
    run = pkd.learn(case.model, case.law, 30, optimism=pkd.MVP.practical())
    optimum = reference.optimal(case.model, case.law).value
    lost = [optimum - value for value in run.policy_values]
    assert run.regret == pytest.approx(
        np.array([math.fsum(lost[: k + 1]) for k in range(30)]), rel=0, abs=1e-8 * case.scale
    )
    assert min(lost) >= -1e-10 * case.scale


@both_engines
@pytest.mark.parametrize("seed", range(6))
def test_returns_average_to_the_value_of_the_policy(large: bool, seed: int) -> None:
    """With one action per state there is one policy.

    20,000 returns must agree with it within 4.5 standard errors.
    """
    corners = {"settlement": True, "spread_start": True, "unknown_rewards": True}
    case = build(Shape(seed, 3, n_actions=1, chance=0.4, end=0.1, known=0.3, **corners))
    run = pkd.learn(pkd.compile(case.model, large=large), case.law, 20_000, seed=seed)
    first = lambda h, x, y: case.model.actions(x, y)[0]  # noqa: E731
    exact = reference.evaluation(case.model, case.law, first).value
    slack = 4.5 * np.std(run.returns) / math.sqrt(20_000) + 1e-9
    assert np.mean(run.returns) == pytest.approx(exact, abs=slack)


def test_learning_may_start_from_counts() -> None:
    case = build(Shape(3, data="many", horizon=3))
    run = pkd.learn(case.model, case.law, 5, optimism=pkd.MVP(0.1, 0.01), counts=case.counts)
    expected = reference.optimistic(case.model, case.counts, Rule("mvp", 0.1, 0.01), 5, 0.05).value
    assert run.upper_values[0] == pytest.approx(expected, abs=1e-10)
    assert sum(sum(row.values()) for row in run.counts.values()) > sum(
        sum(row.values()) for row in case.counts.values()
    )


def digest(large: bool | None = None) -> str:
    """A hash of all bits that a run and a plan leave behind."""
    corners = {"chance": 0.3, "known": 0.3, "settlement": True, "unknown_rewards": True}
    case = build(Shape(8, horizon=4, n_x=4, n_y=4, n_actions=3, n_features=3, **corners))
    compiled = pkd.compile(case.model, large=large)
    found = hashlib.sha256(np.float64(pkd.plan(compiled, case.law).value).tobytes())
    rules = pkd.MVP(), pkd.MVP.practical(), pkd.Hoeffding(0.1), pkd.Greedy()
    for rule in (*rules, pkd.PosteriorSampling()):
        run = pkd.learn(compiled, case.law, 200, optimism=rule, seed=9)
        for array in (run.upper_values, run.policy_values, run.returns, run.regret, run.plans):
            found.update(np.ascontiguousarray(array).tobytes())
        counts = sorted((repr(z), sorted(map(repr, row.items()))) for z, row in run.counts.items())
        found.update(repr(counts).encode())
    return found.hexdigest()


def test_the_same_seed_gives_the_same_bits() -> None:
    assert digest() == digest()


def test_another_seed_gives_other_episodes() -> None:
    case = build(Shape(1))
    one, other = (pkd.learn(case.model, case.law, 100, seed=s) for s in (1, 2))
    assert one.returns.tobytes() != other.returns.tobytes()


@pytest.mark.slow
@both_engines
def test_a_fresh_process_with_one_thread_and_an_empty_cache_gives_the_same_bits(
    large: bool, tmp_path: Path
) -> None:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[1])])
    env = os.environ | {
        "NUMBA_NUM_THREADS": "1",
        "NUMBA_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "7",
    }
    code = f"import test_learning; print(test_learning.digest(large={large}))"
    fresh = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert fresh.stdout.strip() == digest(large)


def play(
    model: pkd.PartiallyKnownMDP, law: Any, act: Callable[[int, Any, Any], Any], rng: random.Random
) -> pkd.Episode:
    """A user's own environment: one episode, drawn without any code of the engine."""
    first = reference.starts(model)
    [(_, x, y)] = rng.choices(first, [p for p, _, _ in first])
    h, moves = 1, []
    while not reference.is_over(model, h, x, y):
        a = None if model.actions(x, y) is pkd.CHANCE else act(h, x, y)
        r = model.reward(x, y, a)
        if isinstance(r, pkd.UnknownReward):
            [r] = rng.choices(list(law[r.feature]), list(law[r.feature].values()))
        possible = reference.branches(model, h, x, y, a)
        [(_, h, y_next, z)] = rng.choices(possible, [p for p, *_ in possible])
        follow = dict(z.law) if isinstance(z, pkd.Known) else law[z]
        [x_next] = rng.choices(list(follow), list(follow.values()))
        moves.append(pkd.Transition(x, y, a, x_next, y_next, r))
        x, y = x_next, y_next
    return pkd.Episode(moves)


def taught(model: pkd.PartiallyKnownMDP, episode: pkd.Episode) -> Samples:
    """The samples of an episode: those of its features, and every unknown reward that was paid."""
    paid = [(model.reward(move.x, move.y, move.action), move.reward) for move in episode]
    return [
        *list_samples(model, episode),
        *((r.feature, value) for r, value in paid if isinstance(r, pkd.UnknownReward)),
    ]


@both_engines
@both_schedules
@pytest.mark.parametrize("rule", list(RULES))
@FEW_EXAMPLES
@given(case=cases())
def test_the_learner_plans_when_and_what_the_plain_learner_plans(
    large: bool, schedule: Any, rule: str, case: Case
) -> None:
    plain, ours = RULES[rule]
    rng = random.Random(case.shape.seed)
    learner = pkd.OptimisticLearner(
        pkd.compile(case.model, large=large), 12, optimism=ours, replan=schedule
    )
    samples, uppers = [], []
    for _ in range(12):
        uppers.append(learner.plan.value)
        episode = play(case.model, case.law, learner.act, rng)
        learner.observe(episode)
        samples.append(taught(case.model, episode))
    expected = reference.replans(case.model, samples, plain, schedule, 0.05)
    assert uppers == pytest.approx(in_force(expected, 12), rel=0, abs=1e-10 * case.scale)


class Arm(pkd.PartiallyKnownMDP):
    """Two pulls: of an arm that is paid its last result at the end, or of one that pays 0.6."""

    horizon = 2

    def start(self) -> Any:
        return 1, "choice"

    def actions(self, x: Any, y: Any) -> Any:
        return ["sure", "risky"]

    def step(self, x: Any, y: Any, a: Any) -> list[tuple[float, Any, Any]]:
        return [(1.0, "choice" if a == "risky" else "rest", "arm" if a == "risky" else pkd.sure(0))]

    def outcomes(self, z: Any) -> tuple[int, int]:
        return (0, 1)

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return 0.6 if a == "sure" else 0.0

    def final(self, x: Any, y: Any) -> float:
        return float(x)


LEGAL = pkd.Transition(1, "choice", "risky", 1, "choice")


def test_the_learner_acts_by_its_plan() -> None:
    learner = pkd.OptimisticLearner(Arm(), 10, optimism=pkd.Greedy())
    assert learner.act(2, 1, "choice") == "sure"  # 0.6, against a coin that pays 1/2 on average
    learner.observe(pkd.Episode([LEGAL, LEGAL]))
    assert learner.act(2, 1, "choice") == "risky"  # the coin showed 1 twice


def test_a_learner_is_given_no_law() -> None:
    assert "law" not in inspect.signature(pkd.OptimisticLearner).parameters


def test_a_warm_start_goes_on_from_the_counts() -> None:
    counts = {"arm": {0: 30, 1: 70}}
    learner = pkd.OptimisticLearner(Arm(), 10, optimism=pkd.Greedy(), counts=counts)
    assert learner.plan.value == pytest.approx(
        reference.optimistic(Arm(), counts, Rule("greedy"), 10, 0.05).value, abs=1e-12
    )


@both_engines
def test_an_older_plan_of_a_learner_keeps_its_values(large: bool) -> None:
    case = build(Shape(5, horizon=3, n_actions=2, n_features=3))
    learner = pkd.OptimisticLearner(
        pkd.compile(case.model, large=large), 50, optimism=pkd.MVP.practical(), replan="every"
    )
    episodes = pkd.simulate(
        (case.model, case.law), lambda h, x, y: case.model.actions(x, y)[0], 12, seed=3
    )
    learner.observe(episodes[0])
    old = learner.plan
    (state, *_) = old.states(1)
    before = old.values(1, *state)
    for episode in episodes[1:]:
        learner.observe(episode)
        assert learner.plan.value == pytest.approx(max(learner.plan.values(1, *state).values()))
    assert old.values(1, *state) == before


class Paid(pkd.PartiallyKnownMDP):
    """One action, one unknown reward."""

    horizon = 1

    def start(self) -> Any:
        return 0, 0

    def actions(self, x: Any, y: Any) -> Any:
        return [0]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, 0, pkd.sure(0))]

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return pkd.UnknownReward("pay", 0.0, 1.0)


@both_engines
def test_a_reward_that_was_seen_no_time_counts_for_nothing(large: bool) -> None:
    plan = pkd.optimistic_plan(
        pkd.compile(Paid(), large=large),
        {"pay": {0.0: 0, 0.2: 10}},
        episodes=10,
        optimism=pkd.Greedy(),
    )
    assert plan.value == pytest.approx(0.2, abs=1e-15)


def test_impossible_counts_of_a_reward_are_refused_together() -> None:
    with pytest.raises(pkd.ModelError) as caught:
        pkd.optimistic_plan(Paid(), {"pay": {5.0: 1, 0.5: -3}}, episodes=10)
    assert caught.value.findings == (
        "counts of 'pay' have the reward 5.0; expected a number in [0.0, 1.0]",
        "counts of 'pay', 0.5 are -3; expected a number >= 0",
    )


IMPOSSIBLE = {
    "an outcome outside its support": [LEGAL, pkd.Transition(1, "choice", "risky", 7, "choice")],
    "a y that cannot follow": [LEGAL, pkd.Transition(1, "choice", "sure", 0, "choice")],
    "an action that is not there": [LEGAL, pkd.Transition(1, "choice", "jump", 0, "choice")],
    "a known move that went elsewhere": [LEGAL, pkd.Transition(1, "choice", "sure", 1, "rest")],
    "a path that does not connect": [LEGAL, pkd.Transition(0, "choice", "risky", 1, "choice")],
    "another start": [pkd.Transition(0, "choice", "risky", 1, "choice"), LEGAL],
    "a move after the end": [LEGAL, LEGAL, LEGAL],
    "a stop before the end": [LEGAL],
    "no move at all": [],
}


@pytest.mark.parametrize("moves", IMPOSSIBLE.values(), ids=list(IMPOSSIBLE))
def test_an_impossible_episode_is_refused_and_not_counted(moves: list[pkd.Transition]) -> None:
    learner = pkd.OptimisticLearner(Arm(), 10, optimism=pkd.Greedy())
    learner.observe(pkd.Episode([LEGAL, LEGAL]))
    with pytest.raises(pkd.ModelError):
        learner.observe(pkd.Episode(moves))
    assert learner.counts == {"arm": {1: 2}}


@both_engines
@FEW_EXAMPLES
@given(case=cases(), seed=st.integers(0, 99))
def test_simulated_episodes_are_possible_and_complete(large: bool, case: Case, seed: int) -> None:
    model, law = case.model, case.law
    for episode in pkd.simulate(
        (pkd.compile(model, large=large), law),
        lambda h, x, y: model.actions(x, y)[-1],
        10,
        seed=seed,
    ):
        h, here = 1, None
        for move in episode:
            assert here in (None, (move.x, move.y))
            assert here is not None or any(
                (x, y) == (move.x, move.y) for p, x, y in reference.starts(model) if p > 0
            )
            assert move.action == (
                None
                if model.actions(move.x, move.y) is pkd.CHANCE
                else model.actions(move.x, move.y)[-1]
            )
            [(h, z)] = {
                (t, z)
                for _, t, y, z in reference.branches(model, h, move.x, move.y, move.action)
                if y == move.y_next
            }
            assert (dict(z.law) if isinstance(z, pkd.Known) else law[z])[move.x_next] > 0
            r = model.reward(move.x, move.y, move.action)
            assert move.reward in (law[r.feature] if isinstance(r, pkd.UnknownReward) else (r,))
            here = (move.x_next, move.y_next)
        assert here is None or reference.is_over(model, h, *here)


@both_engines
@pytest.mark.parametrize("seed", range(4))
def test_simulated_episodes_earn_the_exact_value(large: bool, seed: int) -> None:
    case = build(Shape(seed + 40, horizon=4, n_actions=3, n_features=4, chance=0.3, end=0.1))
    model, law = pkd.compile(case.model, large=large), case.law

    def policy(h: int, x: Any, y: Any) -> Any:
        return case.model.actions(x, y)[h % len(case.model.actions(x, y))]

    def last_state(episode: pkd.Episode) -> tuple[Any, Any]:
        return episode.transitions[-1].x_next, episode.transitions[-1].y_next

    episodes = pkd.simulate((model, law), policy, 3000, seed=seed)
    returns = [
        math.fsum(move.reward for move in episode) + case.model.final(*last_state(episode))
        for episode in episodes
    ]
    error = np.std(returns) / math.sqrt(len(returns))
    assert abs(np.mean(returns) - pkd.evaluate(model, law, policy)) <= 4 * error + 1e-12


@both_engines
def test_a_policy_that_takes_what_is_not_offered_is_refused(large: bool) -> None:
    with pytest.raises(pkd.ModelError, match="the policy takes 'jump', expected one of"):
        pkd.simulate(
            (pkd.compile(Arm(), large=large), {"arm": {0: 0.5, 1: 0.5}}), lambda h, x, y: "jump", 1
        )
