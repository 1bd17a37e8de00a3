"""The built-in problems: their numbers, their options, and what they refuse."""

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd_delay import Delayed
from pkd_delay.models.autoscaler import (
    CHAIN,
    LOADS,
    Fleet,
    Serving,
    SpotAutoscaler,
    autoscaler,
    spot_autoscaler,
)
from pkd_delay.models.tables import grid, random_mdp, riverswim, two_state_chain


@pytest.mark.parametrize(
    "make", [riverswim, two_state_chain, random_mdp, grid, autoscaler, spot_autoscaler]
)
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
        (riverswim, {"length": 1}, "length is 1; expected a whole number >= 2"),
        (two_state_chain, {"stay": 1.5}, "stay is 1.5; expected a number in [0, 1]"),
        (random_mdp, {"successors": 9}, "successors is 9; expected a whole number from 1 to 5"),
        (grid, {"wind": -1.0, "rows": 0}, "2 findings"),
        (autoscaler, {"startup": -1}, "startup is -1; expected a whole number >= 0"),
        (autoscaler, {"chain": {}}, "4 findings"),
        (spot_autoscaler, {"kept": 1.5}, "kept is 1.5; expected a number in [0, 1]"),
        (spot_autoscaler, {"horizon": 0, "max_replicas": 0}, "2 findings"),
        (
            spot_autoscaler,
            {"loads": {"spot": 1.0}, "chain": {"spot": {"spot": 1.0}}},
            "a load is called 'spot'; expected another name",
        ),
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


def expect(fleet, history, horizon, delay, kept):
    """The best expected return from here on under a constant delay.

    Written from the words alone. The truth is a law over (load, ready, spot); the agent sees the
    tick `delay` ago and remembers what it did since. fleet: {(load, ready, spot): probability} of
    the last tick that is seen; history: the actions since, oldest first.
    """
    if horizon == 0:
        return 0.0
    values = []
    for a in ("wait", "start one", "start spot", "stop one"):
        done, pay = (*history, a), 0.0
        now = {fleet: 1.0}
        for act in done:  # only the last of them pays now: the others did when they were chosen
            pay, now = _tick(now, act, kept)
        if len(done) <= delay:
            later = expect(fleet, done, horizon - 1, delay, kept)
        else:
            _, seen = _tick({fleet: 1.0}, done[0], kept)
            later = sum(
                p * expect(state, done[1:], horizon - 1, delay, kept) for state, p in seen.items()
            )
        values.append(pay + later)
    return max(values)


def _tick(law, a, kept):
    """The expected pay of one tick and the law of (load, ready, spot) after it."""
    pay, after = 0.0, {}
    for (load, ready, spot), p in law.items():
        chances = [(kept, True), (1 - kept, False)] if spot else [(1.0, False)]
        for chance, serves in chances:
            served = min(LOADS[load], ready + (2.0 if serves else 0.0))
            pay += p * chance * (served - 0.5 * ready - (0.7 if spot else 0.0))
            count, runs = ready, serves
            if a == "start one":
                count = min(ready + 1, 3)
            elif a == "start spot" and not spot:
                runs = True
            elif a == "stop one" and ready > 1:
                count = ready - 1
            elif a == "stop one":
                runs = False
            for level, q in CHAIN[load].items():
                state = (level, count, runs)
                after[state] = after.get(state, 0.0) + p * chance * q
    return pay, after


class TestSpotAutoscaler:
    @pytest.mark.parametrize(("delay", "horizon"), [(0, 5), (1, 4), (2, 4)])
    @pytest.mark.parametrize("kept", [0.95, 0.5])
    def test_the_optimum_is_that_of_a_search_over_all_histories(self, delay, horizon, kept):
        problem = spot_autoscaler(horizon=horizon, kept=kept).problem
        value = pkd_delay.plan(Delayed.constant(problem, delay)).value
        assert value == pytest.approx(
            expect(("idle", 1, False), (), horizon, delay, kept), abs=1e-12
        )

    def test_a_reclaimed_replica_serves_nothing_and_is_gone(self):
        model = SpotAutoscaler(3, LOADS, 3, 0.5, 2.0, 0.7)
        ((_, serving, z),) = model.step("peak", Fleet(1, True), "start spot")
        assert (serving, z) == (Serving("peak", 1, Fleet(1, True)), "spot")
        assert model.actions("kept", serving) is pkd.CHANCE
        assert model.reward("peak", Fleet(1, True), "wait") == pytest.approx(-0.5 - 0.7)
        assert [model.reward(x, serving, None) for x in ("kept", "reclaimed")] == [3.0, 1.0]
        assert model.step("kept", serving, None) == [(1.0, Fleet(1, True), "peak")]
        assert model.step("reclaimed", serving, None) == [(1.0, Fleet(1, False), "peak")]

    def test_the_more_expensive_replica_is_stopped_first(self):
        model = SpotAutoscaler(3, LOADS, 3, 0.5, 2.0, 0.7)
        after = [
            model.step("idle", fleet, "stop one")[0][1].then
            for fleet in (Fleet(2, True), Fleet(1, True))
        ]
        assert after == [Fleet(1, True), Fleet(1, False)]

    def test_who_expects_to_lose_every_second_spot_replica_never_starts_one(self):
        """Under that belief the plan is worth the same in both worlds: it never meets spot.

        Without the spot replica the optimum is that value, too.
        """
        compiled = pkd.compile(spot_autoscaler().known())
        believed = pkd.plan(compiled, spot_autoscaler(kept=0.5).law())
        optimum = pkd.plan(compiled, spot_autoscaler().law()).value
        earned = pkd.evaluate(compiled, spot_autoscaler().law(), believed)
        assert earned == pytest.approx(believed.value, abs=1e-12)
        without = pkd_delay.plan(autoscaler(max_replicas=3, startup=0, price=0.5)).value
        assert earned == pytest.approx(without, abs=1e-12)
        assert earned < 0.9 * optimum

    def test_a_learner_without_a_bonus_never_sees_spot_and_a_certified_one_learns_it(self):
        problem = spot_autoscaler(horizon=12, max_delay=1)
        greedy = pkd_delay.learn(problem, 3000, optimism=pkd.Greedy())
        certified = pkd_delay.learn(problem, 3000)
        assert sum(greedy.counts.get("spot", {}).values()) == 0
        assert sum(certified.counts["spot"].values()) > 1000
        assert certified.policy_values[-1] > greedy.policy_values.max() + 0.5
