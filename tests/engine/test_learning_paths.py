"""The same run by different paths: fused, on nodes, on stripes, resumed, recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine.nodes.engine import NodeEngine
from pkd.episode import list_samples
from pkd.learning import learn as learning
from pkd.planning.plan import seed_words
from pkd_delay import DelayedMDP
from pkd_delay.hindsight import HindsightPlayer
from tests.queue_strategies import build, random_shape
from tests.reference import Rule, replans
from tests.strategies import Shape
from tests.strategies import build as build_table

RULES = [pkd.MVP.practical(), pkd.Hoeffding(0.05), pkd.Greedy(), pkd.PosteriorSampling()]
both_engines = pytest.mark.parametrize("large", [False, True], ids=["nodes", "stripes"])


def delayed(horizon: int = 4, max_delay: int = 2) -> DelayedMDP:
    rng = np.random.default_rng(2)
    mdp = pkd.TabularMDP(rng.dirichlet(np.ones(3), (3, 2)), rng.random((3, 2)), horizon)
    return DelayedMDP(mdp, {-1: 0.2, 0: 0.4, 1: 0.4}, max_delay)


def bits(run: pkd.Run) -> Any:
    """Everything that a run recorded."""
    arrays = run.upper_values, run.policy_values, run.returns, run.plans
    return [array.tobytes() for array in arrays], run.counts, run.policy.choices.tobytes()


def problems() -> list[tuple[Any, Any]]:
    one = delayed()
    corners = {"chance": 0.3, "known": 0.3, "unknown_rewards": True, "settlement": True}
    tables = [build_table(Shape(seed, horizon=3, **corners))
              for seed in (1, 2)]  # fmt: skip
    queues = [build(random_shape(seed)) for seed in (12, 21, 33)]
    return [(one.known(), one.law()), *((case.model, case.law) for case in (*tables, *queues))]


@pytest.mark.parametrize("optimism", RULES, ids=lambda rule: type(rule).__name__)
def test_the_fused_loop_is_the_general_loop_bit_for_bit(
    optimism: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model, law in problems():
        compiled = pkd.compile(model, large=False)
        options: dict[str, Any] = {"replan": "every", "optimism": optimism, "seed": 5}
        fused = pkd.learn(compiled, law, 40, **options)
        with monkeypatch.context() as patch:
            patch.setattr(NodeEngine, "fused_loop", lambda self, trial: None)
            plain = pkd.learn(compiled, law, 40, **options)
        assert bits(fused) == bits(plain)
        assert len(fused.plans) == 40


@both_engines
def test_doubling_plans_when_a_count_has_doubled(large: bool) -> None:
    """Planned episodes follow from the counts of the episodes before them, whatever the engine."""
    for seed in (3, 12, 40):
        case = build_table(Shape(seed, horizon=3, chance=0.3, known=0.2, n_actions=2))
        compiled = pkd.compile(case.model, large=large)
        run = pkd.learn(compiled, case.law, 60, seed=1, optimism=pkd.MVP(0.1, 0.01))
        learner = learning.Learning(compiled, pkd.MVP(0.1, 0.01), 60, 0.05, 1, None)
        truth, samples = compiled.truth(case.law), []
        for k in range(60):
            if k in run.plans:
                learner.replan()
            before = learner.tally.counts.copy()
            compiled.episodes(
                truth.world, learner.policy, learner.tally, learner.rng, returns := np.zeros(1)
            )
            assert returns[0] == run.returns[k]
            seen = learner.tally.counts - before
            samples.append(
                [
                    (z, x)
                    for row, z in enumerate(compiled.features)
                    for x in compiled.outcomes[row]
                    for _ in range(int(seen[compiled.place(row, x)]))
                ]
            )
        expected = replans(case.model, samples, Rule("mvp", 0.1, 0.01), "doubling", 0.05)
        assert [k - 1 for k, _ in expected] == run.plans.tolist()
        uppers = [run.upper_values[k - 1] for k, _ in expected]
        assert uppers == pytest.approx([upper for _, upper in expected], abs=1e-9 * case.scale)


def count_samples(one: DelayedMDP, compiled: Any, policy: Any, episodes: int) -> Any:
    """What `samples` says of recorded episodes, per episode."""
    simulator = pkd.Simulator(compiled, one.law(), seed=8)
    tally, each = compiled.tally(), []
    for _ in range(episodes):
        before = tally.counts.copy()
        compiled.count(tally, list_samples(compiled.model, simulator.episode(policy)))
        each.append(tally.counts - before)
    return np.array(each)


def test_hindsight_on_stripes_teaches_what_samples_says() -> None:
    """Mean counts of compiled hindsight and of recorded episodes, within 5 errors."""
    one, episodes = delayed(5, 3), 2000
    model = one.unknown()
    engines = [pkd.compile(model, large=large) for large in (False, True)]
    means = {}
    for compiled in engines:
        plan = pkd.plan(compiled, one.law())
        world = compiled.truth(one.law()).world
        player, rng = HindsightPlayer(compiled, model, world, one.law().delay_of), seed_words(1)
        each = []
        for _ in range(episodes):
            tally, returns = compiled.tally(), np.zeros(1)
            player(plan.choices, tally, rng, returns)
            each.append(tally.counts)
        found = np.array(each)
        recorded = count_samples(one, compiled, plan.action, episodes)
        error = np.sqrt((found.var(axis=0) + recorded.var(axis=0)) / episodes)
        distance = np.abs(found.mean(axis=0) - recorded.mean(axis=0))
        assert (distance <= 5 * error + 1e-12).all()
        means[type(compiled).__name__] = {
            (z, x): (found.mean(axis=0)[compiled.place(row, x)], error[compiled.place(row, x)])
            for row, z in enumerate(compiled.features)
            for x in compiled.outcomes[row]
        }
    nodes, stripes = means.values()
    assert set(nodes) == set(stripes)
    for pair, (mean, error) in nodes.items():
        assert abs(mean - stripes[pair][0]) <= 5 * (error + stripes[pair][1]) + 1e-12


@both_engines
def test_a_run_teaches_as_many_moves_as_episodes_have(large: bool) -> None:
    """Hindsight counts the Delta of every action, also of those whose result was not seen."""
    one = delayed()
    compiled = pkd.compile(one.unknown(), large=large)
    run = pkd.learn(compiled, one.law(), 50, optimism=pkd.MVP.practical())
    moves = sum(
        n for z, row in run.counts.items() if type(z).__name__ == "Move" for n in row.values()
    )
    assert moves == 50 * one.known().horizon
