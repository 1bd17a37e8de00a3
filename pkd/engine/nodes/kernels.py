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

from pkd.engine.bonus import add_bonus, estimate, factors, is_capped, most_seen, set_marks
from pkd.engine.jit import inner, jit
from pkd.engine.nodes.walk import rollout
from pkd.engine.set_values import (
    CERTAIN,
    NOTHING,
    Place,
    gain,
    gain_at_once,
    gains_at_once,
)
from pkd.optimism import EXACT, ONE_ROUND, SUM

# Levels: decisions before the last action, last decisions, then CHANCE.
STEP, LAST, CHANCES = 0, 1, 2


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
    q: np.ndarray  # (layers, actions) Q of some layers, where it is asked for
    kept: np.ndarray  # (layers, nodes) V of these layers


class Alone(NamedTuple):
    """Memory for values over sets of laws of pairs one by one, by their seen outcomes."""

    gaps: np.ndarray  # (most outcomes of a row,) those of one row's seen outcomes
    p: np.ndarray  # (most outcomes of a row,) their probabilities
    # (unknown rows,): its outcomes of positive probability end here in `seen`
    end: np.ndarray
    seen: np.ndarray  # (outcomes of unknown rows,), from row_ptr[z] on


# Rows with at least this many outcomes are mostly unseen: their pairs are taken one by one. So are
# exact values, which need a search for each pair.
MANY = 16
NEXT = Place(1)


@inner()
def list_seen(row_ptr, p, alone):
    """Lists the outcomes of positive probability of each unknown row."""
    for z in range(alone.end.shape[0]):
        k = row_ptr[z]
        for i in range(row_ptr[z], row_ptr[z + 1]):
            if p[i] > 0.0:
                alone.seen[k] = i - row_ptr[z]
                k += 1
        alone.end[z] = k


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


@inner()
def value_exactly(g, s, group, source):
    """e = pV of the pairs of one group."""
    first, pairs = g.group_pair[group], g.group_pair[group + 1] - g.group_pair[group]
    at, size, matrix = g.group_ptr[group], g.group_ptr[group + 1] - g.group_ptr[group], Place(0)
    e, mean, packed, nodes = s.e, s.rows[0], s.packed, g.group_node
    if size == 1:
        for i in range(pairs):
            e[first + i] = source[nodes[at]]
        return
    for i in range(pairs):
        mean[i] = 0.0
    matrix = Place(g.group_matrix[group])
    for j in range(size):
        v_j, place = source[nodes[at + j]], matrix + Place(j * pairs)
        for i in range(Place(pairs)):
            mean[i] += packed[place + i] * v_j
    for i in range(pairs):
        e[first + i] = mean[i]


@inner()
def value_with_bonus(g, b, s, group, source, cap, width):
    """e = min(cap, pV + bonus) of the pairs of one group."""
    first, pairs = g.group_pair[group], g.group_pair[group + 1] - g.group_pair[group]
    at, size = g.group_ptr[group], g.group_ptr[group + 1] - g.group_ptr[group]
    e, packed, seen, nodes, pair_row = s.e, s.packed, s.seen, g.group_node, g.pair_row
    mean, square, shift, factor, scale = s.rows[0], s.rows[1], s.rows[2], s.bonus[0], s.bonus[1]
    open_pairs, matrix = 0, Place(g.group_matrix[group])
    for i in range(pairs):
        open_pairs += 1 if scale[first + i] < np.inf else 0
        mean[i] = 0.0
        square[i] = 0.0
        # Moments around a point of the support: E[V^2] - m^2 would lose digits.
        shift[i] = source[nodes[at + seen[pair_row[first + i]]]]
    if open_pairs > 0:
        for j in range(size):
            v_j, place = source[nodes[at + j]], matrix + Place(j * pairs)
            for i in range(Place(pairs)):
                d = v_j - shift[i]
                w = packed[place + i] * d
                mean[i] += w
                square[i] += w * d
    for i in range(pairs):
        e[first + i] = cap
        if scale[first + i] < np.inf:
            variance, term = square[i] - mean[i] * mean[i], scale[first + i] * width
            value = add_bonus(b.form, shift[i] + mean[i], variance, factor[first + i], term)
            e[first + i] = min(cap, value)


@inner()
def value_over_sets(g, b, s, gaps, alone, group, v, cap, width):
    """e = the largest (sign 1) or least (sign -1) q.V over {q : KL(p, q) <= C(z)}, for one group.

    It is the smaller of that and MVP-Est where N(z) > free. Gaps are in units of the range of V
    over all outcomes, seen or not: one maximum for all pairs of the group.
    """
    first, pairs = g.group_pair[group], g.group_pair[group + 1] - g.group_pair[group]
    at, size, matrix = g.group_ptr[group], g.group_ptr[group + 1] - g.group_ptr[group], Place(0)
    nodes, e, packed, sign = g.group_node, s.e, s.packed, b.sign
    edge = other = v[nodes[at]]
    for j in range(at + 1, at + size):
        edge, other = max(edge, v[nodes[j]]), min(other, v[nodes[j]])
    spread = edge - other
    if sign < 0.0:
        edge = other
    if spread <= NOTHING:
        for i in range(pairs):
            e[first + i] = edge
        return
    unit, matrix = 1.0 / spread, g.group_matrix[group]
    a, square, level, gains = s.rows[0], s.rows[1], s.rows[2], s.rows[3]
    for j in range(size):
        gaps[j] = abs(edge - v[nodes[at + j]]) * unit
    for i in range(pairs):
        level[i] = b.radius[g.pair_row[first + i]]
    few = size < MANY
    if few and pairs == 1:
        a[0], square[0], gains[0] = gain_at_once(packed, matrix, gaps, size, level[0])
    elif few:
        gains_at_once(packed, matrix, pairs, gaps, size, level, a, square, s.rows[4:], gains)
    for i in range(pairs):
        if level[i] >= CERTAIN:  # nothing is refuted
            e[first + i] = edge
            continue
        z = g.pair_row[first + i]
        if alone is not None and (not few or b.rounds > ONE_ROUND):
            a[i], square[i], gains[i] = gain_alone(g, b, gaps, alone, z, level[i])
        mean = edge - sign * spread * a[i]
        value, n = mean + sign * spread * gains[i], b.n[z]
        if n > b.free:
            factor, scale = factors(SUM, b.c1, b.c2, n, b.ell[g.pair_weight[first + i]])
            if not is_capped(n, b.free, scale):
                variance = spread * spread * square[i]
                value = min(value, cap, add_bonus(SUM, mean, variance, factor, scale * width))
        e[first + i] = value


@inner()
def gain_alone(g, b, gaps, alone, z, level):
    """(mean of the gaps, their variance, the gain) of one row by its seen outcomes."""
    begin, a, square, seen, p = g.row_ptr[z], 0.0, 0.0, alone.gaps, alone.p
    count = alone.end[z] - begin
    for k in range(count):
        j = alone.seen[begin + k]
        p[k], seen[k] = b.p[begin + j], gaps[j]
        a += p[k] * seen[k]
    for k in range(count):
        square += p[k] * (seen[k] - a) ** 2
    return a, square, gain(p, 0, 1, seen, count, level, b.rounds)


@inner()
def back_up(g, b, s, level, t, source, target, policy, follow, keep):
    """V = max_a Q, Q = sum_y' P_Y(y') min(ceiling, r + e), of the cells of one level.

    A known z is exempt from the ceiling. Returns whether the policy changed.
    """
    e, means, changed = s.e, b.mean, False
    for cell in range(Place(g.levels[level, 0]), Place(g.levels[level, 1])):
        if g.cell_first[cell] > t:
            break
        if g.cell_last[cell] < t:
            continue
        lo, hi = Place(g.action_ptr[cell]), Place(g.action_ptr[cell + NEXT])
        if follow and level < CHANCES:
            lo += Place(policy[t, g.cell_choice[cell]])
            hi = lo + NEXT
        best = 0.0
        which = Place(0)
        for a in range(lo, hi):
            extra = means[g.action_mean[a]] if g.action_mean[a] >= 0 else 0.0
            q = 0.0
            for k in range(Place(g.branch_ptr[a]), Place(g.branch_ptr[a + NEXT])):
                pair = g.branch_pair[k]
                after = e[pair] if pair >= 0 else source[-1 - pair]
                value = g.branch_reward[k] + extra + after
                if pair >= 0 and value > b.ceiling and g.pair_row[pair] < g.n_unknown:
                    value = b.ceiling
                q += g.branch_p[k] * value
            if 0 <= t - keep < s.q.shape[0]:
                s.q[t - keep, a] = q
            if a == lo or q > best:
                best = q
                which = a - lo
        target[g.cell_node[cell]] = best
        if level < CHANCES and not follow and policy[t, g.cell_choice[cell]] != which:
            policy[t, g.cell_choice[cell]] = which
            changed = True
    return changed


@inner()
def prepare(g, b, s, bonus, alone):
    """Brings what a sweep reads of a belief into its memory."""
    pack(g, b, s)
    if alone is not None and b.form != EXACT:
        list_seen(g.row_ptr, b.p, alone)
    if bonus is not None and b.form != EXACT:
        fill_bonus(g, b, s.bonus)


@jit(nogil=True)
def sweep(g, b, s, bonus, sets, alone, policy, follow, keep, top, bottom):
    """V_h for h = H..1 into s.v[(h - 1) % 2]; returns V_1 and whether the policy changed.

    Only the layers top..bottom, the later ones first: H..0 are all. A caller that sweeps a part at
    a time can be interrupted in between.

    Python chooses one of three sweeps by what is not None, and only its code is compiled: bonus
    (True) for SUM, MAX and HOEFFDING; sets, memory for gaps, for CERTIFIED, with `Alone` where
    pairs are taken one by one; none of them for the exact one. Each of them gives exact values,
    too, for a belief of that form.
    keep: the first layer of which Q goes into s.q and V into s.kept, or -1.
    """
    if top == g.horizon:
        prepare(g, b, s, bonus, alone)
    changed = False
    for t in range(top, bottom - 1, -1):
        for level in range(g.levels.shape[0]):
            if is_elsewhere(g, level, t):
                continue
            target = s.settled if t == g.horizon else s.v[t % 2]
            source = target
            if level < CHANCES:
                source = s.settled if level == LAST else s.v[(t + 1) % 2]
            layer = t if s.cap.shape[0] > 1 else 0
            for group in range(g.levels[level, 2], g.levels[level, 3]):
                if g.group_first[group] > t:
                    break
                if g.group_last[group] < t:
                    continue
                if b.form == EXACT or is_known(g, group):
                    value_exactly(g, s, group, source)
                elif sets is not None:
                    cap, width = s.cap[layer, group], s.width[layer, group]
                    value_over_sets(g, b, s, sets, alone, group, source, cap, width)
                elif bonus is not None:
                    cap, width = s.cap[layer, group], s.width[layer, group]
                    value_with_bonus(g, b, s, group, source, cap, width)
            if back_up(g, b, s, level, t, source, target, policy, follow, keep):
                changed = True
        if 0 <= t - keep < s.kept.shape[0]:
            for node in range(s.kept.shape[1]):
                s.kept[t - keep, node] = s.v[t % 2, node]
    return value_of_start(g, s), changed


@jit(nogil=True)
def sweep_level(g, b, s, level, t, policy, follow, keep):
    """One level of a layer, where the values of unknown pairs are in s.e already."""
    target = s.settled if t == g.horizon else s.v[t % 2]
    source = target
    if level < CHANCES:
        source = s.settled if level == LAST else s.v[(t + 1) % 2]
    for group in range(g.levels[level, 2], g.levels[level, 3]):
        if g.group_first[group] <= t <= g.group_last[group] and is_known(g, group):
            value_exactly(g, s, group, source)
    return back_up(g, b, s, level, t, source, target, policy, follow, keep)


@inner()
def value_of_start(g, s):
    value = 0.0
    for i in range(g.start_node.shape[0]):
        value += g.start_p[i] * s.v[0, g.start_node[i]]
    return value


@inner()
def is_elsewhere(g, level, t):
    """Whether a level belongs to other layers than t."""
    if (level >= g.settlement) != (t == g.horizon):
        return True
    return level == (STEP if t == g.horizon - 1 else LAST)


@inner()
def is_known(g, group):
    return g.pair_row[g.group_pair[group]] >= g.n_unknown


@jit(nogil=True)
def learn(
    g, walk, b, truth, s, truth_s, bonus, sets, alone, paid, most, world, tally, prior,
    reward_bonus, rng, state, policy, path, upper, value, returns,
):  # fmt: skip
    """A plan before every episode, an episode, and again: the loop of `pkd.learning.learn`, fused.

    Returns how many episodes were played; a certified rule stops as soon as some N(z) exceeds
    `most`. paid: None if there are no unknown rewards, so that their code is not compiled.
    state: (2,): the upper value of the plan in force and the true value of its policy, carried from
    call to call. It is the whole state of a run, hence the number of parameters.
    """
    for k in range(upper.shape[0]):
        estimate(g.row_ptr, b, tally, prior, sets, paid, True, rng, reward_bonus)
        changed = False
        for exact in range(2):  # one call in the text, so that the sweep is compiled once
            if exact == 1 and not changed and not np.isnan(state[1]):
                break
            belief, memory = (truth, truth_s) if exact == 1 else (b, s)
            state[exact], changed = sweep(
                g, belief, memory, bonus, sets, alone, policy, exact == 1, -1, g.horizon, 0
            )
        set_marks(tally, 2.0)
        upper[k], value[k] = state[0], state[1]
        returns[k], _, _ = rollout(walk, world, policy, tally, rng, path)
        if sets is not None and most_seen(tally) > most:
            return k + 1
    return upper.shape[0]
