"""What the domains with a queue look at.

A large model compiles quickly only if it looks at few entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pkd
from pkd.queue import Look, Veil, hide
from pkd.transforms.late_actions import OnWay
from pkd.transforms.missing import Since
from pkd_examples.inventory import inventory
from pkd_examples.late_actions import late_actions
from pkd_examples.missing import missing_observations

STOCK = inventory(lead_time=3).model()
CONSTANT = late_actions(delay=6).model()
RANDOM = late_actions(delay={0: 0.5, 2: 0.25, 4: 0.25}).model()
GAUGE = missing_observations(longest=4).model()


def sent(queue: pkd.Queue, phase: str) -> OnWay:
    return OnWay(None, 1, queue, 0, phase)


def looks(ask: Callable[[pkd.Queue], object], length: int) -> int:
    """How many of the oldest entries must be shown before `ask` answers."""
    for shown in range(length + 1):
        veil = Veil()
        try:
            ask(hide((0,) * shown, length - shown, veil))
        except Look:
            continue
        assert not veil.looked
        return shown
    raise AssertionError("a queue without hidden entries was refused")


def ask_all(
    model: pkd.PartiallyKnownMDP, x: Any, y_with: Callable[[pkd.Queue], Any]
) -> Callable[[pkd.Queue], object]:
    """Asks everything that a compiler asks of one state."""

    def ask(queue: pkd.Queue) -> object:
        y = y_with(queue)
        kind = model.actions(x, y)
        choices = [None] if kind is pkd.CHANCE else list(kind)
        moves = [list(step(x, y, a)) for step in (model.step, model.last_step) for a in choices]
        return moves, [model.reward(x, y, a) for a in choices], model.final(x, y)

    return ask


@pytest.mark.parametrize(
    ("model", "x", "y_with", "length", "expected"),
    [
        pytest.param(STOCK, None, lambda q: (0, 4, q), 3, 1, id="the order that arrives"),
        pytest.param(STOCK, 2, lambda q: (0, 4, q), 3, 0, id="demand"),
        pytest.param(CONSTANT, 3, lambda q: sent(q, "sends"), 4, 0, id="no command comes yet"),
        pytest.param(CONSTANT, 3, lambda q: sent(q, "sends"), 6, 0, id="a command comes surely"),
        pytest.param(CONSTANT, 3, lambda q: sent(q, "comes"), 7, 1, id="the oldest one comes"),
        pytest.param(CONSTANT, 3, lambda q: sent(q, "acts"), 6, 0, id="the world moves"),
        pytest.param(RANDOM, 3, lambda q: sent(q, "sends"), 4, 0, id="some can come"),
        pytest.param(RANDOM, 3, lambda q: sent(q, "comes"), 4, 1, id="they come one by one"),
        pytest.param(GAUGE, 3, lambda q: Since(None, q), 4, 0, id="the gauge answers or not"),
        pytest.param(GAUGE, 3, lambda q: Since(None, q, "replays"), 4, 1, id="one is replayed"),
    ],
)
def test_a_state_is_answered_after_a_look_at_few_entries(
    model: pkd.PartiallyKnownMDP,
    x: Any,
    y_with: Callable[[pkd.Queue], Any],
    length: int,
    expected: int,
) -> None:
    assert looks(ask_all(model, x, y_with), length) == expected


def test_branches_of_probability_zero_are_left_out() -> None:
    for model, x, y in (
        (CONSTANT, 3, sent(pkd.Queue((0, 1, 2)), "sends")),
        (CONSTANT, 3, sent(pkd.Queue((0, 1, 2, 0, 1, 2)), "sends")),
        (GAUGE, 3, Since(None, pkd.Queue((0, 1, 2, 0)))),
    ):
        assert [p for p, _, _ in model.step(x, y, 1)] == [1.0]
