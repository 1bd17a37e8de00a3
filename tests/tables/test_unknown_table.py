"""A table of which nothing is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
from pkd.tables.unknown import OVER, START

RIVER = pkd.as_problem("riverswim")


def random_table(seed: int, *, ends: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P (S, A, S + 1), the last entry of a row is the end; r (S, A) in [-1, 2]; start (S,)."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(4), size=(3, 2))
    if not ends:
        P[..., 3] = 0
        P /= P.sum(axis=2, keepdims=True)
    return P, rng.uniform(-1, 2, (3, 2)), rng.dirichlet(np.ones(3))


def value_of(P: np.ndarray, r: np.ndarray, start: np.ndarray, horizon: int) -> float:
    """The optimum by plain backward induction."""
    v = np.zeros(4)
    for _ in range(horizon):
        v = np.append((r + P @ v).max(axis=1), 0.0)
    return float(start @ v[:3])


def law_of(P: np.ndarray, r: np.ndarray, start: np.ndarray) -> dict[Any, dict[Any, float]]:
    law: dict[Any, dict[Any, float]] = {START: dict(enumerate(start.tolist()))}
    for s in range(3):
        for a in range(2):
            names = [0, 1, 2, OVER]
            law[s, a] = {x: p for x, p in zip(names, P[s, a].tolist(), strict=True) if p > 0}
            law["reward", s, a] = {float(r[s, a]): 1.0}
    return law


@pytest.mark.parametrize("ends", [True, False])
@given(seed=st.integers(0, 1000))
def test_its_optimum_under_a_law_is_that_of_the_table(seed: int, ends: bool) -> None:
    P, r, start = random_table(seed, ends=ends)
    model = pkd.UnknownTable(3, 2, 5, reward_range=(-1, 2), start=None, ends=ends)
    law = {z: row for z, row in law_of(P, r, start).items() if ends or OVER not in row}
    pkd.check_model(model, law)
    assert pkd.plan(model, law).value == pytest.approx(value_of(P, r, start, 5), abs=1e-12)


def test_a_certified_run_learns_laws_rewards_and_the_start() -> None:
    P, r, start = random_table(1, ends=True)
    model = pkd.UnknownTable(3, 2, 5, reward_range=(-1, 2), start=None)
    run = pkd.learn(model, law_of(P, r, start), 30_000, seed=1)
    assert run.violations == run.lower_violations == 0
    assert run.policy_values[-1] >= run.policy_values[0]
    assert run.optimal_value - run.policy_values[-1] < 0.05


def test_known_successors_are_the_only_outcomes() -> None:
    model = pkd.UnknownTable(3, 1, 2, successors=lambda s, a: [s, (s + 1) % 3], ends=False)
    assert model.outcomes((2, 0)) == (2, 0)
    by_name = pkd.UnknownTable(3, 1, 2, successors={(s, 0): [s] for s in range(3)})
    assert by_name.outcomes((1, 0)) == (1, OVER)


def test_successors_that_are_no_states_are_refused() -> None:
    model = pkd.UnknownTable(2, 1, 2, successors=lambda s, a: [7])
    with pytest.raises(pkd.ModelError, match=r"successors of .s=0, a=0. are .7,.; expected states"):
        pkd.plan(model, {})


def test_bad_sizes_are_named_together() -> None:
    with pytest.raises(pkd.ModelError) as found:
        pkd.UnknownTable(0, 2.5, True, reward_range=(1, 0))  # type: ignore[arg-type]
    assert [*found.value.findings] == [
        "n_states is 0; expected a whole number from 1 to 2147483648",
        "n_actions is 2.5; expected a whole number from 1 to 2147483648",
        "horizon is True; expected a whole number from 1 to 2147483648",
        "reward_range is (1, 0); expected two numbers, low <= high",
    ]


def test_a_start_outside_the_table_is_refused() -> None:
    with pytest.raises(pkd.ModelError, match=r"a state of start is 5; expected .* from 0 to 1"):
        pkd.UnknownTable(2, 1, 3, start=5)


def test_counts_that_do_not_fit_the_machine_are_refused_at_once() -> None:
    with pytest.raises(pkd.ModelError, match=r"need 7\.45e\+04 GiB; .* successors="):
        pkd.UnknownTable(100_000, 1000, 5)
    pkd.UnknownTable(100_000, 1000, 5, lambda s, a: [0])
