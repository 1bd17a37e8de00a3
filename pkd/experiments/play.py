"""`play`: an agent plays a model in simulation, and its regret is measured.

The model is compiled once, the simulator is built once, and a policy that the agent shows is
evaluated once. A rule of optimism is an agent too: `pkd.learn` plays it in compiled code.
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.evaluation import evaluate
from pkd.experiments.agent import Agent
from pkd.experiments.record import Record
from pkd.learning import learn
from pkd.model import Law, ModelError
from pkd.optimism import Optimism
from pkd.planning import Model, Plan, Policy, check_schedule, make_plan, resolve
from pkd.results.values import refuse_unwritable
from pkd.schedule import Schedule, read_schedule
from pkd.simulation import Simulator

if TYPE_CHECKING:
    from pkd.engine import Compiled
    from pkd.engine.compiled import Truth

__all__ = ["Player", "World", "describe_agent", "name_agent", "play"]

Player = Agent | Optimism


def play(
    problem: Model,
    agent: Player,
    episodes: int,
    seed: int = 0,
    *,
    delta: float = 0.05,
    replan: Schedule = "doubling",
    label: str | None = None,
) -> Record:
    """The record of an agent, or of a rule of optimism, that plays so many episodes.

    Regret is exact in the episodes before which the agent shows its policy, and estimated from the
    return in the others; `Record.regret_is` says which. The agent is copied: the given one stays as
    it is. delta and replan are for rules only. label: how the model is called.

    >>> import pkd
    >>> class Stay(pkd.Agent):
    ...     def begin(self, model, *, episodes, seed):
    ...         pass
    ...     def act(self, h, x, y):
    ...         return 1
    ...     def observe(self, episode):
    ...         pass
    >>> tosses = [[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]
    >>> coin = pkd.TabularMDP(tosses, [[0.0, 0.0], [1.0, 1.0]], horizon=3)
    >>> record = pkd.play(coin, Stay(), 4)  # it never sees heads, and loses 1.25 each time
    >>> record.regret.tolist(), record.regret_is
    ([1.25, 2.5, 3.75, 5.0], 'estimated')
    """
    check_schedule(episodes, delta)
    name = label or (problem if isinstance(problem, str) else None)
    world = World(*resolve(problem, None), name)
    return world.play(agent, int(episodes), int(seed), delta=delta, replan=replan)


@attrs.define(eq=False, slots=False)
class World:
    """A compiled model with its law, and what all runs of it share."""

    compiled: Compiled
    law: Law
    label: str | None = None
    given_optimum: float | None = None

    @cached_property
    def truth(self) -> Truth:
        return self.compiled.truth(self.law)

    @cached_property
    def optimum(self) -> float:
        if self.given_optimum is not None:
            return self.given_optimum
        return make_plan(self.compiled, self.truth.belief).value

    @cached_property
    def fingerprint(self) -> str:
        """Tells models and laws apart."""
        digest = hashlib.sha256(self.compiled.fingerprint.encode())
        for part in (*self.truth.belief[:3], *self.truth.world):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()

    def play(
        self,
        agent: Player,
        episodes: int,
        seed: int,
        *,
        delta: float = 0.05,
        replan: Schedule = "doubling",
        checkpoint: Path | None = None,
    ) -> Record:
        """The record of one run. checkpoint: a file from which a stopped run of a rule goes on."""
        config = {"agent": describe_agent(agent), "episodes": episodes, "seed": seed}
        if isinstance(agent, Optimism):
            config |= {"delta": float(delta), "replan": read_schedule(replan).text}
            parts = self._learn(agent, config, checkpoint)
        else:
            parts = self._play(copy.deepcopy(agent), episodes, seed)
        return Record(
            **parts,
            optimal_value=float(self.optimum),
            label=name_agent(agent),
            model=self.label or type(self.compiled.model).__name__,
            guarantee=agent.guarantee,
            config=config,
            problem=self.fingerprint,
        )

    def _learn(
        self, rule: Optimism, config: dict[str, Any], checkpoint: Path | None
    ) -> dict[str, Any]:
        if checkpoint is not None and not self._can_be_written:
            checkpoint = None
        run = learn(
            self.compiled,
            self.law,
            config["episodes"],
            optimism=rule,
            delta=config["delta"],
            seed=config["seed"],
            replan=config["replan"],
            optimal_value=self.optimum,
            checkpoint=checkpoint,
        )
        names = ("policy_values", "returns", "upper_values", "plans", "seconds")
        lower = np.zeros(0) if run.lower_values is None else run.lower_values
        return {"lower_values": lower, **{name: getattr(run, name) for name in names}}

    @cached_property
    def _can_be_written(self) -> bool:
        """Whether a checkpoint can be written; a run does not need one."""
        try:
            refuse_unwritable(chain(self.compiled.features, *self.compiled.outcomes))
        except ModelError:
            return False
        return True

    def _play(self, agent: Agent, episodes: int, seed: int) -> dict[str, Any]:
        simulator = Simulator(self.compiled, self.truth, seed=seed)
        judge, began = _Judge(self), time.perf_counter()
        if agent.knows_law:
            with _blame(agent, "inform"):
                agent.inform(self.law)
        with _blame(agent, "begin"):
            agent.begin(self.compiled.model, episodes=episodes, seed=seed)
        values, returns = np.full((2, episodes), np.nan)
        for k in range(episodes):
            with _blame(agent, "policy", k):
                values[k] = judge.evaluate(agent.policy())
            try:
                episode = simulator.episode(_Seat(agent))
            except ModelError as problem:
                raise ModelError(_prefix(agent, k, problem)) from problem
            returns[k] = episode.total
            with _blame(agent, "observe", k):
                agent.observe(episode)
        return {
            "policy_values": values,
            "returns": returns,
            "upper_values": np.zeros(0),
            "lower_values": np.zeros(0),
            "plans": np.zeros(0, np.int64),
            "seconds": time.perf_counter() - began,
        }


def name_agent(agent: Player) -> str:
    """How tables name an agent; a rule without its guarantee, which has a column of its own."""
    return agent.name if isinstance(agent, Optimism) else agent.label


def describe_agent(agent: Player) -> dict[str, Any]:
    """An agent as plain data: its class, and the arguments of its class that it keeps.

    >>> import pkd
    >>> describe_agent(pkd.PosteriorSampling())
    {'rule': 'PosteriorSampling', 'prior': 1.0}
    """
    if isinstance(agent, Optimism):
        return agent.to_config()
    import inspect

    kind = type(agent)
    names = inspect.signature(kind).parameters
    kept = {name: getattr(agent, name) for name in names if hasattr(agent, name)}
    told = {k: v.to_config() if isinstance(v, Optimism) else v for k, v in kept.items()}
    options = {name: value for name, value in told.items() if _is_plain(value)}
    return {"agent": f"{kind.__module__}:{kind.__qualname__}", "label": agent.label, **options}


class _Judge:
    """The exact value of the policy that an agent shows, once for each object."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.last: Policy | None = None
        self.value = np.nan

    def evaluate(self, policy: Policy | None) -> float:
        if policy is None:
            return np.nan
        if policy is not self.last:
            compiled = self.world.compiled
            if isinstance(policy, Plan) and policy.compiled is compiled:
                belief = self.world.truth.belief
                self.value, _ = compiled.sweep(belief, policy.choices, follow=True)
            else:
                self.value = float(evaluate(compiled, self.world.law, policy))
            self.last = policy
        return self.value


class _Seat:
    """What the simulator asks for actions; an exception of the agent says where it came from."""

    def __init__(self, agent: Agent) -> None:
        self._act = agent.act

    def __call__(self, h: int, x: Any, y: Any) -> Any:
        try:
            return self._act(h, x, y)
        except Exception as problem:
            where = f"at step {h} in (x={x!r}, y={y!r})"
            raise ModelError(f"act raised {_say(problem)} {where}") from problem


@contextmanager
def _blame(agent: Agent, method: str, episode: int | None = None) -> Iterator[None]:
    """Turns what a method of an agent raises into a ModelError that names both."""
    try:
        yield
    except Exception as problem:
        said = f"{method} raised {_say(problem)}"
        raise ModelError(_prefix(agent, episode, said)) from problem


def _prefix(agent: Agent, episode: int | None, problem: object) -> str:
    when = "" if episode is None else f", episode {episode + 1}"
    return f"agent {agent.label}{when}: {problem}"


def _say(problem: Exception) -> str:
    text = " ".join(str(problem).split())
    return text if isinstance(problem, ModelError) else f"{type(problem).__name__}: {text}"


def _is_plain(value: object) -> bool:
    """Whether JSON can say a value and give it back."""
    if isinstance(value, dict):
        return all(type(key) is str and _is_plain(part) for key, part in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_plain(part) for part in value)
    return value is None or type(value) in (bool, int, float, str)
