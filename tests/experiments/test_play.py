"""An agent plays a model: regret, errors, and the same bits as the parts it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine.table.engine import TableEngine
from pkd.experiments.play import World

TOSS, STAY = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]


def coin(horizon: int = 3) -> pkd.TabularMDP:
    """Action 0 tosses, action 1 leaves the coin as it lies; heads pay 1; the optimum is 1.25."""
    rows = [[TOSS, STAY[0]], [TOSS, STAY[1]]]
    return pkd.TabularMDP(rows, [[0.0, 0.0], [1.0, 1.0]], horizon)


def run(agent: Any, episodes: int, seed: int = 0) -> pkd.Run:
    return pkd.experiment(coin(), agent, episodes, seeds=[seed])[0]


class Fixed(pkd.Agent):
    """Tosses until heads, from the episode `switch` on; before it never."""

    def __init__(self, switch: int = 0, show: bool = True) -> None:
        self.switch, self.show, self.seen = switch, show, 0

    def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
        self.seen = 0

    def act(self, h: int, x: Any, y: Any) -> Any:
        return 1 if self.seen < self.switch else int(x)

    def observe(self, episode: pkd.Episode) -> None:
        self.seen += 1

    def policy(self) -> Any:
        if not self.show:
            return None
        return _stay if self.seen < self.switch else _toss


def _stay(h: int, x: Any, y: Any) -> int:
    return 1


def _toss(h: int, x: Any, y: Any) -> int:
    return int(x)


def test_regret_is_exact_where_the_agent_shows_its_policy() -> None:
    found = run(Fixed(switch=3), 5)
    assert found.regret_is == "exact"
    # Three episodes without a toss lose all of 1.25, the others nothing.
    assert found.regret.tolist() == [1.25, 2.5, 3.75, 3.75, 3.75]
    assert found.optimal_value == 1.25


def test_regret_is_estimated_from_returns_where_it_does_not() -> None:
    found = run(Fixed(show=False), 400, 3)
    assert found.regret_is == "estimated"
    assert found.regret.tolist() == np.cumsum(1.25 - found.returns).tolist()
    # The policy is optimal; returns are 0, 1 and 2 with probability 1/4, 1/4, 1/2.
    assert abs(found.regret[-1] / 400) < 4 * 0.83 / 20


def test_a_policy_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, evaluate = [], World._evaluate

    def count(*args: Any) -> Any:
        asked.append(1)
        return evaluate(*args)

    monkeypatch.setattr(World, "_evaluate", count)
    run(Fixed(switch=10), 40)
    assert len(asked) == 2  # one for each of its two policies


def test_the_law_is_tabulated_once_for_all_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, truth = [], TableEngine.truth
    monkeypatch.setattr(TableEngine, "truth", lambda self, law: asked.append(1) or truth(self, law))
    run(Fixed(show=False), 50)
    assert len(asked) == 1


def test_an_agent_plays_the_episodes_of_the_simulator() -> None:
    world = pkd.Simulator(coin(), seed=8)
    expected = [world.episode(_toss).total for _ in range(50)]
    assert run(Fixed(), 50, 8).returns.tolist() == expected


@pytest.mark.parametrize("rule", [pkd.MVP.practical(), pkd.PosteriorSampling(), pkd.Certified()])
def test_a_rule_gives_the_bits_of_learn(rule: pkd.Optimism) -> None:
    learned = pkd.learn(coin(), 300, optimism=rule, seed=4)
    found = run(rule, 300, 4)
    for name in ("policy_values", "returns", "upper_values", "plans"):
        assert np.array_equal(getattr(learned, name), getattr(found, name)), name
    assert found.regret_is == "exact"
    assert found.guarantee == rule.guarantee
    assert found.violations == learned.violations


def test_the_given_agent_stays_as_it_is() -> None:
    agent = Fixed()
    run(agent, 5)
    assert agent.seen == 0


def test_an_oracle_is_told_the_law() -> None:
    class Oracle(Fixed):
        knows_law = True

        def inform(self, law: pkd.Law) -> None:
            assert law[0, 0] == {0: 0.5, 1: 0.5}  # type: ignore[index]
            self.told = True

        def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
            assert self.told

    assert run(Oracle(), 3).regret[-1] == 0


def test_an_agent_that_raises_is_named_with_episode_and_step() -> None:
    class Clumsy(Fixed):
        def act(self, h: int, x: Any, y: Any) -> Any:
            if self.seen == 1 and h == 2:
                raise KeyError("lost")
            return 1

    said = r"agent Clumsy, episode 2: act raised KeyError: 'lost' at step 2 in \(x=0, y=None\)"
    with pytest.raises(pkd.ModelError, match=said):
        run(Clumsy(show=False), 4)


def test_an_action_that_is_not_on_offer_is_named_with_agent_and_episode() -> None:
    class Wild(Fixed):
        def act(self, h: int, x: Any, y: Any) -> Any:
            return 7

    said = r"agent Wild, episode 1: the policy takes 7, expected one of \[0, 1\], at step 1"
    with pytest.raises(pkd.ModelError, match=said):
        run(Wild(show=False), 4)


@pytest.mark.parametrize("method", ["begin", "observe", "policy"])
def test_every_method_that_raises_is_named(method: str) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no")

    broken = type("Broken", (Fixed,), {method: fail})
    with pytest.raises(pkd.ModelError, match=f"agent Broken.*: {method} raised RuntimeError: no"):
        run(broken(), 4)


class Liar(Fixed):
    """Shows the best policy and never tosses."""

    def __init__(self, honest: int = 0) -> None:
        super().__init__(switch=10**9)
        self.honest = honest

    def act(self, h: int, x: Any, y: Any) -> Any:
        return int(x) if self.seen < self.honest else 1

    def policy(self) -> Any:
        return _toss


@pytest.mark.parametrize("honest", [0, 17])
def test_an_agent_that_shows_another_policy_than_it_plays_is_found_out(honest: int) -> None:
    said = r"shows a policy that does 0 and does 1 at step 1 in \(x=0, y=None\) of episode"
    with pytest.warns(UserWarning, match=said):
        found = run(Liar(honest), 40)
    assert found.regret_is == "estimated"
    assert found.regret[-1] > 10  # the shown policy would have none
    assert "its regret is estimated" in found.config["remark"]


def test_returns_betray_a_random_policy_that_is_not_played() -> None:
    class Weighs(Liar):
        """Says that it tosses half of the time; it never does."""

        def policy(self) -> Any:
            return _half

    with pytest.warns(UserWarning, match=r"earns -0.6.* per episode beside what the policies"):
        assert run(Weighs(), 400).regret_is == "estimated"


def _half(h: int, x: Any, y: Any) -> dict[int, float]:
    return {0: 0.5, 1: 0.5}


@pytest.mark.parametrize("name", ["random", "ucbvi", "q_learning", "optimistic_q", "per_state"])
@pytest.mark.filterwarnings("error")
def test_honest_agents_get_no_warning(name: str) -> None:
    assert run(name, 400, 1).regret_is == "exact"


def test_a_plan_of_an_agent_is_evaluated_by_one_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled model of `begin` is that of the run, so that no state is asked one by one."""

    class Planner(Fixed):
        def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
            self.learner = pkd.OptimisticLearner(self.compile(model), optimism="greedy")

        def act(self, h: int, x: Any, y: Any) -> Any:
            return self.learner.act(h, x, y)

        def observe(self, episode: pkd.Episode) -> None:
            self.learner.observe(episode)

        def policy(self) -> Any:
            return self.learner.plan

    monkeypatch.setattr("pkd.experiments.play.refuse_weights", None)
    compiled = []
    monkeypatch.setattr("pkd.experiments.agent.compile", lambda model: compiled.append(model))
    found = run(Planner(), 60, 2)
    assert found.regret_is == "exact"
    assert compiled == []


@pytest.mark.parametrize("seed", [np.random.default_rng(0), 1.5, -1, None, "3", True])
def test_a_seed_that_is_no_whole_number_is_refused_in_one_line(seed: Any) -> None:
    for call in (
        lambda: pkd.learn(coin(), 5, seed=seed),
        lambda: pkd.Simulator(coin(), seed=seed),
        lambda: pkd.OptimisticLearner(coin().model(), seed=seed),
        lambda: pkd.optimistic_plan(coin().model(), {}, episodes=3, seed=seed),
    ):
        with pytest.raises(pkd.ModelError, match=r"^seed is .*; expected a whole number >= 0"):
            call()
    assert pkd.learn(coin(), 5, seed=np.int64(3)).config["seed"] == 3


def test_the_name_of_a_rule_works_wherever_a_rule_does() -> None:
    model, rule = coin().model(), pkd.MVP.practical()
    given = [
        (pkd.learn(coin(), 50, optimism=one).returns.tolist(),
         pkd.OptimisticLearner(model, optimism=one).upper_value,
         pkd.optimistic_plan(model, {}, episodes=9, optimism=one).value)
        for one in ("practical", rule, {"rule": "mvp", "c1": 0.5, "c2": 0.25, "log_factor": 1.0})
    ]  # fmt: skip
    assert given[0] == given[1] == given[2]
    with pytest.raises(pkd.ModelError, match="optimism is 3; expected a rule such as"):
        pkd.learn(coin(), 5, optimism=3)  # type: ignore[arg-type]
