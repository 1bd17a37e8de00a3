"""Late actions against closed forms of a two-state chain.

The chain stays with probability .9 and pays 1 when the action names the state.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import pkd
from pkd_examples.late_actions import late_actions
from pkd_examples.tank import tank

STAY = [[[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2]


def chain(delay: dict[int, float], horizon: int = 10) -> float:
    world = pkd.TabularMDP(STAY, np.eye(2), horizon)
    return pkd.plan(pkd.LateActions(world, delay), world.law()).value


@pytest.mark.parametrize(("delay", "value"), list(enumerate([10, 9.1, 8.46, 8.012, 7.7048])))
def test_a_constant_delay_costs_what_the_closed_form_says(delay: int, value: float) -> None:
    # sum over t < 10 of (1 + .8^min(t, d))/2: the held action 0 names the first state, as a guess
    # from the start would.
    assert chain({delay: 1.0}) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("delay", [{0: 0.5, 1: 0.5}, {0: 0.2, 1: 0.3, 3: 0.5}, {1: 0.4, 2: 0.6}])
def test_a_random_delay_costs_what_the_age_of_the_command_in_force_says(
    delay: dict[int, float],
) -> None:
    # The chain ignores actions, so each command should name the state seen. The command in force at
    # t is older than j steps when none of the last j + 1 has arrived, and it is worth (1 +
    # .8^age)/2; the one held from the start has age t.
    def older(j: int) -> float:
        return math.prod(sum(p for steps, p in delay.items() if steps > i) for i in range(j + 1))

    expected = 0.0
    for t in range(10):
        ages = {
            j: (older(j - 1) if j else 1.0) - (older(j) if j < t else 0.0) for j in range(t + 1)
        }
        expected += sum(p * (1 + 0.8**age) / 2 for age, p in ages.items())
    assert chain(delay) == pytest.approx(expected, abs=1e-12)


def test_no_delay_is_the_undelayed_world() -> None:
    world, late = tank(), late_actions(delay=0)
    assert pkd.plan(late.model(), late.law()).value == pytest.approx(
        pkd.plan(world.model(), world.law()).value, abs=1e-12
    )


def test_a_longer_delay_is_worth_less() -> None:
    values = [
        pkd.plan(problem.model(), problem.law()).value
        for problem in (late_actions(delay=d) for d in range(4))
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.5


def test_the_number_of_features_does_not_grow_with_the_queue() -> None:
    counts = [
        len({z for _, _, z in _unknown(late_actions(delay=d, levels=5).model())}) for d in (0, 2)
    ]
    assert counts == [5 * 3, 5 * 3]


def _unknown(model: pkd.LateActions) -> list[tuple[object, object, object]]:
    """Every (x, y, z) with an unknown feature that a walk of the model meets."""
    met, stack, seen = [], list(model.start()), set(model.start())
    while stack:
        x, y = stack.pop()
        choices = model.actions(x, y)
        for a in [None] if choices is pkd.CHANCE else choices:
            for p, y_next, z in model.step(x, y, a):
                known = isinstance(z, pkd.Known)
                if not known:
                    met.append((x, y, z))
                for x_next in [v for v, _ in z.law] if known else model.outcomes(z):
                    if p > 0 and (x_next, y_next) not in seen:
                        seen.add((x_next, y_next))
                        stack.append((x_next, y_next))
    return met
