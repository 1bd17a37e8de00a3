"""A sure arm and a bet: an agent whose rule draws its plan must not stay with the sure arm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import pkd
import pkd_delay
from pkd.experiments import rivals
from pkd.rules.schedule import Replan, read_schedule
from tests.rules.test_optimism import TwoArms

EPISODES, SEEDS = 60, 8
STUCK = 0.3 * EPISODES  # .5 for sure in place of .8
PLANNERS = (
    rivals.PerState, pkd_delay.rivals.QMDP, pkd_delay.rivals.ModelBasedSimulation,
    pkd_delay.rivals.IgnoreDelay,
)  # fmt: skip


def list_regrets(agents: Sequence[Any]) -> dict[str, float]:
    """The largest regret of each agent."""
    problem = TwoArms(), {"arm": {0: 0.2, 1: 0.8}}
    found = pkd.experiment({"bet": problem}, list(agents), EPISODES, SEEDS)
    return {a: max(run.regret[-1] for run in found.runs("bet", a)) for a in found.agents}


def make_agents() -> list[Any]:
    return ["posterior", *(kind(optimism="posterior") for kind in PLANNERS)]


def test_no_agent_that_draws_its_plan_gets_stuck() -> None:
    for agent, regret in list_regrets([*make_agents(), "opsrl"]).items():
        assert regret < 0.6 * STUCK, agent


def test_with_plans_that_wait_for_counts_every_one_of_them_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The old defect: who never bets counts nothing, so no count ever doubles."""

    def wait(every: bool, given: Any, *features: int) -> Replan:
        return read_schedule("doubling")

    for place in (
        "pkd.learning.learn", "pkd.learning.learner", "pkd.experiments.play",
        "pkd.experiments.rivals.per_state", "pkd_delay.rivals.planners",
    ):  # fmt: skip
        monkeypatch.setattr(f"{place}.schedule_for", wait)
    for agent, regret in list_regrets(make_agents()).items():
        assert regret == pytest.approx(STUCK), agent
