"""Exogenous features: those that are seen equally often whatever is done, under every law.

A feature z is exogenous if, for every law, the expected number of draws from the law of z in an
episode does not depend on the policy. Data about it come by themselves, so there is nothing to
explore. It holds if and only if at every reachable decision state all actions have the same visits
to go of z, as polynomials in the entries of the laws. That identity is tested at a random point
modulo a random prime (Schwartz and Zippel): one backward sweep, exact, without a tolerance.

    u(s, a) = sum_y' P_Y(y' | s, a) [ w(z) + sum_x' P(x' | z) max_a' u(x', y', a') ]

Known probabilities become fractions. A group of features is tested at once with random weights w,
and a group that fails is halved. A false "exogenous" has a probability below 1e-10 (two primes
above 2^30, at most as many draws in an episode as there are steps); a false "not" is always safe.

A rule that explores only where it is needed takes their estimates as they are (`settle`).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import attrs
import numpy as np

from pkd.engine.compiled import Compiled
from pkd.engine.nodes.agreement import all_agree
from pkd.optimism import CERTIFIED, Bonus, Optimism

__all__ = ["find_exogenous", "settle"]

LEAST, MOST = 1 << 30, 1 << 31  # of a prime: products of two residues fit into 63 bits
MOST_WORK = 5e8  # branches that all sweeps together may read: about a second
MOST_STATES, MOST_OUTCOMES = 200_000, 300_000  # beyond them nothing is tested
SIMPLE = 10**6  # the largest denominator of a probability that is read as a simple fraction


def find_exogenous(compiled: Compiled, seeds: Sequence[int] = (0, 1)) -> np.ndarray:
    """Whether each unknown feature, then each unknown reward, is exogenous.

    Where the test would take too long, the features that are left count as not exogenous.

    >>> import pkd
    >>> from pkd.tables.coin import coin
    >>> find_exogenous(pkd.compile(coin.model())).any()
    np.False_
    """
    names = [*compiled.features, *(reward.feature for reward in compiled.rewards)]
    large = compiled.n_states > MOST_STATES or compiled.row_ptr[-1] > MOST_OUTCOMES
    if large or not names:
        return np.zeros(len(names), bool)
    explicit = compiled.explicit  # it may number the features otherwise
    found = _Test(explicit, seeds[0]).find(np.arange(len(names)))
    for seed in seeds[1:]:
        found = _Test(explicit, seed).find(np.flatnonzero(found))
    theirs = [*explicit.features, *(reward.feature for reward in explicit.rewards)]
    verdict = dict(zip(theirs, found.tolist(), strict=True))
    return np.array([verdict[z] for z in names], bool)


def settle(compiled: Compiled, rule: Optimism) -> Bonus:
    """The numbers of a rule for this model: with the features that it need not explore, if any.

    A feature is taken as it is estimated if it is exogenous and an episode teaches it at least as
    often as it visits it. While there is such a feature all others take the largest value over
    their sets alone: MVP-Est is proved for the fixed V*, and the values of the mixed model depend
    on the data.
    """
    bonus = rule.bonus()
    if bonus.form == CERTIFIED and (compiled.families or bonus.rate):
        bonus = attrs.evolve(bonus, free=math.inf, parts=1)  # the sets alone
    if not bonus.needed:
        return bonus
    if compiled.exogenous is None:
        model = compiled.model
        covered = model.samples is None or model.samples_cover_visits
        none = np.zeros(len(compiled.features) + len(compiled.rewards), np.bool_)
        compiled.exogenous = find_exogenous(compiled) if covered else none
    if not compiled.exogenous.any():
        return bonus
    return attrs.evolve(bonus, free=math.inf, parts=1, exogenous=compiled.exogenous)


class _Test:
    """One random point modulo one random prime."""

    def __init__(self, explicit: Any, seed: int) -> None:
        self.program, self.rng = explicit.full, random.Random(seed)
        self.prime = draw_prime(self.rng)
        ptr, unknown = self.program.row_ptr, len(explicit.features)
        self.features, self.rewards = unknown, len(explicit.rewards)
        self.branch_p = _fill_residues(self.program.branch_p, self.program.branch_ptr, self.prime)
        known = _fill_residues(explicit.known_p, ptr[unknown:] - ptr[unknown], self.prime)
        self.law = np.concatenate([self._draw_laws(ptr[: unknown + 1]), known])
        members = explicit.graph.members
        self.present = np.zeros((len(members.distinct), explicit.n_states), np.bool_)
        for row, nodes in enumerate(members.distinct):
            self.present[row, np.fromiter(nodes, np.int64)] = True
        t, stored = np.arange(explicit.horizon), len(members.distinct)
        again = stored - members.period + (t - stored) % members.period
        self.layers = np.where(t < stored, t, again)
        self.size = len(self.program.branch_p) + len(self.program.group_node)
        self.settled = len(explicit.flat.final[1]) + 1  # nodes of the settlement are numbered apart
        self.work = 0.0

    def _draw_laws(self, ptr: np.ndarray) -> np.ndarray:
        """Random residues that sum to 1 in each row."""
        drawn: list[int] = []
        for size in np.diff(ptr).tolist():
            row = [self.rng.randrange(self.prime) for _ in range(size - 1)]
            drawn += [*row, (1 - sum(row)) % self.prime]
        return np.array(drawn, np.int64)

    def find(self, asked: np.ndarray) -> np.ndarray:
        """Which of the features and rewards that are asked for are exogenous."""
        found, groups = np.zeros(self.features + self.rewards, bool), [asked]
        while groups and self.work < MOST_WORK:
            group = groups.pop()
            if not len(group):
                continue
            if self._agrees(group):
                found[group] = True
            elif len(group) > 1:
                groups += [group[: len(group) // 2], group[len(group) // 2 :]]
        return found

    def _agrees(self, group: np.ndarray) -> bool:
        paid = np.zeros(len(self.program.row_ptr) - 1 + self.rewards, np.int64)
        rows = len(self.program.row_ptr) - 1
        places = np.where(group < self.features, group, group - self.features + rows)
        paid[places] = [self.rng.randrange(1, self.prime) for _ in group]
        self.work += float(self.size) * self.program.horizon
        v = np.zeros((2, self.present.shape[1]), np.int64)
        settled = np.zeros(self.settled, np.int64)
        return bool(
            all_agree(
                self.program, self.prime, self.branch_p, self.law, paid[:rows], paid[rows:],
                self.present, self.layers, v, settled,
            )
        )  # fmt: skip


def _fill_residues(values: np.ndarray, ptr: np.ndarray, prime: int) -> np.ndarray:
    """Lists of probabilities as residues; each list sums to 1 exactly."""
    filled = np.zeros(len(values), np.int64)
    known: dict[bytes, list[int]] = {}
    for lo, hi in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        key = values[lo:hi].tobytes()
        if key not in known:
            known[key] = [
                p.numerator * pow(p.denominator, -1, prime) % prime
                for p in as_fractions(values[lo:hi].tolist())
            ]
        filled[lo:hi] = known[key]
    return filled


def as_fractions(probabilities: Sequence[float]) -> list[Fraction]:
    """Probabilities as fractions that sum to 1: the largest one takes what the others leave.

    >>> as_fractions([0.1, 0.2, 0.7])
    [Fraction(1, 10), Fraction(1, 5), Fraction(7, 10)]
    """
    found = [_simplify(p) for p in probabilities]
    if found:
        largest = found.index(max(found))
        found[largest] += 1 - sum(found)
    return found


@lru_cache(maxsize=1 << 16)
def _simplify(p: float) -> Fraction:
    """The simplest fraction that the float may stand for; else the float itself."""
    simple = Fraction(p).limit_denominator(SIMPLE)
    return simple if abs(simple - Fraction(p)) <= Fraction(p) / 2**50 else Fraction(p)


def draw_prime(rng: random.Random) -> int:
    """A random prime between 2^30 and 2^31.

    >>> draw_prime(random.Random(0)) > 2**30
    True
    """
    while not _is_prime(number := rng.randrange(LEAST + 1, MOST, 2)):
        pass
    return number


def _is_prime(number: int) -> bool:
    """Miller and Rabin; with these four bases it is exact for odd numbers below 3.2e9."""
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in (2, 3, 5, 7):
        power = pow(base, odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
