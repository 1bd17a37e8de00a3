"""Blackjack against Gymnasium's simulator and against the published basic strategy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pkd
from pkd_examples.blackjack import blackjack

RULES = [{"sab": True}, {"natural": True}, {}]


class FastCards:
    """Replaces numpy's generator in the simulator, whose `choice` takes most of the time.

    The rules stay those of Gymnasium.
    """

    def __init__(self, seed: int) -> None:
        self._uniform = iter(())
        self._rng = np.random.default_rng(seed)

    def choice(self, options: Any) -> Any:
        for u in self._uniform:
            return options[int(u * len(options))]
        self._uniform = iter(self._rng.random(100_000).tolist())
        return self.choice(options)


def simulated(plan: Any, hands: int, seed: int, **rules: bool) -> tuple[float, float]:
    """Mean and standard error of what the plan wins in Gymnasium's Blackjack-v1."""
    gymnasium = pytest.importorskip(
        "gymnasium", reason="Gymnasium holds the rules; install the test extra"
    )
    env = gymnasium.make("Blackjack-v1", **{"sab": False, "natural": False, **rules}).unwrapped
    env.np_random = FastCards(seed)
    best: dict[Any, int] = {}
    won = np.zeros(hands)
    for hand in range(hands):
        env.reset()
        dealer = (env.dealer[0], env.dealer[0] == 1, 1)
        over, h = False, 1
        while not over:
            state = (
                h,
                (
                    sum(env.player),
                    1 in env.player and sum(env.player) <= 11,
                    min(len(env.player), 3),
                ),
                dealer,
            )
            if state not in best:
                best[state] = int(plan.action(h, None, (*state[1:], False)) == "hit")
            _, won[hand], over, _, _ = env.step(best[state])
            h += 1
    return float(won.mean()), float(won.std() / np.sqrt(hands))


@pytest.mark.parametrize("rules", RULES)
def test_the_value_is_what_the_plan_wins_in_gymnasium(rules: dict[str, bool]) -> None:
    problem = blackjack(**rules)
    plan = pkd.plan(problem.model(), problem.law())
    mean, error = simulated(plan, 100_000, seed=1, **rules)
    assert abs(mean - plan.value) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES)
def test_the_value_is_what_the_plan_wins_in_a_million_hands(rules: dict[str, bool]) -> None:
    problem = blackjack(**rules)
    plan = pkd.plan(problem.model(), problem.law())
    mean, error = simulated(plan, 1_000_000, seed=2, **rules)
    assert abs(mean - plan.value) < 4 * error


def test_hard_hands_are_played_by_the_basic_strategy() -> None:
    # Without doubling and splitting: stand on 17 and more, on 13 to 16 against 2 to 6, on 12
    # against 4 to 6; hit all else.
    problem = blackjack()
    plan = pkd.plan(problem.model(), problem.law())
    for total in range(4, 21):
        for card in range(1, 11):
            stands = (
                total >= 17 or (total >= 13 and 2 <= card <= 6) or (total == 12 and 4 <= card <= 6)
            )
            assert plan.action(1, None, ((total, False, 2), (card, card == 1, 1), False)) == (
                "stick" if stands else "hit"
            )


def test_soft_hands_are_played_by_the_basic_strategy() -> None:
    # An ace and 2 to 6 is hit; an ace and 8 or more stands; an ace and 7 stands against 2 to 8 and
    # is hit against 9 and 10.
    problem = blackjack()
    plan = pkd.plan(problem.model(), problem.law())
    for second in range(2, 11):
        for card in range(2, 11):
            stands = second >= 8 or (second == 7 and card <= 8)
            assert plan.action(1, None, ((1 + second, True, 2), (card, False, 1), False)) == (
                "stick" if stands else "hit"
            )


def test_the_dealer_goes_bust_as_often_as_published() -> None:
    # By the card shown, for a dealer who stands on every 17 and an endless deck, as tables of the
    # game print them.
    published = {
        2: 0.3536,
        3: 0.3739,
        4: 0.3945,
        5: 0.4164,
        6: 0.4232,
        7: 0.2623,
        8: 0.2447,
        9: 0.2284,
        10: 0.2121,
        1: 0.1153,
    }
    model, deck = blackjack().model(), blackjack().law()["deck"]

    def bust(s: Any) -> float:
        if model.choices(s) is pkd.END:
            return float(s[1][0] > 21)
        return sum(p * bust(model.land(s, None, card)[1]) for card, p in deck.items())

    for card, p in published.items():
        assert bust(((20, False, 3), (card, card == 1, 1), True)) == pytest.approx(p, abs=6e-5)
