"""Rules of other papers, in numpy: each is a `PythonRule`.

Their words are in `pkd.rules.RULES`. With p the observed frequencies, N = N(z) and pairs (z, y') as
in `pkd.optimism`, each class says its formula first. They were proved for other settings than ours,
so none of them claims a guarantee.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import attrs

from pkd import lazy
from pkd.expect import field, flag, number, whole
from pkd.model import ModelError
from pkd.optimism import ALL_ROUNDS, ONE_ROUND, Facts, Floats, Pairs, PythonRule

if TYPE_CHECKING:
    import numpy as np
else:  # the command line lists these rules without it
    np = lazy.Heavy("numpy")


@attrs.frozen
class KLUCRL(PythonRule):
    """Optimism over a KL ball: max {qV : KL(p, q) <= c C_P / N}, with the radius of KL-UCRL.

    Filippi, Cappe and Garivier (2010), arXiv 1004.5229. With S outcomes, S A = |Z|, T = K H and

        B = log(2 e S^2 A log(T) / delta),
        C_P = S (B + log(B + 1/log T) (1 + 1/(B + 1/log T)))

    (log T is taken as at least 1). An unknown reward of range w gets the term
    w sqrt(log(4 S A log(T) / delta) / (1.99 N)), where S A is the number of unknown rewards.
    Published: a regret of order D S sqrt(A T) against the best average reward of one endless run of
    an MDP with diameter D. Here episodes are finite and features are shared, so that theorem does
    not apply: no guarantee. c: scales the radius; 1 as published. exact: the maximum to 1e-9 of the
    range, else an upper bound of it that is quicker. Without data a pair has the largest value of
    its outcomes.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 500, 1: 500}, (0, 1): {0: 1000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=KLUCRL())
    >>> round(found.value, 4)
    0.6001
    """

    c: float = attrs.field(default=1.0, validator=field(number))
    exact: bool = attrs.field(default=True, validator=field(flag))
    needs_episodes = True
    values_unseen = True

    def prepare(self, facts: Facts) -> Floats:
        size, log_t = np.diff(facts.ptr), self._log_t(facts)
        b = np.log(2 * math.e * size * facts.n_features * log_t / facts.delta)
        inner = b + 1 / log_t
        budget = self.c * size * (b + np.log(inner) * (1 + 1 / inner))
        found: Floats = budget / np.maximum(facts.N, 1e-300)
        return found

    def values(self, pairs: Pairs) -> Floats:
        from pkd.engine.set_values import largest_over_balls

        rounds = ALL_ROUNDS if self.exact else ONE_ROUND
        radius = np.where(pairs.N > 0, pairs.told[pairs.row], np.inf)
        p, v = (np.ascontiguousarray(part.T) for part in (pairs.P, pairs.V))
        gaps, out = np.empty(len(p)), np.empty(len(pairs.N))
        largest_over_balls(p, v, radius, rounds, gaps, out)
        return out

    def means(self, facts: Facts) -> Floats:
        level = math.log(4 * len(facts.low) * self._log_t(facts) / facts.delta)
        return _add_root(facts, self.c * level / 1.99)

    @staticmethod
    def _log_t(facts: Facts) -> float:
        return max(math.log(facts.episodes * facts.horizon), 1.0)

    @property
    def every_episode(self) -> bool:
        return False

    @property
    def name(self) -> str:
        title = "KL-UCRL" if type(self) is KLUCRL else type(self).__name__
        scale = "" if self.c == 1.0 else f", c={self.c:g}"
        return title + scale + ("" if self.exact else ", quick")


@attrs.frozen
class UCRL2(PythonRule):
    """Optimism over an L1 ball: max {qV : |q - p|_1 <= sqrt(c S log(2 A t / delta) / N)}.

    Jaksch, Ortner and Auer (2010), JMLR 11, with c = 14. S: outcomes of the feature; S A = |Z|, but
    A >= 1; t = 1 + the number of all samples so far. The best outcome gets half of the radius, the
    worst ones lose it. An unknown reward of range w gets w sqrt(c log(2 S A t / delta) / (4 N)),
    where S A is the number of unknown rewards (with c = 14 the published 7/2). Published: a regret
    of order D S sqrt(A T) against the best average reward of one endless run of an MDP with
    diameter D. Here episodes are finite and features are shared, so that theorem does not apply:
    no guarantee. Without data a pair has the largest value of its outcomes.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 5000, 1: 5000}, (0, 1): {0: 10000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=UCRL2())
    >>> round(found.value - 0.5, 6)  # half of the radius sqrt(28 log(80 * 20001) / 10000)
    0.099999
    """

    c: float = attrs.field(default=14.0, validator=field(number))
    values_unseen = True

    def prepare(self, facts: Facts) -> Floats:
        size = np.diff(facts.ptr)
        actions = np.maximum(facts.n_features / np.maximum(size, 1.0), 1.0)
        level = np.maximum(np.log(2 * actions / facts.delta) + self._log_t(facts), 0.0)
        found: Floats = np.sqrt(self.c * size * level / np.maximum(facts.N, 1e-300))
        return found

    def values(self, pairs: Pairs) -> Floats:
        """Mass C/2 goes from the outcomes with the largest gaps to the best one."""
        v, top = pairs.V.T, pairs.V.max(axis=1)
        gaps, p = top - v, pairs.P.T
        mean, gained = np.zeros((2, len(top)))
        for mass, gap in zip(p, gaps, strict=True):
            mean += mass * gap
        left = np.where(pairs.N > 0, 0.5 * pairs.told[pairs.row], np.inf)
        order = np.argsort(-gaps, axis=0, kind="stable")
        worst = (np.take_along_axis(part, order, axis=0) for part in (p, gaps))
        for mass, gap in zip(*worst, strict=True):
            moved = np.minimum(left, mass)
            gained += moved * gap
            left -= moved
        found: Floats = top - np.maximum(mean - gained, 0.0)
        return np.where(pairs.N > 0, found, top)

    def means(self, facts: Facts) -> Floats:
        level = math.log(2 * len(facts.low) / facts.delta) + self._log_t(facts)
        return _add_root(facts, 0.25 * self.c * max(level, 0.0))

    @staticmethod
    def _log_t(facts: Facts) -> float:
        return math.log(1.0 + float(facts.N.sum()))

    @property
    def every_episode(self) -> bool:
        return False

    @property
    def name(self) -> str:
        return type(self).__name__ + ("" if self.c == 14.0 else f", c={self.c:g}")


def _add_root(facts: Facts, level: float) -> Floats:
    """mean + (high - low) sqrt(level / N)."""
    n = np.maximum(facts.paid[0], 1e-300)
    found: Floats = facts.paid[1] + (facts.high - facts.low) * np.sqrt(level / n)
    return found


@attrs.frozen
class OPSRL(PythonRule):
    """Optimistic posterior sampling: the largest PV of `draws` laws P, for each pair (z, y').

    Tiapkin et al. (2022b), arXiv 2209.14414. The laws of a feature are drawn anew at every plan,
    from Dirichlet(counts, weight): the last outcome is an optimistic one whose value is the largest
    possible return to go, and it counts as `weight` samples. Outcomes that were never seen have
    mass 0, so a feature without data has the largest possible value. An unknown reward is the
    largest of as many draws from a Beta posterior, in which it counts as a fraction of heads of a
    coin that also showed `weight` heads. Published: a regret of order sqrt(H^3 S A T) for tables
    whose laws differ from step to step, with a number of draws that grows with log(S A H T). The
    constants of that theorem are not used here, and here steps share laws: no guarantee.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> many = {(0, 0): {0: 1e8, 1: 1e8}, (0, 1): {0: 1e8}}  # every draw is close to 1/2
    >>> found = pkd.optimistic_plan(coin.model(), many, episodes=10, optimism=OPSRL())
    >>> round(found.value, 3)
    0.5
    """

    draws: int = attrs.field(default=8, validator=field(whole, least=1))
    weight: float = attrs.field(default=1.0, validator=field(number, above=True))
    values_unseen = True

    @property
    def place(self) -> int:
        """Which of the values counts, from 1 for the largest."""
        return 1

    def prepare(self, facts: Facts) -> Floats:
        """(draws, features, 1 + B): the mass of the optimistic outcome, then the law."""
        from pkd.engine.random import draw_laws

        longest = int(np.diff(facts.ptr).max(initial=1))
        laws = np.zeros((self.draws, len(facts.N), longest + 1))
        draw_laws(facts.ptr, facts.counts, float(self.weight), facts.rng, laws)
        return laws

    def values(self, pairs: Pairs) -> Floats:
        found = np.zeros((self.draws, len(pairs.N)))
        for j, value in enumerate([pairs.cap, *pairs.V.T]):
            found += pairs.told[:, pairs.row, j] * value
        best: Floats = np.partition(found, -self.place, axis=0)[-self.place]
        return best

    def means(self, facts: Facts) -> Floats:
        from pkd.engine.random import draw_means

        found = np.zeros((self.draws, len(facts.low)))
        draw_means(facts.paid, facts.low, facts.high, float(self.weight), facts.rng, found)
        best: Floats = np.sort(found, axis=0)[-self.place]
        return best

    @property
    def name(self) -> str:
        weight = "" if self.weight == 1.0 else f", weight {self.weight:g}"
        return f"{type(self).__name__}, {self.draws} draws{weight}"


@attrs.frozen
class BayesUCBVI(OPSRL):
    """A quantile of PV under the posterior of P, for each pair (z, y').

    Tiapkin et al. (2022a), arXiv 2205.07704. The posterior is that of `OPSRL`, with one optimistic
    outcome. The quantile is taken among `draws` laws of each feature that are drawn anew at every
    plan (a Monte Carlo estimate, from the random numbers of the run): the value that a share
    `level` of them does not exceed. Published: a regret of order sqrt(H^3 S A T) for tables whose
    laws differ from step to step, with exact quantiles whose level grows with the counts. Here the
    level is fixed, the quantile is estimated, and steps share laws: no guarantee.

    >>> import pkd
    >>> from pkd.tables.coin import short_coin as coin
    >>> counts = {(0, 0): {0: 5000, 1: 5000}, (0, 1): {0: 10000}}
    >>> found = pkd.optimistic_plan(coin.model(), counts, episodes=10, optimism=BayesUCBVI())
    >>> round(found.value, 2)  # 1/2 + 1.28 * 0.005
    0.51
    """

    level: float = attrs.field(default=0.9, validator=field(number, above=True))
    draws: int = attrs.field(default=100, validator=field(whole, least=1))
    weight: float = attrs.field(default=1.0, validator=field(number, above=True))

    def __attrs_post_init__(self) -> None:
        if not self.level <= 1:
            raise ModelError(f"BayesUCBVI(level={self.level!r}): expected a number in (0, 1]")

    @property
    def place(self) -> int:
        return self.draws - math.ceil(self.level * self.draws - 1e-9) + 1

    @property
    def name(self) -> str:
        title = "Bayes-UCBVI" if type(self) is BayesUCBVI else type(self).__name__
        weight = "" if self.weight == 1.0 else f", weight {self.weight:g}"
        return f"{title}, quantile {self.level:g} of {self.draws} draws{weight}"
