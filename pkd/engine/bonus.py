"""The mathematics of optimism for both engines: the bonus, its cap, estimates from counts.

Most functions here are inlined where they are used. With p the observed law of a feature z,
N = N(z), l = ell(z, y'), w the width of the values that can follow and `cap` the largest of them:

    value = min(cap, pV + factor sqrt(Var_p(V)) + scale w)     MAX: the larger of the two terms
    SUM, MAX:   factor = c1 sqrt(l / N),  scale = c2 l / N
    HOEFFDING:  factor = 0,               scale = c1 l / sqrt(N)
    CERTIFIED:  the largest value over a set of laws (`pkd.engine.set_values`), or SUM if smaller
"""

from __future__ import annotations

import numpy as np

from pkd.engine.confidence import evidence, radius
from pkd.engine.jit import inner, jit
from pkd.engine.random import dirichlet
from pkd.engine.set_values import gain
from pkd.optimism import ALL_ROUNDS, CERTIFIED, EXACT, HOEFFDING, MAX


@inner()
def factors(form, c1, c2, n, ell):
    """(factor of the standard deviation, scale of the width) for n samples."""
    if form == HOEFFDING:
        return 0.0, c1 * ell / np.sqrt(n)
    return c1 * np.sqrt(ell / n), c2 * ell / n


@inner()
def add_bonus(form, mean, variance, factor, term):
    """pV plus the bonus; term = scale * width. The cap is applied by the caller, who knows it."""
    deviation = factor * np.sqrt(max(variance, 0.0))
    return mean + (max(deviation, term) if form == MAX else deviation + term)


@inner()
def is_capped(n, free, scale):
    """Whether only the cap is left: too few samples, or a bonus as wide as all values."""
    return n <= free or scale >= 1.0


@jit()
def estimate(row_ptr, b, tally, prior, sets, paid, rank, rng, reward_bonus):
    """Fills a belief from counts: its laws, its means and for CERTIFIED its sets.

    prior, sets, paid: None where the rule draws no laws, has no sets, and the model no unknown
    rewards. The compiler leaves out the code for None. rank: features with new data get their rank.
    reward_bonus: (3, unknown rewards), ell, low and high.
    """
    ell, low, high = reward_bonus[0], reward_bonus[1], reward_bonus[2]
    estimate_laws(row_ptr, b, tally, prior, rng)
    if paid is not None:
        estimate_rewards(b, tally, ell, low, high)
    if sets is not None:  # on a line of its own: the compiler leaves out what is None
        estimate_sets(row_ptr, b, tally, paid, rank, low, high)


@inner()
def estimate_sets(row_ptr, b, tally, paid, rank, low, high):
    """Fills b.radius; an exact belief that is swept by the code of sets has none."""
    if b.form != CERTIFIED:
        return
    if rank:
        rank_new(row_ptr, tally)
    for z in range(b.n.shape[0]):
        begin, end = row_ptr[z], row_ptr[z + 1]
        b.radius[z] = 0.0
        if not b.exogenous[z]:
            b.radius[z] = radius(tally.counts, begin, end, b.bound[z], b.budget[tally.rank[z]])
    if paid is not None:
        estimate_reward_sets(b, tally, low, high)


@inner()
def estimate_laws(row_ptr, b, tally, prior, rng):
    """Fills b.p and b.n from counts: frequencies, or a Dirichlet draw with a prior.

    Known rows are there already. Without samples a law is uniform.
    """
    for z in range(b.n.shape[0]):
        lo, hi = row_ptr[z], row_ptr[z + 1]
        n = tally.n[z]
        b.n[z] = n
        if prior is not None:  # the compiler leaves out the other branch
            dirichlet(rng, tally.counts, prior, lo, hi, b.p)
        else:
            for i in range(lo, hi):
                b.p[i] = tally.counts[i] / n if n > 0.0 else 1.0 / (hi - lo)


@inner()
def estimate_rewards(b, tally, reward_ell, reward_low, reward_high):
    """Fills b.mean: optimistic, or without a bonus the observed mean or the middle of the range."""
    for w in range(b.mean.shape[0]):
        low, high, n = reward_low[w], reward_high[w], tally.rewards[0, w]
        if b.form == EXACT:
            b.mean[w] = tally.rewards[1, w] if n > 0.0 else 0.5 * (low + high)
        elif n <= b.free:
            b.mean[w] = high
        else:
            factor, scale = factors(b.form, b.c1, b.c2, n, reward_ell[w])
            variance, term = tally.rewards[2, w] / n, scale * (high - low)
            b.mean[w] = min(high, add_bonus(b.form, tally.rewards[1, w], variance, factor, term))


@inner()
def rank_new(row_ptr, tally):
    """Gives all features that have data for the first time the number of those that have data."""
    size, found = tally.n.shape[0], 0
    for z in range(size):
        found += tally.n[z] > 0.0 and row_ptr[z + 1] - row_ptr[z] > 1
    for w in range(tally.rewards.shape[1]):
        found += tally.rewards[0, w] > 0.0
    for z in range(size):
        if tally.rank[z] == 0 and tally.n[z] > 0.0 and row_ptr[z + 1] - row_ptr[z] > 1:
            tally.rank[z] = found
    for w in range(tally.rewards.shape[1]):
        if tally.rank[size + w] == 0 and tally.rewards[0, w] > 0.0:
            tally.rank[size + w] = found


@inner()
def estimate_reward_sets(b, tally, reward_low, reward_high):
    """Moves the means of unknown rewards to the edge of what is not refuted."""
    size = b.n.shape[0]
    for w in range(b.mean.shape[0]):
        n, mean, low, high = tally.rewards[0, w], tally.rewards[1, w], reward_low[w], reward_high[w]
        if b.exogenous[size + w]:
            b.mean[w] = mean if n > 0.0 else 0.5 * (low + high)
            continue
        edge = edge_of_mean(n, mean, low, high, b.budget[tally.rank[size + w]], b.sign)
        b.mean[w] = min(b.mean[w], edge) if b.sign > 0.0 else edge


@inner(allocates=True)
def edge_of_mean(n, mean, low, high, budget, sign):
    """The largest (sign 1) or least (sign -1) mean of a reward in [low, high] that is not refuted.

    A reward counts as a fraction of heads and tails: {mu : n kl(mean, mu) <= budget + evidence}.
    """
    if n <= 0.0 or high <= low:
        return high if sign > 0.0 else low
    share = min(max((mean - low) / (high - low), 0.0), 1.0)
    coin, gaps = np.empty(2), np.empty(2)
    coin[0], coin[1] = n * share, n * (1.0 - share)
    level = (budget + evidence(coin, 0, 2, 2.0)) / n
    coin[0], coin[1] = share, 1.0 - share
    gaps[0], gaps[1] = (0.0, 1.0) if sign > 0.0 else (1.0, 0.0)
    return mean + sign * (high - low) * gain(coin, 0, 1, gaps, 2, level, ALL_ROUNDS)


@inner()
def is_due(n, mark, spent):
    """Whether a plan is due after a sample that makes N(z) = n.

    mark = max(1, 2 N'(z)), N' being the count that the plan in force knows. Once some N(z) has
    reached its mark, the plan is due as soon as the excess of old counts,

        sum over samples of max(0, 1 / sqrt(N') - sqrt(2 / N)), and of max(0, 1 / N' - 2 / N),

    is the share `slack` of what the samples cost with present counts, sum 1 / sqrt(N), sum 1 / N;
    or if n >= 8 mark. Without slack this is at once.
    """
    spent[2] += 1.0 / np.sqrt(n)
    spent[4] += 1.0 / n
    if n < mark:
        return False
    old = max(1.0, 0.5 * mark)
    spent[1] += max(0.0, 1.0 / np.sqrt(old) - np.sqrt(2.0 / n))
    spent[3] += max(0.0, 1.0 / old - 2.0 / n)
    if n >= 8.0 * mark:
        return True
    return spent[1] >= spent[0] * spent[2] or spent[3] >= spent[0] * spent[4]


@inner()
def count(tally, row, place):
    """One more outcome of an unknown row. Returns whether a plan is due."""
    tally.counts[place] += 1.0
    tally.n[row] += 1.0
    return is_due(tally.n[row], tally.marks[row], tally.spent)


@inner()
def count_reward(tally, w, value, weight):
    """A reward seen `weight` times. Returns whether a plan is due.

    Moments are updated one by one: sums of squares would lose digits.
    """
    seen = tally.rewards
    seen[0, w] += weight
    d = value - seen[1, w]
    seen[1, w] += d * weight / seen[0, w]
    seen[2, w] += weight * d * (value - seen[1, w])
    return is_due(seen[0, w], tally.reward_marks[w], tally.spent)


@inner()
def most_seen(tally):
    """`Tally.most_seen` inside a kernel."""
    most = 0.0
    for z in range(tally.n.shape[0]):
        most = max(most, tally.n[z])
    for w in range(tally.rewards.shape[1]):
        most = max(most, tally.rewards[0, w])
    return most


@inner()
def set_marks(tally, factor):
    """`Tally.set_marks` inside a kernel."""
    for z in range(tally.n.shape[0]):
        tally.marks[z] = max(1.0, factor * tally.n[z])
    for w in range(tally.reward_marks.shape[0]):
        tally.reward_marks[w] = max(1.0, factor * tally.rewards[0, w])
