"""Policies and learners play in a `LateEnv`: observations become states, records episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

import attrs
import numpy as np

import pkd
from pkd import ModelError, PartiallyKnownMDP, transform
from pkd_delay.augmented import Augmented

if TYPE_CHECKING:
    from pkd_delay.late_env import LateEnv
    from pkd_delay.policy import DelayedPlan

__all__ = ["LateReader", "drive", "play"]


class LateReader:
    """Reads a `LateEnv` as a late model, for `pkd.drive`."""

    def __init__(self, env: LateEnv, model: PartiallyKnownMDP) -> None:
        refuse_other_lateness(env, model)
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
        if self.ended and isinstance(_layers(self.model)[-1], pkd.UnknownTable):
            *before, (*moves, last) = record.moves
            over = attrs.evolve(last, x_next=pkd.UnknownTable.OVER)
            record = attrs.evolve(record, moves=(*before, (*moves, over)))
        return record.augmented(self.model)


def _layers(model: PartiallyKnownMDP) -> list[PartiallyKnownMDP]:
    """A model and what it transforms, the innermost one last."""
    found = [model]
    while isinstance(model, Augmented | transform.Transformed):
        model = model.base
        found.append(model)
    return found


def refuse_other_lateness(env: LateEnv, model: PartiallyKnownMDP) -> None:
    """ModelError unless the model is late where the environment is."""
    *layers, _ = _layers(model)
    expected, found = [], []
    if env.packing.queue or (layers and isinstance(layers[0], Augmented)):
        expected.append("pkd_delay.KnownDelay or UnknownDelay")
        found.append(bool(layers) and isinstance(layers.pop(0), Augmented))
    if env.packing.commands:
        expected.append("pkd_delay.LateActions")
        found.append(bool(layers) and isinstance(layers.pop(0), transform.LateActions))
    if not all(found):
        names = " of ".join(type(layer).__name__ for layer in _layers(model))
        wanted = " of ".join([*expected, "a base"])
        raise ModelError(f"the model is {names}; in this environment expected {wanted}")


def drive(
    env: LateEnv,
    learner: pkd.OptimisticLearner,
    episodes: int,
    *,
    seed: int = 0,
    save: str | Path | None = None,
) -> np.ndarray:
    """`pkd.drive` in an environment with late observations, late actions, or both.

    The learner's model is late in the same way: `KnownDelay` or `UnknownDelay` of a base,
    `LateActions` of a base, or the former of the latter. `env.problem().model()` is one.

    >>> import pkd, pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> late = pkd_delay.DelayedMDP.constant(two_state_chain(horizon=4), 1)
    >>> learner = pkd.OptimisticLearner(late.known())
    >>> paid = pkd_delay.drive(pkd_delay.LateEnv(late), learner, 30)
    >>> learner.observed, len(paid)
    (30, 30)
    """
    reader = LateReader(env, learner.compiled.model)
    return pkd.drive(env, learner, episodes, reader=reader, seed=seed, save=save)


def play(
    env: LateEnv,
    policy: DelayedPlan | pkd.Plan | pkd.OptimisticLearner,
    episodes: int,
    *,
    seed: int = 0,
) -> np.ndarray:
    """The returns of a policy in an environment: nothing is learned.

    `policy` is a plan of `env.problem()`, or a learner of its model. Episode k is reset with a seed
    made of `seed` and k.

    >>> import pkd_delay
    >>> from pkd_delay.problems import two_state_chain
    >>> env = pkd_delay.LateEnv(two_state_chain(stay=1.0), 2, 1, first_action=0)
    >>> pkd_delay.play(env, pkd_delay.plan(env.problem()), 3)
    array([10., 10., 10.])
    """
    core: Any = getattr(policy, "core", policy)
    refuse_other_lateness(env, core.compiled.model)
    paid = np.zeros(episodes)
    for k in range(episodes):
        words = np.random.SeedSequence([int(seed), k]).generate_state(1)
        observation, _ = env.reset(seed=int(words[0]))
        over = False
        while not over:
            action = env.ask(policy, observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            paid[k] += reward
            over = terminated or truncated
    return paid
