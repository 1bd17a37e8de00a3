"""A controller in production: late messages in, actions out, and the episode on record.

`Controller` stands where `LateEnv` stands in a simulation. It takes messages (state, sent,
received) as they come, in any order, and keeps the queue of its own actions. It asks a plan, a
function, a policy from a file or a learner what to do. It can write each change to a file, from
which a program that was stopped goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

import pkd
from pkd import CHANCE, END, Known, ModelError, PartiallyKnownMDP, Transition, UnknownReward
from pkd.episode import list_branches
from pkd.expect import instance, require, show
from pkd.files import DAMAGE, decode, encode, index_values, say, write_text
from pkd_delay.augmented import Augmented
from pkd_delay.delayed import Delayed
from pkd_delay.episodes import DelayedEpisode
from pkd_delay.planning import DelayedStationary
from pkd_delay.policies import LatePlan

__all__ = ["Controller"]

KIND = "pkd controller"
SLACK = 1e-6  # of a tick: a message that rounding puts just after a tick belongs to it
Time = float | datetime
Moves = tuple[Transition, ...]


@attrs.frozen
class _Message:
    """A state that has come."""

    state: Any
    step: int  # at whose beginning it came
    paid: float | None = None


class Controller:
    """Takes late states as they come, and says what to do.

    policy: a plan of `delayed`, its stationary policy, a learner of its model, or a function
    (h, state, queue, waited) such as a `pkd.PolicyTable`. tick: how long a step takes, in the unit
    of `sent` and `received`, or a `timedelta`. fallback: what is done where the policy knows no
    answer, because a state is later than `max_delay` or lost; None: that is a `ModelError`. file:
    where every change is written; if it is there already, the controller goes on from it.

    States count in the order in which they were sent: one that comes early waits for those before
    it, as in the model. A state that is later than `max_delay` counts as lost: then the newest one
    that has come takes its place, and the episode teaches nothing.

    >>> import pkd_delay
    >>> from pkd_delay.models.tables import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=3, stay=1.0), 1)
    >>> control = Controller(late, pkd_delay.plan(late))
    >>> control.begin(0)  # the state of step 1
    >>> first = control.act()
    >>> second = control.act()  # nothing has come since then
    >>> control.receive(0, sent=2)
    >>> first, second, control.act(), control.queue
    (0, 0, 0, (0, 0))
    """

    def __init__(
        self,
        delayed: Delayed,
        policy: Any,
        *,
        tick: float | timedelta = 1.0,
        fallback: Hashable | None = None,
        file: str | Path | None = None,
    ) -> None:
        require(instance("delayed", delayed, Delayed, "a pkd_delay.Delayed"))
        self.delayed, self.policy, self.tick, self.file = delayed, policy, tick, file
        self.endless = isinstance(policy, DelayedStationary)
        self.learner = policy if isinstance(policy, pkd.OptimisticLearner) else None
        self._act = self._find_act(policy)
        actions = delayed.facts.actions
        if fallback is not None and fallback not in actions:
            raise ModelError(f"fallback is {show(fallback)}; expected one of {list(actions)!r}")
        if not tick > type(tick)(0):  # type: ignore[operator]
            raise ModelError(f"tick is {show(tick)}; expected a length of time above 0")
        self.fallback = fallback
        self._start: Any = None  # the time of step 1; None: no episode has begun
        self._actions: list[Any] = []  # from step `_gone` + 1 on
        self._came: dict[int, _Message] = {}  # t -> s_t; states that came early, too
        self._shown: int = 1  # the state that counts is s_t, t = shown
        self._due: int = 1  # the step at which it came
        self._gone: int = 0  # steps that an endless run has forgotten
        self._lost: bool = False  # whether a state was later than max_delay
        if file is not None and Path(file).exists():
            self._read(Path(file))

    @property
    def step(self) -> int:
        """h: the step whose action is due."""
        self._require_begun()
        return self._gone + len(self._actions) + 1

    @property
    def state(self) -> Any:
        """The state that counts now; those that are waited for come before any newer one."""
        self._look(self.step)
        return self._came[self._shown].state

    @property
    def queue(self) -> tuple[Any, ...]:
        """The own actions since that state, oldest first."""
        self._look(self.step)
        return tuple(self._actions[self._shown - 1 - self._gone :])

    @property
    def over(self) -> bool:
        """Whether no action is due any more: `end` closes the episode."""
        done = not self.endless and self.step > self.delayed.base.horizon
        return done or self._ends(self.state)

    def begin(self, state: Any, at: Time = 1) -> None:
        """Starts an episode in a state that is seen at once; `at`: the time of step 1."""
        if self._start is not None:
            raise ModelError("begin() in an episode that is not closed; call end() first")
        self.delayed.seen(state)
        self._reset(at)
        self._came[1] = _Message(state, 1)
        self._write()

    def receive(
        self, state: Any, sent: Time, received: Time | None = None, *, paid: float | None = None
    ) -> None:
        """Takes one message: the state at the time `sent`.

        received: None: now. A message that came earlier counts from now on, and one that will come
        later from then on. Duplicates are left out. paid: what the action before it paid, where
        the model has an unknown reward.
        """
        self._require_begun()
        self.delayed.seen(state)
        t, most = round(self._count(sent, "sent")), self.delayed.base.horizon + 1
        last = self.step if self.endless else min(self.step, most)
        if not 1 <= t <= last:
            raise ModelError(
                f"sent is {show(sent)}, which is step {t}; expected a step from 1 to {last}"
            )
        now = self.step
        if received is not None:
            now = max(now, math.ceil(self._count(received, "received") - SLACK))
        if t <= self._gone or (t in self._came and self._came[t].step <= now):
            return
        self._came[t] = _Message(state, now, paid)
        self._write()

    def act(self) -> Any:
        """What to do now. It is put into the queue, and the next step begins."""
        h = self.step
        self._skip(h)
        if self.over:
            raise ModelError(f"act() at step {h}: the episode is over; call end() and begin()")
        queue, answer = self.queue, self.fallback
        if len(queue) > self.delayed.max_delay:
            if answer is None:
                raise ModelError(
                    f"step {h}: the state of step {self._shown + 1} has not come after "
                    f"{len(queue)} steps, and max_delay is {self.delayed.max_delay}; expected it, "
                    "or a fallback="
                )
            self._lost = True
        else:
            answer = self._ask(h, queue)
        self._actions.append(answer)
        self._write()
        return answer

    def end(self) -> DelayedEpisode | None:
        """Closes the episode and teaches the learner; None: states were lost, nothing is taught.

        At the end all states that have come are shown. Wait for the late ones before.
        """
        self._require_begun()
        record = None if self.endless else self.record()
        learner = self.learner
        # A file may be older than its learner, which then knows the episode already.
        if record is not None and learner is not None and learner.observed == self._episode:
            learner.observe(record.augmented(learner.compiled.model))
        self._start = None
        self._write()
        return record

    def record(self) -> DelayedEpisode | None:
        """Everything about the episode so far, if it is over and no state is missing."""
        delayed, model = self.delayed, self.delayed.base
        states = [self._came[1].state]
        for t in range(2, len(self._actions) + 2):
            if self._ends(states[-1]):
                break
            if t not in self._came:
                return None
            states.append(self._came[t].state)
        n, horizon = len(states) - 1, model.horizon
        if self._lost or not (n == horizon or self._ends(states[-1])):
            return None
        moves = [self._tell(t, states) for t in range(1, n + 1)]
        due, delays = 1, list[int]()
        for t in range(2, n + 2):
            due = max(due, min(self._came[t].step, horizon + 1), t)
            delays.append(min(due, horizon + 1) - t)
        deltas = (after - before for before, after in zip([0, *delays], delays, strict=False))
        return DelayedEpisode(
            horizon, tuple(states), tuple(self._actions), tuple(deltas), tuple(delays),
            tuple(moves), _find_opening(model, *delayed.seen(states[0])),
            model.final(*delayed.seen(states[-1])),
        )  # fmt: skip

    def _find_act(self, policy: Any) -> Callable[..., Any]:
        """(h, state, queue, waited) -> action."""
        if isinstance(policy, LatePlan):
            act: Callable[..., Any] = policy.action
        elif isinstance(policy, DelayedStationary):
            act = lambda h, state, queue, waited: policy.action(state, queue, waited)  # noqa: E731
        elif isinstance(policy, pkd.OptimisticLearner):
            model = policy.compiled.model
            if not isinstance(model, Augmented):
                raise ModelError("the learner's model is not late; expected delayed.model()")
            if model.revealed:
                raise ModelError(
                    "the learner wants raw delays, which messages do not tell; expected "
                    "delayed.unknown() of a problem with revealed=False"
                )
            act = lambda h, state, queue, waited: policy.act(  # noqa: E731
                h, *model.place(*self.delayed.seen(state), queue, waited)
            )
        elif callable(policy) and not isinstance(policy, type):
            act = policy
        else:
            wanted = "a plan, a learner, or a function (h, state, queue, waited) -> action"
            raise ModelError(f"policy is {show(policy)}; expected {wanted}")
        return act

    def _ask(self, h: int, queue: tuple[Any, ...]) -> Any:
        """The answer of the policy, or the fallback where a lost state leaves it without one."""
        try:
            answer = self._act(h, self.state, queue, h - self._due)
        except ModelError:
            if self.fallback is None or not self._lost:
                raise
            return self.fallback
        if answer not in self.delayed.facts.actions:
            expected = list(self.delayed.facts.actions)
            raise ModelError(f"the policy takes {show(answer)}; expected one of {expected!r}")
        return answer

    def _look(self, h: int) -> None:
        """Shows what has come by step h, in the order in which it was sent."""
        while (one := self._came.get(self._shown + 1)) is not None and one.step <= h:
            self._shown, self._due = self._shown + 1, max(one.step, self._due, self._shown + 1)

    def _skip(self, h: int) -> None:
        """The newest state takes the place of one that is lost; an endless run forgets old ones."""
        self._look(h)
        if h - self._shown > self.delayed.max_delay:
            newest = max((t for t, one in self._came.items() if one.step <= h), default=0)
            if newest > self._shown:
                self._shown, self._due, self._lost = newest, self._came[newest].step, True
        if self.endless:
            self._actions, self._gone = list(self.queue), self._shown - 1
            self._came = {t: one for t, one in self._came.items() if t >= self._shown}

    def _tell(self, t: int, states: Sequence[Any]) -> Moves:
        """The moves of the base by action t."""
        here, there = (self.delayed.seen(state) for state in states[t - 1 : t + 1])
        done = self.delayed.done(*here, self._actions[t - 1])
        model = self.delayed.base
        paths = list(islice(_find_moves(model, here, done, there, t), 2))
        if len(paths) != 1:
            kind = "several ways lead" if paths else "no way leads"
            raise ModelError(
                f"{kind} from {states[t - 1]!r} to {states[t]!r} by {done!r}, so the learner "
                "cannot be told what happened; expected a state that says it"
            )
        return tuple(attrs.evolve(one, reward=self._pay(one, t)) for one in paths[0])

    def _pay(self, move: Transition, t: int) -> float:
        reward = self.delayed.base.reward(move.x, move.y, move.action)
        if not isinstance(reward, UnknownReward):
            return float(reward)
        paid = self._came[t + 1].paid
        if paid is None:
            raise ModelError(f"the reward of step {t} is unknown; expected receive(paid=...)")
        return paid

    def _ends(self, state: Any) -> bool:
        return self.delayed.base.actions(*self.delayed.seen(state)) is END

    def _count(self, time: Time, name: str) -> float:
        """The step of a time."""
        try:
            steps = float((time - self._start) / self.tick + 1.0)
            if math.isfinite(steps):
                return steps
        except (TypeError, OverflowError):
            pass
        raise ModelError(f"{name} is {show(time)}; expected a time like that of begin(at=)")

    def _require_begun(self) -> None:
        if self._start is None:
            raise ModelError("no episode has begun; call begin(state) first")

    def _reset(self, at: Time) -> None:
        self._start, self._lost = at, False
        self._actions, self._came = [], {}
        self._shown, self._due, self._gone = 1, 1, 0
        self._episode = 0 if self.learner is None else self.learner.observed

    def _write(self) -> None:
        """Writes the open episode, whole or not at all."""
        if self.file is None:
            return
        told: dict[str, Any] = {"kind": KIND, "open": self._start is not None}
        if self._start is not None:
            at = self._start
            told |= {
                "start": at.isoformat() if isinstance(at, datetime) else at,
                "places": [self._shown, self._due, self._gone, self._episode],
                "lost": self._lost,
                "actions": [encode(action) for action in self._actions],
                "came": [
                    [t, encode(m.state), m.step, m.paid] for t, m in sorted(self._came.items())
                ],
            }
        try:
            write_text(self.file, json.dumps(told) + "\n")
        except TypeError as problem:
            raise ModelError(f"{self.file} cannot be written: {problem}") from None

    def _read(self, path: Path) -> None:
        """Goes on from a file."""
        facts, model = self.delayed.facts, self.delayed.base
        parts = (part for x, y in facts.decisions for part in (x, y, (x, y)))
        own = index_values([*facts.actions, *parts])
        try:
            told = json.loads(path.read_text(encoding="utf-8"))
            if told["kind"] != KIND:
                raise ValueError(f"its kind is {told['kind']!r}")
            if not told["open"]:
                return
            at = told["start"]
            self._reset(datetime.fromisoformat(at) if isinstance(at, str) else float(at))
            self._shown, self._due, self._gone, self._episode = map(int, told["places"])
            self._lost = bool(told["lost"])
            self._actions = [decode(action, own) for action in told["actions"]]
            for t, state, step, paid in told["came"]:
                self._came[int(t)] = _Message(decode(state, own), int(step), paid)
            known = self._shown in self._came and {*self._actions} <= {*facts.actions}
            if not known or self._shown > self.step or self._gone >= self._shown:
                raise ValueError("its states and actions are not those of this problem")
            for one in self._came.values():
                model.actions(*self.delayed.seen(one.state))
        except DAMAGE as problem:
            raise ModelError(f"{path} is no controller of this problem: {say(problem)}") from None


def _find_moves(
    model: PartiallyKnownMDP, here: tuple[Any, Any], a: Any, there: tuple[Any, Any], taken: int
) -> Iterator[Moves]:
    """The ways by an action, and the CHANCE states after it, to a state without CHANCE."""
    for _, y, z in list_branches(model, *here, a, taken):
        reached = [x for x, p in z.law if p > 0] if isinstance(z, Known) else model.outcomes(z)
        for x in reached:
            move = Transition(*here, a, x, y)
            if model.actions(x, y) is CHANCE:
                for rest in _find_moves(model, (x, y), None, there, taken):
                    yield move, *rest
            elif (x, y) == there:
                yield (move,)


def _find_opening(model: PartiallyKnownMDP, x: Any, y: Any) -> Moves:
    """The CHANCE moves before the first decision state."""
    start = model.start()
    if not isinstance(start, tuple) or model.actions(*start) is not CHANCE:
        return ()
    ways = list(islice(_find_moves(model, start, None, (x, y), 0), 2))
    if len(ways) != 1:
        raise ModelError(f"the moves before the first state {(x, y)!r} are not known")
    return tuple(
        attrs.evolve(one, reward=float(model.reward(one.x, one.y, None)))  # type: ignore[arg-type]
        for one in ways[0]
    )
