"""Certificates of delayed problems: logs of the base, and policies from their own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pkd
import pkd_delay
from pkd_delay.models.tables import two_state_chain

CHAIN = two_state_chain()
COUNTS = {z: {x: 300 * p for x, p in row.items()} for z, row in CHAIN.law().items()}


def test_every_file_of_a_plan_is_certified(tmp_path: Path) -> None:
    delayed = pkd_delay.DelayedMDP(CHAIN, {0: 0.5, 1: 0.5}, 2)
    plan = pkd_delay.plan(delayed)
    plan.save(tmp_path / "late.npz")
    plan.to_csv(tmp_path / "late.csv")
    plan.to_json(tmp_path / "late.json")
    found = [
        pkd.certify(delayed.known(), COUNTS, policy=policy)
        for policy in (plan.core, str(tmp_path / "late.npz"), *tmp_path.iterdir())
    ]
    assert len({(one.low, one.high) for one in found}) == 1
    assert found[0].low <= plan.value <= found[0].high


def test_a_saved_policy_of_a_delayed_problem_is_none_of_its_base(tmp_path: Path) -> None:
    pkd_delay.plan(pkd_delay.DelayedMDP.constant(CHAIN, 1)).save(tmp_path / "late.npz")
    with pytest.raises(pkd.ModelError, match=r"late.npz is the plan of another model"):
        pkd.certify(CHAIN.model(), COUNTS, policy=tmp_path / "late.npz")
    pkd_delay.plan(pkd_delay.DelayedMDP.constant(CHAIN, 1)).to_csv(tmp_path / "late.csv")
    with pytest.raises(pkd.ModelError, match="state, queue, waited are not parts of a state"):
        pkd.certify(CHAIN.model(), COUNTS, policy=tmp_path / "late.csv")


def test_without_delay_the_certificate_is_that_of_the_base() -> None:
    plain, late = (
        pkd.certify(model, COUNTS)
        for model in (CHAIN.model(), pkd_delay.DelayedMDP.constant(CHAIN, 0).known())
    )
    assert (late.low, late.high) == pytest.approx((plain.low, plain.high), abs=1e-9)


@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_a_random_policy_has_an_interval_under_delay(kind: Any) -> None:
    delayed = pkd_delay.DelayedMDP(CHAIN, {0: 0.5, 1: 0.5}, 1, delay_law=kind)
    run = pkd.learn(delayed, 500, optimism=pkd.Greedy(), seed=2)
    half = lambda h, x, y: {0: 0.5, 1: 0.5}  # noqa: E731
    found = pkd.certify(delayed.model(), run.counts, policy=half)
    assert found.low <= pkd.evaluate(delayed, half) <= found.high
    assert found.low > pkd.certify(delayed.model(), {}, policy=half).low


def test_a_function_that_tells_merged_states_apart_has_one_interval_on_both_engines() -> None:
    """At a full queue the counter decides nothing: the engine merges it. This policy reads y."""
    chain = two_state_chain(horizon=5)
    model = pkd_delay.DelayedMDP(chain, {-1: 0.3, 0: 0.3, 1: 0.4}, 2).known()
    counts = {(s, a): {0: 20 + 5 * s, 1: 30 - 5 * a} for s in range(2) for a in range(2)}

    def act(h: int, x: Any, y: Any) -> int:
        return (h + len(repr(y))) % 2

    one, other = (
        pkd.certify(pkd.compile(model, large=large), counts, policy=act) for large in (False, True)
    )
    assert other.low == pytest.approx(one.low, abs=1e-9)
    assert other.high == pytest.approx(one.high, abs=1e-9)
    assert one.low < one.high
