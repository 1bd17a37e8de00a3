"""Agents for any model: the floor, the ceiling, and rules of optimism on counts per state."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest

import pkd
import pkd_delay
from pkd.experiments import rivals
from pkd.experiments.grid import make_agent
from pkd.problem import as_model
from pkd.rules import RULES, as_rule
from pkd_delay.models.tables import random_mdp, riverswim, two_state_chain
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory
from tests.kiosk import LAW, Kiosk
from tests.rival_play import play, worth

REGISTERED = {point.name: point for point in entry_points(group="pkd.agents")}


TIPS = {"guest": {0: 0.5, 1: 0.5}, "tip": {0.0: 0.5, 4.0: 0.5}}


class Tips(pkd.PartiallyKnownMDP):
    """Serve (1) or rest (0); the tip for serving is unknown and the guest is polite or not."""

    horizon = 3

    def start(self) -> Any:
        return 0, 0

    def actions(self, x: Any, y: Any) -> Any:
        return [0, 1]

    def step(self, x: Any, y: Any, a: Any) -> Any:
        return [(1.0, a, "guest")]

    def outcomes(self, z: Any) -> Any:
        return [0, 1]

    def reward(self, x: Any, y: Any, a: Any) -> Any:
        return pkd.UnknownReward("tip", 0.0, 4.0) if a == 1 and x == 1 else float(a == 0) / 4


def problems() -> Iterator[Any]:
    """Tables, CHANCE states, early ends, unknown rewards, known and unknown delays."""
    chain = two_state_chain(horizon=4)
    late = {-1: 0.2, 0: 0.4, 1: 0.4}
    yield pytest.param(chain, id="table")
    yield pytest.param((Kiosk(), LAW), id="chance, end and final pay")
    yield pytest.param((Tips(), TIPS), id="unknown reward")
    yield pytest.param(gambler(goal=6, capital=3, horizon=4), id="early end")
    yield pytest.param(pkd_delay.DelayedMDP(chain, late, 2), id="known delay")
    yield pytest.param(pkd_delay.DelayedMDP(chain, late, 2, delay_law="unknown"), id="unknown")
    stock = inventory(horizon=3, capacity=3, max_order=2, max_demand=2)
    yield pytest.param(pkd_delay.Delayed(stock, late, 1), id="late inventory")
    game = gambler(goal=6, capital=3, horizon=4)
    yield pytest.param(pkd_delay.Delayed(game, late, 1), id="late early end")


@pytest.mark.parametrize("problem", list(problems()))
@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_a_registered_agent_plays_every_kind_of_model_as_its_policy_says(
    name: str, problem: Any
) -> None:
    agent = REGISTERED[name].load()()
    model = as_model(problem)
    if name == "chen2023" and not hasattr(model, "max_delay"):
        with pytest.raises(pkd.ModelError, match="expected a KnownDelay or an UnknownDelay"):
            agent.begin(model, episodes=1, seed=0)
        return
    play(agent, problem, 12, check=True)
    assert worth(agent, problem) <= pkd.plan(problem).value + 1e-9


@pytest.mark.parametrize("name", sorted(REGISTERED))
def test_the_same_seed_gives_the_same_returns(name: str) -> None:
    late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=5, stay=0.7), 1)
    first, second = (play(REGISTERED[name].load()(), late, 40, seed=3) for _ in range(2))
    assert np.array_equal(first, second)


def test_an_episode_without_decisions_teaches_nothing_and_hurts_nobody() -> None:
    """The gambler who starts at the goal has won already."""
    won = gambler(goal=4, capital=4, horizon=2)
    for name, point in REGISTERED.items():
        if name != "chen2023":
            assert play(point.load()(), won, 3).tolist() == [1.0] * 3, name


def test_an_agent_can_begin_again_and_remembers_nothing() -> None:
    chain = two_state_chain(horizon=4)
    for name, point in REGISTERED.items():
        problem = pkd_delay.DelayedMDP.constant(chain, 1)
        agent = point.load()()
        first = play(agent, problem, 30, seed=5)
        assert np.array_equal(first, play(agent, problem, 30, seed=5)), name


@pytest.mark.parametrize("seed", range(4))
def test_the_value_of_the_oracle_is_that_of_the_plan(seed: int) -> None:
    problem = random_mdp(seed=seed)
    agent = rivals.Oracle()
    play(agent, problem, 1)
    assert worth(agent, problem) == pytest.approx(pkd.plan(problem).value, abs=1e-12)


def test_an_oracle_that_was_not_told_the_law_says_so() -> None:
    with pytest.raises(pkd.ModelError, match="call inform"):
        rivals.Oracle().begin(two_state_chain().model(), episodes=1, seed=0)


def test_random_play_is_worth_the_mean_over_all_policies() -> None:
    """Its actions do not depend on the state, so it names each state with probability 1/2."""
    agent = rivals.RandomPlay()
    play(agent, two_state_chain(horizon=10), 1)
    assert worth(agent, two_state_chain(horizon=10)) == pytest.approx(5.0, abs=1e-12)


def test_random_play_earns_what_its_policy_is_worth() -> None:
    problem = riverswim(horizon=5, length=3)
    agent = rivals.RandomPlay()
    returns = play(agent, problem, 4000)
    error = returns.std() / np.sqrt(len(returns))
    assert abs(returns.mean() - worth(agent, problem)) < 4 * error


def test_counts_per_state_of_a_table_are_those_of_the_model() -> None:
    """A table shares nothing between states, so forgetting phi_Z changes no plan."""
    problem = random_mdp(states=4, horizon=4, successors=3)
    rule = pkd.MVP.practical()
    agent = rivals.PerState(optimism=rule)
    learner = pkd.OptimisticLearner(problem.model(), 60, optimism=rule)
    world = pkd.Simulator(problem)
    agent.begin(problem.model(), episodes=60, seed=0)
    for _ in range(60):
        assert agent.policy().value == pytest.approx(learner.upper_value, abs=1e-12)
        episode = world.episode(agent.act)
        agent.observe(episode)
        learner.observe(episode)


def test_counts_per_state_have_a_logarithm_of_their_own_sizes() -> None:
    """ell = min(log(32 H^2 |Z| K / delta), B log(32 H B |Z| K / delta)), no factor |Y|."""
    late = pkd_delay.DelayedMDP(two_state_chain(horizon=4), {-1: 0.2, 0: 0.4, 1: 0.4}, 2)
    compiled = pkd.compile(rivals.CountsPerState(late.known()))
    belief = compiled.optimistic(pkd.MVP().bonus(), 100, 0.05)
    size = len(compiled.features)
    expected = np.log(32 * 4**2 * size * 100 / 0.05)
    assert size > 8
    assert compiled.n_y > 1
    assert belief.ell == pytest.approx(np.full_like(belief.ell, expected), rel=1e-12)


def test_a_model_that_counts_per_state_shares_its_unknown_rewards() -> None:
    own = rivals.CountsPerState(Tips())
    pkd.check_model(own, own.law(TIPS))
    assert pkd.plan(own, own.law(TIPS)).value == pytest.approx(
        pkd.plan(Tips(), TIPS).value, abs=1e-12
    )


def test_a_rule_on_counts_per_state_keeps_its_guarantee() -> None:
    assert rivals.PerState(optimism=pkd.MVP()).guarantee == "as published"
    assert rivals.PerState(optimism="practical").guarantee == "no guarantee"


def test_a_rule_can_be_given_by_name_or_with_constants() -> None:
    assert as_rule("hoeffding") == pkd.Hoeffding()
    assert as_rule({"rule": "MVP", "c1": 2.0}) == pkd.MVP(c1=2.0)
    assert as_rule("practical") == pkd.MVP.practical()
    with pytest.raises(pkd.ModelError, match="optimism rule 'nothing' is unknown"):
        as_rule("nothing")


@pytest.mark.parametrize("name", list(RULES))
def test_a_rule_has_one_meaning_in_words_and_as_a_mapping(name: str) -> None:
    rule = as_rule(name)
    assert rule == as_rule({"rule": name}) == as_rule(rule.to_config()) == make_agent(name)


def test_every_wrong_constant_of_a_mapping_is_named() -> None:
    with pytest.raises(pkd.ModelError) as caught:
        as_rule({"rule": "mvp", "c9": 1, "monotone": 2})
    assert len(caught.value.findings) == 2


@pytest.mark.parametrize("optimism", ["mvp", "hoeffding", "practical", "greedy"])
def test_every_rule_runs_on_counts_per_state(optimism: str) -> None:
    play(rivals.PerState(optimism=optimism), two_state_chain(horizon=3), 20, check=True)


def test_counts_per_state_learn_the_optimum() -> None:
    late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4, stay=0.2), 1)
    agent = rivals.PerState(optimism="practical")
    play(agent, late, 1000)
    assert worth(agent, late) == pytest.approx(pkd.plan(late).value, abs=1e-9)


def test_sharing_features_beats_counts_per_state() -> None:
    """Both have the same rule; one learns 8 features, the other every augmented state by itself."""
    late = pkd_delay.DelayedMDP.constant(random_mdp(states=4, horizon=6, successors=2, seed=3), 2)
    rule = pkd.MVP.practical()
    alone = play(rivals.PerState(optimism=rule), late, 400, seed=1).sum()
    shared = pkd.learn(late, 400, optimism=rule, seed=1).returns.sum()
    assert shared > alone


def test_a_bad_option_of_an_agent_is_named() -> None:
    with pytest.raises(pkd.ModelError, match="PerState: delta is 2; expected a number between"):
        rivals.PerState(delta=2)
    with pytest.raises(pkd.ModelError, match="replan is 'never'; expected auto, doubling"):
        rivals.PerState(replan="never")
