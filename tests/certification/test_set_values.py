"""The largest value over a set of laws, against an independent maximum in extended precision."""

from __future__ import annotations

import random
from collections.abc import Sequence

import mpmath
import numba
import numpy as np
import pytest

from pkd.engine.set_values import (
    EXACT,
    PLACES,
    fill_table,
    gain,
    gain_at_once,
    gains_at_once,
    place_of,
    relative_variance,
    table_gain,
)

mp = mpmath.mp.clone()
mp.dps = 30


def largest(p: Sequence[float], v: Sequence[float], c: float) -> mpmath.mpf:
    """max {q.v : KL(p, q) <= c} - p.v by bisection on the multiplier, in 30 digits.

    q_j = p_j theta / (nu - v_j) with nu > max v; where even nu = top leaves KL below c, what is
    left of the mass goes to the top, which was not seen.
    """
    seen = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(p, v, strict=True) if a > 0]
    total = mp.fsum(a for a, _ in seen)
    seen = [(a / total, b) for a, b in seen]
    top, c = max(mp.mpf(float(b)) for b in v), mp.mpf(float(c))
    mean = mp.fsum(a * b for a, b in seen)
    gaps = [(a, top - b) for a, b in seen]
    if c <= 0 or all(gap == 0 for _, gap in gaps):
        return mp.mpf(0)

    def kl(g: mpmath.mpf) -> mpmath.mpf:
        return mp.fsum(a * mp.log(g + gap) for a, gap in gaps) + mp.log(
            mp.fsum(a / (g + gap) for a, gap in gaps)
        )

    if all(gap > 0 for _, gap in gaps) and kl(mp.mpf(0)) <= c:
        # q_j = p_j t / gap_j for seen j, and sum p log(p / q) = c fixes the scale t.
        scale = mp.exp(mp.fsum(a * mp.log(gap) for a, gap in gaps) - c)
        return top - scale - mean
    spread = max(gap for _, gap in gaps)
    low, high = mp.log(spread) - 120, mp.log(spread) + 40
    for _ in range(78):
        middle = (low + high) / 2
        low, high = (middle, high) if kl(mp.exp(middle)) > c else (low, middle)
    g = mp.exp((low + high) / 2)
    weights = [a / (g + gap) for a, gap in gaps]
    q_gap = mp.fsum(w * gap for w, (_, gap) in zip(weights, gaps, strict=True)) / mp.fsum(weights)
    return top - q_gap - mean


Draw = tuple[np.ndarray, np.ndarray, float]


def draw(rng: random.Random) -> Draw:
    """Counts from 1 to 1e12, values of any scale, unseen outcomes, ties, radii of 0 to infinity."""
    m = rng.randint(1, 6)
    n = np.array([0 if rng.random() < 0.25 else round(10 ** rng.uniform(0, 12)) for _ in range(m)])
    if not n.any():
        n[rng.randrange(m)] = rng.choice([1, 10**12])
    kind = rng.choice(["plain", "ties", "near", "shifted"])
    v = np.array([rng.random() for _ in range(m)])
    if kind == "ties":
        v = np.round(v * 2)
    elif kind == "near":
        v = 1 + 1e-9 * v
    elif kind == "shifted":
        v = v + 1000
    v *= 10.0 ** rng.randint(-12, 12) * rng.choice([-1, 1])
    c = rng.choice([0.0, 100.0, 10 ** rng.uniform(-12, 1.6), rng.uniform(5, 60) / n.sum()])
    return n / n.sum(), v, c


def check(case: Draw) -> tuple[float, float, float, float]:
    """(how far below the truth, how far above: exact, one round, table), in parts of the range."""
    p, v, c = case
    gaps, size = v.max() - v, len(v)
    spread = float(gaps.max())
    if spread == 0.0:
        assert gain(p, 0, 1, gaps, size, c, EXACT) == 0.0
        return 0.0, 0.0, 0.0, 0.0
    # The truth for the gaps: the differences of V round before the kernel sees them.
    truth = float(largest(p, -gaps, c))
    exact = gain(p, 0, 1, gaps, size, c, EXACT)
    once = gain(p, 0, 1, gaps, size, c, 1)
    table = np.zeros(2 * PLACES)
    fill_table(c, table)
    a = float(p @ gaps)
    v = relative_variance(a, float(p @ (gaps - a) ** 2))
    tabled = table_gain(a, v, table, place_of(v, 0))
    below = max(truth - min(exact, once, tabled), 0.0) / spread
    return below, (exact - truth) / spread, (once - truth) / spread, (tabled - truth) / spread


def worst_of(cases: int, seed: int) -> np.ndarray:
    rng = random.Random(seed)
    found = np.zeros(4)
    for _ in range(cases):
        found = np.maximum(found, check(draw(rng)))
    return found


def assert_good(found: np.ndarray) -> None:
    below, exact, once, table = found
    assert below <= 1e-14
    assert exact <= 1e-9
    assert once <= 0.03
    assert table <= 0.1


def test_every_form_is_never_below_the_truth_and_close_to_it() -> None:
    assert_good(worst_of(2_000, seed=1))


@pytest.mark.slow
def test_every_form_is_never_below_the_truth_in_many_cases() -> None:
    assert_good(worst_of(100_000, seed=2))


def test_an_unseen_best_outcome_takes_what_the_set_allows() -> None:
    """One outcome seen N times, one unseen: q puts 1 - exp(-C) on it."""
    for c in (1e-9, 0.1, 3.0):
        found = gain(np.array([1.0, 0.0]), 0, 1, np.array([1.0, 0.0]), 2, c, EXACT)
        assert found == pytest.approx(-np.expm1(-c), rel=1e-12)


def test_equal_values_gain_nothing() -> None:
    assert gain(np.array([0.5, 0.5]), 0, 1, np.zeros(2), 2, 1.0, EXACT) == 0.0


def test_a_set_of_one_law_gains_nothing_and_a_set_of_all_gains_the_gap() -> None:
    p, gaps = np.array([0.25, 0.75]), np.array([0.0, 2.0])
    assert gain(p, 0, 1, gaps, 2, 0.0, EXACT) == 0.0
    assert gain(p, 0, 1, gaps, 2, np.inf, EXACT) == 1.5


def test_the_gain_does_not_depend_on_how_laws_are_stored() -> None:
    p, gaps = np.array([0.1, 0.2, 0.7]), np.array([3.0, 0.0, 1.0])
    matrix = np.zeros((3, 4))
    matrix[:, 2] = p
    expected = gain(p, 0, 1, gaps, 3, 0.2, EXACT)
    assert gain(matrix.reshape(-1), 2, 4, gaps, 3, 0.2, EXACT) == expected


def test_larger_values_have_a_larger_maximum() -> None:
    """The maximum over a set is monotone in V."""
    rng = np.random.default_rng(3)
    for _ in range(2000):
        m = int(rng.integers(2, 6))
        p, v = rng.dirichlet(np.ones(m)), rng.random(m)
        more = v + rng.random(m) * (rng.random(m) < 0.5) * 10.0 ** rng.integers(-6, 1)
        c = 10 ** rng.uniform(-8, 1)
        less, most = (p @ u + gain(p, 0, 1, u.max() - u, m, c, EXACT) for u in (v, more))
        assert less <= most + 1e-9


def test_large_sets_hold_more() -> None:
    p, gaps = np.array([0.6, 0.3, 0.1, 0.0]), np.array([1.0, 0.4, 0.1, 0.0])
    found = [gain(p, 0, 1, gaps, 4, c, EXACT) for c in np.geomspace(1e-10, 40, 60)]
    assert found == sorted(found)


@numba.njit
def both(p, at, gaps, size, c, work):
    """(a, variance, gain) of one law, by the loop over laws and alone."""
    a, square, out, level = np.zeros(1), np.zeros(1), np.zeros(1), np.full(1, c)
    gains_at_once(p, at, 1, gaps, size, level, a, square, work, out)
    return (a[0], square[0], out[0]), gain_at_once(p, at, gaps, size, c)


def test_one_law_alone_has_the_bits_of_a_law_among_others() -> None:
    rng = np.random.default_rng(0)
    for _ in range(2000):
        size, at = int(rng.integers(1, 9)), int(rng.integers(0, 4))
        p = np.concatenate([rng.random(at), rng.dirichlet(np.full(size, 0.3))])
        p[at:][rng.random(size) < 0.3] = 0.0
        gaps = rng.random(size) * rng.choice([0.0, 1e-9, 1.0], size)
        c = float(rng.choice([0.0, 1e-12, 1e-3, 0.2, 3.0, 36.0, np.inf]))
        together, alone = both(p, at, gaps, size, c, np.zeros((3, 1)))
        assert together == alone
