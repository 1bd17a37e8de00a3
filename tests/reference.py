"""A slow reference for the engines: the paper's Algorithm 3 with its MVP-Est rule.

Everything is a recursion over (h, x, y) written from the definitions. Only the contract `pkd.model`
is imported, so nothing here can share a mistake with the engine. Layers are h = 1..H; layer H + 1
is the settlement after the last action.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import attrs

from pkd.model import CHANCE, END, Known, PartiallyKnownMDP, UnknownReward

Counts = Mapping[Any, Mapping[Any, float]]
Policy = Callable[[int, Any, Any], Any]


@attrs.frozen
class Values:
    """V(h, x, y) and Q(h, x, y, a) as functions, and the expected V of the start."""

    value: float
    state: Callable[[int, Any, Any], float]
    action: Callable[[int, Any, Any, Any], float]


@attrs.frozen
class Reachable:
    """What an episode can meet: states (h, x, y), every y, unknown features, unknown rewards."""

    states: frozenset[tuple[int, Any, Any]]
    ys: frozenset[Any]
    features: frozenset[Any]
    reward_features: frozenset[Any]


@attrs.frozen
class Rule:
    """An optimism rule.

    kind: "mvp" (sum form), "mvp-max" (max form), "hoeffding" (c1 is its constant) or "greedy".
    """

    kind: str = "mvp"
    c1: float = 20 / 3
    c2: float = 400 / 9
    log_factor: float | None = None


def optimal(model: PartiallyKnownMDP, law: Counts) -> Values:
    """V(s) = max_a sum_y' P_Y(y'|s,a) (r + sum_x' P(x'|z) V(x', y')) under the true law."""
    return _solve(model, *_under(law), choose=lambda h, x, y, q: max(q.values()))


def evaluation(model: PartiallyKnownMDP, law: Counts, policy: Policy) -> Values:
    """The same with the action of a policy in place of the best one."""
    return _solve(model, *_under(law), choose=lambda h, x, y, q: q[policy(h, x, y)])


def optimistic(
    model: PartiallyKnownMDP, counts: Counts, rule: Rule, episodes: int, delta: float
) -> Values:
    """One plan of the generic algorithm.

    Q(s, a) = sum_y' P_Y(y'|s, a) (optimistic value of z = phi_Z(s, a, y') before V(., y'))
    """

    def pay(r: float | UnknownReward) -> float:
        return (
            optimistic_mean(model, r, counts.get(r.feature, {}), rule, episodes, delta)
            if isinstance(r, UnknownReward)
            else r
        )

    after = optimistic_pair(model, counts, rule, episodes, delta)
    return _solve(model, pay, after, choose=lambda h, x, y, q: max(q.values()))


def optimistic_pair(
    model: PartiallyKnownMDP, counts: Counts, rule: Rule, episodes: int, delta: float
) -> Callable[..., float]:
    """(r, z, h, y', V(., y')) -> the optimistic value of the pair (z, y')."""
    sizes, bounds = reachable(model), ranges(model)

    def after(r: float, z: Any, h: int, y: Any, value: Callable[[Any], float]) -> float:
        if isinstance(z, Known):
            return r + sum(p * value(x) for x, p in z.law if p > 0)
        outcomes = list(model.outcomes(z))
        seen = counts.get(z, {})
        n = sum(seen.values())
        if rule.kind == "greedy":
            return r + sum(
                (seen.get(x, 0) / n if n else 1 / len(outcomes)) * value(x) for x in outcomes
            )
        if model.return_range is None:
            most, least = (
                max(bounds(h, x, y)[1] for x in outcomes),
                min(bounds(h, x, y)[0] for x in outcomes),
            )
            top, width = r + most, most - least
        else:
            top, width = model.return_range[1], model.return_range[1] - model.return_range[0]
        if n <= free(rule):
            return top
        mean = sum(seen.get(x, 0) * value(x) for x in outcomes) / n
        variance = sum(seen.get(x, 0) * (value(x) - mean) ** 2 for x in outcomes) / n
        ell = rule.log_factor or log_factor(model, sizes, z, y, episodes, delta)
        return min(top, r + mean + bonus(rule, variance, width, n, ell))

    return after


def certified(
    model: PartiallyKnownMDP,
    counts: Counts,
    delta: float,
    *,
    episodes: int | None = None,
    least: bool = False,
    policy: Policy | None = None,
    fixed: Container[Any] = (),
) -> Values:
    """Values over the sets of laws that are not refuted.

    Q = sum_y' P_Y(y') (r + max {q.V(., y') : q in set(z)}). least: the minimum in place of the
    maximum. episodes: each pair takes the smaller of the maximum and MVP-Est, each with delta/2.
    fixed: features and rewards that are taken as they are estimated, even if without data.
    """
    sizes, mvp = reachable(model), None
    if episodes is not None:
        delta /= 2
    learned = [z for z in sizes.features if len(model.outcomes(z)) > 1]
    share = delta / max(len(learned) + len(sizes.reward_features), 1)
    if episodes is not None:
        mvp = optimistic_pair(model, counts, Rule(), episodes, delta)

    def pay(r: float | UnknownReward) -> float:
        if not isinstance(r, UnknownReward):
            return r
        seen = counts.get(r.feature, {})
        n = sum(seen.values())
        if r.feature in fixed:
            return sum(v * k for v, k in seen.items()) / n if n else (r.low + r.high) / 2
        if not n or r.low == r.high:
            return r.low if least else r.high
        heads = sum(k * (value - r.low) for value, k in seen.items()) / (r.high - r.low)
        coin = [heads, max(n - heads, 0.0)]
        found = extreme_over_set(coin, [r.high, r.low], set_radius(coin, 2, share), least)
        if mvp is None or least:
            return found
        return min(found, optimistic_mean(model, r, seen, Rule(), episodes or 1, delta))

    def after(r: float, z: Any, h: int, y: Any, value: Callable[[Any], float]) -> float:
        if isinstance(z, Known):
            return r + sum(p * value(x) for x, p in z.law if p > 0)
        outcomes = list(model.outcomes(z))
        n = [counts.get(z, {}).get(x, 0) for x in outcomes]
        if z in fixed:
            weights = n if sum(n) else [1] * len(n)
            values = (k / sum(weights) * value(x) for k, x in zip(weights, outcomes, strict=True))
            return r + sum(values)
        radius = set_radius(n, model.branching(z), share)
        found = r + extreme_over_set(n, [value(x) for x in outcomes], radius, least)
        return found if mvp is None or least else min(found, mvp(r, z, h, y, value))

    def choose(h: int, x: Any, y: Any, q: dict[Any, float]) -> float:
        if policy is None:
            return max(q.values())
        answer = policy(h, x, y)
        if isinstance(answer, Mapping):  # it chooses at random
            return sum(p * q[a] for a, p in answer.items())
        return q[answer]

    return _solve(model, pay, after, choose=choose)


def over_balls(
    model: PartiallyKnownMDP, counts: Counts, kind: str, episodes: int, delta: float
) -> Values:
    """KL-UCRL ("kl") and UCRL2 ("l1"): the best law of a ball around the frequencies.

    S: outcomes of z; S A: number of unknown features, or of unknown rewards; T = K H.
    """
    sizes = reachable(model)
    n_features = len(sizes.features) if model.n_features is None else model.n_features
    samples = sum(sum(counts.get(z, {}).values()) for z in sizes.features)
    log_t = max(math.log(episodes * model.horizon), 1.0)

    def pay(r: float | UnknownReward) -> float:
        if not isinstance(r, UnknownReward):
            return r
        seen = counts.get(r.feature, {})
        n, pairs = sum(seen.values()), len(sizes.reward_features)
        if not n:
            return r.high
        mean = sum(value * k for value, k in seen.items()) / n
        if kind == "l1":
            error = math.sqrt(7 * math.log(2 * pairs * (1 + samples) / delta) / (2 * n))
        else:
            error = math.sqrt(math.log(4 * pairs * log_t / delta) / 1.99) / math.sqrt(n)
        return min(r.high, mean + (r.high - r.low) * error)

    def after(r: float, z: Any, h: int, y: Any, value: Callable[[Any], float]) -> float:
        if isinstance(z, Known):
            return r + sum(p * value(x) for x, p in z.law if p > 0)
        outcomes = list(model.outcomes(z))
        n = [counts.get(z, {}).get(x, 0) for x in outcomes]
        v, s = [value(x) for x in outcomes], len(outcomes)
        if not sum(n):
            return r + max(v)
        if kind == "l1":
            actions = max(n_features / s, 1)
            radius = math.sqrt(14 * s * math.log(2 * actions * (1 + samples) / delta) / sum(n))
            return r + best_in_l1_ball([k / sum(n) for k in n], v, radius)
        b = math.log(2 * math.e * s * n_features * log_t / delta)
        c = s * (b + math.log(b + 1 / log_t) * (1 + 1 / (b + 1 / log_t)))
        return r + extreme_over_set(n, v, c / sum(n))

    return _solve(model, pay, after, choose=lambda h, x, y, q: max(q.values()))


def best_in_l1_ball(p: Sequence[float], v: Sequence[float], radius: float) -> float:
    """max {q.v : |q - p|_1 <= radius}: the best outcome gains radius / 2, the worst lose it."""
    ranked = sorted(range(len(v)), key=lambda i: v[i])
    q = list(p)
    q[ranked[-1]] = min(1.0, p[ranked[-1]] + radius / 2)
    for i in ranked:
        surplus = sum(q) - 1
        if surplus > 0:
            q[i] = max(q[i] - surplus, 0.0)
    return sum(a * b for a, b in zip(q, v, strict=True))


def of_draws(
    model: PartiallyKnownMDP,
    draws: Mapping[Any, Sequence[tuple[Mapping[Any, float], float]]],
    means: Mapping[Any, float],
    place: int,
) -> Values:
    """The place-th largest of q.V + q_0 top over draws (q, q_0) of each feature.

    top: the largest possible return to go, or the upper end of a declared range. means: of rewards.
    """
    bounds = ranges(model)

    def after(r: float, z: Any, h: int, y: Any, value: Callable[[Any], float]) -> float:
        if isinstance(z, Known):
            return r + sum(p * value(x) for x, p in z.law if p > 0)
        top = max(bounds(h, x, y)[1] for x in model.outcomes(z))
        top = top if model.return_range is None else model.return_range[1]
        found = sorted(
            sum(p * value(x) for x, p in law.items()) + extra * top for law, extra in draws[z]
        )
        return min(r + found[-place], model.return_range[1] if model.return_range else math.inf)

    def pay(r: float | UnknownReward) -> float:
        return means[r.feature] if isinstance(r, UnknownReward) else r

    return _solve(model, pay, after, choose=lambda h, x, y, q: max(q.values()))


def set_radius(n: Sequence[float], bound: int, share: float) -> float:
    """C = [log(1/share) + log(prod p^n / w(n))] / N.

    w: a support of s outcomes is drawn with s uniform on 1..bound, and Dirichlet(1/2) on it.
    """
    m, k, total = len(n), sum(c > 0 for c in n), sum(n)
    if not total:
        return math.inf
    best = sum(c * math.log(c / total) for c in n if c > 0)
    mixture = 0.0
    for s in range(k, max(bound, k) + 1):
        log_w = math.lgamma(s / 2) - math.lgamma(total + s / 2)
        log_w += sum(math.lgamma(c + 0.5) - math.lgamma(0.5) for c in n if c > 0)
        mixture += math.comb(m - k, s - k) / math.comb(m, s) * math.exp(log_w - best)
    return (-math.log(share) - math.log(mixture / max(bound, k))) / total


def extreme_over_set(
    n: Sequence[float], v: Sequence[float], radius: float, least: bool = False
) -> float:
    """max (or min) {q.v : KL(p, q) <= radius}, p = n / N, by bisection on the multiplier."""
    if least:
        return -extreme_over_set(n, [-value for value in v], radius)
    top, total = max(v), sum(n)
    if not total or radius == math.inf:
        return top
    seen = [(c / total, top - value) for c, value in zip(n, v, strict=True) if c > 0]
    if max(gap for _, gap in seen) == 0:
        return top

    def divergence(g: float) -> float:
        return sum(p * math.log(g + gap) for p, gap in seen) + math.log(
            sum(p / (g + gap) for p, gap in seen)
        )

    if all(gap > 0 for _, gap in seen) and divergence(0.0) <= radius:
        # The unseen top takes the mass that q_j ~ p_j / gap_j leaves; KL = radius says how much.
        return top - math.exp(sum(p * math.log(gap) for p, gap in seen) - radius)
    low, high = math.log(1e-300), math.log(max(gap for _, gap in seen)) + 40
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(math.exp(middle)) > radius else (low, middle)
    g = math.exp(high)
    mass = sum(p / (g + gap) for p, gap in seen)
    return top - sum(p * gap / (g + gap) for p, gap in seen) / mass


def mvp_est(
    r: float, p: Sequence[float], v: Sequence[float], n: float, ell: float, cap: float
) -> float:
    """MVPEst(r, p, V, N, ell) as the paper prints it, with `cap` for its H."""
    if n <= 1:
        return cap
    mean = sum(a * b for a, b in zip(p, v, strict=True))
    variance = sum(a * (b - mean) ** 2 for a, b in zip(p, v, strict=True))
    return min(cap, r + mean + 20 / 3 * math.sqrt(variance * ell / n) + 400 / 9 * cap * ell / n)


def bonus(rule: Rule, variance: float, width: float, n: float, ell: float) -> float:
    """c1 sqrt(Var ell/N) + c2 width ell/N; the max form takes the larger term.

    Hoeffding is c width ell/sqrt(N).
    """
    if rule.kind == "hoeffding":
        return rule.c1 * width * ell / math.sqrt(n)
    terms = rule.c1 * math.sqrt(variance * ell / n), rule.c2 * width * ell / n
    return max(terms) if rule.kind == "mvp-max" else sum(terms)


def free(rule: Rule) -> int:
    """Up to so many samples the value is the cap."""
    return 0 if rule.kind == "hoeffding" else 1


def optimistic_mean(
    model: PartiallyKnownMDP,
    r: UnknownReward,
    seen: Mapping[Any, float],
    rule: Rule,
    episodes: int,
    delta: float,
) -> float:
    """min(high, mean + bonus with width high - low), ell = log(32 N^2 |W| K/delta).

    Without data it is `high`. Greedy takes the mean.
    """
    n = sum(seen.values())
    if rule.kind == "greedy":
        return sum(value * k for value, k in seen.items()) / n if n else (r.low + r.high) / 2
    if n <= free(rule):
        return r.high
    mean: float = sum(value * k for value, k in seen.items()) / n
    variance: float = sum(k * (value - mean) ** 2 for value, k in seen.items()) / n
    ell = rule.log_factor or math.log(
        32 * most_visits(model) ** 2 * len(reachable(model).reward_features) * episodes / delta
    )
    return min(r.high, mean + bonus(rule, variance, r.high - r.low, n, ell))


def log_factor(
    model: PartiallyKnownMDP, sizes: Reachable, z: Any, y: Any, episodes: int, delta: float
) -> float:
    """ell(z, y') = min(log(32 N^2 |Z| K/(delta w)), B log(32 N B |Z| K/delta)).

    w is the share of y', or 1/|Y|.
    """
    most = most_visits(model)
    n_features = len(sizes.features) if model.n_features is None else model.n_features
    share = model.share(z, y)
    weight = 1 / len(sizes.ys) if share is None else share
    b = model.branching(z)
    return min(
        math.log(32 * most**2 * n_features * episodes / (delta * weight)),
        b * math.log(32 * most * b * n_features * episodes / delta),
    )


@cache
def most_visits(model: PartiallyKnownMDP) -> int:
    """N: the most visits of a feature or unknown reward on one path, at least the layers.

    The layers are H, or H + 1 if values of the steps 1 and H + 1 are averaged over unknown laws.
    """

    def visits(name: Any) -> Callable[[int, Any, Any], int]:
        @cache
        def count(h: int, x: Any, y: Any) -> int:
            if is_over(model, h, x, y):
                return 0
            found = []
            for a in choices(model, x, y):
                r = model.reward(x, y, a)
                paid = isinstance(r, UnknownReward) and r.feature == name
                for _, h_next, y_next, z in branches(model, h, x, y, a):
                    found += [
                        paid + (not isinstance(z, Known) and z == name) + count(h_next, x2, y_next)
                        for x2 in support(model, z)
                    ]
            return max(found)

        return count

    sizes, layers = reachable(model), set()
    for h, x, y in sizes.states:
        if not is_over(model, h, x, y):
            for a in choices(model, x, y):
                drawn = [b for b in branches(model, h, x, y, a) if not isinstance(b[3], Known)]
                layers |= {h_next for _, h_next, _, _ in drawn}
    names = sizes.features | sizes.reward_features
    most = max(
        (visits(name)(1, x, y) for name in names for p, x, y in starts(model) if p > 0), default=0
    )
    return max(model.horizon + (layers >= {1, model.horizon + 1}), most)


def ranges(model: PartiallyKnownMDP) -> Callable[[int, Any, Any], tuple[float, float]]:
    """[lo, hi](h, x, y): the smallest and the largest possible return to go."""

    @cache
    def bounds(h: int, x: Any, y: Any) -> tuple[float, float]:
        if is_over(model, h, x, y):
            return model.final(x, y), model.final(x, y)
        ends = []
        for a in choices(model, x, y):
            r = model.reward(x, y, a)
            low, high = (r.low, r.high) if isinstance(r, UnknownReward) else (r, r)
            for _, h_next, y_next, z in branches(model, h, x, y, a):
                for x_next in support(model, z):
                    lo, hi = bounds(h_next, x_next, y_next)
                    ends.append((low + lo, high + hi))
        return min(lo for lo, _ in ends), max(hi for _, hi in ends)

    return bounds


def reachable(model: PartiallyKnownMDP) -> Reachable:
    """Everything that has positive probability under some action and some law."""
    states: set[tuple[int, Any, Any]] = set()
    features, reward_features = set(), set()
    waiting = [(1, x, y) for p, x, y in starts(model) if p > 0]
    while waiting:
        here = waiting.pop()
        if here in states:
            continue
        states.add(here)
        h, x, y = here
        if is_over(model, h, x, y):
            continue
        for a in choices(model, x, y):
            r = model.reward(x, y, a)
            if isinstance(r, UnknownReward):
                reward_features.add(r.feature)
            for _, h_next, y_next, z in branches(model, h, x, y, a):
                if not isinstance(z, Known):
                    features.add(z)
                waiting += [(h_next, x_next, y_next) for x_next in support(model, z)]
    return Reachable(
        frozenset(states),
        frozenset(y for _, _, y in states),
        frozenset(features),
        frozenset(reward_features),
    )


def decisions(model: PartiallyKnownMDP) -> list[tuple[int, Any, Any]]:
    """The reachable states (h, x, y) in which an action is chosen, in a fixed order."""
    found = [
        s
        for s in reachable(model).states
        if not is_over(model, *s) and model.actions(s[1], s[2]) is not CHANCE
    ]
    return sorted(found, key=repr)


def brute_force(model: PartiallyKnownMDP, law: Counts) -> float:
    """The best expected return of all deterministic policies, each summed over its trajectories."""
    places = decisions(model)
    policies = itertools.product(*(choices(model, x, y) for _, x, y in places))
    return max(
        expected_return(model, law, _following(dict(zip(places, actions, strict=True))))
        for actions in policies
    )


def expected_return(model: PartiallyKnownMDP, law: Counts, policy: Policy) -> float:
    """sum over trajectories of probability * return: no value function is involved."""
    return math.fsum(p * total for p, total in trajectories(model, law, policy))


def variance_of_return(model: PartiallyKnownMDP, law: Counts, policy: Policy) -> float:
    """sum over trajectories of probability * (return - mean)^2."""
    mean = expected_return(model, law, policy)
    return math.fsum(p * (total - mean) ** 2 for p, total in trajectories(model, law, policy))


def law_of_return(
    model: PartiallyKnownMDP, law: Counts, policy: Policy, digits: int
) -> dict[float, float]:
    """{return: probability}; returns that agree to so many digits are one."""
    found: dict[float, list[float]] = {}
    for p, total in trajectories(model, law, policy):
        found.setdefault(round(total, digits) + 0.0, []).append(p)
    return {total: math.fsum(masses) for total, masses in sorted(found.items())}


def trajectories(
    model: PartiallyKnownMDP, law: Counts, policy: Policy
) -> Iterator[tuple[float, float]]:
    """(probability, return) of every trajectory; a policy may give {action: probability}."""

    def paths(h: int, x: Any, y: Any) -> Iterator[tuple[float, float]]:
        if is_over(model, h, x, y):
            yield 1.0, model.final(x, y)
            return
        chosen = None if model.actions(x, y) is CHANCE else policy(h, x, y)
        for a, w in chosen.items() if isinstance(chosen, Mapping) else [(chosen, 1.0)]:
            r = model.reward(x, y, a)
            paid = law[r.feature].items() if isinstance(r, UnknownReward) else [(r, 1.0)]
            for p, h_next, y_next, z in branches(model, h, x, y, a):
                for x_next, q in z.law if isinstance(z, Known) else law[z].items():
                    if w > 0 and q > 0:
                        for p_rest, rest in paths(h_next, x_next, y_next):
                            yield from ((w * p * q * u * p_rest, v + rest) for v, u in paid)

    for p0, x, y in starts(model):
        if p0 > 0:
            yield from ((p0 * p, total) for p, total in paths(1, x, y))


def visits(
    model: PartiallyKnownMDP,
    law: Counts,
    wanted: Any,
    best: Callable[..., float] = max,
    policy: Policy | None = None,
) -> float:
    """The largest (or, with `min`, the least) expected number of draws from the law of `wanted`.

    policy: of this one alone.
    """

    @cache
    def to_go(h: int, x: Any, y: Any) -> float:
        if is_over(model, h, x, y):
            return 0.0
        found = choices(model, x, y)
        if policy is not None and found != (None,):
            found = (policy(h, x, y),)
        return best(after(h, x, y, a) for a in found)

    def after(h: int, x: Any, y: Any, a: Any) -> float:
        r = model.reward(x, y, a)
        total = 1.0 if isinstance(r, UnknownReward) and r.feature == wanted else 0.0
        for p, h_next, y_next, z in branches(model, h, x, y, a):
            total += p * (not isinstance(z, Known) and z == wanted)
            for x_next, q in z.law if isinstance(z, Known) else law[z].items():
                total += p * q * to_go(h_next, x_next, y_next) if q > 0 else 0.0
        return total

    return sum(p * to_go(1, x, y) for p, x, y in starts(model) if p > 0)


def visits_of_policies(model: PartiallyKnownMDP, law: Counts, wanted: Any) -> tuple[float, float]:
    """(least, most) expected draws over all deterministic policies, one after the other."""
    places = decisions(model)
    policies = itertools.product(*(choices(model, x, y) for _, x, y in places))
    found = []
    for actions in policies:
        act = _following(dict(zip(places, actions, strict=True)))
        total = 0.0
        waiting = [(p, 1, x, y) for p, x, y in starts(model) if p > 0]
        while waiting:
            p, h, x, y = waiting.pop()
            if is_over(model, h, x, y):
                continue
            a = None if model.actions(x, y) is CHANCE else act(h, x, y)
            r = model.reward(x, y, a)
            total += p if isinstance(r, UnknownReward) and r.feature == wanted else 0.0
            for p_y, h_next, y_next, z in branches(model, h, x, y, a):
                total += p * p_y if not isinstance(z, Known) and z == wanted else 0.0
                for x_next, q in z.law if isinstance(z, Known) else law[z].items():
                    if q > 0:
                        waiting.append((p * p_y * q, h_next, x_next, y_next))
        found.append(total)
    return min(found), max(found)


def replans(
    model: PartiallyKnownMDP,
    samples: Sequence[Iterable[tuple[Any, Any]]],
    rule: Rule,
    schedule: str,
    delta: float,
) -> list[tuple[int, float]]:
    """(episode before which a plan is made, its upper value), given the samples of each episode.


    "every": before each episode. "doubling": before episode 1, and when some N(z) >= max(1, 2 N(z)
    at the last plan).
    """
    counts: dict[Any, Counter[Any]] = {}
    planned: dict[Any, int] = {}
    made = []
    for k, pairs in enumerate(samples, start=1):
        now = {z: sum(seen.values()) for z, seen in counts.items()}
        if (
            k == 1
            or schedule == "every"
            or any(n >= max(1, 2 * planned.get(z, 0)) for z, n in now.items())
        ):
            made.append((k, optimistic(model, counts, rule, len(samples), delta).value))
            planned = now
        for z, x in pairs:
            counts.setdefault(z, Counter())[x] += 1
    return made


def starts(model: PartiallyKnownMDP) -> list[tuple[float, Any, Any]]:
    """(probability, x, y) of the first states."""
    first = model.start()
    return (
        [(p, x, y) for (x, y), p in first.items()]
        if isinstance(first, Mapping)
        else [(1.0, *first)]
    )


def is_over(model: PartiallyKnownMDP, h: int, x: Any, y: Any) -> bool:
    """Whether the episode stops in (x, y): at END, or in a decision state after the last action."""
    kind = model.actions(x, y)
    return kind is END or (h > model.horizon and kind is not CHANCE)


def choices(model: PartiallyKnownMDP, x: Any, y: Any) -> tuple[Any, ...]:
    """The actions in (x, y); a CHANCE state has the one choice None."""
    kind = model.actions(x, y)
    return (None,) if kind is CHANCE else tuple(kind)


def branches(
    model: PartiallyKnownMDP, h: int, x: Any, y: Any, a: Any
) -> list[tuple[float, int, Any, Any]]:
    """(probability, layer, y', z) of every move that can happen.

    A CHANCE state takes no time; the H-th action starts the settlement.
    """
    h_next = h if a is None else h + 1
    step = model.step if h_next <= model.horizon else model.last_step
    return [(p, h_next, y_next, z) for p, y_next, z in step(x, y, a) if p > 0]


def support(model: PartiallyKnownMDP, z: Any) -> list[Any]:
    """Every x' that can follow z."""
    return [x for x, p in z.law if p > 0] if isinstance(z, Known) else list(model.outcomes(z))


def _following(table: Mapping[tuple[int, Any, Any], Any]) -> Policy:
    return lambda h, x, y: table[h, x, y]


def _under(law: Counts) -> tuple[Callable[..., float], Callable[..., float]]:
    def pay(r: float | UnknownReward) -> float:
        return (
            sum(value * p for value, p in law[r.feature].items())
            if isinstance(r, UnknownReward)
            else r
        )

    def after(r: float, z: Any, h: int, y: Any, value: Callable[[Any], float]) -> float:
        return r + sum(
            p * value(x) for x, p in (z.law if isinstance(z, Known) else law[z].items()) if p > 0
        )

    return pay, after


def _solve(
    model: PartiallyKnownMDP,
    pay: Callable[..., float],
    after: Callable[..., float],
    choose: Callable[..., float],
) -> Values:
    """The backward recursion: choose over a of sum_y' P_Y(y'|s,a) * after(pay(r), z, V(., y'))."""

    @cache
    def state(h: int, x: Any, y: Any) -> float:
        if is_over(model, h, x, y):
            return model.final(x, y)
        q = {a: action(h, x, y, a) for a in choices(model, x, y)}
        return q[None] if None in q else choose(h, x, y, q)

    @cache
    def action(h: int, x: Any, y: Any, a: Any) -> float:
        r = pay(model.reward(x, y, a))
        return sum(
            p * after(r, z, t, v, lambda x_next, t=t, v=v: state(t, x_next, v))
            for p, t, v, z in branches(model, h, x, y, a)
        )

    return Values(sum(p * state(1, x, y) for p, x, y in starts(model) if p > 0), state, action)
