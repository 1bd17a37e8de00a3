"""A proof inspector: walks a run of `pkd.MVP()` and evaluates both sides of the proof's lemmas.

The lemmas of the regret theorem speak of quantities that the algorithm never forms: the true law,
V*, the value of each policy, U. A small model can form them. `inspect_proof` plays a run that plans
before every episode, computes all values from their definitions, and keeps for each lemma how often
it was checked, how often it failed, and its tightest pair of sides. R is the length of the return
range, the paper's H. Of a run of `pkd.Certified()` it checks the lemmas that are about the data
alone, and the certified values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from pkd.engine import compile
from pkd.engine.compiled import Compiled
from pkd.episode import list_visited
from pkd.learning.learner import OptimisticLearner
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import MVP, Certified
from pkd.planning.plan import Model, Plan
from pkd.planning.simulation import Simulator
from pkd.problem import as_model, unpack
from pkd.results.run import CertifiedInterval
from pkd.theory.bounds import explicit
from pkd.theory.unrolled import Unrolled

SURPLUS = (28.0, 660.0)  # of the square root and of the rest, in the lemma on surpluses
SUM_OF_U = 4.0
ROUNDING = 1e-9  # of R

Array = Any  # a number, or an array of them


def bennett(variance: Array, ell: Array, n: Array, width: float = 1.0) -> Array:
    """sqrt(2 Var ell / N) + width ell / (3 N): how far a mean of N samples may be from the truth.

    One side fails with a probability of at most exp(-ell).
    """
    return np.sqrt(2 * variance * ell / n) + width * ell / (3 * n)


def empirical_bernstein(variance: Array, ell: Array, n: Array, width: float = 1.0) -> Array:
    """2 sqrt(Var ell / N) + 14 width ell / (3 N), with the variance of the samples.

    One side fails with a probability of at most 2 exp(-ell), for N >= 2.
    """
    return 2 * np.sqrt(variance * ell / n) + 14 * width * ell / (3 * n)


@attrs.define
class Lemma:
    """left <= right, as a run has met it; the two sides kept are those that came closest."""

    label: str  # of the paper
    checked: int = 0
    failed: int = 0
    left: float = -math.inf
    right: float = math.inf

    def hold(self, left: Array, right: Array, slack: float) -> None:
        """Notes pairs of sides, (pairs,) each."""
        left, right = np.atleast_1d(left), np.atleast_1d(right)
        self.failed += int((~(left <= right + slack)).sum())
        for one, other in zip(left.tolist(), right.tolist(), strict=True):
            if one * self.right > self.left * other or self.checked == 0:
                self.left, self.right = one, other
            self.checked += 1


@attrs.frozen(eq=False)
class Inspection:
    """What a run says about the lemmas, by their labels."""

    lemmas: Mapping[str, Lemma]
    upper_values: tuple[float, ...]  # V^k of the start, of each episode, from the definition
    planned_values: tuple[float, ...]  # the same, from the plans of the run

    @property
    def failures(self) -> dict[str, Lemma]:
        """The lemmas that failed at least once; the proof allows it with probability delta."""
        return {label: lemma for label, lemma in self.lemmas.items() if lemma.failed}

    def __str__(self) -> str:
        rows = [f"{'lemma':44} {'checked':>8} {'failed':>7} {'left':>12} {'right':>12}"]
        for lemma in self.lemmas.values():
            sides = f"{lemma.left:12.5g} {lemma.right:12.5g}"
            rows.append(f"{lemma.label:44} {lemma.checked:8} {lemma.failed:7} {sides}")
        return "\n".join(rows)


def inspect_proof(
    model: Model,
    law: Law | None = None,
    episodes: int = 20,
    *,
    delta: float = 0.05,
    seed: int = 0,
    optimism: MVP | Certified = MVP(),
    counts: Mapping[Any, Mapping[Any, float]] | None = None,
) -> Inspection:
    """Both sides of every lemma that a run can check, over all states, steps and episodes.

    For models of the paper's setting: known rewards >= 0, and `samples` not overridden; what a
    model misses is said. Where no `return_range` is declared it is that of all states. Every state
    is visited in Python, so the model must be small. `counts` {z: {x': n}} are what is known
    already: with them values fall below their caps at once.

    >>> import pkd
    >>> tosses = [[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.2, 0.8]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=2)
    >>> model = coin.model()
    >>> model.return_range = (0.0, 2.0)
    >>> found = inspect_proof(model, coin.law(), episodes=10)
    >>> found.failures, found.lemmas["lma:surplus bound"].checked > 0
    ({}, True)
    """
    given, law = unpack(model, law)
    compiled = _declare_range(given, optimism)
    proof = _Proof(compiled.model, law, episodes, delta, optimism)
    learner = OptimisticLearner(
        compiled, episodes, optimism=optimism, delta=delta, seed=seed, replan="every", counts=counts
    )
    simulator, uppers, planned = Simulator(compiled, law, seed=seed), [], []
    for _ in range(episodes):
        plan = learner.plan
        episode = simulator.episode(plan)
        visited = list_visited(proof.model, episode)
        if isinstance(optimism, Certified):
            proof.walk_certified(learner.counts, plan, learner.interval)
            uppers.append(plan.value)
        else:
            uppers.append(proof.walk(learner.counts, plan.action, visited))
        planned.append(plan.value)
        learner.observe(episode)
    if not isinstance(optimism, Certified):
        proof.close(episodes)
    return Inspection(proof.lemmas, tuple(uppers), tuple(planned))


def _declare_range(given: Model, optimism: MVP | Certified) -> Compiled:
    """The compiled model with a return range; one ModelError names every condition that fails."""
    model, compiled = as_model(given), compile(given)
    findings = []
    if model.samples is not None:
        findings.append("samples is overridden; the lemmas count what an episode visits")
    if not isinstance(optimism, MVP | Certified) or getattr(optimism, "monotone", False):
        findings.append(f"optimism is {optimism!r}; expected MVP in its sum form, or Certified")
    if compiled.graph.rewards:
        findings.append("some rewards are unknown; the lemmas are about known ones")
    if findings:
        raise ModelError([f"inspect_proof: {finding}" for finding in findings])
    if model.return_range is not None:
        return compiled
    ranges = [(low, high) for _, low, high in compiled.return_ranges()]
    model = copy.copy(model)
    model.return_range = min(low for low, _ in ranges), max(high for _, high in ranges)
    return compile(model)


class _Proof(Unrolled):
    """A model under its true law, and the lemmas."""

    def __init__(
        self,
        model: PartiallyKnownMDP,
        law: Law,
        episodes: int,
        delta: float,
        optimism: MVP | Certified,
    ) -> None:
        super().__init__(model, law, episodes, delta)
        self.optimism = optimism
        self.low, self.high = map(float, model.return_range or (0.0, 0.0))
        self.width = self.high - self.low
        self.lemmas: dict[str, Lemma] = {}
        self.sums = np.zeros(5)  # of U, U~, their sums over the trajectories, and V^k - V^pi
        self.star = self.settle()
        for part in self.parts:
            values = self.reward[part.moves] + self.sum(self.mean(self.q, self.star, part), part)
            self.star[part.nodes] = np.maximum.reduceat(values, part.first_move)
        self.variance = self.spread(self.q, self.star)

    # -- one episode -------------------------------------------------------------------------------

    def walk(self, counts: Any, act: Any, visited: list[tuple[Any, Any]]) -> float:
        """Checks all lemmas about one plan; returns its value at the start."""
        chosen, total, n, seen = self._read(counts, act)
        values = np.zeros((5, len(self.star)))  # V^k, V^pi, U, U~, W
        values[:2] = self.star  # of the nodes without moves; the others follow
        spread = np.where(self.unknown, self.variance, 0.0)
        costs = np.array(
            [0.0 * n, self.reward[self.move], self._part(self.ell, n), self._part(self.wide, n),
             spread]
        )  # fmt: skip
        for part in self.parts:
            ahead = self.mean(self.q, values, part) + costs[:, part.branches]
            ahead[0] = self._hope(seen, n, values[0], part)
            taken = chosen[part.place] - part.moves.start
            values[:, part.nodes] = self.sum(ahead, part)[:, taken]
            values[2:4, part.nodes] = np.minimum(values[2:4, part.nodes], 1.0)
        on = np.isin(self.move, chosen)
        self._check_data(on, seen, n, values[0])
        self._check_branches(on, seen, n, values[0])
        self._check_nodes(chosen, n, values[0])
        self._check_variance(chosen)
        self._check_episode(values)
        self._follow(total, visited)
        return self._at_start(values[0])

    def walk_certified(self, counts: Any, plan: Plan, interval: CertifiedInterval | None) -> None:
        """Checks what a certified plan says, and the lemmas about the data alone."""
        chosen, _, n, seen = self._read(counts, plan.action)
        self._check_data(np.isin(self.move, chosen), seen, n, self.star)
        self._check_variance(chosen)
        named = zip(self.nodes, self.places, self.star, strict=True)
        decided = [(node, star) for node, moves, star in named if moves and None not in moves]
        upper = np.array([max(plan.values(*node).values()) for node, _ in decided])
        self._hold("certified: V* <= upper value", np.array([star for _, star in decided]), upper)
        if interval is not None:
            start = self._at_start(self.star)
            self._hold("certified: lower value <= V*", interval.low, start)

    def _read(self, counts: Any, act: Any) -> tuple[Array, dict[Any, float], Array, Array]:
        """The moves of a policy, N(z), N of each branch, and the observed frequencies."""
        plan = zip(self.nodes, self.places, strict=True)
        chosen = np.array([m[None if None in m else act(*node)] for node, m in plan if m])
        total = {z: math.fsum(counts.get(z, {}).values()) for z in self.features}
        n = np.array([total.get(z, 0.0) for z in self.feature])
        hits = np.array([counts.get(z, {}).get(x, 0.0) for z, x in self.pairs])
        return chosen, total, n, hits / np.where(n > 0, n, 1.0)[self.branch]

    def _part(self, ell: Array, n: Array) -> Array:
        """ell / N: no bound without samples, and 0 where the law is known."""
        return np.where(n > 0, ell / np.where(n > 0, n, 1.0), np.where(self.unknown, math.inf, 0.0))

    def _hope(self, seen: Array, n: Array, upper: Array, part: Any = None) -> Array:
        """MVP-Est of each branch: min(high, r + P^V + c1 sqrt(Var ell/N) + c2 R ell/N)."""
        part = self.whole if part is None else part
        rule: Any = self.optimism
        reward, n = self.reward[self.move[part.branches]], n[part.branches]
        ell = self.ell[part.branches] if rule.log_factor is None else rule.log_factor
        ell = ell / np.maximum(n, 1.0)
        spread = self.spread(seen, upper, part)
        bonus = rule.c1 * np.sqrt(spread * ell) + rule.c2 * self.width * ell
        hope = np.minimum(self.high, reward + self.mean(seen, upper, part) + bonus)
        known = reward + self.mean(self.q, upper, part)
        return np.where(self.unknown[part.branches], np.where(n <= 1, self.high, hope), known)

    def _check_nodes(self, chosen: Array, n: Array, upper: Array) -> None:
        at, width, (root, rest) = self.at, self.width, SURPLUS
        self._hold("lma:partially:optimism", self.star[at], upper[at])
        excess = upper - self.star
        right = (self._ahead(chosen, excess**2) - excess[at] ** 2) / (2 * width)
        known = np.where(n > 0, self._part(self.ell, n), 0.0)
        costs = rest * width * self._part(self.wide, n) + root * np.sqrt(self.variance * known)
        left = upper[at] - self.reward[chosen] - self._ahead(chosen, upper)
        self._hold("lma:surplus bound", left, right + self.sum(costs)[chosen])

    def _ahead(self, chosen: Array, values: Array) -> Array:
        return self.sum(self.mean(self.q, values))[chosen]

    def _check_variance(self, chosen: Array) -> None:
        """The two decompositions, of V* less the least return, as in the paper's range (0, R)."""
        star = self.star - self.low
        mean, square = self._ahead(chosen, star), self._ahead(chosen, star**2)
        at = star[self.at]
        right = square - at**2 + 2 * self.width * np.maximum(at - mean, 0.0)
        self._hold("lma:variance decomposition", square - mean**2, right)
        self._hold("lma:eff variance decomposition", self.sum(self.variance)[chosen], right)

    def _check_data(self, on: Array, seen: Array, n: Array, upper: Array) -> None:
        """How far frequencies are from the truth, for V* and for the values at hand."""
        k = np.flatnonzero(on & self.unknown & (n > 0))
        for label, ell, values in (
            ("lma:optimal value concentration", self.ell_1, self.star),
            ("lma:all functions concentration", self.wide, upper),
        ):
            error = abs(self.mean(self.q, values) - self.mean(seen, values))
            true, found = (self.spread(row, values)[k] for row in (self.q, seen))
            self._hold(label, error[k], bennett(true, ell[k], n[k], self.width))
            bound = empirical_bernstein(found, ell[k], n[k], self.width)
            self._hold(f"{label} empirical", error[k], bound)
        e = np.flatnonzero(np.isin(self.branch, k))
        radius = bennett(self.q[e], self.ell_2[self.branch[e]], n[self.branch[e]])
        self._hold("lma:probability concentration", abs(self.q - seen)[e], radius)

    def _check_branches(self, on: Array, seen: Array, n: Array, upper: Array) -> None:
        """The lemmas on one feature before one y', for the values at hand."""
        star, width = self.star, self.width
        k = np.flatnonzero(on & self.unknown & (n >= 2))
        ell, wide, excess = self.ell[k] / n[k], self.wide[k] / n[k], upper - star
        root = np.sqrt(self.variance[k] * ell)
        more = self.spread(self.q, excess)[k] / (8 * width)
        bonus = 20 / 3 * np.sqrt(self.spread(seen, upper)[k] * ell) + 400 / 9 * width * ell
        right = 12 * root + more + 325 * width * wide
        self._hold("lma:upper bound the bonus term", bonus, right)
        error = self.mean(seen - self.q, upper)[k]
        right = math.sqrt(2) * root + more + 14 / 3 * width * wide
        self._hold("lma:upper bound on est est", error, right)
        truth = self.reward[self.move] + self.mean(self.q, star)
        self._hold("lma:partially:pre optimisim", truth[k], self._hope(seen, n, upper)[k])

    def _check_episode(self, values: Array) -> None:
        (root, rest), at = SURPLUS, list(self.start)
        upper, own, u, wide_u, spread = values[:, at]
        lower = rest * self.width * wide_u
        second = root * np.sqrt(spread * u) + lower
        self._hold("lma:partially:per episode 2", upper - own, second)
        first = root * self.width * np.sqrt(u) + lower
        self._hold("lma:partially:per episode 1", upper - own, first)
        for i, row in ((0, values[2]), (1, values[3]), (4, values[0] - values[1])):
            self.sums[i] += self._at_start(row)

    def _follow(self, total: Mapping[Any, float], visited: list[tuple[Any, Any]]) -> None:
        """Adds 1{2 N^k > N_h^k} ell / N^k of the features that an episode went through."""
        now = dict(total)
        for z, _ in visited:
            now[z] += 1
            if 2 * total[z] > now[z]:
                self.sums[2:4] += np.array(self.features[z]) / total[z]

    def close(self, episodes: int) -> None:
        """Checks the lemmas about the whole run."""
        visits = episodes * max(self.sizes.unknown_moves, 1)
        rest = 3 * self.sizes.n_features * math.log(8 * self.sizes.horizon / self.delta)
        growth = math.log(math.e * visits)
        totals = [math.fsum(pair[which] for pair in self.features.values()) for which in (0, 1)]
        for which, ell in enumerate(totals):
            self._hold("lma:concentration of U", self.sums[which], 2 * self.sums[2 + which] + rest)
            self._hold("lma:sum of U", self.sums[which], SUM_OF_U * growth * ell)
        bound = explicit(self.width, visits, episodes, *totals)
        self._hold("lma:partially:final", self.sums[4], float(bound))

    def _hold(self, label: str, left: Array, right: Array) -> None:
        if np.size(left):
            lemma = self.lemmas.setdefault(label, Lemma(label))
            lemma.hold(left, right, ROUNDING * self.width * max(1.0, self.width))

    def _at_start(self, values: Array) -> float:
        return math.fsum(p * values[node] for node, p in self.start.items())
