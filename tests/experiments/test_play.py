"""An agent plays a model: regret, errors, and the same bits as the parts it is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pkd
from pkd.engine import Compiled

TOSS, STAY = [0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]]


def coin(horizon: int = 3) -> pkd.TabularMDP:
    """Action 0 tosses, action 1 leaves the coin as it lies; heads pay 1; the optimum is 1.25."""
    rows = [[TOSS, STAY[0]], [TOSS, STAY[1]]]
    return pkd.TabularMDP(rows, [[0.0, 0.0], [1.0, 1.0]], horizon)


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
    record = pkd.play(coin(), Fixed(switch=3), 5)
    assert record.regret_is == "exact"
    # Three episodes without a toss lose all of 1.25, the others nothing.
    assert record.regret.tolist() == [1.25, 2.5, 3.75, 3.75, 3.75]
    assert record.optimal_value == 1.25


def test_regret_is_estimated_from_returns_where_it_does_not() -> None:
    record = pkd.play(coin(), Fixed(show=False), 400, seed=3)
    assert record.regret_is == "estimated"
    assert record.regret.tolist() == np.cumsum(1.25 - record.returns).tolist()
    # The policy is optimal; returns are 0, 1 and 2 with probability 1/4, 1/4, 1/2.
    assert abs(record.regret[-1] / 400) < 4 * 0.83 / 20


def test_a_policy_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    evaluate = pkd.evaluate

    def count(*args: Any) -> Any:
        asked.append(1)
        return evaluate(*args)

    monkeypatch.setattr("pkd.experiments.play.evaluate", count)
    pkd.play(coin(), Fixed(switch=10), 40)
    assert len(asked) == 2  # one for each of its two policies


def test_the_law_is_tabulated_once_for_all_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, truth = [], Compiled.truth
    monkeypatch.setattr(Compiled, "truth", lambda self, law: asked.append(1) or truth(self, law))
    pkd.play(coin(), Fixed(show=False), 50)
    assert len(asked) == 1


def test_an_agent_plays_the_episodes_of_the_simulator() -> None:
    world = pkd.Simulator(coin(), seed=8)
    expected = [world.episode(_toss).total for _ in range(50)]
    assert pkd.play(coin(), Fixed(), 50, seed=8).returns.tolist() == expected


@pytest.mark.parametrize("rule", [pkd.MVP.practical(), pkd.PosteriorSampling(), pkd.Certified()])
def test_a_rule_gives_the_bits_of_learn(rule: pkd.Optimism) -> None:
    run = pkd.learn(coin(), 300, optimism=rule, seed=4)
    record = pkd.play(coin(), rule, 300, seed=4)
    for name in ("policy_values", "returns", "upper_values", "plans"):
        assert np.array_equal(getattr(run, name), getattr(record, name)), name
    assert record.regret_is == "exact"
    assert record.guarantee == rule.guarantee
    assert record.violations == run.violations


def test_the_given_agent_stays_as_it_is() -> None:
    agent = Fixed()
    pkd.play(coin(), agent, 5)
    assert agent.seen == 0


def test_an_oracle_is_told_the_law() -> None:
    class Oracle(Fixed):
        knows_law = True

        def inform(self, law: pkd.Law) -> None:
            assert law[0, 0] == {0: 0.5, 1: 0.5}  # type: ignore[index]
            self.told = True

        def begin(self, model: pkd.PartiallyKnownMDP, *, episodes: int, seed: int) -> None:
            assert self.told

    assert pkd.play(coin(), Oracle(), 3).regret[-1] == 0


def test_an_agent_that_raises_is_named_with_episode_and_step() -> None:
    class Clumsy(Fixed):
        def act(self, h: int, x: Any, y: Any) -> Any:
            if self.seen == 1 and h == 2:
                raise KeyError("lost")
            return 1

    said = r"agent Clumsy, episode 2: act raised KeyError: 'lost' at step 2 in \(x=0, y=None\)"
    with pytest.raises(pkd.ModelError, match=said):
        pkd.play(coin(), Clumsy(show=False), 4)


def test_an_action_that_is_not_on_offer_is_named_with_agent_and_episode() -> None:
    class Wild(Fixed):
        def act(self, h: int, x: Any, y: Any) -> Any:
            return 7

    said = r"agent Wild, episode 1: the policy takes 7 at step 1"
    with pytest.raises(pkd.ModelError, match=said):
        pkd.play(coin(), Wild(show=False), 4)


@pytest.mark.parametrize("method", ["begin", "observe", "policy"])
def test_every_method_that_raises_is_named(method: str) -> None:
    def fail(*args: Any, **options: Any) -> Any:
        raise RuntimeError("no")

    broken = type("Broken", (Fixed,), {method: fail})
    with pytest.raises(pkd.ModelError, match=f"agent Broken.*: {method} raised RuntimeError: no"):
        pkd.play(coin(), broken(), 4)
