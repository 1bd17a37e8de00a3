"""The loops over columns equal plain numpy.

They do so for any number of outcomes, any stride, and whether or not they add to what was there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pkd.engine.stripes import columns as kernels
from pkd.optimism import MAX, SUM

X, COLUMNS = 9, 64


@cache
def of_python(kernel: Any) -> Callable[..., Any]:
    """A door to a kernel that only other kernels call."""

    @numba.njit
    def call(*arguments: Any) -> Any:
        return kernel(*arguments)

    return call


@st.composite
def stretches(draw: st.DrawFn) -> dict[str, Any]:
    """V, a law over some x', and the columns base + stride i that a loop reads."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    stride, n = draw(st.sampled_from([0, 1, 2, 4, -1, -3])), draw(st.integers(1, 15))
    reach = stride * (n - 1)
    base = draw(st.integers(max(0, -reach), COLUMNS - 1 - max(0, reach)))
    outcomes = draw(st.integers(1, X))
    before = draw(st.integers(0, 3))  # other laws stand before and behind this one
    x = np.concatenate(
        [np.zeros(before, np.int64), rng.permutation(X)[:outcomes], np.zeros(2, np.int64)]
    )
    p = np.concatenate(
        [np.full(before, np.nan), rng.dirichlet(np.ones(outcomes)), np.full(2, np.nan)]
    )
    v = rng.normal(size=(X, COLUMNS)) * draw(st.sampled_from([1.0, 1e-6, 1e6])) + draw(
        st.sampled_from([0.0, 1e3])
    )
    return {
        "x": x,
        "p": p,
        "lo": before,
        "hi": before + outcomes,
        "v": v,
        "base": base,
        "stride": stride,
        "n": n,
        "rng": rng,
    }


def seen(c: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The law, and the values (outcomes, n) that it weighs."""
    return c["p"][c["lo"] : c["hi"]], c["v"][c["x"][c["lo"] : c["hi"]]][
        :, c["base"] + c["stride"] * np.arange(c["n"])
    ]


def read(c: dict[str, Any]) -> kernels.Read:
    size = kernels.Offset(c["n"])
    where = c["v"].reshape(-1), COLUMNS, c["base"], c["stride"], size
    return kernels.Read(*where, c["x"], c["p"], c["lo"], c["hi"])


def scratch(c: dict[str, Any]) -> np.ndarray:
    return np.full(kernels.AT_ONCE * c["n"], np.nan)


@given(stretches(), st.booleans())
def test_an_expectation_is_the_weighted_sum(c: dict[str, Any], keep: bool) -> None:
    p, values = seen(c)
    before = c["rng"].normal(size=c["n"])
    out = before.copy() if keep else np.full(c["n"], np.nan)
    write = kernels.Write(out, 2.5, np.inf, keep, 0.25)
    of_python(kernels.expectation)(read(c), write, scratch(c))
    plain = 2.5 + p @ values
    assert out == pytest.approx(before + 0.25 * plain if keep else plain, rel=1e-12, abs=1e-9)


@given(stretches(), st.booleans(), st.sampled_from([SUM, MAX]), st.booleans())
def test_an_optimistic_value_is_mean_and_bonus_under_its_cap(
    c: dict[str, Any], keep: bool, form: int, ranged: bool
) -> None:
    p, values = seen(c)
    n, factor, term, scale, constant, weight = c["n"], 0.7, 0.3, 0.2, 1.5, 0.6
    low, high = values.min(axis=0) - 1.0, values.max(axis=0) + c["rng"].random(n)
    mean = p @ values
    deviation = np.sqrt(p @ (values - mean) ** 2)
    second = scale * (high - low) if ranged else np.full(n, term)
    bonus = np.maximum(factor * deviation, second) if form == MAX else factor * deviation + second
    ceiling = np.inf if ranged else float(np.median(constant + mean + bonus))
    capped = np.minimum(mean + bonus, high) if ranged else mean + bonus
    before = c["rng"].normal(size=n)
    value = np.minimum(ceiling, constant + capped)
    expected = before + weight * value if keep else value
    scale_of = np.abs(values).max() + 1.0

    e, s, q, space = np.full(n, np.nan), np.full(n, np.nan), before.copy(), scratch(c)
    terms = kernels.Terms(form, factor, scale, term / scale, ranged, low, high)
    write, size = kernels.Write(q, constant, ceiling, keep, weight), kernels.Offset(n)
    of_python(kernels.moments)(read(c), e, s, space)
    of_python(kernels.bonus_of_moments)(size, space, e, s, write, terms)
    assert np.abs(q - expected).max() <= 1e-12 * scale_of
    if c["hi"] - c["lo"] <= 5 and c["stride"] == 1 and not ranged:
        fused = before.copy()
        of_python(kernels.optimistic_mix)(read(c), write._replace(out=fused), terms)
        assert np.abs(fused - expected).max() <= 1e-12 * scale_of


@given(
    st.integers(1, 6),
    st.integers(1, 40),
    st.integers(0, 2**32),
    st.sampled_from([np.uint8, np.int64]),
)
def test_the_best_action_is_the_first_with_the_largest_value(
    actions: int, n: int, seed: int, kind: type
) -> None:
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 4, size=(n, actions)).astype(float)  # many ties
    out, policy = np.full(n + 3, np.nan), np.full(n + 3, 7, kind)
    before = rng.integers(0, actions, size=n).astype(kind)
    policy[2 : 2 + n] = before
    changed = of_python(kernels.best_of_fans)(
        q.reshape(-1), actions, kernels.Offset(n), out, kernels.Offset(1), policy, kernels.Offset(2)
    )
    assert (out[1 : 1 + n] == q.max(axis=1)).all()
    assert (policy[2 : 2 + n] == q.argmax(axis=1)).all()
    assert np.isnan(out[[0, *range(n + 1, n + 3)]]).all()  # nothing else was written
    assert (policy[[0, 1, n + 2]] == 7).all()
    assert changed == (before != q.argmax(axis=1)).sum()
