"""The regret of `pkd.Certified` where it explores only what acting decides, as a number.

docs/explanations/exploration.md has the proofs. Z is split: F, the features that are seen equally
often whatever is done, and E, all others. Plans take the estimate on F and the largest value over
the sets alone on E.
"""

from __future__ import annotations

from math import comb, e, lgamma, log, sqrt

import numpy as np

from pkd.engine import Compiled, compile
from pkd.engine.exogenous import settle
from pkd.expect import failure, fraction, if_given, number, require
from pkd.explore.sizes import measure
from pkd.model import ModelError, PartiallyKnownMDP
from pkd.optimism import Certified
from pkd.theory.bounds import Bound

LOSS = 1 / (1 - 1 / e)  # what a count may fall behind its expectation, by exp(-x) <= 1 - x / LOSS
DEVIATION, RANGE = 2 * sqrt(2), 7 / 3  # of one step: 2 sqrt(2 Var C) + (7/3) R C


def certified_bound(
    model: PartiallyKnownMDP | Compiled,
    episodes: float,
    delta: float = 0.05,
    *,
    rate: float | None = None,
) -> Bound:
    """The regret of K episodes is at most this, with probability 1 - 2 delta.

        R (4 sqrt(2) sqrt(K D sum_F beta) + 4 c sqrt(K D sum_E beta) + L M (18 |F| + 2 c |E|))

    R: the widest range of returns. D: the most draws of an episode from unknown laws. M: the most
    samples of one feature in an episode. beta(z): a bound on N(z) C(z). L = log(|Z| / delta),
    c = e / (e - 1). Unknown rewards count as features. Where F is empty the variance of a whole
    return replaces D, and the smaller number is given:

        2 sqrt(2) R sqrt(K S) + (62/3) R S,    S = c sum_z (2 beta (1 + log(K M)) + M (1 + L))

    rate: that of `pkd.Certified(rate=c)`. It adds 2 R sum_E sqrt(beta M K / c) to the first number.

    What is proved: for `pkd.Certified()` where F is not empty, and otherwise for
    `pkd.Certified(minimax=False)`, the second number for `exact=True` alone; with plans before
    every episode or whenever some N(z) has doubled ("every", "doubling"); in a model whose episodes
    teach each feature at least as often as they visit it. One that does not say so is refused.

    >>> import pkd
    >>> round(certified_bound(pkd.as_problem("admission").model(), 20_000))
    12842010
    """
    require(number("episodes", episodes, 1), failure("delta", delta))
    require(if_given(fraction, "rate", rate))
    compiled = compile(model).explicit
    own = compiled.model
    if own.samples is not None and not own.samples_cover_visits:
        raise ModelError(
            f"{type(own).__name__} has samples of its own and does not declare "
            "samples_cover_visits = True; the theorem needs that each feature is taught at least "
            "as often as it is visited"
        )
    if compiled.families:
        raise ModelError(
            f"{type(own).__name__} declares families of laws; the theorem is proved for features "
            "without one"
        )
    found, exogenous = measure(compiled), settle(compiled, Certified()).exogenous
    sizes = [*map(len, compiled.outcomes), *(2 for _ in compiled.rewards)]
    supports = [*compiled.branching.tolist(), *(2 for _ in compiled.rewards)]
    fixed = np.zeros(len(sizes), bool) if exogenous is None else exogenous
    learned = [i for i, size in enumerate(sizes) if size > 1]
    most, K = found.most_visits, float(episodes)
    draws = most * len(learned)
    if own.samples is None:
        draws = min(draws, found.unknown_moves + most * found.n_rewards)
    union = log(2 * max(len(learned), 1) / delta)
    beta = {i: union + largest_evidence(sizes[i], int(supports[i]), K * most) for i in learned}
    known, sought = ([i for i in learned if fixed[i] == side] for side in (True, False))
    tail = max(log(max(len(learned), 1) / delta), 1.0)
    R, first, second = found.width, sum(beta[i] for i in known), sum(beta[i] for i in sought)
    leading = 4 * sqrt(2 * K * draws * first) + 4 * LOSS * sqrt(K * draws * second)
    bound = Bound(R * leading, R * tail * most * (18 * len(known) + 2 * LOSS * len(sought)))
    if rate is not None:
        added = 2 * R * sum(sqrt(beta[i] * most * K / rate) for i in sought)
        return Bound(bound.leading + added, bound.lower_order)
    if known or not sought:
        return bound
    spent = LOSS * sum(2 * beta[i] * (1 + log(K * most)) + most * (1 + tail) for i in sought)
    other = Bound(DEVIATION * R * sqrt(K * spent), (2 * RANGE + 2 * DEVIATION**2) * R * spent)
    return min(bound, other)


def largest_evidence(outcomes: int, branching: int, samples: float) -> float:
    """A bound on log(prod p^^n / w(n)) for up to so many samples, whatever they show.

    With k outcomes seen the mixture has at least the weight 1 / (B C(m, k)) on their support, and
    Dirichlet(1/2) on k outcomes is worst where one of them is seen alone.

    >>> from pkd.certification.confidence import evidence
    >>> evidence([30, 70]) < largest_evidence(2, 2, 100)
    True
    """

    def alone(k: int) -> float:
        one, half = lgamma(samples + k / 2) - lgamma(k / 2), lgamma(0.5) - lgamma(samples + 0.5)
        return log(comb(outcomes, k)) + one + half

    return log(branching) + max(map(alone, range(1, branching + 1)))
