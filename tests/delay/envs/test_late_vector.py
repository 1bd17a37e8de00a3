"""`LateVectorEnv` shows, pays and tells what as many single late environments do, to the bit."""

import numpy as np
import pytest

import pkd
from pkd_delay import DelayChain, FlatLateEnv, Lags, LateEnv, LateVectorEnv

gym = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402

RANDOM = {-1: 0.3, 0: 0.4, 1: 0.3}
CHAIN = DelayChain([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.0, 0.6, 0.4]])


class Robot(gym.Env):
    """Two sensors, a nested action, an info, and an end that comes at random."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(-100, 100, (2, 2), np.float64),
            "wheels": spaces.Tuple((spaces.Discrete(50, start=-1), spaces.MultiBinary(3))),
        }
    )
    action_space = spaces.Dict({"arm": spaces.Box(-1, 1, (2,)), "lamp": spaces.MultiBinary(1)})

    def __init__(self, truncates=False):
        self.truncates = truncates

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.sum = 0, 0.0
        return self.look(), {"time": 0}

    def look(self):
        bits = np.array([self.time >> k & 1 for k in range(3)], np.int8)
        wheels = (np.int64(self.time - 1), bits)
        return {"camera": np.full((2, 2), self.sum), "wheels": wheels}

    def step(self, action):
        self.time += 1
        self.sum += float(action["arm"].sum()) + float(action["lamp"][0])
        over = self.np_random.random() < 0.2
        ends = (over and not self.truncates, over and self.truncates)
        return self.look(), 0.1 * self.time, *ends, {"time": self.time}


def make_robot():
    return Robot()


def make_truncated():
    return Robot(truncates=True)


def same(one, other):
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(one, other)
        assert np.asarray(one).dtype == np.asarray(other).dtype


def compare(env, n, steps, *, flat=False, **late):
    def single():
        made = LateEnv(gym.make(env) if isinstance(env, str) else env(), **late)
        return FlatLateEnv(made) if flat else made

    singles = gym.vector.SyncVectorEnv([single] * n)
    batched = LateVectorEnv(env, n, flat=flat, **late)
    assert batched.single_observation_space == singles.single_observation_space
    assert batched.observation_space == singles.observation_space
    singles.action_space.seed(0)
    ends = 0
    for seed in (5, None, list(range(n))):  # the second reset goes on with the same streams
        (seen, told), (seen2, told2) = singles.reset(seed=seed), batched.reset(seed=seed)
        same(seen, seen2)
        same(told, told2)
        for _ in range(steps):
            actions = singles.action_space.sample()
            *known, told = singles.step(actions)
            *found, told2 = batched.step(actions)
            for a, b in zip(known, found, strict=True):
                same(a, b)
            same(told, told2)
            assert batched.observation_space.contains(found[0])
            ends += int(known[2].sum() + known[3].sum())
    assert ends > 0


CASES = {
    "constant": {"observations": 2},
    "none": {"observations": 0},
    "random": {"observations": RANDOM, "max_delay": 3},
    "lags": {"observations": Lags({0: 0.5, 2: 0.3, 3: 0.2})},
    "chain": {"observations": CHAIN},
    "at once": {"observations": 2, "rewards": "at once", "news": False},
    "own law of rewards": {"observations": 1, "rewards": Lags({0: 0.5, 4: 0.5})},
    "ends at once": {"observations": RANDOM, "max_delay": 3, "end": "at once"},
    "late start": {"observations": Lags({0: 0.2, 2: 0.8}), "start": "late"},
    "a function": {"observations": lambda h, o, a: {h % 2: 1.0}, "max_delay": 2},
    "horizon": {"observations": RANDOM, "max_delay": 3, "horizon": 7},
}
ROBOTS = {
    "late commands": {"observations": 0, "actions": 2},
    "both": {"observations": RANDOM, "max_delay": 2, "actions": Lags({0: 0.4, 1: 0.3, 3: 0.3})},
    "late commands that wander": {"observations": 1, "actions": RANDOM, "max_delay": 2},
    "a command law of the step": {"actions": lambda h, o, a: {h % 3 - 1: 1.0}, "max_delay": 2},
    "random first commands": {"observations": 1, "actions": 2, "first_action": "random"},
    "sensors": {"observations": {"camera": 2, "wheels": {0: 0.8, 1: 0.2}}, "max_delay": 3},
    "late sensors": {
        "observations": {"camera": Lags({0: 0.5, 3: 0.5}), "wheels": RANDOM},
        "max_delay": {"wheels": 2}, "start": "late", "rewards": 3,
    },
}  # fmt: skip


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_cart_poles_are_as_single_ones(name, flat):
    compare("CartPole-v1", 5, 60, flat=flat, **CASES[name])


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("name", {**CASES, **ROBOTS})
def test_nested_spaces_infos_and_sensors_are_as_single_ones(name, flat):
    compare(make_robot, 4, 50, flat=flat, **{**CASES, **ROBOTS}[name])


@pytest.mark.parametrize("name", ["random", "own law of rewards", "late start"])
def test_truncated_copies_are_as_single_ones(name):
    compare(make_truncated, 4, 50, **CASES[name])


def test_a_thousand_cart_poles_are_as_a_thousand_single_ones():
    compare("CartPole-v1", 1024, 40, observations=RANDOM, max_delay=3)


def test_a_discrete_action_is_late_too():
    compare("FrozenLake-v1", 6, 60, observations=1, actions=3, first_action="random")
    compare("FrozenLake-v1", 6, 60, flat=True, observations=1, actions=3, first_action=0)


@pytest.mark.parametrize("flat", [False, True])
def test_copies_of_a_vector_environment_follow_it(flat):
    """With a constant delay the batched base shows what it showed two steps before."""
    base = gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    alone = gym.make_vec("CartPole-v1", 3, vectorization_mode="vector_entry_point")
    vector = LateVectorEnv(base, observations=2, end="at once", flat=flat)
    shown = [alone.reset(seed=4)[0]]
    seen, _ = vector.reset(seed=4)
    age, over = np.zeros(3, int), np.zeros(3, bool)
    rng = np.random.default_rng(0)
    for _ in range(80):
        actions = rng.integers(2, size=3)
        now, _, terminated, truncated, _ = alone.step(actions)
        shown.append(now)
        seen, _, ends, cuts, _ = vector.step(actions)
        age = np.where(over, 0, np.minimum(age + 1, 2))
        over = terminated | truncated
        np.testing.assert_array_equal(ends, terminated)
        np.testing.assert_array_equal(cuts, truncated)
        age = np.where(over, 0, age)
        known = np.stack([shown[-1 - age[i]][i] for i in range(3)])
        np.testing.assert_array_equal(seen[:, :4] if flat else seen["observation"], known)
        age = np.where(over, 0, age)
    assert vector.num_envs == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LateVectorEnv("CartPole-v1", 0, observations=1), "num_envs"),
        (lambda: LateVectorEnv("CartPoles-v1", 2, observations=1), "env is 'CartPoles-v1'"),
        (lambda: LateVectorEnv(gym.make_vec("CartPole-v1", 2), observations=1), "end="),
        (lambda: LateVectorEnv("CartPole-v1", 2, observations=1).step([0, 0]), "reset"),
        (lambda: ready().step([0, 2]), "expected 2 of"),
        (lambda: ready().reset(seed=[1]), "seed has 1 entries"),
        (lambda: ready().reset(options={"deltas": (1,)}), "deltas"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(pkd.ModelError, match=message):
        make()


def ready():
    vector = LateVectorEnv("CartPole-v1", 2, observations=1)
    vector.reset(seed=0)
    return vector
