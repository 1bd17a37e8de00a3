"""Delay as a transformer: any partially known MDP can be delayed, and only its own features stay
unknown.
"""

import numpy as np
import pytest
from hypothesis import given, settings

import pkd
from pkd_delay import Delayed, DelayedMDP, KnownDelay, UnknownDelay
from pkd_delay.hindsight import DelayLaw
from pkd_delay.unknown import Arrival, Move
from tests.delay.reference import best_in_base, occurring_features, solve
from tests.delay.strategies import bases


def close(value, expected):
    return value == pytest.approx(expected, rel=1e-10, abs=1e-10)


class Inventory(pkd.PartiallyKnownMDP):
    """Stock against an unknown demand.

    x: the demand just seen (None at decisions), y: stock, at most 3.

    Orders of 0, 1 or 2 are on offer; without `same_actions` those that the room allows.
    """

    horizon = 4

    def __init__(self, *, same_actions=True):
        self._same = same_actions

    def start(self):
        return (None, 1)

    def actions(self, x, y):
        if x is not None:
            return pkd.CHANCE
        return (0, 1, 2) if self._same else tuple(range(4 - y))

    def step(self, x, y, a):
        if x is None:
            return [(1.0, min(y + a, 3), "demand")]
        return [(1.0, max(y - x, 0), pkd.sure(None))]

    def outcomes(self, z):
        return range(3)

    def reward(self, x, y, a):
        return -0.3 * a if x is None else min(x, y) - 0.1 * y

    def final(self, x, y):
        return -0.2 * y


DEMAND = {"demand": {0: 0.2, 1: 0.5, 2: 0.3}}


@settings(max_examples=100, deadline=None)
@given(bases())
def test_a_delayed_base_is_planned_as_well_as_any_history_dependent_policy_could(case):
    base, law, delay_law, max_delay = case
    expected = best_in_base(base, law, lambda state, a: delay_law(*state, a), max_delay)
    known, unknown = KnownDelay(base, delay_law, max_delay), UnknownDelay(base, 2, max_delay)
    truth = DelayLaw(law, delay_law, known, unknown)
    for model in (known, unknown):
        assert close(solve(model, truth), expected)
        assert close(pkd.plan(model, truth).value, expected)


@settings(max_examples=50, deadline=None)
@given(bases())
def test_a_delayed_base_equals_its_delayed_table(case):
    base, law, _, max_delay = case
    delay = {-1: 0.2, 0: 0.3, 1: 0.5}
    table = pkd.flatten(base, law)
    delayed = DelayedMDP(table, delay, max_delay)
    assert close(
        pkd.plan(KnownDelay(base, delay, max_delay), law).value,
        pkd.plan(delayed.known(), delayed.law()).value,
    )


def test_a_delayed_inventory_still_learns_one_demand_law():
    base = Inventory()
    unknown = UnknownDelay(base, 1, 2, delay_feature=lambda x, y, a: None)
    delayed = Delayed(_Problem(base), {0: 0.5, 1: 0.5}, 2)
    run = pkd.learn(delayed.known(), delayed.law(), 20, optimism=pkd.MVP.practical())
    assert {z: sum(row.values()) for z, row in run.counts.items()} == {"demand": 20 * base.horizon}
    run = pkd.learn(
        unknown, DelayLaw(DEMAND, {0: 0.5, 1: 0.5}, unknown), 20, optimism=pkd.MVP.practical()
    )
    assert sum(run.counts[Move("demand")].values()) == 20 * base.horizon
    assert {z.given for z in run.counts if isinstance(z, Arrival)} == {None}


def test_a_delay_of_a_delay_is_the_sum_of_the_two():
    """Constant delay 1 on top of constant delay 1 is constant delay 2, from the moment on when both
    queues are full.
    """
    chain = pkd.TabularMDP([[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2], np.eye(2), 6)
    once = KnownDelay(chain.model(), {1: 1.0}, 1)
    twice = KnownDelay(once, {1: 1.0}, 1)
    assert close(solve(twice, chain.law()), sum((1 + 0.8 ** min(t, 2)) / 2 for t in range(6)))


@pytest.mark.parametrize("inner", ["known", "unknown"])
@pytest.mark.parametrize("outer", ["known", "unknown"])
def test_one_law_answers_for_a_delay_of_a_delay_whoever_knows_what(inner, outer):
    """The optimum is that of the process; who must learn which law does not change it."""
    chain = pkd.TabularMDP([[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2], np.eye(2), 4)
    once = Delayed(chain, {0: 0.5, 1: 0.5}, 1, inner)
    twice = Delayed(once, {0: 0.3, 1: 0.7}, 1, outer)
    law = twice.law()
    pkd.check_model(twice.model(), law)
    truth = {0: 0.5, 1: 0.5}
    expected = solve(
        KnownDelay(KnownDelay(chain.model(), truth, 1), {0: 0.3, 1: 0.7}, 1), chain.law()
    )
    for model in (twice.known(), twice.unknown()):
        assert close(solve(model, law), expected)
        run = pkd.learn(model, law, 3, optimism=pkd.MVP.practical())
        assert close(run.optimal_value, expected)


class TestHowManyFeatures:
    """|Z| in the logarithms counts the features that can occur, of the base and of the delay."""

    @pytest.mark.parametrize("same_actions", [True, False])
    def test_an_unknown_law_on_any_base_counts_its_arrivals(self, same_actions):
        base = Inventory(same_actions=same_actions)
        model = UnknownDelay(base, 2, 2, instead=lambda x, y, a: min(a, 3 - y))
        features = occurring_features(model)
        assert sum(isinstance(z, Arrival) for z in features) > 2
        assert pkd.compile(model).n_features == len(features)

    def test_a_base_that_declares_its_features_gets_the_arrivals_on_top(self):
        base = Inventory()
        base.n_features = 50
        arrivals = [z for z in occurring_features(UnknownDelay(Inventory(), 2, 2)) if z[0] is None]
        assert UnknownDelay(base, 2, 2).n_features >= 50 + len(arrivals) > 51
        assert KnownDelay(base, {0: 0.5, 2: 0.5}, 2).n_features == 50

    def test_a_known_law_adds_no_feature(self):
        assert pkd.compile(KnownDelay(Inventory(), {0: 0.5, 2: 0.5}, 2)).n_features == 1

    @pytest.mark.parametrize(("longest", "factor"), [(0, 1), (1, 1), (3, 3)])
    def test_a_table_keeps_the_number_of_the_paper(self, longest, factor):
        mdp = pkd.TabularMDP(np.full((2, 3, 2), 0.5), np.zeros((2, 3)), 4)
        delayed = DelayedMDP(mdp, {longest: 1.0}, 2)
        assert delayed.known().n_features == delayed.unknown().n_features == factor * 2 * 3


class _Problem:
    def __init__(self, base):
        self._base = base

    def model(self):
        return self._base

    def law(self):
        return DEMAND


class TestActionSets:
    """The agent chooses before it sees the state, so what it may choose must not depend on it."""

    def test_differing_action_sets_are_refused_with_both_states_named(self):
        with pytest.raises(pkd.ModelError) as error:
            KnownDelay(Inventory(same_actions=False), {0: 1.0}, 1)
        assert str(error.value) == (
            "Inventory.actions(x=None, y=0) is [0, 1, 2, 3] but actions(x=None, y=1) is [0, 1, 2]; "
            "a delayed agent chooses before it sees the state, so all decision states must offer "
            "the same actions, or `instead=(x, y, a) -> action` must say what is done when a "
            "is not on offer"
        )

    def test_with_a_substitute_all_actions_are_on_offer(self):
        model = KnownDelay(
            Inventory(same_actions=False), {0: 1.0}, 1, instead=lambda x, y, a: min(a, 3 - y)
        )
        assert sorted(model.actions(*model.start())) == [0, 1, 2, 3]

    def test_a_substitute_is_what_the_base_does_and_pays(self):
        """An order above the room is cut to it: the capped order is worth what the same-actions
        inventory pays for it.
        """
        cut = KnownDelay(
            Inventory(same_actions=False), {1: 1.0}, 2, instead=lambda x, y, a: min(a, 3 - y)
        )
        law = DelayLaw(DEMAND, {1: 1.0}, cut)
        whole = best_in_base(_CutInventory(), DEMAND, lambda state, a: (0.0, 0.0, 1.0), 2)
        assert close(solve(cut, law), whole)

    def test_a_substitute_that_is_not_on_offer_either_is_refused(self):
        with pytest.raises(
            pkd.ModelError, match=r"instead\(x=None, y=2, a=2\) is 9; expected one of \[0, 1\]"
        ):
            KnownDelay(Inventory(same_actions=False), {0: 1.0}, 1, instead=lambda x, y, a: 9)


class _CutInventory(Inventory):
    """The same inventory with orders 0..3 everywhere, cut to the room by the base itself."""

    def actions(self, x, y):
        return (0, 1, 2, 3) if x is None else pkd.CHANCE

    def reward(self, x, y, a):
        return super().reward(x, y, None if a is None else min(a, 3 - y))


def test_a_delay_that_depends_on_more_than_its_feature_is_refused():
    base = Inventory()
    model = UnknownDelay(base, 1, 2, delay_feature=lambda x, y, a: None)
    with pytest.raises(pkd.ModelError, match="delay_feature must tell them apart"):
        DelayLaw(DEMAND, lambda x, y, a: {0: 1.0} if a == 0 else {1: 1.0}, model)


def test_a_delay_longer_than_the_model_allows_is_refused():
    with pytest.raises(pkd.ModelError, match="reaches 3; the model has longest=1"):
        DelayLaw(DEMAND, {3: 1.0}, UnknownDelay(Inventory(), 1, 2))


def test_queued_actions_after_a_hidden_end_do_nothing_and_pay_nothing():
    """The game ends after one action.

    The news of it comes late, and the return is the one reward and the final pay.
    """

    class OneShot(pkd.PartiallyKnownMDP):
        horizon = 5

        def start(self):
            return ("on", None)

        def actions(self, x, y):
            return ("play",) if x == "on" else pkd.END

        def step(self, x, y, a):
            return [(1.0, None, pkd.sure("off"))]

        def reward(self, x, y, a):
            return 1.0

        def final(self, x, y):
            return 10.0

    model = KnownDelay(OneShot(), {2: 1.0}, 3)
    plan = pkd.plan(model, {})
    (episode,) = pkd.simulate((model, {}), plan, 1)
    assert plan.value == pytest.approx(11.0)
    assert [move.action for move in episode] == ["play", "play", "play", None]
