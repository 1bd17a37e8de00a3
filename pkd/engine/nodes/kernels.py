"""Backward sweeps and the fused learning loop over a list of nodes.

A node is a state (x, y). A *cell* holds the actions of a node in one part of an episode; an action
is a list of branches (probability, reward, pair); a *pair* (z, y') is a law row with the nodes
(x', y') that it leads to. The value of a pair is computed once and looked up by every branch that
uses it. Pairs that lead to the same nodes form a *group*: their rows stand side by side in a small
matrix, so that one pass over the nodes serves them all. *Levels* come in an order in which every
value is ready when it is read: the decisions of a layer, then its CHANCE states by topological
order. Letters: H h z p v q as in the paper; e is the value of a pair, n the count N(z), t = h - 1
the layer.

A worked example, a coin table with the states 0 and 1, the actions 0 and 1, y = None, z = (s, a):
two nodes, two cells, four actions with one branch each, four pairs, and one group of all four
pairs, because all of them lead to the nodes (0, None) and (1, None). A sweep multiplies the 2 x 4
matrix of laws by the two values of the next layer, and each cell takes the larger of its two pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.engine.bonus import (
    estimate,
    factors,
    hope,
    is_capped,
    keep_largest,
    most_seen,
    set_marks,
)
from pkd.engine.jit import inner, jit
from pkd.engine.nodes.walk import rollout
from pkd.engine.set_values import (
    CERTAIN,
    Place,
    gain,
    gain_at_once,
    gain_l1,
    gains_at_once,
    sort_gaps,
)
from pkd.optimism import CERTIFIED, KL_BALL, NO_BONUS, ONE_ROUND, SUM

STEP, LAST, CHANCES = (
    0,
    1,
    2,
)  # levels: decisions before the last action, last decisions, then CHANCE


class Program(NamedTuple):
    """What a sweep computes, without any law."""

    horizon: int
    levels: np.ndarray  # (levels, 4): cell from, to, group from, to
    settlement: int  # the first level of the settlement
    cell_node: np.ndarray  # (cells,)
    cell_choice: np.ndarray  # (cells,) place of a decision in a policy
    cell_first: np.ndarray  # (cells,) the first layer with this cell; ascending within a level
    cell_last: np.ndarray  # (cells,)
    action_ptr: np.ndarray  # (cells + 1,)
    action_mean: np.ndarray  # (actions,) which unknown reward is added, or -1
    branch_ptr: np.ndarray  # (actions + 1,)
    branch_p: np.ndarray  # (branches,)
    branch_reward: np.ndarray  # (branches,)
    branch_pair: np.ndarray  # (branches,) a pair, or -1 - node where a known law leads to one node
    pair_row: np.ndarray  # (pairs,) law row; rows from n_unknown on are known
    pair_weight: np.ndarray  # (pairs,) which ell, or 0 for a known row
    pair_group: np.ndarray  # (pairs,)
    group_pair: np.ndarray  # (groups + 1,) its pairs: all of unknown rows, or all of known ones
    group_ptr: np.ndarray  # (groups + 1,)
    group_node: np.ndarray  # (targets,) in the order of the outcomes of its rows
    group_matrix: np.ndarray  # (groups,) where its rows stand in `packed`
    group_first: np.ndarray  # (groups,) the first layer that needs it; ascending within a level
    group_last: np.ndarray  # (groups,)
    row_ptr: np.ndarray  # (law rows + 1,)
    n_unknown: int
    packing: np.ndarray  # (packed,): which element of `Belief.p` stands in each place of `packed`
    start_node: np.ndarray  # (starts,)
    start_p: np.ndarray  # (starts,)


class Scratch(NamedTuple):
    """Memory of one call. Nothing of it outlives the call, so calls may run side by side."""

    v: np.ndarray  # (2, nodes): V of a layer, with END filled in
    settled: np.ndarray  # (nodes of the settlement,), with stopping states filled in
    e: np.ndarray  # (pairs,)
    packed: np.ndarray  # for each group a matrix (outcomes, pairs) of probabilities
    seen: np.ndarray  # (law rows,) the first outcome of positive probability
    rows: np.ndarray  # (7, largest group)
    bonus: np.ndarray  # (2, pairs): factor and scale of the bonus; infinite: only the cap is left
    cap: np.ndarray  # (layers, groups): caps on pV + bonus; one layer where they do not depend on h
    width: np.ndarray  # (layers, groups)
    q: np.ndarray  # (actions,) Q of one layer, where it is asked for
    kept: np.ndarray  # (nodes,) V of that layer


class Other(NamedTuple):
    """Memory of the rules L1_BALL and DRAWS. What a rule does not need is None."""

    gaps: np.ndarray | None  # (most outcomes of a row,)
    order: np.ndarray | None  # (most outcomes of a row,)
    draws: np.ndarray | None  # of the belief
    best: np.ndarray | None  # (the place of the value that counts,)


class SetMemory(NamedTuple):
    """Memory that only values over sets of laws need; all but `gaps` is for pairs one by one.

    Where no pair is taken by itself the rest is None, and no code for it is compiled.
    """

    gaps: np.ndarray  # (most outcomes of a row,)
    seen_gaps: np.ndarray | None  # (most outcomes of a row,) those of one row's seen outcomes
    p: np.ndarray | None  # (most outcomes of a row,) their probabilities
    # (unknown rows,): its outcomes of positive probability end here in `seen`
    end: np.ndarray | None
    seen: np.ndarray | None  # (outcomes of unknown rows,), from row_ptr[z] on


# From so many outcomes on a row is mostly unseen: pairs then take their seen outcomes one by one.
# So do exact values, which need a search for each pair.
MANY = 16
NEXT = Place(1)


@inner()
def list_seen(row_ptr, p, end, seen):
    """Lists the outcomes of positive probability of each unknown row."""
    if seen is not None:  # the compiler leaves out what is None
        for z in range(end.shape[0]):
            k = row_ptr[z]
            for i in range(row_ptr[z], row_ptr[z + 1]):
                if p[i] > 0.0:
                    seen[k] = i - row_ptr[z]
                    k += 1
            end[z] = k


@inner()
def pack(g, b, s):
    """Brings `packed` and `seen` up to date with the law of a belief."""
    for i in range(g.packing.shape[0]):
        s.packed[i] = b.p[g.packing[i]]
    for row in range(s.seen.shape[0]):
        s.seen[row] = 0
        for i in range(g.row_ptr[row], g.row_ptr[row + 1]):
            if b.p[i] > 0.0:
                s.seen[row] = i - g.row_ptr[row]
                break


@inner()
def fill_bonus(g, b, out):
    """The factor and the scale of the bonus of each pair: the same in every layer."""
    for i in range(g.pair_row.shape[0]):
        z = g.pair_row[i]
        if z < g.n_unknown:
            factor, scale = factors(b.form, b.c1, b.c2, b.n[z], b.ell[g.pair_weight[i]])
            out[0, i] = factor
            out[1, i] = np.inf if is_capped(b.n[z], b.free, scale) else scale


@jit(nogil=True)
def sweep(g, b, s, sets, other, policy, follow, keep, top, bottom):
    """V_h for h = H..1 into s.v[(h - 1) % 2]; returns V_1 and whether the policy changed.

    Only the layers top..bottom, the later ones first: H..0 are all. A caller that sweeps a part at
    a time can be interrupted in between.

        e(z, y') = min(cap, pV(., y') + bonus)
        Q = sum_y' P_Y(y') min(ceiling, r + e)
        V = max_a Q

    CERTIFIED: e is the largest or the least value over a set of laws, see `value_over_sets`.
    sets: its memory; None: its code is not compiled. other: `Other` for L1_BALL and DRAWS; None for
    all other forms.
    A known z gets e = pV and is exempt from the ceiling. keep: the layer of which Q goes into s.q
    and V into s.kept, or -1. It is one function because it is compiled and called as one: passing
    all arrays to parts of it would cost more than the arithmetic.
    """
    if top == g.horizon:
        pack(g, b, s)
        if sets is not None and b.form in (CERTIFIED, KL_BALL):
            list_seen(g.row_ptr, b.p, sets.end, sets.seen)
        elif other is None and b.form != NO_BONUS:
            fill_bonus(g, b, s.bonus)
    # Not more than three in a line: from four on Python makes a tuple of them.
    levels, settlement = g.levels, g.settlement
    horizon, n_unknown = g.horizon, g.n_unknown
    group_first, group_last = g.group_first, g.group_last
    group_pair, group_ptr, group_node = g.group_pair, g.group_ptr, g.group_node
    group_matrix, pair_row = g.group_matrix, g.pair_row
    form, factor, scale = b.form, s.bonus[0], s.bonus[1]
    cell_first, cell_last = g.cell_first, g.cell_last
    cell_node, cell_choice = g.cell_node, g.cell_choice
    action_ptr, action_mean, means = g.action_ptr, g.action_mean, b.mean
    branch_ptr, branch_p = g.branch_ptr, g.branch_p
    branch_reward, branch_pair = g.branch_reward, g.branch_pair
    v, settled, e = s.v, s.settled, s.e
    packed, seen = s.packed, s.seen
    caps, widths = s.cap, s.width
    mean, square, shift = s.rows[0], s.rows[1], s.rows[2]
    ceiling = np.inf if form == NO_BONUS else b.ceiling
    changed = False
    for t in range(top, bottom - 1, -1):
        layer = t if caps.shape[0] > 1 else 0
        for level in range(levels.shape[0]):
            if (level >= settlement) != (t == horizon):
                continue
            if (level == STEP and t == horizon - 1) or (level == LAST and t < horizon - 1):
                continue
            target = settled if t == horizon else v[t % v.shape[0]]
            source = (
                target
                if level >= CHANCES
                else settled
                if level == LAST
                else v[(t + 1) % v.shape[0]]
            )
            for group in range(levels[level, 2], levels[level, 3]):
                if group_first[group] > t:
                    break
                if group_last[group] < t:
                    continue
                first, pairs = group_pair[group], group_pair[group + 1] - group_pair[group]
                at, size, matrix = (
                    group_ptr[group],
                    group_ptr[group + 1] - group_ptr[group],
                    group_matrix[group],
                )
                if form == NO_BONUS or pair_row[first] >= n_unknown:
                    if size == 1:
                        for i in range(pairs):
                            e[first + i] = source[group_node[at]]
                        continue
                    for i in range(pairs):
                        mean[i] = 0.0
                    for j in range(size):
                        v_j, place = source[group_node[at + j]], Place(matrix + j * pairs)
                        for i in range(Place(pairs)):
                            mean[i] += packed[place + i] * v_j
                    for i in range(pairs):
                        e[first + i] = mean[i]
                    continue
                cap, width, open_pairs = caps[layer, group], widths[layer, group], 0
                if sets is not None and form in (CERTIFIED, KL_BALL):
                    value_over_sets(
                        source, group_node, at, size, packed, matrix, first, pairs, pair_row,
                        g.pair_weight, b.n, b.ell, b.radius, b.sign, b.rounds, b.c1, b.c2, b.free,
                        b.p, g.row_ptr, sets.gaps, sets.seen_gaps, sets.p, sets.end, sets.seen,
                        cap, width, s.rows, e,
                    )  # fmt: skip
                    continue
                if other is not None:
                    value_of_others(
                        other.gaps, other.order, other.draws, other.best, source, group_node, at,
                        size, packed, matrix, first, pairs, pair_row, b.radius, g.row_ptr,
                        n_unknown, min(cap, ceiling), e,
                    )  # fmt: skip
                    continue
                for i in range(pairs):
                    open_pairs += 1 if scale[first + i] < np.inf else 0
                    mean[i] = 0.0
                    square[i] = 0.0
                    # Moments around a point of the support: E[V^2] - m^2 would lose digits.
                    shift[i] = source[group_node[at + seen[pair_row[first + i]]]]
                if open_pairs > 0:
                    for j in range(size):
                        v_j, place = source[group_node[at + j]], Place(matrix + j * pairs)
                        for i in range(Place(pairs)):
                            d = v_j - shift[i]
                            w = packed[place + i] * d
                            mean[i] += w
                            square[i] += w * d
                for i in range(pairs):
                    if scale[first + i] < np.inf:
                        variance, term = square[i] - mean[i] * mean[i], scale[first + i] * width
                        value = hope(form, shift[i] + mean[i], variance, factor[first + i], term)
                        e[first + i] = min(cap, value)
                    else:
                        e[first + i] = cap
            for cell in range(Place(levels[level, 0]), Place(levels[level, 1])):
                if cell_first[cell] > t:
                    break
                if cell_last[cell] < t:
                    continue
                lo, hi = Place(action_ptr[cell]), Place(action_ptr[cell + NEXT])
                if follow and level < CHANCES:
                    lo += Place(policy[t, cell_choice[cell]])
                    hi = lo + NEXT
                best = 0.0
                which = Place(0)
                for a in range(lo, hi):
                    extra = means[action_mean[a]] if action_mean[a] >= 0 else 0.0
                    q = 0.0
                    for k in range(Place(branch_ptr[a]), Place(branch_ptr[a + NEXT])):
                        pair = branch_pair[k]
                        after = e[pair] if pair >= 0 else source[-1 - pair]
                        value = branch_reward[k] + extra + after
                        if pair >= 0 and value > ceiling and pair_row[pair] < n_unknown:
                            value = ceiling
                        q += branch_p[k] * value
                    if t == keep:
                        s.q[a] = q
                    if a == lo or q > best:
                        best = q
                        which = a - lo
                target[cell_node[cell]] = best
                if level < CHANCES and not follow and policy[t, cell_choice[cell]] != which:
                    policy[t, cell_choice[cell]] = which
                    changed = True
        if t == keep:
            for node in range(v.shape[1]):
                s.kept[node] = v[t % v.shape[0], node]
    value = 0.0
    for i in range(g.start_node.shape[0]):
        value += g.start_p[i] * v[0, g.start_node[i]]
    return value, changed


@inner()
def value_over_sets(
    v, nodes, at, size, packed, matrix, first, pairs, pair_row, pair_weight, n, ells, radius, sign,
    rounds, c1, c2, free, p, row_ptr, gaps, seen_gaps, seen_p, end, seen, cap, width, rows, e,
):  # fmt: skip
    """e = the largest (sign 1) or least (sign -1) q.V over {q : KL(p, q) <= C(z)}, for one group.

    It is the smaller of that and MVP-Est where N(z) > free. Gaps are in units of the range of V
    over all outcomes, seen or not: one maximum for all pairs of the group. rows: (7, pairs) at
    least. The compiler is the reason for the parameters: passing the tuples that hold them would
    double its time, and cost more than the arithmetic.
    """
    edge = other = v[nodes[at]]
    for j in range(at + 1, at + size):
        edge, other = max(edge, v[nodes[j]]), min(other, v[nodes[j]])
    spread = edge - other
    if spread <= 0.0:
        for i in range(pairs):
            e[first + i] = edge
        return
    if sign < 0.0:
        edge = other
    unit = 1.0 / spread
    a, square = rows[0], rows[1]
    level, gains = rows[2], rows[3]
    for j in range(size):
        gaps[j] = abs(edge - v[nodes[at + j]]) * unit
    for i in range(pairs):
        level[i] = radius[pair_row[first + i]]
    few = size < MANY
    if few and pairs == 1:
        a[0], square[0], gains[0] = gain_at_once(packed, matrix, gaps, size, level[0])
    elif few:
        gains_at_once(packed, matrix, pairs, gaps, size, level, a, square, rows[4:], gains)
    for i in range(pairs):
        z = pair_row[first + i]
        if level[i] >= CERTAIN:  # nothing is refuted
            e[first + i] = edge
            continue
        if seen is not None and (not few or rounds > ONE_ROUND):
            begin = row_ptr[z]
            count = end[z] - begin
            a[i] = square[i] = 0.0
            for k in range(count):
                j = seen[begin + k]
                seen_p[k], seen_gaps[k] = p[begin + j], gaps[j]
                a[i] += seen_p[k] * gaps[j]
            for k in range(count):
                square[i] += seen_p[k] * (seen_gaps[k] - a[i]) ** 2
            gains[i] = gain(seen_p, 0, 1, seen_gaps, count, level[i], rounds)
        mean = edge - sign * spread * a[i]
        value, number = mean + sign * spread * gains[i], n[z]
        if number > free:
            factor, scale = factors(SUM, c1, c2, number, ells[pair_weight[first + i]])
            if not is_capped(number, free, scale):
                variance = spread * spread * square[i]
                value = min(value, cap, hope(SUM, mean, variance, factor, scale * width))
        e[first + i] = value


@inner()
def value_of_others(
    gaps, order, draws, best, v, nodes, at, size, packed, matrix, first, pairs, pair_row, radius,
    row_ptr, n_unknown, top, e,
):  # fmt: skip
    """e of one group: the largest q.V over an L1 ball, or one of the largest values of the draws.

    top: the value of the optimistic outcome of the draws.
    """
    if draws is not None:  # the compiler leaves out what is None
        for i in range(pairs):
            z = pair_row[first + i]
            place, extra = row_ptr[z], row_ptr[n_unknown] + z
            for k in range(best.shape[0]):
                best[k] = -np.inf
            for k in range(draws.shape[0]):
                value = draws[k, extra] * top if draws[k, extra] > 0.0 else 0.0
                for j in range(size):
                    value += draws[k, place + j] * v[nodes[at + j]]
                keep_largest(best, value)
            e[first + i] = best[best.shape[0] - 1]
    if order is not None:
        edge = v[nodes[at]]
        for j in range(size):
            edge, order[j] = max(edge, v[nodes[at + j]]), j
        for j in range(size):
            gaps[j] = edge - v[nodes[at + j]]
        sort_gaps(gaps, size, order)
        for i in range(pairs):
            mean, C = 0.0, radius[pair_row[first + i]]
            for j in range(size):
                mean += packed[matrix + i + pairs * j] * gaps[j]
            gained = gain_l1(packed, matrix + i, pairs, gaps, order, size, C)
            e[first + i] = edge - max(mean - gained, 0.0)


@jit(nogil=True)
def learn(
    g, walk, b, truth, s, truth_s, sets, paid, most, world, tally, prior, reward_ell, reward_low,
    reward_high, rng, state, policy, path, upper, value, returns,
):  # fmt: skip
    """A plan before every episode, an episode, and again: the loop of `pkd.learning`, fused.

    Returns how many episodes were played; a certified rule stops as soon as some N(z) exceeds
    `most`. paid: None if there are no unknown rewards, so that their code is not compiled.
    state: (2,): the upper value of the plan in force and the true value of its policy, carried from
    call to call. The compiler is the reason for so many parameters.
    """
    for k in range(upper.shape[0]):
        estimate(
            g.row_ptr, b, tally, prior, sets, paid, True, rng, reward_ell, reward_low, reward_high
        )
        changed = False
        for exact in range(2):  # one call in the text, so that the sweep is compiled once
            if exact == 1 and not changed and not np.isnan(state[1]):
                break
            belief, memory = (truth, truth_s) if exact == 1 else (b, s)
            state[exact], changed = sweep(
                g, belief, memory, sets, None, policy, exact == 1, -1, g.horizon, 0
            )
        set_marks(tally, 2.0)
        upper[k], value[k] = state[0], state[1]
        returns[k], _, _ = rollout(walk, world, policy, tally, rng, path)
        if sets is not None and most_seen(tally) > most:
            return k + 1
    return upper.shape[0]
