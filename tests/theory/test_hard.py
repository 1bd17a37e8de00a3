"""The hard instances: closed forms against planners, the tree, the prior over instances, and the
lower bound with its conditions.
"""

from itertools import product
from math import ceil, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pkd
import pkd_delay
from pkd_delay.theory.bounds import DelaySizes
from pkd_delay.theory.hard import HardInstance, InstancePrior, code_mdp, tree_levels

SHAPE = "(leaves, actions, code size)"
CODES = {(0.5,): 0.75, (0.5, -0.25): 0.6875, (1.0, -1.0, 0.2): 13 / 15}


def random_instance(seed, levels, actions, size, horizon, delay):
    codes = np.random.default_rng(seed).uniform(-1, 1, (levels[-1], actions, size))
    return HardInstance(levels, codes, horizon, delay)


def played(instance, actions):
    """The expected return of a blind sequence of actions, by pushing the state distribution
    forward.
    """
    mdp = instance.mdp()
    where, total = mdp.start_distribution, 0.0
    for a in actions:
        total += where @ mdp.rewards[:, a]
        where = where @ mdp.transitions[:, a]
    return total


@pytest.mark.parametrize(("theta", "expected"), CODES.items())
def test_the_one_shot_optimum_equals_the_delayed_plan(theta, expected):
    """And the worked number, and the best blind sequence."""
    instance = code_mdp(theta)
    best = max(played(instance, actions) for actions in product((0, 1), repeat=instance.horizon))
    planned = pkd_delay.plan(instance.delayed()).value
    found = [instance.optimal_value, best, planned]
    assert found == pytest.approx([expected] * 3, abs=1e-12)


def test_the_weighted_optimum_is_the_worked_number():
    instance = HardInstance((1,), [[(0.2, -0.4, 0.6)] * 2], horizon=11, delay=3)
    assert instance.optimal_value == pytest.approx(5.5333333333, abs=5e-11)
    still = HardInstance((1,), np.zeros((1, 2, 3)), horizon=11, delay=3)
    assert instance.optimal_value - still.optimal_value == pytest.approx(1.5333333333, abs=5e-11)


def test_the_code_word_reaches_the_value_of_its_pair():
    instance = random_instance(1, (1,), 2, 4, horizon=9, delay=4)
    actions = (1, *instance.code_word(0, 1), 0, 0, 0, 0)
    assert played(instance, actions) == pytest.approx(instance.values()[0, 1], abs=1e-12)


@pytest.mark.parametrize(
    ("levels", "actions", "size", "horizon", "delay"),
    [
        ((1,), 3, 2, 6, 2),
        ((1, 2), 2, 2, 7, 3),
        ((1, 2, 3), 2, 1, 8, 1),
        ((1, 3), 3, 2, 6, 2),
        ((1, 2, 4), 2, 3, 10, 3),
    ],
)
def test_the_optimum_in_closed_form_equals_the_delayed_plan(levels, actions, size, horizon, delay):
    for seed in range(5):
        instance = random_instance(seed, levels, actions, size, horizon, delay)
        assert pkd_delay.plan(instance.delayed()).value == pytest.approx(
            instance.optimal_value, abs=1e-12
        )


def test_a_shorter_delay_would_show_the_code():
    instance = random_instance(0, (1,), 2, 3, horizon=6, delay=3)
    watched = pkd_delay.DelayedMDP.constant(instance.mdp(), 0)
    assert pkd_delay.plan(watched).value == pytest.approx(np.mean([4.0, 3.0, 2.0]) - 0.0)
    assert instance.optimal_value < np.mean([4.0, 3.0, 2.0])


def test_the_support_of_a_pair_is_twice_the_code_size():
    instance = random_instance(0, (1, 2), 2, 3, horizon=8, delay=3)
    assert (instance.mdp().transitions > 0).sum(axis=2).max() == instance.delayed().branching == 6


@pytest.mark.parametrize(
    ("states", "actions", "levels"),
    [(16, 2, (1, 2)), (20, 2, (1, 2, 4)), (20, 4, (1, 4)), (52, 3, (1, 3, 8)), (8, 2, (1,))],
)
def test_the_tree_has_the_worked_levels(states, actions, levels):
    assert tree_levels(states, actions) == levels


@given(states=st.integers(8, 5000), actions=st.integers(2, 9))
@settings(deadline=None)
def test_the_tree_keeps_the_sizes_that_the_proof_promises(states, actions):
    levels = tree_levels(states, actions)
    assert states / 8 <= levels[-1] < states / 4
    assert levels[-1].bit_count() == 1
    assert sum(levels) <= states / 2
    assert len(levels) <= 1 + max(ceil(round(log(states / 4, actions), 12)), 0)
    assert 4 * len(levels) <= 8 + 4 * log(
        states, actions
    )  # so the theorem's condition on H leaves three quarters of H after the tree


def test_every_leaf_is_reached_after_one_action_per_level():
    instance = random_instance(2, (1, 3, 8), 3, 1, horizon=6, delay=1)
    moves = instance.mdp().transitions
    reached = {
        int(moves[int(moves[0, a].argmax()), b].argmax()) for a in range(3) for b in range(3)
    }
    assert reached == set(range(4, 12))


def test_spare_actions_go_round_the_children():
    moves = random_instance(2, (1, 2), 5, 1, horizon=4, delay=1).mdp().transitions
    assert [int(moves[0, a].argmax()) for a in range(5)] == [1, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("levels", "codes", "horizon", "findings"),
    [
        (
            (1, 2),
            np.full((2, 2, 3), 1.5),
            5,
            (
                "codes reach 1.5 in size; expected every theta in [-1, 1]",
                "horizon is 5; 2 levels, 3 code steps and one that pays need 6",
                "delay is 1; a delay below the code size 3 would show the code before it is played",
            ),
        ),
        (
            (1, 3, 3),
            np.zeros((3, 2, 1)),
            9,
            (
                "levels (1, 3, 3): 3 nodes need 2 parents with 2 actions, not 1",
                "levels (1, 3, 3): 3 nodes need 2 parents with 2 actions, not 3",
            ),
        ),
        (
            (1, 2),
            np.zeros((2, 2)),
            9,
            (f"codes have shape (2, 2); expected {SHAPE} = (2, 2 or more, 1 or more)",),
        ),
    ],
)
def test_a_bad_instance_names_everything_that_is_wrong(levels, codes, horizon, findings):
    with pytest.raises(pkd.ModelError) as error:
        HardInstance(levels, codes, horizon, delay=1)
    assert error.value.findings == findings


PRIOR = InstancePrior(DelaySizes(40, 2, 40, max_delay=8, branching=16), scale=0.4, degree=4)
LARGE = DelaySizes(100, 2, 100, max_delay=10, branching=40)


def test_draws_of_the_prior_stay_below_its_threshold():
    floor = HardInstance(tree_levels(40, 2), np.zeros((8, 2, 8)), 40, 8).optimal_value
    values = np.array([PRIOR.draw(seed, special=None).values() for seed in range(20)]) - floor
    assert (values < PRIOR.threshold).all()
    assert values.max() > 0


def test_a_draw_has_a_special_pair_at_random_unless_told_otherwise():
    """Every default draw is the draw of exactly one named pair, and seeds name different ones."""
    pairs = [(leaf, action) for leaf in range(8) for action in range(2)]
    named = []
    for seed in range(12):
        codes = PRIOR.draw(seed).codes
        (pair,) = [p for p in pairs if np.array_equal(codes, PRIOR.draw(seed, special=p).codes)]
        assert not np.array_equal(codes, PRIOR.draw(seed, special=None).codes)
        named.append(pair)
    assert len(set(named)) > 4


def test_the_special_pair_has_the_mean_of_the_second_prior():
    codes = [PRIOR.draw(seed, special=(3, 1)).codes[3, 1] for seed in range(150)]
    draws = np.abs(codes).mean(axis=1) / 0.4
    assert draws.mean() == pytest.approx(0.353479180090, abs=4 * draws.std() / np.sqrt(150))


def test_the_gap_is_half_of_what_separates_the_mean_values():
    # E V~ = eps mu (2 H~ - 1 - D~)/4 with H~ = 40 - 4 levels, D~ = 8, the mu of degree 4.
    worth = 0.4 * (2 * 36 - 1 - 8) / 4
    assert PRIOR.gap == pytest.approx(worth * (0.353479180090 - 0.218237381534) / 2, rel=1e-9)
    assert PRIOR.threshold == pytest.approx(
        worth * (0.75 * 0.218237381534 + 0.25 * 0.353479180090), rel=1e-9
    )


def test_the_prior_of_the_theorem_has_its_scale_and_an_even_degree():
    prior, theorem = InstancePrior.of_theorem(LARGE, 1e6), LARGE.lower_bound(1e6)
    assert prior.scale == pytest.approx(np.sqrt(10 * 100 * 2 * log(10) / (96 * 1e6)))
    assert (prior.degree, prior.proved) == (12, False)
    assert theorem.gap <= prior.gap  # the theorem's is a lower estimate


def test_the_same_seed_draws_the_same_instance():
    assert (PRIOR.draw(5, (0, 0)).codes == PRIOR.draw(5, (0, 0)).codes).all()


def test_the_conditions_of_the_theorem_come_in_one_error():
    with pytest.raises(pkd.ModelError) as error:
        InstancePrior.of_theorem(DelaySizes(12, 2, 16, max_delay=2, branching=4), 1.0)
    assert error.value.findings == (
        "horizon is 16; the theorem needs H >= 8 + 4 log_A S = 22.34",
        "episodes is 1; the theorem needs K >= D~ S A log(D~)/24 = 1.38629",
        "S A is 24; n = 48 K/(S A) stays below K/2 only for S A > 96",
    )


def test_sizes_without_room_for_a_tree_are_refused():
    with pytest.raises(pkd.ModelError, match=r"states is 4; expected a whole number >= 8"):
        tree_levels(4, 1)
