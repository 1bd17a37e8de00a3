"""What every engine must agree on with `tests.reference`, for one case."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache, lru_cache
from typing import Any

import numpy as np

import pkd
from pkd.engine import Compiled
from pkd.planning.plan import seed_words
from tests import reference
from tests.reference import Rule

RULES = {
    "theory": (Rule(), pkd.MVP()),
    "practical": (Rule("mvp", 0.5, 0.25, 1.0), pkd.MVP.practical()),
    "max": (Rule("mvp-max", 0.1, 0.02), pkd.MVP(0.1, 0.02, monotone=True)),
    "small": (Rule("mvp", 0.05, 0.003), pkd.MVP(0.05, 0.003)),
    "hoeffding": (Rule("hoeffding", 0.01), pkd.Hoeffding(0.01)),
    "greedy": (Rule("greedy"), pkd.Greedy()),
}
SLACK = 1e-10
STANDARD_ERRORS = 5


@lru_cache(maxsize=4)
def decisions(case: Any) -> list[tuple[int, Any, Any]]:
    """The reachable decision states (h, x, y)."""
    found = [
        place
        for place in case.met.states
        if not reference.is_over(case.model, *place)
        and case.model.actions(*place[1:]) is not pkd.CHANCE
    ]
    return sorted(found, key=repr)


@lru_cache(maxsize=4)
def optimal(case: Any) -> reference.Values:
    """The plan under the law, by the reference; kept for the next engine."""
    return reference.optimal(case.model, case.law)


@lru_cache(maxsize=30)
def optimistic(case: Any, name: str, episodes: int) -> reference.Values:
    """The plan from counts, by the reference; kept for the next engine."""
    return reference.optimistic(case.model, case.counts, RULES[name][0], episodes, 0.05)


class Worst:
    """The largest error so far, in units of the scale of returns."""

    def __init__(self) -> None:
        self.error, self.comparisons = 0.0, 0

    def hold(self, found: float, expected: float, scale: float, where: Any) -> None:
        error = abs(found - expected) / scale
        self.error, self.comparisons = max(self.error, error), self.comparisons + 1
        assert error <= SLACK, f"{where}: expected {expected}, got {found}"


def assert_structure(case: Any, compiled: Compiled) -> None:
    """Decision states of each step, features, outcomes, unknown rewards and |Y|."""
    model, met = case.model, case.met
    expected: dict[int, set[Any]] = {h: set() for h in range(1, model.horizon + 1)}
    for h, x, y in decisions(case):
        expected[h].add((x, y))
    for h, states in expected.items():
        found = list(compiled.decision_states(h))
        assert len(found) == len(set(found)), f"a state twice at step {h}"
        assert set(found) == states, f"decision states of step {h}"
    assert set(compiled.features) == met.features
    assert len(compiled.features) == len(met.features)
    outcomes = zip(compiled.features, compiled.outcomes, strict=True)
    assert all(set(xs) == set(model.outcomes(z)) for z, xs in outcomes)
    assert {reward.feature for reward in compiled.rewards} == met.reward_features
    assert compiled.n_y == len(met.ys)


def assert_plan(
    case: Any, plan: pkd.Plan, expected: reference.Values, worst: Worst, name: str
) -> None:
    """The value, Q of every action in every decision state, and actions that attain the maximum."""
    worst.hold(plan.value, expected.value, case.scale, (name, "value"))
    for h, x, y in decisions(case):
        q = {a: expected.action(h, x, y, a) for a in case.model.actions(x, y)}
        found = plan.values(h, x, y)
        assert list(found) == list(q)
        for a in q:
            worst.hold(found[a], q[a], case.scale, (name, "Q", h, x, y, a))
        worst.hold(q[plan.action(h, x, y)], max(q.values()), case.scale, (name, "action", h, x, y))


def assert_plans(
    case: Any, compiled: Compiled, worst: Worst, rules: Any = tuple(RULES), episodes: int = 1000
) -> None:
    """The plan under the law, and optimistic ones from counts."""
    assert_plan(case, pkd.plan(compiled, case.law), optimal(case), worst, "plan")
    for name in rules:
        optimism = RULES[name][1]
        found = pkd.optimistic_plan(compiled, case.counts, episodes=episodes, optimism=optimism)
        assert_plan(case, found, optimistic(case, name, episodes), worst, name)


def assert_evaluations(case: Any, compiled: Compiled, worst: Worst) -> None:
    """Policies that depend on everything: on the step, x and every entry of the queue."""
    for seed in range(2):

        def policy(h: int, x: Any, y: Any, seed: int = seed) -> Any:
            rng = random.Random(f"{seed} {h} {x!r} {y!r}")
            return rng.choice(list(case.model.actions(x, y)))

        expected = reference.evaluation(case.model, case.law, policy).value
        found = pkd.evaluate(compiled, case.law, policy)
        worst.hold(found, expected, case.scale, ("evaluation", seed))
    best = pkd.plan(compiled, case.law)
    worst.hold(pkd.evaluate(compiled, case.law, best), best.value, case.scale, "of the plan")


def visits(case: Any, policy: Any) -> tuple[float, float, dict[Any, float]]:
    """(mean, variance of the return, expected number of each (z, x')) of a policy, by recursion."""
    model, law = case.model, case.law

    @cache
    def follow(h: int, x: Any, y: Any) -> tuple[float, float, dict[Any, float]]:
        """E R and E R^2 of the return to go, and the expected numbers from here on."""
        if reference.is_over(model, h, x, y):
            return model.final(x, y), model.final(x, y) ** 2, {}
        a = None if model.actions(x, y) is pkd.CHANCE else policy(h, x, y)
        r = model.reward(x, y, a)
        paid = law[r.feature] if isinstance(r, pkd.UnknownReward) else {r: 1.0}
        r1, r2 = (sum(q * value**k for value, q in paid.items()) for k in (1, 2))
        after, seen = [], Counter[Any]()
        for p, h_next, y_next, z in reference.branches(model, h, x, y, a):
            known = isinstance(z, pkd.Known)
            for x_next, q in dict(z.law).items() if known else law[z].items():
                if q > 0:
                    after.append((p * q, *follow(h_next, x_next, y_next)))
                    seen.update({} if known else {(z, x_next): p * q})
        for p, _, _, later in after:
            seen.update({pair: p * n for pair, n in later.items()})
        one, two = (sum(part[0] * part[k] for part in after) for k in (1, 2))
        return r1 + one, r2 + 2 * r1 * one + two, dict(seen)

    mean = square = 0.0
    seen = Counter[Any]()
    for p, x, y in reference.starts(model):
        if p > 0:
            one, two, later = follow(1, x, y)
            mean, square = mean + p * one, square + p * two
            seen.update({pair: p * n for pair, n in later.items()})
    return mean, max(square - mean**2, 0.0), dict(seen)


def assert_episodes(case: Any, compiled: Compiled, episodes: int = 4000) -> None:
    """Compiled episodes have the mean return and the mean counts of the policy that they follow."""
    truth, tally = compiled.truth(case.law), compiled.tally()
    tally.marks[:] = math.inf
    tally.reward_marks[:] = math.inf
    plan, returns = pkd.plan(compiled, case.law), np.zeros(episodes)
    played = compiled.episodes(
        truth.world, plan.choices, tally, seed_words(case.shape.seed), returns
    )
    assert played == (episodes, False)
    mean, variance, seen = visits(case, plan.action)
    error = STANDARD_ERRORS * math.sqrt(variance / episodes) + 1e-9 * case.scale
    assert abs(returns.mean() - mean) <= error
    named = compiled.named_counts(tally)
    laws = {z: row for z, row in named.items() if z not in compiled.reward_index}
    found = {(z, x): n for z, row in laws.items() for x, n in row.items()}
    assert set(found) <= set(seen)
    for pair, expected in seen.items():
        # The number in one episode is at most `most`, so its variance is at most most * expected.
        most = (case.model.horizon + 1) * 8
        error = STANDARD_ERRORS * math.sqrt(most * expected / episodes) + 1e-9
        assert abs(found.get(pair, 0.0) / episodes - expected) <= error, pair
