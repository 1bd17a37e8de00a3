"""One episode by asking the model move by move, for policies that no engine has as an array."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pkd.engine.belief import Tally, World
from pkd.engine.compiled import Act, Compiled
from pkd.engine.doors import count, count_reward, draw, uniform
from pkd.model import (
    CHANCE,
    END,
    Episode,
    Known,
    ModelError,
    Transition,
    UnknownReward,
    normalise,
)

__all__ = ["find_policy_fault", "play_model", "read_weights"]


SLACK = 1e-9  # by which probabilities of actions may miss 1


def play_model(
    compiled: Compiled, world: World, act: Act, tally: Tally, rng: np.ndarray
) -> tuple[Episode, bool]:
    """One episode by asking the model move by move; draws the same numbers as compiled episodes."""
    model, horizon = compiled.model, compiled.horizon
    starts = compiled.graph.start
    node, entries, _ = starts[
        draw(np.cumsum([p for *_, p in starts]), 0, len(starts), uniform(rng))
    ]
    x, y = compiled.graph.layers.x[node], compiled.graph.start_y(node, entries)
    moves: list[Transition] = []
    taken, due = 0, False
    while (kind := model.actions(x, y)) is CHANCE or (kind is not END and taken < horizon):
        action = None
        if kind is not CHANCE:
            taken += 1
            action = _choose(
                act(taken, x, y), list(kind), f"step {taken} in (x={x!r}, y={y!r})", rng
            )
        reward = model.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            w = compiled.reward_index[reward.feature]
            lo, hi = world.reward_ptr[w], world.reward_ptr[w + 1]
            reward = float(world.reward_value[draw(world.reward_rows, lo, hi, uniform(rng))])
            due |= bool(count_reward(tally, w, reward, 1.0))
        _, y_next, z = _draw_one(model.branches(x, y, action, taken), rng)
        if isinstance(z, Known):
            _, x_next = _draw_one([(p, value) for value, p in z.law if p > 0], rng)
        else:
            row = compiled.feature_index[z]
            place, last = compiled.row_ptr[row], compiled.row_ptr[row + 1]
            if last - place > 1:
                place = draw(world.rows, place, last, uniform(rng))
            due |= bool(count(tally, row, place))
            x_next = compiled.outcomes[row][place - compiled.row_ptr[row]]
        moves.append(Transition(x, y, action, x_next, y_next, float(reward)))
        x, y = x_next, y_next
    return Episode(moves, final=float(model.final(x, y))), due


def _choose(answer: Any, actions: list[Any], where: str, rng: np.ndarray) -> Any:
    """The action that a policy answered, drawn where it gave {action: probability}."""
    if not isinstance(answer, Mapping):
        if answer not in actions:
            raise ModelError(f"the policy takes {answer!r} at {where}; expected one of {actions!r}")
        return answer
    fault = find_policy_fault(answer, actions)
    if fault is not None:
        raise ModelError(f"the policy {fault} at {where}")
    return _draw_one([(p, action) for action, p in read_weights(answer)], rng)[1]


def _draw_one(branches: Sequence[Any], rng: np.ndarray) -> Any:
    """One of some tuples that begin with their probabilities."""
    if len(branches) == 1:
        return branches[0]
    masses = np.cumsum([branch[0] for branch in branches])
    return branches[draw(masses, 0, len(branches), uniform(rng))]


def find_policy_fault(answer: Any, actions: list[Any]) -> str | None:
    """What is wrong with the answer of a policy, or None."""
    if not isinstance(answer, Mapping):
        return None if answer in actions else f"takes {answer!r}, expected one of {actions!r},"
    strange = next((a for a, p in answer.items() if a not in actions and p != 0), None)
    if strange is not None:
        return f"takes {strange!r}, expected one of {actions!r},"
    try:
        masses = [float(p) for p in answer.values()]
    except (TypeError, ValueError):
        masses = [math.nan]
    if not all(p >= 0 for p in masses) or not abs(math.fsum(masses) - 1) <= SLACK:
        return f"is {answer!r}, expected probabilities that sum to 1,"
    return None


def read_weights(answer: Any) -> list[tuple[Any, float]]:
    """What a policy answered, as pairs (action, probability > 0)."""
    if not isinstance(answer, Mapping):
        return [(answer, 1.0)]
    taken = {action: float(p) for action, p in answer.items() if p > 0}
    return list(zip(taken, normalise(taken.values()), strict=True))
