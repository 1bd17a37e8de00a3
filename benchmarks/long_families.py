"""The families of `long_delays.py`: small problems of different kinds, as plain tables."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

import pkd
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp, riverswim

__all__ = ["FAMILIES"]

SIDES = ((-1, 0), (0, 1), (1, 0), (0, -1))


def nearly_deterministic(horizon: int = 40, sure: float = 0.95) -> pkd.TabularMDP:
    """(20, 4): one successor with .95, one of three others else."""
    rng = np.random.default_rng(1)
    P = np.zeros((20, 4, 20))
    for s, a in np.ndindex(20, 4):
        first, *others = rng.choice(20, 4, replace=False)
        P[s, a, others] = (1 - sure) * rng.dirichlet(np.ones(3))
        P[s, a, first] = sure
    return pkd.TabularMDP(P, rng.random((20, 4)), horizon)


def _walk(
    rows: int, columns: int, slip: Callable[[int, int], list[tuple[float, tuple[int, int]]]]
) -> np.ndarray:
    """P (S, 4, S) of a grid: slip(cell, action) lists the moves that may happen."""
    P = np.zeros((rows * columns, 4, rows * columns))
    for s, a in np.ndindex(rows * columns, 4):
        for p, (di, dj) in slip(s, a):
            i = min(max(s // columns + di, 0), rows - 1)
            j = min(max(s % columns + dj, 0), columns - 1)
            P[s, a, i * columns + j] += p
    return P


def lake(text: str, slip: float, horizon: int) -> pkd.TabularMDP:
    """A frozen lake: holes end an episode with nothing, the goal with 1."""
    cells, n = "".join(text.split()), len(text.split())

    def move(s: int, a: int) -> list[tuple[float, tuple[int, int]]]:
        sides = (slip / 2, SIDES[(a - 1) % 4]), (slip / 2, SIDES[(a + 1) % 4])
        return [(1 - slip, SIDES[a]), *sides]

    P, r = _walk(n, n, move), np.zeros((n * n, 4))
    goal = cells.index("G")
    r = P[:, :, goal].copy()
    for s, cell in enumerate(cells):
        if cell in "HG":
            P[s], r[s] = np.eye(n * n)[s], 0.0
    return pkd.TabularMDP(P, r, horizon)


def windy_grid(horizon: int = 40) -> pkd.TabularMDP:
    """(36, 4): gusts go up in the middle columns with .3; a cell among them pays 1 per step."""

    def move(s: int, a: int) -> list[tuple[float, tuple[int, int]]]:
        (di, dj), gust = SIDES[a], 0.3 if 2 <= s % 6 <= 4 else 0.0
        return [(1 - gust, (di, dj)), (gust, (di - 1, dj))]

    r = np.zeros((36, 4))
    r[22] = 1.0
    return pkd.TabularMDP(_walk(6, 6, move), r, horizon, start=18)


def courier(horizon: int = 60) -> pkd.TabularMDP:
    """(25, 4): the far corner pays 1 and sends the courier back; a tenth of the steps fails."""
    P = _walk(5, 5, lambda s, a: [(0.9, SIDES[a]), (0.1, (0, 0))])
    r = np.zeros((25, 4))
    P[24], r[24] = np.eye(25)[0], 1.0
    return pkd.TabularMDP(P, r, horizon)


def maintenance(horizon: int = 60) -> pkd.TabularMDP:
    """(9, 3): run hard, run gently or repair; wear lowers what a run earns, 8 is broken."""
    P, r = np.zeros((9, 3, 9)), np.zeros((9, 3))
    for s in range(9):
        for a, (wear, best) in enumerate(((0.4, 1.0), (0.2, 0.7))):
            P[s, a, min(s + 1, 8)] += wear
            P[s, a, s] += 1 - wear
            r[s, a] = 0.0 if s == 8 else best * (1 - s / 12)
        P[s, 2], r[s, 2] = 0.9 * np.eye(9)[0] + 0.1 * np.eye(9)[s], -0.5
    return pkd.TabularMDP(P, r, horizon)


def service(horizon: int = 60) -> pkd.TabularMDP:
    """(32, 3): a queue of up to 31; a faster server costs more, and so does a longer queue."""
    P, r = np.zeros((32, 3, 32)), np.zeros((32, 3))
    for s, a in np.ndindex(32, 3):
        rate, cost = ((0.3, 0.0), (0.5, 0.1), (0.8, 0.4))[a]
        for arrives, p in enumerate((0.55, 0.35, 0.1)):
            P[s, a, min(s + arrives, 31)] += p * (1 - rate)
            P[s, a, min(max(s - 1, 0) + arrives, 31)] += p * rate
        r[s, a] = 1 - s / 31 - cost
    return pkd.TabularMDP(P, r, horizon, start=5)


def servo(horizon: int = 60, drift: float = 0.0) -> pkd.TabularMDP:
    """(15, 3): hold a shaft at the middle; noise moves it, and an unstable one drifts outwards."""
    P, r = np.zeros((15, 3, 15)), np.zeros((15, 3))
    for s, a in np.ndindex(15, 3):
        out = drift * np.sign(s - 7)
        noise = {-1: 0.15 - out / 2, 0: 0.7, 1: 0.15 + out / 2}
        for w, p in noise.items():
            P[s, a, min(max(s + a - 1 + w, 0), 14)] += p
        r[s, a] = 1 - abs(s - 7) / 7 - 0.05 * (a != 1)
    return pkd.TabularMDP(P, r, horizon, start=7)


def taxi(horizon: int = 40) -> pkd.TabularMDP:
    """(320, 5): fetch a passenger and deliver; rain turns a fifth of the steps to a side.

    4 x 4 cells; the passenger waits at one of the corners or is in the taxi, and wants to one of
    them. The fifth action picks up or sets down. A delivery pays 1, and the next passenger waits.
    """
    corners = 0, 3, 12, 15
    states = list(product(range(16), range(5), range(4)))
    place = {state: i for i, state in enumerate(states)}

    def move(s: int, a: int) -> list[tuple[float, tuple[int, int]]]:
        return [(0.8, SIDES[a]), (0.1, SIDES[(a - 1) % 4]), (0.1, SIDES[(a + 1) % 4])]

    moves = _walk(4, 4, move)
    P, r = np.zeros((320, 5, 320)), np.zeros((320, 5))
    for (cell, rider, goal), i in place.items():
        for a in range(4):
            for other, p in enumerate(moves[cell, a]):
                P[i, a, place[other, rider, goal]] += p
        if rider < 4 and cell == corners[rider]:
            P[i, 4, place[cell, 4, goal]] = 1.0
        elif rider == 4 and cell == corners[goal]:
            r[i, 4] = 1.0
            for waits, wants in product(range(4), range(4)):
                P[i, 4, place[cell, waits, wants]] += 1 / 16
        else:
            P[i, 4, i] = 1.0
    return pkd.TabularMDP(P, r, horizon, start=place[5, 0, 3])


SMALL = "SFFF FHFH FFFH HFFG"
LARGE = "SFFFFFFF FFFFFFFF FFFHFFFF FFFFFHFF FFFHFFFF FHHFFFHF FHFFHFHF FFFHFFFG"
FAMILIES: dict[str, Callable[[], pkd.Problem]] = {
    "random": lambda: random_mdp(20, 4, 40),
    "nearly deterministic": nearly_deterministic,
    "autoscaler": lambda: autoscaler(horizon=60).problem,
    "lake 4x4": lambda: lake(SMALL, 2 / 3, 60),
    "maintenance": maintenance,
    "riverswim": lambda: riverswim(horizon=60),
    "windy grid": windy_grid,
    "courier": courier,
    "lake 8x8": lambda: lake(LARGE, 0.2, 60),
    "service": service,
    "servo": servo,
    "unstable servo": lambda: servo(drift=0.1),
    "taxi": taxi,
}
