"""A controller that takes late messages: simulated episodes are played again, message by message.

The simulator draws from Assumption 1 and knows nothing of the controller. What it shows at each
step is sent to the controller, which must take the same actions, record the same episode and teach
a learner the same counts.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import pkd
import pkd_delay
from pkd_delay.episodes import simulate
from pkd_delay.models.tables import random_mdp, two_state_chain
from pkd_delay.production import Controller
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory

TABLE = random_mdp(states=3, actions=2, horizon=7, successors=2, seed=1)
SIZES = {"horizon": 4, "capacity": 3, "max_order": 2, "max_demand": 2}
SHOP = inventory(**SIZES, lead_time=0, stock=2, backlog=2)
PROBLEMS = {
    "constant": pkd_delay.DelayedMDP.constant(TABLE, 2),
    "lags": pkd_delay.DelayedMDP(TABLE, pkd_delay.Lags({0: 0.5, 1: 0.2, 3: 0.3})),
    "changes": pkd_delay.DelayedMDP(TABLE, {-1: 0.3, 0: 0.3, 1: 0.4}, max_delay=2),
    "with CHANCE states": pkd_delay.Delayed(SHOP, {0: 0.5, 1: 0.5}, max_delay=2),
    "with ends": pkd_delay.Delayed.constant(
        gambler(goal=3, capital=2, horizon=5), 1, instead=lambda x, y, a: 1
    ),
}


def replay(control, episode, seed=0):
    """Plays the messages of a simulated episode; those of one step come in any order, twice."""
    rng = random.Random(seed)
    control.begin(episode.states[0])
    actions = []
    for h in range(1, len(episode.actions) + 2):
        due = [t for t in range(2, len(episode.states) + 1) if episode.shown_at(t) == h]
        for t in rng.sample(due * 2, 2 * len(due)):
            control.receive(episode.states[t - 1], sent=t)
        if h <= len(episode.actions):
            actions.append(control.act())
    for t in range(2, len(episode.states) + 1):
        if episode.shown_at(t) > len(episode.actions) + 1:
            control.receive(episode.states[t - 1], sent=t)
    return tuple(actions)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_plan_acts_in_production_as_in_the_simulation(name):
    problem = PROBLEMS[name]
    plan = pkd_delay.plan(problem)
    model = problem.known()
    for seed, episode in enumerate(plan.simulate(40, seed=3)):
        control = Controller(problem, plan)
        assert replay(control, episode, seed) == episode.actions
        assert control.over
        record = control.end()
        assert record.states == episode.states
        assert record.total == pytest.approx(episode.total)
        assert record.augmented(model).transitions == episode.augmented(model).transitions


@pytest.mark.parametrize("name", ["constant", "lags", "with CHANCE states"])
def test_a_learner_counts_what_the_simulator_would_have_told_it(name):
    problem = PROBLEMS[name]
    model = problem.known()
    plan = pkd_delay.plan(problem)
    taught, told = pkd.OptimisticLearner(model), pkd.OptimisticLearner(model)
    for episode in plan.simulate(10, seed=4):
        # The learner is asked, but what is recorded are the actions of the simulation.
        control = Controller(problem, taught)
        asked, control._act = [], plan.action
        asked = replay(control, episode)
        assert asked == episode.actions
        control.end()
        told.observe(episode.augmented(model))
    assert taught.observed == told.observed == 10
    assert taught.counts == told.counts


def test_a_learner_of_hidden_delays_learns_their_law_from_messages():
    problem = pkd_delay.DelayedMDP(
        TABLE, {0: 0.6, 1: 0.4}, max_delay=2, delay_law="unknown", revealed=False
    )
    plan = pkd_delay.plan(problem)
    taught, told = (pkd.OptimisticLearner(problem.unknown()) for _ in range(2))
    for episode in plan.simulate(10, seed=5):
        control = Controller(problem, taught)
        control._act = plan.action
        replay(control, episode)
        control.end()
        told.observe(episode.augmented(problem.unknown()))
    assert taught.counts == told.counts


def test_raw_delays_cannot_be_learned_from_messages():
    problem = pkd_delay.DelayedMDP(TABLE, {0: 0.6, 1: 0.4}, max_delay=2, delay_law="unknown")
    with pytest.raises(pkd.ModelError, match="revealed=False"):
        Controller(problem, pkd.OptimisticLearner(problem.unknown()))


@pytest.mark.parametrize("name", ["lags", "with CHANCE states"])
def test_a_program_that_is_stopped_after_every_call_goes_on_from_its_file(name, tmp_path):
    problem, file = PROBLEMS[name], tmp_path / "control.json"
    plan = pkd_delay.plan(problem)

    class Restarted:
        """A new controller for every call."""

        def __getattr__(self, method):
            return getattr(Controller(problem, plan, file=file), method)

    for seed, episode in enumerate(plan.simulate(5, seed=6)):
        control = Restarted()
        assert replay(control, episode, seed) == episode.actions
        assert control.end().states == episode.states


def test_an_episode_is_taught_once_when_the_program_stops_between_two_files(tmp_path):
    problem, file, saved = PROBLEMS["constant"], tmp_path / "c.json", tmp_path / "l.npz"
    learner = pkd.OptimisticLearner(problem.known())
    [episode] = simulate(problem, lambda h, state, queue, waited: 0, 1)
    control = Controller(problem, learner, file=file)
    control._act = lambda h, state, queue, waited: 0
    replay(control, episode)
    before = file.read_text()
    control.end()
    learner.save(saved)
    file.write_text(before)  # as if the program had stopped after the learner was saved
    again = pkd.OptimisticLearner.load(saved, problem.known())
    Controller(problem, again, file=file).end()
    assert again.observed == 1
    assert again.counts == learner.counts


def test_times_may_be_timestamps():
    start, tick = datetime(2026, 5, 1, tzinfo=UTC), timedelta(seconds=10)
    problem = PROBLEMS["lags"]
    plan = pkd_delay.plan(problem)
    [episode] = plan.simulate(1, seed=7)
    control = Controller(problem, plan, tick=tick)
    control.begin(episode.states[0], at=start)
    actions = []
    for h in range(1, 8):
        for t in range(2, h + 1):  # a message is handed over early, with the time of its arrival
            came = start + (episode.shown_at(t) - 1) * tick - timedelta(seconds=3)
            control.receive(episode.states[t - 1], start + (t - 1) * tick, came)
        actions.append(control.act())
    assert tuple(actions) == episode.actions


def test_a_lost_state_is_replaced_by_a_newer_one_and_teaches_nothing():
    problem = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=6), 1)
    plan = pkd_delay.plan(problem)
    control = Controller(problem, plan, fallback=1)
    control.begin(0)
    control.act(), control.act()  # at step 3 the state of step 2 must have come
    assert (control.act(), control.queue) == (1, (0, 0, 1))
    control.receive(1, sent=3)
    assert control.act() == plan.action(4, 1, (1,), 0)  # the state of step 3, one step late
    assert (control.state, control.queue) == (1, (1, plan.action(4, 1, (1,), 0)))
    control.receive(1, sent=5)
    control.act(), control.act()
    assert control.over
    assert control.end() is None


def test_without_a_fallback_a_lost_state_is_an_error():
    control = Controller(PROBLEMS["constant"], pkd_delay.plan(PROBLEMS["constant"]))
    control.begin(0)
    for _ in range(3):
        control.act()
    with pytest.raises(pkd.ModelError, match="the state of step 2 has not come after 3 steps"):
        control.act()


def test_an_endless_run_keeps_what_it_needs_and_no_more(tmp_path):
    problem = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=30), 2)
    keep = pkd_delay.plan(problem).stationary()
    control = Controller(problem, keep, file=tmp_path / "run.json")
    rng, states, actions = random.Random(8), [0], []
    control.begin(0)
    for h in range(1, 500):
        if h > 2:
            control.receive(states[h - 3], sent=h - 2)
        shown = max(h - 2, 1)
        expected = keep.action(
            states[shown - 1], tuple(actions[shown - 1 :]), 0 if h > 2 else h - 1
        )
        actions.append(control.act())
        assert actions[-1] == expected
        states.append(rng.randrange(2))
        if h % 50 == 0:
            control = Controller(problem, keep, file=tmp_path / "run.json")
    assert control.step == 500
    assert len((tmp_path / "run.json").read_text()) < 400
    assert control.end() is None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda c: c.act(), "no episode has begun"),
        (lambda c: (c.begin(0), c.begin(0)), "call end\\(\\) first"),
        (lambda c: (c.begin(0), c.receive(0, sent=9)), "expected a step from 1 to 1"),
        (lambda c: (c.begin(0), c.receive(0, sent="noon")), "expected a time like that of begin"),
    ],
)
def test_a_wrong_call_says_what_was_expected(call, said):
    problem = PROBLEMS["constant"]
    with pytest.raises(pkd.ModelError, match=said):
        call(Controller(problem, pkd_delay.plan(problem)))


@pytest.mark.parametrize("text", ["", "{}", '{"kind": "pkd controller", "open": true}', "[1"])
def test_a_file_of_something_else_is_refused(text, tmp_path):
    (tmp_path / "c.json").write_text(text)
    problem = PROBLEMS["constant"]
    with pytest.raises(pkd.ModelError, match=r"c\.json is no controller of this problem"):
        Controller(problem, pkd_delay.plan(problem), file=tmp_path / "c.json")
