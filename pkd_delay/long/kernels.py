"""Compiled code of `pkd_delay.long`: a net of what an agent may know, and passes over it.

A node is what the agent knows: the last shown state and its own actions since. `links` of a node
are the nodes that it may be after the oldest of these actions is resolved, with their
probabilities; a state that was just shown has none. Nodes with equal links are one node. A link has
a smaller number than its node, so that one pass over the numbers computes a layer. All kernels are
in this file, because numba looks for edits only in the file of the function that it compiles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pkd import kernels

GIFT, DECISION = 0, 1
SAME = 1e-14  # probabilities that differ by less are equal
NODES, LINKS, ROOM = 0, 1, 2  # of Net.size


class Net(NamedTuple):
    """Nodes 0, ..., S - 1 are the states, just shown."""

    age: np.ndarray  # (cap,) resolved one by one, so many actions are news
    kind: np.ndarray  # (cap,) GIFT or DECISION
    taken: np.ndarray  # (cap,) the round in which a gift was taken; 0: it is a gift
    child: np.ndarray  # (cap, A) what is known after one more action; -1: not made
    ptr: np.ndarray  # (cap + 1,) links of n: ptr[n] ... ptr[n + 1]
    link: np.ndarray
    p: np.ndarray  # their probabilities
    pay: np.ndarray  # (cap, A) mean reward of an action
    last: np.ndarray  # (cap, A) the same in the last step; `pay` itself where that is equal
    key: np.ndarray  # (cap,) hash of age and links
    table: np.ndarray  # hash -> node, or -1
    size: np.ndarray  # how many nodes, links, and how many nodes there may be now
    to: np.ndarray  # (S, A, B) successors of a state
    to_p: np.ndarray
    to_n: np.ndarray  # (S, A) how many
    ids: np.ndarray  # (B,) scratch
    ps: np.ndarray


class Line(NamedTuple):
    """How late states are: a Markov chain, whose state the agent knows.

    In state d at most `most[d]` actions are unresolved.
    """

    most: np.ndarray  # (C,)
    move: np.ndarray  # (C, C) law of the next state


@kernels.jit()
def _hash(age, ids, ps, k):
    """A number that differs between lists of links."""
    key = np.uint64(age)
    for i in range(k):
        key = (key ^ np.uint64(ids[i])) * np.uint64(0x9E3779B97F4A7C15)
        key = key ^ (key >> np.uint64(29)) ^ np.uint64(np.int64(ps[i] * 1e10 + 0.5))
        key = key * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    return key


@kernels.jit()
def _find(net, key, age, ids, ps, k):
    """(the node with these links or -1, its place in the table)."""
    mask = np.uint64(len(net.table) - 1)
    at = key & mask
    while net.table[at] >= 0:
        n = net.table[at]
        if net.key[n] == key and net.age[n] == age and net.ptr[n + 1] - net.ptr[n] == k:
            same, e = True, net.ptr[n]
            for i in range(k):
                same = same and net.link[e + i] == ids[i] and abs(net.p[e + i] - ps[i]) < SAME
            if same:
                return n, at
        at = (at + np.uint64(1)) & mask
    return -1, at


@kernels.jit()
def _make(net, m, a):
    """Makes child[m, a] from the children of the links of m. False: no room."""
    shown, e = net.age[m] == 0, net.ptr[m]
    count = net.to_n[m, a] if shown else net.ptr[m + 1] - e
    ids, ps, k = net.ids, net.ps, 0
    for i in range(count):
        x = net.to[m, a, i] if shown else net.child[net.link[e + i], a]
        p = net.to_p[m, a, i] if shown else net.p[e + i]
        j = k
        while j > 0 and ids[j - 1] > x:
            j -= 1
        if j > 0 and ids[j - 1] == x:
            ps[j - 1] += p
            continue
        for t in range(k, j, -1):
            ids[t], ps[t] = ids[t - 1], ps[t - 1]
        ids[j], ps[j], k = x, p, k + 1
    if k == 1:  # the next state is no news
        net.child[m, a] = ids[0]
        return True
    age = net.age[m] + 1
    key = _hash(age, ids, ps, k)
    found, at = _find(net, key, age, ids, ps, k)
    if found < 0:
        found, e = net.size[NODES], net.size[LINKS]
        if found >= net.size[ROOM] or e + k > len(net.link):
            return False
        net.table[at], net.key[found], net.age[found], net.kind[found] = found, key, age, GIFT
        net.taken[found] = 0
        net.ptr[found + 1] = e + k
        for b in range(net.child.shape[1]):
            pay, last = 0.0, 0.0
            for i in range(k):
                pay += ps[i] * net.pay[ids[i], b]
                last += ps[i] * net.last[ids[i], b]
            net.child[found, b], net.last[found, b], net.pay[found, b] = -1, last, pay
        for i in range(k):
            net.link[e + i], net.p[e + i] = ids[i], ps[i]
        net.size[NODES], net.size[LINKS] = found + 1, e + k
    net.child[m, a] = found
    return True


@kernels.jit()
def extend(net, n, a, stack):
    """child[n, a], made with all that it needs; -1: no room."""
    top, stack[0] = 0, n
    while top >= 0:
        m = stack[top]
        if net.child[m, a] < 0:
            below = top
            for e in range(net.ptr[m], net.ptr[m + 1]):
                if net.child[net.link[e], a] < 0:
                    top += 1
                    stack[top] = net.link[e]
            if top > below:
                continue
            if not _make(net, m, a):
                return -1
        top -= 1
    return net.child[n, a]


@kernels.jit()
def roll_back(net, nodes, links):
    """Forgets every node from `nodes` on, and makes the hash table anew."""
    net.size[NODES], net.size[LINKS] = nodes, links
    net.table[:] = -1
    mask = np.uint64(len(net.table) - 1)
    for n in range(nodes):
        if net.age[n] > 0:
            at = net.key[n] & mask
            while net.table[at] >= 0:
                at = (at + np.uint64(1)) & mask
            net.table[at] = n
        for a in range(net.child.shape[1]):
            if net.child[n, a] >= nodes:
                net.child[n, a] = -1


@kernels.jit()
def take_gifts(net, order, limit, stack):
    """Makes these nodes decisions until the net has `limit` nodes: (how many, whether all fit)."""
    for done in range(len(order)):
        if net.size[NODES] >= limit:
            return done, True
        for a in range(net.child.shape[1]):
            if extend(net, order[done], a, stack) < 0:
                return done, False
        net.kind[order[done]] = DECISION
    return len(order), True


@kernels.jit()
def back_up(net, most, pay, after, here):
    """X of a layer in one state of the line: `after` is that of children in the next layer.

    X(gift) = sum_j p_j X(link_j),    X(decision) = max_a pay(n, a) + after(child_a)
    """
    for n in range(len(here)):
        if net.kind[n] == DECISION and net.age[n] <= most:
            best = pay[n, 0] + after[net.child[n, 0]]
            for a in range(1, pay.shape[1]):
                best = max(best, pay[n, a] + after[net.child[n, a]])
            here[n] = best
        else:
            v = 0.0
            for e in range(net.ptr[n], net.ptr[n + 1]):
                v += net.p[e] * here[net.link[e]]
            here[n] = v


@kernels.jit()
def fill(net, values, first):
    """X of nodes that were made after the sweep: all of them are gifts."""
    for n in range(first, net.size[NODES]):
        v = 0.0
        for e in range(net.ptr[n], net.ptr[n + 1]):
            v += net.p[e] * values[net.link[e]]
        values[n] = v


@kernels.jit()
def load(net, store, h, d, move, after, here):
    """E X_{h+1} and X_h of all nodes in state d of the line, from the layers that were kept."""
    old = store.shape[2]
    after[:old] = 0.0
    for f in range(move.shape[1]):
        if move[d, f] > 0:
            for n in range(old):
                after[n] += move[d, f] * store[h + 1, f, n]
    for n in range(old):
        here[n] = store[h, d, n]
    fill(net, after, old)
    fill(net, here, old)


@kernels.jit()
def choose(net, n, pay, after, here, q, slack, stack):
    """The action without a gift at n, and q[a] = pay + E X_{h+1} of every action; -1: no room.

    It is the first action within `slack` of the best one, so that near ties are always broken the
    same way: the policy meets fewer nodes, and rounding does not change it.
    """
    best = -np.inf
    for a in range(len(q)):
        if net.child[n, a] < 0:
            first = net.size[NODES]
            if extend(net, n, a, stack) < 0:
                return -1
            fill(net, after, first)
            fill(net, here, first)
        q[a] = pay[n, a] + after[net.child[n, a]]
        best = max(best, q[a])
    a = 0
    while q[a] < best - slack:
        a += 1
    return a


@kernels.jit(allocates=True)
def walk(net, line, start, store, heat, slack, least, budget, worst, stack):
    """One forward pass of a policy: (value, probability not followed, nodes asked, score).

    heat > 0: the optimistic policy, which gets the gifts, softened. heat = 0: the real policy,
    which gets none; what is rarer than `least`, has no room or is past the budget is counted as
    `worst[h]`, the least that can follow, and `value` is exact but for that. score[n] is
    sum_h Pr(n) * (what a gift at n is worth), and a little more where the real policy meets it.
    """
    (H, C, N), A, real = store.shape, net.pay.shape[1], heat == 0.0
    H -= 1
    mu, following = np.zeros((C, net.size[ROOM])), np.zeros((C, net.size[ROOM]))
    after, here = np.empty(net.size[ROOM]), np.empty(net.size[ROOM])
    q, score, met = np.empty(A), np.zeros(N), np.zeros((H + 1, C), np.bool_)
    mu[0, : len(start)], met[0, 0] = start, True
    value, lost, asked = 0.0, 0.0, 0
    for h in range(H):
        pay = net.last if h == H - 1 else net.pay
        for d in range(C):
            if not met[h, d]:
                continue
            load(net, store, h, d, line.move, after, here)
            for n in range(net.size[NODES] - 1, -1, -1):
                m = mu[d, n]
                if m == 0.0:
                    continue
                mu[d, n] = 0.0
                forced = net.age[n] > line.most[d]  # a gift that is real
                a = -1
                if not forced and m >= least and asked < budget:
                    asked += 1
                    a = choose(net, n, pay, after, here, q, slack, stack)
                if a >= 0 and n < N and net.kind[n] == GIFT:
                    score[n] += m * max(here[n] - q[a], 0.0)
                    if real:
                        score[n] += 1e-6 * m * (here[n] - worst[h])
                if a >= 0 and (real or net.kind[n] == DECISION):
                    value += m * pay[n, a]
                    best = q[a]
                    total = 0.0
                    for b in range(A):
                        if real:
                            q[b] = 1.0 if b == a else 0.0
                        else:
                            q[b] = np.exp((q[b] - best) / heat) if q[b] > best - 9 * heat else 0.0
                        total += q[b]
                    for b in range(A):
                        for f in range(C):
                            if q[b] > 0.0 and line.move[d, f] > 0.0:
                                part = q[b] / total * line.move[d, f]
                                following[f, net.child[n, b]] += m * part
                                met[h + 1, f] = True
                elif real and not forced:
                    lost += m
                    value += m * worst[h]
                else:
                    for e in range(net.ptr[n], net.ptr[n + 1]):
                        mu[d, net.link[e]] += m * net.p[e]
        mu, following = following, mu
    return value, lost, asked, score


@kernels.jit()
def _draw(p, first, end, rng):
    """A place from `first` to `end` by its probability."""
    mark, found = kernels.uniform(rng), first
    for i in range(first, end):
        if p[i] > 0.0:
            found = i
            mark -= p[i]
            if mark < 0.0:
                break
    return found


@kernels.jit(allocates=True)
def play(net, line, start, store, slack, worst, most_loss, rng, losses, stack):
    """Episodes of the real policy: what each loses against X_1, the value of the net.

        V = X_1 - E sum_h [X_h(n_h) - pay(n_h, a_h) - E X_{h+1}]

    An episode that loses more than `most_loss`, or meets a node without room, stops: the rest is
    counted as `worst[h]`. So no loss exceeds most_loss + max_h (max X_h - worst[h]). rng: the state
    of the random numbers of each episode. Returns whether there was room.
    """
    H, C, A = store.shape[0] - 1, store.shape[1], net.pay.shape[1]
    room, K, fits = net.size[ROOM], len(losses), True
    after, here, q = np.empty(room), np.empty(room), np.empty(A)
    at, state = np.empty(K, np.int64), np.zeros(K, np.int64)
    for i in range(K):
        at[i] = _draw(start, 0, len(start), rng[i])
        losses[i] = 0.0
    for h in range(H):
        pay = net.last if h == H - 1 else net.pay
        for d in range(C):
            if not (state == d).any():
                continue
            load(net, store, h, d, line.move, after, here)
            for i in range(K):
                if state[i] != d:
                    continue
                n = at[i]
                while net.age[n] > line.most[d]:
                    n = net.link[_draw(net.p, net.ptr[n], net.ptr[n + 1], rng[i])]
                a = choose(net, n, pay, after, here, q, slack, stack)
                fits = fits and a >= 0
                if a < 0 or losses[i] + here[n] - q[a] > most_loss:
                    losses[i] += here[n] - worst[h]
                    state[i] = -1
                    continue
                losses[i] += here[n] - q[a]
                at[i] = net.child[n, a]
        for i in range(K):
            if state[i] >= 0:
                state[i] = _draw(line.move[state[i]], 0, C, rng[i])
    return fits


@kernels.jit()
def _value(net, store, row, h, n, known, stamp, tick, stack):
    """E X_{h+1} of one node; known[m] is that of the nodes with stamp[m] = tick."""
    top, stack[0] = 0, n
    while top >= 0:
        m, below = stack[top], top
        if stamp[m] != tick:
            v = 0.0
            if m < store.shape[2]:
                for f in range(len(row)):
                    if row[f] > 0.0:
                        v += row[f] * store[h + 1, f, m]
            else:
                for e in range(net.ptr[m], net.ptr[m + 1]):
                    if stamp[net.link[e]] == tick:
                        v += net.p[e] * known[net.link[e]]
                    else:
                        top += 1
                        stack[top] = net.link[e]
            if top > below:
                continue
            known[m], stamp[m] = v, tick
        top -= 1
    return known[n]


@kernels.jit()
def ask(net, line, store, slack, h, d, n, q, known, stamp, tick, stack):
    """The action of the real policy in node n of layer h, and q of every action; -1: no room."""
    pay, best = (net.last if h == store.shape[0] - 2 else net.pay), -np.inf
    for a in range(len(q)):
        child = extend(net, n, a, stack)
        if child < 0:
            return -1
        row = line.move[d]
        q[a] = pay[n, a] + _value(net, store, row, h, child, known, stamp, tick, stack)
        best = max(best, q[a])
    a = 0
    while q[a] < best - slack:
        a += 1
    return a


@kernels.jit(allocates=True)
def resolve(to, p, n, pay, value):
    """pay(x, w_1) + E value(x', w_2 ...): the queue w is one longer. The oldest action is first."""
    S, A = pay.shape
    K = value.shape[1]
    out = np.empty((S, A * K), np.float32)
    for x in range(S):
        for a in range(A):
            for k in range(K):
                out[x, a * K + k] = pay[x, a]
            for j in range(n[x, a]):
                share, y = np.float32(p[x, a, j]), to[x, a, j]
                for k in range(K):
                    out[x, a * K + k] += share * value[y, k]
    return out


@kernels.jit(allocates=True)
def choose_next(to, p, n, pay, value, out):
    """pay(x, w_1) + max_a E value(x', w_2 ... w_d a), in blocks of queues."""
    S, A = pay.shape
    K = value.shape[1]  # A^d
    rest = K // A  # w_2 ... w_d, each with every a after it
    block = min(K, A * max(1, 2048 // A))
    mean = np.empty(block, np.float32)
    for x in range(S):
        for first in range(0, K, block):
            size = min(block, K - first)
            for b in range(A):
                mean[:size] = 0.0
                for j in range(n[x, b]):
                    share, y = np.float32(p[x, b, j]), to[x, b, j]
                    for k in range(size):
                        mean[k] += share * value[y, first + k]
                paid, at = np.float32(pay[x, b]), b * rest + first // A
                for k in range(size // A):
                    best = mean[A * k]
                    for a in range(1, A):
                        best = max(best, mean[A * k + a])
                    out[x, at + k] = paid + best
