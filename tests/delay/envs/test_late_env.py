"""LateEnv keeps Gymnasium's contract and shows exactly what the observation promises."""

import threading
import warnings

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import DelayedMDP, FlatLateEnv, Lags, LateEnv
from pkd_delay.models.tables import grid

pytest.importorskip("gymnasium")
import gymnasium as gym
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

SIX_STEPS = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.array([[0.25, 0.5], [0.75, 1.0]]), 6)
RANDOM = {-1: 0.3, 0: 0.4, 1: 0.3}


class Clock(gym.Env):
    """Shows how many steps it has made, pays that number, and ends after `length` steps."""

    observation_space = spaces.Discrete(100)
    action_space = spaces.Discrete(5)

    def __init__(self, length=6, truncates=False):
        self.length, self.truncates = length, truncates

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.executed = 0, []
        return np.int64(0), {"time": 0}

    def step(self, action):
        self.time += 1
        self.executed.append(int(action))
        over = self.time == self.length
        end = (over and not self.truncates, over and self.truncates)
        return np.int64(self.time), float(self.time), *end, {"time": self.time}


def env(max_delay=3):
    return LateEnv(DelayedMDP(SIX_STEPS, {-1: 0.3, 0: 0.3, 2: 0.4}, max_delay))


def play(world, actions, **reset):
    """The observations, and for each step (reward, terminated, truncated, info)."""
    seen, steps = [world.reset(seed=1, **reset)[0]], []
    for action in actions:
        observation, *step = world.step(action)
        seen.append(observation)
        steps.append(tuple(step))
        if step[1] or step[2]:
            break
    return seen, steps


def step_twice(world):
    play(world, [0])
    world.step(0)


def check(world):
    """Gymnasium's checker; it warns of every wrapper, and of bounds that the base has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is different from the unwrapped version")
        warnings.filterwarnings("ignore", message=".*observation space m..imum value is.*infinity")
        warnings.filterwarnings("ignore", message=".*symmetric and normalized")
        check_env(world, skip_render_check=True)


@pytest.mark.parametrize("max_delay", [0, 1, 3, 20])
def test_gymnasiums_own_checker_passes_for_a_problem(max_delay):
    check(LateEnv(DelayedMDP(grid(horizon=5), {-1: 0.3, 0: 0.3, 2: 0.4}, max_delay)))


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCarContinuous-v0", "Taxi-v4"])
@pytest.mark.parametrize("flat", [False, True])
def test_gymnasiums_own_checker_passes_for_any_environment(name, flat):
    base = gym.make(name, disable_env_checker=True)
    first = base.action_space.sample()
    late = LateEnv(base, RANDOM, Lags({0: 0.5, 2: 0.5}), 2, first_action=first)
    check(FlatLateEnv(late) if flat else late)


class Odd(gym.Env):
    """Dict and Tuple spaces whose bounds leave out zero; it reuses one array."""

    observation_space = spaces.Dict(
        {"a": spaces.Box(1.0, 2.0, (2,)), "b": spaces.Tuple((spaces.Discrete(3, start=4),))}
    )
    action_space = spaces.Dict({"c": spaces.Discrete(2), "d": spaces.Box(1.0, 2.0, (1,))})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.array = np.full(2, 1.0, np.float32)
        return {"a": self.array, "b": (np.int64(4),)}, {}

    def step(self, action):
        self.array += 0.125
        return {"a": self.array, "b": (np.int64(5),)}, 0.0, bool(self.array[0] >= 2), False, {}


@pytest.mark.parametrize("flat", [False, True])
def test_nested_spaces_are_checked_too(flat):
    late = LateEnv(Odd(), RANDOM, max_delay=2, start="late")
    check(FlatLateEnv(late) if flat else late)


def test_an_observation_is_kept_although_the_environment_writes_over_it():
    seen, _ = play(LateEnv(Odd(), 2), [Odd.action_space.sample() for _ in range(4)])
    assert [float(o["observation"]["a"][0]) for o in seen] == [1, 1, 1, 1.125, 1.25]


def test_an_agent_may_change_what_it_was_shown():
    world = LateEnv(Odd(), 2)
    first, _ = world.reset(seed=0)
    first["observation"]["a"][:] = 2.0
    again = world.step(Odd.action_space.sample())[0]
    assert again["observation"]["a"].tolist() == [1.0, 1.0]


def test_the_observations_of_table_one():
    """A constant delay of 2: h; t; queue; counter of facts.md."""
    seen, _ = play(LateEnv(Clock(), 2, horizon=6), [1, 2, 3, 4, 1, 2])
    assert [int(o["observation"]) + 1 for o in seen[:6]] == [1, 1, 1, 2, 3, 4]
    queues = [tuple(o["pending"][: o["age"]].tolist()) for o in seen[:6]]
    assert queues == [(), (1,), (1, 2), (2, 3), (3, 4), (4, 1)]
    assert [int(o["waited"]) for o in seen[:6]] == [0, 1, 2, 0, 0, 0]


def test_the_observations_of_table_two():
    """Delta = 1, 2, -1, 1: nothing new at steps 2, 4 and 5, two states at once at step 6, the rest
    at the end.
    """
    world = env()
    seen, steps = play(world, (0, 1, 1, 0, 1, 0), options={"deltas": (1, 2, -1, 1, 0, 0)})
    info = steps[-1][3]["late"]
    assert steps[-1][1]
    assert [int(o["step"][0]) for o in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert [int(o["age"]) for o in seen] == [0, 1, 1, 2, 3, 2, 0]
    assert [int(o["waited"]) for o in seen] == [0, 1, 0, 1, 2, 0, 0]
    assert [int(o["arrived"]) for o in seen] == [1, 0, 1, 0, 0, 2, 3]
    assert seen[4]["pending"].tolist() == [1, 1, 0]
    assert seen[5]["pending"].tolist() == [0, 1, 0]
    news = [int(s) for o in seen for s in o["news"][: o["arrived"]]]
    assert news == list(world.episode().states)
    assert info["deltas"] == (1, 2, -1, 1, 0, 0)
    assert info["delays"] == (1, 3, 2, 3, 3, 3)
    assert "5    s2     (a2, a3, a4)  2        -      -" in str(world.episode())


def test_nothing_yet_is_said():
    world = LateEnv(DelayedMDP.constant(SIX_STEPS, 3))
    world.reset(seed=0)
    for _ in range(3):
        observation, reward, _, _, _ = world.step(0)
        assert observation["arrived"] == 0
        assert reward == 0.0
    assert world.step(0)[0]["arrived"] == 1


def test_all_rewards_are_paid_by_the_end():
    world = env()
    world.reset(seed=7)
    total, over = 0.0, False
    while not over:
        _, reward, over, truncated, _ = world.step(1)
        total += reward
        assert not truncated
    states = world.episode().states
    assert total == pytest.approx(sum(SIX_STEPS.rewards[s, 1] for s in states[:6]))


def test_a_seed_repeats_the_episode():
    def run(seed):
        world = env()
        world.reset(seed=seed)
        for _ in range(6):
            info = world.step(0)[4]
        return info, world.episode().states

    assert run(5) == run(5)
    assert any(run(5) != run(seed) for seed in range(6, 12))


def test_the_base_draws_as_without_the_wrapper():
    def run(world):
        world.reset(seed=3)
        return [world.step(a)[4]["prob"] for a in (0, 1, 1)]

    plain, late = gym.make("FrozenLake-v1"), LateEnv(gym.make("FrozenLake-v1"), 0)
    assert run(plain) == run(late)


def test_delays_do_not_depend_on_the_dice_of_the_base():
    """With one stream for both, the first Delta would tell the first toss."""

    class Coin(Clock):
        def step(self, action):
            return np.int64(self.np_random.random() < 0.5), 0.0, True, False, {}

    world, pairs = LateEnv(Coin(), {0: 0.5, 1: 0.5}, max_delay=1, horizon=1), []
    for seed in range(200):
        world.reset(seed=seed)
        observation, *_, info = world.step(0)
        pairs.append((observation["observation"], info["late"]["deltas"][0]))
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("base", "late", "rewards", "end"),
    [
        # The clock stops after 3 steps; with a delay of 2 the agent does two more, which do
        # nothing. Rewards 1, 2, 3 come with the states that they led to.
        (Clock(3), {}, [0, 0, 1, 2, 3], (True, False)),
        (Clock(3), {"rewards": "at once"}, [1, 2, 3, 0, 0], (True, False)),
        # The horizon shows an end that is still on its way.
        (Clock(3), {"horizon": 4}, [0, 0, 1, 5], (True, False)),
        # A truncated episode shows everything at once, and so does one that is cut off.
        (Clock(3, truncates=True), {}, [0, 0, 6], (False, True)),
        (Clock(50), {"horizon": 4}, [0, 0, 1, 9], (False, True)),
    ],
)
def test_an_episode_is_over_for_the_agent_when_its_end_is_shown(base, late, rewards, end):
    seen, steps = play(LateEnv(base, 2, **late), [0] * 9)
    assert [step[0] for step in steps] == rewards
    assert [step[1:3] for step in steps] == [(False, False)] * (len(steps) - 1) + [end]
    assert base.executed == [0] * min(base.length, len(steps))
    assert seen[-1]["age"] == 0
    if base.truncates:
        assert seen[-1]["news"].tolist() == [1, 2, 3]


def test_info_comes_with_its_observation():
    _, steps = play(LateEnv(Clock(3), 2), [0] * 9)
    assert [step[3].get("time") for step in steps] == [None, None, 1, 2, 3]
    assert all("late" not in step[3] for step in steps[:-1])


class Reuser(gym.Env):
    """Counts its steps in one array and one nested info, and writes into its actions."""

    observation_space = spaces.Box(0.0, 100.0, (1,))
    action_space = spaces.Box(0.0, 100.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.array, self.info = np.zeros(1, np.float32), {"time": 0, "all": {"time": [0]}}
        self.executed = []
        return self.array, self.info

    def step(self, action):
        self.array += 1.0
        self.info["time"] += 1
        self.info["all"]["time"][0] += 1
        self.executed.append(float(action[0]))
        action[:] = 99.0
        return self.array, 0.0, False, False, self.info


def test_the_present_does_not_leak_through_an_info_that_is_written_over():
    world = LateEnv(Reuser(), 2, horizon=5)
    told = [world.reset(seed=0)[1]]
    told += [world.step(np.zeros(1, np.float32))[4] for _ in range(5)]
    times = [[], [], 1, 2, 5]  # after each action; the end shows everything
    assert told[0] == {"time": 0, "all": {"time": [0]}}
    for info, time in zip(told[1:], times, strict=True):
        assert info.get("time", []) == time
        assert info.get("all", {}).get("time", []) == ([time] if time else [])


def test_an_info_that_an_agent_has_changed_is_not_shown_again_changed():
    world = LateEnv(Reuser(), 1, horizon=5)
    world.reset(seed=0)[1]["all"]["time"][0] = 50
    world.step(np.zeros(1, np.float32))
    assert world.step(np.zeros(1, np.float32))[4]["all"]["time"] == [1]


def test_an_environment_that_writes_into_its_actions_does_not_change_what_is_pending():
    world = LateEnv(Reuser(), 2, 1, first_action=np.full(1, 7.0, np.float32), horizon=5)
    world.reset(seed=0)
    for number in (1.0, 2.0):
        observation = world.step(np.full(1, number, np.float32))[0]
    assert observation["pending"].ravel().tolist() == [1.0, 2.0]
    assert world.env.executed == [7.0, 1.0]


def test_an_info_that_cannot_be_copied_is_refused():
    class Locked(Clock):
        def reset(self, *, seed=None, options=None):
            return np.int64(0), {"lock": threading.Lock()}

    with pytest.raises(pkd.ModelError, match=r"cannot be copied .*lock.* cannot be shown late"):
        LateEnv(Locked(), 1).reset()


def test_the_first_observation_can_be_late():
    """As in Gymnasium's DelayObservation, but what is not there is not called an observation."""
    seen, _ = play(LateEnv(Clock(), 2, start="late", horizon=6), [1, 2, 3])
    assert [int(o["seen"]) for o in seen] == [0, 0, 1, 1]
    assert [int(o["observation"]) for o in seen] == [0, 0, 0, 1]
    assert [int(o["age"]) for o in seen] == [0, 1, 2, 2]
    gymnasiums, _ = play(gym.wrappers.DelayObservation(Clock(), 2), [1, 2, 3])
    assert gymnasiums[2:] == [o["observation"] for o in seen[2:]]


def test_late_actions_are_executed_late():
    base = Clock()
    seen, _ = play(LateEnv(base, 0, 2, first_action=4), [1, 2, 3, 1, 2, 3])
    assert base.executed == [4, 4, 1, 2, 3, 1]
    assert [int(o["in_force"]) for o in seen] == [4, 4, 4, 1, 2, 3, 1]
    on_way = [o["on_way"][: o["sent"]].tolist() for o in seen[:4]]
    assert on_way == [[], [1], [1, 2], [2, 3]]


def test_the_newest_of_two_commands_that_come_together_is_executed():
    """D = 2, 1, 0, ...: the first two commands come at step 3, together with the third."""
    base = Clock()
    law = lambda h, observation, action: {2: 1.0} if h == 1 else {-1: 1.0}  # noqa: E731
    play(LateEnv(base, 0, law, 2, first_action=4), [1, 2, 3, 1, 2, 3])
    assert base.executed == [4, 4, 3, 1, 2, 3]
    overtaken = Clock()
    travel = [2, 0, 1, 1, 1, 1]

    class Given(Lags):
        def draw(self, rng, low=None, high=None):
            return travel.pop(0)

    play(LateEnv(overtaken, 0, Given({0: 0.5, 2: 0.5}), first_action=4), [1, 2, 3, 1, 2, 3])
    assert overtaken.executed == [4, 2, 2, 3, 1, 2]  # 1 was overtaken and is forgotten


def test_commands_are_shown_as_late_as_the_observation():
    seen, _ = play(LateEnv(Clock(), 1, 2, first_action=4), [1, 2, 3, 1, 2])
    assert [int(o["in_force"]) for o in seen] == [4, 4, 4, 4, 1, 2]
    assert seen[4]["on_way"].tolist() == [2, 3]
    assert seen[4]["pending"].tolist() == [1]


def test_random_first_commands_are_seen_before_they_are_executed():
    base = Clock()
    world = LateEnv(base, 0, 3, first_action="random")
    seen, _ = play(world, [1, 2, 3, 1, 2])
    coming = seen[0]["on_way"].tolist()
    assert base.executed == [*coming, 1, 2]
    first = {tuple(world.reset()[0]["on_way"].tolist()) for _ in range(20)}
    assert len(first) > 10


def test_the_law_can_vary_with_the_step():
    """Delays of 2 from step 3 on, none before."""
    late = LateEnv(Clock(), lambda h, o, a: {0: 1.0} if h < 3 else {2: 1.0}, max_delay=2, horizon=9)
    seen, _ = play(late, [0] * 8)
    assert [int(o["observation"]) for o in seen[:7]] == [0, 1, 2, 2, 2, 3, 4]


def test_a_law_can_depend_on_the_state_and_the_action():
    laws = np.zeros((2, 2, 4))
    laws[:, 0, 1] = laws[:, 1, 3] = 1.0  # action 0: Delta = 0; action 1: Delta = 2
    seen, _ = play(LateEnv(DelayedMDP(SIX_STEPS, laws, 2)), [0, 1, 0, 0])
    assert [int(o["age"]) for o in seen] == [0, 0, 1, 2, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LateEnv(Clock(), RANDOM), "max_delay is None"),
        (lambda: LateEnv(Clock(), 1, 2, rewards="never", start="soon", first_action=7), "3 find"),
        (lambda: LateEnv(Clock()), "nothing is late"),
        (lambda: LateEnv(DelayedMDP.constant(SIX_STEPS, 1), 2), "leave observations out"),
        (
            lambda: LateEnv(Clock(), 0, Lags({0: 0.5, 1: 0.5}), first_action="random"),
            "constant delay",
        ),
        (lambda: step_twice(LateEnv(Clock(1), 0)), "over"),
    ],
)
def test_wrong_arguments_and_steps_after_the_end_are_refused(make, message):
    with pytest.raises(pkd.ModelError, match=message):
        make()


def test_without_a_horizon_there_is_no_step_and_no_state():
    world = LateEnv(Clock(), 1)
    observation, _ = world.reset(seed=0)
    assert "step" not in observation
    with pytest.raises(pkd.ModelError, match="horizon"):
        world.state_of(observation)


def test_the_flat_vector_has_its_parts_in_order():
    world = FlatLateEnv(LateEnv(Clock(), 2, horizon=6, news=False))
    world.reset(seed=0)
    world.step(3)
    vector = world.step(1)[0]
    assert vector[:100].tolist() == [1.0] + [0.0] * 99  # still the first observation
    assert vector[100:103].tolist() == pytest.approx([1.0, 1.0, 3 / 7])
    assert vector[103:].tolist() == [1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_copy_in_a_vector_plays_as_it_does_alone(asynchronous):
    """Also beyond the ends of its episodes, at which the others go on."""
    late = {"observations": RANDOM, "max_delay": 3, "actions": 1, "first_action": 0}
    vector = pkd_delay.late_vector("CartPole-v1", 3, asynchronous=asynchronous, **late)
    actions = np.random.default_rng(0).integers(0, 2, (80, 3))
    try:
        vector.reset(seed=[5, 6, 7])
        steps = [vector.step(action)[:4] for action in actions]
    finally:
        vector.close()
    for k in range(3):
        alone, over, ends = LateEnv(gym.make("CartPole-v1"), **late), False, 0
        alone.reset(seed=5 + k)
        for action, (seen, *rest) in zip(actions[:, k], steps, strict=True):
            if over:  # the vector begins a new episode and takes no action
                expected = (alone.reset()[0], 0.0, False, False)
            else:
                expected = alone.step(int(action))[:4]
            over = expected[2] or expected[3]
            ends += over
            assert [one[k] for one in rest] == list(expected[1:])
            for name, part in expected[0].items():
                assert np.array_equal(seen[name][k], part), name
        assert ends


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_vector_of_late_environments_plays(asynchronous):
    vector = pkd_delay.late_vector(
        "CartPole-v1", 2, asynchronous=asynchronous, observations=RANDOM, max_delay=3
    )
    try:
        seen, _ = vector.reset(seed=5)
        assert seen["observation"].shape == (2, 4)
        for _ in range(60):
            seen, reward, *_ = vector.step(vector.action_space.sample())
            assert vector.observation_space.contains(seen)
        assert reward.shape == (2,)
    finally:
        vector.close()


class Sensors(gym.Env):
    """Both sensors show how many steps were made; each step pays that number."""

    observation_space = spaces.Dict(
        {"camera": spaces.Box(0, 100, (1,)), "imu": spaces.Discrete(100)}
    )
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.look(), {}

    def look(self):
        return {"camera": np.array([self.time], np.float32), "imu": np.int64(self.time)}

    def step(self, action):
        self.time += 1
        return self.look(), float(self.time), self.time == 6, False, {}


def test_every_sensor_has_its_own_delay():
    """The camera is 2 steps late and the other sensor 1: a step is complete when both are there."""
    world = LateEnv(Sensors(), {"camera": 2, "imu": 1})
    check(LateEnv(Sensors(), {"camera": 2, "imu": 1}))
    check(FlatLateEnv(LateEnv(Sensors(), {"camera": 2, "imu": 1})))
    seen, steps = play(world, [0] * 9)
    assert [int(o["observation"]["camera"][0]) for o in seen] == [0, 0, 0, 1, 2, 3, 4, 5, 6]
    assert [int(o["observation"]["imu"]) for o in seen] == [0, 0, 1, 2, 3, 4, 5, 6, 6]
    assert [int(o["ages"]["imu"]) for o in seen[:7]] == [0, 1, 1, 1, 1, 1, 1]
    assert [int(o["age"]) for o in seen[:7]] == [0, 1, 2, 2, 2, 2, 2]
    assert [step[0] for step in steps] == [0, 0, 1, 2, 3, 4, 5, 6]
    assert steps[-1][3]["late"]["delays"] == {"camera": (2,) * 6, "imu": (1,) * 6}


def test_one_step_of_lateness_for_all_sensors_is_the_delay_of_the_whole():
    whole = LateEnv(Sensors(), 2)
    parts = LateEnv(Sensors(), {"camera": 2, "imu": 2})
    for one, other in zip(*(play(world, [0, 1] * 5)[0] for world in (whole, parts)), strict=True):
        other.pop("ages")
        np.testing.assert_equal(one, other)


def test_rewards_have_a_law_of_their_own():
    """Paid 3 steps late, whatever is shown; the end pays the rest."""
    _, steps = play(LateEnv(Sensors(), 0, rewards=3), [0] * 9)
    assert [step[0] for step in steps] == [0, 0, 0, 1, 2, 3 + 4 + 5 + 6]
    _, steps = play(LateEnv(Sensors(), 2, rewards=Lags({0: 1.0})), [0] * 9)
    assert [step[0] for step in steps] == [1, 2, 3, 4, 5, 6, 0, 0]


def test_an_end_at_once_shows_and_pays_everything():
    seen, steps = play(LateEnv(Sensors(), 2, end="at once"), [0] * 9)
    assert [step[0] for step in steps] == [0, 0, 1, 2, 3, 4 + 5 + 6]
    assert int(seen[-1]["observation"]["imu"]) == 6


@pytest.mark.parametrize(
    ("late", "message"),
    [
        ({"observations": {"radar": 1}}, "no sensor is called 'radar'"),
        ({"observations": {"camera": {0: 0.5, 1: 0.5}}}, "max_delay is None"),
        ({"observations": 1, "max_delay": {"camera": 2}}, "max_delay names sensors"),
        ({"observations": {"camera": lambda h, o, a: {0: 1.0}}, "max_delay": 2}, "is a function"),
        ({"observations": 1, "rewards": "later"}, "rewards is 'later'"),
    ],
)
def test_wrong_laws_of_sensors_and_rewards_are_refused(late, message):
    with pytest.raises(pkd.ModelError, match=message):
        LateEnv(Sensors(), **late)


def test_an_action_that_does_nothing_is_the_first_one():
    late = LateEnv(gym.make("MountainCarContinuous-v0"), actions=2)
    late.reset(seed=0)
    assert late.reset(seed=0)[0]["in_force"].tolist() == [0.0]
    base = Clock()
    base.get_action_meanings = lambda: ["FIRE", "NOOP"]
    assert int(LateEnv(base, actions=1).reset(seed=0)[0]["in_force"]) == 1
    with pytest.raises(pkd.ModelError, match="no action that surely does nothing"):
        LateEnv(Clock(), actions=1)


def test_a_flat_vector_of_gymnasium_has_few_numbers():
    """One number for the step, not one for each of 502 steps."""
    late = LateEnv(gym.make("CartPole-v1"), RANDOM, max_delay=3)
    flat = gym.wrappers.FlattenObservation(late)
    assert flat.observation_space.shape[0] < 60
