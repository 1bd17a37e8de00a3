"""Options of the entry points: what is refused, how it is said, and what a signature shows."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import pkd
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
from pkd_examples.tank import tank
from pkd_examples.wind import wind

BAD = [
    (inventory, {"capacity": 0}, "Inventory: capacity is 0; expected a whole number >= 1"),
    (inventory, {"horizon": "week"}, "Inventory: horizon is 'week'; expected a whole number >= 1"),
    (
        inventory,
        {"demand": (1, -2)},
        (
            "inventory(demand=(1, -2)): "
            "expected a mean of at least 0, or one for each day of the season"
        ),
    ),
    (battery, {"efficiency": 1.2}, "Battery: efficiency is 1.2; expected a number in [0, 1]"),
    (battery, {"persistence": 2}, "persistence is 2; expected a number in [0, 1]"),
    (battery, {"price": 5}, "price is 5; expected a whole number from 0 to 4"),
    (admission, {"payments": (1, 1)}, "Admission: payments is (1, 1); expected different values"),
    (
        admission,
        {"weights": (1, 2)},
        "weights is (1, 2); expected 4 numbers of at least 0, not all 0",
    ),
    (american_put, {"spot": 0.0}, "AmericanPut: spot is 0.0; expected a number > 0"),
    (gambler, {"win": 1.5}, "win is 1.5; expected a number in [0, 1]"),
    (blackjack, {"deck": (1, 2)}, "deck is (1, 2); expected 10 numbers of at least 0, not all 0"),
    (kuhn, {"seat": 3}, "Kuhn: seat is 3; expected a whole number from 1 to 2"),
    (kuhn, {"bluff": -1}, "bluff is -1; expected a number in [0, 1]"),
    (late_actions, {"delay": {0: 0.5}}, "the law of the travel time sums to 0.5, not 1"),
    (missing_observations, {"shown": 2}, "shown is 2; expected a number in [0, 1]"),
    (wind, {"goal": (9, 9)}, "wind(goal=(9, 9)): expected a cell of the 7 x 10 grid"),
    (pricing, {"scale": 0}, "scale is 0; expected a number > 0"),
    (maintenance, {"wearing": "fast"}, "wearing is 'fast'; expected a number in [0, 1]"),
    (tank, {"levels": 2}, "levels is 2; expected a whole number >= 3"),
]


@pytest.mark.parametrize(("entry", "options", "message"), BAD)
def test_a_bad_option_is_refused_with_what_was_expected(
    entry: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(pkd.ModelError) as caught:
        entry(**options)
    assert str(caught.value) == message


def test_a_drift_that_the_tree_cannot_hold_is_refused_with_the_probability_it_would_need() -> None:
    # u = exp(.2/sqrt(50)) and growth exp(9/50) give (exp(.18) - 1/u)/(u - 1/u) = 3.97881.
    with pytest.raises(
        pkd.ModelError,
        match=r"Pr\(up\) = 3\.97881; expected a number between 0 and 1: take more steps",
    ):
        american_put(drift=9.0)


def test_all_bad_options_come_in_one_error() -> None:
    with pytest.raises(pkd.ModelError) as caught:
        inventory(capacity=0, holding=-1, lead_time=0.5)
    assert len(caught.value.findings) == 3


def test_a_signature_lists_the_options_of_the_model_with_their_defaults() -> None:
    options = inspect.signature(inventory).parameters
    assert {"demand", "log", "horizon", "lead_time", "backlog"} <= set(options)
    assert options["lead_time"].default == 1


def test_what_the_entry_point_derives_is_not_an_option() -> None:
    assert "days" not in inspect.signature(inventory).parameters
    with pytest.raises(TypeError, match="days"):
        inventory(days=3)
