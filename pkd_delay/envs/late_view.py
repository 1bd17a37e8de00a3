"""What `LateEnv` shows: the spaces of its observation, how it is packed, and its flat form.

Lists that grow and shrink (news, pending actions) are padded to their largest length; a number
beside them says how many entries count. So every observation space that Gymnasium can batch works.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import attrs
import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

from pkd.expect import instance, require

__all__ = ["FlatLateEnv", "Message", "Packing"]

Observation = dict[str, Any]


# Values that nobody can change.
PLAIN = frozenset(
    {bool, bytes, float, int, str, type(None), np.bool_, np.float32, np.float64, np.int32, np.int64}
)


def copy_value(value: Any) -> Any:
    """What `copy.deepcopy` gives, sooner for what most environments show."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:
        return {k: part if type(part) in PLAIN else copy_value(part) for k, part in value.items()}
    if kind is np.ndarray and value.dtype != object:
        return value.copy()
    return copy.deepcopy(value)


class Message(NamedTuple):
    """What the base tells at one step; it travels as one."""

    observation: Any
    info: dict[str, Any]
    paid: float  # by the action that led here
    in_force: Any = None  # the command that the base executed last
    since: int = 0  # steps since it came into force
    on_way: tuple[Any, ...] = ()  # commands on their way then, oldest first


@attrs.frozen(slots=False)  # without slots, so that the space can be cached
class Packing:
    """The observation space of a `LateEnv`, and how its parts are put into it."""

    seen: spaces.Space[Any]
    acts: spaces.Space[Any]
    queue: int  # the longest queue of pending actions
    waited: int  # the most steps without news
    commands: int  # the most commands on their way
    horizon: int | None
    start_late: bool  # whether there can be a time before the first observation
    news: bool  # whether all observations that come are shown, and not only the newest
    sensors: Mapping[str, int] | None = None  # the largest delay of each, if they have their own

    @property
    def most_news(self) -> int:
        """How many observations can come at once: one for each action, and the first one."""
        return self.queue + 1 + self.start_late

    @cached_property
    def space(self) -> spaces.Dict:
        """The space of all parts."""
        parts: dict[str, spaces.Space[Any]] = {
            "observation": self.seen,
            "age": spaces.Discrete(self.queue + 1),
            "waited": spaces.Discrete(self.waited + 1),
            "pending": batch_space(self.acts, max(self.queue, 1)),
            "arrived": spaces.Discrete(self.most_news + 1),
        }
        if self.sensors is not None:
            most = {name: min(late, self.queue) + 1 for name, late in self.sensors.items()}
            parts["ages"] = spaces.Dict({name: spaces.Discrete(n) for name, n in most.items()})
        if self.horizon is not None:
            # A box of one number: a step of a discrete space would be one-hot in a flat vector.
            parts["step"] = spaces.Box(0, self.horizon + 1, (1,), np.int64)
        if self.news:
            parts["news"] = batch_space(self.seen, self.most_news)
        if self.start_late:
            parts["seen"] = spaces.Discrete(2)
        if self.commands:
            parts["in_force"] = self.acts
            parts["since"] = spaces.Discrete(self.commands + 2)
            parts["on_way"] = batch_space(self.acts, self.commands)
            parts["sent"] = spaces.Discrete(self.commands + 1)
        return spaces.Dict(parts)

    @cached_property
    def _lists(self) -> dict[str, _Padded]:
        """The lists that grow and shrink."""
        lists = {
            "pending": (self.acts, max(self.queue, 1)),
            "news": (self.seen, self.most_news),
            "on_way": (self.acts, self.commands),
        }
        return {name: _Padded(*lists[name]) for name in lists if name in self.space.spaces}

    def pack(
        self,
        h: int,
        last: Message,
        pending: Sequence[Any],
        waited: int,
        news: Sequence[Message],
        shown: int,
        ages: Mapping[str, int] | None = None,
    ) -> Observation:
        """The observation at the beginning of step h: new values, which the agent may change."""
        whole, lists, seen = self._numbers, self._lists, last.observation
        told: Observation = {"age": whole[len(pending)]}  # in the order of names
        if ages is not None:
            told["ages"] = {name: np.int64(age) for name, age in ages.items()}
        told["arrived"] = whole[len(news)]
        if self.commands:
            told["in_force"] = copy_value(last.in_force)
        if self.news:
            told["news"] = lists["news"].pack([message.observation for message in news])
        told["observation"] = seen if type(seen) in PLAIN else copy_value(seen)
        if self.commands:
            told["on_way"] = lists["on_way"].pack(last.on_way)
        told["pending"] = lists["pending"].pack(pending)
        if self.start_late:
            told["seen"] = whole[shown > 0]
        if self.commands:
            told["sent"] = whole[len(last.on_way)]
            told["since"] = whole[min(last.since, self.commands + 1)]
        if self.horizon is not None:
            told["step"] = step = self._step.copy()
            step[0] = h
        told["waited"] = whole[waited]
        return told

    @cached_property
    def _step(self) -> NDArray[np.int64]:
        return np.zeros(1, np.int64)  # a copy is made sooner than an array

    @cached_property
    def _numbers(self) -> list[np.int64]:
        """0, 1, 2, ... as observations have them."""
        largest = max(self.most_news, self.waited, self.commands + 1, 1)
        return [np.int64(i) for i in range(largest + 1)]

    def read(self, observation: Observation, name: str, count: str) -> tuple[Any, ...]:
        """The entries of a padded list that count."""
        entries = tuple(iterate(self.space[name], observation[name]))
        return entries[: int(observation[count])]


class _Padded:
    """Lists of up to `length` values of a space, padded with blanks."""

    def __init__(self, space: spaces.Space[Any], length: int) -> None:
        self._space, self._length = space, length
        self._blank = create_zero_array(space)
        self._empty = self._join([])
        self._is_array = isinstance(self._empty, np.ndarray)

    def pack(self, values: Sequence[Any]) -> Any:
        if not self._is_array:
            return self._join(values)
        packed = self._empty.copy()
        for place, value in enumerate(values):
            packed[place] = value
        return packed

    def _join(self, values: Sequence[Any]) -> Any:
        room: Any = create_empty_array(self._space, self._length)
        blanks = [self._blank] * (self._length - len(values))
        return concatenate(self._space, [*values, *blanks], room)


class FlatLateEnv(
    gym.ObservationWrapper[NDArray[np.float32], Any, Observation], gym.utils.RecordConstructorArgs
):
    """A `LateEnv` whose observation is one vector, for libraries that take nothing else.

    In this order: the last shown observation; its age and the steps waited, each divided by its
    largest value; the step divided by the horizon, if there is one; the age of each sensor, if they
    have their own; whether anything has been shown, if the first observation may be late; for every
    place of the queue a 1 and the pending action, or zeros; with late actions the command in force,
    since when, and the commands on their way in the same form. Observations and actions are
    flattened as Gymnasium does it: a discrete one is one-hot.

    >>> from pkd_delay import FlatLateEnv, LateEnv
    >>> env = FlatLateEnv(LateEnv(gym.make("CartPole-v1"), {-1: 0.3, 0: 0.4, 1: 0.3}, max_delay=2))
    >>> env.observation_space.shape  # 4 + age, waited, step + 2 places of (1, one of 2 actions)
    (13,)
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        require(instance("env", env, gym.Env, "a LateEnv, perhaps with other wrappers around it"))
        gym.utils.RecordConstructorArgs.__init__(self)
        gym.ObservationWrapper.__init__(self, env)
        packing = env.get_wrapper_attr("packing")
        if not isinstance(packing, Packing):
            raise TypeError(f"packing is {packing!r}; expected the one of a LateEnv")
        self._packing = packing
        seen, acts = _flat_box(packing.seen), _flat_box(packing.acts)
        unit = spaces.Box(0.0, 1.0, (1,), np.float32)
        entry = [unit, _with_zero(acts)]
        boxes = [seen, unit, unit, *[unit] * (packing.horizon is not None)]
        boxes += [unit] * len(packing.sensors or {})
        boxes += [unit] * packing.start_late + entry * packing.queue
        if packing.commands:
            boxes += [acts, unit, *entry * packing.commands]
        low = np.concatenate([box.low for box in boxes])
        self.observation_space = spaces.Box(
            low, np.concatenate([box.high for box in boxes]), low.shape, np.float32
        )

    def observation(self, observation: Observation) -> NDArray[np.float32]:
        """The parts in a row."""
        p = self._packing
        numbers = [
            float(observation["age"]) / max(p.queue, 1),
            float(observation["waited"]) / max(p.waited, 1),
        ]
        if p.horizon is not None:
            numbers.append(float(observation["step"][0]) / (p.horizon + 1))
        for name, late in (p.sensors or {}).items():
            numbers.append(float(observation["ages"][name]) / max(min(late, p.queue), 1))
        if p.start_late:
            numbers.append(float(observation["seen"]))
        parts = [_flat(p.seen, observation["observation"]), np.array(numbers)]
        parts.append(self._list(p.read(observation, "pending", "age"), p.queue))
        if p.commands:
            since = float(observation["since"]) / (p.commands + 1)
            parts += [_flat(p.acts, observation["in_force"]), np.array([since])]
            parts.append(self._list(p.read(observation, "on_way", "sent"), p.commands))
        return np.concatenate(parts).astype(np.float32)

    def _list(self, actions: Sequence[Any], places: int) -> NDArray[Any]:
        acts = self._packing.acts
        table = np.zeros((places, 1 + spaces.flatdim(acts)))
        for row, action in zip(table, actions, strict=False):
            row[0], row[1:] = 1.0, _flat(acts, action)
        return table.ravel()


def _flat(space: spaces.Space[Any], value: Any) -> NDArray[Any]:
    return np.asarray(spaces.flatten(space, value)).ravel()


def _flat_box(space: spaces.Space[Any]) -> spaces.Box:
    box = spaces.flatten_space(space)
    if not isinstance(box, spaces.Box):
        raise TypeError(f"{space} cannot be made one vector; use the LateEnv itself")
    low, high = box.low.astype(np.float32), box.high.astype(np.float32)
    return spaces.Box(low, high, box.shape, np.float32)


def _with_zero(box: spaces.Box) -> spaces.Box:
    return spaces.Box(np.minimum(box.low, 0.0), np.maximum(box.high, 0.0), box.shape, np.float32)
