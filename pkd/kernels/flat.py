"""The flat program: backward sweeps, episodes and the whole learning loop over a list of nodes, for small and unstructured models.

A node is a state (x, y). A *slot* is a node with its arms; an arm is a list of (probability, pair); a *pair* (z, y') is a row of the law
with the nodes (x', y') it leads to. The value of a pair is computed once and looked up by every arm that uses it. Pairs that lead to the
same nodes form a *group*: its rows stand side by side in a small matrix, so that one pass over the nodes serves them all. *Blocks* come in
an order in which every value is ready when it is read: the decisions of a layer, then its CHANCE states by topological level. Letters:
H h z p v q as in the paper; e is the value of a pair, n the count N(z), t = h - 1 the index of a layer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd.kernels.forms import HOEFFDING, MAX, NO_BONUS
from pkd.kernels.jit import jit
from pkd.kernels.rng import dirichlet, draw, uniform

STEP, LAST, CHANCES = 0, 1, 2  # blocks: decisions before the last action, decisions at the last one, then the CHANCE levels


class Program(NamedTuple):
    """A compiled model without any law."""

    horizon: int
    blocks: np.ndarray  # (blocks, 4): slot from, to, group from, to
    settlement: int  # the first block of the settlement
    slot_node: np.ndarray  # (slots,)
    slot_first: np.ndarray  # (slots,) the first layer in which the slot is reachable; ascending within a block
    slot_last: np.ndarray  # (slots,)
    arm_ptr: np.ndarray  # (slots + 1,)
    arm_reward: np.ndarray  # (arms,)
    arm_mean: np.ndarray  # (arms,) which learned mean is added to the reward, or -1
    branch_ptr: np.ndarray  # (arms + 1,)
    branch_p: np.ndarray  # (branches,)
    branch_pair: np.ndarray  # (branches,)
    pair_row: np.ndarray  # (pairs,) row of the law; rows from n_unknown on are known
    pair_group: np.ndarray  # (pairs,)
    group_pair: np.ndarray  # (groups + 1,) its pairs: all of unknown rows, or all of known ones
    group_ptr: np.ndarray  # (groups + 1,)
    group_node: np.ndarray  # (targets,) aligned with the outcomes of the rows
    group_matrix: np.ndarray  # (groups,) where its rows stand in `Estimate.packed`
    group_first: np.ndarray  # (groups,) the first layer in which it is needed; ascending within a block
    group_last: np.ndarray  # (groups,)
    row_ptr: np.ndarray  # (rows + 1,)
    n_unknown: int
    packing: np.ndarray  # (packed,): which element of `Estimate.p` stands in each place of `Estimate.packed`
    slot_of_step: np.ndarray  # (nodes,) slot of a node before the last action, or -1
    slot_of_last: np.ndarray  # (nodes,) slot of a decision node at the last action, or -1
    slot_of_settled: np.ndarray  # (settlement nodes,) slot, or -1 where the episode stops
    final: np.ndarray  # (nodes,) paid at END
    final_settled: np.ndarray  # (settlement nodes,)
    start_node: np.ndarray  # (starts,)
    start_p: np.ndarray  # (starts,)


class Estimate(NamedTuple):
    """What a sweep believes: a law, and for an optimistic one the counts and everything that makes the bonus."""

    p: np.ndarray  # (outcomes of all rows,)
    packed: np.ndarray  # the same, for each group a matrix (outcomes, pairs)
    seen: np.ndarray  # (rows,) the first outcome of positive probability
    mean: np.ndarray  # (learned means,) of unknown rewards
    form: int  # NO_BONUS, SUM, MAX or HOEFFDING
    c1: float
    c2: float
    free: float  # N(z) <= free gives the cap
    ceiling: float  # a declared cap on r + pV + bonus, or infinity
    n: np.ndarray  # (unknown rows,)
    ell: np.ndarray  # (pairs,)
    cap: np.ndarray  # (layers, groups): caps on pV + bonus; one layer where they do not depend on h
    width: np.ndarray  # (layers, groups)


@jit()
def sweep(g, b, v, settled, e, room, policy, follow):
    """V_h for h = H..1 into v[(h - 1) % len(v)]; returns V_1 of the start and whether the policy changed.

        e(z, y') = min(cap, pV(., y') + bonus),   Q = sum_y' P_Y(y') min(ceiling, r + e),   V = max_a Q

    A known z gets e = pV and is exempt from the ceiling. v: (2 or H, nodes), END nodes filled in; settled: (settlement nodes,), stopping
    nodes filled in; e: (pairs,); room: (3, largest group). It is one function because it is compiled and called as one: passing all
    arrays to parts of it for each block would cost more than the arithmetic.
    """
    blocks, settlement, horizon, n_unknown = g.blocks, g.settlement, g.horizon, g.n_unknown
    group_first, group_last, group_pair, group_ptr = g.group_first, g.group_last, g.group_pair, g.group_ptr
    group_node, group_matrix, pair_row, packed, seen = g.group_node, g.group_matrix, g.pair_row, b.packed, b.seen
    counts, ells, caps, widths, form, c1, c2, free = b.n, b.ell, b.cap, b.width, b.form, b.c1, b.c2, b.free
    slot_first, slot_last, slot_node, arm_ptr, arm_reward = g.slot_first, g.slot_last, g.slot_node, g.arm_ptr, g.arm_reward
    arm_mean, means, branch_ptr, branch_p, branch_pair = g.arm_mean, b.mean, g.branch_ptr, g.branch_p, g.branch_pair
    mean, square, shift = room[0], room[1], room[2]
    ceiling = np.inf if form == NO_BONUS else b.ceiling
    changed = False
    for t in range(horizon, -1, -1):
        layer = t if caps.shape[0] > 1 else 0
        for block in range(blocks.shape[0]):
            if (block >= settlement) != (t == horizon) or (block == STEP and t == horizon - 1) or (block == LAST and t < horizon - 1):
                continue
            target = settled if t == horizon else v[t % v.shape[0]]
            source = target if block >= CHANCES else settled if block == LAST else v[(t + 1) % v.shape[0]]
            for group in range(blocks[block, 2], blocks[block, 3]):
                if group_first[group] > t:
                    break
                if group_last[group] < t:
                    continue
                first, pairs = group_pair[group], group_pair[group + 1] - group_pair[group]
                at, size, matrix = group_ptr[group], group_ptr[group + 1] - group_ptr[group], group_matrix[group]
                if form == NO_BONUS or pair_row[first] >= n_unknown:
                    if size == 1:
                        for i in range(pairs):
                            e[first + i] = source[group_node[at]]
                        continue
                    for i in range(pairs):
                        mean[i] = 0.0
                    for j in range(size):
                        v_j, row = source[group_node[at + j]], packed[matrix + j * pairs : matrix + (j + 1) * pairs]
                        for i in range(pairs):
                            mean[i] += row[i] * v_j
                    for i in range(pairs):
                        e[first + i] = mean[i]
                    continue
                cap, width, open_pairs = caps[layer, group], widths[layer, group], 0
                for i in range(pairs):
                    z = pair_row[first + i]
                    scale = c1 * ells[first + i] / np.sqrt(counts[z]) if form == HOEFFDING else c2 * ells[first + i] / counts[z]
                    # A bonus as large as the width reaches from the lowest value to the cap: then there is no need to look at the law.
                    capped = counts[z] <= free or scale >= 1.0
                    e[first + i] = np.inf if capped else scale * width
                    open_pairs += 0 if capped else 1
                    mean[i] = 0.0
                    square[i] = 0.0
                    shift[i] = source[group_node[at + seen[z]]]  # one point of the support: E[V^2] - m^2 would lose digits
                if open_pairs > 0:
                    for j in range(size):
                        v_j, row = source[group_node[at + j]], packed[matrix + j * pairs : matrix + (j + 1) * pairs]
                        for i in range(pairs):
                            d = v_j - shift[i]
                            w = row[i] * d
                            mean[i] += w
                            square[i] += w * d
                for i in range(pairs):
                    bonus = e[first + i]
                    if form != HOEFFDING:
                        variance = max(square[i] - mean[i] * mean[i], 0.0)
                        spread = c1 * np.sqrt(variance * ells[first + i] / counts[pair_row[first + i]])
                        bonus = max(spread, bonus) if form == MAX else spread + bonus
                    e[first + i] = min(cap, shift[i] + mean[i] + bonus) if np.isfinite(bonus) else cap
            for slot in range(blocks[block, 0], blocks[block, 1]):
                if slot_first[slot] > t:
                    break
                if slot_last[slot] < t:
                    continue
                node, lo, hi = slot_node[slot], arm_ptr[slot], arm_ptr[slot + 1]
                if follow and block < CHANCES:
                    lo += policy[t, node]
                    hi = lo + 1
                best = 0.0
                which = 0
                for a in range(lo, hi):
                    r = arm_reward[a]
                    if arm_mean[a] >= 0:
                        r += means[arm_mean[a]]
                    q = 0.0
                    for k in range(branch_ptr[a], branch_ptr[a + 1]):
                        value = r + e[branch_pair[k]]
                        if value > ceiling and pair_row[branch_pair[k]] < n_unknown:
                            value = ceiling
                        q += branch_p[k] * value
                    if a == lo or q > best:
                        best = q
                        which = a - lo
                target[node] = best
                if block < CHANCES and not follow and policy[t, node] != which:
                    policy[t, node] = which
                    changed = True
    value = 0.0
    for i in range(g.start_node.shape[0]):
        value += g.start_p[i] * v[0, g.start_node[i]]
    return value, changed


@jit()
def ranges(g, low, high, hi, lo, hi_settled, lo_settled, cap, width):
    """The possible return to go, [lo, hi](x, y) for every layer, and for every group its cap max hi and its width max hi - min lo.

    low, high: (learned means,); hi, lo: (2 or H, nodes) with END filled in; cap, width: (H + 1, groups), the last layer is the settlement.
    """
    rooms = hi.shape[0]
    for t in range(g.horizon, -1, -1):
        settles, last = t == g.horizon, t == g.horizon - 1
        hi_here, lo_here = (hi_settled, lo_settled) if settles else (hi[t % rooms], lo[t % rooms])
        for block in range(g.blocks.shape[0]):
            if (block >= g.settlement) != settles or (block == STEP and last) or (block == LAST and not last):
                continue
            if block >= CHANCES:
                extremes(g, block, t, low, high, hi_here, lo_here, hi_here, lo_here, cap, width)
            elif last:
                extremes(g, block, t, low, high, hi_settled, lo_settled, hi_here, lo_here, cap, width)
            else:
                extremes(g, block, t, low, high, hi[(t + 1) % rooms], lo[(t + 1) % rooms], hi_here, lo_here, cap, width)


@jit()
def extremes(g, block, t, low, high, hi, lo, hi_out, lo_out, cap, width):
    """The largest and smallest return to go of one block."""
    for group in range(g.blocks[block, 2], g.blocks[block, 3]):
        if g.group_first[group] > t:
            break
        if g.group_last[group] < t:
            continue
        top, bottom = -np.inf, np.inf
        for j in range(g.group_ptr[group], g.group_ptr[group + 1]):
            node = g.group_node[j]
            top, bottom = max(top, hi[node]), min(bottom, lo[node])
        cap[t, group], width[t, group] = top, top - bottom
    for slot in range(g.blocks[block, 0], g.blocks[block, 1]):
        if g.slot_first[slot] > t:
            break
        if g.slot_last[slot] < t:
            continue
        top, bottom = -np.inf, np.inf
        for a in range(g.arm_ptr[slot], g.arm_ptr[slot + 1]):
            r_low = r_high = g.arm_reward[a]
            if g.arm_mean[a] >= 0:
                r_low += low[g.arm_mean[a]]
                r_high += high[g.arm_mean[a]]
            for k in range(g.branch_ptr[a], g.branch_ptr[a + 1]):
                group = g.pair_group[g.branch_pair[k]]
                top = max(top, r_high + cap[t, group])
                bottom = min(bottom, r_low + cap[t, group] - width[t, group])
        hi_out[g.slot_node[slot]], lo_out[g.slot_node[slot]] = top, bottom


class World(NamedTuple):
    """The truth that episodes are drawn from, as cumulative sums."""

    rows: np.ndarray  # (outcomes of all rows,) cumulative within a row
    branches: np.ndarray  # (branches,) cumulative within an arm
    starts: np.ndarray  # (starts,)
    reward_ptr: np.ndarray  # (learned means + 1,)
    reward_value: np.ndarray
    reward_rows: np.ndarray  # cumulative within a reward law


class Tally(NamedTuple):
    """What has been counted so far."""

    counts: np.ndarray  # (outcomes of unknown rows,) N(z, x')
    n: np.ndarray  # (unknown rows,) N(z)
    marks: np.ndarray  # (unknown rows,) the N(z) at which the next plan is due
    rewards: np.ndarray  # (3, learned means): number, mean and sum of squared deviations of the rewards seen
    reward_marks: np.ndarray  # (learned means,)


@jit()
def count(tally, row, place):
    """One more outcome of an unknown row. Returns whether a mark was reached."""
    tally.counts[place] += 1.0
    tally.n[row] += 1.0
    return tally.n[row] >= tally.marks[row]


@jit()
def add_reward(tally, w, value, weight):
    """A reward seen `weight` times; sums of squares would lose digits, so moments are updated. Returns whether a mark was reached."""
    seen = tally.rewards
    seen[0, w] += weight
    d = value - seen[1, w]
    seen[1, w] += d * weight / seen[0, w]
    seen[2, w] += weight * d * (value - seen[1, w])
    return seen[0, w] >= tally.reward_marks[w]


@jit()
def rollout(g, world, policy, tally, rng, path):
    """One episode: adds to the tally, and returns (return, whether a mark was reached, number of moves).

    path: (moves, 5): the slot, arm, branch, outcome and reward of each move, for as many moves as it has room.
    """
    node = g.start_node[draw(world.starts, np.int64(0), world.starts.shape[0], uniform(rng))]
    total = 0.0
    due = settled = False
    moves = t = 0
    while True:
        if settled:
            slot = g.slot_of_settled[node]
        elif t == g.horizon - 1 and g.slot_of_last[node] >= 0:
            slot = g.slot_of_last[node]
        else:
            slot = g.slot_of_step[node]
        if slot < 0:
            return total + (g.final_settled[node] if settled else g.final[node]), due, moves
        a = g.arm_ptr[slot]
        decision = slot < g.blocks[LAST, 1]
        if decision:
            a += policy[t, node]
        r = g.arm_reward[a]
        w = g.arm_mean[a]
        if w >= 0:
            x = world.reward_value[draw(world.reward_rows, world.reward_ptr[w], world.reward_ptr[w + 1], uniform(rng))]
            r += x
            if add_reward(tally, w, x, 1.0):
                due = True
        total += r
        k = g.branch_ptr[a]
        if g.branch_ptr[a + 1] - k > 1:
            k = draw(world.branches, k, g.branch_ptr[a + 1], uniform(rng))
        i = g.branch_pair[k]
        row, o = g.pair_row[i], 0
        if g.row_ptr[row + 1] - g.row_ptr[row] > 1:
            o = draw(world.rows, g.row_ptr[row], g.row_ptr[row + 1], uniform(rng)) - g.row_ptr[row]
        if row < g.n_unknown and count(tally, row, g.row_ptr[row] + o):
            due = True
        if moves < path.shape[0]:
            path[moves, 0], path[moves, 1], path[moves, 2], path[moves, 3], path[moves, 4] = slot, a, k, o, r
        moves += 1
        node = g.group_node[g.group_ptr[g.pair_group[i]] + o]
        if decision:
            t += 1
            settled = t == g.horizon


@jit()
def estimate(row_ptr, n_unknown, b, tally, prior, rng, reward_bonus):
    """Fills b.p and b.mean from the tally: frequencies, or a Dirichlet draw where there is a prior. Known rows are already there.

    reward_bonus: (4, learned means): ell, low, high, and whether an optimistic mean is wanted.
    """
    for z in range(n_unknown):
        lo, hi = row_ptr[z], row_ptr[z + 1]
        n = tally.n[z]
        b.n[z] = n
        if prior is not None:  # the compiler leaves out the other branch
            dirichlet(rng, tally.counts, prior, lo, hi, b.p)
        else:
            for i in range(lo, hi):
                b.p[i] = tally.counts[i] / n if n > 0.0 else 1.0 / (hi - lo)
    for w in range(b.mean.shape[0]):
        ell, low, high, optimistic = reward_bonus[0, w], reward_bonus[1, w], reward_bonus[2, w], reward_bonus[3, w]
        n = tally.rewards[0, w]
        if optimistic == 0.0:
            b.mean[w] = tally.rewards[1, w] if n > 0.0 else 0.5 * (low + high)
        elif n <= b.free:
            b.mean[w] = high
        else:
            variance = max(tally.rewards[2, w] / n, 0.0)
            if b.form == HOEFFDING:
                bonus = b.c1 * (high - low) * ell / np.sqrt(n)
            else:
                first, second = b.c1 * np.sqrt(variance * ell / n), b.c2 * (high - low) * ell / n
                bonus = max(first, second) if b.form == MAX else first + second
            b.mean[w] = min(high, tally.rewards[1, w] + bonus)


@jit()
def pack(g, b):
    """Brings `packed` and `seen` up to date with p."""
    for i in range(g.packing.shape[0]):
        b.packed[i] = b.p[g.packing[i]]
    for row in range(b.seen.shape[0]):
        b.seen[row] = 0
        for i in range(g.row_ptr[row], g.row_ptr[row + 1]):
            if b.p[i] > 0.0:
                b.seen[row] = i - g.row_ptr[row]
                break


@jit()
def set_marks(tally):
    """A plan is due when some count has doubled since this one."""
    for z in range(tally.n.shape[0]):
        tally.marks[z] = max(1.0, 2.0 * tally.n[z])
    for w in range(tally.reward_marks.shape[0]):
        tally.reward_marks[w] = max(1.0, 2.0 * tally.rewards[0, w])


@jit()
def episodes(g, world, policy, tally, rng, path, returns):
    """Episodes under a fixed policy until a mark is reached or `returns` is full. Returns (how many, whether a mark was reached)."""
    for k in range(returns.shape[0]):
        returns[k], due, _ = rollout(g, world, policy, tally, rng, path)
        if due:
            return k + 1, True
    return returns.shape[0], False


@jit()
def learn(
    g, b, truth, world, tally, prior, reward_bonus, every, rng, state, v, settled, e, room, policy, path, upper, value, returns, planned
):
    """Episodes k = 1..len(upper): plan when due, act, count, all in compiled code: for a plan before every episode.

    The values of plan and policy are written for every episode.

    state: (3,): whether a plan is due, the plan's upper value, the true value of its policy; carried from call to call.
    """
    for k in range(upper.shape[0]):
        planned[k] = every or state[0] != 0.0
        changed = False
        if planned[k]:
            estimate(g.row_ptr, g.n_unknown, b, tally, prior, rng, reward_bonus)
            pack(g, b)
            for exact in range(2):  # one call in the text, so that the sweep is compiled once
                if exact == 1 and not changed and not np.isnan(state[2]):
                    break
                state[1 + exact], changed = sweep(g, truth if exact == 1 else b, v, settled, e, room, policy, exact == 1)
            set_marks(tally)
            state[0] = 0.0
        upper[k], value[k] = state[1], state[2]
        returns[k], due, _ = rollout(g, world, policy, tally, rng, path)
        if due:
            state[0] = 1.0
