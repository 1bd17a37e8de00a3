"""An unknown law of the delay: which class, which |Z|, which shares, from their definitions."""

import itertools

import numpy as np
import pytest

import pkd
from pkd import Queue
from pkd.adapters import find_player
from pkd.episode import list_visited
from pkd_delay import InterArrival, Lags, UnknownDelay
from pkd_delay.augmented import SHOWN, TRAN
from pkd_delay.hindsight import DelayLaw, HindsightPlayer
from pkd_delay.models.tables import random_mdp
from pkd_delay.unknown import Arrival, Move, share_one_law
from tests.delay.reference import occurring_features

MDP = random_mdp(states=3, actions=2, horizon=5, successors=3, seed=1)


class Declared(pkd.UnknownTable):
    """A table that declares |Z| = 100."""

    n_features = 100


def unknown(base=None, **options):
    return UnknownDelay(MDP.model() if base is None else base, 1, 2, **options)


def test_a_declared_number_of_features_takes_the_place_of_the_moves():
    base = Declared(n_states=2, n_actions=2, horizon=4)
    model = unknown(base)
    arrivals = {z for z in occurring_features(model) if isinstance(z, Arrival)}
    assert len(arrivals) == model.n_arrivals > 0
    assert model.n_features == 100 + len(arrivals)
    assert unknown(base, n_features=7).n_features == 7
    assert unknown().n_features is None


@pytest.mark.parametrize("n", range(4))
def test_a_share_is_that_of_the_queue_and_of_the_base(n):
    """ell(n, b): half of the weight 1 / (n + 1)^2 on all queues of n actions, H / (H + 1) of it.

    The base has two y, each with half of the weight.
    """
    H, A = 4, 2
    season = pkd.TabularMDP(np.full((2, 3, A, 3), 1 / 3), np.zeros((2, 3, A)), H)
    model = unknown(season.model())

    def of_queue(length):
        return H / (H + 1) / (2 * (length + 1) ** 2 * A**length)

    y = model.y_type(0, Queue([0] * n) if n else None)
    move, arrival = Move((0, 0, 0), 0), Arrival(0, (0, 0), 0, False, 0, None)
    assert model.share(move, y) == pytest.approx(of_queue(n + 1) / 2)
    assert model.share(arrival, y) == pytest.approx(of_queue(n) / 2)


class Roads(pkd.UnknownTable):
    """A table whose states have names."""

    def x_label(self, x):
        return f"road {x}"


def test_labels_say_the_state_the_counter_and_the_queue():
    model = unknown(Roads(n_states=2, n_actions=2, horizon=4))
    assert model.x_label((1, 0)) == "road 1, waited 0"
    assert model.x_label((0, TRAN)) == "road 0, next state arrives"
    assert model.x_label((1, SHOWN)) == "road 1, state shown"
    assert model.y_label(model.y_type(None, Queue([1, 0]))) == "[1, 0]"
    assert model.y_label(model.y_type(None, None)) == "over"


def test_the_label_of_an_arrival_says_all_that_its_law_depends_on():
    model = unknown(Roads(n_states=2, n_actions=2, horizon=4))
    assert model.feature_label(Move((1, 0))) == model.base.feature_label((1, 0))
    waiting, at_once = Arrival(1, 0, 1, False), Arrival(1, 0, 0, True)
    assert model.feature_label(waiting) == "arrival after 1 from road 1 given 0"
    assert model.feature_label(at_once) == "arrival after 0 from road 1 given 0, empty queue"
    told = Arrival(1, 0, 1, False, before=2)
    expected = "arrival after 1 from road 1, which was 2 late, given 0"
    assert model.feature_label(told) == expected


class Ladder(pkd.PartiallyKnownMDP):
    """y counts the steps, so that no y comes twice; x is a coin."""

    def __init__(self, horizon):
        self.horizon = horizon

    def start(self):
        return 0, 0

    def actions(self, x, y):
        return ["a", "b"]

    def step(self, x, y, a):
        return [(1.0, y + 1, "coin")]

    def outcomes(self, z):
        return 0, 1

    def reward(self, x, y, a):
        return 0.0


@pytest.mark.parametrize("horizon", [1, 2, 3, 4])
@pytest.mark.parametrize("form", [InterArrival, Lags])
def test_the_arrivals_of_a_law_that_many_y_share_are_those_that_occur(horizon, form):
    for longest, largest in itertools.product([1, 2], [1, 2, 3]):
        model = UnknownDelay(
            Ladder(horizon), longest, largest, form=form, delay_feature=share_one_law
        )
        listed = {z for arrivals in model._arrivals.values() for z in arrivals}
        assert listed == {z for z in occurring_features(model) if isinstance(z, Arrival)}


def test_episodes_are_compiled_if_the_base_leaves_its_samples_to_the_core():
    class Teaching(Ladder):
        def samples(self, episode):
            return list_visited(self, episode)

    def hindsight(base, law_of):
        model = unknown(base)
        compiled = pkd.compile(model, large=False)
        law = DelayLaw({"coin": {0: 0.5, 1: 0.5}}, {0: 0.5, 1: 0.5}, model)
        return find_player(model, compiled, compiled.truth(law), law_of(law))

    assert isinstance(hindsight(Ladder(3), lambda law: law), HindsightPlayer)
    assert hindsight(Teaching(3), lambda law: law) is None
    assert hindsight(Ladder(3), lambda law: law.__call__) is None  # raw numbers are not shown
