"""Learning by the certified rule: no number of episodes, lower values, a moment to stop."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.adapters import find_player
from pkd.learning.algorithm import Learning
from pkd.planning.estimator import divisor_of
from pkd.rules.schedule import read_schedule
from pkd_delay.models.tables import two_state_chain

DELAYED = pkd_delay.DelayedMDP(two_state_chain(), {-1: 0.2, 0: 0.5, 1: 0.3}, 2)
WORLDS: dict[str, Any] = {
    "table": "riverswim",
    "unknown rewards": "pricing",
    "chance states": "kuhn",
    "negative rewards": "wind",
    "known delay law": (DELAYED.known(), DELAYED.law()),
    "unknown delay law": (DELAYED.unknown(), DELAYED.law()),
}
worlds = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
schedules = pytest.mark.parametrize("replan", ["doubling", "every", "total", "period=7"])


@worlds
@schedules
def test_every_certified_value_of_a_run_is_on_its_side_of_the_optimum(
    world: Any, replan: str
) -> None:
    run = pkd.learn(world, 60, seed=4, replan=replan)
    slack = 1e-9 * max(1.0, abs(run.optimal_value))
    assert run.lower_values is not None
    assert (run.upper_values >= run.optimal_value - slack).all()
    assert (run.lower_values <= run.optimal_value + slack).all()
    assert run.interval is not None
    assert run.interval.low - slack <= run.optimal_value <= run.interval.high + slack


@worlds
def test_the_robust_plan_earns_at_least_its_lower_value(world: Any) -> None:
    run = pkd.learn(world, 200, seed=1)
    assert run.interval is not None
    assert run.interval.robust is not None
    problem = pkd.as_problem(world)
    earned = pkd.evaluate(problem.model(), problem.law(), run.interval.robust.action)
    assert earned >= run.interval.low - 1e-9


@pytest.mark.parametrize("world", [*WORLDS.values(), "spot_autoscaler"])
def test_a_run_that_is_continued_equals_one_that_was_not(world: Any, tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    for episodes in (17, 40, 90):
        run = pkd.learn(world, episodes, seed=2, checkpoint=file)
    assert run.differences(pkd.learn(world, 90, seed=2)) == []


def test_a_run_as_published_cannot_be_continued(tmp_path: Path) -> None:
    file = tmp_path / "run.npz"
    pkd.learn("riverswim", 20, optimism=pkd.MVP(), checkpoint=file)
    with pytest.raises(pkd.ModelError, match="the checkpoint of another run"):
        pkd.learn("riverswim", 30, optimism=pkd.MVP(), checkpoint=file)


@pytest.mark.parametrize("world", ["riverswim", "gambler", "kuhn"])
def test_a_run_stops_when_the_robust_plan_is_certified(world: str) -> None:
    first = pkd.learn(world, 1, optimism=pkd.MVP())
    goal = 0.3 * (first.optimal_value - float(first.policy_values[0]))
    run = pkd.learn(world, until=goal, seed=3)
    assert run.gap <= goal
    assert run.config["episodes"] == len(run.returns)
    assert run.interval is not None
    assert run.interval.robust is not None
    problem = pkd.as_problem(world)
    assert run.optimal_value - pkd.evaluate(problem, run.interval.robust.action) <= goal
    # An episode less was not enough, as far as the gap is looked at.
    assert pkd.learn(world, int(len(run.returns) / 1.2), seed=3).gap > goal


def test_a_run_that_stops_equals_one_of_as_many_episodes() -> None:
    run = pkd.learn("gambler", until=0.2, seed=3)
    again = pkd.learn("gambler", len(run.returns), seed=3, replan=run.config["replan"])
    assert (again.returns == run.returns).all()
    assert again.interval is not None
    assert run.interval is not None
    assert again.interval[:2] == run.interval[:2]


def test_a_run_that_has_nothing_to_learn_has_one_episode() -> None:
    run = pkd.learn("two_state_chain", until=100.0)
    assert len(run.returns) == 1
    assert run.gap <= 100.0
    assert repr(run).startswith("<Run: 1 episodes with Certified")


def test_until_needs_a_number() -> None:
    with pytest.raises(pkd.ModelError) as found:
        pkd.learn("gambler", until=-1, optimism=pkd.Greedy(), delta=2, replan="never")
    words = "auto, doubling, slack, every, total, or words such as features=2,growth=1.1"
    assert [*found.value.findings] == [
        "delta is 2; expected a number between 0 and 1",
        f"replan is 'never'; expected {words}",
        "until is -1; expected a number > 0, in units of the return",
    ]


# -- the budget of mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_weights_of_all_ranks_sum_to_one(world: Any) -> None:
    compiled, delta = pkd.compile(pkd.as_problem(world).model()), 0.1
    budgets = compiled.budgets(delta)
    sets = sum(len(states) > 1 for states in compiled.outcomes) + len(compiled.rewards)
    assert len(budgets) == max(sets, 1) + 1
    assert np.exp(-budgets[1:]).sum() == pytest.approx(delta, rel=1e-12)
    # Data that are not ranked: the same for each of the sets.
    assert max(sets, 1) * math.exp(-budgets[0]) == pytest.approx(delta, rel=1e-12)


@worlds
def test_no_rank_is_better_than_the_order_in_which_features_came(world: Any) -> None:
    """The i-th feature that is seen has at most the weight of rank i."""
    problem = pkd.as_problem(world)
    compiled = pkd.compile(problem.model())
    learning = Learning(compiled, pkd.Certified(), None, 0.05, 5, None)
    truth, before = compiled.truth(problem.law()), 0
    play = find_player(compiled.model, compiled, truth, problem.law())
    play = play or (lambda *rest: compiled.episodes(truth.world, *rest))
    for _ in range(12):
        learning.replan()
        ranks = learning.tally.rank
        seen = int((ranks > 0).sum())
        assert (ranks[ranks > before] == seen).all()  # those that came together: the last rank
        before = seen
        play(learning.policy, learning.tally, learning.rng, np.zeros(1))
        learning.done += 1


def test_the_parts_of_delta_over_time_sum_to_delta() -> None:
    total = sum(1 / divisor_of(j) for j in range(100_000))
    assert 1 - 1e-4 < total < 1


@worlds
def test_the_logarithms_are_those_of_the_next_power_of_two(world: Any) -> None:
    compiled = pkd.compile(pkd.as_problem(world).model())
    learning = Learning(compiled, pkd.Certified(), None, 0.05, 5, None)
    for done, epoch in ((0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1000, 10), (1024, 11)):
        learning.done = done
        learning.renew()
        assert (learning.acting.epoch, learning.most_episodes) == (epoch, 2**epoch)
        delta = 0.05 / ((epoch + 1) * (epoch + 2))
        fixed = compiled.optimistic(pkd.Certified().bonus(), 2**epoch, delta)
        assert (learning.belief.ell == fixed.ell).all()


def test_logarithms_cover_every_sample_that_was_given_beforehand() -> None:
    counts = {(0, 0): {0: 5000}}
    problem = pkd.as_problem("riverswim")
    learner = pkd.OptimisticLearner(problem.model(), counts=counts)
    assert learner._learning.most_samples >= 5000


# -- one episode at a time -------------------------------------------------------------------------


def test_a_learner_needs_no_number_of_episodes() -> None:
    learner = pkd.OptimisticLearner(pkd.as_problem("riverswim").model())
    assert learner.optimism == pkd.Certified()
    assert learner.interval.low <= 3.3972639592 <= learner.upper_value


def test_a_learner_as_published_asks_for_the_number_of_episodes() -> None:
    with pytest.raises(pkd.ModelError, match="give episodes, or optimism="):
        pkd.OptimisticLearner(pkd.as_problem("riverswim").model(), optimism=pkd.MVP())


@pytest.mark.parametrize(
    "rule", [pkd.Certified(), pkd.MVP.practical(), pkd.PosteriorSampling()], ids=lambda r: r.name
)
@pytest.mark.parametrize("world", ["pricing", "riverswim"])
def test_a_learner_that_is_saved_after_each_episode_goes_on_with_the_same_bits(
    world: str, rule: pkd.Optimism, tmp_path: Path
) -> None:
    problem, file = pkd.as_problem(world), tmp_path / "learner.npz"
    model = problem.model()

    def play(learner: pkd.OptimisticLearner, k: int) -> tuple[float, float]:
        episode = pkd.Simulator(model, problem.law(), seed=k).episode(learner.plan)
        learner.observe(episode)
        return episode.total, learner.upper_value

    alone = pkd.OptimisticLearner(model, optimism=rule)
    expected = [play(alone, k) for k in range(25)]
    pkd.OptimisticLearner(model, optimism=rule).save(file)
    found = []
    for k in range(25):
        learner = pkd.OptimisticLearner.load(file, model)
        found.append(play(learner, k))
        learner.save(file)
    assert found == expected
    assert learner.observed == 25
    assert learner.counts == alone.counts


@pytest.mark.parametrize("marks", [np.nan, 0.0, -1.0])
def test_a_saved_learner_whose_next_plan_is_never_due_is_refused(
    tmp_path: Path, marks: float
) -> None:
    file, model = tmp_path / "learner.npz", pkd.as_problem("riverswim").model()
    pkd.OptimisticLearner(model).save(file)
    with np.load(file) as read:
        arrays = dict(read)
    arrays["tally_marks"][0] = marks
    np.savez(file, **arrays)
    with pytest.raises(pkd.ModelError, match="tally_marks: expected numbers above 0"):
        pkd.OptimisticLearner.load(file, model)


def test_a_learner_of_another_model_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "learner.npz"
    pkd.OptimisticLearner(pkd.as_problem("gambler").model()).save(file)
    with pytest.raises(pkd.ModelError, match="the learner of another model"):
        pkd.OptimisticLearner.load(file, pkd.as_problem("riverswim").model())


# -- schedules -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replan", "plans"),
    [
        ("every", range(20)),
        ("total", [0, 1, 2, 4, 8, 16]),
        ("period=6", [0, 6, 12, 18]),
        (pkd.Replan(features=None, growth=1.5), [0, 1, 2, 3, 4, 6, 9, 13, 19]),
    ],
    ids=str,
)
@pytest.mark.parametrize("rule", [pkd.Certified(), pkd.MVP()], ids=lambda rule: rule.name)
def test_plans_are_made_when_the_schedule_says(replan: Any, plans: Any, rule: pkd.Optimism) -> None:
    assert pkd.learn("riverswim", 20, replan=replan, optimism=rule).plans.tolist() == [*plans]


def test_a_schedule_is_read_as_it_was_written() -> None:
    for schedule in (pkd.Replan(), pkd.Replan(3.0, 1.25, 10), pkd.Replan(None, None, 1)):
        assert read_schedule(schedule.text) == schedule


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": 1.0}, "Replan(features=1.0): expected a finite number above 1, or None"),
        ({"growth": math.inf}, "Replan(growth=inf): expected a finite number above 1, or None"),
        ({"period": 0}, "Replan(period=0): expected a whole number >= 1, or None"),
        ({"features": None}, "Replan(features=None): expected at least one condition"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pkd.ModelError, match=re.escape(message)):
        pkd.Replan(**arguments)


# -- files -----------------------------------------------------------------------------------------


def test_a_saved_run_keeps_what_was_certified(tmp_path: Path) -> None:
    problem = pkd.as_problem("pricing")
    run = pkd.learn(problem, 80, seed=2)
    run.save(tmp_path / "run.npz")
    again = pkd.Run.load(tmp_path / "run.npz", problem.model())
    assert run.interval is not None
    assert again.interval is not None
    assert again.interval[:2] == run.interval[:2]
    assert again.lower_values is not None
    assert (again.lower_values == run.lower_values).all()
    for mine, theirs in ((run.policy, again.policy), (run.interval.robust, again.interval.robust)):
        assert mine is not None
        assert theirs is not None
        x, y = next(mine.states(1))
        assert mine.values(1, x, y) == theirs.values(1, x, y)
        assert mine.action(1, x, y) == theirs.action(1, x, y)
