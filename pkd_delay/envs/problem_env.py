"""A problem as a Gymnasium environment, and a Gymnasium table as a problem: both ways.

`ProblemEnv` plays any problem of `pkd`, without delay; `LateEnv` delays it. `EnvProblem` is the
problem behind an environment with a transition table, such as FrozenLake, where an end is an END.
`Naming` translates between the numbers of an environment and the values of its problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import gymnasium as gym
import numpy as np
from gymnasium import spaces

import pkd
from pkd import END, ModelError, PartiallyKnownMDP, TabularMDP, Transition, explore
from pkd.expect import key
from pkd.explore import graph as core
from pkd_delay.base import Instead, State, survey
from pkd_delay.delayed import Delayed
from pkd_delay.episodes import TrueBase

if TYPE_CHECKING:
    from pkd.model import Branch, Law

__all__ = ["DelayedEnvProblem", "EnvProblem", "Naming", "ProblemEnv", "find_naming"]


class ProblemEnv(gym.Env[np.int64, np.int64]):
    """Any problem as a Gymnasium environment: states and actions are numbered.

    `states[i]` is the (x, y) of observation i, `actions[k]` the action of number k. A state that
    is a number keeps it. CHANCE states take no step. The episode terminates after H actions, or at
    an END, and the last reward holds the final pay. `instead(x, y, a)` says what is done where a
    is not on offer.

    >>> from pkd_delay.models.tables import two_state_chain
    >>> env = ProblemEnv(two_state_chain(horizon=2, stay=1.0))
    >>> _ = env.reset(seed=0)
    >>> [tuple(map(float, env.step(0)[:3])) for _ in range(2)]  # (state, reward, terminated)
    [(0.0, 1.0, 0.0), (0.0, 1.0, 1.0)]
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own declaration

    def __init__(self, problem: Any, instead: Instead = None) -> None:
        problem = pkd.as_problem(problem)
        if isinstance(problem, Delayed):
            problem, instead = problem.problem, instead or problem.instead
        self.problem: pkd.Problem = problem
        self.instead = instead
        self.model: PartiallyKnownMDP = self.problem.model()
        self._truth = TrueBase(self.model, self.problem.law())
        self.actions = survey(self.model, instead).actions
        self.states = _number_states(self.model)
        self._index = {state: i for i, state in enumerate(self.states)}
        self.observation_space = spaces.Discrete(len(self.states))
        self.action_space = spaces.Discrete(len(self.actions))
        self.moves: tuple[Transition, ...] = ()  # of the last step
        self.opening: tuple[Transition, ...] = ()  # CHANCE moves before the first observation
        self.final = 0.0  # paid where the episode stopped

    @property
    def here(self) -> State:
        """The present (x, y)."""
        return self._truth.here

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Starts an episode. What is paid before the first action comes with the first reward."""
        super().reset(seed=seed)
        self.opening = self._truth.reset(self.np_random)
        self._owed = sum(move.reward or 0.0 for move in self.opening)
        self._step, self.moves, self.final = 1, (), 0.0
        return np.int64(self._index[self.here]), {}

    def step(self, action: np.int64) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Does the action of this number."""
        done = self.done(*self.here, self.actions[int(action)])
        self.moves = self._truth.act(done, settling=self._step == self.model.horizon)
        self._step += 1
        over = self._step > self.model.horizon or self._truth.over
        self.final = self.model.final(*self.here) if over else 0.0
        reward = self._owed + sum(move.reward or 0.0 for move in self.moves) + self.final
        self._owed = 0.0
        return np.int64(self._index[self.here]), float(reward), over, False, {}

    def done(self, x: Any, y: Any, a: Any) -> Any:
        """What is done when the action a meets the state (x, y)."""
        if self.instead is None or a in self.model.actions(x, y):
            return a
        return self.instead(x, y, a)


def _number_states(model: PartiallyKnownMDP) -> tuple[State, ...]:
    """Every state that an agent can see: decisions, ends, and where the last action leads."""
    graph = explore.explore(model)
    found = dict[State, None]()
    for side in (graph.layers, graph.settled):
        for node, kind in enumerate(side.kind):
            if kind != core.CHANCE_STATE:
                found[graph.state(side, node)] = None
    if all(type(x) is int and x >= 0 and y is None for x, y in found):
        named = {x for z in graph.features for x in model.outcomes(z)}
        return tuple((x, None) for x in range(1 + max(named | {x for x, _ in found})))
    return tuple(found)


class _EndingTable(PartiallyKnownMDP):
    """A table in which some states end the episode."""

    def __init__(self, table: PartiallyKnownMDP, ends: frozenset[int]) -> None:
        self.table, self.ends, self.horizon = table, ends, table.horizon

    def start(self) -> Any:
        return self.table.start()

    def actions(self, x: int, y: None) -> Any:
        return END if x in self.ends else self.table.actions(x, y)

    def reward(self, x: int, y: None, a: int) -> float:
        return float(self.table.reward(x, y, a))  # type: ignore[arg-type]  # a table's are numbers

    def step(self, x: int, y: None, a: int) -> Iterable[Branch]:
        return self.table.step(x, y, a)

    def outcomes(self, z: Any) -> Iterable[Any]:
        return self.table.outcomes(z)


@attrs.frozen(eq=False, slots=False)
class EnvProblem:
    """The problem of a Gymnasium environment with a transition table, up to a horizon.

    Unlike `pkd.TabularMDP.from_gymnasium`, where an ended episode stays in an absorbing state, it
    ENDs, so that its episodes are as long as those of the environment. known_successors: its
    learner knows which states can follow, not how likely they are.

    >>> problem = EnvProblem(gym.make("FrozenLake-v1"), 20)
    >>> round(pkd.plan(problem).value, 12), sorted(problem.ends)
    (0.199132700835, [5, 7, 11, 12, 15])
    """

    env: gym.Env[Any, Any] = attrs.field(repr=False)
    horizon: int
    known_successors: bool = False

    @cached_property
    def mdp(self) -> TabularMDP:
        """The table."""
        return TabularMDP.from_gymnasium(self.env, self.horizon)

    @cached_property
    def ends(self) -> frozenset[int]:
        """The states that end an episode: the terminal ones, or one that stands for all of them."""
        table = self.env.unwrapped.P  # type: ignore[attr-defined]
        if self.mdp.n_states > len(table):
            return frozenset([len(table)])
        cells = (cell for row in table.values() for cell in row.values())
        return frozenset(int(after) for cell in cells for p, after, _, over in cell if over and p)

    def name_end(self, state: int) -> int:
        """The END for a terminal state that an environment shows."""
        n_states = len(self.env.unwrapped.P)  # type: ignore[attr-defined]
        return state if state in self.ends else n_states

    @cached_property
    def _model(self) -> PartiallyKnownMDP:
        model = self.mdp.model(support=True if self.known_successors else None)
        return _EndingTable(model, self.ends)

    def model(self) -> PartiallyKnownMDP:
        return self._model

    def law(self) -> Law:
        return self.mdp.law()


@attrs.frozen(eq=False, slots=False)
class DelayedEnvProblem(Delayed):
    """A delayed `EnvProblem`: its states are the numbers that the environment shows."""

    def shown_as(self, x: int, y: None) -> int:
        return x

    def seen(self, state: int) -> tuple[int, None]:
        return state, None


@attrs.frozen
class Naming:
    """How observations and actions of an environment are written in `pkd`."""

    state: Callable[[Any], Any]  # observation -> state, as a plan of `pkd_delay` names it
    read: Callable[[Any], State]  # state -> (x, y) of the problem
    action: Callable[[Any], Any]
    code: Callable[[Any], Any]  # the inverse of `action`


def find_naming(env: gym.Env[Any, Any], delayed: Delayed | None) -> Naming:
    """The words of a problem, or numbers for discrete spaces; other values are left as they are."""
    base = env.unwrapped
    if isinstance(base, ProblemEnv):
        return _find_problem_naming(base.states, base.actions, delayed)
    state, action = (
        int if isinstance(space, spaces.Discrete) else _leave
        for space in (env.observation_space, env.action_space)
    )
    return Naming(state, lambda s: (s, None), action, action)


def _leave(value: Any) -> Any:
    return value


def _find_problem_naming(
    states: Sequence[State], actions: Sequence[Any], delayed: Delayed | None
) -> Naming:
    def name(i: Any) -> Any:
        state = states[int(i)]
        return state if delayed is None else delayed.shown_as(*state)

    def code(action: Any) -> np.int64:
        if key("action", action) or action not in codes:
            raise ModelError(f"the action is {action!r}; expected one of {list(actions)!r}")
        return np.int64(codes[action])

    codes = {action: k for k, action in enumerate(actions)}
    read = _leave if delayed is None else delayed.seen
    return Naming(name, read, lambda k: actions[int(k)], code)
