"""`World`: a model with its law, in which agents and rules of optimism play, and their regret.

The model is compiled once, its optimum planned once, and a policy that an agent shows is evaluated
once. A rule of optimism is an agent too: `pkd.learn` plays it in compiled code.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from pkd.episode import Episode
from pkd.experiments.agent import Agent
from pkd.files.values import refuse_unwritable
from pkd.learning.learn import learn
from pkd.learning.learner import OptimisticLearner
from pkd.model import Law, ModelError, PartiallyKnownMDP
from pkd.optimism import Optimism
from pkd.planning.evaluation import evaluate
from pkd.planning.plan import Plan, Policy, solve
from pkd.planning.simulation import RandomisedError, Simulator, refuse_weights
from pkd.results.run import Run
from pkd.rules.schedule import schedule_for

if TYPE_CHECKING:
    from pkd.engine import Compiled
    from pkd.engine.compiled import Truth

__all__ = ["Player", "World", "describe_agent", "describe_run", "name_agent"]

Player = Agent | Optimism
LOOKS = 16  # episodes of which the first ones and every such one are compared with the policy
FALSE_ALARM = 1e-6  # chance that returns of an honest agent look like those of another policy


@attrs.define(eq=False, slots=False)
class World:
    """A compiled model with its law, and what all runs of it share."""

    compiled: Compiled
    law: Law
    apart: World | None = None  # what learners are given, where that is another model

    @cached_property
    def truth(self) -> Truth:
        return self.compiled.truth(self.law)

    @cached_property
    def optimum(self) -> float:
        return float(solve(self.compiled, self.truth).value)

    @cached_property
    def fingerprint(self) -> str:
        """Tells models and laws apart."""
        digest = hashlib.sha256(self.compiled.fingerprint.encode())
        for part in (*self.truth.belief[:3], *self.truth.world):
            digest.update(np.ascontiguousarray(part).tobytes())
        if self.apart is not None:
            digest.update(self.apart.fingerprint.encode())
        return digest.hexdigest()

    @cached_property
    def model_optimum(self) -> float:
        """What the optimal policy of the learners' own model and law is worth in this world."""
        assert self.apart is not None
        return self._evaluate(solve(self.apart.compiled, self.apart.truth))

    def play(self, agent: Player, told: dict[str, Any], checkpoint: Path | None = None) -> Run:
        """The run of an agent that was told this (`describe_run`); the agent is copied.

        Regret is exact in the episodes before which the agent shows its policy, and estimated from
        the return in the others. checkpoint: from which a stopped run of a rule is resumed.
        """
        if isinstance(agent, Optimism) and self.apart is not None:
            agent = _RuleAgent(agent, told)
        if isinstance(agent, Optimism):
            run = learn(
                self.compiled,
                self.law,
                told["episodes"],
                optimism=agent,
                delta=told["delta"],
                seed=told["seed"],
                replan=told["replan"],
                optimal_value=self.optimum,
                checkpoint=checkpoint if self._can_be_written else None,
            ).without_plans()
            # Counts and their labels would be most of a file.
            return attrs.evolve(run, counts={}, world=self.fingerprint, label=agent.name)
        return self._play(copy.deepcopy(agent), told)

    @cached_property
    def _can_be_written(self) -> bool:
        """Whether a checkpoint can be written; a run does not need one."""
        try:
            refuse_unwritable(chain(self.compiled.features, *self.compiled.outcomes))
        except ModelError:
            return False
        return True

    def _play(self, agent: Agent, told: dict[str, Any]) -> Run:
        episodes, seed = told["episodes"], told["seed"]
        simulator = Simulator(self.compiled, self.truth, seed=seed)
        began = time.perf_counter()
        if agent.knows_law:
            with _blame(agent, "inform"):
                agent.inform(self.law)
        given = (self.apart or self).compiled
        agent.compiled = given
        with _blame(agent, "begin"):
            agent.begin(given.model, episodes=episodes, seed=seed)
        check = _Check(agent)
        uppers, planned = np.zeros(episodes), np.zeros(episodes, np.int64)  # of a rule
        shown: Policy | None = None
        values, returns, value = np.full(episodes, np.nan), np.zeros(episodes), np.nan
        for k in range(episodes):
            with _blame(agent, "policy", k):
                policy = agent.policy()
                if policy is not None and policy is not shown:
                    value = self._evaluate(policy)
                    shown = policy
            values[k] = np.nan if policy is None else value
            if isinstance(agent, _RuleAgent):
                uppers[k], planned[k] = agent.learner.plan.value, agent.learner.plans
            check.begin(k, policy)
            try:
                episode = simulator.episode(check.act)
            except ModelError as problem:
                raise ModelError(_prefix(agent, k, problem)) from problem
            returns[k] = episode.total
            with _blame(agent, "observe", k):
                agent.observe(episode)
        if remark := check.fault or self._find_gap(returns - values):
            remark = f"{agent.label} {remark}; its regret is estimated from returns"
            warnings.warn(remark, stacklevel=2)
            values[:] = np.nan
        return Run(
            upper_values=uppers if planned[0] else np.zeros(0),
            policy_values=values,
            returns=returns,
            plans=np.flatnonzero(np.diff(planned, prepend=0)),
            optimal_value=self.optimum,
            counts={},
            config={
                "model": type(self.compiled.model).__name__,
                **told,
                **({"remark": remark} if remark else {}),
                **({"model_optimum": self.model_optimum} if self.apart else {}),
            },
            seconds=time.perf_counter() - began,
            world=self.fingerprint,
            label=agent.label,
            guarantee=agent.guarantee,
        )

    def _evaluate(self, policy: Policy) -> float:
        engine, truth = self._plain
        try:
            if isinstance(policy, Plan) and policy.compiled is self.compiled:
                engine, truth, choices = self.compiled, self.truth, policy.choices
            else:
                choices = engine.tabulate(refuse_weights(policy))
        except RandomisedError:
            return float(evaluate(self.compiled, self.law, policy))
        value, _ = engine.solve(truth, choices, follow=True)
        return float(value)

    @cached_property
    def _plain(self) -> tuple[Compiled, Truth]:
        """The engine that takes a policy state by state, and the truth in it."""
        engine = self.compiled.plain
        return engine, self.truth if engine is self.compiled else engine.truth(self.law)

    def _find_gap(self, gaps: np.ndarray) -> str:
        """What is wrong if returns less shown values are further from 0 than chance explains.

        By the empirical Bernstein inequality, as if episodes were independent, that is one run in a
        million.
        """
        gaps = gaps[~np.isnan(gaps)]
        ranges = [(low, high) for _, low, high in self.compiled.return_ranges()]
        width = max(high for _, high in ranges) - min(low for low, _ in ranges)
        level = math.log(3 / FALSE_ALARM) / max(len(gaps), 1)
        chance = gaps.std() * math.sqrt(2 * level) + 6 * width * level if len(gaps) else np.inf
        if not len(gaps) or abs(gaps.mean()) <= chance:
            return ""
        return f"earns {gaps.mean():+.3g} per episode beside what the policies that it shows earn"


def name_agent(agent: Player) -> str:
    """How tables name an agent; a rule without its guarantee, which has a column of its own."""
    return agent.name if isinstance(agent, Optimism) else agent.label


def describe_run(
    agent: Player, episodes: int, seed: int, delta: float, replan: str
) -> dict[str, Any]:
    """Everything that a run of an agent is told, as plain data."""
    if not isinstance(agent, Optimism):
        told = describe_agent(agent)
        own = {"replan": told["replan"]} if "replan" in told else {}  # of agents that plan
        return {"agent": told, **own, "episodes": episodes, "seed": seed}
    schedule = schedule_for(agent.every_episode, replan).text
    rule = {"optimism": agent.to_config(), "delta": delta, "replan": schedule}
    return {**rule, "episodes": episodes, "seed": seed}


def describe_agent(agent: Agent) -> dict[str, Any]:
    """An agent as plain data: its class, and the arguments of its class that it keeps.

    >>> from pkd.experiments.rivals import RandomPlay
    >>> describe_agent(RandomPlay())["label"]
    'Random play'
    """
    kind = type(agent)
    names = inspect.signature(kind).parameters
    kept = {name: getattr(agent, name) for name in names if hasattr(agent, name)}
    told = {k: v.to_config() if isinstance(v, Optimism) else v for k, v in kept.items()}
    options = {name: value for name, value in told.items() if _is_plain(value)}
    return {"agent": f"{kind.__module__}:{kind.__qualname__}", "label": agent.label, **options}


class _RuleAgent(Agent):
    """A rule of optimism that learns its own model in another world."""

    def __init__(self, rule: Optimism, told: Mapping[str, Any]) -> None:
        self.rule, self.told = rule, told

    @property
    def label(self) -> str:
        return self.rule.name

    def begin(self, model: PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        told = {name: self.told[name] for name in ("delta", "replan")}
        self.learner = OptimisticLearner(
            self.compile(model), episodes, optimism=self.rule, seed=seed, **told
        )

    def act(self, h: int, x: Any, y: Any) -> Any:
        return self.learner.act(h, x, y)

    def observe(self, episode: Episode) -> None:
        self.learner.observe(episode)

    def policy(self) -> Plan:
        return self.learner.plan


class _Check:
    """`act` of an agent, compared with the policy that it shows in the first and many episodes."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.fault = agent, ""
        self.policy: Any = None

    def begin(self, k: int, policy: Policy | None) -> None:
        """Before episode k."""
        looks = not self.fault and (k < LOOKS or k % LOOKS == 0)
        asked = policy.action if isinstance(policy, Plan) else policy
        self.policy, self.episode = asked if looks else None, k + 1

    def act(self, h: int, x: Any, y: Any) -> Any:
        """An exception says in which step of the episode it was raised."""
        where = f"at step {h} in (x={x!r}, y={y!r})"
        try:
            action = self.agent.act(h, x, y)
        except Exception as problem:
            raise ModelError(f"act raised {_say(problem)} {where}") from problem
        if self.policy is not None and not self.fault:
            told = self.policy(h, x, y)
            if told != action and not (isinstance(told, Mapping) and told.get(action, 0) > 0):
                shows = f"shows a policy that does {told!r} and does {action!r}"
                self.fault = f"{shows} {where} of episode {self.episode}"
        return action


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
