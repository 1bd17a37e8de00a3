"""Delayed problems, simulated straight from the paper's Assumption 1.

No augmented state is used here, so that this simulator can check the augmented construction. The
agent gets a `View` and nothing else: neither the current state, nor a Delta, nor a reward before
the state that it led to is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from pkd import CHANCE, END, Known, ModelError, Transition, UnknownReward
from pkd_delay.base import State
from pkd_delay.process import Delayed
from pkd_delay.record import Episode

__all__ = ["Simulator", "View", "simulate"]

# (h, last shown state, queue, waited) -> action
Policy = Callable[[int, Any, tuple[Any, ...], int], Hashable]


@attrs.frozen
class View:
    """What the agent sees at the beginning of a step.

    >>> View(step=2, state=0, queue=(1,), waited=1, news=(), reward=0.0, over=False).queue
    (1,)
    """

    step: int  # h, or H + 1 when the episode is over
    state: Any  # the last shown state
    queue: tuple[Any, ...]  # the actions chosen since that state, oldest first
    waited: int  # steps since it was shown
    news: tuple[Any, ...]  # states shown at this step, oldest first; empty: nothing yet
    reward: float  # what the actions that led to these states paid
    over: bool


def simulate(
    delayed: Delayed,
    policy: Policy,
    episodes: int,
    seed: int = 0,
    deltas: Sequence[int] | None = None,
) -> list[Episode]:
    """Plays `policy` for some episodes.

    `deltas` replaces the drawn inter-arrival times of every episode.

    >>> from pkd_delay import DelayedMDP, plan
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> (episode,) = simulate(delayed, plan(delayed).action, 1)
    >>> episode.deltas, episode.delays
    ((1, 1, 1), (1, 1, 1))
    """
    simulator, records = Simulator(delayed, seed), []
    for _ in range(episodes):
        view = simulator.reset(deltas)
        while not view.over:
            view = simulator.act(policy(view.step, view.state, view.queue, view.waited))
        records.append(simulator.record())
    return records


class Simulator:
    """One delayed problem, step by step: `reset`, then `act` until the view is over, then `record`.

    >>> from pkd_delay import DelayedMDP, Simulator
    >>> from pkd_delay.problems import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> play = Simulator(delayed)
    >>> view = play.reset()
    >>> view.state, play.act(0).queue
    (0, (0,))
    """

    def __init__(self, delayed: Delayed, seed: int | np.random.Generator = 0) -> None:
        self._delayed, self._base, self._law = delayed, delayed.base, delayed.base_law
        self._rng = np.random.default_rng(seed)
        self._over = True

    def reset(self, deltas: Sequence[int] | None = None) -> View:
        """Starts an episode; s_1 is shown at once."""
        start = self._base.start()
        self._given = deltas
        drawn = self._draw(start.items()) if isinstance(start, Mapping) else start
        self._here: State = drawn
        self._states = list[State]()
        self._moves = list[tuple[Transition, ...]]()
        self._actions = list[Any]()
        self._deltas, self._delays, self._paid = list[int](), list[int](), list[float]()
        self._opening = self._run_chance(settling=False)
        self._states.append(self._here)
        self._step, self._shown, self._over = 1, 1, False
        return self._show(sum(move.reward or 0.0 for move in self._opening))

    def act(self, action: Any) -> View:
        """Chooses an action; the world moves on, unseen, and what is due is shown."""
        if self._over:
            raise ModelError("act() in an episode that is over; call reset() first")
        self._actions.append(action)
        if self._base.actions(*self._here) is not END:
            self._move_hidden(self._delayed.done(*self._here, action))
        self._step += 1
        return self._show(0.0)

    def record(self) -> Episode:
        """Everything about the episode, once it is over."""
        if not self._over:
            raise ModelError(
                f"record() at step {self._step} of {self._base.horizon}; "
                "states and delays are shown when the episode is over"
            )
        return Episode(
            horizon=self._base.horizon,
            states=tuple(self._delayed.shown_as(*state) for state in self._states),
            actions=tuple(self._actions),
            deltas=tuple(self._deltas),
            delays=tuple(self._delays),
            moves=tuple(self._moves),
            opening=self._opening,
            final=self._base.final(*self._here),
        )

    def _move_hidden(self, action: Any) -> None:
        """Delta_h ~ P_delay(s_h, a_h) and s_{h+1} ~ P(s_h, a_h), both unseen.

        D_h = clip(D_{h-1} + Delta_h; 0, D), or as the form of the law says.
        """
        law = self._delayed.delay_of(*self._here, action)
        before = self._delays[-1] if self._delays else 0
        drawn = law.numbers(before).draw(self._rng)
        delta = drawn if self._given is None else self._given[self._step - 1]
        delay = min(law.follow(before, delta), self._delayed.max_delay)
        self._deltas.append(delta)
        self._delays.append(delay)
        settling = self._step == self._base.horizon
        moves = (self._step_base(action, settling=settling), *self._run_chance(settling=settling))
        self._moves.append(moves)
        self._paid.append(sum(move.reward or 0.0 for move in moves))
        self._states.append(self._here)

    def _run_chance(self, *, settling: bool) -> tuple[Transition, ...]:
        moves = []
        while self._base.actions(*self._here) is CHANCE:
            moves.append(self._step_base(None, settling=settling))
        return tuple(moves)

    def _step_base(self, action: Any, *, settling: bool) -> Transition:
        x, y = self._here
        step = self._base.last_step if settling else self._base.step
        y_next, z = self._draw([((y_next, z), p) for p, y_next, z in step(x, y, action)])
        x_next = self._draw(z.law if isinstance(z, Known) else self._ask(z))
        reward = self._base.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            reward = self._draw(self._ask(reward.feature))
        self._here = (x_next, y_next)
        return Transition(x, y, action, x_next, y_next, reward)

    def _ask(self, z: Any) -> Iterable[tuple[Any, float]]:
        law = self._law[z] if isinstance(self._law, Mapping) else self._law(z)
        return law.items()

    def _show(self, reward: float) -> View:
        """Shows every s_t that is due: t + D_{t-1} <= h, and all of them at the end."""
        last_step = self._step > self._base.horizon
        before = self._shown
        while self._shown < len(self._states) and (
            last_step or self._shown + 1 + self._delays[self._shown - 1] <= self._step
        ):
            self._shown += 1
        t = self._shown
        seen = self._states[t - 1]
        self._over = last_step or self._base.actions(*seen) is END
        final = self._base.final(*seen) if self._over else 0.0
        reward += sum(self._paid[before - 1 : t - 1]) + final
        news = self._states[before:t] if self._step > 1 else self._states[:1]
        return View(
            step=self._step,
            state=self._delayed.shown_as(*seen),
            queue=() if self._over else tuple(self._actions[t - 1 :]),
            waited=0 if self._over else self._step - t - (self._delays[t - 2] if t > 1 else 0),
            news=tuple(self._delayed.shown_as(*state) for state in news),
            reward=reward,
            over=self._over,
        )

    def _draw(self, pairs: Iterable[tuple[Any, float]]) -> Any:
        mark, value = self._rng.random(), None
        for candidate, p in pairs:
            if p > 0.0:
                value, mark = candidate, mark - p
                if mark < 0.0:
                    break
        return value
