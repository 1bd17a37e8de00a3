"""A learner plays in a `LateEnv`: observations become augmented states, records become episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import attrs

import pkd
from pkd_delay.augmented import Augmented

if TYPE_CHECKING:
    import numpy as np

    from pkd_delay.late_env import LateEnv

__all__ = ["LateReader", "drive"]


class LateReader:
    """Reads a `LateEnv` as a model with late observations, for `pkd.drive`."""

    def __init__(self, env: LateEnv, model: Augmented) -> None:
        self.env, self.model = env, model
        self.observation: Any = None
        self.ended = False  # the environment ended the episode before the horizon

    def begin(self, observation: Any) -> None:
        self.observation, self.ended = observation, False

    def place(self) -> tuple[int, Any, Any]:
        return self.env.place_of(self.observation, self.model)

    def code(self, action: Any) -> Any:
        return self.env.code_of(action)

    def move(self, action: Any, answer: tuple[Any, SupportsFloat, bool, bool]) -> bool:
        self.observation, _, self.ended, truncated = answer
        return self.ended or truncated

    def episode(self) -> pkd.Episode:
        record = self.env.episode()
        last = record.moves[-1][-1]
        if self.ended and isinstance(self.model.base, pkd.UnknownTable):
            over = attrs.evolve(last, x_next=pkd.UnknownTable.OVER)
            moves = (*record.moves[:-1], (*record.moves[-1][:-1], over))
            states = (*record.states[:-1], pkd.UnknownTable.OVER)
            record = attrs.evolve(record, states=states, moves=moves)
        return record.augmented(self.model)


def drive(
    env: LateEnv,
    learner: pkd.OptimisticLearner,
    episodes: int,
    *,
    seed: int = 0,
    save: str | Path | None = None,
) -> np.ndarray:
    """`pkd.drive` in an environment with late observations.

    The learner's model is `KnownDelay` or `UnknownDelay` of a base.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4), 1)
    >>> learner = pkd.OptimisticLearner(late.known())
    >>> paid = pkd_delay.drive(pkd_delay.LateEnv(late), learner, 30)
    >>> learner.observed, len(paid)
    (30, 30)
    """
    model = learner.compiled.model
    if not isinstance(model, Augmented):
        raise pkd.ModelError(
            f"the learner's model is {type(model).__name__}; expected pkd_delay.KnownDelay or "
            "UnknownDelay"
        )
    reader = LateReader(env, model)
    return pkd.drive(env, learner, episodes, reader=reader, seed=seed, save=save)
