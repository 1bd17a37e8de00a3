"""Rivals for delayed models, each on its own ground."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import pkd
from pkd.experiments import rivals
from pkd_delay import Delayed, DelayedMDP, UnknownDelay
from pkd_delay.models.tables import random_mdp, two_state_chain
from pkd_delay.rivals import (
    QMDP,
    Chen2023,
    DelayAwareQ,
    IgnoreDelay,
    MemorylessQ,
    ModelBasedSimulation,
)
from pkd_delay.rivals.agents import _Unaware
from pkd_delay.rivals.sight import Forecast, Sight
from pkd_delay.transforms.blind import Blind
from pkd_examples.gambler import gambler
from tests.kiosk import LAW, Kiosk
from tests.rival_play import play, worth

LATE = {-1: 0.2, 0: 0.4, 1: 0.3, 2: 0.1}
PLANNERS = (ModelBasedSimulation, QMDP, IgnoreDelay)


def deterministic(seed: int) -> pkd.TabularMDP:
    """Four states, three actions, every successor sure."""
    rng = np.random.default_rng(seed)
    P = np.eye(4)[rng.integers(0, 4, (4, 3))]
    return pkd.TabularMDP(P, rng.random((4, 3)), horizon=6)


def flip(horizon: int, noise: float = 0.2) -> pkd.TabularMDP:
    """Action 1 flips the state, action 0 keeps it, and noise does the opposite; state 0 pays 1."""
    keep, swap = [1 - noise, noise], [noise, 1 - noise]
    return pkd.TabularMDP([[keep, swap], [swap, keep]], [[1, 1], [0, 0]], horizon)


def informed(kind: Any, problem: Any) -> pkd.Agent:
    agent: pkd.Agent = kind(informed=True)
    play(agent, problem, 1)
    return agent


# -- the belief ------------------------------------------------------------------------------------


@pytest.mark.parametrize("queue", [(), (0,), (1, 0), (1, 1, 0, 1)])
def test_a_forecast_is_the_product_of_the_transition_matrices(queue: tuple[int, ...]) -> None:
    mdp = random_mdp(states=4, successors=3, seed=2)
    expected = np.eye(4)[1]
    for a in queue:
        expected = expected @ mdp.transitions[:, a]
    found = Forecast(Sight(mdp.model()), mdp.law().__getitem__).after((1, None), queue)
    assert [found.get((s, None), 0.0) for s in range(4)] == pytest.approx(expected, abs=1e-14)


def test_a_forecast_runs_through_chance_states_and_keeps_what_has_ended() -> None:
    """Stock 1, order 1: closed with .1; else stock 2, and a demand of 1 comes with .75."""
    sight = Sight(Kiosk())
    forecast = Forecast(sight, LAW.__getitem__)
    once = {(None, "closed"): 0.1, (None, 2): 0.9 * 0.25, (None, 1): 0.9 * 0.75}
    assert forecast.after((None, 1), (1,)) == pytest.approx(once)
    twice = forecast.after((None, 1), (1, 1))
    assert twice[None, "closed"] == pytest.approx(0.1 + 0.9 * 0.1)
    assert sum(twice.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_the_base_is_retold_from_an_augmented_episode(delay_law: Any) -> None:
    late = DelayedMDP(two_state_chain(horizon=6), LATE, 2, delay_law=delay_law)
    sight = Sight(late.model())
    for episode in pkd.simulate(late, lambda h, x, y: h % 2, episodes=20):
        told = sight.retell(episode)
        assert [move.action for move in told] == [1, 0, 1, 0, 1, 0]
        assert told.total == pytest.approx(episode.total)
        pkd.OptimisticLearner(late.base, 1).check(told)


# -- planners --------------------------------------------------------------------------------------


def reference(problem: pkd.TabularMDP, delay: int, rule: str) -> float:
    """The value of a rule under a constant delay, from tables and without any code of agents."""
    P, r, H = problem.transitions, problem.rewards, problem.horizon
    S, A = r.shape
    Q, V = np.zeros((H, S, A)), np.zeros(S)
    for h in reversed(range(H)):
        Q[h] = r + P @ V
        V = Q[h].max(axis=1)

    def choose(h: int, shown: int, queue: tuple[int, ...]) -> int:
        b = np.eye(S)[shown]
        for a in queue:
            b = b @ P[:, a]
        weighed = {"qmdp": b @ Q[h], "mbs": Q[h][b.argmax()], "ignore": Q[h][shown]}
        return int(weighed[rule].argmax())

    def value(h: int, shown: int, queue: tuple[int, ...]) -> float:
        """What all actions from the shown state's own on will be paid."""
        if h == H:
            if not queue:
                return 0.0
            rest = P[shown, queue[0]] @ [value(h, s, queue[1:]) for s in range(S)]
            return float(r[shown, queue[0]] + rest)
        after = (*queue, choose(h, shown, queue))
        if len(after) <= delay and h + 1 < H:
            return value(h + 1, shown, after)
        rest = P[shown, after[0]] @ [value(h + 1, s, after[1:]) for s in range(S)]
        return float(r[shown, after[0]] + rest)

    return value(0, 0, ())


@pytest.mark.parametrize("rule", ["qmdp", "mbs", "ignore"])
@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_planner_is_worth_what_its_definition_says(rule: str, delay: int, seed: int) -> None:
    """On tables in which every state can occur at every step but the first."""
    problem = random_mdp(states=3, actions=3, horizon=5, successors=3, seed=seed)
    problem = pkd.TabularMDP(problem.transitions, problem.rewards, 5)
    kind = {"qmdp": QMDP, "mbs": ModelBasedSimulation, "ignore": IgnoreDelay}[rule]
    late = DelayedMDP.constant(problem, delay)
    assert worth(informed(kind, late), late) == pytest.approx(
        reference(problem, delay, rule), abs=1e-10
    )


@pytest.mark.parametrize("kind", PLANNERS)
@pytest.mark.parametrize("seed", range(3))
def test_without_delay_every_planner_is_optimal(kind: Any, seed: int) -> None:
    problem = random_mdp(seed=seed)
    optimum = pkd.plan(problem).value
    assert worth(informed(kind, problem), problem) == pytest.approx(optimum, abs=1e-12)
    at_once = DelayedMDP.constant(problem, 0)
    assert worth(informed(kind, at_once), at_once) == pytest.approx(optimum, abs=1e-12)


@pytest.mark.parametrize("kind", [ModelBasedSimulation, QMDP])
@pytest.mark.parametrize("law", [{2: 1.0}, LATE])
@pytest.mark.parametrize("seed", range(4))
def test_simulation_and_qmdp_are_optimal_on_deterministic_bases(
    kind: Any, law: Any, seed: int
) -> None:
    late = DelayedMDP(deterministic(seed), law, 2)
    optimum = pkd.plan(late).value
    assert optimum == pytest.approx(pkd.plan(late.mdp).value, abs=1e-12)  # delay costs nothing
    assert worth(informed(kind, late), late) == pytest.approx(optimum, abs=1e-12)


def test_ignoring_the_delay_is_not_optimal_on_deterministic_bases() -> None:
    late = DelayedMDP.constant(deterministic(1), 2)
    assert worth(informed(IgnoreDelay, late), late) < pkd.plan(late).value - 0.1


@pytest.mark.parametrize("kind", PLANNERS)
@pytest.mark.parametrize("seed", range(4))
def test_no_planner_beats_the_optimum(kind: Any, seed: int) -> None:
    late = DelayedMDP(random_mdp(states=4, actions=3, horizon=5, successors=2, seed=seed), LATE, 2)
    assert worth(informed(kind, late), late) <= pkd.plan(late).value + 1e-10


def test_ignoring_is_the_policy_of_the_demo() -> None:
    late = DelayedMDP(random_mdp(states=4, horizon=6, successors=2), LATE, 2)
    blind = Blind(late.known(), pkd.plan(late.base, late.base_law))
    assert worth(informed(IgnoreDelay, late), late) == pytest.approx(
        float(pkd.evaluate(late, blind)), abs=1e-12
    )


@pytest.mark.parametrize("kind", PLANNERS)
def test_a_planner_is_worth_the_same_whether_the_delay_law_is_known_or_not(kind: Any) -> None:
    mdp = random_mdp(states=3, horizon=5, successors=2, seed=4)
    known, unknown = (
        DelayedMDP(mdp, LATE, 2, delay_law=word)  # type: ignore[arg-type]
        for word in ("known", "unknown")
    )
    assert worth(informed(kind, known), known) == pytest.approx(
        worth(informed(kind, unknown), unknown), abs=1e-12
    )


@pytest.mark.parametrize("kind", PLANNERS)
@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_a_planner_learns_to_act_as_if_it_knew_the_law(kind: Any, delay_law: Any) -> None:
    late = DelayedMDP(two_state_chain(horizon=6, stay=0.8), LATE, 2, delay_law=delay_law)
    agent = kind()
    play(agent, late, 300)
    assert worth(agent, late) == pytest.approx(worth(informed(kind, late), late), abs=1e-9)


def test_a_planner_that_was_not_told_the_law_says_so() -> None:
    with pytest.raises(pkd.ModelError, match="without the law"):
        QMDP(informed=True).begin(two_state_chain().model(), episodes=1, seed=0)


@pytest.mark.parametrize("kind", PLANNERS)
def test_a_planner_acts_where_the_base_may_have_ended(kind: Any) -> None:
    late = Delayed(gambler(goal=6, capital=3, horizon=4), {1: 1.0}, 1)
    assert worth(informed(kind, late), late) <= pkd.plan(late).value + 1e-12


def test_actions_that_are_not_on_offer_are_valued_by_what_is_done_instead() -> None:
    """In state 1 only "stay" is on offer, and it pays; "go" is then done as "stay"."""

    class Door(pkd.PartiallyKnownMDP):
        horizon = 3

        def start(self) -> Any:
            return 0, None

        def actions(self, x: Any, y: Any) -> Any:
            return ["stay", "go"] if x == 0 else ["stay"]

        def step(self, x: Any, y: Any, a: Any) -> Any:
            return [(1.0, None, (x, a))]

        def outcomes(self, z: Any) -> Any:
            return [0, 1]

        def reward(self, x: Any, y: Any, a: Any) -> float:
            return float(x)

    law = {(0, "stay"): {0: 1.0}, (0, "go"): {0: 0.25, 1: 0.75}, (1, "stay"): {1: 1.0}}
    late = Delayed((Door(), law), {1: 1.0}, 1, instead=lambda x, y, a: "stay")
    optimum = 0.75 + 0.75 + 0.25 * 0.75
    assert pkd.plan(late).value == pytest.approx(optimum)
    assert worth(informed(QMDP, late), late) == pytest.approx(optimum)
    # The most likely state is 1, where there is nothing to do but to stay.
    assert worth(informed(ModelBasedSimulation, late), late) == pytest.approx(0.75 + 0.75)


# -- Q-learners ------------------------------------------------------------------------------------


def best_memoryless(late: DelayedMDP) -> float:
    """The largest value of a map (step, shown state) -> action, by trying all of them."""
    sight, compiled = Sight(late.model()), pkd.compile(late.model())

    def act(choices: tuple[int, ...], h: int, x: Any, y: Any) -> int:
        return choices[2 * (h - 1) + sight.read(x, y)[0][0]]

    return max(
        float(pkd.evaluate(compiled, late.law(), partial(act, choices)))
        for choices in itertools.product(range(2), repeat=2 * late.base.horizon)
    )


def test_even_the_best_memoryless_policy_loses_under_delay() -> None:
    """Worked: whoever sees s_3 = 1 at step 4 must know whether the flip is already on its way."""
    late = DelayedMDP.constant(flip(horizon=5), 1)
    best, optimum = best_memoryless(late), pkd.plan(late).value
    assert (best, optimum) == (pytest.approx(3.768), pytest.approx(3.84))
    agent = MemorylessQ(epsilon=0.3, decay=0.0)
    play(agent, late, 4000, seed=1)
    agent.epsilon = 0.0
    agent.observe(pkd.Episode([]))
    assert worth(agent, late) <= best + 1e-12


def test_memoryless_q_learning_fails_where_q_learning_on_the_augmented_state_succeeds() -> None:
    late = DelayedMDP.constant(flip(horizon=8), 1)
    found = {}
    for kind in (MemorylessQ, rivals.QLearning):
        agent = kind(epsilon=0.5, decay=0.0)
        play(agent, late, 6000, seed=2)
        agent.epsilon = 0.0
        agent.observe(pkd.Episode([]))
        found[kind] = worth(agent, late)
    assert found[rivals.QLearning] > 0.98 * pkd.plan(late).value
    assert found[MemorylessQ] < found[rivals.QLearning] - 0.1


def test_a_memoryless_learner_sees_neither_queue_nor_counter() -> None:
    late = DelayedMDP(two_state_chain(horizon=4), LATE, 2)
    agent, model = MemorylessQ(), late.known()
    agent.begin(model, episodes=1, seed=0)
    assert agent.see(*model.place(1, None, (0, 1), 2)) == agent.see(*model.place(1, None, (), 0))


@pytest.mark.parametrize("law", [{2: 1.0}, LATE])
def test_the_values_of_dq_are_those_of_the_base_without_delay(law: Any) -> None:
    """Deterministic base, alpha = 1: they are exact once everything was tried often enough."""
    late = DelayedMDP(deterministic(3), law, 2)
    agent, plan = DelayAwareQ(decay=0.0, power=0.0), pkd.plan(late.mdp)
    play(agent, late, 3000)
    reached, rows = {0}, 0
    for _ in range(6):
        rows += len(reached)
        reached = {int(s) for s in late.mdp.transitions[list(reached)].argmax(axis=2).flat}
    assert len(agent.rows) == rows > 12
    for (h, (x, y)), row in agent.rows.items():
        assert row.q == [pytest.approx(q) for q in plan.values(h, x, y).values()]


def test_dq_acts_like_the_planner_that_ignores_the_delay() -> None:
    late = DelayedMDP.constant(deterministic(3), 2)
    agent = DelayAwareQ(epsilon=1.0, decay=0.0, power=0.0)
    play(agent, late, 3000)
    agent.epsilon = 0.0
    agent.observe(pkd.Episode([]))
    assert worth(agent, late) == pytest.approx(worth(informed(IgnoreDelay, late), late), abs=1e-9)


def test_dsarsa_credits_the_action_that_was_done_next() -> None:
    """Two episodes 0 -0-> 0 -1-> 0 of a base that pays 1 for action 1 at the second step only."""
    mdp = pkd.TabularMDP([[[1.0], [1.0]]], [[0.0, 1.0]], horizon=2)
    late = DelayedMDP.constant(mdp, 1)
    values = {}
    for on_policy in (False, True):
        agent = DelayAwareQ(on_policy=on_policy, epsilon=0.0, power=0.0)
        world = pkd.Simulator(late)
        agent.begin(late.known(), episodes=3, seed=0)
        for done in [(0, 1), (0, 0), (0, 0)]:
            agent.observe(world.episode(lambda h, x, y, done=done: done[h - 1]))
        values[on_policy] = agent.rows[1, (0, None)].q[0]
    assert values == {False: 1.0, True: 0.0}


# -- Chen et al. -----------------------------------------------------------------------------------


def test_chen_on_an_unknown_delay_is_the_generic_algorithm_with_its_bonus() -> None:
    late = DelayedMDP(two_state_chain(horizon=4), LATE, 2, delay_law="unknown")
    agent, world = Chen2023(), pkd.Simulator(late)
    learner = pkd.OptimisticLearner(late.unknown(), 30, optimism=pkd.Hoeffding())
    agent.begin(late.unknown(), episodes=30, seed=0)
    for _ in range(30):
        episode = world.episode(agent.act)
        agent.observe(episode)
        learner.observe(episode)
    assert agent.learner.counts == learner.counts
    assert agent.policy().value == pytest.approx(learner.upper_value)  # type: ignore[union-attr]


def test_chen_forgets_a_known_law_and_counts_the_arrivals_that_it_sees() -> None:
    """Its estimate of an arrival approaches the hazard, although waiting is cut by clips."""
    late = DelayedMDP(two_state_chain(horizon=10), {0: 0.5, 1: 0.25, 2: 0.25}, 3)
    agent = Chen2023(optimism="greedy")
    play(agent, late, 2000)
    truth = DelayedMDP(late.mdp, {0: 0.5, 1: 0.25, 2: 0.25}, 3, delay_law="unknown").law()
    counts = {z: row for z, row in agent.learner.counts.items() if hasattr(z, "waited")}
    seen = {z: sum(row.values()) for z, row in counts.items() if sum(row.values()) > 100}
    assert {z.waited for z in seen} == {-1, 0, 1}
    for z, n in seen.items():
        for x, p in truth(z).items():
            assert counts[z].get(x, 0.0) / n == pytest.approx(p, abs=4 * (p * (1 - p) / n) ** 0.5)


def test_a_law_that_is_forgotten_changes_no_value() -> None:
    late = DelayedMDP(two_state_chain(horizon=5), LATE, 2)
    own = _Unaware(late.known())
    assert isinstance(own, UnknownDelay)
    assert pkd.plan(own, late.law()).value == pytest.approx(pkd.plan(late).value, abs=1e-12)


@pytest.mark.parametrize("delay_law", ["known", "unknown"])
def test_chen_learns_the_optimum_with_a_small_bonus(delay_law: Any) -> None:
    late = DelayedMDP(two_state_chain(horizon=5, stay=0.8), LATE, 2, delay_law=delay_law)
    agent = Chen2023(optimism={"rule": "hoeffding", "c": 0.1, "log_factor": 1.0})
    play(agent, late, 500)
    assert worth(agent, late) == pytest.approx(pkd.plan(late).value, abs=1e-3)


# -- all of them -----------------------------------------------------------------------------------

HALF = {"epsilon": 0.5, "decay": 0.0}


@pytest.mark.parametrize(
    "agent",
    [
        rivals.QLearning(**HALF),
        rivals.OptimisticQ(c=0.01),
        rivals.OptimisticQ(bonus="bernstein", c1=0.01, c2=0.02),
        rivals.PerState(optimism="practical"),
        ModelBasedSimulation(),
        QMDP(),
        MemorylessQ(**HALF),
        DelayAwareQ(**HALF),
        DelayAwareQ(on_policy=True, epsilon=0.1, decay=0.0),
        IgnoreDelay(),
        Chen2023(optimism={"rule": "hoeffding", "c": 0.1, "log_factor": 1.0}),
        rivals.Oracle(),
    ],
    ids=lambda agent: agent.label,
)
def test_every_rival_beats_random_play_where_old_states_are_worth_something(
    agent: pkd.Agent,
) -> None:
    """The chain stays with .9: naming the last shown state is right most of the time."""
    late = DelayedMDP(two_state_chain(horizon=6), LATE, 2)
    play(agent, late, 1500, seed=1)
    if isinstance(agent, rivals.QLearning):
        agent.epsilon = 0.0
        agent.observe(pkd.Episode([]))
    assert worth(agent, late) > 3.0 + 1.0  # random play names half of the states
