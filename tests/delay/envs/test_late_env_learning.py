"""A learner of `pkd` and one of Stable-Baselines3 act and learn in a LateEnv."""

import functools

import pytest

import pkd
import pkd_delay
from pkd.episode import list_visited
from pkd_delay import DelayedMDP, FlatLateEnv, Lags, LateEnv
from pkd_delay.envs.drive import drive, play
from pkd_delay.envs.problem_env import ProblemEnv
from pkd_delay.models.autoscaler import autoscaler
from pkd_delay.models.tables import random_mdp
from pkd_delay.transforms.late_actions import LateCommands

pytest.importorskip("gymnasium")
import gymnasium as gym

RANDOM = {-1: 0.3, 0: 0.4, 1: 0.3}


def learn(env, learner, model, episodes):
    """The loop of the tutorial: observation -> act -> step, and the record -> observe."""
    returns = []
    for k in range(episodes):
        observation, _ = env.reset(seed=k)
        over, total = False, 0.0
        while not over:
            action = learner.act(*env.place_of(observation, model))
            observation, reward, terminated, truncated, _ = env.step(env.code_of(action))
            over, total = terminated or truncated, total + reward
        learner.observe(env.episode().augmented(model))
        returns.append(total)
    return returns


@pytest.mark.parametrize("kind", ["known", "unknown"])
@pytest.mark.parametrize("world", ["table", "lake", "autoscaler"])
def test_a_learner_learns_from_the_records_of_any_base(kind, world):
    if world == "table":
        env = LateEnv(DelayedMDP(random_mdp(horizon=6), RANDOM, 2))
    elif world == "lake":
        env = LateEnv(gym.make("FrozenLake-v1"), RANDOM, max_delay=2, horizon=15)
    else:
        env = LateEnv(autoscaler(horizon=6, max_delay=2))
    model = getattr(env.problem(), kind)()
    learner = pkd.OptimisticLearner(model, 20, optimism=pkd.MVP.practical())
    learn(env, learner, model, 20)
    assert learner.observed == 20
    moves = env.episode().moves
    assert 1 <= len(moves) <= model.horizon


def test_the_counts_of_a_learner_are_the_moves_of_the_environment():
    env = LateEnv(gym.make("FrozenLake-v1"), 2, horizon=15)
    model = env.problem().known()
    learner = pkd.OptimisticLearner(model, 30, optimism=pkd.Greedy())
    counts = {}
    for _ in range(30):
        learn(env, learner, model, 1)
        for (move,) in env.episode().moves:
            row = counts.setdefault((move.x, move.action), {})
            row[move.x_next] = row.get(move.x_next, 0) + 1
    seen = {z: {x: n for x, n in row.items() if n} for z, row in learner.counts.items()}
    assert {z: row for z, row in seen.items() if row} == counts


def test_a_learner_finds_the_optimum_of_a_small_late_world():
    late = DelayedMDP(random_mdp(states=2, horizon=4, successors=2, seed=1), RANDOM, 1)
    learner = pkd.OptimisticLearner(late.known(), 300, optimism=pkd.Greedy())
    learn(LateEnv(late), learner, late.known(), 300)
    value = pkd.evaluate(late.known(), late.law(), learner.plan)
    assert value == pytest.approx(pkd_delay.plan(late).value, rel=0.02)


def test_an_episode_in_the_taxi_ends_where_the_problem_ends():
    """A terminal state of the taxi can also be passed, so one END stands for all of them."""
    env = LateEnv(gym.make("Taxi-v4"), 1, horizon=20)
    plan = pkd_delay.plan(env.problem())
    model = env.problem().known()
    learner = pkd.OptimisticLearner(model, 1)
    observation, _ = env.reset(seed=4)
    total, terminated = 0.0, False
    while not terminated:
        observation, reward, terminated, _, _ = env.step(plan.action(*env.state_of(observation)))
        total += reward
    assert env.episode().states[-1] == 500
    assert total == env.episode().total
    learner.check(env.episode().augmented(model))


@pytest.mark.parametrize("late", [{}, {"observations": 1}, {"observations": RANDOM}])
@pytest.mark.parametrize("actions", [1, RANDOM, Lags({0: 0.5, 2: 0.5})])
@pytest.mark.parametrize("world", ["lake", "autoscaler"])
def test_a_learner_of_late_actions_counts_what_the_base_did(late, actions, world):
    if world == "lake":
        lake = gym.make("FrozenLake-v1", desc=["SFF", "HFG"])
        env = LateEnv(lake, actions=actions, max_delay=2, first_action=1, horizon=6, **late)
    else:
        base = ProblemEnv(autoscaler(horizon=6))
        env = LateEnv(base, actions=actions, max_delay=2, first_action=0, **late)
    learner = pkd.OptimisticLearner(env.problem().model(), 10, optimism=pkd.Greedy())
    counts = {}
    for k in range(1, 11):
        drive(env, learner, k)
        for z, x in find_moves(env):
            row = counts.setdefault(z, {})
            row[x] = row.get(x, 0) + 1
    found = {z: {x: n for x, n in row.items() if n} for z, row in learner.counts.items()}
    assert {z: row for z, row in found.items() if row} == counts


def find_moves(env):
    """The (z, x') of an episode by what the environment executed."""
    base = env.problem().model()
    while hasattr(base, "base"):
        base = base.base
    moves = env._moves if env._base else env._make_moves([s[0] for s in env.episode().states])
    opening = env._base.opening if env._base else ()
    flat = [move for part in (opening, *moves) for move in part]
    return list_visited(base, pkd.Episode(flat))


def test_a_learner_without_a_table_learns_with_late_actions():
    env = LateEnv(gym.make("FrozenLake-v1", is_slippery=False), 1, 1, first_action=0, horizon=10)
    table = pkd.UnknownTable(16, 4, 10)
    model = pkd_delay.KnownDelay(LateCommands(table, 1, first_action=0), {1: 1.0}, 1)
    learner = pkd.OptimisticLearner(model, 40, optimism=pkd.Greedy())
    paid = drive(env, learner, 40)
    assert learner.observed == 40
    assert len(paid) == 40
    assert sum(sum(row.values()) for row in learner.counts.values()) > 40


@pytest.mark.parametrize(
    ("late", "wrap", "expected"),
    [
        ({"observations": 1}, lambda base: base, "KnownDelay or UnknownDelay of a base"),
        ({"actions": 1, "first_action": 0}, lambda base: base, "LateActions of a base"),
        (
            {"observations": 1, "actions": 1, "first_action": 0},
            lambda base: pkd_delay.KnownDelay(base, {1: 1.0}, 1),
            "UnknownDelay of LateActions of a base",
        ),
    ],
)
def test_a_model_that_is_not_late_as_the_environment_is_refused(late, wrap, expected):
    env = LateEnv(gym.make("FrozenLake-v1"), horizon=5, **late)
    table = pkd.TabularMDP.from_gymnasium(gym.make("FrozenLake-v1"), 5)
    learner = pkd.OptimisticLearner(wrap(table.model()), 1)
    with pytest.raises(pkd.ModelError, match=expected):
        drive(env, learner, 1)
    with pytest.raises(pkd.ModelError, match=expected):
        play(env, learner, 1)


def test_an_episode_that_is_not_over_is_not_told():
    env = LateEnv(gym.make("FrozenLake-v1"), 1)
    env.reset(seed=0)
    with pytest.raises(pkd.ModelError, match="over"):
        env.episode()


@pytest.mark.parametrize(
    ("late", "why"),
    [
        ({"actions": lambda h, o, a: {0: 1.0}, "max_delay": 1, "first_action": 0}, "actions are"),
        ({"observations": lambda h, o, a: {0: 1.0}, "max_delay": 1}, "one law"),
        ({"observations": 1, "start": "late"}, "first observation"),
    ],
)
def test_an_environment_without_an_exact_problem_says_why(late, why):
    with pytest.raises(pkd.ModelError, match=why):
        LateEnv(gym.make("FrozenLake-v1"), **late).problem()


@pytest.fixture
def ppo():
    """Stable-Baselines3's PPO on one thread."""
    sb3 = pytest.importorskip("stable_baselines3")
    sb3.common.utils.th.set_num_threads(1)
    return functools.partial(sb3.PPO, seed=0, device="cpu")


def late_cart_pole():
    return LateEnv(gym.make("CartPole-v1"), RANDOM, max_delay=2)


@pytest.mark.parametrize("policy", ["MlpPolicy", "MultiInputPolicy"])
def test_stable_baselines_trains_in_a_late_cart_pole(ppo, policy):
    env = late_cart_pole()
    world = FlatLateEnv(env) if policy == "MlpPolicy" else env
    agent = ppo(policy, world, n_steps=64, n_epochs=1)
    agent.learn(128)
    assert agent.predict(agent.get_env().reset())[0].shape == (1,)


@pytest.mark.slow
def test_stable_baselines_learns_to_balance_a_late_pole(ppo):
    """Random play holds it for about 20 steps."""
    env = FlatLateEnv(late_cart_pole())
    agent = ppo("MlpPolicy", env, n_steps=1024)
    agent.learn(10_000)
    steps = 0
    for k in range(10):
        seen, over = env.reset(seed=k)[0], False
        while not over:
            seen, reward, terminated, truncated, _ = env.step(agent.predict(seen)[0])
            steps, over = steps + reward, terminated or truncated
    assert steps / 10 > 100


def test_stable_baselines_checks_a_late_mountain_car():
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    base = gym.make("MountainCarContinuous-v0")
    late = LateEnv(base, RANDOM, 1, max_delay=2, first_action=base.action_space.sample())
    checker.check_env(FlatLateEnv(late), skip_render_check=True)
