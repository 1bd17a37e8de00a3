"""`TabularMDP`: its numbers, its sources (arrays, .npz, Gymnasium), and its model.

The optimal values come from dynamic programs and a linear program written here, from QuantEcon, and
from published numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

import pkd
from pkd.tables.tabular import TabularMDP
from tests.kiosk import read_table

TWO = {
    "transitions": [[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]]],
    "rewards": [[0.0, -1.0], [1.0, 2.0]],
    "horizon": 3,
}


def random_mdp(seed: int, n_states: int = 5, n_actions: int = 3, horizon: int = 6) -> TabularMDP:
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions))
    start = rng.dirichlet(np.ones(n_states))
    return TabularMDP(transitions, rng.normal(size=(n_states, n_actions)), horizon, start)


def values_by_hand(mdp: TabularMDP) -> np.ndarray:
    """V_h(s) = max_a r(s, a) + sum_s' P(s'|s, a) V_{h+1}(s'), rows h = 1..H+1."""
    values = [np.zeros(mdp.n_states)]
    for _ in range(mdp.horizon):
        values.append(
            (mdp.rewards + np.einsum("ijk,k->ij", mdp.transitions, values[-1])).max(axis=1)
        )
    return np.array(values[::-1])


def optimum(mdp: TabularMDP) -> float:
    return float(mdp.start_distribution @ values_by_hand(mdp)[0])


def test_plan_gives_the_q_values_of_every_step() -> None:
    mdp = random_mdp(7)
    plan, values = pkd.plan(mdp.model(), mdp.law()), values_by_hand(mdp)
    assert plan.value == pytest.approx(optimum(mdp), abs=1e-10)
    for h in range(1, mdp.horizon + 1):
        for s in range(mdp.n_states):
            expected = {
                a: mdp.rewards[s, a] + mdp.transitions[s, a] @ values[h]
                for a in range(mdp.n_actions)
            }
            assert plan.values(h, s, None) == pytest.approx(expected, abs=1e-10)
            assert plan.action(h, s, None) == max(expected, key=lambda a: expected[a])


@pytest.mark.filterwarnings("ignore:infinite horizon solution methods are disabled")
def test_plan_equals_backward_induction_of_quantecon() -> None:
    from quantecon.markov import DiscreteDP, backward_induction

    mdp = random_mdp(11)
    values, actions = backward_induction(
        DiscreteDP(mdp.rewards.copy(), mdp.transitions.copy(), beta=1.0), mdp.horizon
    )
    plan = pkd.plan(mdp.model(), mdp.law())
    assert plan.value == pytest.approx(mdp.start_distribution @ values[0], abs=1e-10)
    assert [plan.action(1, s, None) for s in range(mdp.n_states)] == list(actions[0])


def test_plan_equals_the_linear_program_over_occupation_measures() -> None:
    """max sum_h <q_h, r> with sum_a q_1 = start and sum_a q_{h+1}(s', a) = sum q_h(s, a) P(s'|s,
    a).
    """
    mdp = random_mdp(13, n_states=4, n_actions=2, horizon=4)
    pairs = mdp.n_states * mdp.n_actions
    leave = np.repeat(np.eye(mdp.n_states), mdp.n_actions, axis=1)
    arrive = mdp.transitions.reshape(pairs, mdp.n_states).T
    flow = np.kron(np.eye(mdp.horizon), leave) - np.kron(np.eye(mdp.horizon, k=-1), arrive)
    supply = np.concatenate([mdp.start_distribution, np.zeros(mdp.n_states * (mdp.horizon - 1))])
    solution = linprog(-np.tile(mdp.rewards.ravel(), mdp.horizon), A_eq=flow, b_eq=supply)
    assert pkd.plan(mdp.model(), mdp.law()).value == pytest.approx(-solution.fun, abs=1e-8)


def test_riverswim_has_its_known_optimal_value() -> None:
    transitions = np.zeros((6, 2, 6))
    for s in range(6):
        transitions[s, 0, max(s - 1, 0)] = 1.0
        transitions[s, 1, [max(s - 1, 0), s, min(s + 1, 5)]] = (0.05, 0.6, 0.35)
    transitions[0, 1], transitions[5, 1] = (
        np.eye(6)[0] * 0.4 + np.eye(6)[1] * 0.6,
        np.eye(6)[4] * 0.4 + np.eye(6)[5] * 0.6,
    )
    rewards = np.zeros((6, 2))
    rewards[0, 0], rewards[5, 1] = 0.005, 1.0
    mdp = TabularMDP(transitions, rewards, horizon=20)
    assert pkd.plan(mdp.model(), mdp.law()).value == pytest.approx(3.3972639592, abs=1e-10)


@pytest.mark.parametrize(
    ("name", "horizon", "value"),
    [
        ("FrozenLake-v1", 20, 0.199132700835),
        ("FrozenLake-v1", 100, 0.744190287829),
        ("CliffWalking-v1", 30, -13.0),
    ],
)
def test_gymnasium_tables_have_their_known_optimal_values(
    name: str, horizon: int, value: float
) -> None:
    table = TabularMDP.from_gymnasium(name, horizon)
    assert pkd.plan(table).value == pytest.approx(value, abs=1e-10)
    assert optimum(table) == pytest.approx(value, abs=1e-11)


def test_taxi_ends_when_the_passenger_is_delivered() -> None:
    """The table of Taxi goes on after the drop, at -1 a step.

    Ended there, the mean over all 300 starts is 7.93 (Dietterich's taxi).
    """
    assert optimum(TabularMDP.from_gymnasium("Taxi-v4", 200)) == pytest.approx(7.93, abs=0.005)


def test_a_gymnasium_environment_brings_its_own_step_limit() -> None:
    assert (
        TabularMDP.from_gymnasium(gymnasium.make("FrozenLake-v1", is_slippery=False)).horizon == 100
    )


class Table(gymnasium.Env[int, int]):
    """0 leads to 1 and ends there half of the time, at a reward of 1.

    1 leads back to 0 without ending, at 10.
    """

    P = {0: {0: [(0.5, 1, 1.0, True), (0.5, 1, 1.0, False)]}, 1: {0: [(1.0, 0, 10.0, False)]}}  # noqa: RUF012 (the shape of Gymnasium)
    initial_state_distrib = np.array([1.0, 0.0])


def test_an_ending_in_a_state_that_is_also_passed_through_pays_nothing_more() -> None:
    """1, then half of the time 10, then 1 again: 1 + .5 (10 + 1) = 6.5."""
    assert optimum(TabularMDP.from_gymnasium(Table(), 3)) == pytest.approx(6.5)


def test_a_gymnasium_reward_is_the_expected_one() -> None:
    env = Table()
    env.P = {0: {0: [(0.25, 0, 4.0, False), (0.75, 0, -2.0, False)]}}
    env.initial_state_distrib = np.array([1.0])
    assert TabularMDP.from_gymnasium(env, 1).rewards.tolist() == [[-0.5]]


def test_an_environment_without_a_table_is_refused() -> None:
    with pytest.raises(
        pkd.ModelError,
        match=r"^CartPole-v1: expected a transition table in env.unwrapped.P, found none",
    ):
        TabularMDP.from_gymnasium("CartPole-v1", 5)


def test_an_environment_without_a_step_limit_needs_a_horizon() -> None:
    with pytest.raises(
        pkd.ModelError, match=r"^Table has no step limit of its own; give a horizon$"
    ):
        TabularMDP.from_gymnasium(Table())


def test_an_npz_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    saved = TabularMDP(
        **TWO, start=[0.25, 0.75], state_names=["low", "high"], action_names=["wait", "go"]
    )
    saved.save_npz(tmp_path / "two.npz")
    read = TabularMDP.from_npz(tmp_path / "two.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["two.npz"]
    assert read.transitions.tolist() == TWO["transitions"]
    assert (read.rewards.tolist(), read.horizon) == (TWO["rewards"], 3)
    assert read.start_distribution.tolist() == [0.25, 0.75]
    assert (read.state_names, read.action_names) == (("low", "high"), ("wait", "go"))


def test_a_horizon_given_by_hand_goes_before_that_of_the_file(tmp_path: Path) -> None:
    TabularMDP(**TWO).save_npz(tmp_path / "two.npz")
    assert TabularMDP.from_npz(tmp_path / "two.npz", horizon=9).horizon == 9


def test_a_start_state_of_an_npz_file_stays_a_state(tmp_path: Path) -> None:
    TabularMDP(**TWO, start=1).save_npz(tmp_path / "two.npz")
    assert TabularMDP.from_npz(tmp_path / "two.npz").start == 1


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (None, "found no such file"),
        (b"hello", "found a file of another kind"),
        ({"P": TWO["transitions"]}, r"found only \['P'\]; add horizon and r"),
        (
            {"P": np.array([{}]), "r": [[0.0]], "horizon": 1},
            "found a file of another kind",
        ),  # only pickle can read it
    ],
)
def test_a_file_that_cannot_be_read_gets_one_clear_error(
    tmp_path: Path, content: Any, found: str
) -> None:
    path = tmp_path / "bad.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.savez(path, **content)
    arrays = r"arrays P \(S, A, S\), r \(S, A\) and horizon"
    with pytest.raises(
        pkd.ModelError, match=rf"bad\.npz: expected an \.npz file with {arrays}, {found}$"
    ):
        TabularMDP.from_npz(path)


def change(**traits: Any) -> TabularMDP:
    return TabularMDP(**{**TWO, **traits})


BAD = """\
change(transitions=[[1, 2], [3]])
    transitions: expected numbers of shape (S, A, S), found list that is no array of numbers
change(transitions=np.zeros((2, 3)))
    transitions: expected numbers of shape (S, A, S), found shape (2, 3)
change(transitions=[[[0.5, 0.4], [1, 0]], [[0, 1], [0, 1]]])
    transitions[0, 0] sums to 0.9, not 1
change(transitions=[[[1.5, -0.5], [1, 0]], [[0, 1], [0, 1]]])
    transitions[0, 0] holds the negative probability -0.5
change(transitions=[[[np.nan, 1], [1, 0]], [[0, 1], [0, 1]]])
    transitions[0, 0] holds a number that is not finite
change(rewards=[0.0, 1.0])
    rewards: expected numbers of shape (S, A) = (2, 2), found shape (2,)
change(rewards=np.zeros((2, 2, 2)))
    rewards: expected numbers of shape (S, A) = (2, 2), found shape (2, 2, 2); average over s'
        first: (transitions * rewards).sum(axis=2)
change(rewards=[[0, np.inf], [0, 0]])
    rewards[0, 1] is inf, not a finite number
change(horizon=0)
    horizon is 0; expected a whole number >= 1
change(horizon=2.0)
    horizon is 2.0; expected a whole number >= 1
change(start=2)
    start: expected a state 0..1, found 2
change(start=[0.5, 0.6])
    start sums to 1.1, not 1
change(start=[1.0])
    start: expected a state 0..1 or 2 probabilities, found shape (1,)
change(state_names=['only'])
    state_names: expected 2 names (S = 2), found 1
change(action_names='abc')
    action_names is 'abc'; expected a list of 2 names
"""


@pytest.mark.parametrize(("call", "expected"), read_table(BAD))
def test_bad_numbers_get_one_clear_error(call: str, expected: list[str]) -> None:
    with pytest.raises(pkd.ModelError) as error:
        eval(call)
    assert list(error.value.findings) == expected


def test_all_findings_come_together() -> None:
    with pytest.raises(pkd.ModelError) as error:
        TabularMDP(**{**TWO, "horizon": -1, "start": 5, "rewards": [[np.nan, 0], [0, 0]]})
    assert len(error.value.findings) == 3


def test_many_bad_rows_are_counted_after_the_first_five() -> None:
    with pytest.raises(pkd.ModelError) as error:
        TabularMDP(np.zeros((4, 2, 4)), np.zeros((4, 2)), 1)
    assert len(error.value.findings) == 5
    assert error.value.findings[-1] == "transitions[2, 0] sums to 0, not 1 (and 3 more like it)"


def test_the_arrays_cannot_be_changed_afterwards() -> None:
    source = np.array(TWO["transitions"])
    mdp = TabularMDP(source, TWO["rewards"], 3)
    source[0, 0] = 7.0
    assert mdp.transitions[0, 0].tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        mdp.rewards[0, 0] = 1.0


def test_the_model_passes_every_check_with_its_law() -> None:
    mdp = random_mdp(3)
    pkd.check_model(mdp.model(), mdp.law())
    pkd.check_model(mdp.model(support=True), mdp.law())


def test_a_learner_is_told_nothing_about_supports_unless_asked() -> None:
    mdp = TabularMDP(**TWO)
    assert list(mdp.model().outcomes((0, 1))) == [0, 1]
    assert list(mdp.model(support=True).outcomes((0, 1))) == [0]


def test_a_branching_bound_below_the_truth_is_refused() -> None:
    assert TabularMDP(**TWO).model(branching=2).branching((0, 1)) == 2
    with pytest.raises(
        pkd.ModelError,
        match=r"^branching=1, but transitions\[0, 0\] has 2 successors; give at least 2, or None$",
    ):
        TabularMDP(**TWO).model(branching=1)


def test_names_become_labels() -> None:
    model = TabularMDP(**TWO, state_names=["low", "high"], action_names=["wait", "go"]).model()
    assert (model.x_label(1), model.y_label(None)) == ("high", "")
    assert (model.action_label(0), model.feature_label((1, 0))) == ("wait", "high, wait")


@given(seed=st.integers(0, 10_000))
def test_the_law_is_the_table(seed: int) -> None:
    mdp = random_mdp(seed, n_states=3, n_actions=2)
    law = mdp.law()
    assert len(law) == 6
    assert all(
        row == {t: p for t, p in enumerate(mdp.transitions[z].tolist()) if p > 0}
        for z, row in law.items()
    )


def test_the_law_has_no_entry_for_a_pair_that_does_not_exist() -> None:
    assert (2, 0) not in TabularMDP(**TWO).law()
    assert (-1, 0) not in TabularMDP(**TWO).law()


@pytest.mark.parametrize("make", [np.asarray, coo_array], ids=["dense", "sparse"])
def test_one_table_with_an_axis_of_steps_does_not_change(make: Any) -> None:
    """The horizon of a table with one for each step may be 1."""
    p, r = [[[0.5, 0.5], [0.1, 0.9]], [[0.2, 0.8], [1.0, 0.0]]], [[0.0, 1.0], [2.0, 3.0]]
    plain = pkd.TabularMDP(p, r, 3)
    axis = pkd.TabularMDP(make(np.array([p])), [r], 3)
    assert axis.transitions.shape == plain.transitions.shape
    assert axis.law()[0, 1] == {0: 0.1, 1: 0.9}
    assert pkd.plan(axis).value == pkd.plan(plain).value
