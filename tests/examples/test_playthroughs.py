"""One short episode per domain, told by hand.

It says what is chosen, what nature shows, what is paid, and which feature is learned from it. A row
is (action or None, x', y', reward, feature or KNOWN). The last number is what is paid where the
episode stops.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import pkd
from pkd import Queue
from pkd.episode import list_samples
from pkd.noise import Landing
from pkd.transforms.late_actions import OnWay
from pkd.transforms.missing import Since
from pkd_examples.admission import admission
from pkd_examples.battery import battery
from pkd_examples.blackjack import blackjack
from pkd_examples.gambler import gambler
from pkd_examples.inventory import inventory
from pkd_examples.kuhn import kuhn
from pkd_examples.late_actions import late_actions
from pkd_examples.maintenance import maintenance
from pkd_examples.missing import missing_observations
from pkd_examples.option import american_put
from pkd_examples.pricing import pricing
from pkd_examples.wind import wind

KNOWN = object()
NONE_YET = (0, False, 0)  # an empty hand of Blackjack
DOWN = math.exp(-0.2 * math.sqrt(1 / 2))  # one step of a tree with two steps in a year

EPISODES: dict[str, tuple[Any, list[tuple[Any, ...]], float]] = {
    # Monday: two in stock, three ordered for Tuesday, four customers. Tuesday: three arrive, one
    # customer. Two are left.
    "inventory": (
        inventory(horizon=2, stock=2, unit=0.5, fixed=2, holding=1, shortage=4, salvage=0.1),
        [
            (3, 4, (0, 2, Queue((3,))), -(0.5 * 3 + 2), 0),
            (None, None, (1, 0, Queue((3,))), -4 * 2, KNOWN),
            (0, 1, (1, 3, Queue((0,))), 0.0, 1),
            (None, None, (2, 2, Queue((0,))), -2.0, KNOWN),
        ],
        0.2,
    ),
    # Buy at 30, hold at 10, sell at 120 with a loss of a tenth.
    "battery": (
        battery(horizon=3),
        [
            ("buy", 0, (1, 1), -30.0, (0, 1)),
            ("hold", 4, (2, 1), 0.0, (1, 0)),
            ("sell", 2, (3, 0), 0.9 * 120, (2, 4)),
        ],
        0.0,
    ),
    # A customer who pays 4 comes and is accepted; the server stays busy, so the next one is turned
    # away.
    "admission": (
        admission(servers=1, horizon=2),
        [
            (None, 4, 1, 0.0, "payment"),
            ("accept", 8, 0, 4.0, "payment"),
            ("accept", 1, 0, 0.0, "payment"),
        ],
        0.0,
    ),
    # The share falls once and the put is exercised: 40 - 36 exp(-.2/sqrt(2)), discounted by half a
    # year at 6 percent.
    "option": (
        american_put(horizon=2),
        [
            ("hold", "down", Landing((0, 0), "hold"), 0.0, "move"),
            (None, None, (1, 0), 0.0, KNOWN),
            ("exercise", None, Landing((1, 0), "exercise"), 0.0, KNOWN),
            (None, None, "closed", math.exp(-0.03) * (40 - 36 * DOWN), KNOWN),
        ],
        0.0,
    ),
    # From 3 to 6 of 8, then a stake of 4 is cut to the missing 2.
    "gambler": (
        gambler(goal=8, capital=3, horizon=4),
        [
            (3, "heads", Landing(3, 3), 0.0, "coin"),
            (None, None, 6, 0.0, KNOWN),
            (4, "heads", Landing(6, 4), 0.0, "coin"),
            (None, None, 8, 0.0, KNOWN),
        ],
        1.0,
    ),
    # Ten and five against a six; a hit brings five. The dealer turns a ten, draws a three, and
    # loses to 20 with 19.
    "blackjack": (
        blackjack(),
        [
            (None, 10, Landing((NONE_YET, NONE_YET, False), None), 0.0, "deck"),
            (None, None, ((10, False, 1), NONE_YET, False), 0.0, KNOWN),
            (None, 5, Landing(((10, False, 1), NONE_YET, False), None), 0.0, "deck"),
            (None, None, ((15, False, 2), NONE_YET, False), 0.0, KNOWN),
            (None, 6, Landing(((15, False, 2), NONE_YET, False), None), 0.0, "deck"),
            (None, None, ((15, False, 2), (6, False, 1), False), 0.0, KNOWN),
            ("hit", 5, Landing(((15, False, 2), (6, False, 1), False), "hit"), 0.0, "deck"),
            (None, None, ((20, False, 3), (6, False, 1), False), 0.0, KNOWN),
            ("stick", None, Landing(((20, False, 3), (6, False, 1), False), "stick"), 0.0, KNOWN),
            (None, None, ((20, False, 3), (6, False, 1), True), 0.0, KNOWN),
            (None, 10, Landing(((20, False, 3), (6, False, 1), True), None), 0.0, "deck"),
            (None, None, ((20, False, 3), (16, False, 2), True), 0.0, KNOWN),
            (None, 3, Landing(((20, False, 3), (16, False, 2), True), None), 0.0, "deck"),
            (None, None, ((20, False, 3), (19, False, 3), True), 0.0, KNOWN),
        ],
        1.0,
    ),
    # A queen passes, the opponent bets, the queen calls and meets a king: two chips are lost.
    "kuhn": (
        kuhn(seat=1),
        [
            (None, "Q", Landing(("", ""), None), 0.0, KNOWN),
            (None, None, ("Q", ""), 0.0, KNOWN),
            ("pass", None, Landing(("Q", ""), "pass"), 0.0, KNOWN),
            (None, None, ("Q", "p"), 0.0, KNOWN),
            (None, "bet", Landing(("Q", "p"), None), 0.0, ("Q", "p")),
            (None, None, ("Q", "pb"), 0.0, KNOWN),
            ("bet", None, Landing(("Q", "pb"), "bet"), 0.0, KNOWN),
            (None, None, ("Q", "pbb"), 0.0, KNOWN),
            (None, "K", Landing(("Q", "pbb"), None), 0.0, ("Q", "pbb")),
            (None, None, "over", -2.0, KNOWN),
        ],
        0.0,
    ),
    # "Fill" is sent at once but the pump still idles; it obeys one step later. The middle level 2
    # pays 1, the top 4 pays 0.
    "late_actions": (
        late_actions(delay=1, levels=5, horizon=2),
        [
            (2, 2, OnWay(None, 1, Queue((2,)), 0, "acts"), 0.0, KNOWN),
            (None, 2, OnWay(None, 1, Queue((2,))), 1.0, (2, 1)),
            (0, 2, OnWay(None, 1, Queue((2, 0)), 0, "comes"), 0.0, KNOWN),
            (None, 2, OnWay(None, 2, Queue((0,)), 0, "acts"), 0.0, KNOWN),
            (None, 4, OnWay(None, 2, Queue((0,))), 1.0 - 0.1, (2, 2)),
        ],
        0.0,
    ),
    # The first level is not shown, and after the last action both moves are replayed.
    "missing_observations": (
        missing_observations(levels=5, horizon=2),
        [
            (1, 2, Since(None, Queue((1,))), 0.0, KNOWN),
            (2, 2, Since(None, Queue((1, 2)), "replays"), 0.0, KNOWN),
            (None, 3, Since(None, Queue((2,)), "replays"), 1.0, (2, 1)),
            (None, 4, Since(None, Queue()), 0.5 - 0.1, (3, 2)),
        ],
        0.0,
    ),
    # Out of the calm column, then one gust of two in the windy one.
    "wind": (
        wind(rows=7, regions=(0, 1, 0), first=(3, 0), goal=(5, 2), horizon=3),
        [
            ("right", 0, Landing((3, 0), "right"), 0.0, 0),
            (None, None, (3, 1), -1.0, KNOWN),
            ("right", 2, Landing((3, 1), "right"), 0.0, 1),
            (None, None, (5, 2), -1.0, KNOWN),
        ],
        0.0,
    ),
    # Nobody pays 5, then the only seat goes for 3.
    "pricing": (
        pricing(seats=1, horizon=3),
        [
            (5.0, 0, Landing(1, 5.0), 0.0, 5.0),
            (None, None, 1, 0.0, KNOWN),
            (3.0, 1, Landing(1, 3.0), 0.0, 3.0),
            (None, None, 0, 3.0, KNOWN),
        ],
        0.0,
    ),
    # The machine wears by two, earns an unknown amount, and is replaced.
    "maintenance": (
        maintenance(horizon=2),
        [
            ("run", 2, None, pkd.UnknownReward(("earns", 0), 0.0, 1.0), ("wear", 0)),
            ("replace", 0, None, -1.5, KNOWN),
        ],
        0.0,
    ),
}


@pytest.mark.parametrize("name", EPISODES)
def test_the_episode_unfolds_as_told(name: str) -> None:
    problem, rows, end = EPISODES[name]
    model = problem.model()
    start = model.start()
    x, y = next(iter(start)) if isinstance(start, dict) else start
    taken, moves, learned = 0, [], []
    for action, x_next, y_next, reward, feature in rows:
        choices = model.actions(x, y)
        assert choices is pkd.CHANCE if action is None else action in choices
        taken += action is not None
        branches = (model.step if taken < model.horizon else model.last_step)(x, y, action)
        (z,) = [z for p, y_there, z in branches if y_there == y_next and p > 0]
        assert x_next in (
            [there for there, _ in z.law] if isinstance(z, pkd.Known) else list(model.outcomes(z))
        )
        assert (KNOWN if isinstance(z, pkd.Known) else z) == feature
        paid = model.reward(x, y, action)
        assert paid == (reward if isinstance(reward, pkd.UnknownReward) else pytest.approx(reward))
        learned += [] if feature is KNOWN else [(feature, x_next)]
        moves.append(pkd.Transition(x, y, action, x_next, y_next))
        x, y = x_next, y_next
    assert model.actions(x, y) is pkd.END or (
        taken == model.horizon and model.actions(x, y) is not pkd.CHANCE
    )
    assert model.final(x, y) == pytest.approx(end)
    assert list(list_samples(model, pkd.Episode(moves))) == learned
