"""The rivals of MVP-Delayed: what ignoring the delay is worth, and what counting every augmented
state by itself means.
"""

from __future__ import annotations

import pytest

import pkd
from pkd.experiments import rivals
from pkd_delay import DelayedMDP, plan
from pkd_delay.models.tables import two_state_chain
from pkd_delay.rivals import IgnoreDelay
from pkd_delay.transforms.blind import Blind

MARCH = pkd.TabularMDP(
    [[[0, 1, 0]] * 2, [[0, 0, 1]] * 2, [[1, 0, 0]] * 2], [[0, 1], [1, 0], [0, 1]], 3
)  # states 0, 1, 2 in this order


def ignoring(delayed: DelayedMDP) -> Blind:
    return Blind(delayed.known(), pkd.plan(delayed.base, delayed.base_law))


@pytest.mark.parametrize("delay", range(4))
def test_ignoring_the_delay_names_a_state_that_has_moved_on(delay: int) -> None:
    """A chain that stays with .1: a state that is k steps old is still the current one with (1 +
    (-.8)^k) / 2.
    """
    delayed = DelayedMDP.constant(two_state_chain(horizon=10, stay=0.1), delay)
    expected = sum((1 + (-0.8) ** min(t, delay)) / 2 for t in range(10))
    assert pkd.evaluate(delayed.known(), delayed.law(), ignoring(delayed)) == pytest.approx(
        expected, abs=1e-12
    )


def test_a_state_that_cannot_be_current_is_met_as_when_it_was_shown() -> None:
    """At step 2 the march cannot be in state 0, where 1 is the right action.

    The last shown state is 0 all the same.
    """
    delayed = DelayedMDP.constant(MARCH, 1)
    assert ignoring(delayed)(2, *delayed.known().place(0, None, (1,), 1)) == 1


def test_a_learner_that_ignores_the_delay_is_measured_by_the_delayed_optimum() -> None:
    """V* = 8.46 for the chain that stays with .9, H = 10 and delay 2.

    Naming the last shown state is optimal there.
    """
    late = DelayedMDP.constant(two_state_chain(), 2)
    run = pkd.experiment({"late": late}, {"old": IgnoreDelay(optimism="greedy")}, 64, 1)[0]
    assert run.optimal_value == pytest.approx(8.46)
    assert run.policy_values[-1] == pytest.approx(8.46)
    assert run.regret[-1] == pytest.approx(64 * 8.46 - run.policy_values.sum())


def test_counting_every_state_by_itself_changes_no_value() -> None:
    delayed = DelayedMDP(two_state_chain(), {-1: 0.2, 0: 0.4, 1: 0.4}, 2)
    own = rivals.CountsPerState(delayed.known())
    assert pkd.plan(own, own.law(delayed.law())).value == pytest.approx(
        plan(delayed).value, abs=1e-12
    )


def test_every_queue_learns_alone_when_states_are_counted_by_themselves() -> None:
    """Delay 1, two states and actions: tran with queues of two actions, and of one at the end: 2 *
    (4 + 2) features, not 4.
    """
    delayed = DelayedMDP.constant(two_state_chain(), 1)
    assert len(pkd.compile(delayed.known()).features) == 4
    assert len(pkd.compile(rivals.CountsPerState(delayed.known())).features) == 12


def test_a_model_that_counts_by_itself_keeps_its_contract() -> None:
    delayed = DelayedMDP(two_state_chain(horizon=4), {-1: 0.2, 0: 0.4, 1: 0.4}, 2)
    own = rivals.CountsPerState(delayed.known())
    pkd.check_model(own, own.law(delayed.law()))


def test_a_feature_of_one_state_does_not_pay_for_all_others() -> None:
    """Each feature comes with one y', so ell1 is that of |Y| = 1, whatever |Y| is."""
    delayed = DelayedMDP(two_state_chain(horizon=4), {-1: 0.2, 0: 0.4, 1: 0.4}, 2)
    own = rivals.CountsPerState(delayed.known())
    compiled = pkd.compile(own)
    shares = {own.share(z, z.y_next) for z in compiled.features}
    assert len({z.y_next for z in compiled.features}) > 1
    assert shares == {1.0}
