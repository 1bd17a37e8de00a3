"""Both sides of every lemma of the proof, from their definitions: arrays over (x, y) in place of
the walk over nodes of `inspection`. Every pair of sides of a run is compared, in any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.theory import inspection
from pkd.theory.inspection import Lemma, inspect_proof

H, X, Y, A, K, DELTA = 2, 3, 2, 2, 3, 0.1
R = H + 1.0  # rewards and final values are at most 1
Z = X * A + 1  # ("z", x, a) and "w"
START = {(0, 0): 0.7, (1, 1): 0.3, (2, 0): 0.0}
RNG = np.random.default_rng(7)
REWARDS, FINAL = RNG.random((X, Y, A)), RNG.random((X, Y))
KNOWN = (0.3, 0.0, 0.7)
LAW = {("z", x, a): dict(enumerate(RNG.dirichlet(np.ones(X)))) for x in range(X) for a in range(A)}
LAW["w"] = {0: 0.4, 2: 0.6}  # B = 2 of its three outcomes
BRANCHING = {**dict.fromkeys(LAW, X), "w": 2}


class Web(pkd.PartiallyKnownMDP):
    """Every action leads to y' = 0 by a feature of its own, and to y' = 1 by "w" or a known law."""

    horizon = H
    return_range = (0.0, R)

    def start(self) -> Any:
        return START

    def actions(self, x: Any, y: Any) -> Any:
        return range(A)

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(p, y_next, pkd.Known(dict(enumerate(KNOWN))) if z is None else z)
                for p, y_next, z in branches_of(x, y, a)]  # fmt: skip

    def outcomes(self, z: Any) -> Any:
        return range(X)

    def branching(self, z: Any) -> int:
        return BRANCHING[z]

    def reward(self, x: Any, y: Any, a: Any) -> float:
        return float(REWARDS[x, y, a])

    def final(self, x: Any, y: Any) -> float:
        return float(FINAL[x, y])


def branches_of(x: int, y: int, a: int) -> list[tuple[float, int, Any]]:
    """(p, y', feature or None for the known law)."""
    return [(0.6, 0, ("z", x, a)), (0.4, 1, "w" if y == 0 else None)]


def ells(z: Any) -> tuple[float, float, float]:
    """(ell_1, B ell_2, the smaller) of a feature; a law that is known costs nothing."""
    if z is None:
        return 0.0, 0.0, 0.0
    first = math.log(32 * H**2 * Z * K * Y / DELTA)
    wide = BRANCHING[z] * math.log(32 * H * BRANCHING[z] * Z * K / DELTA)
    return first, wide, min(first, wide)


def row_of(z: Any) -> np.ndarray:
    return np.array(KNOWN if z is None else [LAW[z].get(x, 0.0) for x in range(X)])


def mean_of(x: int, y: int, a: int, values: np.ndarray) -> float:
    """P V; values: (X, Y)."""
    return sum(p * row_of(z) @ values[:, y_next] for p, y_next, z in branches_of(x, y, a))


def variance_of(row: np.ndarray, values: np.ndarray) -> float:
    return max(row @ values**2 - (row @ values) ** 2, 0.0)


def share_of(ell: float, n: float) -> float:
    return 0.0 if ell == 0 else math.inf if n == 0 else ell / n


class Reference:
    """The pairs (label, left, right) of a run, episode by episode."""

    def __init__(self, rule: pkd.MVP) -> None:
        self.rule, self.pairs, self.uppers = rule, [], []
        self.star = np.empty((H + 2, X, Y))
        self.star[H + 1] = FINAL
        for h in range(H, 0, -1):
            for x, y in np.ndindex(X, Y):
                self.star[h, x, y] = max(
                    REWARDS[x, y, a] + mean_of(x, y, a, self.star[h + 1]) for a in range(A)
                )
        self.u = self.wide_u = self.followed = self.wide_followed = self.regret = 0.0

    def hold(self, label: str, left: float, right: float) -> None:
        self.pairs.append((label, left, right))

    def episode(self, counts: Any, act: Any, visited: list[tuple[Any, Any]]) -> None:
        counts = {z: dict(row) for z, row in counts.items()}
        shape = (H + 2, X, Y)
        upper, own, u, wide_u, spread = (np.zeros(shape) for _ in range(5))
        upper[H + 1] = own[H + 1] = FINAL
        for h in range(H, 0, -1):
            nodes = [s for s, p in START.items() if p > 0] if h == 1 else np.ndindex(X, Y)
            for x, y in nodes:
                a = act(h, x, y)
                r, n = REWARDS[x, y, a], {z: sum(counts.get(z, {}).values()) for z in LAW}
                parts = [(p, y_next, z, n.get(z, 0)) for p, y_next, z in branches_of(x, y, a)]
                upper[h, x, y] = sum(
                    p * self.hope(r, z, counts, upper[h + 1, :, y_next])
                    for p, y_next, z, _ in parts
                )
                own[h, x, y] = r + mean_of(x, y, a, own[h + 1])
                for total, which in ((u, 2), (wide_u, 1)):
                    cost = sum(p * share_of(ells(z)[which], m) for p, _, z, m in parts)
                    total[h, x, y] = min(1.0, mean_of(x, y, a, total[h + 1]) + cost)
                spread[h, x, y] = mean_of(x, y, a, spread[h + 1]) + sum(
                    p * variance_of(row_of(z), self.star[h + 1, :, y_next])
                    for p, y_next, z, _ in parts
                    if z is not None
                )
                self.state(h, x, y, a, counts, upper)
        for (x, y), p in START.items():
            if p > 0:
                gap, lower = upper[1, x, y] - own[1, x, y], 660 * R * wide_u[1, x, y]
                self.hold("lma:partially:per episode 1", gap, 28 * R * u[1, x, y] ** 0.5 + lower)
                root = 28 * (spread[1, x, y] * u[1, x, y]) ** 0.5
                self.hold("lma:partially:per episode 2", gap, root + lower)
                self.u += p * u[1, x, y]
                self.wide_u += p * wide_u[1, x, y]
                self.regret += p * gap
        for i, (z, _) in enumerate(visited):
            before = sum(counts.get(z, {}).values())
            here = before + [other for other, _ in visited[: i + 1]].count(z)
            if 2 * before > here:
                self.followed += ells(z)[2] / before
                self.wide_followed += ells(z)[1] / before
        self.uppers.append(sum(p * upper[1, x, y] for (x, y), p in START.items()))

    def frequencies(self, z: Any, counts: Any) -> tuple[float, np.ndarray]:
        seen = np.array([counts.get(z, {}).get(x, 0.0) for x in range(X)])
        return seen.sum(), seen / max(seen.sum(), 1.0)

    def hope(self, r: float, z: Any, counts: Any, values: np.ndarray) -> float:
        """MVP-Est: from two samples on, and never above R."""
        if z is None:
            return r + np.array(KNOWN) @ values
        n, seen = self.frequencies(z, counts)
        if n < 2:
            return R
        ell = ells(z)[2] if self.rule.log_factor is None else self.rule.log_factor
        bonus = self.rule.c1 * math.sqrt(variance_of(seen, values) * ell / n)
        return min(R, r + seen @ values + bonus + self.rule.c2 * R * ell / n)

    def state(self, h: int, x: int, y: int, a: int, counts: Any, upper: np.ndarray) -> None:
        star, r = self.star, REWARDS[x, y, a]
        excess = upper - star
        surplus = upper[h, x, y] - r - mean_of(x, y, a, upper[h + 1])
        bound = (mean_of(x, y, a, excess[h + 1] ** 2) - excess[h, x, y] ** 2) / (2 * R)
        inner = 0.0
        for p, y_next, z in branches_of(x, y, a):
            variance = variance_of(row_of(z), star[h + 1, :, y_next])
            inner += p * variance
            if z is None:
                continue
            n = sum(counts.get(z, {}).values())
            bound += p * 660 * R * share_of(ells(z)[1], n)
            if n > 0:
                bound += p * 28 * math.sqrt(variance * ells(z)[2] / n)
                self.branch(r, z, counts, *(v[h + 1, :, y_next] for v in (star, upper, excess)))
        self.hold("lma:surplus bound", surplus, bound)
        self.hold("lma:partially:optimism", star[h, x, y], upper[h, x, y])
        mean, square = (mean_of(x, y, a, star[h + 1] ** k) for k in (1, 2))
        right = square - star[h, x, y] ** 2 + 2 * R * (star[h, x, y] - mean)
        self.hold("lma:variance decomposition", square - mean**2, right)
        self.hold("lma:eff variance decomposition", inner, right)

    def branch(
        self, r: float, z: Any, counts: Any, star: Any, upper: Any, excess: Any
    ) -> None:  # fmt: skip
        (n, seen), row = self.frequencies(z, counts), row_of(z)
        first, wide, ell = ells(z)
        for name, size, v in (("optimal value", first, star), ("all functions", wide, upper)):
            error = abs((row - seen) @ v)
            label = f"lma:{name} concentration"
            root, rest = math.sqrt(2 * variance_of(row, v) * size / n), R * size / (3 * n)
            self.hold(label, error, root + rest)
            root = math.sqrt(4 * variance_of(seen, v) * size / n)
            self.hold(f"{label} empirical", error, root + 14 * rest)
        for p, q in zip(row, seen, strict=True):
            ell_2 = wide / BRANCHING[z]
            radius = math.sqrt(2 * p * ell_2 / n) + ell_2 / (3 * n)
            self.hold("lma:probability concentration", abs(p - q), radius)
        if n >= 2:
            root = math.sqrt(variance_of(row, star) * ell / n)
            more = variance_of(row, excess) / (8 * R)
            bonus = 20 / 3 * math.sqrt(variance_of(seen, upper) * ell / n) + 400 / 9 * R * ell / n
            right = 12 * root + more + 325 * R * wide / n
            self.hold("lma:upper bound the bonus term", bonus, right)
            right = math.sqrt(2) * root + more + 14 / 3 * R * wide / n
            self.hold("lma:upper bound on est est", (seen - row) @ upper, right)
            self.hold("lma:partially:pre optimisim", r + row @ star, self.hope(r, z, counts, upper))

    def close(self) -> None:
        visits, rest = K * H, 3 * Z * math.log(8 * H / DELTA)
        first, wide = (sum(ells(z)[which] for z in LAW) for which in (2, 1))
        growth = math.log(math.e * visits)
        for total, followed, ell in (
            (self.u, self.followed, first),
            (self.wide_u, self.wide_followed, wide),
        ):
            self.hold("lma:concentration of U", total, 2 * followed + rest)
            self.hold("lma:sum of U", total, 4 * growth * ell)
        bound = 56 * R * math.sqrt(K * growth * first) + 2640 * R * growth * wide
        self.hold("lma:partially:final", self.regret, bound)


FEW = {(0, 0): 0, (0, 1): 1, (1, 0): 3, (1, 1): 3, (2, 0): 2, (2, 1): 2}  # of ("z", x, a)


def start_counts(few: dict[Any, int], large: int) -> dict[Any, dict[int, int]]:
    """The number of samples of some features, and many of the rest."""
    rng = np.random.default_rng(large)
    return {
        z: dict(enumerate(rng.multinomial(few.get(z[1:], large), row_of(z)).tolist())) for z in LAW
    }


def without_noise(pair: tuple[float, float]) -> tuple[float, float]:
    return round(pair[0], 9) + 0.0, pair[1]


@pytest.mark.parametrize("rule", [pkd.MVP(), pkd.MVP(c1=0.2, c2=0.03, log_factor=1.5)])
@pytest.mark.parametrize(
    ("few", "large"), [(FEW, 4), (FEW, 4_000), (FEW, 4_000_000), ({}, 40_000), ({}, 4_000_000)]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_both_sides_of_every_lemma_are_those_of_the_definition(
    rule: pkd.MVP, few: dict[Any, int], large: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, found = Reference(rule), []
    walk, hold = inspection._Proof.walk, Lemma.hold

    def walk_both(self: Any, counts: Any, act: Any, visited: Any) -> float:
        reference.episode(counts, act, visited)
        return walk(self, counts, act, visited)

    def note(self: Lemma, left: Any, right: Any, slack: float) -> None:
        found.extend((self.label, *pair) for pair in np.transpose([left, right]).reshape(-1, 2))
        assert slack == pytest.approx(1e-9 * R**2)
        hold(self, left, right, slack)

    monkeypatch.setattr(inspection._Proof, "walk", walk_both)
    monkeypatch.setattr(Lemma, "hold", note)
    counts = start_counts(few, large)
    run = inspect_proof(Web(), LAW, K, delta=DELTA, seed=seed, optimism=rule, counts=counts)
    reference.close()
    assert run.upper_values == pytest.approx(reference.uppers, rel=1e-12)
    assert run.planned_values == pytest.approx(reference.uppers, rel=1e-12)
    assert {label for label, *_ in found} == {label for label, *_ in reference.pairs}
    for label in run.lemmas:
        mine, theirs = (
            np.array(sorted((pair[1:] for pair in pairs if pair[0] == label), key=without_noise))
            for pairs in (found, reference.pairs)
        )
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-7, err_msg=label)


def lemma_of(*pairs: tuple[float, float], slack: float = 0.25) -> Lemma:
    lemma = Lemma("a lemma")
    lemma.hold(*np.transpose(pairs), slack)
    return lemma


def test_a_lemma_fails_where_its_left_side_is_larger_by_more_than_the_slack() -> None:
    lemma = lemma_of((1.0, 1.0), (1.25, 1.0), (1.5, 1.0), (0.5, 1.0), (9.0, 1.0))
    assert (lemma.checked, lemma.failed) == (5, 2)


def test_a_lemma_keeps_the_pair_of_the_largest_quotient_and_of_equal_ones_the_first() -> None:
    lemma = lemma_of((0.0, 4.0), (1.0, 4.0), (1.0, 2.0), (2.0, 4.0), (3.0, 12.0))
    assert (lemma.left, lemma.right) == (1.0, 2.0)
    assert (lemma_of((0.0, 4.0)).left, lemma_of((0.0, 4.0)).right) == (0.0, 4.0)
