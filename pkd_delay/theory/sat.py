"""Why planning under delay is hard: a Boolean formula as an MDP that nobody can watch.

The formula is in conjunctive normal form.

The paper restates Theorem 6 of Burago, de Rougemont and Slissenko (1996): the optimum of an
unobservable MDP is NP-hard to approximate even when all transitions are known. The construction
here shows it. Nature secretly picks a clause; the agent sets the variables one by one; a literal
that holds saves the clause. Blind, the agent can only commit to an assignment, so the optimum is
the largest fraction of clauses that one assignment satisfies: 1 exactly when the formula is
satisfiable. R rounds, each with a fresh clause, must all be won: the optimum is that fraction to
the power R, which opens the gap. Blind means a constant delay of H - 1 or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, log, prod

import attrs
import numpy as np

import pkd
from pkd.expect import fraction, require, whole
from pkd_delay.delayed import DelayedMDP

Assignment = tuple[bool, ...]


def _clauses(clauses: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(clause) for clause in clauses)


@attrs.frozen
class Formula:
    """A conjunction of clauses.

    A clause is a disjunction of literals: 3 is x_3, -3 is not x_3.
    """

    clauses: tuple[tuple[int, ...], ...] = attrs.field(converter=_clauses)
    n_variables: int = attrs.field()

    @n_variables.default
    def _largest_variable(self) -> int:
        return max((abs(literal) for clause in self.clauses for literal in clause), default=0)

    def __attrs_post_init__(self) -> None:
        findings = [] if self.clauses else ["the formula has no clause; expected one at least"]
        for j, clause in enumerate(self.clauses):
            if not clause:
                findings.append(f"clause {j} is empty; expected literals such as (1, -2)")
            for literal in clause:
                if literal == 0 or abs(literal) > self.n_variables:
                    findings.append(
                        f"clause {j} has the literal {literal}; "
                        f"expected 1..{self.n_variables} or -{self.n_variables}..-1"
                    )
        require(findings)

    def fraction(self, assignment: Sequence[bool]) -> float:
        """The fraction of the clauses that an assignment of x_1..x_n satisfies."""
        met = [any(_holds(literal, assignment) for literal in clause) for clause in self.clauses]
        return sum(met) / len(met)


def blind_mdp(formula: Formula, rounds: int = 1) -> pkd.TabularMDP:
    """The MDP of a formula: 1 + R n (m + 1) + 1 states, 2 actions, H = 1 + R n, return 0 or 1.

    The first action does nothing but hide the choice of a clause, because a delayed MDP shows its
    first state. Then state (r, i, j) waits for x_i in round r with clause j still open, (r, i,
    safe) with the clause already satisfied; a clause still open after x_n is lost.
    """
    require(whole("rounds", rounds, 1))
    n, m = formula.n_variables, len(formula.clauses)
    safe, lost = m, 1 + rounds * n * (m + 1)

    def index(step: int, clause: int) -> int:
        """The state with `clause` (or safe) open at this step, counted over all rounds."""
        return 1 + step * (m + 1) + clause

    transitions = np.zeros((lost + 1, 2, lost + 1))
    rewards = np.zeros((lost + 1, 2))
    transitions[0, :, index(0, 0) : index(0, safe)] = 1 / m
    transitions[lost, :, lost] = 1.0
    for step, clause, value in np.ndindex(rounds * n, m + 1, 2):
        here, variable, last = index(step, clause), step % n + 1, step % n == n - 1
        holds = clause == safe or (variable if value else -variable) in formula.clauses[clause]
        if step == rounds * n - 1:
            rewards[here, value] = float(holds)
            transitions[here, value, lost] = 1.0  # the episode is over: any state will do
        elif not last:
            transitions[here, value, index(step + 1, safe if holds else clause)] = 1.0
        elif holds:
            transitions[here, value, index(step + 1, 0) : index(step + 1, safe)] = 1 / m
        else:
            transitions[here, value, lost] = 1.0
    names = ["entry"]
    for step in range(rounds * n):
        place = f"round {step // n + 1}, x{step % n + 1}"
        names += [f"{place}, clause {j}" for j in range(m)] + [f"{place}, safe"]
    states, actions = [*names, "lost"], ["false", "true"]
    return pkd.TabularMDP(
        transitions, rewards, 1 + rounds * n, state_names=states, action_names=actions
    )


def delayed(formula: Formula, rounds: int = 1) -> DelayedMDP:
    """The blind MDP as a delayed one: a delay of H - 1 shows no state while it matters."""
    mdp = blind_mdp(formula, rounds)
    return DelayedMDP.constant(mdp, mdp.horizon - 1, branching=len(formula.clauses))


def played_by(assignments: Iterable[Sequence[bool]]) -> tuple[int, ...]:
    """The actions that play one assignment per round.

    The first one has no effect; then 1 stands for true and 0 for false.
    """
    return (0, *(int(value) for assignment in assignments for value in assignment))


def assignments_of(formula: Formula, actions: Sequence[int]) -> list[Assignment]:
    """The assignment that a sequence of H actions plays in each round.

    It leads back from a blind plan to the formula.
    """
    n = formula.n_variables
    if len(actions) <= 1 or (len(actions) - 1) % n:
        raise pkd.ModelError(f"{len(actions)} actions were given; expected 1 + rounds * {n}")
    return [
        tuple(bool(a) for a in actions[first : first + n]) for first in range(1, len(actions), n)
    ]


def value_of(formula: Formula, actions: Sequence[int]) -> float:
    """The expected return of a blind sequence of actions.

    It is the product over rounds of the fraction of clauses that are satisfied.

    >>> value_of(Formula([(1, 2), (-1, 2), (1, -2), (-1, -2)]), (0, 1, 1, 0, 1))
    0.5625
    """
    return prod(formula.fraction(one) for one in assignments_of(formula, actions))


def rounds_for_gap(n_clauses: int, gap: float) -> int:
    """The fewest rounds R with (1 - 1/m)^R <= gap.

    After them an unsatisfiable formula of m clauses has an optimum of at most `gap`.
    """
    require(whole("n_clauses", n_clauses, 1), fraction("gap", gap))
    return 1 if n_clauses == 1 else ceil(log(gap) / log(1 - 1 / n_clauses))


def _holds(literal: int, assignment: Sequence[bool]) -> bool:
    return bool(assignment[abs(literal) - 1]) == (literal > 0)
