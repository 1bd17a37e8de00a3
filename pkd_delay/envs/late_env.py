"""`LateEnv`: any Gymnasium environment with late observations, late actions, or both.

Observations are late by Assumption 1 of the paper: in order, none is lost, several can come at
once, and the end shows all of them. The agent gets what it needs under delay and nothing more: the
last shown observation with its age, the actions whose effect is not shown yet, and an explicit
"nothing yet". So a policy of `pkd_delay` runs in it, and a library for deep learning can train.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import attrs
import gymnasium as gym
import numpy as np
from gymnasium.wrappers.utils import create_zero_array

import pkd
from pkd import ModelError, PartiallyKnownMDP, Queue, Transition, transforms
from pkd.expect import flag, if_given, instance, one_of, require, show, whole
from pkd.expect import seed as check_seed
from pkd_delay.augmented import Augmented
from pkd_delay.delayed import Delayed
from pkd_delay.envs.late_problem import Behind
from pkd_delay.envs.late_view import PLAIN, Message, Observation, Packing, copy_value
from pkd_delay.envs.problem_env import Naming, ProblemEnv, find_naming
from pkd_delay.episodes import DelayedEpisode
from pkd_delay.laws.arrivals import (
    Arrivals,
    Commands,
    Delay,
    DelayRule,
    SensorArrivals,
    read_delay,
)
from pkd_delay.laws.kernel import DelayKernel
from pkd_delay.policies import LatePlan
from pkd_delay.transforms.late_actions import retell

__all__ = ["LateEnv", "Seen"]

MOST_STEPS = 10**9  # of an episode: a step is a number of a discrete space
Step = tuple[Observation, float, bool, bool, dict[str, Any]]


class Seen(NamedTuple):
    """What a policy of `pkd_delay` asks for: plan.action(*seen)."""

    step: int  # h
    state: Any  # the last shown one
    queue: tuple[Any, ...]  # actions since that state, oldest first
    waited: int  # steps since it was shown


class LateEnv(gym.Wrapper[Observation, Any, Any, Any], gym.utils.RecordConstructorArgs):
    """An environment whose observations are shown late and whose actions are executed late.

        D_h = clip(D_{h-1} + Delta_h; 0, max_delay),   D_0 = 0

    The observation after the h-th action is shown at the beginning of step h + 1 + D_h, or when
    the episode is over. Steps count from 1.

    `env` is a Gymnasium environment, or a problem of `pkd`; a `Delayed` brings its own law.
    `observations` is a constant delay in steps, or the law {Delta: probability}, or a function
    (h, observation, action) -> law of the step, the present observation and the executed action,
    or `Lags` or a `DelayChain`. For an observation that is a dictionary it may also be
    {sensor: delay or law}, and `max_delay` {sensor: steps}: then every sensor has its own line.
    `actions` is the same for the commands: the newest command that has come is executed, and
    `first_action` before any has come ("random": a constant delay begins with random commands on
    their way, which the agent sees). By default it is the action that does nothing, if the space
    has one: zeros of a box, nothing of a multi-binary space, the NOOP of an Atari game. `rewards`
    are paid when the observation that they lead to is "shown", or "at once", which tells more than
    the observations do, or by a delay or law of their own, in order. `horizon` is the number of
    steps of an episode, by default the environment's own limit. `start` "late" lets the first
    observation travel, too. `end` "at once" ends an episode together with the base. `news=False`
    leaves the list of news out.

    The observation at the beginning of step h is a dictionary:

        step         [h]; after the last action [H + 1]. Left out if there is no horizon
        observation  the last one that was shown, o_t
        age          h - t: by how many steps it is old, which is the number of pending actions
        waited       steps since it was shown; 0: it is fresh
        arrived      how many observations are shown at this very step; 0: nothing yet
        news         all of them, oldest first, padded
        pending      the actions a_t, ..., a_{h-1} whose effect is not shown yet, padded
        seen         0 before the first observation; only with start="late"
        ages         how old the reading of each sensor is; only with a law for each sensor
        in_force, since, on_way, sent   only with late actions, and as late as the observation: the
                     command that was executed last, for how long it had been in force, the commands
                     on their way (padded), and how many these are

    With a law for each sensor `observation` holds the newest reading of each, and everything else
    (age, news, pending, rewards, info) is about the steps of which all sensors have been shown.

    An episode that the base ends (terminated) is over for the agent when its last observation is
    shown; actions until then do nothing and pay nothing. One that reaches the horizon or is
    truncated is over at once. Either way the last step shows everything that was still on its way
    and pays it. `info` is that of the newest observation, when it is shown. At the end it has a
    further entry "late" with all raw Deltas and delays D. `render` shows the present.

    >>> from pkd_delay import DelayedMDP, LateEnv
    >>> from pkd_delay.models.tables import two_state_chain
    >>> env = LateEnv(DelayedMDP.constant(two_state_chain(horizon=2, stay=1.0), 1))
    >>> _ = env.reset(seed=0)
    >>> [env.step(0)[1:3] for _ in range(2)]  # (reward, terminated): rewards come with the states
    [(0.0, False), (2.0, True)]
    """

    def __init__(
        self,
        env: Any,
        observations: Delay | Mapping[str, Delay] | None = None,
        actions: Delay = 0,
        max_delay: int | Mapping[str, int] | None = None,
        rewards: Delay | Literal["shown", "at once"] = "shown",
        *,
        first_action: Any = None,
        horizon: int | None = None,
        start: Literal["shown", "late"] = "shown",
        end: Literal["shown", "at once"] = "shown",
        news: bool = True,
    ) -> None:
        gym.utils.RecordConstructorArgs.__init__(
            self, observations=observations, actions=actions, max_delay=max_delay, rewards=rewards,
            first_action=first_action, horizon=horizon, start=start, end=end, news=news,
        )  # fmt: skip
        gym.Wrapper.__init__(self, env if isinstance(env, gym.Env) else ProblemEnv(env))
        base: Any = self.env.unwrapped
        self._base = base if isinstance(base, ProblemEnv) else None
        self.horizon = self._find_horizon(horizon)
        most = None if isinstance(max_delay, Mapping) else max_delay
        self._sensors: dict[str, DelayRule] | None = None
        named: Any = observations  # a law, or one for each sensor
        if isinstance(env, Delayed):
            self._rule = self._read_problem(env, named)
        elif _names_sensors(named):
            self._sensors = self._read_sensors(named, max_delay)
            self._rule = DelayRule(max(rule.max_delay for rule in self._sensors.values()), None)
        else:
            given = 0 if observations is None else observations
            self._rule = read_delay(given, most, "observations")
        self._given = env if isinstance(env, Delayed) else None
        self._command_rule = read_delay(actions, most, "actions")
        if first_action is None and self._command_rule.max_delay:
            first_action = find_first_action(self.env)
        self._first, self._rewards, self._start, self._end = first_action, rewards, start, end
        self._pay_rule: DelayRule | None = None  # None: rewards have no delay of their own
        if not isinstance(rewards, str):
            self._pay_rule = read_delay(rewards, most, "rewards")
        # With such delays nothing random depends on the draws of this wrapper.
        late = self._command_rule.max_delay or self._pay_rule is not None
        constant = self._rule.always and not late and self._sensors is None
        self._always = self._rule.max_delay if constant else None
        require(flag("news", news))
        if not isinstance(max_delay, Mapping):
            require(if_given(whole, "max_delay", max_delay))
        elif self._sensors is None:
            raise ModelError("max_delay names sensors; expected observations={name: delay}, too")
        self._refuse(observations is None and not isinstance(env, Delayed))
        queue = self._rule.max_delay
        if self.horizon is not None:
            queue = min(queue, self.horizon - 1)
        sensors = None
        if self._sensors is not None:
            sensors = {name: rule.max_delay for name, rule in self._sensors.items()}
        self.packing = Packing(
            self.env.observation_space, self.env.action_space, queue,
            waited=min(self._rule.longest, queue), commands=self._command_rule.max_delay,
            horizon=self.horizon, start_late=start == "late", news=news, sensors=sensors,
        )  # fmt: skip
        self.observation_space = self.packing.space
        acts = self.action_space
        self._numbers: range | None = None  # of the actions, if they are numbers
        if isinstance(acts, gym.spaces.Discrete):
            self._numbers = range(int(acts.start), int(acts.start + acts.n))
        self._rng: np.random.Generator | None = None
        self._over = True

    def _find_horizon(self, horizon: int | None) -> int | None:
        if horizon is not None:
            require(whole("horizon", horizon, 1, MOST_STEPS))
            return int(horizon)
        if self._base is not None:
            base: int = self._base.model.horizon
            return base
        return None if self.env.spec is None else self.env.spec.max_episode_steps

    def _read_problem(self, delayed: Delayed, observations: Delay | None) -> DelayRule:
        """The delay of a problem that has one."""
        base = self._base
        if observations is not None or base is None:
            raise ModelError("the problem has its own law of the delay; leave observations out")
        laws = delayed.delay_of
        if laws.one is not None:
            return DelayRule(delayed.max_delay, laws.one)

        def find_law(h: int, i: Any, k: Any) -> DelayKernel:
            here = base.states[int(i)]
            return laws(*here, delayed.done(*here, base.actions[int(k)]))

        return DelayRule(delayed.max_delay, None, find_law)

    def _read_sensors(
        self, observations: Mapping[str, Delay], max_delay: int | Mapping[str, int] | None
    ) -> dict[str, DelayRule]:
        """The rule of each part of a Dict observation; a part that is not named is not late."""
        space = self.env.observation_space
        if not isinstance(space, gym.spaces.Dict):
            raise ModelError(
                f"observations names the sensors {list(observations)}, but the environment shows "
                f"{space}; expected a Dict space, or one delay"
            )
        most = max_delay if isinstance(max_delay, Mapping) else {}
        unknown = [name for name in (*observations, *most) if name not in space.spaces]
        if unknown:
            raise ModelError(
                f"observations: no sensor is called {', '.join(map(repr, unknown))}; expected "
                f"some of {', '.join(map(repr, space.spaces))}"
            )
        rules = {}
        for name in space.spaces:
            largest = most.get(name) if isinstance(max_delay, Mapping) else max_delay
            where = f"observations[{name!r}]"
            rules[name] = read_delay(observations.get(name, 0), largest, where)
            if rules[name].law is None:
                raise ModelError(f"{where} is a function; expected a number of steps or a law")
        return rules

    def _refuse(self, nothing: bool) -> None:
        found = list[str]()
        if self._pay_rule is None:
            wanted = 'expected "shown", "at once", or a delay'
            if self._rewards not in ("shown", "at once"):
                found.append(f"rewards is {show(self._rewards)}; {wanted}")
        elif self._pay_rule.law is None:
            found.append("rewards is a function; expected a number of steps or a law")
        found += one_of("start", self._start, ("shown", "late"))
        found += one_of("end", self._end, ("shown", "at once"))
        late = self._command_rule.max_delay > 0
        if nothing and not late and self._pay_rule is None:
            found.append("nothing is late; give observations=, actions=, rewards=, or several")
        if late and self._starts_randomly and not self._command_rule.constant:
            found.append('first_action="random" needs a constant delay of the actions')
        if late and not self._starts_randomly and self._first not in self.action_space:
            natural = ", because this space has no action that surely does nothing"
            natural *= self._first is None
            found.append(
                f"first_action is {self._first!r}; expected an action of {self.action_space}, "
                f"which is executed while no command has come{natural}"
            )
        require(found)

    @property
    def _starts_randomly(self) -> bool:
        return isinstance(self._first, str) and self._first == "random"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Starts an episode.

        options={"deltas": (...)} plays the given inter-arrival times instead of drawn ones; other
        options go to the environment.
        """
        require(
            if_given(check_seed, "seed", seed),
            if_given(instance, "options", options, Mapping, "a mapping"),
        )
        options = dict(options or {})
        self._deltas = options.pop("deltas", None)
        if self._deltas is not None and self._sensors is not None:
            raise ModelError("options has deltas, but every sensor draws its own; leave them out")
        observation, info = self.env.reset(seed=seed, options=options or None)
        if seed is not None or self._rng is None:
            # A stream of its own: the base draws the same numbers as without this wrapper.
            self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self._step, self._over, self._flags = 1, False, (False, False)
        self._line, self._commands = self._make_lines(self._rng)
        self._pay = Arrivals()
        self._actions = list[Any]()
        self._executed = list[Any]()
        self._moves = list[tuple[Transition, ...]]()  # of a problem
        self._messages = [self._make_message(observation, info, 0.0)]
        return self._show(self._line.shown)[:2]

    def _make_lines(self, rng: np.random.Generator) -> tuple[Arrivals | SensorArrivals, Commands]:
        first = 0
        names = self._sensors or {}
        starts = dict.fromkeys(names, 0)
        if self._start == "late" and self._sensors is None:
            first = self._rule.draw(0, 0, None, None, rng)[1]
        elif self._start == "late":
            starts = {name: rule.draw(0, 0, None, None, rng)[1] for name, rule in names.items()}
        commands = Commands(self._first, [])
        if self._starts_randomly and self.packing.commands:
            self.action_space.seed(int(rng.integers(2**31)))
            drawn = [self.action_space.sample() for _ in range(self.packing.commands)]
            commands = Commands(drawn[0], list(enumerate(drawn, start=1)))
        return (Arrivals(first) if self._sensors is None else SensorArrivals(starts)), commands

    def _make_message(self, observation: Any, info: dict[str, Any], paid: float) -> Message:
        # An environment may write the next step into the same array and the same dictionary.
        try:
            seen = observation if type(observation) in PLAIN else copy_value(observation)
            told = copy_value(info)
        except Exception as problem:
            raise ModelError(
                f"an observation or info cannot be copied ({problem}), so it cannot be shown late; "
                "leave out of info what is not data, such as locks and open files"
            ) from problem
        if not self.packing.commands:
            return Message(seen, told, paid)
        line = self._commands
        return Message(seen, told, paid, line.in_force, line.since, line.on_way)

    def step(self, action: Any) -> Step:
        """Sends an action; what is due is shown."""
        if self._over:
            raise ModelError("step() in an episode that is over; call reset() first")
        if self._numbers is not None and not (
            (type(action) is int and action in self._numbers) or action in self.action_space
        ):
            raise ModelError(f"action is {show(action)}; expected one of {self.action_space}")
        if type(action) is not int:
            action = copy_value(action)
        self._actions.append(action)
        terminated, truncated = self._flags
        paid = 0.0
        if not (terminated or truncated):
            paid = self._move_base(action)
            terminated, truncated = self._flags
        self._step += 1
        at_end = truncated or (self.horizon is not None and self._step > self.horizon)
        at_end = at_end or (terminated and self._end == "at once")
        arrived = self._line.advance(self._step, everything=at_end)
        self._over = at_end or (terminated and self._line.shown == len(self._messages))
        if at_end and not (terminated or truncated):
            self._flags = terminated, truncated = False, True
        observation, info, shown_pay = self._show(arrived)
        if self._pay_rule is not None:
            come = self._pay.advance(self._step, everything=self._over)
            last = self._pay.shown
            paid = sum([told.paid for told in self._messages[last - come : last]], 0.0)
        elif self._rewards == "shown":
            paid = shown_pay
        if not self._over:
            return observation, paid, False, False, info
        return observation, paid, terminated, truncated, info

    def _move_base(self, action: Any) -> float:
        """The base executes what is in force, unseen: Delta_h and o_{h+1}. What it paid."""
        if self._always is not None and self._deltas is None:
            sent: tuple[Any, ...] = (self._always, self._always)
        else:
            action, sent = self._draw(action)
        # A copy: an environment may change its action, which is shown later and can be sent again.
        given = action if type(action) is int else copy_value(action)
        observation, reward, terminated, truncated, info = self.env.step(given)
        self._line.send(*sent)
        self._flags = (bool(terminated), bool(truncated))
        self._messages.append(self._make_message(observation, info, float(reward)))
        self._executed.append(action)
        self._moves.append(() if self._base is None else self._base.moves)
        return float(reward)

    def _draw(self, action: Any) -> tuple[Any, tuple[Any, ...]]:
        """The command in force, and (Delta_h, D_h), or a mapping of these for each sensor."""
        h, rng, before = self._step, self._rng, self._true
        assert rng is not None
        if self.packing.commands:
            late = self._commands.delay
            lag = self._command_rule.draw_command(late, h, before, action, rng)
            self._commands.send(h, action, lag)
            action = self._commands.in_force
        line = self._line
        if isinstance(line, SensorArrivals):
            assert self._sensors is not None
            drawn = {
                name: rule.draw(line.lines[name].delay, h, None, None, rng)
                for name, rule in self._sensors.items()
            }
            sent: tuple[Any, ...] = (drawn,)
        elif self._deltas is not None:
            self._rule.draw(line.delay, h, before, action, rng)  # the same draws as without them
            delta = int(self._deltas[h - 1])
            sent = delta, self._rule.follow(line.delay, delta)
        else:
            sent = self._rule.draw(line.delay, h, before, action, rng)
        if self._pay_rule is not None:
            self._pay.send(*self._pay_rule.draw(self._pay.delay, h, None, None, rng))
        return action, sent

    @property
    def _true(self) -> Any:
        """The present observation of the base, which the agent need not have seen."""
        return self._messages[-1].observation

    def _show(self, arrived: int) -> tuple[Observation, dict[str, Any], float]:
        line = self._line
        t = line.shown
        news = self._messages[t - arrived : t]
        pending, waited = list[Any](), 0
        if not self._over:
            pending, waited = self._actions[max(t - 1, 0) :], line.waited(self._step)
        last = self._messages[t - 1] if t else self._nothing
        ages = None
        if self._sensors is not None:
            assert isinstance(line, SensorArrivals)
            sent = {name: one.shown for name, one in line.lines.items()}
            blank = self._nothing.observation if not all(sent.values()) else {}
            seen = {
                name: self._messages[k - 1].observation[name] if k else blank[name]
                for name, k in sent.items()
            }
            last = last._replace(observation=seen)
            ages = {name: 0 if self._over else self._step - max(k, 1) for name, k in sent.items()}
        observation = self.packing.pack(self._step, last, pending, waited, news, t, ages)
        info = news[-1].info if news else {}  # it is shown once
        if self._over and self._sensors is None:
            info["late"] = {"deltas": tuple(line.deltas), "delays": tuple(line.delays)}
        elif self._over:
            info["late"] = {"deltas": line.deltas, "delays": line.delays}
        if len(news) == 1:
            return observation, info, news[0].paid
        return observation, info, sum([message.paid for message in news], 0.0)

    @property
    def _nothing(self) -> Message:
        """What stands for an observation before the first one."""
        first = self._messages[0]
        blank = create_zero_array(self.packing.seen)
        return Message(blank, {}, 0.0, first.in_force, first.since, first.on_way)

    @cached_property
    def _behind(self) -> Behind:
        first, start_late = self._first, self._start == "late"
        if self.packing.commands and not self._starts_randomly:
            first = find_naming(self.env, None).action(first)
        rules = self._rule, self._command_rule
        return Behind(self.env, self.horizon, *rules, first, self._given, start_late)

    @cached_property
    def _informed(self) -> Behind:
        return attrs.evolve(self._behind, known_successors=True)

    @cached_property
    def _naming(self) -> Naming:
        """With late actions a state is the (x, y) of a model: y holds the commands on their way."""
        late = self.packing.commands or not isinstance(self.env.unwrapped, ProblemEnv)
        return find_naming(self.env, None if late else self._behind.delayed)

    def state_of(self, observation: Observation) -> Seen:
        """(h, last shown state, queue, waited), as `LatePlan.action` takes it.

        A state of a discrete space is a number; a state of a problem is what its plan calls so.
        With late actions it is (x, y) of `LateActions`: y has the commands that were on their way.

        >>> import pkd_delay
        >>> from pkd_delay.models.tables import two_state_chain
        >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(), 1)
        >>> env, plan = pkd_delay.LateEnv(late), pkd_delay.plan(late)
        >>> observation, _ = env.reset(seed=0)
        >>> env.state_of(observation), plan.action(*env.state_of(observation))
        (Seen(step=1, state=0, queue=(), waited=0), 0)
        """
        require(instance("observation", observation, Mapping, "one that reset() or step() gave"))
        if "step" not in observation:
            raise ModelError("observation has no step: give LateEnv(..., horizon=H)")
        if not observation.get("seen", 1):
            raise ModelError("nothing has been shown yet, so there is no state")
        state = self._naming.state(observation["observation"])
        if self.packing.commands:
            on_way = self.packing.read(observation, "on_way", "sent")
            state = self._add_commands(state, observation["in_force"], on_way, observation["since"])
        queue = self.packing.read(observation, "pending", "age")
        actions = tuple(map(self._naming.action, queue))
        return Seen(int(observation["step"][0]), state, actions, int(observation["waited"]))

    def _add_commands(self, state: Any, in_force: Any, on_way: Iterable[Any], since: Any) -> Any:
        """(x, y) of a `LateActions` from a state of its base."""
        (x, y), name, line = self._naming.read(state), self._naming.action, self._behind.line
        waited = int(since) if line is not None and line.counts else 0
        return x, transforms.OnWay(y, name(in_force), Queue(map(name, on_way)), waited)

    def place_of(self, observation: Observation, model: PartiallyKnownMDP) -> tuple[int, Any, Any]:
        """(h, x, y) of a late model, as `OptimisticLearner.act` and `pkd.Plan.action` take it."""
        seen = self.state_of(observation)
        x, y = seen.state if self.packing.commands else self._naming.read(seen.state)
        if isinstance(model, Augmented):
            x, y = model.place(x, y, seen.queue, seen.waited)
        return seen.step, x, y

    def ask(
        self, policy: LatePlan | pkd.Plan | pkd.OptimisticLearner, observation: Observation
    ) -> Any:
        """What a plan of `problem()`, or a learner of its model, does now, as `step` takes it."""
        if isinstance(policy, LatePlan):
            return self.code_of(policy.action(*self.state_of(observation)))
        wanted = "a plan of problem(), or a learner of its model"
        require(instance("policy", policy, (pkd.Plan, pkd.OptimisticLearner), wanted))
        act = policy.act if isinstance(policy, pkd.OptimisticLearner) else policy.action
        return self.code_of(act(*self.place_of(observation, policy.compiled.model)))

    @property
    def late(self) -> LateEnv:
        """This wrapper, for `env.get_wrapper_attr("late")` where others are around it."""
        return self

    def code_of(self, action: Any) -> Any:
        """The action of the environment for one of the problem: the inverse of what is shown."""
        return self._naming.code(action)

    def commands_of(self, observation: Observation) -> tuple[Any, tuple[Any, ...]]:
        """(command in force, commands on their way), when the last shown state was."""
        on_way = self.packing.read(observation, "on_way", "sent")
        name = self._naming.action
        return name(observation["in_force"]), tuple(map(name, on_way))

    def episode(self) -> DelayedEpisode:
        """Everything about the episode, once it is over.

        `episode().augmented(model)` is what `OptimisticLearner.observe` takes.
        """
        if not self._over or self._rng is None or self.horizon is None:
            raise ModelError(
                "episode(): expected an episode that is over, of an environment with a horizon; "
                "states and delays are not shown before"
            )
        if isinstance(self._line, SensorArrivals):
            raise ModelError(
                "episode(): expected one delay of all observations, not one per sensor"
            )
        problem, name, told = self._base, self._naming, self._messages
        states = [name.state(message.observation) for message in told]
        if problem is None and self._flags[0] and self._behind.table is not None:
            states[-1] = self._behind.table.name_end(states[-1])
        actions = tuple(map(name.action, self._actions))
        moves = list(self._moves) if problem else self._make_moves(states)
        opening = problem.opening if problem else ()
        if self.packing.commands:
            states = [
                self._add_commands(state, m.in_force, m.on_way, m.since)
                for state, m in zip(states, told, strict=True)
            ]
            ys = [y for _, y in states]
            opening = tuple(_put_on_way(move, ys[0]) for move in opening)
            steps = zip(ys, actions, ys[1:], moves, strict=False)
            moves = [retell(*step) for step in steps]
        return DelayedEpisode(
            self.horizon, tuple(states), actions, tuple(self._line.deltas),
            tuple(self._line.delays), tuple(moves), opening,
            final=problem.final if problem else 0.0, start_delay=self._line.start_delay,
        )  # fmt: skip

    def _make_moves(self, states: Sequence[Any]) -> list[tuple[Transition, ...]]:
        """The moves of an environment whose observations are its states."""
        return [
            (Transition(states[t], None, self._naming.action(a), states[t + 1], None, told.paid),)
            for t, (a, told) in enumerate(zip(self._executed, self._messages[1:], strict=True))
        ]

    def problem(self, *, known_successors: bool = False) -> pkd.Problem:
        """The exact problem behind this environment, for `pkd_delay.plan` and `pkd_delay.learn`.

        It needs a transition table (FrozenLake, CliffWalking, Taxi, or a problem of `pkd`), one law
        of the delay of observations, and one of the actions. It is a `Delayed`, unless the actions
        alone are late. known_successors: a learner of a table knows which states can follow.

        >>> import pkd_delay
        >>> lake = gym.make("FrozenLake-v1")
        >>> env = LateEnv(lake, observations=1, horizon=20)
        >>> round(pkd_delay.plan(env.problem()).value, 6)
        0.089623
        """
        return (self._informed if known_successors else self._behind).problem


def _names_sensors(observations: Any) -> bool:
    return isinstance(observations, Mapping) and any(isinstance(k, str) for k in observations)


def find_first_action(env: gym.Env[Any, Any]) -> Any:
    """The action of an environment that does nothing; None: no action surely does.

    >>> find_first_action(gym.make("MountainCarContinuous-v0")).tolist()
    [0.0]
    >>> find_first_action(gym.make("CartPole-v1")) is None
    True
    """
    if hasattr(env.unwrapped, "get_action_meanings"):
        words = [str(word).upper() for word in env.unwrapped.get_action_meanings()]
        if "NOOP" in words:
            return np.int64(words.index("NOOP"))
    return _find_zero(env.action_space)


def _find_zero(space: gym.spaces.Space[Any]) -> Any:
    if isinstance(space, gym.spaces.Dict):
        parts = {name: _find_zero(part) for name, part in space.spaces.items()}
        return None if any(part is None for part in parts.values()) else parts
    if isinstance(space, gym.spaces.Tuple):
        entries = tuple(map(_find_zero, space.spaces))
        return None if any(entry is None for entry in entries) else entries
    if isinstance(space, gym.spaces.Box | gym.spaces.MultiBinary):
        zero = np.zeros(space.shape, space.dtype)
        return zero if zero in space else None
    return None


def _put_on_way(move: Transition, first: transforms.OnWay) -> Transition:
    """A chance move of the base before the first command."""
    y, y_next = (first._replace(y=y) for y in (move.y, move.y_next))
    return attrs.evolve(move, y=y, y_next=y_next)
