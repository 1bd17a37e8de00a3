"""Slow references for delayed MDPs, each written straight from a definition and sharing no code
with pkd or pkd_delay.

`best_over_histories` is expectimax over everything that the agent has really seen. `mvp_delayed`
transcribes the paper's Algorithms 4 and 5 with the corrections of the errata. `solve` and
`value_of` walk the contract by plain recursion; they know nothing of delays.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from functools import cache

from pkd import CHANCE, END, Known


def by_inter_arrival(delay_law, D):
    """Assumption 1 as a chain of delays: (s, a, D_{h-1}) -> [(D_h, probability)]."""

    def next_delays(s, a, before):
        law = enumerate(delay_law(s, a), start=-1)
        return [(min(max(before + delta, 0), D), p) for delta, p in law]

    return next_delays


def best_over_histories(start, n_actions, H, move, next_delays):
    """The best expected return over all history-dependent policies, straight from the process.

    start {s: p}; move(h, s, a) -> [(p, s', reward)]; next_delays(s, a, D_{h-1}) -> [(D_h, p)]. A
    hidden trajectory is (states, delays, return); the belief is the set of all hidden trajectories
    that agree with what was seen, with their probabilities. What is seen at step h: every s_t with
    t + D_{t-1} <= h.
    """

    def seen(states, delays, h):
        return tuple(states[t - 1] for t in range(1, h + 1) if t + delays[t - 1] <= h)

    def best(h, belief):
        if h == H + 1:
            return sum(p * paid for (_, _, paid), p in belief.items())
        values = []
        for a in range(n_actions):
            after = defaultdict(lambda: defaultdict(float))
            for (states, delays, paid), p in belief.items():
                for delay, p_delta in next_delays(states[-1], a, delays[-1]):
                    for p_move, s_next, reward in move(h, states[-1], a):
                        weight = p * p_delta * p_move
                        if weight > 0:
                            hidden = ((*states, s_next), (*delays, delay), paid + reward)
                            after[seen(*hidden[:2], h + 1)][hidden] += weight
            values.append(sum(best(h + 1, group) for group in after.values()))
        return max(values)

    return sum(best(1, {((s,), (0,), 0.0): p}) for s, p in start.items() if p > 0)  # s_1 is seen


def best_in_tables(P, r, H, start, delay_law=None, D=None, next_delays=None):
    """`best_over_histories` of a tabular MDP: P (S, A, S), r (S, A), start (S,), delay_law (S, A, W
    + 2), or any chain of delays.
    """
    moves = {
        (s, a): [(p, t, r[s, a]) for t, p in enumerate(P[s, a]) if p > 0]
        for s in range(len(r))
        for a in range(len(r[0]))
    }
    return best_over_histories(
        dict(enumerate(start)),
        len(r[0]),
        H,
        lambda h, s, a: moves[s, a],
        next_delays or by_inter_arrival(lambda s, a: delay_law[s, a], D),
    )


def best_in_base(base, law, delay_law, D):
    """`best_over_histories` of any partially known MDP with actions 0, 1, ....

    Its chance states happen inside a step, unseen.

    A base that has ended stays where it is and pays nothing more; what it pays where it stops is
    paid on arrival there.
    """
    H = base.horizon

    def ask(z):
        return law(z) if callable(law) else law[z]

    def one_move(x, y, a, last):
        for p, y_next, z in (base.last_step if last else base.step)(x, y, a):
            for x_next, q in z.law if isinstance(z, Known) else ask(z).items():
                yield p * q, (x_next, y_next)

    def settle(
        state, last
    ):  # through the chance states to a decision state or an end: [(p, state, paid)]
        kind = base.actions(*state)
        if kind is END or (kind is not CHANCE and last):
            return [(1.0, state, base.final(*state))]
        if kind is not CHANCE:
            return [(1.0, state, 0.0)]
        paid = base.reward(*state, None)
        return [
            (p * q, t, paid + more)
            for p, s in one_move(*state, None, last)
            for q, t, more in settle(s, last)
            if p * q > 0
        ]

    @cache
    def move(h, state, a):
        if base.actions(*state) is END:
            return [(1.0, state, 0.0)]
        paid = base.reward(*state, a)
        return [
            (p * q, t, paid + more)
            for p, s in one_move(*state, a, h == H)
            for q, t, more in settle(s, h == H)
            if p * q > 0
        ]

    first = base.start()
    total, start = 0.0, defaultdict(float)
    for state, p in (first if isinstance(first, dict) else {first: 1.0}).items():
        for q, s, paid in settle(state, False):
            total += p * q * paid
            start[s] += p * q
    deciding = {s: p for s, p in start.items() if base.actions(*s) is not END}
    n_actions = len(base.actions(*next(iter(deciding)))) if deciding else 0
    chain = by_inter_arrival(delay_law, D)
    return total + best_over_histories(deciding, n_actions, H, move, chain)


def hazard(law, j):
    """Pr(Delta = j | Delta >= j), 1 where that is undefined.

    law = Pr(Delta = -1), ..., Pr(Delta = W).
    """
    tail = sum(law[j + 1 :])
    return law[j + 1] / tail if tail > 0 else 1.0


class Exact:
    """Values under given laws: plain expectations everywhere."""

    def __init__(self, P, r, delay_law, corrected=True):
        self.P, self.r, self.delay_law, self.corrected = P, r, delay_law, corrected

    def tran(self, s, a, values, n):
        return self.r[s, a] + sum(p * v for p, v in zip(self.P[s, a], values, strict=True))

    def arrival(self, s, a, c, empty, v_tran, v_delay, n):
        law = self.delay_law[s, a]
        # The paper uses the hazard for the empty queue, too; there Delta = -1 is clipped to 0.
        p = law[0] + law[1] if empty and self.corrected else hazard(law, c)
        return p * v_tran + (1 - p) * v_delay


class Optimistic(Exact):
    """MVP-Est from counts N(s, a, s'), (S, A, S), and either the known law of the delay or counts
    of Delta = -1..W, (S, A, W + 2).
    """

    def __init__(
        self,
        counts,
        r,
        H,
        K,
        delta,
        B,
        *,
        delay_law=None,
        delay_counts=None,
        W=None,
        c1=20 / 3,
        c2=400 / 9,
        log_factor=None,
    ):
        super().__init__(None, r, delay_law)
        self.counts, self.delay_counts, self.H, self.K, self.delta, self.B = (
            counts,
            delay_counts,
            H,
            K,
            delta,
            B,
        )
        self.W1, self.c1, self.c2, self.log_factor = max(W, 1), c1, c2, log_factor

    def ell(self, n, b):
        if self.log_factor is not None:
            return self.log_factor
        S, A = self.r.shape
        first = n * math.log(A) + math.log(
            64 * self.H * (self.H + 1) * (n + 1) ** 2 * self.W1 * S * A * self.K / self.delta
        )
        return min(first, b * math.log(32 * self.H * b * self.W1 * S * A * self.K / self.delta))

    def mvp_est(self, r, counts, values, ell):
        N = sum(counts)
        if N <= 1:
            return self.H
        p = [count / N for count in counts]
        mean = sum(q * v for q, v in zip(p, values, strict=True))
        variance = sum(q * (v - mean) ** 2 for q, v in zip(p, values, strict=True))
        return min(
            self.H, r + mean + self.c1 * math.sqrt(variance * ell / N) + self.c2 * self.H * ell / N
        )

    def tran(self, s, a, values, n):
        return self.mvp_est(self.r[s, a], self.counts[s, a], values, self.ell(n, self.B))

    def arrival(self, s, a, c, empty, v_tran, v_delay, n):
        if self.delay_counts is None:
            return super().arrival(s, a, c, empty, v_tran, v_delay, n)
        counts = self.delay_counts[s, a]
        at_least = {j: sum(counts[j + 1 :]) for j in range(-1, len(counts))}
        reached = at_least[-1] if empty else at_least[c]
        longer = at_least[1] if empty else at_least[c + 1]
        return self.mvp_est(0.0, (reached - longer, longer), (v_tran, v_delay), self.ell(n, 2))


def mvp_delayed(values, S, A, H, W, D):
    """Algorithms 4 and 5, corrected: V[s, queue, counter, h] for every augmented state, counters
    0..W, -1 and "tran".

    `values` is an `Exact` or an `Optimistic`: it says what a tran and an arrival are worth.
    """
    V = {}

    def queues(n):
        return itertools.product(range(A), repeat=n)

    def tran(s, q, h):
        return values.tran(s, q[0], [V[t, q[1:], -1, h] for t in range(S)], len(q))

    def q_estimate(s, q, c, h, empty):
        if len(q) == D + 1 or c == W or h == H + 1:
            return V[s, q, "tran", h]
        return values.arrival(s, q[0], c, empty, V[s, q, "tran", h], V[s, q, c + 1, h], len(q))

    for s in range(S):
        V[s, (), -1, H + 1] = 0.0
    for n in range(1, D + 2):
        for s, q in itertools.product(range(S), queues(n)):
            V[s, q, "tran", H + 1] = V[s, q, -1, H + 1] = tran(s, q, H + 1)
    for h in range(H, 0, -1):
        for n in range(D + 1):
            for s, q, c in itertools.product(range(S), queues(n), range(W + 1)):
                V[s, q, c, h] = max(q_estimate(s, (*q, a), c, h + 1, empty=not q) for a in range(A))
        for s in range(S):
            V[s, (), -1, h] = V[s, (), 0, h]
        for n in range(1, D + 2):
            for s, q in itertools.product(range(S), queues(n)):
                V[s, q, "tran", h] = tran(s, q, h)
                if n <= D:
                    V[s, q, -1, h] = q_estimate(s, q, -1, h, empty=False)
    return V


def solve(model, law):
    """The optimal value of a partially known MDP under its law, by recursion over (layer, x, y)."""
    return _value(model, law, lambda layer, x, y, values: max(values.values()))


def value_of(model, law, policy):
    """The expected return of policy(h, x, y)."""
    return _value(model, law, lambda layer, x, y, values: values[policy(layer, x, y)])


def _value(model, law, choose):
    H = model.horizon

    def ask(z):
        return law(z) if callable(law) else law[z]

    @cache
    def value(layer, x, y):
        kind = model.actions(x, y)
        if kind is END or (kind is not CHANCE and layer > H):
            return model.final(x, y)
        if kind is CHANCE:
            return move(layer, x, y, None, layer, settling=layer > H)
        return choose(
            layer, x, y, {a: move(layer, x, y, a, layer + 1, settling=layer == H) for a in kind}
        )

    def move(layer, x, y, a, following, settling):
        total = model.reward(x, y, a)
        for p, y_next, z in (model.last_step if settling else model.step)(x, y, a):
            outcomes = z.law if isinstance(z, Known) else ask(z).items()
            total += p * sum(
                q * value(following, x_next, y_next) for x_next, q in outcomes if p * q > 0
            )
        return total

    start = model.start()
    return sum(
        p * value(1, *state)
        for state, p in (start.items() if isinstance(start, dict) else [(start, 1.0)])
    )


def occurring_features(model):
    """Every unknown feature that can occur in an episode, by a walk over (layer, x, y)."""
    start = model.start()
    todo = [(1, *state) for state in (start if isinstance(start, dict) else [start])]
    met, features = set(todo), set()
    for layer, x, y in todo:
        kind = model.actions(x, y)
        if kind is END or (kind is not CHANCE and layer > model.horizon):
            continue
        following = layer if kind is CHANCE else layer + 1
        for a in (None,) if kind is CHANCE else kind:
            for p, y_next, z in (model.step if following <= model.horizon else model.last_step)(
                x, y, a
            ):
                known = isinstance(z, Known)
                if p > 0 and not known:
                    features.add(z)
                for x_next in [x for x, q in z.law if q > 0] if known else model.outcomes(z):
                    state = (following, x_next, y_next)
                    if p > 0 and state not in met:
                        met.add(state)
                        todo.append(state)
    return features
