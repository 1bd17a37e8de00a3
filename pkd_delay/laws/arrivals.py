"""Lines of late messages: how long each message travels, and which ones have come.

Two lines are used by everything that plays a delayed world. `Arrivals` is Assumption 1 of the
paper: states are shown in order, none is lost, several can come at once. `Commands` is the line of
late actions: the newest command that has come is in force. How long a message travels is said by a
`DelayRule`, which `read_delay` makes from what a user writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from pkd import ModelError
from pkd.expect import require, show, whole
from pkd_delay.laws.kernel import MOST_NUMBER, DelayKernel, InterArrival, Lags, OneLaw, as_kernel

__all__ = ["Arrivals", "Commands", "Delay", "DelayRule", "SensorArrivals", "read_delay"]

# (h, observation that the base shows at h, action that it executes at h) -> law of Delta_h
LawOf = Callable[[int, Any, Any], OneLaw]


@attrs.frozen
class DelayRule:
    """Draws how many steps late the next message comes, at most `max_delay`.

        D_h = clip(D_{h-1} + Delta_h; 0, D) with Delta_h ~ P_delay, or as the form of the law says

    >>> rule = DelayRule(2, InterArrival({1: 1.0}))  # Delta = 1 always
    >>> rule.draw(0, 1, None, None, np.random.default_rng(0)), rule.follow(2, 1)
    ((1, 1), 2)
    """

    max_delay: int
    law: DelayKernel | None  # of all steps
    law_of: LawOf | None = None  # a law that depends on the step, the hidden state and the action

    @property
    def longest(self) -> int:
        """The most steps that the agent waits for news."""
        return self.max_delay if self.law is None else min(self.law.longest, self.max_delay)

    @property
    def constant(self) -> bool:
        """Whether every message comes `max_delay` steps late."""
        law = self.law
        if law is None or law.longest != self.max_delay:
            return False
        return law.numbers(0).probabilities[-1] == 1.0

    @property
    def always(self) -> bool:
        """Whether every number that is drawn, and every delay, is `max_delay`."""
        return self.constant and isinstance(self.law, InterArrival | Lags)

    def find_law(self, h: int, observation: Any, action: Any) -> DelayKernel:
        """The law of the message of step h."""
        if self.law is not None or self.law_of is None:
            assert self.law is not None
            return self.law
        return as_kernel(self.law_of(h, observation, action), f"the delay law of step {h}")

    def draw(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> tuple[int, int]:
        """The number that is drawn (a Delta, a lag) and D_h; `before` is D_{h-1}."""
        law = self.find_law(h, observation, action)
        number = law.numbers(before).draw(rng)
        return number, min(law.follow(before, number), self.max_delay)

    def draw_command(
        self, before: int, h: int, observation: Any, action: Any, rng: np.random.Generator
    ) -> int:
        """How late a command is. Commands with lags of their own may overtake each other."""
        number, delay = self.draw(before, h, observation, action, rng)
        is_lag = self.find_law(h, observation, action).form == Lags.form
        return min(number, self.max_delay) if is_lag else delay

    def follow(self, before: int, number: int) -> int:
        """D_h from D_{h-1} and a number that was given instead of drawn."""
        follow = InterArrival.follow if self.law is None else self.law.follow
        return min(follow(before, number), self.max_delay)


Delay = int | OneLaw | LawOf | DelayRule


def read_delay(given: Any, max_delay: int | None, name: str) -> DelayRule:
    """The rule that a user means by a number, a law, a function of the step, or a rule.

    >>> read_delay(2, None, "observations").max_delay
    2
    >>> read_delay({-1: 0.5, 1: 0.5}, None, "observations")
    Traceback (most recent call last):
    pkd.model.ModelError: max_delay is None; observations has delays that grow, so say how far
    """
    if isinstance(given, DelayRule):
        return given
    if isinstance(given, int | np.integer):
        require(whole(name, given) or whole(name, given, 0, MOST_NUMBER))
        return DelayRule(int(given), InterArrival({int(given): 1.0}))
    if max_delay is not None:
        require(whole("max_delay", max_delay))
    if isinstance(given, type):
        raise ModelError(f"{name} is {show(given)}; expected a delay or a law of the delay")
    law = None if callable(given) else as_kernel(given, name)
    largest = max_delay
    if largest is None and law is not None:
        largest = law.largest
    if largest is None:
        raise ModelError(f"max_delay is None; {name} has delays that grow, so say how far")
    return DelayRule(largest, law, given if law is None else None)


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
    >>> line.send(-3, 0)  # overtakes nobody
    >>> line.delays[-2:], line.deltas[-2:]
    ([3, 2], [1, -1])
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
        delays = self.delays
        before = delays[-1] if delays else self.start_delay
        late = delay if delay >= before - 1 else before - 1
        self.deltas.append(delta if late == delay else late - before)
        delays.append(late)

    def advance(self, h: int, everything: bool = False) -> int:
        """Shows what is due at the beginning of step h; how many states that is."""
        delays, before = self.delays, self.shown
        shown = before
        while shown <= len(delays):
            due = shown + 1 + (delays[shown - 1] if shown else self.start_delay)
            if due > h and not everything:
                break
            shown += 1
            self._due = due if due < h else h
        self.shown = shown
        return shown - before

    def waited(self, h: int) -> int:
        """Steps since the last shown state was shown; h - 1 before the first one."""
        return h - self._due if self.shown else h - 1


@attrs.define
class SensorArrivals:
    """The lines of several sensors. Step t is complete when every sensor has shown its reading.

    `deltas`, `delays` and `start_delay` hold one entry for each sensor.

    >>> line = SensorArrivals({"near": 0, "far": 1})
    >>> line.send({"near": (0, 0), "far": (0, 1)})
    >>> [(line.advance(h), line.shown, line.lines["near"].shown) for h in (2, 3)]
    [(1, 1, 2), (1, 2, 2)]
    """

    start_delay: Mapping[str, int]
    lines: dict[str, Arrivals] = attrs.field(init=False)
    shown: int = attrs.field(init=False, default=0)  # complete steps
    _due: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        self.lines = {name: Arrivals(late) for name, late in self.start_delay.items()}
        self.advance(1)

    @property
    def delay(self) -> dict[str, int]:
        """D of the last reading of each sensor."""
        return {name: line.delay for name, line in self.lines.items()}

    @property
    def deltas(self) -> dict[str, tuple[int, ...]]:
        """Delta_1, Delta_2, ... of each sensor."""
        return {name: tuple(line.deltas) for name, line in self.lines.items()}

    @property
    def delays(self) -> dict[str, tuple[int, ...]]:
        """D_1, D_2, ... of each sensor."""
        return {name: tuple(line.delays) for name, line in self.lines.items()}

    def send(self, drawn: Mapping[str, tuple[int, int]]) -> None:
        """One more reading of each sensor is on its way: (Delta, D) for each."""
        for name, line in self.lines.items():
            line.send(*drawn[name])

    def advance(self, h: int, *, everything: bool = False) -> int:
        """Shows what is due at the beginning of step h; how many steps became complete."""
        for line in self.lines.values():
            line.advance(h, everything=everything)
        before, self.shown = self.shown, min(line.shown for line in self.lines.values())
        if self.shown > before:
            self._due = h
        return self.shown - before

    def waited(self, h: int) -> int:
        """Steps since a step became complete; h - 1 before the first one."""
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
