"""`LateVectorEnv`: thousands of late copies of an environment that step together, in numpy arrays.

It shows what as many single `LateEnv` with the same seeds would show, to the bit. Only the base
environments are stepped one by one, as `gymnasium.vector.SyncVectorEnv` does; where the base is a
vector environment of its own, it takes one call for all copies.

Every copy keeps its last messages (observation, pay, delay) and actions in a ring: message k, which
is o_{k+1}, is in place k mod `room`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers.utils import create_zero_array
from numpy.typing import NDArray

from pkd import ModelError
from pkd.expect import function, require, show, whole
from pkd_delay.envs.late_env import LateEnv
from pkd_delay.envs.late_view import FlatLateEnv, copy_value
from pkd_delay.laws.arrivals import DelayRule
from pkd_delay.laws.kernel import Lags

__all__ = ["LateVectorEnv", "late_vector"]

MOST_COPIES = 1_000_000
Rows = NDArray[np.intp]  # numbers of copies
Path = tuple[Any, ...]  # where a part is in a nested space
Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class LateVectorEnv(gym.vector.VectorEnv[Any, Any, NDArray[Any]]):
    """Late copies of an environment; `late` are the arguments of `LateEnv`.

    `env` is an id, a function that makes an environment, or a `gymnasium.vector.VectorEnv`. A copy
    whose episode is over begins a new one at the next step, as Gymnasium's vectors do by default.
    flat: observations are vectors, as in `FlatLateEnv`.

    A vector environment starts its copies anew by itself, so late copies of one need end="at once".
    Its `info` is not passed on. All its copies share one stream of random delays.

    >>> vector = LateVectorEnv("CartPole-v1", 3, observations=2)
    >>> vector.reset(seed=0)[0]["observation"].shape
    (3, 4)
    >>> vector.step(vector.action_space.sample())[0]["age"].tolist()
    [1, 1, 1]
    """

    def __init__(
        self,
        env: str | Callable[[], gym.Env[Any, Any]] | gym.vector.VectorEnv[Any, Any, Any],
        num_envs: int | None = None,
        *,
        flat: bool = False,
        **late: Any,
    ) -> None:
        self._vector = env if isinstance(env, gym.vector.VectorEnv) else None
        if isinstance(env, gym.vector.VectorEnv):
            self.envs: list[gym.Env[Any, Any]] = []
            self.num_envs, one = env.num_envs, LateEnv(_Alone(env), **late)
            self._refuse_vector(env, one, num_envs)
        else:
            require(
                [] if isinstance(env, str) else function("env", env, "that makes an environment"),
                whole("num_envs", num_envs, 1, MOST_COPIES),
            )
            self.num_envs = int(num_envs or 1)
            self.envs = [_make_base(env) for _ in range(self.num_envs)]
            one = LateEnv(self.envs[0], **late)
        self._one = one
        self._packing = p = one.packing
        self._flat = FlatLateEnv(one) if flat else None
        self.single_action_space = one.action_space
        self.single_observation_space = (self._flat or one).observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.metadata = {**one.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.render_mode = one.render_mode
        n, self._room = self.num_envs, p.queue + p.commands + 4
        self._seen = _Ring(p.seen, n, self._room)
        self._acts = _Ring(p.acts, n, self._room)
        rules = {None: one._rule} if one._sensors is None else one._sensors
        self._lines = {name: _Line(rule, n, self._room) for name, rule in rules.items()}
        self._pay = None if one._pay_rule is None else _Line(one._pay_rule, n, self._room)
        self._command = _Draws(one._command_rule) if p.commands else None
        self._rngs: list[np.random.Generator] | None = None
        self._ready = False

    def _refuse_vector(
        self, env: gym.vector.VectorEnv[Any, Any, Any], one: LateEnv, num_envs: int | None
    ) -> None:
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        limit = None if env.spec is None else env.spec.max_episode_steps
        found = []
        if num_envs not in (None, env.num_envs):
            found.append(f"num_envs is {num_envs}; the vector environment has {env.num_envs}")
        if one._end != "at once":
            found.append(
                'a vector environment starts its copies anew by itself: give end="at once"'
            )
        if mode != AutoresetMode.NEXT_STEP:
            found.append(f"its autoreset mode is {mode}; expected the one of the next step")
        if one.horizon != limit:
            found.append(f"horizon is {one.horizon}; expected {limit}, its own limit of steps")
        if one._starts_randomly:
            found.append('first_action="random" is for single environments; give an action')
        require(found)

    @property
    def late(self) -> LateEnv:
        """A single late environment with the same arguments. It shares the base of copy 0."""
        return self._one

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode in every copy; copy i gets seed + i, or seed[i]."""
        n = self.num_envs
        if options and "deltas" in options:
            raise ModelError("options has deltas; only a single LateEnv plays given ones")
        given = isinstance(seed, int | np.integer)
        seeds = [int(seed) + i for i in range(n)] if given else list(seed or [None] * n)  # type: ignore[arg-type]
        if len(seeds) != n:
            raise ModelError(f"seed has {len(seeds)} entries; expected {n}, one for each copy")
        self._h = np.ones(n, np.int64)  # the step that comes next
        self._told = np.zeros(n, np.int64)  # messages that the base has given
        self._ended = np.zeros((2, n), np.bool_)  # the base terminated, was truncated
        self._over = np.zeros(n, np.bool_)  # the episode is over for the agent
        self._force = np.zeros((n, self._room), np.int64)  # step of the command in force
        self._since = np.zeros((n, self._room), np.int64)
        self._lag = np.zeros(n, np.int64)  # of the last command
        self._due = np.zeros((n, self._room), np.int64)  # the step at which a command comes
        self._paid = np.zeros((n, self._room))
        self._record = np.zeros((2, len(self._lines), n, 16), np.int64)  # deltas and delays
        self._infos: list[dict[int, dict[str, Any]]] = [{} for _ in range(n)]
        self._has_info = np.zeros(n, np.bool_)
        self._shown = np.zeros(n, np.int64)  # complete steps, and since when
        self._news_at = np.zeros(n, np.int64)
        self._first = self._make_first()
        self._ready = True
        if self._rngs is None or seed is not None:
            draw = partial(np.random.SeedSequence, spawn_key=(1,))
            old = self._rngs
            count = n if self._vector is None else 1
            self._rngs = [
                old[i] if old is not None and seeds[i] is None
                else np.random.default_rng(draw(seeds[i]))
                for i in range(count)
            ]  # fmt: skip
        infos = self._begin(np.arange(n), seeds, options)
        return self._show(self._shown.copy()), self._join_infos(infos)

    def _make_first(self) -> list[NDArray[Any]]:
        """The parts of the first action, for every copy."""
        first = self._one._first
        if not self._packing.commands or self._one._starts_randomly:
            first = self._acts.zero
        return [np.repeat(np.asarray(_get(first, path))[None], self.num_envs, axis=0)
                for path, _ in self._acts.parts]  # fmt: skip

    def _begin(
        self, rows: Rows, seeds: Sequence[Any] | None, options: dict[str, Any] | None
    ) -> dict[int, dict[str, Any]]:
        """Starts an episode in some copies; the info of each."""
        if self._vector is not None:
            if seeds is not None:
                seed = None if seeds[0] is None else int(seeds[0])
                self._answer = self._seen.split(self._vector.reset(seed=seed, options=options)[0])
            seen = [part[rows] for part in self._answer]
        else:
            told = []
            for i in rows:
                seed = None if seeds is None else seeds[i]
                observation, info = self.envs[i].reset(seed=seed, options=options or None)
                told.append(observation)
                if info:
                    self._infos[i], self._has_info[i] = {0: copy_value(info)}, True
            seen = self._seen.join(told)
        self._h[rows], self._told[rows] = 1, 0
        self._ended[:, rows], self._over[rows] = False, False
        self._shown[rows], self._news_at[rows], self._lag[rows] = 0, 0, 0
        self._receive(rows, seen, np.zeros(len(rows)))
        late = self._one._start == "late"
        for line in self._lines.values():
            start = np.zeros(len(rows), np.int64)
            if late:
                start = line.draws.draw(start, self._draw(rows))[1]
            line.begin(rows, start)
        self._begin_commands(rows)
        if self._pay is not None:
            self._pay.begin(rows, np.zeros(len(rows), np.int64))
        arrived = self._advance(rows, np.zeros(len(rows), np.bool_))
        return self._tell(rows, arrived)

    def _begin_commands(self, rows: Rows) -> None:
        d = self._packing.commands
        self._force[rows, 0], self._since[rows, 0] = 0, 0
        if not d or not self._one._starts_randomly:
            return
        assert self._rngs is not None
        # Commands of the steps 1 - d, ..., 0 are on their way; what is in force is the first one.
        self._force[rows, 0] = -d
        for i in rows:
            space = self.envs[i].action_space
            space.seed(int(self._rngs[i].integers(2**31)))
            drawn = [space.sample() for _ in range(d)]
            self._acts.put(np.full(d, i), np.arange(1 - d, 1), self._acts.join(drawn))
            for part, (path, _) in zip(self._first, self._acts.parts, strict=True):
                part[i] = _get(drawn[0], path)
        steps = np.arange(1 - d, 1)
        self._due[np.ix_(rows, steps % self._room)] = steps + d

    def _draw(self, rows: Rows) -> NDArray[np.float64]:
        """A random number for each of some copies, from its own stream."""
        assert self._rngs is not None
        if self._vector is not None:
            return self._rngs[0].random(len(rows))
        return np.array([self._rngs[i].random() for i in rows])

    def _receive(self, rows: Rows, seen: list[NDArray[Any]], paid: NDArray[Any]) -> None:
        """Keeps a message of some copies."""
        place = self._told[rows]
        self._seen.put(rows, place, seen)
        self._paid[rows, place % self._room] = paid
        self._told[rows] += 1

    def step(self, actions: Any) -> Step:
        """Sends an action of each copy; a copy that is over begins a new episode instead."""
        if not self._ready:
            raise ModelError("step() before reset(); call reset() first")
        n, again = self.num_envs, self._over.copy()
        self._check_actions(actions)
        going = np.flatnonzero(~again)
        parts = self._acts.split(actions)
        self._acts.put(going, self._h[going], [part[going] for part in parts])
        live = going[~self._ended[:, going].any(axis=0)]
        paid = np.zeros(n)
        if len(live) or self._vector is not None:
            self._move_base(live, parts, paid)
        fresh = self._begin(np.flatnonzero(again), None, None) if again.any() else {}
        self._h[going] += 1
        horizon = self._packing.horizon
        at_end = self._ended[1] | (self._h > (math.inf if horizon is None else horizon))
        if self._one._end == "at once":
            at_end |= self._ended[0]
        at_end &= ~again
        arrived = np.zeros(n, np.int64)
        arrived[going] = self._advance(going, at_end[going])
        ended = self._ended.any(axis=0)
        self._over = at_end | (ended & (self._shown == self._told) & ~again)
        self._ended[1] |= at_end & ~ended
        reward = self._reward(going, arrived, paid)
        done = self._ended & self._over
        infos = self._join_infos({**fresh, **self._tell(going, arrived[going])})
        arrived[again] = self._shown[again]
        return self._show(arrived), reward, done[0], done[1], infos

    def _check_actions(self, actions: Any) -> None:
        space = self.single_action_space
        if isinstance(space, spaces.Discrete):
            given = np.asarray(actions)
            fits = given.shape == (self.num_envs,) and given.dtype.kind in "iu"
            if not fits or ((given < space.start) | (given >= space.start + space.n)).any():
                raise ModelError(
                    f"actions is {show(actions)}; expected {self.num_envs} of {space}, one for each"
                )

    def _move_base(self, live: Rows, sent: list[NDArray[Any]], paid: NDArray[Any]) -> None:
        """The bases execute what is in force; what they paid goes into `paid`."""
        h = self._h[live]
        given = [part.copy() for part in sent]
        if self._command is not None:
            given = self._send_commands(live, h, given)
        for number, (name, line) in enumerate(self._lines.items()):
            delta, delay = self._draw_line(line, live, h, given, name)
            self._note(number, live, h, delta, delay)
        if self._pay is not None:
            self._pay.send(live, *self._pay.draws.draw(self._pay.last[live], self._draw(live)))
        batch = self._acts.build(given)
        if self._vector is not None:
            seen, rewards, terminated, truncated, _ = self._vector.step(batch)
            self._answer = self._seen.split(seen)
            self._ended[:, live] = terminated[live], truncated[live]
            paid[live] = rewards[live]
            self._receive(live, [part[live] for part in self._answer], paid[live])
        else:
            told, each = [], list(iterate(self.action_space, batch))
            for i in live:
                observation, reward, terminated, truncated, info = self.envs[i].step(each[i])
                told.append(observation)
                paid[i] = reward
                self._ended[0, i], self._ended[1, i] = terminated, truncated
                if info:
                    self._infos[i][int(self._told[i])] = copy_value(info)
                    self._has_info[i] = True
            if told:
                self._receive(live, self._seen.join(told), paid[live])
        self._note_commands(live)

    def _draw_line(
        self, line: _Line, live: Rows, h: NDArray[Any], given: list[NDArray[Any]], name: Any
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """How late the next message of a line is in each copy."""
        before, rule = line.last[live], line.draws.rule
        if rule.law is not None:
            return line.send(live, *line.draws.draw(before, self._draw(live)))
        assert self._rngs is not None
        # A law of the step or the state, which Python is asked for one copy at a time.
        here = list(iterate(self._seen.batch, self._seen.build(self._seen.get_all(self._told - 1))))
        does = list(iterate(self.action_space, self._acts.build(given)))
        rngs = self._rngs * (self.num_envs if self._vector is not None else 1)
        drawn = [
            rule.draw(int(k), int(step), here[i], does[i], rngs[i])
            for i, k, step in zip(live, before, h, strict=True)
        ]
        table = np.array(drawn, np.int64).reshape(-1, 2)
        return line.send(live, table[:, 0], table[:, 1])

    def _note(
        self, line: int, live: Rows, h: NDArray[Any], delta: NDArray[Any], delay: NDArray[Any]
    ) -> None:
        """Keeps the raw delays of the episode."""
        while len(h) and h.max() > self._record.shape[3]:
            self._record = np.concatenate([self._record, np.zeros_like(self._record)], axis=3)
        self._record[0, line, live, h - 1] = delta
        self._record[1, line, live, h - 1] = delay

    def _send_commands(
        self, live: Rows, h: NDArray[Any], given: list[NDArray[Any]]
    ) -> list[NDArray[Any]]:
        """Sends the commands of the step and gives those that are in force."""
        assert self._command is not None
        rule = self._command.rule
        if rule.law is not None:
            number, delay = self._command.draw(self._lag[live], self._draw(live))
            late = np.minimum(number, rule.max_delay) if rule.law.form == Lags.form else delay
        else:
            assert self._rngs is not None
            here = list(
                iterate(self._seen.batch, self._seen.build(self._seen.get_all(self._told - 1)))
            )
            does = list(iterate(self.action_space, self._acts.build(given)))
            drawn = [
                rule.draw_command(int(self._lag[i]), int(step), here[i], does[i], self._rngs[i])
                for i, step in zip(live, h, strict=True)
            ]
            late = np.array(drawn, np.int64)
        self._lag[live] = late
        self._due[live, h % self._room] = h + late
        place = (self._told[live] - 1) % self._room
        force, since = self._force[live, place], self._since[live, place] + 1
        newest = force.copy()
        for back in range(rule.max_delay, -1, -1):  # the newest command that has come
            step = h - back
            come = (step > force) & (self._due[live, step % self._room] <= h)
            newest = np.where(come, step, newest)
        since = np.where(newest > force, 0, since)
        self._next = newest, since
        executed = self._command_of(live, newest)
        for part, value in zip(given, executed, strict=True):
            part[live] = value
        return given

    def _command_of(self, rows: Rows, step: NDArray[Any]) -> list[NDArray[Any]]:
        """The command of a step; before the first one that an agent, or chance, sent: the first."""
        none = -self._packing.commands if self._one._starts_randomly else 0
        sent = self._acts.get(rows, step)
        return [
            np.where((step <= none).reshape(-1, *[1] * (part.ndim - 1)), first[rows], part)
            for first, part in zip(self._first, sent, strict=True)
        ]

    def _note_commands(self, live: Rows) -> None:
        if self._command is not None:
            place = (self._told[live] - 1) % self._room
            self._force[live, place], self._since[live, place] = self._next

    def _advance(self, rows: Rows, everything: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Shows what is due; how many steps became complete."""
        h, told, before = self._h[rows], self._told[rows], self._shown[rows]
        for line in self._lines.values():
            line.advance(rows, h, told, everything)
        lines = list(self._lines.values())
        shown = np.min([line.shown[rows] for line in lines], axis=0)
        due = lines[0].due[rows] if len(lines) == 1 else h
        self._news_at[rows] = np.where(shown > before, due, self._news_at[rows])
        self._shown[rows] = shown
        return np.asarray(shown - before)

    def _reward(
        self, going: Rows, arrived: NDArray[np.int64], paid: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What is paid now: with the observations, at once, or by a law of its own."""
        if self._pay is None and self._one._rewards == "at once":
            return paid
        last, come = self._shown, arrived
        if self._pay is not None:
            before = self._pay.shown[going].copy()
            self._pay.advance(going, self._h[going], self._told[going], self._over[going])
            come = np.zeros_like(arrived)
            last, come[going] = self._pay.shown, self._pay.shown[going] - before
        total, rows = np.zeros(self.num_envs), np.arange(self.num_envs)
        for back in range(int(come.max(initial=0)), 0, -1):  # oldest first, as a single one adds
            here = self._paid[rows, (last - back) % self._room]
            total += np.where(back <= come, here, 0.0)
        return total

    def _tell(self, rows: Rows, arrived: NDArray[np.int64]) -> dict[int, dict[str, Any]]:
        """The info of the newest observations that are shown, and the record of what is over."""
        infos = {}
        found = self._over[rows] | self._has_info[rows]
        for i, news in zip(rows[found].tolist(), arrived[found].tolist(), strict=True):
            info: dict[str, Any] = {}
            if news:
                newest = int(self._shown[i]) - 1
                info = self._infos[i].get(newest, {})
                self._infos[i] = {k: one for k, one in self._infos[i].items() if k > newest}
            if self._over[i]:
                info["late"] = self._list_delays(i)
                self._infos[i] = {}
            infos[i] = info
        return infos

    def _join_infos(self, infos: dict[int, dict[str, Any]]) -> dict[str, Any]:
        """In the order of the copies, because the first one decides the type of an array."""
        joined: dict[str, Any] = {}
        for i in sorted(infos):
            joined = self._add_info(joined, infos[i], i)
        return joined

    def _list_delays(self, i: int) -> dict[str, Any]:
        sent = int(self._told[i]) - 1
        deltas, delays = (
            {name: tuple(part[k, i, :sent].tolist()) for k, name in enumerate(self._lines)}
            for part in self._record
        )
        if self._one._sensors is None:
            return {"deltas": deltas[None], "delays": delays[None]}
        return {"deltas": deltas, "delays": delays}

    def _show(self, arrived: NDArray[np.int64]) -> Any:
        """The observation of every copy: what `Packing.pack` makes for one."""
        p, n = self._packing, self.num_envs
        shown, over, rows = self._shown, self._over, np.arange(n)
        first = np.maximum(shown, 1)  # the step of the oldest pending action
        age = np.where(over, 0, self._h - first)
        seen = self._read_seen()
        pending = self._list(self._acts, first, age, max(p.queue, 1))
        told: dict[str, Any] = {
            "age": age, "arrived": arrived, "step": self._h[:, None].copy(),
            "waited": np.where(over, 0, np.where(shown > 0, self._h - self._news_at, self._h - 1)),
            "seen": (shown > 0).astype(np.int64),
        }  # fmt: skip
        if p.sensors is not None:
            told["ages"] = {
                name: np.where(over, 0, self._h - np.maximum(line.shown, 1))
                for name, line in self._lines.items()
            }
        if p.commands:
            place = np.maximum(shown - 1, 0)
            force, since = (a[rows, place % self._room] for a in (self._force, self._since))
            told["since"] = np.minimum(since, p.commands + 1)
            told["sent"] = place - force
            in_force = self._command_of(rows, force)
            on_way = self._list(self._acts, force + 1, told["sent"], p.commands)
            told["in_force"], told["on_way"] = self._acts.build(in_force), self._acts.pad(on_way)
        if self._flat is not None:
            commands = (in_force, on_way) if p.commands else None
            return self._flatten(told, seen, pending, commands)
        told["observation"], told["pending"] = self._seen.build(seen), self._acts.pad(pending)
        if p.news:
            news = self._list(self._seen, shown - arrived, arrived, p.most_news)
            told["news"] = self._seen.pad(news)
        return {name: told[name] for name in p.space.spaces}

    def _read_seen(self) -> list[NDArray[Any]]:
        """The parts of the last shown observation; the parts of a sensor have its own time."""
        lines, found = self._lines, []
        times = {name: line.shown for name, line in lines.items()}
        for k, (path, _) in enumerate(self._seen.parts):
            t = self._shown if self._one._sensors is None else times[path[0]]
            value = self._seen.get_part(k, np.arange(self.num_envs), np.maximum(t - 1, 0))
            none = (t == 0).reshape(-1, *[1] * (value.ndim - 1))
            found.append(np.where(none, self._seen.blanks[k], value))
        return found

    def _list(
        self, ring: _Ring, first: NDArray[Any], count: NDArray[Any], length: int
    ) -> list[NDArray[Any]]:
        """(n, length, ...): `count` entries from place `first` on, then blanks."""
        k = np.arange(length)
        rows, places = np.arange(self.num_envs)[:, None], first[:, None] + k
        counts = k < count[:, None]
        found = []
        for part, blank in zip(ring.data, ring.blanks, strict=True):
            value = part[rows, places % self._room]
            mask = counts.reshape(*counts.shape, *[1] * (value.ndim - 2))
            found.append(np.where(mask, value, blank))
        return found

    def _flatten(
        self,
        told: dict[str, Any],
        seen: list[NDArray[Any]],
        pending: list[NDArray[Any]],
        commands: tuple[list[NDArray[Any]], list[NDArray[Any]]] | None,
    ) -> NDArray[np.float32]:
        """The vectors of `FlatLateEnv`."""
        p = self._packing
        columns = [*self._seen.flatten(seen)]
        columns += [told["age"] / max(p.queue, 1), told["waited"] / max(p.waited, 1)]
        if p.horizon is not None:
            columns.append(told["step"] / (p.horizon + 1))
        for name, late in (p.sensors or {}).items():
            columns.append(told["ages"][name] / max(min(late, p.queue), 1))
        if p.start_late:
            columns.append(told["seen"])
        columns += self._flatten_list(pending, told["age"], p.queue)
        if commands is not None:
            columns += [*self._acts.flatten(commands[0]), told["since"] / (p.commands + 1)]
            columns += self._flatten_list(commands[1], told["sent"], p.commands)
        n = self.num_envs
        return np.concatenate([np.reshape(c, (n, -1)) for c in columns], axis=1).astype(np.float32)

    def _flatten_list(
        self, entries: list[NDArray[Any]], count: NDArray[Any], length: int
    ) -> list[NDArray[Any]]:
        columns: list[NDArray[Any]] = []
        for k in range(length):
            here = (k < count).astype(float)
            columns.append(here)
            for part in self._acts.flatten([entry[:, k] for entry in entries]):
                columns.append(np.reshape(part, (len(here), -1)) * here[:, None])
        return columns

    def close_extras(self, **_: Any) -> None:
        """Closes the base environments."""
        for env in self.envs:
            env.close()
        if self._vector is not None:
            self._vector.close()


class _Alone(gym.Env[Any, Any]):
    """The spaces of one copy of a vector environment."""

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        self.observation_space = env.single_observation_space
        self.action_space = env.single_action_space
        self.spec, self.render_mode = env.spec, env.render_mode


class _Draws:
    """Draws delays of many copies at once, as `DelayRule.draw` does it for one."""

    def __init__(self, rule: DelayRule) -> None:
        self.rule = rule
        if rule.law is None:
            return
        laws = [rule.law.numbers(before) for before in range(rule.max_delay + 1)]
        width = max(len(law.probabilities) for law in laws)
        shape = len(laws), width
        self.first = laws[0].first
        self.table, self.after = np.zeros(shape), np.zeros(shape, np.int64)
        for before, law in enumerate(laws):
            self.table[before, : len(law.probabilities)] = law.probabilities
            for j in range(len(law.probabilities)):
                after = rule.law.follow(before, law.first + j)
                self.after[before, j] = min(after, rule.max_delay)
        self.total = np.array([math.fsum(law.probabilities) for law in laws])

    def draw(
        self, before: NDArray[Any], mark: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(number, D) from D before and a random number in [0, 1)."""
        mark = mark * self.total[before]
        found, open_ = np.zeros(len(before), np.int64), np.ones(len(before), np.bool_)
        for j in range(self.table.shape[1]):
            p = self.table[before, j]
            taken = open_ & (p > 0.0)
            found[taken] = j
            mark = np.where(taken, mark - p, mark)
            open_ &= ~(taken & (mark < 0.0))
        return found + self.first, self.after[before, found]


class _Line:
    """`Arrivals` of many copies."""

    def __init__(self, rule: DelayRule, n: int, room: int) -> None:
        self.draws, self.room = _Draws(rule), room
        self.delays = np.zeros((n, room), np.int64)  # of message k in place k
        self.last = np.zeros(n, np.int64)  # D of the last message
        self.sent = np.zeros(n, np.int64)  # messages after the first one
        self.shown, self.due = np.zeros(n, np.int64), np.zeros(n, np.int64)

    def begin(self, rows: Rows, start: NDArray[np.int64]) -> None:
        self.shown[rows], self.due[rows], self.sent[rows] = 0, 0, 0
        self.delays[rows, 0], self.last[rows] = start, start

    def send(
        self, rows: Rows, number: NDArray[np.int64], delay: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sends one message of each copy; (Delta, D) as they are recorded."""
        before = self.last[rows]
        late = np.maximum(delay, before - 1)  # none is overtaken
        self.sent[rows] += 1
        self.last[rows] = self.delays[rows, self.sent[rows] % self.room] = late
        return np.where(late == delay, number, late - before), late

    def advance(
        self, rows: Rows, h: NDArray[Any], told: NDArray[Any], everything: NDArray[np.bool_]
    ) -> None:
        shown, due_at = self.shown[rows], self.due[rows]
        while True:
            due = shown + 1 + self.delays[rows, shown % self.room]
            go = (shown < told) & ((due <= h) | everything)
            if not go.any():
                break
            due_at = np.where(go, np.minimum(due, h), due_at)
            shown = shown + go
        self.shown[rows], self.due[rows] = shown, due_at


class _Ring:
    """The last values of a space in every copy: one array for each part of a nested space."""

    def __init__(self, space: spaces.Space[Any], n: int, room: int) -> None:
        self.space, self.room, self.n = space, room, n
        self.batch = batch_space(space, n)
        self.parts = list(_list_parts(space))
        self.zero = create_zero_array(space)
        self.blanks = [np.asarray(_get(self.zero, path)) for path, _ in self.parts]
        kinds = [part.dtype for _, part in self.parts]
        self.data = [
            np.zeros((n, room, *blank.shape), kind)
            for blank, kind in zip(self.blanks, kinds, strict=True)
        ]

    def join(self, values: Sequence[Any]) -> list[NDArray[Any]]:
        """The parts of some values, each as one array."""
        joined = []
        for path, part in self.parts:
            room = np.empty((len(values), *(part.shape or ())), part.dtype)
            for k, value in enumerate(values):
                room[k] = _get(value, path) if path else value
            joined.append(room)
        return joined

    def split(self, batch: Any) -> list[NDArray[Any]]:
        """The parts of a batch."""
        return [np.asarray(_get(batch, path), part.dtype) for path, part in self.parts]

    def build(self, parts: Sequence[NDArray[Any]]) -> Any:
        """A batch from its parts."""
        return _build(self.space, iter(parts))

    pad = build  # a list of each copy: its parts have one more axis

    def put(self, rows: Rows, places: NDArray[Any], parts: Sequence[NDArray[Any]]) -> None:
        for data, part in zip(self.data, parts, strict=True):
            data[rows, places % self.room] = part

    def get_part(self, k: int, rows: Rows, places: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(self.data[k][rows, places % self.room])

    def get(self, rows: Rows, places: NDArray[Any]) -> list[NDArray[Any]]:
        return [self.get_part(k, rows, places) for k in range(len(self.data))]

    def get_all(self, places: NDArray[Any]) -> list[NDArray[Any]]:
        return self.get(np.arange(self.n), places)

    def flatten(self, parts: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Each part as columns, as `gymnasium.spaces.flatten` orders them."""
        return [
            _flatten_part(space, np.asarray(part))
            for (_, space), part in zip(self.parts, parts, strict=True)
        ]


def _flatten_part(space: spaces.Space[Any], part: NDArray[Any]) -> NDArray[Any]:
    n = len(part)
    if isinstance(space, spaces.Discrete):
        return np.asarray(np.arange(space.n) == (part - space.start)[:, None], float)
    if isinstance(space, spaces.MultiDiscrete):
        columns = (part - space.start).reshape(n, -1).T
        sizes = space.nvec.ravel()
        hot = [np.arange(size) == one[:, None] for size, one in zip(sizes, columns, strict=True)]
        return np.concatenate(hot, axis=1).astype(float)
    return part.reshape(n, -1)


def _list_parts(space: spaces.Space[Any], path: Path = ()) -> list[tuple[Path, spaces.Space[Any]]]:
    """The parts of a nested space whose values are numbers or arrays."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inner = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return [one for name, part in inner for one in _list_parts(part, (*path, name))]
    plain = spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary
    if isinstance(space, plain):
        return [(path, space)]
    raise ModelError(
        f"{space} has no arrays to batch; use late_vector(..., asynchronous=True) or single copies"
    )


def _get(value: Any, path: Path) -> Any:
    for name in path:
        value = value[name]
    return value


def _build(space: spaces.Space[Any], parts: Any) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _build(part, parts) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_build(part, parts) for part in space.spaces)
    return next(parts)


def _make_base(env: str | Callable[[], gym.Env[Any, Any]]) -> gym.Env[Any, Any]:
    try:
        return gym.make(env) if isinstance(env, str) else env()
    except gym.error.Error as problem:
        raise ModelError(f"env is {env!r}: {' '.join(str(problem).split())}") from None


def late_vector(
    env: str | Callable[[], gym.Env[Any, Any]],
    num_envs: int,
    *,
    asynchronous: bool = False,
    flat: bool = False,
    **late: Any,
) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Several late copies of an environment that step together; `late` goes to `LateEnv`.

    `env` is an id, or a function that makes one; num_envs: how many. asynchronous: each copy in its
    own process, otherwise a `LateVectorEnv`. flat: observations are vectors, as in `FlatLateEnv`.

    >>> import pkd_delay
    >>> vector = pkd_delay.late_vector("CartPole-v1", 3, observations=2, flat=True)
    >>> vector.reset(seed=0)[0].shape
    (3, 13)
    """
    if not asynchronous:
        return LateVectorEnv(env, num_envs, flat=flat, **late)
    require(
        [] if isinstance(env, str) else function("env", env, "that makes an environment, or an id"),
        whole("num_envs", num_envs, 1, MOST_COPIES),
    )
    return gym.vector.AsyncVectorEnv([partial(_make_copy, env, flat, late)] * num_envs)


def _make_copy(
    env: str | Callable[[], gym.Env[Any, Any]], flat: bool, late: dict[str, Any]
) -> gym.Env[Any, Any]:
    made = LateEnv(_make_base(env), **late)
    return FlatLateEnv(made) if flat else made
