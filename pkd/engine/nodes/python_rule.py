"""The sweep of a rule that is written in Python: the loops of `kernels.sweep`, not compiled.

It is some hundred times slower and asks `rule.value` for every pair (z, y') that was seen.
"""

from __future__ import annotations

import numpy as np

from pkd.engine.belief import Belief
from pkd.engine.nodes.kernels import CHANCES, LAST, STEP, Program, Scratch

__all__ = ["sweep"]


def sweep(
    g: Program, b: Belief, s: Scratch, policy: np.ndarray, follow: bool, keep: int
) -> tuple[float, bool]:
    """V_h for h = H..1: the value of the start, and whether the policy changed.

    keep: the layer of which Q goes into s.q and V into s.kept, or -1.
    """
    e, changed = np.zeros(len(g.pair_row)), False
    for t in range(g.horizon, -1, -1):
        for level in range(len(g.levels)):
            if (level >= g.settlement) != (t == g.horizon):
                continue
            if level == (STEP if t == g.horizon - 1 else LAST):
                continue
            target = s.settled if t == g.horizon else s.v[t % 2]
            source = target
            if level < CHANCES:
                source = s.settled if level == LAST else s.v[(t + 1) % 2]
            _fill_pairs(g, b, s, level, t, source, e)
            changed |= _back_up(g, b, s, level, t, source, target, e, policy, follow, keep)
        if t == keep:
            s.kept[...] = s.v[t % 2]
    return float(g.start_p @ s.v[0][g.start_node]), changed


def _fill_pairs(
    g: Program, b: Belief, s: Scratch, level: int, t: int, source: np.ndarray, e: np.ndarray
) -> None:
    """e(z, y') = min(cap, what the rule says); pV for a known law."""
    layer = t if len(s.cap) > 1 else 0
    for group in range(g.levels[level, 2], g.levels[level, 3]):
        if not g.group_first[group] <= t <= g.group_last[group]:
            continue
        v = source[g.group_node[g.group_ptr[group] : g.group_ptr[group + 1]]]
        cap, width = float(s.cap[layer, group]), float(s.width[layer, group])
        for pair in range(g.group_pair[group], g.group_pair[group + 1]):
            row = g.pair_row[pair]
            p = b.p[g.row_ptr[row] : g.row_ptr[row + 1]]
            if row >= g.n_unknown:
                e[pair] = p @ v
            elif b.n[row] <= 0:
                e[pair] = cap
            else:
                e[pair] = min(cap, b.ask_rule(p.copy(), v.copy(), float(b.n[row]), width))


def _back_up(
    g: Program, b: Belief, s: Scratch, level: int, t: int, source: np.ndarray, target: np.ndarray,
    e: np.ndarray, policy: np.ndarray, follow: bool, keep: int,
) -> bool:  # fmt: skip
    """Q = sum_y' P_Y(y') min(ceiling, r + e) and V = max_a Q of one level."""
    changed = False
    for cell in range(g.levels[level, 0], g.levels[level, 1]):
        if not g.cell_first[cell] <= t <= g.cell_last[cell]:
            continue
        decides, choice = level < CHANCES, g.cell_choice[cell]
        values = []
        for a in range(g.action_ptr[cell], g.action_ptr[cell + 1]):
            extra, q = b.mean[g.action_mean[a]] if g.action_mean[a] >= 0 else 0.0, 0.0
            for k in range(g.branch_ptr[a], g.branch_ptr[a + 1]):
                pair = g.branch_pair[k]
                value = g.branch_reward[k] + extra + (e[pair] if pair >= 0 else source[-1 - pair])
                if pair >= 0 and g.pair_row[pair] < g.n_unknown:
                    value = min(value, b.ceiling)
                q += g.branch_p[k] * value
            values.append(q)
            if t == keep:
                s.q[a] = q
        which = int(policy[t, choice]) if follow and decides else int(np.argmax(values))
        target[g.cell_node[cell]] = values[which]
        if decides and policy[t, choice] != which:
            policy[t, choice] = which
            changed = True
    return changed
