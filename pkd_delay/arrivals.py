"""Lines of late messages: how long each message travels, and which ones have come.

Two lines are used by everything that plays a delayed world. `Arrivals` is Assumption 1 of the
paper: states are shown in order, none is lost, several can come at once. `Commands` is the line of
late actions: the newest command that has come is in force. How long a message travels is said by a
`DelayRule`, which `read_delay` makes from what a user writes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from pkd import ModelError
from pkd_delay.augmented import find_count_faults
from pkd_delay.inter_arrival import InterArrival, OneLaw, find_faults

__all__ = ["Arrivals", "Commands", "Delay", "DelayRule", "TravelTimes", "clip_delay", "read_delay"]

# (h, observation that the base shows at h, action that it executes at h) -> law of Delta_h
LawOf = Callable[[int, Any, Any], OneLaw]


class DelayRule(ABC):
    """Draws how many steps late the next message comes."""

    max_delay: int  # D: no message comes later

    @property
    def longest(self) -> int:
        """W: the delay grows by at most this much from one message to the next."""
        return self.max_delay

    @property
    def constant(self) -> bool:
        """Whether every message comes `max_delay` steps late."""
        return False

    @abstractmethod
    def draw(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> tuple[int, int]:
        """(Delta_h, D_h) for the message of step h; `before` is D_{h-1}."""

    def clip(self, before: int, delta: int) -> int:
        """D_h = clip(D_{h-1} + Delta_h; 0, D)."""
        return clip_delay(before + delta, self.max_delay)


def clip_delay(delay: int, largest: int) -> int:
    """A delay cut to 0, ..., `largest`."""
    return min(max(delay, 0), largest)


@attrs.frozen
class Changes(DelayRule):
    """Assumption 1: Delta_h ~ P_delay, D_h = clip(D_{h-1} + Delta_h; 0, D).

    >>> rule = Changes(InterArrival((0.0, 0.0, 1.0)), max_delay=2)  # Delta = 1 always
    >>> rule.draw(0, 1, None, None, np.random.default_rng(0)), rule.clip(2, 1)
    ((1, 1), 2)
    """

    law: InterArrival
    max_delay: int

    @property
    def longest(self) -> int:
        return min(self.law.longest, self.max_delay)

    @property
    def constant(self) -> bool:
        steps = self.law.longest
        return steps == self.max_delay and self.law.probabilities[-1] == 1.0

    def draw(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> tuple[int, int]:
        delta = self.law.draw(rng)
        return delta, self.clip(before, delta)


@attrs.frozen
class ChangesOf(DelayRule):
    """Assumption 1 with a law that depends on the step, on the hidden state and on the action."""

    law_of: LawOf
    max_delay: int

    def draw(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> tuple[int, int]:
        law = InterArrival.of(self.law_of(h, observation, action), f"the delay law of step {h}")
        delta = law.draw(rng)
        return delta, self.clip(before, delta)


@attrs.frozen(slots=False)  # without slots, so that the law can be cached
class TravelTimes(DelayRule):
    """Independent travel times {steps: probability}, as people measure them.

    A command of travel time j takes effect j steps after it is sent, unless a newer one has come
    before: this is `pkd_examples.late_actions`. States wait for their predecessors, so
    D_h = max(D_{h-1} - 1, L_h).

    >>> TravelTimes({0: 0.5, 3: 0.5}).max_delay
    3
    """

    law: Mapping[int, float] = attrs.field(converter=dict)
    max_delay: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        found = [f for steps in self.law for f in find_count_faults(steps, "a travel time")]
        found = found or find_faults(self.law, "the law of the travel time")
        if found:
            raise ModelError(found)

    @max_delay.default
    def _find_longest(self) -> int:
        return max((steps for steps, p in self.law.items() if p > 0), default=0)

    @property
    def constant(self) -> bool:
        return 1.0 in self.law.values()

    @cached_property
    def _steps(self) -> InterArrival:
        return InterArrival.of(self.law)

    def draw(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> tuple[int, int]:
        steps = self._steps.draw(rng, low=0)
        return steps - before, steps


Delay = int | OneLaw | LawOf | DelayRule


def read_delay(given: Any, max_delay: int | None, name: str) -> DelayRule:
    """The rule that a user means by a number, a law of Delta, a function of the step, or a rule.

    >>> read_delay(2, None, "observations").max_delay
    2
    >>> read_delay({-1: 0.5, 1: 0.5}, None, "observations")
    Traceback (most recent call last):
    pkd.model.ModelError: max_delay is None; observations has delays that grow, so say how far
    """
    if isinstance(given, DelayRule):
        return given
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        found = find_count_faults(given, name)
        if found:
            raise ModelError(found)
        return Changes(InterArrival.of({int(given): 1.0}), int(given))
    if max_delay is not None and (found := find_count_faults(max_delay, "max_delay")):
        raise ModelError(found)
    grows = f"max_delay is None; {name} has delays that grow, so say how far"
    if callable(given):
        if max_delay is None:
            raise ModelError(grows)
        return ChangesOf(given, max_delay)
    law = InterArrival.of(given, name)
    if max_delay is None and any(law.probabilities[2:]):
        raise ModelError(grows)
    return Changes(law, max_delay or 0)


@attrs.define
class Arrivals:
    """The line of states, s_1 first: which of them have been shown at the beginning of step h.

    s_{t+1} is shown at the beginning of step t + 1 + D_t, after its predecessors, or when
    everything is shown. D_0 = 0, unless s_1 travels, too.

    >>> line = Arrivals()
    >>> for delta, delay in [(1, 1), (2, 3), (-1, 2), (1, 3)]:  # the paper's second table
    ...     line.send(delta, delay)
    >>> [line.advance(h) for h in range(2, 7)], line.waited(6)
    ([0, 1, 0, 0, 2], 0)
    """

    start_delay: int = 0  # D_0
    deltas: list[int] = attrs.Factory(list)  # Delta_1, Delta_2, ...
    delays: list[int] = attrs.Factory(list)  # D_1, D_2, ...
    shown: int = 0  # t: s_1, ..., s_t have been shown
    _due: int = 0  # the step at which s_t was shown

    def __attrs_post_init__(self) -> None:
        self.advance(1)

    @property
    def delay(self) -> int:
        """D of the last state that was sent."""
        return self.delays[-1] if self.delays else self.start_delay

    def send(self, delta: int, delay: int) -> None:
        """One more state is on its way; it does not overtake: D_h >= D_{h-1} - 1."""
        late = max(delay, self.delay - 1)
        self.deltas.append(delta if late == delay else late - self.delay)
        self.delays.append(late)

    def advance(self, h: int, *, everything: bool = False) -> int:
        """Shows what is due at the beginning of step h; how many states that is."""
        before = self.shown
        while self.shown <= len(self.delays):
            late = self.delays[self.shown - 1] if self.shown else self.start_delay
            due = self.shown + 1 + late
            if due > h and not everything:
                break
            self.shown, self._due = self.shown + 1, min(due, h)
        return self.shown - before

    def waited(self, h: int) -> int:
        """Steps since the last shown state was shown; h - 1 before the first one."""
        return h - self._due if self.shown else h - 1


@attrs.define
class Commands:
    """The line of commands: the newest one that has come is in force, the older ones are forgotten.

    >>> line = Commands("hold", [])
    >>> for h, (action, lag) in enumerate([("up", 2), ("down", 1), ("up", 2)], start=1):
    ...     line.send(h, action, lag)
    ...     print(line.in_force, line.on_way)
    hold ('up',)
    hold ('up', 'down')
    down ('up',)
    """

    in_force: Any
    _waiting: list[tuple[int, Any]]  # (step at which it takes effect, command), oldest first
    since: int = 0  # steps for which it has been in force
    delay: int = 0  # of the last command that was sent

    @property
    def on_way(self) -> tuple[Any, ...]:
        """The commands on their way, oldest first; all are newer than the one in force."""
        return tuple(command for _, command in self._waiting)

    def send(self, h: int, command: Any, delay: int) -> None:
        """Sends a command at step h, and puts into force what has come by then."""
        self._waiting.append((h + delay, command))
        self.delay = delay
        self.since += 1
        for place in reversed(range(len(self._waiting))):
            due, newest = self._waiting[place]
            if due <= h:
                self.in_force, self.since = newest, 0
                del self._waiting[: place + 1]
                break
