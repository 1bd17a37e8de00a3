"""Formulas as blind MDPs: the optimum against a SAT solver, against all assignments, and against
all sequences of actions.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd_delay import sat
from pkd_delay.theory.pomdp import unobservable_pomdp

CONTRADICTION = sat.Formula([(1, 2), (-1, 2), (1, -2), (-1, -2)])


def random_formula(seed):
    """Eight clauses of two literals over three variables: about as often satisfiable as not."""
    rng = np.random.default_rng(seed)
    picks = [rng.choice(3, size=2, replace=False) + 1 for _ in range(8)]
    return sat.Formula([[int(v) * int(rng.choice((-1, 1))) for v in pick] for pick in picks], 3)


def planned_actions(delayed):
    """The sequence that an optimal plan plays: it sees only the first state and its own queue."""
    plan, queue = pkd_delay.plan(delayed), ()
    for step in range(1, delayed.mdp.horizon + 1):
        queue = (*queue, plan.action(step, 0, queue, step - 1))
    return queue


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_contradiction_of_two_variables_is_worth_three_quarters_per_round(rounds):
    value = pkd_delay.plan(sat.delayed(CONTRADICTION, rounds)).value
    assert value == pytest.approx(0.75**rounds, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_one_exactly_when_a_solver_finds_the_formula_satisfiable(seed):
    solvers = pytest.importorskip("pysat.solvers")
    formula = random_formula(seed)
    with solvers.Solver(name="cadical153", bootstrap_with=map(list, formula.clauses)) as solver:
        satisfiable = solver.solve()
    assert (pkd_delay.plan(sat.delayed(formula)).value > 1 - 1e-9) is satisfiable


def find_best(formula):
    return max(formula.fraction(a) for a in product((False, True), repeat=3))


def test_the_random_formulas_are_of_both_kinds():
    assert {find_best(random_formula(seed)) == 1 for seed in range(12)} == {True, False}


clauses = st.lists(
    st.lists(st.integers(-3, 3).filter(bool), min_size=1, max_size=3), min_size=1, max_size=5
)


@given(clauses, st.integers(1, 2))
@settings(deadline=None, max_examples=40)
def test_the_optimum_is_the_best_fraction_to_the_power_of_the_rounds(literals, rounds):
    formula = sat.Formula(literals, 3)
    found = unobservable_pomdp(sat.blind_mdp(formula, rounds)).optimal_value()
    assert found == pytest.approx(find_best(formula) ** rounds, abs=1e-12)


@given(clauses, st.lists(st.integers(0, 1), min_size=7, max_size=7))
@settings(deadline=None, max_examples=40)
def test_a_sequence_is_worth_the_product_of_its_fractions(literals, actions):
    formula = sat.Formula(literals, 3)
    mdp = sat.blind_mdp(formula, rounds=2)
    where, total = mdp.start_distribution, 0.0
    for a in actions:
        total += where @ mdp.rewards[:, a]
        where = where @ mdp.transitions[:, a]
    assert sat.value_of(formula, actions) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_an_optimal_plan_reads_back_as_a_best_assignment(seed):
    formula = random_formula(seed)
    (assignment,) = sat.assignments_of(formula, planned_actions(sat.delayed(formula)))
    assert formula.fraction(assignment) == find_best(formula)


def test_assignments_survive_the_way_there_and_back():
    rounds = [(True, False), (False, False)]
    assert sat.assignments_of(CONTRADICTION, sat.played_by(rounds)) == rounds


def test_the_blind_mdp_has_the_stated_sizes():
    mdp = sat.blind_mdp(CONTRADICTION, rounds=3)
    assert (mdp.n_states, mdp.n_actions, mdp.horizon) == (1 + 3 * 2 * (4 + 1) + 1, 2, 1 + 3 * 2)


@pytest.mark.parametrize(("n_clauses", "gap"), [(4, 0.01), (8, 0.5), (100, 1e-3)])
def test_the_rounds_for_a_gap_are_the_fewest_that_open_it(n_clauses, gap):
    rounds = sat.rounds_for_gap(n_clauses, gap)
    assert (1 - 1 / n_clauses) ** rounds <= gap < (1 - 1 / n_clauses) ** (rounds - 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sat.Formula([(), (1,), ()], 1), "2 findings"),  # both empty clauses at once
        (lambda: sat.Formula([(1, 2)], 1), r"has the literal 2; expected 1\.\.1 or -1\.\.-1"),
        (
            lambda: sat.value_of(CONTRADICTION, (0, 1, 1, 0)),
            r"4 actions were given; expected 1 \+ rounds \* 2",
        ),
    ],
)
def test_empty_clauses_and_half_rounds_are_refused(call, message):
    with pytest.raises(pkd.ModelError, match=message):
        call()
