"""Controllers that never stop: discounts against a recursion, bounds against all policies."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd import CHANCE, END, Known, ModelError, PolicyTable
from pkd.episode import list_branches
from pkd.planning.stationary import Stationary
from pkd_delay.models.tables import riverswim, two_state_chain
from pkd_examples.inventory import inventory
from tests.strategies import Case, cases


def solve_discounted(case: Case, discount: float) -> float:
    """max E[ sum_h discount^(h-1) r_h + discount^n final ], straight from the model."""
    model, law = case.model, case.law

    def follow(x: Any, y: Any, a: Any, taken: int, value: Any) -> float:
        total = 0.0
        for p, y_next, z in list_branches(model, x, y, a, taken):
            row = dict(z.law) if isinstance(z, Known) else law[z]
            total += p * sum(q * value(x_next, y_next) for x_next, q in row.items() if q > 0)
        return total

    def pay(x: Any, y: Any, a: Any) -> float:
        r = model.reward(x, y, a)
        if isinstance(r, pkd.UnknownReward):
            return sum(v * q for v, q in law[r.feature].items())
        return float(r)

    def value(taken: int, x: Any, y: Any, first: bool) -> float:
        """After `taken` actions; what comes from the next decision on is worth `discount`."""
        kind = model.actions(x, y)
        if kind is CHANCE:
            return pay(x, y, None) + follow(
                x, y, None, taken, lambda x, y: value(taken, x, y, first)
            )
        worth = 1.0 if first else discount
        if kind is END or taken == model.horizon:
            return worth * float(model.final(x, y))
        return worth * max(
            pay(x, y, a) + follow(x, y, a, taken + 1, lambda x, y: value(taken + 1, x, y, False))
            for a in kind
        )

    start = model.start()
    start = start if isinstance(start, dict) else {start: 1.0}
    return sum(p * value(0, x, y, True) for (x, y), p in start.items() if p > 0)


@given(cases(hindsight=False), st.sampled_from([0.25, 0.9]))
def test_a_discounted_model_is_worth_what_the_recursion_says(case: Case, discount: float) -> None:
    late = pkd.discounted(case.model, discount)
    assert pkd.plan(late, case.law).value == pytest.approx(
        solve_discounted(case, discount), abs=1e-9
    )


@given(cases(hindsight=False))
def test_a_discounted_model_keeps_the_contract(case: Case) -> None:
    pkd.check_model(pkd.discounted(case.model, 0.5), case.law)


def test_a_discount_of_one_changes_nothing() -> None:
    plan = pkd.plan("inventory")
    assert pkd.plan(pkd.discounted("inventory", 1.0)).value == pytest.approx(plan.value, abs=1e-12)


def test_a_discounted_problem_can_be_delayed_and_learned() -> None:
    chain = two_state_chain(horizon=6)
    late = pkd_delay.Delayed.constant(pkd.discounted(chain, 0.5), 0)
    assert pkd.plan(late).value == pytest.approx(pkd.plan(pkd.discounted(chain, 0.5)).value)
    run = pkd.learn(pkd.discounted(chain, 0.5), 20)
    assert run.violations == 0


def test_simulated_returns_of_a_discounted_problem_have_its_value_as_mean() -> None:
    chain = pkd.discounted(riverswim(horizon=20), 0.9)
    plan = pkd.plan(chain)
    returns = pkd.Simulator(chain, seed=3).returns(pkd.plan(chain), 20_000)
    error = returns.std() / np.sqrt(len(returns))
    assert returns.mean() == pytest.approx(plan.value, abs=4 * error)


@pytest.mark.parametrize("discount", [0, 1.1, "half", True, float("nan")])
def test_a_bad_discount_is_refused(discount: Any) -> None:
    with pytest.raises(ModelError, match="discount: expected a number above 0 and at most 1"):
        pkd.discounted(two_state_chain(), discount)


def test_a_model_that_learns_from_whole_episodes_is_not_cut_short() -> None:
    late = pkd_delay.DelayedMDP.constant(two_state_chain(), 1).unknown()
    with pytest.raises(ModelError, match="discount the model that it was made of"):
        pkd.discounted(late, 0.5)


# -- the stationary policy -------------------------------------------------------------------------


def draw(seed: int, horizon: int, n: int = 3, n_actions: int = 2) -> pkd.TabularMDP:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n), size=(n, n_actions))
    return pkd.TabularMDP(p, rng.normal(size=(n, n_actions)), horizon)


def list_policies(mdp: pkd.TabularMDP) -> list[tuple[int, ...]]:
    return list(product(range(mdp.n_actions), repeat=mdp.n_states))


def find_gain(mdp: pkd.TabularMDP, policy: tuple[int, ...]) -> float:
    """The average reward of a policy whose chain has one class: its stationary law times r."""
    n = mdp.n_states
    p = np.asarray(mdp.transitions)[range(n), policy]
    law = np.linalg.lstsq(np.vstack([p.T - np.eye(n), np.ones(n)]), np.eye(n + 1)[n], rcond=None)[0]
    return float(law @ mdp.rewards[range(n), policy])


def find_value(mdp: pkd.TabularMDP, policy: tuple[int, ...], discount: float) -> float:
    n = mdp.n_states
    p, r = np.asarray(mdp.transitions)[range(n), policy], mdp.rewards[range(n), policy]
    return float(np.linalg.solve(np.eye(n) - discount * p, r)[0])


def read_policy(mdp: pkd.TabularMDP, policy: Stationary) -> tuple[int, ...]:
    return tuple(policy.action(s, None) for s in range(mdp.n_states))


SLACK = 1e-9


@given(st.integers(0, 10**6), st.sampled_from([4, 10, 60]))
def test_the_gain_lies_within_its_bounds(seed: int, horizon: int) -> None:
    mdp = draw(seed, horizon)
    keep = pkd.plan(mdp).stationary()
    best = max(find_gain(mdp, policy) for policy in list_policies(mdp))
    mine = find_gain(mdp, read_policy(mdp, keep))
    assert keep.gain is not None
    assert keep.policy_gain is not None
    assert keep.gain.low - SLACK <= best <= keep.gain.high + SLACK
    assert keep.policy_gain.low - SLACK <= mine <= keep.policy_gain.high + SLACK
    assert best - mine <= keep.endless_loss + SLACK
    if horizon == 60:
        assert keep.gain.width < 1e-4


@given(st.integers(0, 10**6), st.sampled_from([4, 10, 60]), st.sampled_from([0.5, 0.9]))
def test_the_endless_value_lies_within_its_bounds(seed: int, horizon: int, discount: float) -> None:
    mdp = draw(seed, horizon)
    keep = pkd.plan(pkd.discounted(mdp, discount)).stationary()
    best = max(find_value(mdp, policy, discount) for policy in list_policies(mdp))
    mine = find_value(mdp, read_policy(mdp, keep), discount)
    assert keep.gain is None
    assert keep.endless_value is not None
    assert keep.policy_endless_value is not None
    assert keep.endless_value.low - SLACK <= best <= keep.endless_value.high + SLACK
    assert keep.policy_endless_value.low - SLACK <= mine <= keep.policy_endless_value.high + SLACK
    assert best - mine <= keep.endless_loss + SLACK


@given(st.integers(0, 10**6))
def test_the_loss_over_the_horizon_is_exact(seed: int) -> None:
    mdp = draw(seed, 8)
    plan = pkd.plan(mdp)
    keep = plan.stationary()
    policy, v = read_policy(mdp, keep), np.zeros(3)
    for _ in range(8):
        v = (mdp.rewards + np.asarray(mdp.transitions) @ v)[range(3), policy]
    assert keep.loss == pytest.approx(plan.value - v[0], abs=1e-9)
    assert keep.value == pytest.approx(v[0], abs=1e-9)


def test_an_inventory_goes_on_for_ever() -> None:
    keep = pkd.plan(inventory(horizon=70)).stationary()
    assert keep.season == 7
    assert keep.gain is not None
    assert keep.gain.width < 0.01
    assert keep.endless_loss is not None
    assert 0 <= keep.endless_loss < 0.01


def test_a_season_may_be_longer_but_must_bring_the_states_back() -> None:
    swap = pkd.TabularMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [2.0]], 20, start=[0.5, 0.5])
    wide, narrow = (pkd.plan(swap).stationary(season).gain for season in (None, 2))
    assert (wide.low, wide.high) == (0.0, 2.0)
    assert (narrow.low, narrow.high) == (1.0, 1.0)
    one = pkd.TabularMDP([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [2.0]], 20)
    alone = (one.model(support=True), one.law())  # from 0 to 1 and back: layers alternate
    assert pkd.plan(alone).stationary().season == 2
    with pytest.raises(ModelError, match="season is 3; expected a multiple of 2"):
        pkd.plan(alone).stationary(3)


def test_a_short_horizon_or_an_end_gives_no_bounds() -> None:
    assert pkd.plan(draw(1, 1)).stationary().gain is None
    ends = pkd.plan("gambler").stationary()
    assert ends.gain is None
    assert ends.endless_loss is None


def test_a_stationary_policy_leaves_the_program(tmp_path: Any) -> None:
    mdp = riverswim(horizon=30)
    keep = pkd.plan(mdp).stationary()
    keep.to_json(tmp_path / "policy.json")
    keep.to_csv(tmp_path / "policy.csv")
    assert (tmp_path / "policy.csv").read_text().startswith("x,action\n")
    for path in ("policy.json", "policy.csv"):
        policy = PolicyTable.read(tmp_path / path, mdp)
        assert pkd.evaluate(mdp, policy) == pytest.approx(keep.value, abs=1e-12)


def test_a_plan_from_counts_has_no_law_to_lose_by() -> None:
    plan = pkd.optimistic_plan(two_state_chain(), {}, episodes=3)
    with pytest.raises(ModelError, match=r"stationary\(\) needs the law"):
        plan.stationary()
