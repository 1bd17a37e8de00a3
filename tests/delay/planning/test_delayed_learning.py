"""Learning under delay: optimism holds, regret flattens, shared counts make it fast."""

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import DelayedMDP
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp

DELAYED = DelayedMDP(
    random_mdp(states=3, actions=2, horizon=5, successors=2, seed=1), {-1: 0.2, 0: 0.4, 1: 0.4}, 2
)


def test_with_theory_constants_regret_flattens_and_no_plan_is_below_the_optimum():
    episodes = 400_000
    run = pkd_delay.learn(DELAYED, episodes)
    assert run.violations == 0
    regret = run.regret
    assert regret[-1] - regret[episodes // 2] < 0.5 * regret[episodes // 2]


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
@pytest.mark.parametrize("replan", ["every", "doubling"])
def test_every_plan_with_theory_constants_is_optimistic(delay_law, replan):
    theory = pkd.MVP()
    run = pkd_delay.learn(DELAYED, 300, delay_law=delay_law, replan=replan, seed=3, optimism=theory)
    assert run.violations == 0
    assert np.all(run.policy_values <= run.optimal_value + 1e-9)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_a_run_ends_near_the_optimum_with_practical_constants(delay_law):
    run = pkd_delay.learn(DELAYED, 1500, delay_law=delay_law, optimism=pkd.MVP.practical(), seed=2)
    assert run.optimal_value == pytest.approx(pkd_delay.plan(DELAYED).value, abs=1e-10)
    assert run.policy_values[-500:].mean() > 0.99 * run.optimal_value


def test_counts_for_each_augmented_state_learn_far_slower():
    """The same process as a table in which every (state, queue, counter) has its own counts."""
    table = pkd.flatten(DELAYED.known(), DELAYED.law())
    shared = pkd_delay.learn(DELAYED, 1500, optimism=pkd.MVP.practical(), seed=4)
    apart = pkd.learn(table.model(), table.law(), 1500, optimism=pkd.MVP.practical(), seed=4)
    assert apart.optimal_value == pytest.approx(shared.optimal_value, abs=1e-9)
    assert shared.regret[-1] < apart.regret[-1] / 3


def test_the_composed_autoscaler_learns_several_times_faster_than_its_delayed_table():
    law = {-1: 0.2, 0: 0.4, 1: 0.4}
    composed = autoscaler(horizon=8, max_delay=1, inter_arrival=law)
    table = DelayedMDP(pkd.flatten(composed.problem.model(), composed.problem.law()), law, 1)
    runs = [
        pkd_delay.learn(problem, 500, optimism=pkd.MVP.practical(), seed=5)
        for problem in (composed, table)
    ]
    assert runs[0].optimal_value == pytest.approx(runs[1].optimal_value, abs=1e-9)
    assert runs[0].regret[-1] < runs[1].regret[-1] / 3
