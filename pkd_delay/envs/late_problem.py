"""The exact problem behind a `LateEnv`, where there is one.

Late observations make it a `Delayed`, and late actions make its base a `LateActions`; with both,
the news of a world with late actions come late. So the environment plays what the planner plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import attrs
import gymnasium as gym

import pkd
from pkd import ModelError, TabularMDP, transforms
from pkd_delay.delayed import Delayed, DelayedMDP
from pkd_delay.envs.problem_env import DelayedEnvProblem, EnvProblem, ProblemEnv
from pkd_delay.laws.arrivals import DelayRule
from pkd_delay.transforms.late_actions import LateCommands, find_line

__all__ = ["Behind"]


@attrs.frozen(eq=False, slots=False)  # without slots, so that what is built can be cached
class Behind:
    """A table or a problem, and how it is late."""

    env: gym.Env[Any, Any]  # without lateness
    horizon: int | None
    observations: DelayRule
    commands: DelayRule
    first_action: Any  # in the problem's words; "random": so are the first commands
    given: Delayed | None  # what stands for `env`, where it brings its own delay
    start_late: bool
    known_successors: bool = False  # whether a learner knows which states can follow

    @cached_property
    def table(self) -> EnvProblem | None:
        """The table of an environment that has one."""
        base = self.env.unwrapped
        tabular = hasattr(base, "P") and hasattr(base, "initial_state_distrib")
        if not tabular or not self.horizon:
            return None
        return EnvProblem(self.env, self.horizon, self.known_successors)

    @cached_property
    def line(self) -> transforms.Line | None:
        """How long commands travel; None: they are not late, or by no law that can be planned."""
        return find_line(self.commands) if self.commands.max_delay else None

    @cached_property
    def problem(self) -> pkd.Problem:
        """The exact problem: a `Delayed`, or one with late actions alone."""
        missing = [f"problem() is not defined: {what}" for what in self._find_missing()]
        if missing:
            raise ModelError(missing)
        if self.line is None:
            assert self.delayed is not None
            return self.delayed
        assert self.delayed is not None
        problem: Any = self.table
        base, instead = self.env.unwrapped, None
        if isinstance(base, ProblemEnv):
            problem, instead = base.problem, base.instead
        model = LateCommands(problem, self.line, first_action=self.first_action, instead=instead)
        late = pkd.as_problem((model, model.law(problem.law())))
        largest = self.delayed.max_delay
        return late if largest == 0 else Delayed(late, self.delayed.delay_of, largest)

    @cached_property
    def delayed(self) -> Delayed | None:
        """The problem with late observations alone; None: there is none."""
        rule, base = self.observations, self.env.unwrapped
        if self.given is not None or rule.law is None:
            return self.given
        if isinstance(base, ProblemEnv):
            if isinstance(base.problem, TabularMDP):
                return DelayedMDP(base.problem, rule.law, rule.max_delay)
            return Delayed(base.problem, rule.law, rule.max_delay, instead=base.instead)
        if self.table is None:
            return None
        return DelayedEnvProblem(self.table, rule.law, rule.max_delay)

    def _find_missing(self) -> Iterator[str]:
        """Why there is no exact problem."""
        if self.known_successors and isinstance(self.env.unwrapped, ProblemEnv):
            yield "known_successors is for environments with a table; say it in the problem itself"
        if self.start_late:
            yield "the first observation is late"
        late = self.commands.max_delay > 0
        if late and self.line is None:
            yield "the actions are late by a law of the step or state"
        if self.given is None and self.observations.law is None:
            yield "the delays do not follow one law of Delta"
        elif self.delayed is None:
            yield "the environment has no transition table, or no horizon"
        elif late and self.delayed.delay_of.one is None:
            yield "the actions are late, and the delay of observations depends on state and action"
