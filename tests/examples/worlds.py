"""The true MDP of every shipped domain, written from its story and not from its model.

    truth(x, y, a) -> {(x', y'): probability}

The instances are small, so that every state can be visited. Where a model is a `NoiseMDP`, its
states between an action and its effect are `Landing(s, a)`. The truth is then given by the law of
the noise and by where it lands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from scipy import stats

from pkd import Queue
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
from pkd_examples.problem import Problem
from pkd_examples.tank import tank
from pkd_examples.wind import wind

Truth = Callable[[Any, Any, Any], dict[Any, float]]

MEANS = (1.0, 3.0, 0.5)
TRAVEL = {0: 0.3, 1: 0.2, 2: 0.5}


def shipped() -> dict[str, tuple[Any, Truth]]:
    """Each entry point by its name, with its truth."""
    return {
        "inventory": (
            inventory(demand=MEANS, horizon=5, capacity=4, max_order=2, max_demand=4, stock=1),
            inventory_truth,
        ),
        "battery": (battery(horizon=6, hours=4, capacity=2, prices=(1.0, 2.0, 5.0)), battery_truth),
        "admission": (admission(servers=3, free=0.2, horizon=5), admission_truth),
        "option": (american_put(horizon=6), option_truth),
        "gambler": (gambler(goal=8, capital=3, horizon=5), gambler_truth),
        "blackjack": (blackjack(), blackjack_truth),
        "kuhn": (kuhn(seat=1, bluff=0.25, call=0.5), kuhn_truth),
        "late_actions": (late_actions(delay=TRAVEL, levels=5, horizon=4), late_truth),
        "missing_observations": (
            missing_observations(shown=0.6, longest=2, levels=5, horizon=4),
            missing_truth,
        ),
        "wind": (
            wind(rows=4, regions=(0, 1, 2, 0), first=(1, 0), goal=(1, 3), horizon=6),
            wind_truth,
        ),
        "pricing": (pricing(horizon=4, seats=2), pricing_truth),
        "maintenance": (maintenance(horizon=5), maintenance_truth),
        "tank": (
            tank(levels=5, horizon=4),
            lambda x, y, a: {(level, y): p for level, p in tank_moves(x, a).items()},
        ),
    }


def noisy(
    noise: Callable[[Any, Any], dict[Any, float]], lands: Callable[[Any, Any, Any], Any]
) -> Truth:
    """The truth of s' = lands(s, a, w) with w ~ noise(s, a)."""

    def truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
        if isinstance(y, Landing):
            return {(None, lands(y.state, y.action, x)): 1.0}
        return {(w, Landing(y, a)): p for w, p in noise(y, a).items()}

    return truth


def inventory_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    day, stock, (coming,) = y
    if x is None:
        demand = {n: float(stats.poisson.pmf(n, MEANS[day])) for n in range(4)} | {
            4: float(stats.poisson.sf(3, MEANS[day]))
        }
        return {(n, (day, min(stock + coming, 4), (a,))): p for n, p in demand.items()}
    return {(None, ((day + 1) % 3, max(stock - x, 0), (coming,))): 1.0}


def battery_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    hour, charge = y
    level = max(0, min(2, charge + {"buy": 1, "hold": 0, "sell": -1}[a]))
    time = (hour + 1) % 4 * 6
    usual = 2 * min(
        1.0, 0.7 * math.exp(-((time - 8) ** 2) / 8) + math.exp(-((time - 19) ** 2) / 10)
    )
    density = [float(stats.norm.pdf(price, 0.6 * x + 0.4 * usual, 0.7)) for price in range(3)]
    return {(price, ((hour + 1) % 4, level)): d / sum(density) for price, d in enumerate(density)}


def admission_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    if x is None:
        return {(pays, y): 0.25 for pays in (1, 2, 4, 8)}
    taken = 1 if a == "accept" and y > 0 else 0
    busy = 3 - y + taken
    return {
        (pays, 3 - busy + k): 0.25 * float(stats.binom.pmf(k, busy, 0.2))
        for pays in (1, 2, 4, 8)
        for k in range(busy + 1)
    }


def _option_noise(s: Any, a: Any) -> dict[Any, float]:
    up = math.exp(0.2 * math.sqrt(1 / 6))
    p = (math.exp(0.06 / 6) - 1 / up) / (up - 1 / up)
    return {None: 1.0} if a == "exercise" else {"up": p, "down": 1 - p}


option_truth = noisy(
    _option_noise, lambda s, a, w: "closed" if a == "exercise" else (s[0] + 1, s[1] + (w == "up"))
)

gambler_truth = noisy(
    lambda s, a: {"heads": 0.4, "tails": 0.6},
    lambda s, a, w: s + min(a, s, 8 - s) * (1 if w == "heads" else -1),
)


def _blackjack_lands(s: Any, a: Any, card: Any) -> Any:
    (total, ace, cards), (shown, dealer_ace, dealer_cards), stuck = s
    if a == "stick":
        natural = (total, ace, cards) == (11, True, 2)
        best = total + 10 if ace else total
        return (
            ((total, ace, cards) if natural else (best, False, 3)),
            (shown, dealer_ace, dealer_cards),
            True,
        )
    if cards < 2 or (dealer_cards == 1 and not stuck):
        soft = (ace or card == 1) and total + card + 10 <= 21
        return (total + card, soft, min(cards + 1, 3)), (shown, dealer_ace, dealer_cards), stuck
    soft = (dealer_ace or card == 1) and shown + card + 10 <= 21
    return (total, ace, cards), (shown + card, soft, min(dealer_cards + 1, 3)), stuck


blackjack_truth = noisy(
    lambda s, a: (
        {None: 1.0} if a == "stick" else {c: (4 if c == 10 else 1) / 13 for c in range(1, 11)}
    ),
    _blackjack_lands,
)


def _kuhn_noise(s: Any, a: Any) -> dict[Any, float]:
    card, moves = s
    if not card:
        return {"J": 1 / 3, "Q": 1 / 3, "K": 1 / 3}
    if a is not None:
        return {None: 1.0}
    # The second player of the instance above, as a table (card, what we did) -> probability of a
    # bet or call.
    bets = {
        ("J", "p"): 0.25,
        ("Q", "p"): 0.0,
        ("K", "p"): 1.0,
        ("J", "b"): 0.0,
        ("Q", "b"): 0.5,
        ("K", "b"): 1.0,
    }
    others = [other for other in "JQK" if other != card]
    if len(moves) == 1:
        bet = sum(bets[other, moves] for other in others) / 2
        return {"bet": bet, "pass": 1 - bet}
    seen = {
        other: bets[other, moves[0]] if moves[1] == "b" else 1 - bets[other, moves[0]]
        for other in others
    }
    return {other: p / sum(seen.values()) for other, p in seen.items()}


def _kuhn_lands(s: Any, a: Any, w: Any) -> Any:
    card, moves = s
    if not card:
        return (w, "")
    if moves in ("pp", "bb", "pbb"):
        return "over"
    moves += "b" if "bet" in (a, w) else "p"
    return "over" if moves in ("bp", "pbp") else (card, moves)


kuhn_truth = noisy(_kuhn_noise, _kuhn_lands)


def tank_moves(level: int, command: int) -> dict[int, float]:
    """The law of the tank with five levels: the pump moves two, the inflow -1, 0 or 1."""
    law: dict[int, float] = {}
    for flow, p in ((-1, 0.3), (0, 0.4), (1, 0.3)):
        after = sorted((0, level + 2 * (command - 1) + flow, 4))[1]
        law[after] = law.get(after, 0.0) + p
    return law


def late_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    """Each command on its way comes or not, independently; then the oldest ones come first."""
    if y.phase == "acts":
        after = OnWay(None, y.in_force, y.queue)
        return {(level, after): p for level, p in tank_moves(x, y.in_force).items()}
    comes = y.phase == "comes"
    # In the phase "comes" at least one of them comes, so the oldest one does, or is overruled.
    before = (*y.queue,) if comes else (*y.queue, a)
    in_force, left = (before[0], before[1:]) if comes else (y.in_force, before)
    ages = list(range(len(before)))[::-1]
    hazard = [TRAVEL[age] / sum(TRAVEL[later] for later in range(age, 3)) for age in ages]
    law = {"acts": 0.0, "comes": 0.0}
    for arrived in itertools.product((False, True), repeat=len(before)):
        p = math.prod(q if now else 1 - q for q, now in zip(hazard, arrived, strict=True))
        if any(arrived) or not comes:
            law["comes" if any(arrived[1:] if comes else arrived) else "acts"] += p
    total = sum(law.values())
    return {
        (x, OnWay(None, in_force, Queue(left), 0, phase)): p / total
        for phase, p in law.items()
        if p > 0
    }


def missing_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    taken = tuple(y.queue)
    if y.phase == "replays":
        after = Since(None, Queue(taken[1:]), "replays" if len(taken) >= 2 else "chooses")
        return {(level, after): p for level, p in tank_moves(x, taken[0]).items()}
    shown = 1.0 if len(taken) >= 2 else 0.6
    queue = Queue((*taken, a))
    both = {"replays": shown, "chooses": 1 - shown}
    return {(x, Since(None, queue, phase)): p for phase, p in both.items()}


def _wind_noise(s: Any, a: Any) -> dict[Any, float]:
    return [{0: 1.0}, {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}, {0: 1.0}][
        s[1]
    ]


def _wind_lands(s: Any, a: Any, w: Any) -> Any:
    row = s[0] + w + (a == "up") - (a == "down")
    column = s[1] + (a == "right") - (a == "left")
    return sorted((0, row, 3))[1], sorted((0, column, 3))[1]


wind_truth = noisy(_wind_noise, _wind_lands)

pricing_truth = noisy(
    lambda s, a: {1: 0.9 * math.exp(-a / 2), 0: 1 - 0.9 * math.exp(-a / 2)}, lambda s, a, w: s - w
)


def maintenance_truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
    if a == "replace":
        return {(0, None): 1.0}
    further = [wear for wear in (x + 1, x + 2) if wear <= 6]
    return {(wear, None): 0.4 / len(further) for wear in further} | {
        (x, None): 0.6 if further else 1.0
    }


def truth_of(problem: Problem | tuple[Any, Any]) -> Truth:
    """P(x', y' | x, y, a) of a model with a law, multiplied out."""
    model, law = (problem.model(), problem.law()) if isinstance(problem, Problem) else problem

    def truth(x: Any, y: Any, a: Any) -> dict[Any, float]:
        joint: dict[Any, float] = {}
        for p, y_next, z in model.step(x, y, a):
            for x_next, q in dict(z.law).items() if hasattr(z, "law") else law[z].items():
                joint[x_next, y_next] = joint.get((x_next, y_next), 0.0) + p * q
        return joint

    return truth
