"""The price of a tick under one law: bounds on V_d(P) - V_{d+1}(P) that hold for every P at once.

To bound both values apart and to subtract asks one P for the first and another for the second. A
*payment* c(z, x') for each draw of x' from a feature z makes both say the same of P:

    V_d(P) - V_{d+1}(P) = [V_d(P) + phi(P)] - [V_{d+1}(P) + phi(P)],
    phi(P) = sum_z m(z; P) sum_x' P(x'|z) c(z, x'),   m(z; P) the expected number of visits of z.

The brackets are values of the model with the payments added to its rewards, if phi is the same for
all policies and for both delays. It is, if payments are made for *exogenous* features alone: every
policy of the undelayed model sees such a z equally often, under every law. m(z) is the value of the
reward 1 for a visit, so the largest and the smallest over all policies that remember and toss coins
are those over Markov policies, which agree. Whoever sees states late or acts late is, seen
from the base, a policy that remembers and tosses coins. So for every c,

    least V_d^c - largest V_{d+1}^c  <=  V_d(P) - V_{d+1}(P)  <=  largest V_d^c - least V_{d+1}^c

over the same set of laws. The event is that of the sets alone, so c may be chosen by the same data.
Good payments take away what P does to both values. The width of a bound grows with the variances
of V_{h+1} over x', and these sum up to the variance of the return, payments included. So c is the
least-squares fit of the returns of simulated episodes by how often they made each draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

import pkd
from pkd import PartiallyKnownMDP
from pkd.episode import list_visited
from pkd.model import Branch, Known, Law
from pkd.wrapped import Wrapped

__all__ = ["Paid", "PaidProblem", "draw_laws", "fit_payments"]

Payments = Mapping[tuple[Any, Any], float]  # {(z, x'): c}
EPISODES = 600  # from which payments are fitted
MOST_DRAWS = 250  # kinds of draws that payments are fitted for
RIDGE = 1e-3  # part of an episode: keeps payments apart that only occur together
LAWS = 60  # drawn from the posterior


class Paid(Wrapped):
    """The model with c(z, x') paid once after each draw of an x' from z; y is (y, z drawn last).

    >>> from pkd_examples.gambler import gambler
    >>> game = gambler(goal=4, capital=2)
    >>> pay = {("coin", "heads"): 1.0, ("coin", "tails"): 1.0}
    >>> model, law = Paid(game.model(), pay), game.law()
    >>> pkd.plan(model, law).value > pkd.plan(game).value  # one for each toss
    True
    """

    def __init__(self, base: PartiallyKnownMDP, payments: Payments) -> None:
        super().__init__(base)
        self.payments, self.return_range = payments, None
        self.features = frozenset(z for z, _ in payments)

    def first(self, x: Any, y: Any) -> Any:
        return x, (y, None)

    def actions(self, x: Any, y: Any) -> Any:
        return self.base.actions(x, y[0])

    def step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return [self._keep(branch) for branch in self.base.step(x, y[0], a)]

    def last_step(self, x: Any, y: Any, a: Any) -> list[Branch]:
        return [self._keep(branch) for branch in self.base.last_step(x, y[0], a)]

    def _keep(self, branch: Any) -> Branch:
        p, y, z = branch
        return p, (y, (z,) if not isinstance(z, Known) and z in self.features else None), z

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        paid: Any = self.base.reward(x, y[0], a)  # a number: unknown rewards get no payments
        return paid + self._pay(x, y)

    def final(self, x: Any, y: Any) -> float:
        return self.base.final(x, y[0]) + self._pay(x, y)

    def _pay(self, x: Any, y: Any) -> float:
        return 0.0 if y[1] is None else self.payments.get((y[1][0], x), 0.0)

    def y_label(self, y: Any) -> str:
        return self.base.y_label(y[0])


@attrs.frozen
class PaidProblem:
    """A problem without delays, with payments."""

    problem: pkd.Problem
    payments: Payments

    def model(self) -> Paid:
        return Paid(self.problem.model(), self.payments)

    def law(self) -> Law:
        return self.problem.law()


def fit_payments(
    base: PartiallyKnownMDP, late: Sequence[PartiallyKnownMDP], law: Law, seed: int = 0
) -> dict[tuple[Any, Any], float]:
    """Payments that make the returns of all `late` models vary least; none where none may be."""
    if any(pkd.compile(model).rewards or model.samples is not None for model in late):
        return {}
    exogenous = pkd.exploration(base).exogenous
    draws: dict[tuple[Any, Any], int] = {}
    counts, returns = list[dict[int, int]](), list[float]()
    for model in late:
        for episode in pkd.plan(model, law).simulate(EPISODES, seed=seed):
            row: dict[int, int] = {}
            for z, x in list_visited(model, episode):
                if z in exogenous:
                    place = draws.setdefault((z, x), len(draws))
                    row[place] = row.get(place, 0) + 1
            counts.append(row)
            returns.append(episode.total)
    if not draws or len(draws) > MOST_DRAWS:
        return {}
    table = np.zeros((len(counts), len(draws)))
    for i, row in enumerate(counts):
        table[i, list(row)] = list(row.values())
    paid = np.array(returns)
    for i in range(len(late)):  # each delay has its own mean
        part = slice(i * EPISODES, (i + 1) * EPISODES)
        table[part] -= table[part].mean(axis=0)
        paid[part] -= paid[part].mean()
    square = table.T @ table + RIDGE * len(counts) * np.eye(len(draws))
    found = np.linalg.solve(square, -table.T @ paid)
    return {draw: float(found[place]) for draw, place in draws.items()}


def draw_laws(
    base: PartiallyKnownMDP, counts: Mapping[Any, Mapping[Any, float]], seed: int = 0
) -> list[dict[Any, dict[Any, float]]]:
    """Laws from the posterior of Dirichlet(1/2) given the counts; they guarantee nothing."""
    rng = np.random.default_rng(seed)
    rows = {z: list(base.outcomes(z)) for z in pkd.compile(base).features}
    laws = []
    for _ in range(LAWS):
        law = {}
        for z, outcomes in rows.items():
            seen = counts.get(z, {})
            drawn = rng.dirichlet([seen.get(x, 0.0) + 0.5 for x in outcomes])
            law[z] = dict(zip(outcomes, map(float, drawn), strict=True))
        laws.append(law)
    return laws
