"""What can be said on the command line can be said in Python, in the same words."""

from __future__ import annotations

import gymnasium
import pytest

import pkd
import pkd_delay
from pkd_delay.models.tables import two_state_chain

LATE = pkd_delay.DelayedMDP(two_state_chain(), {0: 0.5, 1: 0.5}, max_delay=2)


class Shop(pkd.NoiseMDP):
    """Orders 0 or 1 a day; a unit is sold for 2."""

    horizon = 3

    def initial(self):
        return 1

    def choices(self, stock):
        return (0, 1)

    def noise(self, stock, order):
        return "demand"

    def outcomes(self, z):
        return (0, 1)

    def land(self, stock, order, demand):
        sold = min(demand, stock + order)
        return 2.0 * sold - 0.5 * order, min(stock + order - sold, 2)


def last(h, state, queue, waited):
    return (state + len(queue) + waited) % 2


def test_a_function_of_the_queue_is_evaluated_simulated_and_certified():
    """The reference asks the same function through `KnownDelay.read`."""
    model = LATE.known()

    def by_hand(h, x, y):
        state, _, queue, waited = model.read(x, y)
        return last(h, state, tuple(queue), waited)

    assert pkd.evaluate(LATE, last) == pkd.evaluate(LATE, by_hand)
    told, expected = (pkd.simulate(LATE, act, 5, seed=3) for act in (last, by_hand))
    assert [e.transitions for e in told] == [e.transitions for e in expected]
    counts = {(s, a): {0: 50, 1: 50} for s in (0, 1) for a in (0, 1)}
    found, wanted = (pkd.certify(model, counts, policy=act) for act in (last, by_hand))
    assert (found.low, found.high) == (wanted.low, wanted.high)


def test_a_function_of_other_parts_says_which_are_expected():
    with pytest.raises(pkd.ModelError, match=r"expected .*\(h, state, queue, waited\)"):
        pkd.evaluate(LATE, lambda h, state: 0)


def test_laws_per_pair_may_be_given_by_names():
    table = pkd.TabularMDP(
        [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]], [[1, 0], [0, 1]], horizon=4,
        state_names=["up", "down"], action_names=["go", "stay"],
    )  # fmt: skip
    laws = {(s, a): {0: 0.5, 1 + s: 0.5 - a / 4, -1: a / 4} for s in (0, 1) for a in (0, 1)}
    names = {(table.state_names[s], table.action_names[a]): law for (s, a), law in laws.items()}
    by_number, by_name = (
        pkd_delay.DelayedMDP(table, given, max_delay=2) for given in (laws, names)
    )
    assert (by_number.inter_arrival == by_name.inter_arrival).all()
    with pytest.raises(pkd.ModelError, match=r"a law for \('left', 0\)"):
        pkd_delay.DelayedMDP(table, {**laws, ("left", "go"): {0: 1.0}}, max_delay=2)


def test_a_state_of_a_noise_model_needs_no_x():
    late = pkd_delay.Delayed.constant((Shop(), {"demand": {0: 0.3, 1: 0.7}}), 1)
    plan = pkd_delay.plan(late)
    assert plan.values(1, 1) == plan.values(1, (None, 1))
    assert plan.action(1, 1) == plan.action(1, (None, 1))


def test_an_environment_without_a_table_is_pointed_to_gymnasium_make():
    with pytest.raises(pkd.ModelError, match=r"gymnasium\.make\('CartPole-v1'\)"):
        pkd_delay.LateEnv("CartPole-v1", 2)
    assert pkd_delay.LateEnv(gymnasium.make("CartPole-v1"), 2).horizon == 500
