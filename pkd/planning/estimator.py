"""A rule on one model: the belief that it fills from counts, and its logarithms as time goes on."""

from __future__ import annotations

import math

import attrs
import numpy as np

from pkd.engine import Compiled
from pkd.engine.belief import Belief, Tally
from pkd.engine.exogenous import settle
from pkd.model import ModelError
from pkd.optimism import Certified, Optimism
from pkd.planning.plan import estimate_seconds

MANY = 4  # outcomes; with so many or fewer the set of a feature is as narrow
EXACT_SECONDS = 0.2  # of a sweep: where it takes longer, reported intervals are the quick ones


def prove(compiled: Compiled) -> Certified:
    """The rule of reported intervals: all sets on all features, and their extremes exactly.

    An exact extreme takes some twenty times as long as a quick bound of it.
    """
    exact = estimate_seconds(compiled) <= EXACT_SECONDS
    return Certified(minimax=False, exact=exact, explore="everywhere")


def split(compiled: Compiled, delta: float) -> float:
    """The part of delta that is left to sets where the rest proves narrower upper values of V*."""
    return delta / 2 if _find_wide(compiled).any() else delta


def narrow(compiled: Compiled, belief: Belief, tally: Tally) -> Belief:
    """The same belief for an upper value of V* alone: features with many outcomes in smaller sets.

    V* is one function for each of the n_y (H + 1) places (step, y'), whatever the data are. For a
    fixed function f a bet on two assets proves p f <= max {q f : KL(p^, q) <= C'} at all times,

        N C' = log(n_y (H + 1) / (weight delta / 2)) + log(sqrt(pi) Gamma(N + 1) / Gamma(N + 1/2)),

    with the other half of delta: no number of outcomes. It does not hold for functions that the
    data have chosen, such as the values of the robust plan.
    """
    wide, n = _find_wide(compiled), tally.n
    places = math.log(compiled.n_y * (compiled.horizon + 1))
    found = belief.radius.copy()
    for z in np.flatnonzero(wide & (n > 0)).tolist():
        bet = 0.5 * math.log(math.pi) + math.lgamma(n[z] + 1) - math.lgamma(n[z] + 0.5)
        level = belief.budget[tally.rank[z]] + places + bet
        found[z] = min(found[z], level / n[z])
    told = belief.told
    if belief.asking is not None:  # families have cells, whatever their radius is
        told = np.concatenate([np.minimum(found, told[: len(found)]), told[len(found) :]])
    return belief._replace(radius=found, told=told)


def _find_wide(compiled: Compiled) -> np.ndarray:
    """Features with so many possible outcomes that a set pays for its dimension."""
    wide: np.ndarray = compiled.branching > MANY
    return wide


class Estimator:
    """The belief of a rule, brought up to date before each plan."""

    def __init__(
        self, compiled: Compiled, rule: Optimism, episodes: int | None, delta: float
    ) -> None:
        self.compiled, self.rule, self.delta = compiled, rule, delta
        self.bonus = settle(compiled, rule)
        self.timed = rule.log_factor_at(1) is not None  # its logarithm depends on the episode
        if episodes is None and self.bonus.needs_episodes and not self.timed:
            raise ModelError(
                f"{rule.label}: its logarithms depend on the number of episodes of the whole "
                "run; give episodes, or optimism=pkd.Certified()"
            )
        self.belief = compiled.optimistic(self.bonus, episodes or 1, delta)
        self.reward_bonus = compiled.reward_bonus(self.bonus, episodes or 1, delta)
        self.epoch = -1  # anytime rules: the logarithms hold for 2^epoch episodes

    def renew(self, k: int, tally: Tally) -> None:
        """Brings what depends on the episode up to date before episode k, from 1.

        The logarithms of an anytime rule are those of K = 2^j episodes and
        delta / ((j + 1) (j + 2)), with the least j for which episode k is one of the K and no
        feature has more than K H samples.
        """
        if self.timed:
            self.belief.ell[:] = self.reward_bonus[0] = self.rule.log_factor_at(k)
        if self.belief.asking is not None:
            self.belief = self.belief._replace(asking=attrs.evolve(self.belief.asking, k=k))
        if not self.bonus.anytime:
            return
        samples = math.ceil(tally.most_seen() / self.compiled.horizon)
        epoch = (max(k, samples) - 1).bit_length()
        if epoch != self.epoch:
            self.epoch = epoch
            delta = self.delta / divisor_of(epoch)
            self.compiled.fill_logarithms(self.belief.ell, self.bonus, 1 << epoch, delta)
            self.reward_bonus[0] = self.compiled.reward_bonus(self.bonus, 1 << epoch, delta)[0]

    def fill(
        self, tally: Tally, rng: np.ndarray, *, rank: bool, belief: Belief | None = None
    ) -> None:
        """Fills the belief, or another one of this rule, from counts."""
        target = self.belief if belief is None else belief
        self.compiled.estimate(target, tally, self.bonus, self.reward_bonus, rng, rank=rank)


def divisor_of(epoch: int) -> int:
    """By which delta is divided for the logarithms of an epoch; the parts of all sum to delta.

    >>> divisor_of(0), round(sum(1 / divisor_of(j) for j in range(1000)), 3)
    (2, 0.999)
    """
    return (epoch + 1) * (epoch + 2)
