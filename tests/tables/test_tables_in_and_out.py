"""Tables in other forms: sparse, changing with the step, discounted, with fewer actions, and from
and for other programs. Optimal values come from dynamic programs written here, and from QuantEcon
and Storm where they are installed.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pkd
import pkd_delay
from pkd import TabularMDP
from pkd.tables.sparse import SparseTable

EXACT = 1e-10


def draw_table(
    seed: int, *, tables: int = 1, absent: bool = False, discount: float = 1.0, drawn: bool = False
) -> TabularMDP:
    """A random table with zeros, and with the traits that are asked for."""
    rng = np.random.default_rng(seed)
    n, n_actions = 4, 3
    p = rng.dirichlet(np.full(n, 0.4), size=(tables, n, n_actions))
    p[p < 0.02] = 0.0
    p /= p.sum(axis=-1, keepdims=True)
    r = rng.normal(size=(tables, n, n_actions))
    if absent:
        r[..., 1:][rng.random((tables, n, n_actions - 1)) < 0.4] = -np.inf
    start: Any = rng.dirichlet(np.ones(n)) if drawn else 1
    if tables == 1:
        p, r = p[0], r[0]
    return TabularMDP(p, r, 7, start, discount=discount)


def solve(mdp: TabularMDP) -> float:
    """Backward induction by hand: V_h = max_a r_t + discount P_t V_{h+1}, t = (h - 1) mod T."""
    p, r = np.asarray(mdp.transitions), np.asarray(mdp.rewards)
    p, r = p if p.ndim == 4 else p[None], r if r.ndim == 3 else r[None]
    v = np.zeros(mdp.n_states)
    for h in range(mdp.horizon, 0, -1):
        v = (r[(h - 1) % len(r)] + mdp.discount * p[(h - 1) % len(p)] @ v).max(axis=1)
    return float(mdp.start_distribution @ v)


TRAITS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "tables": st.sampled_from([1, 2, 7, 9]),
        "absent": st.booleans(),
        "discount": st.sampled_from([1.0, 0.9, 0.3]),
        "drawn": st.booleans(),
    }
)


@given(TRAITS)
def test_a_plan_of_any_table_is_backward_induction(traits: dict[str, Any]) -> None:
    mdp = draw_table(**traits)
    assert pkd.plan(mdp).value == pytest.approx(solve(mdp), abs=EXACT)


@given(TRAITS)
def test_a_sparse_table_has_the_plan_of_the_dense_one(traits: dict[str, Any]) -> None:
    mdp = draw_table(**traits)
    rows = np.asarray(mdp.transitions).reshape(-1, mdp.n_states)
    per = mdp.n_states * mdp.n_actions
    matrices = [sparse.csr_array(rows[i : i + per]) for i in range(0, len(rows), per)]
    given_as: Any = matrices[0] if len(matrices) == 1 else matrices
    thin = TabularMDP(given_as, mdp.rewards, mdp.horizon, mdp.start, discount=mdp.discount)
    assert isinstance(thin.transitions, SparseTable)
    assert thin.transitions.shape == mdp.transitions.shape
    assert pkd.plan(thin).value == pytest.approx(solve(mdp), abs=EXACT)


@given(TRAITS)
def test_unrolling_keeps_the_optimum(traits: dict[str, Any]) -> None:
    mdp = draw_table(**traits)
    plain = mdp.unrolled()
    assert plain.n_tables == 1
    assert plain.discount == 1
    assert solve(plain) == pytest.approx(solve(mdp), abs=EXACT)


@given(TRAITS)
def test_a_model_of_any_table_passes_its_check(traits: dict[str, Any]) -> None:
    mdp = draw_table(**traits)
    pkd.check_model(mdp.model(), mdp.law())


@given(TRAITS)
def test_a_table_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, traits: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("npz") / "table.npz"
    mdp = draw_table(**traits)
    for one in (mdp, mdp.unrolled()):
        one.save_npz(path)
        again = TabularMDP.from_npz(path)
        assert type(again.transitions) is type(one.transitions)
        np.testing.assert_array_equal(np.asarray(again.transitions), np.asarray(one.transitions))
        np.testing.assert_array_equal(again.rewards, one.rewards)
        np.testing.assert_array_equal(again.start_distribution, one.start_distribution)
        assert (again.horizon, again.discount) == (one.horizon, one.discount)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("P_pointers", np.array([0, 5, 2])),
        ("P_successors", np.array([0, 1, 9])),
        ("P_probabilities", np.array(["a", "b", "c"])),
        ("P_shape", np.array([7, 7, 7])),
        ("P_shape", np.array([])),
    ],
)
def test_a_damaged_sparse_file_is_refused(name: str, array: np.ndarray, tmp_path: Path) -> None:
    arrays = {
        "P_shape": np.array([2, 1, 2]),
        "P_pointers": np.array([0, 2, 3]),
        "P_successors": np.array([0, 1, 1]),
        "P_probabilities": np.array([0.5, 0.5, 1.0]),
        "r": np.zeros((2, 1)),
        "horizon": np.array(3),
    }
    np.savez(tmp_path / "table.npz", **arrays)
    assert TabularMDP.from_npz(tmp_path / "table.npz").law()[0, 0] == {0: 0.5, 1: 0.5}
    np.savez(tmp_path / "table.npz", **{**arrays, name: array})
    with pytest.raises(pkd.ModelError, match="transitions: expected"):
        TabularMDP.from_npz(tmp_path / "table.npz")


def test_rewards_alone_may_change_with_the_step_and_leave_the_features_alone() -> None:
    mdp = TabularMDP([[[0.5, 0.5]], [[0.5, 0.5]]], [[[1.0], [1.0]], [[0.0], [0.0]]], 3)
    assert pkd.plan(mdp).value == 2.0  # tables 1, 2, 1
    assert sorted(mdp.law()) == [(0, 0), (1, 0)]
    assert set(pkd.compile(mdp.model()).features) == {(0, 0), (1, 0)}


def test_one_matrix_per_action_is_read_like_one_of_all_rows() -> None:
    dense = np.asarray(draw_table(3).transitions)
    by_action = [sparse.coo_matrix(dense[:, a]) for a in range(3)]
    for form in (by_action, [by_action, by_action]):
        table = SparseTable.of_matrices(form)
        np.testing.assert_array_equal(np.asarray(table), dense if table.ndim == 3 else [dense] * 2)


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (sparse.eye_array(3, 2), "expected a sparse matrix of shape (S A, S), found (3, 2)"),
        ([sparse.eye_array(2), sparse.eye_array(4)], "expected one sparse matrix (S, S) for each"),
        ([sparse.eye_array(4, 2), sparse.eye_array(6, 2)], "expected one shape for all steps"),
    ],
)
def test_sparse_matrices_that_do_not_fit_are_refused(matrices: Any, message: str) -> None:
    with pytest.raises(pkd.ModelError) as error:
        TabularMDP(matrices, np.zeros((2, 2)), 3)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"discount": 1.5}, "discount: expected a number above 0 and at most 1, found 1.5"),
        ({"rewards": np.full((2, 2), -np.inf)}, "rewards[0] offers no action: all are -inf"),
        (
            {"transitions": np.full((3, 2, 2, 2), 0.5), "rewards": np.zeros((2, 2, 2))},
            "rewards: expected as many tables as transitions has, 3, or one, found 2",
        ),
        ({"transitions": sparse.csr_array(np.eye(4, 2))}, "transitions[1, 0] sums to 0, not 1"),
    ],
)
def test_bad_traits_get_a_finding(change: dict[str, Any], message: str) -> None:
    sound: dict[str, Any] = {"transitions": np.full((2, 2, 2), 0.5), "rewards": np.zeros((2, 2))}
    with pytest.raises(pkd.ModelError) as error:
        TabularMDP(**{**sound, "horizon": 3, **change})
    assert message in error.value.findings


def test_an_action_that_is_not_on_offer_is_never_chosen() -> None:
    rows = np.full((2, 2, 2), 0.5)
    rows[0, 1] = 0.0  # a row that is not used needs no probabilities
    mdp = TabularMDP(rows, [[0.0, -np.inf], [0.0, 1.0]], 2)
    assert list(mdp.model().actions(0, None)) == [0]
    assert list(mdp.model().actions(1, None)) == [0, 1]
    assert pkd.plan(mdp).value == 0.5


def test_a_large_sparse_table_is_planned_without_a_dense_array() -> None:
    """2,000 states and 4 actions: dense, the law alone would take 128 megabytes."""
    n, n_actions = 2000, 4
    s, a = np.divmod(np.arange(n * n_actions), n_actions)
    rows = np.concatenate([np.arange(n * n_actions)] * 2)
    columns = np.concatenate([(s + a) % n, (s + 1) % n])
    p = sparse.coo_array((np.full(len(rows), 0.5), (rows, columns)), (n * n_actions, n))
    tracemalloc.start()
    mdp = TabularMDP(p, -np.abs(s - n / 2).reshape(n, n_actions) / n, horizon=50)
    value = pkd.plan(mdp).value
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    v, r = np.zeros(n), np.asarray(mdp.rewards)
    for _ in range(50):
        v = (r + (p @ v).reshape(n, n_actions)).max(axis=1)
    assert value == pytest.approx(v[0], abs=EXACT)


# -- from programs ---------------------------------------------------------------------------------


def test_a_function_gives_the_table_of_what_it_can_reach() -> None:
    def step(s: tuple[str, int], a: str) -> list[tuple[float, tuple[str, int], float]]:
        name, n = s
        after = n + (1 if a == "up" else -1)
        return [(0.75, (name, after), n), (0.25, (name, n), 2.0 * n), (0.0, ("moon", 0), 1e9)]

    mdp = TabularMDP.from_function(
        step, lambda s: ["up", "down"] if s[1] > 0 else ["up"], ("tower", 0), 3
    )
    assert mdp.state_names == tuple(str(("tower", n)) for n in range(4))
    assert mdp.law()[1, 1] == {0: 0.75, 1: 0.25}
    assert mdp.rewards[1, 0] == 1.25
    assert pkd.plan(mdp).value == pytest.approx(solve(mdp), abs=EXACT)
    assert solve(mdp) == pytest.approx(0.75 * 1.25 + 1.25 * (2 * 0.75**2 + 2 * 0.75 * 0.25))


def test_a_function_may_start_at_random() -> None:
    mdp = TabularMDP.from_function(lambda s, a: [(1.0, s, s)], [0], {1: 0.25, 3: 0.75}, horizon=2)
    assert pkd.plan(mdp).value == 2 * (0.25 + 2.25)


def test_trajectories_of_a_table_lead_back_to_it() -> None:
    mdp = draw_table(5, drawn=True)

    def anything(h: int, x: int, y: Any) -> dict[int, float]:
        return {0: 0.5, 1: 0.25, 2: 0.25}

    episodes = pkd.simulate(mdp, anything, 4000, seed=1)
    seen = [[(m.x, m.action, m.reward, m.x_next) for m in episode] for episode in episodes]
    found = TabularMDP.from_trajectories(seen)
    order = [int(name) for name in found.state_names or ()]
    actions = [int(name) for name in found.action_names or ()]
    truth = np.asarray(mdp.transitions)[np.ix_(order, actions, order)]
    assert found.horizon == 7
    np.testing.assert_allclose(np.asarray(found.transitions), truth, atol=0.05)
    np.testing.assert_allclose(found.rewards, mdp.rewards[np.ix_(order, actions)], atol=1e-9)
    np.testing.assert_allclose(found.start_distribution, mdp.start_distribution[order], atol=0.05)


def test_a_pair_that_was_never_tried_is_not_on_offer() -> None:
    found = TabularMDP.from_trajectories([[(0, "a", 1.0, 1), (1, "b", 0.0, 2)]], horizon=5)
    assert found.on_offer.tolist() == [[True, False], [False, True], [True, False]]
    assert pkd.plan(found).value == 1.0


@pytest.mark.parametrize(
    ("trajectories", "message"),
    [
        ([], "trajectories are empty; expected a step (s, a, reward, s')"),
        (
            [[(0, "a", 1.0, 1), (0, "a", 1.0, 1)]],
            "step 2 of a trajectory begins in 0, but the step before it ended in 1",
        ),
    ],
)
def test_trajectories_that_cannot_be_are_refused(trajectories: Any, message: str) -> None:
    with pytest.raises(pkd.ModelError) as error:
        TabularMDP.from_trajectories(trajectories)
    assert str(error.value) == message


# -- networkx --------------------------------------------------------------------------------------


@given(TRAITS)
def test_a_graph_gives_the_table_back(traits: dict[str, Any]) -> None:
    mdp = draw_table(**traits)
    graph = mdp.to_networkx()
    plain = mdp.unrolled()
    start = dict(zip(graph, plain.start_distribution.tolist(), strict=True))
    again = TabularMDP.from_networkx(graph, mdp.horizon, start)
    assert solve(again) == pytest.approx(solve(mdp), abs=EXACT)


def test_a_graph_is_read_with_its_rewards_of_edges() -> None:
    graph = networkx.MultiDiGraph()
    graph.add_edge("shop", "home", action="walk", probability=0.5, reward=0.0)
    graph.add_edge("shop", "pub", action="walk", probability=0.5, reward=4.0)
    mdp = TabularMDP.from_networkx(graph, horizon=3)
    assert mdp.state_names == ("shop", "home", "pub")
    assert pkd.plan(mdp).value == 2.0  # home and pub absorb


def test_an_edge_that_says_too_little_is_refused() -> None:
    graph = networkx.MultiDiGraph([("a", "b", {"action": 1, "probability": 1.0})])
    with pytest.raises(pkd.ModelError, match="the edge 'a' -> 'b' has no reward"):
        TabularMDP.from_networkx(graph, 3)
    graph["a"]["b"][0]["reward"] = 0.0
    with pytest.raises(pkd.ModelError, match=r"start: 'c' is no node of the graph"):
        TabularMDP.from_networkx(graph, 3, start="c")


# -- QuantEcon -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:infinite horizon solution methods are disabled")
@given(TRAITS)
def test_quantecon_finds_our_optimum(traits: dict[str, Any]) -> None:
    from quantecon.markov import backward_induction

    mdp = draw_table(**traits)
    values, _ = backward_induction(mdp.to_quantecon(), mdp.horizon)
    start = mdp.unrolled(keep_discount=True).start_distribution
    assert start @ values[0] == pytest.approx(pkd.plan(mdp).value, abs=1e-8)


@pytest.mark.filterwarnings("ignore:infinite horizon solution methods are disabled")
@pytest.mark.parametrize("discount", [1.0, 0.9])
@pytest.mark.parametrize("form", ["product", "pairs", "sparse pairs"])
def test_a_problem_of_quantecon_is_read_in_every_form(form: str, discount: float) -> None:
    from quantecon.markov import DiscreteDP, backward_induction

    mdp = draw_table(8, absent=form != "product")
    if form == "product":
        ddp = DiscreteDP(mdp.rewards.copy(), np.asarray(mdp.transitions).copy(), discount)
    else:
        s, a = np.nonzero(mdp.on_offer)
        q: Any = np.asarray(mdp.transitions)[s, a]
        if form == "sparse pairs":
            q = sparse.csr_matrix(q)
        ddp = DiscreteDP(mdp.rewards[s, a], q, discount, s, a)
    values, _ = backward_induction(ddp, 12)
    again = TabularMDP.from_quantecon(ddp, horizon=12, start=2)
    assert again.discount == discount
    assert pkd.plan(again).value == pytest.approx(values[0][2], abs=1e-8)


def test_policy_iteration_of_quantecon_is_the_limit_of_long_horizons() -> None:
    from quantecon.markov import DiscreteDP

    mdp = draw_table(9)
    ddp = DiscreteDP(mdp.rewards.copy(), np.asarray(mdp.transitions).copy(), 0.9)
    limit = ddp.solve(method="policy_iteration").v[0]
    assert pkd.plan(TabularMDP.from_quantecon(ddp, 260)).value == pytest.approx(limit, abs=1e-8)


def test_something_else_is_no_problem_of_quantecon() -> None:
    with pytest.raises(pkd.ModelError, match=r"ddp is \{\}; expected a quantecon DiscreteDP"):
        TabularMDP.from_quantecon({}, 3)


# -- Storm, PRISM and .pomdp -----------------------------------------------------------------------

CASES = [
    draw_table(1),
    draw_table(2, absent=True, drawn=True),
    draw_table(3, tables=2),
    draw_table(4, discount=0.8),
    draw_table(5, tables=7, absent=True, discount=0.7, drawn=True),
]


@pytest.mark.parametrize("mdp", CASES)
@pytest.mark.parametrize("form", ["drn", "prism"])
def test_storm_finds_our_optimum(mdp: TabularMDP, form: str, tmp_path: Path) -> None:
    stormpy = pytest.importorskip("stormpy", reason="stormpy is in the extra `bench`")
    path = str(tmp_path / f"table.{form}")
    if form == "drn":
        mdp.to_drn(path)
        (question,) = stormpy.parse_properties(mdp.storm_property)
        model = stormpy.build_model_from_drn(path)
    else:
        mdp.to_prism(path)
        program = stormpy.parse_prism_program(path)
        (question,) = stormpy.parse_properties(mdp.storm_property, program)
        model = stormpy.build_model(program, [question])
    answer = stormpy.model_checking(model, question, only_initial_states=True)
    found = answer.get_value(model.initial_states[0])
    assert found == pytest.approx(pkd.plan(mdp).value, abs=1e-8)


def read_pomdp(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(P, r, start, discount) of a .pomdp file whose observation is the state."""
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    said = {line[0]: line[1:] for line in lines if line[0] not in ("T:", "O:", "R:")}
    n, n_actions = int(said["states:"][0]), int(said["actions:"][0])
    p, r = np.zeros((n, n_actions, n)), np.zeros((n, n_actions))
    for line in lines:
        if line[0] == "T:":
            p[int(line[3]), int(line[1]), int(line[5])] = float(line[6])
        elif line[0] == "R:":
            r[int(line[3]), int(line[1])] = float(line[8])
        elif line[0] == "O:":
            assert line[3] == line[5]
    return p, r, np.array(said["start:"], float), float(said["discount:"][0])


@pytest.mark.parametrize("mdp", CASES)
def test_a_pomdp_file_has_our_optimum(mdp: TabularMDP, tmp_path: Path) -> None:
    mdp.to_pomdp(tmp_path / "table.pomdp")
    p, r, start, discount = read_pomdp((tmp_path / "table.pomdp").read_text())
    v = np.zeros(len(p))
    for _ in range(mdp.horizon):
        v = (r + discount * p @ v).max(axis=1)
    assert start @ v == pytest.approx(pkd.plan(mdp).value, abs=EXACT)


def test_a_model_is_flattened_sparsely_to_the_same_table() -> None:
    dense, thin = pkd.flatten("inventory"), pkd.flatten("inventory", sparse=True)
    assert isinstance(thin.transitions, SparseTable)
    np.testing.assert_array_equal(np.asarray(thin.transitions), np.asarray(dense.transitions))


def test_a_table_with_more_traits_is_delayed_as_any_other_model() -> None:
    """A delayed agent with no delay sees everything."""
    for mdp in (draw_table(1, tables=2), draw_table(1, discount=0.5)):
        with pytest.raises(pkd.ModelError, match=r"use pkd_delay.Delayed"):
            pkd_delay.DelayedMDP.constant(mdp, 1)
        late = pkd_delay.Delayed.constant(mdp, 0)
        assert pkd.plan(late).value == pytest.approx(solve(mdp), abs=EXACT)


def test_a_learner_of_a_changing_table_learns_each_of_its_tables() -> None:
    run = pkd.learn(draw_table(2, tables=2), 30)
    assert {z[0] for z in run.counts} == {0, 1}
    assert run.violations == 0
