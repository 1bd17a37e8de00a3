"""The optimum under a shorter constant delay: `Shorter`, an upper bound for every longer one.

Who sees states earlier can wait, so V*(d) >= V*(D) for d <= D. An optimum with d costs S A^(d+1)
per step and has no overhead, which stays cheap for longer than a net whose nodes are all different.
"""

from __future__ import annotations

import time

import numpy as np

from pkd_delay.long import kernels
from pkd_delay.long.table import Table

__all__ = ["Shorter"]

RATE = 1e9  # moves per second, before it was measured
MANY = 1e7  # moves that are enough to measure it


class Shorter:
    """Optima for delays of 1, 2, ..., each smaller than the one before.

        U_h(x, w) = pay(x, w_1) + max_a E U_{h+1}(x', w_2 ... w_d a)

    Here pay is counted when its state is resolved. `value` is the smallest optimum so far.
    """

    def __init__(self, table: Table, horizon: int, delay: int, memory: float) -> None:
        """Delay: the true one. memory: bytes."""
        self.table, self.horizon, self.memory = table, horizon, memory
        self.longest, self.delay, self.value = min(delay, horizon - 1), 0, np.inf
        self._rate = RATE

    def _count(self, delay: int) -> float:
        return float(self.table.n.sum()) * float(self.table.n.shape[1]) ** delay * self.horizon

    def improve(self, seconds: float) -> None:
        """Goes on to longer delays as long as the next one fits into the time and the memory."""
        began, (S, A, _) = time.perf_counter(), self.table.to.shape
        while self.delay < self.longest:
            following, now = self.delay + 1, time.perf_counter()
            left = seconds - (now - began)
            fits = 8.0 * S * float(A) ** following <= self.memory
            if not fits or self._count(following) > self._rate * left:
                break
            self.value, self.delay = min(self.value, self._solve(following)), following
            if self._count(following) > MANY:
                self._rate = self._count(following) / (time.perf_counter() - now)

    def _solve(self, delay: int) -> float:
        """V*(delay), rounded upwards: layers are in float32."""
        t = self.table
        B, H = t.to.shape[2], self.horizon
        value = t.last.astype(np.float32)  # what the queue still pays after the last step
        for _ in range(delay - 1):
            value = kernels.resolve(t.to, t.p, t.n, t.pay, value)
        after, most = np.empty_like(value), float(np.abs(value).max())
        for _ in range(H - delay):
            kernels.choose_next(t.to, t.p, t.n, t.pay, value, after)
            value, after = after, value
            most = max(most, float(np.abs(value).max()))
        error = (B + 4) * (H + 1) * most * float(np.finfo(np.float32).eps)
        best = value.max(axis=1).astype(float)
        return float(t.early + t.start @ best + error)
