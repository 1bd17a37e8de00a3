"""Ready-made late environments: importing this module registers their ids with Gymnasium.

`import pkd_delay` does it, before or after `import gymnasium`; then
`gymnasium.make("pkd/LateFrozenLake-d2-v0")` makes one. `"pkd_delay:pkd/LateFrozenLake-d2-v0"` needs
no import. An id names a base, and how it is late: d2 shows every observation 2 steps late, a2
executes every action 2 steps late, the other words are in `LAWS`. `pkd_delay.envs.benchmark` has
the exact optimum of each id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

try:
    import gymnasium as gym
except ImportError:  # `pkd benchmark` shows its table without it
    gym = None  # type: ignore[assignment]

if not TYPE_CHECKING:
    from pkd.lazy import submodules

    __getattr__ = submodules(__name__)

__all__ = ["TASKS", "Task"]

# Random laws of Delta; delays are at most MAX_DELAY.
LAWS: Mapping[str, Mapping[int, float]] = {
    "random": {-1: 0.3, 0: 0.4, 1: 0.3},  # wanders
    "bursty": {-1: 0.5, 0: 0.3, 3: 0.2},  # seldom news, then several at once
}
MAX_DELAY = 3
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
        return f"pkd/Late{self.base.name}-{self.lateness}-v0"

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
        from gymnasium.envs.registration import WrapperSpec

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


for _task in TASKS.values():
    if gym is not None and _task.id not in gym.registry:
        _task.register()
