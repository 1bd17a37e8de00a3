"""A table is compiled from its arrays; the walk over its methods is the reference."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import pkd
from pkd.engine.nodes.engine import NodeEngine
from pkd.engine.table.engine import TableEngine
from pkd.engine.threads import set_threads
from pkd.explore import explore


@st.composite
def tables(draw: Any) -> pkd.TabularMDP:
    """Small tables with all that a table can have: some states cannot be reached, rewards or laws
    change, actions are missing, the start is random.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, actions, horizon = draw(st.integers(1, 6)), draw(st.integers(1, 3)), draw(st.integers(1, 7))
    laws, pays = draw(st.sampled_from([(1, 1), (1, 3), (3, 1), (2, 2)]))
    if (pays, n, actions) == (n, actions, n):  # looks like r(s, a, s')
        actions += 1
    p = rng.dirichlet(np.ones(n), (laws, n, actions))
    p *= rng.random(p.shape) < draw(st.sampled_from([0.3, 0.6, 1.0]))
    at = np.indices(p.shape[:-1])
    p[*at, rng.integers(0, n, p.shape[:-1])] += 0.1
    p /= p.sum(axis=-1, keepdims=True)
    rewards = np.round(rng.normal(size=(pays, n, actions)), 1)
    if draw(st.booleans()):
        rewards[..., 1:][rng.random((pays, n, actions - 1)) < 0.4] = -np.inf
    start: Any = int(rng.integers(n))
    if draw(st.booleans()):
        start = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.5)
        start[0] += 1 - start.sum()
    given_p: Any = p if laws > 1 else p[0]
    # One matrix for each step looks like one for each action if there is one action only.
    if draw(st.booleans()) and (laws == 1 or actions > 1):
        given_p = [sparse.csr_array(t.reshape(-1, n)) for t in p]
        given_p = given_p if laws > 1 else given_p[0]
    return pkd.TabularMDP(given_p, rewards if pays > 1 else rewards[0], horizon, start)


def both(mdp: pkd.TabularMDP, **options: Any) -> tuple[TableEngine, NodeEngine]:
    model = mdp.model(**options)
    fast = pkd.compile(model)
    assert isinstance(fast, TableEngine)
    return fast, NodeEngine(explore(model))


@given(tables(), st.sampled_from([None, True, False]))
@settings(max_examples=150, deadline=None)
def test_the_arrays_of_a_table_give_what_the_walk_finds(
    mdp: pkd.TabularMDP, support: bool | None
) -> None:
    fast, slow = both(mdp, support=support)
    assert list(fast.features) == list(slow.features)
    assert list(fast.outcomes) == list(slow.outcomes)
    assert fast.fingerprint == slow.fingerprint
    for field in attrs.fields(type(slow.flat)):
        mine, its = getattr(fast.flat, field.name), getattr(slow.flat, field.name)
        for one, other in zip(mine, its, strict=True) if isinstance(its, tuple) else [(mine, its)]:
            np.testing.assert_array_equal(one, other, err_msg=field.name)
    assert list(fast.graph.members) == list(slow.graph.members)
    for h in range(1, mdp.horizon + 1):
        assert list(fast.decisions(h)) == list(slow.decisions(h))
    assert all(fast.feature_index[z] == i for i, z in enumerate(slow.features))
    assert (0, 0, 0, 0) not in fast.feature_index


@given(tables(), st.sampled_from([None, True, False]))
@settings(max_examples=100, deadline=None)
def test_a_table_has_the_values_and_policies_of_the_engine_of_nodes(
    mdp: pkd.TabularMDP, support: bool | None
) -> None:
    fast, slow = both(mdp, support=support)
    plans = [pkd.plan(compiled, law) for compiled in (fast, slow) for law in (mdp.law(),)]
    assert plans[0].value == plans[1].value
    np.testing.assert_array_equal(plans[0].belief.p, plans[1].belief.p)
    for h in range(1, mdp.horizon + 1):
        for x, y in plans[1].states(h):
            assert plans[0].action(h, x, y) == plans[1].action(h, x, y)
            assert plans[0].values(h, x, y) == plans[1].values(h, x, y)
    by_name = pkd.plan(fast, {z: dict(mdp.law()[z]) for z in fast.features})
    assert by_name.value == plans[0].value
    first = pkd.evaluate(fast, mdp.law(), lambda h, x, y: fast.find_choice(h, x, y)[1][0])
    other = pkd.evaluate(slow, mdp.law(), lambda h, x, y: slow.find_choice(h, x, y)[1][0])
    assert float(first) == float(other)


@given(tables(), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_zeros_that_are_left_out_change_no_bit(mdp: pkd.TabularMDP, zeros: int) -> None:
    rng = np.random.default_rng(zeros)
    dense = np.asarray(mdp.transitions)
    thin = np.where(rng.random(dense.shape) < 0.1 * zeros, 0.0, dense)
    thin[..., 0] += thin.sum(axis=-1) == 0
    thin = thin / thin.sum(axis=-1, keepdims=True)
    mdp = attrs.evolve(mdp, transitions=thin)
    plain = pkd.plan(mdp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pkd.engine.table.engine.THIN_SIZE", 0)
        patch.setattr("pkd.engine.table.engine.THIN_PART", 0)
        short = pkd.plan(mdp)
        assert short.value == plain.value
        for h in range(1, mdp.horizon + 1):
            for x, y in plain.states(h):
                assert short.action(h, x, y) == plain.action(h, x, y)
                assert short.values(h, x, y) == plain.values(h, x, y)


def test_a_plan_that_is_dropped_gives_its_memory_back_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        plan = pkd.plan(pkd.TabularMDP(np.full((3, 2, 3), 1 / 3), np.eye(3)[:, :2], horizon=4))
        kept = [weakref.ref(part) for part in (plan.compiled, plan.compiled.graph, plan.truth)]
        del plan
        assert [ref() for ref in kept] == [None] * 3
    finally:
        gc.enable()


@given(tables())
@settings(max_examples=20, deadline=None)
def test_learning_on_a_table_has_the_bits_of_the_engine_of_nodes(mdp: pkd.TabularMDP) -> None:
    runs = [pkd.learn(compiled, mdp.law(), 30) for compiled in both(mdp)]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    np.testing.assert_array_equal(runs[0].upper_values, runs[1].upper_values)
    assert runs[0].counts == runs[1].counts


@pytest.mark.parametrize("dense", [False, True])
def test_a_sweep_has_the_same_bits_with_one_thread_and_with_two(
    dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pkd.engine.table.engine.SHARED_SIZE", 0)
    rng = np.random.default_rng(5)
    p = rng.random((300, 3, 300)) * (rng.random((300, 3, 300)) < (1.0 if dense else 0.02))
    p[..., 7] += 0.1
    p /= p.sum(axis=-1, keepdims=True)
    given_p = p if dense else sparse.csr_array(p.reshape(-1, 300))
    mdp, found = pkd.TabularMDP(given_p, rng.random((300, 3)), horizon=9), []
    try:
        for threads in (1, 2):
            set_threads(threads)
            found.append(pkd.plan(mdp))
    finally:
        set_threads(None)
    assert found[0].value == found[1].value
    np.testing.assert_array_equal(found[0].choices, found[1].choices)
    v = np.zeros(300)
    for _ in range(9):
        v = (mdp.rewards + np.asarray(mdp.transitions) @ v).max(axis=1)
    assert found[0].value == pytest.approx(v[0], rel=1e-12)


def test_a_law_and_counts_may_be_arrays_in_the_order_of_the_features() -> None:
    compiled = pkd.compile("gambler")
    assert compiled.features == ["coin"]
    low = pkd.plan(compiled, {"coin": dict(zip(compiled.outcomes[0], (0.4, 0.6), strict=True))})
    assert pkd.plan(compiled, np.array([0.4, 0.6])).value == low.value
    counts = {"coin": dict(zip(compiled.outcomes[0], (40, 60), strict=True))}
    assert pkd.certify(compiled, np.array([40, 60])).gap == pkd.certify(compiled, counts).gap
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(3), (3, 2))
    mdp = pkd.TabularMDP(p, rng.random((3, 2)), horizon=4)
    own = pkd.compile(mdp)
    rows = np.concatenate([p[z] for z in own.features])
    assert pkd.plan(own, rows).value == pkd.plan(mdp).value


@pytest.mark.parametrize(
    ("law", "finding"),
    [
        ([0.4, 0.7], "sums to 1.1, not 1"),
        ([-0.5, 1.5], "holds a negative probability"),
        ([0.4, np.nan], "holds a negative probability, or no number"),
        ([0.4, 0.3, 0.3], "expected 2 probabilities, in the order of compiled.features"),
    ],
)
def test_an_array_that_is_no_law_is_refused(law: list[float], finding: str) -> None:
    with pytest.raises(pkd.ModelError, match=finding):
        pkd.plan("gambler", np.array(law))


def test_a_limit_of_states_holds_for_tables() -> None:
    mdp = pkd.TabularMDP(np.full((5, 1, 5), 0.2), np.zeros((5, 1)), horizon=3)
    with pytest.raises(pkd.ModelError, match="more than 4 states can be reached by step 1"):
        pkd.compile(mdp, max_states=4)
    assert pkd.compile(mdp, max_states=5).n_states == 5
