"""The record of one finished episode of a delayed problem; it prints like the paper's tables.

Everything of Assumption 1 is in it: states s_1, ..., s_{H+1}, actions a_1, ..., a_H, raw
inter-arrival times Delta_1, ..., Delta_H and total delays D_1, ..., D_H. It exists only when the
episode is over, because the agent must not see the Deltas before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

import pkd
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.unknown import UnknownDelay

__all__ = ["Episode", "Row"]


@attrs.frozen
class Row:
    """One line of the table. Queue and last state are indices: state 3 is s_3, action 2 is a_2."""

    step: int | None  # h; None at the end of the episode
    last_state: int  # t_h
    queue: tuple[int, ...]
    # Steps since the last state was shown; -1 where a further one is shown in the same step.
    counter: int | None
    delta: int | None  # Delta and D of the last state, in its first row only
    delay: int | None


@attrs.frozen
class Episode:
    """What happened in one episode, all of it.

    The base may have ended before the H-th action; then there are fewer states, and the later
    actions did nothing.

    >>> from pkd_delay import DelayedMDP, plan, simulate
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> (episode,) = simulate(delayed, plan(delayed).action, 1)
    >>> len(episode.states), episode.delays
    (4, (1, 1, 1))
    """

    horizon: int
    states: tuple[Any, ...]  # s_1, ..., s_{H+1} as the agent sees them
    actions: tuple[Any, ...]  # a_1, ..., a_H
    deltas: tuple[int, ...]  # raw Delta_1, ..., Delta_H; raw lags where the law is one of lags
    delays: tuple[int, ...]  # D_1, ..., D_H
    moves: tuple[tuple[pkd.Transition, ...], ...] = attrs.field(
        repr=False
    )  # of the base, for a_1, ..., a_H
    opening: tuple[pkd.Transition, ...] = attrs.field(
        repr=False
    )  # chance moves of the base before s_1
    final: float = 0.0  # paid by the base where the episode stopped
    start_delay: int = 0  # D_0: how late s_1 was

    @property
    def total(self) -> float:
        """The return: everything that was paid."""
        paid = [move.reward or 0.0 for part in (self.opening, *self.moves) for move in part]
        return sum(paid) + self.final

    def shown_at(self, t: int) -> int:
        """The step at which s_t is shown, t = 1, 2, ...; H + 1 is the end of the episode."""
        return 1 if t == 1 else min(t + self.delays[t - 2], self.horizon + 1)

    @property
    def rows(self) -> list[Row]:
        """The lines of the table; each further state shown in the same step has its own line."""
        rows, t = [], 1
        for step in range(1, len(self.actions) + 1):
            fresh = step == 1
            while t < len(self.states) and self.shown_at(t + 1) == step:
                if fresh:
                    rows.append(self._row(step, t, SHOWN))
                t, fresh = t + 1, True
            rows.append(self._row(step, t, step - self.shown_at(t)))
        return [*rows, Row(None, len(self.states), (), None, None, None)]

    def _row(self, step: int, t: int, counter: int) -> Row:
        first = counter <= 0 and t <= len(self.deltas)
        delta, delay = (self.deltas[t - 1], self.delays[t - 1]) if first else (None, None)
        return Row(step, t, tuple(range(t, step)), counter, delta, delay)

    def table(
        self,
        state_label: Callable[[Any], str] | None = None,
        action_label: Callable[[Any], str] | None = None,
    ) -> str:
        """The table as text, with the paper's symbols, or with labels where they are given.

        Columns: step h, last shown state, queue, counter, Delta of that state, its total delay D.
        """

        def state(t: int) -> str:
            return f"s{t}" if state_label is None else state_label(self.states[t - 1])

        def action(t: int) -> str:
            return f"a{t}" if action_label is None else action_label(self.actions[t - 1])

        lines: list[tuple[str, ...]] = [("h", "state", "queue", "counter", "Delta", "D")]
        previous = None
        for row in self.rows:
            step = "End" if row.step is None else "" if row.step == previous else str(row.step)
            queue = "(" + ", ".join(map(action, row.queue)) + ")" if row.queue else "-"
            counter = (
                "-" if row.counter is None else "(-1)" if row.counter == SHOWN else str(row.counter)
            )
            numbers = ("-" if n is None else str(n) for n in (row.delta, row.delay))
            lines.append((step, state(row.last_state), queue, counter, *numbers))
            previous = row.step
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    def __str__(self) -> str:
        return self.table()

    def augmented(self, model: pkd.PartiallyKnownMDP) -> pkd.Episode:
        """The same episode as the adapter sees it: 3H - 1 moves for a tabular base.

        The raw Deltas are revealed to an `UnknownDelay`, unless it has revealed=False. A model
        whose observations are not late sees the moves as they are.
        """
        if not isinstance(model, Augmented):
            parts = (self.opening, *self.moves)
            return pkd.Episode([move for part in parts for move in part], final=self.final)
        first = (self.opening or self.moves[0])[0]
        at: tuple[Any, Any, Any, int] = (first.x, first.y, (), SHOWN if self.opening else 0)
        transitions = []

        def go(
            x: Any,
            y: Any,
            queue: tuple[Any, ...] | None,
            counter: int,
            action: Any = None,
            reward: float | None = 0.0,
        ) -> None:
            nonlocal at
            before, after = model.place(*at), model.place(x, y, queue, counter)
            transitions.append(pkd.Transition(*before, action, *after, reward))
            at = (x, y, queue, counter)

        for move in self.opening:
            go(move.x_next, move.y_next, (), SHOWN, reward=move.reward)
        if self.opening:
            go(*at[:3], 0)
        t = 1
        for step, action in enumerate(self.actions, start=2):
            x, y, queue, counter = at
            arrives = self.shown_at(t + 1) == step
            go(x, y, (*queue, action), TRAN if arrives else counter + 1, action)
            while arrives:
                left = at[2][1:]
                pending = None if t == self.horizon else left
                for move in self.moves[t - 1]:
                    go(move.x_next, move.y_next, pending, SHOWN, reward=move.reward)
                t += 1
                arrives = t <= len(self.moves) and self.shown_at(t + 1) == step
                if t <= len(self.moves):
                    go(*at[:2], left, TRAN if arrives else 0)
        told = isinstance(model, UnknownDelay) and model.revealed
        return pkd.Episode(transitions, self.deltas if told else None)
