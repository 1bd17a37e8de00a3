"""Ready-made late environments: importing this module registers their ids with Gymnasium.

`gymnasium.make("pkd_delay.envs:LateFrozenLake-d2-v0")` imports it. `"pkd_delay:LateFrozenLake-..."`
works, too, if Gymnasium was imported before `pkd_delay`. An id names a base, and how it is late:
d2 shows every observation 2 steps late, a2 executes every action 2 steps late, the other words are
in `LAWS`. `pkd_delay.envs.benchmark` has the exact optimum of each id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
import gymnasium as gym
from gymnasium.envs.registration import WrapperSpec

from pkd import ModelError
from pkd.expect import function, require, whole

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)

__all__ = ["TASKS", "Task", "late_vector"]

# Random laws of Delta; delays are at most MAX_DELAY.
LAWS: Mapping[str, Mapping[int, float]] = {
    "random": {-1: 0.3, 0: 0.4, 1: 0.3},  # wanders
    "bursty": {-1: 0.5, 0: 0.3, 3: 0.2},  # seldom news, then several at once
}
MAX_DELAY = 3
MOST_COPIES = 1_000_000
TOY = "gymnasium.envs.toy_text"


@attrs.frozen
class Base:
    """An environment without delay."""

    name: str
    entry_point: str
    horizon: int | None  # None: the problem has its own
    lateness: tuple[str, ...]  # how it is made late
    options: Mapping[str, Any] = {}


@attrs.frozen
class Task:
    """A registered late environment."""

    base: Base
    lateness: str  # d0, d1, ..., a0, a1, ..., or a word of LAWS

    @property
    def id(self) -> str:
        """What `gymnasium.make` takes."""
        return f"Late{self.base.name}-{self.lateness}-v0"

    @property
    def late(self) -> dict[str, Any]:
        """The arguments of `LateEnv`."""
        if self.lateness in LAWS:
            return {"observations": dict(LAWS[self.lateness]), "max_delay": MAX_DELAY}
        steps = int(self.lateness[1:])
        if self.lateness[0] == "d":
            return {"observations": steps}
        return {"observations": 0, "actions": steps, "first_action": "random"}

    def register(self) -> None:
        """Makes the id known to Gymnasium."""
        gym.register(
            self.id,
            entry_point=self.base.entry_point,
            max_episode_steps=self.base.horizon,
            kwargs=dict(self.base.options),
            additional_wrappers=(
                WrapperSpec("LateEnv", "pkd_delay.envs.late_env:LateEnv", self.late),
            ),
        )


def _make_tasks() -> dict[str, Task]:
    constant, random = ("d0", "d1", "d2", "d3"), ("random", "bursty")
    problem = "pkd_delay.envs.problem_env:ProblemEnv"
    bases = [
        Base("TwoState", problem, None, (*constant, "d4", *random), {"problem": "two_state_chain"}),
        Base("RiverSwim", problem, None, (*constant, *random), {"problem": "riverswim"}),
        Base("FrozenLake", f"{TOY}.frozen_lake:FrozenLakeEnv", 100, (*constant, *random)),
        Base("FrozenLake8x8", f"{TOY}.frozen_lake:FrozenLakeEnv", 200, constant,
             {"map_name": "8x8"}),
        Base("CliffWalking", f"{TOY}.cliffwalking:CliffWalkingEnv", 100, (*constant, "random"),
             {"is_slippery": True}),
        Base("Taxi", f"{TOY}.taxi:TaxiEnv", 50, constant[:3], {"is_rainy": True}),
        Base("Autoscaler", "pkd_delay.envs:make_autoscaler", None, (*constant, *random)),
        Base("Inventory", problem, None, constant[:3], {"problem": "inventory"}),
        Base("WMaze", "pkd_delay.envs.w_maze:WMaze", 300, tuple(f"a{d}" for d in range(10))),
    ]  # fmt: skip
    tasks = [Task(base, lateness) for base in bases for lateness in base.lateness]
    return {task.id: task for task in tasks}


TASKS: Mapping[str, Task] = _make_tasks()


def make_autoscaler() -> gym.Env[Any, Any]:
    """The autoscaler without its own delay, which its registered name would add."""
    from pkd_delay.envs.problem_env import ProblemEnv
    from pkd_delay.models.autoscaler import autoscaler

    return ProblemEnv(autoscaler())


def late_vector(
    env: str | Callable[[], gym.Env[Any, Any]],
    num_envs: int,
    *,
    asynchronous: bool = False,
    flat: bool = False,
    **late: Any,
) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Several late copies of an environment that step together; `late` goes to `LateEnv`.

    `env` is an id, or a function that makes one. asynchronous: each copy in its own process. flat:
    observations are vectors, as in `FlatLateEnv`.

    >>> import pkd_delay
    >>> vector = pkd_delay.late_vector("CartPole-v1", 3, observations=2)
    >>> vector.reset(seed=0)[0]["observation"].shape
    (3, 4)
    """
    require(
        [] if isinstance(env, str) else function("env", env, "that makes an environment, or an id"),
        whole("num_envs", num_envs, 1, MOST_COPIES),
    )
    kind = gym.vector.AsyncVectorEnv if asynchronous else gym.vector.SyncVectorEnv
    return kind([partial(_make_copy, env, flat, late)] * num_envs)


def _make_copy(
    env: str | Callable[[], gym.Env[Any, Any]], flat: bool, late: dict[str, Any]
) -> gym.Env[Any, Any]:
    from pkd_delay.envs.late_env import LateEnv
    from pkd_delay.envs.late_view import FlatLateEnv

    try:
        made = LateEnv(gym.make(env) if isinstance(env, str) else env(), **late)
    except gym.error.Error as problem:
        raise ModelError(f"env is {env!r}: {' '.join(str(problem).split())}") from None
    return FlatLateEnv(made) if flat else made


for _task in TASKS.values():
    if _task.id not in gym.registry:
        _task.register()
