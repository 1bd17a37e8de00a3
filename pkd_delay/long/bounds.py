"""Bounds on the optimum under a long delay, by gifts that are taken away: `Bounds`.

A node of the net is a *gift* (the state after its oldest action is shown at once, too early) or a
*decision* (the agent acts on what it knows). Gifts only help, so the optimum of the net, `high`,
bounds V* from above, whatever is a gift. `low` is the value of a policy that gets none.

    X_h(gift)     = sum_j p_j X_h(link_j)
    X_h(decision) = max_a r(node, a) + E X_{h+1}(child_a)

The search begins with gifts everywhere. It follows the optimistic policy, takes away the gifts that
are worth most to it, and solves again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pkd_delay.long import kernels
from pkd_delay.long.kernels import DECISION, GIFT, LINKS, NODES, ROOM, Line, Net
from pkd_delay.long.shorter import Shorter
from pkd_delay.long.table import Table

__all__ = ["Bounds", "Low", "Round", "lower_mean"]

RARE = 1e-9  # nodes that are met less often are never asked
GROWTH = 1.5  # of the net from round to round
FEW = 20_000  # nodes of a net that says nothing yet about larger ones
SHORT, ONCE = 0.05, 0.1  # of the time: for shorter delays in every round, and once early on
SPARE = 200_000  # nodes that a pass may make beside those of the net
HEAT, TIE = 1e-5, 1e-9  # of the range of rewards: softness of the optimistic policy; equal values
EPISODES, TRIAL = 20_000, 100  # of a simulated bound; of the look whether one is worth it
BATCH = 2000  # episodes that share the nodes that they make
OF_NODES = "age", "kind", "taken", "child", "ptr", "key"  # what a file has of every node
EVEN = 200_000  # nodes of the net that takes gifts by age alone
OWN, SIDE = 0.6, 0.2  # of the memory: of the net; of the even one, and of shorter delays
MOST_LOST, HOPELESS = 0.01, 0.3  # of the probability: more makes an exact lower value poor


class Round(NamedTuple):
    """Where the search stands."""

    seconds: float
    nodes: int
    low: float
    high: float

    def __str__(self) -> str:
        gap = (self.high - self.low) / max(abs(self.low), abs(self.high), 1e-300)
        return (
            f"{self.seconds:.0f} s, {self.nodes:,} nodes: {self.low:.6g} <= optimum <= "
            f"{self.high:.6g}, gap {gap:.2%}"
        )


class Low(NamedTuple):
    """A lower bound on the value of the real policy of a net, and which net it was."""

    value: float
    delta: float  # 0: exact; otherwise it was simulated and may fail with this probability
    round: int
    nodes: int
    links: int
    even: bool = False  # it is the policy of the even net


class Bounds:
    """low <= V* <= high, and a policy whose value is at least low."""

    def __init__(
        self, table: Table, line: Line, horizon: int, memory: float, nodes: int | None = None
    ) -> None:
        """memory: bytes. nodes: room for so many instead."""
        self.table, self.line, self.horizon = table, line, horizon
        (S, A, B), C = table.to.shape, len(line.most)
        self._same = bool(np.array_equal(table.pay, table.last))
        # The net with its hash table, its links, the layers, and two laws and values of a pass.
        size = 39 + (12 if self._same else 20) * A + 12 * min(B, 8) + 4 * (horizon + 1) * C
        fit = max(1000, int(OWN * memory / (size + 32 * C + 24)))
        self.most = S + fit if nodes is None else nodes
        self.net = self._make_net(min(self.most, 4 * S + SPARE))
        self.net.pay[:S], self.net.last[:S] = table.pay, table.last
        self._stack = np.zeros((B + 1) * (horizon + 2), np.int64)
        scale = float(max(np.ptp(table.pay), np.ptp(table.last))) or 1.0
        self.tie, self.heat = TIE * scale, HEAT * scale
        self.worst = self._find_worst()
        self.high, self.lost, self.lows = np.inf, 1.0, list[Low]()
        self.log, self._rate, self._least, self._trials = list[Round](), 1e5, 1e-6, 0
        self._each = 0.0  # seconds of an episode
        self._known, self._stamp, self._tick = np.zeros(0), np.zeros(0, int), 0  # of `ask`
        self.take(np.arange(S), np.inf)
        # Shorter delays bound a constant one; they and the even net need room of their own.
        constant = nodes is None and C == 1 and line.most[0] > 0
        self.shorter = (
            Shorter(table, horizon, int(line.most[0]), SIDE * memory) if constant else None
        )
        self.even: Bounds | None = None

    def _make_net(self, cap: int) -> Net:
        """An empty net with room for so many nodes."""
        t, (S, A, B) = self.table, self.table.to.shape
        pay, links = np.zeros((cap, A)), cap * min(B, 8) + B
        return Net(
            np.zeros(cap, np.int32), np.zeros(cap, np.int8), np.zeros(cap, np.int16),
            np.full((cap, A), -1, np.int32), np.zeros(cap + 1, np.int64),
            np.zeros(links, np.int32), np.zeros(links), pay,
            pay if self._same else np.zeros((cap, A)), np.zeros(cap, np.uint64),
            np.full(1 << (2 * cap - 1).bit_length(), -1, np.int32), np.array([S, 0, cap]),
            t.to, t.p, t.n, np.zeros(B, np.int64), np.zeros(B),
        )  # fmt: skip

    def _reserve(self, nodes: float) -> int:
        """Makes room for so many nodes, if memory allows: how many there may be."""
        room, old = int(min(nodes, self.most)), self.net
        if room > len(old.age):
            n, links = self.nodes, int(old.size[LINKS])
            self.net = self._make_net(int(min(1.5 * room, self.most)))
            for name in (*OF_NODES, "pay", "last"):
                kept = getattr(old, name)[: n + 1]
                getattr(self.net, name)[: len(kept)] = kept
            self.net.link[:links], self.net.p[:links] = old.link[:links], old.p[:links]
            kernels.roll_back(self.net, n, links)
        return room

    def _find_worst(self) -> np.ndarray:
        """The least that can follow from the beginning of each step on, whatever is done."""
        t, value, worst = self.table, np.zeros(len(self.table.start)), []
        for h in range(self.horizon, 0, -1):
            ahead = (t.p * value[t.to]).sum(axis=2)
            value = ((t.last if h == self.horizon else t.pay) + ahead).min(axis=1)
            worst.append(value.min())
        return np.array(worst[::-1])

    @property
    def nodes(self) -> int:
        """Nodes of the net."""
        return int(self.net.size[NODES])

    @property
    def best(self) -> Low:
        """The largest lower bound so far."""
        return max(self.lows, default=Low(-np.inf, 0.0, 0, 0, 0))

    @property
    def gap(self) -> float:
        """high - low, of the larger of both: 0.01 is one per cent."""
        low, high = self.best.value, self.high
        return (high - low) / max(abs(low), abs(high), 1e-300) if high > low else 0.0

    def take(self, order: np.ndarray, limit: float) -> bool:
        """Takes these gifts away, until the net has `limit` nodes. Whether there was room."""
        while True:
            limit = self._reserve(limit)
            done, fits = kernels.take_gifts(self.net, order, limit, self._stack)
            self.net.taken[order[:done]] = len(self.log) + 1
            if fits or len(self.net.age) == self.most:
                return bool(fits)
            order = order[done:]
            self._reserve(2 * len(self.net.age))

    def solve(self) -> None:
        """The optimum of the net as it is; keeps every layer, for passes and the policy."""
        n, (C, H) = self.nodes, (len(self.line.most), self.horizon)
        self.store = np.zeros((H + 1, C, n), np.float32)
        after, here = np.zeros((C, n)), np.zeros((C, n))
        for h in range(H - 1, -1, -1):
            pay = self.net.last if h == H - 1 else self.net.pay
            for d, row in enumerate(self.line.move):
                to = np.flatnonzero(row)
                ahead = after[to[0]] if len(to) == 1 else row[to] @ after[to]
                kernels.back_up(self.net, self.line.most[d], pay, ahead, here[d])
            self.store[h] = here
            after, here = here, after
        self.top = float(self.table.start @ after[0, : len(self.table.start)])
        self.high = min(self.high, self.table.early + self.top)

    def _make_even(self) -> Bounds:
        """A net without the gifts of all young nodes: its policy looks equally far everywhere."""
        most = int(self.most * SIDE / OWN)
        even, age = Bounds(self.table, self.line, self.horizon, 0.0, nodes=most), 0
        limit = min(EVEN, most // 2)
        while even.nodes < limit and age < self.line.most.max():
            age += 1
            young = even.net.age[: even.nodes] <= age
            gifts = np.flatnonzero(young & (even.net.kind[: even.nodes] == GIFT))
            even.take(gifts, limit)
        even.solve()
        return even

    def _look_shorter(self, seconds: float) -> None:
        """An upper bound from shorter delays."""
        if self.shorter is not None and self.high > self.best.value:
            self.shorter.improve(seconds)
            self.high = min(self.high, self.shorter.value)

    def refine(
        self,
        gap: float,
        seconds: float,
        delta: float = 0.0,
        tell: Callable[[Round], object] = lambda found: None,
    ) -> None:
        """Solves and takes gifts until the gap is small, or time or room is used up.

        delta: with which probability a simulated lower bound may fail; 0: exact ones only.
        """
        began, real, looked = time.perf_counter(), 0.0, False
        while True:
            t0 = time.perf_counter()
            self.solve()
            spent = time.perf_counter() - began
            due = spent > ONCE * seconds and not looked
            looked |= due
            self._look_shorter(ONCE * seconds if due else SHORT * spent)
            n, left = self.nodes, seconds - spent
            score = self._walk(self.heat, RARE, left / 4, 2 * n + SPARE)[1]
            now = time.perf_counter()
            # Nets whose nodes are all different lose against a shorter delay: no more of them.
            behind = self.high < self.table.early + self.top
            last = now - began + GROWTH * (now - t0) > 0.6 * seconds or n * GROWTH > self.most
            last = last or (looked and behind and n >= FEW)
            worth = float(score.sum())
            short = not worth or (self.lost < 1e-3 and worth < 0.3 * (self.high - self.best.value))
            if last and behind and self.gap > gap:
                self._look_shorter(0.3 * (seconds - (now - began)))
                now = time.perf_counter()
            if last or short or real < 0.4 * (now - began):
                left = seconds - (now - began)
                score += short * self._find_low(last, max(left, 0.05 * seconds), gap, delta)
                real += time.perf_counter() - now
            order = np.argsort(-score)[: np.count_nonzero(score > 1e-7 * self.heat)]
            spent = time.perf_counter() - began
            self.log.append(Round(spent, n, self.best.value, self.high))
            tell(self.log[-1])
            if self.gap <= gap or last or not len(order):
                break
            if not self.take(order, GROWTH * n + 100):
                break
        self._go_back()

    def _walk(
        self, heat: float, least: float, seconds: float, room: int
    ) -> tuple[float, np.ndarray]:
        """One forward pass, about so long: value and score."""
        began, room = time.perf_counter(), self._reserve(room)
        net, n, links = self.net, self.nodes, int(self.net.size[LINKS])
        budget = int(min(max(self._rate * seconds, 2000), 2**60))
        net.size[ROOM] = room
        start = self.table.start
        value, lost, asked, score = kernels.walk(
            net, self.line, start, self.store, heat, self.tie, least, budget, self.worst,
            self._stack,
        )  # fmt: skip
        net.size[ROOM] = len(net.age)
        kernels.roll_back(net, n, links)
        if heat == 0.0:
            self.lost = lost
        if asked > 1000:
            self._rate = asked / max(time.perf_counter() - began, 1e-6)
        return value, score

    def _find_low(self, last: bool, seconds: float, gap: float, delta: float) -> np.ndarray:
        """Lower bounds of the real policy: an exact one and, if that is poor, a simulated one."""
        n, share, began = self.nodes, 0.5 if last else 0.3, time.perf_counter()
        share = 0.1 if self.lows and delta and self.lost > HOPELESS else share
        room = self.most if last else 2 * n + SPARE
        value, score = self._walk(0.0, self._least, share * seconds, room)
        self._add_low(value, 0.0)
        too_low = self.lost * (self.high - self.table.early - self.worst[0])
        if self._least > RARE and too_low > 0.2 * (self.high - self.best.value):
            self._least /= 10
        if delta > 0.0 and self.gap > gap and self.lost > MOST_LOST:
            left = began + seconds - time.perf_counter()
            self._simulate(last, max(left, 0.1 * seconds), gap, delta)
        return score

    def _simulate(self, last: bool, seconds: float, gap: float, delta: float) -> None:
        """A simulated lower bound, if a few episodes say that it would do, or if it is the last."""
        began = time.perf_counter()
        if not last and TRIAL * self._each > 0.2 * seconds:
            return
        losses, policy = self.sample(TRIAL, seed=2 * self._trials)[0], self
        self._each = (time.perf_counter() - began) / TRIAL
        if last:
            self.even, mean = self._make_even(), self.top - losses.mean()
            started = time.perf_counter()
            losses = self.even.sample(TRIAL, seed=2 * self._trials)[0]
            if self.even.top - losses.mean() > mean:
                self._each, policy = (time.perf_counter() - started) / TRIAL, self.even
        spare = self.table.early + self.top - self.high + 0.7 * gap * abs(self.high)
        if not last and losses.mean() > spare:
            return
        self._trials += 1
        share = delta / (self._trials * (self._trials + 1))  # they sum to delta
        left = began + seconds - time.perf_counter()
        episodes = max(TRIAL, min(EPISODES, int(left / self._each)))
        losses, most = policy.sample(episodes, seed=2 * self._trials + 1)
        kept = lower_mean(1 - np.maximum(losses, 0.0) / most, share)
        value = policy.top - (1 - kept) * most - policy._rounding
        self._add_low(value, delta, even=policy is not self)

    def _add_low(self, value: float, delta: float, even: bool = False) -> None:
        nodes, links = (int(k) for k in self.net.size[:2])
        low = Low(self.table.early + value, delta, len(self.log) + 1, nodes, links, even)
        self.lows.append(low)

    @property
    def _rounding(self) -> float:
        """What layers in float32 can add to the mean loss of an episode."""
        return 4 * self.horizon * float(np.abs(self.store).max()) * float(np.finfo(np.float32).eps)

    def sample(self, episodes: int, seed: int) -> tuple[np.ndarray, float]:
        """What episodes of the real policy lose against the optimum of the net; the most of it."""
        losses = np.zeros(episodes)
        span = float((self.store[:-1].max(axis=(1, 2)) - self.worst).max())
        words = np.random.default_rng(seed).integers(2**64, size=(episodes, 4), dtype=np.uint64)
        for i in range(0, episodes, BATCH):
            self._play(0.2 * span, words[i : i + BATCH], losses[i : i + BATCH])
        return losses, 1.2 * span

    def _play(self, most_loss: float, words: np.ndarray, losses: np.ndarray) -> None:
        """Episodes with these random numbers, in halves if there is no room for all at once."""
        net, n = self.net, self.nodes
        fits = kernels.play(
            net, self.line, self.table.start, self.store, self.tie, self.worst, most_loss,
            words.copy(), losses, self._stack,
        )  # fmt: skip
        kernels.roll_back(net, n, int(net.ptr[n]))
        if not fits and len(losses) > 1:
            half = len(losses) // 2
            self._play(most_loss, words[:half], losses[:half])
            self._play(most_loss, words[half:], losses[half:])

    def _go_back(self) -> None:
        """The net whose policy has the best lower bound."""
        best, even, self.even = self.best, self.even, None
        if best.even and even is not None:
            self.net, self.store, self.top = even.net, even.store, even.top
            return
        net = self.net
        moved = best.nodes != self.nodes or best.round != len(self.log)
        kernels.roll_back(net, best.nodes, best.links)
        taken = net.taken[: best.nodes]
        net.kind[: best.nodes] = np.where((taken > 0) & (taken <= best.round), DECISION, GIFT)
        if moved:
            self.solve()

    def follow(self) -> float | None:
        """The exact value of the real policy; None: there is no room for all that it meets."""
        value = self._walk(0.0, 0.0, np.inf, self.most)[0]
        return None if self.lost > 0.0 else self.table.early + value

    def to_arrays(self) -> dict[str, np.ndarray]:
        """What a file needs to know of the net."""
        n, kept = self.store.shape[2], int(self.net.ptr[self.store.shape[2]])
        kernels.roll_back(self.net, n, kept)
        of_nodes = {name: getattr(self.net, name)[:n] for name in OF_NODES}
        return {**of_nodes, "link": self.net.link[:kept], "p": self.net.p[:kept]}

    @classmethod
    def of_arrays(
        cls, table: Table, line: Line, horizon: int, arrays: Mapping[str, np.ndarray]
    ) -> Bounds:
        """The net that `to_arrays` gave, solved again, which gives the same policy."""
        n, links = len(arrays["age"]), len(arrays["link"])
        self = cls(table, line, horizon, 0.0, nodes=n + SPARE)
        for name in OF_NODES:
            getattr(self.net, name)[:n] = arrays[name]
        self.net.ptr[n] = links
        self.net.link[:links], self.net.p[:links] = arrays["link"], arrays["p"]
        kernels.roll_back(self.net, n, links)
        for pays in (self.net.pay, self.net.last):
            for a in range(pays.shape[1]):
                column = pays[:, a].copy()
                kernels.fill(self.net, column, len(table.start))
                pays[:, a] = column
        self.solve()
        return self

    def find_node(self, state: int, queue: list[int]) -> int:
        """What is known after `state` was shown and these actions; -1: no room."""
        n = state
        for a in queue:
            n = kernels.extend(self.net, n, a, self._stack)
            if n < 0:
                break
        return int(n)

    def ask(self, h: int, d: int, state: int, queue: list[int]) -> tuple[int, np.ndarray]:
        """The action of the real policy at step h = 1, ..., H, and the value of every action.

        d: the state of the line.
        """
        q, n = np.zeros(self.net.pay.shape[1]), self.store.shape[2]
        if len(self._known) != len(self.net.age):
            self._known, self._stamp = (np.zeros(len(self.net.age), t) for t in (float, int))
            self._tick = 0
        for _ in range(2):
            self._tick += 1
            node = self.find_node(state, queue)
            a = -1
            if node >= 0:
                a = kernels.ask(
                    self.net, self.line, self.store, self.tie, h - 1, d, node, q, self._known,
                    self._stamp, self._tick, self._stack,
                )  # fmt: skip
            if a >= 0:
                return int(a), q
            kernels.roll_back(self.net, n, int(self.net.ptr[n]))  # what was asked is forgotten
            self._reserve(2 * n + SPARE)
        raise MemoryError(f"no room for what is known after {len(queue)} actions")


def lower_mean(x: np.ndarray, delta: float) -> float:
    """A lower bound on the mean of draws from [0, 1] that holds with probability 1 - delta.

    A gambler bets that the mean is above m, with several stakes at once. If it is at most m, his
    wealth is at least 1 / delta with probability delta at most (Ville's inequality).

    >>> round(lower_mean(np.ones(1000), 0.001), 3), round(lower_mean(np.full(1000, 0.9), 0.001), 2)
    (0.991, 0.89)
    """
    stakes = np.array([0.5**k for k in range(1, 16)] + [0.75, 0.9, 0.99])[:, None]

    def bet(m: float) -> Any:
        return np.logaddexp.reduce(np.log1p(stakes * (x / m - 1)).sum(axis=1))

    low, high, wealth = 0.0, float(x.mean()), np.log(len(stakes) / delta)
    for _ in range(50):
        m = (low + high) / 2
        low, high = (m, high) if m > 0 and bet(m) >= wealth else (low, m)
    return low
