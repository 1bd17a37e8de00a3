"""A proof inspector: walks a run of `pkd.MVP()` and evaluates both sides of the proof's lemmas.

The lemmas of the regret theorem speak of quantities that the algorithm never forms: the true law,
V*, the value of each policy, U. A small model can form them. `inspect_proof` plays a run that plans
before every episode, computes all values from their definitions in plain Python, and keeps for each
lemma how often it was checked, how often it failed, and its tightest pair of sides. R is the length
of the declared return range, the paper's H.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import attrs

from pkd.bounds import explicit, support_log
from pkd.engine import compile
from pkd.explore import overrides
from pkd.learner import OptimisticLearner
from pkd.model import CHANCE, END, Known, Law, ModelError, PartiallyKnownMDP, UnknownReward
from pkd.optimism import MVP
from pkd.planning import Model
from pkd.problem import as_model, unpack
from pkd.simulation import Simulator
from pkd.sizes import measure

__all__ = ["Inspection", "Lemma", "bennett", "empirical_bernstein", "inspect_proof"]

SURPLUS = (28.0, 660.0)  # of the square root and of the rest, in the lemma on surpluses
SUM_OF_U = 4.0
ROUNDING = 1e-9  # of R

Node = tuple[int, Any, Any]  # (step, x, y)
Row = dict[Any, float]  # a law {x': p}


def bennett(variance: float, ell: float, n: float, width: float = 1.0) -> float:
    """sqrt(2 Var ell / N) + width ell / (3 N): how far a mean of N samples may be from the truth.

    One side fails with a probability of at most exp(-ell).

    >>> round(bennett(0.25, 2.0, 100), 6)
    0.106667
    """
    return math.sqrt(2 * variance * ell / n) + width * ell / (3 * n)


def empirical_bernstein(variance: float, ell: float, n: float, width: float = 1.0) -> float:
    """2 sqrt(Var ell / N) + 14 width ell / (3 N), with the variance of the samples.

    One side fails with a probability of at most 2 exp(-ell), for N >= 2.

    >>> round(empirical_bernstein(0.25, 2.0, 100), 6)
    0.234755
    """
    return 2 * math.sqrt(variance * ell / n) + 14 * width * ell / (3 * n)


@attrs.define
class Lemma:
    """left <= right, as a run has met it; the two sides kept are those that came closest."""

    label: str  # of the paper
    checked: int = 0
    failed: int = 0
    left: float = -math.inf
    right: float = math.inf

    def hold(self, left: float, right: float, slack: float) -> None:
        """Notes one pair of sides."""
        self.checked += 1
        self.failed += not left <= right + slack
        if left * self.right > self.left * right or self.checked == 1:
            self.left, self.right = left, right


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
    optimism: MVP = MVP(),
    counts: Mapping[Any, Mapping[Any, float]] | None = None,
) -> Inspection:
    """Both sides of every lemma that a run can check, over all states, steps and episodes.

    For models of the paper's setting: known rewards >= 0, a declared `return_range` (0, R), and
    `samples` not overridden. Every state is visited in Python, so the model must be small.
    `counts` {z: {x': n}} are what is known already: with them values fall below their caps at once.

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
    compiled = compile(given)
    proof = _Proof(as_model(given), law, episodes, delta, optimism)
    learner = OptimisticLearner(
        compiled, episodes, optimism=optimism, delta=delta, seed=seed, replan="every", counts=counts
    )
    simulator, uppers, planned = Simulator(compiled, law, seed=seed), [], []
    for _ in range(episodes):
        plan = learner.plan
        episode = simulator.episode(plan)
        visited = proof.model.visited(episode)
        uppers.append(proof.walk(learner.counts, plan.action, visited))
        planned.append(plan.value)
        learner.observe(episode)
    proof.close(episodes)
    return Inspection(proof.lemmas, tuple(uppers), tuple(planned))


class _Branch(NamedTuple):
    p: float
    z: Hashable
    after: dict[Any, Node]  # x': the node that it leads to
    law: Row  # the true one
    ell_1: float  # log(32 H^2 |Z| K / (share delta))
    wide: float  # B(z) ell_2(z)

    @property
    def ell(self) -> float:
        return min(self.ell_1, self.wide)


class _Move(NamedTuple):
    reward: float
    branches: list[_Branch]


class _Proof:
    """The moves of a model under its true law, and the lemmas."""

    def __init__(
        self, model: PartiallyKnownMDP, law: Law, episodes: int, delta: float, optimism: MVP
    ) -> None:
        self.model, self.optimism = model, optimism
        self.law: Any = law if callable(law) else law.__getitem__
        limits = model.return_range
        if limits is None or limits[0] != 0 or overrides(model, "samples") or optimism.monotone:
            raise ModelError(
                "inspect_proof: expected a model with return_range = (0, R) that does not override "
                "samples, and MVP in its sum form"
            )
        self.width, self.sizes = float(limits[1]), measure(model)
        self.episodes, self.delta = episodes, delta
        self.moves: dict[Node, dict[Any, _Move]] = {}
        start = model.start()
        first = start if isinstance(start, Mapping) else {start: 1.0}
        self.start = {(1, *state): p for state, p in first.items() if p > 0}
        self.features: dict[Any, tuple[float, float]] = {}  # z: largest (ell, B ell_2)
        for node in self.start:
            self._enter(node)
        self.lemmas: dict[str, Lemma] = {}
        self.sums = [0.0] * 5  # of U, U~, their sums over the trajectories, and V^k - V^pi
        self.star: dict[Node, float] = {}
        for node, moves in self.moves.items():
            values = [move.reward + _mean(move, self.star) for move in moves.values()]
            self.star[node] = max(values) if moves else float(model.final(*node[1:]))

    def _enter(self, node: Node) -> None:
        """Lists the moves of a node behind those of all nodes that can follow."""
        if node in self.moves:
            return
        h, x, y = node
        actions, horizon = self.model.actions(x, y), self.model.horizon
        moves: dict[Any, _Move] = {}
        over = actions is END or (h > horizon and actions is not CHANCE)
        for a in () if over else (None,) if actions is CHANCE else tuple(actions):
            reward = self.model.reward(x, y, a)
            if isinstance(reward, UnknownReward) or reward < 0:
                raise ModelError(f"inspect_proof: expected known rewards >= 0, found {reward!r}")
            step = h if a is None else h + 1
            branches = [
                self._branch(p, z, step, y_next)
                for p, y_next, z in self.model.branches(x, y, a, step - 1)
            ]
            for branch in branches:
                for following in branch.after.values():
                    self._enter(following)
            moves[a] = _Move(float(reward), branches)
        self.moves[node] = moves

    def _branch(self, p: float, z: Any, step: int, y: Any) -> _Branch:
        if isinstance(z, Known):
            row, free = {x: q for x, q in z.law if q > 0}, 0.0
            return _Branch(p, None, {x: (step, x, y) for x in row}, row, free, free)
        outcomes, sizes = list(self.model.outcomes(z)), self.sizes
        share, b = self.model.share(z, y), self.model.branching(z)
        inside = 32 * sizes.horizon**2 * sizes.n_features * self.episodes / self.delta
        ell_1 = math.log(inside * (sizes.n_y if share is None else 1 / share))
        wide = b * support_log(b, sizes.horizon, sizes.n_features, self.episodes, self.delta)
        before, _ = self.features.get(z, (0.0, wide))
        self.features[z] = max(before, min(ell_1, wide)), wide
        row = {x: float(self.law(z).get(x, 0.0)) for x in outcomes}
        return _Branch(p, z, {x: (step, x, y) for x in outcomes}, row, ell_1, wide)

    # -- one episode -------------------------------------------------------------------------------

    def walk(self, counts: Any, act: Any, visited: list[tuple[Any, Any]]) -> float:
        """Checks all lemmas about one plan; returns its value at the start."""
        upper, own, u, wide_u, spread = ({} for _ in range(5))  # V^k, V^pi, U, U~, W
        for node, moves in self.moves.items():
            if not moves:
                upper[node] = own[node] = self.star[node]
                u[node] = wide_u[node] = spread[node] = 0.0
                continue
            move = moves[None if None in moves else act(*node)]
            hopes = ((b.p, self._hope(move.reward, b, counts, upper)) for b in move.branches)
            upper[node] = math.fsum(p * hope for p, hope in hopes)
            own[node] = move.reward + _mean(move, own)
            terms = [(b.p, self._count(counts, b)[0], b) for b in move.branches]
            u[node] = min(1.0, _mean(move, u) + sum(p * _part(b.ell, n) for p, n, b in terms))
            wide_u[node] = min(
                1.0, _mean(move, wide_u) + sum(p * _part(b.wide, n) for p, n, b in terms)
            )
            spread[node] = _mean(move, spread) + sum(
                p * _variance(b.law, b.after, self.star) for p, _, b in terms if b.z is not None
            )
            self._check_state(node, move, upper, counts)
        self._check_episode(upper, own, u, wide_u, spread)
        self._follow(counts, visited)
        return self._at_start(upper)

    def _hope(self, reward: float, b: _Branch, counts: Any, upper: dict[Node, float]) -> float:
        """MVP-Est of one branch: min(R, r + P^V + c1 sqrt(Var ell/N) + c2 R ell/N)."""
        if b.z is None:
            return reward + _expect(b.law, b.after, upper)
        n, seen = self._count(counts, b)
        if n <= 1:
            return self.width
        ell = b.ell if self.optimism.log_factor is None else self.optimism.log_factor
        variance = _variance(seen, b.after, upper)
        bonus = self.optimism.c1 * math.sqrt(variance * ell / n)
        bonus += self.optimism.c2 * self.width * ell / n
        return min(self.width, reward + _expect(seen, b.after, upper) + bonus)

    def _count(self, counts: Any, b: _Branch) -> tuple[float, Row]:
        """(N(z), the frequencies)."""
        row = counts.get(b.z, {})
        n = math.fsum(row.values())
        return n, {x: row.get(x, 0.0) / n for x in b.after} if n else {}

    def _check_state(self, node: Node, move: _Move, upper: dict[Node, float], counts: Any) -> None:
        star, width = self.star, self.width
        root, rest = SURPLUS
        left = upper[node] - move.reward - _mean(move, upper)
        excess = {key: value - star[key] for key, value in upper.items()}
        squares = _mean(move, {key: value**2 for key, value in excess.items()})
        right = (squares - excess[node] ** 2) / (2 * width)
        for b in move.branches:
            n = self._count(counts, b)[0]
            if b.z is not None:
                right += b.p * rest * width * _part(b.wide, n)
                if n:
                    variance = _variance(b.law, b.after, star)
                    right += b.p * root * math.sqrt(variance * b.ell / n)
                    self._check_branch(move.reward, b, counts, upper, excess)
        self._hold("lma:partially:optimism", star[node], upper[node])
        self._hold("lma:surplus bound", left, right)
        mean, square = _mean(move, star), _mean(move, {key: v**2 for key, v in star.items()})
        decomposed = square - star[node] ** 2 + 2 * width * max(star[node] - mean, 0.0)
        inner = sum(b.p * _variance(b.law, b.after, star) for b in move.branches)
        self._hold("lma:variance decomposition", square - mean**2, decomposed)
        self._hold("lma:eff variance decomposition", inner, decomposed)

    def _check_branch(
        self, reward: float, b: _Branch, counts: Any, upper: dict[Node, float], excess: Any
    ) -> None:
        """The lemmas on one feature before one y', for the values at hand."""
        (n, seen), star, width = self._count(counts, b), self.star, self.width
        for label, ell, values in (
            ("lma:optimal value concentration", b.ell_1, star),
            ("lma:all functions concentration", b.wide, upper),
        ):
            error = abs(_expect(b.law, b.after, values) - _expect(seen, b.after, values))
            true, found = (_variance(row, b.after, values) for row in (b.law, seen))
            self._hold(label, error, bennett(true, ell, n, width))
            self._hold(f"{label} empirical", error, empirical_bernstein(found, ell, n, width))
        ell_2 = b.wide / self.model.branching(b.z)
        for x, p in b.law.items():
            self._hold("lma:probability concentration", abs(p - seen[x]), bennett(p, ell_2, n))
        if n < 2:
            return
        variance, more = _variance(b.law, b.after, star), _variance(b.law, b.after, excess)
        root = math.sqrt(variance * b.ell / n)
        bonus = 20 / 3 * math.sqrt(_variance(seen, b.after, upper) * b.ell / n)
        bonus += 400 / 9 * width * b.ell / n
        rest = more / (8 * width) + 325 * width * b.wide / n
        self._hold("lma:upper bound the bonus term", bonus, 12 * root + rest)
        error = _expect(seen, b.after, upper) - _expect(b.law, b.after, upper)
        rest = more / (8 * width) + 14 / 3 * width * b.wide / n
        self._hold("lma:upper bound on est est", error, math.sqrt(2) * root + rest)
        truth = reward + _expect(b.law, b.after, star)
        self._hold("lma:partially:pre optimisim", truth, self._hope(reward, b, counts, upper))

    def _check_episode(self, upper: Any, own: Any, u: Any, wide_u: Any, spread: Any) -> None:
        root, rest = SURPLUS
        for node in self.start:
            left, lower = upper[node] - own[node], rest * self.width * wide_u[node]
            second = root * math.sqrt(spread[node] * u[node]) + lower
            self._hold("lma:partially:per episode 2", left, second)
            first = root * self.width * math.sqrt(u[node]) + lower
            self._hold("lma:partially:per episode 1", left, first)
        ends = (
            self._at_start(u),
            self._at_start(wide_u),
            self._at_start(upper) - self._at_start(own),
        )
        for i, value in zip((0, 1, 4), ends, strict=True):
            self.sums[i] += value

    def _follow(self, counts: Any, visited: list[tuple[Any, Any]]) -> None:
        """Adds 1{2 N^k > N_h^k} ell / N^k of the features that an episode went through."""
        now: dict[Any, float] = {}
        for z, _ in visited:
            before = math.fsum(counts.get(z, {}).values())
            now[z] = now.get(z, before) + 1
            if 2 * before > now[z]:
                self.sums[2] += self.features[z][0] / before
                self.sums[3] += self.features[z][1] / before

    def close(self, episodes: int) -> None:
        """Checks the lemmas about the whole run."""
        visits = episodes * max(self.sizes.unknown_moves, 1)
        rest = 3 * self.sizes.n_features * math.log(8 * self.sizes.horizon / self.delta)
        growth, totals = math.log(math.e * visits), []
        for which in (0, 1):
            totals.append(math.fsum(pair[which] for pair in self.features.values()))
            self._hold("lma:concentration of U", self.sums[which], 2 * self.sums[2 + which] + rest)
            self._hold("lma:sum of U", self.sums[which], SUM_OF_U * growth * totals[which])
        bound = explicit(self.width, visits, episodes, *totals)
        self._hold("lma:partially:final", self.sums[4], bound)

    def _hold(self, label: str, left: float, right: float) -> None:
        lemma = self.lemmas.setdefault(label, Lemma(label))
        lemma.hold(float(left), float(right), ROUNDING * self.width * max(1.0, self.width))

    def _at_start(self, values: Mapping[Node, float]) -> float:
        return math.fsum(p * values[node] for node, p in self.start.items())


def _part(ell: float, n: float) -> float:
    """ell / N; a feature without samples gives no bound, and one that is known costs nothing."""
    return 0.0 if ell == 0 else ell / n if n else math.inf


def _expect(row: Row, after: Mapping[Any, Node], values: Mapping[Node, float]) -> float:
    return math.fsum(p * values[after[x]] for x, p in row.items())


def _variance(row: Row, after: Mapping[Any, Node], values: Mapping[Node, float]) -> float:
    mean = _expect(row, after, values)
    return math.fsum(p * (values[after[x]] - mean) ** 2 for x, p in row.items())


def _mean(move: _Move, values: Mapping[Node, float]) -> float:
    """P V of a move."""
    return math.fsum(b.p * _expect(b.law, b.after, values) for b in move.branches)
