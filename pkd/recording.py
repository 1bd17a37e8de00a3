"""One episode move by move, by asking the model: how an engine that keeps no list of its states records what happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pkd.kernels import flat
from pkd.kernels.rng import draw, uniform
from pkd.model import CHANCE, END, Episode, Known, ModelError, Transition, UnknownReward

if TYPE_CHECKING:
    from pkd.compiled import Compiled

__all__ = ["recorded"]

State = tuple[Any, Any]


def recorded(
    compiled: Compiled, world: flat.World, starts: Sequence[State], act: Callable[[int, Any, Any], Any], tally: flat.Tally, rng: np.ndarray
) -> tuple[Episode, float, bool]:
    """An episode under `act`, its return, and whether the tally, to which what was visited is added, makes a plan due."""
    model, horizon = compiled.model, compiled.horizon
    x, y = starts[draw(world.starts, 0, len(starts), uniform(rng))]
    moves: list[Transition] = []
    taken, total, due = 0, 0.0, False
    while (kind := model.actions(x, y)) is CHANCE or (kind is not END and taken < horizon):
        action = None
        if kind is not CHANCE:
            taken += 1
            action = act(taken, x, y)
            if action not in kind:
                raise ModelError(f"the policy takes {action!r} at step {taken} in (x={x!r}, y={y!r}); expected one of {list(kind)!r}")
        reward = model.reward(x, y, action)
        if isinstance(reward, UnknownReward):
            w = compiled.reward_index[reward.feature]
            reward = float(world.reward_value[draw(world.reward_rows, world.reward_ptr[w], world.reward_ptr[w + 1], uniform(rng))])
            due |= bool(flat.add_reward(tally, w, reward, 1.0))
        _, y_next, z = _drawn(list((model.step if taken < horizon else model.last_step)(x, y, action)), rng)
        if isinstance(z, Known):
            x_next = _drawn([(p, x_next) for x_next, p in z.law], rng)[1]
        else:
            row = compiled.feature_index[z]
            place = draw(world.rows, compiled.row_ptr[row], compiled.row_ptr[row + 1], uniform(rng))
            due |= bool(flat.count(tally, row, place))
            x_next = compiled.outcomes[row][place - compiled.row_ptr[row]]
        moves.append(Transition(x, y, action, x_next, y_next, float(reward)))
        total += float(reward)
        x, y = x_next, y_next
    return Episode(moves), total + float(model.final(x, y)), due


def _drawn(branches: list[Any], rng: np.ndarray) -> Any:
    """One of some tuples that begin with their probabilities."""
    possible = [branch for branch in branches if branch[0] > 0]
    return (
        possible[draw(np.cumsum([branch[0] for branch in possible]), 0, len(possible), uniform(rng))] if len(possible) > 1 else possible[0]
    )
