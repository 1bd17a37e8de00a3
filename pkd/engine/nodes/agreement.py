"""Whether all actions of every reachable decision lead to the same expected visits, exactly.

One backward sweep over a program in arithmetic modulo a prime: no rounding, no tolerance.
"""

from __future__ import annotations

import numpy as np

from pkd.engine.jit import jit
from pkd.engine.nodes.kernels import CHANCES, LAST, STEP


@jit(nogil=True)
def all_agree(g, prime, branch_p, law, paid, paid_reward, present, layers, v, settled):
    """Whether u(s, a) is the same for all actions of each decision, modulo a prime.

        u(s, a) = sum_y' P_Y(y' | s, a) (w(z) + sum_x' P(x' | z) u(x', y'))

    branch_p, law: probabilities as residues. paid, paid_reward: the weight w of each law row and
    of each unknown reward. present: (layers, nodes), which nodes a layer holds; layers: (H,) the
    row of `present` of each layer. v: (2, nodes) and settled: (nodes,) are 0 at first.
    """
    for t in range(g.horizon, -1, -1):
        for level in range(g.levels.shape[0]):
            if (level >= g.settlement) != (t == g.horizon):
                continue
            if level == (STEP if t == g.horizon - 1 else LAST):
                continue
            target = settled if t == g.horizon else v[t % 2]
            source = target
            if level < CHANCES:
                source = settled if level == LAST else v[(t + 1) % 2]
            for cell in range(g.levels[level, 0], g.levels[level, 1]):
                node = g.cell_node[cell]
                if t < g.horizon and not present[layers[t], node]:
                    continue
                first = np.int64(-1)
                for a in range(g.action_ptr[cell], g.action_ptr[cell + 1]):
                    u = paid_reward[g.action_mean[a]] if g.action_mean[a] >= 0 else np.int64(0)
                    for k in range(g.branch_ptr[a], g.branch_ptr[a + 1]):
                        pair = g.branch_pair[k]
                        if pair < 0:
                            visits = source[-1 - pair]
                        else:
                            row, group = g.pair_row[pair], g.pair_group[pair]
                            visits, at = paid[row], g.group_ptr[group]
                            for j in range(g.group_ptr[group + 1] - at):
                                p = law[g.row_ptr[row] + j]
                                visits = (visits + p * source[g.group_node[at + j]]) % prime
                        u = (u + branch_p[k] * visits) % prime
                    if first < 0:
                        first = u
                    elif u != first:
                        return False
                target[node] = max(first, 0)
    return True
