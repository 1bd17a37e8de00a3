"""The built-in problems: their numbers, their options, and what they refuse."""

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import Delayed
from pkd_delay.autoscaler import CHAIN, autoscaler
from pkd_delay.problems import grid, random_mdp, riverswim, two_state_chain


@pytest.mark.parametrize("make", [riverswim, two_state_chain, random_mdp, grid, autoscaler])
def test_every_problem_passes_every_check(make):
    problem = make(horizon=3)
    pkd.check_model(problem.model(), problem.law())


def test_riverswim_has_its_currents():
    mdp = riverswim()
    assert mdp.transitions[2, 1].tolist() == pytest.approx([0, 0.05, 0.6, 0.35, 0, 0])
    assert mdp.transitions[0, 1].tolist() == pytest.approx([0.4, 0.6, 0, 0, 0, 0])
    assert mdp.transitions[5, 1].tolist() == pytest.approx([0, 0, 0, 0, 0.4, 0.6])
    assert (mdp.rewards[0, 0], mdp.rewards[5, 1], mdp.rewards.sum()) == (0.005, 1.0, 1.005)


def test_a_random_mdp_has_as_many_successors_as_asked():
    mdp = random_mdp(states=7, actions=3, successors=2, seed=4)
    assert ((mdp.transitions > 0).sum(axis=2) == 2).all()
    assert np.array_equal(
        mdp.transitions, random_mdp(states=7, actions=3, successors=2, seed=4).transitions
    )


def test_the_grid_moves_as_named_without_wind():
    mdp = grid(rows=2, columns=2, wind=0.0)
    moves = {name: mdp.transitions[0, a].argmax() for a, name in enumerate(mdp.action_names)}
    assert moves == {"up": 0, "right": 1, "down": 2, "left": 0}


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (riverswim, {"length": 1}, "length is 1; expected at least 2"),
        (two_state_chain, {"stay": 1.5}, "stay is 1.5; expected a probability"),
        (random_mdp, {"successors": 9}, "successors is 9; expected 1 to states=5"),
        (grid, {"wind": -1.0, "rows": 0}, "2 findings"),
        (autoscaler, {"startup": -1}, "startup is -1; expected at least 0"),
        (autoscaler, {"chain": {}}, "4 findings"),
    ],
)
def test_bad_options_are_refused(make, options, message):
    with pytest.raises(pkd.ModelError) as error:
        make(**options)
    assert str(error.value).startswith(message)


class TestAutoscaler:
    def test_a_started_replica_serves_after_its_start_up_time(self):
        model = autoscaler(startup=2).problem.model()
        y = (1, (0, 0))
        seen = []
        for a in (1, 0, 0):
            ((_, y, _),) = model.step("idle", y, a)
            seen.append(y)
        assert seen == [(1, (0, 1)), (1, (1, 0)), (2, (0, 0))]

    def test_replicas_stay_between_one_and_the_largest_number(self):
        model = autoscaler(max_replicas=2, startup=1).problem.model()
        assert model.step("idle", (1, (0,)), -1) == [(1.0, (1, (0,)), "idle")]
        assert model.step("idle", (1, (1,)), 1) == [(1.0, (2, (0,)), "idle")]

    def test_served_load_pays_and_every_replica_costs(self):
        model = autoscaler(price=0.25).problem.model()
        assert model.reward("peak", (3, (1,)), 0) == pytest.approx(3 - 0.25 * 4)
        assert model.reward("idle", (3, (1,)), 0) == pytest.approx(1 - 0.25 * 4)

    def test_only_the_load_chain_is_learned(self):
        problem = autoscaler(horizon=5)
        run = pkd_delay.learn(problem, 10, optimism=pkd.MVP.practical())
        assert set(run.counts) == set(CHAIN)
        assert sum(sum(row.values()) for row in run.counts.values()) == 10 * 5

    def test_every_tick_of_delay_has_a_price_and_ignoring_it_costs_more(self):
        problem = autoscaler(horizon=12)
        late = [pkd_delay.plan(Delayed.constant(problem.problem, delay)) for delay in range(3)]
        assert late[0].value > late[1].value + 0.1 > late[2].value + 0.2
        naive = pkd.plan(problem.problem.model(), problem.problem.law())
        model = late[2].model
        ignoring = pkd.evaluate(
            model, late[2].delayed.law(), lambda h, x, y: naive.action(h - len(y.queue), x, y.y)
        )
        assert ignoring < late[2].value - 0.1
