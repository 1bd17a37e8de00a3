"""Delayed problems, simulated straight from the paper's Assumption 1.

No augmented state is used to play, so that this simulator can check the augmented construction. The
agent gets a `View` and nothing else: neither the current state, nor a Delta, nor a reward before
the state that it led to is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd import END, ModelError, Transition
from pkd_delay.arrivals import Arrivals, Changes
from pkd_delay.process import Delayed
from pkd_delay.record import Episode
from pkd_delay.true_base import TrueBase

if TYPE_CHECKING:
    from pkd_delay.augmented import Augmented

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

    A learner plays in it:

    >>> import pkd
    >>> model = delayed.known()
    >>> learner, view = pkd.OptimisticLearner(model), play.reset()
    >>> while not view.over:
    ...     view = play.act(learner.act(*play.place_of(view, model)))
    >>> learner.observe(play.record().augmented(model))
    >>> learner.observed
    1
    """

    def __init__(self, delayed: Delayed, seed: int | np.random.Generator = 0) -> None:
        self._delayed, self._base = delayed, delayed.base
        self._truth = TrueBase(delayed.base, delayed.base_law)
        self._rng = np.random.default_rng(seed)
        self._over = True

    def reset(self, deltas: Sequence[int] | None = None) -> View:
        """Starts an episode; s_1 is shown at once."""
        self._given = deltas
        self._opening = self._truth.reset(self._rng)
        self._states = [self._truth.here]
        self._moves = list[tuple[Transition, ...]]()
        self._actions, self._paid = list[Any](), list[float]()
        self._line = Arrivals()
        self._step, self._over = 1, False
        return self._show(1, sum(move.reward or 0.0 for move in self._opening))

    def act(self, action: Any) -> View:
        """Chooses an action; the world moves on, unseen, and what is due is shown."""
        if self._over:
            raise ModelError("act() in an episode that is over; call reset() first")
        self._actions.append(action)
        if not self._truth.over:
            self._move_hidden(self._delayed.done(*self._truth.here, action))
        self._step += 1
        everything = self._step > self._base.horizon
        return self._show(self._line.advance(self._step, everything=everything), 0.0)

    def place_of(self, view: View, model: Augmented) -> tuple[int, Any, Any]:
        """(h, x, y) of an adapter, as `OptimisticLearner.act` and `pkd.Plan.action` take it."""
        state = self._delayed.seen(view.state)
        return view.step, *model.place(*state, view.queue, view.waited)

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
            deltas=tuple(self._line.deltas),
            delays=tuple(self._line.delays),
            moves=tuple(self._moves),
            opening=self._opening,
            final=self._base.final(*self._truth.here),
        )

    def _move_hidden(self, action: Any) -> None:
        """Delta_h ~ P_delay(s_h, a_h) and s_{h+1} ~ P(s_h, a_h), both unseen.

        D_h = clip(D_{h-1} + Delta_h; 0, D), or as the form of the law says.
        """
        law = self._delayed.delay_of(*self._truth.here, action)
        rule = Changes(law, self._delayed.max_delay)
        drawn, delay = rule.draw(self._line.delay, self._step, None, action, self._rng)
        if self._given is not None:
            drawn = self._given[self._step - 1]
            delay = rule.follow(self._line.delay, drawn)
        self._line.send(drawn, delay)
        moves = self._truth.act(action, settling=self._step == self._base.horizon)
        self._moves.append(moves)
        self._paid.append(sum(move.reward or 0.0 for move in moves))
        self._states.append(self._truth.here)

    def _show(self, arrived: int, reward: float) -> View:
        """What the agent sees after so many states have arrived, and what they paid."""
        t = self._line.shown
        seen = self._states[t - 1]
        self._over = self._step > self._base.horizon or self._base.actions(*seen) is END
        final = self._base.final(*seen) if self._over else 0.0
        reward += sum(self._paid[max(t - arrived - 1, 0) : t - 1]) + final
        return View(
            step=self._step,
            state=self._delayed.shown_as(*seen),
            queue=() if self._over else tuple(self._actions[t - 1 :]),
            waited=0 if self._over else self._line.waited(self._step),
            news=tuple(self._delayed.shown_as(*state) for state in self._states[t - arrived : t]),
            reward=reward,
            over=self._over,
        )
