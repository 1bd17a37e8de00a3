"""How late states are, as a Markov chain beside the net: `Line`.

A state of the chain is (n, waited): so many actions are unresolved, and it is so long since the
last state was shown. States with the same future are one.
"""

from __future__ import annotations

import attrs
import numpy as np

from pkd import ModelError
from pkd_delay.delayed import Delayed
from pkd_delay.laws.kernel import DelayKernel
from pkd_delay.long.kernels import Line

__all__ = ["Places", "make_line"]


Place = tuple[int, int]  # (n, waited)
Row = dict[Place, float]


@attrs.frozen
class Places:
    """A line, where (n, waited) is in it, and what follows that after one more action."""

    line: Line
    group: dict[Place, int]
    rows: dict[Place, Row]

    def find(self, n: int, waited: int) -> int:
        """The state of the line when n actions are unresolved."""
        if (n, waited) not in self.group:
            raise ModelError(
                f"a queue of {n} actions cannot occur {waited} steps after a state was shown"
            )
        return self.group[n, waited]


def make_line(delayed: Delayed) -> Places:
    """The line of a delay whose law is one for all states and actions."""
    law = delayed.delay_of.one
    if law is None:
        raise ModelError(
            "the law of the delay depends on state and action, so there are no bounds for long "
            "delays; expected one law for all states and actions (inter_arrival={...}, Lags or a "
            "DelayChain), or an exact plan: pkd_delay.plan without gap"
        )
    rows: dict[Place, Row] = {}
    todo, largest = [(0, 0)], delayed.max_delay
    for place in todo:  # grows
        if place not in rows:
            rows[place] = _follow(law, largest, *place)
            todo += rows[place]
    if all(law.row(before, largest)[-1] == 1.0 for before in range(largest + 1)):
        # At most `largest` actions are unresolved, always: earlier there are not so many.
        return Places(Line(np.array([largest]), np.ones((1, 1))), dict.fromkeys(rows, 0), rows)
    group = _merge(rows)
    most = np.zeros(1 + max(group.values()), np.int64)
    move = np.zeros((len(most), len(most)))
    for place, row in reversed(rows.items()):  # the first of a group speaks for it
        i = group[place]
        most[i], move[i] = place[0], 0.0
        for other, p in row.items():
            move[i, group[other]] += p
    return Places(Line(most, move), group, rows)


def _follow(law: DelayKernel, largest: int, n: int, waited: int) -> Row:
    """The law of (n, waited) after one more action."""

    def arrive(before: int, delay: int) -> float:
        last = delay >= largest or type(law).ask(before, delay).number >= law.longest
        return 1.0 if last else law.arrival(before, delay)

    left = arrive(n - waited, n)
    row = {(n + 1, waited + 1): 1 - left}
    while n > 0 and left > 0.0:  # shown, n are left: perhaps one more follows
        p = arrive(n, n - 1)
        row[n, 0] = left * (1 - p)
        left, n = left * p, n - 1
    row[0, 0] = row.get((0, 0), 0.0) + left
    return {place: p for place, p in row.items() if p > 0.0}


def _merge(rows: dict[Place, Row]) -> dict[Place, int]:
    """Numbers places; those that differ neither in n nor in what follows have the same one."""
    group = {place: place[0] for place in rows}
    while True:
        futures = {}
        for place, row in rows.items():
            total: dict[int, float] = {}
            for other, p in row.items():
                total[group[other]] = total.get(group[other], 0.0) + p
            ahead = sorted((g, round(p, 13)) for g, p in total.items())
            futures[place] = (group[place], *ahead)
        number = {future: i for i, future in enumerate(dict.fromkeys(futures.values()))}
        done = len(number) == len(set(group.values()))
        group = {place: number[future] for place, future in futures.items()}
        if done:
            return group
