"""What a policy earns in a LateEnv is what the exact planner says, for late news and late actions.

Seeds are fixed, so that a test passes always or never; the margin is four standard errors.
"""

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import DelayChain, Delayed, DelayedMDP, Lags, LateEnv
from pkd_delay.envs.benchmark import _score_late_actions
from pkd_delay.envs.drive import play
from pkd_delay.models.tables import random_mdp
from pkd_delay.transforms.late_actions import LateCommands

pytest.importorskip("gymnasium")
import gymnasium as gym

RANDOM = {-1: 0.3, 0: 0.4, 1: 0.3}
TRAVEL = {0: 0.4, 1: 0.3, 2: 0.3}
HORIZON = 20
EPISODES = 400


def lake():
    return gym.make("FrozenLake-v1", disable_env_checker=True)


def pond():
    """A lake so small that both kinds of lateness at once are planned in a second."""
    return gym.make("FrozenLake-v1", desc=["SFF", "HFG"], disable_env_checker=True)


def cliff():
    """Nothing is random there, so every episode must earn the exact value."""
    return gym.make("CliffWalking-v1", disable_env_checker=True)


def some_mdp():
    return random_mdp(states=5, actions=3, horizon=8, successors=3, seed=4)


def returns(env, act, episodes=EPISODES):
    """The returns of some episodes; `act` gets the observation."""
    totals = np.zeros(episodes)
    for k in range(episodes):
        observation, _ = env.reset(seed=k)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(env.code_of(act(observation)))
            totals[k] += reward
            over = terminated or truncated
    return totals


def assert_earns(totals, exact):
    error = totals.std(ddof=1) / np.sqrt(len(totals))
    assert abs(totals.mean() - exact) <= 4 * error + 1e-9


def assert_optimal(env, plan):
    assert_earns(returns(env, lambda seen: plan.action(*env.state_of(seen))), plan.value)


CHAIN = DelayChain([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])
DELAYS = [(0, None), (1, None), (2, None), (3, None), (RANDOM, 2), (Lags(TRAVEL), None), (CHAIN, 2)]


@pytest.mark.parametrize("make", [lake, cliff, some_mdp])
@pytest.mark.parametrize(("law", "most"), DELAYS)
def test_an_optimal_plan_earns_its_value_under_late_observations(make, law, most):
    base = make()
    env = LateEnv(base, law, max_delay=most, horizon=None if make is some_mdp else HORIZON)
    assert_optimal(env, pkd_delay.plan(env.problem()))


def test_a_slippery_cliff_is_played_at_its_value():
    slippery = gym.make("CliffWalking-v1", is_slippery=True, disable_env_checker=True)
    env = LateEnv(slippery, RANDOM, max_delay=1, horizon=60)
    assert_optimal(env, pkd_delay.plan(env.problem()))


@pytest.mark.parametrize("law", [2, RANDOM])
def test_the_exact_problem_has_the_value_of_the_absorbing_table(law):
    env = LateEnv(lake(), law, max_delay=2, horizon=HORIZON)
    table = pkd.TabularMDP.from_gymnasium(lake(), HORIZON)
    known = {2: 1.0} if law == 2 else law
    absorbing = pkd_delay.plan(DelayedMDP(table, known, 2)).value
    assert pkd_delay.plan(env.problem()).value == pytest.approx(absorbing, abs=1e-12)


@pytest.mark.parametrize("paid", ["shown", "at once"])
def test_the_return_does_not_depend_on_when_rewards_are_paid(paid):
    envs = [LateEnv(some_mdp(), RANDOM, max_delay=2, rewards=when) for when in (paid, "shown")]
    plan = pkd_delay.plan(envs[0].problem())
    found, shown = (play(env, plan, 50) for env in envs)
    assert found == pytest.approx(shown)


def test_late_states_with_their_own_law_for_each_action_earn_the_exact_value():
    mdp = some_mdp()
    laws = np.random.default_rng(2).dirichlet(np.ones(3), size=(5, 3))
    late = DelayedMDP(mdp, laws, 2)
    assert_optimal(LateEnv(late), pkd_delay.plan(late))


def late_actions(mdp, delay, held):
    return LateCommands(mdp, delay, 2, first_action=held), mdp.law()


ACTIONS = [*range(4), Lags(TRAVEL), RANDOM]


@pytest.mark.parametrize("make", [lake, cliff, some_mdp])
@pytest.mark.parametrize("delay", ACTIONS)
def test_an_optimal_plan_earns_its_value_under_late_actions(make, delay):
    base = make()
    mdp = base if make is some_mdp else pkd.TabularMDP.from_gymnasium(base, HORIZON)
    env = LateEnv(base, 0, delay, 2, first_action=0, horizon=mdp.horizon)
    plan = pkd_delay.plan(env.problem())
    assert plan.value == pytest.approx(pkd.plan(*late_actions(mdp, delay, 0)).value, abs=1e-12)
    assert_earns(play(env, plan, EPISODES), plan.value)


BOTH = [(1, 1), (RANDOM, Lags(TRAVEL)), (Lags(TRAVEL), RANDOM), (CHAIN, 1)]


@pytest.mark.parametrize("make", [pond, some_mdp])
@pytest.mark.parametrize(("law", "delay"), BOTH)
def test_both_at_once_earn_the_value_of_late_states_of_a_world_with_late_actions(make, law, delay):
    base = make()
    mdp = base if make is some_mdp else pkd.TabularMDP.from_gymnasium(base, 6)
    env = LateEnv(base, law, delay, 2, first_action=1, horizon=mdp.horizon)
    plan = pkd_delay.plan(env.problem())
    known = {1: 1.0} if law == 1 else law
    largest = 1 if law == 1 else 2
    composed = Delayed(late_actions(mdp, delay, 1), known, largest)
    assert plan.value == pytest.approx(pkd_delay.plan(composed).value, abs=1e-12)
    assert_earns(play(env, plan, EPISODES), plan.value)


def test_random_first_commands_are_part_of_the_problem():
    env = LateEnv(lake(), 0, 2, first_action="random", horizon=HORIZON)
    plan = pkd_delay.plan(env.problem())
    fixed = [
        pkd.plan(pkd.LateActions(pkd.TabularMDP.from_gymnasium(lake(), HORIZON), 2, first_action=a),
                 env.problem().law()).value
        for a in range(4)
    ]  # fmt: skip
    assert min(fixed) < plan.value < max(fixed)
    assert_earns(play(env, plan, EPISODES), plan.value)


def test_random_first_commands_have_the_value_that_is_known_in_a_world_without_chance():
    """The benchmark computes it apart: random play for d steps, then the undelayed optimum."""
    env = LateEnv(cliff(), 0, 2, first_action="random", horizon=40)
    expected = _score_late_actions(env)[0]
    assert pkd_delay.plan(env.problem()).value == pytest.approx(expected, abs=1e-12)


def wait_first(mdp, steps):
    """The same world after some steps in which nothing happens."""
    S, A = mdp.rewards.shape
    P, r = np.zeros(((steps + 1) * S, A, (steps + 1) * S)), np.zeros(((steps + 1) * S, A))
    for k in range(steps):
        for s in range(S):
            P[k * S + s, :, (k + 1) * S + s] = 1.0
    P[steps * S :, :, steps * S :], r[steps * S :] = mdp.transitions, mdp.rewards
    return pkd.TabularMDP(P, r, mdp.horizon + steps, start=0)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_late_observations_and_late_actions_have_one_optimum_if_the_first_commands_do_nothing(d):
    """Katsikopoulos and Engelbrecht (2003): at its execution an action is d states old either way.

    The first d commands are not the agent's own, so the world waits for d steps.
    """
    mdp = some_mdp()
    waiting = wait_first(mdp, d)
    late_states = pkd_delay.plan(DelayedMDP.constant(waiting, d)).value
    late_commands = pkd.plan(*late_actions(waiting, d, 0)).value
    assert late_commands == pytest.approx(late_states, abs=1e-12)
    without = pkd_delay.plan(DelayedMDP.constant(mdp, d)).value
    assert late_states == pytest.approx(without, abs=1e-12)


def test_the_clipped_empty_queue_is_played_as_assumption_one_says():
    """facts.md: V* = 2.5, while the printed rule would give 2.25."""
    coin = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), 3)
    late = DelayedMDP(coin, {-1: 0.5, 1: 0.5}, 2)
    env, plan = LateEnv(late), pkd_delay.plan(late)
    totals = returns(env, lambda seen: plan.action(*env.state_of(seen)), 6000)
    assert_earns(totals, 2.5)
    assert abs(totals.mean() - 2.25) > 10 * totals.std() / np.sqrt(len(totals))
