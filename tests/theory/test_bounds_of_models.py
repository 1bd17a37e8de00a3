"""The regret bound of a model: what counts as a size, and that delayed models get what the theorems
promise.
"""

from math import e, inf, log, sqrt

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd import bounds
from pkd_delay.theory.bounds import DelaySizes


class Coins(pkd.PartiallyKnownMDP):
    """`tosses` unknown coins per action, each shown in a CHANCE state; heads pays `prize`."""

    horizon = 3

    def __init__(self, tosses=1, prize=1.0, law=None, **declared):
        self.tosses, self.prize, self.known_law = tosses, prize, law
        for name, value in declared.items():
            setattr(self, name, value)

    def start(self):
        return (0, 0)

    def actions(self, x, y):
        return pkd.CHANCE if y else ["toss"]

    def step(self, x, y, a):
        last = y == self.tosses
        return [(1.0, 0, pkd.sure(0))] if last else [(1.0, y + 1, self.known_law or "coin")]

    def outcomes(self, z):
        return [0, 1]

    def reward(self, x, y, a):
        return self.prize * x if y else 0.0


def two_states(horizon=3, rewards=((1.0, 0.0), (0.0, 1.0))):
    return pkd.TabularMDP(np.full((2, 2, 2), 0.5), rewards, horizon)


def test_the_bound_of_a_table_is_the_general_theorem_with_its_sizes():
    mdp = two_states()
    found = bounds.regret_bound(mdp.model(), 1e4)
    assert found == pytest.approx(bounds.general([2] * 4, horizon=3, n_y=1, episodes=1e4))


def test_a_compiled_model_has_the_bound_of_the_model():
    assert bounds.regret_bound(pkd.compile(Coins()), 1e4) == bounds.regret_bound(Coins(), 1e4)


def test_returns_of_another_width_scale_the_bound():
    wide, narrow = two_states(rewards=((-5.0, 2.0), (0.0, 1.0))), two_states()
    found, expected = (bounds.regret_bound(mdp.model(), 1e4) for mdp in (wide, narrow))
    assert found == pytest.approx(7 * expected)


def test_a_declared_range_of_returns_takes_the_place_of_the_possible_one():
    models = Coins(), Coins(return_range=(-2.0, 10.0))
    found, declared = (bounds.regret_bound(model, 1e4) for model in models)
    assert declared == pytest.approx(12 / 3 * found)


def test_one_coin_for_all_steps_is_one_feature():
    found = bounds.regret_bound(Coins(), 1e4)
    assert found == pytest.approx(bounds.general([2], horizon=3, n_y=2, episodes=1e4))


def test_features_of_known_law_cost_nothing():
    assert bounds.regret_bound(Coins(law=pkd.Known({0: 0.5, 1: 0.5})), 1e4) == 0.0


def test_more_unknown_moves_than_steps_count_in_the_growth_and_in_the_logarithm():
    once, twice = (bounds.regret_bound(Coins(tosses, prize=1 / tosses), 1e4) for tosses in (1, 2))
    six, three = (log(e * 1e4 * n) * log(32 * n * 2 * 1e4 / 0.05) for n in (6, 3))
    assert twice.lower_order / once.lower_order == pytest.approx(six / three)


def test_a_declared_number_of_features_enters_the_logarithms_only():
    found = bounds.regret_bound(Coins(n_features=50), 1e4)
    expected = bounds.general([2], horizon=3, n_y=2, episodes=1e4, n_features=50)
    assert found == pytest.approx(expected)


def test_the_smallest_share_that_can_follow_a_feature_decides_its_logarithm():
    class Shared(Coins):
        def branching(self, z):
            return 40  # so that the union bound over y is the smaller one

        def share(self, z, y):
            return {1: 0.25, 2: 0.01}[y]

    found = bounds.regret_bound(Shared(tosses=2), 1e4)
    assert found.leading == pytest.approx(
        56 * 6 * sqrt(1e4 * log(e * 1e4 * 6) * log(32 * 36 * 1e4 / (0.05 * 0.01)))
    )


def test_the_settlement_is_part_of_the_model():
    class Settled(Coins):
        def last_step(self, x, y, a):
            return [(1.0, "paid late", "last coin")] if y == 0 else [(1.0, 0, pkd.sure(0))]

    found = bounds.regret_bound(Settled(), 1e4)
    assert found == pytest.approx(bounds.general([2, 2], horizon=3, n_y=3, episodes=1e4))


def test_what_has_no_probability_is_no_size():
    class Ghostly(Coins):
        def step(self, x, y, a):
            return [*super().step(x, y, a), (0.0, "ghost", "ghost coin")]

    assert bounds.regret_bound(Ghostly(), 1e4) == bounds.regret_bound(Coins(), 1e4)


def test_an_unknown_reward_adds_its_logarithm_to_both_sums():
    class Tipped(Coins):
        def reward(self, x, y, a):
            return pkd.UnknownReward("tip", 0.0, 1.0) if y else 0.0

    mean = log(32 * 9 * 1e4 / 0.05)
    plain, tipped = (bounds.regret_bound(model, 1e4) for model in (Coins(), Tipped()))
    more = tipped.lower_order - plain.lower_order
    assert more == pytest.approx(2640 * 3 * log(e * 1e4 * 3) * mean)
    scale = (56 * 3) ** 2 * 1e4 * log(e * 1e4 * 3)  # the leading term is a square root
    assert tipped.leading**2 - plain.leading**2 == pytest.approx(scale * mean)


def test_the_widest_start_state_decides_the_width():
    class Uneven(Coins):
        def start(self):
            return {(0, 0): 0.5, (0, "rich"): 0.5}

        def actions(self, x, y):
            return ["take", "leave"] if y == "rich" else super().actions(x, y)

        def step(self, x, y, a):
            return [(1.0, 0, pkd.sure(0))] if y == "rich" else super().step(x, y, a)

        def reward(self, x, y, a):
            return (100.0 if a == "take" else 0.0) if y == "rich" else super().reward(x, y, a)

    expected = bounds.general([2], horizon=3, n_y=3, episodes=1e4, width=102.0)
    assert bounds.regret_bound(Uneven(), 1e4) == pytest.approx(expected)


def test_a_cycle_of_chance_states_is_an_error():
    class Circle(Coins):
        def step(self, x, y, a):
            return [(1.0, 1, "coin")]

    with pytest.raises(pkd.ModelError, match="CHANCE states of step form a cycle"):
        bounds.regret_bound(Circle(), 1e4)


@pytest.mark.parametrize("episodes", [0, -3, -inf])
def test_a_model_needs_at_least_one_episode(episodes):
    with pytest.raises(pkd.ModelError, match=r"episodes is .*; expected a number >= 1"):
        bounds.regret_bound(Coins(), episodes)


def delayed(inter_arrival, max_delay, horizon=6):
    rng = np.random.default_rng(0)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.uniform(size=(3, 2)), horizon)
    return pkd_delay.DelayedMDP(mdp, inter_arrival, max_delay, shared=False)


@pytest.mark.parametrize(("max_delay", "horizon"), [(0, 4), (1, 4), (3, 6)])
def test_a_known_delay_law_gives_theorem_one(max_delay, horizon):
    model = delayed({-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}, max_delay, horizon).known()
    expected = DelaySizes(3, 2, horizon, max_delay, longest=2).known_delay(1e4)
    assert bounds.regret_bound(model, 1e4) == pytest.approx(expected)


def test_queues_that_the_horizon_cuts_short_make_the_bound_of_a_model_the_smaller_one():
    model = delayed({-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}, 5, horizon=4).known()
    assert bounds.regret_bound(model, 1e4) < DelaySizes(3, 2, 4, 5, longest=2).known_delay(1e4)


def test_an_unknown_delay_law_gives_the_sums_of_theorem_two():
    found = bounds.regret_bound(delayed({-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}, 3).unknown(), 1e4)
    sized = DelaySizes(3, 2, 6, 3, longest=2).unknown_delay(1e4)
    # An episode has more unknown moves than its 6 steps, and the model's bound counts them in
    # log(eKM); the sums are the same.
    growth = found.lower_order / sized.lower_order
    assert (found.leading / sized.leading) ** 2 == pytest.approx(growth)
    assert 1 < growth <= log(e * 1e4 * (3 * 6 - 1)) / log(e * 1e4 * 6)


def test_a_crude_maximal_delay_costs_nothing_where_real_delays_are_short():
    models = [delayed({-1: 0.3, 0: 0.7}, max_delay).known() for max_delay in (1, 5)]
    tight, crude = (bounds.regret_bound(model, 1e4) for model in models)
    assert crude == tight


def test_delays_that_differ_over_pairs_give_the_first_order_bound():
    waits = {(s, a): {-1: 1.0} for s in range(3) for a in range(2)}
    waits[0, 0] = {1: 1.0}
    model = delayed(waits, 1, horizon=4).known()
    # The delay of 1 after (0, 0) is undone by the -1 after any other pair, so no other pair is ever
    # late.
    found, sizes = bounds.regret_bound(model, 1e4), DelaySizes(3, 2, 4, max_delay=1)
    expected = sizes.first_order([[1, 0], [0, 0], [0, 0]], 1e4)
    assert found == pytest.approx(expected, rel=1e-12)
    assert found < sizes.known_delay(1e4)


UNEVEN = {
    (0, 0): {-1: 0.5, 0: 0.5},
    (0, 1): {-1: 0.4, 0: 0.6},
    (1, 0): {-1: 0.3, 0: 0.3, 1: 0.4},
    (1, 1): {-1: 0.3, 0: 0.3, 2: 0.4},
}


def test_the_first_order_bound_counts_every_hazard_that_a_learner_meets():
    """W(s, a) = 0, 0, 1, 2 and W = 2. The remark counts 1 + 2 hazards up to W(s, a), and with the
    counters -1 and the empty queues 7; but a learner that knows only W meets 14.
    """
    H, K = 8, 400
    mdp = pkd.TabularMDP(np.full((2, 2, 2), 0.5), np.eye(2), H)
    late_mdp = pkd_delay.DelayedMDP(mdp, UNEVEN, max_delay=2)
    run = pkd_delay.learn(late_mdp, K, delay_law="unknown", optimism=pkd.Greedy())
    arrivals = [z for z, row in run.counts.items() if hasattr(z, "waited") and sum(row.values())]
    waits = [[0, 0], [1, 2]]
    bound = DelaySizes(2, 2, H, max_delay=2).first_order([[2, 2]] * 2, K, waits)
    per_feature = 2 * log(32 * H * 2 * 8 * K / 0.05)  # B = 2 for tables and hazards, |Z| = W S A
    counted = bound.lower_order / (2640 * H * log(e * K * H)) / per_feature - 4
    assert counted == pytest.approx(len(arrivals))
    assert len(arrivals) == 14


def test_a_plan_from_old_counts_doubles_the_bound_at_most():
    once, doubling = (bounds.regret_bound(Coins(), 1e4, replan=r) for r in ("every", "doubling"))
    assert doubling.leading == pytest.approx(sqrt(2) * once.leading)
    assert doubling.lower_order == pytest.approx(2 * once.lower_order)


def test_a_bound_over_many_episodes_walks_the_model_once():
    class Counted(Coins):
        walks = 0

        def start(self):
            Counted.walks += 1
            return super().start()

    bound = bounds.ModelBound.of(Counted())
    before = Counted.walks
    assert [bound(k) for k in (1e2, 1e4)] == [bounds.regret_bound(Coins(), k) for k in (1e2, 1e4)]
    assert Counted.walks == before


def test_a_declared_range_caps_unknown_features_only():
    """5 for sure, then an unknown coin for 1. The coin is capped at 6, and 5 is added to it: the
    upper value leaves the declared range (0, 6), and a bound with R = 6 promises nothing.
    """

    class Paid(Coins):
        horizon = 2

        def start(self):
            return (0, "paid")

        def actions(self, x, y):
            return ["take"] if y == "paid" else super().actions(x, y)

        def step(self, x, y, a):
            return [(1.0, 0, pkd.sure(0))] if y == "paid" else super().step(x, y, a)

        def reward(self, x, y, a):
            return 5.0 if y == "paid" else super().reward(x, y, a)

    assert pkd.optimistic_plan(Paid(return_range=(0.0, 6.0)), {}, episodes=100).value == 11.0
