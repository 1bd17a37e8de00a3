"""Episodes of a delayed problem, straight from the paper's Assumption 1, and their records.

No augmented state is used to play, so that `simulate` can check the augmented construction. Its
policy is told (h, last shown state, queue, waited) and nothing else. A record holds everything:
states s_1, ..., s_{H+1}, actions a_1, ..., a_H, raw inter-arrival times Delta_1, ..., Delta_H and
total delays D_1, ..., D_H. It exists only when the episode is over, because the agent must not see
the Deltas before. It prints like the paper's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

import pkd
from pkd import CHANCE, END, Known, ModelError, PartiallyKnownMDP, Transition, UnknownReward
from pkd.expect import function, if_given, require, show, whole
from pkd.expect import seed as check_seed
from pkd.show.tables import format_table
from pkd.workers import memory
from pkd_delay.augmented import SHOWN, TRAN, Augmented
from pkd_delay.base import State
from pkd_delay.laws.arrivals import Arrivals, DelayRule

if TYPE_CHECKING:
    from pkd.model import Law
    from pkd_delay.delayed import Delayed

MOVE_BYTES = 100  # of a record of one move, at least
# (h, last shown state, queue, waited) -> action
LatePolicy = Callable[[int, Any, tuple[Any, ...], int], Hashable]
Moves = tuple[Transition, ...]


@attrs.frozen
class DelayedEpisode:
    """What happened in one episode, all of it.

    The base may have ended before the H-th action; then there are fewer states, and the later
    actions did nothing.

    >>> from pkd_delay import DelayedMDP, plan
    >>> from pkd_delay.models.tables import two_state_chain
    >>> delayed = DelayedMDP.constant(two_state_chain(horizon=3), 1)
    >>> (episode,) = plan(delayed).simulate(1)
    >>> len(episode.states), episode.deltas, episode.delays
    (4, (1, 1, 1), (1, 1, 1))
    """

    horizon: int
    states: tuple[Any, ...]  # s_1, ..., s_{H+1} as the agent sees them
    actions: tuple[Any, ...]  # a_1, ..., a_H
    deltas: tuple[int, ...]  # raw Delta_1, ..., Delta_H; raw lags where the law is one of lags
    delays: tuple[int, ...]  # D_1, ..., D_H
    moves: tuple[Moves, ...] = attrs.field(repr=False)  # of the base, for a_1, ..., a_H
    opening: Moves = attrs.field(repr=False)  # chance moves of the base before s_1
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

    def table(
        self,
        state_label: Callable[[Any], str] | None = None,
        action_label: Callable[[Any], str] | None = None,
    ) -> str:
        """The table as text, with the paper's symbols, or with labels where they are given.

        Columns: step h, last shown state, queue, counter, Delta of that state, its total delay D.
        Each further state shown in the same step has a line of its own, with the counter (-1).
        """

        def label(t: int) -> str:
            return f"s{t}" if state_label is None else state_label(self.states[t - 1])

        def write(step: int, t: int, counter: int) -> tuple[str, ...]:
            actions = range(t, step)
            words = [f"a{i}" if action_label is None else action_label(self.actions[i - 1])
                     for i in actions]  # fmt: skip
            first = counter <= 0 and t <= len(self.deltas)
            late = (self.deltas[t - 1], self.delays[t - 1]) if first else ("-", "-")
            queue = "(" + ", ".join(words) + ")" if words else "-"
            return label(t), queue, "(-1)" if counter == SHOWN else str(counter), *map(str, late)

        lines, t = [], 1
        for step in range(1, len(self.actions) + 1):
            name, fresh = str(step), step == 1
            while t < len(self.states) and self.shown_at(t + 1) == step:
                if fresh:
                    lines.append((name, *write(step, t, SHOWN)))
                    name = ""
                t, fresh = t + 1, True
            lines.append((name, *write(step, t, step - self.shown_at(t))))
        lines.append(("End", label(len(self.states)), "-", "-", "-", "-"))
        return format_table(("h", "state", "queue", "counter", "Delta", "D"), lines)

    def __str__(self) -> str:
        return self.table()

    def log_rows(self, episode: int = 0) -> list[dict[str, Any]]:
        """The log of the episode: a row for each state that was sent before step H + 1.

        It is watched until the agent saw that the base had ended, at most until step H: at step
        H + 1 everything is shown.
        """
        ended = len(self.states)  # no action is taken in the last state
        return [
            {
                "episode": episode,
                "step": t,
                "sent": t,
                "shown": self.shown_at(t) + (self.start_delay if t == 1 else 0),
                "end": min(len(self.actions) + 1, self.horizon),
                "state": self.states[t - 1],
                "action": self.actions[t - 1] if t < ended else None,
            }
            for t in range(1, min(ended, self.horizon) + 1)
        ]

    def augmented(self, model: PartiallyKnownMDP) -> pkd.Episode:
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

        def go(x: Any, y: Any, queue: Any, counter: int, action: Any = None, paid: Any = 0) -> None:
            nonlocal at
            before, after = model.place(*at), model.place(x, y, queue, counter)
            transitions.append(Transition(*before, action, *after, paid))
            at = (x, y, queue, counter)

        for move in self.opening:
            go(move.x_next, move.y_next, (), SHOWN, paid=move.reward)
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
                    go(move.x_next, move.y_next, pending, SHOWN, paid=move.reward)
                t += 1
                arrives = t <= len(self.moves) and self.shown_at(t + 1) == step
                if t <= len(self.moves):
                    go(*at[:2], left, TRAN if arrives else 0)
        return pkd.Episode(transitions, self.deltas if model.revealed else None)


def simulate(
    delayed: Delayed,
    policy: LatePolicy,
    episodes: int,
    seed: int = 0,
    deltas: Sequence[int] | None = None,
) -> list[DelayedEpisode]:
    """Plays a policy (h, last shown state, queue, waited) -> action for some episodes.

        Delta_h ~ P_delay(s_h, a_h) and s_{h+1} ~ P(s_h, a_h), both unseen;
        D_h = clip(D_{h-1} + Delta_h; 0, D), or as the form of the law says

    `deltas` replaces the drawn inter-arrival times of every episode. `LateEnv` plays step by step.
    """
    late = hasattr(delayed, "delay_of")
    require(
        [] if late else [f"delayed is {show(delayed)}; expected a pkd_delay.Delayed"],
        function("policy", policy, "(h, last shown state, queue, waited) -> action"),
        whole("episodes", episodes, 0, memory() // MOVE_BYTES),
        check_seed("seed", seed),
        if_given(_find_bad_deltas, "deltas", deltas, delayed.base.horizon if late else 0),
    )
    rng = np.random.default_rng(seed)
    truth = TrueBase(delayed.base, delayed.base_law)
    return [_play(delayed, truth, policy, rng, deltas) for _ in range(episodes)]


def _find_bad_deltas(name: str, deltas: Any, steps: int) -> list[str]:
    listed = isinstance(deltas, Sequence | np.ndarray) and len(deltas) >= steps
    if listed and not any(whole(name, delta, -1) for delta in deltas):
        return []
    return [f"{name} is {show(deltas)}; expected {steps} whole numbers >= -1, one for each step"]


def _play(
    delayed: Delayed,
    truth: TrueBase,
    policy: LatePolicy,
    rng: np.random.Generator,
    deltas: Sequence[int] | None,
) -> DelayedEpisode:
    opening, line = truth.reset(rng), Arrivals()
    states, actions, moves = [truth.here], list[Any](), list[Moves]()
    horizon = delayed.base.horizon
    for h in range(1, horizon + 1):
        line.advance(h)
        t = line.shown
        if delayed.base.actions(*states[t - 1]) is END:
            break
        shown = delayed.shown_as(*states[t - 1])
        actions.append(policy(h, shown, tuple(actions[t - 1 :]), line.waited(h)))
        if actions[-1] not in delayed.facts.actions:
            raise ModelError(
                f"the policy takes {show(actions[-1])} at step {h} in {shown!r}; expected one of "
                f"{list(delayed.facts.actions)!r}"
            )
        if truth.over:
            continue
        done = delayed.done(*truth.here, actions[-1])
        rule = DelayRule(delayed.max_delay, delayed.delay_of(*truth.here, done))
        delta, delay = rule.draw(line.delay, h, None, done, rng)
        if deltas is not None:
            delta, delay = deltas[h - 1], rule.follow(line.delay, deltas[h - 1])
        line.send(delta, delay)
        moves.append(truth.act(done, settling=h == horizon))
        states.append(truth.here)
    return DelayedEpisode(
        horizon,
        tuple(delayed.shown_as(*state) for state in states),
        tuple(actions),
        tuple(line.deltas),
        tuple(line.delays),
        tuple(moves),
        opening,
        delayed.base.final(*truth.here),
    )


class TrueBase:
    """A model and its law, played without delay, one action at a time.

    `simulate` shows its states late, and `ProblemEnv` at once, for `LateEnv` to delay.

    >>> from pkd_delay.models.tables import two_state_chain
    >>> chain = two_state_chain(horizon=2, stay=1.0)
    >>> base = TrueBase(chain.model(), chain.law())
    >>> base.reset(np.random.default_rng(0)), base.here
    ((), (0, None))
    >>> [move.reward for move in base.act(0, settling=False)], base.here
    ([1.0], (0, None))
    """

    here: State

    def __init__(self, model: PartiallyKnownMDP, law: Law) -> None:
        self.model, self._law = model, law

    def reset(self, rng: np.random.Generator) -> Moves:
        """Goes to a first state; the CHANCE moves of the base until its first decision."""
        self._rng, start = rng, self.model.start()
        self.here = self._draw(start.items()) if isinstance(start, Mapping) else start
        return self._run_chance(settling=False)

    @property
    def over(self) -> bool:
        """Whether the base has ended."""
        return self.model.actions(*self.here) is END

    def act(self, action: Any, *, settling: bool) -> Moves:
        """The move of the base by an action, and the CHANCE moves that follow."""
        return (self._move(action, settling=settling), *self._run_chance(settling=settling))

    def _run_chance(self, *, settling: bool) -> Moves:
        moves = []
        while self.model.actions(*self.here) is CHANCE:
            moves.append(self._move(None, settling=settling))
        return tuple(moves)

    def _move(self, action: Any, *, settling: bool) -> Transition:
        x, y = self.here
        step = self.model.last_step if settling else self.model.step
        y_next, z = self._draw([((y_next, z), p) for p, y_next, z in step(x, y, action)])
        x_next = self._draw(z.law if isinstance(z, Known) else self._ask(z))
        reward = self.model.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            reward = self._draw(self._ask(reward.feature))
        self.here = (x_next, y_next)
        return Transition(x, y, action, x_next, y_next, reward)

    def _ask(self, z: Any) -> Iterable[tuple[Any, float]]:
        law = self._law[z] if isinstance(self._law, Mapping) else self._law(z)
        return law.items()

    def _draw(self, pairs: Iterable[tuple[Any, float]]) -> Any:
        mark, value = self._rng.random(), None
        for candidate, p in pairs:
            if p > 0.0:
                value, mark = candidate, mark - p
                if mark < 0.0:
                    break
        return value
